//! The typed messages and the published schema say the same (GEN-04).
//!
//! `generate` makes typed values, `mutate` breaks their JSON in every place, `published` is the compiled schema. For
//! every shape of the protocol: what a typed value writes is valid and comes back as the same value, whole lines of it byte
//! for byte, and a mutated text parses exactly if it is valid.

mod generate;
mod mutate;
mod published;

use std::fmt::Debug;

use mu_protocol::envelope::{self, Body, Incoming};
use mu_protocol::line::LineSplitter;
use mu_protocol::messages::dated::Dated;
use mu_protocol::messages::method::{AnyResult, Call, Method, parse_result};
use mu_protocol::messages::{channel, checks, error, host, job, lifecycle, link, watch};
use mu_protocol::objects::{Strict, from_json};
use mu_protocol::outgoing::request;
use mu_protocol::strict::Checked;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use generate as g;
use mutate::{Mutants, Numbers};
use published::Published;

/// Generated values of each shape.
const VALUES: usize = 16;
/// At most so many texts with one change, for each generated value; other values try other changes.
const SINGLE: usize = 800;
/// Values of each shape that go through whole lines.
const TRIPS: usize = 64;
/// Texts with two changes, for each generated value.
const DOUBLE: usize = 60;

/// A text that passes the strict pass.
fn checked(text: &str) -> Checked<'_> {
    Checked::value(text).expect("strict JSON")
}

/// What serde_json makes of a text, with serde's loopholes closed.
fn by_serde_json<T: DeserializeOwned>(text: &str) -> Option<T> {
    T::deserialize(Strict(&mut serde_json::Deserializer::from_str(text))).ok()
}

/// Writes a request, reads it as a plugin would, and writes it again: the bytes are the same (CALL-04, A-25).
fn request_and_back<C: Call>(dated: &Dated<C>) {
    #[derive(Deserialize)]
    struct Request<'a> {
        id: u64,
        method: &'a str,
        #[serde(borrow)]
        params: &'a RawValue,
    }
    let line = request(7, C::METHOD.as_str(), &dated.to_json()).expect("short enough");
    let read: Request<'_> = serde_json::from_slice(&line).expect("a request");
    let back: Dated<C> = from_json(read.params.get()).expect("the same params");
    let again = request(read.id, read.method, &back.to_json()).expect("as short");
    assert_eq!(String::from_utf8(again), String::from_utf8(line));
}

/// Reads a reply from the bytes of a stream, and writes it again: the bytes are the same.
fn reply_and_back<C: Call>(result: &C::Result) {
    let write = |id: u64, result: &C::Result| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, serde_json::to_string(result).expect("JSON"))
    };
    let line = write(9, result);
    let stream = format!("{line}\n");
    let (first, second) = stream.as_bytes().split_at(stream.len() / 2);
    let mut splitter = LineSplitter::new();
    assert!(splitter.next(&mut &first[..]).is_none());
    let mut rest = second;
    let whole = splitter.next(&mut rest).expect("a line").expect("short enough");
    let Ok(Incoming::Reply { id, body: Body::Result(text) }) = envelope::parse(whole) else {
        panic!("no reply: {line}")
    };
    let any = parse_result(C::METHOD, text).unwrap_or_else(|mismatch| panic!("{mismatch}: {line}"));
    assert_eq!(write(id, &C::result(any).expect("of its method")), line);
}

struct Agreement {
    published: Published,
    runner: TestRunner,
    texts: usize,
    parsed: usize,
}

impl Agreement {
    fn new() -> Self {
        let config = Config { failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..Config::default() };
        Agreement { published: Published::new(), runner: TestRunner::new(config), texts: 0, parsed: 0 }
    }

