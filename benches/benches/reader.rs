//! Bytes to a checked, typed message, beside peers that read the same line: `cargo bench -p mu-benches --bench reader`.
//!
//! All of them take turns in each round, and time is that of the thread on a processor, so that a busy machine slows them
//! little and alike; what is printed are medians of rounds.
//! The column to look at is `mu/Value`: how many times as fast as a bare `serde_json::from_slice::<Value>` mu is, with
//! every check on. The bar is 1. An argument picks the shapes whose name contains it; `--once SHAPE SIZE READER` reads one
//! line a thousand times and prints nothing, for a profiler.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a stopwatch"
)]

use std::env;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use mu_benches::clock::{rounds, thread_time};
use mu_protocol::envelope::{self, Body, Incoming};
use mu_protocol::line::LineSplitter;
use mu_protocol::messages::checks::Steps;
use mu_protocol::messages::link::Run;
use mu_protocol::messages::lookup::Lookup;
use mu_protocol::messages::method::{AnyResult, Method, parse_result};
use mu_protocol::messages::{channel, host, job};
use serde::Deserialize;
use serde_json::Value;

const SIZES: [usize; 3] = [128, 64 << 10, 1 << 20];
const ROUNDS: usize = 21;
/// How long each reader works in a round.
const TURN: Duration = Duration::from_millis(3);

