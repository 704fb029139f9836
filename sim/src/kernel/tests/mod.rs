//! One fact of the machine a test.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use mu_core::os::{Exit, Pid};

use super::*;
use crate::trace::Event;

mod clocks;
mod disk;
mod exec;
mod order;
mod pipes;
mod processes;
mod signals;
mod sim_os;

const OK: Exit = Exit::Status(0);

fn command(name: &str) -> Command {
    Command::new([name])
}

/// Runs one program, which may start others, until nobody lives.
fn run<F>(program: impl FnOnce(Sys) -> F) -> Machine
where
    F: Future<Output = Exit> + 'static,
{
    run_on(Machine::new(1), program)
}

fn run_on<F>(machine: Machine, program: impl FnOnce(Sys) -> F) -> Machine
where
    F: Future<Output = Exit> + 'static,
{
    let started = machine.start_fn(&command("main"), program).unwrap();
    machine.run_until_idle().unwrap();
    assert_eq!(machine.exit(&started), Some(OK), "the program saw something else");
    machine
}

fn forked<'a>(name: &'a str, fds: &'a [(Fd, Give)]) -> Fork<'a> {
    Fork { name, group: Group::Same, fds }
}

/// A child that does nothing and lives until it is ended.
async fn idle(_: Sys) -> Exit {
    std::future::pending().await
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn find<T>(machine: &Machine, pick: impl Fn(&Event) -> Option<T>) -> Vec<T> {
    machine.events().iter().filter_map(pick).collect()
}

/// A list that processes of a test share, to tell in which order they did things.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<String>>>);

impl Log {
    fn add(&self, entry: impl Into<String>) {
        self.0.borrow_mut().push(entry.into());
    }

    fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

/// Lets everybody else who is ready go first, without time passing.
async fn give_way() {
    for _ in 0..100 {
        let mut first = true;
        std::future::poll_fn(|cx| {
            if std::mem::take(&mut first) {
                cx.waker().wake_by_ref();
                return std::task::Poll::Pending;
            }
            std::task::Poll::Ready(())
        })
        .await;
    }
}

fn pids(machine: &Machine) -> Vec<Pid> {
    machine.living().iter().map(|process| process.pid).collect()
}
