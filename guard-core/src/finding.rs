//! Findings: one thing that is wrong, or that cannot be told. Codes are stable; words may improve.
//!
//! Codes, weights and words stand in `data/findings.toml`; `finding/codes.rs` is written from it.

mod values;

use std::fmt;

pub use crate::check::Severity;
use crate::sanitize;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
// `non_exhaustive` would let this crate's own judges compose one.
#[allow(clippy::manual_non_exhaustive)]
pub struct Finding {
    /// Which, stable.
    pub code: Code,
    /// How much it weighs here.
    pub severity: Severity,
    /// The package whose manifest it concerns, `name version`; empty where it concerns none.
    pub component: String,
    /// What it is about: a library, "toolkit", a file, an arch.
    pub subject: String,
    /// What happened, built with what, found what and where: one sentence on the first line, facts on the next.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// Nobody else makes one: every word of a finding stands in the table.
    by_the_table: (),
}

impl Finding {
    /// One that was said before, as [`Self::to_json`] wrote it down.
    pub fn from_record(code: Code, severity: Severity, [component, subject, message, hint]: [String; 4]) -> Self {
        Self { code, severity, component, subject, message, hint, by_the_table: () }
    }

    /// The same, about this component.
    #[must_use]
    pub fn with_component(mut self, component: impl Into<String>) -> Self {
        self.component = component.into();
        self
    }

    /// The same, of another weight.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// As people read it: `error[CG101]: …`, the facts indented, the hint last, and nothing that a terminal would obey.
    pub fn render(&self) -> String {
        use fmt::Write as _;
        let mut lines = self.message.lines();
        let mut text = format!("{}[{}]: {}", self.severity, self.code, lines.next().unwrap_or_default());
        for line in lines {
            let _ = write!(text, "\n  {line}");
        }
        if !self.hint.is_empty() {
            let _ = write!(text, "\n  hint: {}", self.hint.replace('\n', "\n  "));
        }
        sanitize::sanitize_text(&text).into_owned()
    }

    /// Message and hint as one text, for readers that know no hints.
    pub fn text(&self) -> String {
        if self.hint.is_empty() { self.message.clone() } else { format!("{}\nhint: {}", self.message, self.hint) }
    }

    /// As a workflow command of GitHub's, which its runner shows as an annotation: one line, whatever stands in it. Blanks
    /// may go before it, as cargo puts them before what a build script says.
    pub fn github_annotation(&self) -> String {
        let level = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        format_annotation(level, &format!("{}: {}", self.code, self.code.title()), &self.text())
    }

    /// The finding as a JSON object.
    pub fn to_json(&self) -> crate::json::Value {
        crate::json::object([
            ("code", self.code.to_string().into()),
            ("severity", self.severity.name().into()),
            ("component", self.component.as_str().into()),
            ("subject", self.subject.as_str().into()),
            ("message", self.message.as_str().into()),
            ("hint", self.hint.as_str().into()),
        ])
    }
}

/// The workflow command of GitHub's that shows an error which is no finding: what could not be read, and why.
pub fn annotated_error(text: &str) -> String {
    format_annotation("error", "cudaguard", text)
}

fn format_annotation(level: &str, title: &str, text: &str) -> String {
    // As the runner undoes it (`ActionCommand`): `%` first, and what ends a line; in a property `:` and `,` too.
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let line = format!("::{level} title={}::{}", data(title).replace(':', "%3A").replace(',', "%2C"), data(text));
    sanitize::sanitize_line(&line).into_owned()
}

/// What a finding does to the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// An error of this code refuses.
    Refuses,
    /// The verdict is at best "unknown".
    Open,
    /// Nothing.
    Informs,
}

macro_rules! codes {
    ($($number:literal $name:ident $severity:ident $effect:ident $rank:literal $title:literal $text:literal;)*) => {
        /// A finding's code: `CG` and three digits. 1xx the build, 2xx the start of a program, 3xx GPU and driver,
        /// 4xx kernels, 5xx cannot tell.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        // `enum_variant_names`: the names are those of the table, CannotTell… among them.
        #[allow(missing_docs, clippy::enum_variant_names)]
        pub enum Code { $($name = $number,)* }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The weight that the judge gives it where nothing else is said.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }

            /// What it does to the verdict.
            pub const fn effect(self) -> Effect {
                match self { $(Self::$name => Effect::$effect,)* }
            }

            /// Of several findings of one weight the lower is told first.
            pub const fn rank(self) -> u8 {
                match self { $(Self::$name => $rank,)* }
            }

            /// What it says, in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// What it means, why it matters and what to do, at length: `cargo cudaguard explain`.
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

macro_rules! words {
    ($($name:ident $code:ident $subject:literal $message:literal $hint:literal;)*) => {
        /// The words of a finding, of which a code may have several.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum MessageTemplate { $($name,)* }

        impl MessageTemplate {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Whose words they are.
            pub const fn code(self) -> Code {
                match self { $(Self::$name => Code::$code,)* }
            }

            /// What it is about, to be filled in.
            pub const fn subject(self) -> &'static str {
                match self { $(Self::$name => $subject,)* }
            }

            /// The sentence and its lines, to be filled in.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }

            /// What to do, to be filled in.
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$name => $hint,)* }
            }
        }
    };
}

