//! Races and bounds of one plugin process, each a few calls on the machine. No process, no clock.

use super::*;
use mu_protocol::schema::SCHEMA_DIGEST;

mod calls;

/// A session with a hand-made clock; collects what it asks for.
struct Rig {
    now: Mono,
    session: Session,
    wire: Vec<String>,
    done: Vec<Action>,
}

impl Rig {
    /// A plugin named box, whose `initialize` went out whole.
    fn greeted() -> Rig {
        let mut rig = Rig::silent();
        rig.take_all();
        rig
    }

    /// A plugin named box that has read nothing yet.
    fn silent() -> Rig {
        let expected =
            Expected { name: "box".into(), needs: vec![], schema_digest: SCHEMA_DIGEST, recorded: None };
        let now = Mono(Duration::from_secs(100));
        Rig { now, session: Session::start(now, 7, expected), wire: vec![], done: vec![] }
    }

    fn ready() -> Rig {
        let mut rig = Rig::greeted();
        rig.hears(&answer());
        assert!(matches!(rig.session.status(), Status::Ready(_)));
        rig
    }

    /// The pipe takes every line on offer; then the actions are carried out.
    fn take_all(&mut self) {
        self.act();
        while let Some(bytes) = self.session.transmit() {
            let line = String::from_utf8(bytes.to_vec()).unwrap();
            self.session.written(line.len());
            self.wire.push(line.trim_end().to_owned());
        }
        self.act();
    }

    fn act(&mut self) {
        while let Some(action) = self.session.action() {
            self.done.push(action);
            if action == Action::Drain {
                self.session.drained(self.now);
            }
        }
    }

    fn hears(&mut self, text: &str) {
        self.session.stdout(self.now, text.as_bytes());
    }

    fn passes(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
        self.session.timeout(self.now);
    }

    fn leader_exits(&mut self, exit: Exit) {
        self.session.leader_exited(exit);
        self.act();
    }

    fn ending(&self) -> Ending {
        match self.session.status() {
            Status::Ended(ending) => ending.clone(),
            other => panic!("not ended: {other:?}"),
        }
    }

    fn stops_with(&mut self, lines: &[&str]) {
        self.wire.clear();
        self.take_all();
        assert_eq!(self.wire, lines);
        assert_eq!(self.done.last(), Some(&Action::CloseStdin));
    }
}

const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"$/cancel","params":{"id":7}}"#;
const SHUTDOWN: &str = r#"{"jsonrpc":"2.0","method":"shutdown"}"#;

fn answer() -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"protocol\":1,\"plugin\":{{\"name\":\"box\",\"version\":\"1\"}},\
         \"instance\":\"i\",\"schema\":\"{SCHEMA_DIGEST}\",\"seams\":{{\"link\":{{\"fetch\":true,\"slots\":\"self\",\
         \"remoteOnTimeout\":\"stopped\",\"quiescence\":\"provable\",\"maxScriptBytes\":1000,\"checks\":[]}}}}}}}}\n"
    )
}

/// HSK-01
#[test]
fn the_first_line_is_initialize() {
    let rig = Rig::greeted();
    assert_eq!(
        rig.wire,
        [
            r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocol":{"min":1,"max":1},"mu":"5"}}"#
        ]
    );
}

/// HSK-09
#[test]
fn a_valid_answer_makes_it_ready() {
    let rig = Rig::ready();
    assert_eq!(rig.session.wake_at(), None);
}

/// TRN-03: any chunking gives the same.
#[test]
fn an_answer_in_single_bytes_counts() {
    let mut rig = Rig::greeted();
    for byte in answer().as_bytes() {
        rig.session.stdout(rig.now, &[*byte]);
    }
    assert!(matches!(rig.session.status(), Status::Ready(_)));
}

/// HSK-08, TMO-04: the pending `initialize` is cancelled, then the ordinary sequence.
#[test]
fn silence_ends_at_ten_seconds_with_cancel_and_shutdown() {
    let mut rig = Rig::greeted();
    rig.passes(9_999);
    assert!(matches!(rig.session.status(), Status::Handshaking));
    rig.passes(1);
    rig.stops_with(&[CANCEL, SHUTDOWN]);
    rig.leader_exits(Exit::Status(0));
    rig.session.group_empty();
    assert_eq!(rig.ending().cause, Cause::HandshakeDeadline);
}

