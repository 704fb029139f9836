//! A directory with a database and a plugin that does nothing, and `mu` runs in it.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::child;

/// See the top of this file.
pub struct Stage {
    directory: TempDir,
}

impl Stage {
    /// One with this executable as the plugin.
    ///
    /// # Panics
    /// When there is no room for it.
    pub fn new(plugin: &Path) -> Stage {
        let stage = Stage { directory: tempfile::tempdir().expect("a directory") };
        fs::copy(plugin, stage.plugin()).expect("a copy of the plugin");
        fs::set_permissions(stage.plugin(), Permissions::from_mode(0o755)).expect("its mode");
        stage
    }

    /// One with the plugin that does nothing, which is this very executable.
    ///
    /// # Panics
    /// As [`Stage::new`].
    pub fn idle() -> Stage {
        Stage::new(&env::current_exe().expect("a file"))
    }

    /// Where the plugin is.
    pub fn plugin(&self) -> PathBuf {
        self.directory.path().join(format!("mu-plugin-{}", child::NAME))
    }

    /// Where the database is, or will be.
    pub fn database(&self) -> PathBuf {
        self.directory.path().join("mu.db")
    }

    /// A run of `mu` with nothing to read, whose output goes nowhere.
    pub fn command(&self, mu: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(mu);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("MU_DB_PATH", self.database())
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Runs `mu`, which has to succeed; answers with its output.
    ///
    /// # Panics
    /// With that output when it fails.
    pub fn mu(&self, mu: &Path, arguments: &[&str]) -> String {
        let output = self.command(mu, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).output();
        let output = output.expect("mu runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "mu {arguments:?}: {said}");
        said
    }

    /// Registers the plugin that does nothing.
    ///
    /// # Panics
    /// When `mu` refuses it.
    pub fn register(&self, mu: &Path) {
        let plugin = self.plugin();
        let path = plugin.to_str().expect("a path in UTF-8");
        self.mu(mu, &["plugin", "add", child::NAME, "--", path, child::LINES]);
    }
}
