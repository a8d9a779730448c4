//! Compares the schema for editors (`templates/cudaguard.schema.json`) with the parser: both have the same keys, and
//! the parser rejects every file that the schema rejects.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::Policy;
use super::parser::SECTIONS;

fn load_schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/cudaguard.schema.json");
    serde_json::from_slice(&fs::read(path).expect("the schema is there")).expect("it is JSON")
}

fn resolve_reference<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(target) => {
            root.pointer(target.trim_start_matches('#')).unwrap_or_else(|| panic!("{target} leads nowhere"))
        }
        None => schema,
    }
}

/// Implements the part of JSON Schema that this schema uses. An unknown keyword is an error.
fn is_valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let schema = resolve_reference(root, schema);
    schema.as_object().expect("a schema is an object").iter().all(|(word, rule)| match word.as_str() {
        "$schema" | "$id" | "$defs" | "title" | "description" => true,
        "type" => match rule.as_str().expect("one type") {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            other => panic!("a type that is not known here: {other}"),
        },
        "enum" => rule.as_array().expect("a list").contains(value),
        "minLength" => {
            value.as_str().is_none_or(|text| text.chars().count() as u64 >= rule.as_u64().expect("a number"))
        }
        "pattern" => value.as_str().is_none_or(|text| matches_pattern(rule.as_str().expect("a pattern"), text)),
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| is_valid(root, rule, item))),
        "propertyNames" => value
            .as_object()
            .is_none_or(|members| members.keys().all(|name| is_valid(root, rule, &name.as_str().into()))),
        "properties" => value.as_object().is_none_or(|members| {
            members.iter().all(|(name, value)| rule.get(name).is_none_or(|rule| is_valid(root, rule, value)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|members| {
            let further = members.iter().filter(|(name, _)| schema["properties"].get(name.as_str()).is_none());
            further
                .into_iter()
                .all(|(_, value)| if rule.is_boolean() { rule == true } else { is_valid(root, rule, value) })
        }),
        other => panic!("a word that is not known here: {other}"),
    })
}

fn matches_pattern(pattern: &str, text: &str) -> bool {
    match pattern {
        r"\S" => text.chars().any(|c| !c.is_whitespace()),
        "^[Cc][Gg][0-9]{3}$" => {
            let digits = text.get(2..).unwrap_or_default();
            text.get(..2).is_some_and(|head| head.eq_ignore_ascii_case("CG"))
                && digits.len() == 3
                && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        other => panic!("a pattern that is not known here: {other}"),
    }
}

fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(value) => (*value).into(),
        DeValue::Integer(number) => number.as_str().parse::<i64>().map_or(Value::Null, Into::into),
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect(),
        DeValue::Table(table) => table_to_json(table),
        DeValue::Float(_) | DeValue::Datetime(_) => Value::Null,
    }
}

fn table_to_json(table: &DeTable<'_>) -> Value {
    let members = table.iter().map(|(name, value)| (name.get_ref().to_string(), to_json(value.get_ref())));
    Value::Object(members.collect::<Map<_, _>>())
}

fn schema_keys(schema: &Value) -> HashSet<&str> {
    schema["properties"].as_object().map(|members| members.keys().map(String::as_str).collect()).unwrap_or_default()
}

#[test]
fn schema_and_parser_keys_match() {
    let schema = load_schema();
    let sections: HashSet<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
    assert_eq!(schema_keys(&schema), sections.iter().copied().chain(["package"]).collect());
    let over = resolve_reference(&schema, &schema["properties"]["package"]["additionalProperties"]);
    assert_eq!(schema_keys(over), sections.iter().copied().filter(|name| *name != "release").collect());
    for (section, known) in SECTIONS {
        for level in [&schema, over].into_iter().take(if *section == "release" { 1 } else { 2 }) {
            let table = resolve_reference(&schema, &level["properties"][*section]);
            assert_eq!(schema_keys(table), known.iter().copied().collect(), "[{section}]");
            assert!(table["description"].is_string(), "[{section}]");
            for key in *known {
                assert!(table["properties"][*key]["description"].is_string(), "[{section}] {key}");
            }
        }
    }
}

