//! Who waits at one place, and how to wake them.

use std::task::Waker;

use super::process::Index;

/// The waiters at one place. Entries are kept and armed again, so that waiting allocates only the first time.
#[derive(Default)]
pub(crate) struct Waiters {
    list: Vec<Waiter>,
}

struct Waiter {
    who: Index,
    /// What is waited for, where one list serves several things.
    key: i32,
    /// The number of the poll in which it was armed last.
    poll: u64,
    armed: bool,
    waker: Waker,
}

/// One process that waits, for the deadlock report.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) who: Index,
    pub(crate) key: i32,
    pub(crate) poll: u64,
}

impl Waiters {
    /// Wakes `waker` at the next [`Waiters::wake`] for `key`.
    pub(crate) fn add(&mut self, who: Index, key: i32, poll: u64, waker: &Waker) {
        let same = |waiter: &&mut Waiter| waiter.key == key && waiter.waker.will_wake(waker);
        if let Some(waiter) = self.list.iter_mut().find(same) {
            waiter.who = who;
            waiter.armed = true;
            waiter.poll = poll;
        } else if let Some(unused) = self.list.iter_mut().find(|waiter| !waiter.armed) {
            *unused = Waiter { who, key, poll, armed: true, waker: waker.clone() };
        } else {
            self.list.push(Waiter { who, key, poll, armed: true, waker: waker.clone() });
        }
    }

    /// Wakes those that wait for `key`.
    pub(crate) fn wake(&mut self, key: i32) {
        for waiter in &mut self.list {
            if waiter.armed && waiter.key == key {
                waiter.armed = false;
                waiter.waker.wake_by_ref();
            }
        }
    }

    /// Those that have not been woken.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Waiting> {
        self.list.iter().filter(|waiter| waiter.armed).map(|waiter| Waiting {
            who: waiter.who,
            key: waiter.key,
            poll: waiter.poll,
        })
    }

    /// Forgets everybody.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Bell(AtomicU32);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn one_wait_is_woken_once_and_only_for_its_key() {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(bell.clone());
        let mut waiters = Waiters::default();
        waiters.add(2, 7, 1, &waker);
        waiters.wake(8);
        assert_eq!(bell.0.load(Relaxed), 0);
        waiters.wake(7);
        waiters.wake(7);
        assert_eq!(bell.0.load(Relaxed), 1);
        waiters.add(2, 7, 2, &waker);
        waiters.add(2, 7, 2, &waker);
        waiters.wake(7);
        assert_eq!(bell.0.load(Relaxed), 2);
    }

    #[test]
    fn a_place_that_is_waited_at_again_and_again_does_not_grow() {
        let mut waiters = Waiters::default();
        for poll in 0..100 {
            waiters.add(2, 0, poll, &Waker::from(Arc::new(Bell::default())));
            waiters.wake(0);
        }
        assert_eq!(waiters.list.len(), 1);
    }
}
