//! A command line with fewer or simpler words.

use super::Search;
use crate::scenario::words;
use crate::scenario::{Scenario, Step};

/// `mu` and its verb.
const HEAD: usize = 2;
/// The simplest script.
const SCRIPT: &str = "true";
/// What takes the place of the key of an effect that is not there.
const NO_KEY: &str = "none";

/// Whether a command line speaks of a plugin: by its name, its file, or a host that is named after it.
pub(super) fn names(run: &str, plugin: &str) -> bool {
    let words = words::split(run).unwrap_or_default();
    let is_named = |word: &String| {
        word == plugin
            || words::placeholders(word).contains(&plugin)
            || word.strip_suffix(plugin).is_some_and(|head| head.ends_with('-'))
    };
    words.iter().any(is_named)
}

/// A step that does not ask for the key of the open effect.
pub(super) fn without_key(step: &mut Step) {
    step.run = step.run.as_ref().map(|run| run.replace("{key}", NO_KEY));
}

/// Leaves out words of the run of a step, options with their values, and makes what stays simpler.
pub(super) fn simplify(search: &mut Search<'_>, step: usize) {
    let run = |search: &Search<'_>| search.best.steps.get(step).and_then(|step| step.run.clone());
    let of = |search: &Search<'_>| run(search).and_then(|run| words::split(&run).ok()).unwrap_or_default();
    let mut at = of(search).len();
    while at > HEAD {
        at -= 1;
        let words = of(search);
        let Some(word) = words.get(at) else { continue };
        let most = if word.starts_with("--") { 2 } else { 1 };
        for count in (1..=most).rev() {
            let end = (at + count).min(words.len());
            let rest = [&words[..at], &words[end..]].concat();
            if search.change(|candidate| put(candidate, step, &rest)) {
                break;
            }
        }
    }
    let words = of(search);
    if let [.., dashes, _] = &words[..]
        && dashes == "--"
    {
        let rest = [&words[..words.len() - 1], &[SCRIPT.to_owned()]].concat();
        search.change(|candidate| put(candidate, step, &rest));
    }
    if run(search).is_some_and(|run| run.contains("{key}")) {
        search.change(|candidate| without_key(&mut candidate.steps[step]));
    }
}

fn put(candidate: &mut Scenario, step: usize, words: &[String]) {
    candidate.steps[step].run = Some(words::join(words));
}

/// The numbers in a text: the bytes that they take, and what they are.
pub(super) fn numbers(text: &str) -> Vec<(std::ops::Range<usize>, i64)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(|c: char| c.is_ascii_digit()).map(|at| from + at) {
        let rest = &text[start..];
        let end = start + rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        found.extend(text[start..end].parse().ok().map(|number| (start..end, number)));
        from = end;
    }
    found
}
