//! The machines behind the plugins: what a provider of hosts keeps, and how a scenario sets it.
//!
//! - `table`: the backend of a scenario file: its settings, what is done to it, what the network does, what must stand in it

mod table;

pub use table::{
    BackendAt, BackendDeed, BackendTable, Counts, Fact, HostFacts, NetAt, NetDeed, Setup, WINDOW_MS,
};
