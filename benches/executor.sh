#!/bin/sh
# The bench of the executor with madsim, whose build needs a cfg of its own.
set -eu
cd "$(dirname "$0")/.."
(cd benches/madsim && cargo build --release --target-dir ../../target/madsim)
MU_BENCH_MADSIM=$PWD/target/madsim/release/mu-bench-madsim exec cargo bench -p mu-benches --bench executor "$@"
