//! The published schema of the protocol, and the digest by which a plugin names the one it was built against.

/// The exact text of `schemas/plugin-protocol-v1.json` (GEN-04): JSON Schema 2020-12.
pub const SCHEMA: &str = include_str!("../plugin-protocol-v1.json");

/// `sha256:` and the lower-case hex SHA-256 of the bytes of [`SCHEMA`] (HSK-07, LOAD-04).
pub const SCHEMA_DIGEST: &str = env!("MU_SCHEMA_DIGEST");
