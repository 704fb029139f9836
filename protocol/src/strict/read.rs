//! A checked value as serde sees it.
//!
//! The pass has proved the grammar, the escapes, the depth and the names, so none of it is looked at again. A string
//! without escapes is borrowed, any other is decoded into a string of its own; nothing else is allocated.

use std::fmt::{self, Display};

use serde::de::{DeserializeSeed, Deserializer, Error, Expected, MapAccess, SeqAccess, Unexpected, Visitor};

use super::checked::Checked;
use super::{plain, text};
use crate::objects::Fault;

/// A deserializer over a value that has passed.
#[derive(Debug)]
pub(crate) struct Reader<'de> {
    text: &'de str,
    at: usize,
}

/// Why a value is not of its type, and how far had been read when that showed.
#[derive(Debug)]
pub(crate) struct Misfit(Box<(Option<usize>, Fault)>);

impl Misfit {
    /// How many bytes had been read, if it showed before all were, and what is wrong.
    pub(crate) fn into_parts(self) -> (Option<usize>, Fault) {
        *self.0
    }

    fn new(fault: Fault) -> Self {
        Misfit(Box::new((None, fault)))
    }

    /// The same at this place, unless it has one already.
    fn at(mut self, at: usize) -> Self {
        self.0.0.get_or_insert(at);
        self
    }
}

impl std::error::Error for Misfit {}

impl Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.1.fmt(f)
    }
}

impl Error for Misfit {
    fn custom<T: Display>(_: T) -> Self {
        Misfit::new(Fault::WrongValue)
    }

    fn invalid_type(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        Misfit::new(Fault::WrongType)
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Misfit::new(Fault::UnknownMember)
    }

    fn missing_field(name: &'static str) -> Self {
        Misfit::new(Fault::MissingMember(name.to_owned()))
    }

    fn duplicate_field(_: &'static str) -> Self {
        Misfit::new(Fault::DuplicateMember)
    }
}

impl<'de> Reader<'de> {
    /// Reads `value` from its start.
    pub(crate) fn new(value: Checked<'de>) -> Self {
        Reader { text: value.get(), at: 0 }
    }

    /// The byte here; 0, which stands nowhere outside strings, behind the end.
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// The byte behind the white space that may stand here.
    fn next(&mut self) -> u8 {
        while let b' ' | b'\t' | b'\r' | b'\n' = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    /// From the opening quote to behind the closing one.
    fn string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Misfit> {
        let start = self.at + 1;
        let length = plain::checked_prefix(&self.text.as_bytes()[start..]);
        self.at = start + length;
        if self.peek() != b'\\' {
            self.at += 1;
            return visitor.visit_borrowed_str(&self.text[start..start + length]);
        }
        let (decoded, length) = text::decode(&self.text[start..], length);
        self.at = start + length + 1;
        visitor.visit_string(decoded)
    }

    /// A number; none that is no integer, or is spelt like none, comes out as an integer.
    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Misfit> {
        let start = self.at;
        let mut whole = true;
        loop {
            match self.peek() {
                b'0'..=b'9' | b'-' | b'+' => {}
                b'.' | b'e' | b'E' => whole = false,
                _ => break,
            }
            self.at += 1;
        }
        let digits = &self.text[start..self.at];
        if whole && digits != "-0" {
            if let Ok(number) = digits.parse::<u64>() {
                return visitor.visit_u64(number);
            }
            if let Ok(number) = digits.parse::<i64>() {
                return visitor.visit_i64(number);
            }
        }
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => visitor.visit_f64(number),
            // No float holds it, and there is no other type that could.
            _ => Err(Misfit::new(Fault::WrongType)),
        }
    }

    /// Whatever value stands here.
    fn any<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Misfit> {
        let value = match self.next() {
            b'"' => self.string(visitor),
            b'{' => {
                self.at += 1;
                let value = visitor.visit_map(Parts { reader: self, first: true });
                self.close(b'}', value)
            }
            b'[' => {
                self.at += 1;
                let value = visitor.visit_seq(Parts { reader: self, first: true });
                self.close(b']', value)
            }
            b't' => self.literal("true", visitor).visit_bool(true),
            b'f' => self.literal("false", visitor).visit_bool(false),
            b'n' => self.literal("null", visitor).visit_unit(),
            _ => self.number(visitor),
        };
        value.map_err(|misfit: Misfit| misfit.at(self.at))
    }

    fn literal<V>(&mut self, word: &str, visitor: V) -> V {
        self.at += word.len();
        visitor
    }

    /// Steps over the closing bracket; a visitor that was content before it has seen a part of the value alone.
    fn close<T>(&mut self, end: u8, value: Result<T, Misfit>) -> Result<T, Misfit> {
        if self.next() == end {
            self.at += 1;
            return value;
        }
        value.and(Err(Misfit::new(Fault::WrongValue)))
    }

    /// A value that must not be an object or an array; one that is, is not read.
    fn scalar<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Misfit> {
        match self.next() {
            b'{' | b'[' => Err(Misfit::new(Fault::WrongType).at(self.at)),
            _ => self.any(visitor),
        }
    }
}

macro_rules! deserialize {
    ($read:ident: $($method:ident($($arg:ident: $type:ty)?))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($arg: $type,)? visitor: V) -> Result<V::Value, Misfit> {
            $(let _ = $arg;)?
            self.$read(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Misfit;

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.next() {
            b'n' => self.literal("null", visitor).visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _members: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.any(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.next() {
            b'{' => self.any(visitor),
            _ => self.scalar(visitor),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.next() {
            b'[' => self.any(visitor),
            _ => self.scalar(visitor),
        }
    }

    deserialize! { any: deserialize_any() deserialize_ignored_any() }
    deserialize! { scalar:
        deserialize_bool()
        deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_i128()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
        deserialize_f32() deserialize_f64()
        deserialize_char() deserialize_str() deserialize_string() deserialize_identifier()
        deserialize_bytes() deserialize_byte_buf()
        deserialize_unit() deserialize_unit_struct(_name: &'static str)
    }
}

/// The members of an object or the elements of an array, from behind the opening bracket.
struct Parts<'r, 'de> {
    reader: &'r mut Reader<'de>,
    first: bool,
}

impl Parts<'_, '_> {
    /// Steps to the next part; false in front of the closing bracket.
    fn more(&mut self, end: u8) -> bool {
        let byte = self.reader.next();
        if byte == end {
            return false;
        }
        if !self.first {
            self.reader.at += 1; // the comma
        }
        self.first = false;
        true
    }
}

impl<'de> SeqAccess<'de> for Parts<'_, 'de> {
    type Error = Misfit;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Misfit> {
        if !self.more(b']') {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

impl<'de> MapAccess<'de> for Parts<'_, 'de> {
    type Error = Misfit;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Misfit> {
        if !self.more(b'}') {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Misfit> {
        self.reader.next();
        self.reader.at += 1; // the colon
        seed.deserialize(&mut *self.reader)
    }
}
