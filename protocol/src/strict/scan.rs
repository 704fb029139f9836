//! The grammar of RFC 8259 in one pass, with the extra rules of the protocol checked on the way.
//!
//! Recursive, which is safe because [`MAX_DEPTH`] bounds it; nothing is allocated unless an object has many members.

use super::MAX_DEPTH;
use super::checked::Checked;
use super::names::Names;
use super::plain;
use super::text::{self, Text};
use crate::invalid::{InvalidMessage, Why};
use crate::line::MAX_LINE;

type Scanned<T> = Result<T, InvalidMessage>;

/// A member of an object, with the offsets of its name's opening quote and of its value's first byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) name: Text<'a>,
    pub(crate) name_at: usize,
    pub(crate) value: Checked<'a>,
    pub(crate) value_at: usize,
}

/// The whole strict pass over one line; `on` gets the members of the outermost object, in their order.
///
/// `on` may have been called when the pass fails later in the line.
pub(crate) fn object<'a>(line: &'a [u8], on: impl FnMut(Member<'a>)) -> Scanned<Checked<'a>> {
    if line.len() > MAX_LINE {
        return Err(InvalidMessage::new(MAX_LINE, Why::TooLong));
    }
    let text = simdutf8::compat::from_utf8(line)
        .map_err(|error| InvalidMessage::new(error.valid_up_to(), Why::NotUtf8))?;
    if text.starts_with('\u{feff}') {
        return Err(InvalidMessage::new(0, Why::ByteOrderMark));
    }
    let mut scan = Scan { text, at: 0 };
    scan.white_space();
    let start = scan.at;
    match scan.peek() {
        Some(b'{') => scan.object(1, on)?,
        Some(b'[') => return scan.wrong(Why::Batch),
        Some(_) => return scan.wrong(Why::NotAnObject),
        None => return Err(InvalidMessage::new(0, Why::Blank)),
    }
    scan.end(start)
}

/// The strict pass over a text that is to be one value of any kind.
pub(super) fn value(text: &str) -> Scanned<Checked<'_>> {
    let mut scan = Scan { text, at: 0 };
    scan.white_space();
    let start = scan.at;
    scan.value(0)?;
    scan.end(start)
}

/// The members of a value that has passed; `None` if it is no object.
pub(super) fn members(value: &str) -> Option<Vec<Member<'_>>> {
    let mut scan = Scan { text: value, at: 0 };
    if scan.peek() != Some(b'{') {
        return None;
    }
    let mut members = Vec::new();
    scan.object(1, |member| members.push(member)).ok()?;
    Some(members)
}

