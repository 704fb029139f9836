//! A small part of the POSIX shell: scripts as data.
//!
//! In: the text of a script. Out: its steps, in order; nothing is run here. A script that stays within this part means
//! the same to a real `/bin/sh`; for what lies beyond it the steps are a complaint and status 2, since a script that
//! only seemed to run would prove nothing.
//!
//! - Commands: `echo WORD…` (first word `-n`: no newline), `printf FORMAT` (escapes, no `%` but `%%`), `sleep SECONDS`
//!   (fractions too), `exit`, `exit N`, `true`, `false`, `:`. Any other word is `not found`, status 127.
//! - Redirections of what a command prints: `>&1`, `>&2`, `> FILE`.
//! - Joined by `;`, newline, `&&`. Quotes `'…'` and `"…"`, backslashes, a backslash at a line's end.

use std::iter::Peekable;
use std::str::Chars;
use std::time::Duration;

/// One command of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// It stands behind `&&`: it is left out unless the status is 0.
    pub and: bool,
    /// What it does.
    pub op: Op,
}

/// What a command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Writes bytes, possibly none; `status` is then the status.
    Write {
        /// Where to.
        to: To,
        /// What.
        bytes: Vec<u8>,
        /// The status when all was written.
        status: u8,
    },
    /// Time passes; the status is 0.
    Sleep(Duration),
    /// The script ends with this status, or with the one that it has.
    Exit(Option<u8>),
}

/// Where bytes go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
    /// A file, which is made, or emptied before. A relative path counts from the working directory.
    File(String),
}

/// Reads a script; `shell` is the name under which the shell complains. The status before the first step is 0.
pub fn read(shell: &str, script: &str) -> Vec<Step> {
    let mut reader = Reader { shell, left: script.chars().peekable(), line: 1 };
    let mut steps = Vec::new();
    while reader.left.peek().is_some() {
        let whole = steps.len();
        if let Err(reason) = reader.list(&mut steps) {
            // A shell runs a line only once it has read it.
            steps.truncate(whole);
            let op = reader.complaint(&reason, 2);
            steps.extend([Step { and: false, op }, Step { and: false, op: Op::Exit(Some(2)) }]);
            break;
        }
    }
    steps
}

/// What a word is followed by.
#[derive(PartialEq)]
enum Join {
    And,
    Semicolon,
    Line,
}

struct Reader<'a> {
    shell: &'a str,
    left: Peekable<Chars<'a>>,
    line: u32,
}

