//! mu's operating system on the simulated machine: the traits of [`mu_core::os`] over [`Sys`].
//!
//! Every call is counted before it takes place, [`Child`]'s included, and the scenario may have the process killed or
//! panic instead ([`crate::kernel::Command::on_os_call`]). Once the process is dead, calls that wait never finish and
//! the others answer without any effect.

use std::cell::RefCell;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::task::{Context, Poll};

use mu_core::os::{
    BootTime, Child, ChildPipe, Env, EpochMs, Exec, Exit, FileFacts, Mono, Os, Pid, ProcessId, Signal, Stream,
};
use nix::errno::Errno;

use crate::disk::Database;
use crate::kernel::{
    Disposition, Fd, Give, Group, SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGTERM, STDERR, STDIN, STDOUT, Sleep,
    Spawn, Spawned, Sys,
};
use crate::oracle::effects::is_effect;
use crate::streams;

/// The mode of directories that mu makes: for its user alone.
const PRIVATE: u32 = 0o700;

/// The operating system of one simulated `mu`.
#[derive(Clone)]
pub struct SimOs {
    sys: Sys,
    own: Rc<Own>,
    watch: Option<Watch>,
}

/// Sees the moments right before a mu writes the first byte of an effect to a plugin.
#[derive(Clone)]
pub struct Watch(Rc<dyn Fn()>);

impl Watch {
    /// Has `see` called at each such moment. It looks and changes nothing.
    pub fn new(see: impl Fn() + 'static) -> Watch {
        Watch(Rc::new(see))
    }
}

struct Own {
    env: Env,
    random: RefCell<streams::Stream>,
}

impl SimOs {
    /// Takes over a process as mu does at its start: SIGPIPE is ignored, SIGINT, SIGTERM and SIGHUP are handled. SIGINT
    /// and SIGHUP stay ignored when they were: `nohup`, or the `&` of a script.
    ///
    /// Random bytes come from the stream `program.<name>/<nth>/random` of the run.
    pub fn new(sys: Sys) -> SimOs {
        let set = |number, action| {
            // Only a dead process is refused, and nothing matters to it.
            let _ = sys.on_signal(number, action);
        };
        set(SIGPIPE, Disposition::Ignore);
        set(SIGTERM, Disposition::Handle);
        for number in [SIGINT, SIGHUP] {
            if sys.action(number) != Disposition::Ignore {
                set(number, Disposition::Handle);
            }
        }
        let env = Env {
            argv: sys.argv().to_vec(),
            vars: sys.vars(),
            cwd: sys.cwd(),
            euid: sys.uid(),
            stdout_is_terminal: sys.stdout_is_terminal(),
            pid: sys.pid(),
        };
        let random = RefCell::new(sys.stream("random"));
        SimOs { sys, own: Rc::new(Own { env, random }), watch: None }
    }

    /// The same, watched.
    pub fn watched(self, watch: Watch) -> SimOs {
        SimOs { watch: Some(watch), ..self }
    }

    fn sys(&self, call: &'static str) -> &Sys {
        self.sys.count_os_call(call);
        &self.sys
    }
}

impl Os for SimOs {
    type Child = SimChild;
    type Sleep = Sleep;
    type Db = Database;

    fn now(&self) -> Mono {
        self.sys("now").now()
    }

    fn wall(&self) -> EpochMs {
        self.sys("wall").wall()
    }

    fn boot(&self) -> BootTime {
        let sys = self.sys("boot");
        BootTime { boot: sys.boot_text(), since: sys.boottime() }
    }

    fn sleep_until(&self, at: Mono) -> Sleep {
        self.sys("sleep_until").sleep_until(at)
    }

    fn spawn(&self, exec: &Exec) -> io::Result<SimChild> {
        let sys = self.sys("spawn");
        // As the real machine does before it asks the system: nothing is looked up, and no text is cut at a NUL.
        let is_absolute = exec.argv.first().is_some_and(|program| Path::new(program).is_absolute());
        let variables = exec.env.iter().flat_map(|(name, value)| [name, value]);
        if !is_absolute || exec.argv.iter().chain(variables).any(|text| text.as_bytes().contains(&0)) {
            return Err(Errno::EINVAL.into());
        }
        let fds = [(STDIN, Give::Pipe), (STDOUT, Give::Pipe), (STDERR, Give::Pipe)];
        let spawn = Spawn { exec, group: Group::Own, fds: &fds, cwd: None, defaults: &[SIGPIPE] };
        let Spawned { pid, pipes } = sys.spawn(&spawn)?;
        let [stdin, stdout, stderr] = pipes[..] else { unreachable!("three pipes were asked for") };
        let identity = sys.identity(pid).expect("a child that was just started is known");
        let (sys, watch) = (self.sys.clone(), self.watch.clone());
        Ok(SimChild { sys, pid, identity, stdin: Some(stdin), stdout, stderr, watch, within: false })
    }

