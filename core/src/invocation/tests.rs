//! One run of mu with scripted plugins: who is started, who is not, and what no plugin can hold up.

use std::cell::Cell;
use std::rc::Rc;

use futures_util::future::{join, join_all};

use super::*;
use crate::crash::caught;
use crate::os::{ChildPipe, Exit, FileKind};
use crate::testing::{FakeOs, Heard, Script, answer, file, sound};

mod calls;

const BOX: &str = "/opt/mu-plugin-box";

/// A machine on which `box` is a program.
fn machine(programs: impl FnMut(&FakeOs) -> io::Result<Script> + 'static) -> FakeOs {
    FakeOs::new().with_file(BOX, file(FileKind::Regular, 1000, 0o755)).with_programs(programs)
}

fn start() -> Start {
    Start { name: "box".into(), argv: vec![BOX.into()], recorded: None, needs: vec![] }
}

/// Runs `verb` as mu would.
fn run<T>(os: &FakeOs, verb: impl AsyncFnOnce(&Invocation<FakeOs>) -> T) -> T {
    let invocation = Invocation::new(os.clone());
    let verb = verb(&invocation);
    let value = os.block_on(invocation.run(verb));
    for child in os.children() {
        assert!(child.borrow().reaped, "mu ended before its plugin");
    }
    value
}

/// A plugin that does something else after its valid answer.
fn then(mut more: impl FnMut(&mut crate::testing::PluginProcess) + 'static) -> Script {
    let mut sound = sound("box");
    Box::new(move |plugin, heard| {
        sound(plugin, heard);
        if matches!(heard, Heard::Line(line) if line.contains("initialize")) {
            more(plugin);
        }
    })
}

fn seconds(os: &FakeOs) -> f64 {
    os.now().0.as_secs_f64()
}

/// PRC-03
#[test]
fn a_plugin_is_stopped_when_the_verb_that_started_it_is_done() {
    let os = machine(|_| Ok(sound("box")));
    run(&os, async |mu| mu.start(start()).await).unwrap();
    assert_eq!(os.children()[0].borrow().methods(), ["initialize", "shutdown"]);
    assert!(!os.children()[0].borrow().killed);
}

