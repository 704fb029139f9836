//! The leader's exit, its zombie, and the end of it.

use super::*;

/// PRC-17
pub(crate) async fn the_exit_of_the_leader_is_told_again_and_again_until_it_is_reaped<W: World>(world: &W) {
    let mut child = start(world, Program::ExitWith(7));
    assert_eq!(exited(&mut child).await, Exit::Status(7));
    assert_eq!(look(|cx| child.poll_exited(cx)).await, Poll::Ready(Exit::Status(7)));
    group_empty(&mut child).await;
    child.reap();
}

pub(crate) async fn a_death_by_signal_is_told_from_a_status<W: World>(world: &W) {
    let mut child = start(world, Program::DieOf(15));
    assert_eq!(exited(&mut child).await, Exit::Signal(15));
    finish(child).await;
}

/// PRC-07
pub(crate) async fn the_killed_leader_reports_signal_9<W: World>(world: &W) {
    let mut child = start(world, Program::Idle);
    ready(&mut child).await;
    child.kill_group();
    assert_eq!(exited(&mut child).await, Exit::Signal(9));
    finish(child).await;
}

/// PRC-16: the group cannot be taken for another one while its leader is not reaped.
pub(crate) async fn the_number_of_a_dead_leader_stays_taken_until_it_is_reaped<W: World>(world: &W) {
    let mut child = start(world, Program::ExitWith(0));
    let pid = child.pid();
    exited(&mut child).await;
    group_empty(&mut child).await;
    for target in [Target::Process(pid), Target::Group(pid)] {
        world.signal(target, 0).unwrap();
    }
    child.reap();
    for target in [Target::Process(pid), Target::Group(pid)] {
        assert_eq!(world.signal(target, 0).unwrap_err().raw_os_error(), Some(nix::libc::ESRCH));
    }
}

/// PRC-03
pub(crate) async fn a_start_and_a_stop_leave_no_child_and_no_descriptor<W: World>(world: &W) {
    // The first one of a process may make what is used again.
    finish(start(world, Program::Idle)).await;
    let before = world.descriptors();
    let child = start(world, Program::Cat);
    assert!(world.has_children());
    assert!(world.descriptors() > before);
    finish(child).await;
    assert!(!world.has_children());
    assert_eq!(world.descriptors(), before);
}

pub(crate) async fn dropping_a_child_neither_kills_nor_waits<W: World>(world: &W) {
    let mut child = start(world, Program::Idle);
    ready(&mut child).await;
    let pid = child.pid();
    drop(child);
    // Alive, for it can be stopped.
    world.signal(Target::Process(pid), nix::libc::SIGSTOP).unwrap();
    world.until_stopped(pid).await;
    assert!(world.has_children());
}

pub(crate) async fn thirty_children_live_side_by_side<W: World>(world: &W) {
    let mut children: Vec<_> = (0..30).map(|_| start(world, Program::Cat)).collect();
    for child in &mut children {
        echo(child).await;
    }
    // Each ends for itself.
    for mut child in children {
        child.close_stdin();
        assert_eq!(exited(&mut child).await, Exit::Status(0));
        finish(child).await;
    }
    assert!(!world.has_children());
}
