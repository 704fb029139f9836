//! What people read: escaped, quoted, aligned. Control characters never reach a terminal raw (OUT-15).

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use crate::cli::output::Row;

/// How long a path may get, in characters, before its middle is left out.
const PATH_CHARS: usize = 300;

/// Whether a character may move the cursor, start an escape sequence, break a line or reorder what is shown.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text on one line, with whatever could disturb a terminal spelled out (`\n`, `\u{1b}`).
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if is_unsafe(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    Cow::Owned(line)
}

/// A path within a sentence: on one line, quoted when there is nothing to see, its middle left out when it is very long.
pub fn path(path: &str) -> String {
    let line = escape(path);
    let count = line.chars().count();
    if count == 0 {
        return "''".into();
    }
    if count <= PATH_CHARS {
        return line.into_owned();
    }
    let (head, tail) = (line.chars().take(PATH_CHARS / 2), line.chars().skip(count - PATH_CHARS / 2));
    head.chain(['…']).chain(tail).collect()
}

/// JSON text that stays harmless on a terminal: what JSON itself leaves raw (DEL, C1, line and direction marks) becomes
/// `\uXXXX`. Such characters occur only inside strings, where the escape means the same.
pub fn escape_json(json: String) -> String {
    if !json.contains(is_unsafe) {
        return json;
    }
    let mut safe = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        if is_unsafe(c) {
            write!(safe, "\\u{:04x}", u32::from(c)).expect("a String takes everything");
        } else {
            safe.push(c);
        }
    }
    safe
}

/// One word as a shell reads it back: bare when it can be, else in single quotes, else (control characters, so that a
/// command stays on one line) as `$'…'`.
pub fn quote(word: &str) -> Cow<'_, str> {
    let bare = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(bare) && !word.starts_with('=') {
        return Cow::Borrowed(word);
    }
    if !word.contains(is_unsafe) {
        return Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")));
    }
    let mut quoted = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' => quoted.push_str("\\'"),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if is_unsafe(c) && c.is_ascii() => {
                write!(quoted, "\\x{:02x}", u32::from(c)).expect("a String takes everything");
            }
            c if is_unsafe(c) => {
                write!(quoted, "\\u{:04x}", u32::from(c)).expect("a String takes everything");
            }
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    Cow::Owned(quoted)
}

/// Words joined into a command line that a shell splits into the same words.
pub fn command<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&quote(word.as_ref()));
    }
    line
}

/// Milliseconds since 1970 as `2026-01-31T12:00:00Z`; years beyond four digits stay numbers.
pub fn date(epoch_ms: i64) -> String {
    let seconds = epoch_ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since 0000-03-01 split into 400-year eras: leap days then fall on the last day of a year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    if !(0..=9999).contains(&year) {
        return epoch_ms.to_string();
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// One value on one line. In mu's own rows (`typed`) an `argv` reads as a command line, a list as `a, b` and an `…_at` as
/// a date; rows of a query stay as SQLite has them.
pub fn cell(column: &str, value: &Value, typed: bool) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => escape(text).into_owned(),
        Value::Array(words) if column == "argv" => command(words.iter().filter_map(Value::as_str)),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let words: Vec<_> = items.iter().filter_map(Value::as_str).map(escape).collect();
            words.join(", ")
        }
        Value::Number(number) if typed && (column.ends_with("_at") || column == "since") => {
            number.as_i64().map_or_else(|| number.to_string(), date)
        }
        other => escape(&other.to_string()).into_owned(),
    }
}

/// Rows under a line of column names, one row a line, columns aligned. The columns are those of all rows, in order of
/// appearance.
pub fn table(rows: &[Row], typed: bool) -> String {
    let mut columns: Vec<&str> = Vec::new();
    for (column, _) in rows.iter().flat_map(Row::fields) {
        if !columns.contains(&column.as_str()) {
            columns.push(column);
        }
    }
    let mut lines = vec![columns.iter().map(|column| escape(column).to_uppercase()).collect::<Vec<_>>()];
    for row in rows {
        let value = |column: &&str| row.value(column).map_or_else(String::new, |v| cell(column, v, typed));
        lines.push(columns.iter().map(value).collect());
    }
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let mut padded = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            write!(padded, "{cell:<width$}  ").expect("a String takes everything");
        }
        text.push_str(padded.trim_end());
        text.push('\n');
    }
    text
}

