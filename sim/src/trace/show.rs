//! One line of text for each event, made only when somebody asks.

use std::fmt;

use super::{Effect, Event, OUTSIDE, PipeRef, Std, Target, What};
use crate::kernel::signal_name;

/// How many bytes of a write are shown.
const SHOWN: usize = 200;

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.at / 1_000_000_000, self.at % 1_000_000_000);
        write!(f, "{seconds:>6}.{nanos:09}  ")?;
        match self.pid {
            OUTSIDE => write!(f, "{:<8}", "-")?,
            pid => write!(f, "{:<8}", pid.0)?,
        }
        self.what.fmt(f)
    }
}

impl fmt::Display for Std {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Std::In => "stdin",
            Std::Out => "stdout",
            Std::Err => "stderr",
        })
    }
}

impl fmt::Display for PipeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            Some(role) => write!(f, "{} of {}", role.stream, role.of),
            None => write!(f, "pipe {}", self.id.0),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Process(pid) => pid.fmt(f),
            Target::Group(pid) => write!(f, "group {pid}"),
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Effect::Kills => "ends it",
            Effect::Stops => "stops it",
            Effect::Continues => "continues it",
            Effect::Handled => "reaches its handler",
            Effect::Ignored => "is ignored",
            Effect::Pending => "waits, the process is stopped",
        })
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Spawn { child, argv, group, session } => {
                write!(f, "starts {child} in group {group}, session {session}:")?;
                argv.iter().try_for_each(|argument| write!(f, " {}", argument.display()))
            }
            What::ExecFailed { program, errno } => {
                let reason = nix::errno::Errno::from_raw(*errno);
                write!(f, "cannot execute {}: {reason}", program.display())
            }
            What::Exit(exit) => write!(f, "exits with {exit}"),
            What::Panic(text) => write!(f, "panics: {text}"),
            What::Orphaned => f.write_str("is now a child of init"),
            What::Reap { child } => write!(f, "reaps {child}"),
            What::Signal { to, number } => write!(f, "sends {} to {to}", signal_name(*number)),
            What::Delivered { number, effect } => write!(f, "{} {effect}", signal_name(*number)),
            What::NewSession => f.write_str("leads a new session"),
            What::NewGroup(group) => write!(f, "moves to group {group}"),
            What::Write { pipe, bytes } => {
                write!(f, "writes {} bytes to {pipe}: ", bytes.len())?;
                let shown = &bytes[..bytes.len().min(SHOWN)];
                write!(f, "{}", shown.escape_ascii())?;
                if shown.len() < bytes.len() { f.write_str(" …") } else { Ok(()) }
            }
            What::Read { pipe, offset, count } => write!(f, "reads {count} bytes of {pipe} at {offset}"),
            What::Eof(pipe) => write!(f, "reads the end of {pipe}"),
            What::Broken(pipe) => write!(f, "writes to {pipe}, which nobody can read"),
            What::CloseRead(pipe) => write!(f, "closes its end for reading {pipe}"),
            What::CloseWrite(pipe) => write!(f, "closes its end for writing {pipe}"),
            What::Disk { number, kind, path, offset, len } => {
                write!(f, "disk operation {number}: {kind:?} {} at {offset}, {len}", path.display())
            }
            What::Jump => f.write_str("time has jumped"),
            What::WallStep(ms) => write!(f, "the wall clock is stepped to {ms} ms"),
            What::Suspend(span) => write!(f, "the machine slept for {span} ns"),
            What::PowerOff => f.write_str("the power fails"),
            What::Boot(id) => write!(f, "the machine starts, boot id {id:032x}"),
            What::Fault(text) => write!(f, "fault: {text}"),
            What::Note(text) => f.write_str(text),
            What::Backend(text) => write!(f, "backend: {text}"),
            What::Net(text) => write!(f, "network: {text}"),
        }
    }
}
