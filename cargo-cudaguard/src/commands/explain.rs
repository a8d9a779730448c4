//! `explain`: prints a finding in full, or the most frequent causes of an error number, a status, a message or a log.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;

use crate::knowledge::symptoms::{self, Symptom, SymptomMatches};
use crate::knowledge::vendor::with_names_of_windows;
use cudaguard::internal::finding::Code;
use serde::Serialize;

use crate::cli::json_output;
use crate::cli::report::{self, CliError};

/// Width of a page, in characters.
const WIDTH: usize = 100;
/// Maximum number of bytes that are read from stdin.
const MOST: u64 = 16 << 20;

pub(crate) fn run_explain(words: &[String], json: bool) -> Result<ExitCode, CliError> {
    let Some(text) = read_text(words)? else {
        let all: Vec<&Symptom> = symptoms::all_symptoms().iter().collect();
        let output = if json { answer_as_json(None, Code::ALL, &all) } else { list_topics() };
        return report::print_result(&output).map(|()| ExitCode::SUCCESS);
    };
    if let Ok(code) = text.parse() {
        let output = if json { answer_as_json(None, &[code], &[]) } else { explain_finding(code) };
        return report::print_result(&output).map(|()| ExitCode::SUCCESS);
    }
    if is_a_code(text.trim()) {
        return Err(CliError::operational(format_args!(
            "`{}` is not a code of a finding (CG and three digits): run `cargo cudaguard explain` to list all",
            text.trim()
        )));
    }
    let answer = symptoms::diagnose(&text);
    if json {
        let output = match &answer {
            SymptomMatches::Findings(codes) => answer_as_json(None, codes, &[]),
            SymptomMatches::Number(number, matching) => {
                let own: Vec<Code> = format!("CG{number}").parse::<Code>().into_iter().collect();
                answer_as_json(Some(*number), &own, matching)
            }
            SymptomMatches::Shown(shown) => answer_as_json(None, &[], shown),
            SymptomMatches::Nothing => answer_as_json(None, &[], &[]),
        };
        report::print_result(&use_names_of_system(output, &text))?;
        if let SymptomMatches::Nothing = answer {
            return Err(CliError::not_found(nothing_known(&text)));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let page = match answer {
        SymptomMatches::Findings(codes) => {
            codes.into_iter().take(3).map(explain_finding).collect::<Vec<_>>().join("\n")
        }
        SymptomMatches::Number(number, matching) => {
            let mut page = explain_symptom(matching[0]);
            for other in &matching[1..] {
                let families = other.numbers.iter().filter(|one| one.number == number).map(|one| one.family.as_str());
                let families: Vec<_> = families.collect();
                let _ = writeln!(page, "{number} of {}: {} ({})", families.join(", "), other.title, other.name);
            }
            if let Ok(code) = format!("CG{number}").parse::<Code>() {
                let _ = writeln!(page, "{code} of cudaguard: {}", code.title());
            }
            page
        }
        SymptomMatches::Shown(shown) => {
            let mut page = explain_symptom(shown[0]);
            for other in shown[1..].iter().take(2) {
                let _ = writeln!(page, "also in this text: {} (cargo cudaguard explain {})", other.title, other.name);
            }
            page
        }
        SymptomMatches::Nothing => return Err(CliError::not_found(nothing_known(&text))),
    };
    report::print_result(&use_names_of_system(page, &text)).map(|()| ExitCode::SUCCESS)
}

/// Returns the text of the arguments, or of stdin for `-` and if there are no arguments. `None`: there is neither.
fn read_text(words: &[String]) -> Result<Option<String>, CliError> {
    let mut stdin = std::io::stdin().lock();
    if !(words == ["-"] || words.is_empty() && !stdin.is_terminal()) {
        return Ok((!words.is_empty()).then(|| words.join(" ")));
    }
    let mut bytes = Vec::new();
    let read = stdin.by_ref().take(MOST).read_to_end(&mut bytes);
    read.map_err(|error| CliError::operational(format_args!("cannot read stdin: {error}")))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some(text).filter(|text| !words.is_empty() || !text.trim().is_empty()))
}

/// Replaces the names of Linux in an answer if the text comes from a machine with Windows, or if the command runs on one.
fn use_names_of_system(answer: String, text: &str) -> String {
    let marks = [".dll", "WinError", ":\\", "error 126", "error 127"];
    let is_of_windows = cfg!(windows) || marks.iter().any(|mark| text.contains(mark));
    if is_of_windows { with_names_of_windows(&answer) } else { answer }
}

/// The output of `explain` as JSON, in the order of priority.
#[derive(Serialize)]
struct AnswerView<'a> {
    number: Option<u32>,
    findings: Vec<CodeView>,
    symptoms: &'a [&'a Symptom],
}

