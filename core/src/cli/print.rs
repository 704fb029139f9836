//! Bytes to mu's own two streams.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use crate::cli::output::Printed;
use crate::os::{Os, Signal, Stream};

/// Why not everything was written.
#[derive(Debug)]
pub enum WriteError {
    /// Nobody reads any more; there is nobody to tell.
    Closed,
    /// A terminating signal came while nobody read.
    Interrupted(Signal),
    /// The stream does not take it.
    Failed(io::Error),
}

/// Writes all bytes. A signal ends a write that is stuck: mu has no plugin left by then, and must not hang on a reader.
///
/// # Errors
/// See [`WriteError`].
pub async fn write_all<O: Os>(os: &O, stream: Stream, bytes: &[u8]) -> Result<(), WriteError> {
    let mut written = 0;
    poll_fn(|cx| {
        while written < bytes.len() {
            match os.poll_write(stream, cx, &bytes[written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(WriteError::Closed)),
                Poll::Ready(Ok(count)) => written += count,
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Poll::Ready(Err(WriteError::Closed));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(WriteError::Failed(error))),
                Poll::Pending => {
                    return os.poll_signal(cx).map(|signal| Err(WriteError::Interrupted(signal)));
                }
            }
        }
        Poll::Ready(Ok(()))
    })
    .await
}

/// Writes one line of mu's own to standard error. What cannot be written there has nowhere else to go.
///
/// # Errors
/// Only [`WriteError::Interrupted`] counts for the caller.
pub async fn note<O: Os>(os: &O, line: &str) -> Result<(), WriteError> {
    write_all(os, Stream::Err, format!("mu: {line}\n").as_bytes()).await
}

/// Writes a result to both streams and returns the exit code: that of the result, or 1 when standard output took less
/// than all of it. A reader that went away is a quiet end.
///
/// # Errors
/// The signal that ended a write.
pub async fn print<O: Os>(os: &O, printed: &Printed) -> Result<u8, Signal> {
    // A line of mu's own begins a line.
    let broken_off = !printed.passed.is_empty() && !printed.passed.ends_with('\n') && !printed.err.is_empty();
    for passed in [printed.passed.as_bytes(), if broken_off { b"\n" } else { b"" }] {
        if let Err(WriteError::Interrupted(signal)) = write_all(os, Stream::Err, passed).await {
            return Err(signal);
        }
    }
    for line in &printed.err {
        if let Err(WriteError::Interrupted(signal)) = note(os, line).await {
            return Err(signal);
        }
    }
    match write_all(os, Stream::Out, printed.out.as_bytes()).await {
        Ok(()) | Err(WriteError::Closed) => Ok(printed.exit),
        Err(WriteError::Interrupted(signal)) => Err(signal),
        Err(WriteError::Failed(error)) => {
            let all_else = if printed.exit == 0 { "; nothing else went wrong" } else { "" };
            let line = format!("cannot write to standard output: {error}{all_else}");
            match note(os, &line).await {
                Err(WriteError::Interrupted(signal)) => Err(signal),
                _ => Ok(printed.exit.max(1)),
            }
        }
    }
}
