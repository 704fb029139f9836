//! What the fuzz targets share: opinions that are formed without the code under attack, and a machine in memory.
//!
//! - [`json`]: a slow JSON parser that knows the extra rules of a line
//! - [`schema`]: the published schema, asked by the name of a definition
//! - [`declare`]: declarations that are nearly right, and the load rules read off the protocol page
//! - [`machine`]: who lives and what time it is, as the operating system tells it

pub mod declare;
pub mod json;
pub mod machine;
pub mod schema;
