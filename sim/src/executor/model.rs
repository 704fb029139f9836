//! The executor beside a naive model of it: the same scripts, the same draws, the same steps.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

const PLACES: usize = 5;

/// What a task, or somebody outside, does. Places beyond the tasks that there are mean nobody.
#[derive(Clone, Debug)]
enum Act {
    Wake(usize),
    WakeItself,
    Sleep(u64),
    CancelSleep,
    Pause(usize),
    Resume(usize),
    Kill(usize),
    Spawn(Script),
}

/// For each poll what the task does in it; the last poll ends it.
type Script = Vec<Vec<Act>>;

/// What one step did, without the values of the executor's own types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Polled(usize),
    Ended(usize),
    Jumped(u64),
    Limit(u64),
    Idle,
}

/// The executor, and what its tasks share.
struct Real {
    executor: Executor<()>,
    /// The waker of each place, as its tasks were last polled with.
    wakers: RefCell<[Option<Waker>; MAX_TASKS]>,
}

impl Real {
    fn spawn(self: &Rc<Self>, script: Script) {
        let (real, place) = (self.clone(), Rc::new(Cell::new(usize::MAX)));
        let (own, mut polls, mut sleep) = (place.clone(), script.into_iter(), None);
        let task = self.executor.spawn(Box::pin(poll_fn(move |cx| {
            real.wakers.borrow_mut()[own.get()] = Some(cx.waker().clone());
            for act in polls.next().unwrap_or_default() {
                match act {
                    Act::WakeItself => cx.waker().wake_by_ref(),
                    Act::Sleep(span) => {
                        sleep = Some(real.executor.set_timer(real.executor.now() + span, cx.waker().clone()));
                    }
                    Act::CancelSleep => {
                        if let Some(timer) = sleep {
                            real.executor.cancel_timer(timer);
                        }
                    }
                    other => real.act(other),
                }
            }
            if polls.as_slice().is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })));
        place.set(task.expect("room for a few tasks").place());
    }

    /// What can be done from outside too.
    fn act(self: &Rc<Self>, act: Act) {
        let there = |place| place < self.executor.slots.borrow().len();
        match act {
            Act::Wake(place) => {
                if let Some(waker) = &self.wakers.borrow()[place] {
                    waker.wake_by_ref();
                }
            }
            Act::Pause(place) => self.executor.pause(TaskId(place as u16)),
            Act::Resume(place) => self.executor.resume(TaskId(place as u16)),
            Act::Kill(place) if there(place) => self.executor.kill(TaskId(place as u16)),
            Act::Spawn(script) => self.spawn(script),
            Act::Kill(_) | Act::WakeItself | Act::Sleep(_) | Act::CancelSleep => {}
        }
    }

    fn step(&self, limit: u64) -> Done {
        match self.executor.step(limit) {
            Step::Polled(task) => Done::Polled(task.place()),
            Step::Ended(task, ()) => Done::Ended(task.place()),
            Step::Jumped(at) => Done::Jumped(at),
            Step::Limit(at) => Done::Limit(at),
            Step::Idle => Done::Idle,
            Step::Panicked(..) => unreachable!("no script panics"),
        }
    }
}

/// The same by sets and lists.
struct Model {
    now: u64,
    order: Stream,
    /// By place; `None` where it is free.
    tasks: Vec<Option<Task>>,
    ready: BTreeSet<usize>,
    paused: BTreeSet<usize>,
    doomed: BTreeSet<usize>,
    /// Places that a waker is known of.
    known: BTreeSet<usize>,
    /// Instant, number, and the place that is woken.
    timers: Vec<(u64, u64, usize)>,
    timers_made: u64,
}

#[derive(Clone)]
struct Task {
    script: Script,
    polls: usize,
    sleep: Option<u64>,
}

impl Model {
    fn spawn(&mut self, script: Script) {
        let place = self.tasks.iter().position(Option::is_none).unwrap_or(self.tasks.len());
        self.tasks.resize(self.tasks.len().max(place + 1), None);
        self.tasks[place] = Some(Task { script, polls: 0, sleep: None });
        self.doomed.remove(&place);
        self.ready.insert(place);
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Wake(place) if self.known.contains(&place) => drop(self.ready.insert(place)),
            Act::Pause(place) => drop(self.paused.insert(place)),
            Act::Resume(place) => drop(self.paused.remove(&place)),
            Act::Kill(place) if place < self.tasks.len() => drop(self.doomed.insert(place)),
            Act::Spawn(script) => self.spawn(script),
            _ => {}
        }
    }

    fn act_in_poll(&mut self, place: usize, act: Act) {
        let sleep = self.tasks[place].as_ref().and_then(|task| task.sleep);
        match act {
            Act::WakeItself => drop(self.ready.insert(place)),
            Act::Sleep(span) => {
                self.timers.push((self.now + span, self.timers_made, place));
                if let Some(task) = &mut self.tasks[place] {
                    task.sleep = Some(self.timers_made);
                }
                self.timers_made += 1;
            }
            Act::CancelSleep => self.timers.retain(|(_, nth, _)| Some(*nth) != sleep),
            other => self.act(other),
        }
    }

    fn free(&mut self, place: usize) {
        self.tasks[place] = None;
        self.ready.remove(&place);
        self.paused.remove(&place);
        self.doomed.remove(&place);
    }

    fn bury(&mut self) {
        for place in self.doomed.clone() {
            self.free(place);
        }
    }

    fn step(&mut self, limit: u64) -> Done {
        let mut able: Vec<usize> = self.ready.difference(&self.paused).copied().collect();
        let place = match able.len() {
            0 => return self.jump(limit),
            1 => able[0],
            several => able.swap_remove(self.order.below(several as u64) as usize),
        };
        self.ready.remove(&place);
        let Some(Some(task)) = self.tasks.get_mut(place) else { return Done::Polled(place) };
        self.known.insert(place);
        let (acts, polls) = (task.script[task.polls].clone(), task.script.len());
        task.polls += 1;
        let ends = task.polls == polls;
        for act in acts {
            self.act_in_poll(place, act);
        }
        let killed = self.doomed.contains(&place);
        if ends {
            self.free(place);
        }
        self.bury();
        if ends && !killed { Done::Ended(place) } else { Done::Polled(place) }
    }

    fn jump(&mut self, limit: u64) -> Done {
        self.timers.sort_unstable();
        let Some((next, ..)) = self.timers.first().copied() else { return Done::Idle };
        if next > limit {
            return Done::Limit(next);
        }
        self.now = self.now.max(next);
        let (due, later) = self.timers.iter().partition(|(at, ..)| *at <= self.now);
        self.timers = later;
        let due: Vec<(u64, u64, usize)> = due;
        self.ready.extend(due.into_iter().map(|(_, _, place)| place));
        Done::Jumped(self.now)
    }
}

