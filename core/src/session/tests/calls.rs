//! Races of calls: every order in which a reply, a deadline, a cancel, a signal, a break and an exit can meet.

use mu_protocol::messages::error::ErrorKind;
use mu_protocol::messages::method::AnyResult;

use super::*;
use crate::os::Signal;

const RUN: &str = r#"{"exitCode":0,"stdout":"","stderr":"","partial":false}"#;

impl Rig {
    /// Makes a call that may take so long.
    fn asks(&mut self, id: u64, method: Method, ms: u64) {
        let line = outgoing::request(id, method.as_str(), "{}").unwrap();
        let deadline = self.now + Duration::from_millis(ms);
        self.session.call(id, Request { method, line, deadline });
    }

    /// A ready plugin with these calls of `link.exec` written, each for 25 s.
    fn asked(ids: &[u64]) -> Rig {
        let mut rig = Rig::ready();
        for id in ids {
            rig.asks(*id, Method::LinkExec, 25_000);
        }
        rig.take_all();
        rig
    }

    fn replies(&mut self, id: u64) {
        self.hears(&reply(id, RUN));
    }

    /// What has ended since the last time: `8 result`, `9 not sent: Overdue`.
    fn ended(&mut self) -> Vec<String> {
        self.session
            .answers()
            .map(|(id, answer)| match answer {
                Answer::Result(AnyResult::LinkExec(_)) => format!("{id} result"),
                Answer::Result(other) => panic!("{other:?}"),
                Answer::Error(error) => format!("{id} {:?}", error.kind),
                Answer::NotSent(NotSent::Stopped(cause)) => format!("{id} not sent, stopped: {cause}"),
                Answer::NotSent(why) => format!("{id} not sent: {why:?}"),
            })
            .collect()
    }

    /// The rest of a stop: stdin closed, the leader exits, the group is empty.
    fn goes(&mut self) -> Ending {
        self.take_all();
        self.leader_exits(Exit::Status(0));
        self.session.group_empty();
        self.ending()
    }

    fn is_ready(&self) -> bool {
        matches!(self.session.status(), Status::Ready(_))
    }
}

fn reply(id: u64, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n")
}

fn cancel(id: u64) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel\",\"params\":{{\"id\":{id}}}}}")
}

fn exec(id: u64) -> Cause {
    Cause::Deadline { id, method: Method::LinkExec }
}

/// A-14
#[test]
fn replies_may_come_in_any_order_and_several_in_one_read() {
    let mut rig = Rig::asked(&[8, 9, 10]);
    rig.hears(&[reply(10, RUN), reply(8, RUN)].concat());
    assert_eq!(rig.ended(), ["10 result", "8 result"]);
    rig.replies(9);
    assert_eq!(rig.ended(), ["9 result"]);
    assert_eq!(rig.session.wake_at(), None, "nothing is waited for");
    assert!(rig.is_ready());
}

/// TMO-04: its own cancel first, one for each other call, then the ordinary sequence.
#[test]
fn a_deadline_cancels_its_call_first_then_the_others() {
    let mut rig = Rig::ready();
    rig.asks(8, Method::LinkExec, 25_000);
    rig.asks(9, Method::LinkCheckSteps, 10_000);
    rig.asks(10, Method::LinkExec, 25_000);
    rig.take_all();
    rig.passes(9_999);
    assert!(rig.is_ready());
    rig.passes(1);
    rig.stops_with(&[&cancel(9), &cancel(8), &cancel(10), SHUTDOWN]);
    let ending = rig.goes();
    assert_eq!(ending.cause, Cause::Deadline { id: 9, method: Method::LinkCheckSteps });
    assert_eq!(ending.unanswered, [8, 9, 10]);
    assert!(rig.ended().is_empty(), "an unanswered call has no other end");
}

/// TMO-02: what was read by the deadline counts; the driver reads before it looks at its timers.
#[test]
fn a_reply_in_the_instant_of_the_deadline_counts_when_it_is_read_first() {
    let mut rig = Rig::asked(&[8]);
    rig.now = rig.now + Duration::from_secs(25);
    rig.replies(8);
    rig.passes(0);
    assert_eq!(rig.ended(), ["8 result"]);
    assert!(rig.is_ready());
}

/// TMO-06, TMO-07, TMO-09: the reply that crosses the cancel neither saves the call nor breaks the plugin nor shortens the
/// grace, once or twice.
#[test]
fn a_reply_that_crosses_its_cancel_is_ignored() {
    let mut rig = Rig::asked(&[8, 9]);
    rig.passes(25_000);
    rig.take_all();
    rig.replies(8);
    rig.replies(8);
    rig.hears("garbage\n");
    rig.passes(4_999);
    assert!(!rig.done.contains(&Action::KillGroup));
    rig.passes(1);
    rig.act();
    assert_eq!(rig.done.last(), Some(&Action::KillGroup));
    rig.leader_exits(Exit::Signal(9));
    rig.session.group_empty();
    assert_eq!((rig.ending().cause, rig.ending().unanswered), (exec(8), vec![8, 9]));
}

