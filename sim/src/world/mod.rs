//! Where a scenario takes place: on the simulated machine, or on this one with real processes. The runner knows only
//! this trait, so that one file means the same in both.
//!
//! - `simulated`: a [`crate::kernel::Machine`] with mu and the fake plugins as its programs
//! - `points`: what happens at numbered calls and operations on the disk, and the list of them
//! - `backend`: a real backend process
//! - `rows`: what stands in mu's tables; `journal`: what stood there at each moment at which it changed
//! - `real`: a temporary directory, the real `mu` and the real fake-plugin executable

mod backend;
mod journal;
mod points;
mod real;
mod rows;
mod simulated;

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

use mu_core::os::Exit;

use crate::backend::{BackendTable, Books, Control};
use crate::fake::{Plan, PluginFile};
use crate::oracle::Excuses;
use crate::scenario::{Db, DiskError};

pub use backend::{RealBackend, books_file, control, control_socket, socket};
pub use points::{Act, Course, Deed, Spot, can_fail};
pub use real::{Executables, Real, with_default_signals};
pub use rows::Rows;
pub use simulated::Simulated;

/// What a new repository's HEAD holds.
const HEAD: &[u8] = b"ref: refs/heads/main\n";

/// The environment variable whose value must appear nowhere (SEC-01).
pub const CANARY: &str = "MU_PLUGIN_CANARY";

/// What to do to one of mu's calls on its operating system. Only a simulated machine can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtCall {
    /// SIGKILL instead of the call with this number.
    Kill(u64),
    /// A panic instead of it.
    Panic(u64),
    /// The power of the machine is cut just before it.
    PowerOff(u64),
}

/// What to do at one of mu's operations on the disk. Only a simulated machine can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtDisk {
    /// SIGKILL: the operation with this number and all after it never reach the disk.
    Kill(u64),
    /// The power of the machine is cut just before it.
    PowerOff(u64),
}

/// Something that happens to a machine while mu runs. Only to a simulated one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meanwhile {
    /// The wall clock steps by so many milliseconds.
    StepWall(i64),
    /// The machine sleeps so long: nothing runs and the monotonic clock stands still.
    Suspend(Duration),
    /// Another process holds the database so long.
    Lock(Duration),
}

impl fmt::Display for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Meanwhile::StepWall(by_ms) => write!(f, "the wall clock steps by {by_ms} ms"),
            Meanwhile::Suspend(span) => write!(f, "the machine sleeps {} ms", span.as_millis()),
            Meanwhile::Lock(span) => {
                write!(f, "another process holds the database for {} ms", span.as_millis())
            }
        }
    }
}

/// One start of mu.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The step that starts it, from 1.
    pub step: usize,
    /// `mu` and its arguments.
    pub argv: Vec<String>,
    /// Variables beside the usual ones; an empty value takes one away.
    pub env: Vec<(String, String)>,
    /// Signals from outside: when after the start, to whom (`mu`, or the plugin whose newest process gets it), which.
    pub signals: Vec<(Duration, String, i32)>,
    /// What happens to the machine: when after the start, and what.
    pub meanwhile: Vec<(Duration, Meanwhile)>,
    /// What happens at the backend and on the way to it: when after the start, and what.
    pub controls: Vec<(Duration, Control)>,
    /// What happens at one of its calls.
    pub at_call: Option<AtCall>,
    /// What happens at one of its operations on the disk.
    pub at_disk: Option<AtDisk>,
    /// The operation on the disk that fails.
    pub disk_error: Option<DiskError>,
    /// Plugins that are killed at their n-th act from now on.
    pub plugin_ends: Vec<(String, u64)>,
    /// Its stdout is closed after so many bytes.
    pub stdout_closed_after: Option<usize>,
}

/// How a start of mu ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How.
    pub exit: Exit,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it printed for people.
    pub stderr: Vec<u8>,
    /// From its start to its end.
    pub took: Duration,
}

/// Why a world cannot do what a scenario asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Cannot(pub String);

