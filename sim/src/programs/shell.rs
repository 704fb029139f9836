//! `/bin/sh -c SCRIPT`, for the scripts that [`super::script`] can read.

use std::io;
use std::path::Path;

use mu_core::os::Exit;
use nix::errno::Errno;

use super::script::{self, Op, To};
use crate::kernel::{Fd, Machine, STDERR, STDOUT, Sys};

/// The name that a file of the disk bears when executing it runs the shell.
pub const SHELL: &str = "sh";

/// Makes the shell executable.
pub fn install_shell(machine: &Machine) {
    machine.install(SHELL, |sys| async move { Exit::Status(i32::from(run(&sys).await)) });
}

async fn run(sys: &Sys) -> u8 {
    let argv = sys.argv();
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    let [shell, option, text] = &words[..] else { return usage(sys).await };
    if option != "-c" {
        return usage(sys).await;
    }
    let mut status = 0;
    for step in script::read(shell, text) {
        if step.and && status != 0 {
            continue;
        }
        status = match step.op {
            Op::Exit(last) => return last.unwrap_or(status),
            Op::Sleep(span) => {
                sys.sleep(span).await;
                0
            }
            Op::Write { to: To::Out, bytes, status } => print(sys, STDOUT, &bytes, status).await,
            Op::Write { to: To::Err, bytes, status } => print(sys, STDERR, &bytes, status).await,
            Op::Write { to: To::File(file), bytes, status } => match sys.write_file(Path::new(&file), &bytes)
            {
                Ok(()) => status,
                Err(error) => {
                    let text = format!("{shell}: 1: cannot create {file}: {}\n", reason(&error));
                    print(sys, STDERR, text.as_bytes(), 2).await
                }
            },
        };
    }
    status
}

async fn usage(sys: &Sys) -> u8 {
    print(sys, STDERR, b"sh: the simulated shell is started as `sh -c SCRIPT`\n", 2).await
}

/// Writes, and has `status` when all was taken. Where nobody reads, SIGPIPE ends the shell.
async fn print(sys: &Sys, to: Fd, bytes: &[u8], status: u8) -> u8 {
    if sys.write_all(to, bytes).await.is_ok() { status } else { 1 }
}

/// The shell's words for why a file cannot be made.
fn reason(error: &io::Error) -> String {
    match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
        Errno::ENOENT | Errno::ENOTDIR => "Directory nonexistent".into(),
        errno => errno.desc().into(),
    }
}
