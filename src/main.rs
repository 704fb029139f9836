//! The `mu` executable.
fn main() {}
