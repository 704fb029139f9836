//! Finding a program on the disk, and starting it.

use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;

use mu_core::os::{Exec, Exit, Pid};
use nix::errno::Errno;

use super::process::{Birth, End, Fd, Group, Image, Index, STDIN};
use super::sys::Sys;
use super::{Kernel, World};
use crate::disk::{Disk, Node};
use crate::trace::What;

/// A program while it runs.
pub type ProgramFuture = Pin<Box<dyn Future<Output = Exit>>>;

/// A program that can be executed: what starts when a file of the disk that bears its name is.
pub type Program = Rc<dyn Fn(Sys) -> ProgramFuture>;

/// What a descriptor of a child leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Give {
    /// A new pipe, whose other end the parent gets. The child reads descriptor 0 and writes any other.
    Pipe,
    /// What this descriptor of the parent leads to.
    Keep(Fd),
    /// `/dev/null`.
    Null,
}

/// How to start a program. The child has no descriptor but those named here.
#[derive(Clone, Debug)]
pub struct Spawn<'a> {
    /// Program (a path) with arguments, and the whole environment.
    pub exec: &'a Exec,
    /// Its process group.
    pub group: Group,
    /// Its descriptors.
    pub fds: &'a [(Fd, Give)],
    /// Its working directory; that of the parent when absent.
    pub cwd: Option<&'a Path>,
    /// Signals whose default action it gets though its parent ignores them.
    pub defaults: &'a [i32],
}

/// How to go on in a child without executing anything.
#[derive(Clone, Debug)]
pub struct Fork<'a> {
    /// Its name in reports.
    pub name: &'a str,
    /// Its process group.
    pub group: Group,
    /// Its descriptors.
    pub fds: &'a [(Fd, Give)],
}

/// A child that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawned {
    /// Its process id.
    pub pid: Pid,
    /// The parent's ends of the new pipes, in the order in which they were asked for.
    pub pipes: Vec<Fd>,
}

/// The descriptors of a child, and the parent's ends of the new pipes among them.
type Given = (Vec<(Fd, End)>, Vec<Fd>);

/// The permission to execute, in each digit of a mode.
const EXECUTE: u32 = 0o111;

/// How many bytes an argument or a variable (`NAME=value`) may have, its NUL included.
const STRING_LIMIT: usize = 128 * 1024;

/// `E2BIG` when an argument or a variable is longer than `execve` takes. The sum is not limited here.
pub(super) fn check_sizes(exec: &Exec) -> Result<(), Errno> {
    let arguments = exec.argv.iter().map(|argument| argument.len() + 1);
    let variables = exec.env.iter().map(|(name, value)| name.len() + 1 + value.len() + 1);
    match arguments.chain(variables).all(|bytes| bytes <= STRING_LIMIT) {
        true => Ok(()),
        false => Err(Errno::E2BIG),
    }
}

/// The program that a path leads to, or why the kernel would not execute it. Looked for in the order of `execve`:
/// the path, its type and mode, whether it is being written, its interpreter, its format.
pub(super) fn find_program(disk: &Disk, uid: u32, path: &Path) -> Result<String, Errno> {
    let errno = |error: std::io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32));
    let facts = disk.facts_for(path, uid).map_err(errno)?;
    let digit = if facts.uid == uid { 0o100 } else { 0o001 };
    let allowed = if uid == 0 { facts.mode & EXECUTE != 0 } else { facts.mode & digit != 0 };
    let node = disk.lookup(path).map_err(errno)?;
    match node {
        Node::Directory | Node::Fifo | Node::Socket | Node::Device => Err(Errno::EACCES),
        _ if !allowed => Err(Errno::EACCES),
        Node::Program { busy: true, .. } => Err(Errno::ETXTBSY),
        Node::Program { interpreter_missing: true, .. } => Err(Errno::ENOENT),
        Node::Program { name, .. } => Ok(name),
        // `facts` has followed the links.
        Node::Bytes | Node::Link(_) => Err(Errno::ENOEXEC),
    }
}

impl World {
    /// The program behind `argv[0]`, seen from `cwd`.
    pub(super) fn program(&self, uid: u32, cwd: &Path, argv: &[OsString]) -> Result<Program, Errno> {
        let file = argv.first().ok_or(Errno::ENOENT)?;
        let name = find_program(&self.disk, uid, &cwd.join(file))?;
        // A file whose program is not installed has a format that nothing here can run.
        self.programs.borrow().get(&name).cloned().ok_or(Errno::ENOEXEC)
    }

    /// Adds a process and lets it run. `by` is who started it in the trace.
    pub(super) fn launch(
        self: &Rc<Self>,
        by: Pid,
        birth: Birth,
        fds: &[(Fd, End)],
        make: impl FnOnce(Sys) -> ProgramFuture,
    ) -> Result<Index, Errno> {
        if !self.exec.has_room() {
            return Err(Errno::EAGAIN);
        }
        let who = self.with(|kernel| {
            let who = kernel.create(birth)?;
            for (fd, end) in fds {
                kernel.set_fd(who, *fd, *end);
            }
            let process = &kernel.procs[who];
            let (argv, group, session) = (process.image.argv.clone(), process.group, process.session);
            kernel.push(by, What::Spawn { child: process.pid, argv, group, session });
            Ok(who)
        })?;
        let future = make(Sys::new(self.clone(), who));
        let task = self.exec.spawn(future).expect("there was room");
        self.with(|kernel| kernel.runs_as(who, task));
        Ok(who)
    }
}

impl Kernel {
    /// The ends that a child of `who` is given, with the parent's ends of the new pipes; `EBADF` for a descriptor
    /// that is not open.
    pub(super) fn give(&mut self, who: Index, fds: &[(Fd, Give)]) -> Result<Given, Errno> {
        let mut given = Vec::with_capacity(fds.len());
        let mut pipes = Vec::new();
        for (_, give) in fds {
            if let Give::Keep(mine) = give
                && self.procs[who].end_of(*mine).is_none()
            {
                return Err(Errno::EBADF);
            }
        }
        for (fd, give) in fds {
            let end = match give {
                Give::Null => End::Null,
                Give::Keep(mine) => self.procs[who].end_of(*mine).ok_or(Errno::EBADF)?,
                Give::Pipe => {
                    let id = self.new_pipe();
                    let (its, mine) = if *fd == STDIN {
                        (End::Read(id), End::Write(id))
                    } else {
                        (End::Write(id), End::Read(id))
                    };
                    pipes.push(self.open_fd(who, mine));
                    its
                }
            };
            given.push((*fd, end));
        }
        Ok((given, pipes))
    }
}

/// The name of a process in reports: the file name of its program.
pub(super) fn short_name(argv: &[OsString]) -> Rc<str> {
    let name = argv.first().map(|file| Path::new(file).file_name().unwrap_or(file).to_string_lossy());
    name.unwrap_or_default().into()
}

/// What a process executes.
pub(super) fn image(exec: &Exec, cwd: PathBuf) -> Image {
    Image { argv: exec.argv.as_slice().into(), vars: exec.env.clone(), cwd }
}
