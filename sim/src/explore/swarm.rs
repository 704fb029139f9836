//! What a run may do at all. If every run could do everything, none would do one thing often enough for a rare
//! combination; so each leaves a random part out.

use crate::fake::Topic;
use crate::streams::Stream;

const TOPICS: [Topic; 10] = [
    Topic::Bytes,
    Topic::Delivery,
    Topic::Error,
    Topic::Answer,
    Topic::Streams,
    Topic::Stderr,
    Topic::Process,
    Topic::Time,
    Topic::Mu,
    Topic::Secret,
];

/// The options of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swarm {
    /// What its faults can be about; none means that there is no fault.
    pub topics: Vec<Topic>,
    /// Faults of megabytes can happen. They cost as much as twenty other runs.
    pub large: bool,
    /// Declarations can break a load rule.
    pub bad_declarations: bool,
    /// Hosts are added, and their links are called.
    pub calls: bool,
    /// Files that are installed can be unsound.
    pub bad_files: bool,
    /// Files, declarations and permission bits can change between steps.
    pub changes: bool,
    /// The database can be locked, full, damaged.
    pub database: bool,
    /// Several mu can run at once.
    pub overlap: bool,
    /// Signals can come from outside.
    pub signals: bool,
    /// mu can be killed, or made to panic, at any of its calls.
    pub crashes: bool,
    /// Time can pass between steps, and the wall clock can step.
    pub time: bool,
    /// One read, or long write, in so many is short.
    pub short_io: Option<u64>,
    /// mu has run on this machine before. To make its tables takes as long as ten of its other runs.
    pub used: bool,
}

impl Swarm {
    /// The options of the run that this stream belongs to.
    pub fn draw(stream: &mut Stream) -> Swarm {
        let enabled = |stream: &mut Stream| TOPICS.into_iter().filter(|_| stream.chance(1, 2)).collect();
        Swarm {
            topics: if stream.chance(1, 8) { Vec::new() } else { enabled(stream) },
            large: stream.chance(1, 100),
            bad_declarations: stream.chance(1, 3),
            calls: stream.chance(2, 3),
            bad_files: stream.chance(1, 3),
            changes: stream.chance(1, 2),
            database: stream.chance(1, 4),
            overlap: stream.chance(1, 2),
            signals: stream.chance(1, 2),
            crashes: stream.chance(1, 3),
            time: stream.chance(1, 3),
            short_io: stream.chance(1, 3).then(|| stream.between(1, 8)),
            used: stream.chance(15, 16),
        }
    }
}
