//! A plugin's operating system in memory, for tests: mu's lines come at given times, the clock jumps.

use std::future::{Future, pending};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::sys::{Background, Fd, Heard, Note, PluginSys, Read, Sig};
use super::{Act, Fault, Plan, PluginTable, behaviour};
use crate::backend::{BackendTable, Books, Desk, Now, Question, Request};

/// What the plugin did, and when.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Did {
    Wrote(Fd, Vec<u8>),
    Closed(Fd),
    Raised(Sig),
    SignalledMu(Sig),
    Ignored(Sig),
    Left(Background),
    Stored(PathBuf, Vec<u8>),
    Began(&'static str),
    GotLine(String),
    GotEof(usize),
    Dialled(u32),
    Asked(u32, String),
    HungUp(u32),
}

/// How the backend of these tests treats a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Line {
    /// It is answered; both ways take no time.
    #[default]
    Sound,
    /// Nobody is there.
    Refused,
    /// Nothing passes.
    Deaf,
    /// It stands, and from then on nothing passes.
    DeafOnceItStands,
    /// It is reset once something is sent.
    Reset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    Died(Sig),
    /// It waits for ever.
    Stays,
}

pub(crate) struct Memory {
    pub(crate) now: u64,
    /// Bytes of mu and when they come; `None` is the end of stdin.
    pub(crate) input: Vec<(u64, Option<Vec<u8>>)>,
    pub(crate) did: Vec<(u64, Did)>,
    pub(crate) start: u32,
    pub(crate) env: Vec<(String, Vec<u8>)>,
    /// At most so many bytes are taken by a write.
    pub(crate) write_limit: usize,
    /// No write to stdout succeeds any more once so many bytes are through.
    pub(crate) reader_gone_after: Option<usize>,
    /// No file can be written.
    pub(crate) read_only: bool,
    pub(crate) backend: Desk,
    pub(crate) line: Line,
    /// What is to come over connections to the backend, and when.
    coming: Vec<(u64, u32, Heard)>,
    died: Option<Sig>,
    ignored: Vec<Sig>,
}

pub(crate) const INITIALIZE: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocol\":{\"min\":1,\"max\":1},\"mu\":\"5\"}}\n";
pub(crate) const SHUTDOWN: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"shutdown\"}\n";

/// A backend of one machine, `vm-1`, that the key `first` has made.
pub(crate) fn backend(table: &BackendTable) -> Desk {
    let mut books = Books::new(&BackendTable::default());
    let question = Question::Acquire { key: "first".into(), host: "h".into(), params: Default::default() };
    books.ask(Now { at_ms: 0, wall_ms: 0 }, "test", &question);
    books.setup.apply(table);
    Desk::new(books)
}

