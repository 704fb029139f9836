//! The ground truth by the rules that a provider must keep.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::ledger::{Answer, Gone, Ledger, Now, Outcome, Promise, Question, Refusal};
use super::{BackendAt, BackendDeed, BackendTable, Books, Counts, Fact, HostFacts, Setup};

const WALL: i64 = 1_767_225_600_000;

fn at(ms: u64) -> Now {
    Now { at_ms: ms, wall_ms: WALL + ms as i64 }
}

/// A ledger and how it behaves.
#[derive(Default)]
struct Backend {
    ledger: Ledger,
    setup: Setup,
}

impl Backend {
    fn with(table: BackendTable) -> Backend {
        let mut backend = Backend::default();
        backend.setup.apply(&table);
        backend
    }

    fn ask(&mut self, ms: u64, question: &Question) -> Promise {
        self.ledger.ask(at(ms), &self.setup, question)
    }

    /// Asks, and waits for the answer; with the time at which it comes.
    fn answered(&mut self, ms: u64, question: &Question) -> (u64, Answer) {
        let promise = self.ask(ms, question);
        (promise.due_ms, self.ledger.answer(at(promise.due_ms), &self.setup, &promise))
    }

    fn result(&mut self, ms: u64, question: &Question) -> Value {
        match self.answered(ms, question).1 {
            Answer::Result(result) => result,
            refused => panic!("{refused:?}"),
        }
    }

    fn refusal(&mut self, ms: u64, question: &Question) -> Refusal {
        match self.answered(ms, question).1 {
            Answer::Refused { kind, .. } => kind,
            result => panic!("{result:?}"),
        }
    }

    fn deed(&mut self, ms: u64, machine: usize, deed: BackendDeed) {
        self.ledger.deed(at(ms), machine, &deed_on(deed)).unwrap();
    }

    fn living(&self) -> usize {
        self.ledger.machines.iter().filter(|machine| machine.lives()).count()
    }
}

fn deed_on(deed: BackendDeed) -> BackendAt {
    let host = "box".to_owned();
    BackendAt { deed, host, at_ms: 0, deadline_ms: None, idle_reclaim_ms: None, max_jobs: None, fact: None }
}

fn acquire(key: &str) -> Question {
    Question::Acquire { key: key.into(), host: "box".into(), params: BTreeMap::new() }
}

fn lookup(key: &str) -> Question {
    Question::Lookup { key: key.into(), fence: false }
}

fn fenced(key: &str) -> Question {
    Question::Lookup { key: key.into(), fence: true }
}

fn status(handle: &str) -> Question {
    Question::Status { handle: handle.into() }
}

fn release(handle: &str) -> Question {
    Question::Release { key: "r".into(), handle: handle.into() }
}

fn reach(handle: &str) -> Question {
    Question::Reach { handle: handle.into() }
}

/// HOST-05
#[test]
fn an_acquire_makes_a_machine_and_tells_its_handle_and_facts() {
    let facts = HostFacts { deadline_ms: Some(60_000), idle_reclaim_ms: Some(5), max_jobs: Some(2) };
    let mut backend = Backend { setup: Setup { facts, ..Setup::default() }, ..Backend::default() };
    let result = backend.result(7, &acquire("k"));
    let deadline = WALL + 7 + 60_000;
    assert_eq!(result, json!({ "handle": "vm-1", "deadlineAt": deadline, "idleReclaimMs": 5, "maxJobs": 2 }));
    assert_eq!(Backend::default().result(7, &acquire("k")), json!({ "handle": "vm-1" }));
}

#[test]
fn a_machine_exists_once_it_is_made_and_then_the_answer_leaves() {
    let mut backend = Backend::with(BackendTable { acquire_ms: Some(500), ..BackendTable::default() });
    assert_eq!(backend.ask(100, &acquire("k")).due_ms, 600);
    assert_eq!(backend.ledger.next_ms(), Some(600));
    backend.ledger.settle(at(599), &backend.setup);
    assert_eq!(backend.living(), 0);
    backend.ledger.settle(at(600), &backend.setup);
    assert_eq!((backend.living(), backend.ledger.machines[0].made_ms), (1, 600));
    assert_eq!(backend.ledger.next_ms(), None);
}

/// EFF-18, CALL-05
#[test]
fn a_repeat_within_the_window_gets_the_first_result_and_makes_nothing() {
    let mut backend = Backend::with(BackendTable { acquire_ms: Some(500), ..BackendTable::default() });
    let first = backend.answered(0, &acquire("k"));
    // While the first is on its way, and after.
    assert_eq!(backend.answered(200, &acquire("k")), first);
    assert_eq!(backend.answered(900, &acquire("k")), (900, first.1.clone()));
    backend.deed(1_000, 0, BackendDeed::Rename);
    assert_eq!(backend.answered(1_100, &acquire("k")).1, first.1);
    assert_eq!(backend.ledger.machines.len(), 1);
    assert_eq!(backend.ledger.accepted[0].repeats, [200, 900, 1_100]);
}