impl Reader<'_> {
    fn complaint(&self, reason: &str, status: u8) -> Op {
        let bytes = format!("{}: {}: {reason}\n", self.shell, self.line).into_bytes();
        Op::Write { to: To::Err, bytes, status }
    }

    /// The commands up to the end of a line.
    fn list(&mut self, steps: &mut Vec<Step>) -> Result<(), String> {
        let mut and = false;
        loop {
            let (words, to) = self.words()?;
            let Some(command) = words.first() else {
                match (and, self.join()?) {
                    // Lines may part behind `&&`.
                    (true, Some(Join::Line)) => continue,
                    (false, None | Some(Join::Line)) if to.is_none() => return Ok(()),
                    _ => return Err("Syntax error: a command is missing".into()),
                }
            };
            steps.push(Step { and, op: self.command(command, &words[1..], to)? });
            match self.join()? {
                None | Some(Join::Line) => return Ok(()),
                Some(Join::And) => and = true,
                Some(Join::Semicolon) => and = false,
            }
        }
    }

    fn join(&mut self) -> Result<Option<Join>, String> {
        Ok(Some(match self.left.next() {
            None => return Ok(None),
            Some(';') => Join::Semicolon,
            Some('\n') => {
                self.line += 1;
                Join::Line
            }
            Some('&') if self.left.next_if_eq(&'&').is_some() => Join::And,
            Some(other) => return Err(beyond(other)),
        }))
    }

    /// The words of a command and where its output goes.
    fn words(&mut self) -> Result<(Vec<String>, Option<To>), String> {
        let (mut words, mut to) = (Vec::new(), None);
        loop {
            match self.left.peek() {
                Some(' ' | '\t') => drop(self.left.next()),
                None | Some('\n' | ';' | '&') => return Ok((words, to)),
                Some('>') => {
                    self.left.next();
                    if to.is_some() {
                        return Err(beyond('>'));
                    }
                    to = Some(self.target()?);
                }
                Some(sign @ ('#' | '~')) => return Err(beyond(*sign)),
                Some(_) => {
                    let word = self.word()?;
                    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
                    if is_number && self.left.peek() == Some(&'>') {
                        return Err(beyond('>'));
                    }
                    words.push(word);
                }
            }
        }
    }

    fn target(&mut self) -> Result<To, String> {
        if self.left.next_if_eq(&'&').is_some() {
            return match self.word()?.as_str() {
                "1" => Ok(To::Out),
                "2" => Ok(To::Err),
                _ => Err(beyond('&')),
            };
        }
        while self.left.next_if(|sign| matches!(sign, ' ' | '\t')).is_some() {}
        match self.left.peek() {
            None | Some('\n' | ';' | '&') => Err("Syntax error: a file is missing".into()),
            Some(sign @ ('>' | '#' | '~')) => Err(beyond(*sign)),
            Some(_) => Ok(To::File(self.word()?)),
        }
    }

    fn word(&mut self) -> Result<String, String> {
        let mut word = String::new();
        while let Some(sign) = self.left.next_if(|sign| !" \t\n;&>".contains(*sign)) {
            match sign {
                '\'' => loop {
                    match self.left.next().ok_or(UNTERMINATED)? {
                        '\'' => break,
                        sign => word.push(self.count(sign)),
                    }
                },
                '"' => loop {
                    match self.left.next().ok_or(UNTERMINATED)? {
                        '"' => break,
                        '\\' => match self.left.next().ok_or(UNTERMINATED)? {
                            '\n' => self.line += 1,
                            sign @ ('"' | '\\' | '$' | '`') => word.push(sign),
                            sign => word.extend(['\\', sign]),
                        },
                        sign @ ('$' | '`') => return Err(beyond(sign)),
                        sign => word.push(self.count(sign)),
                    }
                },
                '\\' => match self.left.next() {
                    Some('\n') => self.line += 1,
                    sign => word.push(sign.unwrap_or('\\')),
                },
                '|' | '<' | '(' | ')' | '$' | '`' | '*' | '?' | '[' => return Err(beyond(sign)),
                sign => word.push(sign),
            }
        }
        Ok(word)
    }

    fn count(&mut self, sign: char) -> char {
        self.line += u32::from(sign == '\n');
        sign
    }

    fn command(&self, command: &str, words: &[String], to: Option<To>) -> Result<Op, String> {
        let redirected = to.is_some();
        let to = to.unwrap_or(To::Out);
        let write = |bytes, status| Ok(Op::Write { to, bytes, status });
        match (command, words) {
            ("true" | ":", _) => write(Vec::new(), 0),
            ("false", _) => write(Vec::new(), 1),
            // Shells do not agree on what it makes of a backslash.
            ("echo", _) if words.iter().any(|word| word.contains('\\')) => Err("echo: a backslash".into()),
            ("echo", [first, rest @ ..]) if first == "-n" => write(rest.join(" ").into_bytes(), 0),
            ("echo", _) => write((words.join(" ") + "\n").into_bytes(), 0),
            ("printf", [format]) => write(printed(format)?, 0),
            ("sleep" | "exit", _) if redirected => Err(beyond('>')),
            ("sleep", [span]) => {
                let seconds =
                    span.parse().ok().filter(|_| span.starts_with(|sign: char| sign.is_ascii_digit()));
                let span = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                span.map(Op::Sleep).ok_or("sleep: invalid time interval".into())
            }
            ("exit", []) => Ok(Op::Exit(None)),
            ("exit", [status]) => {
                let status: u32 = status.parse().map_err(|_| format!("exit: Illegal number: {status}"))?;
                Ok(Op::Exit(Some((status & 0xff) as u8)))
            }
            ("printf" | "sleep" | "exit", _) => Err(format!("{command}: so many words")),
            _ if redirected => Err(beyond('>')),
            _ => Ok(self.complaint(&format!("{command}: not found"), 127)),
        }
    }
}

const UNTERMINATED: &str = "Syntax error: Unterminated quoted string";

fn beyond(sign: char) -> String {
    format!("Syntax error: \"{sign}\" unexpected")
}

