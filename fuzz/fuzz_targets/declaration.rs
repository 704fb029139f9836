//! Answers to `initialize`: declarations that are nearly right, drawn from the input, and raw bytes. What reads them and the
//! published schema agree (GEN-04), the load rules are those of the protocol page, and a refusal is fit for one line.

#![no_main]

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use mu_fuzz::declare::{self, Registered, Verdict, verdict};
use mu_fuzz::{json, schema};
use mu_protocol::declaration::{Declaration, Seam, Vocabulary};
use mu_protocol::envelope::{self, Body, Incoming};
use mu_protocol::load::{LoadRefusal, Registration, load};
use mu_protocol::schema::SCHEMA_DIGEST;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    // An input that ends early is drawn from zeros; that is never an error.
    let _ = attack(&mut Unstructured::new(data));
});

fn attack(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let needs: Vec<Seam> = match u.ratio(1, 8)? {
        true => vec![*u.choose(Seam::ALL)?, *u.choose(Seam::ALL)?],
        false => Vec::new(),
    };
    if u.ratio(1, 4)? {
        if let Ok(text) = std::str::from_utf8(u.bytes(u.len())?) {
            answer("result", text, &needs, None);
            answer("error", text, &needs, None);
            recorded(text);
        }
        return Ok(());
    }
    let mut value = declare::declaration(u)?;
    let mut before = value.clone();
    if u.ratio(1, 4)? {
        declare::damage(u, &mut before)?;
    }
    if u.arbitrary()? {
        declare::damage(u, &mut value)?;
    }
    let mut text = String::new();
    declare::spell(u, &value, &mut text)?;
    recorded(&text);
    let before = Declaration::from_recorded(&before.to_string()).ok().filter(|_| u.ratio(1, 2) == Ok(true));
    answer("result", &text, &needs, before.as_ref());
    Ok(())
}

/// GEN-04, SEC-01: what was recorded is read exactly if the schema allows it, and written as the same value.
fn recorded(text: &str) {
    let read = Declaration::from_recorded(text);
    let line = format!("{{\"it\":{text}}}");
    // The text may close the object around it and go on.
    let legal = json::legal(line.as_bytes()).filter(|_| json::look(text).is_some());
    let Some(json::Legal { value: Some(value), seen }) = legal else {
        return assert!(read.is_err(), "a declaration of {text}");
    };
    let value = &value["it"];
    let valid = schema::is_valid("initialize.result", value);
    let agrees = if seen.odd_number { valid || read.is_err() } else { valid == read.is_ok() };
    assert!(agrees, "valid is {valid}, but {read:?} of {text}");
    if let Ok(read) = read {
        let written = read.to_json();
        assert_eq!(serde_json::from_str::<Value>(&written).ok().as_ref(), Some(value));
        assert_eq!(Declaration::from_recorded(&written), Ok(read));
    }
}

/// LOAD-01 to LOAD-19, by a line of the plugin's stdout.
fn answer(member: &str, text: &str, needs: &[Seam], before: Option<&Declaration>) {
    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"{member}\":{text}}}");
    let Ok(Incoming::Reply { body, .. }) = envelope::parse(line.as_bytes()) else { return };
    let registration = Registration { name: "box", needs };
    let loaded = load(&body, &registration, SCHEMA_DIGEST, before);
    if let Err(refusal) = &loaded {
        is_one_line(refusal);
    }
    let Body::Result(result) = body else {
        return assert_eq!(loaded.map_err(|refusal| refusal.rule), Err("LOAD-02"));
    };
    let seen = json::look(result.get()).expect("a checked text is JSON");
    let Ok(value) = serde_json::from_str::<Value>(result.get()) else { return };
    if seen.odd_number {
        return;
    }
    let recorded = before.map(|before| serde_json::from_str(&before.to_json()).expect("it is JSON"));
    let needs = needs.iter().map(|seam| seam.name()).collect();
    let registered = Registered { name: "box", needs, digest: SCHEMA_DIGEST, recorded };
    let came = match &loaded {
        Ok(_) => Verdict::Loads,
        Err(LoadRefusal { rule: "LOAD-05" | "LOAD-06" | "LOAD-07", .. }) => Verdict::OffSchema,
        Err(refusal) => Verdict::Breaks(refusal.rule),
    };
    assert_eq!(came, verdict(&value, &registered), "{loaded:?} of {value}");
    match (&loaded, &registered.recorded) {
        (Ok(loaded), _) => {
            assert_eq!(serde_json::from_str::<Value>(&loaded.to_json()).ok(), Some(value));
        }
        (Err(LoadRefusal { rule: "LOAD-19", field, other_instance, .. }), Some(recorded)) => {
            assert_ne!(at(recorded, field), at(&value, field), "{field} is said to differ");
            let other = (recorded["instance"] != value["instance"]).then(|| value["instance"].as_str());
            assert_eq!(other_instance.as_deref(), other.flatten(), "A-20");
        }
        _ => {}
    }
}

/// The value at a path such as `seams.link.checks[0]`.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    value.pointer(&format!("/{}", path.replace(['.', '['], "/").replace(']', "")))
}

/// A refusal is printed: nothing in it may break the line or move the cursor.
fn is_one_line(refusal: &LoadRefusal) {
    let text = refusal.to_string();
    assert!(!text.contains(char::is_control), "{text:?}");
    let said = refusal.said.as_deref().unwrap_or_default();
    assert!(!said.contains(char::is_control) && said.chars().count() <= 400, "{said:?}");
}
