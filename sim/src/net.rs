//! The network between mu's machine and that of the backend, and the backend as its only server.
//!
//! In: what plugins do with their [`Connection`]s, virtual time, what a scenario does to the way between. Out: what comes
//! over the connections, the books, and the trace of both.
//!
//! The sockets are turmoil-net's: TCP with handshakes, windows, retransmission and resets, but no clock. Here it gets one:
//! a packet takes its time from one machine to the other, and while anything is unacknowledged the hosts are given a pass every
//! tenth of a second; turmoil-net counts passes, not time. The backend is no process and no task: it lives on another
//! machine, outside of the process table, and acts whenever something has arrived or become due.
//!
//! turmoil-net keeps its network in a place of the thread. A network here takes that place when something is dialled for
//! the first time, and gives it back when it is dropped: of the machines of one thread only one may use its network.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mu_core::reached;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use turmoil_net::shim::tokio::net::{TcpListener, TcpStream};
use turmoil_net::{
    EnterGuard, HostId, KernelConfig, Net, NetstatState, Packet, TcpFlags, TcpSegment, Transport, netstat,
    set_current,
};

use crate::backend::{BackendAt, BackendTable, Books, Control, Desk, NetAt, NetDeed, Now, Request};
use crate::executor::TimerId;
use crate::fake::Heard;
use crate::kernel::{Machine, Remote, WALL_START_MS};
use crate::trace::What;

/// Nanoseconds between two passes while something is unacknowledged.
const PASS: u64 = 100 * MS;
/// Passes without progress after which a sender sends again.
const RESEND_PASSES: u32 = 5;
/// How often it does so before the connection is dead: after half a minute.
const RESENDS: u32 = 60;
/// How many hosts mu's machine can be, one after another: each power cut makes it a new one.
const BOOTS: u8 = 8;
const PORT: u16 = 9_000;
const MS: u64 = 1_000_000;

/// See the top of this file.
pub struct Network {
    me: Weak<Network>,
    machine: Remote,
    desk: RefCell<Desk>,
    fabric: RefCell<Option<Fabric>>,
    way: RefCell<Way>,
    /// Nanoseconds that mu's machine slept, in which the backend went on.
    slept: Cell<u64>,
    timer: Cell<Option<(u64, TimerId)>>,
}

/// The way between the machines, and what is on it.
#[derive(Default)]
struct Way {
    /// Nothing arrives there.
    no_backend: bool,
    /// Nothing arrives there.
    no_plugin: bool,
    /// Milliseconds one way, in place of those of the settings.
    delay_ms: Option<u64>,
    /// Packets, and when they arrive.
    packets: Vec<(u64, Packet)>,
    last_pass: u64,
}

/// The two machines.
struct Fabric {
    // The sockets are closed while there is a network.
    server: Server,
    backend: HostId,
    plugins: Vec<HostId>,
    /// Which of them mu's machine is.
    boot: usize,
    guard: EnterGuard,
}

/// The backend's end.
struct Server {
    listener: TcpListener,
    connections: BTreeMap<u64, Accepted>,
    count: u64,
}

struct Accepted {
    stream: TcpStream,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
}

fn backend_ip() -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1))
}

fn plugin_ip(boot: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, boot as u8 + 1))
}

/// A future of the sockets that never waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("it has nothing to wait for"),
    }
}

impl Fabric {
    fn new() -> Fabric {
        let config = KernelConfig::default().retx_threshold(RESEND_PASSES).retx_max(RESENDS);
        let mut net = Net::with_config(config);
        let backend = net.add_host(backend_ip());
        let plugins = (0..usize::from(BOOTS)).map(|boot| net.add_host(plugin_ip(boot))).collect();
        let guard = net.enter();
        set_current(backend);
        let listener = at_once(TcpListener::bind(SocketAddr::new(backend_ip(), PORT)));
        let listener = listener.expect("the port of a new host is free");
        let server = Server { listener, connections: BTreeMap::new(), count: 0 };
        Fabric { server, backend, plugins, boot: 0, guard }
    }

    /// Whether a sender waits for an acknowledgement, so that passes must go on.
    fn is_waiting(&self) -> bool {
        let waits = |ip: IpAddr| {
            netstat(ip).entries.iter().any(|entry| match entry.state {
                Some(NetstatState::Established | NetstatState::CloseWait) => entry.send_q > 0,
                Some(NetstatState::Listen | NetstatState::FinWait2 | NetstatState::Closed) | None => false,
                Some(_) => true,
            })
        };
        waits(backend_ip()) || waits(plugin_ip(self.boot))
    }
}

