//! A real backend: the process `mu-fake-backend`, as whoever set it up sees it.

// A real process, and a real clock to wait for its start.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Cannot;
use crate::backend::{Books, Control, Request};

/// It may take so long to come up or to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The socket at which the backend of this directory serves plugins.
pub fn socket(dir: &Path) -> PathBuf {
    dir.join("plugins.sock")
}

/// The socket at which it takes orders.
pub fn control_socket(dir: &Path) -> PathBuf {
    dir.join("control.sock")
}

/// The file in which it keeps its books, so that they can be read when it is gone.
pub fn books_file(dir: &Path) -> PathBuf {
    dir.join("books.json")
}

/// A backend that lives until this is dropped, and no longer than this process.
pub struct RealBackend {
    child: Child,
    dir: PathBuf,
}

impl RealBackend {
    /// Starts one over a directory of its own, which is made.
    ///
    /// # Errors
    /// It does not come up.
    pub fn start(executable: &Path, dir: &Path) -> Result<RealBackend, Cannot> {
        let failed = |error: io::Error| Cannot(format!("{}: {error}", executable.display()));
        std::fs::create_dir_all(dir).map_err(failed)?;
        let child = Command::new(executable)
            .arg(dir)
            .env_clear()
            // It ends with this.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let mut backend = RealBackend { child, dir: dir.to_owned() };
        let until = Instant::now() + PATIENCE;
        // The socket is there before anybody listens at it.
        while control(dir, &Control::Books).is_err() {
            let ended = backend.child.try_wait().map_err(failed)?;
            if ended.is_some() || Instant::now() > until {
                return Err(Cannot(format!("{} does not come up: {ended:?}", executable.display())));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(backend)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order; the answer is what stands in the books then.
    ///
    /// # Errors
    /// It does not answer.
    pub fn control(&self, order: &Control) -> Result<Books, Cannot> {
        control(&self.dir, order).map_err(|error| Cannot(format!("the backend: {error}")))
    }
}

impl Drop for RealBackend {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Gives an order to the backend of this directory; the answer is what stands in the books then.
///
/// # Errors
/// Nobody is there, or what comes is no answer.
pub fn control(dir: &Path, order: &Control) -> io::Result<Books> {
    let mut stream = UnixStream::connect(control_socket(dir))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&Request::Control(order.clone()).line())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}
