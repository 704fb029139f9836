//! One scenario in one world: its steps carried out, what each expects held against what came.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;

use mu_core::invocation::{Invocation, Start};
use mu_core::os::{Exit, Os};
use serde_json::Value;

use crate::backend::Control;
use crate::fake::{Act, Fault, Group, Plan, PluginTable, Sig, Until, When, schema_digest};
use crate::kernel::Options;
use crate::oracle::{Excuses, Leak, Violation};
use crate::scenario::{Scenario, Step, WorldAt};
use crate::sim_os::SimOs;
use crate::trace::{Digest, Timeline};
use crate::world::{
    AtCall, AtDisk, Cannot, Course, Executables, Meanwhile, Outcome, Real, Run, Simulated, World,
};

/// Something that did not come out as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A step's expectation.
    Expectation {
        /// Which step, from 1.
        step: usize,
        /// One sentence.
        text: String,
    },
    /// Something of a step that could not happen, so that the file shows nothing.
    Missed {
        /// Which step, from 1.
        step: usize,
        /// One sentence.
        text: String,
    },
    /// A step's mu did not come to its end: a deadlock, or the budget of the run is spent.
    Stuck {
        /// Which step, from 1.
        step: usize,
        /// One sentence.
        text: String,
    },
    /// An oracle's invariant.
    Violation(Violation),
    /// A fault of the file that never took effect, so that the file shows nothing.
    Inert {
        /// The plugin.
        plugin: String,
        /// The fault's name.
        fault: String,
    },
}

impl Finding {
    /// Whether it is one when nobody wrote the scenario to show something: what never takes effect and what cannot happen
    /// is none then.
    pub fn counts_when_drawn(&self) -> bool {
        !matches!(self, Finding::Inert { .. } | Finding::Missed { .. })
    }

    /// What did not hold, without the rule.
    pub fn sentence(&self) -> String {
        match self {
            Finding::Expectation { step, text }
            | Finding::Missed { step, text }
            | Finding::Stuck { step, text } => format!("step {step}: {text}"),
            Finding::Violation(Violation { text, at: None, .. }) => text.clone(),
            Finding::Violation(Violation { text, at: Some(at), .. }) => {
                format!("{text} (at {}.{:06} s)", at / 1_000_000_000, at % 1_000_000_000 / 1_000)
            }
            Finding::Inert { plugin, fault } => format!("fault `{fault}` of {plugin} never took effect"),
        }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Finding::Violation(violation) = self {
            write!(f, "oracle {}, rule {}: ", violation.oracle, violation.rule)?;
        }
        f.write_str(&self.sentence())
    }
}

/// What of a run is kept for readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// Nothing.
    #[default]
    Nothing,
    /// The transcript: time, who, what.
    Transcript,
    /// The same as a list.
    Timeline,
    /// Every single event, one a line.
    Events,
}

/// How a scenario is played on the simulated machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// What is kept for readers.
    pub show: Show,
    /// The scenario was drawn and not written: what never takes effect and what cannot happen is no finding.
    pub drawn: bool,
    /// Every call and operation of each mu and every act of each plugin is written down.
    pub courses: bool,
    /// The timeline tells what stands in mu's tables whenever that changes.
    pub journal: bool,
}

/// Takes out the faults that never took effect: in a file they are mistakes, and the run is the same without them.
pub fn drop_inert(scenario: &mut Scenario, findings: &[Finding]) {
    scenario.faults.retain(|one| {
        !findings.iter().any(|finding| match finding {
            Finding::Inert { plugin, fault } => *plugin == one.plugin && fault == one.act.name(),
            _ => false,
        })
    });
}

/// A scenario that was played.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// What is wrong; nothing when all held.
    pub findings: Vec<Finding>,
    /// The fingerprint of everything that happened; simulated worlds only.
    pub chain: Option<Digest>,
    /// How many events there were; simulated worlds only.
    pub events: u64,
    /// Virtual time that passed; simulated worlds only.
    pub virtual_time: Duration,
    /// How often each fault took effect, by its name.
    pub fired: BTreeMap<String, u64>,
    /// What was asked for to be shown.
    pub transcript: Option<String>,
    /// The same as a list, if that was asked for.
    pub timeline: Option<Timeline>,
    /// What each mu called and each plugin did, if that was asked for.
    pub courses: Vec<Course>,
    /// A scripted error on the disk was followed, until the disk was mended, by nothing that could have failed like it.
    pub failed_alone: bool,
}

