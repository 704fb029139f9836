//! The host seam of the fake plugin through the network to the backend and back, on the simulated machine. Whoever asks is a
//! program of this test in the place of mu.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use mu_core::os::{Exec, Exit};
use mu_protocol::schema::SCHEMA;
use mu_sim::backend::{BackendAt, BackendDeed, BackendTable, Books, Control, Counts, NetAt, NetDeed};
use mu_sim::fake::{Plan, PluginFile, PluginTable, schema_digest};
use mu_sim::kernel::{Fd, Give, Group, Options, STDERR, STDIN, STDOUT, Spawn, Sys};
use mu_sim::play::{self, Finding, Setting};
use mu_sim::scenario::{Scenario, is_rule};
use mu_sim::trace::Digest;
use mu_sim::world::{Run, Simulated, World};
use serde_json::{Value, json};

const HOUR: Duration = Duration::from_secs(3_600);

/// A machine with the plugin `cloud`, and its backend.
fn world(seed: u64, table: &BackendTable) -> Simulated {
    let mut world = Simulated::new(Options::new(seed));
    let seams: PluginTable = toml::from_str("seams = ['link', 'host', 'job']").unwrap();
    let plan = Plan::new("cloud", &seams, &[], &schema_digest(SCHEMA.as_bytes())).unwrap();
    world.install("cloud", &PluginFile::default()).unwrap();
    world.set_plan("cloud", plan).unwrap();
    world.set_backend(table).unwrap();
    world
}

/// The plugin, as somebody sees it who has started it.
struct Cloud {
    sys: Sys,
    path: String,
    stdin: Fd,
    stdout: Fd,
    unread: Vec<u8>,
    id: u64,
}

impl Cloud {
    fn start(sys: Sys, path: &str) -> Cloud {
        let exec = Exec { argv: vec![path.into()], env: Vec::new() };
        let fds = [(STDIN, Give::Pipe), (STDOUT, Give::Pipe), (STDERR, Give::Null)];
        let spawn = Spawn { exec: &exec, group: Group::Own, fds: &fds, cwd: None, defaults: &[] };
        let pipes = sys.spawn(&spawn).unwrap().pipes;
        Cloud { sys, path: path.to_owned(), stdin: pipes[0], stdout: pipes[1], unread: Vec::new(), id: 0 }
    }

    /// Another process of it; this one hears the end of its stdin.
    fn next(self) -> Cloud {
        self.sys.close(self.stdin).unwrap();
        Cloud::start(self.sys.clone(), &self.path)
    }

    async fn send(&mut self, method: &str, handle: Option<&str>, own: Value) {
        self.id += 1;
        let mut host = json!({ "name": "box" });
        if let Some(handle) = handle {
            host = json!({ "name": "box", "handle": handle, "instance": "test" });
        }
        let mut params = json!({ "deadline": 1, "target": { "host": host } });
        params.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        let request = json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params });
        self.sys.write_all(self.stdin, format!("{request}\n").as_bytes()).await.unwrap();
    }

    /// The next reply: its result, or the kind of its error.
    async fn reply(&mut self) -> Result<Value, String> {
        let end = loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                break end;
            }
            let mut buffer = [0; 4096];
            let count = self.sys.read(self.stdout, &mut buffer).await.unwrap();
            assert_ne!(count, 0, "the plugin is gone");
            self.unread.extend_from_slice(&buffer[..count]);
        };
        let rest = self.unread.split_off(end + 1);
        let line = std::mem::replace(&mut self.unread, rest);
        let reply: Value = serde_json::from_slice(&line).unwrap();
        match reply.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(reply["error"]["data"]["kind"].as_str().unwrap().to_owned()),
        }
    }

    async fn call(&mut self, method: &str, handle: Option<&str>, own: Value) -> Result<Value, String> {
        self.send(method, handle, own).await;
        self.reply().await
    }

    async fn acquire(&mut self, key: &str) -> Result<Value, String> {
        self.call("host.acquire", None, json!({ "key": key, "params": {} })).await
    }

    async fn lookup(&mut self, key: &str, fence: bool) -> Value {
        self.call("host.lookup", None, json!({ "key": key, "fence": fence })).await.unwrap()
    }

    async fn status(&mut self, handle: &str) -> Value {
        self.call("host.status", Some(handle), json!({})).await.unwrap()
    }

    async fn release(&mut self, handle: &str) -> Result<Value, String> {
        self.call("host.release", Some(handle), json!({ "key": "release" })).await
    }

    async fn exec(&mut self, handle: &str) -> Result<Value, String> {
        let own = json!({ "script": "echo here", "cwd": ".", "timeoutMs": 20_000 });
        self.call("link.exec", Some(handle), own).await.map(|run| run["stdout"].clone())
    }

    async fn until(&self, ms: u64) {
        self.sys.sleep_until(mu_core::os::Mono(Duration::from_millis(ms))).await;
    }

    fn now_ms(&self) -> u64 {
        self.sys.now().0.as_millis() as u64
    }
}

