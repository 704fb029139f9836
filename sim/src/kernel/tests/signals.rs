//! Signals, stopping and continuing.

use nix::errno::Errno;

use super::*;
use crate::trace::{Effect, Target, What};

/// Runs a child for 50 ms of the life of its parent, which does `act` at 10 ms, and returns how the child ended.
fn child_under<F, A>(
    child: impl FnOnce(Sys) -> F + 'static,
    act: impl FnOnce(Sys, Pid) -> A + 'static,
) -> Exit
where
    F: Future<Output = Exit> + 'static,
    A: Future<Output = ()> + 'static,
{
    let machine = Machine::new(1);
    let program = |sys: Sys| async move {
        let fork = Fork { name: "child", group: Group::Own, fds: &[] };
        let pid = sys.fork(&fork, child).unwrap().pid;
        sys.sleep(ms(10)).await;
        act(sys.clone(), pid).await;
        match sys.wait_for(pid).await.unwrap() {
            Exit::Status(status) => Exit::Status(status),
            Exit::Signal(number) => Exit::Status(128 + number),
        }
    };
    let started = machine.start_fn(&command("main"), program).unwrap();
    match machine.run_until_exit(&started).unwrap() {
        Exit::Status(status @ 128..) => Exit::Signal(status - 128),
        exit => exit,
    }
}

async fn signal(sys: Sys, pid: Pid, numbers: &[i32]) {
    for number in numbers {
        sys.kill(pid, *number).unwrap();
    }
}

#[test]
fn a_signal_at_its_default_ends_the_process() {
    for number in [SIGTERM, SIGINT, SIGHUP, SIGABRT, SIGPIPE, SIGKILL] {
        let exit = child_under(idle, move |sys, pid| async move { signal(sys, pid, &[number]).await });
        assert_eq!(exit, Exit::Signal(number));
    }
}

#[test]
fn an_ignored_signal_does_nothing() {
    let child = |sys: Sys| async move {
        sys.on_signal(SIGTERM, Disposition::Ignore).unwrap();
        sys.sleep(ms(50)).await;
        Exit::Status(3)
    };
    assert_eq!(
        child_under(child, |sys, pid| async move { signal(sys, pid, &[SIGTERM]).await }),
        Exit::Status(3)
    );
}

#[test]
fn a_handled_signal_is_told_to_the_program_once() {
    let child = |sys: Sys| async move {
        sys.on_signal(SIGTERM, Disposition::Handle).unwrap();
        assert_eq!(sys.signal().await, SIGTERM);
        assert_eq!(sys.now().0, ms(10));
        let again = std::future::poll_fn(|cx| std::task::Poll::Ready(sys.poll_signal(cx))).await;
        Exit::Status(i32::from(again.is_ready()))
    };
    let act = |sys, pid| async move { signal(sys, pid, &[SIGTERM, SIGTERM]).await };
    assert_eq!(child_under(child, act), Exit::Status(0));
}

#[test]
fn sigkill_and_sigstop_cannot_be_changed() {
    run(|sys| async move {
        for number in [SIGKILL, SIGSTOP] {
            let refused = sys.on_signal(number, Disposition::Ignore).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(Errno::EINVAL as i32));
        }
        OK
    });
}

#[test]
fn a_stopped_process_does_nothing_until_it_is_continued() {
    let child = |sys: Sys| async move {
        sys.sleep(ms(20)).await;
        // The timer went off at 20 ms, but nobody was there to see it.
        assert_eq!(sys.now().0, ms(40));
        Exit::Status(4)
    };
    let act = |sys: Sys, pid| async move {
        sys.kill(pid, SIGSTOP).unwrap();
        sys.sleep(ms(30)).await;
        sys.kill(pid, SIGCONT).unwrap();
    };
    assert_eq!(child_under(child, act), Exit::Status(4));
}

#[test]
fn sigterm_waits_until_a_stopped_process_is_continued() {
    let act = |sys: Sys, pid| async move {
        signal(sys.clone(), pid, &[SIGSTOP, SIGTERM]).await;
        sys.sleep(ms(30)).await;
        assert!(
            std::future::poll_fn(|cx| std::task::Poll::Ready(sys.poll_exited(pid, cx))).await.is_pending()
        );
        sys.kill(pid, SIGCONT).unwrap();
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(sys.poll_exited(pid, cx))).await.is_ready());
    };
    assert_eq!(child_under(idle, act), Exit::Signal(SIGTERM));
}

#[test]
fn sigkill_ends_a_stopped_process_at_once() {
    let act = |sys: Sys, pid| async move {
        signal(sys.clone(), pid, &[SIGSTOP, SIGKILL]).await;
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(sys.poll_exited(pid, cx))).await.is_ready());
    };
    assert_eq!(child_under(idle, act), Exit::Signal(SIGKILL));
}

#[test]
fn a_stopped_process_lives() {
    let act = |sys: Sys, pid| async move {
        sys.kill(pid, SIGSTOP).unwrap();
        assert!(
            std::future::poll_fn(|cx| std::task::Poll::Ready(sys.poll_group_empty(pid, cx)))
                .await
                .is_pending()
        );
        sys.kill(pid, SIGKILL).unwrap();
        std::future::poll_fn(|cx| sys.poll_group_empty(pid, cx)).await;
    };
    assert_eq!(child_under(idle, act), Exit::Signal(SIGKILL));
}

#[test]
fn a_process_that_stops_itself_goes_on_where_it_stopped() {
    let child = |sys: Sys| async move {
        sys.raise(SIGSTOP).await.unwrap();
        Exit::Status(sys.now().0.as_millis() as i32)
    };
    let act = |sys: Sys, pid| async move {
        sys.sleep(ms(15)).await;
        sys.kill(pid, SIGCONT).unwrap();
    };
    assert_eq!(child_under(child, act), Exit::Status(25));
}

