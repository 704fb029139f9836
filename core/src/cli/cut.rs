//! The size limits of a result (OUT-09, OUT-10) and the marks left where something was cut (OUT-11).

use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::output::{Data, Next, Output, Row, json_line, success_json};

/// A record of a list, in characters of its JSON.
pub const RECORD_CHARS: usize = 400;
/// A whole document, in bytes.
pub const RESULT_BYTES: usize = 4096;
/// How much of the document the command for the rest may take; what it has beyond that does not count, since a plan is
/// never shortened (OUT-05).
const COMMAND_BYTES: usize = 1024;
/// A value of this size or less is not worth cutting: its whole field goes.
const SMALL: usize = 16;
/// Stands at the end of a value that was cut.
const ELLIPSIS: char = '…';

/// What a limit counts.
#[derive(Clone, Copy)]
enum Unit {
    Chars,
    Bytes,
}

impl Unit {
    /// The size of a value's JSON.
    fn of(self, value: &impl Serialize) -> usize {
        let json = json_line(value);
        match self {
            Unit::Chars => json.chars().count(),
            Unit::Bytes => json.len(),
        }
    }
}

/// Shortens a record of a list to [`RECORD_CHARS`]; one that was cut gains `cut`, the size that is missing. The longest
/// values go first, the first field (the identity) after all others (OUT-13). `missing` characters of it were cut before.
/// Returns whether anything was cut.
pub fn record(row: &mut Row, missing: usize) -> bool {
    shorten(row, RECORD_CHARS, Unit::Chars, missing)
}