/// PRC-07, PRC-08: the cancel of what is pending comes with the end of the verb as well.
#[test]
fn a_verb_that_ends_during_a_handshake_leaves_nobody_behind() {
    let os = machine(|_| {
        Ok(Box::new(|plugin, heard| {
            if heard == Heard::End {
                plugin.exit = Some(Exit::Status(0));
            }
        }))
    });
    run(&os, async |mu| {
        let mut starting = pin!(mu.start(start()));
        poll_fn(|cx| {
            assert!(starting.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
    });
    assert_eq!(os.children()[0].borrow().methods(), ["shutdown"], "initialize was never written");
    assert_eq!(seconds(&os), 0.0);
}

/// TRN-20: whenever it breaks, and not only before its answer.
#[test]
fn a_plugin_that_broke_after_its_answer_is_not_started_again() {
    let os = machine(|os| {
        let os = os.clone();
        Ok(then(move |_| {
            let child = os.children()[0].clone();
            os.after(Duration::from_secs(1), move || child.borrow_mut().says("hello\n"));
        }))
    });
    let again = run(&os, async |mu| {
        mu.start(start()).await.unwrap();
        mu.sleep_until(Mono(Duration::from_secs(2))).await.unwrap();
        mu.start(start()).await
    });
    assert!(matches!(again, Err(StartError::Failed(Failure::Broken { .. }))), "{again:?}");
    assert_eq!(os.children().len(), 1);
}

/// TMO-10, CALL-04
#[test]
fn a_plugin_that_has_exited_may_be_started_again_with_an_id_never_used_before() {
    let os = machine(|os| {
        let os = os.clone();
        Ok(then(move |_| {
            let child = os.children().last().unwrap().clone();
            os.after(Duration::from_secs(1), move || child.borrow_mut().exit = Some(Exit::Status(3)));
        }))
    });
    run(&os, async |mu| {
        mu.start(start()).await.unwrap();
        mu.sleep_until(Mono(Duration::from_secs(2))).await.unwrap();
        mu.start(start()).await.unwrap();
    });
    let ids =
        os.children().iter().map(|child| child.borrow().lines[0].contains("\"id\":1,")).collect::<Vec<_>>();
    assert_eq!(ids, [true, false]);
}

/// PRC-03: two parts of a verb that need the same plugin share one process.
#[test]
fn two_starts_at_once_make_one_process() {
    let os = machine(|_| Ok(sound("box")));
    let (left, right) = run(&os, async |mu| join(mu.start(start()), mu.start(start())).await);
    assert_eq!(left.unwrap(), right.unwrap());
    assert_eq!(os.children().len(), 1);
}

/// LOAD-08 binds a plugin that runs already too, and that refusal does not spoil it for others.
#[test]
fn a_running_plugin_is_refused_for_what_it_does_not_declare() {
    let os = machine(|_| Ok(sound("box")));
    run(&os, async |mu| {
        mu.start(start()).await.unwrap();
        let refused = mu.start(Start { needs: vec![Seam::Job], ..start() }).await;
        assert!(
            matches!(&refused, Err(StartError::Refused(refusal)) if refusal.rule == "LOAD-08"),
            "{refused:?}"
        );
        mu.start(Start { needs: vec![Seam::Link], ..start() }).await.unwrap();
    });
    assert_eq!(os.children().len(), 1);
}

/// PRC-16: neither waits for the other's process.
#[test]
fn a_start_during_a_stop_waits_for_it_and_the_stop_does_not_wait_for_the_start() {
    let os = machine(|_| Ok(sound("box")));
    run(&os, async |mu| {
        mu.start(start()).await.unwrap();
        let (stopped, started) = join(mu.stop("box"), mu.start(start())).await;
        assert_eq!(stopped, Stopped::Clean);
        started.unwrap();
    });
    assert_eq!(os.children().len(), 2);
    // The other order of the two in the verb.
    let os = machine(|_| Ok(sound("box")));
    run(&os, async |mu| {
        mu.start(start()).await.unwrap();
        let stop = mu.stop("box");
        let mut stop = pin!(stop);
        poll_fn(|cx| {
            assert!(stop.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        join(mu.start(start()), stop).await.0.unwrap();
    });
    assert_eq!(os.children().len(), 2);
}

/// PRC-09: a signal that came while the verb did something that takes long, such as a write to a slow disk.
#[test]
fn nothing_is_started_after_a_signal_that_the_driver_has_not_seen() {
    let os = machine(|_| Ok(sound("box")));
    let sender = os.clone();
    let started = run(&os, async |mu| {
        mu.start(start()).await.unwrap();
        mu.stop("box").await;
        sender.signal(Signal::Terminate);
        mu.start(start()).await
    });
    assert_eq!(started, Err(StartError::Interrupted(Signal::Terminate)));
    assert_eq!(os.children().len(), 1);
}

/// PRC-10: the signal came while the file was executed.
#[test]
fn no_request_is_written_after_a_signal() {
    let os = machine(|os| {
        os.signal(Signal::HangUp);
        Ok(sound("box"))
    });
    let started = run(&os, async |mu| mu.start(start()).await);
    assert_eq!(started, Err(StartError::Interrupted(Signal::HangUp)));
    assert_eq!(os.children()[0].borrow().methods(), ["shutdown"]);
}

/// PRC-09
#[test]
fn a_signal_ends_the_wait_for_a_busy_file_at_once() {
    let os = machine(|_| Err(io::ErrorKind::ExecutableFileBusy.into()));
    let sender = os.clone();
    os.after(Duration::from_millis(685), move || sender.signal(Signal::Interrupt));
    let started = run(&os, async |mu| mu.start(start()).await);
    assert_eq!(started, Err(StartError::Interrupted(Signal::Interrupt)));
    assert_eq!(seconds(&os), 0.685);
}

#[test]
fn a_file_that_stays_busy_is_given_up_after_about_a_second_and_may_be_tried_again() {
    let tries = Rc::new(Cell::new(0));
    let counted = tries.clone();
    let os = machine(move |_| {
        counted.set(counted.get() + 1);
        if counted.get() <= 8 { Err(io::ErrorKind::ExecutableFileBusy.into()) } else { Ok(sound("box")) }
    });
    run(&os, async |mu| {
        let failed = mu.start(start()).await;
        assert!(matches!(failed, Err(StartError::Failed(Failure::Exec { .. }))), "{failed:?}");
        assert_eq!((tries.get(), seconds(&os)), (8, 0.98));
        mu.start(start()).await.unwrap();
    });
}

/// TRN-07, HSK-08, PRC-07: output without end keeps neither the deadline nor the grace from coming.
#[test]
fn a_flood_starves_no_timer() {
    for pipe in [ChildPipe::Stderr, ChildPipe::Stdout] {
        let os = machine(move |_| Ok(Box::new(move |plugin, _| plugin.floods = Some(pipe))));
        let started = run(&os, async |mu| mu.start(start()).await);
        assert!(started.is_err());
        // An endless line breaks at once; silence beside a flood of stderr ends at the deadline.
        let due = if pipe == ChildPipe::Stderr { 15.0 } else { 5.0 };
        assert!((due..due + 0.2).contains(&seconds(&os)), "{pipe:?}: {}", seconds(&os));
        assert!(os.children()[0].borrow().killed);
    }
}

/// TRN-07: nor the verb, nor another plugin.
#[test]
fn a_flood_starves_no_verb() {
    let os = machine(|_| Ok(then(|plugin| plugin.floods = Some(ChildPipe::Stderr))));
    run(&os, async |mu| mu.start(start()).await).unwrap();
    assert!(seconds(&os) < 0.2, "{}", seconds(&os));
}

/// PRC-13: whatever call of the system fails first after the exec.
#[test]
fn a_panic_after_the_exec_finds_the_process_to_kill() {
    let os = machine(|os| {
        os.break_clock();
        Ok(sound("box"))
    });
    let invocation = Invocation::new(os.clone());
    let crashed = os.block_on(caught(invocation.run(invocation.start(start()))));
    assert!(crashed.is_err());
    invocation.kill_all();
    assert!(os.children()[0].borrow().killed);
}

///
#[test]
fn an_answer_before_the_exit_is_an_answer() {
    let os = machine(|_| {
        Ok(Box::new(|plugin, heard| {
            if let Heard::Line(line) = heard {
                plugin.says(&answer("box", line));
                plugin.exit = Some(Exit::Status(1));
            }
        }))
    });
    run(&os, async |mu| mu.start(start()).await).unwrap();
}

/// what was written between mu's last look at the pipe and the exit counts too.
#[test]
fn an_answer_that_comes_with_the_exit_is_an_answer() {
    let os = machine(|_| {
        Ok(Box::new(|plugin, heard| {
            if let Heard::Line(line) = heard {
                plugin.last_words = Some(answer("box", line));
            }
        }))
    });
    run(&os, async |mu| mu.start(start()).await).unwrap();
}

///
#[test]
fn a_plugin_that_closes_its_stdout_and_stays_is_told_to_have_been_killed() {
    let os = machine(|_| Ok(Box::new(|plugin, _| plugin.stdout_closed = true)));
    let error = run(&os, async |mu| mu.start(start()).await).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("it closed its stdout before it answered initialize, and had to be killed")
    );
    assert_eq!(error.exit_code(), 5);
}

/// a plugin that reads nothing holds up neither its deadline nor its stop.
#[test]
fn a_deaf_plugin_is_stopped_without_a_line() {
    let os = machine(|_| Ok(Box::new(|_, _| {})));
    let started = run(&os, async |mu| {
        let mut starting = pin!(mu.start(start()));
        poll_fn(|cx| {
            assert!(starting.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        os.children()[0].borrow_mut().deaf = true;
        starting.await
    });
    assert!(matches!(started, Err(StartError::Failed(Failure::Silent { .. }))), "{started:?}");
    assert_eq!(os.children()[0].borrow().methods(), [""; 0]);
    assert!(os.children()[0].borrow().stdin_closed);
    assert!((15.0..15.1).contains(&seconds(&os)), "{}", seconds(&os));
}

/// Many parts of a verb wait at once, each with a waker of its own.
#[test]
fn many_starts_side_by_side_are_all_woken() {
    let names: Vec<String> = (0..40).map(|nth| format!("p{nth}")).collect();
    let os = names.iter().fold(
        FakeOs::new().with_programs(|_| {
            Ok(Box::new(|plugin, heard| match heard {
                Heard::Line(line) if line.contains("initialize") => plugin.says(&answer("box", line)),
                Heard::Line(_) => {}
                Heard::End => plugin.exit = Some(Exit::Status(0)),
            }))
        }),
        |os, name| os.with_file(&format!("/opt/mu-plugin-{name}"), file(FileKind::Regular, 1000, 0o755)),
    );
    let starts =
        |name: &String| Start { name: name.clone(), argv: vec![format!("/opt/mu-plugin-{name}")], ..start() };
    let ended = run(&os, async |mu| join_all(names.iter().map(|name| mu.start(starts(name)))).await);
    // Each declares itself as box, which is not its name (LOAD-03); what counts is that each was heard.
    assert!(
        ended.iter().all(|one| matches!(one, Err(StartError::Refused(refusal)) if refusal.rule == "LOAD-03"))
    );
    assert_eq!(seconds(&os), 0.0);
}

/// Each of them waits for the one before, and none of these moves a process.
#[test]
fn many_starts_of_one_name_are_all_woken() {
    let os = machine(|_| Err(io::ErrorKind::NotFound.into()));
    let ended = run(&os, async |mu| join_all((0..40).map(|_| mu.start(start()))).await);
    assert!(ended.iter().all(Result::is_err));
}
