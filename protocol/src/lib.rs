//! The plugin protocol: bytes to typed messages and back, the published schema, the declaration and its load rules.
pub mod declaration;
pub mod load;
pub mod schema;