/// HSK-08
#[test]
fn an_answer_a_moment_before_the_deadline_counts() {
    let mut rig = Rig::greeted();
    rig.passes(9_999);
    rig.hears(&answer());
    rig.passes(10_000);
    assert!(matches!(rig.session.status(), Status::Ready(_)));
}

/// TMO-06, TMO-07: an answer that crosses the cancel is ignored and does not shorten the grace.
#[test]
fn a_late_answer_changes_nothing() {
    let mut rig = Rig::greeted();
    rig.passes(10_000);
    rig.stops_with(&[CANCEL, SHUTDOWN]);
    rig.hears(&answer());
    rig.passes(4_999);
    assert!(!rig.done.contains(&Action::KillGroup));
    rig.passes(1);
    rig.act();
    assert_eq!(rig.done.last(), Some(&Action::KillGroup));
}

/// PRC-07
#[test]
fn a_normal_stop_has_nothing_to_cancel() {
    let mut rig = Rig::ready();
    rig.session.stop(rig.now, Cause::Done);
    rig.stops_with(&[SHUTDOWN]);
}

/// PRC-07: what is left after five seconds is killed.
#[test]
fn a_group_that_ignores_the_end_of_stdin_is_killed_after_one_grace() {
    let mut rig = Rig::ready();
    rig.session.stop(rig.now, Cause::Done);
    rig.take_all();
    rig.passes(5_000);
    rig.act();
    assert_eq!(rig.done, [Action::CloseStdin, Action::KillGroup]);
    rig.leader_exits(Exit::Signal(9));
    rig.session.group_empty();
    rig.act();
    assert!(rig.ending().grace_over);
    assert_eq!(rig.done.last(), Some(&Action::Reap));
}

/// PRC-08: whatever comes later, the first cause stands and the grace is not begun anew.
#[test]
fn a_second_cause_does_not_prolong_the_stop() {
    let mut rig = Rig::ready();
    rig.session.stop(rig.now, Cause::Done);
    rig.take_all();
    let due = rig.session.wake_at();
    rig.now = rig.now + Duration::from_secs(3);
    rig.session.stop(rig.now, Cause::Signal(crate::os::Signal::Terminate));
    rig.session.stdout_closed(rig.now);
    assert_eq!(rig.session.wake_at(), due);
}

/// A-73: a plugin that reads nothing does not hold the stop.
#[test]
fn a_full_pipe_drops_the_stop_lines_and_closes_stdin() {
    let mut rig = Rig::ready();
    rig.session.stop(rig.now, Cause::Done);
    assert!(rig.session.transmit().is_some());
    rig.session.write_blocked();
    rig.act();
    assert_eq!(rig.session.transmit(), None);
    assert_eq!(rig.done, [Action::CloseStdin]);
}

/// A-73: nothing is written behind half a line.
#[test]
fn half_a_request_is_followed_by_the_end_of_stdin_alone() {
    let mut rig = Rig::silent();
    rig.session.written(10);
    rig.session.write_blocked();
    rig.passes(10_000);
    assert_eq!(rig.session.transmit(), None);
    rig.act();
    assert_eq!(rig.done, [Action::CloseStdin]);
}

/// TMO-08: a request of which no byte went out is not cancelled on the wire.
#[test]
fn a_request_that_was_never_written_is_not_cancelled() {
    let mut rig = Rig::silent();
    rig.session.write_blocked();
    rig.passes(10_000);
    rig.stops_with(&[SHUTDOWN]);
}

/// TRN-14, TRN-18: the ordinary sequence, not a bare kill.
#[test]
fn an_invalid_line_begins_the_stop_sequence() {
    let mut rig = Rig::ready();
    rig.hears("hello\n");
    rig.stops_with(&[SHUTDOWN]);
    rig.leader_exits(Exit::Status(0));
    rig.session.group_empty();
    assert!(matches!(rig.ending().cause, Cause::Broken(Break { line: 2, .. })));
}

/// TRN-16
#[test]
fn a_second_answer_to_one_request_breaks_the_plugin() {
    let mut rig = Rig::greeted();
    rig.hears(&(answer() + &answer()));
    rig.stops_with(&[SHUTDOWN]);
    rig.leader_exits(Exit::Status(0));
    rig.session.group_empty();
    let reason = BreakReason::NoSuchCall { id: 7 };
    assert_eq!(rig.ending().cause, Cause::Broken(Break { line: 2, reason }));
}

