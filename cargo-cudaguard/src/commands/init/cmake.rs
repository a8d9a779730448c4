//! `init --cmake`: writes the files that guard a CMake project. If there is only one possible place, the lines are
//! added to its CMakeLists.txt; otherwise they are printed.

use std::fmt::{self, Write as _};
use std::fs;
use std::io::Write as _;

use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::FileError;
use cudaguard::internal::files;
use cudaguard::internal::lock::{LockScope, Pins};
use cudaguard::internal::policy::{FILE, Policy};
use cudaguard::internal::toolchain::{DetectOptions, Toolchain};

use super::{Changes, DependencySource, Workflow, policy_text, write_new_file, write_workflow};
use crate::cli::report::CliError;

const LISTS: &str = "CMakeLists.txt";
const WORKFLOW: Workflow = Workflow {
    template: include_str!("../../../templates/cudaguard-cmake.yml"),
    check: "run `cargo cudaguard cmake install --prefix PREFIX`, configure with `-DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=PREFIX`, \
            and build",
};

pub(super) fn init_cmake(env: &Env, changes: &mut Changes, source: &DependencySource) -> Result<(), CliError> {
    let dir = env.current_dir();
    let lists = dir.join(LISTS);
    let bytes = match files::read_bytes(&lists) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(CliError::operational(format_args!(
                "{}: was not found: run this command in the directory of the project's {LISTS}",
                lists.display()
            )));
        }
        read => read.map_err(|error| FileError::read(&lists, error))?,
    };
    let calls = String::from_utf8(bytes).map_err(|_| ListsError::NotUtf8).and_then(|text| {
        Ok((parse_commands(&text)?, if text.contains("\r\n") { "\r\n" } else { "\n" }, text.ends_with('\n')))
    });
    let cuda = calls.as_ref().is_ok_and(|(calls, ..)| calls.iter().any(Command::enables_cuda));
    match calls.map(|(calls, end, ended)| plan_edits(&calls, end, ended)) {
        Ok(EmbedPlan::Done) => changes.line(format_args!("kept {}: it already calls cudaguard_embed", lists.display())),
        Ok(EmbedPlan::Append(lines)) => {
            if !changes.dry_run {
                let file = fs::File::options().append(true).open(&lists);
                file.and_then(|mut file| file.write_all(lines.as_bytes())).map_err(|error| FileError::read(&lists, error))?;
            }
            changes.done("added", "add", format_args!("to {}:\n{}", lists.display(), indent_lines(lines.trim())));
        }
        Ok(EmbedPlan::Tell(targets)) => {
            let lines = indent_lines(lines_for(&targets, "\n").trim());
            changes.line(format_args!("{}: add these lines after the targets that you ship:\n{lines}", lists.display()));
        }
        Ok(EmbedPlan::Below) => changes.line(format_args!(
            "{}: it defines no target: add `find_package(CudaGuard REQUIRED)` to it, and `cudaguard_embed(TARGET)` to the \
             {LISTS} that defines TARGET, after the definition",
            lists.display()
        )),
        Err(why) => changes.line(format_args!(
            "{}: {why}: add `find_package(CudaGuard REQUIRED)` to it, and `cudaguard_embed(TARGET)` after each target that \
             you ship",
            lists.display()
        )),
    }
    let file = dir.join(FILE);
    let requires_toolkit = if file.exists() {
        changes.line(format_args!("kept {}", file.display()));
        Policy::for_package(dir, dir, "").is_ok_and(|policy| policy.toolkit.is_some())
    } else {
        let toolchain = if cuda { detect_toolchain(env) } else { Toolchain::default() };
        let pins = Pins::from_toolchain(&Policy::default(), &toolchain, LockScope::WHOLE);
        write_new_file(changes, &file, &policy_text(&Pins { library: None, ..pins }))?;
        toolchain.sourced_toolkit_version().is_some()
    };
    write_workflow(changes, dir, &WORKFLOW, requires_toolkit, source)
}

/// Detects the toolchain that CMake would probably find too. cuDNN is excluded, because the include path of the target
/// determines the version in use.
fn detect_toolchain(env: &Env) -> Toolchain {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut toolchain = Toolchain::detect(&DetectOptions { release: true, ..DetectOptions::new(env, host) });
    (toolchain.library_headers, toolchain.library_file) = (None, None);
    toolchain
}

