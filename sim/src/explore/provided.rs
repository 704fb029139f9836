//! Hosts that a plugin provides: in one half of all seeds a provider is there as well, with a backend behind it. Its verbs
//! run among the others, and what can end in the middle of an effect does.
//!
//! All of it is drawn from streams of its own and put around what the other parts have drawn.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use toml::{Table, Value};

use super::operator::Operator;
use super::{Swarm, faults, magnitude, one_of, stream, weighted};
use crate::backend::{BackendAt, BackendDeed, BackendTable, NetAt, NetDeed};
use crate::fake::{Act, Entry, Fault, PluginTable, Seam, Sig, Topic, When, catalogue};
use crate::scenario::{Db, DiskErrno, DiskError, SignalAt, Step, WorldAt};
use crate::streams::Stream;

/// The provider.
pub(super) const NAME: &str = "vault";
/// Its hosts.
const HOSTS: [&str; 2] = ["cave", "nest"];
/// The last of mu's calls, and of its operations on the disk, at which it ends; most runs have fewer.
const LAST_POINT: u64 = 500;
/// The last act at which the plugin ends.
const LAST_ACT: u64 = 30;
/// What its acquires offer, by likelihood.
const ACQUIRES: [(u64, &str); 6] = [
    (5, "{ lookup = true, fenceKey = true }"),
    (3, "{ lookup = true, fenceKey = false, inFlightMs = 20000 }"),
    (2, "{ lookup = true, fenceKey = true, inFlightMs = 60000 }"),
    (2, "{ lookup = false, fenceKey = false, dedupe = { exact = true, windowMs = 120000 } }"),
    (1, "{ lookup = true, fenceKey = false }"),
    // Short enough to be waited out on the spot.
    (2, "{ lookup = true, fenceKey = false, inFlightMs = 6000 }"),
];
/// What its faults meet.
const METHODS: [&str; 5] = ["host.acquire", "host.release", "host.lookup", "host.status", "link.exec"];
/// The longest time in flight that is declared, and the margin that a reboot takes off it.
const QUIET_MS: u64 = 660_000 + 1_000;
/// Spans around which something changes for mu: it waits ten seconds for the end of what is declared to be in flight, and a
/// window is over five seconds early.
const LAPSES_MS: [u64; 8] = [9_000, 11_000, 15_000, 19_000, 21_000, 59_000, 114_000, 116_000];
/// Spans around which something changes at the backend: at once, within a read's deadline, behind it.
const SPANS_MS: [u64; 6] = [0, 1, 700, 4_000, 9_000, 30_000];

/// What is put around a scenario.
pub(super) struct Provided {
    pub(super) options: Options,
    pub(super) table: PluginTable,
    pub(super) backend: BackendTable,
    pub(super) faults: Vec<Fault>,
    /// Before what the other parts have drawn.
    pub(super) before: Vec<Step>,
    /// Behind it.
    pub(super) after: Vec<Step>,
}

/// Draws them, for one half of all seeds.
pub(super) fn draw(seed: u64, swarm: &Swarm) -> Option<Provided> {
    let own = &mut stream(seed, "provided");
    if !own.chance(1, 2) {
        return None;
    }
    let acquire = weighted(own, &ACQUIRES);
    // Whether mu counts who uses a host.
    let counted = own.chance(1, 2);
    let table = table(acquire, "vault-1", counted);
    let backend = backend(own, acquire);
    let faults = faults(&mut stream(seed, "provided/faults"), swarm);
    let own = &mut stream(seed, "provided/steps");
    let options = Options {
        counted,
        changes: own.chance(1, 4),
        network: own.chance(1, 2),
        ends: own.chance(3, 4),
        overlap: own.chance(1, 2),
        // What is in flight for a time is asked about at all times.
        time: own.chance(1, 3) || in_flight_ms(acquire).is_some() && own.chance(1, 2),
        hosts: own.chance(1, 3),
        disk: own.chance(1, 5),
    };
    let mut before = vec![run(format!("mu plugin add {NAME} -- {{{NAME}}}"))];
    let has_last_word = own.chance(1, 6);
    let mut operator = Operator::new(own, &HOSTS, has_last_word);
    before.extend(steps(own, &options, &mut operator, acquire));
    let after = if own.chance(1, 2) { steps(own, &options, &mut operator, acquire) } else { Vec::new() };
    Some(Provided { options, table, backend, faults, before, after })
}

