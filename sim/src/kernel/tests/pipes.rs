//! Pipes.

use std::task::Poll;

use futures_probe::polled;
use nix::errno::Errno;

use super::*;
use crate::trace::What;

/// Looks at what one poll says, without waiting.
mod futures_probe {
    use std::future::poll_fn;
    use std::task::{Context, Poll};

    pub(super) async fn polled<T>(mut f: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        poll_fn(|cx| Poll::Ready(f(cx))).await
    }
}

fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> Errno {
    Errno::from_raw(result.unwrap_err().raw_os_error().unwrap())
}

#[test]
fn a_pipe_takes_64_kib_and_not_one_byte_more() {
    run(|sys| async move {
        let (_read, write) = sys.pipe().unwrap();
        let taken = sys.write(write, &[7; PIPE_CAPACITY + 1]).await.unwrap();
        assert_eq!(taken, 65536);
        assert!(polled(|cx| sys.poll_write(write, cx, b"x")).await.is_pending());
        OK
    });
}

#[test]
fn a_write_of_up_to_4096_bytes_is_never_split() {
    run(|sys| async move {
        let (read, write) = sys.pipe().unwrap();
        sys.write_all(write, &[0; PIPE_CAPACITY - 4095]).await.unwrap();
        assert!(polled(|cx| sys.poll_write(write, cx, &[1; 4096])).await.is_pending());
        sys.read(read, &mut [0; 4096]).await.unwrap();
        assert!(matches!(polled(|cx| sys.poll_write(write, cx, &[1; 4096])).await, Poll::Ready(Ok(4096))));
        OK
    });
}

#[test]
fn a_larger_write_takes_what_fits() {
    run(|sys| async move {
        let (_read, write) = sys.pipe().unwrap();
        sys.write_all(write, &[0; PIPE_CAPACITY - 4096]).await.unwrap();
        assert_eq!(sys.write(write, &[1; 5000]).await.unwrap(), 4096);
        OK
    });
}

#[test]
fn a_blocked_writer_goes_on_once_somebody_has_read() {
    run(|sys| async move {
        let (read, write) = sys.pipe().unwrap();
        sys.fork(&forked("writer", &[(STDOUT, Give::Keep(write))]), |sys| async move {
            sys.write_all(STDOUT, &[5; 3 * PIPE_CAPACITY]).await.unwrap();
            OK
        })
        .unwrap();
        sys.close(write).unwrap();
        let mut total = 0;
        let mut buf = [0; 1000];
        loop {
            match sys.read(read, &mut buf).await.unwrap() {
                0 => break,
                count => total += count,
            }
        }
        assert_eq!(total, 3 * PIPE_CAPACITY);
        OK
    });
}

#[test]
fn bytes_come_out_in_the_order_in_which_they_went_in() {
    run(|sys| async move {
        let (read, write) = sys.pipe().unwrap();
        let sent: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        let copy = sent.clone();
        sys.fork(&forked("writer", &[(STDOUT, Give::Keep(write))]), |sys| async move {
            for part in copy.chunks(3333) {
                sys.write_all(STDOUT, part).await.unwrap();
            }
            OK
        })
        .unwrap();
        sys.close(write).unwrap();
        let mut got = Vec::new();
        let mut buf = [0; 777];
        while let count @ 1.. = sys.read(read, &mut buf).await.unwrap() {
            got.extend_from_slice(&buf[..count]);
        }
        assert!(got == sent);
        OK
    });
}

#[test]
fn the_end_comes_only_after_the_last_writer() {
    let machine = run(|sys| async move {
        let (read, write) = sys.pipe().unwrap();
        for after in [5, 9] {
            sys.fork(&forked("holder", &[(STDOUT, Give::Keep(write))]), move |sys| async move {
                sys.sleep(ms(after)).await;
                OK
            })
            .unwrap();
        }
        sys.close(write).unwrap();
        assert_eq!(sys.read(read, &mut [0; 9]).await.unwrap(), 0);
        assert_eq!(sys.now().0, ms(9));
        OK
    });
    assert_eq!(find(&machine, |event| matches!(event.what, What::Eof(_)).then_some(event.at)), [9_000_000]);
}

