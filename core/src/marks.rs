//! Marks: places of the code that a campaign of the simulator must have been at, or it has shown little.
//!
//! `reached!("EFF-12 refused: a group lives")` notes that a run came here. With the feature `marks`, which the simulator
//! turns on, every mark of the program is in one list with the number of times it was reached; without it, as in a mu that
//! is built to be used, nothing of it is left.
//!
//! A mark's text begins with a rule or decision, or with `world:` where the simulator did something, says what happened, and
//! stands in one place alone.

/// Notes that a run came here. In: the mark's text, a literal.
#[cfg(feature = "marks")]
#[macro_export]
macro_rules! reached {
    ($text:literal) => {{
        #[$crate::marks::linkme::distributed_slice($crate::marks::ALL)]
        #[linkme(crate = $crate::marks::linkme)]
        static MARK: $crate::marks::Mark = $crate::marks::Mark::new($text);
        MARK.reach();
    }};
}

/// Notes nothing: the feature `marks` is off.
#[cfg(not(feature = "marks"))]
#[macro_export]
macro_rules! reached {
    ($text:literal) => {{
        const _: &str = $text;
    }};
}

#[cfg(feature = "marks")]
pub use counted::{ALL, Mark, linkme};

#[cfg(feature = "marks")]
mod counted {
    use std::sync::atomic::{AtomicU64, Ordering};

    #[doc(hidden)]
    pub use linkme;

    /// All marks of the program, in no order that means anything.
    #[linkme::distributed_slice]
    pub static ALL: [Mark];

    /// One of them.
    #[derive(Debug)]
    pub struct Mark {
        text: &'static str,
        times: AtomicU64,
    }

    impl Mark {
        /// One that was not reached yet.
        pub const fn new(text: &'static str) -> Mark {
            Mark { text, times: AtomicU64::new(0) }
        }

        /// Its text.
        pub fn text(&self) -> &'static str {
            self.text
        }

        /// How often it was reached since this was asked last, in all threads of the process.
        pub fn take(&self) -> u64 {
            self.times.swap(0, Ordering::Relaxed)
        }

        /// A run is here.
        pub fn reach(&self) {
            self.times.fetch_add(1, Ordering::Relaxed);
        }
    }
}
