//! Facts of files, directories, databases.

use std::path::Path;

use super::*;
use mu_core::os::{FileFacts, FileKind};
use nix::libc::{EACCES, EEXIST, EINVAL, EISDIR, ELOOP, ENOENT, ENOTDIR};
use rusqlite::ErrorCode;

fn facts<W: World>(world: &W, path: &Path) -> Result<FileFacts, i32> {
    world.os().facts(path).map_err(|error| error.raw_os_error().unwrap())
}

fn facts_at<W: World>(world: &W, place: Place) -> Result<FileFacts, i32> {
    facts(world, &world.place(place))
}

fn mode<W: World>(world: &W, path: &Path) -> u32 {
    facts(world, path).unwrap().mode
}

/// REG-05, REG-06
pub(crate) async fn facts_are_type_owner_and_mode<W: World>(world: &W) {
    let uid = world.os().env().euid;
    let expected = |kind, mode| Ok(FileFacts { kind, uid, mode });
    assert_eq!(facts_at(world, Place::Plain), expected(FileKind::Regular, 0o640));
    assert_eq!(facts_at(world, Place::Executable), expected(FileKind::Regular, 0o4751));
    assert_eq!(facts_at(world, Place::Directory), expected(FileKind::Directory, 0o755));
    assert_eq!(facts_at(world, Place::Fifo), expected(FileKind::Fifo, 0o700));
    assert_eq!(facts_at(world, Place::Socket).unwrap().kind, FileKind::Socket);
    assert_eq!(facts_at(world, Place::Device).unwrap().kind, FileKind::Device);
}

/// REG-06
pub(crate) async fn facts_follow_links<W: World>(world: &W) {
    let target = facts_at(world, Place::Executable);
    assert_eq!(facts_at(world, Place::Link), target);
    assert_eq!(facts_at(world, Place::LinkToLink), target);
    assert_eq!(facts_at(world, Place::LinkToDirectory), facts_at(world, Place::Directory));
}

/// REG-05
pub(crate) async fn facts_of_what_is_not_there<W: World>(world: &W) {
    assert_eq!(facts_at(world, Place::Missing), Err(ENOENT));
    assert_eq!(facts_at(world, Place::UnderMissing), Err(ENOENT));
    assert_eq!(facts_at(world, Place::Dangling), Err(ENOENT));
    assert_eq!(facts_at(world, Place::Circle), Err(ELOOP));
    assert_eq!(facts_at(world, Place::UnderPlain), Err(ENOTDIR));
}

/// REG-05
pub(crate) async fn facts_behind_a_closed_directory_are_not_told<W: World>(world: &W) {
    assert_eq!(facts_at(world, Place::UnderClosed), Err(EACCES));
    assert_eq!(facts_at(world, Place::Closed).unwrap().mode, 0o600);
}

/// REG-05: nobody ever opens the other end.
pub(crate) async fn a_fifo_is_told_without_opening_it<W: World>(world: &W) {
    assert_eq!(facts_at(world, Place::Fifo).unwrap().kind, FileKind::Fifo);
}

fn read_at<W: World>(world: &W, place: Place, limit: usize) -> Result<Vec<u8>, i32> {
    world.os().read_file(&world.place(place), limit).map_err(|error| error.raw_os_error().unwrap())
}

/// LINK-21
pub(crate) async fn a_file_is_read_up_to_the_limit<W: World>(world: &W) {
    let whole = read_at(world, Place::Plain, 1_000_000).unwrap();
    assert!(whole.starts_with(b"this is no program"));
    for (limit, length) in [(0, 0), (1, 1), (whole.len() - 1, whole.len() - 1), (whole.len(), whole.len())] {
        assert_eq!(read_at(world, Place::Plain, limit).unwrap(), whole[..length], "{limit}");
    }
    assert_eq!(read_at(world, Place::LinkToLink, 4).unwrap(), b"this");
}

/// LINK-21: nobody ever opens the other end of the fifo.
pub(crate) async fn what_is_no_regular_file_is_not_read<W: World>(world: &W) {
    for place in [Place::Directory, Place::LinkToDirectory, Place::Fifo, Place::Socket, Place::Device] {
        assert_eq!(read_at(world, place, 10), Err(EINVAL), "{place:?}");
    }
    assert_eq!(read_at(world, Place::Missing, 10), Err(ENOENT));
    assert_eq!(read_at(world, Place::Dangling, 10), Err(ENOENT));
    assert_eq!(read_at(world, Place::Circle, 10), Err(ELOOP));
    assert_eq!(read_at(world, Place::UnderPlain, 10), Err(ENOTDIR));
}

/// LINK-21
pub(crate) async fn what_may_not_be_read_is_not_read<W: World>(world: &W) {
    world.chmod(&world.place(Place::Plain), 0o200);
    for place in [Place::Plain, Place::UnderClosed] {
        assert_eq!(read_at(world, place, 10), Err(EACCES), "{place:?}");
    }
}

