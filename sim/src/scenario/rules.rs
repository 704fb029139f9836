//! The ids that a scenario may cite: those of the protocol page and of the decisions behind it.

use std::collections::BTreeSet;
use std::sync::OnceLock;

const PAGES: [&str; 2] =
    [include_str!("../../../docs/protocol.md"), include_str!("../../../docs/decisions.md")];

/// All ids, read off the items of the two pages (`- <a id="…"></a>**TRN-05** …`).
pub fn known_rules() -> &'static BTreeSet<&'static str> {
    static IDS: OnceLock<BTreeSet<&'static str>> = OnceLock::new();
    IDS.get_or_init(|| {
        let items = PAGES.iter().flat_map(|page| page.lines()).filter(|line| line.starts_with("- <a id="));
        items.filter_map(|line| line.split("**").nth(1)).collect()
    })
}

/// Whether there is such a rule or decision.
pub fn is_rule(id: &str) -> bool {
    known_rules().contains(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_hold_every_rule_and_every_decision() {
        let decisions = known_rules().iter().filter(|id| id.starts_with("A-")).count();
        assert_eq!((known_rules().len() - decisions, decisions), (289, 85));
        assert!(is_rule("TRN-05") && is_rule("A-73") && !is_rule("TRN-99"));
    }
}
