//! Every oracle can fail: a conversation that all of them accept, and for each invariant one that breaks it and nothing
//! else. The traces are made by hand, so nothing of the machine or of mu is in them.

mod answers;
mod converged;
mod crash;
mod deadlines;
mod effects;
mod history;
mod ids;
mod instance;
mod intent;
mod ledger;
mod leftover;
mod link;
mod parties;
mod releasing;
mod remote;
mod resend;
mod rows;
mod schema;
mod secrets;
mod shape;
mod start;
mod stopping;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use mu_core::os::{Exit, Pid};

use super::intent::Image;
use super::ledger::Books;
use super::rows::Rows;
use super::{Excuses, Leak, Ns, Observed, Ran, check};
use crate::trace::{Effect, Event, OUTSIDE, PipeId, PipeRef, Role, Std, Target, What};

/// The mu that most tests are about, its plugin `box`, and a process beside that.
const MU: i32 = 100;
const BOX: i32 = 101;
const HELPER: i32 = 102;

const CANARY: &str = "canary-7";
/// The deadlines of the calls begin here: an hour after the wall clock begins.
const LATER: u64 = 1_767_229_200_000;
const SHUTDOWN: &str = r#"{"jsonrpc":"2.0","method":"shutdown"}"#;

fn initialize(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocol":{{"min":1,"max":1}},"mu":"5"}}}}"#
    )
}

fn cancel(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"$/cancel","params":{{"id":{id}}}}}"#)
}

