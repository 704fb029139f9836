//! The life of the process: the correct one, and each fault that is not about bytes on stdout.

use super::super::memory::{Did, End, INITIALIZE, Memory, SHUTDOWN, cancel, fault, plan, request};
use super::super::{Act, Background, Fault, Fd, Group, METHODS, Sig, Until, When, catalogue};

fn lived(faults: &[Fault]) -> (Memory, End) {
    let mut memory = Memory::life();
    let end = memory.run(&plan(faults));
    (memory, end)
}

fn at(act: Act, when: When) -> Fault {
    Fault { when: Some(when), ..fault(act) }
}

fn replied_at(memory: &Memory) -> Option<u64> {
    memory.when(|did| matches!(did, Did::Wrote(Fd::Stdout, _)))
}

/// PRC-14
#[test]
fn a_correct_plugin_answers_at_once_and_exits_when_stdin_ends() {
    let (memory, end) = lived(&[]);
    assert_eq!(end, End::Exited(0));
    assert_eq!(replied_at(&memory), Some(0));
    assert_eq!(memory.now, 20_000);
    assert_eq!(memory.when(|did| *did == Did::GotEof(0)), Some(20_000));
}

/// TRN-06
#[test]
fn a_correct_plugin_writes_nothing_but_its_reply() {
    let (memory, _) = lived(&[]);
    assert_eq!(memory.writes(Fd::Stdout).len(), 1);
    assert!(memory.bytes(Fd::Stderr).is_empty());
}

#[test]
fn a_line_in_pieces_is_one_line() {
    let (first, second) = INITIALIZE.split_at(17);
    let mut memory = Memory::new(&[(0, Some(first)), (3, Some(second)), (9, None)]);
    assert_eq!(memory.run(&plan(&[])), End::Exited(0));
    assert_eq!(replied_at(&memory), Some(3));
    assert_eq!(memory.when(|did| *did == Did::GotLine(INITIALIZE.trim_end().to_owned())), Some(3));
}

#[test]
fn an_unfinished_line_is_counted_and_not_handled() {
    let mut memory = Memory::new(&[(0, Some(INITIALIZE.trim_end())), (9, None)]);
    assert_eq!(memory.run(&plan(&[])), End::Exited(0));
    assert_eq!(memory.when(|did| *did == Did::GotEof(INITIALIZE.len() - 1)), Some(9));
    assert_eq!(replied_at(&memory), None);
}

#[test]
fn a_request_that_it_does_not_serve_gets_a_permanent_error() {
    let request = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"link.teleport\",\"params\":{}}\n";
    let mut memory = Memory::new(&[(0, Some(request)), (1, None)]);
    memory.run(&plan(&[]));
    let reply: serde_json::Value = serde_json::from_slice(&memory.bytes(Fd::Stdout)).unwrap();
    assert_eq!((&reply["id"], &reply["error"]["data"]["kind"]), (&2.into(), &"permanent".into()));
}

#[test]
fn partial_writes_are_continued() {
    let mut memory = Memory::life();
    memory.write_limit = 7;
    memory.run(&plan(&[]));
    assert_eq!(memory.bytes(Fd::Stdout), lived(&[]).0.bytes(Fd::Stdout));
}

#[test]
fn a_reader_that_is_gone_ends_a_flood_and_not_the_process() {
    let mut memory = Memory::life();
    memory.reader_gone_after = Some(1 << 20);
    let end = memory.run(&plan(&[fault(Act::EndlessLine(1 << 30))]));
    assert_eq!(end, End::Exited(0));
    assert_eq!(memory.bytes(Fd::Stdout).len(), 1 << 20);
}

/// A life in which this request is cancelled, answered or not, shortly before the end.
fn life_with(method: &str) -> Memory {
    let id = if method == "initialize" { 1 } else { 2 };
    let call = if id == 2 { request(2, method) } else { String::new() };
    let lines = [(0, INITIALIZE), (100, &call), (19_500, &cancel(id)), (20_000, SHUTDOWN)];
    let mut input: Vec<(u64, Option<&str>)> = lines.map(|(at, line)| (at, Some(line))).into();
    input.retain(|(_, line)| *line != Some(""));
    Memory::new(&[&input[..], &[(20_000, None)]].concat())
}

