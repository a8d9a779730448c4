//! Findings: problems, and facts that cannot be determined. Codes are stable; texts may change.
//!
//! `data/findings.toml` contains codes, severities and texts; `codes.rs` and `data/findings.tsv` are generated from it.

pub mod render;
mod values;

use std::fmt;
use std::sync::LazyLock;

pub use crate::check::Severity;

/// A problem, or a fact that cannot be determined.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The stable code.
    pub code: Code,
    /// The severity in this build or on this machine.
    pub severity: Severity,
    /// The package whose manifest the finding concerns, `name version`; empty if there is none.
    pub component: String,
    /// The subject: a library, "toolkit", a file, an arch.
    pub subject: String,
    /// The problem in one sentence, then one fact per line, such as the built and the found version.
    pub message: String,
    /// The action to take.
    pub hint: String,
    /// The facts in the message, by name, as programs read them. Private, so that every finding is made from the table.
    facts: Box<[(&'static str, String)]>,
}

impl Eq for Finding {}

/// Two findings are the same if they read the same.
impl PartialEq for Finding {
    fn eq(&self, other: &Self) -> bool {
        (self.code, self.severity) == (other.code, other.severity)
            && (&self.component, &self.subject) == (&other.component, &other.subject)
            && (&self.message, &self.hint) == (&other.message, &other.hint)
    }
}

impl Finding {
    /// Restores a finding that [`Self::to_json`] recorded.
    pub fn from_record(code: Code, severity: Severity, [component, subject, message, hint]: [String; 4]) -> Self {
        Self { code, severity, component, subject, message, hint, facts: Box::default() }
    }

    /// Returns the first line of the message.
    pub fn first_line(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// Sets the component.
    #[must_use]
    pub fn with_component(mut self, component: impl Into<String>) -> Self {
        self.component = component.into();
        self
    }

    /// Sets the severity.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Iterates over the facts of the message, by name.
    pub fn facts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.facts.iter().map(|(name, fact)| (*name, fact.as_str()))
    }

    /// Returns a fact of the message by its name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(known, _)| *known == name).map(|(_, fact)| fact.as_str())
    }

    /// Replaces each text of the finding.
    pub fn rewrite(&mut self, change: impl Fn(&str) -> String) {
        let facts = self.facts.iter_mut().map(|(_, value)| value);
        for text in [&mut self.message, &mut self.hint].into_iter().chain(facts) {
            *text = change(text);
        }
    }

    /// Records that nothing reports this problem when the program starts. Does nothing the second time.
    pub fn mark_unchecked_at_start(&mut self) {
        if self.fact("at_start").is_none() {
            self.message.push_str("\nnot checked at start-up");
            let facts = std::mem::take(&mut self.facts).into_vec();
            self.facts = facts.into_iter().chain([("at_start", "not checked".to_owned())]).collect();
        }
    }
}

/// Effect of a finding on the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// An error with this code refuses the program.
    Refuses,
    /// The verdict is at best "unknown".
    Open,
    /// No effect.
    Informs,
}

macro_rules! codes {
    ($($number:literal $name:ident $severity:ident $effect:ident $rank:literal $at_start:literal;)*) => {
        /// Code of a finding: `CG` and three digits. 1xx: build, 2xx: start of a program, 3xx: GPU and driver, 4xx:
        /// kernels, 5xx: unknown facts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        // `enum_variant_names`: the names come from the table, including `CannotTell…`.
        #[allow(missing_docs, clippy::enum_variant_names)]
        pub enum Code { $($name = $number,)* }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the default severity.
            pub fn severity(self) -> Severity {
                CODE_ROWS[self.index()].0
            }

            /// Returns the effect on the verdict.
            pub fn effect(self) -> Effect {
                CODE_ROWS[self.index()].1
            }

            /// Returns the order among findings of one severity; lower ranks are printed first.
            pub fn rank(self) -> u8 {
                CODE_ROWS[self.index()].2
            }

            /// Returns true if the guard of a program judges it at start-up.
            pub fn is_judged_at_start(self) -> bool {
                CODE_ROWS[self.index()].3
            }

            /// Returns the title: a short description.
            pub fn title(self) -> &'static str {
                texts().codes[self.index()][0]
            }

            /// Returns the long text of `cargo cudaguard explain`: meaning, consequence and action.
            pub fn explanation(self) -> &'static str {
                texts().codes[self.index()][1]
            }

            fn index(self) -> usize {
                Self::ALL.binary_search(&self).unwrap_or_default()
            }
        }

        /// The columns of each code. A table compiles faster than a `match` for each column.
        const CODE_ROWS: &[(Severity, Effect, u8, bool)] = &[$((Severity::$severity, Effect::$effect, $rank, $at_start),)*];
    };
}

macro_rules! words {
    ($($name:ident $code:ident;)*) => {
        /// The message of a finding. A code may have several.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum MessageTemplate { $($name,)* }

        impl MessageTemplate {
            /// All templates.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the code that the message belongs to.
            pub fn code(self) -> Code {
                const CODES: &[Code] = &[$(Code::$code,)*];
                CODES[self as usize]
            }

            /// Returns the template of the subject.
            pub fn subject(self) -> &'static str {
                texts().templates[self as usize][0]
            }

            /// Returns the template of the sentence and its fact lines.
            pub fn message(self) -> &'static str {
                texts().templates[self as usize][1]
            }

            /// Returns the template of the hint.
            pub fn hint(self) -> &'static str {
                texts().templates[self as usize][2]
            }
        }
    };
}

