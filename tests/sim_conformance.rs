//! The shared bodies on the simulated machine: the very ones that `tests/os_conformance.rs` holds the real machine to,
//! each under many seeds, that is, in many orders between the processes.

mod conformance;

use std::cell::RefCell;
use std::future::{pending, poll_fn};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use conformance::{Place, Program, Target, World};
use mu_core::os::{Exec, Exit, Pid};
use mu_sim::disk::{Disk, Node};
use mu_sim::kernel::{
    Command, Disposition, Fd, Fork, Give, Group, Machine, Options, Remote, SIGSTOP, SIGTERM, STDERR, STDIN,
    STDOUT, Sys,
};
use mu_sim::sim_os::SimOs;
use mu_sim::trace::transcript;

const SEEDS: u64 = 40;
const USER: u32 = 1000;
const HOME: &str = "/home/user";
const PROGRAM: &str = "/bin/program";

/// What is to be done by each program that was asked for; the last word of its command line is its place here.
type AskedFor = Rc<RefCell<Vec<Program>>>;

struct Simulated {
    sys: Sys,
    os: SimOs,
    machine: Remote,
    asked_for: AskedFor,
}

fn place(place: Place) -> PathBuf {
    match place {
        Place::Home => HOME.into(),
        Place::Device => "/dev/null".into(),
        Place::UnderClosed => self::place(Place::Closed).join("x"),
        Place::UnderFixed => self::place(Place::Fixed).join("x"),
        Place::UnderPlain => self::place(Place::Plain).join("x"),
        Place::UnderMissing => self::place(Place::Missing).join("x"),
        place => Path::new(HOME).join(format!("{place:?}")),
    }
}

/// A machine with every program and file that a body may ask for.
fn machine(options: Options, asked_for: &AskedFor) -> Machine {
    let disk = Disk::new();
    let program =
        |busy, interpreter_missing| Node::Program { name: "program".to_owned(), busy, interpreter_missing };
    let put = |at, mode, node| disk.put(&place(at), USER, mode, node);
    put(Place::Home, 0o755, Node::Directory);
    for (at, mode) in [(Place::Plain, 0o640), (Place::Executable, 0o4751)] {
        put(at, mode, Node::Bytes);
        let words = "this is no program and no database, it is a letter\n".repeat(100);
        disk.write_bytes(&place(at), words.as_bytes());
    }
    put(Place::BadInterpreter, 0o755, program(false, true));
    put(Place::Busy, 0o755, program(true, false));
    put(Place::Directory, 0o755, Node::Directory);
    put(Place::UnderClosed, 0o755, program(false, false));
    put(Place::Closed, 0o600, Node::Directory);
    put(Place::Fixed, 0o555, Node::Directory);
    put(Place::Fifo, 0o700, Node::Fifo);
    put(Place::Socket, 0o755, Node::Socket);
    for (link, target) in [
        (Place::Link, Place::Executable),
        (Place::LinkToLink, Place::Link),
        (Place::LinkToDirectory, Place::Directory),
        (Place::Dangling, Place::Missing),
        (Place::Circle, Place::Circle),
    ] {
        put(link, 0o777, Node::Link(place(target)));
    }
    disk.put(Path::new("/dev/null"), 0, 0o666, Node::Device);
    disk.put(Path::new(PROGRAM), 0, 0o755, program(false, false));
    let machine = Machine::with(options, disk);
    let asked_for = asked_for.clone();
    machine.install("program", move |sys| {
        let number: usize = sys.argv()[2].to_str().unwrap().parse().unwrap();
        live(sys, asked_for.borrow()[number])
    });
    machine
}

impl World for Simulated {
    type Os = SimOs;

    fn os(&self) -> &SimOs {
        &self.os
    }

    fn program(&self, program: Program) -> Exec {
        let argv = match program {
            Program::At(place) => vec![self.place(place).into()],
            program => {
                self.asked_for.borrow_mut().push(program);
                let number = self.asked_for.borrow().len() - 1;
                vec![PROGRAM.into(), format!("{program:?}").into(), number.to_string().into()]
            }
        };
        Exec { argv, env: Vec::new() }
    }

