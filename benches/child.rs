//! A plugin that does nothing, as the other end of a pipe: every request has its answer at once, in one write each. It is
//! the bench's own executable, started with one of two words behind its name.

use std::env;
use std::io::{self, BufRead};

use memchr::memmem;
use mu_protocol::schema::SCHEMA_DIGEST;
use mu_sim::fake::{PluginTable, Seam};

/// Answers lines, as a plugin does.
pub const LINES: &str = "--answer-lines";
/// Answers messages behind a `Content-Length`, as a language server does.
pub const FRAMES: &str = "--answer-frames";

/// What it is registered as.
pub const NAME: &str = "box";
/// What it says a script has come to.
const RUN: &str = r#"{"exitCode":0,"stdout":"Linux\n","stderr":"","partial":false}"#;

/// Is the plugin when the first argument says so; answers whether it was.
pub fn run_if_asked() -> bool {
    match env::args().nth(1).as_deref() {
        Some(LINES) => lines(),
        Some(FRAMES) => frames(),
        _ => return false,
    }
    true
}

fn lines() {
    let (mut requests, mut line, mut out) = (io::stdin().lock(), Vec::new(), Vec::new());
    while requests.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        out.clear();
        if answer(&line, &mut out) {
            out.push(b'\n');
            if write(&out).is_err() {
                return;
            }
        }
        line.clear();
    }
}

fn frames() {
    let (mut requests, mut header, mut out) = (io::stdin().lock(), String::new(), Vec::new());
    while requests.read_line(&mut header).is_ok_and(|count| count > 0) {
        let size = header.trim_end().strip_prefix("Content-Length: ").and_then(|size| size.parse().ok());
        let mut frame = vec![0; size.expect("a frame begins with its size")];
        let mut end = String::new();
        requests
            .read_line(&mut end)
            .and_then(|_| io::Read::read_exact(&mut requests, &mut frame))
            .expect("a frame");
        out.clear();
        if answer(&frame, &mut out) {
            let framed = [format!("Content-Length: {}\r\n\r\n", out.len()).as_bytes(), &out].concat();
            if write(&framed).is_err() {
                return;
            }
        }
        header.clear();
    }
}

/// All of it in one write, unless the pipe is full.
fn write(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = rustix::io::write(rustix::stdio::stdout(), bytes)?;
        bytes = &bytes[count..];
    }
    Ok(())
}

/// What it was installed as (REG-03).
fn name() -> String {
    let path = env::args().next().expect("a program has a path");
    path.rsplit_once("mu-plugin-").expect("it is installed as a plugin").1.to_owned()
}

/// Answers a request; a notification has no answer.
fn answer(message: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(rest) = message.strip_prefix(br#"{"jsonrpc":"2.0","id":"#) else { return false };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let method = br#""method":""#;
    let at = memmem::find(rest, method).expect("a request has a method") + method.len();
    let end = memchr::memchr(b'"', &rest[at..]).expect("its name ends");
    let declared;
    let result = match &rest[at..at + end] {
        b"initialize" => {
            let plugin =
                PluginTable { seams: vec![Seam::Link, Seam::Job, Seam::Host], ..PluginTable::default() };
            declared = plugin.declaration(&name(), SCHEMA_DIGEST).expect("a sound one").to_string();
            &declared
        }
        b"link.checkSteps" => "[]",
        b"host.acquire" => r#"{"handle":"vm-1"}"#,
        b"host.lookup" => r#"{"found":{"handle":"vm-1"}}"#,
        b"host.status" => r#"{"state":"up","handle":"vm-1"}"#,
        b"host.release" => "null",
        _ => RUN,
    };
    for part in
        [&br#"{"jsonrpc":"2.0","id":"#[..], &rest[..digits], br#","result":"#, result.as_bytes(), b"}"]
    {
        out.extend_from_slice(part);
    }
    true
}
