//! The fake plugin of the scenarios as a real executable: `mu_sim::fake` on Linux.
//!
//! It is installed as `mu-plugin-<name>` (a copy or a link) and finds beside that path:
//! `<argv0>.plan.json`, what to do; `<argv0>.state`, how often it was started; and if the plan says so it writes
//! `<argv0>.log`, what happened to it. Exit statuses of its own: 96 without a readable plan.
// This is the real world: it asks the system itself, and nothing here decides what mu does.
#![allow(clippy::disallowed_methods)]

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::future::{Future, ready};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicI32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mu_sim::fake::{
    self, Background, Event, FORK_EVERY_MS, Fd, Group, Heard, LogLine, Note, Plan, PluginSys, Read, Sig,
    Until,
};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigHandler, Signal, kill, raise, signal};
use nix::unistd::{self, ForkResult, Pid};

/// No process of a fake plugin outlives this, whatever its faults say: a test run must leave nothing behind for long.
const SAFETY_ALARM_S: u32 = 120;

/// How long one write to the backend may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    unistd::alarm::set(SAFETY_ALARM_S);
    match Real::start() {
        Ok((mut real, plan)) => {
            let status = finished(fake::run(&mut real, &plan));
            real.log(Event::Exit(status));
            ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX))
        }
        Err(reason) => {
            // Nobody may be reading.
            let _ = writeln!(io::stderr(), "fake plugin: {reason}");
            ExitCode::from(96)
        }
    }
}

/// Every call of [`Real`] blocks, so one poll runs a future to its end.
fn finished<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("no call of the real system is pending"),
    }
}

/// Milliseconds on the monotonic clock, as in the log.
fn clock_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

struct Real {
    parent: Pid,
    start: u32,
    log: Option<File>,
    /// By descriptor number.
    closed: [bool; 3],
    /// The socket of the backend.
    backend: Option<PathBuf>,
    calls: Vec<Call>,
}

/// A connection to the backend.
struct Call {
    number: u32,
    /// Absent once it is lost.
    stream: Option<UnixStream>,
    inbox: Vec<u8>,
    /// Why it was lost, until that was told.
    lost: Option<String>,
}

impl Call {
    /// Reads what has come; there is something.
    fn read(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let mut buffer = [0; 16 << 10];
        match stream.read(&mut buffer) {
            Ok(0) => self.lose(&io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.inbox.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => self.lose(&error),
        }
    }

    fn lose(&mut self, error: &io::Error) {
        self.stream = None;
        self.lost = Some(format!("the connection to the backend is no more: {error}"));
    }
}

impl Real {
    fn start() -> Result<(Real, Plan), String> {
        let parent = unistd::getppid();
        let mut args = std::env::args_os();
        let argv0 = args.next().ok_or("no argv[0]")?;
        let plan_path = beside(&argv0, ".plan.json");
        let plan = std::fs::read(&plan_path).map_err(|error| format!("{}: {error}", plan_path.display()))?;
        let plan = Plan::from_json(&plan).map_err(|error| format!("{}: {error}", plan_path.display()))?;
        let start =
            count_start(&beside(&argv0, ".state")).map_err(|error| format!("start counter: {error}"))?;
        let log = if plan.record {
            let log = OpenOptions::new().append(true).create(true).open(beside(&argv0, ".log"));
            Some(log.map_err(|error| format!("log: {error}"))?)
        } else {
            None
        };
        let real =
            Real { parent, start, log, closed: [false; 3], backend: plan.backend.clone(), calls: Vec::new() };
        real.log_signals();
        let text = |text: OsString| text.to_string_lossy().into_owned();
        let env = std::env::vars_os().map(|(name, _)| text(name)).collect();
        real.log(Event::Started { args: args.map(text).collect(), env });
        Ok((real, plan))
    }

    fn log(&self, event: Event) {
        if let Some(mut log) = self.log.as_ref() {
            let line = LogLine { ms: clock_ms(), pid: unistd::getpid().as_raw(), start: self.start, event };
            // A full disk must not change what the plugin does.
            let _ = log.write_all(&line.to_bytes());
        }
    }

