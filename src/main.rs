//! The `mu` executable: the real machine under the core, and the exit code.

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let exit = mu::enter(mu_core::run).unwrap_or_else(|error| {
        #[allow(clippy::disallowed_methods)] // there is no `Os` to ask
        let argv: Vec<_> = std::env::args_os().collect();
        let printed = mu_core::not_started(&argv, &error);
        // Either stream may be closed as well, and there is nobody else to tell.
        for line in &printed.err {
            let _ = writeln!(io::stderr(), "mu: {line}");
        }
        let _ = io::stdout().write_all(printed.out.as_bytes());
        printed.exit
    });
    ExitCode::from(exit)
}