#[test]
fn sigtstp_stops_unless_it_is_handled() {
    let child = |sys: Sys| async move {
        sys.on_signal(SIGTSTP, Disposition::Handle).unwrap();
        Exit::Status(sys.signal().await)
    };
    assert_eq!(
        child_under(child, |sys, pid| async move { signal(sys, pid, &[SIGTSTP]).await }),
        Exit::Status(SIGTSTP)
    );
    let act = |sys, pid| async move { signal(sys, pid, &[SIGTSTP, SIGTERM, SIGCONT]).await };
    assert_eq!(child_under(idle, act), Exit::Signal(SIGTERM));
}

#[test]
fn a_stopped_group_that_loses_its_parent_is_hung_up() {
    let machine = Machine::new(1);
    let program = |sys: Sys| async move {
        let fork = Fork { name: "plugin", group: Group::Own, fds: &[] };
        let pid = sys.fork(&fork, idle).unwrap().pid;
        sys.kill(pid, SIGSTOP).unwrap();
        sys.sleep(ms(1)).await;
        OK
    };
    machine.start_fn(&command("main"), program).unwrap();
    machine.run_until_idle().unwrap();
    let exits = find(&machine, |event| match event.what {
        What::Exit(exit) => Some((event.pid, exit)),
        _ => None,
    });
    assert_eq!(exits, [(Pid(100), OK), (Pid(101), Exit::Signal(SIGHUP))]);
}

#[test]
fn a_running_group_that_loses_its_parent_is_left_alone() {
    let machine = Machine::new(1);
    let program = |sys: Sys| async move {
        let fork = Fork { name: "plugin", group: Group::Own, fds: &[] };
        sys.fork(&fork, |sys| async move {
            sys.sleep(ms(5)).await;
            OK
        })
        .unwrap();
        OK
    };
    machine.start_fn(&command("main"), program).unwrap();
    machine.run_until_idle().unwrap();
    assert_eq!(machine.now(), ms(5));
}

#[test]
fn ignored_signals_stay_ignored_in_a_child_and_handlers_do_not() {
    run(|sys| async move {
        sys.on_signal(SIGINT, Disposition::Ignore).unwrap();
        sys.on_signal(SIGTERM, Disposition::Handle).unwrap();
        let child = sys.fork(&forked("child", &[]), idle).unwrap().pid;
        sys.kill(child, SIGINT).unwrap();
        assert!(sys.kill(child, 0).is_ok());
        sys.kill(child, SIGTERM).unwrap();
        assert_eq!(sys.wait_for(child).await.unwrap(), Exit::Signal(SIGTERM));
        OK
    });
}

#[test]
fn a_parent_that_ignores_sigchld_has_no_zombies_to_reap() {
    run(|sys| async move {
        sys.on_signal(SIGCHLD, Disposition::Ignore).unwrap();
        let child = sys.fork(&forked("child", &[]), |_| async { OK }).unwrap().pid;
        sys.sleep(ms(1)).await;
        assert_eq!(sys.reap(child).unwrap_err().raw_os_error(), Some(Errno::ECHILD as i32));
        OK
    });
}

#[test]
fn a_parent_that_handles_sigchld_is_told() {
    run(|sys| async move {
        sys.on_signal(SIGCHLD, Disposition::Handle).unwrap();
        sys.fork(&forked("child", &[]), |_| async { OK }).unwrap();
        assert_eq!(sys.signal().await, SIGCHLD);
        OK
    });
}

#[test]
fn another_user_is_refused_and_init_is_out_of_reach() {
    let machine = Machine::new(1);
    let victim = machine.start_fn(&Command { uid: 7, ..command("victim") }, idle).unwrap();
    let program = move |sys: Sys| async move {
        for pid in [victim.pid, Pid(1)] {
            let refused = sys.kill(pid, SIGKILL).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(Errno::EPERM as i32));
        }
        assert_eq!(sys.kill(Pid(4242), 0).unwrap_err().raw_os_error(), Some(Errno::ESRCH as i32));
        OK
    };
    let started = machine.start_fn(&command("main"), program).unwrap();
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
    machine.signal(Target::Process(Pid(1)), SIGKILL).unwrap();
    machine.signal(Target::Process(victim.pid), SIGKILL).unwrap();
    assert_eq!(machine.run_until_exit(&victim), Ok(Exit::Signal(SIGKILL)));
}

#[test]
fn what_a_signal_did_is_in_the_trace() {
    let machine = Machine::new(1);
    let started = machine.start_fn(&command("main"), idle).unwrap();
    machine.run_until(ms(1)).unwrap();
    for number in [SIGSTOP, SIGTERM, SIGCONT] {
        machine.signal(Target::Process(started.pid), number).unwrap();
    }
    let effects = find(&machine, |event| match event.what {
        What::Delivered { number, effect } => Some((number, effect)),
        _ => None,
    });
    let expected = [
        (SIGSTOP, Effect::Stops),
        (SIGTERM, Effect::Pending),
        (SIGCONT, Effect::Continues),
        (SIGTERM, Effect::Kills),
    ];
    assert_eq!(effects, expected);
}

#[test]
fn signals_are_named_as_kill_names_them() {
    assert_eq!(signal_name(SIGTERM), "SIGTERM");
    assert_eq!(signal_name(SIGSTOP), "SIGSTOP");
    assert_eq!(signal_name(31), "SIGSYS");
    assert_eq!([signal_name(-1), signal_name(32)], ["SIG?"; 2]);
}
