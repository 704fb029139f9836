//! Tasks, timers and virtual time.
//!
//! In: one future per simulated process. Out: polls, one at a time, in an order drawn from the seed. Time is a number
//! of nanoseconds that stands still while any task is ready and then jumps to the next timer. A task that is paused
//! (a stopped process) keeps what wakes it and is polled only after it is resumed. Nothing is allocated per poll.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

use crate::streams::Stream;

/// How many tasks can exist at the same time.
pub const MAX_TASKS: usize = 256;
const WORDS: usize = MAX_TASKS / 64;

/// A task: an index that is used again once the task has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskId(u16);

impl TaskId {
    /// Its place, below [`MAX_TASKS`].
    pub fn place(self) -> usize {
        usize::from(self.0)
    }

    fn word_and_bit(self) -> (usize, u64) {
        (usize::from(self.0) / 64, 1 << (self.0 % 64))
    }
}

/// A timer that has not fired: when it fires, and its place among those of the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerId {
    at: u64,
    nth: u64,
}

/// A boxed future, as a task is given to the executor.
pub type TaskFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// What one step of the executor did.
#[derive(Debug)]
pub enum Step<T> {
    /// A task was polled and waits again.
    Polled(TaskId),
    /// A task was polled and has ended.
    Ended(TaskId, T),
    /// A task panicked, with this payload. It has ended.
    Panicked(TaskId, Box<dyn Any + Send>),
    /// Time has jumped to this instant (nanoseconds) and at least one timer has fired.
    Jumped(u64),
    /// Nothing is ready; the next timer, at this instant, lies behind the limit.
    Limit(u64),
    /// Nothing is ready and no timer is set.
    Idle,
}

/// The set of ready tasks, shared with their wakers.
#[derive(Default)]
struct Ready {
    words: [AtomicU64; WORDS],
}

struct TaskWaker {
    ready: Arc<Ready>,
    task: TaskId,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let (word, bit) = self.task.word_and_bit();
        self.ready.words[word].fetch_or(bit, Relaxed);
    }
}

struct Slot<T> {
    /// Absent while the task is being polled, and in a free slot.
    future: Option<TaskFuture<T>>,
    /// Made once per slot. A waker kept from an earlier task of the slot can only cause one idle poll.
    waker: Option<Waker>,
    taken: bool,
    /// Ended from outside; its future is to be dropped, never polled again.
    doomed: bool,
}

enum Due {
    Wake(Waker),
    Call(Box<dyn FnOnce()>),
}

struct Timer {
    id: TimerId,
    due: Due,
}

/// See the top of this file.
pub struct Executor<T> {
    now: Cell<u64>,
    ready: Arc<Ready>,
    paused: Cell<[u64; WORDS]>,
    slots: RefCell<Vec<Slot<T>>>,
    /// Latest first, so that the next one is taken from the end.
    timers: RefCell<Vec<Timer>>,
    timers_made: Cell<u64>,
    order: RefCell<Stream>,
    polls: Cell<u64>,
    any_doomed: Cell<bool>,
}

impl<T> Executor<T> {
    /// An executor at instant 0 that draws the order between tasks from `order`.
    pub fn new(order: Stream) -> Executor<T> {
        Executor {
            now: Cell::new(0),
            ready: Arc::default(),
            paused: Cell::default(),
            slots: RefCell::default(),
            timers: RefCell::default(),
            timers_made: Cell::new(0),
            order: RefCell::new(order),
            polls: Cell::new(0),
            any_doomed: Cell::new(false),
        }
    }

    /// Virtual nanoseconds since the start.
    pub fn now(&self) -> u64 {
        self.now.get()
    }

    /// How often a task has been polled.
    pub fn polls(&self) -> u64 {
        self.polls.get()
    }

    /// Adds a task, ready to be polled. `None` when [`MAX_TASKS`] exist.
    pub fn spawn(&self, future: TaskFuture<T>) -> Option<TaskId> {
        let task = self.reserve()?;
        self.slots.borrow_mut()[usize::from(task.0)].future = Some(future);
        self.wake(task);
        Some(task)
    }

    /// Whether [`Executor::spawn`] would succeed.
    pub fn has_room(&self) -> bool {
        let slots = self.slots.borrow();
        slots.len() < MAX_TASKS || slots.iter().any(|slot| !slot.taken)
    }

