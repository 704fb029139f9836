//! What each fault on stdout writes is what its name says. A sound plugin stands beside it for comparison.

use serde_json::Value;

use super::super::memory::{End, INITIALIZE, Memory, fault, plan};
use super::super::{Act, Fd, LINE_LIMIT, When};

/// Everything on stdout when the reply to `initialize` is met with this.
fn sent(act: Act) -> Vec<u8> {
    writes(act).concat()
}

fn writes(act: Act) -> Vec<Vec<u8>> {
    let mut memory = Memory::life();
    memory.run(&plan(&[fault(act)]));
    memory.writes(Fd::Stdout)
}

/// The reply of a plugin without faults, its LF included.
fn sound() -> Vec<u8> {
    let mut memory = Memory::life();
    assert_eq!(memory.run(&plan(&[])), End::Exited(0));
    memory.bytes(Fd::Stdout)
}

fn sound_text() -> String {
    String::from_utf8(sound()).unwrap().trim_end().to_owned()
}

/// The one line, without its LF.
fn line(act: Act) -> Vec<u8> {
    let mut bytes = sent(act);
    assert_eq!(bytes.pop(), Some(b'\n'));
    assert!(!bytes.contains(&b'\n'), "one line");
    bytes
}

fn text(act: Act) -> String {
    String::from_utf8(line(act)).expect("UTF-8")
}