    /// Holds `T` to the definition of that name.
    fn shape<T>(&mut self, definition: &str, values: impl Strategy<Value = T>, write: impl Fn(&T) -> String)
    where
        T: DeserializeOwned + PartialEq + Debug,
    {
        self.published.compile(definition);
        for round in 0..VALUES {
            let value = values.new_tree(&mut self.runner).expect("strategies do not reject").current();
            let text = write(&value);
            let json: Value = serde_json::from_str(&text).expect("typed values write JSON");
            assert!(
                self.published.is_valid(definition, &json),
                "{definition} refuses what a typed value wrote: {text}"
            );
            assert_eq!(from_json::<T>(&text).as_ref(), Ok(&value), "{definition} does not come back: {text}");

            let mut mutants = Mutants::of(&json);
            let stride = mutants.len().div_ceil(SINGLE);
            for change in (round % stride..mutants.len()).step_by(stride) {
                mutants.with(change, |mutant| self.text::<T>(definition, mutant));
            }
            let mut numbers = Numbers::new(round);
            for _ in 0..DOUBLE {
                let first = numbers.below(mutants.len());
                let mut again = mutants.with(first, |mutant| Mutants::somewhere(mutant, &mut numbers));
                let second = numbers.below(again.len());
                again.with(second, |mutant| self.text::<T>(definition, mutant));
            }
        }
    }

    fn text<T: DeserializeOwned + PartialEq + Debug>(&mut self, definition: &str, json: &Value) {
        let text = json.to_string();
        let typed = from_json::<T>(&text);
        let valid = self.published.is_valid(definition, json);
        assert_eq!(typed.is_ok(), valid, "{definition}: typed {typed:?}, valid {valid}: {text}");
        assert_eq!(
            typed.ok(),
            by_serde_json::<T>(&text),
            "{definition}: mu and serde_json read two things: {text}"
        );
        self.texts += 1;
        self.parsed += usize::from(valid);
    }

    fn plain<T>(&mut self, definition: &str, values: impl Strategy<Value = T>)
    where
        T: Serialize + DeserializeOwned + PartialEq + Debug,
    {
        self.shape(definition, values, |value| serde_json::to_string(value).expect("JSON"));
    }

    fn params<C: Call + Clone + PartialEq + Debug>(&mut self, calls: impl Strategy<Value = C>) {
        let dated = (g::epoch(), calls).prop_map(|(deadline, call)| Dated { deadline, call });
        for _ in 0..TRIPS {
            request_and_back(&dated.new_tree(&mut self.runner).expect("strategies do not reject").current());
        }
        self.shape(&format!("{}.params", C::METHOD), dated, Dated::to_json);
    }

    fn result<C: Call>(&mut self, results: impl Strategy<Value = C::Result>)
    where
        C::Result: PartialEq + Debug,
    {
        for _ in 0..TRIPS {
            reply_and_back::<C>(
                &results.new_tree(&mut self.runner).expect("strategies do not reject").current(),
            );
        }
        self.plain(&format!("{}.result", C::METHOD), results);
    }

    /// The run says nothing if hardly any mutated text was valid, or hardly any was not.
    fn done(self, least: usize) {
        let Agreement { texts, parsed, .. } = self;
        assert!(texts >= least, "only {texts} mutated texts");
        assert!(parsed * 50 > texts && parsed * 2 < texts, "{parsed} of {texts} mutated texts were valid");
    }
}

/// CALL-02, HOST-04 to HOST-08
#[test]
fn host_calls_agree_with_the_schema() {
    let mut agreement = Agreement::new();
    agreement.params(g::acquire_params());
    agreement.result::<host::AcquireParams>(g::acquired());
    agreement.params(g::host_lookup_params());
    agreement.result::<host::LookupParams>(g::lookup(g::acquired()));
    agreement.params(g::host_status_params());
    agreement.result::<host::StatusParams>(g::host_state());
    agreement.params(g::release_params());
    agreement.result::<host::ReleaseParams>(g::nothing());
    agreement.done(60_000);
}