/// What may happen at all.
#[derive(Debug)]
pub(super) struct Options {
    /// mu counts who uses a host.
    counted: bool,
    /// The plugin may become that of another backend.
    changes: bool,
    network: bool,
    /// mu, the plugin or the power may end anywhere.
    ends: bool,
    overlap: bool,
    time: bool,
    /// Machines may end or change by themselves.
    hosts: bool,
    disk: bool,
}

fn run(run: String) -> Step {
    Step { run: Some(run), ..Step::default() }
}

/// A provider that offers this, of this instance.
fn table(acquire: &str, instance: &str, counted: bool) -> PluginTable {
    let acquire: Table = toml::from_str(&format!("acquire = {acquire}")).expect("written here");
    PluginTable {
        seams: vec![Seam::Link, Seam::Host, Seam::Job],
        link: counted.then(|| Table::from_iter([("slots".to_owned(), Value::from("mu"))])),
        host: Some(acquire),
        declare: Some(Table::from_iter([("instance".to_owned(), Value::from(instance))])),
        ..PluginTable::default()
    }
}

/// Milliseconds for which an acquire may be in flight unseen, by what is declared.
fn in_flight_ms(acquire: &str) -> Option<u64> {
    let table = table(acquire, "", false).host?;
    u64::try_from(table.get("acquire")?.get("inFlightMs")?.as_integer()?).ok()
}

/// A backend that keeps what its plugin promises.
fn backend(stream: &mut Stream, acquire: &str) -> BackendTable {
    let mut table = BackendTable::default();
    if stream.chance(1, 3) {
        table.acquire_ms = Some(one_of(stream, &SPANS_MS));
    }
    if stream.chance(1, 4) {
        table.release_ms = Some(one_of(stream, &SPANS_MS));
    }
    if stream.chance(1, 3) {
        table.land_ms = Some(landing(stream, acquire));
    }
    if stream.chance(1, 4) {
        table.net_ms = Some(one_of(stream, &[0, 1, 40, 900]));
    }
    if stream.chance(1, 4) {
        table.deadline_ms = Some(magnitude(stream, 10_000_000) as i64);
    }
    table
}

/// The time within which an acquire must have landed, where nothing else bars it.
fn promised_ms(acquire: &str) -> Option<u64> {
    in_flight_ms(acquire).filter(|_| !acquire.contains("fenceKey = true"))
}

/// How late an acquire lands: within the time that is declared for it.
fn landing(stream: &mut Stream, acquire: &str) -> u64 {
    magnitude(stream, promised_ms(acquire).map_or(60_000, |ms| ms / 4))
}

