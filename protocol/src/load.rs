//! The load rules.

/// Why a declaration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {reason}; {remedy} ({rule})")]
pub struct LoadRefusal {
    /// The rule.
    pub rule: &'static str,
    /// The member at fault.
    pub field: String,
    /// How it is at fault.
    pub reason: String,
    /// What to do.
    pub remedy: String,
    /// For LOAD-02, the first line of the error's message.
    pub said: Option<String>,
}
