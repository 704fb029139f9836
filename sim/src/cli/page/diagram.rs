//! Every step as a sequence diagram: lanes side by side, rows one below the other.

use std::cmp::Ordering;
use std::ops::Range;

use maud::{Markup, html};

use super::{Page, clean, text_of};
use crate::scenario::Step;
use crate::trace::timeline::{Entry, Lane, Who};

/// More lanes than this have their names upright on every screen.
const FLAT: usize = 6;
/// More than this do not fit beside words on a small screen: the diagram scrolls within itself.
const CROWD: usize = 14;

/// The steps of one diagram: one, or several that ran at once.
pub(super) struct Part<'a> {
    /// From 1; none for what came after the last step.
    pub(super) steps: Vec<(usize, &'a Step)>,
    /// Its entries, as places in the timeline.
    pub(super) entries: Range<usize>,
    /// Its lanes, as places in the timeline, from left to right.
    pub(super) lanes: Vec<usize>,
}

impl Page<'_> {
    pub(super) fn steps(&self) -> Markup {
        let parts = self.parts();
        html! {
            @if parts.len() > 2 {
                nav aria-label="Steps" {
                    h2 { "Steps" }
                    ol {
                        @for part in &parts { li { a href={ "#" (part.id()) } { (part.title()) } " " (self.runs(part)) } }
                    }
                }
            }
            @for part in &parts { (self.part(part)) }
            @if parts.is_empty() {
                p.quiet { "There is no diagram: the run did not come to its end. Played again, it may tell more." }
            }
        }
    }

    /// The steps that were played, and what came after them.
    pub(super) fn parts(&self) -> Vec<Part<'_>> {
        let timeline = self.timeline;
        let mut steps = (1..).zip(&self.scenario.steps);
        let mut parts = Vec::new();
        let mut begin = 0;
        for end in &timeline.ends {
            let mut of_this = Vec::new();
            for (number, step) in steps.by_ref() {
                of_this.push((number, step));
                if !step.overlap {
                    break;
                }
            }
            parts.push(Part { steps: of_this, entries: begin..*end, lanes: self.lanes(begin..*end) });
            begin = *end;
        }
        let rest = begin..timeline.entries.len();
        if !rest.is_empty() {
            parts.push(Part { steps: steps.collect(), lanes: self.lanes(rest.clone()), entries: rest });
        }
        parts
    }

    /// Who takes part in these entries, or lives meanwhile: the world on the left, what lies outside of mu's processes on the
    /// right.
    fn lanes(&self, entries: Range<usize>) -> Vec<usize> {
        let of = |entry: &Entry| [Some(entry.who), entry.to].into_iter().flatten();
        let named: Vec<usize> = self.timeline.entries[entries.clone()].iter().flat_map(of).collect();
        let lives = |lane: &Lane| {
            lane.pid.is_some()
                && lane.born < entries.end
                && lane.died.is_none_or(|died| died >= entries.start)
        };
        let all = self.timeline.lanes.iter().enumerate();
        let all = all.filter(|(place, lane)| named.contains(place) || lives(lane));
        let mut lanes: Vec<_> = all.map(|(place, lane)| (side(lane.who), lane.born, place)).collect();
        lanes.sort_unstable();
        lanes.into_iter().map(|(.., place)| place).collect()
    }

    fn runs(&self, part: &Part<'_>) -> Markup {
        html! {
            @for (_, step) in &part.steps {
                @if let Some(run) = &step.run { code { (clean(run)) } " " }
            }
        }
    }

    fn part(&self, part: &Part<'_>) -> Markup {
        let failed = |number: usize| self.outcome.found.iter().any(|found| found.step == Some(number));
        html! {
            section.step aria-labelledby=(part.id()) {
                h2 id=(part.id()) { (part.title()) }
                @for (number, step) in &part.steps {
                    @if let Some(run) = &step.run { p.run { code { (clean(run)) } } }
                    details open[failed(*number)] {
                        summary {
                            "What step " (number) " does and expects"
                        }
                        pre { code { (text_of(&step.to_toml())) } }
                    }
                }
                @if part.entries.is_empty() {
                    p.quiet { "Nothing happened on the machine." }
                } @else {
                    @let lanes = part.lanes.len();
                    div.diagram.many[lanes > FLAT].crowd[lanes > CROWD] style={ "--n:" (lanes) }
                        role=[(lanes > CROWD).then_some("region")]
                        aria-label=[(lanes > CROWD).then(|| format!("{}, as a diagram", part.title()))]
                        tabindex=[(lanes > CROWD).then_some("0")] {
                        (self.names(part))
                        ol.rows { (self.rows(part)) }
                    }
                }
                @if part.entries.is_empty() { ol.rows { (self.at_the_end(part)) } }
            }
        }
    }

    /// The names above the lanes. What each is stands in its row, too, so this is for the eye alone.
    fn names(&self, part: &Part<'_>) -> Markup {
        html! {
            div.names aria-hidden="true" {
                @for lane in &part.lanes {
                    @let lane = &self.timeline.lanes[*lane];
                    span class=(class(lane.who)) title=[(!lane.command.is_empty()).then(|| clean(&lane.command))] {
                        b { (clean(&lane.name)) }
                        @if let Some(pid) = lane.pid { small { " " (pid) } }
                    }
                }
            }
        }
    }

    /// The lines of all lanes beside one row, with what `mark` puts on them.
    pub(super) fn lines(&self, part: &Part<'_>, place: usize, mark: &Markup) -> Markup {
        self.lines_by(part, |lane| life(lane, place), mark)
    }

    /// The lines of those who live just before a row.
    pub(super) fn lines_between(&self, part: &Part<'_>, place: usize) -> Markup {
        let lives = |lane: &Lane| match life(lane, place) {
            Some("born") | None => None,
            _ => Some("always"),
        };
        self.lines_by(part, lives, &html! {})
    }

    fn lines_by(
        &self,
        part: &Part<'_>,
        life: impl Fn(&Lane) -> Option<&'static str>,
        mark: &Markup,
    ) -> Markup {
        html! {
            span.g aria-hidden="true" {
                @for (column, lane) in (1..).zip(&part.lanes) {
                    @let lane = &self.timeline.lanes[*lane];
                    @if let Some(life) = life(lane) {
                        i class={ (class(lane.who)) " " (life) } style={ "grid-column:" (column) } {}
                    }
                }
                (mark)
            }
        }
    }
}