/// One row, one field a line.
pub fn fields(row: &Row) -> String {
    let width = row.fields().map(|(column, _)| column.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (column, value) in row.fields() {
        let value = cell(column, value, true);
        writeln!(text, "{:<width$}  {value}", escape(column)).expect("a String takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// OUT-15
    #[test]
    fn control_and_direction_characters_are_spelled_out() {
        assert_eq!(escape("a\nb\u{1b}[31m\u{9b}\u{202e}"), r"a\nb\u{1b}[31m\u{9b}\u{202e}");
        assert!(matches!(escape("plain 'text' ü"), Cow::Borrowed(_)));
    }

    /// OUT-15
    #[test]
    fn json_escapes_what_json_leaves_raw_and_means_the_same() {
        let value = json!({"a": "\u{9b}31m\u{7f}\u{2028}\u{202e}\n"});
        let safe = escape_json(value.to_string());
        assert!(!safe.contains(is_unsafe), "{safe}");
        assert_eq!(serde_json::from_str::<Value>(&safe).unwrap(), value);
    }

    #[test]
    fn a_long_path_keeps_both_ends_and_an_empty_one_can_be_seen() {
        let long = path(&format!("/first/{}/last", "ü".repeat(5000)));
        assert!(long.starts_with("/first/") && long.contains("ü…ü") && long.ends_with("/last"), "{long}");
        assert_eq!(long.chars().count(), PATH_CHARS + 1);
        assert_eq!((path(""), path("/a\nb")), ("''".into(), r"/a\nb".into()));
    }

    #[test]
    fn a_bare_word_is_not_quoted() {
        assert_eq!(command(["mu", "plugin", "add", "--", "/usr/bin/mu-plugin-box", "--a=b"]), {
            "mu plugin add -- /usr/bin/mu-plugin-box --a=b"
        });
    }

    #[test]
    fn words_that_a_shell_would_change_are_quoted() {
        assert_eq!(command(["", "a b", "it's", "$HOME", "~", "=x", "a*"]), {
            r"'' 'a b' 'it'\''s' '$HOME' '~' '=x' 'a*'"
        });
    }

    /// BUD-03
    #[test]
    fn a_word_with_a_newline_stays_on_one_line() {
        assert_eq!(quote("a\nb'\\\u{1b}\u{85}"), r"$'a\nb\'\\\x1b\u0085'");
    }

    #[test]
    fn dates_count_leap_days_and_go_before_1970() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(951_782_399_999), "2000-02-28T23:59:59Z");
        assert_eq!(date(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(date(4_107_542_400_000), "2100-03-01T00:00:00Z");
        assert_eq!(date(-1), "1969-12-31T23:59:59Z");
        assert_eq!(date(i64::MAX), i64::MAX.to_string());
    }

    #[test]
    fn a_table_is_aligned_and_keeps_one_row_a_line() {
        let rows = [
            Row::new([("name", json!("box")), ("seams", json!(["link", "job"])), ("channel", Value::Null)]),
            Row::new([("name", json!("cl\noud")), ("seams", json!([])), ("channel", json!("chat"))]),
        ];
        let lines = ["NAME     SEAMS      CHANNEL", "box      link, job  -", r"cl\noud             chat"];
        assert_eq!(table(&rows, true), format!("{}\n", lines.join("\n")));
    }

    #[test]
    fn a_typed_row_shows_command_lines_and_dates() {
        let row = Row::new([("argv", json!(["/x/mu-plugin-box", "a b"])), ("added_at", json!(0))]);
        assert_eq!(fields(&row), "argv      /x/mu-plugin-box 'a b'\nadded_at  1970-01-01T00:00:00Z\n");
    }

    #[test]
    fn a_number_of_a_query_stays_a_number() {
        assert_eq!(cell("added_at", &json!(0), false), "0");
    }
}