/// Lets `program` talk to the plugin, while these things happen at their milliseconds.
fn begin<T: 'static>(
    world: &mut Simulated,
    controls: Vec<(u64, Control)>,
    program: impl AsyncFnOnce(Cloud) -> T + 'static,
) -> Rc<RefCell<Option<T>>> {
    let (path, answer) = (world.place("cloud"), Rc::new(RefCell::new(None)));
    let slot = Rc::clone(&answer);
    world.run_instead(|sys| async move {
        let told = program(Cloud::start(sys, &path)).await;
        slot.replace(Some(told));
        Exit::Status(0)
    });
    let (first, later): (Vec<_>, Vec<_>) = controls.into_iter().partition(|(ms, _)| *ms == 0);
    first.iter().for_each(|(_, what)| world.control(what).unwrap());
    let controls = later.into_iter().map(|(ms, what)| (Duration::from_millis(ms), what)).collect();
    world.start(&Run { argv: vec!["mu".to_owned()], controls, ..Run::default() }).unwrap();
    answer
}

/// The same, until it has ended; with the time that it took, and with the books as they stand an hour later.
fn lived<T: 'static>(
    table: &BackendTable,
    controls: Vec<(u64, Control)>,
    program: impl AsyncFnOnce(Cloud) -> T + 'static,
) -> (T, Books) {
    let mut world = world(0, table);
    let answer = begin(&mut world, controls, program);
    world.finish(0).unwrap();
    world.advance(HOUR);
    let told = answer.take().expect("it has ended");
    (told, world.backend())
}

fn counts(hosts: usize, ever: usize) -> Counts {
    Counts { hosts: Some(hosts), ever: Some(ever), ..Counts::default() }
}

fn net(at_ms: u64, deed: NetDeed) -> (u64, Control) {
    (at_ms, Control::Net(NetAt { deed, at_ms, ms: None }))
}

fn vm(number: u32) -> Result<Value, String> {
    Ok(json!({ "handle": format!("vm-{number}") }))
}

fn failed(kind: &str) -> Result<Value, String> {
    Err(kind.to_owned())
}

fn table() -> BackendTable {
    BackendTable::default()
}

/// HOST-03, HOST-05, HOST-07, HOST-08
#[test]
fn a_host_lives_from_its_acquire_to_its_release() {
    let (answers, books) = lived(&table(), vec![], async |mut cloud| {
        let first = [cloud.acquire("k").await, Ok(cloud.status("vm-1").await), cloud.exec("vm-1").await];
        let released = cloud.release("vm-1").await;
        let state = Ok(cloud.status("vm-1").await["state"].clone());
        let after = [released, state, cloud.exec("vm-1").await, cloud.release("vm-1").await];
        (first, after)
    });
    let up = json!({ "state": "up", "handle": "vm-1" });
    assert_eq!(answers.0, [vm(1), Ok(up), Ok(json!("here\n"))]);
    assert_eq!(answers.1, [Ok(Value::Null), Ok(json!("gone")), failed("permanent"), Ok(Value::Null)]);
    assert_eq!(books.mismatches(&counts(0, 1)), [""; 0]);
}