/// A place for scenarios.
pub trait World {
    /// What a placeholder of a command line stands for: a plugin's name, `dir`, `db` or `repo`.
    fn place(&self, what: &str) -> String;
    /// Installs a plugin's file, in place of the one before.
    fn install(&mut self, plugin: &str, file: &PluginFile) -> Result<(), Cannot>;
    /// Sets what it will do from its next start on.
    fn set_plan(&mut self, plugin: &str, plan: Plan) -> Result<(), Cannot>;
    /// Changes the permission bits of its file.
    fn chmod(&mut self, plugin: &str, mode: u32) -> Result<(), Cannot>;
    /// Does something to the database file.
    fn set_db(&mut self, db: Db) -> Result<(), Cannot>;
    /// What was ordered for this start of mu and did not come to pass, since its run was over before; one sentence each. To
    /// be asked when it has ended, before the end of its step.
    fn idle(&self, started: usize) -> Vec<String>;
    /// The runs of a step are over, and with them what lasts as long: a lock on the database that [`Db::Locked`] took, the
    /// wait for the act at which a plugin is to be killed.
    fn end_of_step(&mut self);
    /// Makes the repository: a directory, and in it `.git` with a HEAD.
    fn make_repo(&mut self) -> Result<(), Cannot>;
    /// Writes the repository's FETCH_HEAD.
    fn set_fetch_head(&mut self, text: &str) -> Result<(), Cannot>;
    /// What the repository's FETCH_HEAD holds; `None` when it is not there.
    fn fetch_head(&self) -> Option<Vec<u8>>;
    /// Lets there be a backend that behaves like this. Without it plugins find nobody, or one with its usual settings.
    fn set_backend(&mut self, table: &BackendTable) -> Result<(), Cannot>;
    /// Does something to the backend, to its hosts or to the way to it.
    fn control(&mut self, control: &Control) -> Result<(), Cannot>;
    /// What the backend has in its books.
    fn books(&self) -> Result<Books, Cannot>;
    /// What stands in mu's tables. `Err`: the database cannot be read, and why.
    fn rows(&self) -> Result<Rows, String>;
    /// Cuts the power of mu's machine and starts it again.
    fn reboot(&mut self) -> Result<(), Cannot>;
    /// Hands out process ids from the first on again.
    fn recycle(&mut self) -> Result<(), Cannot>;
    /// Starts mu; the answer is the number of the start, from 0.
    fn start(&mut self, run: &Run) -> Result<usize, Cannot>;
    /// Waits for its end. `Err` is a report of why it does not come.
    fn finish(&mut self, started: usize) -> Result<Outcome, String>;
    /// Kills everybody who lives on mu's machine.
    fn end_all(&mut self) -> Result<(), Cannot>;
    /// Why the database is not sound, or mu's rows and the machines behind the plugins do not agree; nothing when all is
    /// well.
    fn unconverged(&mut self, excuses: Excuses) -> Result<Vec<String>, Cannot>;
    /// Lets time pass.
    fn advance(&mut self, span: Duration);
    /// Steps the wall clock by so many milliseconds.
    fn step_wall(&mut self, by_ms: i64) -> Result<(), Cannot>;
    /// How many processes of the plugin there have been.
    fn starts(&self, plugin: &str) -> usize;
    /// The methods of the lines that each process of the plugin has read, in order; `?` for a line without one.
    fn wire(&self, plugin: &str) -> Vec<Vec<String>>;
    /// Names of the plugin's faults that have taken effect.
    fn fired(&self, plugin: &str) -> Vec<String>;
}

/// The method of a line that mu wrote.
fn method_of(line: &[u8]) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(line).ok();
    json.and_then(|json| json.get("method")?.as_str().map(str::to_owned)).unwrap_or_else(|| "?".to_owned())
}

/// The usual variables of mu, with those of a step beside or instead of them.
fn environment(usual: &[(&str, &str)], more: &[(String, String)]) -> Vec<(OsString, OsString)> {
    let kept = usual.iter().filter(|(name, _)| more.iter().all(|(other, _)| other != name));
    let kept = kept.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let added = more.iter().filter(|(_, value)| !value.is_empty());
    kept.chain(added.map(|(name, value)| (OsString::from(name), OsString::from(value)))).collect()
}
