//! The simulated `/bin/sh` beside the real one: what it can run at all, it runs alike.

// A real shell is a real process.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use mu_core::os::Exit;
use mu_sim::disk::Node;
use mu_sim::kernel::{Command, Machine, Output};
use mu_sim::programs::{SHELL, install_shell};

/// How it ended, what it printed, and the files that it left, by name.
#[derive(Debug, PartialEq)]
struct Ran {
    exit: Exit,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    files: Vec<(String, Vec<u8>)>,
}

const HOME: &str = "/home/user";

fn machine() -> Machine {
    let machine = Machine::new(1);
    install_shell(&machine);
    let sh = Node::Program { name: SHELL.into(), busy: false, interpreter_missing: false };
    machine.disk().put(Path::new("/bin/sh"), 0, 0o755, sh);
    machine.disk().put(Path::new("/dev/null"), 0, 0o666, Node::Device);
    machine.disk().put(&Path::new(HOME).join("folder"), 1000, 0o755, Node::Directory);
    machine.disk().put(Path::new(HOME), 1000, 0o755, Node::Directory);
    machine
}

fn simulated(script: &str) -> Ran {
    let machine = machine();
    let command = Command { cwd: HOME.into(), ..Command::new(["/bin/sh", "-c", script]) };
    let started = machine.start(&command).unwrap();
    let exit = machine.run_until_exit(&started).unwrap();
    let files = machine.disk().files().into_iter();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    Ran {
        exit,
        stdout: machine.stdout(&started),
        stderr: machine.stderr(&started),
        files: files.map(|(path, bytes)| (name(&path), bytes)).collect(),
    }
}

fn real(script: &str) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    let output =
        std::process::Command::new("/bin/sh").args(["-c", script]).current_dir(&dir).output().unwrap();
    let status = output.status;
    let files = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut files: Vec<_> = files
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    Ran {
        exit: status.code().map_or_else(|| Exit::Signal(status.signal().unwrap()), Exit::Status),
        stdout: output.stdout,
        stderr: output.stderr,
        files,
    }
}

#[test]
fn scripts_run_as_in_the_real_shell() {
    for script in [
        "",
        "echo",
        "echo one  two; echo three >&2",
        "echo -n a; echo b>&1",
        r#"echo 'it'\''s' "a  \"b\"" c\ d \; '' e"#,
        "echo 'first\nsecond'\necho third\\\nfourth",
        "false && echo no; echo yes && false && echo no",
        "true &&\n\n echo yes",
        r"printf 'a\tb\n'; printf '\377\303\0'; printf '100%%'",
        "exit",
        "false; exit",
        "false",
        "exit 7; echo no",
        "exit 263",
        "sleep 0.01; exit 3",
        "echo ref > head; echo > 'with blank'; true > empty; printf x > head",
        "echo gone > /dev/null",
        "nobody-has-this-command",
        "true\nnobody-has-this-command && echo no",
        "echo x > folder",
        "echo x > missing/file && echo no; echo on",
        "echo first\necho 'open",
    ] {
        let (simulated, real) = (simulated(script), real(script));
        // Shells have words of their own for what they cannot do.
        let complains = |ran: &Ran| ran.stderr.starts_with(b"/bin/sh: ") && ran.stderr.ends_with(b"\n");
        let stderr =
            if complains(&simulated) && complains(&real) { simulated.stderr.clone() } else { real.stderr };
        assert_eq!(simulated, Ran { stderr, ..real }, "{script:?}");
    }
}

#[test]
fn a_sleep_takes_its_time() {
    let machine = machine();
    let started = machine.start(&Command::new(["/bin/sh", "-c", "sleep 2.5; sleep 3600"])).unwrap();
    assert_eq!(machine.run_until_exit(&started), Ok(Exit::Status(0)));
    assert_eq!(machine.now(), Duration::from_millis(3_602_500));
}

#[test]
fn a_shell_that_nobody_reads_dies_of_it() {
    let machine = machine();
    let command =
        Command { stdout: Output::ClosedAfter(0), ..Command::new(["/bin/sh", "-c", "echo x; exit 3"]) };
    let started = machine.start(&command).unwrap();
    assert_eq!(machine.run_until_exit(&started), Ok(Exit::Signal(13)));
}

#[test]
fn what_may_not_be_written_is_not() {
    let machine = machine();
    machine.disk().set_mode(Path::new(HOME), 0o555).unwrap();
    let command = Command { cwd: HOME.into(), ..Command::new(["/bin/sh", "-c", "echo x > file"]) };
    let started = machine.start(&command).unwrap();
    assert_eq!(machine.run_until_exit(&started), Ok(Exit::Status(2)));
    assert_eq!(machine.stderr(&started), b"/bin/sh: 1: cannot create file: Permission denied\n");
    assert_eq!(machine.disk().bytes(&Path::new(HOME).join("file")), None);
}