fn shorten(row: &mut Row, limit: usize, unit: Unit, missing: usize) -> bool {
    let whole = unit.of(row) + missing;
    if whole <= limit {
        return false;
    }
    let room = limit.saturating_sub(r#","cut":"#.len() + whole.to_string().len() + r#","cut:1":"#.len());
    let mut size = whole - missing;
    while size > room && !row.fields_mut().is_empty() {
        shorten_once(row.fields_mut(), size - room, unit);
        size = unit.of(row);
    }
    if let Some((column, _)) = row.fields_mut().iter_mut().find(|(column, _)| column == "cut") {
        column.push_str(":1"); // a query's own column makes room for the mark
    }
    row.push("cut".into(), json!(whole.saturating_sub(size).max(1)));
    true
}

/// The longest value loses `excess`; when none is worth cutting, the last field goes.
fn shorten_once(fields: &mut Vec<(String, Value)>, excess: usize, unit: Unit) {
    let longest = (0..fields.len()).max_by_key(|&at| (unit.of(&fields[at].1), at != 0));
    let Some(at) = longest else { return };
    let value = &mut fields[at].1;
    let size = unit.of(value);
    if size <= SMALL {
        fields.pop();
        return;
    }
    let text = match &*value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let quotes = 2;
    let mut left = size.saturating_sub(excess + quotes + ELLIPSIS.len_utf8());
    let fits = |c: &char| {
        let cost = unit.of(c) - quotes;
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        fits
    };
    let mut kept: String = text.chars().take_while(fits).collect();
    kept.push(ELLIPSIS);
    *value = Value::String(kept);
}

/// Cuts a result to its limits, unless it is the uncut one, and puts the command for the rest into `next`.
pub fn output(mut output: Output) -> Output {
    let Some(uncut) = output.uncut.take() else { return output };
    let rest = Some(Next::seq([uncut]));
    let exempt = json_line(&rest).len().saturating_sub(COMMAND_BYTES);
    let room = |empty: &Data| (RESULT_BYTES + exempt).saturating_sub(success_json(empty, &rest).len());
    match &mut output.data {
        Data::Verbatim(..) | Data::Passed(..) => {}
        Data::Row(row) => {
            if success_json(&Data::Row(row.clone()), &output.next).len() > RESULT_BYTES {
                shorten(row, room(&Data::Row(Row::default())) + "{}".len(), Unit::Bytes, 0);
                output.next = rest;
            }
        }
        Data::List { table, rows, more, cut } => {
            for row in rows.iter_mut() {
                *cut |= record(row, 0);
            }
            let empty = Data::List { table, rows: Vec::new(), more: u64::MAX, cut: false };
            let mut left = room(&empty);
            let fits = |row: &&Row| {
                let size = json_line(row).len() + ",".len();
                let fits = size <= left;
                left = left.saturating_sub(size);
                fits
            };
            let kept = rows.iter().take_while(fits).count();
            *more += (rows.len() - kept) as u64;
            rows.truncate(kept);
            if *cut || *more > 0 {
                output.next = rest;
            }
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(rows: Vec<Row>) -> Output {
        let data = Data::List { table: "plugins", rows, more: 0, cut: false };
        Output { uncut: Some("mu plugin list --full".into()), ..Output::new(data) }
    }

    fn size(output: &Output) -> usize {
        success_json(&output.data, &output.next).len()
    }

    fn long(name: &str, chars: usize) -> Row {
        Row::new([("name", json!(name)), ("argv", json!([format!("/{}", "x".repeat(chars))]))])
    }

    /// OUT-10
    #[test]
    fn a_record_of_400_characters_is_whole_and_one_more_is_cut() {
        let mut row = Row::new([("a", json!("ü".repeat(RECORD_CHARS - r#"{"a":""}"#.len())))]);
        assert_eq!(Unit::Chars.of(&row), RECORD_CHARS);
        assert!(!record(&mut row, 0));
        let mut row = Row::new([("a", json!("ü".repeat(RECORD_CHARS + 1 - r#"{"a":""}"#.len())))]);
        assert!(record(&mut row, 0));
        assert!(Unit::Chars.of(&row) <= RECORD_CHARS);
    }

    /// OUT-13
    #[test]
    fn the_name_stays_and_the_longest_value_is_cut() {
        let mut row = long("box", 1000);
        record(&mut row, 0);
        assert_eq!(row.value("name"), Some(&json!("box")));
        assert!(row.value("argv").unwrap().as_str().unwrap().ends_with("xxx…"));
        assert!(Unit::Chars.of(&row) > RECORD_CHARS - 30, "more was cut than had to be");
    }

    /// OUT-11
    #[test]
    fn the_mark_counts_what_is_missing() {
        let mut row = Row::new([("a", json!("x".repeat(1000)))]);
        let whole = Unit::Chars.of(&row);
        record(&mut row, 0);
        let missing = row.value("cut").unwrap().as_u64().unwrap() as usize;
        row.fields_mut().pop();
        assert_eq!(Unit::Chars.of(&row) + missing, whole);
    }

    /// OUT-10
    #[test]
    fn escapes_many_columns_and_long_column_names_all_fit() {
        let mut escapes = Row::new([("a", json!("\u{1b}\"\n".repeat(300)))]);
        let mut columns = Row::new((0..200).map(|n| (format!("c{n}"), json!(n))));
        let mut names = Row::new([("n".repeat(1000), json!(1)), ("m".into(), json!(2))]);
        for row in [&mut escapes, &mut columns, &mut names] {
            assert!(record(row, 0));
            assert!(Unit::Chars.of(row) <= RECORD_CHARS, "{row:?}");
            assert!(row.value("cut").is_some());
        }
        assert!(columns.value("c10").is_some(), "fields were dropped that had room");
    }

    #[test]
    fn a_query_column_called_cut_is_renamed_only_when_the_mark_is_needed() {
        let mut row = Row::new([("cut", json!("x".repeat(500)))]);
        record(&mut row, 0);
        assert!(row.value("cut:1").is_some() && row.value("cut").unwrap().is_u64());
        let mut short = Row::new([("cut", json!("x"))]);
        assert!(!record(&mut short, 0));
        assert_eq!(short.value("cut"), Some(&json!("x")));
    }

    /// OUT-09
    #[test]
    fn a_list_ends_where_the_document_reaches_4_kilobytes() {
        let cut = output(list((0..40).map(|n| long(&format!("p{n}"), 200)).collect()));
        let Data::List { rows, more, .. } = &cut.data else { panic!() };
        assert_eq!(rows.len() as u64 + more, 40);
        assert!(size(&cut) <= RESULT_BYTES && size(&cut) > RESULT_BYTES - 400, "{}", size(&cut));
        assert_eq!(cut.next.unwrap().commands(), ["mu plugin list --full"]);
    }

    /// OUT-11
    #[test]
    fn a_list_that_fits_names_no_command() {
        let whole = output(list(vec![long("box", 10)]));
        assert_eq!(whole.next, None);
        assert_eq!(whole.data, list(vec![long("box", 10)]).data);
    }

    /// OUT-09
    #[test]
    fn a_row_is_cut_to_4_kilobytes_of_bytes_not_characters() {
        let row = Row::new([("name", json!("box")), ("declaration", json!({"a": "ü".repeat(9000)}))]);
        let shown = Output { uncut: Some("mu plugin show box --full".into()), ..Output::new(Data::Row(row)) };
        let cut = output(shown);
        assert!(size(&cut) <= RESULT_BYTES && size(&cut) > RESULT_BYTES - 100, "{}", size(&cut));
        assert_eq!(cut.next.unwrap().commands(), ["mu plugin show box --full"]);
    }

    /// OUT-11
    #[test]
    fn the_uncut_result_is_left_alone() {
        let full = Output { uncut: None, ..list((0..40).map(|n| long(&format!("p{n}"), 900)).collect()) };
        assert_eq!(output(full.clone()), full);
    }

    /// OUT-05
    #[test]
    fn a_long_command_is_kept_whole_and_rows_still_show() {
        let command = format!("mu db query --full '{}'", "x".repeat(6000));
        let rows = (0..40).map(|n| long(&format!("p{n}"), 200)).collect();
        let cut = output(Output { uncut: Some(command.clone()), ..list(rows) });
        let Data::List { rows, .. } = &cut.data else { panic!() };
        assert!(rows.len() > 5);
        assert_eq!(cut.next.unwrap().commands(), [command]);
    }
}
