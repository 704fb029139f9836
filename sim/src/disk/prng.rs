//! Randomness that repeats.
//!
//! SQLite has one generator for the whole operating system process, seeded by the *default* VFS. A copy of the Unix
//! VFS is therefore made the default: real files through it stay real, but on a thread that has a key the generator is
//! seeded from that key. A disk sets a new key, made of its seed and the number of the operation, whenever SQLite opens
//! a database or takes a lock to write: what SQLite draws then (salts of the WAL, nonces of the journal) depends on
//! this disk alone, however many others there are on the thread. It does depend on other *threads* that use SQLite at
//! the same moment; runs that are to agree byte for byte share no process.

use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::ptr::{null, null_mut};
use std::sync::{Once, OnceLock};

use rusqlite::ffi;

thread_local! {
    static KEY: Cell<Option<u64>> = const { Cell::new(None) };
    static REAL_DRAWS: Cell<u64> = const { Cell::new(0) };
}

type Randomness = unsafe extern "C" fn(*mut ffi::sqlite3_vfs, c_int, *mut c_char) -> c_int;

/// What the Unix VFS does.
static REAL: OnceLock<Randomness> = OnceLock::new();

/// From here on SQLite draws what this key gives.
pub(super) fn rekey(key: u64) {
    make_default();
    KEY.set(Some(key));
    // SAFETY: a length of zero forgets the state of the generator and touches no buffer.
    unsafe { ffi::sqlite3_randomness(0, null_mut()) };
}

/// How often SQLite has drawn from the randomness of the real system on this thread; a simulated run never does.
pub fn real_draws() -> u64 {
    REAL_DRAWS.get()
}

/// One step of SplitMix64.
pub(super) fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Fills `bytes` from `key`.
fn fill(key: u64, bytes: &mut [u8]) {
    let mut state = key;
    for chunk in bytes.chunks_mut(8) {
        state = mix(state);
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
}

/// Has SQLite keep no account of the memory it uses, which costs it two locks an allocation. For the beginning of a process:
/// once SQLite is in use it changes nothing.
pub fn forget_statistics() {
    // SAFETY: the option takes one int, and SQLite refuses it when it runs already.
    unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int) };
}

/// Makes the copy of the Unix VFS the default, once in a process.
fn make_default() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: null asks for the default VFS, which lives as long as the process.
        let unix = unsafe { ffi::sqlite3_vfs_find(null()).as_ref() }.expect("SQLite has a default VFS");
        REAL.get_or_init(|| unix.xRandomness.expect("the Unix VFS has randomness"));
        // Its functions find their state through `pAppData`, which the copy shares. The list of VFSs keeps the copy
        // for as long as the process lives, so it is leaked, once.
        let copy = Box::leak(Box::new(ffi::sqlite3_vfs {
            pNext: null_mut(),
            zName: c"mu-sim".as_ptr(),
            xRandomness: Some(randomness),
            ..*unix
        }));
        // SAFETY: `copy` and its name live for ever and nobody else writes to it.
        let code = unsafe { ffi::sqlite3_vfs_register(copy, 1) };
        assert_eq!(code, ffi::SQLITE_OK, "a VFS is registered in memory alone");
    });
}

unsafe extern "C" fn randomness(vfs: *mut ffi::sqlite3_vfs, len: c_int, out: *mut c_char) -> c_int {
    match KEY.try_with(Cell::get).ok().flatten() {
        Some(key) => {
            // SAFETY: SQLite passes a buffer of `len` bytes that it owns.
            fill(key, unsafe { std::slice::from_raw_parts_mut(out.cast(), len as usize) });
            len
        }
        None => {
            let _ = REAL_DRAWS.try_with(|draws| draws.set(draws.get() + 1));
            let real = REAL.get().expect("set before this function was registered");
            // SAFETY: the arguments are SQLite's own, and the Unix function does not look at which VFS it is given.
            unsafe { real(vfs, len, out) }
        }
    }
}
