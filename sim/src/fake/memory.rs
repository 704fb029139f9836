//! A plugin's operating system in memory, for tests: mu's lines come at given times, the clock jumps.

use std::future::{Future, pending};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::sys::{Background, Fd, Note, PluginSys, Read, Sig};
use super::{Act, Fault, Plan, PluginTable, behaviour};

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
    died: Option<Sig>,
    ignored: Vec<Sig>,
}

pub(crate) const INITIALIZE: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocol\":{\"min\":1,\"max\":1},\"mu\":\"5\"}}\n";
pub(crate) const SHUTDOWN: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"shutdown\"}\n";

/// A sound request of the link, with a timeout of 20 seconds; a script takes 200 ms.
pub(crate) fn request(id: u64, method: &str) -> String {
    let own = match method {
        "link.exec" => r#""script":"echo out; echo err >&2; sleep 0.2","cwd":".","timeoutMs":20000"#,
        "link.fetch" => r#""remoteCwd":"work","localRepo":"/repo","timeoutMs":20000"#,
        "link.push" => {
            r#""localRepo":"/repo","remoteRepo":"work","rev":"0123456789abcdef0123456789abcdef01234567","timeoutMs":20000"#
        }
        "host.acquire" => r#""key":"k","params":{"size":"small"}"#,
        "host.lookup" => r#""key":"k","fence":true"#,
        "host.release" => r#""key":"r""#,
        "host.status" => "",
        _ => r#""phase":"reach""#,
    };
    call(id, method, own)
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
    async fn read_stdin(&mut self, buf: &mut [u8], until: Option<u64>) -> Read {
        let Some((at, _)) = self.input.first() else {
            match until {
                Some(until) => {
                    self.now = self.now.max(until);
                    return Read::Timeout;
                }
                None => return pending().await,
            }
        };
        if let Some(until) = until
            && until < *at
        {
            self.now = self.now.max(until);
            return Read::Timeout;
        }
        self.now = self.now.max(*at);
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
