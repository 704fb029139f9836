//! Rows, results and the envelope around them.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::cli::cut;
use crate::cli::failure::Failure;
use crate::cli::text;

/// One record: column names of SQL (OUT-08) with their values, in the order they are shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(Vec<(String, Value)>);

impl Row {
    /// A row of these fields. A column that comes twice keeps the first name; later ones gain `:1`, `:2`, ….
    pub fn new<C: Into<String>>(fields: impl IntoIterator<Item = (C, Value)>) -> Row {
        let mut row = Row::default();
        for (column, value) in fields {
            row.push(column.into(), value);
        }
        row
    }

    /// Adds a field at the end.
    pub fn push(&mut self, column: String, value: Value) {
        let column = self.free_name(column);
        self.0.push((column, value));
    }

    /// `column`, or the first of `column:1`, `column:2`, … that no field has yet: a JSON object has each name once.
    fn free_name(&self, column: String) -> String {
        if self.value(&column).is_none() {
            return column;
        }
        (1..).map(|n| format!("{column}:{n}")).find(|name| self.value(name).is_none()).expect("numbers go on")
    }

    /// Column and value, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().map(|(column, value)| (column, value))
    }

    /// The fields, to change or drop.
    pub fn fields_mut(&mut self) -> &mut Vec<(String, Value)> {
        &mut self.0
    }

    /// The value under a column.
    pub fn value(&self, column: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == column).map(|(_, value)| value)
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (column, value) in &self.0 {
            map.serialize_entry(column, value)?;
        }
        map.end()
    }
}

/// What to run next (OUT-04).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Next {
    mode: Mode,
    commands: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Seq,
    Alt,
}

impl Next {
    /// All of these, in this order.
    pub fn seq<S: Into<String>>(commands: impl IntoIterator<Item = S>) -> Next {
        Next { mode: Mode::Seq, commands: commands.into_iter().map(Into::into).collect() }
    }

    /// One of these.
    pub fn alt<S: Into<String>>(commands: impl IntoIterator<Item = S>) -> Next {
        Next { mode: Mode::Alt, commands: commands.into_iter().map(Into::into).collect() }
    }

    /// The commands.
    pub fn commands(&self) -> &[String] {
        &self.commands
    }
}

/// What a verb hands back.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A list verb: `{"<table>":[rows],"more":N}`, `more` counting rows that were not even read into `rows`.
    List {
        /// Key of the rows.
        table: &'static str,
        /// The rows.
        rows: Vec<Row>,
        /// How many more there are.
        more: u64,
        /// Whether a row was cut already.
        cut: bool,
    },
    /// A show or a write verb: the row.
    Row(Row),
    /// A text that is the result itself (a schema, a completion script, help): verbatim for people, a string in JSON,
    /// never cut.
    Verbatim(Row, String),
    /// What a command on a host wrote and how it ended: passed on for people, in the row for JSON, never cut.
    Passed(Row, Passed),
}

/// What is passed on of a command on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// For standard output, byte for byte.
    pub stdout: String,
    /// For standard error, byte for byte.
    pub stderr: String,
    /// The exit code of mu.
    pub status: u8,
}

/// The result of a verb that did what it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The result.
    pub data: Data,
    /// For people, instead of the fields of a row: what was done, in one line.
    pub summary: Option<String>,
    /// The command that prints the same result uncut; `None` when this is that result (OUT-11).
    pub uncut: Option<String>,
    /// What to run next, computed once (OUT-06).
    pub next: Option<Next>,
    /// Lines for standard error.
    pub notes: Vec<String>,
}

impl Output {
    /// A bare result; the fields are set by whoever has more to say.
    pub fn new(data: Data) -> Output {
        Output { data, summary: None, uncut: None, next: None, notes: Vec::new() }
    }

    /// A row whose whole text is `verbatim`.
    pub fn verbatim(row: Row, verbatim: String) -> Output {
        Output::new(Data::Verbatim(row, verbatim))
    }
}

/// What is written at the end: a document for standard output, lines for standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// Standard output.
    pub out: String,
    /// Standard error, line by line.
    pub err: Vec<String>,
    /// Bytes for standard error before those lines, as they are.
    pub passed: String,
    /// Exit code.
    pub exit: u8,
}

#[derive(serde::Serialize)]
struct Success<'a> {
    ok: bool,
    data: DataJson<'a>,
    next: &'a Option<Next>,
}

struct DataJson<'a>(&'a Data);

impl Serialize for DataJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Data::Row(row) | Data::Verbatim(row, _) | Data::Passed(row, _) => row.serialize(serializer),
            Data::List { table, rows, more, .. } => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry(table, rows)?;
                map.serialize_entry("more", more)?;
                map.end()
            }
        }
    }
}

