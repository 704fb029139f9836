use super::*;
use crate::cli::replay;
use crate::scenario::is_rule;

fn scenario(text: &str) -> Scenario {
    Scenario::parse("test", text, &is_rule).unwrap_or_else(|error| panic!("{error}"))
}

/// Plays a scenario; `found` is added to what comes of it.
fn page(text: &str, found: &[Found]) -> String {
    let scenario = scenario(text);
    let item = Item::File { path: "a&b.toml".into(), shown: "<i>a&b.toml".into() };
    let mut run = replay::play(&item, &scenario);
    run.outcome.found.extend_from_slice(found);
    replay::page(&scenario, &run.outcome, &run.timeline)
}

fn found(by: &str, rule: &str, at: Option<u64>, text: &str) -> Found {
    Found { by: by.into(), rules: vec![rule.into()], text: text.into(), at, step: None, replay: None }
}

const HOSTILE: &str = r#"
title = "<script>alert(1)</script> & 'quotes' \" in a title"
rules = ["REG-01"]
[plugins.box]
[[faults]]
plugin = "box"
do = { line = "<script>alert(2)</script>&amp;\u0007\u202e" }
[[faults]]
plugin = "box"
when = "on-start"
do = "invalid-utf8-middle"
[[steps]]
run = "mu plugin add box -- {box} '<img src=x onerror=alert(3)>'"
exit = 5
"#;

const ACQUIRE: &str = r#"
title = "A machine is made"
rules = ["HOST-05"]
[plugins.cloud]
seams = ["link", "job", "host"]
[backend]
acquire_ms = 9000
[[steps]]
run = "mu plugin add cloud -- {cloud}"
exit = 0
[[steps]]
run = "mu host acquire box --provider cloud"
exit = 0
[[steps]]
run = "mu plugin list"
overlap = true
[[steps]]
run = "mu host list"
"#;

/// The part of a page from one text to the next.
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let rest = &page[page.find(from).unwrap_or_else(|| panic!("no {from}: {page}"))..];
    &rest[..rest.find(to).unwrap_or(rest.len())]
}

#[test]
fn whatever_a_plugin_or_a_scenario_says_is_text() {
    let page = page(HOSTILE, &[found("crash", "REG-01", None, "<script>\u{202e}\u{0}</script>")]);
    for wrong in ["<script", "<img", "<i>a", "\u{202e}", "\u{7}", "\u{0}", "\u{fffd}"] {
        assert!(!page.contains(wrong), "{wrong:?}: {page}");
    }
    for right in ["&lt;script&gt;alert(2)&lt;/script&gt;&amp;amp;\\u{7}", "\\xff", "&lt;i&gt;a&amp;b.toml"] {
        assert!(page.contains(right), "{right:?}: {page}");
    }
}

#[test]
fn a_page_needs_nothing_else() {
    let page = page(ACQUIRE, &[]);
    for wrong in ["http", "src=", "<link", "<script", "@import", "url(", "javascript:"] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">") && page.ends_with("</body></html>"));
    assert!(page.contains("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"));
}

#[test]
fn each_step_has_its_lanes_and_steps_at_once_share_them() {
    let page = page(ACQUIRE, &[]);
    let names = |step| {
        let names = between(&page, &format!("<h2 id=\"{step}\">"), "<ol").split("<b>").skip(1);
        names.map(|name| name.split("</b>").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("step-2"), ["world", "mu#2", "cloud#2", "backend", "disk"]);
    assert_eq!(names("step-3")[..3], ["world", "mu#3", "mu#4"]);
    assert!(page.contains(">Steps 3 and 4, at once</h2>") && !page.contains("id=\"step-4\""));
}

#[test]
fn a_leap_of_virtual_time_is_marked() {
    let page = page(ACQUIRE, &[]);
    assert!(
        between(&page, "id=\"step-2\"", "</section>").contains("<b>+9.000 s</b> of virtual time"),
        "{page}"
    );
}

#[test]
fn the_rows_of_mu_are_shown_where_they_change() {
    let page = page(ACQUIRE, &[]);
    let step = between(&page, "id=\"step-2\"", "</section>");
    let intent = step.find("host.acquire box, of cloud (test), request 2").unwrap();
    let asked = step.find("&quot;method&quot;:&quot;host.acquire&quot;").unwrap();
    let ready = step.find("ready, vm-1 of cloud (test)").unwrap();
    assert!(intent < asked && asked < ready, "{step}");
    assert!(step[..asked].contains("acquiring, of cloud (test)"), "{step}");
    assert!(step.contains("<tr class=\"gone\">"), "the intent goes with the answer: {step}");
}

#[test]
fn a_violation_stands_beside_its_moment_with_the_text_of_its_rule() {
    let page = page(ACQUIRE, &[found("intent", "EFF-02", Some(0), "mu[102] sent it too early")]);
    assert!(
        between(&page, "<section aria-labelledby=\"findings\">", "</section>")
            .contains("href=\"#finding-1\"")
    );
    let row = between(&page, "id=\"finding-1\"", "</li>");
    for wanted in
        ["Oracle intent", "rule EFF-02", "The intent is durable before the effect is sent", "mu[102] sent"]
    {
        assert!(row.contains(wanted), "{wanted}: {row}");
    }
    let at = page.find("id=\"finding-1\"").unwrap();
    assert!(page.find("id=\"step-2\"").unwrap() < at && at < page.find("id=\"step-3\"").unwrap());
    assert!(at < page.find("<b>+9.000 s</b>").unwrap(), "it comes before time has leapt");
}

#[test]
fn a_finding_without_a_moment_stands_at_the_top_alone() {
    let page = page(ACQUIRE, &[found("secrets", "SEC-01", None, "the canary is somewhere")]);
    assert!(between(&page, "id=\"findings\"", "</section>").contains("the canary is somewhere"));
    assert_eq!(page.matches("the canary is somewhere").count(), 1);
    assert!(!page.contains("#finding-1"));
}

#[test]
fn what_was_expected_is_shown_open_where_it_did_not_come() {
    let text = ACQUIRE.replacen("exit = 0", "exit = 7", 1);
    let page = page(&text, &[]);
    let (one, two) =
        (between(&page, "id=\"step-1\"", "</section>"), between(&page, "id=\"step-2\"", "</section>"));
    assert!(one.contains("<details open>") && one.contains("id=\"finding-1\""), "{one}");
    assert!(two.contains("<details>") && !two.contains("finding-"), "{two}");
}
