//! Tests of what belongs to a whole process: its signals, descriptors, mask. Each runs its body in a process of its
//! own, which is this test executable again, told to run that one test.

#![allow(clippy::disallowed_methods)] // starts processes to test in, and tells by a variable that it is one
#![allow(dead_code)] // no test file needs all of it

use std::ffi::OsString;
use std::future::Future;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::Duration;

use mu::RealOs;
use mu_core::os::Exec;
use nix::sys::signal::{SigHandler, Signal, signal};

const INSIDE: &str = "MU_TEST_IN_OWN_PROCESS";
/// The status of a process whose body came to its end; the harness ends with 0 even when it ran no test at all.
const PASSED: i32 = 77;

/// Runs `body` alone in a new process, after the shell has run `setup` in it. What the new process left is given to
/// `judge`, in the first process.
pub(crate) fn in_own_process<B: FnOnce()>(setup: &str, body: B, judge: impl FnOnce(Output)) {
    if std::env::var_os(INSIDE).is_some() {
        // What blocks the thread cannot be timed out from within: the default action of SIGALRM ends the process.
        nix::unistd::alarm::set(60);
        body();
        std::process::exit(PASSED);
    }
    // `file::name_of_the_test::{{closure}}`: the harness knows the test by what stands in the middle.
    let (_, path) = std::any::type_name::<B>().split_once("::").unwrap();
    let name = path.strip_suffix("::{{closure}}").unwrap();
    let script = format!("{setup}\nexec \"$0\" \"$@\"");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(INSIDE, "1").process_group(0);
    // Whatever the test's own starter ignores (`nohup`, the `&` of a script) would stay ignored across the exec.
    let default_signals = || {
        for number in [Signal::SIGINT, Signal::SIGHUP] {
            // SAFETY: no function is installed.
            unsafe { signal(number, SigHandler::SigDfl) }?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only the actions of signals are set, which is allowed there.
    unsafe { command.pre_exec(default_signals) };
    judge(command.output().unwrap());
}

/// As [`in_own_process`], for a body that only has to pass.
pub(crate) fn passes_in_own_process<B: FnOnce()>(setup: &str, body: B) {
    in_own_process(setup, body, |output| {
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert_eq!(output.status.code(), Some(PASSED), "{}\n{}", said[0], said[1]);
    });
}

/// Runs an async body on the runtime that mu uses, on the real machine. What it started and left is killed.
pub(crate) fn on_real_os<F: Future<Output = ()>>(body: impl FnOnce(RealOs) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    runtime.block_on(async {
        let os = RealOs::new().unwrap();
        let _leftovers = KillAtEnd(os.clone());
        // Only so that a lost wake-up fails instead of hanging.
        tokio::time::timeout(Duration::from_secs(60), body(os)).await.expect("nothing woke the test");
    });
}

struct KillAtEnd(RealOs);

impl Drop for KillAtEnd {
    fn drop(&mut self) {
        self.0.kill_started_groups();
    }
}

/// A shell script as a program.
pub(crate) fn sh(script: &str) -> Exec {
    let argv = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
    Exec { argv, env: vec![("PATH".into(), "/usr/bin:/bin".into())] }
}
