//! The `mu` executable: the real machine under the core, and the exit code.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;

use mu::RealOs;

/// The machine itself failed before anything else could.
const SUBSTRATE_FAILED: u8 = 5;

fn main() -> ExitCode {
    match enter() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Standard error may be closed as well, and there is nobody else to tell.
            let _ = writeln!(io::stderr(), "mu: the system refused to start mu: {error}");
            ExitCode::from(SUBSTRATE_FAILED)
        }
    }
}

fn enter() -> io::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let _entered = runtime.enter();
    let os = RealOs::new()?;
    let running = AssertUnwindSafe(|| runtime.block_on(mu_core::run(os.clone())));
    catch_unwind(running).or_else(|panic| {
        // The core turns its own panics into an answer; what comes here got past it. No plugin may outlive mu (PRC-13).
        os.kill_started_groups();
        resume_unwind(panic)
    })
}