#[derive(Serialize)]
struct CodeView {
    code: String,
    severity: &'static str,
    title: &'static str,
    explanation: &'static str,
}

/// Returns the answer as JSON. `number` is set if the argument was a bare number.
fn answer_as_json(number: Option<u32>, codes: &[Code], symptoms: &[&Symptom]) -> String {
    let findings = codes.iter().map(|code| CodeView {
        code: code.to_string(),
        severity: code.severity().name(),
        title: code.title(),
        explanation: code.explanation(),
    });
    json_output::render(&AnswerView { number, findings: findings.collect(), symptoms })
}

/// Returns the list of all codes and all symptoms.
fn list_topics() -> String {
    let mut list = String::new();
    for code in Code::ALL {
        let _ = writeln!(list, "{code}  {}", code.title());
    }
    list.push('\n');
    for symptom in symptoms::all_symptoms() {
        let _ = writeln!(list, "{:<24} {}", symptom.name, symptom.title);
    }
    list
}

fn is_a_code(text: &str) -> bool {
    let digits = text.strip_prefix("CG").or_else(|| text.strip_prefix("cg"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn explain_finding(code: Code) -> String {
    let mut page = format!("{code}: {} ({} unless the policy changes it)\n\n", code.title(), code.severity());
    for paragraph in code.explanation().lines() {
        page.push_str(&wrap_paragraph(paragraph, WIDTH));
        page.push('\n');
    }
    page
}

/// Returns the page of a symptom, which fits on one screen.
fn explain_symptom(symptom: &Symptom) -> String {
    let mut page = indent_paragraph(&format!("{}: {}", symptom.name, symptom.title), "", "  ");
    let numbers = symptom.numbers.iter().map(|number| format!("{} {}", number.family, number.number));
    let mut known = String::new();
    for one in numbers.chain(symptom.names.iter().cloned()) {
        let longer = if known.is_empty() { one } else { format!("{known}, {one}") };
        if longer.len() > WIDTH - 2 {
            break;
        }
        known = longer;
    }
    if !known.is_empty() {
        let _ = writeln!(page, "  {known}");
    }
    page.push_str(&indent_paragraph(&symptom.means, "  ", "  "));
    for (at, cause) in symptom.causes.iter().enumerate() {
        let codes: Vec<String> = cause.codes.iter().map(ToString::to_string).collect();
        let codes = if codes.is_empty() { String::new() } else { format!("   [{}]", codes.join(", ")) };
        page.push_str(&indent_paragraph(&cause.why, &format!("{}. ", at + 1), "   "));
        page.push_str(&indent_paragraph(&format!("{}{codes}", cause.see), "   see: ", "        "));
        page.push_str(&indent_paragraph(&cause.fix, "   do:  ", "        "));
    }
    if let Some(source) = symptom.sources.first() {
        let _ = writeln!(page, "  source: {source}");
    }
    page
}

fn nothing_known(text: &str) -> String {
    let shown: String = text.trim().lines().next().unwrap_or_default().chars().take(60).collect();
    format!(
        "no explanation found for `{shown}`\n  next: pass the whole log, because the first error is usually the cause: `cargo \
         cudaguard explain < LOG`\n  next: `cargo cudaguard doctor PROGRAM` examines this machine, and needs no error \
         text\n  to report a text that should have an answer, send the complete log and the output of `cargo cudaguard doctor`"
    )
}

/// Wraps a paragraph, with `first` before its first line and `others` before the rest.
fn indent_paragraph(paragraph: &str, first: &str, others: &str) -> String {
    let text = wrap_paragraph(paragraph, WIDTH - others.len().max(first.len()));
    format!("{first}{}\n", text.replace('\n', &format!("\n{others}")))
}

/// Breaks the paragraph at blanks into lines of at most `width` characters.
fn wrap_paragraph(paragraph: &str, width: usize) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in paragraph.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::knowledge::symptoms::all_symptoms;

    #[test]
    fn wrapping_breaks_at_blanks_only() {
        assert_eq!(super::wrap_paragraph("one two three", 7), "one two\nthree");
        assert_eq!(super::wrap_paragraph("unbreakable word", 4), "unbreakable\nword");
        assert_eq!(super::indent_paragraph("one two", "1. ", "   ").lines().count(), 1);
    }

    #[test]
    fn symptom_pages_fit_one_screen() {
        for symptom in all_symptoms() {
            let page = super::explain_symptom(symptom);
            assert!((5..=24).contains(&page.lines().count()), "{} lines:\n{page}", page.lines().count());
            let fits = |line: &str| line.chars().count() <= super::WIDTH || line.contains("https://");
            assert!(page.lines().all(fits), "{page}");
        }
    }
}
