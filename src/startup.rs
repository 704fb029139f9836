//! What a process inherits and must not pass on to plugins.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use crate::signals;

/// Puts the process in order, the first time it is called; later calls do nothing.
///
/// - `/proc` must be there and show this process under its own number, or group emptiness could not be seen.
/// - Descriptors inherited without close-on-exec get it (PRC-15): a plugin receives 0, 1 and 2 and nothing of what
///   mu was handed by its parent.
/// - SIGCHLD ignored would let the kernel reap children by itself: it becomes default.
/// - A write beyond the file size limit fails, and does not end mu by SIGXFSZ.
/// - The three terminating signals are caught, see [`signals`].
///
/// Two things need nothing here, since `std` does them before `main`: SIGPIPE is ignored (and given back to children),
/// and `/dev/null` is opened in the place of a closed standard stream.
pub(crate) fn prepare() -> io::Result<()> {
    static DONE: Mutex<bool> = Mutex::new(false);
    let mut done = DONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !*done {
        check_proc()?;
        close_inherited_on_exec()?;
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: no function is installed.
        unsafe { sigaction(Signal::SIGCHLD, &default) }?;
        signals::survive_large_files()?;
        signals::catch()?;
        *done = true;
    }
    // A blocked signal would never arrive, here and in every plugin. The mask is the thread's own.
    SigSet::empty().thread_set_mask()?;
    Ok(())
}

fn check_proc() -> io::Result<()> {
    let link = std::fs::read_link("/proc/self")
        .map_err(|error| io::Error::new(error.kind(), format!("/proc/self cannot be read: {error}")))?;
    if link.to_str() == Some(&std::process::id().to_string()) {
        return Ok(());
    }
    Err(io::Error::other("/proc belongs to another process namespace"))
}

fn close_inherited_on_exec() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if number <= 2 {
            continue;
        }
        // SAFETY: the number comes from the list of open descriptors. Only a flag of it is set; should another thread
        // close it meanwhile, the call fails with EBADF, and whatever it might open in its place is to be
        // close-on-exec in this process just the same.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        match fcntl_setfd(fd, FdFlags::CLOEXEC) {
            Ok(()) | Err(Errno::BADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