/// Up to two faults of its calls; none that says what is not so.
fn faults(stream: &mut Stream, swarm: &Swarm) -> Vec<Fault> {
    let mut entries = catalogue();
    let is_known = |entry: &Entry| entry.methods.iter().any(|method| METHODS.contains(method));
    entries.retain(|entry| {
        let large = matches!(entry.name, "line-1mib" | "line-1mib-and-1" | "nesting" | "endless-line");
        is_known(entry) && !large && !matches!(entry.topic, Topic::Secret)
    });
    let count = weighted(stream, &[(2, 0), (3, 1), (2, 2)]);
    // Those that only a provider can have are few among many.
    let own: Vec<&Entry> = entries.iter().filter(|entry| !entry.methods.contains(&"initialize")).collect();
    let topics: Vec<Topic> =
        entries.iter().map(|entry| entry.topic).collect::<BTreeSet<_>>().into_iter().collect();
    let one = |stream: &mut Stream| {
        // Most faults are about bytes; the others are to be as likely.
        let topic = one_of(stream, &topics);
        let about: Vec<&Entry> = entries.iter().filter(|entry| entry.topic == topic).collect();
        let among = if stream.chance(1, 3) { &own } else { &about };
        let entry = one_of(stream, among);
        let act = faults::parameter(stream, swarm, entry.examples[0].clone());
        let mut fault = Fault::new(NAME, act);
        let met: Vec<(u64, &str)> = [4, 2, 2, 1, 1]
            .into_iter()
            .zip(METHODS)
            .filter(|(_, method)| entry.methods.contains(method))
            .collect();
        fault.on = Some(weighted(stream, &met).to_owned());
        fault.when = stream.chance(1, 2).then(|| one_of(stream, entry.moments));
        if !fault.moment().is_of_a_request() {
            fault.on = None;
        }
        fault.nth = stream.chance(1, 6).then_some(2);
        fault.start = stream.chance(1, 2).then(|| stream.between(2, 5) as u32);
        if entry.topic == Topic::Error && stream.chance(1, 2) {
            (fault.nth, fault.start) = (None, stream.chance(1, 2).then_some(2));
        }
        (fault, entry.topic)
    };
    let drawn = (0..count).map(|_| one(stream)).collect::<Vec<_>>().into_iter();
    let honest = |(fault, topic): &(Fault, Topic)| fault.check().is_ok() && !is_lie(fault, *topic);
    let mut drawn: Vec<Fault> = drawn.filter(honest).map(|(fault, _)| fault).collect();
    if stream.chance(1, 10) {
        // It stays when its mu is gone.
        drawn.push(Fault::new(NAME, Act::IgnoreStop));
    }
    drawn
}

/// What a plugin may not say, so that nobody could be right about it.
fn is_lie(fault: &Fault, topic: Topic) -> bool {
    // An answer to an effect that has not been tried: `null` says that a host is released.
    let speaks = matches!(topic, Topic::Bytes | Topic::Delivery | Topic::Error | Topic::Answer);
    let is_effect = matches!(fault.on.as_deref(), Some("host.acquire" | "host.release"));
    if speaks && is_effect && fault.moment() == When::BeforeReply {
        return true;
    }
    let done = fault.moment() == When::AfterEffect;
    match fault.act {
        Act::LookupNone
        | Act::StatusGone
        | Act::FoundOtherHandle
        | Act::StatusOtherHandle
        | Act::PaddedString(_)
        | Act::NulEscaped
        | Act::SplitChar => true,
        Act::ErrorRetryable | Act::ErrorPermanent | Act::ErrorHuman => {
            // Of a repeat it says that what was sent before never happens, and that may be on its way. The first to be
            // asked repeats nothing, nor does one that never asks.
            let repeats = fault.nth.is_some() || fault.start.is_some_and(|start| start != 2);
            done || is_effect && repeats
        }
        _ => false,
    }
}

fn steps(stream: &mut Stream, options: &Options, operator: &mut Operator, acquire: &str) -> Vec<Step> {
    let count = weighted(stream, &[(3, 1), (4, 2), (3, 3), (1, 5)]);
    let mut running = 0;
    let mut all = Vec::new();
    for _ in 0..count {
        let host = operator.host(stream);
        let next = operator.next(stream);
        let mut step = verb(stream, options, acquire, host, next);
        around(stream, options, acquire, host, &mut step);
        let ends = options.ends && stream.chance(1, 2);
        if ends {
            end(stream, &mut step);
        }
        operator.did(next, ends);
        if step.backend_do.iter().any(|deed| deed.deed == BackendDeed::Lose) {
            operator.hears_of_the_end(host);
        }
        if options.disk && stream.chance(1, 3) {
            let errno = one_of(stream, &DiskErrno::ALL);
            step.disk_error =
                Some(DiskError { at: magnitude(stream, LAST_POINT), errno, stays: stream.chance(1, 2) });
        }
        step.overlap = options.overlap && running < 2 && stream.chance(1, 2);
        running = if step.overlap { running + 1 } else { 0 };
        all.push(step);
        if options.disk && running == 0 {
            all.push(Step { db: Some(Db::Restored), ..Step::default() });
        }
    }
    all.last_mut().into_iter().for_each(|last| last.overlap = false);
    all
}

