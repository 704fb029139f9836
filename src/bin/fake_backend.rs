//! The backend behind the fake plugins as a real executable: `mu_sim::backend` on Linux.
//!
//! `mu-fake-backend DIR` serves plugins at `DIR/plugins.sock` and takes orders at `DIR/control.sock`; what it knows stands in
//! `DIR/books.json` too, so that it can be read when all is over. It ends when its standard input does, when its directory
//! goes, and when nobody has wanted anything of it for five minutes.
// This is the real world: it asks the system itself, and nothing here decides what mu does.
#![allow(clippy::disallowed_methods)]

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mu_sim::backend::{BackendTable, Books, Control, Desk, NetAt, NetDeed, Now, Request};
use mu_sim::world::{books_file, control_socket, socket};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd;

/// It ends when nobody has wanted anything for so long.
const SAFETY_ALARM_S: u32 = 300;
/// How often it looks whether its directory is still there.
const LOOK_EVERY_MS: u64 = 200;

fn main() -> ExitCode {
    unistd::alarm::set(SAFETY_ALARM_S);
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        let _ = writeln!(io::stderr(), "fake backend: usage: mu-fake-backend DIR");
        return ExitCode::from(2);
    };
    let failed = |error: io::Error| {
        let _ = writeln!(io::stderr(), "fake backend: {}: {error}", dir.display());
        ExitCode::FAILURE
    };
    match Backend::start(&dir) {
        Err(error) => failed(error),
        Ok(mut backend) => match backend.live() {
            // With its directory it has lost all reason to be.
            Err(error) if dir.is_dir() => failed(error),
            _ => ExitCode::SUCCESS,
        },
    }
}

/// Milliseconds on the monotonic clock.
fn clock_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

fn wall_ms() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec * 1_000 + now.tv_nsec / 1_000_000
}

struct Backend {
    dir: PathBuf,
    begun_ms: u64,
    desk: Desk,
    plugins: UnixListener,
    orders: UnixListener,
    connections: Vec<Connection>,
    count: u64,
    /// What is not let through.
    no_backend: bool,
    no_plugin: bool,
    delay_ms: u64,
    written: Books,
}

struct Connection {
    who: u64,
    stream: UnixStream,
    /// Whether orders come over it; the network does not concern it.
    gives_orders: bool,
    inbox: Vec<u8>,
    /// Lines that have come, and when they arrive.
    arriving: Vec<(u64, Vec<u8>)>,
    /// Bytes on their way back, and when they leave.
    leaving: Vec<(u64, Vec<u8>)>,
    open: bool,
}

impl Backend {
    fn start(dir: &Path) -> io::Result<Backend> {
        let plugins = UnixListener::bind(socket(dir))?;
        plugins.set_nonblocking(true)?;
        // Whoever waits for this one finds the other ready too.
        let orders = UnixListener::bind(control_socket(dir))?;
        orders.set_nonblocking(true)?;
        Ok(Backend {
            dir: dir.to_owned(),
            begun_ms: clock_ms(),
            desk: Desk::new(Books::new(&BackendTable::default())),
            plugins,
            orders,
            connections: Vec::new(),
            count: 0,
            no_backend: false,
            no_plugin: false,
            delay_ms: 0,
            written: Books::default(),
        })
    }

    fn now(&self) -> Now {
        Now { at_ms: clock_ms() - self.begun_ms, wall_ms: wall_ms() }
    }

    fn live(&mut self) -> io::Result<()> {
        loop {
            if self.wait()? || !self.dir.is_dir() {
                return Ok(());
            }
            self.accept()?;
            for index in 0..self.connections.len() {
                self.read(index);
            }
            self.arrive()?;
            let now = self.now();
            for (who, answer) in self.desk.speak(now) {
                let at = now.at_ms + self.delay_ms;
                if let Some(connection) = self.connections.iter_mut().find(|one| one.who == who) {
                    connection.leaving.push((at, answer.line()));
                }
            }
            self.desk.told();
            self.keep_books()?;
            self.leave();
            for gone in self.connections.extract_if(.., |one| !one.open) {
                self.desk.gone(gone.who);
            }
        }
    }

