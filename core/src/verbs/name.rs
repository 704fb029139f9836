//! Names of plugins and hosts: their grammar, and which of them a mistyped one may have meant.

use std::fmt;
use std::str::FromStr;

use mu_protocol::messages::values::Name;

use crate::cli::failure::{Failure, Kind};

/// A word that is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{word:?} is no {noun} name: a name begins with a lower-case letter and goes on with up to 31 of a-z, 0-9, _ and -"
)]
pub struct BadName {
    /// Whose name it was to be.
    pub noun: &'static str,
    /// The word.
    pub word: String,
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $noun:literal, $unknown:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(Name);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }

            /// The name as it goes on the wire.
            pub fn wire(&self) -> Name {
                self.0.clone()
            }

            /// The failure of a verb that was given a name which is none of `known` (exit 3, near names).
            pub(crate) fn unknown(&self, known: &[String]) -> Failure {
                unknown($noun, Kind::$unknown, self.as_str(), known)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = BadName;

            fn from_str(word: &str) -> Result<$name, BadName> {
                parse($noun, word).map($name)
            }
        }
    )*};
}

names! {
    /// A name a plugin can be registered with: `[a-z][a-z0-9_-]{0,31}`.
    PluginName: "plugin", UnknownPlugin;
    /// A name a host can be registered with: `[a-z][a-z0-9_-]{0,31}`.
    HostName: "host", UnknownHost;
}

/// The word as the name of a `noun`.
///
/// # Errors
/// It breaks the grammar.
pub(crate) fn parse(noun: &'static str, word: &str) -> Result<Name, BadName> {
    Name::new(word).map_err(|_| BadName { noun, word: word.to_owned() })
}

impl From<BadName> for Failure {
    fn from(error: BadName) -> Failure {
        Failure::new(Kind::BadName, error.to_string())
    }
}

fn unknown(noun: &str, kind: Kind, name: &str, known: &[String]) -> Failure {
    let near = near(name, known);
    let list = format!("mu {noun} list");
    let hint = match (known.is_empty(), near.is_empty()) {
        (true, _) => format!("none is registered yet; `mu {noun} add` registers one"),
        (_, true) => format!("`{list}` lists those that are"),
        (_, false) => format!("did you mean {}?", near.join(" or ")),
    };
    Failure::new(kind, format!("no {noun} is registered as {name}: {hint}")).or_else([list])
}

/// At most three of `known` that `name` may have meant, nearest first: one begins with the other, or few edits apart.
fn near<'a>(name: &str, known: &'a [String]) -> Vec<&'a str> {
    let mut near: Vec<(usize, &str)> = known
        .iter()
        .map(|other| (edits(name, other), other.as_str()))
        .filter(|(edits, other)| {
            let allowed = (name.len().max(other.len()) / 3).max(1);
            *edits <= allowed || other.starts_with(name) || name.starts_with(other)
        })
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, other)| other).collect()
}

/// How many insertions, deletions, replacements and swaps of neighbours lie between two words (optimal string alignment).
fn edits(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (i, 0) => i,
                (0, j) => j,
                (i, j) => {
                    let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        least = least.min(rows[i - 2][j - 2] + 1);
                    }
                    least
                }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn a_name_is_a_letter_and_up_to_31_more() {
        for good in ["a", "box", "a-b_9", &"a".repeat(32)] {
            assert!(good.parse::<PluginName>().is_ok(), "{good}");
        }
        for bad in
            ["", "9a", "-a", "_a", "Box", "bOx", "a.b", "a:b", "a/b", "bü", "a b", "a\n", &"a".repeat(33)]
        {
            assert!(bad.parse::<PluginName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_swap_of_neighbours_is_one_edit() {
        assert_eq!(edits("cluod", "cloud"), 1);
        assert_eq!(edits("box", "box"), 0);
        assert_eq!(edits("", "box"), 3);
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn near_names_come_nearest_first_and_far_ones_not_at_all() {
        let known = known(&["crate", "clouds", "cloud", "box", "cloudy"]);
        assert_eq!(near("cluod", &known), ["cloud", "clouds", "cloudy"]);
        assert_eq!(near("rail", &known), Vec::<&str>::new());
        assert_eq!(near("clo", &known), ["cloud", "clouds", "cloudy"]);
    }

    #[test]
    fn the_failure_names_near_names_or_says_that_there_are_none() {
        let name: PluginName = "cluod".parse().unwrap();
        let message = |names: &[&str]| name.unknown(&known(names)).message;
        assert!(message(&["cloud", "box"]).ends_with("did you mean cloud?"));
        assert!(message(&["box"]).ends_with("`mu plugin list` lists those that are"));
        assert!(message(&[]).contains("none is registered yet"));
    }
}
