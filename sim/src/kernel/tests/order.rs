//! Order from the seed, deadlocks, budgets.

use super::*;
use crate::disk::Disk;
use crate::trace::Digest;

/// Five processes that get in each other's way; who did what when, and the chain.
fn scramble(seed: u64) -> (Vec<String>, Digest, u64) {
    let machine = Machine::new(seed);
    let log = Log::default();
    for name in ["a", "b", "c", "d", "e"] {
        let log = log.clone();
        let program = move |sys: Sys| async move {
            for _ in 0..3 {
                log.add(name);
                sys.sleep(ms(1)).await;
            }
            sys.write_all(STDOUT, name.as_bytes()).await.unwrap();
            OK
        };
        machine.start_fn(&command(name), program).unwrap();
    }
    machine.run_until_idle().unwrap();
    (log.take(), machine.digest(), machine.event_count())
}

#[test]
fn the_same_seed_gives_the_same_run() {
    assert_eq!(scramble(11), scramble(11));
}

#[test]
fn another_seed_gives_another_order() {
    let orders: Vec<_> = (0..8).map(|seed| scramble(seed).0).collect();
    let distinct = orders.iter().enumerate().filter(|(nth, order)| !orders[..*nth].contains(order)).count();
    assert!(distinct >= 7, "{distinct} orders of 8 seeds");
    assert_ne!(scramble(1).1, scramble(2).1);
}

#[test]
fn recording_does_not_change_the_run() {
    let run = |recording| {
        let options = Options { recording, ..Options::new(5) };
        let machine = run_on(Machine::with(options, Disk::new()), |sys| async move {
            sys.fork(&forked("child", &[]), |_| async { OK }).unwrap();
            sys.sleep(ms(1)).await;
            OK
        });
        (machine.digest(), machine.event_count(), machine.events().is_empty())
    };
    let (recorded, bare) = (run(true), run(false));
    assert_eq!((recorded.0, recorded.1), (bare.0, bare.1));
    assert_eq!((recorded.2, bare.2), (false, true));
}

#[test]
fn a_draw_of_one_program_does_not_shift_another() {
    let draws = |first_draws: usize| {
        let drawn = Rc::new(RefCell::new(Vec::new()));
        let machine = Machine::new(3);
        let program = move |sys: Sys| async move {
            let mut stream = sys.stream("delay");
            for _ in 0..first_draws {
                stream.word();
            }
            OK
        };
        machine.start_fn(&command("first"), program).unwrap();
        let to = drawn.clone();
        let program = move |sys: Sys| async move {
            to.borrow_mut().push(sys.stream("delay").word());
            OK
        };
        machine.start_fn(&command("second"), program).unwrap();
        machine.run_until_idle().unwrap();
        drawn.take()
    };
    assert_eq!(draws(0), draws(9));
}

