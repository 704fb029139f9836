use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;

use super::*;
use crate::trace::{Change, PipeRef, Role, Row, transcript};

const MU: Pid = Pid(100);
const BOX: Pid = Pid(101);
const SECOND: u64 = 1_000_000_000;

fn event(at: u64, pid: Pid, what: What) -> Event {
    Event { at, pid, what }
}

fn spawn(pid: Pid, child: Pid, argv0: &str) -> Event {
    let argv: Rc<[OsString]> = [OsString::from(argv0)].into();
    event(0, pid, What::Spawn { child, argv, group: child, session: MU })
}

fn starts() -> Vec<Event> {
    vec![spawn(OUTSIDE, MU, "/bin/mu"), spawn(MU, BOX, "/plugins/mu-plugin-box")]
}

fn write(at: u64, pid: Pid, of: Pid, stream: Std, bytes: &[u8]) -> Event {
    let pipe = PipeRef { id: PipeId(of.0 as u32 * 3 + stream as u32), role: Some(Role { of, stream }) };
    event(at, pid, What::Write { pipe, bytes: bytes.into() })
}

fn disk(kind: disk::Kind, file: &str) -> Event {
    let path = Rc::from(Path::new("/state").join(file));
    event(0, MU, What::Disk { number: 1, kind, path, offset: 0, len: 1 })
}

fn told(timeline: &Timeline) -> Vec<String> {
    let name = |lane: usize| timeline.lanes[lane].name.clone();
    let entries = timeline.entries.iter();
    let one = |entry: &Entry| match entry.to {
        Some(to) => format!("{} -> {}: {}", name(entry.who), name(to), entry.sentence()),
        None => format!("{}: {}", name(entry.who), entry.sentence()),
    };
    entries.map(one).collect()
}

#[test]
fn a_line_goes_from_who_writes_it_to_who_reads_it() {
    let lines = [
        write(0, MU, BOX, Std::In, b"{\"id\":1}\n"),
        write(0, BOX, BOX, Std::Out, b"half"),
        write(1, BOX, BOX, Std::Out, b" and half\n"),
        write(2, MU, MU, Std::Err, b"mu: hello\n"),
    ];
    let timeline = Timeline::of(&[starts(), lines.to_vec()].concat(), &[], &[]);
    let lines = [
        "mu#1 -> box#1: to box#1: {\"id\":1}",
        "box#1 -> mu#1: stdout: half and half",
        "mu#1: stderr: mu: hello",
    ];
    assert_eq!(told(&timeline)[2..], lines);
    let kinds: Vec<Kind> = timeline.entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [Kind::Start, Kind::Start, Kind::Line, Kind::Line, Kind::Output]);
}

#[test]
fn a_lane_lasts_from_the_start_of_its_process_to_its_end() {
    let end = event(SECOND, BOX, What::Exit(Exit::Signal(9)));
    let timeline = Timeline::of(&[starts(), vec![end]].concat(), &[], &[]);
    let lane = timeline.lanes.iter().find(|lane| lane.name == "box#1").unwrap();
    assert_eq!((lane.pid, lane.who, lane.born, lane.died), (Some(BOX), Who::Process, 1, Some(2)));
    assert_eq!(timeline.entries[2].kind, Kind::Killed);
}

#[test]
fn what_comes_again_and_again_is_told_once() {
    let line = |at| write(at, BOX, BOX, Std::Err, b"noise\n");
    let events = [
        starts(),
        vec![line(5_000), line(5_001), disk(disk::Kind::Write, "mu.db"), line(5_002), line(6_000)],
    ];
    let timeline = Timeline::of(&events.concat(), &[], &[]);
    let noise: Vec<_> = timeline.entries.iter().filter(|entry| entry.kind == Kind::Line).collect();
    assert_eq!(
        noise.iter().map(|entry| (entry.at, entry.again)).collect::<Vec<_>>(),
        [(5_000, 2), (6_000, 0)]
    );
    assert!(timeline.transcript().contains("\n                      … and 2 times the same\n"));
}

#[test]
fn writes_to_the_disk_are_summed_up_and_left_out_of_the_transcript() {
    use disk::Kind::{Lock, Read, Sync, Write};
    let deeds =
        [(Read, "mu.db"), (Write, "mu.db-wal"), (Write, "mu.db-wal"), (Lock, "mu.db"), (Sync, "mu.db-wal")];
    let deeds = deeds.map(|(kind, file)| disk(kind, file)).to_vec();
    let events = [starts(), deeds, vec![event(0, MU, What::Exit(Exit::Status(0)))]].concat();
    let timeline = Timeline::of(&events, &[], &[]);
    assert_eq!(told(&timeline)[2], "mu#1 -> disk: writes to mu.db-wal 2 times, syncs mu.db-wal");
    assert!(!transcript(&events).contains("mu.db-wal"));
    assert_eq!(transcript(&events), timeline.transcript());
}

#[test]
fn a_change_of_the_rows_stands_behind_the_event_that_made_it() {
    let row = Row { about: "host", name: "box".into(), says: "acquiring".into(), change: Change::New };
    let moment = Moment { place: 3, rows: vec![row] };
    let events = [starts(), vec![disk(disk::Kind::Write, "mu.db"), disk(disk::Kind::Sync, "mu.db")]].concat();
    let timeline = Timeline::of(&events, &[moment], &[]);
    let last = ["mu#1 -> disk: writes to mu.db", "disk: host box: acquiring", "mu#1 -> disk: syncs mu.db"];
    assert_eq!(told(&timeline)[2..], last);
    assert_eq!(transcript(&events), timeline.transcript());
}

#[test]
fn a_step_ends_behind_its_last_entry() {
    let events =
        [starts(), vec![event(0, BOX, What::Jump), event(0, MU, What::Exit(Exit::Status(0)))]].concat();
    assert_eq!(Timeline::of(&events, &[], &[1, 3, 4]).ends, [1, 2, 3]);
}

#[test]
fn a_finding_stands_at_its_moment_beside_the_process_that_it_names() {
    let lines = [
        write(SECOND, MU, BOX, Std::In, b"one\n"),
        write(SECOND, MU, MU, Std::Out, b"two\n"),
        write(2 * SECOND, MU, MU, Std::Out, b"three\n"),
    ];
    let timeline = Timeline::of(&[starts(), lines.to_vec()].concat(), &[], &[]);
    assert_eq!(timeline.place_of(SECOND, "box[101] is wrong"), Some(2));
    assert_eq!(timeline.place_of(SECOND, "nobody is named"), Some(3));
    assert_eq!(timeline.place_of(SECOND + 1, "box[101] is wrong"), Some(3));
    assert_eq!(Timeline::default().place_of(5, "nothing happened"), None);
}

#[test]
fn bytes_that_are_no_text_and_long_lines_are_shown_as_in_the_transcript() {
    let line = [&b"\xff\x00<script>"[..], &[b'x'; 300], b"\n"].concat();
    let timeline = Timeline::of(&[starts(), vec![write(0, BOX, BOX, Std::Out, &line)]].concat(), &[], &[]);
    let said = timeline.entries[2].said.as_deref().unwrap();
    assert!(said.starts_with(r"\xff\u{0}<script>xxx") && said.ends_with("… (310 bytes)"), "{said}");
    assert_eq!(said.chars().count(), 160 + "… (310 bytes)".chars().count());
}
