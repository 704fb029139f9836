//! A trace as text for people: when, who, what. One line an event, names instead of numbers, only what matters to a
//! reader: starts and ends, signals, lines on the wire, faults.

use std::collections::BTreeMap;
use std::fmt::Write;

use mu_core::os::{Exit, Pid};

use crate::kernel::signal_name;

use super::{Effect, Event, OUTSIDE, PipeId, Std, Target, What};

/// Characters of a line that are shown.
const SHOWN: usize = 160;
/// How often a line may follow itself before the rest is only counted.
const ALIKE: usize = 3;

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
                Some(format!("starts {name} in {group}: {}", argv.join(" ")))
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
                let to = match pipe.role {
                    Some(role) if role.of == event.pid => format!("{}:", stream_name(role.stream)),
                    Some(role) => format!("to {}:", names.of(role.of)),
                    None => "to a pipe:".to_owned(),
                };
                for line in whole_lines(unfinished.entry(pipe.id).or_default(), bytes) {
                    names.line(&mut text, event, &format!("{to} {}", shown(&line)));
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
                    names.line(&mut text, event, &format!("half a line: {}", shown(&rest)));
                }
                (role.of != event.pid && role.stream == Std::In)
                    .then(|| format!("closes the stdin of {}", names.of(role.of)))
            }),
            What::WallStep(to) => Some(format!("the wall clock is stepped to {to} ms")),
            What::Suspend(span) => Some(format!("the machine sleeps for {} ms", span / 1_000_000)),
            What::PowerOff => Some("the power fails".to_owned()),
            What::Fault(name) => Some(format!("FAULT {name}")),
            What::Note(note) => Some(format!("({note})")),
            _ => None,
        };
        if let Some(what) = what {
            names.line(&mut text, event, &what);
        }
    }
    text.finish()
}

/// The lines so far. A flood of equal lines is counted and not repeated.
#[derive(Default)]
struct Text {
    text: String,
    last: String,
    /// How often the last line has followed itself.
    again: usize,
}

impl Text {
    fn push(&mut self, line: String) {
        if line == self.last {
            self.again += 1;
            return;
        }
        self.end_repetition();
        self.text.push_str(&line);
        self.last = line;
    }

    fn end_repetition(&mut self) {
        match std::mem::take(&mut self.again) {
            more if more < ALIKE => self.text.push_str(&self.last.repeat(more)),
            more => {
                writeln!(self.text, "{:22} … the same {more} times more", "").expect("a String takes all")
            }
        }
    }

    fn finish(mut self) -> String {
        self.end_repetition();
        self.text
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

    fn line(&self, text: &mut Text, event: &Event, what: &str) {
        let (s, us) = (event.at / 1_000_000_000, event.at % 1_000_000_000 / 1_000);
        text.push(format!("{s:>4}.{us:06} {:<9} {what}\n", self.of(event.pid)));
    }
}

fn whole_lines(unfinished: &mut Vec<u8>, bytes: &[u8]) -> Vec<Vec<u8>> {
    unfinished.extend_from_slice(bytes);
    let Some(end) = memchr::memrchr(b'\n', unfinished) else { return Vec::new() };
    let rest = unfinished.split_off(end + 1);
    let whole = std::mem::replace(unfinished, rest);
    whole[..end].split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Printable, on one line, and not too long.
fn shown(line: &[u8]) -> String {
    let escaped = line[..line.len().min(4 * SHOWN)].escape_ascii().to_string().replace("\\\"", "\"");
    match escaped.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}… ({} bytes)", &escaped[..cut], line.len()),
        None => escaped,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn after(times: usize) -> String {
        let mut text = Text::default();
        (0..times).for_each(|_| text.push("a\n".to_owned()));
        text.push("b\n".to_owned());
        text.finish()
    }

    #[test]
    fn a_flood_of_equal_lines_is_counted_and_a_few_are_shown() {
        assert_eq!(after(3), "a\na\na\nb\n");
        assert_eq!(after(1000).lines().count(), 3);
        assert!(after(1000).contains("the same 999 times more"));
    }

    #[test]
    fn a_flood_at_the_very_end_is_not_lost() {
        let mut text = Text::default();
        (0..9).for_each(|_| text.push("a\n".to_owned()));
        assert!(text.finish().contains("the same 8 times more"));
    }
}
