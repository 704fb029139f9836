//! A JSON string as it stands in the line, compared by what it means.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::iter;
use std::str::Chars;

use super::plain;

/// Room for a short string behind its first escape.
const SHORT: usize = 32;

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
            Some(match chars.next()? {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => {
                    let first = hex4(&mut chars)?;
                    if !(0xd800..0xe000).contains(&first) {
                        return char::from_u32(first);
                    }
                    chars.next().zip(chars.next())?;
                    let second = hex4(&mut chars)?;
                    return char::from_u32(0x10000 + ((first - 0xd800) << 10) + second.wrapping_sub(0xdc00));
                }
                itself => itself,
            })
        })
    }
}

/// Decodes a string that the scan accepted, given from behind its opening quote, up to its closing one or the end of
/// `raw`. The first `plain` bytes are known to hold neither. Also tells how many bytes of `raw` it took.
pub(super) fn decode(raw: &str, plain: usize) -> (String, usize) {
    let bytes = raw.as_bytes();
    let mut decoded = Vec::with_capacity(plain + SHORT);
    decoded.extend_from_slice(&bytes[..plain]);
    let mut at = plain;
    loop {
        at += plain::copy(&bytes[at..], &mut decoded);
        if bytes.get(at) != Some(&b'\\') {
            break;
        }
        let mut escape = Text { raw: &raw[at..], escaped: true }.chars();
        at += 2;
        match bytes[at - 1] {
            b'u' => {
                let char = escape.next().unwrap_or_default();
                at += if char > '\u{ffff}' { 10 } else { 4 };
                decoded.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            }
            b'b' => decoded.push(0x08),
            b'f' => decoded.push(0x0c),
            b'n' => decoded.push(b'\n'),
            b'r' => decoded.push(b'\r'),
            b't' => decoded.push(b'\t'),
            itself => decoded.push(itself),
        }
    }
    (String::from_utf8(decoded).expect("whole characters"), at)
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
