//! Which process a pid means.

use std::io;
use std::os::fd::AsFd;

use mu_core::os::Pid;
use rustix::io::Errno;
use rustix::process::{PidfdFlags, pidfd_open};

use crate::group::ended;

/// The place of the start time in `/proc/<pid>/stat`, counted from the state, which follows the name.
const START_TIME: usize = 19;

/// When the living process with this pid was started, in clock ticks since boot; `None` when there is none that lives.
///
/// Errors are those of the kernel: no descriptor left, no `/proc`.
pub(crate) fn started(pid: Pid) -> io::Result<Option<u64>> {
    // Numbers from 0 down mean groups, and nobody's process.
    let Some(raw) = Some(pid.0).filter(|number| *number > 0).and_then(rustix::process::Pid::from_raw) else {
        return Ok(None);
    };
    let pidfd = match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        // Nobody there, or a thread that is no process.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let stat = std::fs::read(format!("/proc/{pid}/stat"));
    // Whoever lives after the look had the number during the look.
    if ended(pidfd.as_fd())? {
        return Ok(None);
    }
    start_time(&stat?).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// When the process with this pid was started, in clock ticks since boot, whether it lives or is a zombie; `None` when
/// nobody has the number.
pub(crate) fn started_or_ended(pid: Pid) -> io::Result<Option<u64>> {
    match std::fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => start_time(&stat).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into()),
        // It was reaped before the look, or during it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The id of this boot of the machine.
pub(crate) fn boot() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim_end().to_owned())
}

/// The start time in a line of `/proc/<pid>/stat`. A program chooses its name, which may hold blanks and brackets.
fn start_time(stat: &[u8]) -> Option<u64> {
    let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[end_of_name + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(START_TIME)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_brackets_moves_no_field() {
        let fields =
            "S 1 7 7 0 -1 4194560 151 0 0 0 0 0 0 0 20 0 1 0 123456 2658304 225 18446744073709551615";
        for name in ["sh", "a b", ") R 1 2", "((", "\u{fffd}"] {
            assert_eq!(start_time(format!("7 ({name}) {fields}\n").as_bytes()), Some(123_456), "{name}");
        }
        assert_eq!(start_time(b"7 (\xff) S 1 7"), None);
    }
}
