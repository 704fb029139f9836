//! What a plugin says of itself when it answers the handshake.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The four things a plugin can offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seam {
    /// Runs scripts on a host.
    Link,
    /// Runs agents.
    Job,
    /// Makes hosts.
    Host,
    /// Talks to agents.
    Channel,
}

/// A checked `initialize` result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// The chosen protocol version.
    pub protocol: u32,
    /// Name and version.
    pub plugin: Identity,
    /// The backend it addresses.
    pub instance: String,
    /// `sha256:` and the digest of the schema it was built with.
    pub schema: String,
    /// What it offers.
    pub seams: Seams,
}

/// Name and version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The plugin's name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What a plugin offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seams {
    /// The link seam.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Value>,
    /// The job seam.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<Value>,
    /// The host seam.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Value>,
    /// The channel seam.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
}

/// The channel seam.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    /// Its name, unique among the registered plugins.
    pub name: String,
    /// Its capabilities.
    pub caps: Value,
}

impl Declaration {
    /// As JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers serialise")
    }

    /// Reads what [`Declaration::to_json`] wrote.
    ///
    /// # Errors
    /// When the text is no declaration.
    pub fn from_recorded(text: &str) -> Result<Declaration, serde_json::Error> {
        serde_json::from_str(text)
    }
}
