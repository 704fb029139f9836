//! Strategies for the typed messages: every variant and every optional member, with strings and numbers up to their
//! limits.

use std::collections::BTreeMap;

use mu_protocol::messages::channel::*;
use mu_protocol::messages::checks::{Phase, Step, StepOk, Steps};
use mu_protocol::messages::error::{ErrorKind, ReplyError};
use mu_protocol::messages::host::{AcquireParams, Acquired, HostState, ReleaseParams};
use mu_protocol::messages::job::*;
use mu_protocol::messages::lifecycle::{Cancel, InitializeParams, VersionRange};
use mu_protocol::messages::link::{ExecParams, FetchParams, PushParams, Run};
use mu_protocol::messages::lookup::Lookup;
use mu_protocol::messages::method::OrNull;
use mu_protocol::messages::target::*;
use mu_protocol::messages::values::*;
use mu_protocol::messages::watch::{Restarted, Settled};
use mu_protocol::messages::{host, job, link};
use mu_protocol::objects::Patch;
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde::de::DeserializeOwned;

/// A struct or variant from strategies for its members.
macro_rules! build {
    ($($type:ident)::+ { $($member:ident: $strategy:expr),* $(,)? }) => {
        ($($strategy,)*).prop_map(|($($member,)*)| $($type)::+ { $($member),* })
    };
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,12}", any::<String>()]
}

fn filled<T>(new: fn(String) -> Result<T, BadText>) -> impl Strategy<Value = T>
where
    T: std::fmt::Debug,
{
    prop_oneof!["[ -~]{1,12}", "(?s).{1,4}"].prop_map(move |text| new(text).expect("not empty"))
}

fn matching<T>(pattern: &'static str, new: fn(String) -> Result<T, BadText>) -> impl Strategy<Value = T>
where
    T: std::fmt::Debug,
{
    pattern.prop_map(move |text| new(text).expect("by the rule"))
}

fn name() -> impl Strategy<Value = Name> {
    matching("[a-z][a-z0-9_-]{0,31}", Name::new)
}

fn remote_path() -> impl Strategy<Value = RemotePath> {
    prop_oneof![Just(RemotePath::new(".").unwrap()), filled(RemotePath::new)]
}

fn absolute_path() -> impl Strategy<Value = AbsolutePath> {
    matching("/[ -~]{0,12}", AbsolutePath::new)
}

fn label() -> impl Strategy<Value = Label> {
    matching("\\PC{1,128}", Label::new)
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..4u64, 0..=MAX_INTEGER, Just(MAX_INTEGER)]
}

fn count() -> impl Strategy<Value = Count> {
    number().prop_map(|number| Count::new(number).unwrap())
}

fn millis() -> impl Strategy<Value = Millis> {
    number().prop_map(|number| Millis::new(number).unwrap())
}

pub(crate) fn epoch() -> impl Strategy<Value = EpochMillis> {
    number().prop_map(|number| EpochMillis::new(number).unwrap())
}

fn string_map() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(text(), text(), 0..3)
}

fn key() -> impl Strategy<Value = Key> {
    filled(Key::new)
}

fn handle() -> impl Strategy<Value = Handle> {
    filled(Handle::new)
}

fn msg_id() -> impl Strategy<Value = MsgId> {
    filled(MsgId::new)
}

fn incarnation() -> impl Strategy<Value = Incarnation> {
    filled(Incarnation::new)
}

fn reason() -> impl Strategy<Value = Reason> {
    filled(Reason::new)
}

fn word() -> impl Strategy<Value = Word> {
    filled(Word::new)
}

fn host_ref() -> impl Strategy<Value = HostRef> {
    build!(HostRef {
        name: name(),
        handle: of(handle()),
        instance: of(matching("\\PC{1,128}", Instance::new))
    })
}

fn job_ref() -> impl Strategy<Value = JobRef> {
    build!(JobRef { kind: name(), key: key(), handle: of(handle()) })
}

fn agent_ref() -> impl Strategy<Value = AgentRef> {
    build!(AgentRef { workstream: name(), name: name(), incarnation: count() })
}

fn host_target() -> impl Strategy<Value = HostTarget> {
    build!(HostTarget { host: host_ref() })
}

fn target() -> impl Strategy<Value = Target> {
    build!(Target { agent: of(agent_ref()), job: of(job_ref()), host: host_ref() })
}

fn job_target() -> impl Strategy<Value = JobTarget> {
    build!(JobTarget { agent: of(agent_ref()), job: job_ref(), host: host_ref() })
}

