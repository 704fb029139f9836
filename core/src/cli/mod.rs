//! The command line: words in, one document out.
//!
//! - `args`: the argument tree, and argv to a typed request or a usage failure
//! - `failure`: every way a verb can fail, by name and exit code
//! - `output`: rows, results and the `{ok,data,next}` envelope
//! - `cut`: the size limits of a result, and the mark left where something was cut
//! - `text`: what people read: escaping, shell quoting, tables, dates
//! - `print`: bytes to the two output streams
//!
//! Verbs return an [`output::Output`] or a [`failure::Failure`]; nothing else in mu writes to its own output.

pub mod args;
pub mod cut;
pub mod failure;
pub mod output;
pub mod print;
pub mod text;
