//! Reading a trace.

use super::*;
use crate::oracle::History;

fn read(tale: &Tale) -> History {
    let mus = tale.ran.iter().map(|ran| ran.pid).collect();
    History::read(&tale.events, &mus, tale.at)
}

/// only a line that has ended is one.
#[test]
fn a_line_in_pieces_begins_with_its_first_byte() {
    let text = format!("{}\n", initialize(1));
    let (left, right) = text.as_bytes().split_at(9);
    let pipe = Tale::pipe(BOX, Std::In);
    let tale = Tale::started().writes(MU, pipe, left).passes(7);
    assert!(read(&tale).wires[0].ends_in_half_a_line());
    let history = read(&tale.writes(MU, pipe, right));
    let line = &history.wires[0].lines[0];
    assert_eq!((line.begun, line.at, line.request_id()), (2, 1_000_000_000, Some(1)));
}

#[test]
fn a_reply_counts_from_when_mu_has_read_its_last_byte() {
    let tale = Tale::greeted().box_says(&reply(1));
    let answered = |tale: &Tale| read(tale).wires[0].answered(1, usize::MAX, true);
    assert!(!answered(&tale));
    let part = What::Read { pipe: Tale::pipe(BOX, Std::Out), offset: 0, count: reply(1).len() as u64 };
    let mut cut = Tale::greeted().box_says(&reply(1)).push(MU, part);
    assert!(!answered(&cut), "the line feed is missing");
    cut =
        cut.push(MU, What::Read { pipe: Tale::pipe(BOX, Std::Out), offset: reply(1).len() as u64, count: 1 });
    assert!(answered(&cut));
    assert!(answered(&tale.mu_reads(BOX)));
}

#[test]
fn a_reply_with_more_than_belongs_to_it_is_one_by_its_id_alone() {
    let line = reply(1).replace("\"result\"", "\"more\":1,\"result\"");
    let history = read(&Tale::greeted().box_says(&line).mu_reads(BOX));
    let wire = &history.wires[0];
    assert_eq!((wire.answered(1, usize::MAX, true), wire.answered(1, usize::MAX, false)), (false, true));
}

/// TRN-16: an answer that is said once more breaks the plugin, and what stands behind it may not count.
#[test]
fn behind_an_answer_that_came_twice_nothing_is_certain() {
    let tale = Tale::linked("", "").mu_says(BOX, &script(2)).plugin_reads(BOX);
    let answered = |tale: Tale| read(&tale.answers(&run(2, "0"))).wires[0].answered(2, usize::MAX, true);
    assert!(!answered(tale.box_says(&declaration("", ""))));
    let tale = Tale::linked("", "").mu_says(BOX, &script(2)).plugin_reads(BOX);
    assert!(answered(tale));
}

#[test]
fn a_line_without_end_is_one_report_and_the_next_line_counts_again() {
    let pipe = Tale::pipe(BOX, Std::Out);
    let mut tale = Tale::greeted();
    for _ in 0..40 {
        tale = tale.writes(BOX, pipe, &[b'x'; 65_536]);
    }
    let tale = tale.writes(BOX, pipe, b"\n").box_says(&reply(1)).mu_reads(BOX);
    let history = read(&tale);
    assert_eq!(history.wires[0].speech.said().len(), 2);
    assert!(history.wires[0].answered(1, usize::MAX, false));
}

#[test]
fn a_pid_that_is_used_again_is_another_process() {
    let tale = Tale::sound().mu_starts(200).plugin_starts(200, BOX, "crate");
    let tale = tale.ends(BOX, Exit::Status(3)).push(200, What::Reap { child: Pid(BOX) });
    let history = read(&tale.ends(200, Exit::Status(0)));
    let exits: Vec<_> = history.wires.iter().map(|wire| history.leader(wire).died.unwrap().2).collect();
    assert_eq!(exits, [Exit::Status(0), Exit::Status(3)]);
    assert_eq!((history.wires[0].lines.len(), history.wires[1].lines.len()), (2, 0));
}

#[test]
fn other_programs_that_mu_starts_are_no_plugins() {
    let tale = Tale::sound();
    let git = Tale::new().mu_starts(MU).spawns(Pid(MU), 103, "/usr/bin/git", MU);
    assert_eq!((read(&tale).wires.len(), read(&git).wires.len()), (1, 0));
}
