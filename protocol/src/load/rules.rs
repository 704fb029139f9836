//! What a legal declaration must fulfil besides, one function for each rule.

use super::{LoadRefusal, Registration, shown};
use crate::declaration::{
    Declaration, Fence, FirstTurn, HandleSource, KeyCapabilities, Seam, SettleText, Vocabulary, Watch,
};

type Ruling = Result<(), LoadRefusal>;

/// All of them; the first that is broken refuses.
pub(super) fn check(declaration: &Declaration, registration: &Registration<'_>, digest: &str) -> Ruling {
    name(declaration, registration)?;
    schema(declaration, digest)?;
    some_seam(declaration)?;
    host_has_link_and_job(declaration)?;
    acquire_can_be_resolved(declaration)?;
    start_can_be_resolved(declaration)?;
    channel_watch(declaration)?;
    channel_settle_text(declaration)?;
    channel_fence(declaration)?;
    job_channel(declaration)?;
    at_start_replies(declaration)?;
    env_or_channel(declaration)?;
    needs(declaration, registration)
}

fn refuse<T>(
    rule: &'static str,
    field: &str,
    reason: impl Into<String>,
    remedy: &str,
) -> Result<T, LoadRefusal> {
    Err(LoadRefusal::new(rule, field, reason, remedy))
}

/// LOAD-03
fn name(declaration: &Declaration, registration: &Registration<'_>) -> Ruling {
    let declared = &declaration.plugin.name;
    if declared == registration.name {
        return Ok(());
    }
    let reason = format!("is `{}`, registered is `{}`", shown(declared), shown(registration.name));
    refuse("LOAD-03", "plugin.name", reason, "register the plugin under the name it declares")
}

/// LOAD-04
fn schema(declaration: &Declaration, published: &str) -> Ruling {
    if declaration.schema == published {
        return Ok(());
    }
    let reason = format!("is not the digest of the published schema, {published}");
    refuse("LOAD-04", "schema", reason, "build the plugin against the exact bytes of `mu plugin schema`")
}

/// LOAD-09
fn some_seam(declaration: &Declaration) -> Ruling {
    if Seam::ALL.iter().any(|&seam| declaration.seams.has(seam)) {
        return Ok(());
    }
    refuse("LOAD-09", "seams", "declares no seam", "declare at least one of link, job, host and channel")
}

/// LOAD-10, A-01
fn host_has_link_and_job(declaration: &Declaration) -> Ruling {
    if !declaration.seams.has(Seam::Host) {
        return Ok(());
    }
    for seam in [Seam::Link, Seam::Job] {
        if !declaration.seams.has(seam) {
            let reason = format!("stands without a `{}` seam", seam.name());
            return refuse("LOAD-10", "seams.host", reason, "declare link and job beside host");
        }
    }
    Ok(())
}

fn can_be_resolved(key: &KeyCapabilities) -> bool {
    key.lookup || key.dedupe.is_some()
}

/// LOAD-11
fn acquire_can_be_resolved(declaration: &Declaration) -> Ruling {
    match &declaration.seams.host {
        Some(host) if !can_be_resolved(&host.acquire) => refuse(
            "LOAD-11",
            "seams.host.acquire",
            "has neither lookup nor dedupe, so a host of unknown outcome could never be found",
            "serve `host.lookup` and set `lookup`, or recognise repeats and declare `dedupe`",
        ),
        _ => Ok(()),
    }
}

/// LOAD-12
fn start_can_be_resolved(declaration: &Declaration) -> Ruling {
    match &declaration.seams.job {
        Some(job) if job.handle == HandleSource::Reply && !can_be_resolved(&job.start) => refuse(
            "LOAD-12",
            "seams.job.start",
            "has neither lookup nor dedupe, so with handle `reply` a job of unknown outcome could never be found",
            "serve `job.lookup` and set `lookup`, or recognise repeats and declare `dedupe`",
        ),
        _ => Ok(()),
    }
}

/// LOAD-13
fn channel_watch(declaration: &Declaration) -> Ruling {
    match &declaration.seams.channel {
        Some(channel) if channel.caps.watch != Watch::Stream => refuse(
            "LOAD-13",
            "seams.channel.caps.watch",
            "is not `stream`",
            "notify of each settle and declare `stream`",
        ),
        _ => Ok(()),
    }
}

/// LOAD-14
fn channel_settle_text(declaration: &Declaration) -> Ruling {
    match &declaration.seams.channel {
        Some(channel) if channel.caps.settle_text == SettleText::None => refuse(
            "LOAD-14",
            "seams.channel.caps.settleText",
            "is `none`",
            "report the text of settled turns and declare `tail` or `full`",
        ),
        _ => Ok(()),
    }
}

/// LOAD-15
fn channel_fence(declaration: &Declaration) -> Ruling {
    match &declaration.seams.channel {
        Some(channel) if channel.caps.fence != Fence::None => {
            refuse("LOAD-15", "seams.channel.caps.fence", "is not `none`", "declare `none`")
        }
        _ => Ok(()),
    }
}

/// LOAD-16, A-68
fn job_channel(declaration: &Declaration) -> Ruling {
    let seams = &declaration.seams;
    let Some(wanted) = seams.job.as_ref().and_then(|job| job.channel.as_ref()) else { return Ok(()) };
    let reason = match &seams.channel {
        Some(channel) if channel.name == *wanted => return Ok(()),
        Some(_) => "is not the name of the channel seam",
        None => "names a channel, and there is no channel seam",
    };
    refuse(
        "LOAD-16",
        "seams.job.channel",
        reason,
        "name the channel seam as the job does, or leave the member out",
    )
}

/// LOAD-17
fn at_start_replies(declaration: &Declaration) -> Ruling {
    match &declaration.seams.job {
        Some(job) if job.begins() == FirstTurn::AtStart && job.handle != HandleSource::Reply => refuse(
            "LOAD-17",
            "seams.job.firstTurn",
            "is `at-start` without handle `reply`",
            "answer `job.start` with a handle and declare `reply`, or declare `on-send`",
        ),
        _ => Ok(()),
    }
}

/// LOAD-18
fn env_or_channel(declaration: &Declaration) -> Ruling {
    match &declaration.seams.job {
        Some(job) if !job.obeys().env && job.channel.is_none() => refuse(
            "LOAD-18",
            "seams.job.honours.env",
            "is false in a job without a channel",
            "hand the environment to the job, or declare the channel of its agents",
        ),
        _ => Ok(()),
    }
}

/// LOAD-08
pub(super) fn needs(declaration: &Declaration, registration: &Registration<'_>) -> Ruling {
    match registration.needs.iter().find(|&&seam| !declaration.seams.has(seam)) {
        None => Ok(()),
        Some(seam) => refuse(
            "LOAD-08",
            &format!("seams.{}", seam.name()),
            "is missing, and what is asked of the plugin needs it",
            "declare it, or use another plugin for this",
        ),
    }
}
