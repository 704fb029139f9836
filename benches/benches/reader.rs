//! A line of bytes to a checked message, beside what a bare `serde_json::Value` takes for the same line.
//! Compare the two at each size: the bar is a ratio of at most 1.

use divan::{Bencher, counter::BytesCount};
use mu_protocol::envelope;
use mu_protocol::line::LineSplitter;

fn main() {
    divan::main();
}

const SIZES: [usize; 3] = [128, 64 << 10, 1 << 20];

/// A reply of about this size whose text is plain.
fn line(size: usize) -> Vec<u8> {
    let head = br#"{"jsonrpc":"2.0","id":7,"result":{"exitCode":0,"stderr":"","partial":false,"stdout":""#;
    let mut line = head.to_vec();
    line.resize(size - 3, b'x');
    line.extend_from_slice(b"\"}}");
    line
}

#[divan::bench(args = SIZES)]
fn mu(bencher: Bencher<'_, '_>, size: usize) {
    let mut line = line(size);
    line.push(b'\n');
    bencher.counter(BytesCount::new(size)).bench_local(|| {
        let mut splitter = LineSplitter::new();
        let mut input = &line[..];
        let whole = splitter.next(&mut input).expect("it ends in a newline").expect("it is not too long");
        envelope::parse(divan::black_box(whole)).is_ok()
    });
}

#[divan::bench(args = SIZES)]
fn serde_json_value(bencher: Bencher<'_, '_>, size: usize) {
    let line = line(size);
    bencher
        .counter(BytesCount::new(size))
        .bench_local(|| serde_json::from_slice::<serde_json::Value>(divan::black_box(&line)).is_ok());
}
