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

/// What a rule or decision says, on one line and without the marks of its page.
pub fn rule_text(id: &str) -> Option<String> {
    let head = format!("**{id}**");
    let begins = |line: &&str| line.starts_with("- <a id=") && line.contains(&head);
    let page = PAGES.iter().find(|page| page.lines().any(|line| begins(&line)))?;
    let mut lines = page.lines().skip_while(|line| !begins(line));
    let first = lines.next()?.split_once(&head)?.1;
    let more = lines.take_while(|line| line.starts_with("  ") && !line.trim_start().starts_with("- "));
    let words: Vec<&str> = first.split_whitespace().chain(more.flat_map(str::split_whitespace)).collect();
    Some(without_links(&words.join(" ")).replace(['*', '`'], ""))
}

/// `[text](address)` is its text.
fn without_links(text: &str) -> String {
    let Some((before, rest)) = text.split_once("](") else { return text.to_owned() };
    let (Some((begin, name)), Some((_, after))) = (before.rsplit_once('['), rest.split_once(')')) else {
        return text.to_owned();
    };
    format!("{begin}{name}{}", without_links(after))
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

    #[test]
    fn every_rule_has_a_text_of_one_line_without_marks() {
        for id in known_rules() {
            let text = rule_text(id).unwrap_or_default();
            assert!(
                text.len() > 20 && !text.contains(['*', '`', '\n']) && !text.contains("]("),
                "{id}: {text}"
            );
        }
        assert!(rule_text("EFF-02").unwrap().contains("The intent is durable before the effect is sent."));
        assert_eq!(rule_text("TRN-99"), None);
    }
}