#[test]
fn the_transcript_tells_what_the_backend_does() {
    let mut world = world(0, &BackendTable { land_ms: Some(500), ..table() });
    begin(&mut world, vec![net(400, NetDeed::Partition)], async |mut cloud| {
        cloud.send("host.acquire", None, json!({ "key": "k", "params": {} })).await;
        cloud.until(100).await;
        cloud.next().lookup("k", false).await
    });
    world.finish(0).unwrap();
    world.advance(HOUR);
    let transcript = mu_sim::trace::transcript(&world.machine().events());
    for told in [
        "backend   the acquire of box, key k: it arrives (test)",
        "backend   the lookup of key k: answers {\"none\":true}",
        "network   FAULT partition",
        "backend   vm-1 exists: box, for key k (test)",
        "backend   the acquire of box, key k: nobody waits for the answer",
    ] {
        assert!(transcript.contains(told), "{told}\n{transcript}");
    }
}

/// EFF-18
#[test]
fn a_repeat_by_another_process_is_recognised() {
    let (answers, books) = lived(&table(), vec![], async |mut cloud| {
        let first = cloud.acquire("k").await;
        [first, cloud.next().acquire("k").await]
    });
    assert_eq!(answers, [vm(1), vm(1)]);
    assert_eq!(books.mismatches(&counts(1, 1)), [""; 0]);
}

#[test]
fn a_slow_host_is_pending_and_a_late_one_is_not_seen() {
    let slow = BackendTable { acquire_ms: Some(30_000), land_ms: Some(30_000), ..table() };
    let (answers, _) = lived(&slow, vec![], async |mut cloud| {
        cloud.send("host.acquire", None, json!({ "key": "k", "params": {} })).await;
        let mut seen = Vec::new();
        for ms in [20_000, 40_000] {
            cloud.until(ms).await;
            seen.push(cloud.lookup("k", false).await);
        }
        // Its own signs of life have kept the connection.
        (seen, cloud.reply().await, cloud.now_ms(), cloud.lookup("k", true).await)
    });
    let (seen, acquired, at, found) = answers;
    assert_eq!(seen, [json!({ "none": true }), json!({ "pending": true })]);
    assert_eq!((acquired, found), (vm(1), json!({ "found": { "handle": "vm-1" } })));
    assert!((60_000..60_010).contains(&at), "{at}");
}

/// EFF-15
#[test]
fn a_fence_keeps_a_late_acquire_from_landing() {
    for (fence, ever) in [(true, 0), (false, 1)] {
        let late = BackendTable { land_ms: Some(30_000), fence: Some(fence), ..table() };
        let (none, books) = lived(&late, vec![], async |mut cloud| {
            cloud.send("host.acquire", None, json!({ "key": "k", "params": {} })).await;
            cloud.until(100).await;
            cloud.next().lookup("k", true).await
        });
        assert_eq!(none, json!({ "none": true }));
        assert_eq!(books.mismatches(&counts(ever, ever)), [""; 0], "{fence}");
    }
}

/// ERR-01, ERR-06
#[test]
fn a_partition_before_the_question_is_retryable() {
    for deed in [NetDeed::Partition, NetDeed::ToBackend, NetDeed::ToPlugin] {
        let ((refused, at), books) =
            lived(&table(), vec![net(0, deed)], async |mut cloud| (cloud.acquire("k").await, cloud.now_ms()));
        assert_eq!((refused, at), (failed("retryable"), 3_000), "{deed:?}");
        let nothing = Counts { keys: Some(0), ..counts(0, 0) };
        assert_eq!(books.mismatches(&nothing), [""; 0]);
    }
}

/// ERR-04: what has arrived takes place, what has not is lost with the connection. HOST-16
#[test]
fn a_cut_after_the_question_leaves_the_outcome_unknown() {
    let slow = BackendTable { acquire_ms: Some(1_000), net_ms: Some(100), ..table() };
    // The connection stands at 200, the question arrives at 300.
    for (deed, at_ms, ever, ends) in [
        (NetDeed::ToPlugin, 500, 1, 8_200),
        (NetDeed::Partition, 500, 1, 8_200),
        (NetDeed::Reset, 500, 1, 500),
        (NetDeed::ToBackend, 150, 0, 8_200),
    ] {
        let ((unknown, at), books) = lived(&slow, vec![net(at_ms, deed)], async |mut cloud| {
            (cloud.acquire("k").await, cloud.now_ms())
        });
        assert_eq!((unknown, at), (failed("unknown-outcome"), ends), "{deed:?} {at_ms}");
        assert_eq!(books.mismatches(&counts(ever, ever)), [""; 0], "{deed:?} {at_ms}");
    }
    let (state, _) = lived(&slow, vec![net(2_050, NetDeed::ToPlugin)], async |mut cloud| {
        cloud.acquire("k").await.unwrap();
        cloud.until(1_800).await;
        cloud.status("vm-1").await
    });
    assert_eq!(state["state"], "unknown");
}

