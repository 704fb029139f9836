//! The repository here that a fetch goes into, and its FETCH_HEAD: found, deleted and read without running git.

use std::io;
use std::path::{Component, Path, PathBuf};

use mu_protocol::messages::values::{AbsolutePath, CommitId};

use crate::os::{FileKind, Os};

/// How much of a `.git` file or a FETCH_HEAD is read: more than their first line has.
const FIRST_LINE: usize = 8192;

/// A git repository on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    root: AbsolutePath,
    fetch_head: PathBuf,
}

/// Why there is no repository, or its FETCH_HEAD cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryError {
    /// No directory has that path.
    #[error("{} is no directory; name the repository with --repo", .0.display())]
    NoDirectory(PathBuf),
    /// Neither it nor any directory above it is a repository.
    #[error("neither {} nor a directory above it is a git repository; name one with --repo", .0.display())]
    NotFound(PathBuf),
    /// Its path cannot be told to a plugin.
    #[error("the path of the repository {} is not UTF-8; rename it", .0.display())]
    NotUtf8(PathBuf),
    /// A `.git` file that does not say where the repository is.
    #[error("{} does not say `gitdir: ` and a directory; run git there to see what it needs", .0.display())]
    BadGitFile(PathBuf),
    /// A file of it cannot be looked at, read or deleted.
    #[error("{} cannot be used: {reason}; check its owner and mode", .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

impl Repository {
    /// The repository that a directory belongs to: its own, or that of the nearest directory above it. A relative path
    /// counts from the working directory; `..` takes back one word of the path.
    ///
    /// # Errors
    /// See [`RepositoryError`].
    pub fn find<O: Os>(os: &O, directory: &Path) -> Result<Repository, RepositoryError> {
        let directory = plain(&os.env().cwd.join(directory));
        if kind(os, &directory)? != Some(FileKind::Directory) {
            return Err(RepositoryError::NoDirectory(directory));
        }
        for root in directory.ancestors() {
            if let Some(git) = git_directory(os, root)? {
                let text = root.to_str().and_then(|text| AbsolutePath::new(text).ok());
                let text = text.ok_or_else(|| RepositoryError::NotUtf8(root.to_owned()))?;
                return Ok(Repository { root: text, fetch_head: git.join("FETCH_HEAD") });
            }
        }
        Err(RepositoryError::NotFound(directory))
    }

    /// Its work tree, or itself when it is bare.
    pub fn root(&self) -> &AbsolutePath {
        &self.root
    }

    /// Deletes FETCH_HEAD, so that an old one is never taken for what a fetch brought (LINK-21).
    ///
    /// # Errors
    /// It is there and stays there.
    pub fn forget_fetch_head<O: Os>(&self, os: &O) -> Result<(), RepositoryError> {
        match os.remove_file(&self.fetch_head) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(&self.fetch_head, &error)),
            _ => Ok(()),
        }
    }

    /// The commit that FETCH_HEAD names. `None` when there is no such file, or it names no commit.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn fetch_head<O: Os>(&self, os: &O) -> Result<Option<CommitId>, RepositoryError> {
        let bytes = match os.read_file(&self.fetch_head, FIRST_LINE) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&self.fetch_head, &error)),
        };
        let digits = bytes.into_iter().take_while(u8::is_ascii_hexdigit).map(char::from).collect::<String>();
        Ok(CommitId::new(digits).ok())
    }
}

/// Where the files of a repository are whose root may be `root`: a directory `.git`, the directory that a file `.git`
/// names (a linked work tree, a submodule), or the root itself (a bare one).
fn git_directory<O: Os>(os: &O, root: &Path) -> Result<Option<PathBuf>, RepositoryError> {
    let dot_git = root.join(".git");
    match kind(os, &dot_git)? {
        Some(FileKind::Directory) => return Ok(Some(dot_git)),
        Some(FileKind::Regular) => {
            let bytes = os.read_file(&dot_git, FIRST_LINE).map_err(|error| unusable(&dot_git, &error))?;
            let text = String::from_utf8(bytes).ok();
            let path = text.as_deref().and_then(|text| text.lines().next()?.strip_prefix("gitdir: "));
            let git = path.map(|path| root.join(path));
            return match git {
                Some(git) if kind(os, &git)? == Some(FileKind::Directory) => Ok(Some(git)),
                _ => Err(RepositoryError::BadGitFile(dot_git)),
            };
        }
        _ => {}
    }
    let has = |name: &str, wanted| Ok(kind(os, &root.join(name))? == Some(wanted));
    let bare = has("HEAD", FileKind::Regular)?
        && has("objects", FileKind::Directory)?
        && has("refs", FileKind::Directory)?;
    Ok(bare.then(|| root.to_owned()))
}

/// The kind of a file; `None` when there is none.
fn kind<O: Os>(os: &O, path: &Path) -> Result<Option<FileKind>, RepositoryError> {
    match os.facts(path) {
        Ok(facts) => Ok(Some(facts.kind)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(unusable(path, &error)),
    }
}

fn unusable(path: &Path, error: &io::Error) -> RepositoryError {
    RepositoryError::Unusable { path: path.to_owned(), reason: error.to_string() }
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
