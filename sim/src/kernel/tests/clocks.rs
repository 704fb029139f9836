//! Time.

use mu_core::os::EpochMs;

use super::*;

#[test]
fn time_jumps_to_the_next_timer() {
    let machine = run(|sys| async move {
        sys.sleep(Duration::from_secs(3600)).await;
        OK
    });
    assert_eq!(machine.now(), Duration::from_secs(3600));
    assert!(machine.polls() <= 3, "{} polls for one timer", machine.polls());
}

#[test]
fn time_stands_still_while_anybody_is_ready() {
    run(|sys| async move {
        sys.fork(&forked("sleeper", &[]), |sys| async move {
            sys.sleep(Duration::from_nanos(1)).await;
            OK
        })
        .unwrap();
        give_way().await;
        assert_eq!(sys.now().0, Duration::ZERO);
        OK
    });
}

#[test]
fn timers_fire_in_order_of_their_instants() {
    let log = Log::default();
    let its_log = log.clone();
    run(|sys| async move {
        for at in [30, 10, 20] {
            let log = its_log.clone();
            sys.fork(&forked("sleeper", &[]), move |sys| async move {
                sys.sleep(ms(at)).await;
                log.add(at.to_string());
                OK
            })
            .unwrap();
        }
        OK
    });
    assert_eq!(log.take(), ["10", "20", "30"]);
}

#[test]
fn a_step_of_the_wall_clock_moves_no_other_clock_and_no_timer() {
    let machine = Machine::new(1);
    machine.at(ms(10), |machine| machine.step_wall(EpochMs(5_000)));
    run_on(machine, |sys| async move {
        assert_eq!(sys.wall(), EpochMs(WALL_START_MS));
        sys.sleep(ms(25)).await;
        assert_eq!(sys.wall(), EpochMs(5_015));
        assert_eq!((sys.now().0, sys.boottime()), (ms(25), ms(25)));
        OK
    });
}

#[test]
fn while_the_machine_sleeps_boottime_and_wall_clock_go_on() {
    let machine = Machine::new(1);
    machine.at(ms(10), |machine| machine.suspend(Duration::from_secs(60)));
    run_on(machine, |sys| async move {
        sys.sleep(ms(25)).await;
        assert_eq!(sys.now().0, ms(25));
        assert_eq!(sys.boottime(), Duration::from_secs(60) + ms(25));
        assert_eq!(sys.wall(), EpochMs(WALL_START_MS + 60_025));
        OK
    });
}

#[test]
fn a_power_cycle_begins_a_new_boot() {
    let machine = Machine::new(1);
    let ids = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..2 {
        let ids = ids.clone();
        let program = |sys: Sys| async move {
            ids.borrow_mut().push(sys.boot_id());
            assert_eq!(sys.now().0, Duration::ZERO);
            sys.sleep(ms(20)).await;
            assert_eq!((sys.now().0, sys.boottime()), (ms(20), ms(20)));
            OK
        };
        let started = machine.start_fn(&command("main"), program).unwrap();
        assert_eq!(machine.run_until_exit(&started), Ok(OK));
        machine.power_cycle();
    }
    assert_ne!(ids.borrow()[0], ids.borrow()[1]);
    assert_eq!(machine.wall(), EpochMs(WALL_START_MS + 40), "the wall clock has a battery");
}

#[test]
fn a_timer_that_is_dropped_does_not_hold_time_back() {
    let machine = run(|sys| async move {
        let mut dropped = sys.sleep(ms(5));
        let _ = std::future::poll_fn(|cx| std::task::Poll::Ready(std::pin::Pin::new(&mut dropped).poll(cx)))
            .await;
        drop(dropped);
        sys.sleep(ms(9)).await;
        OK
    });
    assert_eq!(
        find(&machine, |event| (event.what == crate::trace::What::Jump).then_some(event.at)),
        [9_000_000]
    );
}

#[test]
fn running_until_an_instant_gets_there_whether_anything_happens_or_not() {
    let machine = Machine::new(1);
    machine.run_until(ms(70)).unwrap();
    assert_eq!(machine.now(), ms(70));
    let program = |sys: Sys| async move {
        sys.sleep(ms(20)).await;
        OK
    };
    let started = machine.start_fn(&command("main"), program).unwrap();
    machine.run_until(ms(89)).unwrap();
    assert_eq!((machine.now(), machine.exit(&started)), (ms(89), None));
    machine.run_until(ms(90)).unwrap();
    assert_eq!((machine.now(), machine.exit(&started)), (ms(90), Some(OK)));
}

#[test]
fn a_process_is_identified_by_pid_start_and_boot() {
    let machine = Machine::new(1);
    machine.at(ms(10), |machine| machine.suspend(ms(200)));
    machine.at(ms(40), |machine| machine.suspend(ms(500)));
    run_on(machine, |sys| async move {
        sys.sleep(ms(30)).await;
        let child = sys.fork(&forked("child", &[]), idle).unwrap().pid;
        let identity = sys.identify(child).unwrap();
        // 30 ms awake and 200 ms asleep, in ticks of 10 ms.
        assert_eq!((identity.pid, identity.started), (child, 23));
        assert_eq!(identity.boot.replace('-', ""), format!("{:032x}", sys.boot_id()));
        assert_eq!(identity.boot.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        sys.sleep(ms(30)).await;
        assert_eq!(sys.identify(child), Some(identity), "a sleep of the machine does not change who one is");
        sys.kill(child, SIGKILL).unwrap();
        assert_eq!(sys.identify(child), None, "a zombie is dead");
        OK
    });
}
