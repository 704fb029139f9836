//! A call's deadline stands beside its parameters, not in them.

use mu_protocol::messages::dated::{Dated, undated_json, with_deadline};
use mu_protocol::messages::host::ReleaseParams;
use mu_protocol::messages::target::{HostRef, HostTarget};
use mu_protocol::messages::values::{EpochMillis, Key, Name};
use mu_protocol::objects::{Fault, from_json};

fn release() -> ReleaseParams {
    let host = HostRef { name: Name::new("box").unwrap(), handle: None, instance: None };
    ReleaseParams { target: HostTarget { host }, key: Key::new("k1").unwrap() }
}

const UNDATED: &str = r#"{"target":{"host":{"name":"box"}},"key":"k1"}"#;

/// A-25: what is kept is what is sent, but for the deadline.
#[test]
fn the_kept_text_has_no_deadline() {
    assert_eq!(undated_json(&release()), UNDATED);
}

/// CALL-03, CALL-04
#[test]
fn two_sends_differ_in_the_deadline_alone() {
    let sent = |ms| with_deadline(UNDATED, EpochMillis::new(ms).unwrap());
    assert_eq!(sent(1000), r#"{"deadline":1000,"target":{"host":{"name":"box"}},"key":"k1"}"#);
    assert_eq!(sent(1000).replace("1000", "2000"), sent(2000));
}

#[test]
fn the_deadline_is_found_wherever_it_stands() {
    let dated = Dated { deadline: EpochMillis::new(7).unwrap(), call: release() };
    for text in [
        dated.to_json(),
        r#"{"target":{"host":{"name":"box"}},"deadline":7,"key":"k1"}"#.into(),
        r#"{"target":{"host":{"name":"box"}},"key":"k1","dead\u006cine":7}"#.into(),
    ] {
        assert_eq!(from_json(&text), Ok(dated.clone()), "{text}");
    }
}

/// CALL-01
#[test]
fn the_deadline_stands_exactly_once() {
    let fault = |text: &str| from_json::<Dated<ReleaseParams>>(text).unwrap_err().fault;
    assert_eq!(fault(UNDATED), Fault::MissingMember("deadline".into()));
    let twice = UNDATED.replace("\"key\"", "\"deadline\":1,\"deadline\":1,\"key\"");
    assert_eq!(fault(&twice), Fault::DuplicateMember);
    let inside = r#"{"deadline":1,"target":{"host":{"name":"box"},"deadline":1},"key":"k1"}"#;
    assert_eq!(fault(inside), Fault::UnknownMember);
}
