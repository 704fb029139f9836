//! What a program is started with, and why it is not.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::*;
use nix::libc::{E2BIG, EACCES, EINVAL, ELOOP, ENOENT, ENOEXEC, ENOTDIR, ETXTBSY};

/// PRC-05
pub(crate) async fn the_child_gets_exactly_the_variables_given<W: World>(world: &W) {
    let mut exec = world.program(Program::PrintEnv);
    exec.env = [("B", "two words"), ("A", ""), ("EQUALS", "x=y")].map(|(k, v)| (k.into(), v.into())).to_vec();
    let mut child = world.os().spawn(&exec).unwrap();
    let printed = String::from_utf8(read_all(&mut child, ChildPipe::Stdout).await).unwrap();
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["A=", "B=two words", "EQUALS=x=y"]);
    finish(child).await;
}

/// REG-04
pub(crate) async fn the_child_gets_its_arguments_byte_for_byte<W: World>(world: &W) {
    let mut exec = world.program(Program::PrintArgs);
    let arguments = [&b"--x"[..], b"", b"two words", b"a\nb", b"\xff*?$(id)", "ä".as_bytes()];
    exec.argv.extend(arguments.map(|bytes| OsString::from_vec(bytes.to_vec())));
    let mut child = world.os().spawn(&exec).unwrap();
    let expected: Vec<u8> = arguments.iter().flat_map(|bytes| [bytes, &b"\0"[..]].concat()).collect();
    assert_eq!(read_all(&mut child, ChildPipe::Stdout).await, expected);
    finish(child).await;
}

///
pub(crate) async fn the_child_runs_in_the_working_directory_of_mu<W: World>(world: &W) {
    let mut child = start(world, Program::PrintCwd);
    let printed = String::from_utf8(read_all(&mut child, ChildPipe::Stdout).await).unwrap();
    assert_eq!(PathBuf::from(printed.trim_end()), world.os().env().cwd);
    finish(child).await;
}

/// PRC-15: with a sibling whose pipes are open in mu.
pub(crate) async fn the_child_has_three_descriptors_and_no_other<W: World>(world: &W) {
    let mut sibling = start(world, Program::Cat);
    echo(&mut sibling).await;
    let mut child = start(world, Program::PrintDescriptors);
    assert_eq!(read_all(&mut child, ChildPipe::Stdout).await, b"0\n1\n2\n");
    finish(child).await;
    finish(sibling).await;
}

/// REG-06
pub(crate) async fn a_program_is_found_through_links<W: World>(world: &W) {
    let real = world.program(Program::ExitWith(4));
    let link = world.link_to(real.argv[0].as_ref());
    let exec = Exec { argv: [vec![link.into()], real.argv[1..].to_vec()].concat(), env: real.env };
    let mut child = world.os().spawn(&exec).unwrap();
    assert_eq!(exited(&mut child).await, Exit::Status(4));
    finish(child).await;
}

fn refusal_at<W: World>(world: &W, place: Place) -> i32 {
    refusal(world, &world.program(Program::At(place)))
}

pub(crate) async fn a_missing_program_is_enoent<W: World>(world: &W) {
    assert_eq!(refusal_at(world, Place::Missing), ENOENT);
    assert_eq!(refusal_at(world, Place::UnderMissing), ENOENT);
}

pub(crate) async fn a_link_that_leads_nowhere_is_enoent<W: World>(world: &W) {
    assert_eq!(refusal_at(world, Place::Dangling), ENOENT);
}

pub(crate) async fn a_circle_of_links_is_eloop<W: World>(world: &W) {
    assert_eq!(refusal_at(world, Place::Circle), ELOOP);
}

pub(crate) async fn a_file_in_the_way_is_enotdir<W: World>(world: &W) {
    assert_eq!(refusal_at(world, Place::UnderPlain), ENOTDIR);
}

pub(crate) async fn a_program_without_the_permission_is_eacces<W: World>(world: &W) {
    assert_eq!(refusal_at(world, Place::Plain), EACCES);
}

pub(crate) async fn a_program_behind_a_closed_directory_is_eacces<W: World>(world: &W) {
    assert_eq!(refusal_at(world, Place::UnderClosed), EACCES);
}

/// REG-05
pub(crate) async fn what_is_no_regular_file_is_eacces<W: World>(world: &W) {
    for place in [Place::Directory, Place::LinkToDirectory, Place::Fifo, Place::Socket, Place::Device] {
        assert_eq!(refusal_at(world, place), EACCES, "{place:?}");
    }
}

pub(crate) async fn a_missing_interpreter_is_enoent<W: World>(world: &W) {
    assert_eq!(refusal_at(world, Place::BadInterpreter), ENOENT);
}

pub(crate) async fn a_file_of_no_known_format_is_enoexec<W: World>(world: &W) {
    assert_eq!(refusal_at(world, Place::Executable), ENOEXEC);
    assert_eq!(refusal_at(world, Place::Link), ENOEXEC);
}

pub(crate) async fn a_program_that_is_being_written_is_etxtbsy<W: World>(world: &W) {
    assert_eq!(refusal_at(world, Place::Busy), ETXTBSY);
}

/// what a name without a slash means is the shell's business.
pub(crate) async fn a_relative_program_is_einval<W: World>(world: &W) {
    for name in ["program", "./program", ""] {
        assert_eq!(refusal(world, &Exec { argv: vec![name.into()], env: Vec::new() }), EINVAL);
    }
    assert_eq!(
        world.os().spawn(&Exec { argv: Vec::new(), env: Vec::new() }).err().unwrap().raw_os_error(),
        Some(EINVAL)
    );
}

pub(crate) async fn a_nul_byte_in_an_argument_is_einval<W: World>(world: &W) {
    let mut exec = world.program(Program::PrintArgs);
    exec.argv.push("a\0b".into());
    assert_eq!(refusal(world, &exec), EINVAL);
    let mut exec = world.program(Program::PrintEnv);
    exec.env.push(("A".into(), "a\0b".into()));
    assert_eq!(refusal(world, &exec), EINVAL);
}

/// Its NUL counts.
pub(crate) async fn an_argument_of_128_kib_is_e2big<W: World>(world: &W) {
    let mut exec = world.program(Program::PrintArgs);
    exec.argv.push("x".repeat(128 * 1024 - 1).into());
    let mut child = world.os().spawn(&exec).unwrap();
    assert_eq!(read_all(&mut child, ChildPipe::Stdout).await.len(), 128 * 1024);
    finish(child).await;
    exec.argv.push("x".repeat(128 * 1024).into());
    assert_eq!(refusal(world, &exec), E2BIG);
    let mut exec = world.program(Program::PrintEnv);
    exec.env.push(("A".into(), "x".repeat(128 * 1024 - 2).into()));
    assert_eq!(refusal(world, &exec), E2BIG);
}

/// HSK-09
pub(crate) async fn a_refused_start_leaves_no_child_and_no_descriptor<W: World>(world: &W) {
    let before = world.descriptors();
    for place in [Place::Missing, Place::Plain, Place::BadInterpreter, Place::Busy, Place::Directory] {
        refusal_at(world, place);
    }
    assert!(!world.has_children());
    assert_eq!(world.descriptors(), before);
}