/// The question is on its way when the way to the backend is cut, and arrives once it is mended.
#[test]
fn what_is_lost_is_sent_again() {
    let cut = vec![net(190, NetDeed::ToBackend), net(4_000, NetDeed::Heal)];
    let far = BackendTable { net_ms: Some(100), ..table() };
    let ((acquired, at), _) = lived(&far, cut, async |mut cloud| (cloud.acquire("k").await, cloud.now_ms()));
    assert_eq!(acquired, vm(1));
    // The end of the handshake is lost too, and sent again first.
    assert!((4_200..6_000).contains(&at), "{at}");
}

#[test]
fn a_way_may_take_long() {
    let delay = Control::Net(NetAt { deed: NetDeed::Delay, at_ms: 0, ms: Some(700) });
    let (at, _) = lived(&table(), vec![(0, delay)], async |mut cloud| {
        cloud.acquire("k").await.unwrap();
        cloud.now_ms()
    });
    // There and back, for the connection and for the question.
    assert_eq!(at, 2_800);
}

/// The longest parameters that mu sends come through the windows of the connection.
#[test]
fn a_question_may_be_a_mebibyte_long() {
    let (books, _) = lived(&table(), vec![], async |mut cloud| {
        let params = json!({ "key": "k", "params": { "size": "x".repeat(1_000_000) } });
        cloud.call("host.acquire", None, params).await
    });
    assert_eq!(books, vm(1));
}

/// The backend and what it was asked for outlive the machine that asked, which says nothing more.
#[test]
fn a_power_cut_does_not_reach_the_backend() {
    let mut world = world(0, &BackendTable { land_ms: Some(500), ..table() });
    begin(&mut world, vec![], async |mut cloud| cloud.acquire("k").await);
    world.advance(Duration::from_millis(300));
    assert_eq!(world.backend().mismatches(&Counts { keys: Some(1), ..counts(0, 0) }), [""; 0]);
    world.reboot().unwrap();
    assert!(world.machine().living().is_empty());
    world.advance(Duration::from_millis(300));
    assert_eq!(world.backend().mismatches(&counts(1, 1)), [""; 0]);
    // The machine is on the network again.
    let found = begin(&mut world, vec![], async |mut cloud| cloud.lookup("k", true).await);
    world.finish(1).unwrap();
    assert_eq!(found.take(), Some(json!({ "found": { "handle": "vm-1" } })));
    let transcript = mu_sim::trace::transcript(&world.machine().events());
    assert!(transcript.contains("backend   the acquire of box, key k: answers"), "{transcript}");
}

/// The backend's time goes on while mu's machine sleeps.
#[test]
fn the_backend_does_not_sleep_with_the_machine() {
    let mut world = world(0, &BackendTable { window_ms: Some(60_000), ..table() });
    let again = begin(&mut world, vec![], async |mut cloud| {
        cloud.acquire("k").await.unwrap();
        cloud.until(1_000).await;
        cloud.acquire("k").await
    });
    world.advance(Duration::from_millis(500));
    let suspend = mu_sim::world::Meanwhile::Suspend(Duration::from_secs(120));
    world.run_instead(|_| async { Exit::Status(0) });
    let meanwhile = vec![(Duration::ZERO, suspend)];
    world.start(&Run { argv: vec!["mu".to_owned()], meanwhile, ..Run::default() }).unwrap();
    world.finish(0).unwrap();
    assert_eq!(again.take(), Some(vm(2)));
}

