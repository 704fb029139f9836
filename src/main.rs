//! The `mu` executable: the real machine under the core, and the exit code.

use std::io::{self, Write};
use std::process::ExitCode;

/// The machine itself failed before anything else could.
const SUBSTRATE_FAILED: u8 = 5;

fn main() -> ExitCode {
    match mu::enter(mu_core::run) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Standard error may be closed as well, and there is nobody else to tell.
            let _ = writeln!(io::stderr(), "mu: the system refused to start mu: {error}");
            ExitCode::from(SUBSTRATE_FAILED)
        }
    }
}
