//! What is shown while items are played: a bar on a terminal, a plain line now and then elsewhere.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::{say, tell};

/// Time between two plain lines.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// The progress of one campaign. Findings go to standard output, everything else to standard error.
pub(crate) struct Progress {
    what: &'static str,
    bar: Option<ProgressBar>,
    total: usize,
    done: usize,
    findings: usize,
    quiet: bool,
    told: Instant,
}

impl Progress {
    /// `total` things called `what`; `quiet` shows nothing at all.
    pub(crate) fn new(what: &'static str, total: usize, quiet: bool) -> Progress {
        let bar = (!quiet && io::stderr().is_terminal()).then(|| {
            let style = "{bar:40} {pos}/{len} {msg}, {per_sec:0}, {eta} left";
            let style = ProgressStyle::with_template(style).expect("the template is sound");
            ProgressBar::new(total as u64).with_style(style).with_message(what)
        });
        let progress = Progress { what, bar, total, done: 0, findings: 0, quiet, told: Instant::now() };
        progress.plain();
        progress
    }

    /// One more is done, with so many findings.
    pub(crate) fn step(&mut self, findings: usize) {
        self.steps(1, findings);
    }

    /// So many more are done, with so many findings.
    pub(crate) fn steps(&mut self, count: usize, findings: usize) {
        self.done += count;
        self.findings += findings;
        if let Some(bar) = &self.bar {
            bar.inc(count as u64);
            if findings > 0 {
                bar.set_message(format!("{}, {} findings", self.what, self.findings));
            }
        } else if self.told.elapsed() >= PLAIN_EVERY {
            self.told = Instant::now();
            self.plain();
        }
    }

    fn plain(&self) {
        if self.bar.is_none() && !self.quiet {
            let findings =
                if self.findings == 0 { String::new() } else { format!(", {} findings", self.findings) };
            tell(&format!("{} of {} {}{findings}\n", self.done, self.total, self.what));
        }
    }

    /// Prints a text between two states of the bar.
    pub(crate) fn say(&self, text: &str) {
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.suspend(|| say(text)),
            None => say(text),
        }
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        match &self.bar {
            Some(bar) => bar.finish_and_clear(),
            None => self.plain(),
        }
    }
}