/// A verb of the operator as a step.
fn verb(stream: &mut Stream, options: &Options, acquire: &str, host: &str, verb: &str) -> Step {
    let json = if stream.chance(1, 2) { " --json" } else { "" };
    let mut step = run(match verb {
        "acquire" => {
            let size = if stream.chance(1, 3) { " --param size=2" } else { "" };
            format!("mu host acquire {host} --provider {NAME}{size}{json}")
        }
        "exec" => {
            let script = one_of(stream, &["echo hello", "echo hello", "sleep 2", "sleep 60"]);
            format!("mu host exec {host}{json} -- '{script}'")
        }
        "effects" => format!("mu effect list{json}"),
        "resolve" => format!("mu effect resolve {{key}}{json}"),
        "word" => {
            let word = one_of(stream, &["undone", "done", "done --handle vm-1"]);
            format!("mu effect resolve {{key}} --as {word} --because 'it was looked at'{json}")
        }
        "list" => format!("mu host list{json}"),
        "add" => format!("mu plugin add {NAME} -- {{{NAME}}}"),
        verb => format!("mu host {verb} {host}{json}"),
    });
    if verb == "add" && options.changes {
        let instance = one_of(stream, &["vault-1", "vault-2"]);
        step.plan.insert(NAME.to_owned(), table(acquire, instance, options.counted));
    }
    if verb == "acquire" && stream.chance(1, 4) {
        let ms = one_of(stream, &["1", "2000", "20000"]);
        step.env.insert("MU_DEADLINE_HOST_ACQUIRE_MS".to_owned(), ms.to_owned());
    }
    step
}

/// What happens before the run, or around it.
fn around(stream: &mut Stream, options: &Options, acquire: &str, host: &str, step: &mut Step) {
    if options.network && stream.chance(1, 3) {
        let deeds =
            [NetDeed::Reset, NetDeed::Delay, NetDeed::Partition, NetDeed::ToBackend, NetDeed::ToPlugin];
        // What a network holds back it may deliver when it is whole again, later than was promised.
        let (deeds, delays) = match promised_ms(acquire) {
            Some(_) => (&deeds[..2], &[40, 900][..]),
            None => (&deeds[..], &[40, 900, 9_000][..]),
        };
        let (deed, at_ms) = (one_of(stream, deeds), one_of(stream, &[0, 1, 2, 3, 700]));
        let heal = NetAt { deed: NetDeed::Heal, at_ms: at_ms + magnitude(stream, 60_000), ms: None };
        let ms = (deed == NetDeed::Delay).then(|| one_of(stream, delays));
        step.net = vec![NetAt { deed, at_ms, ms }, heal];
    }
    if stream.chance(1, 6) {
        let land_ms = if stream.chance(1, 2) { 0 } else { landing(stream, acquire) };
        step.backend_set = Some(BackendTable { land_ms: Some(land_ms), ..BackendTable::default() });
    }
    if options.hosts && stream.chance(1, 4) {
        let deeds = [
            BackendDeed::Lose,
            BackendDeed::NeedsHuman,
            BackendDeed::Unsure,
            BackendDeed::Well,
            BackendDeed::Rename,
        ];
        let deed = json!({ "do": one_of(stream, &deeds).name(), "host": host });
        let deed: BackendAt = serde_json::from_value(deed).expect("it has all that it needs");
        step.backend_do = vec![BackendAt { at_ms: one_of(stream, &[0, 2, 700]), ..deed }];
    }
    if options.time && stream.chance(1, 3) {
        match stream.below(5) {
            0 if stream.chance(1, 2) => step.advance_ms = Some(magnitude(stream, 200_000)),
            0 => step.advance_ms = Some(one_of(stream, &LAPSES_MS)),
            1 => step.reboot = true,
            2 => {
                let suspend_ms = Some(magnitude(stream, 200_000));
                step.world =
                    vec![WorldAt { suspend_ms, at_ms: one_of(stream, &[0, 3, 900]), ..WorldAt::default() }];
            }
            3 => {
                let lock_ms = Some(one_of(stream, &[1, 50, 600, 3_000, 11_000]));
                step.world = vec![WorldAt {
                    lock_ms,
                    at_ms: one_of(stream, &[0, 1, 2, 3, 900]),
                    ..WorldAt::default()
                }];
            }
            _ => {
                let ms = magnitude(stream, 1_000_000) as i64;
                step.wall_step_ms = Some(if stream.chance(1, 2) { -ms } else { ms });
            }
        }
    }
}