/// TMO-06: also before the cancel itself is in the pipe.
#[test]
fn a_reply_between_the_deadline_and_its_cancel_is_ignored() {
    let mut rig = Rig::asked(&[8]);
    rig.passes(25_000);
    rig.replies(8);
    rig.stops_with(&[&cancel(8), SHUTDOWN]);
    assert_eq!(rig.goes().unanswered, [8]);
}

/// TRN-16
#[test]
fn a_second_reply_breaks_the_plugin_and_the_first_stands() {
    let mut rig = Rig::asked(&[8, 9]);
    rig.hears(&[reply(8, RUN), reply(8, RUN)].concat());
    assert_eq!(rig.ended(), ["8 result"]);
    rig.stops_with(&[&cancel(9), SHUTDOWN]);
    let ending = rig.goes();
    let reason = BreakReason::NoSuchCall { id: 8 };
    assert_eq!(ending.cause, Cause::Broken(Break { line: 3, reason }));
    assert_eq!(ending.unanswered, [9]);
}

/// TRN-16: an answer to a question that was not asked yet.
#[test]
fn a_reply_to_a_call_that_waits_for_the_pipe_breaks_the_plugin() {
    let mut rig = Rig::ready();
    rig.asks(8, Method::LinkExec, 25_000);
    rig.replies(8);
    assert_eq!(rig.ended().len(), 1, "and the call was never sent");
    rig.stops_with(&[SHUTDOWN]);
    assert!(rig.goes().unanswered.is_empty());
}

/// A-73: half a request in the pipe is sent, and may be answered.
#[test]
fn a_reply_to_a_call_of_which_a_part_was_written_counts() {
    let mut rig = Rig::ready();
    rig.asks(8, Method::LinkExec, 25_000);
    rig.session.written(1);
    rig.replies(8);
    assert_eq!(rig.ended(), ["8 result"]);
    assert!(rig.session.transmit().is_some(), "the rest of the line still goes out");
}

/// TRN-19, A-07: the call itself ends unknown, and so do its innocent siblings.
#[test]
fn a_result_off_its_schema_breaks_the_plugin() {
    for result in [
        r#"{"exitCode":0,"stdout":"","stderr":""}"#,
        r#"{"exitCode":0,"stdout":"","stderr":"","partial":false,"more":1}"#,
        r#"{"exitCode":256,"stdout":"","stderr":"","partial":false}"#,
        r#"{"exitCode":"0","stdout":"","stderr":"","partial":false}"#,
        r#"[0,"","",false]"#,
        "null",
        "[]",
    ] {
        let mut rig = Rig::asked(&[8, 9]);
        rig.hears(&reply(8, result));
        assert!(rig.ended().is_empty(), "{result}");
        rig.stops_with(&[&cancel(8), &cancel(9), SHUTDOWN]);
        let ending = rig.goes();
        assert_eq!(ending.unanswered, [8, 9]);
        let Cause::Broken(Break { line: 2, reason: BreakReason::Misshapen { method, at, .. } }) =
            ending.cause
        else {
            panic!("{result}: {:?}", ending.cause)
        };
        assert_eq!(method, Method::LinkExec);
        let start = reply(8, result).find(result).unwrap();
        assert!((start..=start + result.len()).contains(&at), "{result}: {at}");
    }
}