/// A sound request: of the link with a timeout of 20 seconds, where a script takes 200 ms; of hosts about `vm-1`, or for
/// one more.
pub(crate) fn request(id: u64, method: &str) -> String {
    let own = match method {
        "link.exec" => r#""script":"echo out; echo err >&2; sleep 0.2","cwd":".","timeoutMs":20000"#,
        "link.fetch" => r#""remoteCwd":"work","localRepo":"/repo","timeoutMs":20000"#,
        "link.push" => {
            r#""localRepo":"/repo","remoteRepo":"work","rev":"0123456789abcdef0123456789abcdef01234567","timeoutMs":20000"#
        }
        "host.acquire" => r#""key":"k","params":{"size":"small"}"#,
        "host.lookup" => r#""key":"first","fence":true"#,
        "host.release" => return call_on("vm-1", id, method, r#""key":"r""#),
        "host.status" => return call_on("vm-1", id, method, ""),
        _ => r#""phase":"reach""#,
    };
    call(id, method, own)
}

/// A request about the machine with this handle.
pub(crate) fn call_on(handle: &str, id: u64, method: &str, own: &str) -> String {
    let host = format!(r#"{{"name":"h","handle":"{handle}","instance":"test"}}"#);
    call(id, method, own).replace(r#"{"name":"h"}"#, &host)
}

/// A request with these parameters beside deadline and target.
pub(crate) fn call(id: u64, method: &str, own: &str) -> String {
    let own = if own.is_empty() { String::new() } else { format!(",{own}") };
    let params = format!(r#"{{"deadline":1767225625000,"target":{{"host":{{"name":"h"}}}}{own}}}"#);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
}

pub(crate) fn cancel(id: u64) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel\",\"params\":{{\"id\":{id}}}}}\n")
}

impl Memory {
    pub(crate) fn new(input: &[(u64, Option<&str>)]) -> Memory {
        Memory {
            now: 0,
            input: input.iter().map(|(at, text)| (*at, text.map(|text| text.as_bytes().to_vec()))).collect(),
            did: Vec::new(),
            start: 1,
            env: vec![("MU_PLUGIN_CANARY".to_owned(), b"canary-4711".to_vec())],
            write_limit: usize::MAX,
            reader_gone_after: None,
            read_only: false,
            backend: backend(&BackendTable::default()),
            line: Line::Sound,
            coming: Vec::new(),
            died: None,
            ignored: Vec::new(),
        }
    }

    /// A whole life: `initialize` at 0, `shutdown` and the end of stdin at 20,000 ms.
    pub(crate) fn life() -> Memory {
        Memory::new(&[(0, Some(INITIALIZE)), (20_000, Some(SHUTDOWN)), (20_000, None)])
    }

    pub(crate) fn run(&mut self, plan: &Plan) -> End {
        let polled = {
            let mut run = pin!(behaviour::run(self, plan));
            run.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        };
        match (polled, self.died) {
            (Poll::Ready(status), _) => End::Exited(status),
            (Poll::Pending, Some(sig)) => End::Died(sig),
            (Poll::Pending, None) => End::Stays,
        }
    }

    fn backend_now(&self) -> Now {
        Now { at_ms: self.now, wall_ms: self.now as i64 }
    }

    fn hears(&mut self, call: u32, heard: Heard) {
        self.coming.push((self.now, call, heard));
    }

    fn log(&mut self, did: Did) {
        self.did.push((self.now, did));
    }

    pub(crate) fn bytes(&self, fd: Fd) -> Vec<u8> {
        self.writes(fd).concat()
    }

    pub(crate) fn writes(&self, fd: Fd) -> Vec<Vec<u8>> {
        let write = |(_, did): &(u64, Did)| match did {
            Did::Wrote(to, bytes) if *to == fd => Some(bytes.clone()),
            _ => None,
        };
        self.did.iter().filter_map(write).collect()
    }

    /// When it first did something of this kind.
    pub(crate) fn when(&self, wanted: impl Fn(&Did) -> bool) -> Option<u64> {
        self.did.iter().find(|(_, did)| wanted(did)).map(|(at, _)| *at)
    }
}

impl PluginSys for Memory {
    async fn wait(&mut self, buf: Option<&mut [u8]>, until: Option<u64>) -> Read {
        loop {
            let stdin = self.input.first().filter(|_| buf.is_some()).map(|(at, _)| *at);
            let coming = self.coming.iter().map(|(at, ..)| *at).min();
            let times = [stdin, coming, self.backend.next_ms(), until];
            let Some(next) = times.into_iter().flatten().min() else { return pending().await };
            self.now = self.now.max(next);
            if stdin == Some(next) {
                break;
            }
            if coming == Some(next) {
                let index = self.coming.iter().position(|(at, ..)| *at == next).expect("it was just seen");
                let (_, call, heard) = self.coming.remove(index);
                return Read::Backend(call, heard);
            }
            if self.backend.next_ms() == Some(next) {
                for (call, answer) in self.backend.speak(self.backend_now()) {
                    let mut line = answer.line();
                    line.pop();
                    self.hears(call as u32, Heard::Line(line));
                }
                continue;
            }
            return Read::Timeout;
        }
        let buf = buf.expect("stdin is read");
        match &mut self.input[0].1 {
            None => Read::Eof,
            Some(bytes) => {
                let n = bytes.len().min(buf.len());
                buf[..n].copy_from_slice(&bytes[..n]);
                bytes.drain(..n);
                if bytes.is_empty() {
                    self.input.remove(0);
                }
                Read::Data(n)
            }
        }
    }

    fn dial(&mut self, call: u32) {
        self.log(Did::Dialled(call));
        match self.line {
            Line::Deaf => {}
            Line::Refused => self.hears(call, Heard::Lost("nobody is there".to_owned())),
            _ => self.hears(call, Heard::Line(Vec::new())),
        }
    }

    fn send(&mut self, call: u32, bytes: &[u8]) {
        match (self.line, bytes) {
            (Line::Sound, b"\n") => self.hears(call, Heard::Line(Vec::new())),
            (Line::Reset, _) => self.hears(call, Heard::Lost("it was reset".to_owned())),
            (Line::Sound, line) => {
                let Some(Request::Ask { instance, question }) = Request::read(&line[..line.len() - 1]) else {
                    panic!("no question: {}", String::from_utf8_lossy(line));
                };
                self.log(Did::Asked(call, format!("{question:?}")));
                self.backend.hear(self.backend_now(), call.into(), &instance, &question);
            }
            _ => {}
        }
    }

    fn hang_up(&mut self, call: u32) {
        self.log(Did::HungUp(call));
        self.backend.gone(call.into());
        self.coming.retain(|(_, its, _)| *its != call);
    }

    async fn stdin_ready(&mut self) {
        match self.input.first() {
            Some((at, _)) => self.now = self.now.max(*at),
            None => pending().await,
        }
    }

    async fn write(&mut self, fd: Fd, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.write_limit);
        if fd == Fd::Stdout && self.reader_gone_after.is_some_and(|limit| self.bytes(fd).len() >= limit) {
            return Err(io::Error::from_raw_os_error(32));
        }
        self.log(Did::Wrote(fd, bytes[..taken].to_vec()));
        Ok(taken)
    }

    fn close(&mut self, fd: Fd) {
        self.log(Did::Closed(fd));
    }

    fn now_ms(&self) -> u64 {
        self.now
    }

    async fn sleep_until(&mut self, at: Option<u64>) {
        match at {
            Some(at) => self.now = self.now.max(at),
            None => pending().await,
        }
    }

    async fn raise(&mut self, sig: Sig) {
        self.log(Did::Raised(sig));
        if sig != Sig::Stop && !self.ignored.contains(&sig) {
            self.died = Some(sig);
            pending::<()>().await;
        }
    }

    async fn kill_parent(&mut self, sig: Sig) {
        self.log(Did::SignalledMu(sig));
    }

    fn ignore(&mut self, sig: Sig) {
        self.ignored.push(sig);
        self.log(Did::Ignored(sig));
    }

    async fn spawn_background(&mut self, process: &Background) {
        self.log(Did::Left(process.clone()));
    }

    fn write_file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if self.read_only {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.log(Did::Stored(path.to_owned(), bytes.to_vec()));
        Ok(())
    }

    fn start(&self) -> u32 {
        self.start
    }

    fn env(&self, name: &str) -> Option<Vec<u8>> {
        self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }

    fn note(&mut self, note: Note<'_>) {
        let did = match note {
            Note::Line(line) => Did::GotLine(String::from_utf8(line.to_vec()).expect("mu writes UTF-8")),
            Note::Eof { unfinished } => Did::GotEof(unfinished),
            Note::Fault(name) => Did::Began(name),
        };
        self.log(did);
    }
}

/// A plan for a plugin called `box` that declares a link, with these faults.
pub(crate) fn plan(faults: &[Fault]) -> Plan {
    Plan::new("box", &PluginTable::default(), faults, "sha256:00").expect("the defaults make a declaration")
}

/// A fault of that plugin at its natural moment.
pub(crate) fn fault(act: Act) -> Fault {
    Fault::new("box", act)
}