impl Network {
    /// The network of a machine, and its backend with empty books.
    pub fn new(machine: Remote) -> Rc<Network> {
        Rc::new_cyclic(|me| Network {
            me: me.clone(),
            machine,
            desk: RefCell::new(Desk::new(Books::new(&BackendTable::default()))),
            fabric: RefCell::new(None),
            way: RefCell::new(Way::default()),
            slept: Cell::new(0),
            timer: Cell::new(None),
        })
    }

    /// What the backend has in its books. Everything that is due by now has taken place.
    pub fn books(&self) -> Books {
        self.pump();
        self.desk.borrow().books.clone()
    }

    /// Changes how the backend behaves, and does things to hosts and network.
    pub fn control(&self, control: &Control) {
        let Some(machine) = self.machine.machine() else { return };
        self.pump();
        match control {
            Control::Set(table) => self.desk.borrow_mut().books.setup.apply(table),
            Control::Do(deed) => {
                machine.push(What::Backend(deed_text(deed).into()));
                let now = self.now(&machine);
                self.desk.borrow_mut().books.deed(now, deed);
            }
            Control::Net(net) => {
                machine.push(What::Net(net_text(net).into()));
                self.change(net);
            }
            Control::Books => {}
        }
        self.pump();
    }

    fn change(&self, net: &NetAt) {
        let mut way = self.way.borrow_mut();
        match net.deed {
            NetDeed::Partition => {
                reached!("world: the network is parted");
                (way.no_backend, way.no_plugin) = (true, true);
            }
            NetDeed::ToBackend => {
                reached!("world: nothing reaches the backend");
                way.no_backend = true;
            }
            NetDeed::ToPlugin => {
                reached!("world: nothing comes from the backend");
                way.no_plugin = true;
            }
            NetDeed::Delay => {
                reached!("world: the network is slow");
                way.delay_ms = net.ms;
            }
            NetDeed::Heal => (way.no_backend, way.no_plugin, way.delay_ms) = (false, false, None),
            NetDeed::Reset => {
                drop(way);
                self.reset();
            }
        }
    }

    /// Both ends of every connection get a packet that breaks it off.
    fn reset(&self) {
        let fabric = self.fabric.borrow();
        let Some(fabric) = &*fabric else { return };
        let standing = netstat(backend_ip()).entries.into_iter();
        for (ours, theirs) in standing.filter_map(|entry| Some((entry.local, entry.peer?))) {
            reached!("world: a connection is reset");
            for (from, to) in [(ours, theirs), (theirs, ours)] {
                let flags = TcpFlags { rst: true, ..TcpFlags::default() };
                fabric.guard.deliver(Packet {
                    src: from.ip(),
                    dst: to.ip(),
                    ttl: 64,
                    payload: Transport::Tcp(TcpSegment {
                        src_port: from.port(),
                        dst_port: to.port(),
                        seq: 0,
                        ack: 0,
                        flags,
                        window: 0,
                        payload: Default::default(),
                    }),
                });
            }
        }
    }

