//! Every call ends by its deadline plus one grace, counted in time in which mu runs (oracle 7): by the deadline it is
//! answered or the plugin is being stopped (TMO-04), five seconds later the plugin is gone (TMO-05). An answer that comes
//! by the deadline counts, so nobody is given up before it without a cause (TMO-02). And none is sent when its own deadline
//! is over already (CALL-04).

use super::calls::{self, Call};
use super::history::Wire;
use super::{History, Ns, Ran, SECOND, SLACK, Violation, start};

const ORACLE: &str = "deadlines";
/// From the deadline to the end (TMO-05).
const GRACE: Ns = 5 * SECOND;
/// What a pipe takes in any case.
const PIPE: usize = 65_536;

pub(super) fn check(history: &History, ran: &[Ran], found: &mut Vec<Violation>) {
    for wire in &history.wires {
        let mu = history.mu(wire);
        let mut say = |rule, at: Ns, text: String| {
            let text = format!("{}: {text}", history.name(wire));
            found.push(Violation { oracle: ORACLE, rule, at: Some(at), text });
        };
        let over = history.over(wire);
        let stop = wire.stop().map_or(over, |(_, at)| at.min(over));
        for call in Call::all(wire) {
            if let Some(late) = sent_late(history, wire, &call) {
                let text =
                    format!("call {} ({}) was sent {late} ms after its own deadline", call.id, call.method);
                say("CALL-04", call.line.at, text);
            }
            let Some(budget) = call.budget() else { continue };
            let (since, what) = (call.line.at, format!("call {} ({})", call.id, call.method));
            let answered = call.answer.map_or(Ns::MAX, |(_, at, _)| at);
            // What `initialize` may take is looked after in `start`.
            if call.method != "initialize" && mu.ran(since, answered.min(stop)) > budget + SLACK {
                say("TMO-04", since, format!("{what} was past its deadline and nothing was done about it"));
            }
            if mu.ran(since, answered.min(over)) > budget + GRACE + SLACK {
                say("TMO-05", since, format!("{what} lasted longer than its deadline and a grace"));
            }
        }
        if let Some((since, budget)) =
            wire.half().and_then(|(since, bytes)| Some((since, budget_of_half(bytes)?)))
            && mu.ran(since, over) > budget + GRACE + SLACK
        {
            say(
                "TMO-05",
                since,
                "a call whose line is half written lasted longer than its deadline and a grace".into(),
            );
        }
        if let Some((call, since)) = given_up(history, wire, ran) {
            let text = format!("call {call} was given up before its deadline, for no reason to be seen");
            say("TMO-02", since, text);
        }
    }
}

/// By how many milliseconds the deadline of a call lies before its first byte. A wall clock that was stepped, or went on
/// while the machine slept, may have been read before that; and a mu that was stopped may have looked before that.
fn sent_late(history: &History, wire: &Wire, call: &Call) -> Option<i64> {
    let mu = history.mu(wire);
    let deadline = i64::try_from(call.param("deadline").as_u64()?).ok()?;
    let late = history.least_wall(mu.born, call.line.begun, call.line.at) - deadline;
    (late > 0 && mu.ran(0, call.line.at) == call.line.at).then_some(late)
}

/// The time that a call may take of whose line only the beginning is known.
fn budget_of_half(bytes: &[u8]) -> Option<Ns> {
    let behind = |name: &str| {
        let at = memchr::memmem::find(bytes, name.as_bytes())? + name.len();
        std::str::from_utf8(&bytes[at..]).ok()
    };
    let method = behind(r#""method":""#)?.split_once('"')?.0;
    let timeout = behind(r#""timeoutMs":"#).and_then(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        rest[..digits].parse().ok()
    });
    calls::budget(method, timeout)
}

/// A call that was cancelled too early. Only a verb of one call is judged: others may have causes that do not show here.
fn given_up(history: &History, wire: &Wire, ran: &[Ran]) -> Option<(u64, Ns)> {
    let mu = history.mu(wire);
    let ran = history.ran(wire, ran)?;
    if !ran.is_host("exec") && !ran.is_host("fetch") || mu.crashed.is_some() {
        return None;
    }
    let (stop, at) = wire.stop()?;
    let before = |place: Option<usize>| place.is_some_and(|place| place < stop);
    let caused = before(mu.signals.first().map(|(place, _, _)| *place))
        || before(start::broke(wire).map(|(place, _)| place))
        || before(wire.eof.map(|(place, _)| place))
        || before(wire.broken)
        || before(history.leader(wire).died.map(|(place, _, _)| place))
        // A line that waits for room in the pipe is sent later than its call begins.
        || wire.lines.iter().map(|line| line.bytes.len() + 1).sum::<usize>() > PIPE
        || wire.half().is_some()
        // What is neither a reply nor nonsense may break the plugin too.
        || wire.speech.said().iter().any(|said| said.what == super::speech::Saying::Other);
    if caused {
        return None;
    }
    let pending = Call::all(wire).filter(|call| call.line.begun < stop && call.answer.is_none());
    let early = |call: &Call| call.budget().is_some_and(|budget| at + SLACK < call.line.at + budget);
    let mut pending: Vec<Call> = pending.collect();
    let is_early = !pending.is_empty() && pending.iter().all(early);
    is_early.then(|| pending.remove(0)).map(|call| (call.id, call.line.at))
}
