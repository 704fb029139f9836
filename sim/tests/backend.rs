//! The host seam of the fake plugin through the network to the backend and back, on the simulated machine: calls below the
//! verbs of mu.

use std::collections::BTreeMap;
use std::time::Duration;

use mu_core::call_error::CallError;
use mu_core::invocation::{Invocation, Start};
use mu_core::os::{Exit, Os};
use mu_protocol::messages::error::ErrorKind;
use mu_protocol::messages::host::{
    AcquireParams, Acquired, HostState, LookupParams, ReleaseParams, StatusParams,
};
use mu_protocol::messages::link::ExecParams;
use mu_protocol::messages::lookup::Lookup;
use mu_protocol::messages::target::{HostRef, HostTarget, Target};
use mu_protocol::messages::values::{Handle, Instance, Key, Millis, Name, RemotePath};
use mu_protocol::schema::SCHEMA;
use mu_sim::backend::{BackendTable, Counts};
use mu_sim::fake::{Plan, PluginFile, PluginTable, schema_digest};
use mu_sim::kernel::Options;
use mu_sim::play::{self, Finding, Played, Setting, Show};
use mu_sim::scenario::{Scenario, is_rule};
use mu_sim::sim_os::SimOs;
use mu_sim::world::{Run, Simulated, World};

const PLUGIN: &str = "[plugins.cloud]\nseams = ['link', 'host', 'job']\n";

/// Plays a scenario of the plugin `cloud` and these keys, whose first run is `verb`. All of it must hold.
fn played<T: 'static>(rest: &str, verb: impl AsyncFnOnce(Cloud) -> T + 'static) -> (T, Played) {
    let text = format!(
        "title = 't'\nrules = ['HOST-05']\nreal = false\nwhy_not_real = 'a verb of a test'\n{PLUGIN}{rest}"
    );
    let scenario = Scenario::parse("s.toml", &text, &is_rule).unwrap_or_else(|error| panic!("{error}"));
    let setting = Setting { show: Show::Transcript, drawn: false };
    let verb = async |invocation: Invocation<SimOs>, mut starts: BTreeMap<String, Start>| {
        verb(Cloud { start: starts.remove("cloud").unwrap(), invocation }).await
    };
    let (answer, played) = play::with_verb(&scenario, setting, verb).unwrap();
    let findings: Vec<String> = played.findings.iter().map(Finding::to_string).collect();
    assert_eq!(findings, [""; 0], "{}", played.transcript.unwrap());
    (answer.expect("mu has come to its end"), played)
}

/// The provider, as a verb of mu uses it.
struct Cloud {
    invocation: Invocation<SimOs>,
    start: Start,
}

/// What an effect came to: its result, or the name of the kind of its error.
type Effect<T> = Result<T, &'static str>;

fn of<T>(result: Result<T, CallError>) -> Effect<T> {
    result.map_err(|error| match error {
        CallError::Refused(_, refused) => match refused.kind {
            ErrorKind::Retryable => "retryable",
            ErrorKind::Permanent => "permanent",
            ErrorKind::Human { .. } => "human",
            ErrorKind::UnknownOutcome => "unknown-outcome",
        },
        CallError::Unanswered(_) => "unanswered",
        error => panic!("{error:?}"),
    })
}

fn target(handle: Option<&str>) -> HostTarget {
    let handle = handle.map(|handle| Handle::new(handle).unwrap());
    let instance = handle.is_some().then(|| Instance::new("test").unwrap());
    HostTarget { host: HostRef { name: Name::new("box").unwrap(), handle, instance } }
}

fn key(key: &str) -> Key {
    Key::new(key).unwrap()
}

impl Cloud {
    async fn acquire(&self, k: &str, budget_s: u64) -> Effect<String> {
        let params = AcquireParams { target: target(None), key: key(k), params: BTreeMap::new() };
        let acquired: Result<Acquired, _> =
            self.invocation.call(&self.start, &params, Duration::from_secs(budget_s)).await;
        of(acquired).map(|acquired| acquired.handle.as_str().to_owned())
    }

    async fn lookup(&self, k: &str, fence: bool) -> Effect<String> {
        let params = LookupParams { target: target(None), key: key(k), fence };
        let found = self.invocation.call(&self.start, &params, Duration::from_secs(10)).await;
        of(found).map(|found: Lookup<Acquired>| match found {
            Lookup::Found(host) => host.handle.as_str().to_owned(),
            Lookup::Pending => "pending".to_owned(),
            Lookup::None => "none".to_owned(),
            Lookup::Unknown(_) => "unknown".to_owned(),
        })
    }

