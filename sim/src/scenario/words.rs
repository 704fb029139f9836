//! A `run` line to arguments: quotes and backslashes as in a shell, and nothing else of a shell.

/// Why a line has no words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordsError {
    /// A quote without its partner.
    #[error("the {0} quote is never closed")]
    OpenQuote(char),
    /// A backslash with nothing behind it.
    #[error("nothing follows the last backslash")]
    OpenEscape,
    /// A character that a shell would act on.
    #[error("no shell runs this: quote `{0}` if it is part of a word")]
    Shell(char),
}

/// The words of a command line.
pub(crate) fn split(line: &str) -> Result<Vec<String>, WordsError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        None => return Err(WordsError::OpenQuote(c)),
                        Some(end) if end == c => break,
                        Some('\\') if c == '"' => match chars.next() {
                            None => return Err(WordsError::OpenQuote(c)),
                            Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                            Some(other) => word.extend(['\\', other]),
                        },
                        Some(inside) => word.push(inside),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next().ok_or(WordsError::OpenEscape)?),
            '|' | '&' | ';' | '<' | '>' | '$' | '`' => return Err(WordsError::Shell(c)),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// The command line that has these words.
pub(crate) fn join(words: &[String]) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !"'\"\\|&;<>$`".contains(c);
    let quoted = |word: &String| match word.is_empty() || !word.chars().all(is_plain) {
        true => format!("'{}'", word.replace('\'', r"'\''")),
        false => word.clone(),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// What a fetch template has in braces: mu replaces it, not the scenario.
pub(crate) const OF_A_TEMPLATE: [&str; 3] = ["local", "remote", "host"];

/// The name between the first pair of braces that looks like a placeholder (`{box}`, `{dir}`), and the text around it.
fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| from + at) {
        let name_is = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        let inside = &text[open + 1..];
        let length = inside.find(|c| !name_is(c)).unwrap_or(inside.len());
        let name = &inside[..length];
        let is_closed = inside[length..].starts_with('}');
        if name.starts_with(|c: char| c.is_ascii_lowercase()) && is_closed && !OF_A_TEMPLATE.contains(&name) {
            return Some((&text[..open], name, &inside[length + 1..]));
        }
        from = open + 1;
    }
    None
}

/// The longest text that [`repeat`] makes of one pair of braces.
const LONGEST: usize = 2_000_000;

/// The text with every `{100000x}` replaced by so many of that small letter: what no file should have to spell out.
fn repeat(text: &str) -> String {
    let mut parts = text.split('{');
    let mut repeated = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let count = part[..digits].parse().ok().filter(|count| (1..=LONGEST).contains(count));
        match (count, part.as_bytes().get(digits..digits + 2)) {
            (Some(count), Some([letter @ b'a'..=b'z', b'}'])) => {
                repeated.extend(std::iter::repeat_n(char::from(*letter), count));
                repeated.push_str(&part[digits + 2..]);
            }
            _ => repeated.extend(["{", part]),
        }
    }
    repeated
}

/// The names of all placeholders.
pub(crate) fn placeholders(mut text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    while let Some((_, name, rest)) = next_placeholder(text) {
        names.push(name);
        text = rest;
    }
    names
}

/// The text with every placeholder replaced.
pub(crate) fn expand(text: &str, place: &dyn Fn(&str) -> String) -> String {
    let mut expanded = String::new();
    let text = repeat(text);
    let mut text = text.as_str();
    while let Some((before, name, rest)) = next_placeholder(text) {
        expanded.push_str(before);
        expanded.push_str(&place(name));
        text = rest;
    }
    expanded + text
}
