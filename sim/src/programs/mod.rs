//! What can be executed on a simulated machine: mu itself, the fake plugin, the shell.
//!
//! - `plugin` the fake plugin; `script` what a shell script says, as data; `shell` runs one

mod plugin;
pub mod script;
mod shell;

use mu_core::os::Exit;

use crate::kernel::Machine;
use crate::sim_os::{SimOs, Watch};

pub use plugin::{Installed, install_plugin, program_name};
pub use shell::{SHELL, install_shell};

/// The name that a file of the disk bears when executing it runs mu.
pub const MU: &str = "mu";

/// Makes mu executable: the very core of the real binary, from argv to exit code.
/// `watch` sees every effect that one is about to write to a plugin.
pub fn install_mu(machine: &Machine, watch: Watch) {
    machine.install(MU, move |sys| {
        let os = SimOs::new(sys).watched(watch.clone());
        async move { Exit::Status(i32::from(mu_core::run(os).await)) }
    });
}
