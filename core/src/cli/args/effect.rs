//! The verbs of `mu effect`: their arguments, and the request that they make.

use clap::{Subcommand, ValueEnum};
use mu_protocol::messages::values::Handle;

use super::{Full, Request};
use crate::cli::failure::{Failure, Kind};
use crate::store::effects::Verdict;

#[derive(Subcommand)]
pub(super) enum Verb {
    /// List the effects without a definite answer
    #[command(after_help = "Example:\n  mu effect list --json")]
    List(Full),
    /// Show all that is known of one
    #[command(after_help = "Example:\n  mu effect show 019b766e-6000-7000-8000-0123456789ab")]
    Show {
        /// Its key
        key: String,
        #[command(flatten)]
        full: Full,
    },
    /// Resolve one now, by the rules or by your word
    #[command(
        long_about = "Find out what became of an effect, as the next verb on its host would. With --as\n\
            you say it yourself, once nobody lives who could still bring it about.",
        after_help = "Example:\n  mu effect resolve 019b766e-6000-7000-8000-0123456789ab"
    )]
    Resolve {
        /// Its key
        key: String,
        /// How it ended, by your own knowledge
        #[arg(long = "as", value_name = "HOW", requires = "because")]
        word: Option<Word>,
        /// Where you know it from; it is recorded
        #[arg(long, value_name = "TEXT", requires = "word")]
        because: Option<String>,
        /// What the plugin calls the host that an acquire made
        #[arg(long, value_name = "HANDLE", requires = "word")]
        handle: Option<String>,
    },
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(super) enum Word {
    /// It took place
    Done,
    /// It did not, and never will
    Undone,
}

impl Verb {
    /// What the words ask for.
    pub(super) fn request(self) -> Result<Request, Failure> {
        let bad = |what: &str| Failure::new(Kind::Usage, what).or_else(["mu effect resolve --help"]);
        Ok(match self {
            Verb::List(Full { full }) => Request::EffectList { full },
            Verb::Show { key, full } => Request::EffectShow { key, full: full.full },
            Verb::Resolve { key, word, because, handle } => {
                let because = because.unwrap_or_default();
                if word.is_some() && because.trim().is_empty() {
                    return Err(bad("--because is empty: say where you know it from"));
                }
                let verdict = match (word, handle) {
                    (None, _) => None,
                    (Some(Word::Done), None) => Some(Verdict::Done(None)),
                    (Some(Word::Done), Some(handle)) => {
                        let handle = Handle::new(handle).map_err(|_| bad("--handle is empty"))?;
                        Some(Verdict::Done(Some(handle)))
                    }
                    (Some(Word::Undone), None) => Some(Verdict::Undone),
                    (Some(Word::Undone), Some(_)) => {
                        return Err(bad(
                            "--handle names a host that was made: it does not go with --as undone",
                        ));
                    }
                };
                Request::EffectResolve { key, word: verdict.map(|verdict| (verdict, because)) }
            }
        })
    }
}
