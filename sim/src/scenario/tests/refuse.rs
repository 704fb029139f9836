//! Every refusal names the place. A mark (`»`) in the text stands before it and is taken out.

use super::parse;

/// The text with this in the step, in the plugin, or at the end; the mark shows where the error must point.
fn in_step(line: &str) -> String {
    format!("title = 't'\nrules = ['A-10']\n[plugins.box]\n[[steps]]\nrun = 'mu plugin list'\n{line}\n")
}

fn in_plugin(line: &str) -> String {
    format!("title = 't'\nrules = ['A-10']\n[plugins.box]\n{line}\n[[steps]]\nrun = 'mu plugin list'\n")
}

fn in_fault(lines: &str) -> String {
    let step = "[[steps]]\nrun = 'mu plugin list'\n";
    format!("title = 't'\nrules = ['A-10']\n[plugins.box]\n[[faults]]\n{lines}\n{step}")
}

#[track_caller]
fn refused(marked: &str, says: &[&str]) {
    let at = marked.find('»').expect("a mark");
    let text = marked.replace('»', "");
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let error = parse(&text).expect_err("refused");
    assert_eq!((error.line, error.column), (line, column), "{error}");
    for part in says {
        assert!(error.message.contains(part), "{error}\nlacks {part}");
    }
    assert!(!error.message.contains('\n'));
    assert_eq!(error.to_string(), format!("s.toml:{line}:{column}: {}", error.message));
}

#[test]
fn text_that_is_no_toml() {
    refused("title = 't'\nrules = [»", &[]);
}

#[test]
fn unknown_key_of_the_scenario() {
    refused("title = 't'\n»titel = 'x'\nrules = ['A-10']\nsteps = []\n", &["unknown key `titel`", "`why`"]);
}

#[test]
fn unknown_key_of_a_plugin_of_a_fault_and_of_a_step() {
    refused(&in_plugin("»seam = ['link']"), &["unknown key `seam`", "`seams`"]);
    refused(&in_fault("plugin = 'box'\n»method = 'x'\ndo = 'bom'"), &["unknown key `method`", "`on`"]);
    refused(&in_step("  »exits = 0"), &["unknown key `exits`", "`exit`"]);
    refused(&in_step("stdout = { »has = 'x' }"), &["unknown key `has`", "`contains`"]);
    refused(&in_step("signal = { what = 'TERM', at_ms = 1, »from = 'x' }"), &["unknown key `from`"]);
}

#[test]
fn number_that_no_file_can_be_written_with() {
    let most = ["at most 9223372036854775807"];
    refused(&in_step("within_ms = »9223372036854775808"), &most);
    refused(&in_step("took_ms = [1, »0xffff_ffff_ffff_ffff]"), &most);
    refused(&in_step("signal = { what = 'TERM', at_ms = »9223372036854775808 }"), &most);
    refused("title = 't'\nrules = ['A-10']\nseed = »9223372036854775808\n[[steps]]\nrun = 'mu x'\n", &most);
}

#[test]
fn missing_key() {
    refused(&in_fault("plugin = 'box'").replace("[[faults]]", "»[[faults]]"), &["missing key `do`"]);
}

#[test]
fn wrong_type() {
    refused(&in_step("exit = »'one'"), &["expected a whole number from 0 to 255"]);
    refused(&in_step("exit = »256"), &["256"]);
    refused(&in_step("signal = »7"), &["one, or a list"]);
}

#[test]
fn unknown_rule() {
    refused(
        "title = 't'\nrules = ['TRN-04', »'TRN-99']\n[[steps]]\nrun = 'mu'\n",
        &["unknown rule `TRN-99`"],
    );
}

#[test]
fn no_rule() {
    refused("title = 't'\nrules = »[]\n[[steps]]\nrun = 'mu'\n", &["at least one rule"]);
}

#[test]
fn rule_twice() {
    refused("title = 't'\nrules = ['TRN-04', »'TRN-04']\n[[steps]]\nrun = 'mu'\n", &["twice"]);
}

#[test]
fn plugin_twice() {
    refused(
        "title = 't'\nrules = ['A-10']\n[plugins.box]\n[plugins.»box]\n[[steps]]\nrun = 'mu'\n",
        &["duplicate key `box`"],
    );
}

#[test]
fn key_twice() {
    refused(&in_step("exit = 0\n»exit = 1"), &["duplicate key `exit`"]);
}

