//! Signals to mu, to its children, and what stops and continues.

use std::pin::pin;

use super::*;
use mu_core::os::Signal;
use nix::libc::{SIGCONT, SIGHUP, SIGINT, SIGPIPE, SIGSTOP, SIGTERM};

async fn signal_now<W: World>(world: &W) -> Poll<Signal> {
    look(|cx| world.os().poll_signal(cx)).await
}

/// The next signal. On a machine with much to do it may come a while after it was sent, by way of another thread.
async fn next_signal<W: World>(world: &W) -> Signal {
    poll_fn(|cx| world.os().poll_signal(cx)).await
}

/// Signals come to mu one by one, each from a child that does nothing else and has ended when this returns: of two that
/// are there when a process gets to run, the lower number would come first.
async fn send_to_mu<W: World>(world: &W, numbers: &[i32]) {
    for number in numbers {
        let mut child = start(world, Program::SignalParent(*number));
        assert_eq!(exited(&mut child).await, Exit::Status(0));
        finish(child).await;
    }
}

/// PRC-09
pub(crate) async fn a_signal_is_told_and_does_not_end_mu<W: World>(world: &W) {
    assert_eq!(signal_now(world).await, Poll::Pending);
    for (number, signal) in
        [(SIGINT, Signal::Interrupt), (SIGTERM, Signal::Terminate), (SIGHUP, Signal::HangUp)]
    {
        send_to_mu(world, &[number]).await;
        assert_eq!(next_signal(world).await, signal);
        assert_eq!(signal_now(world).await, Poll::Pending);
    }
}

/// PRC-09: the first one decides.
pub(crate) async fn signals_are_told_in_the_order_in_which_they_came<W: World>(world: &W) {
    send_to_mu(world, &[SIGTERM, SIGINT, SIGHUP]).await;
    assert_eq!(next_signal(world).await, Signal::Terminate);
    assert_eq!(next_signal(world).await, Signal::Interrupt);
    assert_eq!(next_signal(world).await, Signal::HangUp);
    assert_eq!(signal_now(world).await, Poll::Pending);
}

/// PRC-11
pub(crate) async fn a_signal_that_waits_already_is_told_once<W: World>(world: &W) {
    send_to_mu(world, &[SIGTERM, SIGINT, SIGINT, SIGTERM]).await;
    assert_eq!(next_signal(world).await, Signal::Terminate);
    send_to_mu(world, &[SIGTERM]).await;
    assert_eq!(next_signal(world).await, Signal::Interrupt);
    assert_eq!(next_signal(world).await, Signal::Terminate);
    assert_eq!(signal_now(world).await, Poll::Pending);
}

/// PRC-09
pub(crate) async fn a_signal_wakes_a_task_that_waits_for_a_child_as_well<W: World>(world: &W) {
    let mut idle = start(world, Program::Idle);
    ready(&mut idle).await;
    let mut signal = pin!(poll_fn(|cx| world.os().poll_signal(cx)));
    // The one who sends is started only once mu waits.
    let mut sender = None;
    let told = poll_fn(|cx| {
        assert!(idle.poll_exited(cx).is_pending());
        let told = signal.as_mut().poll(cx);
        if told.is_pending() && sender.is_none() {
            sender = Some(start(world, Program::SignalParent(SIGTERM)));
        }
        told
    });
    assert_eq!(told.await, Signal::Terminate);
    finish(sender.unwrap()).await;
    finish(idle).await;
}

/// mu ignores SIGPIPE and handles SIGTERM: neither is its plugin's business.
pub(crate) async fn a_child_starts_with_the_default_actions<W: World>(world: &W) {
    for number in [SIGPIPE, SIGTERM] {
        let mut child = start(world, Program::DieOf(number));
        assert_eq!(exited(&mut child).await, Exit::Signal(number));
        finish(child).await;
    }
}

pub(crate) async fn an_ignored_signal_does_not_end_a_child_and_sigkill_does<W: World>(world: &W) {
    let mut child = start(world, Program::IgnoresTerm);
    ready(&mut child).await;
    // The second one would find it still dying of the first.
    world.signal(Target::Process(child.pid()), SIGTERM).unwrap();
    world.signal(Target::Process(child.pid()), SIGSTOP).unwrap();
    world.until_stopped(child.pid()).await;
    assert!(look(|cx| child.poll_exited(cx)).await.is_pending());
    child.kill_group();
    assert_eq!(exited(&mut child).await, Exit::Signal(9));
    finish(child).await;
}

/// PRC-07
pub(crate) async fn a_stopped_process_lives_and_can_be_killed<W: World>(world: &W) {
    let mut child = start(world, Program::Stopped);
    ready(&mut child).await;
    world.until_stopped(child.pid()).await;
    assert!(look(|cx| child.poll_exited(cx)).await.is_pending());
    child.kill_group();
    assert_eq!(exited(&mut child).await, Exit::Signal(9));
    finish(child).await;
}

/// PRC-07
pub(crate) async fn a_stopped_process_does_not_end_before_it_is_continued<W: World>(world: &W) {
    let mut child = start(world, Program::Stopped);
    world.until_stopped(child.pid()).await;
    world.signal(Target::Process(child.pid()), SIGTERM).unwrap();
    child.close_stdin();
    assert!(look(|cx| child.poll_exited(cx)).await.is_pending());
    world.signal(Target::Process(child.pid()), SIGCONT).unwrap();
    assert_eq!(exited(&mut child).await, Exit::Signal(SIGTERM));
    finish(child).await;
}

pub(crate) async fn a_stopped_process_takes_up_its_work_when_it_is_continued<W: World>(world: &W) {
    let mut child = start(world, Program::Cat);
    echo(&mut child).await;
    world.signal(Target::Process(child.pid()), SIGSTOP).unwrap();
    world.until_stopped(child.pid()).await;
    // Its pipes stay: what is written now waits in one of them.
    write_all(&mut child, b"later").await;
    assert!(is_silent(&mut child, ChildPipe::Stdout).await);
    world.signal(Target::Process(child.pid()), SIGCONT).unwrap();
    assert_eq!(read_exact(&mut child, 5).await, b"later");
    finish(child).await;
}

pub(crate) async fn a_signal_to_a_group_reaches_every_member<W: World>(world: &W) {
    let mut child = start(world, Program::LeaveHelper);
    ready(&mut child).await;
    exited(&mut child).await;
    world.signal(Target::Group(child.pid()), SIGTERM).unwrap();
    group_empty(&mut child).await;
    assert_eq!(read_all(&mut child, ChildPipe::Stdout).await, b"");
    child.reap();
}

/// TRN-09
pub(crate) async fn mu_itself_outlives_a_broken_pipe<W: World>(world: &W) {
    let mut child = start(world, Program::DeafAndIdle);
    ready(&mut child).await;
    for _ in 0..3 {
        assert_eq!(write(&mut child, b"x").await.unwrap_err().raw_os_error(), Some(nix::libc::EPIPE));
    }
    finish(child).await;
}
