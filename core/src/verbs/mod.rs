//! One file for each verb of the command line, by its name. In: the typed request and the run of mu it belongs to. Out: a
//! result or a failure; printing is not theirs.

pub mod completions;
pub mod db_query;
pub mod effect_list;
pub mod effect_resolve;
pub mod effect_show;
pub mod host_acquire;
pub mod host_add;
pub mod host_check;
pub mod host_exec;
pub mod host_fetch;
pub mod host_list;
pub mod host_release;
pub mod host_rm;
pub mod host_show;
pub mod host_status;
pub mod name;
pub mod plugin_add;
pub mod plugin_check;
pub mod plugin_list;
pub mod plugin_rm;
pub mod plugin_schema;
pub mod plugin_show;

use crate::cli::args::Request;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::invocation::Invocation;
use crate::os::Os;

/// Runs the requested verb.
///
/// # Errors
/// The verb's failure.
pub async fn run<O: Os>(invocation: &Invocation<O>, request: Request) -> Result<Output, Failure> {
    match request {
        Request::Print(output) => Ok(*output),
        Request::PluginAdd { name, argv } => plugin_add::run(invocation, &name, argv).await,
        Request::PluginList { full } => plugin_list::run(invocation, full).await,
        Request::PluginShow { name, full } => plugin_show::run(invocation, &name, full).await,
        Request::PluginRm { name } => plugin_rm::run(invocation, &name).await,
        Request::PluginSchema { digest } => Ok(plugin_schema::run(digest)),
        Request::PluginCheck { names, full } => plugin_check::run(invocation, &names, full).await,
        Request::HostAdd { name, setup } => host_add::run(invocation, &name, setup).await,
        Request::HostAcquire { name, provider, params } => {
            host_acquire::run(invocation, &name, &provider, &params).await
        }
        Request::HostStatus { name, full } => host_status::run(invocation, &name, full).await,
        Request::HostRelease { name } => host_release::run(invocation, &name).await,
        Request::EffectList { full } => effect_list::run(invocation, full).await,
        Request::EffectShow { key, full } => effect_show::run(invocation, &key, full).await,
        Request::EffectResolve { key, word } => effect_resolve::run(invocation, &key, word).await,
        Request::HostList { full } => host_list::run(invocation, full).await,
        Request::HostShow { name, full } => host_show::run(invocation, &name, full).await,
        Request::HostRm { name } => host_rm::run(invocation, &name).await,
        Request::HostCheck { names, agent, full } => {
            host_check::run(invocation, &names, agent.as_ref(), full).await
        }
        Request::HostExec { name, script, cwd, timeout } => {
            host_exec::run(invocation, &name, &script, &cwd, timeout).await
        }
        Request::HostFetch { name, remote, repo, timeout } => {
            host_fetch::run(invocation, &name, &remote, repo.as_deref(), timeout).await
        }
        Request::DbQuery { sql, write, full } => db_query::run(invocation, &sql, write, full).await,
        Request::Completions { shell } => Ok(completions::run(shell)),
    }
}