macro_rules! phrases {
    ($($name:ident)*) => {
        /// A text for a value that several findings share.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum MessageFragment { $($name,)* }

        impl MessageFragment {
            /// All fragments.
            const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the template.
            fn template(self) -> &'static str {
                texts().fragments[self as usize][0]
            }
        }
    };
}

include!("codes.rs");

/// The texts of a line; empty if there are fewer.
type TextRow = [&'static str; 3];

/// The texts of `data/findings.tsv`, in the order of the variants.
struct Texts {
    /// Title and explanation of each code.
    codes: Vec<TextRow>,
    /// Subject, message and hint of each template.
    templates: Vec<TextRow>,
    /// The text of each fragment.
    fragments: Vec<TextRow>,
}

const TEXTS: &str = include_str!("../../data/findings.tsv");

fn texts() -> &'static Texts {
    static TABLE: LazyLock<Texts> = LazyLock::new(|| {
        let mut lines = TEXTS.lines().skip(1);
        Texts {
            codes: text_rows(&mut lines, Code::ALL.len()),
            templates: text_rows(&mut lines, MessageTemplate::ALL.len()),
            fragments: text_rows(&mut lines, MessageFragment::ALL.len()),
        }
    });
    &TABLE
}

/// Reads rows: a name, which is skipped, and the texts.
fn text_rows(lines: &mut dyn Iterator<Item = &'static str>, count: usize) -> Vec<TextRow> {
    let rows = lines.take(count).map(|line| {
        let mut texts = line
            .split('\t')
            .skip(1)
            .map(|text| if text.contains('\\') { text.replace("\\n", "\n").replace("\\t", "\t").leak() } else { text });
        std::array::from_fn(|_| texts.next().unwrap_or_default())
    });
    rows.collect::<Vec<_>>()
}

pub use values::Values;

/// Sorts findings in report order: by severity, then by rank, so that a cause precedes its consequences.
pub fn sort_findings(findings: &mut [Finding]) {
    findings.sort_by_key(sort_key);
}

/// Returns the sort key of a finding for [`sort_findings`].
pub fn sort_key(finding: &Finding) -> impl Ord + use<> {
    (std::cmp::Reverse(finding.severity), finding.code.rank(), finding.code)
}

/// Returns the findings to print: each once, even if several packages have it, in report order.
pub fn sorted_unique(findings: &[Finding]) -> Vec<&Finding> {
    // Equal findings become neighbours. One file can cause thousands of findings.
    let mut unique = Vec::with_capacity(findings.len());
    for (place, finding) in findings.iter().enumerate() {
        unique.push((sort_key(finding), [&finding.message, &finding.subject, &finding.hint], place));
    }
    unique.sort();
    unique.dedup_by(|next, first| (&next.0, &next.1) == (&first.0, &first.1));
    unique.sort_by(|one, other| (&one.0, one.2).cmp(&(&other.0, other.2)));
    unique.iter().map(|(.., place)| &findings[*place]).collect::<Vec<_>>()
}

impl Code {
    /// Returns true if the toolchain alone determines this code, before anything is compiled. Other codes need the
    /// linked file or the machine.
    pub const fn is_of_the_toolchain(self) -> bool {
        // A stub directory may be in a variable, or in the file only if a build script added it.
        (self as u16) < 128 && !matches!(self, Self::NoPtx | Self::StubInRuntimePath)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CG{:03}", *self as u16)
    }
}

impl std::str::FromStr for Code {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().copied().find(|code| code.to_string().eq_ignore_ascii_case(text.trim())).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_findings_are_printed_once() {
        let finding = |code, component: &str, message: &str| {
            let texts = [component, "", message, ""].map(str::to_owned);
            Finding::from_record(code, Severity::Error, texts)
        };
        let (first, second) = (Code::ToolkitMissing, Code::ToolkitMixed);
        let all = [
            finding(second, "a", "z"),
            finding(second, "a", "y"),
            finding(first, "b", "z"),
            finding(second, "b", "z"),
            finding(first, "a", "z"),
        ];
        assert_eq!(sorted_unique(&all), [&all[2], &all[0], &all[1]]);
    }

    #[test]
    fn every_variant_has_its_texts() {
        let names = TEXTS.lines().skip(1).map(|line| line.split('\t').next().unwrap().to_owned());
        let codes = Code::ALL.iter().map(|code| format!("{code:?}"));
        let templates = MessageTemplate::ALL.iter().map(|template| format!("{template:?}"));
        let fragments = MessageFragment::ALL.iter().map(|fragment| format!("{fragment:?}"));
        assert!(codes.chain(templates).chain(fragments).eq(names));
    }

    #[test]
    fn codes_are_unique_sorted_and_explained() {
        for pair in Code::ALL.windows(2) {
            assert!((pair[0] as u16) < (pair[1] as u16), "{} precedes {}", pair[0], pair[1]);
        }
        for code in Code::ALL {
            assert_eq!(code.to_string().parse(), Ok(*code));
            assert!(code.title().len() > 10 && !code.title().ends_with('.'), "{code}: title");
            let text = code.explanation();
            assert!(text.len() > 120 && text.contains("What to do"), "{code}: explain it: what it means, what to do");
        }
    }
}
