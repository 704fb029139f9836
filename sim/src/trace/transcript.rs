//! A trace as text for people: when, who, what. One line an event, names instead of numbers, only what matters to a
//! reader: starts and ends, signals, lines on the wire, faults. A line that comes again and again is told once, with its
//! number.

use std::collections::BTreeMap;
use std::fmt::Write;

use mu_core::os::{Exit, Pid};

use crate::kernel::signal_name;

use super::{Effect, Event, OUTSIDE, PipeId, Std, Target, What};

/// Characters of a line that are shown.
const SHOWN: usize = 160;
/// At most so many characters of a command line.
const COMMAND: usize = 400;
/// Of a line that mu prints, which is what its user sees, and of a call, whose parameters come last.
const SHOWN_OF_MU: usize = 600;

/// The whole transcript.
pub fn transcript(events: &[Event]) -> String {
    let mut names = Names::default();
    let mut unfinished: BTreeMap<PipeId, Vec<u8>> = BTreeMap::new();
    let mut text = Text::default();
    for event in events {
        let what = match &event.what {
            What::Spawn { child, argv, group, .. } => {
                let argv: Vec<String> = argv.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
                let name = names.add(*child, &argv[0]);
                let group = if group == child {
                    "a group of its own".to_owned()
                } else {
                    format!("group {}", names.of(*group))
                };
                Some(format!("starts {name} in {group}: {}", shown(argv.join(" ").as_bytes(), COMMAND)))
            }
            What::ExecFailed { program, errno } => {
                Some(format!("cannot execute {}: {}", program.to_string_lossy(), errno_name(*errno)))
            }
            What::Exit(Exit::Status(status)) => Some(format!("exits with status {status}")),
            What::Exit(Exit::Signal(number)) => Some(format!("dies of {}", signal_name(*number))),
            What::Panic(text) => Some(format!("panics: {text}")),
            What::Reap { child } if names.names.contains_key(&event.pid) => {
                Some(format!("reaps {}", names.of(*child)))
            }
            What::Signal { to: Target::Process(to), number } => {
                Some(format!("sends {} to {}", signal_name(*number), names.of(*to)))
            }
            What::Signal { to: Target::Group(to), number } => {
                Some(format!("sends {} to the group of {}", signal_name(*number), names.of(*to)))
            }
            What::Delivered { number, effect: Effect::Handled } => {
                Some(format!("notices {}", signal_name(*number)))
            }
            What::Delivered { number, effect: Effect::Ignored } => {
                Some(format!("ignores {}", signal_name(*number)))
            }
            What::Delivered { number, effect: Effect::Stops } => {
                Some(format!("is stopped by {}", signal_name(*number)))
            }
            What::Delivered { number, effect: Effect::Continues } => {
                Some(format!("is continued by {}", signal_name(*number)))
            }
            What::NewSession => Some("leaves for a session and group of its own".to_owned()),
            What::Write { pipe, bytes } => {
                let own = pipe.role.is_some_and(|role| role.of == event.pid);
                let most = if own && names.is_mu(event.pid) { SHOWN_OF_MU } else { SHOWN };
                let to = match pipe.role {
                    Some(role) if role.of == event.pid => format!("{}:", stream_name(role.stream)),
                    Some(role) => format!("to {}:", names.of(role.of)),
                    None => "to a pipe:".to_owned(),
                };
                let is_call = |line: &[u8]| memchr::memmem::find(line, b"\"method\":\"link.").is_some();
                for line in whole_lines(unfinished.entry(pipe.id).or_default(), bytes) {
                    let most = if is_call(&line) { SHOWN_OF_MU } else { most };
                    names.line(&mut text, event, &format!("{to} {}", shown(&line, most)));
                }
                None
            }
            What::Eof(pipe)
                if pipe.role.is_some_and(|role| role.of == event.pid && role.stream == Std::In) =>
            {
                Some("reads the end of its stdin".to_owned())
            }
            What::Broken(_) => Some("writes to a pipe that nobody reads".to_owned()),
            What::CloseRead(pipe) | What::CloseWrite(pipe) => pipe.role.and_then(|role| {
                let ended = unfinished.remove(&pipe.id).filter(|rest| !rest.is_empty());
                if let Some(rest) = ended {
                    names.line(&mut text, event, &format!("half a line: {}", shown(&rest, SHOWN)));
                }
                (role.of != event.pid && role.stream == Std::In)
                    .then(|| format!("closes the stdin of {}", names.of(role.of)))
            }),
            What::WallStep(to) => Some(format!("the wall clock is stepped to {to} ms")),
            What::Suspend(span) => Some(format!("the machine sleeps for {} ms", span / 1_000_000)),
            What::PowerOff => Some("the power fails".to_owned()),
            What::Fault(name) => Some(format!("FAULT {name}")),
            What::Note(note) => Some(format!("({note})")),
            What::Backend(what) => {
                text.push(line(event, "backend", &shown(what.as_bytes(), SHOWN_OF_MU)));
                None
            }
            What::Net(what) => {
                text.push(line(event, "network", what));
                None
            }
            _ => None,
        };
        if let Some(what) = what {
            names.line(&mut text, event, &what);
        }
    }
    text.finish()
}

/// Lines, each once.
#[derive(Default)]
struct Text {
    all: String,
    last: String,
    again: usize,
}

impl Text {
    fn push(&mut self, line: String) {
        if line == self.last {
            self.again += 1;
            return;
        }
        self.tell_repeats();
        writeln!(self.all, "{line}").expect("a String takes all");
        self.last = line;
    }

    fn tell_repeats(&mut self) {
        match std::mem::take(&mut self.again) {
            0 => {}
            again => {
                writeln!(self.all, "{:21} … and {again} times the same", "").expect("a String takes all")
            }
        }
    }

    fn finish(mut self) -> String {
        self.tell_repeats();
        self.all
    }
}

/// Names of processes: `mu#1`, `box#2`, counted for each program.
#[derive(Default)]
struct Names {
    names: BTreeMap<Pid, String>,
    counts: BTreeMap<String, u32>,
}

impl Names {
    fn add(&mut self, pid: Pid, argv0: &str) -> String {
        let base = argv0.rsplit('/').next().unwrap_or(argv0);
        let base = base.strip_prefix("mu-plugin-").unwrap_or(base).to_owned();
        let count = self.counts.entry(base.clone()).or_default();
        *count += 1;
        let name = format!("{base}#{count}");
        self.names.insert(pid, name.clone());
        name
    }

    fn of(&self, pid: Pid) -> String {
        match self.names.get(&pid) {
            Some(name) => name.clone(),
            None if pid == OUTSIDE => "world".to_owned(),
            None => format!("process {pid}"),
        }
    }

    fn is_mu(&self, pid: Pid) -> bool {
        self.names.get(&pid).is_some_and(|name| name.starts_with("mu#"))
    }

    fn line(&self, text: &mut Text, event: &Event, what: &str) {
        text.push(line(event, &self.of(event.pid), what));
    }
}

fn line(event: &Event, who: &str, what: &str) -> String {
    let (s, us) = (event.at / 1_000_000_000, event.at % 1_000_000_000 / 1_000);
    format!("{s:>4}.{us:06} {who:<9} {what}")
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

fn stream_name(stream: Std) -> &'static str {
    match stream {
        Std::In => "stdin",
        Std::Out => "stdout",
        Std::Err => "stderr",
    }
}

fn errno_name(errno: i32) -> String {
    format!("{:?}", nix::errno::Errno::from_raw(errno))
}
