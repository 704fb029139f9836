//! The machines behind the plugins: what a provider of hosts keeps, and how a scenario sets it.
//!
//! - `ledger`: the ground truth of one instance, as a state machine; `books`: those of all instances
//! - `desk`: the books and those who wait for an answer
//! - `table`: the backend of a scenario file: its settings, what is done to it, what the network does, what must stand in it
//! - `wire`: the lines that plugins and backend exchange

mod books;
mod desk;
mod ledger;
mod table;
mod wire;

#[cfg(test)]
mod tests;

pub use books::Books;
pub use desk::Desk;
pub use ledger::{
    Accepted, Answer, Gone, Health, Ledger, Machine, Now, Outcome, Promise, Question, Refusal, Release,
    ToldNone,
};
pub use table::{
    BackendAt, BackendDeed, BackendTable, Counts, Fact, HostFacts, NetAt, NetDeed, Setup, WINDOW_MS,
};
pub use wire::{Control, Request};
