//! `mu plugin rm <name>`: forgets a plugin, unless something still names it (REG-12). Starts none, and works for a row
//! that mu cannot read any more.

use serde_json::json;

use crate::cli::failure::{Failure, Kind};
use crate::cli::output::{Data, Output, Row};
use crate::invocation::Invocation;
use crate::os::Os;
use crate::store::plugins::{self, Plugin, References};
use crate::store::{Missing, Store, StoreError, Tx};
use crate::verbs::name::PluginName;

/// Removes one plugin and returns the row it had.
///
/// # Errors
/// Nobody has that name (exit 3), something names it (exit 4), or those of the database.
pub async fn run<O: Os>(invocation: &Invocation<O>, name: &PluginName) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    let row = store.write(|tx| remove(tx, name, plugins::REFERENCES)).await?;
    let summary = Some(format!("plugin {name} is no longer registered"));
    Ok(Output { summary, ..Output::new(Data::Row(row)) })
}

fn remove(tx: Tx<'_>, name: &PluginName, tables: References) -> Result<Row, Failure> {
    let row = match plugins::find(tx, name.as_str()) {
        Ok(plugin) => plugin.as_ref().map(Plugin::row),
        Err(StoreError::BadRow { .. }) => Some(Row::new([("name", json!(name.as_str()))])),
        Err(error) => return Err(error.into()),
    };
    let Some(row) = row else { return Err(name.unknown(&plugins::names(tx)?)) };
    let references = plugins::references(tx, name.as_str(), tables)?;
    if !references.is_empty() {
        let message = format!("plugin {name} is still named by {}; remove that first", references.join(", "));
        return Err(Failure::new(Kind::StillReferenced, message).or_else([format!("mu plugin show {name}")]));
    }
    plugins::remove(tx, name.as_str())?;
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FakeOs, open, plugin};

    /// REG-12
    #[test]
    fn a_plugin_that_something_names_stays_and_the_refusal_says_what() {
        let os = FakeOs::new();
        let name: PluginName = "box".parse().unwrap();
        let tables: References = &[("thing", "SELECT name FROM things WHERE plugin = ?1 ORDER BY name")];
        os.block_on(async {
            let store = open(&os, Missing::Create).await;
            let things = "CREATE TABLE things (name TEXT, plugin TEXT);
                INSERT INTO things VALUES ('a', 'box'), ('b', 'box'), ('c', 'crate')";
            let setup =
                |tx: Tx<'_>| tx.sql(tx.db.execute_batch(things)).and(plugins::put(tx, &plugin("box", None)));
            store.write(setup).await.unwrap();
            let refused = store.write(|tx| remove(tx, &name, tables)).await.unwrap_err();
            assert_eq!(refused.kind, Kind::StillReferenced);
            assert!(refused.message.contains("thing a, thing b;"), "{}", refused.message);
            assert!(store.read(|tx| plugins::find(tx, "box")).await.unwrap().is_some());
        });
    }
}