fn remove_at<W: World>(world: &W, place: Place) -> Result<(), i32> {
    world.os().remove_file(&world.place(place)).map_err(|error| error.raw_os_error().unwrap())
}

/// LINK-21: what may not be read may be removed all the same.
pub(crate) async fn a_removed_file_is_gone<W: World>(world: &W) {
    world.chmod(&world.place(Place::Plain), 0o000);
    for place in [Place::Plain, Place::Fifo, Place::Socket] {
        assert_eq!(remove_at(world, place), Ok(()), "{place:?}");
        assert_eq!(facts_at(world, place), Err(ENOENT), "{place:?}");
    }
}

/// LINK-21
pub(crate) async fn a_link_is_removed_and_not_what_it_leads_to<W: World>(world: &W) {
    for link in [Place::LinkToLink, Place::Link, Place::Dangling, Place::Circle, Place::LinkToDirectory] {
        assert_eq!(remove_at(world, link), Ok(()), "{link:?}");
        assert_eq!(facts_at(world, link), Err(ENOENT), "{link:?}");
    }
    assert_eq!(facts_at(world, Place::Executable).unwrap().kind, FileKind::Regular);
    assert_eq!(facts_at(world, Place::Directory).unwrap().kind, FileKind::Directory);
}

/// LINK-21
pub(crate) async fn what_is_no_file_or_not_there_is_not_removed<W: World>(world: &W) {
    let error = world.os().remove_file(&world.place(Place::Missing)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert_eq!(remove_at(world, Place::UnderMissing), Err(ENOENT));
    assert_eq!(remove_at(world, Place::UnderPlain), Err(ENOTDIR));
    assert_eq!(remove_at(world, Place::Directory), Err(EISDIR));
    assert_eq!(remove_at(world, Place::UnderFixed), Err(ENOENT));
    assert_eq!(remove_at(world, Place::UnderClosed), Err(EACCES));
    world.chmod(&world.place(Place::Home), 0o555);
    assert_eq!(remove_at(world, Place::Plain), Err(EACCES));
    world.chmod(&world.place(Place::Home), 0o755);
}

pub(crate) async fn directories_are_made_for_mu_alone_and_older_ones_stay_as_they_are<W: World>(world: &W) {
    let home = world.place(Place::Home);
    let deep = home.join("a/b/c");
    for _ in 0..2 {
        world.os().create_dir_all(&deep).unwrap();
        for made in ["a", "a/b", "a/b/c"] {
            let facts = facts(world, &home.join(made)).unwrap();
            assert_eq!(
                (facts.kind, facts.mode, facts.uid),
                (FileKind::Directory, 0o700, world.os().env().euid)
            );
        }
    }
    world.os().create_dir_all(&world.place(Place::Directory)).unwrap();
    assert_eq!(mode(world, &world.place(Place::Directory)), 0o755);
    assert_eq!(mode(world, &home), 0o755);
}

pub(crate) async fn a_directory_is_not_made_in_the_place_of_something_else<W: World>(world: &W) {
    let refused = |place| world.os().create_dir_all(&world.place(place)).unwrap_err().raw_os_error().unwrap();
    assert_eq!(refused(Place::Plain), EEXIST);
    assert_eq!(refused(Place::Link), EEXIST);
    assert_eq!(refused(Place::Dangling), EEXIST);
    assert_eq!(refused(Place::Circle), EEXIST);
    assert_eq!(refused(Place::UnderPlain), ENOTDIR);
    assert_eq!(facts_at(world, Place::Missing), Err(ENOENT), "a link that leads nowhere was followed");
}

pub(crate) async fn a_directory_is_made_behind_a_link_to_a_directory<W: World>(world: &W) {
    world.os().create_dir_all(&world.place(Place::LinkToDirectory)).unwrap();
    world.os().create_dir_all(&world.place(Place::LinkToDirectory).join("x/y")).unwrap();
    assert_eq!(mode(world, &world.place(Place::Directory).join("x/y")), 0o700);
}

pub(crate) async fn a_directory_is_not_made_where_mu_may_not_write<W: World>(world: &W) {
    for below in ["", "x"] {
        let error = world.os().create_dir_all(&world.place(Place::UnderFixed).join(below)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(EACCES));
    }
    assert_eq!(facts_at(world, Place::UnderFixed), Err(ENOENT));
}

fn open<W: World>(world: &W, path: &Path) -> <W::Os as Os>::Db {
    world.os().open_db(path).unwrap()
}

pub(crate) async fn a_new_database_and_its_log_are_for_mu_alone<W: World>(world: &W) {
    let path = world.place(Place::Home).join("mu.db");
    let connection = open(world, &path);
    connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)").unwrap();
    for file in ["mu.db", "mu.db-wal"] {
        let facts = facts(world, &path.with_file_name(file)).unwrap();
        assert_eq!((facts.kind, facts.mode), (FileKind::Regular, 0o600), "{file}");
    }
}

