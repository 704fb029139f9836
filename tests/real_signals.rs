//! Signals and dispositions: what arrives, what is inherited, what is passed on.

mod support;

use std::future::poll_fn;
use std::os::unix::process::ExitStatusExt;
use std::task::Poll;

use mu::RealOs;
use mu_core::os::{Child, ChildPipe, Exit, Os, Signal};
use nix::sys::signal::{self as posix, SigSet, raise};
use support::{in_own_process, on_real_os, passes_in_own_process, sh};

async fn signal_now(os: &RealOs) -> Poll<Signal> {
    poll_fn(|cx| Poll::Ready(os.poll_signal(cx))).await
}

/// PRC-11
#[test]
fn signals_are_reported_in_the_order_in_which_they_came_and_do_not_kill() {
    passes_in_own_process("", || {
        on_real_os(|os| async move {
            for signal in [posix::Signal::SIGTERM, posix::Signal::SIGHUP, posix::Signal::SIGINT] {
                raise(signal).unwrap();
            }
            assert_eq!(signal_now(&os).await, Poll::Ready(Signal::Terminate));
            assert_eq!(signal_now(&os).await, Poll::Ready(Signal::HangUp));
            assert_eq!(signal_now(&os).await, Poll::Ready(Signal::Interrupt));
            assert_eq!(signal_now(&os).await, Poll::Pending);
        });
    });
}

/// PRC-11
#[test]
fn a_signal_that_comes_again_is_reported_again() {
    passes_in_own_process("", || {
        on_real_os(|os| async move {
            for _ in 0..3 {
                raise(posix::Signal::SIGINT).unwrap();
                assert_eq!(signal_now(&os).await, Poll::Ready(Signal::Interrupt));
            }
        });
    });
}

/// PRC-09
#[test]
fn a_signal_wakes_a_sleeping_mu() {
    passes_in_own_process("", || {
        on_real_os(|os| async move {
            // Looking once leaves the bell silent: what wakes must be the new signal.
            raise(posix::Signal::SIGHUP).unwrap();
            assert_eq!(signal_now(&os).await, Poll::Ready(Signal::HangUp));
            assert_eq!(signal_now(&os).await, Poll::Pending);
            let script = format!("read line; kill -TERM {}", std::process::id());
            let mut child = os.spawn(&sh(&script)).unwrap();
            child.close_stdin();
            assert_eq!(poll_fn(|cx| os.poll_signal(cx)).await, Signal::Terminate);
        });
    });
}

/// PRC-09
#[test]
fn under_nohup_a_hang_up_stays_ignored() {
    passes_in_own_process("trap '' HUP", || {
        on_real_os(|os| async move {
            raise(posix::Signal::SIGHUP).unwrap();
            assert_eq!(signal_now(&os).await, Poll::Pending);
            raise(posix::Signal::SIGTERM).unwrap();
            assert_eq!(signal_now(&os).await, Poll::Ready(Signal::Terminate));
        });
    });
}

/// PRC-09
#[test]
fn an_ignored_sigterm_is_heard_all_the_same() {
    passes_in_own_process("trap '' TERM", || {
        on_real_os(|os| async move {
            raise(posix::Signal::SIGTERM).unwrap();
            assert_eq!(signal_now(&os).await, Poll::Ready(Signal::Terminate));
        });
    });
}

/// PRC-09
#[test]
fn a_signal_that_was_blocked_when_mu_started_is_heard() {
    passes_in_own_process("", || {
        SigSet::all().thread_set_mask().unwrap();
        on_real_os(|os| async move {
            raise(posix::Signal::SIGINT).unwrap();
            assert_eq!(signal_now(&os).await, Poll::Ready(Signal::Interrupt));
        });
    });
}

fn dies_of(signal: Signal, output: std::process::Output) {
    assert_eq!(output.status.signal(), Some(signal.number()), "{output:?}");
}

/// PRC-12
#[test]
fn a_raised_interrupt_is_what_mu_dies_of() {
    in_own_process(
        "",
        || on_real_os(async |os| os.raise_default(Signal::Interrupt)),
        |output| {
            dies_of(Signal::Interrupt, output);
        },
    );
}

/// PRC-12
#[test]
fn a_raised_hang_up_is_what_mu_dies_of() {
    in_own_process(
        "",
        || on_real_os(async |os| os.raise_default(Signal::HangUp)),
        |output| {
            dies_of(Signal::HangUp, output);
        },
    );
}

/// PRC-12
#[test]
fn a_raised_signal_kills_even_where_it_is_blocked() {
    let body = || {
        on_real_os(async |os| {
            SigSet::all().thread_set_mask().unwrap();
            os.raise_default(Signal::Terminate);
        });
    };
    in_own_process("", body, |output| dies_of(Signal::Terminate, output));
}

/// The three hexadecimal masks of a child that was started now: blocked, ignored, caught.
async fn masks(os: &RealOs) -> [u64; 3] {
    let mut child = os.spawn(&sh("exec cat /proc/self/status")).unwrap();
    let mut status = [0; 8192];
    let mut filled = 0;
    while let count @ 1.. =
        poll_fn(|cx| child.poll_read(ChildPipe::Stdout, cx, &mut status[filled..])).await.unwrap()
    {
        filled += count;
    }
    let status = std::str::from_utf8(&status[..filled]).unwrap();
    ["SigBlk:\t", "SigIgn:\t", "SigCgt:\t"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line, 16).unwrap()
    })
}

#[test]
fn a_plugin_starts_with_no_signal_blocked_and_with_default_actions() {
    // What the test runner's own parents ignore would be inherited: only mu's own changes are of interest.
    passes_in_own_process("trap - HUP INT QUIT PIPE TERM CHLD", || {
        SigSet::all().thread_set_mask().unwrap();
        on_real_os(|os| async move {
            let [blocked, ignored, caught] = masks(&os).await;
            assert_eq!(blocked, 0);
            assert_eq!(caught, 0);
            for signal in [posix::Signal::SIGPIPE, posix::Signal::SIGTERM, posix::Signal::SIGCHLD] {
                assert_eq!(ignored >> (signal as u32 - 1) & 1, 0, "{signal} is ignored in the plugin");
            }
        });
    });
}

/// PRC-17
#[test]
fn an_inherited_ignored_sigchld_does_not_hide_the_exit() {
    passes_in_own_process("", || {
        // SAFETY: no function is installed. (A shell cannot be asked for this: it keeps SIGCHLD for itself.)
        unsafe { posix::signal(posix::Signal::SIGCHLD, posix::SigHandler::SigIgn) }.unwrap();
        on_real_os(|os| async move {
            let mut child = os.spawn(&sh("exit 9")).unwrap();
            assert_eq!(poll_fn(|cx| child.poll_exited(cx)).await, Exit::Status(9));
        });
    });
}

#[test]
fn a_plugin_that_writes_where_nobody_reads_dies_of_sigpipe() {
    passes_in_own_process("trap - PIPE", || {
        on_real_os(|os| async move {
            // The reading end is closed by dropping the child with its pipes; a second pidfd tells of the end.
            let child = os.spawn(&sh("read line; exec yes")).unwrap();
            let pid = rustix::process::Pid::from_raw(child.pid().0).unwrap();
            drop(child);
            let status = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())
                .unwrap()
                .unwrap()
                .1;
            assert_eq!(status.terminating_signal(), Some(posix::Signal::SIGPIPE as i32));
        });
    });
}
