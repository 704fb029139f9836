//! Finding programs on the disk and starting them.

use std::path::Path;

use mu_core::os::Exec;
use nix::errno::Errno;

use super::*;
use crate::disk::Node;
use crate::trace::What;

const USER: u32 = 1000;

fn program(name: &str) -> Node {
    Node::Program { name: name.to_owned(), busy: false, interpreter_missing: false }
}

fn exec(argv: &[&str]) -> Exec {
    Exec { argv: argv.iter().map(Into::into).collect(), env: vec![("A".into(), "1".into())] }
}

/// What comes of executing `/bin/x` when `node` is there.
fn outcome(uid: u32, mode: u32, node: Node) -> Result<Exit, Errno> {
    let machine = Machine::new(1);
    machine.disk().put(Path::new("/bin/x"), uid, mode, node);
    machine.install("x", |_| async { Exit::Status(5) });
    match machine.start(&Command::new(["/bin/x"])) {
        Ok(started) => Ok(machine.run_until_exit(&started).unwrap()),
        Err(error) => Err(Errno::from_raw(error.raw_os_error().unwrap())),
    }
}

#[test]
fn a_program_runs() {
    assert_eq!(outcome(USER, 0o755, program("x")), Ok(Exit::Status(5)));
}

#[test]
fn what_cannot_be_executed_fails_with_the_error_of_execve() {
    assert_eq!(outcome(USER, 0o755, Node::Directory), Err(Errno::EACCES));
    assert_eq!(outcome(USER, 0o755, Node::Fifo), Err(Errno::EACCES));
    assert_eq!(outcome(USER, 0o755, Node::Socket), Err(Errno::EACCES));
    assert_eq!(outcome(USER, 0o755, Node::Device), Err(Errno::EACCES));
    assert_eq!(outcome(USER, 0o755, Node::Bytes), Err(Errno::ENOEXEC));
    assert_eq!(outcome(USER, 0o755, Node::Link("/nowhere".into())), Err(Errno::ENOENT));
    let busy = Node::Program { name: "x".to_owned(), busy: true, interpreter_missing: false };
    assert_eq!(outcome(USER, 0o755, busy), Err(Errno::ETXTBSY));
    let headless = Node::Program { name: "x".to_owned(), busy: false, interpreter_missing: true };
    assert_eq!(outcome(USER, 0o755, headless), Err(Errno::ENOENT));
    assert_eq!(outcome(USER, 0o755, program("unknown")), Err(Errno::ENOEXEC));
}

#[test]
fn the_permission_to_execute_is_that_of_the_owner_or_of_the_others() {
    assert_eq!(outcome(USER, 0o644, program("x")), Err(Errno::EACCES));
    assert_eq!(outcome(USER, 0o100, program("x")), Ok(Exit::Status(5)));
    assert_eq!(outcome(USER, 0o011, program("x")), Err(Errno::EACCES));
    assert_eq!(outcome(7, 0o744, program("x")), Err(Errno::EACCES));
    assert_eq!(outcome(7, 0o001, program("x")), Ok(Exit::Status(5)));
}

#[test]
fn a_missing_program_leaves_no_process_and_an_event() {
    let machine = run(|sys| async move {
        let exec = exec(&["/bin/none"]);
        let spawn =
            Spawn { exec: &exec, group: Group::Own, fds: &[(STDIN, Give::Pipe)], cwd: None, defaults: &[] };
        assert_eq!(sys.spawn(&spawn).unwrap_err().raw_os_error(), Some(Errno::ENOENT as i32));
        assert_eq!(sys.pipe().unwrap(), (Fd(3), Fd(4)), "no descriptor is left over");
        OK
    });
    let failed = find(&machine, |event| match &event.what {
        What::ExecFailed { program, errno } => Some((event.pid, program.clone(), *errno)),
        _ => None,
    });
    assert_eq!(failed, [(Pid(100), "/bin/none".into(), Errno::ENOENT as i32)]);
}

#[test]
fn a_link_is_followed_and_a_relative_path_starts_at_the_working_directory() {
    let machine = Machine::new(1);
    machine.disk().put(Path::new("/opt/x"), USER, 0o755, program("x"));
    machine.disk().put(Path::new("/home/link"), USER, 0o777, Node::Link("/opt/x".into()));
    machine.install("x", |sys| async move {
        assert_eq!(sys.cwd(), Path::new("/home"));
        OK
    });
    let started = machine.start(&Command { cwd: "/home".into(), ..Command::new(["./link"]) }).unwrap();
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
}

#[test]
fn a_program_gets_its_arguments_variables_and_the_directory_of_its_parent() {
    let machine = Machine::new(1);
    machine.disk().put(Path::new("/opt/x"), USER, 0o755, program("x"));
    machine.install("x", |sys| async move {
        assert_eq!(*sys.argv(), ["/opt/x", "-v"]);
        assert_eq!(sys.vars(), [("A".into(), "1".into())]);
        assert_eq!(sys.var("A"), Some("1".into()));
        assert_eq!(sys.cwd(), Path::new("/work"));
        assert_eq!((sys.uid(), sys.pgid(), sys.ppid()), (USER, sys.pid(), Pid(100)));
        sys.write_all(STDERR, b"fine").await.unwrap();
        OK
    });
    let command = Command { cwd: "/work".into(), ..command("main") };
    let program = |sys: Sys| async move {
        let exec = exec(&["/opt/x", "-v"]);
        let fds = [(STDERR, Give::Pipe)];
        let child = sys
            .spawn(&Spawn { exec: &exec, group: Group::Own, fds: &fds, cwd: None, defaults: &[] })
            .unwrap();
        let mut buf = [0; 16];
        let count = sys.read(child.pipes[0], &mut buf).await.unwrap();
        assert_eq!(&buf[..count], b"fine");
        sys.wait_for(child.pid).await.unwrap()
    };
    let started = machine.start_fn(&command, program).unwrap();
    assert_eq!(machine.run_until_exit(&started), Ok(OK));
}

#[test]
fn starts_of_the_same_program_are_counted() {
    let machine = Machine::new(1);
    machine.disk().put(Path::new("/opt/x"), USER, 0o755, program("x"));
    machine.install("x", |sys| async move { Exit::Status(sys.nth() as i32) });
    for nth in 0..3 {
        let started = machine.start(&Command::new(["/opt/x"])).unwrap();
        assert_eq!(machine.run_until_exit(&started), Ok(Exit::Status(nth)));
    }
}
