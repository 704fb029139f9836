//! A trace as a list of what matters to a reader: when, who, what, to whom. Transcript, page, diagram and JSON are all made
//! from it.
//!
//! In: events, the moments at which mu's rows changed, the ends of the steps. Out: [`Entry`]s with names instead of numbers:
//! starts and ends, signals, lines on the wire, faults. A line that comes again and again is told once, with its number.

use std::collections::BTreeMap;

use mu_core::os::{Exit, Pid};

use crate::disk;
use crate::kernel::signal_name;

use super::{Effect, Event, Moment, OUTSIDE, PipeId, PipeRef, Std, Target, What};

/// Characters of a line that are shown.
const SHOWN: usize = 160;
/// At most so many characters of a command line.
const COMMAND: usize = 400;
/// Of a line that mu prints, which is what its user sees, and of a call, whose parameters come last.
const SHOWN_OF_MU: usize = 600;

/// All that a reader is told of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Everybody who did something or to whom something was done, in the order in which they came up.
    pub lanes: Vec<Lane>,
    /// What happened, in its order.
    pub entries: Vec<Entry>,
    /// How many entries there were at the end of each step, or of several that ran at once.
    pub ends: Vec<usize>,
}

/// Somebody: a process, the backend, the network, the disk, or the world around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// `mu#1`, `box#2`, `backend`.
    pub name: String,
    /// What it is.
    pub who: Who,
    /// Its process id, as the oracles tell it.
    pub pid: Option<Pid>,
    /// Its command line.
    pub command: String,
    /// The entry with which it began.
    pub born: usize,
    /// The entry with which it ended.
    pub died: Option<usize>,
}

/// What a lane stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// Whatever acts on the machine from outside: the steps of the scenario.
    World,
    /// An invocation of mu.
    Mu,
    /// A plugin or a child of one.
    Process,
    /// The way to the backend.
    Network,
    /// The machines behind the plugins.
    Backend,
    /// The disk of mu's machine.
    Disk,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Virtual nanoseconds since the start of the run.
    pub at: u64,
    /// Who did it, or to whom it happened: a place in [`Timeline::lanes`].
    pub who: usize,
    /// To whom it was done, likewise.
    pub to: Option<usize>,
    /// What sort of thing it is.
    pub kind: Kind,
    /// What.
    pub what: String,
    /// The bytes that were written, printable and perhaps cut.
    pub said: Option<String>,
    /// How often it came again at once.
    pub again: usize,
    /// mu's rows from here on, if they changed.
    pub journal: Option<Moment>,
}

/// What sort of thing an entry tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A process was started, or could not be.
    Start,
    /// One ended by itself.
    Exit,
    /// One died of a signal.
    Killed,
    /// One panicked.
    Panic,
    /// One was collected by its parent.
    Reap,
    /// A signal was sent or came.
    Signal,
    /// A line went from one to another.
    Line,
    /// A line for the user of mu.
    Output,
    /// A stream ended.
    Stream,
    /// A clock was changed.
    Clock,
    /// The power failed.
    Power,
    /// A fault took effect.
    Fault,
    /// A remark.
    Note,
    /// Something at the backend.
    Backend,
    /// Something in the network.
    Network,
    /// Files were changed.
    Disk,
    /// What mu has written down is another.
    Journal,
}

impl Kind {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Start => "start",
            Kind::Exit => "exit",
            Kind::Killed => "killed",
            Kind::Panic => "panic",
            Kind::Reap => "reap",
            Kind::Signal => "signal",
            Kind::Line => "line",
            Kind::Output => "output",
            Kind::Stream => "stream",
            Kind::Clock => "clock",
            Kind::Power => "power",
            Kind::Fault => "fault",
            Kind::Note => "note",
            Kind::Backend => "backend",
            Kind::Network => "network",
            Kind::Disk => "disk",
            Kind::Journal => "journal",
        }
    }

    /// Whether the transcript tells it: what mu writes to its disk it leaves out.
    pub fn is_told(self) -> bool {
        !matches!(self, Kind::Disk | Kind::Journal)
    }
}

