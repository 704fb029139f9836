//! Which process a pid means.

use std::time::Duration;

use super::*;
use nix::libc::SIGCONT;

///
pub(crate) async fn mu_itself_is_a_living_process<W: World>(world: &W) {
    let os = world.os();
    let me = os.identify(os.env().pid).unwrap();
    assert_eq!(me.pid, os.env().pid);
    assert_eq!(me.boot.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{me:?}");
}

///
pub(crate) async fn who_starts_later_has_another_start<W: World>(world: &W) {
    let os = world.os();
    let first = start(world, Program::Idle);
    os.sleep_until(os.now() + Duration::from_millis(20)).await;
    let second = start(world, Program::Idle);
    let [first_id, second_id] = [&first, &second].map(|child| os.identify(child.pid()).unwrap());
    assert!(first_id.started < second_id.started, "{first_id:?} {second_id:?}");
    assert_eq!(first_id.boot, second_id.boot);
    finish(first).await;
    finish(second).await;
}

///
pub(crate) async fn an_identity_does_not_change_while_its_process_lives<W: World>(world: &W) {
    let os = world.os();
    let mut child = start(world, Program::Cat);
    let identity = os.identify(child.pid());
    assert!(identity.is_some());
    echo(&mut child).await;
    os.sleep_until(os.now() + Duration::from_millis(20)).await;
    assert_eq!(os.identify(child.pid()), identity);
    finish(child).await;
}

///
pub(crate) async fn a_zombie_does_not_live<W: World>(world: &W) {
    let mut child = start(world, Program::ExitWith(0));
    exited(&mut child).await;
    // It is there, for it can be signalled.
    world.signal(Target::Process(child.pid()), 0).unwrap();
    assert_eq!(world.os().identify(child.pid()), None);
    finish(child).await;
}

///
pub(crate) async fn a_stopped_process_lives<W: World>(world: &W) {
    let mut child = start(world, Program::Stopped);
    ready(&mut child).await;
    world.until_stopped(child.pid()).await;
    let identity = world.os().identify(child.pid());
    assert!(identity.is_some());
    world.signal(Target::Process(child.pid()), SIGCONT).unwrap();
    exited(&mut child).await;
    assert_eq!(world.os().identify(child.pid()), None);
    finish(child).await;
}

///
pub(crate) async fn nobody_is_behind_a_pid_that_is_not_taken<W: World>(world: &W) {
    let child = start(world, Program::Idle);
    let pid = child.pid();
    finish(child).await;
    for pid in [pid, Pid(0), Pid(-1), Pid(i32::MIN), Pid(i32::MAX)] {
        assert_eq!(world.os().identify(pid), None, "{pid}");
    }
}
