//! What every operating system under the core must do: one body per fact, generic over the world it runs in.
//!
//! `tests/os_conformance.rs` runs every body on the real machine, `tests/sim_conformance.rs` every one of them on the
//! simulated machine. In: a [`World`], as the one process of it that is mu, of an ordinary user. Out: nothing; a body
//! panics where the world is not as it says.
//!
//! `leader` exits, zombies, reaping · `groups` who keeps a group · `identity` which process a pid means · `pipes` bytes and ends of streams · `exec` what a
//! program is started with, and refusals · `signals` to mu, to children, stop and continue · `files` facts, directories,
//! databases · `machine` clocks, timers, randomness, mu's own output.

use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::task::Poll;

use mu_core::os::{Child, ChildPipe, Exec, Exit, Os, Pid};

pub(crate) mod exec;
pub(crate) mod files;
pub(crate) mod groups;
pub(crate) mod identity;
pub(crate) mod leader;
pub(crate) mod machine;
pub(crate) mod pipes;
pub(crate) mod signals;

/// A machine with programs and files, seen from within the process that is mu.
pub(crate) trait World {
    /// Its operating system.
    type Os: Os;
    /// The handle.
    fn os(&self) -> &Self::Os;
    /// How to start a program that behaves like this.
    fn program(&self, program: Program) -> Exec;
    /// The path of such a file. All of them are in one directory, which is mu's to write.
    fn place(&self, place: Place) -> PathBuf;
    /// A new link to this path.
    fn link_to(&self, target: &Path) -> PathBuf;
    /// Sets the permissions of a file, not by way of mu.
    fn chmod(&self, path: &Path, mode: u32);
    /// Sends a signal as mu's user; number 0 only asks whether there is somebody.
    fn signal(&self, to: Target, number: i32) -> io::Result<()>;
    /// Waits until a child is stopped.
    async fn until_stopped(&self, child: Pid);
    /// Whether mu has a child that it has not reaped.
    fn has_children(&self) -> bool;
    /// How many descriptors mu has open.
    fn descriptors(&self) -> usize;
    /// From now on mu's standard output is a pipe that nobody reads any more.
    fn lose_the_reader_of_stdout(&self);
}

/// Whom a signal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One process.
    Process(Pid),
    /// Every process of a group.
    Group(Pid),
}

/// What the programs of a world do. What writes dies of SIGPIPE when nobody reads, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Exits with this status at once.
    ExitWith(i32),
    /// Sends itself this signal; exits with 0 should it live on.
    DieOf(i32),
    /// Copies standard input to standard output until its end, exits with 0.
    Cat,
    /// Says `ready`, then neither reads nor writes nor ends.
    Idle,
    /// As `Idle`, with SIGTERM ignored.
    IgnoresTerm,
    /// Says `ready`, then stops itself (SIGSTOP); exits with 0 when it is continued.
    Stopped,
    /// Stops itself. When it is continued, reads so many bytes at once, says `ready`, and does nothing more.
    StoppedThenReads(usize),
    /// Closes its standard input, says `ready`, then stays.
    DeafAndIdle,
    /// Says `ready`, closes its standard output, then stays.
    MuteAndIdle,
    /// Starts a helper in its group that stays and holds standard output; says `ready`, exits with 0.
    LeaveHelper,
    /// Starts a helper in its group that ends when standard input does; says `ready`, exits with 0.
    LeaveHelperUntilEof,
    /// Starts a helper that starts another in the same group and exits; the other one stays. Says `ready`, exits with 0.
    LeaveGrandchild,
    /// Starts a helper in a session of its own that holds standard output and ends when standard input does. When it is
    /// there, says `ready` and exits with 0.
    LeaveEscapedUntilEof,
    /// Starts a helper in its group, which stops itself. When it has, exits with 0.
    LeaveStoppedHelper,
    /// Writes this many bytes `x` to standard output, exits with 0.
    Flood(usize),
    /// `out` to standard output, `err` to standard error, each with a newline; exits with 0.
    BothStreams,
    /// Sends this signal to its parent, exits with 0.
    SignalParent(i32),
    /// Prints its environment, a line each, exits with 0.
    PrintEnv,
    /// Prints the arguments that are added to its command line, each followed by a NUL; exits with 0.
    PrintArgs,
    /// Prints its working directory, exits with 0.
    PrintCwd,
    /// Prints the numbers of its descriptors below 20, a line each, exits with 0.
    PrintDescriptors,
    /// The path of a file that must not or cannot be executed.
    At(Place),
}

