//! The points of a scenario.

use serde::{Deserialize, Serialize};

use crate::scenario::{DiskErrno, Scenario};
use crate::world::{Course, Deed, Spot, can_fail};

/// One point of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    /// The step that it is in, from 1.
    pub step: usize,
    /// What happens there.
    pub at: At,
}

/// What ends, and where. Numbers begin at 1; `name` is what came next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum At {
    /// mu is killed at a call.
    Call {
        /// Which.
        nth: u64,
        /// Its name.
        name: String,
    },
    /// mu is killed at an operation on the disk.
    Disk {
        /// Which.
        nth: u64,
        /// Its name.
        name: String,
    },
    /// The power fails at a call.
    PowerAtCall {
        /// Which.
        nth: u64,
        /// Its name.
        name: String,
    },
    /// The power fails at an operation on the disk.
    PowerAtDisk {
        /// Which.
        nth: u64,
        /// Its name.
        name: String,
    },
    /// A plugin is killed at one of its acts.
    Plugin {
        /// Which plugin.
        plugin: String,
        /// Which act.
        nth: u64,
        /// Its name.
        name: String,
    },
    /// The disk fails.
    DiskError {
        /// At which operation.
        nth: u64,
        /// Its name.
        name: String,
        /// How.
        errno: DiskErrno,
        /// From there on.
        stays: bool,
    },
}

/// A sort of points, asked for and counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// mu is killed.
    Mu,
    /// A plugin is killed.
    Plugin,
    /// The power fails.
    Power,
    /// The disk fails.
    DiskErrors,
}

impl Sort {
    /// All of them.
    pub const ALL: [Sort; 4] = [Sort::Mu, Sort::Plugin, Sort::Power, Sort::DiskErrors];

    /// What happens at such a point.
    pub fn text(self) -> &'static str {
        match self {
            Sort::Mu => "mu is killed",
            Sort::Plugin => "a plugin is killed",
            Sort::Power => "the power fails",
            Sort::DiskErrors => "the disk fails",
        }
    }
}

/// The points of a scenario, and how many are left out because the one before them is the same world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// Those that differ.
    pub points: Vec<Point>,
    /// How many do not.
    pub same: u64,
}

impl Point {
    /// The sort that it is of.
    pub fn sort(&self) -> Sort {
        match self.at {
            At::Call { .. } | At::Disk { .. } => Sort::Mu,
            At::PowerAtCall { .. } | At::PowerAtDisk { .. } => Sort::Power,
            At::Plugin { .. } => Sort::Plugin,
            At::DiskError { .. } => Sort::DiskErrors,
        }
    }

    /// As a report names it: `step 2 call 17 (child.poll_write)`.
    pub fn text(&self) -> String {
        let step = self.step;
        match &self.at {
            At::Call { nth, name } => format!("step {step} call {nth} ({name})"),
            At::Disk { nth, name } => format!("step {step} disk operation {nth} ({name})"),
            At::PowerAtCall { nth, name } => format!("step {step} power off at call {nth} ({name})"),
            At::PowerAtDisk { nth, name } => {
                format!("step {step} power off at disk operation {nth} ({name})")
            }
            At::Plugin { plugin, nth, name } => format!("step {step} act {nth} of {plugin} ({name})"),
            At::DiskError { nth, name, errno, stays } => {
                let from = if *stays { "from" } else { "at" };
                format!("step {step} {} {from} disk operation {nth} ({name})", errno.name())
            }
        }
    }

    /// Whether `other` is the same error of the disk, from there on and not once.
    pub fn stays_as(&self, other: &Point) -> bool {
        match (&self.at, &other.at) {
            (
                At::DiskError { nth, errno, stays: false, .. },
                At::DiskError { nth: its, errno: other_errno, stays: true, .. },
            ) => self.step == other.step && nth == its && errno == other_errno,
            _ => false,
        }
    }

    /// As part of the name of a file.
    pub fn slug(&self) -> String {
        let text = self.text();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join("-").to_lowercase()
    }
}

/// Every point of these sorts that differs from the one before it.
pub fn points(scenario: &Scenario, courses: &[Course], sorts: &[Sort]) -> Points {
    let mut all = Points::default();
    for one in courses {
        let step = &scenario.steps[one.step - 1];
        // Behind a panic that the scenario asks for mu is not what is swept.
        let until = one.spots.iter().position(|spot| {
            matches!(spot.deed, Deed::Call(_)) && step.panic_at_call.is_some_and(|at| spot.nth > at)
        });
        let spots = &one.spots[..until.unwrap_or(one.spots.len())];
        for sort in sorts {
            match sort {
                Sort::Mu => all.ends(one.step, spots, |spot| spot.same_when_killed, killed),
                Sort::Power => all.ends(one.step, spots, |spot| spot.same_without_power, without_power),
                Sort::Plugin => {
                    let acts = one.acts.iter().map(|act| At::Plugin {
                        plugin: act.plugin.clone(),
                        nth: act.nth,
                        name: act.what.to_owned(),
                    });
                    all.points.extend(acts.map(|at| Point { step: one.step, at }));
                }
                Sort::DiskErrors => all.disk_errors(one.step, spots),
            }
        }
    }
    all
}

/// Every point of a run of mu, with whether it is the same world as the one before it.
#[cfg(test)]
pub(super) fn unmerged(course: &Course, sort: Sort) -> Vec<(Point, bool)> {
    let point = |spot: &Spot| match sort {
        Sort::Power => (without_power(spot), spot.same_without_power),
        _ => (killed(spot), spot.same_when_killed),
    };
    let point = |spot| {
        let (at, is_same) = point(spot);
        (Point { step: course.step, at }, is_same)
    };
    course.spots.iter().map(point).collect()
}

impl Points {
    fn ends(
        &mut self,
        step: usize,
        spots: &[Spot],
        is_same: impl Fn(&Spot) -> bool,
        at: impl Fn(&Spot) -> At,
    ) {
        let differing = spots.iter().filter(|spot| !is_same(spot));
        let before = self.points.len();
        self.points.extend(differing.map(|spot| Point { step, at: at(spot) }));
        self.same += (spots.len() + before - self.points.len()) as u64;
    }

    /// Each operation that can fail with an error, once and from there on.
    fn disk_errors(&mut self, step: usize, spots: &[Spot]) {
        for errno in DiskErrno::ALL {
            let fails = spots.iter().filter_map(|spot| match spot.deed {
                Deed::Disk(kind) if can_fail(kind, errno) => Some((spot.nth, kind.name().to_owned())),
                _ => None,
            });
            for (nth, name) in fails {
                for stays in [false, true] {
                    let at = At::DiskError { nth, name: name.clone(), errno, stays };
                    self.points.push(Point { step, at });
                }
            }
        }
    }
}

fn killed(spot: &Spot) -> At {
    match spot.deed {
        Deed::Call(name) => At::Call { nth: spot.nth, name: name.to_owned() },
        Deed::Disk(kind) => At::Disk { nth: spot.nth, name: kind.name().to_owned() },
    }
}

fn without_power(spot: &Spot) -> At {
    match spot.deed {
        Deed::Call(name) => At::PowerAtCall { nth: spot.nth, name: name.to_owned() },
        Deed::Disk(kind) => At::PowerAtDisk { nth: spot.nth, name: kind.name().to_owned() },
    }
}