    fn place(&self, place: Place) -> PathBuf {
        self::place(place)
    }

    fn link_to(&self, target: &Path) -> PathBuf {
        let link = Path::new(HOME).join("new-link");
        self.machine().disk().put(&link, USER, 0o777, Node::Link(target.to_owned()));
        link
    }

    fn chmod(&self, path: &Path, mode: u32) {
        self.machine().disk().set_mode(path, mode).unwrap();
    }

    fn signal(&self, to: Target, number: i32) -> io::Result<()> {
        match to {
            Target::Process(process) => self.sys.kill(process, number),
            Target::Group(group) => self.sys.kill_group(group, number),
        }
    }

    async fn until_stopped(&self, child: Pid) {
        let machine = self.machine();
        let stopped = || machine.living().iter().any(|process| process.pid == child && process.stopped);
        while !stopped() {
            give_way().await;
        }
    }

    fn has_children(&self) -> bool {
        let machine = self.machine();
        // Zombies are children of mu: those of init are reaped at once.
        let living = machine.living().iter().any(|process| process.ppid == self.sys.pid());
        living || !machine.zombies().is_empty()
    }

    fn descriptors(&self) -> usize {
        open_descriptors(&self.sys, 200).len()
    }

    fn lose_the_reader_of_stdout(&self) {
        let (reader, writer) = self.sys.pipe().unwrap();
        self.sys.close(STDOUT).unwrap();
        assert_eq!(self.sys.dup(writer).unwrap(), STDOUT);
        self.sys.close(writer).unwrap();
        self.sys.close(reader).unwrap();
    }
}

impl Simulated {
    fn machine(&self) -> Machine {
        self.machine.machine().expect("the machine runs")
    }
}

/// The numbers below `end` that are open.
fn open_descriptors(sys: &Sys, end: u32) -> Vec<u32> {
    let is_open = |number: &u32| match sys.dup(Fd(*number)) {
        Ok(copy) => sys.close(copy).is_ok(),
        Err(_) => false,
    };
    (0..end).filter(is_open).collect()
}