impl Entry {
    /// The whole sentence, without who and when.
    pub fn sentence(&self) -> String {
        match &self.said {
            Some(said) => format!("{} {said}", self.what),
            None => self.what.clone(),
        }
    }

    /// Whether the other one would read the same.
    fn is_like(&self, other: &Entry) -> bool {
        let of = |one: &Entry| (one.at / 1_000, one.who, one.kind);
        of(self) == of(other) && self.what == other.what && self.said == other.said
    }
}

impl Timeline {
    /// Reads a trace. `moments` and `ends` are numbers of events, in their order.
    pub fn of(events: &[Event], moments: &[Moment], ends: &[u64]) -> Timeline {
        let mut reader = Reader::default();
        let (mut moments, mut ends) = (moments.iter().peekable(), ends.iter().peekable());
        for place in 0..=events.len() {
            while let Some(moment) = moments.next_if(|moment| moment.place <= place) {
                reader.journal(moment, events);
            }
            while ends.next_if(|end| **end <= place as u64).is_some() {
                reader.tell_disk();
                reader.told.ends.push(reader.told.entries.len());
            }
            if let Some(event) = events.get(place) {
                reader.event(event);
            }
        }
        reader.tell_disk();
        reader.told
    }

    /// The lane of an entry.
    pub fn who(&self, entry: &Entry) -> &Lane {
        &self.lanes[entry.who]
    }

    /// The entry behind which a finding of this moment stands: the last one up to then, and of those at the very moment
    /// the last that is about a process which the text names by its pid (`box[103]`).
    pub fn place_of(&self, at: u64, text: &str) -> Option<usize> {
        let named = |lane: usize| {
            let pid = self.lanes[lane].pid;
            pid.is_some_and(|pid| text.contains(&format!("[{pid}]")))
        };
        let until = self.entries.partition_point(|entry| entry.at <= at);
        let mut then = (0..until).rev().take_while(|place| self.entries[*place].at == at);
        let about = then.find(|place| {
            let entry = &self.entries[*place];
            named(entry.who) || entry.to.is_some_and(named)
        });
        about.or(until.checked_sub(1))
    }
}

/// What an event says.
struct Told {
    kind: Kind,
    to: Option<usize>,
    what: String,
}

impl Told {
    fn new(kind: Kind, what: impl Into<String>) -> Told {
        Told { kind, to: None, what: what.into() }
    }

    fn to(self, to: usize) -> Told {
        Told { to: Some(to), ..self }
    }
}

/// Changes of files by one process that are not told yet.
struct Deeds {
    at: u64,
    who: usize,
    /// What was done to which file, and how often.
    counts: Vec<(disk::Kind, String, u64)>,
}

#[derive(Default)]
struct Reader {
    told: Timeline,
    /// The latest process with a pid.
    pids: BTreeMap<Pid, usize>,
    names: BTreeMap<String, usize>,
    /// How many processes each program has had.
    counts: BTreeMap<String, u32>,
    /// Who started whom.
    parents: BTreeMap<usize, usize>,
    unfinished: BTreeMap<PipeId, Vec<u8>>,
    deeds: Option<Deeds>,
    /// The last entry of those that the transcript tells.
    last: Option<usize>,
}

impl Reader {
    fn event(&mut self, event: &Event) {
        let told = match &event.what {
            What::Write { pipe, bytes } => return self.write(event, *pipe, bytes),
            What::Disk { kind, path, .. } => return self.deed(event, *kind, path),
            What::Backend(what) => {
                let what = shown(what.as_bytes(), SHOWN_OF_MU);
                return self.tell_outside(event, "backend", Kind::Backend, what);
            }
            What::Net(what) => return self.tell_outside(event, "network", Kind::Network, what.to_string()),
            What::Spawn { .. }
            | What::ExecFailed { .. }
            | What::Exit(_)
            | What::Panic(_)
            | What::Reap { .. } => self.life(event),
            What::Signal { .. } | What::Delivered { .. } => self.signal(event),
            What::Eof(_) | What::Broken(_) | What::CloseRead(_) | What::CloseWrite(_) => self.stream(event),
            what => self.machine(what),
        };
        if let Some(told) = told {
            let who = self.of(event.pid);
            self.tell(event.at, who, told, None);
        }
    }

