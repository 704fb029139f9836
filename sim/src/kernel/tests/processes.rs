//! Processes, groups, sessions, zombies.

use nix::errno::Errno;

use super::*;
use crate::trace::{Target, What};

fn group(name: &str, group: Group) -> Fork<'_> {
    Fork { name, group, fds: &[] }
}

#[test]
fn a_zombie_keeps_the_group_id_but_does_not_count_as_alive() {
    let machine = Machine::new(1);
    let program = |sys: Sys| async move {
        let child = sys.fork(&group("child", Group::Own), |_| async { OK }).unwrap().pid;
        std::future::poll_fn(|cx| sys.poll_group_empty(child, cx)).await;
        assert!(sys.kill_group(child, 0).is_ok(), "the zombie still has the group id");
        assert!(sys.kill(child, 0).is_ok());
        sys.sleep(ms(1)).await;
        sys.reap(child).unwrap();
        assert_eq!(sys.kill_group(child, 0).unwrap_err().raw_os_error(), Some(Errno::ESRCH as i32));
        OK
    };
    let started = machine.start_fn(&command("main"), program).unwrap();
    machine.run_until(Duration::from_micros(500)).unwrap();
    assert_eq!((pids(&machine), machine.zombies()), (vec![started.pid], vec![Pid(101)]));
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
    assert_eq!(machine.zombies(), []);
}

#[test]
fn waiting_for_an_exit_does_not_reap() {
    run(|sys| async move {
        let child = sys.fork(&group("child", Group::Own), |_| async { Exit::Status(7) }).unwrap().pid;
        for _ in 0..2 {
            let exit = std::future::poll_fn(|cx| sys.poll_exited(child, cx)).await;
            assert_eq!(exit.unwrap(), Exit::Status(7));
        }
        assert_eq!(sys.reap(child).unwrap(), Exit::Status(7));
        assert_eq!(sys.reap(child).unwrap_err().raw_os_error(), Some(Errno::ECHILD as i32));
        OK
    });
}

#[test]
fn the_living_cannot_be_reaped_and_strangers_neither() {
    run(|sys| async move {
        let child = sys.fork(&group("child", Group::Own), idle).unwrap().pid;
        assert_eq!(sys.reap(child).unwrap_err().raw_os_error(), Some(Errno::EAGAIN as i32));
        assert_eq!(sys.reap(sys.ppid()).unwrap_err().raw_os_error(), Some(Errno::ECHILD as i32));
        sys.kill(child, SIGKILL).unwrap();
        OK
    });
}

#[test]
fn orphans_go_to_init_which_reaps_them() {
    let machine = Machine::new(1);
    let program = |sys: Sys| async move {
        sys.fork(&group("orphan", Group::Own), |sys| async move {
            assert_eq!(sys.ppid(), Pid(100));
            sys.sleep(ms(2)).await;
            assert_eq!(sys.ppid(), Pid(1));
            OK
        })
        .unwrap();
        sys.sleep(ms(1)).await;
        OK
    };
    machine.start_fn(&command("main"), program).unwrap();
    machine.run_until_idle().unwrap();
    assert_eq!(machine.zombies(), []);
    let reaped_by = find(&machine, |event| match event.what {
        What::Reap { child: Pid(101) } => Some(event.pid),
        _ => None,
    });
    assert_eq!(reaped_by, [Pid(1)]);
    assert!(!find(&machine, |event| matches!(event.what, What::Panic(_)).then_some(())).contains(&()));
}

#[test]
fn a_zombie_whose_parent_ends_is_reaped_too() {
    let machine = run(|sys| async move {
        sys.fork(&group("child", Group::Own), |_| async { OK }).unwrap();
        sys.sleep(ms(1)).await;
        OK
    });
    assert_eq!(machine.zombies(), []);
}