    /// mu's machine slept: time has passed for the backend, and for nobody else.
    pub fn slept(&self, span: Duration) {
        reached!("world: the machine sleeps");
        self.slept.set(self.slept.get() + u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        self.pump();
    }

    /// The power of mu's machine fails: it says nothing more, not even that its connections end.
    pub fn power_off(&self) {
        self.pump();
        if let Some(fabric) = &mut *self.fabric.borrow_mut() {
            fabric.boot = (fabric.boot + 1) % fabric.plugins.len();
            set_current(fabric.plugins[fabric.boot]);
        }
    }

    /// Begins to open a connection to the backend.
    pub fn dial(&self) -> Connection {
        let host = {
            let mut fabric = self.fabric.borrow_mut();
            let fabric = fabric.get_or_insert_with(Fabric::new);
            fabric.plugins[fabric.boot]
        };
        set_current(host);
        let mut dialling: Dialling = Box::pin(TcpStream::connect(SocketAddr::new(backend_ip(), PORT)));
        // The first poll sends the first packet. Who polls it next registers to be woken.
        let first = dialling.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let state = match first {
            Poll::Ready(Err(error)) => State::Lost(Some(error.to_string())),
            // It cannot stand before anybody has answered.
            _ => State::Dialling(dialling),
        };
        let network = self.me.upgrade().expect("somebody has just called it");
        network.pump();
        Connection { state, host, inbox: Vec::new(), outbox: Vec::new(), network }
    }

    /// The backend's clocks.
    fn now(&self, machine: &Machine) -> Now {
        let passed = machine.now().as_nanos() as u64 + self.slept.get();
        let at_ms = passed / MS;
        Now { at_ms, wall_ms: WALL_START_MS.saturating_add(i64::try_from(at_ms).unwrap_or(i64::MAX)) }
    }

    /// Lets everything happen that can happen now, and sets the timer for the rest.
    fn pump(&self) {
        let Some(machine) = self.machine.machine() else { return };
        let at = machine.now().as_nanos() as u64;
        let now = self.now(&machine);
        let mut fabric = self.fabric.borrow_mut();
        loop {
            let mut arriving = Vec::new();
            if let Some(fabric) = &mut *fabric {
                let arrived = |(due, _): &mut (u64, Packet)| *due <= at;
                arriving.extend(self.way.borrow_mut().packets.extract_if(.., arrived));
                for (_, packet) in arriving.drain(..) {
                    fabric.guard.deliver(packet);
                }
                set_current(fabric.backend);
                fabric.server.serve(now, &mut self.desk.borrow_mut());
                set_current(fabric.plugins[fabric.boot]);
            } else {
                // Nobody has asked for anything, so nobody waits for an answer.
                self.desk.borrow_mut().speak(now);
            }
            for told in self.desk.borrow_mut().told() {
                machine.push(What::Backend(told.into()));
            }
            if let Some(fabric) = &*fabric {
                self.send_off(fabric, at);
            }
            if !self.way.borrow().packets.iter().any(|(due, _)| *due <= at) {
                break;
            }
        }
        let passes = fabric.as_ref().is_some_and(Fabric::is_waiting);
        drop(fabric);
        let way = self.way.borrow();
        let pass = passes.then_some(way.last_pass + PASS);
        let due = self.desk.borrow().next_ms().map(|ms| (ms * MS).saturating_sub(self.slept.get()));
        let next = way.packets.iter().map(|(due, _)| *due).chain(pass).chain(due).min();
        self.set_timer(&machine, next.map(|next| next.max(at)));
    }

    /// Takes what the hosts want to send, and sets it on its way or loses it.
    fn send_off(&self, fabric: &Fabric, at: u64) {
        let mut leaving = Vec::new();
        fabric.guard.egress_all(&mut leaving);
        let mut way = self.way.borrow_mut();
        let ms = way.delay_ms.unwrap_or(self.desk.borrow().books.setup.net_ms);
        way.last_pass = at;
        let here = plugin_ip(fabric.boot);
        for packet in leaving {
            let to_backend = packet.dst == backend_ip();
            let cut = if to_backend { way.no_backend } else { way.no_plugin };
            // A machine without power neither says nor hears anything.
            let without_power = if to_backend { packet.src != here } else { packet.dst != here };
            if !cut && !without_power {
                way.packets.push((at.saturating_add(ms.saturating_mul(MS)), packet));
            }
        }
        way.packets.sort_by_key(|(due, _)| *due);
    }

    fn set_timer(&self, machine: &Machine, next: Option<u64>) {
        let set = self.timer.get();
        if set.map(|(at, _)| at) == next {
            return;
        }
        if let Some((_, timer)) = set {
            machine.cancel_call(timer);
        }
        self.timer.set(next.map(|at| {
            let me = self.me.clone();
            let timer = machine.call_at(
                at,
                Box::new(move || {
                    if let Some(network) = me.upgrade() {
                        network.timer.set(None);
                        network.pump();
                    }
                }),
            );
            (at, timer)
        }));
    }
}

impl Server {
    /// Accepts, reads, answers.
    fn serve(&mut self, now: Now, desk: &mut Desk) {
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Ok((stream, _))) = self.listener.poll_accept(&mut cx) {
            self.count += 1;
            let accepted = Accepted { stream, inbox: Vec::new(), outbox: Vec::new() };
            self.connections.insert(self.count, accepted);
        }
        let mut gone = Vec::new();
        for (who, connection) in &mut self.connections {
            if !connection.read() {
                gone.push(*who);
            }
            while let Some(line) = take_line(&mut connection.inbox) {
                match Request::read(&line) {
                    Some(Request::Ask { instance, question }) => desk.hear(now, *who, &instance, &question),
                    _ => connection.outbox.push(b'\n'),
                }
            }
        }
        for who in &gone {
            desk.gone(*who);
        }
        for (who, answer) in desk.speak(now) {
            if let Some(connection) = self.connections.get_mut(&who) {
                connection.outbox.extend(answer.line());
            }
        }
        self.connections.retain(|who, connection| connection.write() && !gone.contains(who));
    }
}