#[test]
fn plugin_names_that_cannot_be() {
    refused(
        "title = 't'\nrules = ['A-10']\n[plugins.»Box]\n[[steps]]\nrun = 'mu'\n",
        &["`Box`", "small letter"],
    );
    refused("title = 't'\nrules = ['A-10']\n[plugins.»dir]\n[[steps]]\nrun = 'mu'\n", &["`dir`"]);
    refused("title = 't'\nrules = ['A-10']\n[plugins.»repo]\n[[steps]]\nrun = 'mu'\n", &["`repo`"]);
}

#[test]
fn two_plugins_with_one_file() {
    let plugins = "[plugins.a]\nfile = { basename = 'mu-plugin-b' }\n[plugins.b]\nfile = »{}\n";
    refused(&format!("title = 't'\nrules = ['A-10']\n{plugins}[[steps]]\nrun = 'mu'\n"), &["same name"]);
}

#[test]
fn unknown_fault_names_the_nearest() {
    refused(
        &in_fault("plugin = 'box'\ndo = »'invalid-utf8-strat'"),
        &["unknown value `invalid-utf8-strat`", "`invalid-utf8-start`", "docs/scenarios.md"],
    );
}

#[test]
fn fault_of_an_unknown_plugin() {
    refused(&in_fault("plugin = »'crate'\ndo = 'bom'"), &["no plugin `crate`", "box"]);
}

#[test]
fn impossible_faults_point_at_the_key_that_is_at_odds() {
    refused(&in_fault("plugin = 'box'\ndo = 'bom'\nwhen = »'mid-reply'"), &["`bom` cannot happen mid-reply"]);
    refused(
        &in_fault("plugin = 'box'\nwhen = 'on-eof'\non = »'initialize'\ndo = { exit = 1 }"),
        &["leave `on` out"],
    );
    refused(&in_fault("plugin = 'box'\nnth = »2\ndo = 'bom'"), &["use `start`"]);
    refused(
        &in_fault("plugin = 'box'\nafter_ms = »5\ndo = { delay-ms = 7 }"),
        &["`delay-ms` is a time itself"],
    );
    refused(&in_fault("plugin = 'box'\ndo = »{ nesting = 2 }"), &["3 to 500000"]);
}

#[test]
fn faults_in_the_wrong_form_are_shown_the_right_one() {
    let fault = |act: &str| in_fault(&format!("plugin = 'box'\ndo = {act}"));
    refused(&fault("»'exit'"), &["`exit` takes a value, such as `{ exit = 0 }`"]);
    refused(&fault("»\"endless-line\""), &["`endless-line` takes a value"]);
    refused(&fault("{ bom = »3 }"), &["`bom` takes no value: `do = \"bom\"`"]);
    for several in ["»{ exit = 3, bom = 1 }", "»{}", "»3", "»['bom']"] {
        refused(&fault(several), &["one fault: its name, or a table of its name and its value"]);
    }
}

#[test]
fn fault_values_of_the_wrong_type() {
    refused(&in_fault("plugin = 'box'\ndo = { exit = »300 }"), &["300"]);
    refused(&in_fault("plugin = 'box'\ndo = { die-of = »'FOO' }"), &["unknown value `FOO`", "`SEGV`"]);
    refused(
        &in_fault("plugin = 'box'\nwhen = »'later'\ndo = 'bom'"),
        &["unknown value `later`", "`instead`"],
    );
}

#[test]
fn second_fault_points_into_the_second_fault() {
    let first = "plugin = 'box'\ndo = 'bom'\n[[faults]]\n";
    refused(&in_fault(&format!("{first}plugin = »'crate'\ndo = 'bom'")), &["crate"]);
}

#[test]
fn plugin_tables_that_make_no_declaration() {
    refused(&in_plugin("drop = ['instance', »'seams.link.nothing']"), &["no `seams.link.nothing`"]);
    refused(&in_plugin("job = »{ view = 'bound' }"), &["`job` is not in `seams`"]);
    refused(&in_plugin("seams = ['link', »'vcs']"), &["unknown value `vcs`", "`channel`"]);
    refused(&in_plugin("set = { 'seams.job.kind' = »1 }"), &["leads nowhere"]);
}

#[test]
fn files_that_cannot_be() {
    refused(&in_plugin("file = { mode = »'rwx' }"), &["octal"]);
    refused(&in_plugin("file = { mode = »'08' }"), &["octal"]);
    refused(&in_plugin("file = { kind = »'pipe' }"), &["unknown value `pipe`", "`fifo`"]);
    refused(&in_plugin("file = { busy_ms = »5 }"), &["busy"]);
    refused(&in_plugin("file = { basename = »'a/b' }"), &["`a/b`"]);
}