/// LINK-01 to LINK-11
#[test]
fn link_calls_agree_with_the_schema() {
    let mut agreement = Agreement::new();
    agreement.params(g::exec_params());
    agreement.result::<link::ExecParams>(g::run());
    agreement.params(g::fetch_params());
    agreement.result::<link::FetchParams>(g::run());
    agreement.params(g::push_params());
    agreement.result::<link::PushParams>(g::run());
    agreement.params(g::link_check_params());
    agreement.result::<link::CheckStepsParams>(g::steps());
    agreement.done(60_000);
}

/// JOB-01 to JOB-08
#[test]
fn job_calls_agree_with_the_schema() {
    let mut agreement = Agreement::new();
    agreement.params(g::start_params());
    agreement.result::<job::StartParams>(g::started());
    agreement.params(g::job_lookup_params());
    agreement.result::<job::LookupParams>(g::lookup(g::found_job()));
    agreement.params(g::job_status_params());
    agreement.result::<job::StatusParams>(g::job_state());
    agreement.params(g::stop_params());
    agreement.result::<job::StopParams>(g::nothing());
    agreement.params(g::attach_params());
    agreement.result::<job::AttachParams>(g::view());
    agreement.params(g::job_check_params());
    agreement.result::<job::CheckStepsParams>(g::steps());
    agreement.done(60_000);
}

/// CHAN-10 to CHAN-13, CHAN-21, WATCH-01
#[test]
fn channel_reads_agree_with_the_schema() {
    let mut agreement = Agreement::new();
    agreement.params(g::read_states_params());
    agreement.result::<channel::ReadStatesParams>(g::readings());
    agreement.params(g::baseline_params());
    agreement.result::<channel::BaselineParams>(g::or_null(g::baseline()));
    agreement.params(g::receipt_params());
    agreement.result::<channel::ReceiptParams>(g::receipt());
    agreement.params(g::last_run_params());
    agreement.result::<channel::LastRunParams>(g::or_null(g::observation()));
    agreement.params(g::watch_params());
    agreement.result::<channel::WatchParams>(g::watching());
    agreement.done(60_000);
}

/// CHAN-14 to CHAN-20
#[test]
fn deliveries_agree_with_the_schema() {
    let mut agreement = Agreement::new();
    agreement.params(g::send_params());
    agreement.result::<channel::SendParams>(g::sent());
    agreement.params(g::fresh_params());
    agreement.result::<channel::FreshParams>(g::sent());
    agreement.params(g::command_params());
    agreement.result::<channel::CommandParams>(g::sent());
    agreement.params(g::interrupt_params());
    agreement.result::<channel::InterruptParams>(g::interrupted());
    agreement.params(g::abort_params());
    agreement.result::<channel::AbortParams>(g::aborted());
    agreement.params(g::answer_params());
    agreement.result::<channel::AnswerParams>(g::answered());
    agreement.done(60_000);
}

/// HSK-01, TMO-04, TRN-11, WATCH-03, WATCH-05
#[test]
fn errors_notifications_and_lifecycle_agree_with_the_schema() {
    let mut agreement = Agreement::new();
    agreement.plain::<error::ReplyError>("error", g::reply_error());
    agreement.plain::<watch::Settled>("watch/settled.params", g::settled());
    agreement.plain::<watch::Restarted>("watch/restarted.params", g::restarted());
    agreement.plain::<lifecycle::InitializeParams>("initialize.params", g::initialize_params());
    agreement.plain::<lifecycle::Cancel>("$/cancel.params", g::cancel());
    agreement.done(30_000);
}

