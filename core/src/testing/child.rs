//! A plugin's process in memory: what a test scripts it to do at each line that mu writes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::{Value, json};

use super::{FakeOs, declaration};
use crate::os::{Child, ChildPipe, Exit, Mono, Os, Pid, ProcessId};

/// What a scripted plugin learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard<'a> {
    /// A line on its stdin.
    Line(&'a str),
    /// The end of its stdin.
    End,
}

/// What a plugin does about it.
pub(crate) type Script = Box<dyn FnMut(&mut Plugin, Heard<'_>)>;

/// A plugin's process, as the test and its script see it.
#[derive(Default)]
pub(crate) struct Plugin {
    /// What was executed.
    pub(crate) argv: Vec<OsString>,
    /// Lines that mu wrote.
    pub(crate) lines: Vec<String>,
    /// Whether its stdin has ended.
    pub(crate) stdin_closed: bool,
    /// It takes nothing more from its stdin.
    pub(crate) deaf: bool,
    /// It writes to this pipe without end, a millisecond for each read.
    pub(crate) floods: Option<ChildPipe>,
    /// It has closed its stdout.
    pub(crate) stdout_closed: bool,
    /// What it writes after mu has looked at its stdout and before mu looks at its end, which comes then.
    pub(crate) last_words: Option<String>,
    /// Another process of its group lives until SIGKILL.
    pub(crate) straggler: bool,
    /// How it ended.
    pub(crate) exit: Option<Exit>,
    /// Whether SIGKILL ended it.
    pub(crate) killed: bool,
    /// Whether its status was collected.
    pub(crate) reaped: bool,
    stdout: VecDeque<u8>,
    unfinished: Vec<u8>,
}

impl Plugin {
    /// Writes to its stdout.
    pub(crate) fn says(&mut self, text: &str) {
        self.stdout.extend(text.bytes());
    }

    /// The methods of the lines that mu wrote.
    pub(crate) fn methods(&self) -> Vec<String> {
        let method = |line: &String| serde_json::from_str::<Value>(line).unwrap()["method"].clone();
        self.lines.iter().map(|line| method(line).as_str().unwrap().to_owned()).collect()
    }
}

/// The valid answer to this `initialize` of a plugin that has a link.
pub(crate) fn answer(name: &str, initialize: &str) -> String {
    let request: Value = serde_json::from_str(initialize).unwrap();
    let declaration: Value = serde_json::from_str(&declaration(name, None).to_json()).unwrap();
    format!("{}\n", json!({"jsonrpc": "2.0", "id": request["id"], "result": declaration}))
}

/// A plugin that shakes hands and exits with its stdin.
pub(crate) fn sound(name: &'static str) -> Script {
    Box::new(move |plugin, heard| match heard {
        Heard::Line(line) if line.contains("initialize") => plugin.says(&answer(name, line)),
        Heard::Line(_) => {}
        Heard::End => plugin.exit = Some(Exit::Status(0)),
    })
}

/// mu's side of it.
pub(crate) struct FakeChild {
    pub(super) os: FakeOs,
    pub(super) identity: ProcessId,
    pub(super) plugin: Rc<RefCell<Plugin>>,
    pub(super) script: Script,
}

impl FakeChild {
    fn hears(&mut self, heard: Heard<'_>) {
        (self.script)(&mut self.plugin.borrow_mut(), heard);
    }
}

impl Child for FakeChild {
    fn pid(&self) -> Pid {
        self.identity.pid
    }

    fn identity(&self) -> &ProcessId {
        &self.identity
    }

    fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.plugin.borrow().exit.is_some() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.plugin.borrow().deaf {
            return Poll::Pending;
        }
        let mut bytes_so_far = std::mem::take(&mut self.plugin.borrow_mut().unfinished);
        bytes_so_far.extend(bytes);
        while let Some(end) = bytes_so_far.iter().position(|&byte| byte == b'\n') {
            let line = String::from_utf8(bytes_so_far.drain(..=end).collect()).unwrap();
            let line = line.trim_end();
            self.plugin.borrow_mut().lines.push(line.to_owned());
            self.hears(Heard::Line(line));
        }
        self.plugin.borrow_mut().unfinished = bytes_so_far;
        Poll::Ready(Ok(bytes.len()))
    }

    fn close_stdin(&mut self) {
        self.plugin.borrow_mut().stdin_closed = true;
        self.hears(Heard::End);
    }

    fn poll_read(&mut self, pipe: ChildPipe, _: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut plugin = self.plugin.borrow_mut();
        if plugin.floods == Some(pipe) && plugin.exit.is_none() {
            buf.fill(b'x');
            let Mono(now) = self.os.now();
            self.os.machine.clock.set(Mono(now + Duration::from_millis(1)));
            return Poll::Ready(Ok(buf.len()));
        }
        let ended = plugin.exit.is_some() || (pipe == ChildPipe::Stdout && plugin.stdout_closed);
        if pipe == ChildPipe::Stdout && !plugin.stdout.is_empty() {
            let count = buf.len().min(plugin.stdout.len());
            plugin.stdout.drain(..count).zip(buf).for_each(|(byte, place)| *place = byte);
            return Poll::Ready(Ok(count));
        }
        if ended { Poll::Ready(Ok(0)) } else { Poll::Pending }
    }

    fn poll_exited(&mut self, _: &mut Context<'_>) -> Poll<Exit> {
        let mut plugin = self.plugin.borrow_mut();
        if let Some(words) = plugin.last_words.take() {
            plugin.says(&words);
            plugin.exit = Some(Exit::Status(0));
        }
        plugin.exit.map_or(Poll::Pending, Poll::Ready)
    }

    fn poll_group_empty(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.plugin.borrow().straggler {
            return Poll::Pending;
        }
        self.poll_exited(cx).map(|_| ())
    }

    fn kill_group(&mut self) {
        let mut plugin = self.plugin.borrow_mut();
        plugin.straggler = false;
        if plugin.exit.is_none() {
            plugin.killed = true;
            plugin.exit = Some(Exit::Signal(9));
        }
    }

    fn reap(&mut self) {
        let mut plugin = self.plugin.borrow_mut();
        assert!(plugin.exit.is_some() && !plugin.reaped, "reaped once, after the end");
        plugin.reaped = true;
    }
}