/// A-77: the window begins when the key arrives first, and its last moment is not in it.
#[test]
fn a_repeat_after_the_window_makes_another_machine() {
    let window = BackendTable { window_ms: Some(1_000), ..BackendTable::default() };
    for (again, machines) in [(999 + 50, 1), (1_000 + 50, 2)] {
        let mut backend = Backend::with(window.clone());
        backend.result(50, &acquire("k"));
        // A repeat does not lengthen it.
        backend.result(500, &acquire("k"));
        let result = backend.result(again, &acquire("k"));
        assert_eq!(backend.ledger.machines.len(), machines, "{again}");
        assert_eq!(result["handle"], format!("vm-{machines}"));
        assert_eq!(backend.result(again, &lookup("k"))["found"]["handle"], format!("vm-{machines}"));
    }
}

/// CALL-03
#[test]
fn a_key_that_comes_for_something_else_is_refused() {
    let mut backend = Backend::default();
    backend.result(0, &acquire("k"));
    let other = Question::Acquire { key: "k".into(), host: "far".into(), params: BTreeMap::new() };
    let params = [("size".to_owned(), "big".to_owned())].into();
    let larger = Question::Acquire { key: "k".into(), host: "box".into(), params };
    assert_eq!(backend.refusal(1, &other), Refusal::Permanent);
    assert_eq!(backend.refusal(1, &larger), Refusal::Permanent);
    assert_eq!(backend.ledger.machines.len(), 1);
}

/// HOST-06
#[test]
fn a_lookup_tells_what_became_of_a_key() {
    let table = BackendTable { acquire_ms: Some(500), land_ms: Some(300), ..BackendTable::default() };
    let mut backend = Backend::with(table);
    assert_eq!(backend.result(0, &lookup("k")), json!({ "none": true }));
    backend.ask(100, &acquire("k"));
    for (ms, answer) in [
        (399, json!({ "none": true })),
        (400, json!({ "pending": true })),
        (899, json!({ "pending": true })),
        (900, json!({ "found": { "handle": "vm-1" } })),
    ] {
        assert_eq!(backend.result(ms, &lookup("k")), answer, "{ms}");
    }
    let told: Vec<_> = backend.ledger.told_none.iter().map(|told| (told.at_ms, told.fence)).collect();
    assert_eq!(told, [(0, false), (399, false)]);
    // What a key made is found when it is gone too: that is for its status to say.
    backend.deed(950, 0, BackendDeed::Lose);
    assert_eq!(backend.result(1_000, &lookup("k")), json!({ "found": { "handle": "vm-1" } }));
}

/// EFF-15: with the one on its way already, and with one that only comes then.
#[test]
fn a_fenced_none_bars_the_key_for_ever() {
    let mut backend = Backend::with(BackendTable { land_ms: Some(300), ..BackendTable::default() });
    let promise = backend.ask(0, &acquire("k"));
    assert_eq!(backend.result(299, &fenced("k")), json!({ "none": true }));
    backend.ledger.settle(at(100_000), &backend.setup);
    assert_eq!(backend.ledger.machines.len(), 0);
    assert_eq!(backend.ledger.accepted[0].outcome, Outcome::Barred);
    let answer = backend.ledger.answer(at(300), &backend.setup, &promise);
    assert!(matches!(answer, Answer::Refused { kind: Refusal::Permanent, .. }), "{answer:?}");
    assert_eq!(backend.refusal(200_000_000, &acquire("k")), Refusal::Permanent);
    assert_eq!(backend.result(200_000_001, &lookup("k")), json!({ "none": true }));
    backend.result(5, &fenced("late"));
    assert_eq!(backend.refusal(6, &acquire("late")), Refusal::Permanent);
    assert_eq!(backend.ledger.fenced, BTreeMap::from([("k".to_owned(), 299), ("late".to_owned(), 5)]));
}

/// EFF-15
#[test]
fn a_fence_bars_nothing_that_is_seen_already() {
    let table = BackendTable { acquire_ms: Some(500), land_ms: Some(300), ..BackendTable::default() };
    let mut backend = Backend::with(table);
    backend.ask(0, &acquire("k"));
    assert_eq!(backend.result(300, &fenced("k")), json!({ "pending": true }));
    assert_eq!(backend.result(800, &fenced("k")), json!({ "found": { "handle": "vm-1" } }));
    assert_eq!(backend.ledger.fenced, BTreeMap::new());
}