/// A-13
#[test]
fn a_notification_without_a_watch_breaks_the_plugin() {
    let mut rig = Rig::ready();
    rig.hears("{\"jsonrpc\":\"2.0\",\"method\":\"watch/restarted\",\"params\":{\"watchId\":\"w\",\"incarnation\":\"a\"}}\n");
    assert!(matches!(rig.session.status(), Status::Stopping));
}

/// TRN-04: refused at the first byte too many.
#[test]
fn an_endless_line_breaks_without_a_newline() {
    let mut rig = Rig::greeted();
    let chunk = "x".repeat(65_536);
    for _ in 0..16 {
        rig.hears(&chunk);
    }
    assert!(matches!(rig.session.status(), Status::Handshaking));
    rig.hears("x");
    assert!(matches!(rig.session.status(), Status::Stopping));
}

/// A-71, LOAD-02
#[test]
fn an_error_answer_is_refused_by_a_load_rule() {
    let mut rig = Rig::greeted();
    rig.hears("{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"no\"}}\n");
    rig.stops_with(&[SHUTDOWN]);
    rig.leader_exits(Exit::Status(0));
    rig.session.group_empty();
    assert!(matches!(rig.ending().cause, Cause::Refused(refusal) if refusal.rule == "LOAD-02"));
}

/// A-04, PRC-17: the group dies with its leader, at once.
#[test]
fn the_leaders_exit_kills_the_group_and_waits_for_it_to_be_empty() {
    let mut rig = Rig::ready();
    rig.leader_exits(Exit::Status(3));
    assert_eq!(rig.done, [Action::KillGroup, Action::Drain, Action::CloseStdin]);
    assert!(matches!(rig.session.status(), Status::Stopping));
    rig.session.group_empty();
    assert_eq!(rig.ending().exit, Exit::Status(3));
    assert_eq!(rig.ending().cause, Cause::LeaderExited);
}

/// A-04: an answer that was in the pipe when the leader ended is an answer.
#[test]
fn what_the_pipe_still_holds_at_the_leaders_exit_counts() {
    let mut rig = Rig::greeted();
    rig.session.leader_exited(Exit::Status(0));
    assert_eq!(rig.session.action(), Some(Action::KillGroup));
    assert_eq!(rig.session.action(), Some(Action::Drain));
    rig.hears(&answer());
    rig.session.drained(rig.now);
    rig.session.group_empty();
    assert!(rig.ending().declaration.is_some());
}

/// A-11: half a line at the end is no message.
#[test]
fn an_unterminated_last_line_is_discarded() {
    let mut rig = Rig::greeted();
    rig.hears(answer().trim_end());
    rig.leader_exits(Exit::Status(0));
    rig.session.group_empty();
    assert_eq!(rig.ending().cause, Cause::LeaderExited);
    assert!(rig.ending().declaration.is_none());
}

/// A-72
#[test]
fn the_end_of_stdout_begins_the_stop_at_once() {
    let mut rig = Rig::greeted();
    rig.session.stdout_closed(rig.now);
    rig.stops_with(&[CANCEL, SHUTDOWN]);
}

/// A-71, A-72: the end of stdout can be seen ahead of the exit that made it; what is said then is true of both.
#[test]
fn the_end_of_stdout_is_told_with_how_the_leader_ended() {
    let said = |stays: bool| {
        let mut rig = Rig::greeted();
        rig.session.stdout_closed(rig.now);
        rig.take_all();
        rig.passes(if stays { 5_000 } else { 0 });
        rig.leader_exits(if stays { Exit::Signal(9) } else { Exit::Status(3) });
        rig.session.group_empty();
        crate::invocation::StartError::from_ending(&rig.ending()).to_string()
    };
    let (gone, stayed) = (said(false), said(true));
    assert!(
        gone.starts_with("its stdout ended before it answered initialize, and it exited with status 3"),
        "{gone}"
    );
    assert!(
        stayed.starts_with("it closed its stdout before it answered initialize, and had to be killed"),
        "{stayed}"
    );
}