#[test]
fn what_is_in_the_pipe_outlives_its_writer() {
    run(|sys| async move {
        let (read, write) = sys.pipe().unwrap();
        let child = sys
            .fork(&forked("writer", &[(STDOUT, Give::Keep(write))]), |sys| async move {
                sys.write_all(STDOUT, b"last words").await.unwrap();
                OK
            })
            .unwrap();
        sys.close(write).unwrap();
        sys.wait_for(child.pid).await.unwrap();
        let mut buf = [0; 64];
        assert_eq!(sys.read(read, &mut buf).await.unwrap(), 10);
        assert_eq!(&buf[..10], b"last words");
        assert_eq!(sys.read(read, &mut buf).await.unwrap(), 0);
        OK
    });
}

#[test]
fn a_write_that_nobody_can_read_ends_the_process_by_sigpipe() {
    run(|sys| async move {
        let (read, write) = sys.pipe().unwrap();
        let child = sys
            .fork(&forked("writer", &[(STDOUT, Give::Keep(write))]), |sys| async move {
                sys.sleep(ms(1)).await;
                sys.write(STDOUT, b"x").await.ok();
                OK
            })
            .unwrap();
        sys.close(read).unwrap();
        assert_eq!(sys.wait_for(child.pid).await.unwrap(), Exit::Signal(SIGPIPE));
        OK
    });
}

#[test]
fn with_sigpipe_ignored_such_a_write_is_epipe() {
    run(|sys| async move {
        sys.on_signal(SIGPIPE, Disposition::Ignore).unwrap();
        let (read, write) = sys.pipe().unwrap();
        sys.close(read).unwrap();
        assert_eq!(errno(sys.write(write, b"x").await), Errno::EPIPE);
        OK
    });
}

#[test]
fn a_blocked_writer_learns_that_the_last_reader_is_gone() {
    run(|sys| async move {
        let (read, write) = sys.pipe().unwrap();
        let child = sys
            .fork(&forked("writer", &[(STDOUT, Give::Keep(write))]), |sys| async move {
                sys.on_signal(SIGPIPE, Disposition::Ignore).unwrap();
                let failed = sys.write_all(STDOUT, &[0; PIPE_CAPACITY + 1]).await;
                Exit::Status(errno(failed) as i32)
            })
            .unwrap();
        sys.sleep(ms(1)).await;
        sys.close(read).unwrap();
        assert_eq!(sys.wait_for(child.pid).await.unwrap(), Exit::Status(Errno::EPIPE as i32));
        OK
    });
}

#[test]
fn a_child_holds_nothing_but_what_it_was_given() {
    run(|sys| async move {
        let (read, write) = sys.pipe().unwrap();
        sys.fork(&forked("stranger", &[]), |sys| async move {
            sys.sleep(ms(100)).await;
            OK
        })
        .unwrap();
        sys.close(write).unwrap();
        assert_eq!(sys.read(read, &mut [0; 1]).await.unwrap(), 0);
        assert_eq!(sys.now().0, ms(0));
        OK
    });
}

#[test]
fn a_duplicate_keeps_the_end_open() {
    run(|sys| async move {
        let (read, write) = sys.pipe().unwrap();
        let second = sys.dup(write).unwrap();
        sys.close(write).unwrap();
        assert!(polled(|cx| sys.poll_read(read, cx, &mut [0; 1])).await.is_pending());
        sys.close(second).unwrap();
        assert!(matches!(polled(|cx| sys.poll_read(read, cx, &mut [0; 1])).await, Poll::Ready(Ok(0))));
        OK
    });
}

#[test]
fn descriptors_have_a_direction_and_must_be_open() {
    run(|sys| async move {
        let (read, write) = sys.pipe().unwrap();
        assert_eq!(errno(sys.read(write, &mut [0; 1]).await), Errno::EBADF);
        assert_eq!(errno(sys.write(read, b"x").await), Errno::EBADF);
        sys.close(read).unwrap();
        assert_eq!(errno(sys.close(read)), Errno::EBADF);
        assert_eq!(errno(sys.read(Fd(77), &mut [0; 1]).await), Errno::EBADF);
        OK
    });
}

