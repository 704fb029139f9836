//! Parameters and their deadline. Of all that a request says, only the deadline and the id are new in a resend
//! (CALL-04); what the journal keeps and hashes are the parameters without it, byte for byte.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{CowStrDeserializer, MapAccessDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::values::EpochMillis;

/// The parameters of a call as they are on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dated<C> {
    /// When mu gives the call up (CALL-01).
    pub deadline: EpochMillis,
    /// The rest of the parameters.
    pub call: C,
}

impl<C: Serialize> Dated<C> {
    /// The text of `params`.
    pub fn to_json(&self) -> String {
        with_deadline(&undated_json(&self.call), self.deadline)
    }
}

/// The text of a call's parameters without their deadline: what the journal keeps.
pub fn undated_json<C: Serialize>(call: &C) -> String {
    serde_json::to_string(call).expect("parameters are structs with string keys")
}

/// The text of `params`, from the text that [`undated_json`] made.
///
/// # Panics
/// When `undated` is not the text of an object with members.
pub fn with_deadline(undated: &str, deadline: EpochMillis) -> String {
    let members = undated.strip_prefix('{').expect("an object");
    assert!(members.starts_with('"'), "every call has a target");
    format!("{{\"deadline\":{deadline},{members}")
}

impl<'de, C: Deserialize<'de>> Deserialize<'de> for Dated<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit<C>(std::marker::PhantomData<C>);

        impl<'de, C: Deserialize<'de>> Visitor<'de> for Visit<C> {
            type Value = Dated<C>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the parameters of a call")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Dated<C>, A::Error> {
                let mut deadline = None;
                let rest = Rest { map, deadline: &mut deadline };
                let call = C::deserialize(MapAccessDeserializer::new(rest))?;
                let deadline = deadline.ok_or_else(|| A::Error::missing_field("deadline"))?;
                Ok(Dated { deadline, call })
            }
        }

        deserializer.deserialize_map(Visit(std::marker::PhantomData))
    }
}

/// The members of an object other than `deadline`, which is taken out on the way.
struct Rest<'a, A> {
    map: A,
    deadline: &'a mut Option<EpochMillis>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        while let Some(Member(name)) = self.map.next_key()? {
            if name != "deadline" {
                let name: CowStrDeserializer<'_, A::Error> = name.into_deserializer();
                return seed.deserialize(name).map(Some);
            }
            if self.deadline.is_some() {
                return Err(A::Error::duplicate_field("deadline"));
            }
            *self.deadline = Some(self.map.next_value()?);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// The name of a member, borrowed unless it was written with escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Member<'a>(#[serde(borrow)] Cow<'a, str>);