/// A file of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The directory of all the others, mode 0755.
    Home,
    /// A regular file of words, without the permission to execute, mode 0640.
    Plain,
    /// A regular file of words, mode 4751.
    Executable,
    /// An executable script whose interpreter does not exist.
    BadInterpreter,
    /// An executable that somebody holds open for writing.
    Busy,
    /// A directory, mode 0755.
    Directory,
    /// A named pipe, mode 0700.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// A link to [`Place::Executable`].
    Link,
    /// A link to a link to [`Place::Executable`].
    LinkToLink,
    /// A link to [`Place::Directory`].
    LinkToDirectory,
    /// A link to [`Place::Missing`].
    Dangling,
    /// A link to itself.
    Circle,
    /// Nothing.
    Missing,
    /// A directory that nobody may pass, mode 0600.
    Closed,
    /// A file below [`Place::Closed`], executable.
    UnderClosed,
    /// A directory that nobody may write, mode 0555.
    Fixed,
    /// A name below [`Place::Fixed`].
    UnderFixed,
    /// A name below [`Place::Plain`].
    UnderPlain,
    /// A name below [`Place::Missing`].
    UnderMissing,
}

/// Hands the list of all bodies, by module, to a macro. This is where a new body is entered.
macro_rules! every_body {
    ($hold:ident) => {
        $hold! {
            leader {
                the_exit_of_the_leader_is_told_again_and_again_until_it_is_reaped
                a_death_by_signal_is_told_from_a_status
                the_killed_leader_reports_signal_9
                the_number_of_a_dead_leader_stays_taken_until_it_is_reaped
                a_start_and_a_stop_leave_no_child_and_no_descriptor
                dropping_a_child_neither_kills_nor_waits
                thirty_children_live_side_by_side
            }
            groups {
                a_group_lives_as_long_as_a_member_whatever_became_of_its_leader
                a_stopped_member_keeps_its_group_alive
                a_group_of_another_founder_or_boot_is_another_one
                a_leader_is_known_dead_or_alive
                a_dead_leader_does_not_keep_its_group_from_being_empty
                a_living_leader_is_a_member_of_its_group
                a_child_leads_a_group_of_its_own_number
                a_helper_keeps_the_group_from_being_empty_after_the_leader_has_gone
                a_helper_that_ends_by_itself_empties_the_group
                a_member_whose_parent_has_gone_still_keeps_the_group
                who_has_left_the_group_neither_keeps_it_nor_is_killed_with_it
                a_stopped_member_keeps_the_group
                a_stopped_helper_is_hung_up_when_its_leader_leaves_it
                killing_one_group_leaves_the_other_alone
                killing_an_empty_group_is_no_error
                killing_a_group_twice_is_no_error
            }
            pipes {
                closing_stdin_is_the_end_of_the_stream_for_the_child
                a_sibling_does_not_hold_the_stdin_of_another_child
                a_read_returns_what_is_there_and_leaves_the_rest
                several_writes_come_out_as_one_stream
                more_than_a_pipe_holds_passes_when_both_ends_are_served
                a_pipe_holds_64_kib_and_not_one_byte_more
                a_full_pipe_has_room_again_once_a_page_was_read_whole
                a_write_of_up_to_a_page_is_taken_whole_or_not_at_all
                small_writes_share_a_page_as_long_as_they_fit
                the_odd_end_of_a_large_write_goes_into_a_page_begun
                what_the_leader_wrote_is_still_there_after_its_exit
                a_child_that_writes_too_much_waits_for_its_reader
                the_stream_ends_only_after_its_last_writer
                a_stream_ends_when_the_child_closes_it_though_the_child_lives
                a_helper_holds_stdout_open_until_the_group_is_killed
                writing_to_a_stdin_that_the_child_closed_is_a_broken_pipe
                writing_to_a_dead_child_is_a_broken_pipe
                a_write_that_waits_for_room_ends_when_the_reader_dies
                the_two_output_streams_are_two_pipes
                the_end_of_a_stream_is_told_again_and_again
            }
            identity {
                mu_itself_is_a_living_process
                who_starts_later_has_another_start
                an_identity_does_not_change_while_its_process_lives
                a_zombie_does_not_live
                a_stopped_process_lives
                nobody_is_behind_a_pid_that_is_not_taken
            }
            exec {
                the_child_gets_exactly_the_variables_given
                the_child_gets_its_arguments_byte_for_byte
                the_child_runs_in_the_working_directory_of_mu
                the_child_has_three_descriptors_and_no_other
                a_program_is_found_through_links
                a_missing_program_is_enoent
                a_link_that_leads_nowhere_is_enoent
                a_circle_of_links_is_eloop
                a_file_in_the_way_is_enotdir
                a_program_without_the_permission_is_eacces
                a_program_behind_a_closed_directory_is_eacces
                what_is_no_regular_file_is_eacces
                a_missing_interpreter_is_enoent
                a_file_of_no_known_format_is_enoexec
                a_program_that_is_being_written_is_etxtbsy
                a_relative_program_is_einval
                a_nul_byte_in_an_argument_is_einval
                an_argument_of_128_kib_is_e2big
                a_refused_start_leaves_no_child_and_no_descriptor
            }
            signals {
                a_signal_is_told_and_does_not_end_mu
                signals_are_told_in_the_order_in_which_they_came
                a_signal_that_waits_already_is_told_once
                a_signal_wakes_a_task_that_waits_for_a_child_as_well
                a_child_starts_with_the_default_actions
                an_ignored_signal_does_not_end_a_child_and_sigkill_does
                a_stopped_process_lives_and_can_be_killed
                a_stopped_process_does_not_end_before_it_is_continued
                a_stopped_process_takes_up_its_work_when_it_is_continued
                a_signal_to_a_group_reaches_every_member
                mu_itself_outlives_a_broken_pipe
            }
            files {
                facts_are_type_owner_and_mode
                facts_follow_links
                facts_of_what_is_not_there
                facts_behind_a_closed_directory_are_not_told
                a_fifo_is_told_without_opening_it
                a_file_is_read_up_to_the_limit
                what_is_no_regular_file_is_not_read
                what_may_not_be_read_is_not_read
                a_removed_file_is_gone
                a_link_is_removed_and_not_what_it_leads_to
                what_is_no_file_or_not_there_is_not_removed
                directories_are_made_for_mu_alone_and_older_ones_stay_as_they_are
                a_directory_is_not_made_in_the_place_of_something_else
                a_directory_is_made_behind_a_link_to_a_directory
                a_directory_is_not_made_where_mu_may_not_write
                a_new_database_and_its_log_are_for_mu_alone
                an_existing_database_keeps_its_mode
                a_database_behind_a_dangling_link_is_made_where_the_link_leads
                the_directory_of_a_database_is_not_made
                a_database_is_not_made_where_mu_may_not_write
                a_database_that_may_not_be_read_is_not_opened
                a_database_that_may_only_be_read_refuses_what_writes
                what_is_no_file_is_no_database
                what_is_no_database_is_told_at_the_first_statement
                a_name_of_sqlites_own_is_a_file_all_the_same
                a_locked_database_is_busy_at_once
                what_one_connection_commits_another_one_sees
                a_dropped_connection_gives_its_locks_back
            }
            machine {
                a_timer_is_ready_when_its_time_has_come_and_not_before
                a_timer_in_the_past_is_ready_at_once
                a_timer_in_the_future_is_pending
                timers_fire_in_the_order_of_their_times
                a_timer_wakes_a_task_that_waits_for_a_child_as_well
                the_clock_does_not_run_backwards
                time_since_the_start_of_the_machine_goes_on_under_one_boot_id
                random_bytes_are_not_zeros_and_not_the_same_twice
                an_output_that_nobody_reads_is_a_broken_pipe
            }
        }
    };
}
pub(crate) use every_body;