/// Plays a scenario on the simulated machine.
///
/// # Errors
/// The scenario asks for what this world cannot do, which is a mistake in the file.
pub fn simulated(scenario: &Scenario, setting: Setting) -> Result<Played, Cannot> {
    simulated_in(world_of(scenario), scenario, setting)
}

/// Plays a scenario on the simulated machine whose first run is not what its command line says but `verb`: below the
/// verbs of mu, with the plugins of the scenario, by name. All the rest of the step holds, and every oracle. The answer of
/// `verb` is `None` when it did not come to its end. As every mu, this one exits with 0 or dies of the signal that came.
///
/// # Errors
/// As [`simulated`].
pub fn with_verb<T: 'static>(
    scenario: &Scenario,
    setting: Setting,
    verb: impl AsyncFnOnce(Invocation<SimOs>, BTreeMap<String, Start>) -> T + 'static,
) -> Result<(Option<T>, Played), Cannot> {
    let mut world = world_of(scenario);
    let start = |(name, table): (&String, &PluginTable)| {
        let argv = vec![format!("{}/{}", world.place("dir"), table.file.basename(name))];
        (name.clone(), Start { name: name.clone(), argv, recorded: None, needs: Vec::new() })
    };
    let starts = scenario.plugins.iter().map(start).collect();
    let answer = Rc::new(RefCell::new(None));
    let slot = Rc::clone(&answer);
    world.run_instead(|sys| async move {
        let os = SimOs::new(sys);
        let invocation = Invocation::new(os.clone());
        let result = invocation.run(verb(invocation.clone(), starts)).await;
        slot.replace(Some(result));
        let signal = invocation.signal();
        signal.inspect(|signal| os.raise_default(*signal));
        Exit::Status(signal.map_or(0, |signal| 128 + signal.number()))
    });
    let played = simulated_in(world, scenario, setting)?;
    Ok((answer.take(), played))
}

fn world_of(scenario: &Scenario) -> Simulated {
    let options = Options { short_io: scenario.short_io, ..Options::new(scenario.seed) };
    let world = if scenario.used { Simulated::used(options) } else { Simulated::new(options) };
    world.machine().disk().set_pooled(scenario.pooled);
    world
}

fn simulated_in(mut world: Simulated, scenario: &Scenario, setting: Setting) -> Result<Played, Cannot> {
    if setting.courses {
        world.keep_courses();
    }
    if setting.journal {
        world.keep_journal();
    }
    let (mut findings, fired) = play(scenario, &mut world)?;
    if setting.drawn {
        findings.retain(Finding::counts_when_drawn);
    }
    let traits = Traits::of(scenario);
    let violations = world.judge(&traits.stubborn, traits.leak, traits.excuses);
    findings.extend(violations.into_iter().map(Finding::Violation));
    let (courses, failed_alone) = (world.courses(), world.failed_alone());
    let timeline = (setting.show == Show::Timeline).then(|| world.timeline());
    let machine = world.machine();
    Ok(Played {
        courses,
        failed_alone,
        findings,
        chain: Some(machine.digest()),
        events: machine.event_count(),
        virtual_time: machine.now(),
        fired,
        timeline,
        transcript: match setting.show {
            Show::Nothing | Show::Timeline => None,
            Show::Transcript => Some(crate::trace::transcript(&machine.events())),
            Show::Events => Some(machine.events().iter().map(|event| format!("{event}\n")).collect()),
        },
    })
}

/// Plays a scenario with real processes.
///
/// # Errors
/// This machine or this user cannot do what the scenario asks for.
pub fn real(scenario: &Scenario, executables: &Executables) -> Result<Played, Cannot> {
    let mut world = Real::new(executables.clone()).map_err(|error| Cannot(error.to_string()))?;
    if scenario.used {
        world.make_used()?;
    }
    let (mut findings, fired) = play(scenario, &mut world)?;
    let traits = Traits::of(scenario);
    let violations = world.judge(&traits.stubborn, traits.leak, traits.escaping);
    findings.extend(violations.into_iter().map(Finding::Violation));
    Ok(Played { findings, fired, ..Played::default() })
}

