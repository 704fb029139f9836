#!/bin/bash -eu
# Builds every fuzz target into $OUT, each with its seeds and its dictionary. Runs in the image that the Dockerfile makes.
cd "$SRC/mu"
cargo fuzz build -O --debug-assertions
release=fuzz/target/x86_64-unknown-linux-gnu/release
for source in fuzz/fuzz_targets/*.rs; do
  target=$(basename "$source" .rs)
  cp "$release/$target" "$OUT/"
  zip -q -j "$OUT/${target}_seed_corpus.zip" "fuzz/corpus/$target"/*
  if [ -f "fuzz/dictionaries/$target.dict" ]; then
    cp "fuzz/dictionaries/$target.dict" "$OUT/"
  fi
done