#[test]
fn a_broken_fence_bars_nothing() {
    let table = BackendTable { land_ms: Some(300), fence: Some(false), ..BackendTable::default() };
    let mut backend = Backend::with(table);
    backend.ask(0, &acquire("k"));
    assert_eq!(backend.result(100, &fenced("k")), json!({ "none": true }));
    backend.ledger.settle(at(300), &backend.setup);
    assert_eq!(backend.living(), 1);
    assert!(backend.ledger.told_none[0].fence);
}

/// EFF-13, EFF-15: what lags is a plain lookup alone.
#[test]
fn a_lookup_lags_and_a_fenced_one_does_not() {
    let mut backend = Backend::with(BackendTable { lookup_lag_ms: Some(200), ..BackendTable::default() });
    backend.result(100, &acquire("k"));
    assert_eq!(backend.result(299, &lookup("k")), json!({ "none": true }));
    assert_eq!(backend.result(299, &fenced("k")), json!({ "found": { "handle": "vm-1" } }));
    assert_eq!(backend.result(300, &lookup("k")), json!({ "found": { "handle": "vm-1" } }));
}

/// HOST-11: nobody says `gone` of what was not seen to end.
#[test]
fn a_status_lags_and_never_says_gone_too_early() {
    let mut backend = Backend::with(BackendTable { lookup_lag_ms: Some(200), ..BackendTable::default() });
    backend.result(100, &acquire("k"));
    let state = |backend: &mut Backend, ms| backend.result(ms, &status("vm-1"))["state"].clone();
    assert_eq!(state(&mut backend, 299), "unknown");
    assert_eq!(state(&mut backend, 300), "up");
    backend.deed(400, 0, BackendDeed::Lose);
    assert_eq!(state(&mut backend, 599), "up");
    assert_eq!(state(&mut backend, 600), "gone");
    assert_eq!(backend.result(700, &status("vm-9"))["state"], "unknown");
}

/// HOST-07
#[test]
fn a_status_has_the_members_of_its_state() {
    let mut backend = Backend::default();
    backend.result(0, &acquire("k"));
    let said = |backend: &mut Backend| backend.result(9, &status("vm-1"));
    assert_eq!(said(&mut backend), json!({ "state": "up", "handle": "vm-1" }));
    backend.deed(1, 0, BackendDeed::NeedsHuman);
    assert!(said(&mut backend)["remedy"].is_string());
    backend.deed(2, 0, BackendDeed::Unsure);
    assert!(said(&mut backend)["reason"].is_string());
    backend.deed(3, 0, BackendDeed::Well);
    backend.deed(4, 0, BackendDeed::Rename);
    let renamed = said(&mut backend);
    assert!(renamed["state"] == "up" && renamed["handle"] != "vm-1", "{renamed}");
    // The new handle leads to it as well as the old one does.
    let handle = renamed["handle"].as_str().unwrap().to_owned();
    assert_eq!(backend.result(10, &status(&handle)), renamed);
    backend.deed(11, 0, BackendDeed::Lose);
    assert!(backend.result(11, &status(&handle))["reason"].is_string());
}

/// HOST-09, HOST-10: what has not changed is left out, what holds no more is null.
#[test]
fn a_status_tells_the_facts_that_changed() {
    let facts = HostFacts { deadline_ms: Some(60_000), idle_reclaim_ms: None, max_jobs: Some(2) };
    let mut backend = Backend { setup: Setup { facts, ..Setup::default() }, ..Backend::default() };
    backend.result(0, &acquire("k"));
    assert_eq!(backend.result(1, &status("vm-1")), json!({ "state": "up", "handle": "vm-1" }));
    let deed = BackendAt { deadline_ms: Some(500), ..deed_on(BackendDeed::Facts) };
    backend.ledger.deed(at(10), 0, &deed).unwrap();
    let deed = BackendAt { fact: Some(Fact::MaxJobs), ..deed_on(BackendDeed::Clear) };
    backend.ledger.deed(at(20), 0, &deed).unwrap();
    let up = json!({ "state": "up", "handle": "vm-1", "deadlineAt": WALL + 510, "maxJobs": null });
    assert_eq!(backend.result(21, &status("vm-1")), up);
    let found = json!({ "found": { "handle": "vm-1", "deadlineAt": WALL + 510 } });
    assert_eq!(backend.result(21, &lookup("k")), found);
}