/// The modules beside this file and the bodies in them are those of [`every_body`], which is `list`.
pub(crate) fn assert_that_none_is_skipped(list: &[(&str, &str)]) {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance");
    let mut written = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let source = std::fs::read_to_string(&path).unwrap();
        let bodies = source.lines().filter_map(|line| line.strip_prefix("pub(crate) async fn "));
        written.extend(bodies.filter(|line| line.contains("<W: World>")).map(|line| {
            let (name, _) = line.split_once('<').unwrap();
            (module.clone(), name.to_owned())
        }));
    }
    let mut listed: Vec<_> =
        list.iter().map(|(module, name)| (module.to_string(), name.to_string())).collect();
    written.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, written);
}

fn start<W: World>(world: &W, program: Program) -> <W::Os as Os>::Child {
    world.os().spawn(&world.program(program)).unwrap_or_else(|error| panic!("{program:?}: {error}"))
}

async fn exited(child: &mut impl Child) -> Exit {
    poll_fn(|cx| child.poll_exited(cx)).await
}

async fn group_empty(child: &mut impl Child) {
    poll_fn(|cx| child.poll_group_empty(cx)).await;
}

async fn read(child: &mut impl Child, pipe: ChildPipe, buf: &mut [u8]) -> io::Result<usize> {
    poll_fn(|cx| child.poll_read(pipe, cx, buf)).await
}

