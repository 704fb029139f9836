//! `host check`: its phases, and the steps a seam adds to them (SEAM-08, LINK-10, LINK-11, JOB-08).

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::values::Word;

/// A part of `host check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The host's templates.
    Template,
    /// Reaching the host.
    Reach,
    /// The harness an agent needs.
    Agent,
}

/// What `link.checkSteps` and `job.checkSteps` answer, in order.
pub type Steps = Vec<Step>;

/// One step of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name; `handback` hands control back to the operator (LINK-14).
    pub step: Word,
    /// How it went.
    pub ok: StepOk,
    /// What to show beside it; the remedy, of a `handback`.
    pub detail: String,
}

/// How a step went: `true`, `false`, `null` or `"warn"` on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOk {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It did not apply.
    Skipped,
    /// It passed with a warning.
    Warn,
}

impl Serialize for StepOk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            StepOk::Passed => serializer.serialize_bool(true),
            StepOk::Failed => serializer.serialize_bool(false),
            StepOk::Skipped => serializer.serialize_unit(),
            StepOk::Warn => serializer.serialize_str("warn"),
        }
    }
}

impl<'de> Deserialize<'de> for StepOk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;

        impl Visitor<'_> for Visit {
            type Value = StepOk;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, null or \"warn\"")
            }

            fn visit_bool<E: Error>(self, passed: bool) -> Result<StepOk, E> {
                Ok(if passed { StepOk::Passed } else { StepOk::Failed })
            }

            fn visit_unit<E: Error>(self) -> Result<StepOk, E> {
                Ok(StepOk::Skipped)
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<StepOk, E> {
                match word {
                    "warn" => Ok(StepOk::Warn),
                    _ => Err(E::invalid_value(Unexpected::Other("another string"), &self)),
                }
            }
        }

        deserializer.deserialize_any(Visit)
    }
}