#[test]
fn killing_a_group_ends_all_its_members_and_nobody_else() {
    run(|sys| async move {
        let leader = sys
            .fork(&group("leader", Group::Own), |sys| async move {
                sys.fork(&group("member", Group::Same), idle).unwrap();
                sys.fork(&group("outsider", Group::Session), |sys| async move {
                    sys.sleep(ms(5)).await;
                    OK
                })
                .unwrap();
                std::future::pending().await
            })
            .unwrap()
            .pid;
        sys.sleep(ms(1)).await;
        sys.kill_group(leader, SIGKILL).unwrap();
        std::future::poll_fn(|cx| sys.poll_group_empty(leader, cx)).await;
        assert_eq!(sys.now().0, ms(1));
        assert_eq!(sys.wait_for(leader).await.unwrap(), Exit::Signal(SIGKILL));
        assert!(sys.kill(Pid(103), 0).is_ok(), "who left the group lives on");
        OK
    });
}

#[test]
fn a_group_is_empty_only_when_the_last_member_has_ended() {
    run(|sys| async move {
        let leader = sys
            .fork(&group("leader", Group::Own), |sys| async move {
                sys.fork(&group("member", Group::Same), |sys| async move {
                    sys.sleep(ms(7)).await;
                    OK
                })
                .unwrap();
                OK
            })
            .unwrap()
            .pid;
        std::future::poll_fn(|cx| sys.poll_group_empty(leader, cx)).await;
        assert_eq!(sys.now().0, ms(7));
        OK
    });
}

#[test]
fn setsid_leaves_the_group() {
    run(|sys| async move {
        let leader = sys
            .fork(&group("leader", Group::Own), |sys| async move {
                assert!(sys.setsid().is_err(), "a leader of a group cannot leave it");
                sys.fork(&group("deserter", Group::Same), |sys| async move {
                    sys.sleep(ms(3)).await;
                    assert_eq!(sys.setsid().unwrap(), sys.pid());
                    assert_eq!((sys.pgid(), sys.sid()), (sys.pid(), sys.pid()));
                    sys.sleep(ms(3)).await;
                    OK
                })
                .unwrap();
                OK
            })
            .unwrap()
            .pid;
        std::future::poll_fn(|cx| sys.poll_group_empty(leader, cx)).await;
        assert_eq!(sys.now().0, ms(3));
        OK
    });
}

#[test]
fn a_group_of_another_session_cannot_be_joined() {
    run(|sys| async move {
        let elsewhere = sys.fork(&group("session", Group::Session), idle).unwrap().pid;
        let peer = sys.fork(&group("peer", Group::Own), idle).unwrap().pid;
        let refused = sys.fork(&group("child", Group::Of(elsewhere)), idle).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(Errno::EPERM as i32));
        let joined = sys.fork(&group("child", Group::Of(peer)), |sys| async move {
            assert!(sys.setpgid(Pid(9999)).is_err());
            sys.setpgid(sys.pid()).unwrap();
            assert_eq!(sys.pgid(), sys.pid());
            OK
        });
        assert_eq!(sys.wait_for(joined.unwrap().pid).await.unwrap(), OK);
        sys.kill(elsewhere, SIGKILL).unwrap();
        sys.kill(peer, SIGKILL).unwrap();
        OK
    });
}

#[test]
fn a_program_started_by_a_person_leads_a_group_in_the_session_of_the_shell() {
    let machine = Machine::new(1);
    machine.start_fn(&command("main"), idle).unwrap();
    let [main] = &machine.living()[..] else { panic!("one lives") };
    assert_eq!((main.ppid, main.group, main.session), (Pid(2), main.pid, Pid(2)));
}

/// A destructor that tries everything.
struct Revenant {
    sys: Sys,
    write: Fd,
    log: Log,
}

impl Drop for Revenant {
    fn drop(&mut self) {
        let sys = &self.sys;
        self.log.add(format!("{:?}", sys.kill(Pid(100), SIGKILL).map_err(|e| e.raw_os_error())));
        self.log.add(format!("{}", sys.fork(&forked("ghost", &[]), idle).is_ok()));
        self.log.add(format!("{}", sys.close(self.write).is_ok()));
        sys.note("boo");
        let mut write = std::pin::pin!(sys.write(self.write, b"boo"));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        self.log.add(format!("{}", write.as_mut().poll(&mut cx).is_ready()));
    }
}