fn reply(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

/// A call of the link on host `h`; `own` are the parameters beside deadline and target.
fn call(id: u64, method: &str, own: &str) -> String {
    let deadline = LATER + id;
    let params = format!(r#"{{"deadline":{deadline},"target":{{"host":{{"name":"h"}}}},{own}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// `link.exec` with a timeout of 20 s.
fn script(id: u64) -> String {
    call(id, "link.exec", r#""script":"true","cwd":".","timeoutMs":20000"#)
}

fn result(id: u64, result: &str) -> String {
    reply(id).replace("{}", result)
}

fn run(id: u64, exit_code: &str) -> String {
    let run = format!(r#"{{"exitCode":{exit_code},"stdout":"out\n","stderr":"","partial":false}}"#);
    result(id, &run)
}

fn error(id: u64, data: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"no","data":{data}}}}}"#)
}

/// The reply to `initialize` of a plugin with this link, changed in one place.
fn declaration(from: &str, to: &str) -> String {
    let link = r#"{"fetch":true,"push":true,"slots":"self","remoteOnTimeout":"stopped","maxScriptBytes":9,"checks":["reach"]}"#;
    result(1, &format!(r#"{{"seams":{{"link":{}}}}}"#, link.replace(from, to)))
}

/// A trace that is being made, and what else the oracles look at.
#[derive(Clone)]
struct Tale {
    at: Ns,
    events: Vec<Event>,
    /// Bytes written to and read from each pipe.
    pipes: BTreeMap<PipeId, (u64, u64)>,
    ran: Vec<Ran>,
    files: Vec<(PathBuf, Vec<u8>)>,
    stubborn: BTreeSet<String>,
    leak: Leak,
    images: Vec<Image>,
    rows: Rows,
    books: Books,
    excuses: Excuses,
}

impl Tale {
    /// Nothing has happened.
    fn new() -> Tale {
        Tale {
            at: 1_000_000_000,
            events: Vec::new(),
            pipes: BTreeMap::new(),
            ran: Vec::new(),
            files: vec![("/mu.db".into(), b"SQLite format 3".to_vec())],
            stubborn: BTreeSet::new(),
            leak: Leak::Nothing,
            images: Vec::new(),
            rows: Rows::default(),
            books: Books::default(),
            excuses: Excuses::default(),
        }
    }

    /// mu has started box.
    fn started() -> Tale {
        Tale::new().mu_starts(MU).plugin_starts(MU, BOX, "box")
    }

    /// mu has said initialize to box, with id 1.
    fn greeted() -> Tale {
        Tale::started().mu_says(BOX, &initialize(1)).plugin_reads(BOX)
    }

    /// box has answered.
    fn ready() -> Tale {
        Tale::greeted().box_says(&reply(1)).mu_reads(BOX)
    }

    /// mu has told box to end and closed its stdin.
    fn stopped() -> Tale {
        Tale::ready().mu_says(BOX, SHUTDOWN).mu_closes(BOX)
    }

    /// The whole of a conversation that is as it should be.
    fn sound() -> Tale {
        Tale::stopped().box_ends().mu_ends()
    }

    /// `mu host exec`: box has a link, changed in one place, and was asked to run a script as call 2.
    fn calls(from: &str, to: &str) -> Tale {
        Tale::linked(from, to).runs("mu host exec h -- true").mu_says(BOX, &script(2)).plugin_reads(BOX)
    }

    /// box has answered with a link, changed in one place.
    fn linked(from: &str, to: &str) -> Tale {
        Tale::greeted().box_says(&declaration(from, to)).mu_reads(BOX)
    }

    /// What the mu is asked to do.
    fn runs(mut self, line: &str) -> Tale {
        self.ran[0].argv = line.split(' ').map(Into::into).collect();
        self
    }

    /// box says a line and mu reads it.
    fn answers(self, line: &str) -> Tale {
        self.box_says(line).mu_reads(BOX)
    }

    /// mu cancels these calls and stops box.
    fn gives_up(self, ids: &[u64]) -> Tale {
        let tale = ids.iter().fold(self, |tale, id| tale.mu_says(BOX, &cancel(*id)));
        tale.mu_says(BOX, SHUTDOWN).mu_closes(BOX)
    }

    /// The end of a conversation that is as it should be.
    fn done(self, status: i32) -> Tale {
        self.gives_up(&[]).box_ends().mu_ends_with(Exit::Status(status))
    }

    fn push(mut self, pid: i32, what: What) -> Tale {
        self.events.push(Event { at: self.at, pid: Pid(pid), what });
        self
    }

    fn passes(mut self, ms: u64) -> Tale {
        self.at += ms * 1_000_000;
        self
    }

    fn spawns(self, parent: Pid, child: i32, argv0: &str, group: i32) -> Tale {
        let (child, group) = (Pid(child), Pid(group));
        self.push(parent.0, What::Spawn { child, argv: [argv0.into()].into(), group, session: Pid(2) })
    }

    fn mu_starts(mut self, pid: i32) -> Tale {
        self.ran.push(Ran {
            pid: Pid(pid),
            argv: ["mu", "plugin", "check"].map(Into::into).into(),
            stdout: Vec::new(),
            stderr: Vec::new(),
            exit: None,
            crash: false,
            heard: true,
        });
        self.spawns(OUTSIDE, pid, "/bin/mu", pid)
    }

    fn plugin_starts(self, mu: i32, pid: i32, name: &str) -> Tale {
        self.spawns(Pid(mu), pid, &format!("/plugins/mu-plugin-{name}"), pid)
    }

    /// box starts a process in its group.
    fn helper_starts(self) -> Tale {
        self.spawns(Pid(BOX), HELPER, "sleep", BOX)
    }

    fn pipe(of: i32, stream: Std) -> PipeRef {
        PipeRef { id: PipeId(of as u32 * 4 + stream as u32), role: Some(Role { of: Pid(of), stream }) }
    }

    fn writes(mut self, pid: i32, pipe: PipeRef, bytes: &[u8]) -> Tale {
        self.pipes.entry(pipe.id).or_default().0 += bytes.len() as u64;
        self.push(pid, What::Write { pipe, bytes: bytes.into() })
    }

    fn reads(mut self, pid: i32, pipe: PipeRef) -> Tale {
        let (written, read) = self.pipes.entry(pipe.id).or_default();
        let (offset, count) = (*read, *written - *read);
        *read = *written;
        self.push(pid, What::Read { pipe, offset, count })
    }

    /// mu writes a line to a plugin.
    fn mu_says(self, plugin: i32, line: &str) -> Tale {
        self.writes(MU, Tale::pipe(plugin, Std::In), format!("{line}\n").as_bytes())
    }

    fn plugin_reads(self, plugin: i32) -> Tale {
        self.reads(plugin, Tale::pipe(plugin, Std::In))
    }

    fn box_says(self, line: &str) -> Tale {
        self.writes(BOX, Tale::pipe(BOX, Std::Out), format!("{line}\n").as_bytes())
    }

    fn mu_reads(self, plugin: i32) -> Tale {
        self.reads(MU, Tale::pipe(plugin, Std::Out))
    }

    fn mu_closes(self, plugin: i32) -> Tale {
        self.push(MU, What::CloseWrite(Tale::pipe(plugin, Std::In)))
    }

    fn signals(self, sender: i32, to: Target, number: i32) -> Tale {
        self.push(sender, What::Signal { to, number })
    }

    fn mu_kills(self, plugin: i32) -> Tale {
        self.signals(MU, Target::Group(Pid(plugin)), 9)
    }

    /// A script makes mu panic.
    fn mu_is_made_to_panic(mut self) -> Tale {
        self.ran[0].crash = true;
        self.push(MU, What::Fault("panic at call 3 of the operating system, now".into()))
    }

    /// A handled signal reaches mu.
    fn mu_is_told(self, number: i32) -> Tale {
        self.push(MU, What::Delivered { number, effect: Effect::Handled })
    }

    fn ends(self, pid: i32, exit: Exit) -> Tale {
        self.push(pid, What::Exit(exit))
    }

    fn mu_reaps(self, plugin: i32) -> Tale {
        self.push(MU, What::Reap { child: Pid(plugin) })
    }

    /// box exits; mu kills what is left of its group and reaps it.
    fn box_ends(self) -> Tale {
        self.ends(BOX, Exit::Status(0)).mu_kills(BOX).mu_reaps(BOX)
    }

    /// mu ends box by force and reaps it.
    fn box_is_killed(self) -> Tale {
        self.mu_kills(BOX).ends(BOX, Exit::Signal(9)).mu_reaps(BOX)
    }

    fn mu_ends(self) -> Tale {
        self.mu_ends_with(Exit::Status(0))
    }

    fn mu_ends_with(mut self, exit: Exit) -> Tale {
        self.ran[0].exit = Some(exit);
        self.ends(MU, exit)
    }

    fn mu_prints(mut self, stdout: &str, stderr: &str) -> Tale {
        self.ran[0].stdout = stdout.into();
        self.ran[0].stderr = stderr.into();
        self
    }

    /// The rules that the oracles find broken, in the order of their reports.
    fn rules(&self) -> Vec<&'static str> {
        let observed = Observed {
            events: &self.events,
            now: self.at,
            ran: &self.ran,
            files: &self.files,
            canary: CANARY,
            stubborn: &self.stubborn,
            leak: self.leak,
            images: &self.images,
            rows: &self.rows,
            books: &self.books,
            excuses: self.excuses,
        };
        check(&observed).into_iter().map(|violation| violation.rule).collect()
    }

    fn passes_all(&self) {
        assert_eq!(self.rules(), [""; 0]);
    }

    fn breaks(&self, rule: &str) {
        assert_eq!(self.rules(), [rule]);
    }
}

#[test]
fn a_sound_conversation_passes_all_oracles() {
    Tale::sound().passes_all();
}

/// Reports cite rules that a reader can look up.
#[test]
fn every_rule_of_the_protocol_that_an_oracle_cites_exists() {
    let sources = [
        include_str!("../crash.rs"),
        include_str!("../leftover.rs"),
        include_str!("../start.rs"),
        include_str!("../stopping.rs"),
        include_str!("../ids.rs"),
        include_str!("../secrets.rs"),
        include_str!("../schema.rs"),
        include_str!("../deadlines.rs"),
        include_str!("../resend.rs"),
        include_str!("../link.rs"),
        include_str!("../remote.rs"),
        include_str!("../intent.rs"),
        include_str!("../instance.rs"),
        include_str!("../parties.rs"),
        include_str!("../releasing.rs"),
        include_str!("../ledger.rs"),
    ];
    let quoted = sources.iter().flat_map(|source| source.split('"').skip(1).step_by(2));
    let is_id = |text: &&str| {
        let mut parts = text.split('-');
        let (group, number) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        group.chars().all(|c| c.is_ascii_uppercase()) && number.len() == 2 && number.parse::<u8>().is_ok()
    };
    let ids: Vec<&str> = quoted.filter(is_id).collect();
    assert!(ids.len() > 20, "{ids:?}");
    for id in ids {
        assert!(crate::scenario::is_rule(id), "{id}");
    }
}
