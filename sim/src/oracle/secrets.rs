//! A secret of the environment appears nowhere (SEC-01), and nothing that mu stores holds bytes that somebody mended
//! (TRN-05).

use super::{History, Observed, Violation};

pub(super) fn check(history: &History, observed: &Observed<'_>, found: &mut Vec<Violation>) {
    let canary = observed.canary.as_bytes();
    let mut say = |rule, text: String| found.push(Violation { oracle: "secrets", rule, at: None, text });
    if observed.leaky {
        return;
    }
    for ran in observed.ran {
        for (stream, bytes) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            if contains(bytes, canary) {
                say("SEC-01", format!("the canary is on the {stream} of `{}`", ran.argv.join(" ")));
            }
        }
    }
    for (path, bytes) in observed.files {
        if contains(bytes, canary) {
            say("SEC-01", format!("the canary is in {}", path.display()));
        }
        if contains(bytes, "\u{fffd}".as_bytes()) {
            say("TRN-05", format!("a replacement character is in {}", path.display()));
        }
    }
    for wire in &history.wires {
        if wire.lines.iter().any(|line| contains(&line.bytes, canary)) {
            say("SEC-01", format!("the canary is in a line that mu wrote to {}", wire.name));
        }
    }
}

fn contains(hay: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(hay, needle).is_some()
}