    /// Waits until there is something to do; whether standard input has ended.
    fn wait(&self) -> io::Result<bool> {
        let now = self.now().at_ms;
        let lines = self.connections.iter().flat_map(|one| one.arriving.iter().chain(&one.leaving));
        let due = lines.map(|(at, _)| *at).chain(self.desk.next_ms()).min();
        let wait = due.map_or(LOOK_EVERY_MS, |due| due.saturating_sub(now).clamp(1, LOOK_EVERY_MS));
        let stdin = io::stdin();
        let mut fds = vec![PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        fds.push(PollFd::new(self.orders.as_fd(), PollFlags::POLLIN));
        if !self.no_backend {
            fds.push(PollFd::new(self.plugins.as_fd(), PollFlags::POLLIN));
        }
        for one in self.connections.iter().filter(|one| one.gives_orders || !self.no_backend) {
            fds.push(PollFd::new(one.stream.as_fd(), PollFlags::POLLIN));
        }
        let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ended = fds[0].any().unwrap_or(false) && io::stdin().read(&mut [0; 64])? == 0;
        Ok(ended)
    }

    fn accept(&mut self) -> io::Result<()> {
        for gives_orders in [true, false] {
            if !gives_orders && self.no_backend {
                continue;
            }
            let listener = if gives_orders { &self.orders } else { &self.plugins };
            loop {
                let stream = match listener.accept() {
                    Ok((stream, _)) => stream,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                };
                unistd::alarm::set(SAFETY_ALARM_S);
                stream.set_nonblocking(true)?;
                self.count += 1;
                let at = clock_ms() - self.begun_ms + self.delay_ms;
                // An empty line says that the connection stands.
                let leaving = if gives_orders { Vec::new() } else { vec![(at, b"\n".to_vec())] };
                self.connections.push(Connection {
                    who: self.count,
                    stream,
                    gives_orders,
                    inbox: Vec::new(),
                    arriving: Vec::new(),
                    leaving,
                    open: true,
                });
            }
        }
        Ok(())
    }

    fn read(&mut self, index: usize) {
        let now = self.now().at_ms;
        let connection = &mut self.connections[index];
        if !connection.gives_orders && self.no_backend {
            return;
        }
        let mut buffer = [0; 16 << 10];
        loop {
            match connection.stream.read(&mut buffer) {
                Ok(0) => {
                    // An order is carried out when its sender is gone too.
                    connection.open = connection.gives_orders && !connection.arriving.is_empty();
                    break;
                }
                Ok(count) => connection.inbox.extend_from_slice(&buffer[..count]),
                Err(error) => {
                    connection.open = error.kind() == io::ErrorKind::WouldBlock;
                    break;
                }
            }
        }
        let at = if connection.gives_orders { now } else { now + self.delay_ms };
        while let Some(end) = connection.inbox.iter().position(|byte| *byte == b'\n') {
            let rest = connection.inbox.split_off(end + 1);
            let mut line = std::mem::replace(&mut connection.inbox, rest);
            line.pop();
            connection.arriving.push((at, line));
        }
    }

    /// Handles the lines whose time has come.
    fn arrive(&mut self) -> io::Result<()> {
        let now = self.now();
        let mut lines = Vec::new();
        for connection in &mut self.connections {
            let due = connection.arriving.extract_if(.., |(at, _)| *at <= now.at_ms);
            lines.extend(due.map(|(at, line)| (at, connection.who, line)));
        }
        lines.sort_by_key(|(at, ..)| *at);
        for (_, who, line) in lines {
            unistd::alarm::set(SAFETY_ALARM_S);
            match Request::read(&line) {
                Some(Request::Ask { instance, question }) => self.desk.hear(now, who, &instance, &question),
                Some(Request::Control(order)) => {
                    self.obey(now, &order);
                    self.keep_books()?;
                    let books = self.desk.books.line();
                    self.say(who, now.at_ms, books);
                }
                None => self.say(who, now.at_ms + self.delay_ms, b"\n".to_vec()),
            }
        }
        Ok(())
    }

    fn say(&mut self, who: u64, at: u64, bytes: Vec<u8>) {
        if let Some(connection) = self.connections.iter_mut().find(|one| one.who == who) {
            connection.leaving.push((at, bytes));
        }
    }

    fn obey(&mut self, now: Now, order: &Control) {
        match order {
            Control::Set(table) => self.desk.books.setup.apply(table),
            Control::Do(deed) => self.desk.books.deed(now, deed),
            Control::Net(net) => self.change(net),
            Control::Books => drop(self.desk.books.settle(now)),
        }
    }

    fn change(&mut self, net: &NetAt) {
        match net.deed {
            NetDeed::Partition => (self.no_backend, self.no_plugin) = (true, true),
            NetDeed::ToBackend => self.no_backend = true,
            NetDeed::ToPlugin => self.no_plugin = true,
            NetDeed::Delay => self.delay_ms = net.ms.unwrap_or(0),
            NetDeed::Heal => (self.no_backend, self.no_plugin, self.delay_ms) = (false, false, 0),
            NetDeed::Reset => {
                for connection in self.connections.iter_mut().filter(|one| !one.gives_orders) {
                    connection.open = false;
                }
            }
        }
    }

    /// Writes what is to leave by now.
    fn leave(&mut self) {
        let now = self.now().at_ms;
        for connection in &mut self.connections {
            if self.no_plugin && !connection.gives_orders {
                continue;
            }
            while connection.open
                && let Some(index) = connection.leaving.iter().position(|(at, _)| *at <= now)
            {
                let bytes = &mut connection.leaving[index].1;
                match connection.stream.write(bytes) {
                    Ok(count) => drop(bytes.drain(..count)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => connection.open = false,
                }
                if connection.leaving[index].1.is_empty() {
                    connection.leaving.remove(index);
                }
            }
        }
    }

    /// Writes the books down when they have changed: before anybody is told.
    fn keep_books(&mut self) -> io::Result<()> {
        if self.desk.books == self.written {
            return Ok(());
        }
        let file = books_file(&self.dir);
        let new = file.with_extension("new");
        std::fs::write(&new, self.desk.books.line())?;
        std::fs::rename(new, file)?;
        self.written = self.desk.books.clone();
        Ok(())
    }
}
