//! The published schema.

/// The exact bytes of the published schema.
pub const SCHEMA: &str = "{}\n";
/// `sha256:` and the hex digest of [`SCHEMA`].
pub const SCHEMA_DIGEST: &str = "sha256:ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356";
