//! What exists, and what mu knows of it.

use super::*;
use crate::oracle::ledger::{Accepted, Machine};
use crate::oracle::rows::{EffectRow, HostRow, VerdictRow};

fn machine(key: &str, made_ms: u64, gone_ms: Option<u64>) -> Machine {
    let text = |text: &str| text.to_owned();
    let handles = vec![format!("vm-{made_ms}")];
    Machine { instance: text("i"), key: text(key), host: text("h"), handles, made_ms, gone_ms }
}

fn host(handle: &str, state: &str) -> HostRow {
    let text = |text: &str| text.to_owned();
    HostRow {
        name: text("h"),
        plugin: text("box"),
        instance: text("i"),
        state: text(state),
        handle: Some(text(handle)),
    }
}

fn effect(key: &str) -> EffectRow {
    EffectRow { key: key.into(), ..super::effects::intent(&super::effects::acquire(2, key)) }
}

/// The rules that are broken when these machines exist and mu knows of these hosts.
fn rules(machines: Vec<Machine>, hosts: Vec<HostRow>, change: impl FnOnce(&mut Tale)) -> Vec<&'static str> {
    let mut tale = Tale::sound();
    tale.books.machines = machines;
    tale.rows.hosts = hosts;
    change(&mut tale);
    tale.rules()
}

/// EFF-10: a resend behind the window makes a second machine of one key.
#[test]
fn two_machines_of_one_key_are_reported() {
    let twice = vec![machine("k", 1, Some(5)), machine("k", 9, None)];
    assert_eq!(rules(twice, vec![host("vm-9", "ready")], |_| {}), ["EFF-10"]);
}

/// EFF-04
#[test]
fn two_machines_of_one_host_at_once_are_reported() {
    let hosts = || vec![host("vm-9", "ready")];
    let one_after_the_other = vec![machine("k", 1, Some(9)), machine("l", 9, None)];
    assert_eq!(rules(one_after_the_other, hosts(), |_| {}), [""; 0]);
    let at_once = || vec![machine("k", 1, Some(10)), machine("l", 9, None)];
    assert_eq!(rules(at_once(), hosts(), |_| {}), ["EFF-04"]);
    assert_eq!(rules(at_once(), hosts(), |tale| tale.excuses.lies = true), [""; 0]);
}

/// EFF-04
#[test]
fn a_machine_that_mu_has_lost_from_sight_is_reported() {
    let one = || vec![machine("k", 1, None)];
    assert_eq!(rules(one(), vec![host("vm-1", "ready")], |_| {}), [""; 0]);
    assert_eq!(rules(one(), vec![], |tale| tale.rows.effects = vec![effect("k")]), [""; 0]);
    assert_eq!(rules(one(), vec![], |_| {}), ["EFF-04"]);
    assert_eq!(rules(one(), vec![host("vm-2", "ready")], |_| {}), ["EFF-04"]);
    assert_eq!(rules(one(), vec![], |tale| tale.rows.effects = vec![effect("l")]), ["EFF-04"]);
    assert_eq!(rules(one(), vec![], |tale| tale.excuses.forgets = true), [""; 0]);
}

/// EFF-04: an operator may be wrong about the host that the word is about, and about no other.
#[test]
fn an_operators_word_excuses_the_host_that_it_was_about() {
    let excused = |hosts: &[&str], said: bool| {
        let two = vec![machine("k", 1, None), machine("l", 9, None)];
        rules(two, vec![host("vm-9", "ready")], |tale| {
            tale.excuses.overruled = said;
            let word = |host: &&str| VerdictRow { key: "m".into(), host: (*host).to_owned() };
            tale.rows.verdicts = hosts.iter().map(word).collect();
        })
    };
    assert_eq!(excused(&["h"], true), [""; 0]);
    // A word that was refused, or that nobody gave.
    assert_eq!(excused(&[], true), ["EFF-04", "EFF-04"]);
    assert_eq!(excused(&["other"], true), ["EFF-04", "EFF-04"]);
    assert_eq!(excused(&["h"], false), ["EFF-04", "EFF-04"]);
}

/// HOST-16
#[test]
fn a_machine_that_exists_and_is_down_as_lost_is_reported() {
    assert_eq!(rules(vec![machine("k", 1, None)], vec![host("vm-1", "lost")], |_| {}), ["HOST-16"]);
    assert_eq!(rules(vec![machine("k", 1, Some(2))], vec![host("vm-1", "lost")], |_| {}), [""; 0]);
}

/// EFF-02, EFF-13
#[test]
fn a_key_that_was_accepted_and_is_not_known_is_reported() {
    let accepted = |coming| {
        let text = |text: &str| text.to_owned();
        vec![Accepted { instance: text("i"), key: text("k"), host: text("h"), coming }]
    };
    let durable = |tale: &mut Tale| {
        let rows = Rows { effects: vec![effect("k")], ..Rows::default() };
        tale.images = vec![Image { place: usize::MAX, rows }];
    };
    assert_eq!(rules(vec![], vec![], |tale| tale.books.accepted = accepted(false)), ["EFF-02"]);
    let with = |coming, known: bool| {
        rules(vec![], vec![], |tale| {
            tale.books.accepted = accepted(coming);
            durable(tale);
            if known {
                tale.rows.effects = vec![effect("k")];
            }
        })
    };
    assert_eq!(with(false, false), [""; 0]);
    assert_eq!(with(true, true), [""; 0]);
    assert_eq!(with(true, false), ["EFF-13"]);
}

/// EFF-15
#[test]
fn a_machine_that_is_made_behind_a_fence_is_reported() {
    let barred = |since: u64| {
        rules(vec![machine("k", 5, None)], vec![host("vm-5", "ready")], |tale| {
            tale.books.barred = vec![("i".into(), "k".into(), since)];
        })
    };
    assert_eq!(barred(5), [""; 0]);
    assert_eq!(barred(4), ["EFF-15"]);
}
