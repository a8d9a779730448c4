//! Checks JSON output of the command against the published schemas, in every test that runs it.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::places;

/// Subcommands that write JSON, and their schemas.
const SCHEMAS: &[(&str, &str)] = &[
    ("check", "docs/reference/schemas/check.schema.json"),
    ("choose", "docs/reference/schemas/choose.schema.json"),
    ("diff", "docs/reference/schemas/diff.schema.json"),
    ("doctor", "docs/reference/schemas/doctor.schema.json"),
    ("explain", "docs/reference/schemas/explain.schema.json"),
    ("inspect", "docs/reference/schemas/inspect.schema.json"),
    ("map", "docs/reference/schemas/map.schema.json"),
    ("probe", "templates/cudaguard-host.schema.json"),
    ("requirements", "docs/reference/schemas/requirements.schema.json"),
    ("verify", "docs/reference/schemas/verify.schema.json"),
];

/// Returns what is wrong with the JSON that this call wrote. A call that writes none, or another tool's format, is fine.
pub(crate) fn check_output<'a>(
    program: &OsStr,
    arguments: impl Iterator<Item = &'a OsStr>,
    stdout: &str,
) -> Result<(), String> {
    if Path::new(program).file_name().is_none_or(|name| name != "cargo-cudaguard") || !stdout.starts_with('{') {
        return Ok(());
    }
    let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    let Some((_, file)) = SCHEMAS
        .iter()
        .find(|(name, _)| words.iter().find(|word| *word != "cudaguard").is_some_and(|word| word == name))
    else {
        return Ok(());
    };
    let is_ours =
        words.iter().any(|word| ["--json", "--line", "json", "--format=json", "line"].contains(&word.as_str()));
    if !is_ours {
        return Ok(());
    }
    let text = fs::read_to_string(places::workspace().join(file)).map_err(|error| format!("{file}: {error}"))?;
    let schema: Value = serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
    for document in serde_json::Deserializer::from_str(stdout).into_iter::<Value>() {
        let document = document.map_err(|error| format!("not JSON: {error}"))?;
        if document["schema"] != 1 {
            return Err("no \"schema\": 1".to_owned());
        }
        validate(&schema, &schema, &document, "$").map_err(|wrong| format!("{file}: {wrong}"))?;
    }
    Ok(())
}

/// Validates a value. Stricter than the schema: a key that the schema does not list is an error, so that each is documented.
fn validate(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(target) = schema["$ref"].as_str() {
        let target = root.pointer(target.trim_start_matches('#')).ok_or_else(|| format!("{target} does not exist"))?;
        return validate(root, target, value, at);
    }
    let fail = |what: &str| Err(format!("{at}: {what}: {value}"));
    for (word, rule) in schema.as_object().expect("a schema is an object") {
        match word.as_str() {
            "type" => {
                let right = match rule.as_str().expect("one type") {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_u64() || value.is_i64(),
                    other => panic!("unknown type {other}"),
                };
                if !right {
                    return fail(&format!("expected {rule}"));
                }
            }
            "const" if value != rule => return fail(&format!("expected {rule}")),
            "enum" if !rule.as_array().expect("a list").contains(value) => return fail(&format!("expected {rule}")),
            "minimum" if value.as_f64() < rule.as_f64() => return fail(&format!("expected at least {rule}")),
            "pattern" => {
                let text = value.as_str().unwrap_or_default();
                if !matches_pattern(rule.as_str().expect("a pattern"), text) {
                    return fail(&format!("expected {rule}"));
                }
            }
            "required" => {
                for name in rule.as_array().expect("a list").iter().filter_map(Value::as_str) {
                    if value.get(name).is_none() {
                        return fail(&format!("no `{name}`"));
                    }
                }
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    validate(root, rule, item, &format!("{at}[{number}]"))?;
                }
            }
            "const"
            | "enum"
            | "minimum"
            | "$id"
            | "$schema"
            | "title"
            | "description"
            | "definitions"
            | "examples"
            | "properties"
            | "additionalProperties" => {}
            other => panic!("unknown word {other}"),
        }
    }
    let Some(members) = value.as_object().filter(|_| schema["type"] == "object") else { return Ok(()) };
    for (name, member) in members {
        let at = format!("{at}.{name}");
        let open = &schema["additionalProperties"];
        match schema["properties"].get(name).or_else(|| Some(open).filter(|open| open.is_object())) {
            Some(rule) => validate(root, rule, member, &at)?,
            None if *open == true => {}
            None => return Err(format!("{at}: the schema does not document this key")),
        }
    }
    Ok(())
}

/// The patterns of the schemas.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let numbers = |text: &str| text.split('.').all(|one| !one.is_empty() && one.bytes().all(|b| b.is_ascii_digit()));
    let dots = text.matches('.').count();
    match pattern {
        "^[0-9]+\\.[0-9]+$" => dots == 1 && numbers(text),
        "^[0-9]+\\.[0-9]+(\\.[0-9]+)?$" => matches!(dots, 1 | 2) && numbers(text),
        "^CG[0-9]{3}$" => text.len() == 5 && text.starts_with("CG") && numbers(&text[2..]),
        other => panic!("unknown pattern {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], stdout: &str) -> Result<(), String> {
        check_output(OsStr::new("/x/cargo-cudaguard"), words.iter().map(OsStr::new), stdout)
    }

    #[test]
    fn every_schema_rejects_what_it_does_not_document() {
        for (name, file) in SCHEMAS {
            let error = check(&[name, "--json"], "{\"schema\": 1, \"surprise\": 1}").unwrap_err();
            assert!(error.contains(file), "{error}");
            let error = check(&[name, "--json"], "{\"surprise\": 1}").unwrap_err();
            assert_eq!(error, "no \"schema\": 1");
        }
        assert_eq!(check(&["build"], "{\"reason\": \"compiler-artifact\"}"), Ok(()));
        assert_eq!(check(&["requirements", "--format", "cyclonedx"], "{}"), Ok(()));
    }

    #[test]
    fn values_are_checked() {
        let right = "{\"schema\": 1, \"file\": \"a\", \"verdict\": \"runs\", \"findings\": []}";
        assert_eq!(check(&["verify", "a", "--json"], right), Ok(()));
        for (from, to) in [("\"runs\"", "\"fine\""), ("[]", "[{}]"), ("[]", "{}"), ("\"a\"", "1")] {
            assert!(check(&["verify", "a", "--json"], &right.replace(from, to)).is_err(), "{to}");
        }
    }
}
