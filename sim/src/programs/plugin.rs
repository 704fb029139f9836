//! The fake plugin as a program of the simulated machine: its [`PluginSys`] over [`Sys`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use mu_core::os::{Exit, Mono};

use crate::fake::{self, Background, FORK_EVERY_MS, Fd, Group, Note, Plan, PluginSys, Read, Sig, Until};
use crate::kernel::{self, Disposition, Fork, Give, Machine, SIGKILL, SIGPIPE, Sys};
use crate::net::{Connection, Network};

/// The name of the program that runs plugin `name`.
pub fn program_name(name: &str) -> String {
    format!("plugin {name}")
}

/// What a plugin is made to do, and what became of it.
pub struct Installed {
    /// Read at each start, so that a scenario can change it.
    pub plan: Rc<Plan>,
    /// The lines that each of its processes has read.
    pub heard: Vec<Vec<Vec<u8>>>,
    /// The faults that have taken effect.
    pub fired: Vec<String>,
    /// What all of its processes have done: a start, a read that brought something, the moments before and after a write, a
    /// connection to the backend, a question to it, an answer from it.
    pub acts: Vec<&'static str>,
    /// At which of these, counted from 1, the process that comes to it is killed.
    pub ends_at: Option<usize>,
}

impl Installed {
    /// Never started.
    pub fn new(plan: Plan) -> Installed {
        Installed {
            plan: Rc::new(plan),
            heard: Vec::new(),
            fired: Vec::new(),
            acts: Vec::new(),
            ends_at: None,
        }
    }
}

/// Makes plugin `name` executable. It reaches its backend over the network.
pub fn install_plugin(
    machine: &Machine,
    name: &str,
    installed: Rc<RefCell<Installed>>,
    network: &Rc<Network>,
) {
    let network = Rc::clone(network);
    machine.install(&program_name(name), move |sys| {
        let (installed, network) = (Rc::clone(&installed), Rc::clone(&network));
        let (plan, start) = {
            let mut installed = installed.borrow_mut();
            installed.heard.push(Vec::new());
            (Rc::clone(&installed.plan), installed.heard.len())
        };
        async move {
            // As every program in Rust, the real executable among them, does at its start.
            let _ = sys.on_signal(SIGPIPE, Disposition::Ignore);
            let mut sys = SimPlugin { sys, installed, start, network, calls: BTreeMap::new() };
            sys.act("start").await;
            Exit::Status(fake::run(&mut sys, &plan).await)
        }
    });
}

/// A plugin process on the simulated machine.
struct SimPlugin {
    sys: Sys,
    installed: Rc<RefCell<Installed>>,
    start: usize,
    network: Rc<Network>,
    /// Its connections to the backend.
    calls: BTreeMap<u32, Connection>,
}

fn mono(ms: u64) -> Mono {
    Mono(Duration::from_millis(ms))
}

fn fd(fd: Fd) -> kernel::Fd {
    kernel::Fd(fd.number().unsigned_abs())
}

/// Starts what a plugin leaves behind.
fn fork_helper(sys: &Sys, group: kernel::Group, process: Background) -> io::Result<kernel::Spawned> {
    let fds: Vec<(kernel::Fd, Give)> =
        process.holds.iter().map(|held| (fd(*held), Give::Keep(fd(*held)))).collect();
    sys.fork(&Fork { name: "helper", group, fds: &fds }, move |sys| helper(sys, process))
}

/// The whole life of such a process. Boxed, since its child lives the same life.
fn helper(sys: Sys, mut process: Background) -> Pin<Box<dyn Future<Output = Exit>>> {
    Box::pin(async move {
        if process.forks > 0 {
            sys.sleep(Duration::from_millis(FORK_EVERY_MS)).await;
            process.forks -= 1;
            // It is in its group already. Where no more processes can be, the row ends.
            let _ = fork_helper(&sys, kernel::Group::Same, process);
            return Exit::Status(0);
        }
        match process.until {
            Until::Forever => pending().await,
            Until::Ms(ms) => sys.sleep(Duration::from_millis(ms)).await,
            Until::Eof => {
                let mut buffer = [0; 4096];
                while matches!(sys.read(fd(Fd::Stdin), &mut buffer).await, Ok(count) if count > 0) {}
            }
        }
        Exit::Status(0)
    })
}

impl SimPlugin {
    /// One more act, at which the process may be killed; then this does not return.
    async fn act(&self, what: &'static str) {
        if self.ends_at(what) {
            pending().await
        }
    }