fn agent_target() -> impl Strategy<Value = AgentTarget> {
    build!(AgentTarget { agent: agent_ref(), job: job_ref(), host: host_ref() })
}

pub(crate) fn nothing() -> impl Strategy<Value = ()> {
    Just(())
}

pub(crate) fn or_null<T>(value: impl Strategy<Value = T>) -> impl Strategy<Value = OrNull<T>>
where
    T: DeserializeOwned + std::fmt::Debug,
{
    of(value).prop_map(OrNull)
}

pub(crate) fn lookup<T>(found: impl Strategy<Value = T>) -> impl Strategy<Value = Lookup<T>>
where
    T: Clone + std::fmt::Debug,
{
    prop_oneof![
        2 => found.prop_map(Lookup::Found),
        1 => Just(Lookup::Pending),
        1 => Just(Lookup::None),
        1 => reason().prop_map(Lookup::Unknown),
    ]
}

fn patch<T: Clone + std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Patch<T>> {
    prop_oneof![Just(Patch::Absent), Just(Patch::Null), value.prop_map(Patch::Value)]
}

pub(crate) fn acquire_params() -> impl Strategy<Value = AcquireParams> {
    build!(AcquireParams { target: host_target(), key: key(), params: string_map() })
}

pub(crate) fn acquired() -> impl Strategy<Value = Acquired> {
    build!(Acquired {
        handle: handle(),
        deadline_at: of(epoch()),
        idle_reclaim_ms: of(millis()),
        max_jobs: of(count()),
    })
}

pub(crate) fn host_lookup_params() -> impl Strategy<Value = host::LookupParams> {
    build!(host::LookupParams { target: host_target(), key: key(), fence: any::<bool>() })
}

pub(crate) fn host_status_params() -> impl Strategy<Value = host::StatusParams> {
    build!(host::StatusParams { target: host_target() })
}

pub(crate) fn host_state() -> impl Strategy<Value = HostState> {
    prop_oneof![
        3 => build!(HostState::Up {
            handle: handle(),
            deadline_at: patch(epoch()),
            idle_reclaim_ms: patch(millis()),
            max_jobs: patch(count()),
        }),
        1 => build!(HostState::Gone { reason: reason() }),
        1 => build!(HostState::NeedsHuman { remedy: reason() }),
        1 => build!(HostState::Unknown { reason: reason() }),
    ]
}

pub(crate) fn release_params() -> impl Strategy<Value = ReleaseParams> {
    build!(ReleaseParams { target: host_target(), key: key() })
}

pub(crate) fn exec_params() -> impl Strategy<Value = ExecParams> {
    build!(ExecParams { target: target(), script: text(), cwd: remote_path(), timeout_ms: millis() })
}

pub(crate) fn fetch_params() -> impl Strategy<Value = FetchParams> {
    build!(FetchParams {
        target: target(),
        remote_cwd: remote_path(),
        local_repo: absolute_path(),
        timeout_ms: millis(),
    })
}

pub(crate) fn push_params() -> impl Strategy<Value = PushParams> {
    build!(PushParams {
        target: target(),
        local_repo: absolute_path(),
        remote_repo: remote_path(),
        rev: matching("[0-9a-f]{40}|[0-9a-f]{64}", CommitId::new),
        timeout_ms: millis(),
    })
}

pub(crate) fn run() -> impl Strategy<Value = Run> {
    build!(Run { exit_code: of(any::<u8>()), stdout: text(), stderr: text(), partial: any::<bool>() })
}

fn phase() -> impl Strategy<Value = Phase> {
    select(vec![Phase::Template, Phase::Reach, Phase::Agent])
}

pub(crate) fn link_check_params() -> impl Strategy<Value = link::CheckStepsParams> {
    build!(link::CheckStepsParams {
        target: target(),
        phase: phase(),
        root: of(remote_path()),
        agent: of(name()),
    })
}

pub(crate) fn steps() -> impl Strategy<Value = Steps> {
    let ok = select(vec![StepOk::Passed, StepOk::Failed, StepOk::Skipped, StepOk::Warn]);
    vec(build!(Step { step: word(), ok: ok, detail: text() }), 0..3)
}

