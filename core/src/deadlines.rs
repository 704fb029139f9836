//! How long a call may take (TMO-01 to TMO-03, A-27).
//!
//! In: the environment, a method and, for methods that take one, the timeout that the plugin itself enforces. Out: mu's own
//! budget for the answer. Each can be set by a variable, such as `MU_DEADLINE_LINK_CHECK_STEPS_MS`.

use std::time::Duration;

use mu_protocol::messages::method::Method;

use crate::os::Env;

/// The `timeoutMs` of a run on a host when the caller names none (TMO-01).
pub const TIMEOUT: Duration = Duration::from_secs(20);
/// What mu grants on top of a timeout that the plugin enforces, so that an answer at the timeout counts (TMO-02).
const MARGIN: Duration = Duration::from_secs(5);
/// For what only reads (TMO-03).
const READ: Duration = Duration::from_secs(10);
/// For effects that need no machine.
const EFFECT: Duration = Duration::from_secs(60);
/// For making a machine.
const ACQUIRE: Duration = Duration::from_secs(600);
/// How long before a host is taken away nothing new begins on it, when nobody says otherwise (FACT-02).
const HOST_MARGIN: Duration = Duration::from_millis(600_000);
/// The variable that says otherwise.
pub const HOST_MARGIN_VARIABLE: &str = "MU_HOST_DEADLINE_MARGIN_MS";
/// The longest that can be asked for: a day.
pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A variable that says how long something may take, and does not say it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the variable {name} must be {wanted}; it is {value:?}")]
pub struct BadVariable {
    /// Its name.
    pub name: String,
    /// What it holds, lossily.
    pub value: String,
    /// What it has to be.
    pub wanted: String,
}

/// How long mu waits for the answer to `method`. `timeout` counts for the methods that carry a `timeoutMs` alone.
///
/// # Errors
/// The method's variable is set to something else than a number of milliseconds from 1 to a day.
pub fn budget(env: &Env, method: Method, timeout: Duration) -> Result<Duration, BadVariable> {
    if let Some(span) = set(env, &variable(method))? {
        return Ok(span);
    }
    Ok(match method {
        Method::LinkExec
        | Method::LinkFetch
        | Method::LinkPush
        | Method::ChannelInterrupt
        | Method::ChannelAbort => timeout + MARGIN,
        Method::HostAcquire => ACQUIRE,
        method if method.is_effect() => EFFECT,
        _ => READ,
    })
}

/// How long before a host is taken away nothing new begins on it (FACT-02).
///
/// # Errors
/// Its variable is set to something else than a number of milliseconds.
pub fn host_margin(env: &Env) -> Result<Duration, BadVariable> {
    let Some(value) = env.var(HOST_MARGIN_VARIABLE) else { return Ok(HOST_MARGIN) };
    let value = value.to_string_lossy();
    let margin = value.parse().ok().map(Duration::from_millis);
    margin.ok_or_else(|| BadVariable {
        name: HOST_MARGIN_VARIABLE.to_owned(),
        value: value.into_owned(),
        wanted: "a number of milliseconds".to_owned(),
    })
}

/// Whether every variable that says how long something may take says so: to be asked before anything is sent.
///
/// # Errors
/// The first that does not.
pub fn check(env: &Env) -> Result<(), BadVariable> {
    host_margin(env)?;
    Method::ALL.iter().try_for_each(|method| budget(env, *method, TIMEOUT).map(drop))
}

/// The span that a variable sets, if it does.
fn set(env: &Env, name: &str) -> Result<Option<Duration>, BadVariable> {
    let Some(value) = env.var(name) else { return Ok(None) };
    let value = value.to_string_lossy();
    let number = value.parse().ok().map(Duration::from_millis);
    let allowed = number.filter(|span| (Duration::from_millis(1)..=LONGEST).contains(span));
    let wanted = format!("a number of milliseconds from 1 to {}", LONGEST.as_millis());
    let bad = || BadVariable { name: name.to_owned(), value: value.into_owned(), wanted };
    allowed.map(Some).ok_or_else(bad)
}

/// `link.checkSteps` as `MU_DEADLINE_LINK_CHECK_STEPS_MS`.
fn variable(method: Method) -> String {
    let mut name = String::from("MU_DEADLINE_");
    for letter in method.as_str().chars() {
        match letter {
            '.' => name.push('_'),
            upper if upper.is_ascii_uppercase() => name.extend(['_', upper]),
            lower => name.push(lower.to_ascii_uppercase()),
        }
    }
    name + "_MS"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::Os;
    use crate::testing::FakeOs;

    fn seconds(method: Method) -> u64 {
        budget(FakeOs::new().env(), method, TIMEOUT).unwrap().as_secs()
    }

    /// TMO-02, TMO-03, A-27
    #[test]
    fn each_method_has_its_time() {
        for method in Method::ALL {
            let wanted = match method.as_str() {
                "link.exec" | "link.fetch" | "link.push" | "channel.interrupt" | "channel.abort" => 25,
                "host.acquire" => 600,
                "job.start" | "job.stop" | "host.release" | "channel.send" | "channel.fresh"
                | "channel.command" | "channel.answer" => 60,
                _ => 10,
            };
            assert_eq!(seconds(*method), wanted, "{method}");
        }
    }

    /// FACT-02
    #[test]
    fn the_margin_of_a_host_is_ten_minutes_unless_its_variable_says_otherwise() {
        let of = |value: &str| host_margin(FakeOs::new().with_var(HOST_MARGIN_VARIABLE, value).env());
        assert_eq!(of("").map(|margin| margin.as_millis()), Ok(600_000));
        for (value, ms) in [("0", 0), ("172800000", 172_800_000)] {
            assert_eq!(of(value).map(|margin| margin.as_millis()), Ok(ms));
        }
        for nonsense in ["-5", "nonsense", "1s"] {
            assert!(of(nonsense).unwrap_err().to_string().contains(HOST_MARGIN_VARIABLE));
            let os = FakeOs::new().with_var(HOST_MARGIN_VARIABLE, nonsense);
            assert!(check(os.env()).is_err());
        }
    }

    ///
    #[test]
    fn a_variable_sets_it_and_nonsense_in_it_is_refused() {
        let of = |value: &str| {
            let os = FakeOs::new().with_var("MU_DEADLINE_LINK_CHECK_STEPS_MS", value);
            budget(os.env(), Method::LinkCheckSteps, TIMEOUT)
        };
        assert_eq!(of("1500"), Ok(Duration::from_millis(1500)));
        assert_eq!(of(""), Ok(READ), "an empty variable is none");
        for nonsense in ["0", "-1", "10s", "86400001", "1.5", " 1"] {
            let error = of(nonsense).unwrap_err();
            assert!(error.to_string().contains("MU_DEADLINE_LINK_CHECK_STEPS_MS"), "{error}");
        }
    }
}
