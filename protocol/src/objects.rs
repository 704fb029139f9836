//! Typed parsing without serde's loopholes.
//!
//! In: the text of one JSON value. Out: a typed value, or a [`Mismatch`] that tells where and in which way the text is
//! off its type, never what it said. [`Strict`] wraps a self-describing deserializer and closes, at every depth:
//!
//! - a struct read from an array of its members' values;
//! - a word of a closed vocabulary read from `{"word": null}`, and a one-of object with further members;
//! - an optional member read from `null`: absent and null differ, and only what is marked [`nullable`] takes null.
//!
//! It cannot see into what serde buffers before the type is known, so `untagged`, `flatten` and a deserialised `tag`
//! are not used in this crate; every struct carries `deny_unknown_fields`.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::{Deserialize, Serialize, Serializer};

use crate::invalid::Why;
use crate::strict::{Checked, Reader};

/// Parses `raw`, the text of exactly one JSON value, checked as strictly as a line is.
pub fn from_json<'de, T: Deserialize<'de>>(raw: &'de str) -> Result<T, Mismatch> {
    from_checked(Checked::value(raw).map_err(|invalid| Mismatch {
        at: invalid.at,
        fault: if invalid.why == Why::DuplicateName { Fault::DuplicateMember } else { Fault::NotJson },
    })?)
}

/// Parses a value that has passed the strict pass.
pub fn from_checked<'de, T: Deserialize<'de>>(value: Checked<'de>) -> Result<T, Mismatch> {
    T::deserialize(Strict(&mut Reader::new(value))).map_err(|misfit| {
        let (at, fault) = misfit.into_parts();
        // There is no place for what a conversion refuses after the whole text was read.
        Mismatch { at: at.unwrap_or(value.get().len()), fault }
    })
}

/// A text that is not of the type it should have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {at}")]
pub struct Mismatch {
    /// How many bytes of the text were read when the fault showed: it ends there, or just before.
    pub at: usize,
    /// What is wrong.
    pub fault: Fault,
}

/// The ways in which a text can be off its type. None holds anything of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not one JSON value.
    #[error("not JSON")]
    NotJson,
    /// A mandatory member is absent (LOAD-05).
    #[error("missing member `{0}`")]
    MissingMember(String),
    /// A member that the type does not have (LOAD-06).
    #[error("unknown member")]
    UnknownMember,
    /// A member comes twice.
    #[error("duplicate member")]
    DuplicateMember,
    /// Another JSON type than the one asked for, or a number with a fraction or out of range.
    #[error("wrong type")]
    WrongType,
    /// The right JSON type, but a word, length, pattern or combination that the type does not have (LOAD-07).
    #[error("wrong value")]
    WrongValue,
}

/// What an update says about a fact: nothing, that it holds no more, or its new value (HOST-09, HOST-10).
///
/// As a member: `#[serde(default, skip_serializing_if = "Patch::is_absent")]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// The member is absent: the fact keeps its value.
    #[default]
    Absent,
    /// The member is null: the fact is cleared.
    Null,
    /// The fact has this value now.
    Value(T),
}

impl<T> Patch<T> {
    /// Whether the update leaves the fact alone.
    pub fn is_absent(&self) -> bool {
        matches!(self, Patch::Absent)
    }

    /// The fact after the update, from the one before it.
    pub fn apply(self, before: Option<T>) -> Option<T> {
        match self {
            Patch::Absent => before,
            Patch::Null => None,
            Patch::Value(value) => Some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(nullable(deserializer)?.map_or(Patch::Null, Patch::Value))
    }
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Patch::Absent | Patch::Null => serializer.serialize_none(),
            Patch::Value(value) => value.serialize(serializer),
        }
    }
}

/// The name by which [`nullable`] asks [`Strict`] to let null through.
const NULLABLE: &str = "$mu::nullable";

/// Reads a value or null. As a member: `#[serde(deserialize_with = "nullable")]`, which must then be present.
pub fn nullable<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct Nullable<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Nullable<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a value or null")
        }

        fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            T::deserialize(deserializer).map(Some)
        }

        // Without `Strict` around it the name means nothing.
        fn visit_newtype_struct<D: Deserializer<'de>>(
            self,
            deserializer: D,
        ) -> Result<Self::Value, D::Error> {
            Option::deserialize(deserializer)
        }
    }

    deserializer.deserialize_newtype_struct(NULLABLE, Nullable(PhantomData))
}