    fn reserve(&self) -> Option<TaskId> {
        let mut slots = self.slots.borrow_mut();
        let index = match slots.iter().position(|slot| !slot.taken) {
            Some(free) => free,
            None if slots.len() == MAX_TASKS => return None,
            None => {
                let task = TaskId(slots.len() as u16);
                let waker = Waker::from(Arc::new(TaskWaker { ready: self.ready.clone(), task }));
                slots.push(Slot { future: None, waker: Some(waker), taken: false, doomed: false });
                slots.len() - 1
            }
        };
        slots[index].taken = true;
        slots[index].doomed = false;
        Some(TaskId(index as u16))
    }

    fn wake(&self, task: TaskId) {
        let (word, bit) = task.word_and_bit();
        self.ready.words[word].fetch_or(bit, Relaxed);
    }

    /// Keeps a task from being polled; it stays awake if it was, and can be woken.
    pub fn pause(&self, task: TaskId) {
        let (word, bit) = task.word_and_bit();
        let mut paused = self.paused.get();
        paused[word] |= bit;
        self.paused.set(paused);
    }

    /// Undoes [`Executor::pause`].
    pub fn resume(&self, task: TaskId) {
        let (word, bit) = task.word_and_bit();
        let mut paused = self.paused.get();
        paused[word] &= !bit;
        self.paused.set(paused);
    }

    /// Ends a task: it is never polled again. Its future is dropped by [`Executor::bury`] or after the poll in
    /// progress, so that no destructor runs while the caller holds anything.
    pub fn kill(&self, task: TaskId) {
        self.slots.borrow_mut()[usize::from(task.0)].doomed = true;
        self.any_doomed.set(true);
    }

    /// Drops the futures of the tasks that [`Executor::kill`] has ended, and frees their places.
    pub fn bury(&self) {
        while self.any_doomed.replace(false) {
            let count = self.slots.borrow().len();
            for index in 0..count {
                let future = {
                    let slot = &mut self.slots.borrow_mut()[index];
                    // A task that is being polled is buried when its poll returns.
                    if !slot.doomed || slot.waker.is_none() {
                        continue;
                    }
                    slot.future.take()
                };
                drop_quietly(future);
                self.free(TaskId(index as u16));
            }
        }
    }

    fn free(&self, task: TaskId) {
        self.resume(task);
        let (word, bit) = task.word_and_bit();
        self.ready.words[word].fetch_and(!bit, Relaxed);
        let slot = &mut self.slots.borrow_mut()[usize::from(task.0)];
        slot.taken = false;
        slot.doomed = false;
    }

    /// Sets a timer that wakes at instant `at` (nanoseconds).
    pub fn set_timer(&self, at: u64, waker: Waker) -> TimerId {
        self.add_timer(at, Due::Wake(waker))
    }

    /// Sets a timer that calls `action` at instant `at` (nanoseconds), between two polls.
    pub fn call_at(&self, at: u64, action: Box<dyn FnOnce()>) -> TimerId {
        self.add_timer(at, Due::Call(action))
    }

    fn add_timer(&self, at: u64, due: Due) -> TimerId {
        let nth = self.timers_made.get();
        self.timers_made.set(nth + 1);
        let id = TimerId { at, nth };
        let mut timers = self.timers.borrow_mut();
        let place = timers.partition_point(|timer| timer.id > id);
        timers.insert(place, Timer { id, due });
        id
    }

    /// Lets a pending timer wake somebody else. A timer that has fired is left alone.
    pub fn rewake_timer(&self, id: TimerId, waker: &Waker) {
        let mut timers = self.timers.borrow_mut();
        if let Ok(place) = timers.binary_search_by(|timer| id.cmp(&timer.id))
            && let Due::Wake(old) = &mut timers[place].due
        {
            old.clone_from(waker);
        }
    }

    /// Removes a timer. One that has fired is no error.
    pub fn cancel_timer(&self, id: TimerId) {
        let removed = {
            let mut timers = self.timers.borrow_mut();
            match timers.binary_search_by(|timer| id.cmp(&timer.id)) {
                Ok(place) => Some(timers.remove(place)),
                Err(_) => None,
            }
        };
        drop(removed);
    }

    /// Removes all timers.
    pub fn clear_timers(&self) {
        let timers = self.timers.take();
        drop(timers);
    }

    /// Polls one ready task, or jumps to the next timer when none is ready, but not beyond `limit` (nanoseconds).
    pub fn step(&self, limit: u64) -> Step<T> {
        match self.pick() {
            Some(task) => self.poll(task),
            None => self.jump(limit),
        }
    }

    /// Polls a task whether it is ready or not, to learn what it waits for.
    pub fn poll_anyway(&self, task: TaskId) -> Step<T> {
        self.poll(task)
    }

