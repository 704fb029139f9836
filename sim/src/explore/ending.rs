//! The ending: everything that was spoiled is sound again, no fault happens any more, and mu has to come to a known state
//! at once, whatever went before.

use std::collections::BTreeMap;

use super::provided::Provided;
use super::{Swarm, plugins, steps};
use crate::fake::{PluginFile, PluginTable};
use crate::scenario::{Db, Step, Text};
use crate::streams::Stream;

/// Milliseconds within which a command without faults ends.
const BOUND_MS: u64 = 1_000;

/// Steps that end a scenario after `drawn`.
pub(super) fn draw(
    stream: &mut Stream,
    seed: u64,
    swarm: &Swarm,
    plugins: &BTreeMap<String, PluginTable>,
    drawn: &[Step],
    provided: Option<&Provided>,
) -> Vec<Step> {
    let sound = |name: &String| {
        let mut own = super::stream(seed, &format!("ending/plugin.{name}"));
        (name.clone(), plugins::sound(&mut own, name))
    };
    let mut plan: BTreeMap<String, PluginTable> = plugins.keys().map(sound).collect();
    let mut steps = vec![Step {
        calm: true,
        file: plugins.keys().map(|name| (name.clone(), PluginFile::default())).collect(),
        plan: plan.clone(),
        db: Some(Db::Restored),
        ..Step::default()
    }];
    if let Some(provided) = provided {
        super::provided::calm(provided, drawn, &mut steps[0]);
        plan.clone_from(&steps[0].plan);
    }
    if lost(drawn) {
        steps.push(Step { db: Some(Db::Missing), ..Step::default() });
    }
    if swarm.calls {
        // A run that names them is all that keeps a plugin from being removed.
        let added =
            |host: &String| drawn.iter().any(|step| step.run.as_ref().is_some_and(|run| run.contains(host)));
        let hosts = steps::linked(plugins).flat_map(|name| [steps::host(name), format!("near-{name}")]);
        let rm = |host| Step { run: Some(format!("mu host rm {host}")), ..Step::default() };
        steps.extend(hosts.filter(added).map(rm));
    }
    // Adding again keeps the row; the declaration may be another one. What was registered with other arguments, or
    // holds a channel that somebody else takes now, has to go first.
    let other_argv = drawn.iter().any(|step| step.run.as_ref().is_some_and(|run| run.contains(" --region")));
    if other_argv || stream.chance(1, 8) {
        let rm = |name: &String| Step { run: Some(format!("mu plugin rm {name}")), ..Step::default() };
        steps.extend(plugins.keys().map(rm));
    }
    let must =
        |run: String| Step { run: Some(run), exit: Some(0), within_ms: Some(BOUND_MS), ..Step::default() };
    steps.extend(plugins.keys().map(|name| must(format!("mu plugin add {name} -- {{{name}}}"))));
    let starts = plugins.keys().map(|name| (name.clone(), 1)).collect();
    let mut check = Step { starts, ..must("mu plugin check --json".to_owned()) };
    check.json.insert("data.plugins.#".to_owned(), toml::Value::from(plugins.len() as i64));
    for (index, name) in plugins.keys().enumerate() {
        check.json.insert(format!("data.plugins[{index}].name"), toml::Value::from(name.as_str()));
    }
    steps.push(check);
    if swarm.calls {
        // One of them shows it.
        let linked: Vec<&str> = steps::linked(&plan).collect();
        for name in stream.pick(&linked).into_iter() {
            let host = steps::host(name);
            steps.push(must(format!("mu host add {host} --plugin {name} --fetch false")));
            let stdout = Some(Text { contains: vec!["done".into()], ..Text::default() });
            steps.push(Step { stdout, ..must(format!("mu host exec {host} -- 'echo done'")) });
        }
    }
    if provided.is_some() {
        steps.extend(super::provided::ending(&must, stream.chance(1, 2)));
    }
    steps
}

/// Whether these steps leave a database that nothing but its removal helps.
pub(super) fn lost(steps: &[Step]) -> bool {
    let is_lost = |db| matches!(db, Db::Garbage | Db::Newer | Db::Directory);
    steps.iter().filter_map(|step| step.db).fold(false, |lost, db| match db {
        Db::Missing => false,
        db => lost || is_lost(db),
    })
}
