//! What became of a key: the answer to `host.lookup` and `job.lookup` (HOST-06, JOB-03).

use serde::de::{Error, Unexpected};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::values::Reason;

/// Exactly one of four members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<T> {
    /// The effect took place, with this result.
    Found(T),
    /// It may still take place.
    Pending,
    /// It has not taken place, and never will if the lookup was fenced (EFF-15).
    None,
    /// The plugin cannot tell.
    Unknown(Reason),
}

impl<T: Serialize> Serialize for Lookup<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Lookup::Found(result) => map.serialize_entry("found", result)?,
            Lookup::Pending => map.serialize_entry("pending", &true)?,
            Lookup::None => map.serialize_entry("none", &true)?,
            Lookup::Unknown(reason) => map.serialize_entry("unknown", reason)?,
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lookup<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, bound = "T: Deserialize<'de>")]
        struct Members<T> {
            found: Option<T>,
            pending: Option<True>,
            none: Option<True>,
            unknown: Option<Reason>,
        }

        match Members::deserialize(deserializer)? {
            Members { found: Some(result), pending: None, none: None, unknown: None } => {
                Ok(Lookup::Found(result))
            }
            Members { found: None, pending: Some(True), none: None, unknown: None } => Ok(Lookup::Pending),
            Members { found: None, pending: None, none: Some(True), unknown: None } => Ok(Lookup::None),
            Members { found: None, pending: None, none: None, unknown: Some(reason) } => {
                Ok(Lookup::Unknown(reason))
            }
            _ => Err(D::Error::custom("expected exactly one of found, pending, none and unknown")),
        }
    }
}

/// The literal `true`.
struct True;

impl<'de> Deserialize<'de> for True {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if bool::deserialize(deserializer)? {
            Ok(True)
        } else {
            Err(D::Error::invalid_value(Unexpected::Bool(false), &"true"))
        }
    }
}
