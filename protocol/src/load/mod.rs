//! The load rules: which answers to `initialize` make a plugin usable (LOAD-01 to LOAD-19).
//!
//! A pure function from the answer, the registration, the published digest and the recorded declaration to the
//! declaration, or to the first refusal. Every refusal is final for the invocation and exits 4.
//!
//! - `rules.rs`: what a legal declaration must fulfil besides, one function for each rule
//! - `difference.rs`: where two declarations differ (LOAD-19)

mod difference;
mod rules;

use std::fmt;

pub use crate::declaration::Seam;
use crate::declaration::{Declaration, Flaw, declaration, protocol, shown};
use crate::envelope::Body;
use crate::strict::Checked;

/// The only version of the protocol that mu speaks (HSK-01).
pub const PROTOCOL: u64 = 1;

/// What the one who starts the plugin asks of it.
#[derive(Clone, Copy, Debug)]
pub struct Registration<'a> {
    /// The name under which it is registered.
    pub name: &'a str,
    /// The seams that the registration or the host at hand cannot do without.
    pub needs: &'a [Seam],
}

/// Judges the answer to `initialize`.
///
/// `published_digest` is the digest of the schema that this mu ships. `recorded` is what `mu plugin add` recorded, and
/// `None` for the start that `add` itself makes (REG-10).
///
/// The first rule that is broken is reported, in this order: an error instead of a result (LOAD-02); the version, when it
/// is an integer (LOAD-01), because a later version may look different altogether; the shape, object by object and at each
/// object what is missing (LOAD-05), unknown (LOAD-06), of unknown value or type (LOAD-07); then LOAD-03, LOAD-04, LOAD-09
/// to LOAD-18, LOAD-08 and LOAD-19.
pub fn load(
    answer: &Body<'_>,
    registration: &Registration<'_>,
    published_digest: &str,
    recorded: Option<&Declaration>,
) -> Result<Declaration, LoadRefusal> {
    let result = match answer {
        Body::Result(result) => *result,
        Body::Error(error) => return Err(LoadRefusal::answered_with(*error)),
    };
    if protocol(result).is_some_and(|version| version.parse() != Ok(PROTOCOL)) {
        return Err(LoadRefusal::new(
            "LOAD-01",
            "protocol",
            "is outside the offered range, which is 1 to 1",
            "answer with version 1",
        ));
    }
    let declaration = declaration(result).map_err(LoadRefusal::off_schema)?;
    rules::check(&declaration, registration, published_digest)?;
    if let Some(recorded) = recorded {
        is_recorded(&declaration, recorded)?;
    }
    Ok(declaration)
}

/// LOAD-19 alone: whether a declaration is the one that was recorded.
///
/// # Errors
/// The first member that differs.
pub fn is_recorded(declaration: &Declaration, recorded: &Declaration) -> Result<(), LoadRefusal> {
    let Some(field) = difference::first(recorded, declaration) else { return Ok(()) };
    let reason = "differs from what `mu plugin add` recorded";
    let remedy = "run `mu plugin add` with the same command line to accept the new declaration";
    let is = &declaration.instance;
    let other_instance = (recorded.instance != *is).then(|| is.as_str().into());
    Err(LoadRefusal { other_instance, ..LoadRefusal::new("LOAD-19", field, reason, remedy) })
}

/// LOAD-08 alone, for a plugin that runs already: whether it declares every seam that is needed now.
///
/// # Errors
/// The first that is missing.
pub fn lacks_nothing(declaration: &Declaration, registration: &Registration<'_>) -> Result<(), LoadRefusal> {
    rules::needs(declaration, registration)
}

/// A declaration that mu refuses. Its text is one line that names the field, the reason and what the plugin's author
/// should do; of the plugin's own text it repeats member names and the plugin's name, escaped and cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadRefusal {
    /// The rule that is broken, as in `LOAD-05`.
    pub rule: &'static str,
    /// The path of the member at fault, as in `seams.link.maxScriptBytes`; `result` or `error` for the whole answer.
    pub field: String,
    /// How it is at fault, as the rest of a sentence that starts with the path.
    pub reason: String,
    /// What to do about it, as a request.
    pub remedy: String,
    /// For LOAD-02 the first line of the error's `message`, at most 400 characters, control characters removed; not part
    /// of the text of the refusal.
    pub said: Option<Box<str>>,
    /// For LOAD-19 the instance that is declared, when it is another one than that recorded; not part of the text of
    /// the refusal.
    pub other_instance: Option<Box<str>>,
}

impl LoadRefusal {
    fn new(
        rule: &'static str,
        field: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        LoadRefusal {
            rule,
            field: field.into(),
            reason: reason.into(),
            remedy: remedy.into(),
            said: None,
            other_instance: None,
        }
    }

    /// LOAD-02, whatever the error holds.
    fn answered_with(error: Checked<'_>) -> Self {
        let members = error.members().unwrap_or_default();
        let message = members.iter().find(|member| member.name.is("message"));
        let said = message.and_then(|message| message.value.string()).map(|text| {
            let line = text.chars().take_while(|&char| char != '\n').filter(|char| !char.is_control());
            line.take(400).collect()
        });
        let refusal = Self::new(
            "LOAD-02",
            "error",
            "came instead of a declaration",
            "answer `initialize` with a result, and report what is wrong when it is called for",
        );
        LoadRefusal { said, ..refusal }
    }

    fn off_schema(flaw: Flaw) -> Self {
        let remedy = match flaw.rule {
            "LOAD-05" => "declare it; `mu plugin schema` prints its form",
            "LOAD-06" => "remove it; `mu plugin schema` prints what is known",
            _ => "declare it as `mu plugin schema` says",
        };
        Self::new(flaw.rule, flaw.field, flaw.reason, remedy)
    }
}

impl fmt::Display for LoadRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}; {} ({})", self.field, self.reason, self.remedy, self.rule)
    }
}

impl std::error::Error for LoadRefusal {}