macro_rules! phrases {
    ($($name:ident $text:literal;)*) => {
        /// Words that stand for a value of several findings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum MessageFragment { $($name,)* }

        impl MessageFragment {
            /// To be filled in.
            const fn template(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

include!("finding/codes.rs");

pub use values::Values;

/// What becomes of a program on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It runs: everything that was asked of the machine is there.
    Runs,
    /// It cannot be told.
    Unknown,
    /// It does not run, or would not start.
    Refused,
}

impl Verdict {
    /// Of these findings: the one rule, which the shim has from the same table.
    pub fn from_findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let one = |finding: &Finding| match finding.code.effect() {
            Effect::Refuses if finding.severity == Severity::Error => Self::Refused,
            Effect::Open => Self::Unknown,
            Effect::Refuses | Effect::Informs => Self::Runs,
        };
        findings.into_iter().map(one).max().unwrap_or(Self::Runs)
    }

    /// To people: `runs`, `cannot tell`, `refused`.
    pub const fn display_name(self) -> &'static str {
        match self {
            Self::Unknown => "cannot tell",
            _ => self.name(),
        }
    }

    /// `runs`, `unknown`, `refused`: in reports and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Unknown => "unknown",
            Self::Refused => "refused",
        }
    }
}

/// In the order in which they are told: what weighs more first, and of that what has to be mended before the rest matters.
pub fn sort_findings(findings: &mut [Finding]) {
    findings.sort_by_key(sort_key);
}

/// The place of a finding among those of one answer: see [`sort_findings`].
pub fn sort_key(finding: &Finding) -> impl Ord + use<> {
    (std::cmp::Reverse(finding.severity), finding.code.rank(), finding.code)
}

/// What is printed of them: each once, whichever packages it is about, in the order in which they are told.
pub fn sorted_unique(findings: &[Finding]) -> Vec<&Finding> {
    let mut unique: Vec<&Finding> = Vec::new();
    for finding in findings {
        let same = |other: &&Finding| (*other).clone().with_component("") == finding.clone().with_component("");
        if !unique.iter().any(same) {
            unique.push(finding);
        }
    }
    unique.sort_by_key(|finding| sort_key(finding));
    unique
}

impl Code {
    /// Whether the toolchain alone tells it, before anything is compiled; other codes wait for the linked file or the
    /// machine.
    pub const fn is_of_the_toolchain(self) -> bool {
        // A stub folder may stand in a variable or, where a build script put it, only in the file.
        (self as u16) < 128 && !matches!(self, Self::NoPtx | Self::StubInRuntimePath)
    }

    /// Whether it is about driver and GPU: refusals of this kind rest on the real driver's own answer.
    pub const fn is_of_driver_or_gpu(self) -> bool {
        matches!(self as u16, 300..=399)
    }

    /// Whether it is about the release of the guarded library alone.
    pub const fn is_of_library(self) -> bool {
        matches!(self as u16, 201..=207) || matches!(self, Code::CudnnCannotTell)
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
    fn annotations_hold_on_one_line_whatever_is_in_them() {
        let sample = |code, severity, message: &str, hint: &str| {
            Finding::from_record(code, severity, ["", "s", message, hint].map(str::to_owned)).github_annotation()
        };
        assert_eq!(
            sample(Code::ToolkitMixed, Severity::Error, "100%\r\nof: a, b", ""),
            "::error title=CG101%3A nvcc and cuda.h are from different releases::100%25%0D%0Aof: a, b"
        );
        let info = sample(Code::ToolkitMixed, Severity::Info, "m", "h");
        assert!(info.starts_with("::notice ") && info.ends_with("::m%0Ahint: h"), "{info}");
        // A title with what ends a property.
        let code = Code::ALL.iter().find(|code| code.title().contains(',')).expect("some title has a comma");
        assert!(sample(*code, Severity::Error, "m", "").split("::").nth(1).unwrap().contains("%2C"));
    }

    #[test]
    fn codes_are_unique_sorted_and_explained() {
        for pair in Code::ALL.windows(2) {
            assert!((pair[0] as u16) < (pair[1] as u16), "{} stands before {}", pair[0], pair[1]);
        }
        for code in Code::ALL {
            assert_eq!(code.to_string().parse(), Ok(*code));
            assert!(code.title().len() > 10 && !code.title().ends_with('.'), "{code}: title");
            let text = code.explanation();
            assert!(text.len() > 120 && text.contains("What to do"), "{code}: explain it: what it means, what to do");
        }
    }
}