#[test]
fn what_happens_at_the_backend_is_seen() {
    let deeds = [
        BackendDeed::NeedsHuman,
        BackendDeed::Unsure,
        BackendDeed::Well,
        BackendDeed::Rename,
        BackendDeed::Lose,
    ];
    let at = |(second, deed): (u64, BackendDeed)| {
        let host = "box".to_owned();
        let none = (None, None, None, None);
        let (deadline_ms, idle_reclaim_ms, max_jobs, fact) = none;
        let at_ms = second * 1_000 + 500;
        let deed = BackendAt { deed, host, at_ms, deadline_ms, idle_reclaim_ms, max_jobs, fact };
        (at_ms, Control::Do(deed))
    };
    let controls = (0..).zip(deeds).map(at).collect();
    let (seen, books) = lived(&table(), controls, async |mut cloud| {
        cloud.acquire("k").await.unwrap();
        let mut seen = Vec::new();
        for second in 1..=5 {
            cloud.until(second * 1_000).await;
            let status = cloud.status("vm-1").await;
            seen.push((status["state"].clone(), status["handle"].clone()));
        }
        seen
    });
    let states: Vec<&Value> = seen.iter().map(|(state, _)| state).collect();
    assert_eq!(states, ["needs-human", "unknown", "up", "up", "gone"]);
    assert_ne!(seen[2].1, seen[3].1);
    assert_eq!(books.missed, [""; 0]);
}

#[test]
fn what_cannot_happen_at_the_backend_is_a_finding() {
    let text = "title = 't'\nrules = ['HOST-05']\n[[steps]]\nbackend_do = { do = 'lose', host = 'box' }\n\
                backend = { ever = 1 }\neffects = 1\nrecords = { box = 'ready' }";
    let scenario = Scenario::parse("s.toml", text, &is_rule).unwrap();
    let played = play::simulated(&scenario, Setting::default()).unwrap();
    let findings: Vec<String> = played.findings.iter().map(Finding::to_string).collect();
    assert_eq!(
        findings,
        [
            "step 1: the backend has 0 machines ever made, not 1",
            "step 1: there are 0 open effects, not 1",
            "step 1: box has no record, and should be ready",
            "step 1: lose of the backend: there is no machine of `box`",
        ]
    );
}

/// It was stopped for longer than it would wait for a sign of life.
#[test]
fn a_plugin_that_was_stopped_finds_its_answer() {
    let mut world = world(0, &BackendTable { acquire_ms: Some(1_000), ..table() });
    let answer = begin(&mut world, vec![], async |mut cloud| (cloud.acquire("k").await, cloud.now_ms()));
    for (seconds, signal) in [(1, mu_sim::kernel::SIGSTOP), (20, mu_sim::kernel::SIGCONT)] {
        world.advance(Duration::from_millis(500));
        let living = world.machine().living();
        let plugin = living.iter().find(|one| &*one.name == "mu-plugin-cloud").expect("it lives");
        let to = mu_sim::trace::Target::Process(plugin.pid);
        world.machine().signal_at(Duration::from_secs(seconds) / 2, to, signal);
    }
    world.finish(0).unwrap();
    assert_eq!(answer.take(), Some((vm(1), 10_000)));
}

fn run(seed: u64) -> Digest {
    let mut world = world(seed, &BackendTable { acquire_ms: Some(700), ..table() });
    let cut = vec![net(500, NetDeed::Partition), net(3_000, NetDeed::Heal)];
    begin(&mut world, cut, async |mut cloud| {
        cloud.send("host.acquire", None, json!({ "key": "k", "params": {} })).await;
        cloud.send("host.acquire", None, json!({ "key": "l", "params": {} })).await;
        let first = [cloud.reply().await, cloud.reply().await];
        (first, cloud.lookup("k", true).await, cloud.release("vm-1").await)
    });
    world.finish(0).unwrap();
    world.machine().digest()
}

#[test]
fn a_seed_gives_the_same_run_again() {
    // On another thread, and behind other worlds on this one.
    #[allow(clippy::disallowed_methods)] // that threads do not matter is what is shown
    let elsewhere = std::thread::spawn(|| (run(1), run(2)));
    let here = (run(1), run(2));
    assert_eq!(here, elsewhere.join().unwrap());
    assert_ne!(here.0, here.1);
}
