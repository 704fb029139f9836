//! The types of a scenario file. Each key is a field; `docs/scenarios.md` explains them to authors.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::backend::{BackendAt, BackendTable, Counts, NetAt};
use crate::fake::{Fault, Mode, PluginFile, PluginTable, Sig};

/// A whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What happens, in one line.
    pub title: String,
    /// Why it matters, or how it came up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The ids of the rules that it shows, at least one.
    pub rules: Vec<String>,
    /// The seed of everything that is drawn; 0 when left out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seed: u64,
    /// One read, or long write, in so many takes less than it could; none does when left out. A real machine does as it
    /// likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_io: Option<u64>,
    /// mu has run here before: its database is there, with all tables and no rows.
    #[serde(default, skip_serializing_if = "is_default")]
    pub used: bool,
    /// mu's connections to its database are taken from a pool where the disk cannot tell. For many runs in little time; a
    /// real machine has none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pooled: bool,
    /// Whether it runs on real processes too; it does when left out.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub real: bool,
    /// The reason, when it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not_real: Option<String>,
    /// The plugins that are installed before the first step, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plugins: BTreeMap<String, PluginTable>,
    /// The backend behind the plugins that provide hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendTable>,
    /// What goes wrong in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// One step: changes to the world, then a run of mu, then what must have come of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Permission bits of plugins' files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub chmod: BTreeMap<String, Mode>,
    /// Files that are installed in place of those of plugins.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub file: BTreeMap<String, PluginFile>,
    /// Plugins that declare something else from now on; the table replaces the plugin's, its file stays.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plan: BTreeMap<String, PluginTable>,
    /// What is done to the database file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub db: Option<Db>,
    /// Milliseconds that pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advance_ms: Option<u64>,
    /// Milliseconds by which the wall clock steps, back if negative. No time passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_step_ms: Option<i64>,
    /// What is done to the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<Repo>,
    /// How the backend behaves from now on; what is left out stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_set: Option<BackendTable>,
    /// What happens to hosts at the backend, before the run or meanwhile.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "write_one_or_many",
        deserialize_with = "one_or_many"
    )]
    pub backend_do: Vec<BackendAt>,
    /// What happens to the network between plugins and backend, before the run or meanwhile.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "write_one_or_many",
        deserialize_with = "one_or_many"
    )]
    pub net: Vec<NetAt>,
    /// The power of mu's machine is cut and it starts again, before all else in this step.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reboot: bool,
    /// Process ids are handed out from the first on again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recycle: bool,
    /// From this step on no fault takes effect in any plugin that starts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub calm: bool,
    /// Everybody who lives on mu's machine is killed before the run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub end_all: bool,
    /// The command line. `{name}` is the path of that plugin's file, `{dir}` the directory of the plugins, `{db}` the
    /// database file, `{repo}` a git repository, `{key}` the key of the one open effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Variables beside those that mu has anyway; an empty value takes one away.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The next step begins at once, while this one runs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overlap: bool,
    /// Signals that are sent meanwhile.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "write_one_or_many",
        deserialize_with = "one_or_many"
    )]
    pub signal: Vec<SignalAt>,
    /// What happens to the clocks of the machine meanwhile.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "write_one_or_many",
        deserialize_with = "one_or_many"
    )]
    pub world: Vec<WorldAt>,
    /// mu is killed at the n-th call to its operating system, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill_at_call: Option<u64>,
    /// mu panics at that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panic_at_call: Option<u64>,
    /// mu is killed at its n-th disk operation, counted from 1: neither this one nor a later one takes place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill_at_disk: Option<u64>,
    /// The power of mu's machine is cut at mu's n-th call to its operating system, and it starts again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_at_call: Option<u64>,
    /// The power is cut at mu's n-th disk operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_at_disk: Option<u64>,
    /// What the disk answers to mu at one of its operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_error: Option<DiskError>,
    /// Plugins that are killed at their n-th act since the step's start, counted from 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kill_plugin_at: BTreeMap<String, u64>,
    /// Nobody reads mu's standard output.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stdout_closed: bool,
    /// The status that mu exits with; any when neither this nor `died_of` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
    /// The signal that mu dies of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub died_of: Option<Sig>,
    /// The name of the error in the envelope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the envelope holds, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub json: BTreeMap<String, toml::Value>,
    /// Paths at which the envelope holds nothing, or null.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_absent: Vec<String>,
    /// mu's standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<Text>,
    /// mu's standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Text>,
    /// mu ends within so many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_ms: Option<u64>,
    /// mu takes from the first to the second number of milliseconds, both included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<(u64, u64)>,
    /// What plugins received in this step.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "write_one_or_many",
        deserialize_with = "one_or_many"
    )]
    pub wire: Vec<Wire>,
    /// How often plugins were started in this step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub starts: BTreeMap<String, u32>,
    /// What the repository's `.git/FETCH_HEAD` holds somewhere; `absent`: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch_head: Option<String>,
    /// What stands in the backend's books.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "write_one_or_many",
        deserialize_with = "one_or_many"
    )]
    pub backend: Vec<Counts>,
    /// How many rows mu's table of effects has; none when there is no database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<u32>,
    /// The hosts that plugins provide, by name, and their states in mu's table of them; these and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<BTreeMap<String, RecordState>>,
    /// The database is sound, and from here on mu's rows and the machines behind the plugins agree.
    #[serde(default, skip_serializing_if = "is_default")]
    pub converged: bool,
}