async fn write(child: &mut impl Child, bytes: &[u8]) -> io::Result<usize> {
    poll_fn(|cx| child.poll_write(cx, bytes)).await
}

async fn write_all(child: &mut impl Child, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let taken = write(child, bytes).await.expect("writing to a pipe");
        bytes = &bytes[taken..];
    }
}

/// Everything up to the end of the stream.
async fn read_all(child: &mut impl Child, pipe: ChildPipe) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buf = [0; 8192];
    loop {
        match read(child, pipe, &mut buf).await.expect("reading a pipe") {
            0 => return all,
            count => all.extend_from_slice(&buf[..count]),
        }
    }
}

/// So many bytes of standard output.
async fn read_exact(child: &mut impl Child, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    let mut filled = 0;
    while filled < count {
        let more = read(child, ChildPipe::Stdout, &mut bytes[filled..]).await.expect("reading a pipe");
        assert!(more > 0, "the stream ended after {filled} bytes");
        filled += more;
    }
    bytes
}

/// Waits for the line `ready`.
async fn ready(child: &mut impl Child) {
    assert_eq!(read_exact(child, 6).await, b"ready\n");
}

/// A byte goes through a `Cat` and comes back.
async fn echo(child: &mut impl Child) {
    write_all(child, b"!").await;
    assert_eq!(read_exact(child, 1).await, b"!");
}

/// One look, without waiting.
async fn look<R>(mut poll: impl FnMut(&mut std::task::Context<'_>) -> Poll<R>) -> Poll<R> {
    poll_fn(|cx| Poll::Ready(poll(cx))).await
}

/// Whether the stream has neither bytes nor an end now.
async fn is_silent(child: &mut impl Child, pipe: ChildPipe) -> bool {
    let mut buf = [0; 16];
    look(|cx| child.poll_read(pipe, cx, &mut buf)).await.is_pending()
}

/// Writes until nothing more is taken, `size` bytes at a time; answers how many were.
async fn fill(child: &mut impl Child, size: usize) -> usize {
    let bytes = vec![b'x'; size];
    let mut total = 0;
    while let Poll::Ready(taken) = look(|cx| child.poll_write(cx, &bytes)).await {
        total += taken.expect("writing to a pipe");
    }
    total
}

async fn finish(mut child: impl Child) {
    child.kill_group();
    exited(&mut child).await;
    group_empty(&mut child).await;
    child.reap();
}

/// The error number of a start that is refused.
fn refusal<W: World>(world: &W, exec: &Exec) -> i32 {
    match world.os().spawn(exec) {
        Ok(_) => panic!("{:?} was started", exec.argv[0]),
        Err(error) => error.raw_os_error().expect("an error of the system"),
    }
}
