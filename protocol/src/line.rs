//! Bytes into lines: a bounded buffer that never waits for a line feed once a line is too long.

use crate::invalid::{InvalidMessage, Why};

/// The longest line in bytes, its line feed not counted (TRN-04).
pub const MAX_LINE: usize = 1_048_576;

/// Cuts a stream of bytes into lines, whatever the size of the pieces in which it comes.
///
/// Every byte is looked at once and copied at most once; at most [`MAX_LINE`] bytes of a line are kept.
#[derive(Debug, Default)]
pub struct LineSplitter {
    /// The start of a line whose end has not come, or the line handed out last (`spent`).
    held: Vec<u8>,
    spent: bool,
    broken: bool,
}

impl LineSplitter {
    /// A splitter at the start of a line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes off the front of `input` up to the end of a line and returns that line without its line feed.
    ///
    /// `None` once `input` is used up. A line that lies wholly in `input` is returned from there, not copied. The first
    /// line with more than [`MAX_LINE`] bytes is an error, reported as soon as the byte too many has come; from then on
    /// the splitter holds no memory, swallows all input and reports that error again for every piece of it.
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Option<Result<&'s [u8], InvalidMessage>> {
        if self.spent {
            self.held.clear();
            self.spent = false;
        }
        if input.is_empty() {
            return None;
        }
        if self.broken {
            return Some(Err(self.refuse(input)));
        }
        // One more than fits, so that the line feed of a line of exactly MAX_LINE bytes is still found.
        let window = &input[..input.len().min(MAX_LINE - self.held.len() + 1)];
        match memchr::memchr(b'\n', window) {
            Some(end) => {
                let (line, rest) = (&input[..end], &input[end + 1..]);
                *input = rest;
                if self.held.is_empty() {
                    return Some(Ok(line));
                }
                self.held.extend_from_slice(line);
                self.spent = true;
                Some(Ok(&self.held))
            }
            None if self.held.len() + window.len() > MAX_LINE => Some(Err(self.refuse(input))),
            None => {
                self.held.extend_from_slice(input);
                *input = &[];
                None
            }
        }
    }

    /// How many bytes of a line without its line feed are held. At the end of the stream they are dropped.
    pub fn pending(&self) -> usize {
        if self.spent { 0 } else { self.held.len() }
    }

    fn refuse(&mut self, input: &mut &[u8]) -> InvalidMessage {
        *input = &[];
        self.held = Vec::new();
        self.broken = true;
        InvalidMessage::new(MAX_LINE, Why::TooLong)
    }
}
