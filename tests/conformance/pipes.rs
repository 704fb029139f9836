//! Bytes, room and ends of streams. A pipe is sixteen pages of 4096 bytes.

use super::*;

const PAGE: usize = 4096;
const CAPACITY: usize = 16 * PAGE;

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

/// TRN-04
pub(crate) async fn a_read_returns_what_is_there_and_leaves_the_rest<W: World>(world: &W) {
    let mut child = start(world, Program::Flood(10));
    exited(&mut child).await;
    let mut buf = [0; 7];
    assert_eq!(read(&mut child, ChildPipe::Stdout, &mut buf).await.unwrap(), 7);
    assert_eq!(read(&mut child, ChildPipe::Stdout, &mut buf).await.unwrap(), 3);
    assert_eq!(read(&mut child, ChildPipe::Stdout, &mut buf).await.unwrap(), 0);
    finish(child).await;
}

/// TRN-04
pub(crate) async fn several_writes_come_out_as_one_stream<W: World>(world: &W) {
    let mut child = start(world, Program::Cat);
    for part in [&b"one"[..], b" two\nth", b"ree\n"] {
        write_all(&mut child, part).await;
    }
    assert_eq!(read_exact(&mut child, 14).await, b"one two\nthree\n");
    finish(child).await;
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

pub(crate) async fn a_pipe_holds_64_kib_and_not_one_byte_more<W: World>(world: &W) {
    let mut child = start(world, Program::Idle);
    ready(&mut child).await;
    let big = vec![b'x'; 1024 * 1024];
    assert_eq!(write(&mut child, &big).await.unwrap(), CAPACITY);
    for size in [1, PAGE, big.len()] {
        assert!(look(|cx| child.poll_write(cx, &big[..size])).await.is_pending());
    }
    finish(child).await;
}

/// How much a full pipe takes after its reader has read so many bytes.
async fn room_after<W: World>(world: &W, read: usize) -> usize {
    let mut child = start(world, Program::StoppedThenReads(read));
    world.until_stopped(child.pid()).await;
    assert_eq!(fill(&mut child, 1024 * 1024).await, CAPACITY);
    world.signal(Target::Process(child.pid()), nix::libc::SIGCONT).unwrap();
    ready(&mut child).await;
    let room = fill(&mut child, 1024 * 1024).await;
    finish(child).await;
    room
}

pub(crate) async fn a_full_pipe_has_room_again_once_a_page_was_read_whole<W: World>(world: &W) {
    assert_eq!(room_after(world, PAGE - 1).await, 0);
    assert_eq!(room_after(world, PAGE).await, PAGE);
    assert_eq!(room_after(world, 3 * PAGE + 1).await, 3 * PAGE);
}

pub(crate) async fn a_write_of_up_to_a_page_is_taken_whole_or_not_at_all<W: World>(world: &W) {
    let mut child = start(world, Program::Idle);
    ready(&mut child).await;
    assert_eq!(write(&mut child, &[0; 15 * PAGE + 100]).await.unwrap(), 15 * PAGE + 100);
    for too_much in [PAGE, PAGE - 99] {
        assert!(look(|cx| child.poll_write(cx, &[1; PAGE][..too_much])).await.is_pending());
    }
    assert_eq!(write(&mut child, &[1; PAGE - 100]).await.unwrap(), PAGE - 100);
    finish(child).await;
}

/// How much an empty pipe takes in writes of this size.
async fn capacity<W: World>(world: &W, size: usize) -> usize {
    let mut child = start(world, Program::Idle);
    ready(&mut child).await;
    let taken = fill(&mut child, size).await;
    finish(child).await;
    taken
}

pub(crate) async fn small_writes_share_a_page_as_long_as_they_fit<W: World>(world: &W) {
    assert_eq!(capacity(world, 1).await, CAPACITY);
    assert_eq!(capacity(world, 1024).await, CAPACITY);
    assert_eq!(capacity(world, 100).await, 16 * 4000);
    assert_eq!(capacity(world, 3000).await, 16 * 3000);
}

pub(crate) async fn the_odd_end_of_a_large_write_goes_into_a_page_begun<W: World>(world: &W) {
    // Of 5000 bytes 904 are the odd end. Two writes take three pages, ten take fifteen, the next one gets the last.
    assert_eq!(capacity(world, 5000).await, 10 * 5000 + PAGE);
}

/// PRC-17
pub(crate) async fn what_the_leader_wrote_is_still_there_after_its_exit<W: World>(world: &W) {
    let mut child = start(world, Program::Flood(60_000));
    assert_eq!(exited(&mut child).await, Exit::Status(0));
    group_empty(&mut child).await;
    child.reap();
    assert_eq!(read_all(&mut child, ChildPipe::Stdout).await.len(), 60_000);
}

/// TRN-07
pub(crate) async fn a_child_that_writes_too_much_waits_for_its_reader<W: World>(world: &W) {
    let mut child = start(world, Program::Flood(1_000_000));
    // The pipe holds the first of it, and the child lives to write the rest.
    assert_eq!(read_exact(&mut child, 100).await, [b'x'; 100]);
    assert!(look(|cx| child.poll_exited(cx)).await.is_pending());
    assert_eq!(read_all(&mut child, ChildPipe::Stdout).await.len(), 1_000_000 - 100);
    assert_eq!(exited(&mut child).await, Exit::Status(0));
    finish(child).await;
}

/// PRC-17
pub(crate) async fn the_stream_ends_only_after_its_last_writer<W: World>(world: &W) {
    let mut child = start(world, Program::LeaveEscapedUntilEof);
    ready(&mut child).await;
    exited(&mut child).await;
    assert!(is_silent(&mut child, ChildPipe::Stdout).await, "the leader was not the last writer");
    // Nobody holds the other stream any more.
    assert_eq!(read_all(&mut child, ChildPipe::Stderr).await, b"");
    child.close_stdin();
    assert_eq!(read_all(&mut child, ChildPipe::Stdout).await, b"");
    finish(child).await;
}

///
pub(crate) async fn a_stream_ends_when_the_child_closes_it_though_the_child_lives<W: World>(world: &W) {
    let mut child = start(world, Program::MuteAndIdle);
    assert_eq!(read_all(&mut child, ChildPipe::Stdout).await, b"ready\n");
    assert!(look(|cx| child.poll_exited(cx)).await.is_pending());
    assert!(is_silent(&mut child, ChildPipe::Stderr).await);
    finish(child).await;
}

/// PRC-17
pub(crate) async fn a_helper_holds_stdout_open_until_the_group_is_killed<W: World>(world: &W) {
    let mut child = start(world, Program::LeaveHelper);
    ready(&mut child).await;
    exited(&mut child).await;
    assert!(is_silent(&mut child, ChildPipe::Stdout).await);
    child.kill_group();
    assert_eq!(read_all(&mut child, ChildPipe::Stdout).await, b"");
    finish(child).await;
}

pub(crate) async fn writing_to_a_stdin_that_the_child_closed_is_a_broken_pipe<W: World>(world: &W) {
    let mut child = start(world, Program::DeafAndIdle);
    ready(&mut child).await;
    assert_eq!(write(&mut child, b"hello\n").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    finish(child).await;
}

pub(crate) async fn writing_to_a_dead_child_is_a_broken_pipe<W: World>(world: &W) {
    let mut child = start(world, Program::ExitWith(0));
    exited(&mut child).await;
    assert_eq!(write(&mut child, b"hello\n").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    finish(child).await;
}

pub(crate) async fn a_write_that_waits_for_room_ends_when_the_reader_dies<W: World>(world: &W) {
    let mut child = start(world, Program::Idle);
    ready(&mut child).await;
    fill(&mut child, 65536).await;
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

pub(crate) async fn the_end_of_a_stream_is_told_again_and_again<W: World>(world: &W) {
    let mut child = start(world, Program::ExitWith(0));
    for _ in 0..3 {
        assert_eq!(read_all(&mut child, ChildPipe::Stdout).await, b"");
    }
    finish(child).await;
}
