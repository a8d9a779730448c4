//! `docs/images/refusal.svg`: an image of a terminal with a refusal from the test snapshots. `CUDAGUARD_BLESS=1 cargo
//! test -p cudaguard-tests --lib picture` draws it again.

use std::fmt::Write as _;
use std::fs;

use crate::places;

const SNAPSHOT: &str = "tests/snapshots/driver/older-cuDNN.txt";
const PICTURE: &str = "docs/images/refusal.svg";

const STYLE: &str = "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d6deeb;white-space:pre}\
                     .p{fill:#7fdbca}.e{fill:#ff6a6a;font-weight:bold}.l{fill:#82aaff}";

/// Returns the lines of the terminal. Names of a user's program replace those of the test.
fn lines() -> Vec<String> {
    let snapshot = fs::read_to_string(places::workspace().join(SNAPSHOT)).expect("the snapshot");
    let (_, refusal) = snapshot.split_once("--- stderr\n").expect("a refusal");
    let (refusal, _) = refusal.split_once("--- report").expect("a report");
    let refusal = refusal.replace("vision 0.1.0", "my-model 0.3.0").replace("<parts>/cudnn-9.1.0", "/opt/cudnn");
    assert!(refusal.contains("CG202") && !refusal.contains('<'), "{refusal}");
    let mut lines = vec!["$ ./my-model".to_owned()];
    lines.extend(refusal.lines().map(str::to_owned));
    lines.extend(["$ echo $?".to_owned(), "78".to_owned()]);
    lines
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns a line whose prompt, error code or label is colored.
fn spans(line: &str) -> String {
    let span = |class: &str, text: &str| format!("<tspan class=\"{class}\">{}</tspan>", escaped(text));
    if let Some(command) = line.strip_prefix("$ ") {
        return span("p", "$ ") + &escaped(command);
    }
    match line.split_once(": ") {
        Some(("cudaguard", rest)) => match rest.split_once(": ") {
            Some((code, message)) => format!("cudaguard: {}: {}", span("e", code), escaped(message)),
            None => escaped(line),
        },
        Some((label, value)) if label.starts_with("  ") && !label.contains('(') => {
            span("l", &format!("{label}: ")) + &escaped(value)
        }
        _ => escaped(line),
    }
}

fn picture() -> String {
    let lines = lines();
    let widest = lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
    // A monospaced character of 13 pixels has a width of 7.8 pixels.
    let (width, height) = (widest * 39 / 5 + 32, lines.len() * 20 + 28);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" xml:space=\"preserve\" \
         role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0b1622\"/>\n",
        escaped(&lines[1])
    );
    for (number, line) in lines.iter().enumerate() {
        let _ = writeln!(svg, "<text x=\"16\" y=\"{}\">{}</text>", number * 20 + 28, spans(line));
    }
    svg + "</svg>\n"
}

#[test]
fn refusal_picture_matches_snapshot() {
    let path = places::workspace().join(PICTURE);
    if std::env::var_os("CUDAGUARD_BLESS").is_some_and(|value| !value.is_empty()) {
        fs::write(&path, picture()).expect("the picture");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == picture(), "{PICTURE} is stale: CUDAGUARD_BLESS=1 draws it again");
}