/// Lets everybody else who is ready go first.
async fn give_way() {
    let mut waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The life of a program.
async fn live(sys: Sys, program: Program) -> Exit {
    match program {
        Program::ExitWith(status) => return Exit::Status(status),
        Program::DieOf(signal) => sys.raise(signal).await.unwrap(),
        Program::Cat => {
            let mut buf = [0; 4096];
            while let count @ 1.. = sys.read(STDIN, &mut buf).await.unwrap() {
                sys.write_all(STDOUT, &buf[..count]).await.unwrap();
            }
        }
        Program::Idle => return idle_after_ready(&sys).await,
        Program::IgnoresTerm => {
            sys.on_signal(SIGTERM, Disposition::Ignore).unwrap();
            return idle_after_ready(&sys).await;
        }
        Program::Stopped => {
            say(&sys, "ready\n").await;
            sys.raise(SIGSTOP).await.unwrap();
        }
        Program::StoppedThenReads(count) => {
            sys.raise(SIGSTOP).await.unwrap();
            sys.read(STDIN, &mut vec![0; count]).await.unwrap();
            return idle_after_ready(&sys).await;
        }
        Program::DeafAndIdle => {
            sys.close(STDIN).unwrap();
            return idle_after_ready(&sys).await;
        }
        Program::MuteAndIdle => {
            say(&sys, "ready\n").await;
            sys.close(STDOUT).unwrap();
            pending().await
        }
        Program::LeaveHelper => {
            helper(&sys, &[STDOUT, STDERR], idle);
            say(&sys, "ready\n").await;
        }
        Program::LeaveHelperUntilEof => {
            helper(&sys, &[STDIN], until_eof);
            say(&sys, "ready\n").await;
        }
        Program::LeaveGrandchild => {
            let parent = helper(&sys, &[STDOUT, STDERR], async |sys| {
                helper(&sys, &[STDOUT, STDERR], idle);
                Exit::Status(0)
            });
            sys.wait_for(parent).await.unwrap();
            say(&sys, "ready\n").await;
        }
        Program::LeaveEscapedUntilEof => {
            helper(&sys, &[STDIN, STDOUT], async |sys| {
                sys.setsid().unwrap();
                say(&sys, "ready\n").await;
                until_eof(sys).await
            });
        }
        Program::LeaveStoppedHelper => {
            helper(&sys, &[], async |sys| {
                sys.raise(SIGSTOP).await.unwrap();
                Exit::Status(0)
            });
            // Time does not go on while anybody has something to do.
            sys.sleep(Duration::from_millis(1)).await;
        }
        Program::Flood(count) => sys.write_all(STDOUT, &vec![b'x'; count]).await.unwrap(),
        Program::BothStreams => {
            say(&sys, "out\n").await;
            sys.write_all(STDERR, b"err\n").await.unwrap();
        }
        Program::SignalParent(signal) => sys.kill(sys.ppid(), signal).unwrap(),
        Program::PrintEnv => {
            for (name, value) in sys.vars() {
                let line = [name.as_bytes(), b"=", value.as_bytes(), b"\n"].concat();
                sys.write_all(STDOUT, &line).await.unwrap();
            }
        }
        Program::PrintArgs => {
            for argument in &sys.argv()[3..] {
                sys.write_all(STDOUT, &[argument.as_bytes(), b"\0"].concat()).await.unwrap();
            }
        }
        Program::PrintCwd => say(&sys, sys.cwd().to_str().unwrap()).await,
        Program::PrintDescriptors => {
            for number in open_descriptors(&sys, 20) {
                say(&sys, &format!("{number}\n")).await;
            }
        }
        Program::At(place) => unreachable!("{place:?} is not executed"),
    }
    Exit::Status(0)
}

async fn say(sys: &Sys, text: &str) {
    sys.write_all(STDOUT, text.as_bytes()).await.unwrap();
}

async fn idle_after_ready(sys: &Sys) -> Exit {
    say(sys, "ready\n").await;
    pending().await
}

async fn idle(_: Sys) -> Exit {
    pending().await
}

async fn until_eof(sys: Sys) -> Exit {
    while sys.read(STDIN, &mut [0; 4096]).await.unwrap() > 0 {}
    Exit::Status(0)
}

/// Starts another process in the group, with these descriptors.
fn helper<F>(sys: &Sys, holds: &[Fd], life: impl FnOnce(Sys) -> F) -> Pid
where
    F: Future<Output = Exit> + 'static,
{
    let fds: Vec<_> = holds.iter().map(|fd| (*fd, Give::Keep(*fd))).collect();
    sys.fork(&Fork { name: "helper", group: Group::Same, fds: &fds }, life).unwrap().pid
}

/// Runs `body` as the program mu, once for each seed.
fn on_simulated_machines(body: impl AsyncFn(&Simulated) + Clone + 'static) {
    for seed in 0..SEEDS {
        let asked_for = AskedFor::default();
        let options = Options { recycle_pids: seed % 2 == 1, ..Options::new(seed) };
        let machine = machine(options, &asked_for);
        let remote = machine.remote();
        let body = body.clone();
        let command = Command { cwd: HOME.into(), uid: USER, ..Command::new(["mu"]) };
        let mu = machine.start_fn(&command, |sys| async move {
            // What a careless parent leaves open: no program may see it.
            sys.pipe().unwrap();
            let world = Simulated { os: SimOs::new(sys.clone()), sys, machine: remote, asked_for };
            body(&world).await;
            Exit::Status(0)
        });
        let outcome = machine.run_until_exit(&mu.unwrap());
        assert!(
            outcome == Ok(Exit::Status(0)),
            "seed {seed}: {outcome:?}\n{}",
            transcript(&machine.events())
        );
    }
}

macro_rules! hold_the_simulated_machine_to {
    ($($module:ident { $($body:ident)* })*) => {
        $(mod $module {
            use super::*;

            $(#[test]
            fn $body() {
                on_simulated_machines(async |world| conformance::$module::$body(world).await);
            })*
        })*

        #[test]
        fn no_body_is_skipped() {
            conformance::assert_that_none_is_skipped(&[$($((stringify!($module), stringify!($body)),)*)*]);
        }
    };
}

conformance::every_body!(hold_the_simulated_machine_to);
