//! What each verb costs that reads or writes the tables, as these grow: runs of the real mu on databases with 0, 100, 1,000
//! and 10,000 plugins, as many hosts that were added, as many that were acquired, and as many open effects, beside the few
//! rows that the verbs are about. `cargo bench -p mu-benches --bench growth`.
//!
//! In each round every verb runs once on every database, and the rows are afterwards what they were before. Counted is the
//! time of mu and its plugin on a processor: what a disk takes to write is as long for any table. What is printed is the
//! median on the smallest database, and how many times of it the others take; for a list the time a row as well. A
//! verb that is about one row should not notice the others.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a stopwatch, and processes of the real machine"
)]

use std::os::unix::fs::symlink;
use std::path::Path;

use mu_benches::clock::{children_time, median};
use mu_benches::rows::Rows;
use mu_benches::stage::Stage;
use mu_benches::{child, executables};

const SIZES: [u32; 4] = [0, 100, 1_000, 10_000];
const ROUNDS: usize = 11;

/// What happens in a round, in this order.
const VERBS: [Verb; 23] = [
    Verb::one("plugin show box"),
    Verb::one("plugin add spare -- {plugins}/mu-plugin-spare --answer-lines"),
    Verb::one("plugin rm spare"),
    Verb { exit: 3, ..Verb::one("plugin show boks") },
    Verb::one("plugin check box"),
    Verb::all("plugin list"),
    Verb::all("plugin list --full"),
    Verb::one("host add far --plugin box --fetch true"),
    Verb::one("host show far"),
    Verb::one("host exec far -- true"),
    Verb::one("host check far"),
    Verb::one("host rm far"),
    Verb { exit: 3, ..Verb::one("host show fra") },
    Verb::one("host acquire made --provider box"),
    Verb::one("host show made"),
    Verb::one("host status made"),
    Verb { opens_release: true, ..Verb::one("effect show release-made") },
    Verb { exit: 3, ..Verb::one("effect show release-mode") },
    Verb::one("effect resolve release-made --as undone --because bench"),
    Verb::one("host release made"),
    Verb::all("host list"),
    Verb::all("effect list"),
    Verb::all("effect list --full"),
];

struct Verb {
    words: &'static str,
    /// It is about all rows, and may take time for each.
    all: bool,
    exit: i32,
    /// The release of the host `made` is opened before.
    opens_release: bool,
}

impl Verb {
    const fn one(words: &'static str) -> Verb {
        Verb { words, all: false, exit: 0, opens_release: false }
    }

    const fn all(words: &'static str) -> Verb {
        Verb { all: true, ..Verb::one(words) }
    }

    /// What it is called in the table.
    fn name(&self) -> &'static str {
        self.words.split(" -- ").next().expect("there is one")
    }

    /// Milliseconds that one run spends on a processor, its plugin included.
    fn run(&self, mu: &Path, stage: &Stage) -> f64 {
        if self.opens_release {
            Rows::open(&stage.database()).open_release("made");
        }
        let plugin = stage.plugin();
        let plugins = plugin.parent().and_then(Path::to_str).expect("a path in UTF-8");
        let words: Vec<String> =
            self.words.split(' ').map(|word| word.replace("{plugins}", plugins)).collect();
        let mut command = stage.command(mu, &words.iter().map(String::as_str).collect::<Vec<_>>());
        let start = children_time();
        let status = command.status().expect("mu runs");
        let taken = (children_time() - start).as_secs_f64() * 1000.0;
        assert_eq!(status.code(), Some(self.exit), "mu {}", self.words);
        taken
    }
}

fn main() {
    if child::run_if_asked() {
        return;
    }
    let mu = executables::mu();
    let stages = SIZES.map(|size| {
        let stage = Stage::idle();
        symlink(stage.plugin(), stage.plugin().with_file_name("mu-plugin-spare")).expect("a link");
        stage.register(&mu);
        let rows = Rows::open(&stage.database());
        rows.add_plugins(size);
        rows.add_hosts(size);
        stage
    });
    let mut taken = VERBS.map(|_| SIZES.map(|_| Vec::with_capacity(ROUNDS)));
    for _ in 0..ROUNDS {
        for (verb, columns) in VERBS.iter().zip(&mut taken) {
            for (stage, column) in stages.iter().zip(columns) {
                column.push(verb.run(&mu, stage));
            }
        }
    }
    print!("{:<58} {:>8}", "", "ms, 0");
    SIZES[1..].iter().for_each(|size| print!(" {:>9}", format!("/ {size}")));
    println!(" {:>10}", "µs a row");
    for (verb, columns) in VERBS.iter().zip(taken) {
        let times = columns.map(median);
        print!("{:<58} {:>8.2}", verb.name(), times[0]);
        times[1..].iter().for_each(|time| print!(" {:>9.2}", time / times[0]));
        if verb.all {
            let rows = f64::from(SIZES[3]);
            print!(" {:>10.1}", (times[3] - times[0]) * 1000.0 / rows);
        }
        println!();
    }
}
