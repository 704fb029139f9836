//! A backend between its connections and its books: who has asked what, and when each is answered. The same in the
//! simulated world and in the real executable; both give it the time.

use super::books::Books;
use super::ledger::{Answer, Now, Promise, Question};

/// See the top of this file. A connection is a number.
#[derive(Debug, Default)]
pub struct Desk {
    /// The books.
    pub books: Books,
    open: Vec<Open>,
    told: Vec<String>,
}

/// A question that is not answered yet.
#[derive(Debug)]
struct Open {
    /// The connection; `None` once it is gone.
    who: Option<u64>,
    instance: String,
    what: String,
    promise: Promise,
}

impl Desk {
    /// A desk over these books.
    pub fn new(books: Books) -> Desk {
        Desk { books, ..Desk::default() }
    }

    /// Takes a question that arrives over a connection.
    pub fn hear(&mut self, now: Now, who: u64, instance: &str, question: &Question) {
        self.settle(now);
        let what = text(question);
        self.told.push(format!("{what}: it arrives ({instance})"));
        let promise = self.books.ask(now, instance, question);
        self.open.push(Open { who: Some(who), instance: instance.to_owned(), what, promise });
        self.settle(now);
    }

    /// The connection is gone. What was asked over it takes place all the same.
    pub fn gone(&mut self, who: u64) {
        for open in self.open.iter_mut().filter(|open| open.who == Some(who)) {
            open.who = None;
        }
    }

    /// The answers that are due, with the connections that wait for them.
    pub fn speak(&mut self, now: Now) -> Vec<(u64, Answer)> {
        self.settle(now);
        let mut due = Vec::new();
        while let Some(index) = self.first().filter(|index| self.open[*index].promise.due_ms <= now.at_ms) {
            let open = self.open.remove(index);
            let answer = self.books.answer(now, &open.instance, &open.promise);
            match open.who {
                Some(who) => {
                    self.told.push(format!("{}: answers {}", open.what, said(&answer)));
                    due.push((who, answer));
                }
                None => self.told.push(format!("{}: nobody waits for the answer", open.what)),
            }
        }
        due
    }

    /// The one that is due first.
    fn first(&self) -> Option<usize> {
        let all = self.open.iter().enumerate();
        all.min_by_key(|(index, open)| (open.promise.due_ms, *index)).map(|(index, _)| index)
    }

    /// When something is due next.
    pub fn next_ms(&self) -> Option<u64> {
        let answers = self.open.iter().map(|open| open.promise.due_ms);
        answers.chain(self.books.next_ms()).min()
    }

    /// What has happened since this was asked last, for a reader.
    pub fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }

    fn settle(&mut self, now: Now) {
        self.told.extend(self.books.settle(now));
    }
}

fn text(question: &Question) -> String {
    match question {
        Question::Acquire { key, host, .. } => format!("the acquire of {host}, key {key}"),
        Question::Lookup { key, fence: true } => format!("the fenced lookup of key {key}"),
        Question::Lookup { key, fence: false } => format!("the lookup of key {key}"),
        Question::Status { handle } => format!("the question after {handle}"),
        Question::Release { key, handle } => format!("the release of {handle}, key {key}"),
        Question::Reach { handle } => format!("the wish to reach {handle}"),
    }
}

fn said(answer: &Answer) -> String {
    match answer {
        Answer::Result(result) => result.to_string(),
        Answer::Refused { message, .. } => format!("that it is refused, {message}"),
    }
}
