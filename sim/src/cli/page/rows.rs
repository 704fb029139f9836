//! The rows of a diagram: entries, leaps of virtual time, and findings where they were seen.

use maud::{Markup, html};

use super::diagram::Part;
use super::{Page, clean};
use crate::cli::item::Found;
use crate::trace::timeline::{Entry, Kind};
use crate::trace::{Change, LEAP, Moment, Row, leap};

impl Page<'_> {
    pub(super) fn rows(&self, part: &Part<'_>) -> Markup {
        let timeline = self.timeline;
        let before = |place: usize| place.checked_sub(1).map_or(0, |before| timeline.entries[before].at);
        html! {
            @for place in part.entries.clone() {
                @let entry = &timeline.entries[place];
                @let passed = entry.at.saturating_sub(before(place));
                @if passed >= LEAP { (self.leap(part, place, passed)) }
                @let is_new = passed > 0 || place == part.entries.start;
                (self.row(part, place, is_new))
                @for (nth, found) in self.found_at(place) { (self.finding(part, place + 1, nth, found)) }
            }
            (self.at_the_end(part))
        }
    }

    /// What a part's steps did not keep of what was expected.
    pub(super) fn at_the_end(&self, part: &Part<'_>) -> Markup {
        let is_here =
            |found: &Found| found.step.is_some_and(|of| part.steps.iter().any(|(number, _)| *number == of));
        let here = (1..).zip(&self.outcome.found).filter(|(_, found)| is_here(found));
        html! {
            @for (nth, found) in here { (self.finding(part, part.entries.end, nth, found)) }
        }
    }

    fn found_at(&self, place: usize) -> impl Iterator<Item = (usize, &Found)> {
        let is_here = move |found: &Found| {
            found.at.is_some_and(|at| self.timeline.place_of(at, &found.text) == Some(place))
        };
        (1..).zip(&self.outcome.found).filter(move |(_, found)| is_here(found))
    }

    fn leap(&self, part: &Part<'_>, place: usize, passed: u64) -> Markup {
        html! {
            li.row.leap {
                span.t {}
                (self.lines_between(part, place))
                span.x { b { (leap(passed)) } " of virtual time" }
            }
        }
    }

    /// Stands in front of the entry at `place`.
    fn finding(&self, part: &Part<'_>, place: usize, nth: usize, found: &Found) -> Markup {
        html! {
            li.row.finding id={ "finding-" (nth) } {
                span.t {}
                (self.lines_between(part, place))
                div.x role="note" aria-label={ "Finding " (nth) } {
                    span.chip { "did not hold" }
                    (self.by(found))
                    p { (clean(&found.text)) }
                }
            }
        }
    }

    fn row(&self, part: &Part<'_>, place: usize, is_new: bool) -> Markup {
        let entry = &self.timeline.entries[place];
        let (s, us) = (entry.at / 1_000_000_000, entry.at % 1_000_000_000 / 1_000);
        html! {
            li class={ "row " (entry.kind.name()) } {
                span.t { @if is_new { (s) "." (format!("{us:06}")) } }
                (self.lines(part, place, &mark(part, entry)))
                @match &entry.journal {
                    Some(moment) => (journal(moment)),
                    None => (self.words(entry)),
                }
            }
        }
    }

    fn words(&self, entry: &Entry) -> Markup {
        let chip = chip(entry.kind);
        let what = match entry.kind {
            Kind::Fault => entry.what.strip_prefix("FAULT ").unwrap_or(&entry.what),
            _ => &entry.what,
        };
        html! {
            span.x {
                @if let Some(chip) = chip { span.chip { (chip) } " " }
                b.who { (clean(&self.timeline.who(entry).name)) } " " (clean(what))
                @if let Some(said) = &entry.said { " " code { bdi { (clean(said)) } } }
                @if entry.again > 0 { " " span.again { "… and " (entry.again) " times the same" } }
            }
        }
    }
}

/// The word in front of what a reader should not overlook.
fn chip(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Fault => Some("fault"),
        Kind::Signal => Some("signal"),
        Kind::Killed => Some("killed"),
        Kind::Panic => Some("panic"),
        Kind::Power => Some("power loss"),
        Kind::Clock => Some("clock"),
        _ => None,
    }
}

/// An arrow between two lanes, or a dot on one.
fn mark(part: &Part<'_>, entry: &Entry) -> Markup {
    let Some(from) = part.column(entry.who) else { return html! {} };
    let to = entry.to.filter(|to| *to != entry.who).and_then(|to| part.column(to));
    html! {
        @match to {
            Some(to) => {
                @let side = if to > from { "right" } else { "left" };
                b class={ "arrow " (side) } style={ "grid-column:" (from.min(to) + 1) "/" (from.max(to) + 2) } {}
            }
            None => b.dot style={ "grid-column:" (from + 1) } {},
        }
    }
}

/// mu's tables after a change, in a few lines.
fn journal(Moment { rows, .. }: &Moment) -> Markup {
    let (same, changed): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.change == Change::Same);
    let same: Vec<String> = same.iter().map(|row| format!("{} {}", row.about, row.name)).collect();
    html! {
        div.x {
            table {
                caption { "mu's database from here on" }
                tbody {
                    @for row in changed {
                        tr class=(row.change.name()) {
                            td { span.mark { (row.change.name()) } }
                            " "
                            th scope="row" { (row.about) " " (clean(&row.name)) }
                            td { (clean(&row.says)) }
                        }
                    }
                }
            }
            @if !same.is_empty() { p.same { "as before: " (clean(&same.join(", "))) } }
        }
    }
}
