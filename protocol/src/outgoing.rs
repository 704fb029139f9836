//! The lines that mu writes, each in one buffer with its line feed, so that one write carries a whole message.

use crate::line::MAX_LINE;
use crate::messages::lifecycle::{CANCEL, INITIALIZE, SHUTDOWN};

/// A message of mu's own that would not fit into a line; nothing of it may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message has {bytes} bytes, more than the 1 MiB that a line may have")]
pub struct TooLong {
    /// Its length without the line feed.
    pub bytes: usize,
}

/// The first line to every plugin (HSK-01).
pub fn initialize(id: u64) -> Vec<u8> {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{INITIALIZE}\",\
         \"params\":{{\"protocol\":{{\"min\":1,\"max\":1}},\"mu\":\"5\"}}}}\n"
    )
    .into_bytes()
}

/// The request of `method` with `params`, the text of a JSON object without line feeds.
pub fn request(id: u64, method: &str, params: &str) -> Result<Vec<u8>, TooLong> {
    debug_assert!(!params.contains('\n') && params.starts_with('{') && params.ends_with('}'));
    bounded(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{},\"params\":{params}}}\n",
        quoted(method)
    ))
}

/// Ends the call with this id.
pub fn cancel(id: u64) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{CANCEL}\",\"params\":{{\"id\":{id}}}}}\n").into_bytes()
}

/// Ends the watch with this id, which the plugin chose.
pub fn cancel_watch(watch_id: &str) -> Result<Vec<u8>, TooLong> {
    bounded(format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"{CANCEL}\",\"params\":{{\"watchId\":{}}}}}\n",
        quoted(watch_id)
    ))
}

/// The announcement of the end: a notification without params.
pub fn shutdown() -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{SHUTDOWN}\"}}\n").into_bytes()
}

/// `text` as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn bounded(line: String) -> Result<Vec<u8>, TooLong> {
    let bytes = line.len() - 1;
    if bytes > MAX_LINE { Err(TooLong { bytes }) } else { Ok(line.into_bytes()) }
}