    async fn status(&self, handle: &str) -> Effect<String> {
        let params = StatusParams { target: target(Some(handle)) };
        let state = self.invocation.call(&self.start, &params, Duration::from_secs(10)).await;
        of(state).map(|state: HostState| match state {
            HostState::Up { handle, .. } => handle.as_str().to_owned(),
            HostState::Gone { .. } => "gone".to_owned(),
            HostState::NeedsHuman { .. } => "needs-human".to_owned(),
            HostState::Unknown { .. } => "unknown".to_owned(),
        })
    }

    async fn release(&self, handle: &str) -> Effect<()> {
        let params = ReleaseParams { target: target(Some(handle)), key: key("release") };
        of(self.invocation.call(&self.start, &params, Duration::from_secs(60)).await)
    }

    async fn exec(&self, handle: &str, word: &str) -> Effect<String> {
        let HostTarget { host } = target(Some(handle));
        let params = ExecParams {
            target: Target { agent: None, job: None, host },
            script: format!("echo {word}"),
            cwd: RemotePath::new(".").unwrap(),
            timeout_ms: Millis::new(20_000).unwrap(),
        };
        of(self.invocation.call(&self.start, &params, Duration::from_secs(25)).await).map(|run| run.stdout)
    }

    async fn pause(&self, ms: u64) {
        let os = self.invocation.os();
        os.sleep_until(os.now() + Duration::from_millis(ms)).await;
    }

    fn now_ms(&self) -> u64 {
        self.invocation.os().now().0.as_millis() as u64
    }
}

fn ok(text: &str) -> Effect<String> {
    Ok(text.to_owned())
}

/// HOST-05, HOST-07, HOST-08, HOST-03
#[test]
fn a_host_lives_from_its_acquire_to_its_release() {
    let step = "[[steps]]\nrun = 'mu'\nexit = 0\nstarts = { cloud = 1 }\nbackend = { hosts = 0, ever = 1, keys = 1 }";
    let (answers, played) = played(step, async |cloud| {
        let acquired = cloud.acquire("k", 60).await;
        let up = cloud.status("vm-1").await;
        let ran = cloud.exec("vm-1", "here").await;
        let released = cloud.release("vm-1").await;
        let gone = cloud.status("vm-1").await;
        let refused = cloud.exec("vm-1", "there").await;
        let again = cloud.release("vm-1").await;
        (acquired, up, ran, released, gone, refused, again)
    });
    let here = ok("here\n");
    assert_eq!(answers, (ok("vm-1"), ok("vm-1"), here, Ok(()), ok("gone"), Err("permanent"), Ok(())));
    let transcript = played.transcript.unwrap();
    for told in [
        "backend   the acquire of box, key k: it arrives (test)",
        "backend   vm-1 exists: box, for key k (test)",
        "backend   the acquire of box, key k: answers {\"handle\":\"vm-1\"}",
        "backend   vm-1 is released (test)",
    ] {
        assert!(transcript.contains(told), "{told}\n{transcript}");
    }
}

/// EFF-18
#[test]
fn a_repeat_by_another_process_is_recognised() {
    let step = "[[steps]]\nrun = 'mu'\nexit = 0\nstarts = { cloud = 2 }\nbackend = { hosts = 1, ever = 1, keys = 1 }";
    let (answers, _) = played(step, async |cloud| {
        let first = cloud.acquire("k", 60).await;
        cloud.invocation.stop("cloud").await;
        (first, cloud.acquire("k", 60).await)
    });
    assert_eq!(answers, (ok("vm-1"), ok("vm-1")));
}

#[test]
fn a_slow_host_is_pending_and_a_late_one_is_not_seen() {
    let step = "[backend]\nacquire_ms = 30000\nland_ms = 30000\n[[steps]]\nrun = 'mu'\nexit = 0\nbackend = { ever = 1 }";
    let (answers, _) = played(step, async |cloud| {
        let gone = cloud.acquire("k", 5).await;
        let unseen = cloud.lookup("k", false).await;
        cloud.pause(30_000).await;
        let pending = cloud.lookup("k", true).await;
        cloud.pause(30_000).await;
        (gone, unseen, pending, cloud.lookup("k", true).await)
    });
    assert_eq!(answers, (Err("unanswered"), ok("none"), ok("pending"), ok("vm-1")));
}