/// The elements of a value that has passed; `None` if it is no array.
pub(super) fn elements(value: &str) -> Option<Vec<Checked<'_>>> {
    let mut scan = Scan { text: value, at: 0 };
    if scan.peek() != Some(b'[') {
        return None;
    }
    let mut elements = Vec::new();
    scan.array(1, |element| elements.push(element)).ok()?;
    Some(elements)
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The error for what stands here, or for the end of the line if nothing does.
    fn wrong<T>(&self, why: Why) -> Scanned<T> {
        let why = if self.at < self.text.len() { why } else { Why::Unfinished };
        Err(InvalidMessage::new(self.at, why))
    }

    /// The value that started at `start` and has just been stepped over.
    fn since(&self, start: usize) -> Checked<'a> {
        Checked::scanned(&self.text[start..self.at])
    }

    /// Nothing but white space may follow the outermost value.
    fn end(&mut self, start: usize) -> Scanned<Checked<'a>> {
        let whole = self.since(start);
        self.white_space();
        match self.peek() {
            Some(_) => self.wrong(Why::TrailingBytes),
            None => Ok(whole),
        }
    }

    fn white_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    /// Any value; `depth` is the level of the object or array around it.
    fn value(&mut self, depth: usize) -> Scanned<()> {
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'{') => self.object(depth + 1, |_| {}),
            Some(b'[') => self.array(depth + 1, |_| {}),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            _ => self.wrong(Why::ExpectedValue),
        }
    }

    /// From the opening brace to behind the closing one.
    fn object(&mut self, depth: usize, mut on: impl FnMut(Member<'a>)) -> Scanned<()> {
        if self.open(depth, b'}')? {
            return Ok(());
        }
        let mut names = Names::new();
        loop {
            if self.peek() != Some(b'"') {
                return self.wrong(Why::ExpectedName);
            }
            let name_at = self.at;
            let name = self.string()?;
            if !names.insert(name) {
                return Err(InvalidMessage::new(name_at, Why::DuplicateName));
            }
            self.white_space();
            if self.peek() != Some(b':') {
                return self.wrong(Why::ExpectedColon);
            }
            self.at += 1;
            self.white_space();
            let value_at = self.at;
            self.value(depth)?;
            on(Member { name, name_at, value: self.since(value_at), value_at });
            if self.close(b'}', Why::ExpectedCommaOrBrace)? {
                return Ok(());
            }
        }
    }

    /// From the opening bracket to behind the closing one.
    fn array(&mut self, depth: usize, mut on: impl FnMut(Checked<'a>)) -> Scanned<()> {
        if self.open(depth, b']')? {
            return Ok(());
        }
        loop {
            let start = self.at;
            self.value(depth)?;
            on(self.since(start));
            if self.close(b']', Why::ExpectedCommaOrBracket)? {
                return Ok(());
            }
        }
    }

    /// Steps over an opening bracket and the white space behind it; true if the closing one followed at once.
    fn open(&mut self, depth: usize, end: u8) -> Scanned<bool> {
        if depth > MAX_DEPTH {
            return self.wrong(Why::TooDeep);
        }
        self.at += 1;
        self.white_space();
        let empty = self.peek() == Some(end);
        self.at += usize::from(empty);
        Ok(empty)
    }

    /// Steps over what follows a member or element; true if it was the closing bracket, false if a comma.
    fn close(&mut self, end: u8, otherwise: Why) -> Scanned<bool> {
        self.white_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.white_space();
                Ok(false)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(true)
            }
            _ => self.wrong(otherwise),
        }
    }

    fn literal(&mut self, word: &str) -> Scanned<()> {
        for byte in word.bytes() {
            if self.peek() != Some(byte) {
                return self.wrong(Why::BadLiteral);
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Scanned<()> {
        self.at += usize::from(self.peek() == Some(b'-'));
        let leading_zero = self.peek() == Some(b'0');
        let start = self.at;
        self.digits()?;
        if leading_zero && self.at > start + 1 {
            return Err(InvalidMessage::new(start + 1, Why::BadNumber));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Scanned<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { self.wrong(Why::BadNumber) } else { Ok(()) }
    }

    /// From the opening quote to behind the closing one.
    fn string(&mut self) -> Scanned<Text<'a>> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            at += plain::prefix(&bytes[at..]);
            match bytes[at..] {
                [b'"', ..] => break,
                [b'\\', letter, ..] if text::unescaped(letter).is_some() => {
                    escaped = true;
                    at += 2;
                }
                [b'\\', ..] => {
                    escaped = true;
                    self.at = at;
                    self.escape()?;
                    at = self.at;
                }
                _ => {
                    self.at = at;
                    return self.wrong(Why::ControlCharacter);
                }
            }
        }
        self.at = at + 1;
        Ok(Text::new(&self.text[start..at], escaped))
    }

    /// From the backslash to behind an escape of digits, behind both escapes of a surrogate pair.
    fn escape(&mut self) -> Scanned<()> {
        let start = self.at;
        self.at += 1;
        if self.peek() != Some(b'u') {
            return self.wrong(Why::BadEscape);
        }
        self.at += 1;
        let lone = Err(InvalidMessage::new(start, Why::LoneSurrogate));
        match self.hex4()? {
            0xd800..=0xdbff => {}
            0xdc00..=0xdfff => return lone,
            _ => return Ok(()),
        }
        for byte in *b"\\u" {
            match self.peek() {
                Some(found) if found == byte => self.at += 1,
                Some(_) => return lone,
                None => return self.wrong(Why::LoneSurrogate),
            }
        }
        match self.hex4()? {
            0xdc00..=0xdfff => Ok(()),
            _ => lone,
        }
    }

    fn hex4(&mut self) -> Scanned<u16> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else {
                return self.wrong(Why::BadEscape);
            };
            unit = unit * 16 + digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }
}