/// Each fault of the catalogue shows: it says that it begins, and the run differs from the sound one.
#[test]
fn every_fault_takes_effect_at_every_moment_of_every_method_at_which_it_is_possible() {
    for method in METHODS {
        let mut sound = life_with(method);
        let sound_end = sound.run(&plan(&[]));
        for entry in catalogue().into_iter().filter(|entry| entry.methods.contains(method)) {
            for (act, when) in
                entry.examples.iter().flat_map(|act| entry.moments.iter().map(move |when| (act, when)))
            {
                let on = when.is_of_a_request().then(|| (*method).to_owned());
                let fault = Fault { on, ..at(act.clone(), *when) };
                if fault.check().is_err() {
                    continue; // before the request is read nobody knows which one it is
                }
                let mut memory = life_with(method);
                let end = memory.run(&plan(&[fault]));
                let began = memory.did.iter().any(|(_, did)| *did == Did::Began(entry.name));
                assert!(began, "{} {} {method} never began", entry.name, when.name());
                let rest: Vec<_> =
                    memory.did.iter().filter(|(_, did)| !matches!(did, Did::Began(_))).cloned().collect();
                let same = rest == sound.did && end == sound_end && memory.now == sound.now;
                // To exit with status 0 once stdin has ended is what a correct plugin does.
                // That of `host.release` is null.
                let correct = match act {
                    Act::Exit(0) => *when == When::OnEof,
                    Act::ResultNull => *method == "host.release" && *when == When::Instead,
                    _ => false,
                };
                assert_eq!(same, correct, "{} {} {method} changes nothing", entry.name, when.name());
            }
        }
    }
}

#[test]
fn a_fault_of_the_second_start_leaves_the_first_alone() {
    let second = Fault { start: Some(2), ..fault(Act::Exit(3)) };
    assert_eq!(lived(std::slice::from_ref(&second)).1, End::Exited(0));
    let mut memory = Memory::life();
    memory.start = 2;
    assert_eq!(memory.run(&plan(&[second])), End::Exited(3));
}

#[test]
fn exit_happens_before_in_and_after_the_reply() {
    let written = |when| {
        let (memory, end) = lived(&[at(Act::Exit(3), when)]);
        assert_eq!((end, memory.now), (End::Exited(3), 0), "{}", when.name());
        (memory.bytes(Fd::Stdout).len(), memory.when(|did| matches!(did, Did::GotLine(_))).is_some())
    };
    let reply = lived(&[]).0.bytes(Fd::Stdout).len();
    assert_eq!(written(When::OnStart), (0, false));
    assert_eq!(written(When::BeforeRead), (0, false));
    assert_eq!(written(When::BeforeReply), (0, true));
    assert_eq!(written(When::Instead), (0, true));
    assert_eq!(written(When::MidReply), (reply / 2, true));
    assert_eq!(written(When::AfterReply), (reply, true));
}

#[test]
fn before_read_waits_for_the_request_and_reads_nothing() {
    let mut memory = Memory::new(&[(40, Some(INITIALIZE)), (90, None)]);
    assert_eq!(memory.run(&plan(&[at(Act::Exit(0), When::BeforeRead)])), End::Exited(0));
    assert_eq!(memory.now, 40);
    assert_eq!(memory.input.len(), 2);
}

#[test]
fn exit_at_shutdown_does_not_wait_for_the_end_of_stdin() {
    let mut memory = Memory::new(&[(0, Some(INITIALIZE)), (5, Some(SHUTDOWN)), (9, None)]);
    assert_eq!(memory.run(&plan(&[at(Act::Exit(7), When::OnShutdown)])), End::Exited(7));
    assert_eq!(memory.now, 5);
}

/// PRC-14
#[test]
fn a_delay_at_the_end_of_stdin_makes_a_late_exit() {
    let (memory, end) = lived(&[at(Act::DelayMs(4_900), When::OnEof)]);
    assert_eq!((end, memory.now), (End::Exited(0), 24_900));
}

#[test]
fn a_deed_after_the_end_of_stdin_keeps_the_process_until_then() {
    let late = Fault { after_ms: Some(1_500), ..at(Act::Exit(4), When::OnEof) };
    let (memory, end) = lived(&[late]);
    assert_eq!((end, memory.now), (End::Exited(4), 21_500));
}

#[test]
fn a_later_deed_leaves_the_reply_in_time() {
    let late = Fault { after_ms: Some(300), ..at(Act::Exit(4), When::OnStart) };
    let (memory, end) = lived(&[late]);
    assert_eq!((end, memory.now), (End::Exited(4), 300));
    assert_eq!(replied_at(&memory), Some(0));
}

#[test]
fn the_end_of_stdin_cancels_a_later_deed() {
    let late = Fault { after_ms: Some(60_000), ..at(Act::Exit(4), When::AfterReply) };
    assert_eq!(lived(&[late]).1, End::Exited(0));
}