/// PRC-16: the leader's exit and the empty group are two events, in either order with the grace.
#[test]
fn a_killed_group_is_waited_for() {
    let mut rig = Rig::ready();
    rig.session.stop(rig.now, Cause::Done);
    rig.take_all();
    rig.passes(5_000);
    rig.act();
    rig.leader_exits(Exit::Signal(9));
    rig.passes(60_000);
    assert!(matches!(rig.session.status(), Status::Stopping));
    rig.session.group_empty();
    rig.act();
    assert_eq!(rig.done.iter().filter(|action| **action == Action::Reap).count(), 1);
}

/// A-73: a pipe that nobody reads leaves the request sent and unanswered; the deadline decides.
#[test]
fn a_failed_write_waits_for_the_deadline() {
    let mut rig = Rig::silent();
    rig.session.write_failed();
    assert!(matches!(rig.session.status(), Status::Handshaking));
    rig.passes(10_000);
    assert!(matches!(rig.session.status(), Status::Stopping));
}

/// TRN-16, A-73: `initialize` could not be written, so nothing can answer it.
#[test]
fn an_answer_to_an_initialize_that_was_never_written_breaks_the_plugin() {
    let mut rig = Rig::silent();
    rig.session.write_failed();
    rig.hears(&answer());
    rig.stops_with(&[SHUTDOWN]);
    rig.leader_exits(Exit::Status(0));
    rig.session.group_empty();
    let reason = BreakReason::NoSuchCall { id: 7 };
    assert_eq!(rig.ending().cause, Cause::Broken(Break { line: 1, reason }));
    assert!(rig.ending().unanswered.is_empty());
}

/// A-73, TMO-08: of an `initialize` that could not be written nothing is cancelled, and nothing is unanswered.
#[test]
fn an_initialize_that_was_never_written_is_neither_cancelled_nor_unanswered() {
    let mut rig = Rig::silent();
    rig.session.write_failed();
    rig.passes(10_000);
    rig.stops_with(&[SHUTDOWN]);
    rig.leader_exits(Exit::Status(0));
    rig.session.group_empty();
    assert_eq!(rig.ending().cause, Cause::HandshakeDeadline);
    assert!(rig.ending().unanswered.is_empty());
}

/// "Flush after each line": output that comes only once stdin is closed is told apart.
#[test]
fn output_after_the_end_of_stdin_is_counted_as_late() {
    let mut rig = Rig::greeted();
    rig.passes(10_000);
    rig.take_all();
    rig.hears(&answer());
    rig.leader_exits(Exit::Status(0));
    rig.session.group_empty();
    assert_eq!(rig.ending().late_bytes, answer().len() as u64);
}

/// TRN-09, A-12
#[test]
fn stderr_shows_its_first_line_cut_to_400_characters() {
    let mut line = StderrLine::default();
    line.push("\u{1b}[31mé\u{fffd}".as_bytes());
    line.push(&[0xff]);
    line.push("x".repeat(2_000).as_bytes());
    line.push(b"\nsecond");
    let text = line.text().unwrap();
    assert_eq!(text.chars().count(), 400);
    assert!(text.starts_with("[31mé\u{fffd}\u{fffd}xx"));
    assert!(!text.contains("second"));
}

/// TRN-16: what was never sent cannot have been answered.
#[test]
fn an_answer_to_a_request_that_still_waits_for_the_pipe_breaks_the_plugin() {
    let mut rig = Rig::silent();
    rig.session.write_blocked();
    rig.hears(&answer());
    rig.stops_with(&[SHUTDOWN]);
}

/// A-73: a request of which the first byte is in the pipe has been sent.
#[test]
fn an_answer_to_half_a_request_counts() {
    let mut rig = Rig::silent();
    rig.session.written(1);
    rig.hears(&answer());
    assert!(matches!(rig.session.status(), Status::Ready(_)));
}

/// PRC-10, PRC-08: the signal comes before the request was written.
#[test]
fn a_signal_before_the_first_write_leaves_only_shutdown() {
    let mut rig = Rig::silent();
    rig.session.stop(rig.now, Cause::Signal(crate::os::Signal::Interrupt));
    rig.stops_with(&[SHUTDOWN]);
}

/// PRC-08: the answer that comes after the signal does not make the start a success.
#[test]
fn an_answer_after_a_signal_is_discarded() {
    let mut rig = Rig::greeted();
    rig.session.stop(rig.now, Cause::Signal(crate::os::Signal::Terminate));
    rig.stops_with(&[CANCEL, SHUTDOWN]);
    rig.hears(&answer());
    rig.leader_exits(Exit::Status(0));
    rig.session.group_empty();
    assert_eq!(rig.ending().cause, Cause::Signal(crate::os::Signal::Terminate));
    assert_eq!(rig.ending().declaration, None);
}

