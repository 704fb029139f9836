//! Panics of mu itself: caught where they surface, told by their place in the source, never by their message, which may
//! hold what a plugin sent.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::{self, AssertUnwindSafe};
use std::pin::pin;
use std::sync::Once;
use std::task::Poll;

use crate::cli::failure::{Failure, Kind};
use crate::reached;

/// A panic that was caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Crash {
    /// Source file, line and column.
    pub(crate) place: String,
}

impl From<Crash> for Failure {
    fn from(Crash { place }: Crash) -> Failure {
        let message = format!(
            "mu failed at {place}, which is a defect of mu; every plugin was killed; please report it"
        );
        Failure::new(Kind::Internal, message)
    }
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Puts a hook before the present one: it keeps quiet about panics that [`caught`] catches and passes on all others.
fn install() {
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if DEPTH.get() == 0 {
                return others(info);
            }
            let place = info.location().map(ToString::to_string);
            PLACE.set(place);
        }));
    });
}

/// Drives `future` to its end or its first panic. A future that panicked is not polled again.
pub(crate) async fn caught<F: Future>(future: F) -> Result<F::Output, Crash> {
    install();
    let mut future = pin!(future);
    poll_fn(|cx| {
        DEPTH.set(DEPTH.get() + 1);
        let polled = panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        DEPTH.set(DEPTH.get() - 1);
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(_) => {
                reached!("PRC-13 a defect is caught");
                let place = PLACE.take().unwrap_or_else(|| "an unknown place".into());
                Poll::Ready(Err(Crash { place }))
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeOs;

    #[test]
    fn a_panic_is_told_by_its_place_and_not_by_its_message() {
        let os = FakeOs::new();
        let crash = os.block_on(caught(async { panic!("a secret") })).map(|(): ()| ()).unwrap_err();
        let failure = Failure::from(crash);
        assert!(failure.message.contains("core/src/crash.rs:"), "{}", failure.message);
        assert!(!failure.message.contains("secret"));
        assert_eq!(failure.kind.exit(), 1);
    }

    #[test]
    fn a_future_that_ends_is_left_alone() {
        let os = FakeOs::new();
        assert_eq!(os.block_on(caught(async { 7 })), Ok(7));
        assert_eq!(DEPTH.get(), 0);
    }
}