fn indent_lines(lines: &str) -> String {
    lines.lines().map(|line| format!("    {}", line.trim_end())).collect::<Vec<_>>().join("\n")
}

fn lines_for(targets: &[String], end: &str) -> String {
    let mut lines = format!("find_package(CudaGuard REQUIRED){end}");
    for target in targets {
        let _ = write!(lines, "cudaguard_embed({target}){end}");
    }
    lines
}

/// The edit of a CMakeLists.txt.
#[derive(Debug, PartialEq, Eq)]
enum EmbedPlan {
    /// The file calls cudaguard already.
    Done,
    /// Append these lines.
    Append(String),
    /// The file has several targets, or one that is created conditionally. The user has to select the targets.
    Tell(Vec<String>),
    /// The file creates no target.
    Below,
}

fn plan_edits(commands: &[Command], end: &str, ended: bool) -> EmbedPlan {
    if commands.iter().any(|command| {
        command.name == "cudaguard_embed"
            || command.arguments.iter().any(|word| word == "CudaGuard" || word.ends_with("CudaGuard.cmake"))
    }) {
        return EmbedPlan::Done;
    }
    let (mut depth, mut sure, mut targets) = (0_usize, true, Vec::new());
    for command in commands {
        match command.name.as_str() {
            "if" | "foreach" | "while" | "function" | "macro" | "block" => depth += 1,
            "endif" | "endforeach" | "endwhile" | "endfunction" | "endmacro" | "endblock" => {
                depth = depth.saturating_sub(1);
            }
            // CMake may never read the commands after it.
            "return" => sure = false,
            "add_executable" | "add_library" => {
                let Some((name, words)) = command.arguments.split_first() else { continue };
                let makes =
                    command.name == "add_executable" || words.iter().any(|word| word == "SHARED" || word == "MODULE");
                if !makes || words.iter().any(|word| word == "IMPORTED" || word == "ALIAS") {
                    continue;
                }
                sure &= depth == 0 && !name.contains(['$', '@', '"', '\\', ';']);
                targets.push(name.clone());
            }
            _ => {}
        }
    }
    match &targets[..] {
        [] => EmbedPlan::Below,
        [_] if sure => {
            let gap = if ended { "" } else { end };
            EmbedPlan::Append(format!("{gap}{end}{}", lines_for(&targets, end)))
        }
        _ => EmbedPlan::Tell(targets),
    }
}

/// Why a CMakeLists.txt cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListsError {
    NotUtf8,
    Syntax { line: usize, what: &'static str },
}

impl fmt::Display for ListsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 => f.write_str("is not UTF-8 text"),
            Self::Syntax { line, what } => write!(f, "cannot parse line {line} ({what})"),
        }
    }
}

/// A command call in a CMakeLists.txt: its lowercase name, and its arguments without quotes.
#[derive(Debug, PartialEq, Eq)]
struct Command {
    name: String,
    arguments: Vec<String>,
}

impl Command {
    /// Returns true if CMake knows a CUDA toolkit after this call.
    fn enables_cuda(&self) -> bool {
        let finds = self.name == "find_package";
        (finds || self.name == "project" || self.name == "enable_language")
            && self.arguments.iter().any(|word| word == "CUDA" || finds && word == "CUDAToolkit")
    }
}

/// Parses all calls in order (<https://cmake.org/cmake/help/latest/manual/cmake-language.7.html>, syntax). An error
/// contains the line and the reason why the rest cannot be parsed.
fn parse_commands(text: &str) -> Result<Vec<Command>, ListsError> {
    let mut commands = Vec::new();
    let mut rest = Rest { text: text.strip_prefix('\u{feff}').unwrap_or(text), at: 0 };
    loop {
        rest.skip_blank()?;
        let Some(letter) = rest.peek() else { return Ok(commands) };
        if !(letter.is_ascii_alphabetic() || letter == '_') {
            return Err(rest.error_at("expected a call"));
        }
        let name = rest.take_while(|letter| letter.is_ascii_alphanumeric() || letter == '_').to_ascii_lowercase();
        rest.skip_blank()?;
        if !rest.skip_word("(") {
            return Err(rest.error_at("expected `(`"));
        }
        commands.push(Command { name, arguments: rest.parse_arguments()? });
    }
}