/// EFF-15
#[test]
fn a_fence_keeps_a_late_acquire_from_landing() {
    for (fence, ever) in [(true, 0), (false, 1)] {
        let step = format!(
            "[backend]\nland_ms = 30000\nfence = {fence}\n[[steps]]\nrun = 'mu'\nexit = 0\n\
             [[steps]]\nadvance_ms = 60000\nbackend = {{ ever = {ever}, keys = 1 }}"
        );
        let (answers, _) =
            played(&step, async |cloud| (cloud.acquire("k", 5).await, cloud.lookup("k", true).await));
        assert_eq!(answers, (Err("unanswered"), ok("none")));
    }
}

/// ERR-01, ERR-06: four times the connection does not stand within three seconds.
#[test]
fn a_partition_before_the_question_is_retryable() {
    let step =
        "[[steps]]\nrun = 'mu'\nexit = 0\nnet = { do = 'partition' }\nbackend = { ever = 0, keys = 0 }";
    let (answer, _) = played(step, async |cloud| {
        let begun = cloud.now_ms();
        let refused = cloud.acquire("k", 60).await;
        (refused, cloud.now_ms() - begun)
    });
    assert_eq!(answer.0, Err("retryable"));
    assert!((12_000..16_000).contains(&answer.1), "{}", answer.1);
}

/// ERR-04: the question has arrived, or it has not.
#[test]
fn a_partition_after_the_question_leaves_the_outcome_unknown() {
    for (net, ever) in [("to-plugin", 1), ("partition", 1), ("reset", 1)] {
        let step = format!(
            "[backend]\nacquire_ms = 1000\n[[steps]]\nrun = 'mu'\nexit = 0\n\
             net = {{ do = '{net}', at_ms = 500 }}\n[[steps]]\nadvance_ms = 2000\nbackend = {{ ever = {ever} }}"
        );
        let (answer, played) = played(&step, async |cloud| {
            cloud.pause(300).await;
            let begun = cloud.now_ms();
            (cloud.acquire("k", 60).await, cloud.now_ms() - begun)
        });
        let (answer, took) = answer;
        assert_eq!(answer, Err("unknown-outcome"), "{net}");
        let expected = if net == "reset" { 0..300 } else { 8_000..9_000 };
        assert!(expected.contains(&took), "{net}: {took}\n{}", played.transcript.unwrap());
    }
}

/// The question is on its way when the way to the backend is cut, and arrives once it is mended.
#[test]
fn what_is_lost_is_sent_again() {
    let step = "[backend]\nnet_ms = 100\n[[steps]]\nrun = 'mu'\nexit = 0\nbackend = { ever = 1 }\n\
                net = [{ do = 'to-backend', at_ms = 340 }, { do = 'heal', at_ms = 4000 }]";
    let (answer, _) = played(step, async |cloud| {
        cloud.pause(150).await;
        let acquired = cloud.acquire("k", 60).await;
        (acquired, cloud.now_ms())
    });
    assert_eq!(answer.0, ok("vm-1"));
    // The end of the handshake is lost too, and sent again first.
    assert!((4_200..6_000).contains(&answer.1), "{}", answer.1);
}

#[test]
fn reads_survive_a_cut_as_unknown() {
    let step =
        "[[steps]]\nrun = 'mu'\nexit = 0\nnet = { do = 'to-plugin', at_ms = 1250 }\n[backend]\nnet_ms = 100";
    let (answers, _) = played(step, async |cloud| {
        cloud.acquire("k", 60).await.unwrap();
        cloud.pause(1_000 - cloud.now_ms()).await;
        cloud.status("vm-1").await
    });
    assert_eq!(answers, ok("unknown"));
}

#[test]
fn a_way_may_take_long() {
    let step = "[[steps]]\nrun = 'mu'\nexit = 0\nnet = { do = 'delay', ms = 700 }";
    let (took, _) = played(step, async |cloud| {
        let begun = cloud.now_ms();
        cloud.acquire("k", 60).await.unwrap();
        cloud.now_ms() - begun
    });
    // There and back, for the connection and for the question.
    assert!((2_800..2_900).contains(&took), "{took}");
}