fn act(depth: u32) -> BoxedStrategy<Act> {
    let flat = prop_oneof![
        3 => (0..PLACES).prop_map(Act::Wake),
        3 => Just(Act::WakeItself),
        4 => (0..6_u64).prop_map(Act::Sleep),
        1 => Just(Act::CancelSleep),
        1 => (0..PLACES).prop_map(Act::Pause),
        2 => (0..PLACES).prop_map(Act::Resume),
        1 => (0..PLACES).prop_map(Act::Kill),
    ];
    if depth == 0 {
        return flat.boxed();
    }
    prop_oneof![8 => flat, 1 => script(depth - 1).prop_map(Act::Spawn)].boxed()
}

fn script(depth: u32) -> impl Strategy<Value = Script> {
    vec(vec(act(depth), 0..4), 1..6)
}

/// Something done from outside, or a step with so much time at most.
fn outside() -> impl Strategy<Value = Result<u64, Act>> {
    let acts = act(1).prop_filter("a task's own", |act| {
        !matches!(act, Act::WakeItself | Act::Sleep(_) | Act::CancelSleep)
    });
    prop_oneof![8 => prop_oneof![Just(u64::MAX / 2), 0..4_u64].prop_map(Ok), 1 => acts.prop_map(Err)]
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn it_does_what_the_model_does(
        seed in 0..8_u64,
        scripts in vec(script(1), 1..PLACES),
        course in vec(outside(), 1..80),
    ) {
        let executor = Executor::new(Stream::new(seed, "order"));
        let real = Rc::new(Real { executor, wakers: RefCell::new([const { None }; MAX_TASKS]) });
        let mut model = Model {
            now: 0,
            order: Stream::new(seed, "order"),
            tasks: Vec::new(),
            ready: BTreeSet::new(),
            paused: BTreeSet::new(),
            doomed: BTreeSet::new(),
            known: BTreeSet::new(),
            timers: Vec::new(),
            timers_made: 0,
        };
        for script in scripts {
            real.spawn(script.clone());
            model.spawn(script);
        }
        for (nth, move_) in course.into_iter().enumerate() {
            match move_ {
                Ok(span) => {
                    let limit = model.now + span;
                    prop_assert_eq!(real.step(limit), model.step(limit), "step {}", nth);
                    prop_assert_eq!(real.executor.now(), model.now);
                }
                Err(act) => {
                    real.act(act.clone());
                    real.executor.bury();
                    model.act(act);
                    model.bury();
                }
            }
        }
        // The futures hold the executor that holds them.
        let places = real.executor.slots.borrow().len();
        (0..places).for_each(|place| real.executor.kill(TaskId(place as u16)));
        real.executor.bury();
    }

    /// Calls at one instant are made in the order in which they were asked for, those that a call asks for among them;
    /// a cancelled one is never made, and time never runs back.
    #[test]
    fn calls_are_made_by_instant_and_then_by_the_order_of_asking(
        asked in vec((0..8_u64, proptest::option::of(0..8_u64), any::<bool>()), 0..20),
        limit in 0..10_u64,
    ) {
        let executor = Rc::new(Executor::<()>::new(Stream::new(1, "order")));
        let made = Rc::new(RefCell::new(Vec::new()));
        let mut expected = Vec::new();
        let mut cancelled = Vec::new();
        for (nth, (at, again, cancel)) in asked.iter().copied().enumerate() {
            let (inner, log) = (executor.clone(), made.clone());
            let timer = executor.call_at(at, Box::new(move || {
                log.borrow_mut().push((inner.now(), nth, false));
                if let Some(span) = again {
                    let (now, log) = (inner.now(), log.clone());
                    inner.call_at(now + span, Box::new(move || log.borrow_mut().push((now + span, nth, true))));
                }
            }));
            if cancel {
                cancelled.push(timer);
            } else if at <= limit {
                expected.push((at, nth, false));
                // What is asked for within a call comes after all that was asked for before.
                expected.extend(again.filter(|span| at + span <= limit).map(|span| (at + span, nth, true)));
            }
        }
        cancelled.into_iter().for_each(|timer| executor.cancel_timer(timer));
        // A second call was asked for when the first was made: by the first one's instant, then by its number.
        expected.sort_by_key(|(at, nth, second)| (*at, *second, if *second { asked[*nth].0 } else { 0 }, *nth));
        let mut before = 0;
        while let Step::Jumped(at) = executor.step(limit) {
            prop_assert!(at > before || before == 0, "{} after {}", at, before);
            before = at;
        }
        prop_assert_eq!(made.take(), expected);
        executor.clear_timers();
    }
}
