//! Where two declarations differ.

use crate::declaration::Declaration;
use crate::strict::Checked;

/// The path of the first member that differs, in the order of the schema; an absent member differs from a present one,
/// whatever its value.
pub(super) fn first(recorded: &Declaration, declared: &Declaration) -> Option<String> {
    if recorded == declared {
        return None;
    }
    let (recorded, declared) = (recorded.to_json(), declared.to_json());
    let (recorded, declared) = (leaves(&recorded), leaves(&declared));
    let differs = |leaf: &&Leaf<'_>, others: &[Leaf<'_>]| !others.contains(leaf);
    let new = declared.iter().find(|leaf| differs(leaf, &recorded));
    let gone = recorded.iter().find(|leaf| differs(leaf, &declared));
    new.or(gone).map(|(path, _)| path.clone())
}

/// A path and the text of a value that holds no others, or `{}` for an object.
type Leaf<'a> = (String, &'a str);

fn leaves(json: &str) -> Vec<Leaf<'_>> {
    let mut leaves = Vec::new();
    if let Ok(json) = Checked::value(json) {
        collect(String::new(), json, &mut leaves);
    }
    leaves
}

fn collect<'a>(path: String, value: Checked<'a>, leaves: &mut Vec<Leaf<'a>>) {
    // An object counts as well, so that one that appears or goes is named itself and not by its first member.
    if let Some(members) = value.members() {
        leaves.push((path.clone(), "{}"));
        for member in members {
            let name = member.name.decode();
            let path = if path.is_empty() { name.into_owned() } else { format!("{path}.{name}") };
            collect(path, member.value, leaves);
        }
    } else if let Some(elements) = value.elements() {
        for (place, element) in elements.into_iter().enumerate() {
            collect(format!("{path}[{place}]"), element, leaves);
        }
    } else {
        leaves.push((path, value.get()));
    }
}