/// What the script makes of its plugins, for the oracles.
struct Traits {
    /// Plugins that do not end with their stdin when nobody kills them.
    stubborn: BTreeSet<String>,
    /// How far one gives away its environment.
    leak: Leak,
    /// One leaves its group.
    escaping: bool,
    /// What no mu could make good.
    excuses: Excuses,
}

impl Traits {
    fn of(scenario: &Scenario) -> Traits {
        let faults = &scenario.faults;
        let is_stubborn = |act: &Act| match act {
            // Such a child ends with the stdin that it holds.
            Act::LeaveChild(child) => child.until != Until::Eof,
            act => matches!(
                act,
                Act::StdinUnread
                    | Act::StdinClosed
                    | Act::IgnoreStop
                    | Act::StopSelf
                    | Act::ExitLeavingStdoutHeld(_)
                    | Act::ExitLeavingEscaped(_)
                    | Act::DelayMs(_)
                    | Act::DribbleMs(_)
                    | Act::AfterTimeoutMs(_)
            ),
        };
        let leaks = |fault: &Fault| match fault.act {
            Act::LeakEnvReply(_) if fault.method() == "initialize" => Leak::Stored,
            Act::LeakEnvReply(_) | Act::LeakEnvStderr(_) => Leak::Shown,
            _ => Leak::Nothing,
        };
        let escapes = |act: &Act| match act {
            Act::ExitLeavingEscaped(_) => true,
            Act::LeaveChild(child) => child.group == Group::Setsid,
            _ => false,
        };
        // What is still to be done after the end of stdin keeps a plugin.
        let waits = |one: &Fault| one.moment() == When::OnEof && one.after_ms.is_some();
        let by_fault = faults.iter().filter(|one| is_stubborn(&one.act) || waits(one)).map(|one| &one.plugin);
        let signals = scenario.steps.iter().flat_map(|step| &step.signal);
        let by_signal = signals.filter(|one| one.what == Sig::Stop).map(|one| &one.to);
        Traits {
            stubborn: by_fault.chain(by_signal).cloned().collect(),
            leak: faults.iter().map(leaks).max().unwrap_or_default(),
            escaping: faults.iter().any(|one| escapes(&one.act)),
            excuses: Excuses::of(scenario),
        }
    }
}

/// A step whose mu was started and not yet waited for.
struct Begun<'a> {
    number: usize,
    step: &'a Step,
    started: usize,
    /// How many processes of each plugin there had been.
    before: BTreeMap<String, usize>,
}

/// Findings, and how often each fault took effect.
type Carried = (Vec<Finding>, BTreeMap<String, u64>);

