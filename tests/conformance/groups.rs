//! Who keeps a group from being empty, and whom a kill reaches.

use super::*;
use mu_core::os::ProcessId;

/// PRC-16
pub(crate) async fn a_dead_leader_does_not_keep_its_group_from_being_empty<W: World>(world: &W) {
    let mut child = start(world, Program::ExitWith(0));
    exited(&mut child).await;
    assert!(look(|cx| child.poll_group_empty(cx)).await.is_ready());
    child.reap();
}

/// PRC-16
pub(crate) async fn a_living_leader_is_a_member_of_its_group<W: World>(world: &W) {
    let mut child = start(world, Program::Idle);
    ready(&mut child).await;
    assert!(look(|cx| child.poll_group_empty(cx)).await.is_pending());
    assert!(look(|cx| child.poll_exited(cx)).await.is_pending());
    finish(child).await;
}

/// PRC-02
pub(crate) async fn a_child_leads_a_group_of_its_own_number<W: World>(world: &W) {
    let mut child = start(world, Program::Idle);
    // Nothing was read of it: the group is there when the start has returned.
    world.signal(Target::Group(child.pid()), nix::libc::SIGTERM).unwrap();
    assert_eq!(exited(&mut child).await, Exit::Signal(15));
    finish(child).await;
}

/// PRC-16
pub(crate) async fn a_helper_keeps_the_group_from_being_empty_after_the_leader_has_gone<W: World>(world: &W) {
    let mut child = start(world, Program::LeaveHelper);
    assert_eq!(exited(&mut child).await, Exit::Status(0));
    assert!(look(|cx| child.poll_group_empty(cx)).await.is_pending());
    finish(child).await;
}

/// PRC-16
pub(crate) async fn a_helper_that_ends_by_itself_empties_the_group<W: World>(world: &W) {
    let mut child = start(world, Program::LeaveHelperUntilEof);
    ready(&mut child).await;
    exited(&mut child).await;
    assert!(look(|cx| child.poll_group_empty(cx)).await.is_pending());
    child.close_stdin();
    group_empty(&mut child).await;
    child.reap();
}

/// PRC-16
pub(crate) async fn a_member_whose_parent_has_gone_still_keeps_the_group<W: World>(world: &W) {
    let mut child = start(world, Program::LeaveGrandchild);
    ready(&mut child).await;
    assert_eq!(exited(&mut child).await, Exit::Status(0));
    assert!(look(|cx| child.poll_group_empty(cx)).await.is_pending());
    finish(child).await;
}

/// PRC-18
pub(crate) async fn who_has_left_the_group_neither_keeps_it_nor_is_killed_with_it<W: World>(world: &W) {
    let mut child = start(world, Program::LeaveEscapedUntilEof);
    ready(&mut child).await;
    assert_eq!(exited(&mut child).await, Exit::Status(0));
    assert!(look(|cx| child.poll_group_empty(cx)).await.is_ready());
    child.kill_group();
    assert!(is_silent(&mut child, ChildPipe::Stdout).await, "it holds standard output no longer");
    child.close_stdin();
    assert_eq!(read_all(&mut child, ChildPipe::Stdout).await, b"");
    child.reap();
}

/// PRC-16
pub(crate) async fn a_stopped_member_keeps_the_group<W: World>(world: &W) {
    let mut child = start(world, Program::Stopped);
    ready(&mut child).await;
    world.until_stopped(child.pid()).await;
    assert!(look(|cx| child.poll_exited(cx)).await.is_pending());
    assert!(look(|cx| child.poll_group_empty(cx)).await.is_pending());
    finish(child).await;
}

/// A group that nobody could continue any more is told to hang up, and to go on for that.
pub(crate) async fn a_stopped_helper_is_hung_up_when_its_leader_leaves_it<W: World>(world: &W) {
    let mut child = start(world, Program::LeaveStoppedHelper);
    assert_eq!(exited(&mut child).await, Exit::Status(0));
    group_empty(&mut child).await;
    child.reap();
}

/// PRC-02
pub(crate) async fn killing_one_group_leaves_the_other_alone<W: World>(world: &W) {
    let (mut first, mut second) = (start(world, Program::Cat), start(world, Program::Cat));
    first.kill_group();
    assert_eq!(exited(&mut first).await, Exit::Signal(9));
    echo(&mut second).await;
    assert!(look(|cx| second.poll_group_empty(cx)).await.is_pending());
    finish(first).await;
    finish(second).await;
}

/// PRC-07
pub(crate) async fn killing_an_empty_group_is_no_error<W: World>(world: &W) {
    let mut child = start(world, Program::ExitWith(3));
    exited(&mut child).await;
    group_empty(&mut child).await;
    child.kill_group();
    assert_eq!(exited(&mut child).await, Exit::Status(3));
    child.reap();
    child.kill_group();
}

/// PRC-07
pub(crate) async fn killing_a_group_twice_is_no_error<W: World>(world: &W) {
    let mut child = start(world, Program::LeaveHelper);
    ready(&mut child).await;
    child.kill_group();
    child.kill_group();
    exited(&mut child).await;
    group_empty(&mut child).await;
    child.reap();
}

///
pub(crate) async fn a_group_lives_as_long_as_a_member_whatever_became_of_its_leader<W: World>(world: &W) {
    let mut child = start(world, Program::LeaveHelper);
    let founder = child.identity().clone();
    assert!(world.os().group_alive(&founder));
    assert_eq!(exited(&mut child).await, Exit::Status(0));
    assert!(world.os().group_alive(&founder), "its helper lives");
    child.kill_group();
    group_empty(&mut child).await;
    assert!(!world.os().group_alive(&founder), "a zombie is no member");
    child.reap();
    assert!(!world.os().group_alive(&founder));
}

///
pub(crate) async fn a_stopped_member_keeps_its_group_alive<W: World>(world: &W) {
    let mut child = start(world, Program::Stopped);
    ready(&mut child).await;
    world.until_stopped(child.pid()).await;
    let founder = child.identity().clone();
    assert!(world.os().group_alive(&founder));
    finish(child).await;
    assert!(!world.os().group_alive(&founder));
}

///
pub(crate) async fn a_group_of_another_founder_or_boot_is_another_one<W: World>(world: &W) {
    let child = start(world, Program::Idle);
    let founder = child.identity().clone();
    assert_eq!(world.os().identify(founder.pid).as_ref(), Some(&founder));
    assert!(world.os().group_alive(&founder));
    let another = ProcessId { started: founder.started + 1, ..founder.clone() };
    assert!(!world.os().group_alive(&another), "the number was given away after that group was empty");
    let before = ProcessId { boot: "00000000-0000-0000-0000-000000000000".into(), ..founder.clone() };
    assert!(!world.os().group_alive(&before), "nothing lives on through a start of the machine");
    for pid in [0, -1, i32::MIN, i32::MAX].map(Pid) {
        assert!(!world.os().group_alive(&ProcessId { pid, ..founder.clone() }), "{pid}");
    }
    finish(child).await;
}

///
pub(crate) async fn a_leader_is_known_dead_or_alive<W: World>(world: &W) {
    let mut child = start(world, Program::ExitWith(0));
    let before = child.identity().clone();
    assert_eq!(before.pid, child.pid());
    exited(&mut child).await;
    assert_eq!(*child.identity(), before);
    finish(child).await;
}