/// What `printf` makes of a format without conversions. `\377` is a byte.
fn printed(format: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut left = format.bytes().peekable();
    while let Some(byte) = left.next() {
        bytes.push(match byte {
            b'%' => left.next_if_eq(&b'%').ok_or("printf: a conversion")?,
            b'\\' => match left.next() {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'r') => b'\r',
                Some(b'\\') => b'\\',
                Some(first @ b'0'..=b'7') => {
                    let mut value = u32::from(first - b'0');
                    for _ in 0..2 {
                        let Some(next) = left.next_if(|next| (b'0'..=b'7').contains(next)) else { break };
                        value = value * 8 + u32::from(next - b'0');
                    }
                    (value & 0xff) as u8
                }
                _ => return Err("printf: a backslash".into()),
            },
            byte => byte,
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ops(script: &str) -> Vec<Op> {
        read("sh", script).into_iter().map(|step| step.op).collect()
    }

    fn write(to: To, bytes: &str, status: u8) -> Op {
        Op::Write { to, bytes: bytes.into(), status }
    }

    fn out(bytes: &str) -> Op {
        write(To::Out, bytes, 0)
    }

    #[test]
    fn commands_are_steps() {
        assert_eq!(
            ops("echo a  b; sleep 0.25\n: ; false;true\n\nexit 300;exit"),
            [
                out("a b\n"),
                Op::Sleep(Duration::from_millis(250)),
                out(""),
                write(To::Out, "", 1),
                out(""),
                Op::Exit(Some(44)),
                Op::Exit(None),
            ]
        );
        assert_eq!(ops(""), []);
        assert_eq!(ops("\n\n"), []);
    }

    #[test]
    fn words_are_quoted_as_a_shell_has_it() {
        for (script, said) in [
            (r"echo 'it'\''s' a\ b\;", "it's a b;\n"),
            (r#"echo "a'  'b" '"' "\"\$x""#, "a'  'b \" \"$x\n"),
            ("echo 'a\nb' c\\\nd", "a\nb cd\n"),
            ("echo -n a -n", "a -n"),
            ("echo", "\n"),
            ("echo '' a", " a\n"),
            ("echo a#b {x}", "a#b {x}\n"),
        ] {
            assert_eq!(ops(script), [out(said)], "{script}");
        }
    }

    #[test]
    fn printf_knows_bytes() {
        let bytes = b"a\xff\0b\n%".to_vec();
        assert_eq!(ops(r"printf 'a\377\0b\n%%'"), [Op::Write { to: To::Out, bytes, status: 0 }]);
    }

    #[test]
    fn output_goes_where_it_is_sent() {
        let file = |path: &str| To::File(path.into());
        assert_eq!(ops("echo a >&2"), [write(To::Err, "a\n", 0)]);
        assert_eq!(ops("echo a>b"), [write(file("b"), "a\n", 0)]);
        assert_eq!(ops("echo > '/x y/z' a"), [write(file("/x y/z"), "a\n", 0)]);
    }

    #[test]
    fn a_step_behind_and_is_marked() {
        let marks = |script| read("sh", script).iter().map(|step| step.and).collect::<Vec<_>>();
        assert_eq!(
            marks("true && false && true; true\ntrue &&\n\ntrue"),
            [false, true, true, false, false, true]
        );
    }

    #[test]
    fn an_unknown_command_is_not_found_and_the_script_goes_on() {
        assert_eq!(
            ops("true\ngit fetch; exit 3"),
            [out(""), write(To::Err, "sh: 2: git: not found\n", 127), Op::Exit(Some(3))]
        );
    }

    #[test]
    fn what_lies_beyond_is_a_complaint_and_nothing_of_its_line_runs() {
        for script in [
            "echo a | cat",
            "echo a || true",
            "echo a &",
            "echo $HOME",
            "echo \"`x`\"",
            "cat < x",
            "(true)",
            "echo *",
            "echo a 2>b",
            "echo a >> b",
            "echo a >b >c",
            "git >x",
            "sleep 1 > x",
            "# a",
            "echo ~",
            "echo 'a",
            "echo \"a",
            "&& true",
            "true && ; true",
            "; true",
            "true ;; true",
            "true &&",
            "> x",
            "echo a >",
            "sleep x",
            "sleep -1",
            "sleep inf",
            "exit x",
            "printf '%s' a",
            "printf %s",
            r"printf '\q'",
            r"echo 'a\n'",
        ] {
            let [.., Op::Write { to: To::Err, bytes, status: 2 }, Op::Exit(Some(2))] = &ops(script)[..]
            else {
                panic!("{script}: {:?}", ops(script));
            };
            assert!(bytes.starts_with(b"sh: 1: ") && bytes.ends_with(b"\n"), "{script}");
            assert_eq!(ops(script).len(), 2, "{script}");
            // What the lines before it say is done.
            assert_eq!(ops(&format!("echo first\n{script}")).len(), 3, "{script}");
        }
    }
}