pub(crate) fn start_params() -> impl Strategy<Value = StartParams> {
    let spec = build!(JobSpec {
        workstream: name(),
        name: name(),
        harness: name(),
        role: select(vec![Role::FullAccess, Role::ReadOnly]),
        cmd: text(),
        command_source: select(vec![CommandSource::Harness, CommandSource::Operator]),
        cwd: remote_path(),
        env: string_map(),
        sockets: of(string_map()),
        first_prompt: of(build!(FirstPrompt { text: text(), msg_id: msg_id() })),
    });
    build!(StartParams { target: job_target(), key: key(), spec: spec })
}

pub(crate) fn view() -> impl Strategy<Value = View> {
    build!(View { command: word(), env: string_map(), cwd: of(absolute_path()) })
}

pub(crate) fn started() -> impl Strategy<Value = Started> {
    build!(Started { view: view(), handle: of(handle()), baseline: of(baseline()) })
}

pub(crate) fn job_lookup_params() -> impl Strategy<Value = job::LookupParams> {
    build!(job::LookupParams { target: job_target(), key: key(), fence: any::<bool>() })
}

pub(crate) fn found_job() -> impl Strategy<Value = FoundJob> {
    build!(FoundJob { handle: handle(), view: of(view()), baseline: of(baseline()) })
}

pub(crate) fn job_status_params() -> impl Strategy<Value = job::StatusParams> {
    build!(job::StatusParams { target: job_target() })
}

pub(crate) fn job_state() -> impl Strategy<Value = JobState> {
    let signal = (1..=64u8).prop_map(|number| JobExit::Signal(SignalNumber::new(number).unwrap()));
    let exit = prop_oneof![any::<u8>().prop_map(JobExit::Status), signal];
    prop_oneof![
        1 => Just(JobState::Running),
        3 => build!(JobState::Ended { exit: of(exit) }),
        1 => build!(JobState::Lost { reason: reason() }),
        1 => build!(JobState::Unknown { reason: reason() }),
    ]
}

pub(crate) fn stop_params() -> impl Strategy<Value = StopParams> {
    build!(StopParams { target: job_target(), key: key() })
}

pub(crate) fn attach_params() -> impl Strategy<Value = AttachParams> {
    build!(AttachParams { target: job_target() })
}

pub(crate) fn job_check_params() -> impl Strategy<Value = job::CheckStepsParams> {
    build!(job::CheckStepsParams { target: target(), phase: phase(), agent: of(name()) })
}

pub(crate) fn read_states_params() -> impl Strategy<Value = ReadStatesParams> {
    agent_target().prop_map(|target| ReadStatesParams { targets: [target.clone()], target })
}

fn turn_state() -> impl Strategy<Value = TurnState> {
    select(vec![TurnState::Idle, TurnState::Busy, TurnState::Blocked, TurnState::Unknown])
}

fn dialog() -> impl Strategy<Value = Dialog> {
    build!(Dialog { prompt: text(), options: of(vec(text(), 0..3)) })
}

pub(crate) fn readings() -> impl Strategy<Value = Readings> {
    let path = (name(), name()).prop_map(|(workstream, name)| AgentPath::of(&workstream, &name));
    let reading = build!(Reading {
        state: turn_state(),
        since: epoch(),
        runs: count(),
        incarnation: incarnation(),
        reason: of(reason()),
        pending: of(dialog()),
    });
    btree_map(path, reading, 0..3)
}

pub(crate) fn observation() -> impl Strategy<Value = Observation> {
    build!(Observation {
        status: turn_state(),
        settled: any::<bool>(),
        since: epoch(),
        runs: count(),
        incarnation: incarnation(),
        reason: of(reason()),
        pending: of(dialog()),
        last_text: of(text()),
        last_text_truncated: of(any::<bool>()),
        last_error: of(text()),
    })
}

pub(crate) fn baseline_params() -> impl Strategy<Value = BaselineParams> {
    build!(BaselineParams { target: agent_target() })
}

pub(crate) fn baseline() -> impl Strategy<Value = Baseline> {
    build!(Baseline { runs: count(), incarnation: of(incarnation()) })
}

pub(crate) fn receipt_params() -> impl Strategy<Value = ReceiptParams> {
    build!(ReceiptParams { target: agent_target(), msg_id: msg_id() })
}

pub(crate) fn receipt() -> impl Strategy<Value = Receipt> {
    prop_oneof![
        2 => build!(Receipt::Accepted {
            id: msg_id(),
            runs: of(count()),
            at: of(epoch()),
            incarnation: of(incarnation()),
        }),
        1 => build!(Receipt::NotAccepted { id: msg_id() }),
        1 => build!(Receipt::Unreachable { id: msg_id(), reason: reason() }),
    ]
}

