//! The shared bodies on the real machine, with `/bin/sh` as every program. Each runs in a process of its own: signals,
//! descriptors and children are a process's.

mod conformance;
mod support;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use conformance::{Place, Program, Target, World};
use mu::RealOs;
use mu_core::os::{Exec, Pid};
use nix::errno::Errno;
use nix::sys::prctl::set_dumpable;
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Gid, Uid, geteuid, setgid, setgroups, setuid};
use support::{on_real_os, passes_in_own_process, sh};

struct Real {
    os: RealOs,
    dir: tempfile::TempDir,
    /// Holds the busy file open for writing.
    _writer: File,
}

impl Real {
    fn new(os: RealOs) -> Real {
        umask(Mode::empty());
        let dir = tempfile::tempdir().unwrap();
        let path = |place| place_in(dir.path(), place);
        let words = "this is no program and no database, it is a letter\n".repeat(100);
        let file = |place, mode, contents: &str| {
            fs::write(path(place), contents).unwrap();
            fs::set_permissions(path(place), Permissions::from_mode(mode)).unwrap();
        };
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        file(Place::Plain, 0o640, &words);
        file(Place::Executable, 0o4751, &words);
        file(Place::BadInterpreter, 0o755, "#!/no/such/interpreter\n");
        file(Place::Busy, 0o755, "");
        for (place, mode) in [(Place::Directory, 0o755), (Place::Closed, 0o700), (Place::Fixed, 0o555)] {
            fs::create_dir(path(place)).unwrap();
            fs::set_permissions(path(place), Permissions::from_mode(mode)).unwrap();
        }
        file(Place::UnderClosed, 0o755, "");
        fs::set_permissions(path(Place::Closed), Permissions::from_mode(0o600)).unwrap();
        nix::unistd::mkfifo(&path(Place::Fifo), Mode::S_IRWXU).unwrap();
        drop(UnixListener::bind(path(Place::Socket)).unwrap());
        for (link, target) in [
            (Place::Link, Place::Executable),
            (Place::LinkToLink, Place::Link),
            (Place::LinkToDirectory, Place::Directory),
            (Place::Dangling, Place::Missing),
            (Place::Circle, Place::Circle),
        ] {
            symlink(path(target), path(link)).unwrap();
        }
        let writer = OpenOptions::new().append(true).open(path(Place::Busy)).unwrap();
        Real { os, dir, _writer: writer }
    }
}

fn place_in(dir: &Path, place: Place) -> PathBuf {
    match place {
        Place::Home => dir.to_owned(),
        Place::Device => "/dev/null".into(),
        Place::UnderClosed => place_in(dir, Place::Closed).join("x"),
        Place::UnderFixed => place_in(dir, Place::Fixed).join("x"),
        Place::UnderPlain => place_in(dir, Place::Plain).join("x"),
        Place::UnderMissing => place_in(dir, Place::Missing).join("x"),
        place => dir.join(format!("{place:?}")),
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        // Or what is in it could not be removed.
        self.chmod(&self.place(Place::Closed), 0o700);
    }
}

/// What root may do cannot be refused: become nobody.
fn be_an_ordinary_user() {
    if geteuid().is_root() {
        setgroups(&[]).unwrap();
        setgid(Gid::from_raw(65_534)).unwrap();
        setuid(Uid::from_raw(65_534)).unwrap();
        // Without this, what is below `/proc/self` would still belong to root.
        set_dumpable(true).unwrap();
    }
}

impl World for Real {
    type Os = RealOs;

    fn os(&self) -> &RealOs {
        &self.os
    }

