//! Words for a POSIX shell: nothing of the quoting of one shell in particular, unlike what mu prints for people.

use std::borrow::Cow;

/// One word as `sh` reads it back: bare when it can be, else in single quotes.
pub fn quote(word: &str) -> Cow<'_, str> {
    let bare = |c: char| c.is_ascii_alphanumeric() || "_@%+:,./-".contains(c);
    if !word.is_empty() && word.chars().all(bare) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// Words joined into a command that `sh` splits into the same words.
pub fn command(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

/// A fetch template with `{local}`, `{remote}` and `{host}` replaced by quoted text (REG-18). Nothing that is put in is
/// looked at again; other braces are the shell's.
pub fn fill(template: &str, local: &str, remote: &str, host: &str) -> String {
    let mut filled = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        filled += &rest[..at];
        rest = &rest[at..];
        let places = [("{local}", local), ("{remote}", remote), ("{host}", host)];
        let (length, text) = match places.iter().find(|(place, _)| rest.starts_with(place)) {
            Some((place, word)) => (place.len(), quote(word)),
            None => (1, Cow::Borrowed("{")),
        };
        filled += &text;
        rest = &rest[length..];
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_every_posix_shell_reads_them() {
        let words = ["a", "", "a b", "it's", "$HOME", "a\nb", "~", "x=1", "{a,b}", "ü"].map(String::from);
        assert_eq!(command(&words), "a '' 'a b' 'it'\\''s' '$HOME' 'a\nb' '~' 'x=1' '{a,b}' 'ü'");
    }

    /// REG-18
    #[test]
    fn a_template_is_filled_once_and_keeps_its_own_braces() {
        let filled =
            fill("f() { echo ${x} {local}; }; f {remote}@{host} {other} {", "/a b", "{host}", "dock");
        assert_eq!(filled, "f() { echo ${x} '/a b'; }; f '{host}'@dock {other} {");
    }
}
