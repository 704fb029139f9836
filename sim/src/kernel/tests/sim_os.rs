//! mu's traits over the machine.

use std::future::poll_fn;
use std::path::Path;
use std::task::Poll;

use mu_core::os::{Child, ChildPipe, Exec, Os, Signal, Stream};
use nix::errno::Errno;

use super::*;
use crate::disk::Node;
use crate::sim_os::{SimChild, SimOs};
use crate::trace::{Target, What};

fn exec(name: &str) -> Exec {
    Exec { argv: vec![name.into()], env: vec![] }
}

/// A machine on which `/plugin` is this program.
fn with_plugin<F>(plugin: impl Fn(Sys) -> F + 'static) -> Machine
where
    F: Future<Output = Exit> + 'static,
{
    let machine = Machine::new(1);
    let node = Node::Program { name: "plugin".to_owned(), busy: false, interpreter_missing: false };
    machine.disk().put(Path::new("/plugin"), 1000, 0o755, node);
    machine.install("plugin", plugin);
    machine
}

fn mu<F>(machine: &Machine, command: &Command, body: impl FnOnce(SimOs) -> F) -> Started
where
    F: Future<Output = Exit> + 'static,
{
    machine.start_fn(command, |sys| body(SimOs::new(sys))).unwrap()
}

async fn echo(sys: Sys) -> Exit {
    let mut buf = [0; 4096];
    while let count @ 1.. = sys.read(STDIN, &mut buf).await.unwrap() {
        sys.write_all(STDOUT, &buf[..count]).await.unwrap();
    }
    Exit::Status(9)
}

async fn read_to_end(child: &mut SimChild, pipe: ChildPipe) -> Vec<u8> {
    let (mut all, mut buf) = (Vec::new(), [0; 100]);
    while let count @ 1.. = poll_fn(|cx| child.poll_read(pipe, cx, &mut buf)).await.unwrap() {
        all.extend_from_slice(&buf[..count]);
    }
    all
}

#[test]
fn a_child_echoes_ends_at_the_end_of_its_stdin_and_is_reaped() {
    let machine = with_plugin(echo);
    let started = mu(&machine, &command("mu"), |os| async move {
        let mut child = os.spawn(&exec("/plugin")).unwrap();
        let taken = poll_fn(|cx| child.poll_write(cx, b"hello\n")).await.unwrap();
        assert_eq!(taken, 6);
        child.close_stdin();
        assert_eq!(read_to_end(&mut child, ChildPipe::Stdout).await, b"hello\n");
        assert_eq!(read_to_end(&mut child, ChildPipe::Stderr).await, b"");
        assert_eq!(poll_fn(|cx| child.poll_exited(cx)).await, Exit::Status(9));
        poll_fn(|cx| child.poll_group_empty(cx)).await;
        child.reap();
        OK
    });
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
    assert_eq!((machine.living(), machine.zombies()), (vec![], vec![]));
}

/// PRC-02
#[test]
fn a_child_leads_a_group_of_its_own() {
    let machine = with_plugin(echo);
    let started = mu(&machine, &command("mu"), |os| async move {
        let child = os.spawn(&exec("/plugin")).unwrap();
        std::future::pending::<()>().await;
        drop(child);
        OK
    });
    machine.run_until(ms(1)).unwrap();
    let [_, plugin] = &machine.living()[..] else { panic!("two live") };
    assert_eq!((plugin.group, plugin.ppid), (plugin.pid, started.pid));
}

/// PRC-15
#[test]
fn when_mu_is_killed_every_plugin_reads_the_end_of_its_stdin() {
    let machine = with_plugin(echo);
    let started = mu(&machine, &command("mu"), |os| async move {
        let children = [os.spawn(&exec("/plugin")).unwrap(), os.spawn(&exec("/plugin")).unwrap()];
        std::future::pending::<()>().await;
        drop(children);
        OK
    });
    machine.signal_at(ms(1), Target::Process(started.pid), SIGKILL);
    machine.run_until_idle().unwrap();
    let exits = find(&machine, |event| match event.what {
        What::Exit(exit) => Some((event.pid.0, exit)),
        _ => None,
    });
    assert_eq!(exits.len(), 3);
    assert!(exits[1..].iter().all(|(_, exit)| *exit == Exit::Status(9)));
}

#[test]
fn dropping_a_child_closes_its_pipes_and_neither_kills_nor_waits() {
    let machine = with_plugin(|sys| async move {
        assert_eq!(sys.read(STDIN, &mut [0; 1]).await.unwrap(), 0);
        sys.sleep(ms(5)).await;
        OK
    });
    let started = mu(&machine, &command("mu"), |os| async move {
        drop(os.spawn(&exec("/plugin")).unwrap());
        std::future::pending().await
    });
    machine.run_until(ms(4)).unwrap();
    assert_eq!(machine.living().len(), 2);
    machine.run_until(ms(6)).unwrap();
    assert_eq!((pids(&machine), machine.zombies()), (vec![started.pid], vec![Pid(101)]));
}

#[test]
fn killing_the_group_reaches_what_the_leader_left_behind() {
    let machine = with_plugin(|sys| async move {
        sys.fork(&forked("helper", &[]), idle).unwrap();
        OK
    });
    let started = mu(&machine, &command("mu"), |os| async move {
        let mut child = os.spawn(&exec("/plugin")).unwrap();
        assert_eq!(poll_fn(|cx| child.poll_exited(cx)).await, OK);
        assert!(poll_fn(|cx| Poll::Ready(child.poll_group_empty(cx))).await.is_pending());
        child.kill_group();
        poll_fn(|cx| child.poll_group_empty(cx)).await;
        child.kill_group();
        child.reap();
        child.kill_group();
        OK
    });
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
    assert_eq!((machine.living(), machine.zombies()), (vec![], vec![]));
}

/// PRC-07
#[test]
fn mu_does_not_die_of_the_three_signals_and_is_told() {
    let machine = Machine::new(1);
    let started = mu(&machine, &command("mu"), |os| async move {
        let mut told = Vec::new();
        for _ in 0..3 {
            told.push(poll_fn(|cx| os.poll_signal(cx)).await);
        }
        assert_eq!(told, [Signal::HangUp, Signal::Interrupt, Signal::Terminate]);
        OK
    });
    for (at, number) in [(1, SIGHUP), (2, SIGINT), (3, SIGTERM)] {
        machine.signal_at(ms(at), Target::Process(started.pid), number);
    }
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
}

#[test]
fn what_nohup_made_ignored_stays_ignored() {
    let machine = Machine::new(1);
    let started = machine
        .start_fn(&command("mu"), |sys| async move {
            sys.on_signal(SIGHUP, Disposition::Ignore).unwrap();
            let os = SimOs::new(sys);
            assert_eq!(poll_fn(|cx| os.poll_signal(cx)).await, Signal::Terminate);
            OK
        })
        .unwrap();
    for (at, number) in [(1, SIGHUP), (2, SIGTERM)] {
        machine.signal_at(ms(at), Target::Process(started.pid), number);
    }
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
}

/// PRC-12
#[test]
fn a_signal_raised_with_its_default_action_is_what_mu_dies_of() {
    let machine = Machine::new(1);
    let started = mu(&machine, &command("mu"), |os| async move {
        os.raise_default(Signal::Terminate);
        OK
    });
    assert_eq!(machine.run_until_exit(&started), Ok(Exit::Signal(SIGTERM)));
}

#[test]
fn a_closed_standard_output_is_epipe_and_not_the_end() {
    let machine = Machine::new(1);
    let closed = Command { stdout: Output::ClosedAfter(0), ..command("mu") };
    let started = mu(&machine, &closed, |os| async move {
        let error = poll_fn(|cx| os.poll_write(Stream::Out, cx, b"x")).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::EPIPE as i32));
        poll_fn(|cx| os.poll_write(Stream::Err, cx, b"sorry\n")).await.unwrap();
        OK
    });
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
    assert_eq!(machine.stderr(&started), b"sorry\n");
}