fn play(scenario: &Scenario, world: &mut impl World) -> Result<Carried, Cannot> {
    for (name, table) in &scenario.plugins {
        world.install(name, &table.file)?;
        world.set_plan(name, plan(name, table, &scenario.faults)?)?;
    }
    if scenario.steps.iter().any(Step::uses_repo) {
        world.make_repo()?;
    }
    if scenario.uses_backend() {
        world.set_backend(&scenario.backend.clone().unwrap_or_default())?;
    }
    let mut missed = 0;
    let mut standing: Vec<(usize, &Step)> = Vec::new();
    let mut plugins = scenario.plugins.clone();
    let mut faults: &[Fault] = &scenario.faults;
    let mut findings = Vec::new();
    let mut begun: Vec<Begun<'_>> = Vec::new();
    for (index, step) in scenario.steps.iter().enumerate() {
        plugins.extend(step.plan.clone());
        let mut changed: Vec<&String> = step.plan.keys().collect();
        if step.calm && !faults.is_empty() {
            faults = &[];
            changed = plugins.keys().collect();
        }
        for name in changed {
            world.set_plan(name, plan(name, &plugins[name], faults)?)?;
        }
        change(step, world)?;
        let key = step.names_key().then(|| open_key(world)).transpose();
        let key = key.unwrap_or_else(|text| {
            findings.push(Finding::Missed { step: index + 1, text });
            None
        });
        let place = |what: &str| match what {
            "key" => key.clone().unwrap_or_else(|| "no-open-effect".to_owned()),
            what => world.place(what),
        };
        standing.extend(step.expects_state().then_some((index + 1, step)));
        if let Some(argv) = step.argv(&place) {
            let argv = argv.map_err(|error| Cannot(error.to_string()))?;
            let before = scenario.plugins.keys().map(|name| (name.clone(), world.starts(name))).collect();
            let started = world.start(&run(index + 1, step, argv))?;
            begun.push(Begun { number: index + 1, step, started, before });
        }
        if step.overlap {
            continue;
        }
        let outcomes: Vec<_> = begun.iter().map(|one| world.finish(one.started)).collect();
        for one in &begun {
            let idle = world.idle(one.started).into_iter();
            findings.extend(idle.map(|text| Finding::Missed { step: one.number, text }));
        }
        for (one, outcome) in begun.drain(..).zip(outcomes) {
            let step = one.number;
            match outcome {
                Ok(outcome) => {
                    let texts = differences(one.step, &outcome, &one.before, world);
                    findings.extend(texts.into_iter().map(|text| Finding::Expectation { step, text }));
                }
                Err(report) => findings.push(Finding::Stuck { step, text: report.replace('\n', "; ") }),
            }
        }
        for (number, step) in standing.drain(..) {
            let texts = state_differences(step, world)?;
            findings.extend(texts.into_iter().map(|text| Finding::Expectation { step: number, text }));
        }
        if scenario.uses_backend() {
            let all = world.books()?.missed;
            let new = all.iter().skip(missed).cloned();
            findings.extend(new.map(|text| Finding::Missed { step: index + 1, text }));
            missed = all.len();
        }
        world.end_of_step();
        if step.converged {
            let texts = world.unconverged(Excuses::of(scenario))?;
            findings.extend(texts.into_iter().map(|text| Finding::Expectation { step: index + 1, text }));
        }
    }
    let mut fired = BTreeMap::new();
    for name in scenario.plugins.keys().flat_map(|plugin| world.fired(plugin)) {
        *fired.entry(name).or_default() += 1;
    }
    for fault in &scenario.faults {
        if !world.fired(&fault.plugin).iter().any(|name| name == fault.act.name()) {
            let (plugin, fault) = (fault.plugin.clone(), fault.act.name().to_owned());
            findings.push(Finding::Inert { plugin, fault });
        }
    }
    Ok((findings, fired))
}

fn plan(name: &str, table: &PluginTable, faults: &[Fault]) -> Result<Plan, Cannot> {
    // Computed here and not taken from the host: the plugin has it from the file.
    static SCHEMA: LazyLock<String> = LazyLock::new(|| schema_digest(mu_protocol::schema::SCHEMA.as_bytes()));
    Plan::new(name, table, faults, &SCHEMA).map_err(|error| Cannot(error.to_string()))
}

/// The key of the one open effect, for a command line.
fn open_key(world: &impl World) -> Result<String, String> {
    let mut keys = world.rows()?.effects;
    match (keys.pop(), keys.len()) {
        (Some(key), 0) => Ok(key),
        (None, _) => Err("`{key}` stands for the one open effect, and there is none".to_owned()),
        (Some(_), more) => {
            Err(format!("`{{key}}` stands for the one open effect, and there are {}", more + 1))
        }
    }
}

/// Where the books of the backend and mu's tables differ from what the step expects.
fn state_differences(step: &Step, world: &impl World) -> Result<Vec<String>, Cannot> {
    let mut all = Vec::new();
    if !step.backend.is_empty() {
        let books = world.books()?;
        all.extend(step.backend.iter().flat_map(|counts| books.mismatches(counts)));
    }
    if step.effects.is_some() || step.records.is_some() {
        match world.rows() {
            Ok(rows) => all.extend(step.row_mismatches(&rows.effects, &rows.records)),
            Err(reason) => all.push(reason),
        }
    }
    Ok(all)
}

/// What happens at the backend and on the way to it in this step, and when after its start.
fn controls(step: &Step) -> impl Iterator<Item = (u64, Control)> {
    let deeds = step.backend_do.iter().map(|one| (one.at_ms, Control::Do(one.clone())));
    deeds.chain(step.net.iter().map(|one| (one.at_ms, Control::Net(one.clone()))))
}

