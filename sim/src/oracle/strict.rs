//! JSON as the rules want it, read without any of mu's code: UTF-8, one object, no member twice at any depth, at most 64
//! deep, nothing behind it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// How deep objects and arrays may nest.
const DEPTH: u32 = 64;

/// The object on this line; `None` when the line is anything else.
pub(super) fn object(line: &[u8]) -> Option<Map<String, Value>> {
    let mut reader = serde_json::Deserializer::from_slice(line);
    let value = Level(DEPTH).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// How many levels are left below.
struct Level(u32);

impl Level {
    fn below<E: Error>(&self) -> Result<Level, E> {
        self.0.checked_sub(1).map(Level).ok_or_else(|| E::custom("too deep"))
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.below()?)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(self.below()?)?;
            if map.insert(name, value).is_some() {
                return Err(A::Error::custom("a member twice"));
            }
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::object;

    #[test]
    fn what_the_rules_refuse_is_no_object() {
        let deep = |levels: usize| format!("{{\"a\":{}1{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        let lone = "{\"a\":\"\\ud800\"}";
        let wrong = [
            "",
            "[]",
            "null",
            "{}{}",
            "{\"a\":1,\"a\":1}",
            "{\"b\":{\"a\":1,\"\\u0061\":1}}",
            &deep(65),
            lone,
        ];
        for text in wrong {
            assert_eq!(object(text.as_bytes()), None, "{text}");
        }
        assert_eq!(object(b"{\"a\":\"\xff\"}"), None);
        for text in ["{}", " {\"a\":[null,true,-1,1.5,\"x\"]}\r", &deep(64)] {
            assert!(object(text.as_bytes()).is_some(), "{text}");
        }
    }
}
