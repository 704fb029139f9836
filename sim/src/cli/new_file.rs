//! A file that is written once all of it is there. Whether it can be is known before the work, and until the end whatever
//! was there before is as it was.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use tempfile::NamedTempFile;

use super::Failure;

/// The mode of a file that anybody makes, before the umask.
const MODE: u32 = 0o666;

/// A place for a file.
pub(crate) struct NewFile {
    path: PathBuf,
    kind: Kind,
}

enum Kind {
    /// Written beside its place, and moved there at the end.
    Regular { written: NamedTempFile, place: PathBuf },
    /// A device or a pipe, which is opened as it is.
    Other(File),
}

impl NewFile {
    /// Looks whether the file can be written; one that is there is left as it is.
    ///
    /// # Errors
    /// One line with the path and the reason.
    pub(crate) fn at(path: &Path) -> Result<NewFile, Failure> {
        let kind = open(path).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
        Ok(NewFile { path: path.to_owned(), kind })
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// One line with the path and the reason.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        let done = match self.kind {
            Kind::Regular { mut written, place } => {
                let filled = written.write_all(text.as_bytes()).and_then(|()| written.flush());
                filled.and_then(|()| written.persist(place).map(drop).map_err(|error| error.error))
            }
            Kind::Other(mut file) => file.write_all(text.as_bytes()),
        };
        done.map_err(|error| Failure::broken(&self.path.display().to_string(), error))
    }
}

fn open(path: &Path) -> io::Result<Kind> {
    // Through links: what they lead to is replaced, and not they.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut builder = tempfile::Builder::new();
    match OpenOptions::new().write(true).open(&place) {
        Ok(file) => match file.metadata()? {
            facts if facts.is_file() => builder.permissions(facts.permissions()),
            _ => return Ok(Kind::Other(file)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            builder.permissions(Permissions::from_mode(MODE))
        }
        Err(error) => return Err(error),
    };
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The library would name the path that it tries, which nobody knows.
    access(folder, AccessFlags::W_OK | AccessFlags::X_OK)?;
    let written = builder.tempfile_in(folder)?;
    Ok(Kind::Regular { written, place })
}