    fn program(&self, program: Program) -> Exec {
        match program {
            Program::ExitWith(status) => sh(&format!("exit {status}")),
            Program::DieOf(signal) => sh(&format!("kill -{signal} $$")),
            Program::Cat => sh("exec cat"),
            Program::Idle => sh("echo ready; exec sleep 100000"),
            Program::IgnoresTerm => sh("trap '' TERM; echo ready; exec sleep 100000"),
            Program::Stopped => sh("echo ready; kill -STOP $$"),
            Program::StoppedThenReads(count) => sh(&format!(
                "kill -STOP $$; dd bs={count} count=1 of=/dev/null 2>/dev/null; echo ready; exec sleep 100000"
            )),
            Program::DeafAndIdle => sh("exec <&-; echo ready; exec sleep 100000"),
            Program::MuteAndIdle => sh("echo ready; exec sleep 100000 >&-"),
            Program::LeaveHelper => sh("sleep 100000 & echo ready"),
            Program::LeaveHelperUntilEof => sh("exec 3<&0; cat <&3 >/dev/null & echo ready"),
            Program::LeaveGrandchild => sh("(sleep 100000 &); echo ready"),
            Program::LeaveEscapedUntilEof => {
                sh("exec 3<&0; setsid sh -c 'exec 2>&-; echo ready; cat <&3 >/dev/null; :' &")
            }
            Program::LeaveStoppedHelper => {
                sh("sh -c 'kill -STOP $$' & until grep -q '^State:.T' /proc/$!/status; do :; done")
            }
            Program::Flood(count) => sh(&format!("head -c {count} /dev/zero | tr '\\0' x")),
            Program::BothStreams => sh("echo out; echo err >&2"),
            Program::SignalParent(signal) => sh(&format!("kill -{signal} $PPID")),
            Program::PrintEnv => Exec { argv: vec!["/usr/bin/env".into()], env: Vec::new() },
            Program::PrintArgs => {
                let mut exec = sh(r#"for argument in "$@"; do printf '%s\0' "$argument"; done"#);
                exec.argv.push("sh".into());
                exec
            }
            Program::PrintCwd => sh("pwd -P"),
            Program::PrintDescriptors => {
                sh("n=0; while [ $n -lt 20 ]; do [ -e /proc/$$/fd/$n ] && echo $n; n=$((n + 1)); done")
            }
            Program::At(place) => Exec { argv: vec![OsString::from(self.place(place))], env: Vec::new() },
        }
    }

    fn place(&self, place: Place) -> PathBuf {
        place_in(self.dir.path(), place)
    }

    fn link_to(&self, target: &Path) -> PathBuf {
        let link = self.dir.path().join("new-link");
        symlink(target, &link).unwrap();
        link
    }

    fn chmod(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn signal(&self, to: Target, number: i32) -> io::Result<()> {
        let number = (number != 0).then(|| number.try_into().unwrap());
        let pid = |pid: Pid| nix::unistd::Pid::from_raw(pid.0);
        match to {
            Target::Process(process) => nix::sys::signal::kill(pid(process), number)?,
            Target::Group(group) => nix::sys::signal::killpg(pid(group), number)?,
        }
        Ok(())
    }

    async fn until_stopped(&self, child: Pid) {
        let id = Id::Pid(nix::unistd::Pid::from_raw(child.0));
        waitid(id, WaitPidFlag::WSTOPPED | WaitPidFlag::WNOWAIT).unwrap();
    }

    fn has_children(&self) -> bool {
        let now = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
        waitid(Id::All, now) != Err(Errno::ECHILD)
    }

    fn descriptors(&self) -> usize {
        fs::read_dir("/proc/self/fd").unwrap().count()
    }

    fn lose_the_reader_of_stdout(&self) {
        let (reader, writer) = nix::unistd::pipe().unwrap();
        drop(reader);
        rustix::stdio::dup2_stdout(&writer).unwrap();
    }
}

/// Descriptors that a careless parent leaves open: no program may see them.
const SETUP: &str = "exec 7</dev/null 8>/dev/null";

macro_rules! hold_the_real_machine_to {
    ($($module:ident { $($body:ident)* })*) => {
        $(mod $module {
            use super::*;

            $(#[test]
            fn $body() {
                passes_in_own_process(SETUP, || {
                    be_an_ordinary_user();
                    on_real_os(async |os| conformance::$module::$body(&Real::new(os)).await);
                });
            })*
        })*

        #[test]
        fn no_body_is_skipped() {
            conformance::assert_that_none_is_skipped(&[$($((stringify!($module), stringify!($body)),)*)*]);
        }
    };
}

conformance::every_body!(hold_the_real_machine_to);
