//! Clocks, timers, randomness, mu's own output.

use std::pin::Pin;
use std::time::Duration;

use super::*;
use mu_core::os::Stream;

/// HSK-08
pub(crate) async fn a_timer_is_ready_when_its_time_has_come_and_not_before<W: World>(world: &W) {
    let os = world.os();
    let at = os.now() + Duration::from_millis(20);
    os.sleep_until(at).await;
    assert!(os.now() >= at);
}

/// HSK-08
pub(crate) async fn a_timer_in_the_past_is_ready_at_once<W: World>(world: &W) {
    let os = world.os();
    let mut sleep = os.sleep_until(os.now());
    assert!(look(|cx| Pin::new(&mut sleep).poll(cx)).await.is_ready());
}

/// HSK-08
pub(crate) async fn a_timer_in_the_future_is_pending<W: World>(world: &W) {
    let os = world.os();
    let mut sleep = os.sleep_until(os.now() + Duration::from_secs(3600));
    assert!(look(|cx| Pin::new(&mut sleep).poll(cx)).await.is_pending());
}

/// HSK-08
pub(crate) async fn timers_fire_in_the_order_of_their_times<W: World>(world: &W) {
    let os = world.os();
    let now = os.now();
    let mut late = os.sleep_until(now + Duration::from_millis(30));
    let mut early = os.sleep_until(now + Duration::from_millis(5));
    let late_is_pending = poll_fn(|cx| {
        let late = Pin::new(&mut late).poll(cx);
        Pin::new(&mut early).poll(cx).map(|()| late.is_pending())
    });
    assert!(late_is_pending.await);
    late.await;
    assert!(os.now() >= now + Duration::from_millis(30));
}

/// HSK-08
pub(crate) async fn a_timer_wakes_a_task_that_waits_for_a_child_as_well<W: World>(world: &W) {
    let os = world.os();
    let mut child = start(world, Program::Idle);
    ready(&mut child).await;
    let mut sleep = os.sleep_until(os.now() + Duration::from_millis(5));
    let first = poll_fn(|cx| match child.poll_exited(cx) {
        Poll::Ready(exit) => Poll::Ready(Some(exit)),
        Poll::Pending => Pin::new(&mut sleep).poll(cx).map(|()| None),
    });
    assert_eq!(first.await, None);
    finish(child).await;
}

pub(crate) async fn the_clock_does_not_run_backwards<W: World>(world: &W) {
    let os = world.os();
    let mut last = os.now();
    for _ in 0..1000 {
        let now = os.now();
        assert!(now >= last);
        last = now;
    }
    // After 2020, before 2100.
    assert!((1_577_836_800_000..4_102_444_800_000).contains(&os.wall().0));
}

pub(crate) async fn random_bytes_are_not_zeros_and_not_the_same_twice<W: World>(world: &W) {
    let (mut first, mut second) = ([0; 1024], [0; 1024]);
    world.os().random(&mut first);
    world.os().random(&mut second);
    assert!(first.iter().filter(|&&byte| byte == 0).count() < 100);
    assert_ne!(first, second);
}

pub(crate) async fn an_output_that_nobody_reads_is_a_broken_pipe<W: World>(world: &W) {
    world.lose_the_reader_of_stdout();
    for _ in 0..2 {
        let error = poll_fn(|cx| world.os().poll_write(Stream::Out, cx, b"x")).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
    assert!(matches!(poll_fn(|cx| world.os().poll_write(Stream::Err, cx, b"\n")).await, Ok(1)));
}

///
pub(crate) async fn time_since_the_start_of_the_machine_goes_on_under_one_boot_id<W: World>(world: &W) {
    let os = world.os();
    let before = os.boot();
    os.sleep_until(os.now() + Duration::from_millis(20)).await;
    let after = os.boot();
    assert_eq!(before.boot, after.boot);
    assert!(after.since - before.since >= Duration::from_millis(20), "{before:?} {after:?}");
    assert_eq!(os.identify(os.env().pid).unwrap().boot, after.boot);
}