    fn identify(&self, pid: Pid) -> Option<ProcessId> {
        self.sys("identify").identify(pid)
    }

    fn group_alive(&self, leader: &ProcessId) -> bool {
        self.sys("group_alive").group_alive(leader)
    }

    fn poll_signal(&self, cx: &mut Context<'_>) -> Poll<Signal> {
        let sys = self.sys("poll_signal");
        loop {
            match sys.poll_signal(cx) {
                Poll::Ready(SIGINT) => return Poll::Ready(Signal::Interrupt),
                Poll::Ready(SIGTERM) => return Poll::Ready(Signal::Terminate),
                Poll::Ready(SIGHUP) => return Poll::Ready(Signal::HangUp),
                // Nothing else is handled.
                Poll::Ready(_) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn raise_default(&self, signal: Signal) {
        let sys = self.sys("raise_default");
        // Both are refused to the dead alone.
        let _ = sys.on_signal(signal.number(), Disposition::Default);
        let _ = sys.kill(sys.pid(), signal.number());
    }

    fn facts(&self, path: &Path) -> io::Result<FileFacts> {
        self.sys("facts").facts(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.sys("create_dir_all").create_dir_all(path, PRIVATE)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.sys("remove_file").remove_file(path)
    }

    fn read_file(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        self.sys("read_file").read_file(path, limit)
    }

    fn open_db(&self, path: &Path) -> rusqlite::Result<Database> {
        self.sys("open_db").open_db(path)
    }

    fn random(&self, buf: &mut [u8]) {
        self.sys("random");
        self.own.random.borrow_mut().fill(buf);
    }

    fn env(&self) -> &Env {
        self.sys("env");
        &self.own.env
    }

    fn poll_write(&self, stream: Stream, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let fd = match stream {
            Stream::Out => STDOUT,
            Stream::Err => STDERR,
        };
        self.sys("poll_write").poll_write(fd, cx, bytes)
    }
}

/// A child of a simulated `mu`.
pub struct SimChild {
    sys: Sys,
    pid: Pid,
    identity: ProcessId,
    /// Absent once closed.
    stdin: Option<Fd>,
    stdout: Fd,
    stderr: Fd,
    watch: Option<Watch>,
    /// A line has been begun and not ended.
    within: bool,
}

impl SimChild {
    fn sys(&self, call: &'static str) -> &Sys {
        self.sys.count_os_call(call);
        &self.sys
    }
}

impl Child for SimChild {
    fn pid(&self) -> Pid {
        self.pid
    }

    fn identity(&self) -> &ProcessId {
        &self.identity
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let stdin = self.stdin.expect("nothing is written after stdin was closed");
        self.sys("child.poll_write");
        if let Some(Watch(see)) = &self.watch
            && !self.within
            && self.sys.alive()
            && is_effect(bytes)
        {
            see();
        }
        let written = self.sys.poll_write(stdin, cx, bytes);
        if let Poll::Ready(Ok(count)) = written
            && count > 0
        {
            self.within = bytes[count - 1] != b'\n';
        }
        written
    }

    fn close_stdin(&mut self) {
        if let Some(stdin) = self.stdin.take() {
            // Only a dead process is refused, and its descriptors are closed.
            let _ = self.sys("child.close_stdin").close(stdin);
        }
    }

    fn poll_read(
        &mut self,
        pipe: ChildPipe,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let fd = match pipe {
            ChildPipe::Stdout => self.stdout,
            ChildPipe::Stderr => self.stderr,
        };
        self.sys("child.poll_read").poll_read(fd, cx, buf)
    }

    fn poll_exited(&mut self, cx: &mut Context<'_>) -> Poll<Exit> {
        self.sys("child.poll_exited")
            .poll_exited(self.pid, cx)
            .map(|exit| exit.expect("a child stays a child until it is reaped"))
    }

    fn poll_group_empty(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.sys("child.poll_group_empty").poll_group_empty(self.pid, cx)
    }

    fn kill_group(&mut self) {
        // A group that is gone is no error.
        let _ = self.sys("child.kill_group").kill_group(self.pid, SIGKILL);
    }

    fn reap(&mut self) {
        let reaped = self.sys("child.reap").reap(self.pid);
        debug_assert!(reaped.is_ok() || !self.sys.alive(), "reaped twice, or alive: {reaped:?}");
    }
}

impl Drop for SimChild {
    fn drop(&mut self) {
        for fd in self.stdin.into_iter().chain([self.stdout, self.stderr]) {
            // Only a dead process is refused.
            let _ = self.sys.close(fd);
        }
    }
}
