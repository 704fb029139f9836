//! Why a plugin could not be started: the reason and what to do, in one line.

use std::fmt;
use std::io;

use mu_protocol::first_line;
use mu_protocol::load::LoadRefusal;

use crate::cli::text;
use crate::os::{Exit, Signal};
use crate::session::{Break, BreakReason, Cause, Ending, HANDSHAKE};
use crate::trust::Untrusted;

/// A start that failed. `Display` is one line, without the plugin's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartError {
    /// The file may not be run (REG-03 to REG-08).
    Untrusted(Untrusted),
    /// A load rule refused the declaration (LOAD, A-71).
    Refused(LoadRefusal),
    /// There was no valid answer to `initialize`.
    Failed(Failure),
    /// A terminating signal came first (PRC-09).
    Interrupted(Signal),
}

/// What happened instead of a valid answer to `initialize`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The system could not execute the file.
    Exec {
        /// The path.
        argv0: String,
        /// The reason and what to do.
        reason: String,
    },
    /// It sent an invalid message (TRN-14 to TRN-18).
    Broken {
        /// Which line, and what is wrong.
        what: Break,
        /// What it seems to speak instead of the protocol.
        hint: Option<first_line::Hint>,
        /// First line of its stderr.
        stderr: Option<String>,
    },
    /// Nothing came in time (HSK-08).
    Silent {
        /// Bytes that came in time, none of them ending a line.
        stdout_bytes: u64,
        /// Bytes that came once stdin was closed.
        late_bytes: u64,
        /// First line of its stderr.
        stderr: Option<String>,
    },
    /// It ended, or closed its stdout, before it answered.
    Ended {
        /// Whether stdout ended while the leader still ran, or seemed to.
        stdout_closed: bool,
        /// How the leader ended.
        exit: Exit,
        /// It lived on, and was killed at the end of the grace.
        killed: bool,
        /// Bytes that came, none of them ending a line.
        stdout_bytes: u64,
        /// First line of its stderr.
        stderr: Option<String>,
    },
}

impl StartError {
    /// Reads the reason off the ending of a process that never became ready.
    pub fn from_ending(ending: &Ending) -> StartError {
        let stderr = ending.stderr.text();
        let failure = match &ending.cause {
            Cause::Refused(refusal) => return StartError::Refused(refusal.clone()),
            Cause::Signal(signal) => return StartError::Interrupted(*signal),
            Cause::Broken(what) => {
                let hint = match &what.reason {
                    BreakReason::Invalid(invalid) if what.line == 1 => {
                        first_line::diagnose(&ending.first_bytes, invalid)
                    }
                    _ => None,
                };
                Failure::Broken { what: what.clone(), hint, stderr }
            }
            Cause::HandshakeDeadline => {
                let Ending { stdout_bytes, late_bytes, .. } = *ending;
                Failure::Silent { stdout_bytes, late_bytes, stderr }
            }
            Cause::StdoutClosed
            | Cause::LeaderExited
            | Cause::Done
            | Cause::Deadline { .. }
            | Cause::Cancelled { .. } => Failure::Ended {
                stdout_closed: matches!(ending.cause, Cause::StdoutClosed),
                exit: ending.exit,
                killed: ending.grace_over,
                stdout_bytes: ending.stdout_bytes,
                stderr,
            },
        };
        StartError::Failed(failure)
    }

    /// 4 for what trust checks and load rules refuse, 5 for a plugin that failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            StartError::Untrusted(_) | StartError::Refused(_) => 4,
            StartError::Failed(_) => 5,
            StartError::Interrupted(signal) => 128 + signal.number() as u8,
        }
    }
}

impl From<Untrusted> for StartError {
    fn from(untrusted: Untrusted) -> StartError {
        StartError::Untrusted(untrusted)
    }
}

impl Failure {
    /// An error of `execve`, explained.
    pub fn exec(argv0: &str, error: &io::Error) -> Failure {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => {
                "the file or the interpreter named in its first line does not exist; check the `#!` line"
                    .into()
            }
            io::ErrorKind::PermissionDenied => "it is not executable; run chmod u+x on it".into(),
            io::ErrorKind::ExecutableFileBusy => {
                "it is still open for writing after a second of waiting; finish the copy and try again".into()
            }
            _ if error.raw_os_error() == Some(8) => {
                "it is no program that this system can run; check its format or add a `#!` line".into()
            }
            _ => format!("{error}"),
        };
        Failure::Exec { argv0: argv0.to_owned(), reason }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Untrusted(untrusted) => untrusted.fmt(f),
            StartError::Refused(refusal) => refusal.fmt(f),
            StartError::Failed(failure) => failure.fmt(f),
            StartError::Interrupted(signal) => {
                write!(f, "{} came before it was ready; it was stopped", signal.name())
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stderr = match self {
            Failure::Exec { argv0, reason } => {
                return write!(f, "cannot execute {}: {reason}", text::path(argv0));
            }
            Failure::Broken { what, hint, stderr } => {
                match hint {
                    Some(hint) => write!(f, "{what}; {hint}")?,
                    None => write!(f, "{what}; stdout is for the protocol only, one JSON object a line")?,
                }
                stderr
            }
            Failure::Silent { stdout_bytes, late_bytes, stderr } => {
                let seconds = HANDSHAKE.as_secs();
                match (*stdout_bytes, *late_bytes) {
                    (0, 0) => write!(f, "nothing came on its stdout within {seconds} s of initialize")?,
                    (0, late) => write!(
                        f,
                        "nothing came within {seconds} s of initialize, and {late} bytes once stdin was closed; flush after each line"
                    )?,
                    (seen, _) => write!(
                        f,
                        "{seen} bytes but no end of line came within {seconds} s of initialize; end each message with a newline"
                    )?,
                }
                stderr
            }
            Failure::Ended { stdout_closed, exit, killed, stdout_bytes, stderr } => {
                let ended = match exit {
                    _ if *killed => "had to be killed".to_owned(),
                    Exit::Status(status) => format!("exited with status {status}"),
                    Exit::Signal(number) => format!("was ended by {}", signal_name(*number)),
                };
                match (*stdout_closed, *killed) {
                    (true, true) => {
                        write!(f, "it closed its stdout before it answered initialize, and {ended}")?
                    }
                    // The end of a process shows as the end of its stdout first: which of the two it was is not known.
                    (true, false) => {
                        write!(f, "its stdout ended before it answered initialize, and it {ended}")?
                    }
                    (false, _) => write!(f, "it {ended} before it answered initialize")?,
                }
                match stdout_bytes {
                    0 => write!(f, "; nothing came on its stdout")?,
                    seen => write!(f, "; {seen} bytes but no end of line came on its stdout")?,
                }
                stderr
            }
        };
        match stderr {
            Some(line) => write!(f, "; its stderr begins: {line}"),
            None => Ok(()),
        }
    }
}

/// A signal by its number and, for those with one number on every Unix, its name.
pub(crate) fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {number}"),
    };
    format!("signal {number} ({name})")
}