/// An operation on the disk that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskError {
    /// Which of mu's, counted from 1.
    pub at: u64,
    /// What the system answers.
    pub errno: DiskErrno,
    /// From there on every operation fails that can fail like this, of every process, until `db = "restored"`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stays: bool,
}

/// An error number of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DiskErrno {
    /// No room: writes alone fail.
    #[serde(rename = "ENOSPC")]
    NoSpace,
    /// The disk is broken.
    #[serde(rename = "EIO")]
    Broken,
}

impl DiskErrno {
    /// Both.
    pub const ALL: [DiskErrno; 2] = [DiskErrno::NoSpace, DiskErrno::Broken];

    /// As the system names it.
    pub fn name(self) -> &'static str {
        match self {
            DiskErrno::NoSpace => "ENOSPC",
            DiskErrno::Broken => "EIO",
        }
    }
}

/// The state of a host record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordState {
    /// Its acquire has no outcome yet.
    Acquiring,
    /// It can be used.
    Ready,
    /// Its release has no outcome yet.
    Releasing,
    /// It is proved to exist no longer.
    Lost,
}

impl RecordState {
    /// All of them.
    pub const ALL: [RecordState; 4] =
        [RecordState::Acquiring, RecordState::Ready, RecordState::Releasing, RecordState::Lost];

    /// Its name, in a scenario and in the database.
    pub fn name(self) -> &'static str {
        match self {
            RecordState::Acquiring => "acquiring",
            RecordState::Ready => "ready",
            RecordState::Releasing => "releasing",
            RecordState::Lost => "lost",
        }
    }
}

/// What a stream must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// Each of these somewhere.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "write_one_or_many",
        deserialize_with = "one_or_many"
    )]
    pub contains: Vec<String>,
    /// None of these anywhere.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "write_one_or_many",
        deserialize_with = "one_or_many"
    )]
    pub not_contains: Vec<String>,
    /// So many lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<usize>,
}

/// A signal on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalAt {
    /// `mu`, or the plugin whose newest process gets it.
    #[serde(default = "to_mu")]
    pub to: String,
    /// Which.
    pub what: Sig,
    /// Milliseconds from the step's start.
    pub at_ms: u64,
}

/// Something that happens to the machine at its time; one of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldAt {
    /// Milliseconds by which the wall clock steps, back if negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_step_ms: Option<i64>,
    /// Milliseconds for which the machine sleeps: nothing runs and the monotonic clock stands still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend_ms: Option<u64>,
    /// Milliseconds for which another process holds the database, unless somebody else holds it at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_ms: Option<u64>,
    /// Milliseconds from the step's start.
    pub at_ms: u64,
}

/// What is done to the repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repo {
    /// What `.git/FETCH_HEAD` holds from now on.
    pub fetch_head: String,
}

/// The lines that a plugin received in a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// The plugin.
    pub plugin: String,
    /// Only those of this start, counted over the whole scenario; of every start when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u32>,
    /// Their methods, in order and with none beside them.
    pub methods: Vec<String>,
}

/// What is done to the database file between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Db {
    /// Removed, with its companions.
    Missing,
    /// Overwritten with bytes that are no database.
    Garbage,
    /// Marked as written by a newer mu.
    Newer,
    /// Mode 0400, in a directory that cannot be written.
    ReadOnly,
    /// Mode 0400, in a directory that can be written.
    ReadOnlyFile,
    /// Mode 0000.
    Unreadable,
    /// A directory in its place.
    Directory,
    /// The disk has no room left.
    Full,
    /// Another process holds the write lock throughout the step.
    Locked,
    /// What was done before is undone: writable, readable, with room, unlocked.
    Restored,
}

impl Db {
    /// All of them.
    pub const ALL: [Db; 10] = [
        Db::Missing,
        Db::Garbage,
        Db::Newer,
        Db::ReadOnly,
        Db::ReadOnlyFile,
        Db::Unreadable,
        Db::Directory,
        Db::Full,
        Db::Locked,
        Db::Restored,
    ];
}

fn yes() -> bool {
    true
}

fn is_true(flag: &bool) -> bool {
    *flag
}

fn to_mu() -> String {
    "mu".to_owned()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A list, or one of its elements alone.
fn one_or_many<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct OneOrMany<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("one, or a list")
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<T>, E> {
            Ok(vec![T::deserialize(text.into_deserializer())?])
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
            Ok(vec![T::deserialize(MapAccessDeserializer::new(map))?])
        }
        fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Vec<T>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(seq))
        }
    }
    deserializer.deserialize_any(OneOrMany(PhantomData))
}

fn write_one_or_many<S: Serializer, T: Serialize>(list: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    match list {
        [one] => one.serialize(serializer),
        list => list.serialize(serializer),
    }
}