#[test]
fn a_process_that_was_killed_touches_nothing_any_more() {
    let log = Log::default();
    let its_log = log.clone();
    let machine = run(|sys| async move {
        let (read, write) = sys.pipe().unwrap();
        let child = sys
            .fork(&forked("child", &[(STDOUT, Give::Keep(write))]), |sys| async move {
                let _revenant = Revenant { sys, write: STDOUT, log: its_log };
                std::future::pending().await
            })
            .unwrap()
            .pid;
        sys.close(write).unwrap();
        sys.sleep(ms(1)).await;
        sys.kill(child, SIGKILL).unwrap();
        assert_eq!(sys.read(read, &mut [0; 9]).await.unwrap(), 0);
        OK
    });
    assert_eq!(log.take(), ["Err(Some(3))", "false", "false", "false"]);
    assert_eq!(find(&machine, |event| (event.what == What::Note("boo".into())).then_some(())), []);
    assert_eq!(find(&machine, |event| matches!(event.what, What::Spawn { .. }).then_some(())).len(), 2);
}

#[test]
fn a_process_that_kills_itself_gets_no_further() {
    let log = Log::default();
    let its_log = log.clone();
    let machine = Machine::new(1);
    let started = machine
        .start_fn(&command("main"), |sys| async move {
            sys.kill(sys.pid(), SIGKILL).unwrap();
            sys.note("after death");
            sys.sleep(ms(0)).await;
            its_log.add("reached");
            OK
        })
        .unwrap();
    assert_eq!(machine.run_until_exit(&started), Ok(Exit::Signal(SIGKILL)));
    machine.run_until_idle().unwrap();
    assert_eq!(log.take(), [""; 0]);
    assert_eq!(find(&machine, |event| matches!(event.what, What::Note(_)).then_some(())), []);
}

#[test]
fn exit_ends_the_process_at_once_with_the_low_byte() {
    let machine = Machine::new(1);
    let program = |sys: Sys| async move {
        sys.exit(256 + 3).await;
        OK
    };
    let started = machine.start_fn(&command("main"), program).unwrap();
    assert_eq!(machine.run_until_exit(&started), Ok(Exit::Status(3)));
}

#[test]
fn a_panic_is_status_101_and_an_event_with_its_text() {
    let machine = Machine::new(1);
    let program = |_: Sys| async {
        std::panic::resume_unwind(Box::new("broken on purpose"));
        #[allow(unreachable_code)]
        OK
    };
    let started = machine.start_fn(&command("main"), program).unwrap();
    assert_eq!(machine.run_until_exit(&started), Ok(Exit::Status(101)));
    assert_eq!(
        find(&machine, |event| match &event.what {
            What::Panic(text) => Some(text.to_string()),
            _ => None,
        }),
        ["broken on purpose"]
    );
}

#[test]
fn pids_are_used_once_unless_asked_otherwise() {
    for (recycle_pids, expected) in [(false, [101, 102, 103]), (true, [101, 101, 102])] {
        let options = Options { recycle_pids, ..Options::new(1) };
        run_on(Machine::with(options, crate::disk::Disk::new()), move |sys| async move {
            let first = sys.fork(&group("first", Group::Same), |_| async { OK }).unwrap().pid;
            let identity = sys.identify(first).unwrap();
            sys.wait_for(first).await.unwrap();
            sys.sleep(ms(10)).await;
            let second = sys.fork(&group("second", Group::Own), |_| async { OK }).unwrap().pid;
            assert_ne!(sys.identify(second), Some(identity));
            sys.sleep(ms(10)).await;
            // The second is a zombie: its pid is taken.
            let third = sys.fork(&group("third", Group::Own), |_| async { OK }).unwrap().pid;
            assert_eq!([first.0, second.0, third.0], expected);
            OK
        });
    }
}

