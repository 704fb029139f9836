//! Many sessions in one process, on the real operating system: what a long run of mu would come to.

use std::fs;

use mu::RealOs;
use mu_core::invocation::{Invocation, Start, Stopped};
use mu_sim::fake::Event;
use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, waitid};

use crate::ends::was_asked_to_stop;
use crate::stage::Stage;
use crate::support::{on_real_os, passes_in_own_process};

fn start(stage: &Stage, name: &str) -> Start {
    Start { name: name.into(), argv: vec![stage.install(name, [])], recorded: None, needs: Vec::new() }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn has_children() -> bool {
    let now = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    waitid(Id::All, now) != Err(Errno::ECHILD)
}

/// PRC-03
#[test]
fn two_hundred_sessions_leave_no_descriptor_and_no_child() {
    passes_in_own_process("", || {
        on_real_os(|os| async move {
            let stage = Stage::new();
            let start = start(&stage, "box");
            let invocation = Invocation::new(os);
            let (mut running, mut stopped) = (Vec::new(), Vec::new());
            let cycles = async {
                for _ in 0..200 {
                    invocation.start(start.clone()).await.unwrap();
                    running.push(descriptors());
                    assert_eq!(invocation.stop("box").await, Stopped::Clean);
                    stopped.push(descriptors());
                    assert!(!has_children());
                }
            };
            invocation.run(cycles).await;
            // The first one may make what is used again.
            assert!(running.iter().all(|count| *count == running[1]), "{running:?}");
            assert!(stopped.iter().all(|count| *count == stopped[0]), "{stopped:?}");
            assert!((1..=200).all(|start| was_asked_to_stop(&stage.events("box", start))));
        });
    });
}

/// PRC-15: neither holds what would keep the end of stdin from the other.
#[test]
fn of_two_plugins_each_sees_the_end_of_its_own_stdin() {
    passes_in_own_process("", || {
        on_real_os(|os| async move {
            for first in ["box", "cart"] {
                stop_one_of_two(os.clone(), first).await;
            }
        });
    });
}

async fn stop_one_of_two(os: RealOs, first: &str) {
    let stage = Stage::new();
    let starts = ["box", "cart"].map(|name| start(&stage, name));
    let invocation = Invocation::new(os);
    let verb = async {
        for start in &starts {
            invocation.start(start.clone()).await.unwrap();
        }
        assert_eq!(invocation.stop(first).await, Stopped::Clean);
        let events = ["box", "cart"].map(|name| (name, stage.events(name, 1)));
        for (name, events) in events {
            assert_eq!(events.contains(&Event::Eof(0)), name == first, "{name}: {events:?}");
            assert_eq!(was_asked_to_stop(&events), name == first, "{name}: {events:?}");
        }
    };
    invocation.run(verb).await;
    for name in ["box", "cart"] {
        assert!(was_asked_to_stop(&stage.events(name, 1)), "{name}");
    }
    assert!(!has_children());
}
