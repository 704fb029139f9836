//! Items played in processes of their own: SQLite has state that a whole process shares, and neither a crash nor a hang
//! of one item may take the others along.
//!
//! A worker reads one item a line and answers each with one line, its outcome.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;

use super::item::{Item, Outcome};
use super::{Failure, HELD, marks};

/// Items that a worker has been given and has not answered.
const AHEAD: usize = 32;
/// An item that takes longer than this hangs: the budgets of a run end it much sooner.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Bytes of memory that a process may take; a run takes some megabytes. One that would take more aborts.
const MEMORY: u64 = 4 << 30;

/// Plays what comes on standard input until it ends.
pub(crate) fn serve() -> Result<u8, Failure> {
    crate::disk::forget_statistics();
    setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY)
        .map_err(|error| Failure::broken("a limit to its memory", error))?;
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| Failure::broken("standard input", error))?;
        let item = Item::read(&line).ok_or_else(|| Failure::Input(format!("`{line}` is no item")))?;
        marks::take();
        let played = item.play();
        let outcome = Outcome { reached: marks::take(), ..played };
        let outcome = serde_json::to_string(&outcome).expect("an outcome has string keys alone");
        // Who asked is gone when this fails, and the end of standard input comes next.
        let _ = writeln!(out, "{outcome}").and_then(|()| out.flush());
    }
    Ok(HELD)
}

/// Plays the items, in `jobs` processes of `program`, which are given them in their order; `each` is told of every
/// outcome as it comes, in no order. Once it breaks, no more are given out, and those that were are still told.
///
/// # Errors
/// A process cannot be started.
pub(crate) fn play_all(
    program: &Path,
    items: &[Item],
    jobs: usize,
    mut each: impl FnMut(Outcome) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let left = Mutex::new(items.iter());
    let (outcomes, told) = mpsc::channel();
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..jobs.min(items.len()))
            .map(|_| {
                let (left, outcomes) = (&left, outcomes.clone());
                scope.spawn(move || {
                    let next = || left.lock().expect("no job panics while it takes an item").next().cloned();
                    play_some(program, next, |outcome| drop(outcomes.send(outcome)))
                })
            })
            .collect();
        drop(outcomes);
        for outcome in told {
            if each(outcome).is_break() {
                *left.lock().expect("no job panics while it takes an item") = [].iter();
            }
        }
        jobs.into_iter().try_for_each(|job| job.join().expect("a job does not panic"))
    })
}

/// Plays what `next` gives in one process of `program`, and in a new one after an item that ended it.
pub(crate) fn play_some(
    program: &Path,
    mut next: impl FnMut() -> Option<Item>,
    mut each: impl FnMut(Outcome),
) -> Result<(), Failure> {
    let mut worker = Worker::start(program)?;
    let mut waiting: VecDeque<Item> = VecDeque::new();
    loop {
        while waiting.len() < AHEAD
            && let Some(item) = next()
        {
            worker.give(&item);
            waiting.push_back(item);
        }
        let Some(item) = waiting.pop_front() else { return Ok(()) };
        match worker.answer(&item, PATIENCE) {
            Ok(outcome) => each(outcome),
            Err(reason) => {
                each(Outcome::crash(item, reason));
                worker = Worker::start(program)?;
                waiting.iter().for_each(|item| worker.give(item));
            }
        }
    }
}

/// One process, for items that are played one at a time; a new one after an item that ended it.
pub(crate) struct Stage {
    program: PathBuf,
    worker: Option<Worker>,
}

impl Stage {
    /// A process of `program`, once there is something to play.
    pub(crate) fn of(program: PathBuf) -> Stage {
        Stage { program, worker: None }
    }

    /// Plays one item, for no longer than `patience`.
    ///
    /// # Errors
    /// A process cannot be started.
    pub(crate) fn play(&mut self, item: &Item, patience: Duration) -> Result<Outcome, Failure> {
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => Worker::start(&self.program)?,
        };
        worker.give(item);
        Ok(match worker.answer(item, patience) {
            Ok(outcome) => {
                self.worker = Some(worker);
                outcome
            }
            Err(reason) => Outcome::crash(item.clone(), reason),
        })
    }
}

struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Worker {
    fn start(program: &Path) -> Result<Worker, Failure> {
        let mut child = Command::new(program)
            .arg("worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Failure::broken("no process to play in", error))?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("its standard output was asked for"));
        Ok(Worker { child, stdin, stdout })
    }

    fn give(&mut self, item: &Item) {
        // A worker that is gone shows when its answer is awaited.
        let _ = self.stdin.as_mut().map(|stdin| stdin.write_all(format!("{}\n", item.word()).as_bytes()));
    }

    /// The outcome of the item that was given first; `Err` says how the process ended instead.
    fn answer(&mut self, item: &Item, patience: Duration) -> Result<Outcome, String> {
        let until = Instant::now() + patience;
        while self.stdout.buffer().is_empty() {
            match readable(self.stdout.get_ref(), until) {
                Ok(true) => break,
                Ok(false) => return Err(format!("it still ran after {} s", patience.as_secs())),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        let mut line = String::new();
        // A worker writes whole lines, so this does not wait for the rest of one.
        let read = self.stdout.read_line(&mut line);
        match read.ok().and_then(|_| serde_json::from_str::<Outcome>(&line).ok()) {
            Some(outcome) if outcome.item == *item => Ok(outcome),
            _ => Err(match self.child.wait() {
                Ok(status) => format!("it ended the process that played it: {}", of(status)),
                Err(error) => error.to_string(),
            }),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This very program, to be started again.
///
/// # Errors
/// The system does not say where it is.
pub(crate) fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::broken("the path of this program", error))
}

fn readable(pipe: &ChildStdout, until: Instant) -> Result<bool, Errno> {
    let left = until.saturating_duration_since(Instant::now()).as_millis();
    let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
    Ok(poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], timeout)? > 0)
}

fn of(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) if signal == Signal::SIGABRT as i32 => {
            format!("it died of SIGABRT, as one does that needs more than {} GiB of memory", MEMORY >> 30)
        }
        Some(signal) => format!("it died of {}", crate::kernel::signal_name(signal)),
        None => format!("it exited with status {}", status.code().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program that does this instead of playing, played on for a short while.
    fn of_a_program_that(does: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        fs::write(&program, format!("#!/bin/sh\n{does}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut stage = Stage::of(program);
        let play = |stage: &mut Stage| stage.play(&Item::Seed(1), Duration::from_millis(300)).unwrap();
        let (first, second) = (play(&mut stage), play(&mut stage));
        assert!(first.is_crash());
        assert_eq!(first, second);
        first.found[0].text.clone()
    }

    #[test]
    fn what_ends_its_process_or_hangs_is_a_crash_and_the_next_one_is_played() {
        assert!(of_a_program_that("kill -ABRT $$").contains("it died of SIGABRT"));
        assert!(of_a_program_that("exec sleep 100").starts_with("it still ran after "));
    }
}