impl Accepted {
    /// Reads what is there; whether more may come.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.try_read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => self.inbox.extend_from_slice(&buffer[..count]),
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }

    /// Writes what can be written; whether the connection lives.
    fn write(&mut self) -> bool {
        while !self.outbox.is_empty() {
            match self.stream.try_write(&self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }
}

fn take_line(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let end = memchr::memchr(b'\n', bytes)?;
    let rest = bytes.split_off(end + 1);
    let mut line = std::mem::replace(bytes, rest);
    line.pop();
    Some(line)
}

type Dialling = Pin<Box<dyn Future<Output = io::Result<TcpStream>>>>;

/// A plugin's connection to the backend. Dropped, it is closed.
pub struct Connection {
    state: State,
    host: HostId,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    network: Rc<Network>,
}

enum State {
    Dialling(Dialling),
    Open(TcpStream),
    /// It is no more; why, until somebody was told.
    Lost(Option<String>),
}

impl Connection {
    /// Ready with the next line that comes over it, or with its end, once.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Heard> {
        set_current(self.host);
        let polled = self.poll_here(cx);
        self.network.pump();
        polled
    }

    fn poll_here(&mut self, cx: &mut Context<'_>) -> Poll<Heard> {
        if let State::Dialling(dialling) = &mut self.state {
            match dialling.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(stream)) => {
                    self.state = State::Open(stream);
                    // That it stands is known from the handshake. Who polls again registers to be woken by the rest.
                    return Poll::Ready(Heard::Line(Vec::new()));
                }
                Poll::Ready(Err(error)) => self.lose(&error),
            }
        }
        self.flush(cx);
        loop {
            if let Some(line) = take_line(&mut self.inbox) {
                return Poll::Ready(Heard::Line(line));
            }
            let stream = match &mut self.state {
                State::Open(stream) => stream,
                State::Lost(reason) => match reason.take() {
                    Some(reason) => return Poll::Ready(Heard::Lost(reason)),
                    None => return Poll::Pending,
                },
                State::Dialling(_) => return Poll::Pending,
            };
            let mut buffer = [0; 4096];
            let mut buffer = ReadBuf::new(&mut buffer);
            match Pin::new(stream).poll_read(cx, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => self.lose(&error),
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                    self.lose(&io::Error::from(io::ErrorKind::UnexpectedEof));
                }
                Poll::Ready(Ok(())) => self.inbox.extend_from_slice(buffer.filled()),
            }
        }
    }

    fn lose(&mut self, error: &io::Error) {
        self.state = State::Lost(Some(format!("the connection to the backend is no more: {error}")));
    }

    /// Writes what can be written.
    fn flush(&mut self, cx: &mut Context<'_>) {
        while !self.outbox.is_empty()
            && let State::Open(stream) = &mut self.state
        {
            match Pin::new(stream).poll_write(cx, &self.outbox) {
                Poll::Pending => return,
                Poll::Ready(Ok(count)) => drop(self.outbox.drain(..count)),
                Poll::Ready(Err(error)) => self.lose(&error),
            }
        }
    }

    /// Sends bytes, now or as soon as there is room.
    pub fn send(&mut self, bytes: &[u8]) {
        set_current(self.host);
        self.outbox.extend_from_slice(bytes);
        self.flush(&mut Context::from_waker(Waker::noop()));
        self.network.pump();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        set_current(self.host);
        self.state = State::Lost(None);
        self.network.pump();
    }
}

fn deed_text(deed: &BackendAt) -> String {
    format!("FAULT {} {}", deed.deed.name(), deed.host)
}

fn net_text(net: &NetAt) -> String {
    match net.ms {
        Some(ms) => format!("FAULT {} of {ms} ms", net.deed.name()),
        None => format!("FAULT {}", net.deed.name()),
    }
}
