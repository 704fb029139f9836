//! `mu host fetch <host> <remote-dir>`: fetches the HEAD of a work tree on a host into a repository here.

use std::path::Path;
use std::time::Duration;

use mu_protocol::messages::values::RemotePath;
use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::output::{Data, Output, Row};
use crate::invocation::Invocation;
use crate::link::{Link, Repository};
use crate::os::Os;
use crate::store::{Missing, Store};
use crate::verbs::name::HostName;

/// Fetches, and returns the commit that FETCH_HEAD names: `{host, remote_dir, repo, commit}`. Without `repo` the repository
/// is that of the working directory.
///
/// # Errors
/// Nobody has that name, or there is no repository (exit 3); there is no way to fetch, or the plugin may not be started
/// (exit 4); the fetch failed, or FETCH_HEAD names nothing afterwards (exit 5); whether it did its work is not known
/// (exit 1).
pub async fn run<O: Os>(
    invocation: &Invocation<O>,
    name: &HostName,
    remote: &RemotePath,
    repo: Option<&str>,
    timeout: Duration,
) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    let link = Link::open(invocation, &store, name).await?;
    let repository = Repository::find(invocation.os(), Path::new(repo.unwrap_or(".")))?;
    let fetched = link.fetch(remote, &repository, timeout).await;
    let commit = fetched.map_err(|error| link.failure(&error))?;
    let root = repository.root();
    let row = Row::new([
        ("host", json!(name.as_str())),
        ("remote_dir", json!(remote.as_str())),
        ("repo", json!(root.as_str())),
        ("commit", json!(commit.as_str())),
    ]);
    let summary = format!("HEAD of {remote} on host {name} is {commit}, FETCH_HEAD of {root} now");
    Ok(Output { summary: Some(summary), ..Output::new(Data::Row(row)) })
}
