//! Computes the digest of the published schema, which the handshake compares (HSK-07).

use std::fmt::Write as _;
use std::io::Write as _;

use sha2::{Digest, Sha256};

// A link to `schemas/` in the repository, a plain file in a published package.
const SCHEMA: &[u8] = include_bytes!("plugin-protocol-v1.json");

fn main() -> std::io::Result<()> {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(SCHEMA) {
        write!(hex, "{byte:02x}").expect("a string takes any text");
    }
    let mut cargo = std::io::stdout();
    writeln!(cargo, "cargo::rerun-if-changed=plugin-protocol-v1.json")?;
    writeln!(cargo, "cargo::rerun-if-changed=build.rs")?;
    writeln!(cargo, "cargo::rustc-env=MU_SCHEMA_DIGEST=sha256:{hex}")
}