#[test]
fn die_of_ends_by_that_signal() {
    assert_eq!(lived(&[fault(Act::DieOf(Sig::Segv))]).1, End::Died(Sig::Segv));
}

/// TMO-06
#[test]
fn a_delay_answers_in_spite_of_a_cancel() {
    let cancel = "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel\",\"params\":{\"id\":1}}\n";
    let stop = [(0, Some(INITIALIZE)), (10_000, Some(cancel)), (10_000, Some(SHUTDOWN)), (10_000, None)];
    let mut memory = Memory::new(&stop);
    assert_eq!(memory.run(&plan(&[fault(Act::DelayMs(10_100))])), End::Exited(0));
    assert_eq!(replied_at(&memory), Some(10_100));
}

/// TMO-04
#[test]
fn a_cancellable_delay_is_dropped_by_the_cancel_of_its_id() {
    let replied_with = |id| {
        let mut memory = Memory::new(&[(0, Some(INITIALIZE)), (500, Some(&cancel(id))), (9_000, None)]);
        memory.run(&plan(&[fault(Act::CancellableDelayMs(1_000))]));
        replied_at(&memory)
    };
    assert_eq!(replied_with(1), None);
    assert_eq!(replied_with(2), Some(1_000));
}

#[test]
fn a_cancellable_delay_is_dropped_by_the_end_of_stdin() {
    let mut memory = Memory::new(&[(0, Some(INITIALIZE)), (500, None)]);
    memory.run(&plan(&[fault(Act::CancellableDelayMs(1_000))]));
    assert_eq!((replied_at(&memory), memory.now), (None, 500));
}

/// HSK-08
#[test]
fn a_delay_of_9900_ms_answers_at_9900_ms() {
    for act in [Act::DelayMs(9_900), Act::CancellableDelayMs(9_900)] {
        assert_eq!(replied_at(&lived(&[fault(act)]).0), Some(9_900));
    }
}

#[test]
fn dribble_spreads_the_reply_over_time() {
    let (memory, _) = lived(&[fault(Act::DribbleMs(10))]);
    let bytes = memory.bytes(Fd::Stdout);
    assert_eq!(bytes, lived(&[]).0.bytes(Fd::Stdout));
    let last = memory.did.iter().rfind(|(_, did)| matches!(did, Did::Wrote(..))).unwrap().0;
    assert_eq!(last, 10 * (bytes.len() as u64 - 1));
}

#[test]
fn hold_until_eof_writes_the_sound_reply_once_stdin_has_ended() {
    let (memory, end) = lived(&[fault(Act::HoldUntilEof)]);
    assert_eq!((end, replied_at(&memory)), (End::Exited(0), Some(20_000)));
    assert_eq!(memory.bytes(Fd::Stdout), lived(&[]).0.bytes(Fd::Stdout));
}

#[test]
fn stdin_unread_from_the_start_reads_no_line_and_stays() {
    let (memory, end) = lived(&[fault(Act::StdinUnread)]);
    assert_eq!(end, End::Stays);
    assert!(memory.did.iter().all(|(_, did)| matches!(did, Did::Began(_))));
}

#[test]
fn stdin_unread_after_the_reply_misses_shutdown_even_in_the_same_read() {
    let both = format!("{INITIALIZE}{SHUTDOWN}");
    let mut memory = Memory::new(&[(0, Some(&both)), (1, None)]);
    assert_eq!(memory.run(&plan(&[at(Act::StdinUnread, When::AfterReply)])), End::Stays);
    assert_eq!(memory.when(|did| matches!(did, Did::GotLine(line) if line.contains("shutdown"))), None);
    assert_eq!(replied_at(&memory), Some(0));
}

#[test]
fn stdin_closed_closes_it_and_stays() {
    let (memory, end) = lived(&[fault(Act::StdinClosed)]);
    assert_eq!(end, End::Stays);
    assert_eq!(memory.when(|did| *did == Did::Closed(Fd::Stdin)), Some(0));
}

///
#[test]
fn stdout_closed_writes_nothing_more_and_reads_on() {
    let (memory, end) = lived(&[fault(Act::StdoutClosed)]);
    assert_eq!((end, replied_at(&memory)), (End::Exited(0), None));
    assert!(memory.when(|did| *did == Did::Closed(Fd::Stdout)).is_some());
}

#[test]
fn unterminated_close_closes_stdout_behind_the_reply() {
    let (memory, end) = lived(&[fault(Act::UnterminatedClose)]);
    assert_eq!(end, End::Exited(0));
    assert_eq!(memory.did.iter().filter(|(_, did)| *did == Did::Closed(Fd::Stdout)).count(), 1);
}