#[test]
fn schema_and_parser_accept_same_files() {
    let schema = load_schema();
    let judge = |text: &str| {
        let table = DeTable::parse(text).expect("TOML");
        let parser = Policy::parse(Path::new("cudaguard.toml"), text.as_bytes(), "demo");
        (
            parser.map(drop).map_err(|error| error.to_string()),
            is_valid(&schema, &schema, &table_to_json(table.get_ref())),
        )
    };
    for good in [
        "",
        "[toolkit]\nrequire = \">=12.4, <14\"\n",
        "[cudnn]\nrequire = \"^9.1\"\npatch = \"refuse\"\nrequired = true\nfleet = \"9.1\"\n",
        "[cudnn]\nbuilt = \"9.1.0\"\n",
        "[cudnn]\nlinkage = \"linked\"\npatch = \"accept\"\n",
        "[cudnn]\nlinkage = \"static\"\n",
        "[cudnn]\nlinkage = \"dlopened\"\n",
        "[cudnn]\nlinkage = \"none\"\n",
        "[gpu]\narchs = [\"sm_80\", \"sm_90a\", \"compute_90\"]\nfleet = [\"T4\", \"8.6\"]\npartial = \"refuse\"\n",
        "[gpu]\narchs = [\"all-major\"]\npartial = \"accept\"\n",
        "[driver]\nfleet = \"535\"\n",
        "[driver]\nfleet = \"535.261.03\"\n",
        "[build]\nrelease = \"deny\"\ndev = \"warn\"\n",
        "[build]\nrelease = \"warn\"\ndev = \"deny\"\n",
        "[runtime]\nmismatch = \"refuse\"\ngpu = \"auto\"\nlibrary = \"check\"\n",
        "[runtime]\nmismatch = \"warn\"\ngpu = \"required\"\nlibrary = \"enforce\"\n",
        "[runtime]\ngpu = \"optional\"\n",
        "[allow]\nCG122 = \"Hopper only\"\ncg101 = \"patched\"\n",
        "[package.other]\n[package.demo.gpu]\narchs = [\"sm_75\"]\n[package.demo.allow]\nCG101 = \"x\"\n",
    ] {
        assert_eq!(judge(good), (Ok(()), true), "{good}");
    }
    for bad in [
        "[tolkit]\n",
        "toolkit = \"13\"\n",
        "[toolkit]\nrequire = 13\n",
        "[toolkit]\nversion = \"13\"\n",
        "[cudnn]\nlinkage = \"shared\"\n",
        "[cudnn]\npatch = true\n",
        "[cudnn]\nrequired = \"yes\"\n",
        "[cudnn]\nfleet = [\"9.1\"]\n",
        "[gpu]\narchs = \"sm_80\"\n",
        "[gpu]\narchs = [80]\n",
        "[gpu]\nfleet = [8]\n",
        "[gpu]\npartial = \"maybe\"\n",
        "[driver]\nfleet = 535\n",
        "[build]\nrelease = \"error\"\n",
        "[build]\ndev = false\n",
        "[runtime]\nmismatch = \"deny\"\n",
        "[runtime]\ngpu = true\n",
        "[runtime]\nlibrary = \"refuse\"\n",
        "[allow]\nCG101 = \"\"\n",
        "[allow]\nCG101 = \"  \"\n",
        "[allow]\nCG101 = true\n",
        "[allow]\nCG1 = \"x\"\n",
        "package = \"demo\"\n",
        "[package]\ndemo = 3\n",
        "[package.demo.gpus]\n",
        "[package.demo.package.x]\n",
    ] {
        let (parser, schema) = judge(bad);
        assert!(parser.is_err() && !schema, "{bad}: parser {parser:?}, schema {schema}");
    }
    // Mistakes that only the parser can detect.
    for bad in ["[toolkit]\nrequire = \"new\"\n", "[gpu]\nfleet = [\"T5\"]\n", "[allow]\nCG000 = \"x\"\n"] {
        let (parser, schema) = judge(bad);
        assert!(parser.is_err() && schema, "{bad}: parser {parser:?}, schema {schema}");
    }
}