/// Or pid and start would name two processes.
#[test]
fn a_pid_is_not_used_again_within_a_tick() {
    let options = Options { recycle_pids: true, ..Options::new(1) };
    run_on(Machine::with(options, crate::disk::Disk::new()), |sys| async move {
        let mut pids = Vec::new();
        for _ in 0..3 {
            let pid = sys.fork(&group("short", Group::Own), |_| async { OK }).unwrap().pid;
            sys.wait_for(pid).await.unwrap();
            pids.push(pid.0);
        }
        assert_eq!(pids, [101, 102, 103]);
        OK
    });
}

#[test]
fn a_pid_that_is_the_id_of_a_living_group_is_not_used_again() {
    let options = Options { recycle_pids: true, ..Options::new(1) };
    run_on(Machine::with(options, crate::disk::Disk::new()), |sys| async move {
        let leader = sys
            .fork(&group("leader", Group::Own), |sys| async move {
                sys.fork(&group("member", Group::Same), idle).unwrap();
                OK
            })
            .unwrap()
            .pid;
        sys.wait_for(leader).await.unwrap();
        let next = sys.fork(&group("next", Group::Own), |_| async { OK }).unwrap().pid;
        assert_ne!(next, leader);
        sys.kill_group(leader, SIGKILL).unwrap();
        OK
    });
}

#[test]
fn too_many_processes_are_eagain() {
    run(|sys| async move {
        let mut count = 1;
        let errno = loop {
            match sys.fork(&group("child", Group::Same), idle) {
                Ok(_) => count += 1,
                Err(error) => break error.raw_os_error(),
            }
        };
        assert_eq!((count, errno), (crate::executor::MAX_TASKS, Some(Errno::EAGAIN as i32)));
        for pid in 101..100 + count as i32 {
            sys.kill(Pid(pid), SIGKILL).unwrap();
        }
        OK
    });
}

#[test]
fn a_power_cycle_leaves_nobody_and_touches_nothing() {
    let machine = Machine::new(1);
    let log = Log::default();
    let its_log = log.clone();
    let program = |sys: Sys| async move {
        let (_read, write) = sys.pipe().unwrap();
        let _revenant = Revenant { sys: sys.clone(), write, log: its_log };
        sys.fork(&group("child", Group::Own), idle).unwrap();
        std::future::pending().await
    };
    let started = machine.start_fn(&command("main"), program).unwrap();
    machine.run_until(ms(1)).unwrap();
    let before = machine.events().len();
    machine.power_cycle();
    assert_eq!(log.take(), ["Err(Some(3))", "false", "false", "false"]);
    assert_eq!((machine.living(), machine.zombies()), (vec![], vec![]));
    assert_eq!(machine.exit(&started), Some(Exit::Signal(SIGKILL)));
    let after: Vec<Event> = machine.events()[before..].to_vec();
    let [off, parent, child, boot] = &after[..] else { panic!("{after:?}") };
    assert!(off.what == What::PowerOff && matches!(boot.what, What::Boot(_)));
    // That they are dead is told, in the order of their start.
    let ended = [parent, child].map(|event| (event.pid, &event.what));
    let died = What::Exit(Exit::Signal(SIGKILL));
    assert_eq!(ended, [(started.pid, &died), (Pid(started.pid.0 + 1), &died)]);
}

#[test]
fn pids_may_begin_anew_and_leave_out_those_in_use() {
    let machine = Machine::new(1);
    let run = || {
        let started = machine.start_fn(&command("short"), |_| async { OK }).unwrap();
        machine.run_until_exit(&started).unwrap();
        machine.run_until(machine.now() + ms(10)).unwrap();
        started.pid.0
    };
    let first = run();
    let idle = machine.start_fn(&command("idle"), idle).unwrap();
    assert_eq!((idle.pid.0, run()), (first + 1, first + 2));
    machine.recycle_pids();
    assert_eq!([run(), run(), run()], [first, first + 2, first + 3]);
}

#[test]
fn a_signal_from_outside_comes_at_its_time() {
    let machine = Machine::new(1);
    let started = machine.start_fn(&command("main"), idle).unwrap();
    machine.signal_at(ms(40), Target::Group(started.pid), SIGTERM);
    assert_eq!(machine.run_until_exit(&started), Ok(Exit::Signal(SIGTERM)));
    assert_eq!(machine.now(), ms(40));
}
