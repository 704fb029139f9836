//! What mu had written down at the moments at which that changed, as rows of text.

use serde::Serialize;

/// mu's tables after a change of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// How many events there had been.
    pub place: usize,
    /// What stands there, and what no longer does.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What it is about: `plugin`, `host`, `effect` or `verdict`.
    pub about: &'static str,
    /// Its name or key.
    pub name: String,
    /// What it says.
    pub says: String,
    /// What became of it.
    pub change: Change,
}

/// What became of a row since the moment before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It was not there.
    New,
    /// It says something else.
    Changed,
    /// It is not there any more; what it said.
    Gone,
    /// Nothing.
    Same,
}

impl Change {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Change::New => "new",
            Change::Changed => "changed",
            Change::Gone => "gone",
            Change::Same => "as before",
        }
    }
}

/// The rows of `after`, each with what became of it since `before`, and those that are gone.
pub fn compared(before: &[Row], after: Vec<Row>) -> Vec<Row> {
    let is = |one: &Row, other: &Row| one.about == other.about && one.name == other.name;
    let standing = || before.iter().filter(|row| row.change != Change::Gone);
    let gone = standing().filter(|row| !after.iter().any(|other| is(row, other)));
    let gone: Vec<Row> = gone.map(|row| Row { change: Change::Gone, ..row.clone() }).collect();
    let now = after.into_iter().map(|row| {
        let change = match standing().find(|other| is(&row, other)) {
            None => Change::New,
            Some(other) if other.says != row.says => Change::Changed,
            Some(_) => Change::Same,
        };
        Row { change, ..row }
    });
    now.chain(gone).collect()
}

impl Moment {
    /// What changed, in one line.
    pub fn sentence(&self) -> String {
        let changed = self.rows.iter().filter(|row| row.change != Change::Same);
        let told = changed.map(|row| match row.change {
            Change::Gone => format!("{} {} is gone", row.about, row.name),
            _ => format!("{} {}: {}", row.about, row.name, row.says),
        });
        told.collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, says: &str) -> Row {
        Row { about: "host", name: name.to_owned(), says: says.to_owned(), change: Change::New }
    }

    #[test]
    fn a_row_is_new_changed_gone_or_as_before() {
        let first = compared(&[], vec![row("a", "acquiring"), row("b", "ready")]);
        let second = compared(&first, vec![row("a", "ready"), row("c", "ready")]);
        let told: Vec<_> = second.iter().map(|row| (&row.name[..], row.change)).collect();
        assert_eq!(told, [("a", Change::Changed), ("c", Change::New), ("b", Change::Gone)]);
        let third = compared(&second, vec![row("a", "ready"), row("c", "ready")]);
        assert!(third.iter().all(|row| row.change == Change::Same), "what is gone is told once: {third:?}");
        let moment = Moment { place: 0, rows: second };
        assert_eq!(moment.sentence(), "host a: ready; host c: ready; host b is gone");
    }
}
