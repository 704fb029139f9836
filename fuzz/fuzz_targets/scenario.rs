//! Scenario files: whatever the text, it is an error with a place in the file, or a scenario that is written as a file which
//! says the same.
//!
//! Most mutations know that a file has lines of keys and values, and that what is wrong likes to stand at their ends.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use mu_sim::scenario::{Scenario, ScenarioError, is_rule};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse(text) {
        Ok(scenario) => {
            let written = scenario.to_toml();
            assert_eq!(parse(&written).as_ref(), Ok(&scenario), "what was written:\n{written}");
            assert_eq!(parse(&written).expect("it was read").to_toml(), written, "written twice");
            for step in &scenario.steps {
                step.to_toml();
            }
        }
        Err(error) => {
            let line = text.split('\n').nth(error.line - 1).expect("the line is in the file");
            assert!(error.column <= line.chars().count() + 1, "{error} is beyond its line");
            assert!(!error.message.is_empty() && !error.message.contains(char::is_control), "{error:?}");
        }
    }
});

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("s.toml", text, &is_rule)
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut draw = Draw(seed);
    // libFuzzer asks five times for one input; with so many changes hardly one is a file.
    if draw.below(4) != 0 {
        return size;
    }
    let text = std::str::from_utf8(&data[..size]).ok().filter(|_| draw.below(4) != 0);
    let Some(text) = text else { return fuzzer_mutate(data, size, max_size) };
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    mutate(&mut lines, &mut draw);
    // A file that is cut within a line is none.
    while lines.iter().map(|line| line.len() + 1).sum::<usize>() > max_size + 1 {
        lines.pop();
    }
    let text = lines.join("\n");
    data[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
});

/// Numbers below a limit, by a sequence that the seed gives.
struct Draw(u32);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        (self.0 >> 16) as usize % limit
    }

    fn one<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

/// What means something to TOML, to a command line or to JSON.
const PIECES: &[&str] = &[
    "\\",
    "\\\\",
    "'",
    "\"",
    "''",
    "{",
    "}",
    "{box}",
    "{key}",
    "{9x}",
    "{100000x}",
    "|",
    "$",
    "#",
    ".",
    "..",
    "[0]",
    "[",
    "]",
    ",",
    "=",
    " ",
    "\t",
    "\n",
    "é",
    "\u{7f}",
    "\\u0085",
    "mu",
    "box",
    "TRN-04",
];

/// Values that may stand behind any key.
const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "-0.0",
    "nan",
    "inf",
    "1e308",
    "9223372036854775807",
    "9223372036854775808",
    "true",
    "false",
    "''",
    "'mu'",
    "[]",
    "{}",
    "[{}]",
    "1979-05-27",
    "07:32:00.5",
    "'''\na'''",
    "[1, 2]",
    "{ a = 1 }",
];

/// Changes the lines of a file, of which there is at least one.
fn mutate(lines: &mut Vec<String>, draw: &mut Draw) {
    let (at, other) = (draw.below(lines.len()), draw.below(lines.len()));
    match draw.below(8) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[other].clone()),
        2 => lines.swap(at, other),
        3 => {
            let (key, value) = (lines[at].split_once('='), lines[other].split_once('='));
            if let (Some((key, _)), Some((_, value))) = (key, value) {
                lines[at] = format!("{key}={value}");
            }
        }
        4 => {
            if let Some((key, _)) = lines[at].split_once('=') {
                lines[at] = format!("{key}= {}", draw.one(VALUES));
            }
        }
        5 => insert(&mut lines[at], draw, |c| matches!(c, '=' | ' ' | ',' | '{' | '}' | '[' | ']')),
        _ => insert(&mut lines[at], draw, |c| matches!(c, '\'' | '"')),
    }
}

/// Puts a piece before or behind one of the characters of such a kind.
fn insert(line: &mut String, draw: &mut Draw, kind: impl Fn(char) -> bool) {
    let places: Vec<usize> =
        line.char_indices().filter(|(_, c)| kind(*c)).flat_map(|(at, c)| [at, at + c.len_utf8()]).collect();
    let at = match places[..] {
        [] => line.len(),
        // Before the last one, as often as anywhere.
        [.., last, _] if draw.below(2) == 0 => last,
        _ => places[draw.below(places.len())],
    };
    line.insert_str(at, draw.one(PIECES));
}
