//! What a scenario does to mu that no mu could make good: then not all that is due can be asked for.

use crate::backend::{BackendTable, WINDOW_MS};
use crate::fake::{Act, Fault, Seam, When};
use crate::scenario::{Db, Scenario, Step};

use super::rows::Rows;

/// See the top of this file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excuses {
    /// Its database is taken away or replaced, or there are several.
    pub forgets: bool,
    /// A plugin or its backend says what is not so.
    pub lies: bool,
    /// An operator has the last word about an effect.
    pub overruled: bool,
    /// The disk fails, or another process holds the database.
    pub disk_fails: bool,
}

impl Excuses {
    /// Whether what mu knows of this host may be wrong. An operator's word counts for the host that it was about, and only
    /// if mu has taken it.
    pub fn cover(self, rows: &Rows, host: &str) -> bool {
        let overruled = || self.overruled && rows.verdicts.iter().any(|verdict| verdict.host == host);
        self.forgets || self.lies || overruled()
    }

    /// Those of a scenario.
    pub fn of(scenario: &Scenario) -> Excuses {
        let (steps, runs) = (&scenario.steps, scenario.steps.iter().filter_map(|step| step.run.as_ref()));
        let is_lost = |db| matches!(db, Db::Missing | Db::Garbage | Db::Newer | Db::Directory);
        let held = |step: &Step| step.world.iter().any(|change| change.lock_ms.is_some());
        let fails = |step: &Step| {
            step.disk_error.is_some() || step.db.is_some_and(|db| db != Db::Restored) || held(step)
        };
        let elsewhere =
            |name: &String| ["MU_DB_PATH", "MU_STATE_DIR", "XDG_STATE_HOME", "HOME"].contains(&name.as_str());
        Excuses {
            forgets: steps.iter().any(|step| step.db.is_some_and(is_lost) || step.env.keys().any(elsewhere)),
            lies: lies(scenario),
            overruled: runs.into_iter().any(|run| run.contains("effect resolve") && run.contains("--as")),
            disk_fails: steps.iter().any(fails),
        }
    }
}

fn lies(scenario: &Scenario) -> bool {
    let tables =
        || scenario.backend.iter().chain(scenario.steps.iter().filter_map(|step| step.backend_set.as_ref()));
    let bars_nothing = |table: &BackendTable| table.fence == Some(false);
    // An acquire that lands after the time in which it was said to.
    let lands = tables().filter_map(|table| Some(table.land_ms? + table.acquire_ms.unwrap_or(0))).max();
    let plans = scenario.steps.iter().flat_map(|step| step.plan.values());
    let declares_less = scenario.plugins.values().chain(plans).any(|table| {
        let declaration = table.declaration("", "sha256:").unwrap_or_default();
        let acquire = &declaration["seams"]["host"]["acquire"];
        let said = acquire["inFlightMs"].as_u64();
        // What is shown late is no truth either, where nothing is fenced.
        let lag = tables().filter_map(|table| table.lookup_lag_ms).max().unwrap_or(0);
        let early = said.is_some_and(|said| lands.unwrap_or(0) + lag > said) && acquire["fenceKey"] != true;
        // A key that is forgotten before it was said to be.
        let window = tables().filter_map(|table| table.window_ms).chain([WINDOW_MS]).min();
        let short = acquire["dedupe"]["windowMs"].as_u64() > window;
        table.seams.contains(&Seam::Host) && (early || short)
    });
    scenario.faults.iter().any(is_lie) || tables().any(bars_nothing) || declares_less
}

fn is_lie(fault: &Fault) -> bool {
    // Before the reply means before the work, which follows all the same.
    let done = |fault: &Fault| {
        matches!(fault.moment(), When::AfterEffect | When::BeforeReply) && fault.method().starts_with("host.")
    };
    match fault.act {
        Act::LookupNone | Act::StatusGone | Act::FoundOtherHandle | Act::StatusOtherHandle => true,
        // A string of the reply is another one than the backend's: the handle.
        Act::PaddedString(_) | Act::NulEscaped | Act::SplitChar | Act::LeakEnvReply(_) => {
            matches!(fault.method(), "host.acquire" | "host.lookup" | "host.status")
        }
        // Nothing has happened, says the error, and it has (ERR-06).
        Act::ErrorRetryable | Act::ErrorPermanent | Act::ErrorHuman => done(fault),
        _ => false,
    }
}
