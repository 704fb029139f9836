//! mu as a person starts it: on a terminal, which is its controlling one.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;

use mu_sim::fake::{Act, Fault};
use nix::libc::{self, O_CLOEXEC, O_NOCTTY, O_NONBLOCK, O_RDWR, TIOCGPTPEER, TIOCSPTLCK};
use nix::sys::signal::Signal;

use crate::ends::was_asked_to_stop;
use crate::stage::{GRACE, Stage, Watch};

/// A terminal, from the side of the person.
pub(crate) struct Terminal {
    master: File,
    slave: OwnedFd,
}

impl Terminal {
    fn new() -> Terminal {
        let flags = O_NOCTTY | O_NONBLOCK;
        let master = File::options().read(true).write(true).custom_flags(flags).open("/dev/ptmx").unwrap();
        let unlocked: libc::c_int = 0;
        // SAFETY: the first reads an integer that lives; the second answers with a new descriptor, or with -1.
        let slave = unsafe {
            assert_eq!(libc::ioctl(master.as_raw_fd(), TIOCSPTLCK, &unlocked), 0);
            libc::ioctl(master.as_raw_fd(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)
        };
        assert!(slave >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: it is open and nobody else's.
        Terminal { master, slave: unsafe { OwnedFd::from_raw_fd(slave) } }
    }

    /// The side of the programs.
    pub(crate) fn slave(&self) -> OwnedFd {
        self.slave.try_clone().unwrap()
    }

    fn types(&mut self, keys: &[u8]) {
        self.master.write_all(keys).unwrap();
    }

    /// What is on the screen and was not looked at before.
    fn screen(&mut self) -> String {
        let mut bytes = Vec::new();
        // It ends with an error: nothing more for now.
        let _ = self.master.read_to_end(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }
}

fn silent(start: u32) -> Fault {
    Fault { start: Some(start), ..Fault::new("", Act::NoReply) }
}

/// PRC-02, PRC-09, PRC-12
#[test]
fn the_ctrl_c_of_a_terminal_reaches_mu_and_none_of_its_plugins() {
    let stage = Stage::new();
    let names = ["box", "cart"];
    for name in names {
        stage.register(name, [silent(2)]);
    }
    let mut terminal = Terminal::new();
    let running = stage.mu(["plugin", "check"]).on(&terminal).start();
    for name in names {
        stage.until_asked(name, 2);
    }
    terminal.types(b"\x03");
    let ended = running.end();
    assert_eq!(ended.status.signal(), Some(Signal::SIGINT as i32), "{ended:?}");
    for name in names {
        let events = stage.events(name, 2);
        assert!(was_asked_to_stop(&events), "{name}: {events:?}");
    }
    let screen = terminal.screen();
    assert!(screen.contains("SIGINT") && !screen.contains('{'), "{screen:?}");
    stage.assert_nothing_is_left();
}

/// PRC-09, PRC-12: nobody can be told any more.
#[test]
fn a_terminal_that_is_gone_ends_mu_and_its_plugins_in_order() {
    let stage = Stage::new();
    let place = stage.install("box", [silent(1)]);
    let terminal = Terminal::new();
    let running = stage.mu(["plugin", "add", "box", "--", &place]).on(&terminal).start();
    let plugin = Watch::new(stage.until_asked("box", 1));
    drop(terminal);
    let ended = running.end();
    assert_eq!(ended.status.signal(), Some(Signal::SIGHUP as i32), "{ended:?}");
    assert!(ended.took < GRACE, "{ended:?}");
    assert!(plugin.ends_within(std::time::Duration::ZERO));
    let events = stage.events("box", 1);
    assert!(was_asked_to_stop(&events), "{events:?}");
    stage.assert_nothing_is_left();
}

/// OUT-03: a person gets text, on a terminal as well.
#[test]
fn a_plugin_is_registered_from_a_terminal() {
    let stage = Stage::new();
    let place = stage.install("box", []);
    let mut terminal = Terminal::new();
    stage.mu(["plugin", "add", "box", "--", &place]).on(&terminal).end().succeeds();
    let screen = terminal.screen();
    assert!(screen.contains("box") && !screen.contains('{'), "{screen:?}");
    assert!(was_asked_to_stop(&stage.events("box", 1)));
    stage.assert_nothing_is_left();
}