    /// Lets time pass without anybody noticing: nothing may be ready, and no timer due before `at`.
    pub fn advance_idle(&self, at: u64) {
        debug_assert!(self.pick_none() && self.timers.borrow().last().is_none_or(|next| next.id.at > at));
        self.now.set(self.now.get().max(at));
    }

    fn pick_none(&self) -> bool {
        let paused = self.paused.get();
        self.ready.words.iter().zip(paused).all(|(ready, paused)| ready.load(Relaxed) & !paused == 0)
    }

    fn pick(&self) -> Option<TaskId> {
        let paused = self.paused.get();
        let words: [u64; WORDS] =
            std::array::from_fn(|word| self.ready.words[word].load(Relaxed) & !paused[word]);
        let count: u32 = words.iter().map(|word| word.count_ones()).sum();
        let mut nth = match count {
            0 => return None,
            1 => 0,
            several => self.order.borrow_mut().below(u64::from(several)) as u32,
        };
        for (index, mut word) in words.into_iter().enumerate() {
            let here = word.count_ones();
            if nth >= here {
                nth -= here;
                continue;
            }
            for _ in 0..nth {
                word &= word - 1;
            }
            return Some(TaskId((index * 64) as u16 + word.trailing_zeros() as u16));
        }
        None
    }

    fn poll(&self, task: TaskId) -> Step<T> {
        let (word, bit) = task.word_and_bit();
        self.ready.words[word].fetch_and(!bit, Relaxed);
        let index = usize::from(task.0);
        let taken = {
            let slot = &mut self.slots.borrow_mut()[index];
            // A place without a future can be woken by a waker that outlived its task.
            if slot.future.is_none() {
                return Step::Polled(task);
            }
            slot.future.take().zip(slot.waker.take())
        };
        let Some((mut future, waker)) = taken else { return Step::Polled(task) };
        self.polls.set(self.polls.get() + 1);
        let polled =
            catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        let (doomed, future) = {
            let slot = &mut self.slots.borrow_mut()[index];
            slot.waker = Some(waker);
            if !slot.doomed && matches!(polled, Ok(Poll::Pending)) {
                slot.future = Some(future);
                (false, None)
            } else {
                (slot.doomed, Some(future))
            }
        };
        let Some(future) = future else { return self.after(Step::Polled(task)) };
        drop_quietly(future);
        self.free(task);
        self.after(match polled {
            _ if doomed => Step::Polled(task),
            Ok(Poll::Ready(value)) => Step::Ended(task, value),
            Ok(Poll::Pending) => Step::Polled(task),
            Err(payload) => Step::Panicked(task, payload),
        })
    }

    fn after(&self, step: Step<T>) -> Step<T> {
        if self.any_doomed.get() {
            self.bury();
        }
        step
    }

    fn jump(&self, limit: u64) -> Step<T> {
        let at = match self.timers.borrow().last() {
            None => return Step::Idle,
            Some(next) if next.id.at > limit => return Step::Limit(next.id.at),
            Some(next) => next.id.at.max(self.now.get()),
        };
        self.now.set(at);
        loop {
            let timer = {
                let mut timers = self.timers.borrow_mut();
                match timers.last() {
                    Some(next) if next.id.at <= at => timers.pop(),
                    _ => None,
                }
            };
            match timer.map(|timer| timer.due) {
                Some(Due::Wake(waker)) => waker.wake(),
                Some(Due::Call(action)) => action(),
                None => break,
            }
        }
        self.after(Step::Jumped(at))
    }
}