impl Part<'_> {
    fn id(&self) -> String {
        match self.steps.first() {
            Some((number, _)) => format!("step-{number}"),
            None => "afterwards".to_owned(),
        }
    }

    fn title(&self) -> String {
        let numbers: Vec<String> = self.steps.iter().map(|(number, _)| number.to_string()).collect();
        match &numbers[..] {
            [] => "Afterwards".to_owned(),
            [one] => format!("Step {one}"),
            [most @ .., last] => format!("Steps {} and {last}, at once", most.join(", ")),
        }
    }

    /// The column of a lane, from 0.
    pub(super) fn column(&self, lane: usize) -> Option<usize> {
        self.lanes.iter().position(|one| *one == lane)
    }
}

/// The line of a lane beside an entry: none before its start and after its end.
fn life(lane: &Lane, place: usize) -> Option<&'static str> {
    match (place.cmp(&lane.born), lane.died.map(|died| place.cmp(&died))) {
        _ if lane.pid.is_none() => Some("always"),
        (Ordering::Less, _) | (_, Some(Ordering::Greater)) => None,
        (Ordering::Equal, _) => Some("born"),
        (_, Some(Ordering::Equal)) => Some("died"),
        _ => Some("lives"),
    }
}

fn side(who: Who) -> u8 {
    match who {
        Who::World => 0,
        Who::Mu | Who::Process => 1,
        Who::Network => 2,
        Who::Backend => 3,
        Who::Disk => 4,
    }
}

fn class(who: Who) -> &'static str {
    match who {
        Who::World => "world",
        Who::Mu => "mu",
        Who::Process => "process",
        Who::Network | Who::Backend => "backend",
        Who::Disk => "disk",
    }
}
