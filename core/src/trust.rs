//! The trust checks on a plugin's file: run at `add` and before every start (REG-08). Nothing is opened or executed.
//!
//! In: the registered name and the first word of its command line. Out: nothing, or one typed refusal (exit 4). The
//! checks look at the file that links lead to; they do not defend against a writable directory above it or against a
//! swap between check and start (A-18).

use std::io;
use std::path::Path;

use crate::cli::text::path as shown;
use crate::os::{FileKind, Os};

/// Why a file is not executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// REG-04: the path depends on the working directory.
    #[error("path {} is not absolute; give the whole path of the executable", shown(.path))]
    NotAbsolute {
        /// The path as registered.
        path: String,
    },
    /// REG-03: the last part of the path is another name.
    #[error("{} is not named mu-plugin-{name}; rename it, or register it under its own name", shown(.path))]
    WrongName {
        /// The path as registered.
        path: String,
        /// The plugin's name.
        name: String,
    },
    /// REG-05: there is nothing, or a link that leads nowhere.
    #[error("{} does not exist, or is a link that leads nowhere; install the plugin there", shown(.path))]
    Missing {
        /// The path as registered.
        path: String,
    },
    /// The file could not be looked at.
    #[error("{} cannot be examined: {reason}; check the links and directories on the way to it", shown(.path))]
    Inaccessible {
        /// The path as registered.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// REG-05: not a regular file.
    #[error("{} is a {}, not a regular file; register the executable itself", shown(.path), kind_name(*.kind))]
    NotRegular {
        /// The path as registered.
        path: String,
        /// What it is.
        kind: FileKind,
    },
    /// REG-06: the file belongs to somebody else.
    #[error(
        "{} belongs to user {owner}, and mu runs as user {euid}; install a copy of your own (chown {euid})",
        shown(.path)
    )]
    OtherOwner {
        /// The path as registered.
        path: String,
        /// The owner's user id.
        owner: u32,
        /// The user id that mu runs as.
        euid: u32,
    },
    /// REG-07: others may change the file.
    #[error("{} has mode {mode:04o}: others may write to it; run chmod go-w on it", shown(.path))]
    Writable {
        /// The path as registered.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
}

fn kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Regular => "regular file",
        FileKind::Directory => "directory",
        FileKind::Fifo => "named pipe",
        FileKind::Socket => "socket",
        FileKind::Device => "device",
    }
}