/// HOST-08
#[test]
fn a_release_is_idempotent() {
    let mut backend = Backend::with(BackendTable { release_ms: Some(50), ..BackendTable::default() });
    backend.result(0, &acquire("k"));
    assert_eq!(backend.answered(10, &release("vm-1")), (60, Answer::Result(Value::Null)));
    assert_eq!(backend.ledger.machines[0].gone, Some((60, Gone::Released("r".to_owned()))));
    assert_eq!(backend.result(100, &release("vm-1")), Value::Null);
    assert_eq!(backend.result(200, &status("vm-1"))["state"], "gone");
    backend.result(300, &acquire("l"));
    backend.deed(301, 1, BackendDeed::Lose);
    assert_eq!(backend.result(302, &release("vm-2")), Value::Null);
    assert_eq!(backend.ledger.machines[1].gone, Some((301, Gone::Lost)));
}

#[test]
fn a_machine_lives_until_its_release_is_over() {
    let mut backend = Backend::with(BackendTable { release_ms: Some(50), ..BackendTable::default() });
    backend.result(0, &acquire("k"));
    backend.ask(10, &release("vm-1"));
    assert_eq!(backend.ledger.next_ms(), Some(60));
    assert_eq!(backend.result(59, &status("vm-1"))["state"], "up");
    assert_eq!(backend.result(60, &status("vm-1"))["state"], "gone");
    assert_eq!(backend.refusal(70, &release("vm-9")), Refusal::Permanent);
}

#[test]
fn only_a_machine_that_is_well_can_be_reached() {
    let mut backend = Backend::default();
    backend.result(0, &acquire("k"));
    assert_eq!(backend.result(1, &reach("vm-1")), Value::Null);
    assert_eq!(backend.refusal(1, &reach("vm-2")), Refusal::Permanent);
    backend.deed(2, 0, BackendDeed::NeedsHuman);
    assert_eq!(backend.refusal(2, &reach("vm-1")), Refusal::Human);
    backend.deed(3, 0, BackendDeed::Unsure);
    assert_eq!(backend.refusal(3, &reach("vm-1")), Refusal::Retryable);
    backend.result(4, &release("vm-1"));
    assert_eq!(backend.refusal(5, &reach("vm-1")), Refusal::Permanent);
}

fn books() -> Books {
    let mut books = Books::new(&BackendTable::default());
    for (ms, instance, key) in [(1, "a", "k"), (2, "b", "k"), (3, "b", "l")] {
        books.ask(at(ms), instance, &acquire(key));
    }
    books
}

/// EFF-24: the same handle means another machine elsewhere.
#[test]
fn instances_know_nothing_of_each_other() {
    let mut books = books();
    books.ask(at(4), "a", &release("vm-1"));
    let counts = |instance: &str, hosts, ever| Counts {
        instance: Some(instance.to_owned()),
        hosts: Some(hosts),
        ever: Some(ever),
        ..Counts::default()
    };
    assert_eq!(books.mismatches(&counts("a", 0, 1)), [""; 0]);
    assert_eq!(books.mismatches(&counts("b", 2, 2)), [""; 0]);
    let all = Counts { hosts: Some(2), ever: Some(3), keys: Some(3), fenced: Some(1), ..Counts::default() };
    assert_eq!(books.mismatches(&all), ["the backend has 0 keys barred, not 1"]);
    assert_eq!(books.mismatches(&counts("c", 1, 0)).len(), 1);
}

#[test]
fn what_is_done_to_a_host_is_done_to_the_newest_that_lives() {
    let mut books = books();
    books.deed(at(5), &deed_on(BackendDeed::Lose));
    assert!(!books.ledgers["b"].machines[1].lives());
    books.deed(at(6), &deed_on(BackendDeed::Lose));
    assert!(!books.ledgers["b"].machines[0].lives());
    books.deed(at(7), &deed_on(BackendDeed::Lose));
    assert_eq!(books.missed, [""; 0]);
    books.deed(at(8), &deed_on(BackendDeed::Lose));
    books.deed(at(9), &BackendAt { host: "far".to_owned(), ..deed_on(BackendDeed::Well) });
    assert_eq!(books.missed.len(), 2, "{:?}", books.missed);
}

#[test]
fn books_survive_being_written_down() {
    let mut books = books();
    books.ask(at(4), "a", &fenced("x"));
    books.deed(at(5), &BackendAt { max_jobs: Some(3), ..deed_on(BackendDeed::Facts) });
    books.settle(at(9));
    let text = serde_json::to_string(&books).unwrap();
    assert_eq!(serde_json::from_str::<Books>(&text).unwrap(), books);
}

#[test]
fn what_takes_place_is_told_once() {
    let mut books = Books::new(&BackendTable { acquire_ms: Some(10), ..BackendTable::default() });
    books.ask(at(0), "a", &acquire("k"));
    assert_eq!(books.settle(at(9)), [""; 0]);
    assert_eq!(books.settle(at(10)), ["vm-1 exists: box, for key k (a)"]);
    assert_eq!(books.settle(at(11)), [""; 0]);
}
