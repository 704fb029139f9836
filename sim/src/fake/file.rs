//! The file that is installed for a plugin, sound or not: what `execve` and the trust checks meet (REG-03..08).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// What stands at the plugin's path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The fake plugin's executable.
    #[default]
    Executable,
    /// Nothing.
    Missing,
    /// A directory.
    Directory,
    /// A named pipe; opening it would block.
    Fifo,
    /// A symbolic link to the fake plugin's executable; mode and owner are those of its target.
    Link,
    /// A symbolic link to nothing.
    DanglingLink,
    /// A symbolic link to itself.
    LinkLoop,
    /// A script whose interpreter does not exist.
    BadInterpreter,
    /// A file of bytes that no kernel can execute.
    Garbage,
    /// The executable, held open for writing by another process (ETXTBSY).
    Busy,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 10] = [
        Kind::Executable,
        Kind::Missing,
        Kind::Directory,
        Kind::Fifo,
        Kind::Link,
        Kind::DanglingLink,
        Kind::LinkLoop,
        Kind::BadInterpreter,
        Kind::Garbage,
        Kind::Busy,
    ];
}

/// Who owns it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// The user who runs mu.
    #[default]
    User,
    /// Somebody else. For real this takes root.
    Other,
    /// The superuser. Simulated machine only: for real it takes root, and then mu is root as well.
    Root,
}

/// Permission bits; `"0755"` in a scenario.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mode(pub u32);

impl Default for Mode {
    /// What an executable is installed with.
    fn default() -> Mode {
        Mode(0o755)
    }
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Mode, D::Error> {
        let text = String::deserialize(deserializer)?;
        let octal = (3..=4).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        match u32::from_str_radix(&text, 8) {
            Ok(bits) if octal => Ok(Mode(bits)),
            _ => Err(de::Error::custom(format!(
                "`{text}` is no file mode: three or four octal digits, as \"0755\""
            ))),
        }
    }
}

/// The file that is installed for a plugin: `file = { … }`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginFile {
    /// What it is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: Kind,
    /// Its permission bits, 0755 when left out. A later `chmod` changes nothing but these.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: Mode,
    /// Who owns it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub owner: Owner,
    /// Its name in the directory; `mu-plugin-<name>` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basename: Option<String>,
    /// With `kind = "busy"`: the writer closes it this many milliseconds after the step's start; never when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ms: Option<u64>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl PluginFile {
    /// Whether it is what a sound installation leaves.
    pub fn is_ordinary(&self) -> bool {
        *self == PluginFile::default()
    }

    /// Its name in the directory, for a plugin of this name.
    pub fn basename(&self, plugin: &str) -> String {
        self.basename.clone().unwrap_or_else(|| format!("mu-plugin-{plugin}"))
    }

    /// Refuses what no installation could be: `Err` names the key and the reason.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.busy_ms.is_some() && self.kind != Kind::Busy {
            return Err(("busy_ms", "only a file of `kind = \"busy\"` is being written".to_owned()));
        }
        match &self.basename {
            Some(name) if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) => {
                Err(("basename", format!("`{}` is no file name", name.escape_debug())))
            }
            _ => Ok(()),
        }
    }
}