#[test]
fn the_lowest_free_descriptor_is_used() {
    run(|sys| async move {
        assert_eq!(sys.pipe().unwrap(), (Fd(3), Fd(4)));
        sys.close(STDIN).unwrap();
        assert_eq!(sys.pipe().unwrap(), (Fd(0), Fd(5)));
        OK
    });
}

#[test]
fn a_read_before_a_deadline_gives_up_at_the_deadline() {
    run(|sys| async move {
        let (read, _write) = sys.pipe().unwrap();
        let deadline = sys.now() + ms(30);
        assert_eq!(sys.read_before(read, &mut [0; 1], deadline).await.unwrap(), None);
        assert_eq!(sys.now(), deadline);
        OK
    });
}

#[test]
fn short_io_shortens_reads_and_large_writes_but_no_atomic_write() {
    let options = Options { short_io: Some(2), ..Options::new(4) };
    let machine = Machine::with(options, crate::disk::Disk::new());
    run_on(machine, |sys| async move {
        let (read, write) = sys.pipe().unwrap();
        let (mut short_reads, mut short_writes) = (0, 0);
        for _ in 0..50 {
            assert_eq!(sys.write(write, &[0; PIPE_ATOMIC]).await.unwrap(), PIPE_ATOMIC);
            let mut left = PIPE_ATOMIC;
            while left > 0 {
                let wanted = left;
                let count = sys.read(read, &mut vec![0; wanted]).await.unwrap();
                short_reads += u32::from(count < wanted);
                left -= count;
            }
            let mut left = sys.write(write, &[0; 10_000]).await.unwrap();
            short_writes += u32::from(left < 10_000);
            while left > 0 {
                left -= sys.read(read, &mut vec![0; left]).await.unwrap();
            }
        }
        assert!(short_reads > 10 && short_writes > 10, "{short_reads} reads, {short_writes} writes");
        OK
    });
}

#[test]
fn a_write_event_names_whose_stream_it_was() {
    let machine = run(|sys| async move {
        let child = sys
            .fork(&forked("child", &[(STDIN, Give::Pipe)]), |sys| async move {
                let mut buf = [0; 16];
                assert_eq!(sys.read(STDIN, &mut buf).await.unwrap(), 5);
                OK
            })
            .unwrap();
        sys.write_all(child.pipes[0], b"hello").await.unwrap();
        OK
    });
    let writes = find(&machine, |event| match &event.what {
        What::Write { pipe, bytes } => Some((event.pid, pipe.to_string(), bytes.clone())),
        _ => None,
    });
    assert_eq!(writes, [(Pid(100), "stdin of 101".to_owned(), b"hello"[..].into())]);
}

#[test]
fn an_output_that_its_reader_closes_after_some_bytes_breaks_then() {
    let machine = Machine::new(1);
    let command = Command { stdout: Output::ClosedAfter(7), ..command("main") };
    let started = machine
        .start_fn(&command, |sys| async move {
            sys.on_signal(SIGPIPE, Disposition::Ignore).unwrap();
            assert_eq!(errno(sys.write_all(STDOUT, b"0123456789").await), Errno::EPIPE);
            OK
        })
        .unwrap();
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
    assert_eq!(machine.stdout(&started), b"0123456");
}

#[test]
fn an_output_that_nobody_reads_fills_up() {
    let machine = Machine::new(1);
    let command = Command { stderr: Output::Unread, ..command("main") };
    let program = |sys: Sys| async move {
        sys.write_all(STDERR, &[0; PIPE_CAPACITY + 1]).await.unwrap();
        OK
    };
    let started = machine.start_fn(&command, program).unwrap();
    assert!(matches!(machine.run_until_exit(&started), Err(Stuck::Deadlock(_))));
}

#[test]
fn input_given_from_outside_is_read_and_then_ends() {
    let machine = Machine::new(1);
    let command = Command { stdin: Input::Bytes(b"abc".to_vec()), ..command("main") };
    let program = |sys: Sys| async move {
        let mut buf = [0; 8];
        assert_eq!(sys.read(STDIN, &mut buf).await.unwrap(), 3);
        assert_eq!(sys.read(STDIN, &mut buf).await.unwrap(), 0);
        OK
    };
    let started = machine.start_fn(&command, program).unwrap();
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
}