/// GEN-04
#[test]
fn every_method_of_the_schema_is_a_call_or_initialize() {
    let named = |suffix| {
        Published::definitions()
            .iter()
            .filter_map(|name| name.strip_suffix(suffix))
            .filter(|name| !name.contains('/') && *name != lifecycle::INITIALIZE)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut methods = Method::ALL.iter().map(|method| method.as_str()).collect::<Vec<_>>();
    methods.sort_unstable();
    assert_eq!(named(".params"), methods);
    assert_eq!(named(".result"), methods);
}

/// A-07: the text of a reply is read by the method that was asked.
#[test]
fn a_result_is_parsed_by_its_method() {
    let parsed = parse_result(Method::ChannelAnswer, checked(r#"{"keys":"1","ack":"confirmed"}"#)).unwrap();
    assert_eq!(parsed.method(), Method::ChannelAnswer);
    let answered = channel::AnswerParams::result(parsed.clone()).unwrap();
    assert_eq!(answered.ack, channel::AnswerAck::Confirmed);
    assert_eq!(channel::SendParams::result(parsed), None);
    assert!(parse_result(Method::ChannelSend, checked(r#"{"keys":"1","ack":"confirmed"}"#)).is_err());
    assert_eq!(parse_result(Method::JobStop, checked("null")), Ok(AnyResult::JobStop(())));
}

/// EFF-01
#[test]
fn the_effects_are_starts_stops_acquires_releases_and_deliveries() {
    let effects = Method::ALL.iter().filter(|method| method.is_effect()).map(|method| method.as_str());
    assert_eq!(
        effects.collect::<Vec<_>>(),
        [
            "host.acquire",
            "host.release",
            "job.start",
            "job.stop",
            "channel.send",
            "channel.fresh",
            "channel.command",
            "channel.interrupt",
            "channel.abort",
            "channel.answer",
        ]
    );
}

#[test]
fn a_method_is_found_by_its_name() {
    for method in Method::ALL {
        assert_eq!(Method::parse(method.as_str()), Some(*method));
    }
    assert_eq!(Method::parse("initialize"), None);
    assert_eq!(Method::parse("host.Acquire"), None);
}

/// The one difference between the two: JSON Schema counts a whole float as an integer, mu does not.
#[test]
fn whole_numbers_in_other_spellings_are_refused_though_the_schema_cannot() {
    let mut published = Published::new();
    published.compile("channel.baseline.result");
    for spelling in ["1.0", "1e0", "1E2", "-0", "-0.0"] {
        let text = format!(r#"{{"runs":{spelling}}}"#);
        assert!(
            published.is_valid("channel.baseline.result", &serde_json::from_str(&text).unwrap()),
            "{text}"
        );
        assert!(parse_result(Method::ChannelBaseline, checked(&text)).is_err(), "{text}");
    }
}

/// LINK-11
#[test]
fn a_step_is_true_false_null_or_warn() {
    let ok = |ok: &str| {
        from_json::<checks::Step>(&format!(r#"{{"step":"s","ok":{ok},"detail":""}}"#)).map(|s| s.ok)
    };
    assert_eq!(ok("true"), Ok(checks::StepOk::Passed));
    assert_eq!(ok("false"), Ok(checks::StepOk::Failed));
    assert_eq!(ok("null"), Ok(checks::StepOk::Skipped));
    assert_eq!(ok("\"warn\""), Ok(checks::StepOk::Warn));
    assert!(ok("\"true\"").is_err());
    assert!(ok("1").is_err());
}

/// TRN-13, TRN-21
#[test]
fn a_notification_is_one_of_two_and_names_its_watch() {
    let settled = r#"{"watchId":"w","observation":{"status":"idle","settled":true,"since":1,"runs":1,"incarnation":"i"}}"#;
    let restarted = r#"{"watchId":"w","incarnation":"i"}"#;
    for (method, params) in [("watch/settled", settled), ("watch/restarted", restarted)] {
        let notification = watch::Notification::parse(method, checked(params)).unwrap().unwrap();
        assert_eq!(notification.watch_id().as_str(), "w");
    }
    assert!(watch::Notification::parse("watch/settled", checked(restarted)).unwrap().is_err());
    assert!(watch::Notification::parse("watch/restarted", checked(settled)).unwrap().is_err());
    assert_eq!(watch::Notification::parse("watch/progress", checked(restarted)), None);
}