#[test]
fn real_and_its_reason_go_together() {
    let text = |lines: &str| format!("title = 't'\nrules = ['A-10']\n{lines}\n[[steps]]\nrun = 'mu'\n");
    refused(&text("real = »false"), &["why_not_real"]);
    refused(&text("why_not_real = »'x'"), &["real = false"]);
}

#[test]
fn keys_for_the_simulated_machine_alone() {
    refused(&in_step("kill_at_call = »3"), &["real = false"]);
    refused(&in_step("panic_at_call = »3"), &["real = false"]);
    refused(&in_step("kill_at_disk = »3"), &["real = false"]);
    refused(&in_step("power_at_call = »3"), &["real = false"]);
    refused(&in_step("power_at_disk = »3"), &["real = false"]);
    refused(&in_step("disk_error = »{ at = 3, errno = 'EIO' }"), &["real = false"]);
    refused(&in_step("kill_plugin_at = »{ box = 3 }"), &["real = false"]);
    refused(&in_step("end_all = »true"), &["real = false"]);
    refused(&in_step("converged = »true"), &["real = false"]);
    refused(&in_step("wall_step_ms = »-3"), &["real = false"]);
    refused(&in_step("world = »{ suspend_ms = 3, at_ms = 1 }"), &["`world`", "real = false"]);
    refused(&in_step("db = »'full'"), &["`db = \"full\"`", "real = false"]);
    refused(&in_step("advance_ms = »60001"), &["real time"]);
}

#[test]
fn no_steps_and_empty_steps() {
    refused("title = 't'\nrules = ['A-10']\nsteps = »[]\n", &["at least one step"]);
    refused("title = 't'\nrules = ['A-10']\n»[[steps]]\n", &["does nothing"]);
}

#[test]
fn expectations_need_a_run() {
    for (line, key) in [("exit = »0", "exit"), ("fetch_head = »'absent'", "fetch_head")] {
        let text = in_step("").replace("run = 'mu plugin list'", &format!("db = 'missing'\n{line}"));
        refused(&text, &[&format!("`{key}` needs a `run`")]);
    }
}

#[test]
fn runs_that_are_no_command_line_of_mu() {
    let run = |line: &str| in_step("").replace("run = 'mu plugin list'", &format!("run = »\"{line}\""));
    refused(&run("ls"), &["begins with `mu`"]);
    refused(&run("mu plugin add 'box"), &["never closed"]);
    refused(&run("mu plugin list | cat"), &["quote `|`"]);
    refused(&run("mu plugin add crate -- {crate}"), &["no plugin `crate`", "box"]);
}

#[test]
fn unknown_plugins_in_a_step() {
    refused(&in_step("chmod = { »crate = '0755' }"), &["no plugin `crate`"]);
    refused(&in_step("file = { »crate = {} }"), &["no plugin `crate`"]);
    refused(&in_step("plan = { »crate = {} }"), &["no plugin `crate`"]);
    refused(&in_step("starts = { »crate = 1 }"), &["no plugin `crate`"]);
    refused(&in_step("wire = { plugin = »'crate', methods = [] }"), &["no plugin `crate`"]);
    refused(
        &in_step("wire = [{ plugin = 'box', methods = [] }, { plugin = »'crate', methods = [] }]"),
        &["crate"],
    );
    refused(&in_step("signal = { to = »'crate', what = 'TERM', at_ms = 1 }"), &["no plugin `crate`"]);
}

#[test]
fn a_plan_with_a_file() {
    refused(&in_step("plan = { box = { file = »{ mode = '0700' } } }"), &["the step's `file`"]);
}

#[test]
fn expectations_that_contradict_each_other() {
    refused(&in_step("exit = 1\ndied_of = »'TERM'"), &["`exit` or `died_of`"]);
    refused(&in_step("exit = 0\nerror = »'X'"), &["exit = 0"]);
    refused(&in_step("took_ms = »[5, 4]"), &["smaller"]);
    refused(&in_step("overlap = »true"), &["no step follows"]);
}

