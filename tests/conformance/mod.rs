//! What every operating system under the core must do: one body per fact, generic over the world it runs in.
//!
//! `tests/os_conformance.rs` runs them on the real machine. A simulated one is held to the same bodies by handing in
//! its own [`World`].

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use mu_core::os::{Child, ChildPipe, Exec, Exit, Os};

/// A machine with programs installed.
pub(crate) trait World {
    /// Its operating system, as the process under test sees it.
    type Os: Os;
    /// The handle.
    fn os(&self) -> &Self::Os;
    /// How to start a program that behaves like this.
    fn program(&self, program: Program) -> Exec;
}

/// What the programs of a world do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Exits with this status at once.
    ExitWith(i32),
    /// Sends itself this signal.
    DieOf(i32),
    /// Copies standard input to standard output until its end, exits with 0.
    Cat,
    /// Says `ready`, then neither reads nor writes nor ends.
    Idle,
    /// Says `ready`, then stops itself (SIGSTOP).
    Stopped,
    /// Closes its standard input, says `ready`, then stays.
    DeafAndIdle,
    /// Starts a helper in its group that stays and holds standard output; says `ready`, exits with 0.
    LeaveHelper,
    /// Starts a helper in its group that ends when standard input does; says `ready`, exits with 0.
    LeaveHelperUntilEof,
    /// Writes this many bytes `x` to standard output, exits with 0.
    Flood(usize),
    /// `out` to standard output, `err` to standard error, each with a newline; exits with 0.
    BothStreams,
    /// Prints its environment, a line each, exits with 0.
    PrintEnv,
    /// No such file.
    Missing,
    /// A file without permission to execute.
    NotExecutable,
    /// A script whose interpreter does not exist.
    BadInterpreter,
    /// A file that somebody holds open for writing.
    Busy,
}

fn start<W: World>(world: &W, program: Program) -> <W::Os as Os>::Child {
    world.os().spawn(&world.program(program)).unwrap_or_else(|error| panic!("{program:?}: {error}"))
}

async fn exited(child: &mut impl Child) -> Exit {
    poll_fn(|cx| child.poll_exited(cx)).await
}

async fn group_empty(child: &mut impl Child) {
    poll_fn(|cx| child.poll_group_empty(cx)).await;
}

async fn read(child: &mut impl Child, pipe: ChildPipe, buf: &mut [u8]) -> io::Result<usize> {
    poll_fn(|cx| child.poll_read(pipe, cx, buf)).await
}

async fn write(child: &mut impl Child, bytes: &[u8]) -> io::Result<usize> {
    poll_fn(|cx| child.poll_write(cx, bytes)).await
}

/// Everything up to the end of the stream.
async fn read_all(child: &mut impl Child, pipe: ChildPipe) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buf = [0; 8192];
    loop {
        match read(child, pipe, &mut buf).await.expect("reading a pipe") {
            0 => return all,
            count => all.extend_from_slice(&buf[..count]),
        }
    }
}

/// Waits for the line `ready`.
async fn ready(child: &mut impl Child) {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        assert_eq!(
            read(child, ChildPipe::Stdout, &mut byte).await.expect("reading a pipe"),
            1,
            "the stream ended"
        );
        line.extend_from_slice(&byte);
    }
    assert_eq!(line, b"ready\n");
}