/// The backend and what it was asked for outlive the machine that asked.
#[test]
fn a_power_cut_does_not_reach_the_backend() {
    let ms = Duration::from_millis;
    let mut world = Simulated::new(Options::new(0));
    let table: PluginTable = toml::from_str("seams = ['link', 'host', 'job']").unwrap();
    world.install("cloud", &PluginFile::default()).unwrap();
    world
        .set_plan("cloud", Plan::new("cloud", &table, &[], &schema_digest(SCHEMA.as_bytes())).unwrap())
        .unwrap();
    world.set_backend(&BackendTable { land_ms: Some(500), ..BackendTable::default() }).unwrap();
    let argv = vec![world.place("cloud")];
    world.run_instead(|sys| async move {
        let invocation = Invocation::new(SimOs::new(sys));
        let start = Start { name: "cloud".to_owned(), argv, recorded: None, needs: Vec::new() };
        let cloud = Cloud { invocation: invocation.clone(), start };
        let _ = invocation.run(cloud.acquire("k", 60)).await;
        Exit::Status(0)
    });
    world.start(&Run { argv: vec!["mu".to_owned()], ..Run::default() }).unwrap();
    world.advance(ms(300));
    let counts = |hosts| Counts { hosts: Some(hosts), keys: Some(1), ..Counts::default() };
    assert_eq!(world.backend().mismatches(&counts(0)), [""; 0]);
    world.reboot().unwrap();
    world.advance(ms(300));
    assert_eq!(world.backend().mismatches(&counts(1)), [""; 0]);
    assert!(world.machine().living().is_empty());
}

#[test]
fn what_happens_at_the_backend_is_seen() {
    let step = "[[steps]]\nrun = 'mu'\nexit = 0\nbackend = { hosts = 0, ever = 1 }\nbackend_do = [\
                { do = 'needs-human', host = 'box', at_ms = 1000 }, { do = 'unsure', host = 'box', at_ms = 2000 },\
                { do = 'well', host = 'box', at_ms = 3000 }, { do = 'rename', host = 'box', at_ms = 4000 },\
                { do = 'lose', host = 'box', at_ms = 5000 }]";
    let (answers, _) = played(step, async |cloud| {
        cloud.acquire("k", 60).await.unwrap();
        let mut all = Vec::new();
        for _ in 0..5 {
            cloud.pause(1_000).await;
            all.push(cloud.status("vm-1").await.unwrap());
        }
        all
    });
    assert_eq!(answers, ["needs-human", "unknown", "vm-1", "vm-1-1", "gone"]);
}

#[test]
fn what_cannot_happen_at_the_backend_is_a_finding() {
    let text = format!(
        "title = 't'\nrules = ['HOST-05']\n{PLUGIN}[[steps]]\nbackend_do = {{ do = 'lose', host = 'box' }}\n\
         backend = {{ ever = 1 }}\neffects = 1\nrecords = {{ box = 'ready' }}"
    );
    let scenario = Scenario::parse("s.toml", &text, &is_rule).unwrap();
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
    let step = "[backend]\nacquire_ms = 1000\n[[steps]]\nrun = 'mu'\nexit = 0\nsignal = [\
                { to = 'cloud', what = 'STOP', at_ms = 500 }, { to = 'cloud', what = 'CONT', at_ms = 20000 }]";
    let (answer, _) = played(step, async |cloud| cloud.acquire("k", 60).await);
    assert_eq!(answer, ok("vm-1"));
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let run = |seed: u64| {
        let step = format!(
            "[backend]\nacquire_ms = 700\n[[steps]]\nrun = 'mu'\nexit = 0\n\
             net = [{{ do = 'partition', at_ms = {} }}, {{ do = 'heal', at_ms = 3000 }}]",
            500 + seed
        );
        played(&step, async |cloud| {
            let first = cloud.acquire("k", 60).await;
            (first, cloud.lookup("k", true).await, cloud.release("vm-1").await)
        })
        .1
        .chain
    };
    // On another thread, and behind other worlds on this one.
    #[allow(clippy::disallowed_methods)] // that threads do not matter is what is shown
    let elsewhere = std::thread::spawn(move || (run(1), run(2)));
    let here = (run(1), run(2));
    assert_eq!(here, elsewhere.join().unwrap());
    assert_ne!(here.0, here.1);
}