#[test]
fn a_program_that_cannot_be_executed_is_an_os_error() {
    let machine = with_plugin(echo);
    let started = mu(&machine, &command("mu"), |os| async move {
        let error = os.spawn(&exec("/missing")).err().unwrap();
        assert_eq!(error.raw_os_error(), Some(Errno::ENOENT as i32));
        OK
    });
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
}

#[test]
fn the_environment_is_what_the_person_gave() {
    let machine = Machine::new(1);
    let mut command = Command { cwd: "/home".into(), stdout_is_terminal: true, ..Command::new(["mu", "x"]) };
    command.exec.env = vec![("HOME".into(), "/home".into())];
    let started = mu(&machine, &command, |os| async move {
        let env = os.env();
        assert_eq!(env.argv, ["mu", "x"]);
        assert_eq!(env.var("HOME"), Some(&"/home".into()));
        assert_eq!((env.cwd.as_path(), env.euid), (Path::new("/home"), 1000));
        assert!(env.stdout_is_terminal);
        OK
    });
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
}

#[test]
fn directories_are_made_for_mu_alone_and_seen_by_facts() {
    let machine = Machine::new(1);
    machine.disk().put(Path::new("/home"), 1000, 0o755, Node::Directory);
    let started = mu(&machine, &command("mu"), |os| async move {
        os.create_dir_all(Path::new("/home/state")).unwrap();
        let facts = os.facts(Path::new("/home/state")).unwrap();
        assert_eq!((facts.kind, facts.uid, facts.mode), (mu_core::os::FileKind::Directory, 1000, 0o700));
        OK
    });
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
}

