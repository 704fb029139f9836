//! The backend's executable on real processes: the fake plugin reaches it, orders are obeyed, it ends when it should.
// Real processes are what is tested here; nothing of mu's runs.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use mu_sim::backend::{BackendAt, BackendDeed, BackendTable, Books, Control, Counts, NetAt, NetDeed};
use mu_sim::fake::{Act, Fault, Plan, PluginTable, When};
use mu_sim::world::{RealBackend, books_file, socket};
use serde_json::{Value, json};

/// A plugin `box` and its backend, in a directory of their own.
struct World {
    backend: RealBackend,
    dir: tempfile::TempDir,
}

impl World {
    fn new(table: &BackendTable, faults: &[Fault]) -> World {
        let dir = tempfile::tempdir().unwrap();
        let backend = RealBackend::start(executable(), &dir.path().join("backend")).unwrap();
        backend.control(&Control::Set(table.clone())).unwrap();
        let mut plan = Plan::new("box", &PluginTable::default(), faults, "sha256:00").unwrap();
        plan.backend = Some(socket(&dir.path().join("backend")));
        std::fs::write(dir.path().join("mu-plugin-box.plan.json"), plan.to_json()).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_mu-fake-plugin"), dir.path().join("mu-plugin-box"))
            .unwrap();
        World { backend, dir }
    }

    fn plugin(&self) -> Plugin {
        let mut command = Command::new(self.dir.path().join("mu-plugin-box"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Plugin { child, stdin, stdout }
    }

    fn net(&self, deed: NetDeed, ms: Option<u64>) {
        self.backend.control(&Control::Net(NetAt { deed, at_ms: 0, ms })).unwrap();
    }

    fn books(&self) -> Books {
        self.backend.control(&Control::Books).unwrap()
    }

    #[track_caller]
    fn has(&self, hosts: usize, ever: usize) {
        let counts = Counts { hosts: Some(hosts), ever: Some(ever), ..Counts::default() };
        assert_eq!(self.books().mismatches(&counts), [""; 0]);
    }
}

fn executable() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_mu-fake-backend"))
}

struct Plugin {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Plugin {
    fn send(&mut self, id: u64, method: &str, handle: Option<&str>, own: &Value) {
        let mut params = json!({ "deadline": 1, "target": { "host": { "name": "h" } } });
        if let Some(handle) = handle {
            params["target"]["host"]["handle"] = json!(handle);
            params["target"]["host"]["instance"] = json!("test");
        }
        params.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.stdin.as_mut().unwrap().write_all(format!("{request}\n").as_bytes()).unwrap();
    }

