//! The log file of the real executable.

use super::super::{Event, LogLine, Note};

fn line(event: Event) -> LogLine {
    LogLine { ms: 5, pid: 70, start: 1, event }
}

#[test]
fn every_event_survives_the_file() {
    let events = [
        Event::Started { args: vec!["-x".to_owned()], env: vec!["PATH".to_owned()] },
        Event::from(Note::Line(b"{}")),
        Event::from(Note::Line(b"\xff{")),
        Event::from(Note::Eof { unfinished: 3 }),
        Event::from(Note::Fault("bom")),
        Event::Signal("TERM".to_owned()),
        Event::Child(71),
        Event::Exit(0),
    ];
    let lines: Vec<LogLine> = events.into_iter().map(line).collect();
    let file: Vec<u8> = lines.iter().flat_map(LogLine::to_bytes).collect();
    assert_eq!(LogLine::parse_all(&file).unwrap(), lines);
}

#[test]
fn a_line_that_is_not_utf8_is_kept_in_hexadecimal() {
    assert_eq!(Event::from(Note::Line(b"\xff{")), Event::Bytes("ff7b".to_owned()));
}

#[test]
fn an_unfinished_last_line_is_skipped_and_an_unknown_one_is_not() {
    let whole = line(Event::Exit(0)).to_bytes();
    let cut = [&whole[..], &whole[..9]].concat();
    assert_eq!(LogLine::parse_all(&cut).unwrap().len(), 1);
    assert!(LogLine::parse_all(&[&whole[..], b"{}\n"].concat()).is_err());
}