/// One look, without waiting.
async fn look<R>(mut poll: impl FnMut(&mut std::task::Context<'_>) -> Poll<R>) -> Poll<R> {
    poll_fn(|cx| Poll::Ready(poll(cx))).await
}

async fn finish(mut child: impl Child) {
    child.kill_group();
    exited(&mut child).await;
    group_empty(&mut child).await;
    child.reap();
}

/// PRC-17
pub(crate) async fn the_exit_of_the_leader_is_told_again_and_again_until_it_is_reaped<W: World>(world: &W) {
    let mut child = start(world, Program::ExitWith(7));
    assert_eq!(exited(&mut child).await, Exit::Status(7));
    assert_eq!(look(|cx| child.poll_exited(cx)).await, Poll::Ready(Exit::Status(7)));
    group_empty(&mut child).await;
    child.reap();
}

pub(crate) async fn a_death_by_signal_is_told_from_a_status<W: World>(world: &W) {
    let mut child = start(world, Program::DieOf(15));
    assert_eq!(exited(&mut child).await, Exit::Signal(15));
    finish(child).await;
}

/// PRC-16
pub(crate) async fn a_dead_leader_does_not_keep_its_group_from_being_empty<W: World>(world: &W) {
    let mut child = start(world, Program::ExitWith(0));
    exited(&mut child).await;
    assert!(look(|cx| child.poll_group_empty(cx)).await.is_ready());
    child.reap();
}

/// PRC-16
pub(crate) async fn a_living_leader_is_a_member_of_its_group<W: World>(world: &W) {
    let mut child = start(world, Program::Idle);
    ready(&mut child).await;
    assert!(look(|cx| child.poll_group_empty(cx)).await.is_pending());
    assert!(look(|cx| child.poll_exited(cx)).await.is_pending());
    finish(child).await;
}

/// PRC-16
pub(crate) async fn a_helper_keeps_the_group_from_being_empty_after_the_leader_has_gone<W: World>(world: &W) {
    let mut child = start(world, Program::LeaveHelper);
    assert_eq!(exited(&mut child).await, Exit::Status(0));
    assert!(look(|cx| child.poll_group_empty(cx)).await.is_pending());
    finish(child).await;
}

/// PRC-16
pub(crate) async fn a_helper_that_ends_by_itself_empties_the_group<W: World>(world: &W) {
    let mut child = start(world, Program::LeaveHelperUntilEof);
    ready(&mut child).await;
    exited(&mut child).await;
    assert!(look(|cx| child.poll_group_empty(cx)).await.is_pending());
    child.close_stdin();
    group_empty(&mut child).await;
    child.reap();
}

/// PRC-17
pub(crate) async fn a_helper_holds_stdout_open_until_the_group_is_killed<W: World>(world: &W) {
    let mut child = start(world, Program::LeaveHelper);
    ready(&mut child).await;
    exited(&mut child).await;
    let mut buf = [0; 16];
    assert!(look(|cx| child.poll_read(ChildPipe::Stdout, cx, &mut buf)).await.is_pending());
    child.kill_group();
    assert_eq!(read(&mut child, ChildPipe::Stdout, &mut buf).await.unwrap(), 0);
    finish(child).await;
}

/// PRC-07
pub(crate) async fn the_killed_leader_reports_signal_9<W: World>(world: &W) {
    let mut child = start(world, Program::Idle);
    ready(&mut child).await;
    child.kill_group();
    assert_eq!(exited(&mut child).await, Exit::Signal(9));
    finish(child).await;
}

/// PRC-07
pub(crate) async fn a_stopped_process_lives_and_can_be_killed<W: World>(world: &W) {
    let mut child = start(world, Program::Stopped);
    ready(&mut child).await;
    assert!(look(|cx| child.poll_exited(cx)).await.is_pending());
    assert!(look(|cx| child.poll_group_empty(cx)).await.is_pending());
    child.kill_group();
    assert_eq!(exited(&mut child).await, Exit::Signal(9));
    finish(child).await;
}

/// PRC-07
pub(crate) async fn killing_an_empty_group_is_no_error<W: World>(world: &W) {
    let mut child = start(world, Program::ExitWith(3));
    exited(&mut child).await;
    group_empty(&mut child).await;
    child.kill_group();
    assert_eq!(exited(&mut child).await, Exit::Status(3));
    child.reap();
    child.kill_group();
}

/// PRC-14
pub(crate) async fn closing_stdin_is_the_end_of_the_stream_for_the_child<W: World>(world: &W) {
    let mut child = start(world, Program::Cat);
    assert_eq!(write(&mut child, b"last words\n").await.unwrap(), 11);
    child.close_stdin();
    assert_eq!(read_all(&mut child, ChildPipe::Stdout).await, b"last words\n");
    assert_eq!(exited(&mut child).await, Exit::Status(0));
    finish(child).await;
}

/// PRC-15
pub(crate) async fn a_sibling_does_not_hold_the_stdin_of_another_child<W: World>(world: &W) {
    let mut first = start(world, Program::Cat);
    let mut second = start(world, Program::Cat);
    first.close_stdin();
    assert_eq!(exited(&mut first).await, Exit::Status(0));
    assert!(look(|cx| second.poll_exited(cx)).await.is_pending());
    finish(first).await;
    finish(second).await;
}

/// TRN-07
pub(crate) async fn more_than_a_pipe_holds_passes_when_both_ends_are_served<W: World>(world: &W) {
    let mut child = start(world, Program::Cat);
    let sent: Vec<u8> = (0..200 * 1024_u32).map(|at| (at % 251) as u8).collect();
    let (mut written, mut received, mut refused) = (0, Vec::new(), 0);
    let mut buf = [0; 4096];
    poll_fn(|cx| {
        loop {
            if written < sent.len() {
                match child.poll_write(cx, &sent[written..]) {
                    Poll::Ready(count) => written += count.unwrap(),
                    Poll::Pending => refused += 1,
                }
                if written == sent.len() {
                    child.close_stdin();
                }
            }
            match child.poll_read(ChildPipe::Stdout, cx, &mut buf) {
                Poll::Ready(count) => match count.unwrap() {
                    0 => return Poll::Ready(()),
                    count => received.extend_from_slice(&buf[..count]),
                },
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
    assert!(received == sent, "{} bytes of {} came back unchanged", received.len(), sent.len());
    assert!(refused > 0, "the pipe took everything at once");
    finish(child).await;
}

pub(crate) async fn a_full_pipe_takes_a_part_and_then_nothing<W: World>(world: &W) {
    let mut child = start(world, Program::Idle);
    ready(&mut child).await;
    let big = vec![b'x'; 1024 * 1024];
    let taken = write(&mut child, &big).await.unwrap();
    assert!(0 < taken && taken < big.len(), "{taken} bytes were taken");
    assert!(look(|cx| child.poll_write(cx, &big)).await.is_pending());
    finish(child).await;
}

/// PRC-17
pub(crate) async fn what_the_leader_wrote_is_still_there_after_its_exit<W: World>(world: &W) {
    let mut child = start(world, Program::Flood(60_000));
    assert_eq!(exited(&mut child).await, Exit::Status(0));
    group_empty(&mut child).await;
    child.reap();
    assert_eq!(read_all(&mut child, ChildPipe::Stdout).await.len(), 60_000);
}

pub(crate) async fn writing_to_a_stdin_that_the_child_closed_is_a_broken_pipe<W: World>(world: &W) {
    let mut child = start(world, Program::DeafAndIdle);
    ready(&mut child).await;
    assert_eq!(write(&mut child, b"hello\n").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    finish(child).await;
}

pub(crate) async fn a_write_that_waits_for_room_ends_when_the_reader_dies<W: World>(world: &W) {
    let mut child = start(world, Program::Idle);
    ready(&mut child).await;
    while look(|cx| child.poll_write(cx, &[b'x'; 65536])).await.is_ready() {}
    child.kill_group();
    assert_eq!(write(&mut child, b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    finish(child).await;
}

/// TRN-06
pub(crate) async fn the_two_output_streams_are_two_pipes<W: World>(world: &W) {
    let mut child = start(world, Program::BothStreams);
    assert_eq!(read_all(&mut child, ChildPipe::Stderr).await, b"err\n");
    assert_eq!(read_all(&mut child, ChildPipe::Stdout).await, b"out\n");
    finish(child).await;
}

/// PRC-05
pub(crate) async fn the_child_gets_exactly_the_variables_given<W: World>(world: &W) {
    let mut exec = world.program(Program::PrintEnv);
    exec.env = [("B", "two words"), ("A", ""), ("EQUALS", "x=y")].map(|(k, v)| (k.into(), v.into())).to_vec();
    let mut child = world.os().spawn(&exec).unwrap();
    let printed = String::from_utf8(read_all(&mut child, ChildPipe::Stdout).await).unwrap();
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["A=", "B=two words", "EQUALS=x=y"]);
    finish(child).await;
}

fn refusal<W: World>(world: &W, program: Program) -> Option<i32> {
    match world.os().spawn(&world.program(program)) {
        Ok(_) => panic!("{program:?} was started"),
        Err(error) => error.raw_os_error(),
    }
}

const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const ETXTBSY: i32 = 26;

pub(crate) async fn a_missing_program_is_enoent<W: World>(world: &W) {
    assert_eq!(refusal(world, Program::Missing), Some(ENOENT));
}

pub(crate) async fn a_program_without_the_permission_is_eacces<W: World>(world: &W) {
    assert_eq!(refusal(world, Program::NotExecutable), Some(EACCES));
}

pub(crate) async fn a_missing_interpreter_is_enoent<W: World>(world: &W) {
    assert_eq!(refusal(world, Program::BadInterpreter), Some(ENOENT));
}

pub(crate) async fn a_program_that_is_being_written_is_etxtbsy<W: World>(world: &W) {
    assert_eq!(refusal(world, Program::Busy), Some(ETXTBSY));
}

/// HSK-08
pub(crate) async fn a_timer_is_ready_when_its_time_has_come_and_not_before<W: World>(world: &W) {
    let os = world.os();
    let at = os.now() + Duration::from_millis(20);
    os.sleep_until(at).await;
    assert!(os.now() >= at);
}

/// HSK-08
pub(crate) async fn a_timer_in_the_past_is_ready_at_once<W: World>(world: &W) {
    let os = world.os();
    let mut sleep = os.sleep_until(os.now());
    assert!(look(|cx| std::pin::Pin::new(&mut sleep).poll(cx)).await.is_ready());
}

/// HSK-08
pub(crate) async fn a_timer_in_the_future_is_pending<W: World>(world: &W) {
    let os = world.os();
    let mut sleep = os.sleep_until(os.now() + Duration::from_secs(3600));
    assert!(look(|cx| std::pin::Pin::new(&mut sleep).poll(cx)).await.is_pending());
}

/// HSK-08
pub(crate) async fn a_timer_wakes_a_task_that_waits_for_a_child_as_well<W: World>(world: &W) {
    let os = world.os();
    let mut child = start(world, Program::Idle);
    ready(&mut child).await;
    let mut sleep = os.sleep_until(os.now() + Duration::from_millis(5));
    let first = poll_fn(|cx| match child.poll_exited(cx) {
        Poll::Ready(exit) => Poll::Ready(Some(exit)),
        Poll::Pending => std::pin::Pin::new(&mut sleep).poll(cx).map(|()| None),
    });
    assert_eq!(first.await, None);
    finish(child).await;
}

pub(crate) async fn random_bytes_are_not_zeros<W: World>(world: &W) {
    let mut bytes = [0; 1024];
    world.os().random(&mut bytes);
    assert!(bytes.iter().filter(|&&byte| byte == 0).count() < 100);
}