/// `{ok,data,next}` on one line (OUT-01), without the newline.
pub(crate) fn success_json(data: &Data, next: &Option<Next>) -> String {
    json_line(&Success { ok: true, data: DataJson(data), next })
}

/// A value as one line of JSON that a terminal may see.
pub(crate) fn json_line(value: &impl Serialize) -> String {
    text::escape_json(serde_json::to_string(value).expect("keys are strings and numbers are finite"))
}

/// Renders what a verb returned: the envelope with `json` and for every failure (OUT-01, OUT-02, OUT-03), else text.
pub fn render(result: Result<Output, Failure>, json: bool) -> Printed {
    match result {
        Ok(output) => render_success(cut::output(output), json),
        Err(failure) => {
            let mut err = if json { Vec::new() } else { vec![failure.message.clone()] };
            err.extend(failure.notes.iter().cloned());
            let out = json_line(&failure.envelope()) + "\n";
            Printed { out, err, passed: String::new(), exit: failure.kind.exit() }
        }
    }
}

fn render_success(output: Output, json: bool) -> Printed {
    let Output { data, summary, next, notes, .. } = output;
    let (passed, exit) = match &data {
        Data::Passed(_, Passed { stderr, status, .. }) => (stderr.clone(), *status),
        _ => (String::new(), 0),
    };
    if json {
        return Printed { out: success_json(&data, &next) + "\n", err: notes, passed: String::new(), exit };
    }
    let mut out = match (&data, summary) {
        (Data::Passed(_, passed), _) => passed.stdout.clone(),
        (Data::Verbatim(_, text), _) => text.clone(),
        (Data::Row(_), Some(summary)) => text::escape(&summary).into_owned() + "\n",
        (Data::Row(row), None) => text::fields(row),
        (Data::List { rows, more: 0, .. }, _) if rows.is_empty() => String::new(),
        (Data::List { table, rows, more, .. }, _) => {
            let mut text = if rows.is_empty() { String::new() } else { text::table(rows, *table != "rows") };
            if *more > 0 {
                text += &format!("more={more}\n");
            }
            text
        }
    };
    for command in next.iter().flat_map(Next::commands) {
        out += &format!("next: {command}\n");
    }
    Printed { out, err: notes, passed, exit }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::failure::Kind;

    fn plugins(rows: Vec<Row>) -> Output {
        Output::new(Data::List { table: "plugins", rows, more: 0, cut: false })
    }

    /// OUT-01
    #[test]
    fn a_list_is_an_envelope_of_rows_and_the_count_of_more() {
        let printed = render(Ok(plugins(vec![Row::new([("name", json!("box"))])])), true);
        let wanted = "{\"ok\":true,\"data\":{\"plugins\":[{\"name\":\"box\"}],\"more\":0},\"next\":null}\n";
        assert_eq!(printed.out, wanted);
        assert_eq!(printed.exit, 0);
    }

    /// OUT-08
    #[test]
    fn fields_keep_their_order_and_a_repeated_column_gets_a_number() {
        let row = Row::new([("b", json!(1)), ("a", json!(2)), ("b", json!(3)), ("b", json!(4))]);
        assert_eq!(serde_json::to_string(&row).unwrap(), r#"{"b":1,"a":2,"b:1":3,"b:2":4}"#);
    }

    /// OUT-02
    #[test]
    fn a_failure_without_json_is_an_envelope_on_stdout_and_a_line_on_stderr() {
        let failure = Failure::new(Kind::UnknownPlugin, "no plugin box").or_else(["mu plugin list"]);
        let text = render(Err(failure.clone()), false);
        let json = render(Err(failure), true);
        assert_eq!(text.out, json.out);
        assert_eq!(text.err, ["no plugin box"]);
        assert!(json.err.is_empty());
        assert_eq!((text.exit, json.exit), (3, 3));
    }

    #[test]
    fn an_empty_list_prints_nothing_for_people() {
        assert_eq!(render(Ok(plugins(vec![])), false).out, "");
    }

    #[test]
    fn a_verbatim_text_is_printed_byte_for_byte_and_quoted_in_json() {
        let output = Output::verbatim(Row::new([("schema", json!("a\n"))]), "a\n".into());
        assert_eq!(render(Ok(output.clone()), false).out, "a\n");
        assert_eq!(
            render(Ok(output), true).out,
            "{\"ok\":true,\"data\":{\"schema\":\"a\\n\"},\"next\":null}\n"
        );
    }
}
