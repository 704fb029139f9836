//! SQLite's byte-range locks on a database file, held by open handles.

/// What a handle holds, in SQLite's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Nothing.
    #[default]
    None,
    /// Reads; any number of handles.
    Shared,
    /// Means to write; one handle, beside readers.
    Reserved,
    /// Waits for the readers to leave; no new reader comes in.
    Pending,
    /// Writes; alone.
    Exclusive,
}

/// The lock is held by another handle. Nobody ever waits here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Busy;

/// Who holds what on one file.
#[derive(Default)]
pub(super) struct Locks {
    holders: Vec<(u64, Level)>,
}

impl Locks {
    /// What `handle` holds.
    pub(super) fn level(&self, handle: u64) -> Level {
        self.holders.iter().find(|(holder, _)| *holder == handle).map_or(Level::None, |(_, level)| *level)
    }

    /// Raises the lock of `handle` to `wanted`. On the way to exclusive a reserved lock becomes pending and stays so
    /// when readers are in the way, as on Unix.
    pub(super) fn raise(&mut self, handle: u64, wanted: Level) -> Result<(), Busy> {
        let mine = self.level(handle);
        if mine >= wanted {
            return Ok(());
        }
        let others =
            self.holders.iter().filter(|(holder, _)| *holder != handle).map(|(_, level)| *level).max();
        let others = others.unwrap_or_default();
        let free = match wanted {
            Level::None => true,
            Level::Shared => others < Level::Pending,
            Level::Reserved => others < Level::Reserved,
            Level::Pending | Level::Exclusive => others == Level::None,
        };
        if free {
            self.set(handle, wanted);
            return Ok(());
        }
        if wanted == Level::Exclusive && mine == Level::Reserved {
            self.set(handle, Level::Pending);
        }
        Err(Busy)
    }

    /// Lowers the lock of `handle` to `level`, which is shared or none.
    pub(super) fn lower(&mut self, handle: u64, level: Level) {
        if self.level(handle) > level {
            self.set(handle, level);
        }
    }

    /// Whether anybody holds reserved or more.
    pub(super) fn reserved(&self) -> bool {
        self.holders.iter().any(|(_, level)| *level >= Level::Reserved)
    }

    fn set(&mut self, handle: u64, level: Level) {
        self.holders.retain(|(holder, _)| *holder != handle);
        if level != Level::None {
            self.holders.push((handle, level));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(holders: &[(u64, Level)]) -> Locks {
        Locks { holders: holders.to_vec() }
    }

    #[test]
    fn readers_share_and_one_of_them_may_reserve() {
        let mut locks = held(&[(1, Level::Shared), (2, Level::Shared)]);
        assert_eq!(locks.raise(1, Level::Reserved), Ok(()));
        assert_eq!(locks.raise(2, Level::Reserved), Err(Busy));
        assert_eq!(locks.raise(3, Level::Shared), Ok(()));
    }

    #[test]
    fn a_writer_that_meets_readers_keeps_new_readers_out() {
        let mut locks = held(&[(1, Level::Reserved), (2, Level::Shared)]);
        assert_eq!(locks.raise(1, Level::Exclusive), Err(Busy));
        assert_eq!(locks.level(1), Level::Pending);
        assert_eq!(locks.raise(3, Level::Shared), Err(Busy));
        locks.lower(2, Level::None);
        assert_eq!(locks.raise(1, Level::Exclusive), Ok(()));
    }

    #[test]
    fn a_reader_that_wants_all_and_fails_stays_a_reader() {
        let mut locks = held(&[(1, Level::Shared), (2, Level::Shared)]);
        assert_eq!(locks.raise(1, Level::Exclusive), Err(Busy));
        assert_eq!(locks.level(1), Level::Shared);
    }

    #[test]
    fn lowering_never_raises() {
        let mut locks = held(&[]);
        locks.lower(1, Level::Shared);
        assert_eq!(locks.level(1), Level::None);
    }
}
