//! The fake plugin's executable on real processes: it does what its plan says, and a driver can read what it saw.
// Real processes are what is tested here; nothing of mu's runs.
#![allow(clippy::disallowed_methods)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use mu_sim::fake::{Act, Background, Event, Fault, Group, LogLine, Plan, PluginTable, Sig, Until, When};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid, getpgrp};

const INITIALIZE: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocol\":{\"min\":1,\"max\":1},\"mu\":\"5\"}}\n";

/// An installed plugin called `box`.
struct Installed {
    dir: tempfile::TempDir,
}

impl Installed {
    fn new(faults: &[Fault]) -> Installed {
        let dir = tempfile::tempdir().unwrap();
        let mut plan = Plan::new("box", &PluginTable::default(), faults, "sha256:00").unwrap();
        plan.record = true;
        std::fs::write(dir.path().join("mu-plugin-box.plan.json"), plan.to_json()).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_mu-fake-plugin"), dir.path().join("mu-plugin-box"))
            .unwrap();
        Installed { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("mu-plugin-box")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        command
    }

    /// Starts it and sends `initialize`.
    fn greeted(&self) -> Child {
        let mut child = self.command().spawn().unwrap();
        // A plugin that has exited already has closed the pipe.
        let _ = child.stdin.as_mut().unwrap().write_all(INITIALIZE);
        child
    }

    /// A whole life: `initialize`, then the end of stdin.
    fn lived(&self) -> std::process::Output {
        ended(self.greeted())
    }

    fn log(&self) -> Vec<LogLine> {
        LogLine::parse_all(&std::fs::read(self.dir.path().join("mu-plugin-box.log")).unwrap()).unwrap()
    }

    fn events(&self) -> Vec<Event> {
        self.log().into_iter().map(|line| line.event).collect()
    }
}

fn fault(act: Act) -> Fault {
    Fault::new("box", act)
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}

#[test]
fn it_answers_and_exits_when_stdin_ends() {
    let output = Installed::new(&[]).lived();
    assert_eq!(output.status.code(), Some(0));
    let reply = String::from_utf8(output.stdout).unwrap();
    assert!(reply.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":{"#) && reply.ends_with("}}\n"), "{reply}");
    assert_eq!(output.stderr, b"");
}

#[test]
fn it_exits_with_the_status_of_its_fault() {
    let output = Installed::new(&[fault(Act::Exit(3))]).lived();
    assert_eq!((output.status.code(), output.stdout), (Some(3), Vec::new()));
}

#[test]
fn it_dies_of_the_signal_of_its_fault() {
    for sig in [Sig::Segv, Sig::Pipe, Sig::Kill, Sig::Term] {
        let output = Installed::new(&[fault(Act::DieOf(sig))]).lived();
        assert_eq!(output.status.signal(), Some(sig.number()));
    }
}

#[test]
fn it_counts_its_starts_across_processes() {
    let installed = Installed::new(&[2, 3].map(|n| Fault { start: Some(n.into()), ..fault(Act::Exit(n)) }));
    let statuses = [(); 3].map(|()| installed.lived().status.code());
    assert_eq!(statuses, [Some(0), Some(2), Some(3)]);
}

#[test]
fn it_logs_arguments_names_of_variables_lines_and_its_end() {
    let installed = Installed::new(&[fault(Act::StderrText("hello".to_owned()))]);
    let mut child =
        installed.command().args(["--x", "y z"]).env("MU_PLUGIN_CANARY", "secret-4711").spawn().unwrap();
    child.stdin.take().unwrap().write_all(INITIALIZE).unwrap();
    assert_eq!(child.wait_with_output().unwrap().stderr, b"hello\n");
    let events = installed.events();
    let Event::Started { args, env } = &events[0] else { panic!("{events:?}") };
    assert_eq!(args, &["--x", "y z"]);
    assert!(env.iter().any(|name| name == "MU_PLUGIN_CANARY"));
    let line = String::from_utf8(INITIALIZE.trim_ascii_end().to_vec()).unwrap();
    let rest = [Event::Line(line), Event::Fault("stderr-text".to_owned()), Event::Eof(0), Event::Exit(0)];
    assert_eq!(events[1..], rest);
    let log = std::fs::read_to_string(installed.dir.path().join("mu-plugin-box.log")).unwrap();
    assert!(!log.contains("secret-4711"));
}

#[test]
fn it_logs_the_signal_that_it_dies_of() {
    let installed = Installed::new(&[]);
    let mut child = installed.greeted();
    first_line(&mut child);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    assert_eq!(installed.events().last(), Some(&Event::Signal("TERM".to_owned())));
}

/// What ignores SIGTERM is still alive after it, and answers what is sent then.
#[test]
fn it_ignores_signals_when_told_to() {
    let installed = Installed::new(&[fault(Act::IgnoreSignals)]);
    let mut child = installed.greeted();
    first_line(&mut child);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    child.stdin.as_mut().unwrap().write_all(INITIALIZE).unwrap();
    assert!(first_line(&mut child).contains("\"result\""));
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// HSK-08
#[test]
fn it_answers_after_the_delay_and_not_before() {
    let installed = Installed::new(&[fault(Act::DelayMs(30))]);
    installed.lived();
    let at = |wanted: fn(&Event) -> bool| installed.log().iter().find(|line| wanted(&line.event)).unwrap().ms;
    let asked = at(|event| matches!(event, Event::Line(_)));
    assert!(at(|event| matches!(event, Event::Eof(_))) >= asked + 30);
}

#[test]
fn it_holds_its_reply_until_stdin_ends() {
    let installed = Installed::new(&[fault(Act::HoldUntilEof)]);
    let mut child = installed.greeted();
    drop(child.stdin.take());
    assert!(first_line(&mut child).contains("\"result\""));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A-72
#[test]
fn it_closes_stdout_and_lives_on() {
    let installed = Installed::new(&[fault(Act::UnterminatedClose)]);
    let mut child = installed.greeted();
    let mut all = String::new();
    child.stdout.as_mut().unwrap().read_to_string(&mut all).unwrap();
    assert!(all.ends_with("}}"));
    assert!(child.try_wait().unwrap().is_none());
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// TRN-07
#[test]
fn it_floods_stderr_without_end_of_its_own() {
    let output = Installed::new(&[fault(Act::StderrFlood(10 << 20))]).lived();
    assert_eq!(output.stderr.len(), 10 << 20);
    assert!(!output.stdout.is_empty());
}

/// PRC-17
#[test]
fn it_leaves_a_child_in_its_group_that_holds_stdout() {
    let installed = Installed::new(&[fault(Act::ExitLeavingStdoutHeld(5))]);
    let mut child = installed.greeted();
    let group = Pid::from_raw(child.id() as i32);
    // Not yet reaped, so that the number of the group stays taken.
    let exited = nix::sys::wait::WaitPidFlag::WEXITED | nix::sys::wait::WaitPidFlag::WNOWAIT;
    nix::sys::wait::waitid(nix::sys::wait::Id::Pid(group), exited).unwrap();
    let mut poll = [nix::poll::PollFd::new(
        std::os::fd::AsFd::as_fd(child.stdout.as_ref().unwrap()),
        nix::poll::PollFlags::POLLIN,
    )];
    assert_eq!(nix::poll::poll(&mut poll, nix::poll::PollTimeout::ZERO).unwrap(), 0, "stdout is still held");
    killpg(group, Signal::SIGKILL).unwrap();
    let mut rest = Vec::new();
    child.stdout.as_mut().unwrap().read_to_end(&mut rest).unwrap();
    assert_eq!((rest.len(), child.wait().unwrap().code()), (0, Some(5)));
}

/// A request of the link with these parameters beside deadline and target.
fn call(id: u64, method: &str, own: &str) -> String {
    let params = format!(r#"{{"deadline":1,"target":{{"host":{{"name":"h"}}}},{own}}}"#);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
}

/// SEAM-05: the later call is the shorter one.
#[test]
fn it_runs_scripts_side_by_side() {
    let installed = Installed::new(&[]);
    let mut child = installed.greeted();
    let script =
        |id, script| call(id, "link.exec", &format!(r#""script":"{script}","cwd":".","timeoutMs":60"#));
    let calls = script(2, "echo a; sleep 5") + &script(3, "sleep 0.02; exit 7");
    child.stdin.as_mut().unwrap().write_all(calls.as_bytes()).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let replies: Vec<String> = lines.take(3).map(Result::unwrap).collect();
    assert!(replies[1].contains(r#""id":3,"result":{"exitCode":7,"#), "{replies:?}");
    assert!(
        replies[2].contains(r#""exitCode":null,"partial":true,"stderr":"","stdout":"a\n""#),
        "{replies:?}"
    );
    assert_eq!(ended(child).status.code(), Some(0));
}

/// LINK-03
#[test]
fn it_fetches_into_the_repository_or_fails() {
    let installed = Installed::new(&[]);
    let repo = installed.dir.path().join("repo");
    let fetch = |id| {
        let own = format!(r#""remoteCwd":"work","localRepo":"{}","timeoutMs":1"#, repo.display());
        call(id, "link.fetch", &own)
    };
    let mut child = installed.greeted();
    first_line(&mut child);
    child.stdin.as_mut().unwrap().write_all(fetch(2).as_bytes()).unwrap();
    assert!(first_line(&mut child).contains(r#""exitCode":128"#));
    std::fs::create_dir_all(repo.join(".git")).unwrap();
    child.stdin.as_mut().unwrap().write_all(fetch(3).as_bytes()).unwrap();
    assert!(first_line(&mut child).contains(r#""exitCode":0"#));
    let head = std::fs::read_to_string(repo.join(".git/FETCH_HEAD")).unwrap();
    assert!(head.len() > 40 && head[..40].bytes().all(|byte| byte.is_ascii_hexdigit()), "{head}");
    ended(child);
}

/// PRC-17: it hands its place on until the group is killed.
#[test]
fn its_child_that_forks_stays_in_its_group() {
    let forks = Background { forks: 10_000, holds: vec![mu_sim::fake::Fd::Stdout], ..Background::default() };
    let installed = Installed::new(&[fault(Act::LeaveChild(forks))]);
    let mut child = installed.greeted();
    first_line(&mut child);
    let group = Pid::from_raw(child.id() as i32);
    let first = installed.events().iter().find_map(|event| match event {
        Event::Child(pid) => Some(*pid),
        _ => None,
    });
    let stat = format!("/proc/{}/stat", first.expect("the log names the child"));
    while !std::fs::read_to_string(&stat).expect("it stays until it is reaped").contains(") Z ") {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    killpg(group, Signal::SIGKILL).unwrap();
    // The output ends once nobody holds it any more.
    let mut rest = Vec::new();
    child.stdout.as_mut().unwrap().read_to_end(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

/// PRC-18
#[test]
fn its_escaped_child_runs_in_another_group_and_is_logged() {
    let escape = Background { group: Group::Setsid, holds: Vec::new(), until: Until::Forever, forks: 0 };
    let installed = Installed::new(&[fault(Act::LeaveChild(escape))]);
    let child = installed.greeted();
    let leader = Pid::from_raw(child.id() as i32);
    // The child holds no stream of the plugin, so the output ends.
    let output = ended(child);
    assert_eq!(output.status.code(), Some(0));
    let left = installed.events().iter().find_map(|event| match event {
        Event::Child(pid) => Some(Pid::from_raw(*pid)),
        _ => None,
    });
    let left = left.expect("the log names the child");
    // A child that held a stream would have kept the output open until its safety alarm.
    let stat = std::fs::read_to_string(format!("/proc/{left}/stat")).unwrap();
    assert!(!stat.contains(") Z "), "it has ended: {stat}");
    let group = getpgid(Some(left)).unwrap();
    assert!(group == left && group != leader && group != getpgrp());
    kill(left, Signal::SIGKILL).unwrap();
}

fn ended(mut child: Child) -> std::process::Output {
    drop(child.stdin.take());
    child.wait_with_output().unwrap()
}

#[test]
fn its_background_process_ends_with_stdin_when_told_to() {
    let reader = Background {
        holds: vec![mu_sim::fake::Fd::Stdin, mu_sim::fake::Fd::Stdout],
        until: Until::Eof,
        ..Background::default()
    };
    let installed =
        Installed::new(&[Fault { when: Some(When::AfterReply), ..fault(Act::LeaveChild(reader)) }]);
    let mut child = installed.greeted();
    assert!(first_line(&mut child).contains("\"result\""));
    drop(child.stdin.take());
    let mut rest = Vec::new();
    child.stdout.as_mut().unwrap().read_to_end(&mut rest).unwrap();
    assert_eq!((rest.len(), child.wait().unwrap().code()), (0, Some(0)));
}

#[test]
fn it_sends_a_signal_to_the_process_that_started_it() {
    let installed = Installed::new(&[fault(Act::KillMu(Sig::Term))]);
    let mut shell = Command::new("sh");
    shell.args(["-c", r#""$0"; echo survived"#]).arg(installed.path());
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(INITIALIZE).unwrap();
    let output = shell.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(15));
    assert!(!String::from_utf8_lossy(&output.stdout).contains("survived"));
}

#[test]
fn without_a_plan_it_says_so_with_a_status_of_its_own() {
    let installed = Installed::new(&[]);
    std::fs::remove_file(installed.dir.path().join("mu-plugin-box.plan.json")).unwrap();
    let output = installed.lived();
    assert_eq!(output.status.code(), Some(96));
    assert!(String::from_utf8_lossy(&output.stderr).contains("plan.json"));
}