fn deadlock_of<F>(program: impl FnOnce(Sys) -> F) -> String
where
    F: Future<Output = Exit> + 'static,
{
    let machine = Machine::new(1);
    let started = machine.start_fn(&Command::new(["/usr/bin/mu", "plugin", "list"]), program).unwrap();
    match machine.run_until_exit(&started) {
        Err(stuck @ Stuck::Deadlock(_)) => stuck.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_deadlock_names_who_reads_what_and_who_could_write_it() {
    let report = deadlock_of(|sys| async move {
        sys.sleep(ms(1500)).await;
        let fds = [(STDIN, Give::Pipe), (STDOUT, Give::Pipe)];
        let child = sys
            .fork(&Fork { name: "cloud", group: Group::Own, fds: &fds }, |sys| async move {
                let fds = [(STDOUT, Give::Keep(STDOUT))];
                sys.fork(&forked("sleeper", &fds), idle).unwrap();
                sys.read(STDIN, &mut [0; 1]).await.unwrap();
                OK
            })
            .unwrap();
        sys.read(child.pipes[1], &mut [0; 1]).await.unwrap();
        OK
    });
    let expected = "\
deadlock at 1.500000000 s: nobody is ready and no timer is set
  mu[100] waits to read stdout of cloud[101], which is open for writing in cloud[101], sleeper[102]
  cloud[101] waits to read stdin of cloud[101], which is open for writing in mu[100]
  sleeper[102] waits for nothing that the machine knows";
    assert_eq!(report, expected);
}

#[test]
fn a_deadlock_names_groups_children_signals_full_pipes_and_the_stopped() {
    let report = deadlock_of(|sys| async move {
        let fds = [(STDIN, Give::Pipe)];
        let stopped = sys.fork(&Fork { name: "cloud", group: Group::Own, fds: &fds }, idle).unwrap();
        sys.kill(stopped.pid, SIGSTOP).unwrap();
        let writer = sys.clone();
        std::future::poll_fn(move |cx| {
            let full = [0; PIPE_CAPACITY];
            while writer.poll_write(stopped.pipes[0], cx, &full).is_ready() {}
            let _ = writer.poll_group_empty(stopped.pid, cx);
            let _ = writer.poll_exited(stopped.pid, cx);
            writer.poll_signal(cx).map(|_| OK)
        })
        .await
    });
    let expected = "\
deadlock at 0.000000000 s: nobody is ready and no timer is set
  mu[100] waits
    to write to stdin of cloud[101], which is full and open for reading in cloud[101]
    for a signal
    for the end of cloud[101]
    for group 101 to be empty, in which live cloud[101]
  cloud[101] is stopped";
    assert_eq!(report, expected);
}

#[test]
fn a_deadlock_leaves_out_what_a_process_no_longer_waits_for() {
    let report = deadlock_of(|sys| async move {
        let (read, _write) = sys.pipe().unwrap();
        assert_eq!(sys.read_before(read, &mut [0; 1], sys.now() + ms(1)).await.unwrap(), None);
        sys.signal().await;
        OK
    });
    assert!(report.ends_with("mu[100] waits for a signal"), "{report}");
}

#[test]
fn a_process_that_dropped_its_waker_is_named_as_such() {
    let report = deadlock_of(|sys| async move {
        let (read, write) = sys.pipe().unwrap();
        sys.fork(&forked("writer", &[(STDOUT, Give::Keep(write))]), |sys| async move {
            sys.sleep(ms(1)).await;
            sys.write_all(STDOUT, b"x").await.unwrap();
            idle(sys).await
        })
        .unwrap();
        std::future::poll_fn(|_| {
            let mut deaf = std::task::Context::from_waker(std::task::Waker::noop());
            sys.poll_read(read, &mut deaf, &mut [0; 1]).map(|_| OK)
        })
        .await
    });
    assert!(report.contains("mu[100] could go on, but nothing woke it"), "{report}");
}

#[test]
fn a_process_that_ends_while_a_deadlock_is_reported_is_named_and_gone() {
    let machine = Machine::new(1);
    let deaf = |_: Sys| {
        let mut polls = 0;
        std::future::poll_fn(move |_| {
            polls += 1;
            if polls == 1 { std::task::Poll::Pending } else { std::task::Poll::Ready(OK) }
        })
    };
    let started = machine.start_fn(&command("deaf"), deaf).unwrap();
    let Err(Stuck::Deadlock(deadlock)) = machine.run_until_idle() else { panic!("it was never woken") };
    assert!(deadlock.blocked[0].unwoken);
    assert_eq!(machine.exit(&started), Some(OK));
    machine.start_fn(&command("next"), idle).unwrap();
    assert_eq!(machine.living().len(), 1);
    machine.run_until(ms(1)).unwrap();
    assert_eq!(machine.living().len(), 1, "the place of the task was not mixed up");
}

#[test]
fn a_program_that_waits_and_wakes_for_ever_spends_the_budget() {
    let options = Options { budget: Budget { steps: 1_000, ..Budget::default() }, ..Options::new(1) };
    let machine = Machine::with(options, Disk::new());
    let started = machine
        .start_fn(&command("main"), |_| async {
            loop {
                give_way().await;
            }
        })
        .unwrap();
    assert_eq!(machine.run_until_exit(&started), Err(Stuck::Steps { steps: 1_000, at: 0 }));
}

#[test]
fn a_program_that_never_waits_spends_the_budget_too() {
    let options = Options { budget: Budget { steps: 1_000, ..Budget::default() }, ..Options::new(1) };
    let machine = Machine::with(options, Disk::new());
    let started = machine
        .start_fn(&command("main"), |sys| async move {
            while sys.now().0 < ms(1) {}
            OK
        })
        .unwrap();
    assert_eq!(machine.run_until_exit(&started), Err(Stuck::Steps { steps: 1_000, at: 0 }));
}

#[test]
fn a_timer_behind_the_allowed_virtual_time_ends_the_run() {
    let budget = Budget { virtual_time: ms(100), ..Budget::default() };
    let machine = Machine::with(Options { budget, ..Options::new(1) }, Disk::new());
    let started = machine
        .start_fn(&command("main"), |sys| async move {
            loop {
                sys.sleep(ms(30)).await;
            }
        })
        .unwrap();
    let stuck = Stuck::VirtualTime { at: 120_000_000, limit: 100_000_000 };
    assert_eq!(machine.run_until_exit(&started), Err(stuck));
}

#[test]
fn two_processes_ready_at_the_same_instant_go_in_either_order() {
    let first = |seed| {
        let machine = Machine::new(seed);
        let log = Log::default();
        for name in ["a", "b"] {
            let log = log.clone();
            let program = move |sys: Sys| async move {
                sys.sleep(ms(5)).await;
                log.add(name);
                OK
            };
            machine.start_fn(&command(name), program).unwrap();
        }
        machine.run_until_idle().unwrap();
        log.take().swap_remove(0)
    };
    let firsts: Vec<String> = (0..20).map(first).collect();
    assert!(firsts.contains(&"a".to_owned()) && firsts.contains(&"b".to_owned()));
}