pub(crate) fn last_run_params() -> impl Strategy<Value = LastRunParams> {
    build!(LastRunParams { target: agent_target(), after_runs: count(), inc: of(incarnation()) })
}

pub(crate) fn watch_params() -> impl Strategy<Value = WatchParams> {
    build!(WatchParams { target: agent_target(), after_runs: of(count()), inc: of(incarnation()) })
}

fn watch_id() -> impl Strategy<Value = WatchId> {
    filled(WatchId::new)
}

pub(crate) fn watching() -> impl Strategy<Value = Watching> {
    build!(Watching { watch_id: watch_id(), initial: observation(), after_runs: of(count()) })
}

pub(crate) fn send_params() -> impl Strategy<Value = SendParams> {
    build!(SendParams {
        target: agent_target(),
        text: text(),
        msg_id: msg_id(),
        mode: select(vec![SendMode::FollowUp, SendMode::Steer]),
        force: any::<bool>(),
        first_prompt: any::<bool>(),
        expect_incarnation: of(incarnation()),
    })
}

pub(crate) fn sent() -> impl Strategy<Value = Sent> {
    build!(Sent {
        channel: name(),
        ack: select(vec![SendAck::Accepted, SendAck::Sent, SendAck::Unknown]),
        baseline: of(count()),
        msg_id: of(msg_id()),
    })
}

pub(crate) fn fresh_params() -> impl Strategy<Value = FreshParams> {
    build!(FreshParams {
        target: agent_target(),
        text: text(),
        msg_id: msg_id(),
        force: any::<bool>(),
        expect_incarnation: of(incarnation()),
    })
}

pub(crate) fn command_params() -> impl Strategy<Value = CommandParams> {
    build!(CommandParams {
        target: agent_target(),
        name: word(),
        instructions: of(text()),
        force: any::<bool>(),
        expect_incarnation: of(incarnation()),
    })
}

pub(crate) fn interrupt_params() -> impl Strategy<Value = InterruptParams> {
    build!(InterruptParams {
        target: agent_target(),
        text: text(),
        msg_id: msg_id(),
        timeout_ms: millis(),
        expect_incarnation: of(incarnation()),
    })
}

pub(crate) fn interrupted() -> impl Strategy<Value = Interrupted> {
    build!(Interrupted {
        was_busy: any::<bool>(),
        pending: any::<bool>(),
        runs: of(count()),
        msg_id: of(msg_id()),
        incarnation: of(incarnation()),
    })
}

pub(crate) fn abort_params() -> impl Strategy<Value = AbortParams> {
    build!(AbortParams { target: agent_target(), timeout_ms: millis() })
}

pub(crate) fn aborted() -> impl Strategy<Value = Aborted> {
    let activity = || select(vec![Activity::Idle, Activity::Busy]);
    build!(Aborted {
        before: activity(),
        after: activity(),
        settled: any::<bool>(),
        aborted: any::<bool>(),
        pending: any::<bool>(),
    })
}

pub(crate) fn answer_params() -> impl Strategy<Value = AnswerParams> {
    build!(AnswerParams { target: agent_target(), keys: word(), force: any::<bool>() })
}

pub(crate) fn answered() -> impl Strategy<Value = Answered> {
    build!(Answered { keys: word(), ack: select(vec![AnswerAck::Confirmed, AnswerAck::Unknown]) })
}

pub(crate) fn reply_error() -> impl Strategy<Value = ReplyError> {
    let kind = prop_oneof![
        1 => select(vec![ErrorKind::Retryable, ErrorKind::Permanent, ErrorKind::UnknownOutcome]),
        1 => build!(ErrorKind::Human { remedy: reason() }),
    ];
    build!(ReplyError { code: any::<i32>(), message: text(), kind: kind })
}

pub(crate) fn settled() -> impl Strategy<Value = Settled> {
    build!(Settled { watch_id: watch_id(), observation: observation() })
}

pub(crate) fn restarted() -> impl Strategy<Value = Restarted> {
    build!(Restarted { watch_id: watch_id(), incarnation: incarnation() })
}

pub(crate) fn initialize_params() -> impl Strategy<Value = InitializeParams> {
    build!(InitializeParams { protocol: build!(VersionRange { min: count(), max: count() }), mu: label() })
}

pub(crate) fn cancel() -> impl Strategy<Value = Cancel> {
    let id = (1..=MAX_INTEGER).prop_map(|id| Cancel::Call(RequestId::new(id).unwrap()));
    prop_oneof![id, watch_id().prop_map(Cancel::Watch)]
}
