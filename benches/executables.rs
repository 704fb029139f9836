//! The executables that are measured. `cargo bench` builds none but its own, so the bench asks cargo for them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// mu itself, as it is released.
pub fn mu() -> PathBuf {
    release("mu", &[])
}

/// The fake plugin of the scenarios.
pub fn fake_plugin() -> PathBuf {
    release("mu-fake-plugin", &["--features", "sim"])
}

/// Builds an executable of the workspace in the release profile, unless it is up to date; answers where it is.
fn release(name: &str, more: &[&str]) -> PathBuf {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--message-format=json", "--manifest-path", manifest])
        .args(["--package", "mu", "--bin", name])
        .args(more)
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{name} is not built");
    let messages = output.stdout.split(|byte| *byte == b'\n');
    let artifacts = messages.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let of_it = artifacts.filter(|message| message["target"]["name"] == name);
    let mut paths = of_it.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    paths.next().expect("cargo says where it is")
}