    fn reply(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn call(&mut self, method: &str, handle: Option<&str>, own: &Value) -> Value {
        self.send(2, method, handle, own);
        self.reply()
    }

    fn acquire(&mut self, key: &str) -> Value {
        self.call("host.acquire", None, &json!({ "key": key, "params": {} }))
    }

    fn ends(mut self) {
        drop(self.stdin.take());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

fn kind(reply: &Value) -> &str {
    reply["error"]["data"]["kind"].as_str().unwrap_or("none")
}

/// Waits until it holds; a few seconds at most.
#[track_caller]
fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// HOST-05 to HOST-08, EFF-18, HOST-03
#[test]
fn a_plugin_asks_it_for_hosts() {
    let world = World::new(&BackendTable { max_jobs: Some(3), ..BackendTable::default() }, &[]);
    let mut plugin = world.plugin();
    assert_eq!(plugin.acquire("k")["result"], json!({ "handle": "vm-1", "maxJobs": 3 }));
    plugin.ends();
    let mut plugin = world.plugin();
    assert_eq!(plugin.acquire("k")["result"]["handle"], "vm-1");
    let lookup = plugin.call("host.lookup", None, &json!({ "key": "k", "fence": true }));
    assert_eq!(lookup["result"]["found"]["handle"], "vm-1");
    assert_eq!(plugin.call("host.status", Some("vm-1"), &json!({}))["result"]["state"], "up");
    let script = json!({ "script": "echo here", "cwd": ".", "timeoutMs": 1000 });
    assert_eq!(plugin.call("link.exec", Some("vm-1"), &script)["result"]["stdout"], "here\n");
    world.has(1, 1);
    let released = plugin.call("host.release", Some("vm-1"), &json!({ "key": "r" }));
    assert_eq!(released, json!({ "jsonrpc": "2.0", "id": 2, "result": null }));
    assert_eq!(kind(&plugin.call("link.exec", Some("vm-1"), &script)), "permanent");
    world.has(0, 1);
    plugin.ends();
}

/// EFF-15
#[test]
fn an_acquire_lands_when_its_plugin_is_dead_unless_a_fence_comes_first() {
    let table = BackendTable { land_ms: Some(300), ..BackendTable::default() };
    let world = World::new(&table, &[]);
    for (key, fence) in [("a", false), ("b", true)] {
        let mut plugin = world.plugin();
        plugin.send(2, "host.acquire", None, &json!({ "key": key, "params": {} }));
        soon("the question arrives", || {
            let books = world.books();
            books.ledgers.values().any(|ledger| ledger.accepted.iter().any(|one| one.key == key))
        });
        plugin.child.kill().unwrap();
        plugin.child.wait().unwrap();
        let mut next = world.plugin();
        let none = next.call("host.lookup", None, &json!({ "key": key, "fence": fence }));
        assert_eq!(none["result"], json!({ "none": true }), "{key}");
        next.ends();
    }
    soon("the first lands", || !world.books().ledgers["test"].machines.is_empty());
    std::thread::sleep(Duration::from_millis(400));
    world.has(1, 1);
    assert_eq!(world.books().ledgers["test"].machines[0].key, "a");
}

/// ERR-01, ERR-04, ERR-06
#[test]
fn a_cut_before_the_question_and_one_after_it() {
    let world = World::new(&BackendTable { acquire_ms: Some(500), ..BackendTable::default() }, &[]);
    let mut plugin = world.plugin();
    world.net(NetDeed::Partition, None);
    let begun = Instant::now();
    assert_eq!(kind(&plugin.acquire("k")), "retryable");
    assert!((2_900..6_000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    world.net(NetDeed::Heal, None);
    // What came too late is nothing.
    world.has(0, 0);
    plugin.send(2, "host.acquire", None, &json!({ "key": "k", "params": {} }));
    soon("the question arrives", || !world.books().ledgers.is_empty());
    world.net(NetDeed::Reset, None);
    assert_eq!(kind(&plugin.reply()), "unknown-outcome");
    soon("it takes effect", || !world.books().ledgers["test"].machines.is_empty());
    world.net(NetDeed::Delay, Some(50));
    let begun = Instant::now();
    assert_eq!(plugin.acquire("k")["result"]["handle"], "vm-1");
    assert!(begun.elapsed().as_millis() >= 100, "{:?}", begun.elapsed());
    plugin.ends();
}

/// HOST-11
#[test]
fn silence_is_no_answer() {
    let world = World::new(&BackendTable { release_ms: Some(500), ..BackendTable::default() }, &[]);
    let mut plugin = world.plugin();
    plugin.acquire("k");
    plugin.send(2, "host.release", Some("vm-1"), &json!({ "key": "r" }));
    soon("the question arrives", || !world.books().ledgers["test"].releases.is_empty());
    world.net(NetDeed::ToPlugin, None);
    let begun = Instant::now();
    assert_eq!(kind(&plugin.reply()), "unknown-outcome");
    assert!((7_000..12_000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    world.has(0, 1);
    plugin.ends();
}

#[test]
fn without_a_backend_nothing_has_happened() {
    let world = World::new(&BackendTable::default(), &[]);
    let mut plugin = world.plugin();
    drop(world.backend);
    assert_eq!(kind(&plugin.acquire("k")), "retryable");
    plugin.ends();
}

#[test]
fn faults_lie_around_the_effect() {
    let at =
        |when, act| Fault { on: Some("host.acquire".to_owned()), when: Some(when), ..Fault::new("box", act) };
    for (when, ever) in [(When::BeforeEffect, 0), (When::AfterEffect, 1)] {
        let world = World::new(&BackendTable::default(), &[at(when, Act::Exit(3))]);
        let mut plugin = world.plugin();
        plugin.send(2, "host.acquire", None, &json!({ "key": "k", "params": {} }));
        assert_eq!(plugin.child.wait().unwrap().code(), Some(3));
        world.has(ever, ever);
    }
}

#[test]
fn what_is_done_to_a_host_shows() {
    let world = World::new(&BackendTable::default(), &[]);
    let mut plugin = world.plugin();
    plugin.acquire("k");
    let lose = BackendAt {
        deed: BackendDeed::Lose,
        host: "h".to_owned(),
        at_ms: 0,
        deadline_ms: None,
        idle_reclaim_ms: None,
        max_jobs: None,
        fact: None,
    };
    world.backend.control(&Control::Do(lose.clone())).unwrap();
    assert_eq!(plugin.call("host.status", Some("vm-1"), &json!({}))["result"]["state"], "gone");
    let books = world.backend.control(&Control::Do(lose)).unwrap();
    assert_eq!(books.missed.len(), 1);
    plugin.ends();
}

#[test]
fn its_books_can_be_read_when_it_is_gone() {
    let world = World::new(&BackendTable::default(), &[]);
    let mut plugin = world.plugin();
    plugin.acquire("k");
    // Whoever has an answer finds what it says in the file.
    let file = books_file(&world.dir.path().join("backend"));
    let written: Books = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(written.ledgers["test"].machines.len(), 1);
    let pid = world.backend.pid();
    drop(world.backend);
    assert!(!lives(pid));
    plugin.ends();
}

/// A backend that nobody kills.
fn orphan(dir: &Path) -> Child {
    let child = Command::new(executable()).arg(dir).stdin(Stdio::piped()).spawn().unwrap();
    soon("it comes up", || mu_sim::world::control(dir, &Control::Books).is_ok());
    child
}

#[test]
fn it_ends_with_its_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = orphan(dir.path());
    assert!(child.try_wait().unwrap().is_none());
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn it_ends_with_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = orphan(dir.path());
    drop(dir);
    soon("it ends", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn without_a_directory_it_says_so() {
    let output = Command::new(executable()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let nowhere = Command::new(executable()).arg(PathBuf::from("/nowhere/at/all")).output().unwrap();
    assert_eq!(nowhere.status.code(), Some(1), "{nowhere:?}");
}
