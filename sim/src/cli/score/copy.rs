//! A copy of the tree in which bugs are planted and built. It is kept, so that only what a bug changes is built anew.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::cli::{Failure, cargo};

/// What is no part of the tree, at any depth.
const LEFT_OUT: [&str; 2] = [".git", "target"];

/// The copy.
pub(crate) struct Copy {
    tree: PathBuf,
    target: PathBuf,
}

/// Why there is no program.
pub(crate) enum Unbuilt {
    /// The tree does not compile: the first error, in one line.
    Wrong(String),
    /// cargo could not be run.
    Failed(Failure),
}

impl Copy {
    /// Makes the copy in `target/score` of the tree `root` equal to it. A file that is equal already keeps its time.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub(crate) fn of(root: &Path) -> Result<Copy, Failure> {
        let folder = root.join("target/score");
        let copy = Copy { tree: folder.join("tree"), target: folder.join("target") };
        mirror(root, &copy.tree).map_err(|error| {
            Failure::broken(&format!("a copy of the tree in {}", folder.display()), error)
        })?;
        Ok(copy)
    }

    /// Where it lies.
    pub(crate) fn tree(&self) -> &Path {
        &self.tree
    }

    /// Puts a text in the place of that of `file`, and returns what stood there.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(crate) fn exchange(&self, file: &Path, text: &str) -> Result<String, Failure> {
        let path = self.tree.join(file);
        let old = fs::read_to_string(&path).and_then(|old| fs::write(&path, text).map(|()| old));
        old.map_err(|error| Failure::broken(&path.display().to_string(), error))
    }

    /// Builds the simulator of the copy, mu and all, and says where it lies.
    pub(crate) fn build(&self) -> Result<PathBuf, Unbuilt> {
        let mut command = cargo(&self.tree);
        command.args(["build", "--quiet", "--locked", "--features", "sim", "--bin", "mu-sim"]);
        command.args(["--message-format", "short", "--color", "never"]);
        command.env("CARGO_TARGET_DIR", &self.target).env("CARGO_INCREMENTAL", "1");
        // Most of the time goes into building, and not into playing.
        command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
        let output = command
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| Unbuilt::Failed(Failure::broken("cargo, to build a copy of the tree", error)))?;
        if output.status.success() {
            return Ok(self.target.join("debug/mu-sim"));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().find(|line| line.contains("error")).or_else(|| said.lines().next());
        Err(Unbuilt::Wrong(first.unwrap_or("it says nothing").to_owned()))
    }
}

impl Copy {
    /// The first thing that `clippy.toml` forbids in the code which both worlds run, and in the simulator; `None` when all is
    /// well. Anything else that clippy refuses is a tree that does not compile.
    pub(crate) fn lint(&self) -> Result<Option<String>, Unbuilt> {
        let mut command = cargo(&self.tree);
        command.args([
            "clippy",
            "--quiet",
            "--locked",
            "-p",
            "mu-protocol",
            "-p",
            "mu-core",
            "-p",
            "mu-sim",
            "--lib",
        ]);
        command.args(["--message-format", "short", "--color", "never", "--", "-D", "warnings"]);
        command.env("CARGO_TARGET_DIR", &self.target).stderr(Stdio::piped());
        let broken = |error| Unbuilt::Failed(Failure::broken("cargo clippy, in a copy of the tree", error));
        let output = command.output().map_err(broken)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let forbidden = said.lines().find(|line| line.contains("disallowed"));
        match forbidden {
            Some(line) => Ok(Some(line.to_owned())),
            None if output.status.success() => Ok(None),
            None => Err(Unbuilt::Wrong(said.lines().next().unwrap_or("it says nothing").to_owned())),
        }
    }

    /// What `cargo sim determinism` of a program says when two processes do not play the same; `None` when they do.
    ///
    /// # Errors
    /// The program could not be run.
    pub(crate) fn differs(&self, program: &Path) -> Result<Option<String>, Failure> {
        let mut command = std::process::Command::new(program);
        command.current_dir(&self.tree).args(["determinism", "--count", "60"]).stdin(Stdio::null());
        let output = command.output().map_err(|error| Failure::broken("a program with a bug", error))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let first = said.lines().find(|line| line.starts_with("DIFFERS"));
        Ok((!output.status.success()).then(|| first.unwrap_or("it says nothing").to_owned()))
    }
}

/// Makes the folder `copy` equal to `original`, but for what is left out.
fn mirror(original: &Path, copy: &Path) -> io::Result<()> {
    fs::create_dir_all(copy)?;
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(original)? {
        let entry = entry?;
        if LEFT_OUT.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let (from, to) = (entry.path(), copy.join(entry.file_name()));
        names.insert(entry.file_name());
        if from.is_dir() {
            mirror(&from, &to)?;
        } else if !same(&from, &to)? {
            fs::copy(&from, &to)?;
        }
    }
    for entry in fs::read_dir(copy)? {
        let entry = entry?;
        if names.contains(&entry.file_name()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())
        } else {
            fs::remove_file(entry.path())
        }?;
    }
    Ok(())
}

fn same(one: &Path, other: &Path) -> io::Result<bool> {
    match fs::read(other) {
        Ok(bytes) => Ok(bytes == fs::read(one)?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_becomes_equal_and_what_was_equal_keeps_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, copy) = (dir.path().join("tree"), dir.path().join("copy"));
        for folder in ["a/b", "target", ".git", "a/target"] {
            fs::create_dir_all(tree.join(folder)).unwrap();
            fs::write(tree.join(folder).join("file"), folder).unwrap();
        }
        fs::write(tree.join("kept"), "kept").unwrap();
        mirror(&tree, &copy).unwrap();
        let time =
            |name: &str| fs::File::open(copy.join(name)).unwrap().metadata().unwrap().modified().unwrap();
        let kept = time("kept");

        fs::write(copy.join("a/b/file"), "a bug").unwrap();
        fs::create_dir(copy.join("more")).unwrap();
        fs::write(copy.join("more/file"), "more").unwrap();
        fs::write(copy.join("a/more"), "more").unwrap();
        mirror(&tree, &copy).unwrap();
        assert_eq!(fs::read_to_string(copy.join("a/b/file")).unwrap(), "a/b");
        assert_eq!(time("kept"), kept);
        for absent in ["more", "a/more", "target", ".git", "a/target"] {
            assert!(!copy.join(absent).exists(), "{absent}");
        }
    }
}
