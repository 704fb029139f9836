//! The arguments of `mu host`.

use std::time::Duration;

use super::*;

fn exec(line: &str) -> (String, String, Duration) {
    match ok(line) {
        Request::HostExec { script, cwd, timeout, .. } => (script, cwd.into(), timeout),
        other => panic!("{other:?}"),
    }
}

/// REG-16
#[test]
fn a_host_of_a_plugin_takes_its_optional_flags() {
    let Request::HostAdd { name, setup } = ok("host add dock --plugin box") else { panic!() };
    assert_eq!((name.as_str(), setup.plugin.as_str(), setup.max_sessions), ("dock", "box", 1));
    assert_eq!((setup.fetch_template, setup.repo), (None, None));
    let line = "host add dock --plugin box --fetch x{remote} --repo /srv/app --max-sessions 3";
    let Request::HostAdd { setup, .. } = ok(line) else { panic!() };
    assert_eq!(
        (setup.fetch_template.as_deref(), setup.repo.as_deref()),
        (Some("x{remote}"), Some("/srv/app"))
    );
    assert_eq!(setup.max_sessions, 3);
}

/// REG-17
#[test]
fn shell_and_exec_are_known_and_refused_with_a_plugin() {
    for flag in ["--shell", "--exec"] {
        for line in [
            format!("host add dock --plugin box {flag} ssh"),
            format!("host add dock {flag} ssh --plugin box"),
        ] {
            let failure = failure(&line);
            assert_eq!(failure.kind, Kind::Usage, "{line}");
            assert!(
                failure.message.contains(flag) && failure.message.contains("--plugin"),
                "{}",
                failure.message
            );
        }
        assert!(failure(&format!("host add dock {flag} ssh")).message.contains("plugin"));
    }
}

#[test]
fn nonsense_for_a_flag_is_a_usage_failure() {
    for flags in [
        "--max-sessions 0",
        "--max-sessions -1",
        "--max-sessions 1001",
        "--max-sessions many",
        "--fetch=",
        "--repo=",
    ] {
        let failure = failure(&format!("host add dock --plugin box {flags}"));
        assert_eq!(failure.kind, Kind::Usage, "{flags}");
        assert!(failure.message.contains("--"), "{}", failure.message);
    }
    assert_eq!(failure("host add dock --plugin Box").kind, Kind::BadName);
    assert_eq!(failure("host add Dock --plugin box").kind, Kind::BadName);
    assert_eq!(failure("host check dock --agent Claude").kind, Kind::BadName);
    assert_eq!(failure("host check").kind, Kind::Usage);
    assert_eq!(failure("host exec dock --cwd= -- true").kind, Kind::Usage);
    assert_eq!(failure("host fetch dock").kind, Kind::Usage);
}

/// TMO-01
#[test]
fn a_timeout_is_a_number_with_a_unit_and_20_seconds_by_default() {
    assert_eq!(exec("host exec dock -- true").2, crate::deadlines::TIMEOUT);
    for (word, span) in [("1ms", 1), ("500ms", 500), ("2s", 2000), ("3m", 180_000), ("24h", 86_400_000)] {
        assert_eq!(exec(&format!("host exec dock --timeout {word} -- true")).2, Duration::from_millis(span));
    }
}

#[test]
fn a_timeout_of_nothing_below_nothing_or_beyond_reason_is_a_usage_failure() {
    for word in ["0", "0s", "-5s", "20", "s", "", "1.5s", "25h", "99999999999999999999s", "20 s", "20S", "1d"]
    {
        for (verb, script) in [("host exec dock", &["--", "true"][..]), ("host fetch dock src", &[])] {
            let mut argv = words(verb);
            argv.extend(["--timeout", word].iter().chain(script).map(OsString::from));
            let failure = parse(&argv).1.unwrap_err();
            assert_eq!(failure.kind, Kind::Usage, "{verb} {word}");
            assert!(failure.message.contains("example: 20s"), "{word}: {}", failure.message);
        }
    }
}

#[test]
fn one_word_is_the_script_verbatim_and_several_are_quoted() {
    let script = |words: &[&str]| {
        let argv = ["mu", "host", "exec", "dock", "--"].iter().chain(words).map(OsString::from);
        match parse(&argv.collect::<Vec<_>>()).1.unwrap() {
            Request::HostExec { script, .. } => script,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(script(&["cd x && 'y' $Z\n"]), "cd x && 'y' $Z\n");
    assert_eq!(script(&[""]), "");
    assert_eq!(script(&["grep", "-r", "it's $1", "a\nb", "--json"]), "grep -r 'it'\\''s $1' 'a\nb' --json");
    assert_eq!(exec("host exec dock --cwd src/x -- true").1, "src/x");
    assert_eq!(exec("host exec dock -- true").1, ".");
}

#[test]
fn a_script_that_is_not_utf_8_is_refused_and_not_mended() {
    let mut argv = words("host exec dock --");
    argv.push(OsString::from_vec(b"a\xff".to_vec()));
    assert_eq!(parse(&argv).1.unwrap_err().kind, Kind::BadArgument);
}

#[test]
fn a_script_without_dashes_is_explained_with_an_example() {
    for line in ["host exec dock ls", "host exec dock", "host exec"] {
        let failure = failure(line);
        assert_eq!(failure.kind, Kind::Usage);
        assert!(failure.message.contains("mu host exec dock -- 'git status'"), "{line}: {}", failure.message);
    }
    assert!(failure("host exec dock --fast -- ls").message.contains("--fast"));
}

#[test]
fn a_host_named_twice_is_checked_once() {
    let Request::HostCheck { names, agent, .. } = ok("host check b a b --agent claude") else { panic!() };
    assert_eq!(names.iter().map(HostName::as_str).collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(agent.unwrap().as_str(), "claude");
}