/// The step's mu, its plugin or its machine comes to an end.
fn end(stream: &mut Stream, step: &mut Step) {
    let point = magnitude(stream, LAST_POINT);
    match stream.below(10) {
        0 | 1 => step.kill_at_call = Some(point),
        2 | 3 => step.kill_at_disk = Some(point),
        4 => step.power_at_call = Some(point),
        5 => step.power_at_disk = Some(point),
        6 | 7 => drop(step.kill_plugin_at.insert(NAME.to_owned(), magnitude(stream, LAST_ACT))),
        _ => {
            let to = one_of(stream, &["mu", "mu", NAME]);
            let what = one_of(stream, &[Sig::Kill, Sig::Term, Sig::Int, Sig::Stop]);
            // A mu that is stopped would keep its step from ending.
            let what = if to == "mu" && what == Sig::Stop { Sig::Kill } else { what };
            let at_ms = one_of(stream, &[0, 1, 2, 3, 4, 700, 5_000]);
            step.signal = vec![SignalAt { to: to.to_owned(), what, at_ms }];
        }
    }
}

/// Nothing goes wrong any more between plugin and backend, and whoever still lives is killed: for the step that begins an
/// ending.
pub(super) fn calm(provided: &Provided, drawn: &[Step], calm: &mut Step) {
    calm.plan.insert(NAME.to_owned(), provided.table.clone());
    calm.backend_set = Some(super::sweep::calm_backend());
    calm.net = vec![super::sweep::HEALED];
    // As long as anything can lie anywhere.
    calm.advance_ms = Some(200_000);
    calm.wall_step_ms = Some(super::sweep::behind_ms(drawn)).filter(|ms| *ms != 0);
    calm.end_all = true;
}

/// All hosts are asked for, and what stays open has its reason; where it `goes_on`, a new one can be made and given back.
pub(super) fn ending(must: &dyn Fn(String) -> Step, goes_on: bool) -> Vec<Step> {
    let ask = |name: &&str| run(format!("mu host status {name} --json"));
    let mut steps: Vec<Step> = HOSTS.iter().map(ask).collect();
    steps.push(Step { advance_ms: Some(QUIET_MS), ..Step::default() });
    steps.extend(HOSTS.iter().map(ask));
    steps.push(Step { converged: true, ..must("mu effect list --json".into()) });
    if goes_on {
        steps.push(must(format!("mu host acquire last --provider {NAME}")));
        steps.push(must("mu host exec last -- 'echo done'".into()));
        steps.push(must("mu host release last".into()));
    }
    steps
}

/// The plugins with the provider among them.
pub(super) fn with(
    plugins: &BTreeMap<String, PluginTable>,
    provided: &Provided,
) -> BTreeMap<String, PluginTable> {
    let mut plugins = plugins.clone();
    plugins.insert(NAME.to_owned(), provided.table.clone());
    plugins
}
