//! `cargo sim`: the simulator's command line. All of it is in `mu_sim::cli`.

use std::path::Path;
use std::process::ExitCode;

/// For many small pieces that come and go on one thread, SQLite's too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    #[allow(clippy::disallowed_methods)] // the arguments of a program that is not mu
    let arguments = std::env::args_os();
    ExitCode::from(mu_sim::cli::main(root, arguments.skip(1)))
}
