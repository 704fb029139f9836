//! A JSON string as it stands in the line, compared by what it means.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::iter;
use std::str::Chars;

use super::plain;

/// Room for a word, or for a character.
const ROOM: usize = 16;

/// The characters between the quotes of a checked JSON string, escapes and all.
///
/// Equality and order are those of the decoded text, so `a` and `\u0061` are equal. Nothing is allocated for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    raw: &'a str,
    escaped: bool,
}

impl<'a> Text<'a> {
    /// `raw` stands between the quotes of a string that the scan accepted; `escaped` if there is a backslash in it.
    pub(super) fn new(raw: &'a str, escaped: bool) -> Self {
        Text { raw, escaped }
    }

    /// A checked JSON value, if it is a string.
    pub(super) fn of_value(value: &'a str) -> Option<Self> {
        let raw = value.strip_prefix('"')?.strip_suffix('"')?;
        Some(Text { raw, escaped: memchr::memchr(b'\\', raw.as_bytes()).is_some() })
    }

    /// Whether it means `plain`.
    pub(crate) fn is(&self, plain: &str) -> bool {
        if self.escaped { self.chars().eq(plain.chars()) } else { self.raw == plain }
    }

    /// The decoded text, allocated only if there is an escape in it.
    pub(crate) fn decode(&self) -> Cow<'a, str> {
        if self.escaped { Cow::Owned(decode(self.raw, 0).0) } else { Cow::Borrowed(self.raw) }
    }

    /// The decoded characters. The scan has proved that each escape is whole and each surrogate has its pair.
    pub(crate) fn chars(&self) -> impl Iterator<Item = char> + use<'a> {
        let mut chars = self.raw.chars();
        iter::from_fn(move || {
            let char = chars.next()?;
            if char != '\\' {
                return Some(char);
            }
            let letter = chars.next()?;
            if letter != 'u' {
                return unescaped(letter as u8).map(char::from);
            }
            let first = hex4(&mut chars)?;
            if !(0xd800..0xe000).contains(&first) {
                return char::from_u32(first);
            }
            chars.next().zip(chars.next())?;
            let second = hex4(&mut chars)?;
            char::from_u32(0x10000 + ((first - 0xd800) << 10) + second.wrapping_sub(0xdc00))
        })
    }
}

/// What a backslash and this letter mean; `None` for `u`, and for a letter that makes no escape.
pub(super) fn unescaped(letter: u8) -> Option<u8> {
    const MEANING: [u8; 256] = {
        let mut meaning = [0; 256];
        let escapes = *b"\"\"\\\\//b\x08f\x0cn\nr\rt\t";
        let mut pair = 0;
        while pair < escapes.len() {
            meaning[escapes[pair] as usize] = escapes[pair + 1];
            pair += 2;
        }
        meaning
    };
    let meaning = MEANING[usize::from(letter)];
    (meaning != 0).then_some(meaning)
}

/// Decodes a string that the scan accepted, given from behind its opening quote, up to its closing one or the end of
/// `raw`. The first `plain` bytes are known to hold neither. Also tells how many bytes of `raw` it took.
pub(super) fn decode(raw: &str, plain: usize) -> (String, usize) {
    let bytes = raw.as_bytes();
    let mut decoded = vec![0; plain + ROOM];
    decoded[..plain].copy_from_slice(&bytes[..plain]);
    let (mut at, mut len) = (plain, plain);
    loop {
        let rest = &bytes[at..];
        let word = rest.first_chunk();
        let piece = if let Some(word) = word
            && let Some(stop) = plain::first_stop(word)
        {
            // A whole word costs less than the right number of bytes; what is too much of it is written over.
            make_room(&mut decoded, len + ROOM);
            decoded[len..len + 8].copy_from_slice(word);
            stop
        } else {
            let piece = plain::end_in(rest);
            make_room(&mut decoded, len + piece + ROOM);
            decoded[len..len + piece].copy_from_slice(&rest[..piece]);
            piece
        };
        (at, len) = (at + piece, len + piece);
        let Some([b'\\', letter]) = bytes.get(at..at + 2) else { break };
        if let Some(byte) = unescaped(*letter) {
            decoded[len] = byte;
            (at, len) = (at + 2, len + 1);
        } else {
            let char = Text { raw: &raw[at..], escaped: true }.chars().next().unwrap_or_default();
            len += char.encode_utf8(&mut decoded[len..]).len();
            at += if char > '\u{ffff}' { 12 } else { 6 };
        }
    }
    decoded.truncate(len);
    (String::from_utf8(decoded).expect("whole characters"), at)
}

#[inline]
fn make_room(bytes: &mut Vec<u8>, end: usize) {
    if bytes.len() < end {
        bytes.resize(2 * end, 0);
    }
}

fn hex4(chars: &mut Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |unit, _| Some(unit * 16 + chars.next()?.to_digit(16)?))
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        match self.escaped || other.escaped {
            false => self.raw == other.raw,
            true => self.chars().eq(other.chars()),
        }
    }
}

impl Eq for Text<'_> {}

impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        // UTF-8 sorts bytewise as its characters do, so both ways give one order.
        match self.escaped || other.escaped {
            false => self.raw.cmp(other.raw),
            true => self.chars().cmp(other.chars()),
        }
    }
}