pub(crate) async fn an_existing_database_keeps_its_mode<W: World>(world: &W) {
    let path = world.place(Place::Home).join("mu.db");
    open(world, &path).execute_batch("CREATE TABLE t (x)").unwrap();
    world.chmod(&path, 0o640);
    let connection = open(world, &path);
    connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE u (x)").unwrap();
    assert_eq!(mode(world, &path), 0o640);
    assert_eq!(mode(world, &path.with_file_name("mu.db-wal")), 0o640);
}

pub(crate) async fn a_database_behind_a_dangling_link_is_made_where_the_link_leads<W: World>(world: &W) {
    open(world, &world.place(Place::Dangling)).execute_batch("CREATE TABLE t (x)").unwrap();
    let facts = facts_at(world, Place::Missing).unwrap();
    assert_eq!((facts.kind, facts.mode), (FileKind::Regular, 0o600));
    open(world, &world.place(Place::Missing)).execute_batch("INSERT INTO t VALUES (1)").unwrap();
}

fn refused<W: World>(world: &W, path: &Path) -> Option<ErrorCode> {
    world.os().open_db(path).err().expect("an error").sqlite_error_code()
}

pub(crate) async fn the_directory_of_a_database_is_not_made<W: World>(world: &W) {
    assert_eq!(refused(world, &world.place(Place::UnderMissing)), Some(ErrorCode::CannotOpen));
    assert_eq!(facts_at(world, Place::Missing), Err(ENOENT));
}

pub(crate) async fn a_database_is_not_made_where_mu_may_not_write<W: World>(world: &W) {
    assert_eq!(refused(world, &world.place(Place::UnderFixed)), Some(ErrorCode::CannotOpen));
    assert_eq!(facts_at(world, Place::UnderFixed), Err(ENOENT));
}

pub(crate) async fn a_database_that_may_not_be_read_is_not_opened<W: World>(world: &W) {
    world.chmod(&world.place(Place::Plain), 0o000);
    for place in [Place::Plain, Place::UnderClosed] {
        assert_eq!(refused(world, &world.place(place)), Some(ErrorCode::CannotOpen), "{place:?}");
    }
}

pub(crate) async fn a_database_that_may_only_be_read_refuses_what_writes<W: World>(world: &W) {
    let path = world.place(Place::Home).join("mu.db");
    open(world, &path).execute_batch("CREATE TABLE t (x)").unwrap();
    world.chmod(&path, 0o400);
    let connection = open(world, &path);
    assert_eq!(connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)), Ok(0));
    let error = connection.execute_batch("INSERT INTO t VALUES (1)").unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly));
}

pub(crate) async fn what_is_no_file_is_no_database<W: World>(world: &W) {
    for place in [Place::Directory, Place::UnderPlain, Place::Circle] {
        assert_eq!(refused(world, &world.place(place)), Some(ErrorCode::CannotOpen), "{place:?}");
    }
}

pub(crate) async fn what_is_no_database_is_told_at_the_first_statement<W: World>(world: &W) {
    let connection = open(world, &world.place(Place::Plain));
    let error = connection.execute_batch("CREATE TABLE t (x)").unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase));
}

/// Neither a URI nor a database in memory.
pub(crate) async fn a_name_of_sqlites_own_is_a_file_all_the_same<W: World>(world: &W) {
    for name in ["file:x?mode=memory", ":memory:"] {
        let path = world.place(Place::Home).join(name);
        open(world, &path).execute_batch("CREATE TABLE t (x)").unwrap();
        assert_eq!(facts(world, &path).unwrap().kind, FileKind::Regular, "{name}");
    }
}

pub(crate) async fn a_locked_database_is_busy_at_once<W: World>(world: &W) {
    let path = world.place(Place::Home).join("mu.db");
    let writer = open(world, &path);
    writer.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x); BEGIN IMMEDIATE").unwrap();
    let other = open(world, &path);
    let timeout: i64 = other.query_row("PRAGMA busy_timeout", [], |row| row.get(0)).unwrap();
    assert_eq!(timeout, 0);
    let error = other.execute_batch("BEGIN IMMEDIATE").unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    // Who only reads is not disturbed.
    assert_eq!(other.query_row("SELECT count(*) FROM t", [], |row| row.get(0)), Ok(0));
}

pub(crate) async fn what_one_connection_commits_another_one_sees<W: World>(world: &W) {
    let path = world.place(Place::Home).join("mu.db");
    let writer = open(world, &path);
    writer.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)").unwrap();
    let reader = open(world, &path);
    let seen = || reader.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(seen(), 0);
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(seen(), 1);
}

pub(crate) async fn a_dropped_connection_gives_its_locks_back<W: World>(world: &W) {
    let path = world.place(Place::Home).join("mu.db");
    let writer = open(world, &path);
    writer.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x); BEGIN IMMEDIATE").unwrap();
    writer.execute_batch("INSERT INTO t VALUES (1)").unwrap();
    drop(writer);
    let other = open(world, &path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // What was not committed is gone.
    assert_eq!(other.query_row("SELECT count(*) FROM t", [], |row| row.get(0)), Ok(0));
}
