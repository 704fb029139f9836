//! A run as one HTML page that explains itself: what did not hold and why, then every step as a sequence diagram.
//!
//! In: an item, its scenario, what came of it, its timeline. Out: one file that needs nothing else, no script, no second
//! file, no network. Plugins write whatever bytes they like, so all text passes through the escaping of the templates.
//!
//! - `diagram`: the steps with their lanes and rows; `rows`: what stands in one row
//! - `page.css`: how it looks, from 360 pixels on, in light and dark

mod diagram;
mod rows;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::item::{Found, Item, Outcome};
use super::tally::grouped;
use crate::explore::{self, Swarm};
use crate::scenario::{Scenario, rule_text};
use crate::trace::Timeline;

const STYLE: &str = include_str!("page.css");

/// What a page tells.
pub(crate) struct Page<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) outcome: &'a Outcome,
    /// Empty when the run did not come to its end.
    pub(crate) timeline: &'a Timeline,
}

impl Page<'_> {
    /// The whole page.
    pub(crate) fn html(&self) -> String {
        let verdict = verdict(&self.outcome.found);
        let name = self.outcome.item.name();
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (clean(&name)) ": " (verdict) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        p.item { (clean(&name)) }
                        h1 { (clean(&self.scenario.title)) }
                        p.verdict.bad[!self.outcome.found.is_empty()] { (verdict) }
                        @if let Some(why) = &self.scenario.why { p.why { (clean(why)) } }
                    }
                    main {
                        (self.findings())
                        (self.facts())
                        (self.steps())
                    }
                }
            }
        };
        page.into_string()
    }

    fn findings(&self) -> Markup {
        html! {
            @if !self.outcome.found.is_empty() {
                section aria-labelledby="findings" {
                    h2 id="findings" { "What did not hold" }
                    ol.findings {
                        @for (nth, found) in (1..).zip(&self.outcome.found) {
                            li {
                                (self.by(found))
                                p { (clean(&found.text)) }
                                @if found.at.is_some() || found.step.is_some() {
                                    p { a href={ "#finding-" (nth) } { "Where it is in the run" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Who found it, and the rules.
    fn by(&self, found: &Found) -> Markup {
        let by = match &found.by[..] {
            "expectation" => "The scenario's own expectation".to_owned(),
            "inert" => "The scenario itself".to_owned(),
            "crash" => "The simulator".to_owned(),
            oracle => format!("Oracle {oracle}"),
        };
        html! {
            p.by {
                strong { (by) }
                @if !found.rules.is_empty() {
                    @let many = found.rules.len() > 1;
                    @if found.is_of_an_oracle() { ", rule " } @else if many { ", about rules " } @else { ", about rule " }
                    (found.rules.join(", "))
                }
            }
            @if found.is_of_an_oracle() {
                @for rule in &found.rules {
                    @if let Some(text) = rule_text(rule) { blockquote { b { (rule) } " " (clean(&text)) } }
                }
            }
        }
    }

    fn facts(&self) -> Markup {
        let Outcome { item, chain, events, virtual_ns, fired, .. } = self.outcome;
        html! {
            section aria-labelledby="run" {
                h2 id="run" { "The run" }
                dl.facts {
                    dt { "Play it again" }
                    dd { code { (clean(&item.replay())) } }
                    dt { "Hash chain" }
                    dd { code { (chain.as_deref().unwrap_or("none")) } ", " (grouped(*events)) " events" }
                    dt { "Virtual time" }
                    dd { (seconds(*virtual_ns)) }
                    dt { "Faults that took effect" }
                    dd { (counts(fired)) }
                    @if let Item::Seed(seed) = item {
                        dt { "Drawn for this seed" }
                        dd { (swarm(&explore::swarm(*seed))) }
                    } @else {
                        dt { "Rules" }
                        dd { (self.scenario.rules.join(", ")) }
                    }
                }
                details {
                    summary { "The scenario as a file" }
                    pre { code { (text_of(&self.scenario.to_toml())) } }
                }
                details {
                    summary { "How to read the diagram" }
                    p {
                        "Each step has its own diagram, read from top to bottom. A column is somebody who took part: an \
                        invocation of mu, a process of a plugin, the backend, the network to it, mu's disk, and the world, \
                        which is what the scenario does from outside. Its line runs as long as it lives. An arrow goes from \
                        who acts to whom it concerns; times are seconds of virtual time since the start of the run."
                    }
                    p {
                        "A dashed line is a leap of virtual time. Coloured rows are what went wrong: a fault that took \
                        effect, a signal, an end by force, a loss of power; what did not hold stands where it was seen. A \
                        table shows mu's database wherever a commit, or whatever else became of the file, has changed it."
                    }
                }
            }
        }
    }
}

impl Found {
    /// Whether it breaks a rule, and is not only about one.
    fn is_of_an_oracle(&self) -> bool {
        !matches!(&self.by[..], "expectation" | "inert" | "crash")
    }
}

fn verdict(found: &[Found]) -> String {
    match found.len() {
        0 => "all held".to_owned(),
        1 => "1 finding".to_owned(),
        many => format!("{many} findings"),
    }
}

fn counts(fired: &BTreeMap<String, u64>) -> String {
    if fired.is_empty() {
        return "none of a plugin's".to_owned();
    }
    let one = |(name, count): (&String, &u64)| {
        if *count == 1 { name.clone() } else { format!("{name} ({count} times)") }
    };
    fired.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn swarm(swarm: &Swarm) -> Markup {
    let Swarm { topics, large, bad_declarations, calls, bad_files, changes, database, .. } = swarm;
    let Swarm { overlap, signals, crashes, time, short_io, used, .. } = swarm;
    let options = [
        ("large faults", large),
        ("bad declarations", bad_declarations),
        ("calls", calls),
        ("bad files", bad_files),
        ("changes between steps", changes),
        ("a damaged database", database),
        ("several mu at once", overlap),
        ("signals", signals),
        ("crashes of mu", crashes),
        ("time", time),
    ];
    let of = |wanted: bool| {
        let names = options.iter().filter(|(_, drawn)| **drawn == wanted).map(|(name, _)| *name);
        let names = names.collect::<Vec<_>>().join(", ");
        if names.is_empty() { "nothing".to_owned() } else { names }
    };
    let topics: Vec<String> = topics.iter().map(|topic| format!("{topic:?}").to_lowercase()).collect();
    html! {
        p {
            "Faults about "
            @if topics.is_empty() { "nothing" } @else { (topics.join(", ")) }
            "; " (of(true)) ". Left out: " (of(false)) "."
        }
        @if let Some(one_in) = short_io { p { "One read, or long write, in " (one_in) " is short." } }
        @if *used { p { "mu has run on this machine before." } }
    }
}

/// Virtual time in seconds, to the microsecond.
fn seconds(ns: u64) -> String {
    format!("{}.{:06} s", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

/// On one line and without characters that no page may hold or that turn the order of the others around.
fn clean(text: &str) -> String {
    escaped(text, |_| false)
}

/// The same for several lines.
fn text_of(text: &str) -> String {
    escaped(text, |c| c == '\n' || c == '\t')
}

fn escaped(text: &str, keeps: impl Fn(char) -> bool) -> String {
    let turns =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut all = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() && !keeps(c)) || turns(c) {
            all.extend(c.escape_default());
        } else {
            all.push(c);
        }
    }
    all
}
