//! The shared memory of a database in WAL mode (the wal-index) and its eight locks.
//!
//! SQLite reads and writes this memory through plain pointers, also in the destructors of a connection whose simulated
//! process is dead. So that the dead cannot touch the world of the living, a handle is *frozen* when its process is
//! cut off: the memory as it was then is put back once the handle lets go of it.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::NonNull;

use super::locks::Busy;

/// Number of locks, and of bits in a mask of them.
const SLOTS: u32 = 8;

/// One mapped piece: zeroed when made, at one address until dropped.
struct Region {
    at: NonNull<u8>,
    layout: Layout,
}

impl Region {
    fn new(bytes: usize) -> Region {
        let layout = Layout::from_size_align(bytes, 64).expect("a region is a few dozen KiB");
        assert!(bytes > 0, "SQLite maps no empty regions");
        // SAFETY: the layout has a size greater than zero.
        let at = unsafe { alloc_zeroed(layout) };
        let Some(at) = NonNull::new(at) else { handle_alloc_error(layout) };
        Region { at, layout }
    }

    fn clear(&self) {
        // SAFETY: the allocation is `layout.size()` bytes, and nobody holds a reference: SQLite has raw pointers, and none of
        // its functions runs on this thread.
        unsafe { self.at.write_bytes(0, self.layout.size()) };
    }

    fn copy(&self) -> Vec<u8> {
        // SAFETY: the allocation is `layout.size()` bytes, all initialised (zeroed at birth). SQLite writes to it only
        // while one of its functions runs on this thread, and none runs between these lines.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.layout.size()) }.to_vec()
    }

    fn put_back(&self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.layout.size(), "a copy of this region");
        // SAFETY: both are `layout.size()` bytes and the copy is a `Vec` of its own, so they do not overlap. No
        // reference to the region exists: SQLite has raw pointers.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.as_ptr(), bytes.len()) };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout and freed once. SQLite's pointers to it are gone: each handle
        // keeps its `Shm` alive until SQLite has unmapped it or closed the handle.
        unsafe { dealloc(self.at.as_ptr(), self.layout) };
    }
}

/// The place of one handle at the shared memory.
struct Seat {
    handle: u64,
    shared: u8,
    exclusive: u8,
    /// May only read and has not seen a writer here yet: nothing vouches for the memory.
    unvouched: bool,
}

/// The shared memory of one database file.
#[derive(Default)]
pub(super) struct Shm {
    regions: RefCell<Vec<Region>>,
    seats: RefCell<Vec<Seat>>,
    /// Rises with every operation of a living handle.
    turn: Cell<u64>,
}

/// The memory at the moment when a process was cut off.
#[cfg_attr(test, derive(PartialEq))]
pub(super) struct Frozen {
    turn: u64,
    regions: Vec<Vec<u8>>,
}

impl Shm {
    /// Nobody is there: the memory is as if it were just made, at the same address.
    pub(super) fn clear(&self) {
        assert!(self.seats.borrow().is_empty(), "nobody is at it");
        self.regions.borrow().iter().for_each(Region::clear);
        self.turn.set(0);
    }

    /// Whether nobody but `handle` is there, and the memory never grew beyond its first piece.
    pub(super) fn is_alone(&self, handle: u64) -> bool {
        self.regions.borrow().len() == 1 && self.seats.borrow().iter().all(|seat| seat.handle == handle)
    }

    /// Whether nobody is there any more, and the memory never grew beyond its first piece.
    pub(super) fn is_deserted(&self) -> bool {
        self.regions.borrow().len() == 1 && self.seats.borrow().is_empty()
    }

    /// Gives `handle` a place. A handle that cannot write waits for one that can.
    pub(super) fn attach(&self, handle: u64, read_only: bool) {
        self.seats.borrow_mut().push(Seat { handle, shared: 0, exclusive: 0, unvouched: read_only });
    }

    /// Takes the place away with its locks; tells whether it was the last.
    pub(super) fn detach(&self, handle: u64) -> bool {
        let mut seats = self.seats.borrow_mut();
        seats.retain(|seat| seat.handle != handle);
        seats.is_empty()
    }

    /// Whether a read-only `handle` may trust the memory: another handle has vouched for it.
    pub(super) fn vouched(&self, handle: u64) -> bool {
        let mut seats = self.seats.borrow_mut();
        let company = seats.iter().any(|seat| seat.handle != handle && !seat.unvouched);
        match seats.iter_mut().find(|seat| seat.handle == handle) {
            Some(seat) => {
                seat.unvouched &= !company;
                !seat.unvouched
            }
            None => false,
        }
    }

    /// The address of a region, which is made when missing and `extend` says so; null when it stays missing.
    pub(super) fn map(&self, region: usize, bytes: usize, extend: bool) -> *mut c_void {
        self.turn.set(self.turn.get() + 1);
        let mut regions = self.regions.borrow_mut();
        while extend && regions.len() <= region {
            regions.push(Region::new(bytes));
        }
        regions.get(region).map_or(std::ptr::null_mut(), |region| region.at.as_ptr().cast())
    }

