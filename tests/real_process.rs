//! Descriptors, groups and the end of mu, as other processes see them.

mod support;

use std::fs::{self, File};
use std::future::poll_fn;
use std::io::{PipeReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use mu::RealOs;
use mu_core::os::{Child, ChildPipe, Exit, Os, Stream};
use nix::sys::signal::{self as posix, kill, killpg, raise};
use nix::unistd::{Pid, getpgid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{in_own_process, on_real_os, passes_in_own_process, sh};

/// The numbers under `/proc/<pid>/fd`, in order.
fn descriptors(process: &str) -> Vec<u32> {
    let names = fs::read_dir(format!("/proc/{process}/fd")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut numbers: Vec<u32> = names.map(|name| name.to_str().unwrap().parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

async fn exited(child: &mut impl Child) -> Exit {
    poll_fn(|cx| child.poll_exited(cx)).await
}

async fn echo(child: &mut impl Child) {
    assert_eq!(poll_fn(|cx| child.poll_write(cx, b"x")).await.unwrap(), 1);
    assert_eq!(poll_fn(|cx| child.poll_read(ChildPipe::Stdout, cx, &mut [0; 8])).await.unwrap(), 1);
}

fn pid_of(child: &impl Child) -> Pid {
    Pid::from_raw(child.pid().0)
}

/// PRC-02
#[test]
fn a_plugin_leads_a_group_of_its_own() {
    on_real_os(|os| async move {
        let child = os.spawn(&sh("exec cat")).unwrap();
        assert_eq!(getpgid(Some(pid_of(&child))).unwrap(), pid_of(&child));
    });
}

/// PRC-15
#[test]
fn a_plugin_has_the_three_standard_streams_and_nothing_else() {
    // 7 and 8 are what a careless parent leaves open in mu.
    passes_in_own_process("exec 7</dev/null 8>/dev/null", || {
        on_real_os(|os| async move {
            let mut first = os.spawn(&sh("exec cat")).unwrap();
            let mut second = os.spawn(&sh("exec cat")).unwrap();
            // One echo, and `cat` has opened and closed whatever its loader needed.
            echo(&mut first).await;
            echo(&mut second).await;
            assert_eq!(descriptors(&first.pid().to_string()), [0, 1, 2]);
            assert_eq!(descriptors(&second.pid().to_string()), [0, 1, 2]);
        });
    });
}

/// PRC-15
#[test]
fn when_mu_is_killed_every_plugin_sees_the_end_of_its_stdin() {
    const FIFO: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/last-words");
    let body = || {
        on_real_os(|os| async move {
            let mut children =
                [(); 3].map(|()| os.spawn(&sh(&format!("cat; echo gone > '{FIFO}'"))).unwrap());
            for child in &mut children {
                echo(child).await;
            }
            raise(posix::Signal::SIGKILL).unwrap();
        });
    };
    in_own_process(&format!("rm -f '{FIFO}'; mkfifo '{FIFO}'"), body, |output| {
        assert_eq!(output.status.signal(), Some(9), "{output:?}");
        // With a writing end of its own, the reader waits for neither a writer nor an end.
        let mut fifo = File::options().read(true).write(true).open(FIFO).unwrap();
        let mut said = String::new();
        while said.len() < 3 * "gone\n".len() {
            let mut fds = [PollFd::new(&fifo, PollFlags::IN)];
            let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
            assert_eq!(poll(&mut fds, Some(&minute)).unwrap(), 1, "a plugin lives on: {said:?}");
            let mut buf = [0; 16];
            let count = fifo.read(&mut buf).unwrap();
            said.push_str(std::str::from_utf8(&buf[..count]).unwrap());
        }
        assert_eq!(said, "gone\ngone\ngone\n");
    });
}

/// PRC-16
#[test]
fn the_number_of_a_group_stays_taken_until_the_leader_is_reaped() {
    on_real_os(|os| async move {
        let mut child = os.spawn(&sh("exit 0")).unwrap();
        let group = pid_of(&child);
        exited(&mut child).await;
        poll_fn(|cx| child.poll_group_empty(cx)).await;
        assert_eq!(killpg(group, None), Ok(()));
        child.reap();
        assert_eq!(killpg(group, None), Err(nix::errno::Errno::ESRCH));
    });
}

/// PRC-16
#[test]
fn a_zombie_helper_that_nobody_reaps_does_not_keep_the_group() {
    passes_in_own_process("", || {
        // Orphans come to this process, which leaves them zombies, as a container's first process often does.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
        on_real_os(|os| async move {
            let mut child = os.spawn(&sh("sleep 100000 & echo $!")).unwrap();
            let mut helper = [0; 16];
            let count = poll_fn(|cx| child.poll_read(ChildPipe::Stdout, cx, &mut helper)).await.unwrap();
            let helper: i32 = std::str::from_utf8(&helper[..count]).unwrap().trim().parse().unwrap();
            exited(&mut child).await;
            child.kill_group();
            poll_fn(|cx| child.poll_group_empty(cx)).await;
            assert_eq!(kill(Pid::from_raw(helper), None), Ok(()), "the helper is no zombie any more");
        });
    });
}

/// PRC-16
#[test]
fn a_mu_without_a_free_descriptor_does_not_take_the_group_for_empty() {
    passes_in_own_process("", || {
        on_real_os(|os| async move {
            let mut child = os.spawn(&sh("sleep 100000 & exit 0")).unwrap();
            exited(&mut child).await;
            let before = getrlimit(Resource::Nofile);
            setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..before }).unwrap();
            assert!(poll_fn(|cx| Poll::Ready(child.poll_group_empty(cx))).await.is_pending());
            setrlimit(Resource::Nofile, before).unwrap();
            // It looks again by itself, and now sees the helper, and its end.
            assert!(poll_fn(|cx| Poll::Ready(child.poll_group_empty(cx))).await.is_pending());
            child.kill_group();
            poll_fn(|cx| child.poll_group_empty(cx)).await;
        });
    });
}

#[test]
fn dropping_a_child_neither_kills_nor_waits() {
    on_real_os(|os| async move {
        let child = os.spawn(&sh("exec sleep 100000")).unwrap();
        let pid = pid_of(&child);
        drop(child);
        kill(pid, posix::Signal::SIGTERM).unwrap();
        // It was alive to die of this, and is still there to be waited for.
        let status = nix::sys::wait::waitpid(pid, None).unwrap();
        assert_eq!(status, nix::sys::wait::WaitStatus::Signaled(pid, posix::Signal::SIGTERM, false));
    });
}

/// PRC-13
#[test]
fn a_failing_mu_can_kill_what_it_started() {
    on_real_os(|os| async move {
        let mut leader = os.spawn(&sh("exec sleep 100000")).unwrap();
        let mut helper = os.spawn(&sh("sleep 100000 & exit 0")).unwrap();
        exited(&mut helper).await;
        os.kill_started_groups();
        assert_eq!(exited(&mut leader).await, Exit::Signal(9));
        poll_fn(|cx| helper.poll_group_empty(cx)).await;
    });
}

/// PRC-13
#[test]
fn a_panic_kills_the_groups_before_it_goes_on() {
    passes_in_own_process("", || {
        let started = std::cell::Cell::new(Pid::from_raw(0));
        let run = |os: RealOs| {
            let started = &started;
            async move {
                started.set(pid_of(&os.spawn(&sh("exec sleep 100000")).unwrap()));
                panic!("on purpose")
            }
        };
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| mu::enter(run)));
        assert!(panicked.is_err());
        let pid = started.get();
        let status = nix::sys::wait::waitpid(pid, None).unwrap();
        assert_eq!(status, nix::sys::wait::WaitStatus::Signaled(pid, posix::Signal::SIGKILL, false));
    });
}

#[test]
fn what_a_run_answers_is_the_exit_code() {
    assert_eq!(mu::enter(async |_| 7).unwrap(), 7);
}

#[test]
fn two_hundred_starts_leave_no_descriptor_and_no_zombie() {
    passes_in_own_process("", || {
        on_real_os(|os| async move {
            let mut before = Vec::new();
            for round in 0..200 {
                let mut child = os.spawn(&sh("exec cat")).unwrap();
                echo(&mut child).await;
                child.close_stdin();
                exited(&mut child).await;
                child.kill_group();
                poll_fn(|cx| child.poll_group_empty(cx)).await;
                child.reap();
                drop(child);
                if round == 0 {
                    before = descriptors("self");
                }
            }
            assert_eq!(descriptors("self"), before);
            assert_eq!(nix::sys::wait::wait(), Err(nix::errno::Errno::ECHILD));
        });
    });
}

/// PRC-15
#[test]
fn a_mu_started_with_its_streams_closed_keeps_their_numbers_from_plugins() {
    passes_in_own_process("exec 0<&- 1>&- 2>&-", || {
        on_real_os(|os| async move {
            let mut child = os.spawn(&sh("exec cat")).unwrap();
            echo(&mut child).await;
            for number in 0..3 {
                let target = fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
                assert_eq!(target, PathBuf::from("/dev/null"));
            }
        });
    });
}

#[test]
fn a_relative_program_is_refused_instead_of_looked_up() {
    on_real_os(|os| async move {
        let mut exec = sh("exit 0");
        exec.argv[0] = "sh".into();
        let error = os.spawn(&exec).err().unwrap();
        assert_eq!(error.raw_os_error(), Some(nix::libc::EINVAL));
    });
}

#[test]
fn a_nul_byte_in_an_argument_is_an_error_of_the_system() {
    on_real_os(|os| async move {
        let error = os.spawn(&sh("exit 0 \0")).err().unwrap();
        assert_eq!(error.raw_os_error(), Some(nix::libc::EINVAL));
    });
}

#[test]
fn of_two_variables_with_one_name_the_first_wins() {
    on_real_os(|os| async move {
        let mut exec = sh("echo $TWICE");
        exec.env.extend([("TWICE".into(), "first".into()), ("TWICE".into(), "second".into())]);
        let mut child = os.spawn(&exec).unwrap();
        let mut buf = [0; 16];
        let count = poll_fn(|cx| child.poll_read(ChildPipe::Stdout, cx, &mut buf)).await.unwrap();
        assert_eq!(&buf[..count], b"first\n");
    });
}

/// Puts a pipe in the place of standard output while `body` runs.
fn with_stdout_piped(body: impl FnOnce(PipeReader)) {
    let before = nix::unistd::dup(std::io::stdout()).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::stdio::dup2_stdout(&writer).unwrap();
    drop(writer);
    body(reader);
    rustix::stdio::dup2_stdout(before).unwrap();
}

async fn write_now(os: &RealOs, bytes: &[u8]) -> Poll<Result<usize, std::io::ErrorKind>> {
    poll_fn(|cx| Poll::Ready(os.poll_write(Stream::Out, cx, bytes).map_err(|error| error.kind()))).await
}

/// PRC-09
#[test]
fn an_output_that_nobody_reads_waits_and_leaves_mu_awake() {
    passes_in_own_process("", || {
        with_stdout_piped(|mut reader| {
            on_real_os(|os| async move {
                let mut written = 0;
                while let Poll::Ready(count) = write_now(&os, &[b'x'; 100_000]).await {
                    written += count.unwrap();
                }
                raise(posix::Signal::SIGTERM).unwrap();
                assert!(poll_fn(|cx| Poll::Ready(os.poll_signal(cx))).await.is_ready());
                let mut waiting = pin!(poll_fn(|cx| os.poll_write(Stream::Out, cx, b"end")));
                assert!(poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await.is_pending());
                let mut buf = vec![0; written];
                reader.read_exact(&mut buf).unwrap();
                assert!(buf.iter().all(|&byte| byte == b'x'));
                assert_eq!(waiting.await.unwrap(), 3);
                reader.read_exact(&mut buf[..3]).unwrap();
                assert_eq!(&buf[..3], b"end");
            });
        });
    });
}

#[test]
fn an_output_whose_reader_is_gone_is_a_broken_pipe() {
    passes_in_own_process("", || {
        with_stdout_piped(|reader| {
            drop(reader);
            on_real_os(|os| async move {
                assert_eq!(write_now(&os, b"x").await, Poll::Ready(Err(std::io::ErrorKind::BrokenPipe)));
            });
        });
    });
}

/// HSK-08
#[test]
fn bytes_that_came_during_a_long_call_are_there_before_the_timer() {
    on_real_os(|os| async move {
        let mut child = os.spawn(&sh("read line; echo late; echo done >&2")).unwrap();
        let deadline = os.now() + Duration::from_millis(1);
        // Blocks the thread, as a busy disk would, until the child has written and the deadline is over.
        assert_eq!(poll_fn(|cx| child.poll_write(cx, b"go\n")).await.unwrap(), 3);
        let pid = rustix::process::Pid::from_raw(child.pid().0).unwrap();
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
        while os.now() < deadline {}
        let (bytes, exit) = poll_fn(|cx| {
            let bytes = child.poll_read(ChildPipe::Stdout, cx, &mut [0; 16]).map(Result::unwrap);
            Poll::Ready((bytes, child.poll_exited(cx)))
        })
        .await;
        assert_eq!(bytes, Poll::Ready(5));
        assert_eq!(exit, Poll::Ready(Exit::Status(0)));
    });
}

#[test]
fn the_environment_is_what_mu_was_started_with() {
    passes_in_own_process("cd /usr; export MU_TEST_VALUE='a b' MU_TEST_EMPTY=", || {
        on_real_os(|os| async move {
            let env = os.env();
            assert_eq!(env.cwd, PathBuf::from("/usr"));
            assert_eq!(env.var("MU_TEST_VALUE").unwrap(), "a b");
            assert!(env.vars.contains(&("MU_TEST_EMPTY".into(), "".into())));
            assert_eq!(env.argv[1], "--exact");
            assert_eq!(env.euid, nix::unistd::geteuid().as_raw());
            assert!(!env.stdout_is_terminal);
        });
    });
}

#[test]
fn a_working_directory_that_is_gone_is_no_reason_not_to_start() {
    let setup = "dir=$(mktemp -d); cd \"$dir\"; rmdir \"$dir\"";
    passes_in_own_process(setup, || {
        on_real_os(|os| async move {
            assert_eq!(os.env().cwd, PathBuf::new());
        });
    });
}

/// the kernel hands out the numbers in turn, and lets the superuser say where it goes on.
#[test]
fn a_pid_that_is_used_again_has_another_start() {
    on_real_os(|os| async move {
        let mut first = os.spawn(&sh("exec cat")).unwrap();
        let pid = first.pid();
        let identity = os.identify(pid).unwrap();
        first.close_stdin();
        exited(&mut first).await;
        first.reap();
        os.sleep_until(os.now() + Duration::from_millis(20)).await;
        for _ in 0..100 {
            if fs::write("/proc/sys/kernel/ns_last_pid", (pid.0 - 1).to_string()).is_err() {
                return; // Not the superuser, or a kernel without this file.
            }
            let second = os.spawn(&sh("exec cat")).unwrap();
            if second.pid() == pid {
                let again = os.identify(pid).unwrap();
                assert!(identity.started < again.started && identity.boot == again.boot, "{again:?}");
                return;
            }
        }
        panic!("another process was always faster");
    });
}
