//! Everything of mu that decides, generic over [`os::Os`]: the real machine and the simulated one run this same code.
//!
//! - [`os`]: the machine as two traits
//! - [`cli`]: the command line in, one document out
//! - [`verbs`]: one file for each verb
//! - [`store`]: the database
//! - [`journal`]: effects without a definite answer, and how they come to one
//! - [`link`]: one host's link: scripts, fetches, pushes, checks
//! - [`provider`]: hosts that plugins provide, as verbs need them
//! - [`marks`]: places that the simulator must have been at
//! - [`trust`]: the checks on a plugin's file
//! - [`invocation`]: one run of mu with the plugins it has started
//! - [`session`]: one plugin process as a state machine; [`start_error`]: why there is none
//! - [`call_error`]: why a call has no result; [`deadlines`]: how long each may take
//!
//! [`run`] is the whole of mu: argv in, exit code out.

pub mod call_error;
pub mod cli;
mod crash;
pub mod deadlines;
pub mod invocation;
pub mod journal;
pub mod link;
pub mod marks;
pub mod os;
pub mod provider;
pub mod session;
pub mod start_error;
pub mod store;
#[cfg(test)]
mod testing;
pub mod trust;
pub mod verbs;

use std::ffi::OsString;
use std::io;

use crate::cli::args::{self, Request};
use crate::cli::failure::{Failure, Kind};
use crate::cli::output::{Output, Printed, render};
use crate::cli::print::{note, print};
use crate::crash::{Crash, caught};
use crate::invocation::Invocation;
use crate::os::{Os, Signal};

/// Runs mu: reads the command line from [`Os::env`], does what it asks, writes to the two output streams.
///
/// Returns the exit code. When it returns, every plugin's group is empty, except after a panic of mu, when every group
/// has been killed. A terminating signal that the verb did not answer is raised again with its default action at the end
/// (PRC-12); 128 and its number is returned on a machine where that does not end the process.
pub async fn run<O: Os>(os: O) -> u8 {
    match caught(answer(&os)).await {
        Ok(exit) => exit,
        // It happened while the answer was being given; what is half said cannot be said again.
        Err(crash) => Failure::from(crash).kind.exit(),
    }
}

async fn answer<O: Os>(os: &O) -> u8 {
    let invocation = Invocation::new(os.clone());
    let parsed = caught(async { args::parse(&os.env().argv) }).await;
    let (json, request) = parsed.unwrap_or_else(|crash| (false, Err(crash.into())));
    let result = match request {
        Ok(request) => match drive(&invocation, request).await {
            Ok(result) => {
                if let Some(signal) = invocation.signal() {
                    // Nothing to be done about a note that cannot be written: mu is ending.
                    let _ = note(os, &ending(signal, &result)).await;
                    return die(os, signal);
                }
                result
            }
            Err(crash) => Err(crash.into()),
        },
        Err(failure) => Err(failure),
    };
    let rendered = caught(async { render(result, json) }).await;
    let printed = rendered.unwrap_or_else(|crash| render(Err(crash.into()), json));
    match print(os, &printed).await {
        Ok(exit) => exit,
        Err(signal) => die(os, signal),
    }
}

/// What to print when the machine does not let mu start with the command line `argv`.
pub fn not_started(argv: &[OsString], error: &io::Error) -> Printed {
    let (json, _) = args::parse(argv);
    let message = format!(
        "the system does not let mu start: {error}; see that /proc is there and `ulimit -n` is not small"
    );
    render(Err(Failure::new(Kind::MachineUnusable, message)), json)
}

/// Runs the verb with the plugins it starts. A panic, of the verb or of what drives the plugins, kills all groups at once
/// (PRC-13).
async fn drive<O: Os>(
    invocation: &Invocation<O>,
    request: Request,
) -> Result<Result<Output, Failure>, Crash> {
    let kill_all = || async { caught(async { invocation.kill_all() }).await };
    let verb = async {
        // On the heap: what holds it is moved about, and it is as large as that of the largest verb.
        let ended = caught(Box::pin(verbs::run(invocation, request))).await;
        if ended.is_err() {
            kill_all().await.ok();
        }
        ended
    };
    match caught(invocation.run(verb)).await {
        Ok(ended) => ended,
        Err(crash) => {
            kill_all().await.ok();
            Err(crash)
        }
    }
}

/// What a signal leaves to say, on one line: whether the verb's work was done.
fn ending(signal: Signal, result: &Result<Output, Failure>) -> String {
    let name = signal.name();
    match result {
        Ok(Output { summary: Some(summary), .. }) => format!("ended by {name}, after: {summary}"),
        Ok(_) => format!("ended by {name}, with the work done and its result not printed"),
        Err(failure) if failure.kind == Kind::Interrupted => format!("ended by {name}"),
        Err(failure) => format!("ended by {name}, after: {}", failure.message),
    }
}

fn die<O: Os>(os: &O, signal: Signal) -> u8 {
    os.raise_default(signal);
    128 + signal.number() as u8
}

#[cfg(test)]
mod tests;
