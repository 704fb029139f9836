//! One host's link: scripts, fetches and pushes through the plugin that reaches it.
//!
//! - `channel`: the host's channels, when mu keeps count of them
//! - `site`: the host as its link sees it
//! - `repository`: the repository here that is fetched into
//! - `template`: a fetch by the host's own shell command
//! - `check`: `host check`, step by step
//! - `error`: every way it can fail
//! - [`shell`]: words for a POSIX shell
//!
//! In: what to run or to move, and for how long. Out: what the plugin answered, once nothing of it holds a channel any
//! more. All that a signal can interrupt ends by it.

mod channel;
mod check;
mod error;
mod repository;
pub mod shell;
mod site;
mod template;

use std::time::Duration;

use mu_protocol::declaration::{self, RemoteOnTimeout, Slots};
use mu_protocol::load::{self, Registration, Seam};
use mu_protocol::messages::error::ErrorKind;
use mu_protocol::messages::link::{ExecParams, FetchParams, PushParams, Run};
use mu_protocol::messages::method::{Method, Read};
use mu_protocol::messages::target::Target;
use mu_protocol::messages::values::{AbsolutePath, CommitId, Millis, RemotePath};

pub use check::{Report, Shown};
pub use error::LinkError;
pub use repository::{Repository, RepositoryError};

use crate::call_error::CallError;
use crate::cli::failure::{Failure, Kind};
use crate::deadlines;
use crate::invocation::{Invocation, Start};
use crate::link::site::Site;
use crate::os::Os;
use crate::provider;
use crate::reached;
use crate::session::GRACE;
use crate::store::plugins::{self, Plugin};
use crate::store::profiles;
use crate::store::{Store, Tx};
use crate::verbs::name::HostName;

/// The link of one host. It starts its plugin with the first call.
pub struct Link<'a, O: Os> {
    invocation: &'a Invocation<O>,
    store: &'a Store<O>,
    host: Site,
    plugin: Plugin,
    declared: declaration::Link,
}

/// What became of a script on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The plugin's answer. No exit status: it was cut off, or its end is not known (LINK-02, ERR-05).
    pub run: Run,
    /// Whether something that it started may still be running (LINK-19).
    pub may_still_run: bool,
    /// What the plugin says for not knowing the outcome, one line.
    pub said: Option<String>,
}

