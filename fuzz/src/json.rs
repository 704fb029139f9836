//! A slow opinion on a line: one plain JSON parser that keeps everything, and serde_json beside it.
//!
//! Neither knows the strict pass of mu-protocol. The parser is for what serde_json does not tell: names that come twice, the
//! depth, and how a number is spelt.

use std::collections::BTreeSet;

use mu_protocol::strict::MAX_DEPTH;
use serde_json::Value;

/// Nothing deeper is parsed: it is refused anyway, and the parser recurses.
const DEEPEST: usize = 2 * MAX_DEPTH;

/// What a text has that is one JSON value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Some object has a name twice.
    pub repeated_name: bool,
    /// A string has half a surrogate pair.
    pub half_a_pair: bool,
    /// How deep objects and arrays are nested.
    pub depth: usize,
    /// A number is spelt otherwise than in digits with at most a minus sign, or is `-0`.
    pub odd_number: bool,
}

/// A line that is one strict JSON object.
#[derive(Clone, Debug)]
pub struct Legal {
    /// Its value; `None` when a number is too large for serde_json.
    pub value: Option<Value>,
    /// What it has.
    pub seen: Seen,
}

/// The line, if it is legal: UTF-8, one object, no name twice, no half pair, not too deep.
///
/// # Panics
/// When the two opinions differ.
pub fn legal(line: &[u8]) -> Option<Legal> {
    let text = std::str::from_utf8(line).ok()?;
    let seen = look(text).filter(|seen| !seen.half_a_pair);
    let value = match serde_json::from_str::<Value>(text) {
        Ok(value) => Some(value),
        Err(error) if error.to_string().starts_with("number out of range") => None,
        Err(_) if seen.is_none_or(|seen| seen.depth > MAX_DEPTH) => return None,
        Err(error) => panic!("serde_json alone refuses a text: {error}"),
    };
    let seen = match (seen, &value) {
        (Some(seen), _) => seen,
        (None, None) => return None,
        (None, Some(_)) => panic!("serde_json alone takes a text"),
    };
    let is_object = text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{');
    let is_legal = is_object && !seen.repeated_name && seen.depth <= MAX_DEPTH;
    is_legal.then_some(Legal { value, seen })
}

/// Parses a text by the grammar of RFC 8259; `None` when it is not one value, or nested beyond all reason.
pub fn look(text: &str) -> Option<Seen> {
    let mut parser = Parser { rest: text.chars().peekable(), seen: Seen::default() };
    parser.space();
    parser.value(0)?;
    parser.space();
    parser.rest.next().is_none().then_some(parser.seen)
}

struct Parser<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    seen: Seen,
}

impl Parser<'_> {
    fn space(&mut self) {
        while self.rest.next_if(|c| matches!(c, ' ' | '\t' | '\r' | '\n')).is_some() {}
    }

    fn take(&mut self, c: char) -> Option<()> {
        self.rest.next_if_eq(&c).map(drop)
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match *self.rest.peek()? {
            '{' => self.object(depth + 1),
            '[' => self.array(depth + 1),
            '"' => self.string().map(drop),
            '-' | '0'..='9' => self.number(),
            _ => {
                let mut word = String::new();
                while let Some(c) = self.rest.next_if(char::is_ascii_lowercase) {
                    word.push(c);
                }
                matches!(word.as_str(), "true" | "false" | "null").then_some(())
            }
        }
    }

    fn deeper(&mut self, depth: usize) -> Option<()> {
        self.seen.depth = self.seen.depth.max(depth);
        (depth <= DEEPEST).then_some(())
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.deeper(depth)?;
        self.take('{')?;
        self.space();
        if self.take('}').is_some() {
            return Some(());
        }
        let mut names = BTreeSet::new();
        loop {
            self.space();
            let name = self.string()?;
            self.seen.repeated_name |= !names.insert(name);
            self.space();
            self.take(':')?;
            self.space();
            self.value(depth)?;
            self.space();
            if self.take(',').is_none() {
                return self.take('}');
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.deeper(depth)?;
        self.take('[')?;
        self.space();
        if self.take(']').is_some() {
            return Some(());
        }
        loop {
            self.space();
            self.value(depth)?;
            self.space();
            if self.take(',').is_none() {
                return self.take(']');
            }
        }
    }

    fn number(&mut self) -> Option<()> {
        let mut text = String::new();
        while let Some(c) =
            self.rest.next_if(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E'))
        {
            text.push(c);
        }
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (text.as_str(), None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let positive = whole.strip_prefix('-').unwrap_or(whole);
        let is_number = digits(positive)
            && (positive == "0" || !positive.starts_with('0'))
            && fraction.is_none_or(digits)
            && exponent.is_none_or(|text| digits(text.strip_prefix(['+', '-']).unwrap_or(text)));
        self.seen.odd_number |= exponent.is_some() || fraction.is_some() || whole == "-0";
        is_number.then_some(())
    }

    /// The string in units of UTF-16, in which escapes are written.
    fn string(&mut self) -> Option<Vec<u16>> {
        self.take('"')?;
        let mut units = Vec::new();
        loop {
            let unit = match self.rest.next()? {
                '"' => break,
                '\\' => match self.rest.next()? {
                    'b' => 0x08,
                    't' => 0x09,
                    'n' => 0x0a,
                    'f' => 0x0c,
                    'r' => 0x0d,
                    'u' => self.unit()?,
                    c @ ('"' | '\\' | '/') => c as u16,
                    _ => return None,
                },
                c if c < ' ' => return None,
                c => {
                    units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
                    continue;
                }
            };
            units.push(unit);
        }
        self.seen.half_a_pair |= String::from_utf16(&units).is_err();
        Some(units)
    }

    fn unit(&mut self) -> Option<u16> {
        let digits: String = (0..4).map_while(|_| self.rest.next_if(char::is_ascii_hexdigit)).collect();
        if digits.len() < 4 { None } else { u16::from_str_radix(&digits, 16).ok() }
    }
}