#[test]
fn paths_that_lead_nowhere() {
    refused(&in_step("json = { »'data..x' = 1 }"), &["empty part"]);
    refused(&in_step("json = { »'data[x]' = 1 }"), &["without a number"]);
    refused(&in_step("json_absent = [»'data.#.x']"), &["follows `#`"]);
    refused(&in_step("json = { 'data.x' = »nan }"), &["JSON has no such number"]);
    refused(&in_step("json = { 'data.x' = »[1, { y = -inf }] }"), &["JSON has no such number"]);
    refused(&in_step("json = { 'data.x' = »1979-05-27 }"), &["JSON has no dates"]);
}

#[test]
fn counting_begins_at_one() {
    refused(&in_fault("plugin = 'box'\nstart = »0\ndo = 'bom'"), &["begins at 1"]);
    refused(&in_step("wire = { plugin = 'box', start = »0, methods = [] }"), &["begins at 1"]);
}

#[test]
fn what_happens_to_the_machine_is_one_thing() {
    let simulated = |world: &str| {
        in_step(world).replace("rules = ['A-10']", "rules = ['A-10']\nreal = false\nwhy_not_real = 'x'")
    };
    let says = ["one of `wall_step_ms`, `suspend_ms`, `lock_ms`"];
    refused(&simulated("world = »{ at_ms = 1 }"), &says);
    refused(
        &simulated(
            "world = [{ suspend_ms = 1, at_ms = 1 }, »{ suspend_ms = 1, wall_step_ms = 1, at_ms = 1 }]",
        ),
        &says,
    );
}

#[test]
fn columns_count_characters_and_not_bytes() {
    refused(&in_step("stdout = { contains = 'ä€😀' }\nstderr = { contains = 'ä', »x = 1 }"), &["`x`"]);
}

#[test]
fn a_line_break_that_somebody_wrote_does_not_break_the_line() {
    refused(&in_fault("plugin = 'box'\non = »\"link\\nexec\"\ndo = 'bom'"), &["`link\u{fffd}exec`"]);
}

#[test]
fn what_the_backend_cannot_do() {
    refused(&in_step("backend_set = »{}"), &["sets nothing"]);
    refused(&in_step("backend_set = { »lands_ms = 1 }"), &["unknown key `lands_ms`", "`land_ms`"]);
    refused(&in_step("backend_do = »{ do = 'facts', host = 'box' }"), &["`deadline_ms`"]);
    refused(&in_step("backend_do = »{ do = 'clear', host = 'box' }"), &["`deadlineAt`"]);
    refused(&in_step("backend_do = { do = 'clear', host = 'box', fact = »'deadline' }"), &["`deadlineAt`"]);
    refused(&in_step("backend_do = { do = 'lose', host = 'box', max_jobs = »1 }"), &["`do = \"facts\"`"]);
    refused(&in_step("backend_do = { do = 'lose', host = 'box', fact = »'maxJobs' }"), &["`do = \"clear\"`"]);
    refused(&in_step("backend_do = { do = 'lose', host = »'' }"), &["name of the host"]);
    refused(&in_step("backend_do = { do = »'loose', host = 'box' }"), &["unknown value `loose`", "`lose`"]);
    refused(&in_step("net = [{ do = 'heal' }, »{ do = 'delay' }]"), &["its `ms`"]);
    refused(&in_step("net = { do = 'heal', ms = »4 }"), &["`do = \"delay\"`"]);
    let later = "[[steps]]\nnet = { do = 'heal', at_ms = »1 }";
    refused(&in_step(later), &["give it a `run`"]);
    refused(&in_step("backend = »{ instance = 'a' }"), &["`hosts`", "`fenced`"]);
    refused(&in_step("records = { box = »'gone' }"), &["unknown value `gone`", "`lost`"]);
}

#[test]
fn two_ends_of_one_mu() {
    let simulated =
        |line: &str| in_step(line).replacen("rules", "real = false\nwhy_not_real = 'x'\nrules", 1);
    refused(&simulated("kill_at_disk = 1\npower_at_call = »2"), &["`kill_at_disk` or `power_at_call`"]);
    refused(&simulated("power_at_disk = »0"), &["begins at 1"]);
    refused(&in_step("power_at_disk = »1"), &["`real = false`"]);
    refused(&in_step("reboot = »true"), &["`real = false`"]);
}

#[test]
fn a_moment_around_an_effect_is_for_hosts() {
    refused(
        &in_fault("plugin = 'box'\non = »'link.exec'\nwhen = 'before-effect'\ndo = { exit = 1 }"),
        &["host.acquire"],
    );
    refused(&in_fault("plugin = 'box'\nwhen = »'after-effect'\ndo = { exit = 1 }"), &["host.acquire"]);
}