    fn life(&mut self, event: &Event) -> Option<Told> {
        match &event.what {
            What::Spawn { child, argv, group, .. } => {
                let argv: Vec<String> = argv.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
                let command = shown(argv.join(" ").as_bytes(), COMMAND);
                let parent = self.of(event.pid);
                let lane = self.start(*child, &argv[0], &command);
                self.parents.insert(lane, parent);
                let group = if group == child {
                    "a group of its own".to_owned()
                } else {
                    format!("group {}", self.name(*group))
                };
                let what = format!("starts {} in {group}: {command}", self.told.lanes[lane].name);
                Some(Told::new(Kind::Start, what).to(lane))
            }
            What::ExecFailed { program, errno } => {
                let what = format!("cannot execute {}: {}", program.to_string_lossy(), errno_name(*errno));
                Some(Told::new(Kind::Start, what))
            }
            What::Exit(Exit::Status(status)) => {
                Some(Told::new(Kind::Exit, format!("exits with status {status}")))
            }
            What::Exit(Exit::Signal(number)) => {
                Some(Told::new(Kind::Killed, format!("dies of {}", signal_name(*number))))
            }
            What::Panic(text) => Some(Told::new(Kind::Panic, format!("panics: {text}"))),
            What::Reap { child } if self.pids.contains_key(&event.pid) => {
                let what = format!("reaps {}", self.name(*child));
                Some(Told::new(Kind::Reap, what).to(self.of(*child)))
            }
            _ => None,
        }
    }

    fn signal(&mut self, event: &Event) -> Option<Told> {
        let what = match &event.what {
            What::Signal { to, number } => {
                let signal = signal_name(*number);
                let (to, what) = match to {
                    Target::Process(to) => (*to, format!("sends {signal} to {}", self.name(*to))),
                    Target::Group(to) => (*to, format!("sends {signal} to the group of {}", self.name(*to))),
                };
                return Some(Told::new(Kind::Signal, what).to(self.of(to)));
            }
            What::Delivered { number, effect } => {
                let signal = signal_name(*number);
                match effect {
                    Effect::Handled => format!("notices {signal}"),
                    Effect::Ignored => format!("ignores {signal}"),
                    Effect::Stops => format!("is stopped by {signal}"),
                    Effect::Continues => format!("is continued by {signal}"),
                    Effect::Kills | Effect::Pending => return None,
                }
            }
            _ => return None,
        };
        Some(Told::new(Kind::Signal, what))
    }

    fn stream(&mut self, event: &Event) -> Option<Told> {
        match &event.what {
            What::Eof(pipe)
                if pipe.role.is_some_and(|role| role.of == event.pid && role.stream == Std::In) =>
            {
                Some(Told::new(Kind::Stream, "reads the end of its stdin"))
            }
            What::Broken(_) => Some(Told::new(Kind::Stream, "writes to a pipe that nobody reads")),
            What::CloseRead(pipe) | What::CloseWrite(pipe) => {
                let role = pipe.role?;
                let ended = self.unfinished.remove(&pipe.id).filter(|rest| !rest.is_empty());
                if let Some(rest) = ended {
                    let who = self.of(event.pid);
                    let told = Told::new(Kind::Stream, "half a line:");
                    self.tell(event.at, who, told, Some(shown(&rest, SHOWN)));
                }
                let closes = role.of != event.pid && role.stream == Std::In;
                closes.then(|| {
                    let what = format!("closes the stdin of {}", self.name(role.of));
                    Told::new(Kind::Stream, what).to(self.of(role.of))
                })
            }
            _ => None,
        }
    }