fn json(act: Act) -> Value {
    serde_json::from_slice(&line(act)).expect("JSON")
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The lossless bytes around the one part that is not UTF-8, and that part.
fn broken_at(bytes: &[u8]) -> (usize, Option<usize>) {
    let error = std::str::from_utf8(bytes).expect_err("not UTF-8");
    (error.valid_up_to(), error.error_len())
}

/// HSK-02
#[test]
fn the_sound_reply_is_one_object_with_exactly_the_declaration() {
    let reply: Value = serde_json::from_slice(&sound()).unwrap();
    let members: Vec<&String> = reply.as_object().unwrap().keys().collect();
    assert_eq!(members, ["id", "jsonrpc", "result"]);
    assert_eq!((&reply["id"], &reply["jsonrpc"]), (&Value::from(1), &Value::from("2.0")));
    let members: Vec<&String> = reply["result"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["instance", "plugin", "protocol", "schema", "seams"]);
}

/// TRN-03
#[test]
fn invalid_utf8_start_breaks_at_the_first_byte() {
    let line = line(Act::InvalidUtf8Start);
    assert_eq!(broken_at(&line), (0, Some(1)));
    assert_eq!(line[1..], sound()[..sound().len() - 1]);
}

/// TRN-03
#[test]
fn invalid_utf8_middle_breaks_inside_a_string() {
    let line = line(Act::InvalidUtf8Middle);
    let (at, _) = broken_at(&line);
    assert!(line[..at].ends_with(b"\"instance\":\"test"));
    assert_eq!([&line[..at], &line[at + 1..]].concat(), sound_text().as_bytes());
}

/// TRN-03
#[test]
fn invalid_utf8_end_breaks_behind_the_object() {
    let line = line(Act::InvalidUtf8End);
    assert_eq!(broken_at(&line).0, line.len() - 1);
    assert_eq!(line[..line.len() - 1], *sound_text().as_bytes());
}

/// TRN-03
#[test]
fn invalid_utf8_cut_lacks_the_last_byte_of_a_character() {
    let line = line(Act::InvalidUtf8Cut);
    assert_eq!(broken_at(&line).1, Some(2));
    assert!(contains(&line, b"test\xE2\x82\""));
}

/// TRN-03
#[test]
fn invalid_utf8_surrogate_holds_an_encoded_surrogate() {
    assert!(contains(&line(Act::InvalidUtf8Surrogate), &[0xED, 0xA0, 0x80]));
    broken_at(&line(Act::InvalidUtf8Surrogate));
}

/// TRN-03
#[test]
fn invalid_utf8_overlong_holds_an_overlong_slash() {
    assert!(contains(&line(Act::InvalidUtf8Overlong), &[0xC0, 0xAF]));
    broken_at(&line(Act::InvalidUtf8Overlong));
}

/// TRN-03
#[test]
fn invalid_bytes_behind_a_good_line_come_in_the_same_write() {
    let mut memory = Memory::life();
    let mut late = fault(Act::InvalidUtf8Start);
    late.when = Some(When::AfterReply);
    memory.run(&plan(&[late]));
    let writes = memory.writes(Fd::Stdout);
    assert_eq!(writes.len(), 1);
    assert!(writes[0].starts_with(&sound()));
    assert_eq!(broken_at(&writes[0]).0, sound().len());
}

/// TRN-14
#[test]
fn not_json_log_banner_and_line_are_no_json() {
    for act in [Act::NotJson, Act::LogBanner, Act::Line("ready".to_owned())] {
        assert!(serde_json::from_slice::<Value>(&line(act)).is_err());
    }
}

/// TRN-14
#[test]
fn cut_json_is_the_first_half_of_the_reply() {
    let half = text(Act::CutJson);
    assert!(sound_text().starts_with(&half) && half.len() == sound_text().len() / 2);
}

/// TRN-03
#[test]
fn bom_precedes_a_sound_reply() {
    assert_eq!(text(Act::Bom), format!("\u{feff}{}", sound_text()));
}

/// TRN-02
#[test]
fn crlf_adds_a_carriage_return_alone() {
    assert_eq!(text(Act::Crlf), format!("{}\r", sound_text()));
}

/// TRN-02
#[test]
fn blank_line_is_a_newline_and_space_line_is_spaces() {
    assert_eq!(sent(Act::BlankLine), b"\n");
    assert_eq!(text(Act::SpaceLine).trim_matches(' '), "");
    assert!(!text(Act::SpaceLine).is_empty());
}

/// TRN-02
#[test]
fn two_objects_stand_on_one_line() {
    assert_eq!(text(Act::TwoObjects), sound_text().repeat(2));
}

/// TRN-01
#[test]
fn batch_is_an_array_of_the_reply() {
    assert_eq!(
        json(Act::Batch)[0].to_string(),
        serde_json::from_slice::<Value>(&sound()).unwrap().to_string()
    );
}

/// TRN-01
#[test]
fn array_holds_the_values_of_the_members() {
    let array = json(Act::Array);
    assert_eq!((&array[0], &array[1]), (&Value::from("2.0"), &Value::from(1)));
    assert!(array[2]["seams"].is_object());
}

/// TRN-02
#[test]
fn pretty_is_the_same_reply_on_several_lines() {
    let bytes = sent(Act::Pretty);
    assert!(bytes.iter().filter(|byte| **byte == b'\n').count() > 5);
    assert_eq!(
        serde_json::from_slice::<Value>(&bytes).unwrap(),
        serde_json::from_slice::<Value>(&sound()).unwrap()
    );
}

/// TRN-15
#[test]
fn unknown_fields_stand_in_the_envelope_in_the_result_and_inside_it() {
    assert!(json(Act::UnknownFieldEnvelope)["surplus"].is_boolean());
    assert!(json(Act::UnknownFieldResult)["result"]["surplus"].is_boolean());
    let nested = json(Act::UnknownFieldNested);
    assert!(nested["result"]["surplus"].is_null());
    assert!(nested["result"]["plugin"]["surplus"].is_boolean());
}

/// TRN-15
#[test]
fn duplicate_key_top_has_id_twice() {
    assert!(text(Act::DuplicateKeyTop).contains(r#""id":1,"id":1,"result""#));
}

/// TRN-15
#[test]
fn duplicate_key_escaped_decodes_to_a_second_id() {
    let text = text(Act::DuplicateKeyEscaped);
    let spelled = r#""i\u0064""#;
    assert!(text.contains(r#""id":1,"#) && text.contains(&format!("{spelled}:1,\"result\"")));
    assert_eq!(serde_json::from_str::<String>(spelled).unwrap(), "id");
}

/// TRN-15
#[test]
fn duplicate_key_nested_has_a_member_of_an_inner_object_twice() {
    assert_eq!(text(Act::DuplicateKeyNested).matches(r#""name":"box""#).count(), 2);
}

/// TRN-15
#[test]
fn duplicate_key_nested_escaped_decodes_to_the_same_name() {
    let text = text(Act::DuplicateKeyNestedEscaped);
    let spelled = r#""\u006eame""#;
    assert!(text.contains(r#""name":"box""#) && text.contains(&format!("{spelled}:\"box\"")));
    assert_eq!(serde_json::from_str::<String>(spelled).unwrap(), "name");
}

/// A-08
#[test]
fn neither_and_both_and_null_are_about_result_and_error() {
    let neither = json(Act::Neither);
    assert!(neither.get("result").is_none() && neither.get("error").is_none());
    let both = json(Act::Both);
    assert!(both.get("result").is_some() && both.get("error").is_some());
    assert_eq!(json(Act::ResultNull).get("result"), Some(&Value::Null));
}

/// TRN-01
#[test]
fn the_version_member_is_missing_or_old() {
    assert!(json(Act::NoJsonrpc).get("jsonrpc").is_none());
    assert_eq!(json(Act::Jsonrpc1)["jsonrpc"], "1.0");
}

/// TRN-16
#[test]
fn ids_are_wrong_in_the_way_their_names_say() {
    assert_eq!(json(Act::IdWrong)["id"], 42);
    assert_eq!(json(Act::IdString)["id"], "1");
    assert_eq!(json(Act::IdNull).get("id"), Some(&Value::Null));
    assert!(json(Act::IdMissing).get("id").is_none());
    assert!(text(Act::IdFloat).contains(r#""id":1.0,"#));
    assert!(text(Act::IdHuge).contains(r#""id":18446744073709551617,"#));
}

/// TRN-16
#[test]
fn id_repeated_is_the_reply_twice_in_one_write() {
    assert_eq!(writes(Act::IdRepeated), [sound().repeat(2)]);
}

/// TRN-21
#[test]
fn notifications_have_a_method_and_no_id() {
    for (act, method) in [(Act::UnknownNotification, "log/line"), (Act::StrayNotification, "watch/restarted")]
    {
        let message = json(act);
        assert_eq!(message["method"], method);
        assert!(message.get("id").is_none());
    }
}

/// TRN-17
#[test]
fn request_to_mu_has_a_method_and_an_id() {
    let message = json(Act::RequestToMu);
    assert!(message["method"].is_string() && message["id"].is_number());
}

/// TRN-04
#[test]
fn line_1mib_is_a_sound_reply_of_1048576_bytes() {
    assert_eq!(line(Act::Line1Mib).len(), 1_048_576);
    assert_eq!(LINE_LIMIT, 1_048_576);
    assert_eq!(json(Act::Line1Mib), serde_json::from_slice::<Value>(&sound()).unwrap());
}

/// TRN-04
#[test]
fn line_1mib_and_1_is_one_byte_longer_and_else_sound() {
    assert_eq!(line(Act::Line1MibAnd1).len(), 1_048_577);
    assert_eq!(json(Act::Line1MibAnd1), serde_json::from_slice::<Value>(&sound()).unwrap());
}

/// TRN-04
#[test]
fn endless_line_has_that_many_bytes_and_no_newline() {
    let bytes = sent(Act::EndlessLine(3_000_001));
    assert_eq!(bytes.len(), 3_000_001);
    assert!(!bytes.contains(&b'\n'));
}

/// A-11
#[test]
fn unterminated_lines_lack_only_the_newline() {
    for act in [Act::Unterminated, Act::UnterminatedExit, Act::UnterminatedClose] {
        assert_eq!(sent(act), sound_text().as_bytes());
    }
}

/// TRN-02
#[test]
fn byte_by_byte_writes_single_bytes_of_the_sound_reply() {
    let writes = writes(Act::ByteByByte);
    assert!(writes.iter().all(|write| write.len() == 1));
    assert_eq!(writes.concat(), sound());
}

/// TRN-21
#[test]
fn several_lines_come_in_one_write_behind_the_reply() {
    let writes = writes(Act::SeveralLines);
    assert_eq!(writes.len(), 1);
    let lines: Vec<&[u8]> = writes[0].split(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), 4, "three lines and the nothing behind the last LF");
    assert_eq!(lines[0], sound_text().as_bytes());
}

/// TRN-02
#[test]
fn split_char_parts_inside_a_character_and_is_sound_in_sum() {
    let writes = writes(Act::SplitChar);
    assert_eq!(writes.len(), 2);
    assert!(std::str::from_utf8(&writes[0]).is_err() && std::str::from_utf8(&writes[1]).is_err());
    let reply: Value = serde_json::from_slice(&writes.concat()).unwrap();
    assert_eq!(reply["result"]["instance"], "testé");
}

/// TRN-14
#[test]
fn nul_is_a_raw_byte_and_nul_escaped_a_legal_string() {
    assert_eq!(line(Act::Nul).iter().filter(|byte| **byte == 0).count(), 1);
    assert!(serde_json::from_slice::<Value>(&line(Act::Nul)).is_err());
    assert_eq!(json(Act::NulEscaped)["result"]["instance"], "test\0");
}

/// TRN-03
#[test]
fn lone_surrogate_is_escaped_and_has_no_partner() {
    assert!(text(Act::LoneSurrogate).contains(r#""test\ud800""#));
}

/// TRN-15
#[test]
fn nesting_counts_the_envelope_as_one() {
    for depth in [3, 64, 65, 100_000] {
        let (mut now, mut deepest) = (0_u64, 0);
        for byte in line(Act::Nesting(depth)) {
            match byte {
                b'{' | b'[' => now += 1,
                b'}' | b']' => now -= 1,
                _ => {}
            }
            deepest = deepest.max(now);
        }
        // The declaration itself is five deep: envelope, result, seams, link, checks.
        assert_eq!(deepest, depth.max(5));
        assert_eq!(now, 0);
    }
}

/// TRN-14
#[test]
fn content_length_counts_the_bytes_that_follow() {
    let bytes = sent(Act::ContentLength);
    let header = format!("Content-Length: {}\r\n\r\n", sound().len());
    assert_eq!(bytes, [header.as_bytes(), &sound()].concat());
}

/// TRN-11
#[test]
fn error_kinds_are_what_their_names_say() {
    let kinds = [
        (Act::ErrorRetryable, "retryable"),
        (Act::ErrorPermanent, "permanent"),
        (Act::ErrorHuman, "human"),
        (Act::ErrorHumanWithoutRemedy, "human"),
        (Act::ErrorUnknownOutcome, "unknown-outcome"),
        (Act::ErrorUnknownKind, "transient"),
    ];
    for (act, kind) in kinds {
        let reply = json(act);
        assert_eq!(reply["error"]["data"]["kind"], kind);
        assert!(reply.get("result").is_none() && reply["error"]["code"].is_i64());
    }
}

/// ERR-03
#[test]
fn only_the_human_error_with_a_remedy_has_one() {
    assert!(json(Act::ErrorHuman)["error"]["data"]["remedy"].is_string());
    assert!(json(Act::ErrorHumanWithoutRemedy)["error"]["data"].get("remedy").is_none());
}

/// A-09
#[test]
fn errors_lack_data_or_kind_or_have_too_much() {
    assert!(json(Act::ErrorWithoutData)["error"].get("data").is_none());
    assert_eq!(json(Act::ErrorWithoutKind)["error"]["data"], Value::Object(Default::default()));
    assert!(json(Act::ErrorUnknownField)["error"]["data"]["surplus"].is_boolean());
}

/// SEC-02
#[test]
fn only_the_leak_puts_an_environment_value_on_stdout() {
    assert!(contains(&sent(Act::LeakEnvReply("MU_PLUGIN_CANARY".to_owned())), b"testcanary-4711\""));
    assert!(!contains(&sound(), b"canary"));
}

/// TRN-10
#[test]
fn no_reply_writes_nothing() {
    assert_eq!(sent(Act::NoReply), b"");
}

#[test]
fn bytes_on_start_come_before_any_line_was_read() {
    let mut memory = Memory::new(&[(5, Some(INITIALIZE)), (10, None)]);
    let mut early = fault(Act::LogBanner);
    early.when = Some(When::OnStart);
    memory.run(&plan(&[early]));
    assert_eq!(memory.writes(Fd::Stdout).len(), 2);
    assert_eq!(memory.when(|did| matches!(did, super::super::memory::Did::Wrote(..))), Some(0));
}