/// A destructor that panics belongs to a process that is gone: there is nobody left to tell.
fn drop_quietly<F>(future: F) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::rc::Rc;

    use super::*;

    fn executor<T>() -> Executor<T> {
        Executor::new(Stream::new(1, "order"))
    }

    fn pending<T>(waker: &Rc<RefCell<Option<Waker>>>) -> TaskFuture<T>
    where
        T: 'static,
    {
        let waker = waker.clone();
        Box::pin(poll_fn(move |cx| {
            *waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        }))
    }

    #[test]
    fn a_paused_task_is_polled_only_after_it_is_resumed_and_forgets_no_wake() {
        let executor = executor::<u8>();
        let waker = Rc::default();
        let task = executor.spawn(pending(&waker)).unwrap();
        assert!(matches!(executor.step(0), Step::Polled(_)));
        executor.pause(task);
        waker.borrow().as_ref().unwrap().wake_by_ref();
        assert!(matches!(executor.step(0), Step::Idle));
        executor.resume(task);
        assert!(matches!(executor.step(0), Step::Polled(_)));
        assert!(matches!(executor.step(0), Step::Idle));
    }

    struct Dropped(Rc<Cell<bool>>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }

    #[test]
    fn a_task_that_is_killed_from_outside_is_dropped_when_it_is_buried() {
        let executor = executor::<u8>();
        let gone = Rc::new(Cell::new(false));
        let dropped = Dropped(gone.clone());
        let task = executor
            .spawn(Box::pin(async move {
                let _dropped = dropped;
                std::future::pending().await
            }))
            .unwrap();
        executor.step(0);
        executor.kill(task);
        assert!(!gone.get());
        executor.bury();
        assert!(gone.get());
        assert!(matches!(executor.step(0), Step::Idle));
    }

    #[test]
    fn a_task_that_kills_itself_is_dropped_after_its_poll_and_its_value_is_lost() {
        let executor = Rc::new(executor::<u8>());
        let inner = executor.clone();
        let task = executor
            .spawn(Box::pin(async move {
                inner.kill(TaskId(0));
                inner.bury();
                7
            }))
            .unwrap();
        assert_eq!(task, TaskId(0));
        assert!(matches!(executor.step(0), Step::Polled(_)));
        assert!(matches!(executor.step(0), Step::Idle));
    }

    #[test]
    fn a_task_that_kills_another_one_can_wait_afterwards() {
        let executor = Rc::new(executor::<u8>());
        let (victim, inner) = (executor.spawn(Box::pin(std::future::pending())).unwrap(), executor.clone());
        let killer = executor
            .spawn(Box::pin(async move {
                inner.kill(victim);
                std::future::pending().await
            }))
            .unwrap();
        while let Step::Polled(task) = executor.step(0) {
            assert!([victim, killer].contains(&task));
        }
        // Its place is free again.
        assert_eq!(executor.spawn(Box::pin(async { 1 })), Some(victim));
    }

    #[test]
    fn a_waker_that_outlives_its_task_disturbs_nobody() {
        let executor = executor::<u8>();
        let waker = Rc::default();
        let task = executor.spawn(pending(&waker)).unwrap();
        executor.step(0);
        executor.kill(task);
        executor.bury();
        waker.borrow().as_ref().unwrap().wake_by_ref();
        let polls = executor.polls();
        assert!(matches!(executor.step(0), Step::Polled(_)));
        assert_eq!(executor.polls(), polls);
        assert!(matches!(executor.step(0), Step::Idle));
    }

    #[test]
    fn the_place_of_an_ended_task_is_used_again() {
        let executor = executor();
        for value in 0..3 {
            let task = executor.spawn(Box::pin(async move { value })).unwrap();
            assert_eq!(task, TaskId(0));
            let step = executor.step(0);
            assert!(matches!(step, Step::Ended(_, ended) if ended == value), "{step:?}");
        }
    }

    #[test]
    fn calls_at_one_instant_are_made_in_the_order_in_which_they_were_asked_for() {
        let executor = executor::<()>();
        let log = Rc::new(RefCell::new(Vec::new()));
        for (at, name) in [(5, "b"), (3, "a"), (5, "c"), (9, "d")] {
            let log = log.clone();
            executor.call_at(at, Box::new(move || log.borrow_mut().push(name)));
        }
        assert!(matches!(executor.step(7), Step::Jumped(3)));
        assert!(matches!(executor.step(7), Step::Jumped(5)));
        assert!(matches!(executor.step(7), Step::Limit(9)));
        assert_eq!((log.take(), executor.now()), (vec!["a", "b", "c"], 5));
    }

    #[test]
    fn a_cancelled_timer_never_fires_and_a_fired_one_is_no_error() {
        let executor = executor::<()>();
        let cancelled = executor.call_at(5, Box::new(|| unreachable!()));
        let fired = executor.call_at(6, Box::new(|| ()));
        executor.cancel_timer(cancelled);
        assert!(matches!(executor.step(u64::MAX), Step::Jumped(6)));
        executor.cancel_timer(fired);
        assert!(matches!(executor.step(u64::MAX), Step::Idle));
    }

    #[test]
    fn a_timer_can_be_given_to_another_waker() {
        let executor = executor::<u8>();
        let waker = Rc::default();
        executor.spawn(pending(&waker)).unwrap();
        executor.step(0);
        let timer = executor.set_timer(4, Waker::noop().clone());
        executor.rewake_timer(timer, waker.borrow().as_ref().unwrap());
        assert!(matches!(executor.step(4), Step::Jumped(4)));
        assert!(matches!(executor.step(4), Step::Polled(_)));
    }
}
