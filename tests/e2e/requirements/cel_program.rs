//! Evaluates CEL, the expressions of Kubernetes. Each line of stdin is a JSON object: `expression` and its `variables`. The
//! answer is a line `true`, `false` or `error: …`.

use std::sync::Arc;

use cel::extractors::This;
use cel::{Context, ExecutionError, Program, Value};

fn main() {
    for line in std::io::stdin().lines() {
        let request: serde_json::Value = serde_json::from_str(&line.expect("text")).expect("JSON");
        match answer(&request) {
            Ok(truth) => println!("{truth}"),
            Err(error) => println!("error: {}", error.replace('\n', " ")),
        }
    }
}

fn answer(request: &serde_json::Value) -> Result<bool, String> {
    let mut context = Context::default();
    context.add_function("semver", |text: Arc<String>| semver(&text));
    context.add_function("compareTo", |This(one): This<Value>, other: Value| compare(&one, &other));
    for (name, value) in request["variables"].as_object().expect("variables") {
        context.add_variable_from_value(name.clone(), cel::to_value(value).expect("a value"));
    }
    let program = Program::compile(request["expression"].as_str().expect("an expression"));
    let program = program.map_err(|error| error.to_string())?;
    match program.execute(&context).map_err(|error| error.to_string())? {
        Value::Bool(truth) => Ok(truth),
        other => Err(format!("{other:?} is no truth")),
    }
}

/// Kubernetes' library: three numbers without leading zeros, or an error (apiserver/pkg/cel/library/semverlib.go).
fn semver(text: &str) -> Result<Value, ExecutionError> {
    let wrong = || ExecutionError::function_error("semver", format!("{text} is no version"));
    let numbers: Vec<&str> = text.split('.').collect();
    let right = |number: &&str| number.parse::<u32>().is_ok_and(|value| value.to_string() == **number);
    if numbers.len() != 3 || !numbers.iter().all(right) {
        return Err(wrong());
    }
    let number = |text: &&str| Value::Int(text.parse().expect("it was seen to be one"));
    Ok(Value::List(Arc::new(numbers.iter().map(number).collect())))
}

fn compare(one: &Value, other: &Value) -> Result<Value, ExecutionError> {
    let numbers = |value: &Value| -> Result<Vec<i64>, ExecutionError> {
        let Value::List(list) = value else { return Err(ExecutionError::function_error("compareTo", "no version")) };
        let number = |value: &Value| match value {
            Value::Int(number) => *number,
            Value::UInt(number) => i64::try_from(*number).expect("a small number"),
            other => panic!("{other:?}"),
        };
        Ok(list.iter().map(number).collect())
    };
    Ok(Value::Int(numbers(one)?.cmp(&numbers(other)?) as i64))
}
