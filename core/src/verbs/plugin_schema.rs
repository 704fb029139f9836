//! `mu plugin schema [--digest]`: the published schema byte for byte, or the digest that plugins declare (HSK-07). Starts
//! nothing and opens no database.

use mu_protocol::schema::{SCHEMA, SCHEMA_DIGEST};
use serde_json::json;

use crate::cli::output::{Output, Row};

/// The schema, or its digest.
pub fn run(digest: bool) -> Output {
    if digest {
        let row = Row::new([("schema_digest", json!(SCHEMA_DIGEST))]);
        return Output::verbatim(row, format!("{SCHEMA_DIGEST}\n"));
    }
    let row = Row::new([("schema_digest", json!(SCHEMA_DIGEST)), ("schema", json!(SCHEMA))]);
    Output::verbatim(row, SCHEMA.to_owned())
}
