//! What a scenario file says once it is read, and that writing it loses nothing.

use super::super::{Db, Scenario, SignalAt};
use super::{EVERYTHING, parse};
use crate::fake::{Act, Fault, Group, Kind, Mode, Seam, Sig, When, catalogue};

const SMALL: &str = "title = 't'\nrules = ['A-10']\n[plugins.box]\n[[steps]]\nrun = 'mu plugin list'\n";

#[test]
fn what_is_left_out_has_its_default() {
    let scenario = parse(SMALL).unwrap();
    assert_eq!((scenario.seed, scenario.real, scenario.why_not_real), (0, true, None));
    assert_eq!(scenario.plugins["box"].seams, [Seam::Link]);
    assert_eq!(scenario.plugins["box"].file.mode, Mode(0o755));
    let step = &scenario.steps[0];
    assert_eq!((step.exit, step.overlap, step.signal.len()), (None, false, 0));
}

#[test]
fn every_key_is_read() {
    let scenario = parse(EVERYTHING).unwrap();
    let plugin = &scenario.plugins["box"];
    assert_eq!((plugin.file.kind, plugin.file.busy_ms), (Kind::Busy, Some(50)));
    let declared = plugin.declaration("box", "sha256:00").unwrap();
    assert_eq!(declared["seams"]["link"]["maxScriptBytes"], 10);
    assert_eq!(declared["seams"]["channel"]["caps"]["watch"], "poll");
    let fault = &scenario.faults[0];
    assert_eq!((fault.nth, fault.start, fault.after_ms), (Some(1), Some(2), Some(300)));
    assert_eq!(fault.moment(), When::AfterReply);
    assert!(matches!(&fault.act, Act::LeaveChild(child) if child.group == Group::Setsid));
    assert_eq!(scenario.faults[1].moment(), When::Instead);
    assert_eq!((scenario.steps[0].db, scenario.steps[0].wall_step_ms), (Some(Db::Garbage), Some(-5000)));
    assert_eq!(scenario.steps[1].signal, [SignalAt { to: "mu".to_owned(), what: Sig::Term, at_ms: 50 }]);
    assert_eq!(scenario.steps[1].took_ms, Some((9900, 10_200)));
    assert_eq!(scenario.steps[2].wire.len(), 2);
}

#[test]
fn writing_and_reading_gives_the_same_scenario() {
    let scenario = parse(EVERYTHING).unwrap();
    let text = scenario.to_toml();
    assert_eq!(parse(&text).unwrap(), scenario, "{text}");
}

#[test]
fn what_is_written_looks_as_people_write_it() {
    let text = parse(EVERYTHING).unwrap().to_toml();
    assert!(text.starts_with("title = \"Everything at once\"\nwhy = "), "{text}");
    assert!(text.contains("\n[[faults]]\nplugin = \"other-1\"\ndo = \"invalid-utf8-middle\"\n"), "{text}");
    assert!(text.contains("\nexit = 4\nerror = \"PluginRefused\"\n"), "{text}");
    assert!(text.contains("file = { other-1 = { kind = \"fifo\" } }\n"), "{text}");
    assert!(!text.contains("[steps."), "{text}");
}

#[test]
fn defaults_are_not_written() {
    let text = parse(SMALL).unwrap().to_toml();
    let wanted = "title = \"t\"\nrules = [\"A-10\"]\n\n[plugins.box]\nseams = [\"link\"]\n\n[[steps]]\nrun = \"mu plugin list\"\n";
    assert_eq!(text, wanted);
}

#[test]
fn a_scenario_of_every_fault_survives_writing() {
    let mut scenario: Scenario = parse(SMALL).unwrap();
    for entry in catalogue() {
        let on = entry.moments[0].is_of_a_request().then(|| entry.methods[0].to_owned());
        let fault = |act| Fault { on: on.clone(), ..Fault::new("box", act) };
        scenario.faults.extend(entry.examples.into_iter().map(fault));
    }
    let text = scenario.to_toml();
    assert_eq!(parse(&text).unwrap(), scenario);
}

#[test]
fn placeholders_become_paths_inside_quotes_too() {
    let scenario = parse(EVERYTHING).unwrap();
    let argv = scenario.steps[1].argv(&|name| format!("/p/{name}")).unwrap().unwrap();
    assert_eq!(argv, ["mu", "plugin", "add", "box", "--", "/p/box", "--flag", "two words"]);
    assert!(scenario.steps[0].argv(&str::to_owned).is_none());
}
