//! One run of mu on the real machine: runtime, handle, and no plugin left behind by a failure.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::RealOs;

/// Makes the runtime and the handle, runs `run` to its end and answers with its exit code.
///
/// # Errors
///
/// When the machine cannot be used, see [`RealOs::new`]; `run` was not called then.
///
/// # Panics
///
/// As `run` does, after every group that it started and did not reap was killed.
pub fn enter<F: Future<Output = u8>>(run: impl FnOnce(RealOs) -> F) -> io::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let _entered = runtime.enter();
    let os = RealOs::new()?;
    catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(os.clone())))).map(Ok).unwrap_or_else(|panic| {
        // The core turns its own panics into an answer; what comes here got past it (PRC-13).
        os.kill_started_groups();
        resume_unwind(panic)
    })
}
