//! The shared bodies on the real machine, with `/bin/sh` as every program.

mod conformance;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use conformance::{Program, World};
use mu::RealOs;
use mu_core::os::Exec;

struct Real {
    os: RealOs,
    dir: tempfile::TempDir,
    /// Holds the busy file open for writing.
    _writer: File,
}

impl Real {
    fn new() -> Real {
        let dir = tempfile::tempdir().unwrap();
        // Another process makes the files: a descriptor that this one holds open for writing could, in the thread of
        // another test, be inherited across a fork, and the files would be busy for a moment.
        let script =
            "printf '#!/no/such/interpreter\n' > orphan; chmod +x orphan; : > plain; : > busy; chmod +x busy";
        #[allow(clippy::disallowed_methods)] // a fixture, not what is tested
        let made =
            std::process::Command::new("/bin/sh").args(["-c", script]).current_dir(&dir).status().unwrap();
        assert!(made.success());
        let writer = OpenOptions::new().write(true).open(dir.path().join("busy")).unwrap();
        Real { os: RealOs::new().unwrap(), dir, _writer: writer }
    }

    fn file(&self, name: &str) -> Exec {
        Exec { argv: vec![self.dir.path().join(name).into()], env: Vec::new() }
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        // A body that failed half-way has left its children.
        self.os.kill_started_groups();
    }
}

fn sh(script: &str) -> Exec {
    let argv = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
    Exec { argv, env: vec![("PATH".into(), "/usr/bin:/bin".into())] }
}

impl World for Real {
    type Os = RealOs;

    fn os(&self) -> &RealOs {
        &self.os
    }

    fn program(&self, program: Program) -> Exec {
        match program {
            Program::ExitWith(status) => sh(&format!("exit {status}")),
            Program::DieOf(signal) => sh(&format!("kill -{signal} $$")),
            Program::Cat => sh("exec cat"),
            Program::Idle => sh("echo ready; exec sleep 100000"),
            Program::Stopped => sh("echo ready; kill -STOP $$"),
            Program::DeafAndIdle => sh("exec <&-; echo ready; exec sleep 100000"),
            Program::LeaveHelper => sh("sleep 100000 & echo ready"),
            Program::LeaveHelperUntilEof => sh("exec 3<&0; cat <&3 >/dev/null & echo ready"),
            Program::Flood(count) => sh(&format!("head -c {count} /dev/zero | tr '\\0' x")),
            Program::BothStreams => sh("echo out; echo err >&2"),
            Program::PrintEnv => Exec { argv: vec![PathBuf::from("/usr/bin/env").into()], env: Vec::new() },
            Program::Missing => self.file("missing"),
            Program::NotExecutable => self.file("plain"),
            Program::BadInterpreter => self.file("orphan"),
            Program::Busy => self.file("busy"),
        }
    }
}

fn on_the_real_machine(body: impl for<'w> FnOnce(&'w Real) -> Pin<Box<dyn Future<Output = ()> + 'w>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let world = Real::new();
        // Only so that a lost wake-up fails instead of hanging.
        tokio::time::timeout(Duration::from_secs(60), body(&world)).await.expect("nothing woke the test");
    });
}

macro_rules! hold_the_real_machine_to {
    ($($body:ident),* $(,)?) => {
        $(#[test]
        fn $body() {
            on_the_real_machine(|world| Box::pin(conformance::$body(world)));
        })*
    };
}

hold_the_real_machine_to!(
    the_exit_of_the_leader_is_told_again_and_again_until_it_is_reaped,
    a_death_by_signal_is_told_from_a_status,
    a_dead_leader_does_not_keep_its_group_from_being_empty,
    a_living_leader_is_a_member_of_its_group,
    a_helper_keeps_the_group_from_being_empty_after_the_leader_has_gone,
    a_helper_that_ends_by_itself_empties_the_group,
    a_helper_holds_stdout_open_until_the_group_is_killed,
    the_killed_leader_reports_signal_9,
    a_stopped_process_lives_and_can_be_killed,
    killing_an_empty_group_is_no_error,
    closing_stdin_is_the_end_of_the_stream_for_the_child,
    a_sibling_does_not_hold_the_stdin_of_another_child,
    more_than_a_pipe_holds_passes_when_both_ends_are_served,
    a_full_pipe_takes_a_part_and_then_nothing,
    what_the_leader_wrote_is_still_there_after_its_exit,
    writing_to_a_stdin_that_the_child_closed_is_a_broken_pipe,
    a_write_that_waits_for_room_ends_when_the_reader_dies,
    the_two_output_streams_are_two_pipes,
    the_child_gets_exactly_the_variables_given,
    a_missing_program_is_enoent,
    a_program_without_the_permission_is_eacces,
    a_missing_interpreter_is_enoent,
    a_program_that_is_being_written_is_etxtbsy,
    a_timer_is_ready_when_its_time_has_come_and_not_before,
    a_timer_in_the_past_is_ready_at_once,
    a_timer_in_the_future_is_pending,
    a_timer_wakes_a_task_that_waits_for_a_child_as_well,
    random_bytes_are_not_zeros,
);
