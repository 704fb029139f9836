//! A secret of the environment appears nowhere (SEC-01), what a plugin says on stderr is never stored (TRN-08) and is
//! shown by its first line alone (TRN-09), and nothing that mu stores holds bytes that somebody mended (TRN-05).

use super::calls::Call;
use super::{History, Leak, Observed, Violation};

/// Words on stderr that are too short to be told from others.
const SHORT: usize = 12;
/// Characters of stderr's first line that may be shown (TRN-09).
const SHOWN: usize = 400;

pub(super) fn check(history: &History, observed: &Observed<'_>, found: &mut Vec<Violation>) {
    let mut say = |rule, text: String| found.push(Violation { oracle: "secrets", rule, at: None, text });
    if observed.leak < Leak::Stored {
        canary(history, observed, &mut say);
    }
    outputs_of_runs(history, observed, &mut say);
    stderr(history, observed, &mut say);
    mended(history, observed, &mut say);
}

type Say<'a> = dyn FnMut(&'static str, String) + 'a;

fn outputs<'a>(observed: &'a Observed<'_>) -> impl Iterator<Item = (String, &'a [u8])> {
    observed.ran.iter().flat_map(|ran| {
        let streams = [("stdout", &ran.stdout), ("stderr", &ran.stderr)];
        streams.map(|(stream, bytes)| (format!("the {stream} of `{}`", ran.argv.join(" ")), &bytes[..]))
    })
}

fn files<'a>(observed: &'a Observed<'_>) -> impl Iterator<Item = (String, &'a [u8])> {
    observed.files.iter().map(|(path, bytes)| (path.display().to_string(), &bytes[..]))
}

fn canary(history: &History, observed: &Observed<'_>, say: &mut Say<'_>) {
    let canary = observed.canary.as_bytes();
    let shown = outputs(observed).filter(|_| observed.leak == Leak::Nothing);
    for (place, bytes) in shown.chain(files(observed)) {
        if contains(bytes, canary) {
            say("SEC-01", format!("the canary is in {place}"));
        }
    }
    for wire in &history.wires {
        if wire.lines.iter().any(|line| contains(&line.bytes, canary)) {
            say("SEC-01", format!("the canary is in a line that mu wrote to {}", wire.name));
        }
    }
}

/// What a run prints is handed to the caller and stored nowhere.
fn outputs_of_runs(history: &History, observed: &Observed<'_>, say: &mut Say<'_>) {
    let is_database = |path: &str, bytes: &[u8]| {
        bytes.starts_with(b"SQLite format 3") || path.ends_with("-wal") || path.ends_with("-journal")
    };
    for run in history.wires.iter().flat_map(Call::all).filter(|call| call.method == "link.exec") {
        let streams = ["stdout", "stderr"].map(|stream| run.result()?.get(stream)?.as_str());
        for text in streams.into_iter().flatten() {
            // What a leaky plugin prints it may also have declared, which is stored.
            let leaked = |first: &str| observed.leak != Leak::Nothing && first.contains(observed.canary);
            let long = |first: &&str| first.len() >= SHORT && !leaked(first);
            let first = text.lines().next().filter(long).unwrap_or_default();
            for (path, bytes) in files(observed).filter(|_| !first.is_empty()) {
                if is_database(&path, bytes) && contains(bytes, first.as_bytes()) {
                    say("SEC-01", format!("the output of a run is in {path}"));
                }
            }
        }
    }
}

fn stderr(history: &History, observed: &Observed<'_>, say: &mut Say<'_>) {
    for wire in &history.wires {
        let mut lines = wire.stderr.split(|&byte| byte == b'\n');
        let first = lines.next().unwrap_or_default();
        let second = lines.next().unwrap_or_default();
        // What a leaky plugin says it may also have declared, which is stored.
        let declared =
            |text: &[u8]| observed.leak == Leak::Stored && contains(text, observed.canary.as_bytes());
        if first.len() >= SHORT && !declared(first) {
            for (path, _) in files(observed).filter(|(_, bytes)| contains(bytes, first)) {
                say("TRN-08", format!("the stderr of {} is in {path}", wire.name));
            }
        }
        // Longer by one character than what may be shown; counted in bytes, it is at least that long.
        let too_much = first.get(..SHOWN + 1).filter(|too_much| too_much.is_ascii());
        // What stands in a line that may be shown, of this plugin or another, is not told from it.
        let shown = |text: &[u8]| history.wires.iter().any(|wire| contains(first_line(&wire.stderr), text));
        let unseen = Some(second).filter(|second| second.len() >= SHORT && !shown(second));
        for text in too_much.into_iter().chain(unseen).filter(|text| !declared(text)) {
            for (place, _) in outputs(observed).filter(|(_, bytes)| contains(bytes, text)) {
                say(
                    "TRN-09",
                    format!("more than the first 400 characters of stderr's first line are in {place}"),
                );
            }
        }
    }
}

fn first_line(stderr: &[u8]) -> &[u8] {
    stderr.split(|&byte| byte == b'\n').next().unwrap_or_default()
}

/// A person or a plugin may use the replacement character like any other.
fn mended(history: &History, observed: &Observed<'_>, say: &mut Say<'_>) {
    let meant = history.wires.iter().any(|wire| wire.speech.holds_replacement())
        || observed.ran.iter().any(|ran| ran.argv.iter().any(|arg| arg.contains('\u{fffd}')));
    if meant {
        return;
    }
    for (path, _) in files(observed).filter(|(_, bytes)| contains(bytes, "\u{fffd}".as_bytes())) {
        say("TRN-05", format!("a replacement character is in {path}"));
    }
}

fn contains(hay: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(hay, needle).is_some()
}
