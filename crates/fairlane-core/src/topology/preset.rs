//! Presets: shapes known by a name, a table of them beside the builder of each topology that has some.

use schemars::Schema;
use serde_json::{Value, json};

use crate::error::BuildError;

/// Parameters that go by a name.
pub(super) struct Preset {
    /// The name in scenario files.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// The parameters; what a scenario gives beside the name replaces them one by one.
    pub params: fn() -> Value,
}

/// The schema of parameters with the key `preset`: with one of them no key is required, and the laws try each.
pub(super) fn schema(mut schema: Schema, presets: &[Preset]) -> Schema {
    let names: Vec<&str> = presets.iter().map(|preset| preset.name).collect();
    let lines: Vec<String> = presets.iter().map(|preset| format!("{}: {}", preset.name, preset.summary)).collect();
    let words = format!("A known shape; the other keys change it. {}.", lines.join("; "));
    let object = schema.ensure_object();
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("preset".to_owned(), json!({ "description": words, "enum": names }));
    }
    object.remove("required");
    if let Some(examples) = object.get_mut("examples").and_then(Value::as_array_mut) {
        examples.extend(names.iter().map(|name| json!({ "preset": name })));
    }
    schema
}

/// The parameters with those of the preset that they name, if they do.
pub(super) fn apply(params: &Value, presets: &[Preset]) -> Result<Value, BuildError> {
    let Some(name) = params.get("preset").filter(|name| !name.is_null()) else { return Ok(params.clone()) };
    let found = crate::table::find("preset", presets, |preset| preset.name, name.as_str().unwrap_or_default())?;
    let mut all = (found.params)();
    if let (Some(all), Some(given)) = (all.as_object_mut(), params.as_object()) {
        all.extend(given.iter().filter(|(key, _)| *key != "preset").map(|(key, value)| (key.clone(), value.clone())));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRESETS: &[Preset] = &[Preset { name: "known", summary: "a shape", params: || json!({ "a": 1, "b": 2 }) }];

    #[test]
    fn what_is_given_replaces_what_is_known() {
        assert_eq!(apply(&json!({ "preset": "known", "b": 3 }), PRESETS).unwrap(), json!({ "a": 1, "b": 3 }));
        assert_eq!(apply(&json!({ "b": 3 }), PRESETS).unwrap(), json!({ "b": 3 }));
    }

    #[test]
    fn an_unknown_preset_is_named() {
        let error = apply(&json!({ "preset": "knwn" }), PRESETS).unwrap_err().to_string();
        assert!(error.contains("unknown preset \"knwn\"; allowed: known; did you mean \"known\"?"), "{error}");
    }
}