/// One kind of line.
struct Shape {
    name: &'static str,
    method: Method,
    /// The first part of the result, what is repeated behind it, and the last part.
    parts: [&'static str; 3],
}

const HEAD: &str = r#"{"jsonrpc":"2.0","id":7,"result":"#;
const RUN: &str = r#"{"exitCode":0,"stderr":"","partial":false,"stdout":""#;

const SHAPES: [Shape; 6] = [
    // One long string without anything special in it.
    Shape { name: "plain", method: Method::LinkExec, parts: [RUN, "x", "\"}"] },
    // What most scripts print.
    Shape {
        name: "lines",
        method: Method::LinkExec,
        parts: [RUN, r"-rw-r--r-- 1 user group 4096 Jan  1 00:00 a-file-of-some-name.rs\n", "\"}"],
    },
    // What is worst: tabs and quotes all over.
    Shape {
        name: "escapes",
        method: Method::LinkExec,
        parts: [RUN, r#"drwx\t2 \"src\" 4096 Jan  1 00:00\n"#, "\"}"],
    },
    // Text in other scripts than Latin.
    Shape { name: "text", method: Method::LinkExec, parts: [RUN, "Добрый день, 世界! ", "\"}"] },
    // Many small records.
    Shape {
        name: "records",
        method: Method::LinkCheckSteps,
        parts: [
            "[",
            r#"{"step":"git","ok":true,"detail":"2.43.0"},"#,
            r#"{"step":"sh","ok":"warn","detail":""}]"#,
        ],
    },
    // Many members in one object, and objects in objects.
    Shape { name: "members", method: Method::ChannelReadStates, parts: ["{", "", "}"] },
];

impl Shape {
    /// A line of at most `size` bytes and not much less.
    fn line(&self, size: usize) -> Vec<u8> {
        let [first, repeated, last] = self.parts;
        let mut line = format!("{HEAD}{first}");
        let end = size - last.len() - 1;
        if repeated.is_empty() {
            let reading =
                |n| format!(r#""w/a{n}":{{"state":"idle","since":1,"runs":{n},"incarnation":"i"}}"#);
            for n in 0.. {
                let comma = if n == 0 { "" } else { "," };
                let next = reading(n);
                if n > 0 && line.len() + 1 + next.len() > end {
                    break;
                }
                let _ = write!(line, "{comma}{next}");
            }
        } else {
            while line.len() + repeated.len() <= end {
                line.push_str(repeated);
            }
        }
        line.push_str(last);
        line.push('}');
        line.into_bytes()
    }
}

/// The results that the calls of a session have, one line each.
fn session() -> Vec<(Method, Vec<u8>)> {
    [
        (
            Method::HostAcquire,
            r#"{"handle":"vm-1","deadlineAt":1796000000000,"idleReclaimMs":600000,"maxJobs":4}"#,
        ),
        (Method::HostLookup, r#"{"found":{"handle":"vm-1","deadlineAt":1796000000000}}"#),
        (Method::HostStatus, r#"{"state":"up","handle":"vm-1","deadlineAt":null,"maxJobs":4}"#),
        (Method::HostStatus, r#"{"state":"needs-human","remedy":"unlock the account in the console"}"#),
        (Method::HostRelease, "null"),
        (Method::LinkExec, r#"{"exitCode":0,"stdout":"Linux\n","stderr":"","partial":false}"#),
        (Method::LinkFetch, r#"{"exitCode":null,"stdout":"","stderr":"cut off","partial":true}"#),
        (
            Method::LinkCheckSteps,
            r#"[{"step":"ssh","ok":true,"detail":"far.example"},{"step":"git","ok":"warn","detail":"old"}]"#,
        ),
        (
            Method::JobStart,
            r#"{"view":{"command":"ssh far.example attach j1","env":{"TERM":"xterm"}},"handle":"j1"}"#,
        ),
        (Method::JobStatus, r#"{"state":"running"}"#),
        (Method::JobStop, "null"),
        (Method::ChannelBaseline, r#"{"runs":3,"incarnation":"s-0901"}"#),
    ]
    .into_iter()
    .map(|(method, result)| (method, format!("{HEAD}{result}}}").into_bytes()))
    .collect()
}

/// What a reader reads in one go.
struct Input {
    name: String,
    lines: Vec<(Method, Vec<u8>)>,
    /// The same bytes with their line feeds.
    stream: Vec<u8>,
}

impl Input {
    fn new(name: String, lines: Vec<(Method, Vec<u8>)>) -> Self {
        let stream = lines.iter().flat_map(|(_, line)| line.iter().copied().chain([b'\n'])).collect();
        Input { name, lines, stream }
    }
}

/// Reads an input once; the answer only keeps the work from being left out.
type Read = fn(&Input) -> usize;

const READERS: [(&str, Read); 7] = [
    ("mu", mu),
    ("mu, untyped", mu_untyped),
    ("Value", serde_json_value),
    ("typed", serde_json_typed),
    ("simd-json", simd_json_value),
    ("UTF-8", utf8),
    ("memchr", line_feeds),
];

fn incoming(input: &Input, mut on: impl FnMut(Incoming<'_>) -> usize) -> usize {
    let mut splitter = LineSplitter::new();
    let mut rest = &input.stream[..];
    let mut sum = 0;
    while let Some(line) = splitter.next(&mut rest) {
        sum += on(envelope::parse(line.expect("short enough")).expect("valid"));
    }
    sum
}

fn mu(input: &Input) -> usize {
    let mut methods = input.lines.iter().map(|(method, _)| *method);
    incoming(input, |message| {
        let Incoming::Reply { id, body: Body::Result(result) } = message else { panic!("a result") };
        let method = methods.next().expect("as many methods as lines");
        match black_box(parse_result(method, result).expect("of the method's shape")) {
            AnyResult::LinkExec(run) => run.stdout.len(),
            AnyResult::LinkCheckSteps(steps) => steps.len(),
            _ => id as usize,
        }
    })
}

fn mu_untyped(input: &Input) -> usize {
    incoming(input, |message| match black_box(message) {
        Incoming::Reply { id, .. } => id as usize,
        Incoming::Notification { .. } => 0,
    })
}

fn serde_json_value(input: &Input) -> usize {
    let read =
        |line: &[u8]| black_box(serde_json::from_slice::<Value>(black_box(line)).expect("JSON")).is_object();
    input.lines.iter().filter(|(_, line)| read(line)).count()
}

/// What a program without mu's checks would write: a struct, and serde's derive.
fn serde_json_typed(input: &Input) -> usize {
    #[derive(Deserialize)]
    struct Reply<T> {
        id: u64,
        result: T,
    }
    fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> usize {
        let reply: Reply<T> = serde_json::from_slice(black_box(line)).expect("JSON");
        black_box(reply.result);
        reply.id as usize
    }
    let each = |(method, line): &(Method, Vec<u8>)| match method {
        Method::LinkExec | Method::LinkFetch => read::<Run>(line),
        Method::LinkCheckSteps => read::<Steps>(line),
        Method::ChannelReadStates => read::<channel::Readings>(line),
        Method::ChannelBaseline => read::<Option<channel::Baseline>>(line),
        Method::HostAcquire => read::<host::Acquired>(line),
        Method::HostLookup => read::<Lookup<host::Acquired>>(line),
        Method::HostStatus => read::<host::HostState>(line),
        Method::HostRelease | Method::JobStop => read::<()>(line),
        Method::JobStart => read::<job::Started>(line),
        Method::JobStatus => read::<job::JobState>(line),
        other => panic!("no type for {other}"),
    };
    input.lines.iter().map(each).sum()
}

/// It writes into its input, so the copy counts.
fn simd_json_value(input: &Input) -> usize {
    let read = |line: &[u8]| {
        let mut copy = black_box(line).to_vec();
        matches!(
            black_box(simd_json::to_owned_value(&mut copy)).expect("JSON"),
            simd_json::OwnedValue::Object(_)
        )
    };
    input.lines.iter().filter(|(_, line)| read(line)).count()
}

fn utf8(input: &Input) -> usize {
    input.lines.iter().filter(|(_, line)| std::str::from_utf8(black_box(line)).is_ok()).count()
}

fn line_feeds(input: &Input) -> usize {
    memchr::memchr_iter(b'\n', black_box(&input.stream)).count()
}

/// Nanoseconds for one reading, over as many as fit into a turn.
fn turn(read: Read, input: &Input, times: u32) -> f64 {
    let start = thread_time();
    for _ in 0..times {
        black_box(read(black_box(input)));
    }
    (thread_time() - start).as_nanos() as f64 / f64::from(times)
}

fn measure(input: &Input) -> Vec<f64> {
    let times = READERS.map(|(_, read)| {
        let one = turn(read, input, 1).min(turn(read, input, 1)).max(1.0);
        (TURN.as_nanos() as f64 / one).clamp(1.0, 1e6) as u32
    });
    rounds(ROUNDS, READERS.len(), |reader| [turn(READERS[reader].1, input, times[reader])])
        .into_iter()
        .map(|[time]| time)
        .collect()
}

fn inputs() -> impl Iterator<Item = Input> {
    let shapes = SHAPES.iter().flat_map(|shape| {
        SIZES.map(|size| {
            let line = shape.line(size);
            Input::new(format!("{}, {}", shape.name, line.len()), vec![(shape.method, line)])
        })
    });
    shapes.chain([Input::new("session, 12 lines".to_owned(), session())])
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [once, shape, size, reader] = &arguments[..]
        && once == "--once"
    {
        let size = size.parse().expect("a size");
        let shape = SHAPES.iter().find(|known| known.name == shape).expect("a shape");
        let input = Input::new(shape.name.to_owned(), vec![(shape.method, shape.line(size))]);
        let (_, read) = READERS.into_iter().find(|(name, _)| name == reader).expect("a reader");
        for _ in 0..1000 {
            black_box(read(black_box(&input)));
        }
        return;
    }
    // From here on the allocator keeps what is freed, and no reader pays for pages of the system.
    drop(black_box(vec![1_u8; 16 << 20]));
    print!("{:<20} {:>9} {:>9}", "shape, bytes", "mu/Value", "mu/typed");
    for (name, _) in READERS {
        print!(" {name:>12}");
    }
    println!("   (MB/s)");
    let picked = |input: &Input| arguments.iter().all(|argument| input.name.contains(argument.as_str()));
    for input in inputs().filter(picked) {
        let times = measure(&input);
        print!("{:<20} {:>9.2} {:>9.2}", input.name, times[2] / times[0], times[3] / times[0]);
        for time in times {
            print!(" {:>12.0}", input.stream.len() as f64 * 1000.0 / time);
        }
        println!();
    }
}
