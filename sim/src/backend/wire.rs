//! The lines between plugins and backend: JSON, one a line. An empty line says nothing but that its sender is there; the
//! backend answers each with one. Over a Unix socket, where connecting proves nothing, it begins with one.

use serde::{Deserialize, Serialize};

use super::books::Books;
use super::ledger::{Answer, Question};
use super::table::{BackendAt, BackendTable, NetAt};

/// A line to the backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// From a plugin.
    Ask {
        /// The instance that it declares.
        instance: String,
        /// What it asks.
        question: Question,
    },
    /// From whoever set the backend up.
    Control(Control),
}

/// What is asked of a real backend by whoever set it up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Control {
    /// It behaves otherwise from now on.
    Set(BackendTable),
    /// Something happens to a host.
    Do(BackendAt),
    /// Something happens to the network.
    Net(NetAt),
    /// What stands in the books is to be told.
    Books,
}

impl Request {
    /// As it goes out, with its LF.
    pub fn line(&self) -> Vec<u8> {
        line(self)
    }

    /// Reads a line without its LF.
    pub fn read(line: &[u8]) -> Option<Request> {
        serde_json::from_slice(line).ok()
    }
}

impl Answer {
    /// As it goes out, with its LF.
    pub fn line(&self) -> Vec<u8> {
        line(self)
    }

    /// Reads a line without its LF.
    pub fn read(line: &[u8]) -> Option<Answer> {
        serde_json::from_slice(line).ok()
    }
}

impl Books {
    /// As it goes out, with its LF.
    pub fn line(&self) -> Vec<u8> {
        line(self)
    }
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("it has string keys alone");
    line.push(b'\n');
    line
}