    /// One more act. Whether the process was killed at it.
    fn ends_at(&self, what: &'static str) -> bool {
        let (nth, ends) = {
            let mut installed = self.installed.borrow_mut();
            installed.acts.push(what);
            let nth = installed.acts.len();
            (nth, installed.ends_at.take_if(|at| *at == nth).is_some())
        };
        if ends {
            self.sys.fault(&format!("SIGKILL at act {nth} of the plugin, {what}"));
            // It lives, so it is there.
            let _ = self.sys.kill(self.sys.pid(), SIGKILL);
        }
        ends
    }
}

impl PluginSys for SimPlugin {
    async fn wait(&mut self, mut buf: Option<&mut [u8]>, until: Option<u64>) -> Read {
        let mut timer = until.map(|at| self.sys.sleep_until(mono(at)));
        let (sys, calls) = (&self.sys, &mut self.calls);
        let came = poll_fn(|cx| {
            if let Some(buf) = buf.as_deref_mut()
                && let Poll::Ready(read) = sys.poll_read(fd(Fd::Stdin), cx, buf)
            {
                return Poll::Ready(match read {
                    Ok(0) | Err(_) => Read::Eof,
                    Ok(count) => Read::Data(count),
                });
            }
            for (call, connection) in calls.iter_mut() {
                if let Poll::Ready(heard) = connection.poll(cx) {
                    return Poll::Ready(Read::Backend(*call, heard));
                }
            }
            match &mut timer {
                Some(timer) => Pin::new(timer).poll(cx).map(|()| Read::Timeout),
                None => Poll::Pending,
            }
        })
        .await;
        match came {
            Read::Timeout => {}
            Read::Backend(..) => self.act("answer").await,
            Read::Data(_) | Read::Eof => self.act("read").await,
        }
        came
    }

    fn dial(&mut self, call: u32) {
        if !self.ends_at("dial") {
            self.calls.insert(call, self.network.dial());
        }
    }

    fn send(&mut self, call: u32, bytes: &[u8]) {
        if !self.ends_at("ask")
            && let Some(connection) = self.calls.get_mut(&call)
        {
            connection.send(bytes);
        }
    }

    fn hang_up(&mut self, call: u32) {
        self.calls.remove(&call);
    }

    async fn stdin_ready(&mut self) {
        let _ = self.sys.readable(fd(Fd::Stdin)).await;
    }

    async fn write(&mut self, to: Fd, bytes: &[u8]) -> io::Result<usize> {
        self.act("write").await;
        let written = self.sys.write(fd(to), bytes).await;
        self.act("written").await;
        written
    }

    fn close(&mut self, which: Fd) {
        let _ = self.sys.close(fd(which));
    }

    fn now_ms(&self) -> u64 {
        self.sys.now().0.as_millis() as u64
    }

    async fn sleep_until(&mut self, at: Option<u64>) {
        match at {
            Some(at) => self.sys.sleep_until(mono(at)).await,
            None => pending().await,
        }
    }

    async fn raise(&mut self, sig: Sig) {
        let _ = self.sys.raise(sig.number()).await;
    }

    async fn kill_parent(&mut self, sig: Sig) {
        let parent = self.sys.ppid();
        if parent.0 > 1 {
            let _ = self.sys.kill(parent, sig.number());
        }
    }

    fn ignore(&mut self, sig: Sig) {
        let _ = self.sys.on_signal(sig.number(), Disposition::Ignore);
    }

    async fn spawn_background(&mut self, process: &Background) {
        // At once, as the real one waits for it: a kill of the plugin's group must find it where it belongs.
        let group = match process.group {
            Group::Same => kernel::Group::Same,
            Group::Setsid => kernel::Group::Session,
        };
        if let Err(error) = fork_helper(&self.sys, group, process.clone()) {
            self.sys.note(&format!("the helper could not be started: {error}"));
        }
    }

    fn write_file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.sys.write_file(path, bytes)
    }

    fn start(&self) -> u32 {
        self.start as u32
    }

    fn env(&self, name: &str) -> Option<Vec<u8>> {
        use std::os::unix::ffi::OsStringExt;
        self.sys.var(name).map(OsStringExt::into_vec)
    }

    fn note(&mut self, note: Note<'_>) {
        match note {
            Note::Line(line) => self.installed.borrow_mut().heard[self.start - 1].push(line.to_vec()),
            Note::Eof { unfinished: 0 } => self.sys.note("stdin ended"),
            Note::Eof { unfinished } => {
                self.sys.note(&format!("stdin ended within a line, after {unfinished} bytes"))
            }
            Note::Fault(name) => {
                self.installed.borrow_mut().fired.push(name.to_owned());
                self.sys.fault(name);
            }
        }
    }
}