/// TRN-11, A-09, ERR-01 to ERR-04
#[test]
fn an_error_is_an_answer_when_it_has_one_of_the_four_kinds() {
    let error = |id: u64, data: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32000,\"message\":\"m\"{data}}}}}\n")
    };
    for (kind, data) in [
        (ErrorKind::Retryable, r#","data":{"kind":"retryable"}"#),
        (ErrorKind::Permanent, r#","data":{"kind":"permanent"}"#),
        (ErrorKind::UnknownOutcome, r#","data":{"kind":"unknown-outcome"}"#),
    ] {
        let mut rig = Rig::asked(&[8]);
        rig.hears(&error(8, data));
        assert_eq!(rig.ended(), [format!("8 {kind:?}")]);
        assert!(rig.is_ready());
    }
    for data in
        ["", r#","data":{}"#, r#","data":{"kind":"fatal"}"#, r#","data":{"kind":"human"}"#, r#","data":null"#]
    {
        let mut rig = Rig::asked(&[8]);
        rig.hears(&error(8, data));
        assert!(rig.ended().is_empty(), "{data}");
        assert_eq!(rig.goes().unanswered, [8], "{data}");
    }
}

/// TRN-15: the shape is that of the method asked, whatever else it would fit.
#[test]
fn each_reply_is_read_by_the_method_of_its_own_call() {
    let mut rig = Rig::ready();
    rig.asks(8, Method::LinkExec, 25_000);
    rig.asks(9, Method::LinkCheckSteps, 10_000);
    rig.take_all();
    rig.hears(&reply(9, "[]"));
    assert!(rig.is_ready());
    rig.hears(&reply(8, "[]"));
    assert!(!rig.is_ready());
}

/// TMO-08
#[test]
fn a_call_given_up_before_its_first_byte_is_never_sent() {
    let mut rig = Rig::ready();
    rig.wire.clear();
    rig.asks(8, Method::LinkExec, 25_000);
    rig.asks(9, Method::LinkExec, 25_000);
    rig.session.cancel(rig.now, 8);
    assert_eq!(rig.ended(), ["8 not sent: Cancelled"]);
    rig.take_all();
    assert_eq!(rig.wire.len(), 1);
    assert!(rig.wire[0].contains("\"id\":9,"), "{:?}", rig.wire);
    assert!(rig.is_ready());
}

/// TMO-04, A-73: one byte in the pipe makes it sent.
#[test]
fn a_call_given_up_after_its_first_byte_stops_the_plugin() {
    let mut rig = Rig::ready();
    rig.asks(8, Method::LinkExec, 25_000);
    rig.session.written(1);
    rig.session.cancel(rig.now, 8);
    rig.act();
    assert_eq!(rig.session.transmit(), None, "nothing is written behind half a line");
    assert_eq!(rig.done.last(), Some(&Action::CloseStdin));
    assert_eq!(rig.goes().unanswered, [8]);
}

/// TMO-04: cancelled once, by the first cause.
#[test]
fn giving_up_twice_cancels_once() {
    let mut rig = Rig::asked(&[8, 9]);
    rig.session.cancel(rig.now, 9);
    rig.session.cancel(rig.now, 9);
    rig.session.cancel(rig.now, 8);
    rig.session.stop(rig.now, Cause::Done);
    rig.stops_with(&[&cancel(9), &cancel(8), SHUTDOWN]);
    assert_eq!(rig.goes().cause, Cause::Cancelled { id: 9, method: Method::LinkExec });
}

/// A call that has its answer has nothing to give up.
#[test]
fn giving_up_an_answered_call_changes_nothing() {
    let mut rig = Rig::asked(&[8]);
    rig.replies(8);
    rig.session.cancel(rig.now, 8);
    assert!(rig.is_ready());
    assert_eq!(rig.ended(), ["8 result"]);
}

/// TMO-08: the plugin reads nothing, and only what was begun makes it pay.
#[test]
fn an_overdue_call_that_was_never_begun_fails_alone() {
    let mut rig = Rig::ready();
    rig.asks(8, Method::LinkExec, 25_000);
    rig.session.written(1);
    rig.session.write_blocked();
    rig.asks(9, Method::LinkCheckSteps, 10_000);
    rig.passes(10_000);
    assert_eq!(rig.ended(), ["9 not sent: Overdue"]);
    assert!(rig.is_ready());
    rig.passes(15_000);
    rig.act();
    assert_eq!(rig.done.last(), Some(&Action::CloseStdin), "nothing fits into that pipe any more");
    assert_eq!(rig.session.transmit(), None);
    rig.passes(5_000);
    rig.act();
    assert_eq!(rig.done.last(), Some(&Action::KillGroup));
}

/// PRC-09, PRC-10, TMO-08, TMO-09
#[test]
fn a_signal_drops_what_waits_and_cancels_what_was_sent() {
    let mut rig = Rig::asked(&[8]);
    rig.asks(9, Method::LinkExec, 25_000);
    rig.session.stop(rig.now, Cause::Signal(Signal::Interrupt));
    assert_eq!(rig.ended(), ["9 not sent, stopped: since SIGINT came"]);
    rig.asks(10, Method::LinkExec, 25_000);
    assert_eq!(rig.ended(), ["10 not sent: Gone"]);
    rig.stops_with(&[&cancel(8), SHUTDOWN]);
    let ending = rig.goes();
    assert_eq!(ending.cause, Cause::Signal(Signal::Interrupt));
    assert_eq!(ending.unanswered, [8]);
}

/// PRC-07: the deadline of a cancelled call comes to nothing during the stop.
#[test]
fn a_deadline_during_the_stop_changes_nothing() {
    let mut rig = Rig::asked(&[8]);
    rig.passes(24_000);
    rig.session.stop(rig.now, Cause::Signal(Signal::Terminate));
    rig.take_all();
    rig.passes(1_500);
    rig.take_all();
    assert_eq!(rig.wire.iter().filter(|line| line.contains("$/cancel")).count(), 1);
    rig.passes(3_499);
    assert!(!rig.done.contains(&Action::KillGroup));
    rig.passes(1);
    rig.act();
    assert_eq!(rig.done.last(), Some(&Action::KillGroup));
}

/// A-04: a reply that was written before the exit is an answer, half a reply is none.
#[test]
fn what_the_pipe_holds_when_the_leader_is_gone_counts() {
    let mut rig = Rig::asked(&[8, 9]);
    rig.session.leader_exited(Exit::Status(3));
    assert_eq!(rig.session.action(), Some(Action::KillGroup));
    assert_eq!(rig.session.action(), Some(Action::Drain));
    let half = reply(9, RUN);
    rig.hears(&[&reply(8, RUN), &half[..half.len() - 1]].concat());
    rig.session.drained(rig.now);
    rig.act();
    rig.session.group_empty();
    assert_eq!(rig.ended(), ["8 result"]);
    assert_eq!((rig.ending().cause, rig.ending().unanswered), (Cause::LeaderExited, vec![9]));
}

/// A-72
#[test]
fn the_end_of_stdout_leaves_the_calls_unanswered_at_once() {
    let mut rig = Rig::asked(&[8]);
    rig.session.stdout_closed(rig.now);
    rig.stops_with(&[&cancel(8), SHUTDOWN]);
    let ending = rig.goes();
    assert_eq!((ending.cause, ending.unanswered), (Cause::StdoutClosed, vec![8]));
}

/// A-73: a plugin that closed its stdin was told nothing; what it was told before it may still answer.
#[test]
fn a_closed_stdin_refuses_new_calls_and_spares_the_sent_ones() {
    let mut rig = Rig::asked(&[8]);
    rig.asks(9, Method::LinkExec, 25_000);
    rig.session.write_failed();
    assert_eq!(rig.ended(), ["9 not sent: StdinClosed"]);
    rig.replies(8);
    assert_eq!(rig.ended(), ["8 result"]);
    assert!(rig.is_ready());
}

/// A-73: a line that broke in the middle is sent.
#[test]
fn a_write_that_fails_after_the_first_byte_leaves_the_call_sent() {
    let mut rig = Rig::ready();
    rig.asks(8, Method::LinkExec, 25_000);
    rig.session.written(1);
    rig.session.write_failed();
    assert!(rig.ended().is_empty());
    rig.passes(25_000);
    rig.take_all();
    assert_eq!(rig.goes().unanswered, [8]);
}

/// TRN-19
#[test]
fn a_break_leaves_what_was_sent_unanswered_and_what_was_not_unsent() {
    let mut rig = Rig::asked(&[8, 9]);
    rig.asks(10, Method::LinkExec, 25_000);
    rig.session.stdout(rig.now, b"\xff\n");
    assert_eq!(rig.ended().len(), 1);
    rig.stops_with(&[&cancel(8), &cancel(9), SHUTDOWN]);
    assert_eq!(rig.goes().unanswered, [8, 9]);
}

/// A-13: mu has started no watch.
#[test]
fn a_notification_for_no_watch_breaks_the_plugin() {
    let mut rig = Rig::asked(&[8]);
    rig.hears("{\"jsonrpc\":\"2.0\",\"method\":\"watch/restarted\",\"params\":{\"watchId\":\"w\",\"incarnation\":\"i\"}}\n");
    assert!(!rig.is_ready());
}

/// HSK-09: calls wait for the handshake in the invocation, never in the session.
#[test]
fn a_call_during_the_handshake_is_not_sent() {
    let mut rig = Rig::greeted();
    rig.asks(8, Method::LinkExec, 25_000);
    assert_eq!(rig.ended(), ["8 not sent: Gone"]);
}

/// The earliest deadline rules, whatever the order of the calls.
#[test]
fn deadlines_are_kept_in_their_own_order() {
    let mut rig = Rig::ready();
    rig.asks(8, Method::LinkExec, 30_000);
    rig.asks(9, Method::LinkExec, 20_000);
    rig.take_all();
    let start = rig.now;
    assert_eq!(rig.session.wake_at(), Some(start + Duration::from_secs(20)));
    rig.replies(9);
    assert_eq!(rig.session.wake_at(), Some(start + Duration::from_secs(30)));
}