/// Whether `argv0` may be executed as plugin `name`.
///
/// # Errors
/// The first rule it breaks: REG-04, REG-03, REG-05, REG-06, REG-07 in this order.
pub fn check<O: Os>(os: &O, name: &str, argv0: &str) -> Result<(), Untrusted> {
    let path = || argv0.to_owned();
    if !argv0.starts_with('/') {
        return Err(Untrusted::NotAbsolute { path: path() });
    }
    // The last part as it is written, and not what a link is called that it leads to (A-18).
    let base = argv0.rsplit('/').next().unwrap_or_default();
    if base.strip_prefix("mu-plugin-") != Some(name) {
        return Err(Untrusted::WrongName { path: path(), name: name.to_owned() });
    }
    let facts = os.facts(Path::new(argv0)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Untrusted::Missing { path: path() },
        _ => Untrusted::Inaccessible { path: path(), reason: error.to_string() },
    })?;
    if facts.kind != FileKind::Regular {
        return Err(Untrusted::NotRegular { path: path(), kind: facts.kind });
    }
    let euid = os.env().euid;
    if facts.uid != euid {
        return Err(Untrusted::OtherOwner { path: path(), owner: facts.uid, euid });
    }
    if facts.mode & 0o022 != 0 {
        return Err(Untrusted::Writable { path: path(), mode: facts.mode });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FakeOs, file};

    const PATH: &str = "/opt/mu-plugin-box";

    fn refusal(os: &FakeOs, argv0: &str) -> Untrusted {
        check(os, "box", argv0).unwrap_err()
    }

    #[test]
    fn an_own_regular_file_of_the_right_name_is_trusted() {
        let os = FakeOs::new().with_file(PATH, file(FileKind::Regular, 1000, 0o755));
        assert_eq!(check(&os, "box", PATH), Ok(()));
    }

    /// REG-04
    #[test]
    fn a_relative_path_is_refused_before_anything_is_looked_at() {
        let os = FakeOs::new();
        for path in ["mu-plugin-box", "./mu-plugin-box", "../opt/mu-plugin-box", ""] {
            assert!(matches!(refusal(&os, path), Untrusted::NotAbsolute { .. }), "{path}");
        }
        assert_eq!(os.looked_at(), Vec::<String>::new());
    }

    /// REG-03
    #[test]
    fn another_basename_is_refused() {
        let os = FakeOs::new();
        for path in [
            "/opt/mu-plugin-crate",
            "/opt/box",
            "/mu-plugin-box/",
            "/mu-plugin-box/.",
            "/mu-plugin-box2",
            "/",
        ] {
            assert!(matches!(refusal(&os, path), Untrusted::WrongName { .. }), "{path}");
        }
    }

    /// REG-05
    #[test]
    fn what_is_no_regular_file_is_refused() {
        for kind in [FileKind::Directory, FileKind::Fifo, FileKind::Socket, FileKind::Device] {
            let os = FakeOs::new().with_file(PATH, file(kind, 1000, 0o755));
            assert_eq!(refusal(&os, PATH), Untrusted::NotRegular { path: PATH.into(), kind });
        }
    }

    /// REG-05
    #[test]
    fn a_missing_file_and_a_file_out_of_reach_are_told_apart() {
        let os = FakeOs::new();
        assert_eq!(refusal(&os, PATH), Untrusted::Missing { path: PATH.into() });
        let os = os.with_error(PATH, io::ErrorKind::PermissionDenied);
        assert!(matches!(refusal(&os, PATH), Untrusted::Inaccessible { .. }));
    }

    /// REG-06
    #[test]
    fn a_file_of_another_owner_is_refused_root_included() {
        for uid in [0, 1001] {
            let os = FakeOs::new().with_file(PATH, file(FileKind::Regular, uid, 0o755));
            assert_eq!(
                refusal(&os, PATH),
                Untrusted::OtherOwner { path: PATH.into(), owner: uid, euid: 1000 }
            );
        }
    }

    /// REG-07
    #[test]
    fn a_file_that_group_or_world_may_write_is_refused() {
        for mode in [0o775, 0o757, 0o722, 0o4777] {
            let os = FakeOs::new().with_file(PATH, file(FileKind::Regular, 1000, mode));
            assert_eq!(refusal(&os, PATH), Untrusted::Writable { path: PATH.into(), mode });
        }
    }

    /// REG-04
    #[test]
    fn an_empty_path_can_be_seen() {
        let line = refusal(&FakeOs::new(), "").to_string();
        assert_eq!(line, "path '' is not absolute; give the whole path of the executable");
    }

    #[test]
    fn every_refusal_is_one_harmless_line_that_names_the_path() {
        let path = "/opt/a\nb\u{1b}[31m";
        let all = [
            Untrusted::NotAbsolute { path: path.into() },
            Untrusted::WrongName { path: path.into(), name: "box".into() },
            Untrusted::Missing { path: path.into() },
            Untrusted::Inaccessible { path: path.into(), reason: "no".into() },
            Untrusted::NotRegular { path: path.into(), kind: FileKind::Fifo },
            Untrusted::OtherOwner { path: path.into(), owner: 1, euid: 2 },
            Untrusted::Writable { path: path.into(), mode: 0o777 },
        ];
        for refusal in all {
            let line = refusal.to_string();
            assert!(line.contains(r"/opt/a\nb\u{1b}[31m") && !line.contains(char::is_control), "{line}");
        }
    }
}
