//! Inserts values into messages: the template language of `data/findings.toml`, which the shim also implements.

use std::borrow::Cow;

use super::{FIELDS, FRONT_ENDS, Finding, MessageFragment, MessageTemplate};
use crate::text::lists::IteratorExt as _;
use crate::text::sanitize;
use crate::toolchain::BuildSystem;

/// The fields that may have several lines, which are indented under the sentence. A newline in any other field comes
/// from outside and is escaped, because it must not look like a line of the message.
const OF_LINES: &[&str] = &["dangling", "kernels", "open", "others", "sources", "why"];

/// Values for the placeholders of a message. Unknown values are absent; the template then omits the text that contains
/// them.
#[derive(Clone, Debug, Default)]
pub struct Values(Vec<(&'static str, String)>, BuildSystem);

impl Values {
    /// Sets a value and replaces an earlier one.
    #[must_use]
    #[allow(clippy::needless_pass_by_value)]
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.set(name, value.to_string());
        self
    }

    /// Apart from [`Self::with`], so that there is one instance for all types.
    fn set(&mut self, name: &'static str, value: String) {
        debug_assert!(FIELDS.contains(&name), "[fields] of the findings has no {name}");
        self.0.retain(|(known, _)| *known != name);
        let whole = OF_LINES.contains(&name) || !value.contains('\n');
        self.0.push((name, if whole { value } else { sanitize::sanitize_joined(&value).into_owned() }));
    }

    /// Sets a value if it is known.
    #[must_use]
    pub fn with_known(self, name: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Sets the tool that builds, which selects the actions in hints.
    #[must_use]
    pub fn built_by(mut self, tool: BuildSystem) -> Self {
        self.1 = tool;
        self
    }

    /// Returns a value, or the action that has this name for the tool that builds; empty if it is unknown.
    fn resolve(&self, name: &str) -> Cow<'_, str> {
        let Some((_, [cargo, cmake, options])) = FRONT_ENDS.iter().find(|(action, _)| *action == name) else {
            return Cow::Borrowed(self.get(name));
        };
        let action = fill_template(self.1.choose(cargo, cmake, options), self);
        Cow::Owned(if action.lacks { String::new() } else { action.text })
    }

    /// The known values, without what every finding has as a key.
    fn facts(&self) -> Box<[(&'static str, String)]> {
        let own = ["code", "component", "subject", "severity", "message", "hint"];
        let mut facts = self.0.clone();
        facts.retain(|(name, value)| !value.is_empty() && !own.contains(name));
        facts.into()
    }

    /// Returns a value; empty if it is unknown.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }
}

impl MessageTemplate {
    /// Creates the finding with the default severity of its code.
    pub fn to_finding(self, values: &Values) -> Finding {
        let (sentence, lines) = self.message().split_once('\n').unwrap_or((self.message(), ""));
        let mut message = fill_template(sentence, values).text;
        for line in lines.split('\n') {
            let line = fill_template(line, values);
            if line.any && !line.lacks {
                message = message + "\n" + &line.text;
            }
        }
        Finding {
            code: self.code(),
            severity: self.code().severity(),
            component: values.get("component").to_owned(),
            subject: fill_template(self.subject(), values).text,
            message: in_columns(&message),
            hint: fill_template(self.hint(), values).text,
            facts: values.facts(),
        }
    }
}

impl MessageFragment {
    /// Formats the text with these values.
    pub fn render(self, values: &Values) -> String {
        fill_template(self.template(), values).text
    }
}

/// Aligns the texts after the tabs in one column.
fn in_columns(text: &str) -> String {
    let names = text.lines().filter_map(|line| Some(line.split_once('\t')?.0.chars().count()));
    let width = names.max().unwrap_or_default();
    let lines = text.lines().map(|line| match line.split_once('\t') {
        Some((name, value)) => format!("{name:<width$} {value}"),
        None => line.to_owned(),
    });
    lines.join("\n")
}

/// A template after the insertion of its values.
#[derive(Default)]
struct Filled {
    text: String,
    /// True if any of its values is known.
    any: bool,
    /// True if a value outside of `[ ]` is unknown.
    lacks: bool,
}

fn fill_template(template: &str, values: &Values) -> Filled {
    let mut filled = Filled::default();
    for (at, piece) in template.split('[').enumerate() {
        // The first piece precedes every `[`.
        let (inside, outside) = if at == 0 { ("", piece) } else { piece.split_once(']').unwrap_or((piece, "")) };
        if at > 0 && !inside.contains('{') {
            filled.text = filled.text + "[" + inside + "]";
        }
        let inside = substitute(inside, values);
        if !inside.lacks && inside.any {
            filled.text += &inside.text;
        }
        let outside = substitute(outside, values);
        filled.text += &outside.text;
        filled.any |= inside.any || outside.any;
        filled.lacks |= outside.lacks;
    }
    filled
}

/// Inserts values into a text without `[ ]`.
fn substitute(text: &str, values: &Values) -> Filled {
    let mut filled = Filled::default();
    for (at, piece) in text.split('{').enumerate() {
        let (name, rest) = if at == 0 { ("", piece) } else { piece.split_once('}').unwrap_or((piece, "")) };
        let value = values.resolve(name);
        filled.any |= !value.is_empty();
        filled.lacks |= at > 0 && value.is_empty();
        filled.text += &value;
        filled.text += rest;
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_are_omitted() {
        let values = Values::default()
            .with("found", "9.1.0")
            .with_known("built", Some("9.15.1"))
            .with_known("min", None::<&str>);
        let text = |template| fill_template(template, &values).text;
        assert_eq!(text("cuDNN {found}, not {built}"), "cuDNN 9.1.0, not 9.15.1");
        assert_eq!(text("cuDNN[ {min}] or[ {found} and {min}][ {found}]."), "cuDNN or 9.1.0.");
        assert_eq!(text("{min}"), "");
        assert_eq!(text("[cudnn] require[ in {min}][ {found}]"), "[cudnn] require 9.1.0");
        let filled_parts = |template| (fill_template(template, &values).any, fill_template(template, &values).lacks);
        assert_eq!(filled_parts("found: {found}[ {min}]"), (true, false));
        assert_eq!(filled_parts("found: {min}[ {found}]"), (true, true));
        assert_eq!(filled_parts("found: driver[ {min}]"), (false, false));
    }

    #[test]
    fn empty_lines_are_omitted() {
        let values = Values::default().with("component", "demo 0.1.0").with("gpus", "7.5").with("archs", "sm_75");
        let finding = MessageTemplate::NoCodeForGpu.to_finding(&values);
        assert_eq!(finding.message, "demo 0.1.0 has no code for compute capability 7.5");
        assert_eq!((&*finding.hint, &*finding.component), ("rebuild it with sm_75 added", "demo 0.1.0"));
        let finding = MessageTemplate::NoCodeForGpu.to_finding(&values.with("built_for", "sm_80"));
        assert_eq!(finding.message.lines().nth(1), Some("built for:  sm_80"));
    }

    #[test]
    fn values_cannot_imitate_output_lines() {
        let values = Values::default().with("component", "demo\nerror[CG101]: \u{1b}[2J").with("gpus", "7.5");
        let finding = MessageTemplate::NoCodeForGpu.to_finding(&values.with("archs", "sm_75\nerror[CG101]: x"));
        assert_eq!(
            finding.render(),
            "error[CG303]: demo\\u000aerror[CG101]: \\u001b[2J has no code for compute capability 7.5\n  \
             hint: rebuild it with sm_75\\u000aerror[CG101]: x added"
        );
        for words in MessageTemplate::ALL {
            let hostile = FIELDS.iter().fold(Values::default(), |all, name| all.with(name, "a\nerror: b\r\u{1b}c"));
            let text = words.to_finding(&hostile).render();
            assert!(text.lines().skip(1).all(|line| line.starts_with("  ")), "{text}");
            assert!(!text.contains(['\r', '\u{1b}']), "{text}");
        }
    }

    #[test]
    fn values_are_aligned() {
        let values = Values::default().with("require", "13").with("found", "12.4").with("others", "11.8 in /b\n\tc");
        let finding = MessageTemplate::ToolkitNotAllowed.to_finding(&values.with("source", "PATH"));
        assert_eq!(
            finding.message,
            "the policy requires CUDA 13, but 12.4 is in use.\nrequired:  13 ([toolkit] require)\nin use:    12.4 (PATH)\n\
             installed: 11.8 in /b\n           c"
        );
    }
}