impl<'a, O: Os> Link<'a, O> {
    /// The link of a host that was added, or acquired and is ready; an effect that is open on it is resolved first.
    ///
    /// # Errors
    /// Nobody has that name (exit 3), its plugin declares no link, the host cannot be used (exit 4), or those of the
    /// database.
    pub async fn open(
        invocation: &'a Invocation<O>,
        store: &'a Store<O>,
        name: &HostName,
    ) -> Result<Link<'a, O>, Failure> {
        let find = |tx: Tx<'_>| {
            let Some(host) = profiles::find(tx, name)? else { return Ok(None) };
            Ok(plugins::find(tx, host.plugin.as_str())?.map(|plugin| (host, plugin)))
        };
        let (host, plugin) = match store.read(find).await? {
            Some((profile, plugin)) => (Site::from(profile), plugin),
            None => {
                let (host, plugin) = provider::ready(invocation, store, name).await?;
                (Site::from(host), plugin)
            }
        };
        let Some(declared) = plugin.declaration.seams.link.clone() else {
            let needs = Registration { name: &plugin.name, needs: &[Seam::Link] };
            let refusal = load::lacks_nothing(&plugin.declaration, &needs).expect_err("it has no link");
            let message = format!("host {name}: plugin {}: {refusal}", plugin.name);
            return Err(Failure::new(Kind::LoadRefused, message));
        };
        Ok(Link { invocation, store, host, plugin, declared })
    }

    /// The failure of a verb that the error is the end of.
    pub fn failure(&self, error: &LinkError) -> Failure {
        error.failure(&self.host, &self.plugin)
    }

    /// Runs a script for a POSIX shell in `cwd` of the host (LINK-01). `timeout` is what the plugin cuts it off at.
    ///
    /// # Errors
    /// [`LinkError::ScriptTooLong`] for one that the link does not take (LINK-20); else why there is no answer.
    pub async fn exec(&self, script: &str, cwd: &RemotePath, timeout: Duration) -> Result<Ran, LinkError> {
        let (bytes, limit) = (script.len() as u64, self.declared.max_script_bytes);
        if bytes > limit {
            reached!("LINK-20 a script that the link does not take");
            return Err(LinkError::ScriptTooLong { bytes, limit });
        }
        let params = ExecParams {
            target: self.target(),
            script: script.to_owned(),
            cwd: cwd.clone(),
            timeout_ms: millis(timeout),
        };
        let budget = self.budget(Method::LinkExec, timeout)?;
        match self.holding(budget, self.run(&params, budget)).await {
            Ok(run) => {
                let unknown = self.declared.remote_on_timeout == RemoteOnTimeout::Unknown;
                Ok(Ran { may_still_run: run.exit_code.is_none() && unknown, run, said: None })
            }
            Err(LinkError::Call(CallError::Refused(_, error))) if error.kind == ErrorKind::UnknownOutcome => {
                reached!("ERR-05 a script of which the outcome is not known");
                let run =
                    Run { exit_code: None, stdout: String::new(), stderr: String::new(), partial: true };
                let said = error.message.lines().next().unwrap_or_default().to_owned();
                Ok(Ran { run, may_still_run: true, said: Some(said) }) // ERR-05
            }
            Err(error) => Err(error),
        }
    }

    /// Fetches HEAD of the work tree `remote` into the repository, by the link or, when it serves no fetch, by the host's
    /// template (REG-18, REG-19). Returns the commit that FETCH_HEAD names afterwards.
    ///
    /// # Errors
    /// Why it does not name one. FETCH_HEAD is gone then, unless nothing was begun (LINK-21).
    pub async fn fetch(
        &self,
        remote: &RemotePath,
        repository: &Repository,
        timeout: Duration,
    ) -> Result<CommitId, LinkError> {
        let os = self.invocation.os();
        let budget = self.budget(Method::LinkFetch, timeout)?;
        let template = self.host.fetch_template.as_ref().filter(|_| !self.declared.fetch);
        if template.is_none() && !self.declared.fetch {
            repository.forget_fetch_head(os)?;
            reached!("REG-19 no fetch and no template");
            return Err(LinkError::NoTemplate);
        }
        let fetch = async {
            repository.forget_fetch_head(os)?;
            let Some(template) = template else {
                let params = FetchParams {
                    target: self.target(),
                    remote_cwd: remote.clone(),
                    local_repo: repository.root().clone(),
                    timeout_ms: millis(timeout),
                };
                return self.run(&params, budget).await;
            };
            let (local, name) = (repository.root().as_str(), self.host.name.as_str());
            let command = shell::fill(template, local, remote.as_str(), name);
            template::run(self.invocation, command, timeout).await
        };
        let run = self.holding(budget, fetch).await?;
        match run.exit_code {
            Some(0) => repository.fetch_head(os)?.ok_or(LinkError::NoFetchHead),
            _ => Err(LinkError::FetchFailed(run)),
        }
    }

    /// Makes the repository `remote` of the host hold a commit of the repository `local` (LINK-05). No effect: it can be
    /// repeated (LINK-07, LINK-08), and what it reports is no proof that the commit is there (LINK-09).
    ///
    /// # Errors
    /// [`LinkError::NoPush`] for a link that serves none (LINK-04); else why there is no answer.
    pub async fn push(
        &self,
        local: &AbsolutePath,
        remote: &RemotePath,
        rev: &CommitId,
        timeout: Duration,
    ) -> Result<Run, LinkError> {
        if !self.declared.pushes() {
            return Err(LinkError::NoPush);
        }
        let params = PushParams {
            target: self.target(),
            local_repo: local.clone(),
            remote_repo: remote.clone(),
            rev: rev.clone(),
            timeout_ms: millis(timeout),
        };
        let budget = self.budget(Method::LinkPush, timeout)?;
        self.holding(budget, self.run(&params, budget)).await
    }

    /// A call that answers with a run. A run that was cut off is handed on once what it left has stopped, for a link that
    /// says how long that takes, so that its channel is held as long (LINK-18).
    async fn run<C: Read<Result = Run>>(&self, params: &C, budget: Duration) -> Result<Run, LinkError> {
        let run = self.invocation.call(&self.start(), params, budget).await?;
        if run.exit_code.is_none() && self.declared.remote_on_timeout == RemoteOnTimeout::Stopping {
            // A signal does not end the wait: what was cut off may still run, and mu has one grace to end anyway.
            reached!("LINK-18 waited for what a cut-off script left");
            let os = self.invocation.os();
            os.sleep_until(os.now() + GRACE).await;
        }
        Ok(run)
    }

    /// Does the work with a channel of the host held, when mu keeps count of them (SEAM-04).
    async fn holding<T>(
        &self,
        budget: Duration,
        work: impl Future<Output = Result<T, LinkError>>,
    ) -> Result<T, LinkError> {
        if self.declared.slots != Slots::Mu {
            // Without a channel to hold, the look comes as late as it can: a start takes long, and a release may begin meanwhile.
            if self.host.may_change() {
                self.invocation.start(self.start()).await.map_err(CallError::Start)?;
                self.store.read(|tx| Ok(self.host.still_there(tx))).await??;
            }
            return work.await;
        }
        let held = channel::take(self.invocation, self.store, &self.host, budget).await?;
        let done = work.await;
        channel::free(self.store, held).await;
        done
    }

    fn budget(&self, method: Method, timeout: Duration) -> Result<Duration, LinkError> {
        Ok(deadlines::budget(self.invocation.os().env(), method, timeout)?)
    }

    fn start(&self) -> Start {
        Start {
            name: self.plugin.name.clone(),
            argv: self.plugin.argv.clone(),
            recorded: Some(self.plugin.declaration.clone()),
            needs: vec![Seam::Link],
        }
    }

    fn target(&self) -> Target {
        Target { agent: None, job: None, host: self.host.target.clone() }
    }
}

/// A timeout as it goes on the wire.
fn millis(span: Duration) -> Millis {
    let number = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Millis::new(number).unwrap_or(Millis::MAX)
}

#[cfg(test)]
mod tests;
