//! Benches: `cargo bench -p mu-benches`. Each file of `benches/` compares one part of mu with its peers in one run.