struct Rest<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Rest<'a> {
    fn remaining(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.remaining().chars().next()
    }

    fn skip_word(&mut self, word: &str) -> bool {
        let there = self.remaining().starts_with(word);
        self.at += if there { word.len() } else { 0 };
        there
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let here = self.remaining();
        let end = here.find(|letter| !wanted(letter)).unwrap_or(here.len());
        self.at += end;
        &here[..end]
    }

    fn error_at(&self, what: &'static str) -> ListsError {
        ListsError::Syntax { line: 1 + self.text[..self.at].matches('\n').count(), what }
    }

    /// Parses a bracket argument `[==[ … ]==]`; `None` if none begins here.
    fn parse_bracket(&mut self) -> Result<Option<&'a str>, ListsError> {
        let here = self.remaining();
        let marks = here.strip_prefix('[').map_or(0, |inner| inner.len() - inner.trim_start_matches('=').len());
        if !here.starts_with('[') || !here[1 + marks..].starts_with('[') {
            return Ok(None);
        }
        let inner = &here[marks + 2..];
        let close = format!("]{}]", "=".repeat(marks));
        let end = inner.find(&close).ok_or_else(|| self.error_at("unclosed bracket"))?;
        self.at += marks + 2 + end + close.len();
        Ok(Some(&inner[..end]))
    }

    /// Skips blanks, line ends and comments.
    fn skip_blank(&mut self) -> Result<(), ListsError> {
        loop {
            self.take_while(char::is_whitespace);
            if !self.skip_word("#") {
                return Ok(());
            }
            if self.parse_bracket()?.is_none() {
                self.take_while(|letter| letter != '\n');
            }
        }
    }

    /// Parses arguments up to the parenthesis that closes the call. Inner parentheses are separate arguments.
    fn parse_arguments(&mut self) -> Result<Vec<String>, ListsError> {
        let (mut arguments, mut depth) = (Vec::new(), 0_usize);
        loop {
            self.skip_blank()?;
            if let Some(text) = self.parse_bracket()? {
                arguments.push(text.to_owned());
                continue;
            }
            match self.peek() {
                None => return Err(self.error_at("unclosed call")),
                Some(')') if depth == 0 => {
                    self.at += 1;
                    return Ok(arguments);
                }
                Some(')') => {
                    self.at += 1;
                    depth -= 1;
                }
                Some('(') => {
                    self.at += 1;
                    depth += 1;
                }
                Some('"') => {
                    self.at += 1;
                    arguments.push(self.parse_quoted()?);
                }
                Some(_) => arguments.push(self.parse_unquoted()),
            }
        }
    }

    fn parse_quoted(&mut self) -> Result<String, ListsError> {
        let mut escaped = false;
        let here = self.remaining();
        for (at, letter) in here.char_indices() {
            match letter {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    self.at += at + 1;
                    return Ok(here[..at].to_owned());
                }
                _ => {}
            }
        }
        Err(self.error_at("unclosed quote"))
    }

    fn parse_unquoted(&mut self) -> String {
        let here = self.remaining();
        let (mut escaped, mut end) = (false, here.len());
        for (at, letter) in here.char_indices() {
            match letter {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '(' | ')' | '#' => end = end.min(at),
                letter if letter.is_whitespace() => end = end.min(at),
                _ => {}
            }
            if end < here.len() {
                break;
            }
        }
        self.at += end;
        here[..end].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: &str = "cmake_minimum_required(VERSION 3.24)\nproject(demo LANGUAGES C)\n";

    fn planned(text: &str) -> EmbedPlan {
        let end = if text.contains('\r') { "\r\n" } else { "\n" };
        plan_edits(&parse_commands(&format!("{HEAD}{text}")).unwrap(), end, text.ends_with('\n'))
    }

    #[test]
    fn toolkit_commands_are_detected() {
        let uses = |text: &str| parse_commands(text).unwrap().iter().any(Command::enables_cuda);
        assert!(uses("project(demo LANGUAGES CXX CUDA)\n") && uses("Project(demo C)\nenable_language(CUDA)\n"));
        assert!(uses("find_package(CUDAToolkit 12 REQUIRED)\n"));
        assert!(!uses("project(CUDA_demo LANGUAGES C CXX) # CUDA\nset(A CUDA)\n"));
    }

    #[test]
    fn single_target_gets_guard_lines() {
        let lines = "\nfind_package(CudaGuard REQUIRED)\ncudaguard_embed(app)\n";
        for text in [
            "add_executable(app main.c)\n",
            "ADD_EXECUTABLE( app\n  main.c # the only one\n)\n",
            "add_executable(\"app\" main.c)\n",
            "add_library(helper STATIC helper.c)\nadd_executable(app main.c)\ntarget_link_libraries(app helper)\n",
            "add_library(app SHARED app.c)\n",
            "if(UNIX)\n  message(STATUS [[ add_executable(other x.c) ]])\nendif()\nadd_executable(app main.c)\n",
            "#[=[ add_executable(other x.c)\n]=]\nadd_executable(app main.c)\n# add_executable(third x.c)\n",
        ] {
            assert_eq!(planned(text), EmbedPlan::Append(lines.to_owned()), "{text}");
        }
        assert_eq!(planned("add_executable(app main.c)"), EmbedPlan::Append(format!("\n{lines}")));
        let EmbedPlan::Append(lines) = planned("add_executable(app main.c)\r\n") else { panic!("one target") };
        assert_eq!(lines.matches('\n').count(), lines.matches("\r\n").count());
    }

    #[test]
    fn ambiguous_target_is_reported() {
        for (text, targets) in [
            ("add_executable(a a.c)\nadd_executable(b b.c)\n", &["a", "b"][..]),
            ("if(BUILD_APP)\n  add_executable(app main.c)\nendif()\n", &["app"]),
            ("function(make)\n  add_executable(${ARGV0} main.c)\nendfunction()\n", &["${ARGV0}"]),
            ("add_executable(${PROJECT_NAME} main.c)\n", &["${PROJECT_NAME}"]),
            ("add_executable(app main.c)\nif(NOT TESTS)\n  return()\nendif()\n", &["app"]),
        ] {
            assert_eq!(
                planned(text),
                EmbedPlan::Tell(targets.iter().map(|name| (*name).to_owned()).collect()),
                "{text}"
            );
        }
        for text in [
            "add_subdirectory(src)\n",
            "add_library(only STATIC a.c)\n",
            "add_executable(tool IMPORTED)\nadd_executable(other ALIAS tool)\n",
        ] {
            assert_eq!(planned(text), EmbedPlan::Below, "{text}");
        }
    }

    #[test]
    fn guarded_project_is_unchanged() {
        for text in [
            "find_package(CudaGuard REQUIRED)\nadd_executable(app main.c)\n",
            "include(third_party/cudaguard/cmake/CudaGuard.cmake)\nadd_executable(app main.c)\n",
            "add_executable(app main.c)\nCUDAGUARD_EMBED(app)\n",
            "FetchContent_MakeAvailable(CudaGuard)\n",
        ] {
            assert_eq!(planned(text), EmbedPlan::Done, "{text}");
        }
    }

    #[test]
    fn unreadable_line_is_reported() {
        for (text, line) in [
            ("add_executable(app main.c\n", 4),
            ("add_executable(app \"main.c)\n", 3),
            ("set(A [[ never closed )\n", 3),
            ("<<<<<<< HEAD\n", 3),
            ("add_executable app\n", 3),
            ("#[[ never closed\n", 3),
        ] {
            let why = parse_commands(&format!("{HEAD}{text}")).unwrap_err();
            assert!(why.to_string().starts_with(&format!("cannot parse line {line} (")), "{text}: {why}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,60}", pieces in prop::collection::vec("(a|\\(|\\)|\"|#|\\[|=|\\]|\n| |\\\\|add_executable)", 0..30)) {
            let _ = parse_commands(&text);
            let text = pieces.concat();
            if let Ok(read) = parse_commands(&text) {
                // A text that was parsed completely gives the same calls if more text follows it.
                let more = parse_commands(&format!("{text}\ncudaguard_embed(app)\n")).unwrap();
                prop_assert_eq!(&more[..read.len()], &read[..]);
                prop_assert_eq!(plan_edits(&more, "\n", true), EmbedPlan::Done);
            }
        }
    }
}