    /// From now on a signal that ends the process is written down first.
    fn log_signals(&self) {
        let Some(log) = &self.log else { return };
        LOG_FD.store(log.as_raw_fd(), Ordering::Relaxed);
        LOG_START.store(i32::try_from(self.start).unwrap_or(i32::MAX), Ordering::Relaxed);
        for sig in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            // SAFETY: the handler calls functions that are safe in a signal handler, and allocates nothing.
            unsafe { signal(sig, SigHandler::Handler(log_and_die)) }.expect("these three can be handled");
        }
    }

    fn fd(&self, fd: Fd) -> io::Result<BorrowedFd<'static>> {
        if self.closed[fd.number() as usize] {
            return Err(Errno::EBADF.into());
        }
        // SAFETY: descriptors 0 to 2 are open from the start, and `closed` says when one no longer is.
        Ok(unsafe { BorrowedFd::borrow_raw(fd.number()) })
    }

    /// The next that has come over a connection to the backend.
    fn take_heard(&mut self) -> Option<(u32, Heard)> {
        self.calls.iter_mut().find_map(|call| {
            if let Some(end) = call.inbox.iter().position(|byte| *byte == b'\n') {
                let rest = call.inbox.split_off(end + 1);
                let mut line = std::mem::replace(&mut call.inbox, rest);
                line.pop();
                return Some((call.number, Heard::Line(line)));
            }
            Some((call.number, Heard::Lost(call.lost.take()?)))
        })
    }

    /// Whether stdin is readable or at its end before the clock shows `until`.
    fn wait_for_stdin(&self, until: Option<u64>) -> bool {
        let stdin = self.fd(Fd::Stdin).ok();
        loop {
            let mut fds: Vec<PollFd> =
                stdin.iter().map(|stdin| PollFd::new(stdin.as_fd(), PollFlags::POLLIN)).collect();
            let left = until.map(|until| until.saturating_sub(clock_ms()));
            match poll(&mut fds, timeout(left)) {
                Ok(n) if n > 0 => return true,
                Ok(_) | Err(Errno::EINTR) if until.is_none_or(|until| clock_ms() < until) => {}
                _ => return false,
            }
        }
    }
}

/// So many milliseconds for `poll`, or for ever.
fn timeout(left: Option<u64>) -> PollTimeout {
    left.map_or(PollTimeout::NONE, |ms| PollTimeout::try_from(ms.min(60_000)).unwrap_or(PollTimeout::MAX))
}

fn beside(argv0: &OsString, suffix: &str) -> PathBuf {
    let mut path = argv0.clone();
    path.push(suffix);
    PathBuf::from(path)
}

/// Which start of the plugin this is. The file is locked while it is counted up, so two processes never share a number.
fn count_start(path: &PathBuf) -> io::Result<u32> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let start = text.trim().parse::<u32>().unwrap_or(0) + 1;
    file.rewind()?;
    file.write_all(start.to_string().as_bytes())?;
    Ok(start)
}

static LOG_FD: AtomicI32 = AtomicI32::new(-1);
static LOG_START: AtomicI32 = AtomicI32::new(0);