fn change(step: &Step, world: &mut impl World) -> Result<(), Cannot> {
    if step.reboot {
        world.reboot()?;
    }
    if step.recycle {
        world.recycle()?;
    }
    if let Some(table) = &step.backend_set {
        world.control(&Control::Set(table.clone()))?;
    }
    for (name, file) in &step.file {
        world.install(name, file)?;
    }
    for (name, mode) in &step.chmod {
        world.chmod(name, mode.0)?;
    }
    if let Some(db) = step.db {
        world.set_db(db)?;
    }
    if let Some(repo) = &step.repo {
        world.set_fetch_head(&repo.fetch_head)?;
    }
    if let Some(ms) = step.advance_ms {
        world.advance(Duration::from_millis(ms));
    }
    if let Some(ms) = step.wall_step_ms {
        world.step_wall(ms)?;
    }
    for (_, control) in controls(step).filter(|(at_ms, _)| *at_ms == 0) {
        world.control(&control)?;
    }
    if step.end_all { world.end_all() } else { Ok(()) }
}

fn run(number: usize, step: &Step, argv: Vec<String>) -> Run {
    let ms = Duration::from_millis;
    Run {
        step: number,
        argv,
        env: step.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        signals: step.signal.iter().map(|one| (ms(one.at_ms), one.to.clone(), one.what.number())).collect(),
        meanwhile: step.world.iter().map(|one| (ms(one.at_ms), meanwhile(one))).collect(),
        controls: controls(step).filter(|(at_ms, _)| *at_ms > 0).map(|(at, what)| (ms(at), what)).collect(),
        at_call: (step.kill_at_call.map(AtCall::Kill))
            .or(step.panic_at_call.map(AtCall::Panic))
            .or(step.power_at_call.map(AtCall::PowerOff)),
        at_disk: step.kill_at_disk.map(AtDisk::Kill).or(step.power_at_disk.map(AtDisk::PowerOff)),
        disk_error: step.disk_error,
        plugin_ends: step.kill_plugin_at.iter().map(|(name, at)| (name.clone(), *at)).collect(),
        stdout_closed_after: step.stdout_closed.then_some(0),
    }
}

fn meanwhile(change: &WorldAt) -> Meanwhile {
    let ms = Duration::from_millis;
    match *change {
        WorldAt { wall_step_ms: Some(by_ms), .. } => Meanwhile::StepWall(by_ms),
        WorldAt { lock_ms: Some(for_ms), .. } => Meanwhile::Lock(ms(for_ms)),
        WorldAt { suspend_ms, .. } => Meanwhile::Suspend(ms(suspend_ms.unwrap_or(0))),
    }
}

fn differences(
    step: &Step,
    outcome: &Outcome,
    before: &BTreeMap<String, usize>,
    world: &impl World,
) -> Vec<String> {
    let mut all = Vec::new();
    let stdout = String::from_utf8_lossy(&outcome.stdout);
    let stderr = String::from_utf8_lossy(&outcome.stderr);
    let wanted = step.exit.map(|status| Exit::Status(i32::from(status)));
    let wanted = wanted.or(step.died_of.map(|sig| Exit::Signal(sig.number())));
    if let Some(wanted) = wanted.filter(|wanted| *wanted != outcome.exit) {
        all.push(format!("it ended with {}, not {wanted}; stderr: {}", outcome.exit, stderr.trim_end()));
    }
    if step.expects_json() {
        match serde_json::from_str::<Value>(&stdout) {
            Ok(envelope) => all.extend(step.json_mismatches(&envelope)),
            Err(error) => all.push(format!("stdout is no JSON: {error}")),
        }
    }
    all.extend(step.stdout.iter().flat_map(|text| text.mismatches("stdout", &stdout)));
    all.extend(step.stderr.iter().flat_map(|text| text.mismatches("stderr", &stderr)));
    all.extend(step.time_mismatches(outcome.took.as_millis() as u64));
    for (plugin, wanted) in &step.starts {
        let starts = world.starts(plugin) - before[plugin];
        if starts as u32 != *wanted {
            all.push(format!("{plugin} was started {starts} times, not {wanted}"));
        }
    }
    if step.fetch_head.is_some() {
        let held = world.fetch_head().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        all.extend(step.fetch_head_mismatch(held.as_deref()));
    }
    for wire in &step.wire {
        let since = before[&wire.plugin];
        let heard = world.wire(&wire.plugin);
        let heard: Vec<&String> = match wire.start {
            Some(start) => heard.get(start as usize - 1).into_iter().flatten().collect(),
            None => heard.iter().skip(since).flatten().collect(),
        };
        if heard != wire.methods.iter().collect::<Vec<_>>() {
            all.push(format!("{} read the lines {heard:?}, not {:?}", wire.plugin, wire.methods));
        }
    }
    all
}