/// A deserializer, visitor, seed or access with the loopholes closed, for itself and all that comes out of it.
///
/// The wrapped deserializer must be self-describing, as serde_json's is. Nothing is allocated.
#[derive(Clone, Copy, Debug)]
pub struct Strict<T>(pub T);

macro_rules! forward_deserialize {
    ($($method:ident($($arg:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($arg: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($arg,)* Strict(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _members: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Strict(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(OneOf(visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        if name == NULLABLE {
            self.0.deserialize_option(Strict(visitor))
        } else {
            self.0.deserialize_newtype_struct(name, Strict(visitor))
        }
    }

    forward_deserialize! {
        deserialize_any()
        deserialize_bool()
        deserialize_i8()
        deserialize_i16()
        deserialize_i32()
        deserialize_i64()
        deserialize_i128()
        deserialize_u8()
        deserialize_u16()
        deserialize_u32()
        deserialize_u64()
        deserialize_u128()
        deserialize_f32()
        deserialize_f64()
        deserialize_char()
        deserialize_str()
        deserialize_string()
        deserialize_bytes()
        deserialize_byte_buf()
        deserialize_unit()
        deserialize_unit_struct(name: &'static str)
        deserialize_seq()
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_map()
        deserialize_identifier()
        deserialize_ignored_any()
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! forward_visit {
    ($($method:ident: $type:ty),*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.0.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Strict<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    forward_visit! {
        visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128, visit_f64: f64,
        visit_str: &str, visit_borrowed_str: &'de str, visit_string: String,
        visit_bytes: &[u8], visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Strict(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Strict(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Strict(seq))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Strict(map))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Strict(deserializer))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Strict(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Strict(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Strict(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

/// An enum as JSON has it: a string for a variant without content, an object of one member for any other.
struct OneOf<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for OneOf<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<V::Value, E> {
        self.0.visit_enum(Word(word, PhantomData))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(OneMember(map))
    }
}

struct Word<'a, E>(&'a str, PhantomData<E>);

impl<'de, E: Error> EnumAccess<'de> for Word<'_, E> {
    type Error = E;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), E> {
        seed.deserialize(StrDeserializer::new(self.0)).map(|word| (word, self))
    }
}

impl<'de, E: Error> VariantAccess<'de> for Word<'_, E> {
    type Error = E;

    fn unit_variant(self) -> Result<(), E> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _seed: S) -> Result<S::Value, E> {
        Err(E::invalid_type(Unexpected::UnitVariant, &"an object of one member"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, E> {
        Err(E::invalid_type(Unexpected::UnitVariant, &"an object of one member"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _members: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, E> {
        Err(E::invalid_type(Unexpected::UnitVariant, &"an object of one member"))
    }
}

struct OneMember<A>(A);

impl<'de, A: MapAccess<'de>> OneMember<A> {
    fn value<S: DeserializeSeed<'de>>(mut self, seed: S) -> Result<S::Value, A::Error> {
        let value = self.0.next_value_seed(seed)?;
        match self.0.next_entry::<IgnoredAny, IgnoredAny>()? {
            None => Ok(value),
            Some(_) => Err(A::Error::invalid_length(2, &"an object of one member")),
        }
    }
}

impl<'de, A: MapAccess<'de>> EnumAccess<'de> for OneMember<A> {
    type Error = A::Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(mut self, seed: S) -> Result<(S::Value, Self), A::Error> {
        match self.0.next_key_seed(Strict(seed))? {
            Some(variant) => Ok((variant, self)),
            None => Err(A::Error::invalid_length(0, &"an object of one member")),
        }
    }
}

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for OneMember<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        Err(A::Error::invalid_type(Unexpected::Map, &"a string"))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.value(Strict(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.value(Tuple(len, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _members: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.value(Members(visitor))
    }
}

struct Tuple<V>(usize, V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Tuple<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_tuple(self.0, Strict(self.1))
    }
}

struct Members<V>(V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Members<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_map(Strict(self.0))
    }
}
