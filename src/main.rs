//! The `mu` executable: the real machine under the core, and the exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use mu::RealOs;

/// The machine itself failed before anything else could.
const SUBSTRATE_FAILED: u8 = 5;

fn main() -> ExitCode {
    match mu::enter(run) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Standard error may be closed as well, and there is nobody else to tell.
            let _ = writeln!(io::stderr(), "mu: the system refused to start mu: {error}");
            ExitCode::from(SUBSTRATE_FAILED)
        }
    }
}

/// Stands where `mu_core::run` will.
async fn run(_os: RealOs) -> u8 {
    0
}