/// Writes the line that [`LogLine`] would make, without an allocator, and lets the signal do what it does by default.
extern "C" fn log_and_die(number: i32) {
    let name = Sig::from_number(number).map_or("?", Sig::name);
    let (pid, start, ms) = (unistd::getpid(), LOG_START.load(Ordering::Relaxed), clock_ms());
    let mut line = [0_u8; 160];
    let mut rest = &mut line[..];
    let written =
        writeln!(rest, r#"{{"ms":{ms},"pid":{pid},"start":{start},"event":{{"signal":"{name}"}}}}"#).is_ok();
    let unused = rest.len();
    if written {
        // SAFETY: the log file is never closed in this process.
        let log = unsafe { BorrowedFd::borrow_raw(LOG_FD.load(Ordering::Relaxed)) };
        let _ = unistd::write(log, &line[..line.len() - unused]);
    }
    if let Ok(sig) = Signal::try_from(number) {
        // SAFETY: the default action is no code of ours. The signal is blocked in its own handler and takes effect on
        // return.
        let _ = unsafe { signal(sig, SigHandler::SigDfl) };
        let _ = raise(sig);
    }
}

fn nix_signal(sig: Sig) -> Signal {
    Signal::try_from(sig.number()).expect("Linux knows every signal of a scenario")
}

impl PluginSys for Real {
    fn wait(&mut self, mut buf: Option<&mut [u8]>, until: Option<u64>) -> impl Future<Output = Read> {
        ready(loop {
            if let Some((call, heard)) = self.take_heard() {
                break Read::Backend(call, heard);
            }
            let stdin = buf.as_ref().and_then(|_| self.fd(Fd::Stdin).ok());
            if buf.is_some() && stdin.is_none() {
                break Read::Eof;
            }
            let lines = self.calls.iter().filter_map(|call| Some((call.number, call.stream.as_ref()?)));
            let lines: Vec<(u32, &UnixStream)> = lines.collect();
            let mut fds: Vec<PollFd> =
                stdin.iter().map(|stdin| PollFd::new(stdin.as_fd(), PollFlags::POLLIN)).collect();
            fds.extend(lines.iter().map(|(_, stream)| PollFd::new(stream.as_fd(), PollFlags::POLLIN)));
            let left = until.map(|until| until.saturating_sub(clock_ms()));
            match poll(&mut fds, timeout(left)) {
                Ok(0) | Err(Errno::EINTR) if until.is_none_or(|until| clock_ms() < until) => continue,
                Ok(n) if n > 0 => {}
                _ => break Read::Timeout,
            }
            let is_ready = |fd: &PollFd| fd.any().unwrap_or(false);
            let (of_stdin, of_lines) = fds.split_at(stdin.iter().len());
            let spoken = lines.iter().zip(of_lines).filter(|(_, fd)| is_ready(fd));
            let spoken: Vec<u32> = spoken.map(|((number, _), _)| *number).collect();
            if let (Some(stdin), Some(buf), [fd]) = (stdin, buf.as_deref_mut(), of_stdin)
                && is_ready(fd)
            {
                match unistd::read(stdin, buf) {
                    Ok(0) => break Read::Eof,
                    Ok(n) => break Read::Data(n),
                    Err(Errno::EINTR | Errno::EAGAIN) => {}
                    Err(_) => break Read::Eof,
                }
            }
            for call in self.calls.iter_mut().filter(|call| spoken.contains(&call.number)) {
                call.read();
            }
        })
    }

    fn dial(&mut self, call: u32) {
        let stream = match &self.backend {
            Some(path) => UnixStream::connect(path),
            None => Err(io::ErrorKind::ConnectionRefused.into()),
        };
        let mut call = Call { number: call, stream: None, inbox: Vec::new(), lost: None };
        match stream {
            Ok(stream) => {
                // A line that nobody takes must not hold the plugin.
                let _ = stream.set_write_timeout(Some(WRITE_TIMEOUT));
                call.stream = Some(stream);
            }
            Err(error) => call.lost = Some(error.to_string()),
        }
        self.calls.push(call);
    }

    fn send(&mut self, call: u32, bytes: &[u8]) {
        let call = self.calls.iter_mut().find(|one| one.number == call);
        if let Some(call) = call
            && let Some(stream) = &mut call.stream
            && let Err(error) = stream.write_all(bytes)
        {
            call.lose(&error);
        }
    }

    fn hang_up(&mut self, call: u32) {
        self.calls.retain(|one| one.number != call);
    }

    fn stdin_ready(&mut self) -> impl Future<Output = ()> {
        self.wait_for_stdin(None);
        ready(())
    }

    fn write(&mut self, fd: Fd, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> {
        ready(self.fd(fd).and_then(|fd| {
            loop {
                match unistd::write(fd, bytes) {
                    Err(Errno::EINTR) => {}
                    result => return Ok(result?),
                }
            }
        }))
    }

    fn close(&mut self, fd: Fd) {
        if !std::mem::replace(&mut self.closed[fd.number() as usize], true) {
            // The log file and whatever is opened later may get the number; `closed` keeps it from being used.
            let _ = unistd::close(fd.number());
        }
    }

    fn now_ms(&self) -> u64 {
        clock_ms()
    }

    fn sleep_until(&mut self, at: Option<u64>) -> impl Future<Output = ()> {
        sleep_until(at);
        ready(())
    }

    fn raise(&mut self, sig: Sig) -> impl Future<Output = ()> {
        // The Rust runtime ignores the one, and takes the other for a stack overflow.
        if matches!(sig, Sig::Pipe | Sig::Segv) {
            // SAFETY: the default action is no code of ours.
            let _ = unsafe { signal(nix_signal(sig), SigHandler::SigDfl) };
        }
        let _ = raise(nix_signal(sig));
        ready(())
    }

    fn kill_parent(&mut self, sig: Sig) -> impl Future<Output = ()> {
        // Once the parent is gone its number may belong to anybody.
        if self.parent.as_raw() > 1 && unistd::getppid() == self.parent {
            let _ = kill(self.parent, nix_signal(sig));
        }
        ready(())
    }

    fn ignore(&mut self, sig: Sig) {
        // SAFETY: ignoring is no code of ours.
        let _ = unsafe { signal(nix_signal(sig), SigHandler::SigIgn) };
    }

    fn spawn_background(&mut self, process: &Background) -> impl Future<Output = ()> {
        // Its child says by closing this pipe that it is where it should be.
        let Ok((set_up, setting_up)) = unistd::pipe() else { return ready(()) };
        // SAFETY: this process has one thread, so the child may do anything its parent could.
        match unsafe { unistd::fork() } {
            Ok(ForkResult::Child) => {
                live_in_background(process);
                // The pipe's ends were closed on the way.
                std::mem::forget((set_up, setting_up));
                std::process::exit(0);
            }
            Ok(ForkResult::Parent { child }) => {
                drop(setting_up);
                let _ = unistd::read(&set_up, &mut [0]);
                self.log(Event::Child(child.as_raw()));
            }
            Err(_) => {}
        }
        ready(())
    }

    fn write_file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        std::fs::write(path, bytes)
    }

    fn start(&self) -> u32 {
        self.start
    }

    fn env(&self, name: &str) -> Option<Vec<u8>> {
        std::env::var_os(name).map(|value| value.as_bytes().to_vec())
    }

    fn note(&mut self, note: Note<'_>) {
        if self.log.is_some() {
            self.log(note.into());
        }
    }
}

fn sleep_until(at: Option<u64>) {
    loop {
        let left = at.map(|at| at.saturating_sub(clock_ms()));
        match left {
            Some(0) => return,
            Some(ms) => {
                let timeout = PollTimeout::try_from(ms.min(60_000)).unwrap_or(PollTimeout::MAX);
                let _ = poll(&mut [], timeout);
            }
            None => unistd::pause(),
        }
    }
}

/// The whole life of a process that the plugin leaves behind.
fn live_in_background(process: &Background) {
    unistd::alarm::set(SAFETY_ALARM_S);
    if process.group == Group::Setsid {
        // A forked child leads no group, so this cannot fail.
        let _ = unistd::setsid();
    }
    for sig in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        // SAFETY: the default action is no code of ours.
        let _ = unsafe { signal(sig, SigHandler::SigDfl) };
    }
    // The pipe that the parent waits on is closed here too: from now on everything is set up.
    for number in 0..1_024 {
        if !process.holds.iter().any(|held| held.number() == number) {
            let _ = unistd::close(number);
        }
    }
    for _ in 0..process.forks {
        sleep_until(Some(clock_ms() + FORK_EVERY_MS));
        // SAFETY: this process has one thread, so the child may do anything its parent could.
        if !matches!(unsafe { unistd::fork() }, Ok(ForkResult::Child)) {
            std::process::exit(0);
        }
        unistd::alarm::set(SAFETY_ALARM_S);
    }
    match process.until {
        Until::Forever => sleep_until(None),
        Until::Ms(ms) => sleep_until(Some(clock_ms() + ms)),
        Until::Eof => {
            // SAFETY: `holds` names stdin, or the read fails at once.
            let stdin = unsafe { BorrowedFd::borrow_raw(0) };
            while matches!(unistd::read(stdin, &mut [0; 4096]), Ok(1..) | Err(Errno::EINTR)) {}
        }
    }
}