    fn machine(&mut self, what: &What) -> Option<Told> {
        match what {
            What::NewSession => Some(Told::new(Kind::Note, "leaves for a session and group of its own")),
            What::WallStep(to) => {
                Some(Told::new(Kind::Clock, format!("the wall clock is stepped to {to} ms")))
            }
            What::Suspend(span) => {
                Some(Told::new(Kind::Clock, format!("the machine sleeps for {} ms", span / 1_000_000)))
            }
            What::PowerOff => Some(Told::new(Kind::Power, "the power fails")),
            What::Fault(name) => {
                let told = Told::new(Kind::Fault, format!("FAULT {name}"));
                Some(if name.contains(" on the disk") {
                    told.to(self.named("disk", Who::Disk))
                } else {
                    told
                })
            }
            What::Note(note) => Some(Told::new(Kind::Note, format!("({note})"))),
            _ => None,
        }
    }

    fn write(&mut self, event: &Event, pipe: PipeRef, bytes: &[u8]) {
        let who = self.of(event.pid);
        let is_mu = self.told.lanes[who].who == Who::Mu;
        let own = pipe.role.filter(|role| role.of == event.pid);
        let most = if own.is_some() && is_mu { SHOWN_OF_MU } else { SHOWN };
        let (kind, to, what) = match (own, pipe.role) {
            (Some(role), _) if is_mu => (Kind::Output, None, format!("{}:", role.stream)),
            (Some(role), _) => (Kind::Line, self.parents.get(&who).copied(), format!("{}:", role.stream)),
            (None, Some(role)) => (Kind::Line, Some(self.of(role.of)), format!("to {}:", self.name(role.of))),
            (None, None) => (Kind::Line, None, "to a pipe:".to_owned()),
        };
        let is_call = |line: &[u8]| memchr::memmem::find(line, b"\"method\":\"link.").is_some();
        for line in whole_lines(self.unfinished.entry(pipe.id).or_default(), bytes) {
            let most = if is_call(&line) { SHOWN_OF_MU } else { most };
            self.tell(event.at, who, Told { kind, to, what: what.clone() }, Some(shown(&line, most)));
        }
    }

    fn tell_outside(&mut self, event: &Event, name: &str, kind: Kind, what: String) {
        let who = self.named(name, if kind == Kind::Network { Who::Network } else { Who::Backend });
        let kind = if what.starts_with("FAULT ") { Kind::Fault } else { kind };
        self.tell(event.at, who, Told::new(kind, what), None);
    }

    /// Adds an entry, unless it is the last one again.
    fn tell(&mut self, at: u64, who: usize, told: Told, said: Option<String>) {
        let Told { kind, to, what } = told;
        let entry = Entry { at, who, to, kind, what, said, again: 0, journal: None };
        if let Some(last) = self.last.map(|last| &mut self.told.entries[last])
            && last.is_like(&entry)
        {
            last.again += 1;
            return;
        }
        self.tell_disk();
        let place = self.told.entries.len();
        match (entry.kind, entry.to) {
            (Kind::Start, Some(lane)) => self.told.lanes[lane].born = place,
            (Kind::Exit | Kind::Killed, _) => self.told.lanes[who].died = Some(place),
            _ => {}
        }
        self.last = Some(place);
        self.told.entries.push(entry);
    }

    fn deed(&mut self, event: &Event, kind: disk::Kind, path: &std::path::Path) {
        use disk::Kind::{Delete, Sync, Truncate, Write};
        if !matches!(kind, Delete | Sync | Truncate | Write) {
            return;
        }
        let who = self.of(event.pid);
        if self.deeds.as_ref().is_some_and(|deeds| (deeds.at, deeds.who) != (event.at, who)) {
            self.tell_disk();
        }
        let deeds = self.deeds.get_or_insert_with(|| Deeds { at: event.at, who, counts: Vec::new() });
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match deeds.counts.iter_mut().find(|(its, name, _)| *its == kind && *name == file) {
            Some((.., count)) => *count += 1,
            None => deeds.counts.push((kind, file, 1)),
        }
    }

