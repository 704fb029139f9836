//! What a program sees of its machine: system calls, bound to its process.
//!
//! Once the process is dead every call is without effect: those that wait never finish, the others answer `ESRCH`. A
//! signal that a process sends to itself takes effect at its next wait.

use std::cell::Ref;
use std::convert::Infallible;
use std::ffi::OsString;
use std::future::{Future, poll_fn};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mu_core::os::{EpochMs, Exit, FileFacts, Mono, Pid, ProcessId};
use nix::errno::Errno;

use super::process::{Birth, End, Image, Index, Process, State};
use super::spawn::{Fork, Spawn, Spawned, check_sizes, image, short_name};
use super::{Disposition, Fd, Kernel, OsCall, OsCallVerdict, SIGKILL, World, owner};
use crate::disk::Database;
use crate::executor::TimerId;
use crate::streams::Stream;
use crate::trace::{Target, What};

/// The system calls of one process. Cheap to clone.
#[derive(Clone)]
pub struct Sys {
    world: Rc<World>,
    me: Index,
}

impl Sys {
    pub(super) fn new(world: Rc<World>, me: Index) -> Sys {
        Sys { world, me }
    }

    fn me(&self) -> Ref<'_, Process> {
        Ref::map(self.world.kernel.borrow(), |kernel| &kernel.procs[self.me])
    }

    /// Whether the process is alive; a stopped one is.
    pub fn alive(&self) -> bool {
        self.me().alive()
    }

    /// A call that answers at once.
    fn call<R>(&self, f: impl FnOnce(&mut Kernel, Index) -> Result<R, Errno>) -> io::Result<R> {
        if !self.alive() {
            return Err(Errno::ESRCH.into());
        }
        self.world.spend();
        Ok(self.world.with(|kernel| f(kernel, self.me))?)
    }

    /// A call that may wait. A dead process waits for ever, a stopped one until it is continued.
    fn wait<R>(&self, waker: &Waker, f: impl FnOnce(&mut Kernel, Index) -> Poll<R>) -> Poll<R> {
        let state = self.me().state;
        match state {
            State::Zombie(_) | State::Reaped(_) => return Poll::Pending,
            State::Stopped => {
                waker.wake_by_ref();
                return Poll::Pending;
            }
            State::Running => {}
        }
        self.world.spend();
        self.world.with(|kernel| f(kernel, self.me))
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        self.me().pid
    }

    /// The process id of its parent: 1 once the one that started it is gone.
    pub fn ppid(&self) -> Pid {
        let kernel = self.world.kernel.borrow();
        kernel.procs[kernel.procs[self.me].parent].pid
    }

    /// Its process group.
    pub fn pgid(&self) -> Pid {
        self.me().group
    }

    /// Its session.
    pub fn sid(&self) -> Pid {
        self.me().session
    }

    /// The user it runs as.
    pub fn uid(&self) -> u32 {
        self.me().uid
    }

    /// How many processes with the same program name were started before it in this run.
    pub fn nth(&self) -> u32 {
        self.me().nth
    }

    /// Its arguments, the program first.
    pub fn argv(&self) -> Rc<[OsString]> {
        self.me().image.argv.clone()
    }

    /// All its variables.
    pub fn vars(&self) -> Vec<(OsString, OsString)> {
        self.me().image.vars.clone()
    }

    /// The value of a variable.
    pub fn var(&self, name: &str) -> Option<OsString> {
        let process = self.me();
        process.image.vars.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }

    /// Its working directory.
    pub fn cwd(&self) -> PathBuf {
        self.me().image.cwd.clone()
    }

    /// Whether its standard output is a terminal.
    pub fn stdout_is_terminal(&self) -> bool {
        self.me().terminal
    }

    /// The monotonic clock.
    pub fn now(&self) -> Mono {
        if self.alive() {
            self.world.spend();
        }
        Mono(self.world.kernel.borrow().clocks.monotonic(self.world.exec.now()))
    }

    /// Time since the machine was started, with the time it slept.
    pub fn boottime(&self) -> Duration {
        self.world.kernel.borrow().clocks.boottime(self.world.exec.now())
    }

    /// The id of this boot of the machine.
    pub fn boot_id(&self) -> u128 {
        self.world.kernel.borrow().clocks.boot_id
    }

    /// The wall clock.
    pub fn wall(&self) -> EpochMs {
        EpochMs(self.world.kernel.borrow().clocks.wall_ms(self.world.exec.now()))
    }

    /// The stream of random numbers called `name` of this program: by the program's name and [`Sys::nth`], so that
    /// other processes do not shift it.
    pub fn stream(&self, name: &str) -> Stream {
        let kernel = self.world.kernel.borrow();
        let process = &kernel.procs[self.me];
        Stream::new(kernel.seed, &format!("program.{}/{}/{name}", process.name, process.nth))
    }

    /// A timer that is ready once the monotonic clock shows `at`.
    pub fn sleep_until(&self, at: Mono) -> Sleep {
        let at = self.world.kernel.borrow().clocks.instant(at.0);
        Sleep { sys: self.clone(), at, timer: None }
    }

    /// A timer that is ready after `span`.
    pub fn sleep(&self, span: Duration) -> Sleep {
        self.sleep_until(self.now() + span)
    }

    /// Reads from a descriptor; 0 is the end of the stream. `EBADF` when it is not open for reading.
    pub fn poll_read(&self, fd: Fd, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let waker = cx.waker();
        self.wait(waker, |kernel, me| kernel.read(me, fd, waker, buf))
    }

    /// Ready when [`Sys::poll_read`] would be. Reads nothing.
    pub fn poll_readable(&self, fd: Fd, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let waker = cx.waker();
        self.wait(waker, |kernel, me| kernel.readable(me, fd, waker))
    }

    /// Writes to a descriptor; returns how many bytes were taken. Up to [`super::PIPE_ATOMIC`] bytes are taken whole.
    ///
    /// `EPIPE` when nobody can read, after SIGPIPE, which ends the process unless it is ignored or handled. `EBADF` when
    /// it is not open for writing.
    pub fn poll_write(&self, fd: Fd, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let waker = cx.waker();
        self.wait(waker, |kernel, me| kernel.write(me, fd, waker, bytes))
    }

    /// See [`Sys::poll_read`].
    pub async fn read(&self, fd: Fd, buf: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.poll_read(fd, cx, buf)).await
    }

    /// Reads until the monotonic clock shows `deadline`; `None` when it came first.
    pub async fn read_before(&self, fd: Fd, buf: &mut [u8], deadline: Mono) -> io::Result<Option<usize>> {
        let mut timer = self.sleep_until(deadline);
        poll_fn(|cx| match self.poll_read(fd, cx, buf) {
            Poll::Ready(read) => Poll::Ready(read.map(Some)),
            Poll::Pending => Pin::new(&mut timer).poll(cx).map(|()| Ok(None)),
        })
        .await
    }

    /// Waits until a read would return at once.
    pub async fn readable(&self, fd: Fd) -> io::Result<()> {
        poll_fn(|cx| self.poll_readable(fd, cx)).await
    }

    /// One write, which may take a part only. See [`Sys::poll_write`].
    pub async fn write(&self, fd: Fd, bytes: &[u8]) -> io::Result<usize> {
        poll_fn(|cx| self.poll_write(fd, cx, bytes)).await
    }

    /// Writes until everything is taken.
    pub async fn write_all(&self, fd: Fd, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let taken = self.write(fd, bytes).await?;
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// A new pipe: its end for reading, its end for writing.
    pub fn pipe(&self) -> io::Result<(Fd, Fd)> {
        self.call(|kernel, me| {
            let id = kernel.new_pipe();
            Ok((kernel.open_fd(me, End::Read(id)), kernel.open_fd(me, End::Write(id))))
        })
    }

    /// A second descriptor for the same end; `EBADF` when `fd` is not open.
    pub fn dup(&self, fd: Fd) -> io::Result<Fd> {
        self.call(|kernel, me| {
            let end = kernel.procs[me].end_of(fd).ok_or(Errno::EBADF)?;
            Ok(kernel.open_fd(me, end))
        })
    }

    /// Closes a descriptor; `EBADF` when it is not open.
    pub fn close(&self, fd: Fd) -> io::Result<()> {
        self.call(|kernel, me| kernel.close(me, fd))
    }

    /// Starts the program that `argv[0]` leads to.
    ///
    /// `ENOENT`: no such file, or its interpreter is missing. `EACCES`: a directory, a fifo, a socket, a device, or no
    /// permission to execute. `ETXTBSY`: it is being written. `ENOEXEC`: no program. `E2BIG`: an argument or a variable
    /// of 128 KiB or more. `EBADF`: a descriptor to be kept
    /// is not open. `EPERM`: no such group in the session. `EAGAIN`: too many processes.
    pub fn spawn(&self, spawn: &Spawn<'_>) -> io::Result<Spawned> {
        if !self.alive() {
            return Err(Errno::ESRCH.into());
        }
        self.world.spend();
        let (uid, cwd) = (self.uid(), spawn.cwd.map_or_else(|| self.cwd(), Path::to_owned));
        let program = self.world.program(uid, &cwd, &spawn.exec.argv);
        let started = program.and_then(|program| {
            check_sizes(spawn.exec)?;
            let birth = Birth {
                defaults: spawn.defaults.to_vec(),
                ..self.birth(short_name(&spawn.exec.argv), image(spawn.exec, cwd), spawn.group)
            };
            self.launch(birth, spawn.fds, |sys| program(sys))
        });
        if let Err(errno) = started {
            let program = spawn.exec.argv.first().cloned().unwrap_or_default();
            let failed = What::ExecFailed { program, errno: errno as i32 };
            self.world.with(|kernel| kernel.push(kernel.procs[self.me].pid, failed));
        }
        Ok(started?)
    }

    /// Starts a child that goes on as `child` instead of executing a file. Errors as for [`Sys::spawn`].
    pub fn fork<F>(&self, fork: &Fork<'_>, child: impl FnOnce(Sys) -> F) -> io::Result<Spawned>
    where
        F: Future<Output = Exit> + 'static,
    {
        if !self.alive() {
            return Err(Errno::ESRCH.into());
        }
        self.world.spend();
        let argv: Rc<[OsString]> = [OsString::from(fork.name)].into();
        let image = Image { argv, vars: self.vars(), cwd: self.cwd() };
        let birth = self.birth(fork.name.into(), image, fork.group);
        Ok(self.launch(birth, fork.fds, |sys| Box::pin(child(sys)))?)
    }

    fn birth(&self, name: Rc<str>, image: Image, group: super::Group) -> Birth {
        Birth {
            parent: self.me,
            name,
            image,
            uid: self.uid(),
            group,
            defaults: Vec::new(),
            terminal: false,
            on_os_call: None,
        }
    }

    fn launch(
        &self,
        birth: Birth,
        fds: &[(Fd, super::Give)],
        make: impl FnOnce(Sys) -> super::ProgramFuture,
    ) -> Result<Spawned, Errno> {
        let (given, pipes) = self.world.with(|kernel| kernel.give(self.me, fds))?;
        match self.world.launch(self.pid(), birth, &given, make) {
            Ok(child) => Ok(Spawned { pid: self.world.kernel.borrow().procs[child].pid, pipes }),
            Err(errno) => {
                self.world.with(|kernel| {
                    pipes.iter().for_each(|fd| kernel.close(self.me, *fd).expect("it was opened just now"));
                });
                Err(errno)
            }
        }
    }

    /// Ends the process at once, as `_exit` does; the low 8 bits of `status` count.
    pub async fn exit(&self, status: i32) -> Infallible {
        let ended = self.call(|kernel, me| {
            kernel.end(me, Exit::Status(status & 0xff));
            Ok(())
        });
        debug_assert!(ended.is_ok() || !self.alive(), "only the dead cannot exit");
        std::future::pending().await
    }

    /// Sends a signal to a process; number 0 only asks. `ESRCH`: nobody there. `EPERM`: of another user.
    pub fn kill(&self, pid: Pid, number: i32) -> io::Result<()> {
        self.call(|kernel, me| kernel.send(Some(me), Target::Process(pid), number))
    }

    /// Sends a signal to every process of a group. `ESRCH`: none there, not even a zombie. `EPERM`: all of others.
    pub fn kill_group(&self, group: Pid, number: i32) -> io::Result<()> {
        self.call(|kernel, me| kernel.send(Some(me), Target::Group(group), number))
    }

    /// Sends a signal to the process itself, and returns only if it lives on and runs.
    pub async fn raise(&self, number: i32) -> io::Result<()> {
        self.kill(self.pid(), number)?;
        poll_fn(|cx| self.wait(cx.waker(), |_, _| Poll::Ready(Ok(())))).await
    }

    /// What a signal does to the process.
    pub fn action(&self, number: i32) -> Disposition {
        self.me().action(number)
    }

    /// Sets what a signal does; `EINVAL` for SIGKILL and SIGSTOP.
    pub fn on_signal(&self, number: i32, action: Disposition) -> io::Result<()> {
        self.call(|kernel, me| kernel.set_action(me, number, action))
    }

    /// Ready with the handled signal that has waited longest. One that comes again before it was fetched counts once.
    pub fn poll_signal(&self, cx: &mut Context<'_>) -> Poll<i32> {
        let waker = cx.waker();
        self.wait(waker, |kernel, me| kernel.fetch_signal(me, waker))
    }

    /// See [`Sys::poll_signal`].
    pub async fn signal(&self) -> i32 {
        poll_fn(|cx| self.poll_signal(cx)).await
    }

    /// Leads a new session and group; `EPERM` for a leader of a group.
    pub fn setsid(&self) -> io::Result<Pid> {
        self.call(|kernel, me| kernel.new_session(me))
    }

    /// Moves to a group of its session, or to one of its own; `EPERM` otherwise.
    pub fn setpgid(&self, group: Pid) -> io::Result<()> {
        self.call(|kernel, me| kernel.join_group(me, group))
    }

    /// Ready once the child has ended; does not reap. `ECHILD` when it is no child of this process.
    pub fn poll_exited(&self, child: Pid, cx: &mut Context<'_>) -> Poll<io::Result<Exit>> {
        let waker = cx.waker();
        self.wait(waker, |kernel, me| kernel.exited(me, child, waker)).map_err(io::Error::from)
    }

    /// Reaps a child that has ended. `ECHILD` when it is none, `EAGAIN` when it lives.
    pub fn reap(&self, child: Pid) -> io::Result<Exit> {
        self.call(|kernel, me| kernel.reap(me, child))
    }

    /// Waits for the end of a child and reaps it; `ECHILD` when it is none.
    pub async fn wait_for(&self, child: Pid) -> io::Result<Exit> {
        poll_fn(|cx| self.poll_exited(child, cx)).await?;
        self.reap(child)
    }

    /// Ready once no process of the group lives; zombies do not count.
    pub fn poll_group_empty(&self, group: Pid, cx: &mut Context<'_>) -> Poll<()> {
        let waker = cx.waker();
        self.wait(waker, |kernel, me| kernel.group_empty(me, group, waker))
    }

    /// The living process with this pid; `None` when there is none. A stopped process lives.
    pub fn identify(&self, pid: Pid) -> Option<ProcessId> {
        let lives = {
            let kernel = self.world.kernel.borrow();
            kernel.procs[kernel.find(pid)?].alive()
        };
        if lives { self.identity(pid) } else { None }
    }

    /// Which process has this pid, dead or alive; `None` when it was reaped or never was.
    pub fn identity(&self, pid: Pid) -> Option<ProcessId> {
        let kernel = self.world.kernel.borrow();
        let started = kernel.procs[kernel.find(pid)?].started;
        Some(ProcessId { pid, started, boot: kernel.clocks.boot_text() })
    }

    /// Whether the group that this process founded has a living member. See [`mu_core::os::Os::group_alive`].
    pub fn group_alive(&self, founder: &ProcessId) -> bool {
        let another = self.identity(founder.pid).is_some_and(|now| now != *founder);
        let kernel = self.world.kernel.borrow();
        let member = |who: Index| kernel.procs[who].group == founder.pid;
        founder.boot == kernel.clocks.boot_text() && !another && kernel.living().any(member)
    }

    /// The id of this boot as the kernel spells it.
    pub fn boot_text(&self) -> String {
        self.world.kernel.borrow().clocks.boot_text()
    }

    /// `stat`, links followed; `EACCES` behind a directory that its user may not pass.
    pub fn facts(&self, path: &Path) -> io::Result<FileFacts> {
        let path = self.cwd().join(path);
        self.call(|_, _| Ok(()))?;
        self.world.disk.facts_for(&path, self.uid())
    }

    /// Creates a directory and its missing parents with this mode.
    pub fn create_dir_all(&self, path: &Path, mode: u32) -> io::Result<()> {
        let path = self.cwd().join(path);
        self.call(|_, _| Ok(()))?;
        self.world.disk.create_dir_all(&path, self.uid(), mode)
    }

    /// Writes a whole file, which is made with mode 0644 when it is missing. `ENOENT`, `ENOTDIR`: its directory is none.
    /// `EISDIR`: a directory. `EACCES`: its user may not write it, or not make it there. A device takes everything.
    pub fn write_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let path = self.cwd().join(path);
        self.call(|_, _| Ok(()))?;
        self.world.disk.write(&path, self.uid(), bytes)
    }

    /// `unlink`: `ENOENT`, `EISDIR` for a directory, `EACCES` where its user may not write.
    pub fn remove_file(&self, path: &Path) -> io::Result<()> {
        let path = self.cwd().join(path);
        self.call(|_, _| Ok(()))?;
        self.world.disk.unlink(&path, self.uid())
    }

    /// The first `limit` bytes of a regular file, links followed; `EINVAL` for anything else, `EACCES` when its user may
    /// not read it.
    pub fn read_file(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let path = self.cwd().join(path);
        self.call(|_, _| Ok(()))?;
        self.world.disk.read(&path, self.uid(), limit)
    }

    /// Opens a database on the disk of the machine.
    pub fn open_db(&self, path: &Path) -> rusqlite::Result<Database> {
        let path = self.cwd().join(path);
        if self.alive() {
            self.world.spend();
        }
        self.world.disk.set_wall(self.wall());
        // The disk refuses whatever a dead process asks for.
        self.world.disk.open_db(owner(self.me), self.uid(), &path)
    }

    /// Tells the reader of the transcript something.
    pub fn note(&self, text: &str) {
        self.tell(What::Note(text.into()));
    }

    /// Tells that a scripted or drawn fault takes place now.
    pub fn fault(&self, text: &str) {
        self.tell(What::Fault(text.into()));
    }

    fn tell(&self, what: What) {
        if self.alive() {
            self.world.with(|kernel| kernel.push(kernel.procs[self.me].pid, what));
        }
    }

    /// Counts a call of mu's and asks the scenario whether it may take place. A kill has happened when this returns.
    ///
    /// # Panics
    ///
    /// When the scenario says so; quietly, without the panic hook.
    pub(crate) fn count_os_call(&self, name: &'static str) {
        let (call, hook) = {
            let process = &mut self.world.kernel.borrow_mut().procs[self.me];
            if !process.alive() {
                return;
            }
            process.os_calls += 1;
            let Some(hook) = &process.on_os_call else { return };
            (OsCall { pid: process.pid, nth: process.os_calls, name }, hook.clone())
        };
        match hook(call) {
            OsCallVerdict::Go => {}
            OsCallVerdict::Kill => {
                self.fault(&format!("SIGKILL at call {} of the operating system, {name}", call.nth));
                self.world.with(|kernel| kernel.deliver(self.me, SIGKILL));
            }
            OsCallVerdict::Panic => {
                let text = format!("panic at call {} of the operating system, {name}", call.nth);
                self.fault(&text);
                std::panic::resume_unwind(Box::new(text));
            }
        }
    }
}

/// A timer of a process. Once the process is dead it never fires.
pub struct Sleep {
    sys: Sys,
    at: u64,
    timer: Option<TimerId>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        let due = self.sys.wait(cx.waker(), |kernel, _| Poll::Ready(kernel.exec.now() >= at));
        let exec = &self.sys.world.exec;
        match (due, self.timer) {
            (Poll::Ready(true), _) => return Poll::Ready(()),
            (Poll::Ready(false), None) => {
                let timer = exec.set_timer(at, cx.waker().clone());
                self.timer = Some(timer);
            }
            (Poll::Ready(false), Some(timer)) => exec.rewake_timer(timer, cx.waker()),
            (Poll::Pending, _) => {}
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.sys.world.exec.cancel_timer(timer);
        }
    }
}
