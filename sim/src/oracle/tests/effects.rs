//! Conversations about effects, for the tests of their oracles; and how the requests about them are read.

use super::*;
use crate::oracle::effects::{is_effect, undated};
use crate::oracle::rows::EffectRow;

/// A provider that declares this about its acquires.
pub(super) fn provider(acquire: &str) -> String {
    let link = r#"{"fetch":true,"push":true,"slots":"self","remoteOnTimeout":"stopped","maxScriptBytes":9,"checks":[]}"#;
    let seams = format!(r#"{{"link":{link},"host":{{"acquire":{acquire}}}}}"#);
    result(1, &format!(r#"{{"instance":"i","seams":{seams}}}"#))
}

/// A request about host `h`; `target` and `own` are members beside the usual ones.
pub(super) fn about(id: u64, method: &str, target: &str, own: &str) -> String {
    let deadline = LATER + id;
    let params = format!(r#"{{"deadline":{deadline},"target":{{"host":{{"name":"h"{target}}}}}{own}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// `host.acquire` with this key.
pub(super) fn acquire(id: u64, key: &str) -> String {
    about(id, "host.acquire", "", &format!(r#","key":"{key}","params":{{"size":"2"}}"#))
}

/// `host.lookup` of this key.
pub(super) fn lookup(id: u64, key: &str, fence: bool) -> String {
    about(id, "host.lookup", "", &format!(r#","key":"{key}","fence":{fence}"#))
}

/// The host `vm` of instance `i` in a target.
pub(super) const VM: &str = r#","handle":"vm","instance":"i""#;

/// `host.release` of `vm`, with this key.
pub(super) fn release(id: u64, key: &str) -> String {
    about(id, "host.release", VM, &format!(r#","key":"{key}""#))
}

/// The answer that makes `vm`.
pub(super) fn made(id: u64) -> String {
    result(id, r#"{"handle":"vm"}"#)
}

/// The intent that a request should have, sent to box.
pub(super) fn intent(line: &str) -> EffectRow {
    use sha2::{Digest, Sha256};
    let json: serde_json::Value = serde_json::from_str(line).expect("a request");
    let params = undated(line.as_bytes()).expect("it has parameters");
    let digest = Sha256::digest(params.as_bytes());
    EffectRow {
        key: json["params"]["key"].as_str().unwrap().into(),
        method: json["method"].as_str().unwrap().into(),
        plugin: "box".into(),
        instance: "i".into(),
        host: "h".into(),
        sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        params,
        sends: vec![(json["id"].as_u64().unwrap(), json["params"]["deadline"].as_u64().unwrap(), BOX)],
    }
}

/// How its acquires are resolved, usually.
pub(super) const FENCED: &str = r#"{"lookup":true,"fenceKey":true}"#;

impl Tale {
    /// box is a provider.
    pub(super) fn provided(acquire: &str) -> Tale {
        Tale::greeted().box_says(&provider(acquire)).mu_reads(BOX)
    }

    /// What is durable from here on.
    pub(super) fn holds(mut self, effects: Vec<EffectRow>) -> Tale {
        let place = self.events.len();
        self.images.push(Image { place, rows: Rows { effects, ..Rows::default() } });
        self
    }

    /// mu writes an effect to box, whose intent is durable.
    pub(super) fn mu_asks(self, line: &str) -> Tale {
        let row = intent(line);
        self.holds(vec![row]).mu_says(BOX, line).plugin_reads(BOX)
    }

    /// A second mu, 200, has started box as process 201 and greeted it.
    pub(super) fn another(self, acquire: &str) -> Tale {
        let tale = self.mu_starts(200).plugin_starts(200, 201, "box");
        let tale = tale.other_says(&initialize(1));
        let declared = format!("{}\n", provider(acquire));
        tale.writes(201, Tale::pipe(201, Std::Out), declared.as_bytes()).reads(200, Tale::pipe(201, Std::Out))
    }

    /// The second mu writes a line.
    pub(super) fn other_says(self, line: &str) -> Tale {
        let tale = self.writes(200, Tale::pipe(201, Std::In), format!("{line}\n").as_bytes());
        tale.reads(201, Tale::pipe(201, Std::In))
    }

    /// The second mu writes an effect, whose intent is durable.
    pub(super) fn other_asks(self, line: &str) -> Tale {
        let row = intent(line);
        let (id, deadline, _) = row.sends[0];
        self.holds(vec![EffectRow { sends: vec![(id, deadline, 201)], ..row }]).other_says(line)
    }

    /// Its box answers, and all of it ends as it should.
    pub(super) fn other_is_answered(self, line: &str) -> Tale {
        let tale = self.writes(201, Tale::pipe(201, Std::Out), format!("{line}\n").as_bytes());
        let tale = tale.reads(200, Tale::pipe(201, Std::Out)).other_says(SHUTDOWN);
        let tale = tale.push(200, What::CloseWrite(Tale::pipe(201, Std::In))).ends(201, Exit::Status(0));
        let tale = tale.signals(200, Target::Group(Pid(201)), 9).push(200, What::Reap { child: Pid(201) });
        tale.ends(200, Exit::Status(0))
    }

    /// mu is killed, and box ends with its stdin.
    pub(super) fn mu_is_killed(self) -> Tale {
        self.mu_ends_with(Exit::Signal(9)).ends(BOX, Exit::Status(0))
    }
}

#[test]
fn the_parameters_of_a_request_are_taken_byte_for_byte() {
    let line = r#"{"id":1,"method":"host.acquire","params":{"b": 1.0,"deadline":5,"a":"\u0041"}}"#;
    assert_eq!(undated(line.as_bytes()).as_deref(), Some(r#"{"b":1.0,"a":"\u0041"}"#));
    assert_eq!(undated(b"{}"), None);
}

/// EFF-01
#[test]
fn ten_methods_are_effects_and_nothing_else_is() {
    assert!(is_effect(acquire(2, "k").as_bytes()));
    assert!(is_effect(format!("{}\nmore", release(2, "k")).as_bytes()));
    assert!(!is_effect(lookup(2, "k", true).as_bytes()));
    assert!(!is_effect(script(2).replace("true", "host.acquire").as_bytes()));
    assert!(!is_effect(br#"{"jsonrpc":"2.0","method":"host.acquire"}"#));
}

#[test]
fn a_sound_acquire_and_release_pass_all_oracles() {
    let tale = Tale::provided(FENCED).mu_asks(&acquire(2, "k")).answers(&made(2));
    tale.mu_asks(&release(3, "r")).answers(&result(3, "null")).done(0).passes_all();
}