#[test]
fn unterminated_exit_ends_with_status_0_at_once() {
    let (memory, end) = lived(&[fault(Act::UnterminatedExit)]);
    assert_eq!((end, memory.now), (End::Exited(0), 0));
}

/// PRC-07
#[test]
fn ignore_stop_reads_the_end_of_stdin_and_stays() {
    let (memory, end) = lived(&[fault(Act::IgnoreStop)]);
    assert_eq!(end, End::Stays);
    assert!(memory.when(|did| matches!(did, Did::GotEof(_))).is_some());
}

/// TRN-07
#[test]
fn stderr_flood_is_10_mib_of_lines_and_the_reply_comes_all_the_same() {
    let (memory, end) = lived(&[fault(Act::StderrFlood(10 << 20))]);
    let bytes = memory.bytes(Fd::Stderr);
    assert_eq!((end, bytes.len()), (End::Exited(0), 10 << 20));
    assert!(bytes.chunks(100).filter(|line| line.len() == 100).all(|line| line[99] == b'\n'));
    assert!(replied_at(&memory).is_some());
}

/// TRN-09
#[test]
fn stderr_faults_write_what_their_names_say() {
    let stderr = |act| lived(&[fault(act)]).0.bytes(Fd::Stderr);
    assert_eq!(stderr(Act::StderrNoNewline(401)), vec![b'x'; 401]);
    assert!(std::str::from_utf8(&stderr(Act::StderrInvalidUtf8)).is_err());
    assert_eq!(stderr(Act::StderrText("no\tway".to_owned())), b"no\tway\n");
    assert_eq!(stderr(Act::LeakEnvStderr("MU_PLUGIN_CANARY".to_owned())), b"canary-4711\n");
}

/// PRC-17
#[test]
fn exits_that_leave_a_child_leave_one_that_holds_stdout() {
    for (act, group) in
        [(Act::ExitLeavingStdoutHeld(2), Group::Same), (Act::ExitLeavingEscaped(2), Group::Setsid)]
    {
        let (memory, end) = lived(&[fault(act)]);
        assert_eq!(end, End::Exited(2));
        let left = memory.did.iter().find_map(|(_, did)| match did {
            Did::Left(child) => Some(child.clone()),
            _ => None,
        });
        let left = left.expect("a child is left");
        assert_eq!((left.group, left.holds), (group, vec![Fd::Stdout]));
    }
}

/// PRC-16
#[test]
fn leave_child_leaves_exactly_the_child_of_the_plan() {
    let child = Background { group: Group::Setsid, holds: vec![Fd::Stderr], until: Until::Ms(10), forks: 0 };
    let (memory, end) = lived(&[fault(Act::LeaveChild(child.clone()))]);
    assert_eq!(end, End::Exited(0));
    assert!(memory.did.iter().any(|(_, did)| *did == Did::Left(child.clone())));
}

#[test]
fn ignore_signals_covers_the_three_polite_ones() {
    let (memory, _) = lived(&[fault(Act::IgnoreSignals)]);
    for sig in [Sig::Term, Sig::Int, Sig::Hup] {
        assert!(memory.did.iter().any(|(_, did)| *did == Did::Ignored(sig)));
    }
}

#[test]
fn stop_self_raises_sigstop_before_the_reply() {
    let (memory, _) = lived(&[fault(Act::StopSelf)]);
    let order: Vec<_> =
        memory.did.iter().filter(|(_, did)| matches!(did, Did::Raised(_) | Did::Wrote(..))).collect();
    assert!(matches!(order[0].1, Did::Raised(Sig::Stop)));
}

#[test]
fn kill_mu_sends_the_signal_to_the_parent_at_its_moment() {
    let (memory, _) = lived(&[at(Act::KillMu(Sig::Kill), When::MidReply)]);
    let order: Vec<_> =
        memory.did.iter().filter(|(_, did)| matches!(did, Did::SignalledMu(_) | Did::Wrote(..))).collect();
    assert!(matches!(order[0].1, Did::Wrote(..)) && matches!(order[2].1, Did::Wrote(..)));
    assert_eq!(order[1].1, Did::SignalledMu(Sig::Kill));
}

#[test]
fn faults_of_one_moment_happen_in_the_order_of_the_plan() {
    let (memory, end) =
        lived(&[fault(Act::DelayMs(250)), fault(Act::StderrText("late".to_owned())), fault(Act::NoReply)]);
    assert_eq!(memory.when(|did| matches!(did, Did::Wrote(Fd::Stderr, _))), Some(250));
    assert_eq!((end, replied_at(&memory)), (End::Exited(0), None));
}
