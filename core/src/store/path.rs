//! Where the database lies.

use std::path::{Path, PathBuf};

use crate::os::Env;
use crate::store::StoreError;

/// `MU_DB_PATH`, else `$XDG_STATE_HOME/mu/mu.db`, else `$HOME/.local/state/mu/mu.db`; a relative path counts from the
/// working directory. An empty variable is an unset one.
///
/// # Errors
/// [`StoreError::NoPath`] when none of the three is set.
pub fn database(env: &Env) -> Result<PathBuf, StoreError> {
    let below = |base: &std::ffi::OsString, rest: &str| Path::new(base).join(rest);
    let path = env
        .var("MU_DB_PATH")
        .map(PathBuf::from)
        .or_else(|| env.var("XDG_STATE_HOME").map(|base| below(base, "mu/mu.db")))
        .or_else(|| env.var("HOME").map(|base| below(base, ".local/state/mu/mu.db")))
        .ok_or(StoreError::NoPath)?;
    // An absolute path also keeps SQLite from reading `:memory:` or `file:…` as more than a name.
    Ok(env.cwd.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::Pid;

    fn place(vars: &[(&str, &str)]) -> Option<String> {
        let env = Env {
            argv: Vec::new(),
            vars: vars.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: "/work dir".into(),
            euid: 1000,
            stdout_is_terminal: false,
            pid: Pid(1),
        };
        database(&env).ok().map(|path| path.to_str().unwrap().to_owned())
    }

    #[test]
    fn the_most_specific_variable_wins_and_an_empty_one_does_not_count() {
        let home = ("HOME", "/home/ann");
        let state = ("XDG_STATE_HOME", "/state");
        assert_eq!(place(&[home, state, ("MU_DB_PATH", "/x/y.db")]).unwrap(), "/x/y.db");
        assert_eq!(place(&[home, state, ("MU_DB_PATH", "")]).unwrap(), "/state/mu/mu.db");
        assert_eq!(place(&[home, ("XDG_STATE_HOME", "")]).unwrap(), "/home/ann/.local/state/mu/mu.db");
        assert_eq!(place(&[("HOME", "")]), None);
    }

    #[test]
    fn a_relative_path_counts_from_the_working_directory_and_is_never_a_uri() {
        assert_eq!(place(&[("MU_DB_PATH", "a/b.db")]).unwrap(), "/work dir/a/b.db");
        assert_eq!(place(&[("MU_DB_PATH", ":memory:")]).unwrap(), "/work dir/:memory:");
        assert_eq!(place(&[("MU_DB_PATH", "file:x?mode=memory")]).unwrap(), "/work dir/file:x?mode=memory");
    }
}
