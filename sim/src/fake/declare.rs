//! The declaration of a fake plugin: sound defaults for each seam, then the changes of the scenario's plugin table.
//!
//! Every load rule can be violated from a scenario; nothing here judges the outcome.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::file::PluginFile;
use super::link::CheckStep;

/// A seam that a plugin can declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seam {
    /// Scripts, fetches and pushes on a host.
    Link,
    /// Hosts that come and go.
    Host,
    /// Runs of an agent.
    Job,
    /// Talking to an agent.
    Channel,
}

impl Seam {
    /// All of them.
    pub const ALL: [Seam; 4] = [Seam::Link, Seam::Host, Seam::Job, Seam::Channel];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Seam::Link => "link",
            Seam::Host => "host",
            Seam::Job => "job",
            Seam::Channel => "channel",
        }
    }
}

/// A plugin of a scenario: `[plugins.<name>]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginTable {
    /// The seams that it declares, with sound defaults.
    #[serde(default = "link_alone")]
    pub seams: Vec<Seam>,
    /// Members that replace those of the seam `link`, at any depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<toml::Table>,
    /// The same for `host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<toml::Table>,
    /// The same for `job`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<toml::Table>,
    /// The same for `channel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<toml::Table>,
    /// Members that replace those of the declaration itself: `protocol`, `plugin`, `instance`, `schema`, `seams`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declare: Option<toml::Table>,
    /// Dotted paths in the declaration that are taken out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// Dotted paths in the declaration and what they are set to, new or not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, toml::Value>,
    /// Dotted paths in the declaration that are set to JSON's null.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub null: Vec<String>,
    /// The steps that it tells to `mu host check`; one that passed in each phase when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<CheckStep>,
    /// The commit at its host's HEAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The file that is installed for it.
    #[serde(default, skip_serializing_if = "PluginFile::is_ordinary")]
    pub file: PluginFile,
}

fn link_alone() -> Vec<Seam> {
    vec![Seam::Link]
}

impl Default for PluginTable {
    fn default() -> PluginTable {
        PluginTable {
            seams: link_alone(),
            link: None,
            host: None,
            job: None,
            channel: None,
            declare: None,
            drop: Vec::new(),
            set: BTreeMap::new(),
            null: Vec::new(),
            steps: Vec::new(),
            head: None,
            file: PluginFile::default(),
        }
    }
}

/// Why a plugin table makes no declaration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct DeclareError {
    /// Where in the plugin table: keys, and positions in lists.
    pub at: Vec<String>,
    /// What is wrong there.
    pub reason: String,
}

