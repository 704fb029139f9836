//! `mu completions <shell>`: a completion script.

use clap_complete::{Generator, generate, shells};
use serde_json::json;

use crate::cli::args::{Shell, tree};
use crate::cli::output::{Output, Row};

/// The script for a shell.
pub fn run(shell: Shell) -> Output {
    let script = match shell {
        Shell::Bash => script(shells::Bash),
        Shell::Zsh => script(shells::Zsh),
        Shell::Fish => script(shells::Fish),
    };
    Output::verbatim(Row::new([("script", json!(script))]), script)
}

fn script(shell: impl Generator) -> String {
    let mut bytes = Vec::new();
    generate(shell, &mut tree(), "mu", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
