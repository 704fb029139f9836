//! The catalogue as a table, its two written forms, and which combinations are refused.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::super::memory::{fault, plan};
use super::super::{Act, Background, Fault, Plan, Until, When, catalogue};
use super::super::{Fd, Sig};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Faults {
    faults: Vec<Fault>,
}

fn every_fault() -> Vec<Fault> {
    let mut all = Vec::new();
    for entry in catalogue() {
        for act in entry.examples {
            let mut natural = fault(act.clone());
            natural.on = natural.moment().is_of_a_request().then(|| entry.methods[0].to_owned());
            all.push(natural);
            for when in entry.moments {
                let methods = entry.methods.iter().filter(|_| when.is_of_a_request());
                let one = Fault { when: Some(*when), ..fault(act.clone()) };
                let named = methods.filter(|method| match when {
                    When::BeforeRead => **method == "initialize",
                    when => !when.is_of_an_effect() || method.starts_with("host."),
                });
                all.extend(named.map(|method| Fault { on: Some((*method).to_owned()), ..one.clone() }));
                all.extend((!when.is_of_a_request()).then_some(one));
            }
        }
    }
    all
}

/// The key that `check` blames.
fn blamed(fault: Fault) -> &'static str {
    fault.check().expect_err("impossible").key
}

#[test]
fn every_fault_of_the_catalogue_survives_toml() {
    let faults = Faults { faults: every_fault() };
    let text = toml::to_string(&faults).unwrap();
    assert_eq!(toml::from_str::<Faults>(&text).unwrap(), faults);
}

#[test]
fn every_fault_of_the_catalogue_survives_the_plan_in_json() {
    let plan = plan(&every_fault());
    assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
}

#[test]
fn every_fault_of_the_catalogue_is_possible_at_each_of_its_moments() {
    for fault in every_fault() {
        assert_eq!(fault.check(), Ok(()), "{fault:?}");
    }
}

#[test]
fn every_fault_is_refused_at_every_other_moment() {
    for entry in catalogue() {
        for when in When::ALL.into_iter().filter(|when| !entry.moments.contains(when)) {
            let fault = Fault { when: Some(when), ..fault(entry.examples[0].clone()) };
            assert_eq!(blamed(fault), "when", "{} {}", entry.name, when.name());
        }
    }
}

#[test]
fn names_and_docs_are_unique_and_names_are_those_of_the_written_form() {
    let entries = catalogue();
    let names: BTreeSet<&str> = entries.iter().map(|entry| entry.name).collect();
    let docs: BTreeSet<&str> = entries.iter().map(|entry| entry.doc).collect();
    assert_eq!((names.len(), docs.len()), (entries.len(), entries.len()));
    for entry in entries {
        for act in &entry.examples {
            assert_eq!(act.name(), entry.name);
            let written = serde_json::to_value(act).unwrap();
            let name = written.as_str().or_else(|| written.as_object()?.keys().next().map(String::as_str));
            assert_eq!(name, Some(entry.name));
        }
    }
}

#[test]
fn moments_are_written_as_they_are_named() {
    for when in When::ALL {
        assert_eq!(serde_json::to_value(when).unwrap(), when.name());
    }
    for sig in Sig::ALL {
        assert_eq!(serde_json::to_value(sig).unwrap(), sig.name());
        assert_eq!(Sig::from_number(sig.number()), Some(sig));
    }
}

#[test]
fn a_fault_of_the_process_names_no_method() {
    let named = Fault { on: Some("initialize".to_owned()), when: Some(When::OnEof), ..fault(Act::Exit(0)) };
    assert_eq!(blamed(named), "on");
}

#[test]
fn a_method_that_is_not_served_has_no_fault() {
    assert_eq!(blamed(Fault { on: Some("link.teleport".to_owned()), ..fault(Act::NotJson) }), "on");
}

#[test]
fn there_is_no_second_initialize_in_a_process() {
    assert_eq!(blamed(Fault { nth: Some(2), ..fault(Act::NotJson) }), "nth");
}

#[test]
fn a_moment_around_an_effect_belongs_to_the_calls_of_hosts() {
    let before = Fault { when: Some(When::BeforeEffect), ..fault(Act::Exit(0)) };
    assert_eq!(blamed(before.clone()), "when");
    assert_eq!(blamed(Fault { on: Some("link.exec".to_owned()), ..before.clone() }), "on");
    assert_eq!(Fault { on: Some("host.status".to_owned()), ..before }.check(), Ok(()));
}

#[test]
fn a_fault_of_other_methods_is_refused() {
    for (act, method) in [(Act::ExitCode(1), "link.checkSteps"), (Act::NoFetchHead, "link.exec")] {
        assert_eq!(blamed(Fault { on: Some(method.to_owned()), ..fault(act.clone()) }), "on");
        assert_eq!(blamed(fault(act)), "on");
    }
}

#[test]
fn counting_begins_at_one() {
    assert_eq!(blamed(Fault { times: Some(0), ..fault(Act::NotJson) }), "times");
    assert_eq!(blamed(Fault { times: Some(2), ..fault(Act::NotJson) }), "times");
    assert_eq!(blamed(Fault { nth: Some(0), ..fault(Act::NotJson) }), "nth");
    assert_eq!(blamed(Fault { start: Some(0), ..fault(Act::NotJson) }), "start");
}

#[test]
fn a_deed_in_the_middle_of_a_reply_cannot_be_later() {
    let late = Fault { after_ms: Some(1), when: Some(When::MidReply), ..fault(Act::Exit(0)) };
    assert_eq!(blamed(late), "after_ms");
}

#[test]
fn delays_and_deliveries_take_no_second_delay() {
    for act in [Act::DelayMs(5), Act::ByteByByte] {
        assert_eq!(blamed(Fault { after_ms: Some(1), ..fault(act) }), "after_ms");
    }
}

#[test]
fn values_that_mean_nothing_are_refused() {
    let acts = [
        Act::Nesting(2),
        Act::EndlessLine(0),
        Act::StderrFlood(5 << 30),
        Act::Line("a\nb".to_owned()),
        Act::DieOf(Sig::Cont),
        Act::LeaveChild(Background { until: Until::Eof, ..Background::default() }),
        Act::LeakEnvReply("A=B".to_owned()),
        Act::PaddedString(0),
        Act::LeaveChild(Background { forks: 10_001, ..Background::default() }),
    ];
    for act in acts {
        assert_eq!(blamed(fault(act)), "do");
    }
    let reads = Background { until: Until::Eof, holds: vec![Fd::Stdin], ..Background::default() };
    assert_eq!(fault(Act::LeaveChild(reads)).check(), Ok(()));
}

#[test]
fn a_plan_takes_the_faults_of_its_own_plugin_alone() {
    let other = Fault::new("crate", Act::NotJson);
    assert_eq!(plan(&[other, fault(Act::Bom)]).faults, [fault(Act::Bom)]);
}

#[test]
fn a_plan_with_an_unknown_member_is_refused() {
    let json = br#"{"name":"box","declaration":{},"faults":[],"record":false,"surplus":1}"#;
    assert!(Plan::from_json(json).is_err());
}