/// A-04: nobody is left to read the rest of the sequence.
#[test]
fn the_leaders_exit_during_the_farewell_drops_what_is_left_of_it() {
    let mut rig = Rig::greeted();
    rig.passes(10_000);
    assert!(rig.session.transmit().is_some());
    rig.leader_exits(Exit::Status(0));
    assert_eq!(rig.session.transmit(), None);
    assert_eq!(rig.done, [Action::KillGroup, Action::Drain, Action::CloseStdin]);
    rig.session.group_empty();
    assert_eq!(rig.ending().cause, Cause::HandshakeDeadline);
}

/// A-73
#[test]
fn a_farewell_that_nobody_can_read_ends_with_the_end_of_stdin() {
    let mut rig = Rig::ready();
    rig.session.write_failed();
    rig.session.stop(rig.now, Cause::Done);
    assert!(rig.session.transmit().is_some());
    rig.session.write_failed();
    rig.act();
    assert_eq!(rig.session.transmit(), None);
    assert_eq!(rig.done, [Action::CloseStdin]);
}

/// A-03, TMO-07: whatever it writes while it stops is no reason and no time.
#[test]
fn output_during_the_stop_is_neither_judged_nor_kept() {
    let mut rig = Rig::ready();
    rig.session.stop(rig.now, Cause::Done);
    rig.take_all();
    let due = rig.session.wake_at();
    for _ in 0..40 {
        rig.hears(&"x".repeat(65_536));
    }
    rig.hears("\n{}\n");
    assert_eq!((rig.session.wake_at(), rig.session.action()), (due, None));
    rig.leader_exits(Exit::Status(0));
    rig.session.group_empty();
    assert_eq!(rig.ending().cause, Cause::Done);
}

/// TRN-14: one line is enough.
#[test]
fn what_follows_an_invalid_line_is_not_judged() {
    let mut rig = Rig::greeted();
    rig.hears(&("hello\n".to_owned() + &answer()));
    rig.stops_with(&[CANCEL, SHUTDOWN]);
    rig.leader_exits(Exit::Status(0));
    rig.session.group_empty();
    assert_eq!((rig.ending().lines, rig.ending().declaration), (1, None));
}

/// A-04: the exit is known and its last words are not read yet when the deadline comes.
#[test]
fn a_deadline_between_the_exit_and_its_last_words_loses_no_time() {
    let mut rig = Rig::greeted();
    rig.session.leader_exited(Exit::Status(0));
    rig.passes(10_000);
    rig.act();
    rig.session.group_empty();
    rig.act();
    assert_eq!(rig.done.iter().filter(|action| **action == Action::CloseStdin).count(), 1);
    assert_eq!(rig.done.last(), Some(&Action::Reap));
    assert!(!rig.ending().grace_over);
}

/// PRC-16: the group can be seen empty before the last words are read.
#[test]
fn an_empty_group_waits_for_the_last_words() {
    let mut rig = Rig::greeted();
    rig.session.leader_exited(Exit::Status(0));
    rig.session.group_empty();
    assert!(!matches!(rig.session.status(), Status::Ended(_)));
    rig.hears(&answer());
    rig.act();
    assert!(rig.ending().declaration.is_some());
}

/// PRC-07: one grace, and one kill by it.
#[test]
fn the_grace_ends_once() {
    let mut rig = Rig::ready();
    rig.session.stop(rig.now, Cause::Done);
    rig.take_all();
    rig.passes(5_000);
    rig.passes(5_000);
    rig.act();
    assert_eq!(rig.done, [Action::CloseStdin, Action::KillGroup]);
    assert_eq!(rig.session.wake_at(), None);
}

/// Bytes before the deadline and bytes after the end of stdin are two numbers, whatever the pieces they come in.
#[test]
fn output_is_counted_before_and_after_the_end_of_stdin() {
    let mut rig = Rig::greeted();
    rig.hears("{\"half");
    rig.passes(10_000);
    rig.take_all();
    rig.hears("one");
    rig.hears("two\n");
    rig.leader_exits(Exit::Status(0));
    rig.session.group_empty();
    assert_eq!((rig.ending().stdout_bytes, rig.ending().late_bytes), (6, 7));
}