/// Two invocations of mu draw different bytes, and the same ones in another run of the seed.
#[test]
fn random_bytes_come_from_the_seed_and_differ_between_invocations() {
    let draw = || {
        let machine = Machine::new(9);
        let drawn = Rc::new(RefCell::new(Vec::new()));
        for _ in 0..2 {
            let drawn = drawn.clone();
            let started = mu(&machine, &command("mu"), |os| async move {
                let mut bytes = [0; 16];
                os.random(&mut bytes);
                drawn.borrow_mut().push(bytes);
                OK
            });
            machine.run_until_exit(&started).unwrap();
        }
        drawn.take()
    };
    let drawn = draw();
    assert_ne!(drawn[0], drawn[1]);
    assert_eq!(drawn, draw());
}

/// The calls of a small mu, by number.
fn calls(hook: impl Fn(OsCall) -> OsCallVerdict + 'static) -> (Exit, Vec<u8>, u64) {
    let machine = with_plugin(echo);
    let hooked = Command { on_os_call: Some(Rc::new(hook)), ..command("mu") };
    let started = mu(&machine, &hooked, |os| async move {
        let mut child = os.spawn(&exec("/plugin")).unwrap();
        poll_fn(|cx| child.poll_write(cx, b"x")).await.unwrap();
        child.close_stdin();
        poll_fn(|cx| child.poll_exited(cx)).await;
        child.reap();
        poll_fn(|cx| os.poll_write(Stream::Out, cx, b"done")).await.unwrap();
        OK
    });
    let exit = machine.run_until_exit(&started).unwrap();
    machine.run_until_idle().unwrap();
    assert_eq!(machine.zombies(), []);
    (exit, machine.stdout(&started), machine.os_calls(&started))
}

#[test]
fn mu_can_be_killed_at_each_of_its_calls() {
    let (exit, stdout, count) = calls(|_| OsCallVerdict::Go);
    assert_eq!((exit, stdout.as_slice(), count), (OK, &b"done"[..], 7));
    for nth in 1..=count {
        let (exit, stdout, calls) =
            calls(move |call| if call.nth == nth { OsCallVerdict::Kill } else { OsCallVerdict::Go });
        assert_eq!((exit, stdout.as_slice(), calls), (Exit::Signal(SIGKILL), &b""[..], nth));
    }
}

#[test]
fn mu_can_be_made_to_panic_at_a_call_by_its_name() {
    let (exit, ..) = calls(|call| match call.name {
        "child.close_stdin" => OsCallVerdict::Panic,
        _ => OsCallVerdict::Go,
    });
    assert_eq!(exit, Exit::Status(101));
}

#[test]
fn killed_while_spawning_mu_leaves_no_child() {
    let (exit, _, count) = calls(|_| OsCallVerdict::Kill);
    assert_eq!((exit, count), (Exit::Signal(SIGKILL), 1));
}
