use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::os::{Mono, Signal};
use crate::testing::{FakeOs, Heard, Script};

fn machine(script: impl Fn() -> Script + 'static) -> FakeOs {
    FakeOs::new().with_programs(move |_| Ok(script()))
}

fn shell(os: &FakeOs) -> Result<Run, LinkError> {
    let invocation = Invocation::new(os.clone());
    os.block_on(invocation.run(run(&invocation, "get it".into(), Duration::from_secs(20))))
}

/// A shell that writes this and ends so.
fn ends(text: &'static str, exit: Exit) -> FakeOs {
    machine(move || {
        Box::new(move |shell, _| {
            shell.says(text);
            shell.exit = Some(exit);
        })
    })
}

/// REG-18
#[test]
fn it_has_nothing_to_read_and_its_status_and_output_come_back() {
    let heard: Rc<RefCell<Vec<bool>>> = Rc::default();
    let hears = heard.clone();
    let os = machine(move || {
        let hears = hears.clone();
        Box::new(move |shell, heard| {
            hears.borrow_mut().push(heard == Heard::End);
            shell.says("out");
            shell.exit = Some(Exit::Status(3));
        })
    });
    let wanted = Run { exit_code: Some(3), stdout: "out".into(), stderr: String::new(), partial: false };
    assert_eq!(shell(&os), Ok(wanted));
    assert_eq!(*heard.borrow(), [true]);
    let child = os.children()[0].borrow().argv.clone();
    assert_eq!(child, ["/bin/sh", "-c", "get it"]);
    assert!(os.children()[0].borrow().reaped);
}

#[test]
fn what_it_leaves_in_its_group_goes_with_it() {
    let os = machine(|| {
        Box::new(|shell, _| {
            shell.straggler = true;
            shell.exit = Some(Exit::Status(0));
        })
    });
    assert_eq!(shell(&os).unwrap().exit_code, Some(0));
    assert_eq!(os.now(), Mono(Duration::ZERO));
    assert!(!os.children()[0].borrow().straggler);
}

#[test]
fn a_shell_that_a_signal_ended_has_the_status_that_a_shell_gives() {
    assert_eq!(shell(&ends("", Exit::Signal(15))).unwrap().exit_code, Some(143));
}

/// LINK-15
#[test]
fn one_that_goes_on_is_killed_with_its_group_at_its_timeout_and_has_no_status() {
    let os = machine(|| Box::new(|shell, _| shell.says("so far")));
    let run = shell(&os).unwrap();
    assert_eq!((run.exit_code, run.stdout.as_str()), (None, "so far"));
    assert_eq!(os.now(), Mono(Duration::from_secs(20)));
    let child = os.children()[0].clone();
    assert!(child.borrow().killed && child.borrow().reaped);
}

/// PRC-09
#[test]
fn a_signal_kills_it_at_once() {
    let os = machine(|| Box::new(|_, _| {}));
    let sender = os.clone();
    os.after(Duration::from_secs(2), move || sender.signal(Signal::Terminate));
    assert_eq!(shell(&os), Err(LinkError::Interrupted(Signal::Terminate)));
    assert_eq!(os.now(), Mono(Duration::from_secs(2)));
    let child = os.children()[0].clone();
    assert!(child.borrow().killed && child.borrow().reaped);
}

/// PRC-09
#[test]
fn after_a_signal_it_is_not_started() {
    let os = ends("", Exit::Status(0));
    os.signal(Signal::Terminate);
    let invocation = Invocation::new(os.clone());
    let ended = os.block_on(invocation.run(async {
        let _ = invocation.sleep_until(os.now() + Duration::from_secs(1)).await;
        run(&invocation, "get it".into(), Duration::from_secs(20)).await
    }));
    assert_eq!(ended, Err(LinkError::Interrupted(Signal::Terminate)));
    assert!(os.children().is_empty());
}

/// PRC-09: nor after one that came while mu did something else, such as a write to a slow disk.
#[test]
fn after_a_signal_that_mu_has_not_seen_yet_it_is_not_started() {
    let os = machine(|| Box::new(|shell, _| shell.exit = Some(Exit::Status(0))));
    let invocation = Invocation::new(os.clone());
    let ended = os.block_on(invocation.run(async {
        os.signal(Signal::HangUp);
        run(&invocation, "get it".into(), Duration::from_secs(20)).await
    }));
    assert_eq!(ended, Err(LinkError::Interrupted(Signal::HangUp)));
    assert!(os.children().is_empty());
}

/// PRC-13
#[test]
fn dropped_before_its_end_it_is_killed() {
    let os = machine(|| Box::new(|_, _| {}));
    let invocation = Invocation::new(os.clone());
    os.block_on(invocation.run(async {
        let mut running = pin!(run(&invocation, "get it".into(), Duration::from_secs(20)));
        assert!(poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx).is_pending())).await);
    }));
    assert!(os.children()[0].borrow().killed);
}

#[test]
fn output_without_end_is_kept_up_to_a_bound_and_the_timeout_still_comes() {
    let os = machine(|| {
        Box::new(|shell, heard| {
            if heard == Heard::End {
                shell.floods = Some(ChildPipe::Stdout);
            }
        })
    });
    let run = shell(&os).unwrap();
    assert_eq!((run.exit_code, run.stdout.len(), run.partial), (None, KEPT, true));
}

#[test]
fn a_machine_without_a_shell_says_so() {
    assert!(matches!(shell(&FakeOs::new()), Err(LinkError::Shell { .. })));
}