/// `sha256:` and the hex digest of the exact bytes of a schema file (HSK-07).
pub fn schema_digest(schema: &[u8]) -> String {
    let hex: String = Sha256::digest(schema).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

impl PluginTable {
    /// The result of `initialize` for a plugin of this name. `schema` is the digest as it stands on the wire.
    pub fn declaration(&self, name: &str, schema: &str) -> Result<Value, DeclareError> {
        let mut seams = Map::new();
        for seam in &self.seams {
            seams.insert(seam.name().to_owned(), self.default_seam(*seam, name));
        }
        let changes = [
            (Seam::Link, &self.link),
            (Seam::Host, &self.host),
            (Seam::Job, &self.job),
            (Seam::Channel, &self.channel),
        ];
        for (seam, change) in changes {
            let Some(change) = change else { continue };
            let at = vec![seam.name().to_owned()];
            let Some(declared) = seams.get_mut(seam.name()) else {
                let reason = format!("`{0}` is not in `seams`: add it, or leave `{0}` out", seam.name());
                return Err(DeclareError { at, reason });
            };
            overlay(declared, change, &at)?;
        }
        let mut result = json!({
            "protocol": 1,
            "plugin": { "name": name, "version": "0.1.0" },
            "instance": "test",
            "schema": schema,
            "seams": seams,
        });
        if let Some(change) = &self.declare {
            overlay(&mut result, change, &["declare".to_owned()])?;
        }
        for (index, path) in self.drop.iter().enumerate() {
            let at = || vec!["drop".to_owned(), index.to_string()];
            let (parent, last) =
                parent_of(&mut result, path).map_err(|reason| DeclareError { at: at(), reason })?;
            if parent.remove(last).is_none() {
                return Err(DeclareError {
                    at: at(),
                    reason: format!("the declaration has no `{path}` to drop"),
                });
            }
        }
        for (path, value) in &self.set {
            let at = || vec!["set".to_owned(), path.clone()];
            let (parent, last) =
                parent_of(&mut result, path).map_err(|reason| DeclareError { at: at(), reason })?;
            parent.insert(last.to_owned(), json_of(value, &at())?);
        }
        for (index, path) in self.null.iter().enumerate() {
            let at = || vec!["null".to_owned(), index.to_string()];
            let (parent, last) =
                parent_of(&mut result, path).map_err(|reason| DeclareError { at: at(), reason })?;
            parent.insert(last.to_owned(), Value::Null);
        }
        Ok(result)
    }

    fn default_seam(&self, seam: Seam, name: &str) -> Value {
        match seam {
            Seam::Link => json!({
                "fetch": true,
                "slots": "self",
                "remoteOnTimeout": "stopped",
                "quiescence": "provable",
                "maxScriptBytes": 131_072,
                "checks": ["reach"],
            }),
            Seam::Host => json!({ "acquire": { "lookup": true, "fenceKey": true } }),
            Seam::Job => {
                let mut job = json!({
                    "kind": name,
                    "view": "detached",
                    "handle": "reply",
                    "start": { "lookup": true, "fenceKey": true },
                    "checks": [],
                });
                if self.seams.contains(&Seam::Channel) {
                    job["channel"] = json!(name);
                }
                job
            }
            Seam::Channel => json!({
                "name": name,
                "caps": {
                    "fence": "none",
                    "receipt": "exact",
                    "dedupe": "none",
                    "steer": "none",
                    "interrupt": "native",
                    "fresh": "in-place",
                    "answer": true,
                    "command": true,
                    "watch": "stream",
                    "settleText": "full",
                },
            }),
        }
    }
}

/// The object that holds the last member of a dotted path, and that member's name.
fn parent_of<'v, 'p>(
    root: &'v mut Value,
    path: &'p str,
) -> Result<(&'v mut Map<String, Value>, &'p str), String> {
    let mut keys: Vec<&str> = path.split('.').collect();
    let last = keys.pop().filter(|last| !last.is_empty()).ok_or("an empty path")?;
    let mut value = root;
    for key in keys {
        value = value
            .get_mut(key)
            .ok_or_else(|| format!("`{path}` leads nowhere: the declaration has no `{key}` there"))?;
    }
    let object = value
        .as_object_mut()
        .ok_or_else(|| format!("`{path}` leads nowhere: what holds `{last}` is no object"))?;
    Ok((object, last))
}

/// Replaces members of `base` by those of `change`; where both are objects, inside them.
fn overlay(base: &mut Value, change: &toml::Table, at: &[String]) -> Result<(), DeclareError> {
    for (key, value) in change {
        let at = [at, std::slice::from_ref(key)].concat();
        match (base.get_mut(key), value) {
            (Some(inner @ Value::Object(_)), toml::Value::Table(change)) => overlay(inner, change, &at)?,
            _ => {
                let value = json_of(value, &at)?;
                base.as_object_mut().expect("only objects are overlaid").insert(key.clone(), value);
            }
        }
    }
    Ok(())
}

/// The JSON value that says the same. TOML's dates and infinities say nothing in JSON.
pub(crate) fn json_of(value: &toml::Value, at: &[String]) -> Result<Value, DeclareError> {
    let refuse = |reason: &str| Err(DeclareError { at: at.to_vec(), reason: reason.to_owned() });
    Ok(match value {
        toml::Value::String(text) => Value::from(text.as_str()),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Float(number) if number.is_finite() => Value::from(*number),
        toml::Value::Float(_) => return refuse("JSON has no such number"),
        toml::Value::Boolean(flag) => Value::from(*flag),
        toml::Value::Datetime(_) => return refuse("JSON has no dates: quote it"),
        toml::Value::Array(items) => {
            Value::Array(items.iter().map(|item| json_of(item, at)).collect::<Result<_, _>>()?)
        }
        toml::Value::Table(table) => Value::Object(
            table
                .iter()
                .map(|(key, value)| Ok((key.clone(), json_of(value, at)?)))
                .collect::<Result<_, DeclareError>>()?,
        ),
    })
}
