use super::*;
use crate::testing::{FakeOs, file};

/// A machine whose working directory has these files; a name that ends with `/` is a directory.
fn machine(files: &[(&str, &str)]) -> FakeOs {
    let os = FakeOs::new();
    for (name, text) in files {
        let path = os.env().cwd.join(name);
        if name.ends_with('/') {
            std::fs::create_dir_all(path).unwrap();
        } else {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }
    os
}

/// Root and FETCH_HEAD, relative to the working directory.
fn found(os: &FakeOs, directory: &str) -> Result<(String, String), RepositoryError> {
    let cwd = &os.env().cwd;
    let below = |path: &Path| path.strip_prefix(cwd).expect("below").to_str().unwrap().to_owned();
    let repository = Repository::find(os, Path::new(directory))?;
    Ok((below(Path::new(repository.root().as_str())), below(&repository.fetch_head)))
}

fn pair(root: &str, head: &str) -> Result<(String, String), RepositoryError> {
    Ok((root.into(), head.into()))
}

/// LINK-21
#[test]
fn a_work_tree_is_found_from_anywhere_below_it() {
    let os = machine(&[("a/.git/", ""), ("a/src/deep/", ""), ("b/", "")]);
    for directory in ["a", "a/src/deep", "./a/./src", "a/src/..", "b/../a", "a/src/deep/../../../a/src"] {
        assert_eq!(found(&os, directory), pair("a", "a/.git/FETCH_HEAD"), "{directory}");
    }
    let absolute = os.env().cwd.join("a/src");
    assert_eq!(found(&os, absolute.to_str().unwrap()), pair("a", "a/.git/FETCH_HEAD"));
}

/// LINK-21
#[test]
fn a_git_file_leads_to_the_directory_whose_fetch_head_git_uses() {
    let os = machine(&[
        ("main/.git/worktrees/w/", ""),
        ("w/.git", "gitdir: ../main/.git/worktrees/w\n"),
        ("s/.git", "gitdir: ../main/.git"),
        ("main/src/", ""),
    ]);
    assert_eq!(found(&os, "w"), pair("w", "w/../main/.git/worktrees/w/FETCH_HEAD"));
    assert_eq!(found(&os, "s"), pair("s", "s/../main/.git/FETCH_HEAD"));
    let absolute = format!("gitdir: {}\n", os.env().cwd.join("main/.git/worktrees/w").display());
    std::fs::write(os.env().cwd.join("w/.git"), absolute).unwrap();
    assert_eq!(found(&os, "w"), pair("w", "main/.git/worktrees/w/FETCH_HEAD"));
}

/// LINK-21
#[test]
fn a_bare_repository_is_its_own_directory() {
    let os = machine(&[("app.git/HEAD", ""), ("app.git/objects/", ""), ("app.git/refs/heads/", "")]);
    assert_eq!(found(&os, "app.git"), pair("app.git", "app.git/FETCH_HEAD"));
    assert_eq!(found(&os, "app.git/refs/heads"), pair("app.git", "app.git/FETCH_HEAD"));
}

#[test]
fn what_is_no_repository_says_so() {
    let os = machine(&[
        ("a/src/", ""),
        ("f", ""),
        ("w/.git", "gitdir: ../gone"),
        ("x/.git", "nothing of the kind"),
    ]);
    let at = |name: &str| os.env().cwd.join(name);
    assert_eq!(found(&os, "a/src"), Err(RepositoryError::NotFound(at("a/src"))));
    assert_eq!(found(&os, "f"), Err(RepositoryError::NoDirectory(at("f"))));
    assert_eq!(found(&os, "a/gone"), Err(RepositoryError::NoDirectory(at("a/gone"))));
    assert_eq!(found(&os, "w"), Err(RepositoryError::BadGitFile(at("w/.git"))));
    assert_eq!(found(&os, "x"), Err(RepositoryError::BadGitFile(at("x/.git"))));
}

/// LINK-21
#[test]
fn fetch_head_is_deleted_once_and_read_by_its_first_line() {
    let os = machine(&[("a/.git/", "")]);
    let repository = Repository::find(&os, Path::new("a")).unwrap();
    let head = os.env().cwd.join("a/.git/FETCH_HEAD");
    let (short, long) = ("0123456789abcdef0123456789abcdef01234567", "ab".repeat(32));
    for (text, commit) in [
        (format!("{short}\t\tbranch 'x' of y\n{long}\n"), Some(short)),
        (format!("{long}\n"), Some(long.as_str())),
        (String::new(), None),
        (format!("{}\n", &short[1..]), None),
        ("ref: refs/heads/main\n".into(), None),
    ] {
        std::fs::write(&head, &text).unwrap();
        let read = repository.fetch_head(&os).unwrap();
        assert_eq!(read.as_ref().map(CommitId::as_str), commit, "{text}");
        assert_eq!(repository.forget_fetch_head(&os), Ok(()));
        assert_eq!(repository.fetch_head(&os), Ok(None));
    }
    assert_eq!(repository.forget_fetch_head(&os), Ok(()));
    std::fs::create_dir(&head).unwrap();
    assert!(matches!(repository.forget_fetch_head(&os), Err(RepositoryError::Unusable { .. })));
    assert!(matches!(repository.fetch_head(&os), Err(RepositoryError::Unusable { .. })));
}

#[test]
fn a_directory_out_of_reach_is_no_missing_repository() {
    let os = machine(&[("a/.git/", "")]);
    let dot_git = os.env().cwd.join("a/.git");
    let os = os.with_error(dot_git.clone(), io::ErrorKind::PermissionDenied);
    assert!(matches!(found(&os, "a"), Err(RepositoryError::Unusable { path, .. }) if path == dot_git));
    let os = os.with_file(dot_git.to_str().unwrap(), file(FileKind::Fifo, 1000, 0o644));
    assert!(matches!(found(&os, "a"), Err(RepositoryError::NotFound(_))));
}
