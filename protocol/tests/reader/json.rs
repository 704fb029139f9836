//! Generated JSON, mutations of it, and a slow second opinion that shares no code with the strict pass.

use std::fmt;

use proptest::prelude::*;
use proptest::sample::Index;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// JSON text: any spelling of white space, escapes and numbers, now and then a name twice.
pub(crate) fn object() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        number(),
        string(),
    ];
    let value = leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            (space(), proptest::collection::vec(inner.clone(), 0..6))
                .prop_map(|(space, items)| format!("[{space}{}]", items.join(&format!(",{space}")))),
            members(inner),
        ]
    });
    members(value)
}

fn members(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    // Twelve crosses the border at which names are kept in another way.
    (space(), proptest::collection::vec((name(), value), 0..12)).prop_map(|(space, members)| {
        let members: Vec<String> =
            members.iter().map(|(name, value)| format!("{name}{space}:{value}{space}")).collect();
        format!("{{{space}{}}}{space}", members.join(","))
    })
}

/// A quoted name from few enough that some repeat, in one of several spellings.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,3}".prop_map(|name| format!("\"{name}\"")),
        1 => "[a-c]".prop_map(|name| format!("\"\\u{:04x}\"", u32::from(name.as_bytes()[0]))),
        1 => string(),
    ]
}

fn space() -> impl Strategy<Value = String> {
    prop_oneof![3 => Just(String::new()), 1 => "[ \t\r]{1,3}"]
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
    ]
}

/// A quoted string of characters, escapes, and now and then half a surrogate pair.
pub(crate) fn string() -> impl Strategy<Value = String> {
    const ESCAPES: [&str; 8] = ["\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"];
    let piece = prop_oneof![
        4 => "[ -!#-\\[\\]-~]{0,12}",
        1 => "[^\\x00-\\x1f\"\\\\]{0,4}",
        2 => proptest::sample::select(&ESCAPES[..]).prop_map(str::to_owned),
        1 => Just("\\ud83d\\ude00".to_owned()),
        1 => any::<u16>().prop_map(|unit| format!("\\u{unit:04X}")),
    ];
    proptest::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// A change to some bytes of a line.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    Delete(Index),
    Replace(Index, u8),
    Insert(Index, &'static str),
    Repeat(Index, Index),
    Cut(Index),
}

/// Few enough changes that many mutants stay almost JSON.
pub(crate) fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    const PIECES: [&str; 26] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "0",
        "-",
        ".",
        "e",
        "1",
        "u",
        "\\ud800",
        "\\udc00",
        "\u{feff}",
        "\0",
        " ",
        "\t",
        "null",
        "true",
        "\"a\":1,",
        "{}",
        "[[[[[[[[[[[[[[[[",
        "é",
    ];
    let mutation = prop_oneof![
        any::<Index>().prop_map(Mutation::Delete),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        (any::<Index>(), proptest::sample::select(&PIECES[..]))
            .prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Mutation::Repeat(from, to)),
        any::<Index>().prop_map(Mutation::Cut),
    ];
    proptest::collection::vec(mutation, 0..3)
}

pub(crate) fn mutate(line: &str, mutations: &[Mutation]) -> Vec<u8> {
    let mut line = line.as_bytes().to_vec();
    for mutation in mutations {
        let size = line.len() + 1;
        match mutation {
            Mutation::Delete(at) if !line.is_empty() => drop(line.remove(at.index(line.len()))),
            Mutation::Replace(at, byte) if !line.is_empty() => {
                let at = at.index(line.len());
                line[at] = *byte;
            }
            Mutation::Insert(at, piece) => {
                let at = at.index(size);
                line.splice(at..at, piece.bytes());
            }
            Mutation::Repeat(from, to) => {
                let (from, to) = (from.index(size), to.index(size));
                let piece = line[from.min(to)..from.max(to)].to_vec();
                line.splice(from..from, piece);
            }
            Mutation::Cut(at) => line.truncate(at.index(size)),
            Mutation::Delete(_) | Mutation::Replace(..) => {}
        }
    }
    line
}

/// Whether `line` is one strict object, by serde_json and a naive look at the result. `None` for a number that serde_json
/// cannot hold: there it has no opinion.
pub(crate) fn slow_opinion(line: &[u8]) -> Option<bool> {
    let Ok(text) = std::str::from_utf8(line) else { return Some(false) };
    match serde_json::from_str::<Tree>(text) {
        Ok(tree) => Some(matches!(tree, Tree::Object(_)) && tree.names_differ() && tree.depth() <= 64),
        Err(error) if error.to_string().starts_with("number out of range") => None,
        Err(_) => Some(false),
    }
}

enum Tree {
    Leaf,
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    fn names_differ(&self) -> bool {
        match self {
            Tree::Leaf => true,
            Tree::Array(items) => items.iter().all(Tree::names_differ),
            Tree::Object(members) => members.iter().enumerate().all(|(place, (name, value))| {
                value.names_differ() && members[..place].iter().all(|(other, _)| other != name)
            }),
        }
    }

    fn depth(&self) -> usize {
        match self {
            Tree::Leaf => 0,
            Tree::Array(items) => 1 + items.iter().map(Tree::depth).max().unwrap_or(0),
            Tree::Object(members) => 1 + members.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Build;
        impl<'de> Visitor<'de> for Build {
            type Value = Tree;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_unit<E>(self) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }
            fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }
            fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }
            fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }
            fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }
            fn visit_str<E>(self, _: &str) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Tree::Array(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Tree::Object(members))
            }
        }
        deserializer.deserialize_any(Build)
    }
}
