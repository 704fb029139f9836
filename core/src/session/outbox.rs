//! Lines waiting for the plugin's stdin. One buffer a line, written in order.

use std::collections::VecDeque;

#[derive(Debug)]
struct Line {
    /// The request this line carries; none for a notification.
    request: Option<u64>,
    bytes: Vec<u8>,
    written: usize,
}

/// The queue. A request counts as sent from its first byte in the pipe.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    lines: VecDeque<Line>,
}

impl Outbox {
    pub(super) fn push(&mut self, request: Option<u64>, bytes: Vec<u8>) {
        self.lines.push_back(Line { request, bytes, written: 0 });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// What is left of the first line.
    pub(super) fn front(&self) -> Option<&[u8]> {
        self.lines.front().map(|line| &line.bytes[line.written..])
    }

    /// Whether the pipe holds the beginning of a line but not its end.
    pub(super) fn front_is_begun(&self) -> bool {
        self.lines.front().is_some_and(|line| line.written > 0)
    }

    /// Whether this request waits here and nothing of it was written.
    pub(super) fn holds_unsent(&self, request: u64) -> bool {
        self.lines.iter().any(|line| line.request == Some(request) && line.written == 0)
    }

    /// Takes out this request, unless it was begun; whether it was here and unsent.
    pub(super) fn remove_unsent(&mut self, request: u64) -> bool {
        let unsent = |line: &Line| line.request == Some(request) && line.written == 0;
        let count = self.lines.len();
        self.lines.retain(|line| !unsent(line));
        self.lines.len() < count
    }

    pub(super) fn advance(&mut self, count: usize) {
        let line = self.lines.front_mut().expect("only an offered line is written");
        line.written += count;
        if line.written == line.bytes.len() {
            self.lines.pop_front();
        }
    }

    /// Drops all lines and returns the requests of which no byte was written.
    pub(super) fn clear(&mut self) -> Vec<u64> {
        self.lines.drain(..).filter(|line| line.written == 0).filter_map(|line| line.request).collect()
    }
}