    /// Takes `count` locks from `first`, for reading or alone.
    pub(super) fn lock(&self, handle: u64, first: u32, count: u32, alone: bool) -> Result<(), Busy> {
        self.turn.set(self.turn.get() + 1);
        let mask = mask(first, count);
        let mut seats = self.seats.borrow_mut();
        let taken = |seat: &Seat| seat.exclusive & mask != 0 || (alone && seat.shared & mask != 0);
        if seats.iter().any(|seat| seat.handle != handle && taken(seat)) {
            return Err(Busy);
        }
        let seat = seats.iter_mut().find(|seat| seat.handle == handle).ok_or(Busy)?;
        if alone {
            seat.exclusive |= mask;
        } else {
            seat.shared |= mask;
        }
        Ok(())
    }

    /// Gives `count` locks from `first` back.
    pub(super) fn unlock(&self, handle: u64, first: u32, count: u32) {
        self.turn.set(self.turn.get() + 1);
        let mask = mask(first, count);
        if let Some(seat) = self.seats.borrow_mut().iter_mut().find(|seat| seat.handle == handle) {
            seat.shared &= !mask;
            seat.exclusive &= !mask;
        }
    }

    /// Keeps the memory as it is now.
    pub(super) fn freeze(&self) -> Frozen {
        let regions = self.regions.borrow().iter().map(Region::copy).collect();
        Frozen { turn: self.turn.get(), regions }
    }

    /// Undoes what was written since, unless a living handle has had a turn in between: then the memory is theirs.
    pub(super) fn restore(&self, frozen: &Frozen) {
        if frozen.turn == self.turn.get() {
            for (region, bytes) in self.regions.borrow().iter().zip(&frozen.regions) {
                region.put_back(bytes);
            }
        }
    }
}

fn mask(first: u32, count: u32) -> u8 {
    assert!(count > 0 && first + count <= SLOTS, "SQLite locks slots of the eight");
    (((1u16 << count) - 1) << first) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Shm {
        let shm = Shm::default();
        shm.attach(1, false);
        shm.attach(2, false);
        shm
    }

    #[test]
    fn a_lock_for_one_keeps_readers_and_writers_of_that_slot_out() {
        let shm = two();
        assert_eq!(shm.lock(1, 3, 2, true), Ok(()));
        assert_eq!(shm.lock(2, 4, 1, false), Err(Busy));
        assert_eq!(shm.lock(2, 4, 1, true), Err(Busy));
        assert_eq!(shm.lock(2, 5, 1, true), Ok(()));
    }

    #[test]
    fn readers_share_a_slot_until_the_last_leaves() {
        let shm = two();
        assert_eq!(shm.lock(1, 3, 1, false), Ok(()));
        assert_eq!(shm.lock(2, 3, 1, false), Ok(()));
        shm.unlock(1, 3, 1);
        assert_eq!(shm.lock(1, 3, 1, true), Err(Busy));
        shm.unlock(2, 3, 1);
        assert_eq!(shm.lock(1, 3, 1, true), Ok(()));
    }

    #[test]
    fn whoever_leaves_takes_its_locks_along() {
        let shm = two();
        assert_eq!(shm.lock(1, 0, 8, true), Ok(()));
        assert!(!shm.detach(1));
        assert_eq!(shm.lock(2, 0, 8, true), Ok(()));
        assert!(shm.detach(2));
    }

    #[test]
    fn a_region_is_made_only_when_asked_and_keeps_its_address() {
        let shm = two();
        assert!(shm.map(1, 32768, false).is_null());
        let second = shm.map(1, 32768, true);
        assert!(!second.is_null());
        assert_eq!(shm.map(1, 32768, false), second);
        assert_ne!(shm.map(0, 32768, false), second);
    }

    #[test]
    fn a_reader_alone_is_not_vouched_for() {
        let shm = Shm::default();
        shm.attach(1, true);
        assert!(!shm.vouched(1));
        shm.attach(2, false);
        assert!(shm.vouched(1));
        shm.detach(2);
        assert!(shm.vouched(1));
    }

    #[test]
    fn what_the_dead_write_is_undone_unless_the_living_had_a_turn() {
        let shm = two();
        let at: *mut u8 = shm.map(0, 64, true).cast();
        let frozen = shm.freeze();
        // SAFETY: the region is 64 bytes and this test alone knows it.
        unsafe { at.write(7) };
        shm.restore(&frozen);
        // SAFETY: as above.
        assert_eq!(unsafe { at.read() }, 0);
        // SAFETY: as above.
        unsafe { at.write(7) };
        shm.lock(2, 0, 1, true).expect("free");
        shm.restore(&frozen);
        // SAFETY: as above.
        assert_eq!(unsafe { at.read() }, 7);
    }
}