    fn tell_disk(&mut self) {
        let Some(Deeds { at, who, counts }) = self.deeds.take() else { return };
        let one = |(kind, file, count): &(disk::Kind, String, u64)| {
            let times = if *count == 1 { String::new() } else { format!(" {count} times") };
            let does = match kind {
                disk::Kind::Sync => "syncs",
                disk::Kind::Truncate => "cuts",
                disk::Kind::Delete => "deletes",
                _ => "writes to",
            };
            format!("{does} {file}{times}")
        };
        let what = counts.iter().map(one).collect::<Vec<_>>().join(", ");
        let to = Some(self.named("disk", Who::Disk));
        let kind = Kind::Disk;
        self.told.entries.push(Entry { at, who, to, kind, what, said: None, again: 0, journal: None });
    }

    fn journal(&mut self, moment: &Moment, events: &[Event]) {
        self.tell_disk();
        let who = self.named("disk", Who::Disk);
        let before = moment.place.checked_sub(1).and_then(|place| events.get(place));
        self.told.entries.push(Entry {
            at: before.map_or(0, |event| event.at),
            who,
            to: None,
            kind: Kind::Journal,
            what: moment.sentence(),
            said: None,
            again: 0,
            journal: Some(moment.clone()),
        });
    }
}

/// # Names
impl Reader {
    /// A new process: `mu#1`, `box#2`, counted for each program.
    fn start(&mut self, pid: Pid, argv0: &str, command: &str) -> usize {
        let base = argv0.rsplit('/').next().unwrap_or(argv0);
        let base = base.strip_prefix("mu-plugin-").unwrap_or(base).to_owned();
        let count = self.counts.entry(base.clone()).or_default();
        *count += 1;
        let name = format!("{base}#{count}");
        let who = if name.starts_with("mu#") { Who::Mu } else { Who::Process };
        let lane = self.named(&name, who);
        self.told.lanes[lane].pid = Some(pid);
        command.clone_into(&mut self.told.lanes[lane].command);
        self.pids.insert(pid, lane);
        lane
    }

    fn named(&mut self, name: &str, who: Who) -> usize {
        if let Some(lane) = self.names.get(name) {
            return *lane;
        }
        let lane = self.told.lanes.len();
        let born = self.told.entries.len();
        let name = name.to_owned();
        self.names.insert(name.clone(), lane);
        self.told.lanes.push(Lane { name, who, pid: None, command: String::new(), born, died: None });
        lane
    }

    fn of(&mut self, pid: Pid) -> usize {
        match self.pids.get(&pid) {
            Some(lane) => *lane,
            None if pid == OUTSIDE => self.named("world", Who::World),
            None => self.named(&format!("process {pid}"), Who::Process),
        }
    }

    fn name(&mut self, pid: Pid) -> String {
        let lane = self.of(pid);
        self.told.lanes[lane].name.clone()
    }
}

fn whole_lines(unfinished: &mut Vec<u8>, bytes: &[u8]) -> Vec<Vec<u8>> {
    unfinished.extend_from_slice(bytes);
    let Some(end) = memchr::memrchr(b'\n', unfinished) else { return Vec::new() };
    let rest = unfinished.split_off(end + 1);
    let whole = std::mem::replace(unfinished, rest);
    whole[..end].split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Printable, on one line, and at most so many characters.
fn shown(line: &[u8], most: usize) -> String {
    let mut text = String::new();
    for chunk in line[..line.len().min(4 * most)].utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str(r"\\"),
                c if c.is_control() => text.extend(c.escape_default()),
                c => text.push(c),
            }
        }
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    match text.char_indices().nth(most) {
        Some((cut, _)) => format!("{}… ({} bytes)", &text[..cut], line.len()),
        None => text,
    }
}

fn errno_name(errno: i32) -> String {
    format!("{:?}", nix::errno::Errno::from_raw(errno))
}

#[cfg(test)]
mod tests;
