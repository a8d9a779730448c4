//! Pages and tables of the repository, compared with the code.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cudaguard_findings::Findings;
use cudaguard_tests::{Call, Scratch, command, e2e};
use serde_json::Value;

const POLICY: &str = "\
# cudaguard.toml

`cudaguard.toml` is an optional policy for cargo and CMake. cudaguard looks for it in the directory of the package and then in each parent
directory, up to the root of the workspace. The first file that exists applies.

```toml
toolkit.require = \">=12.4, <14\"
cudnn.require = \"^9.1\"
gpu.archs = [\"sm_80\", \"sm_90a\", \"compute_90\"]   # the package's own kernels
gpu.fleet = [\"A100\", \"9.0\"]                     # GPUs that the whole program must run on
build.unguarded = \"deny\"
allow.CG123 = \"CUDAARCHS is set for another project on this machine\"
```

An error in the file fails every build. cudaguard reports all errors at once, with the file, the line, the key and the expected value, and suggests
a similar key.

## Release and development builds

Errors fail a release build and are warnings in a development build. `[build]` changes this. The profile's `inherits` chain determines the kind of build:

| profile | build |
| --- | --- |
| `dev`, `test`, and profiles that inherit them, with any `opt-level` or `lto` | development |
| `release`, `bench`, and profiles that inherit them, with any `debug` or `opt-level` | release |
| CMake: `Debug`, the other `DEBUG_CONFIGURATIONS`, an empty configuration | development |
| CMake: every other configuration | release |

## Which packages are checked

`cargo cudaguard` checks a package that uses CUDA. Any of these identifies such a package:

- a crate in its dependency graph
- a policy of the package that constrains a CUDA component
- `embed!()` in its build script
- the linked file

Every other package builds in any environment. The policy of a workspace applies only to members that use CUDA.

## Fleets

`[gpu] fleet`, `[driver] fleet` and `[cudnn] fleet` list the machines that a build must run on.

| check | `cargo cudaguard build`, CMake | plain cargo, `cargo cudaguard check` |
| --- | --- | --- |
| GPUs | the linked file (CG130, CG131) | the declared architectures (CG132) |
| driver | the linked file (CG133, CG135) | the toolkit (CG133, CG135) |
| cuDNN | the headers (CG136, CG137, CG138) | the headers (CG136, CG137, CG138) |

Plain cargo cannot see the linked file, so some findings are warnings there, even in release builds. CG132 and CG135 are errors if `[gpu] archs`
or the build script declares the architectures. CG139 names what could not be determined.

## Allow a finding

```toml
[allow]
CG121 = \"sm_70 comes from a prebuilt object\"
```

This lowers the finding to severity info. The reason is required. It is recorded in the binary, and `cargo cudaguard inspect` shows it. `check`
reports an entry that the build does not need (CG109).

## Packages

`[package.NAME.gpu]` and similar tables replace the keys of the file for the package NAME. A list replaces the whole list. `[allow]` entries are merged.

## Keys

`cargo cudaguard init` writes the address of the JSON schema into the first line (`#:schema`), from which editors complete the keys.
";

/// Returns the page with tables of all keys, from the schema.
fn policy_page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../templates/cudaguard.schema.json");
    let mut schema: Value = serde_json::from_slice(&fs::read(path).expect("the schema is there")).expect("it is JSON");
    schema.sort_all_objects();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = |key: &Value| match (key["enum"].as_array(), key["type"].as_str()) {
        (Some(words), _) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        (None, Some("array")) => "list of strings".to_owned(),
        (None, Some("boolean")) => "`true`, `false`".to_owned(),
        (None, kind) => kind.unwrap_or_default().to_owned(),
    };
    let mut page = POLICY.to_owned();
    for (section, at) in schema["properties"].as_object().expect("sections") {
        let table = at["$ref"].as_str().map_or(at, |to| schema.pointer(&to[1..]).expect("it leads somewhere"));
        let _ = write!(page, "\n### [{section}]\n\n{}\n", text(&table["description"]));
        let Some(keys) = table["properties"].as_object() else { continue };
        page.push_str("\n| key | value | |\n| --- | --- | --- |\n");
        for (key, about) in keys {
            let of = text(&about["items"]["description"]);
            let of = if of.is_empty() { of } else { format!(" {of}") };
            let _ = writeln!(page, "| `{key}` | {} | {}{of} |", kind(about), text(&about["description"]));
        }
    }
    page
}

/// The Rust codes, the shim's messages and the page are generated from the table of findings.
#[e2e]
fn findings_page_matches_table() {
    for (name, text) in cudaguard_findings::read().written() {
        let kept = fs::read_to_string(cudaguard_findings::workspace().join(name)).unwrap_or_default();
        assert!(kept == text, "{name} is not what the table of findings makes of it: `cargo findings` writes it");
    }
}

/// The rows of the table are consistent, and each finding has a hint or states that no action is needed.
#[e2e]
fn findings_rows_are_consistent() {
    let wrong = apart(&cudaguard_findings::read());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the inconsistencies.
fn apart(findings: &Findings) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in &findings.rows {
        let mut not = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("CG{}: {what}", row.code));
            }
        };
        let (severity, verdict) = (row.severity.as_str(), row.verdict.as_str());
        not((severity == "error") == (verdict == "refuses"), "an error refuses, and nothing else");
        not(verdict != "open" || severity == "info", "what leaves the verdict open is an info");
        not(["refuses", "open", "informs"].contains(&verdict), "a verdict that nobody knows");
        not(["error", "warning", "info"].contains(&severity), "a severity that nobody knows");
        let at_run_time = row.code >= 200;
        not(row.rank.is_some() == at_run_time, "a rank where findings are told in an order: from 200 on");
        let twins = findings.rows.iter().filter(|other| other.rank == row.rank).count();
        not(!at_run_time || twins == 1, "another finding has the same rank");
        not(!row.explanation.contains("What to do: nothing;"), "it says to do nothing, and then what to do");
        for words in &row.words {
            let hint = words.hint.as_str();
            not(!words.message.is_empty() && !words.subject.is_empty(), "no words for it");
            not(hint.is_empty() == row.no_action, "a hint, or no_action");
            not(!hint.starts_with("nothing"), "a hint that says nothing");
            for template in words.message.lines().chain([hint, words.subject.as_str()]) {
                let depths: Vec<i32> = template
                    .chars()
                    .scan(0, |depth, letter| {
                        *depth += i32::from(letter == '[') - i32::from(letter == ']');
                        Some(*depth)
                    })
                    .collect();
                not(depths.iter().all(|depth| (0..=1).contains(depth)), "[ ] are nested or left open");
                not(depths.last().is_none_or(|depth| *depth == 0), "[ is left open");
                for name in template.split('{').skip(1) {
                    let name = name.split('}').next().unwrap_or_default();
                    let is_action = findings.front_ends.iter().any(|(action, _)| action == name);
                    let is_known = is_action || findings.fields.iter().any(|field| field.name == name);
                    not(is_known, &format!("no field {name}"));
                }
            }
        }
    }
    wrong
}

/// Each finding without an action must be named in a test. `hints::coverage` demands a row for each action.
#[e2e]
fn findings_are_all_tested() {
    fn sources(dir: &Path, found: &mut String) {
        for entry in fs::read_dir(dir).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "txt" || ending == "json") {
                let text = fs::read_to_string(&path).unwrap_or_default();
                let tests =
                    |part: std::path::Component<'_>| part.as_os_str() == "e2e" || part.as_os_str() == "snapshots";
                let own = path.components().any(tests) || path.ends_with("tests.rs");
                let at = if own { 0 } else { text.find("#[cfg(test)]").unwrap_or(text.len()) };
                found.push_str(&text[at..]);
            }
        }
    }
    let mut tests = String::new();
    for dir in ["tests/e2e", "tests/snapshots", "guard-core/src", "cargo-cudaguard/src"] {
        sources(&cudaguard_findings::workspace().join(dir), &mut tests);
    }
    let named = |row: &&cudaguard_findings::Row| {
        tests.contains(&format!("CG{}", row.code)) || tests.contains(&format!("::{}", row.name))
    };
    let findings = cudaguard_findings::read();
    let without: Vec<_> = findings.rows.iter().filter(|row| row.no_action && !named(row)).map(|row| row.code).collect();
    assert!(without.is_empty(), "no test names {without:?}");
}

const COMMAND_LINE: &str = "\
# Command line

Run the command as `cargo cudaguard` or `cargo-cudaguard`. The wheel for pip also installs it as `cudaguard`.

`build`, `run`, `test` and `install` accept cargo's own options. Any other cargo subcommand works after `--`, for example
`cargo cudaguard -- nextest run`. [Exit status](exit-status.md) lists the exit codes, and [JSON output](json.md) the keys of `--json`.
";

/// Returns a page with the help of the command and of each subcommand. `build` and similar subcommands are called as `cargo
/// cudaguard`, because otherwise cargo would show its own help.
fn command_line_page() -> String {
    let help = |words: &[&str]| command::call(["cudaguard"]).args(words).arg("--help").run().success().stdout;
    let index = help(&[]);
    let mut page = format!("{COMMAND_LINE}\n```text\n{}\n```\n", index.trim_end());
    let listed = index.lines().take_while(|line| !line.starts_with("Options:"));
    let names = listed
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next().filter(|_| !line.starts_with("   ")));
    for name in names.filter(|name| !["build", "run", "test", "install"].contains(name)) {
        let words: &[&str] = if name == "cmake" { &[name, "install"] } else { &[name] };
        let _ = write!(page, "\n## {}\n\n```text\n{}\n```\n", words.join(" "), help(words).trim_end());
    }
    page.push_str("\nThis page is generated from the help texts.\n");
    page
}

#[e2e]
fn command_line_page_matches_help() {
    held("docs/reference/cli.md", &command_line_page());
}

#[e2e]
fn policy_keys_are_documented() {
    held("docs/reference/policy.md", &policy_page());
}

/// Compares a generated page with the tree, or writes it if `CUDAGUARD_BLESS` is set.
pub(crate) fn held(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    if std::env::var_os("CUDAGUARD_BLESS").is_some_and(|value| !value.is_empty()) {
        cudaguard_tests::scratch::write(&path, page);
    }
    let kept = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    for (number, (kept, new)) in kept.lines().zip(page.lines()).enumerate() {
        assert_eq!(kept, new, "{name}:{}: CUDAGUARD_BLESS=1 rewrites it", number + 1);
    }
    assert!(kept == page, "{name}: CUDAGUARD_BLESS=1 rewrites it");
}

/// Pairs of a command line and bash's completions of its last word.
#[e2e]
fn bash_completes_subcommands_and_options() {
    let script = command::call(["completions", "bash"]).run().success().stdout;
    let scratch = Scratch::new("completions");
    let file = scratch.file("completions", script);
    let offered = |words: &[&str]| -> Vec<String> {
        let ask = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); f=$(complete -p cargo-cudaguard); \
                   f=${f##*-F }; ${f%% *} cargo-cudaguard \"${@: -1}\" \"${@: -2:1}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
        let call = Call::new("bash").args(["-c", ask, "bash"]).arg(&file).arg("cargo-cudaguard").args(words);
        call.run().success().stdout.lines().map(str::to_owned).collect()
    };
    assert_eq!(offered(&["che"]), ["check"]);
    assert_eq!(offered(&["check", "--fo"]), ["--format"]);
    assert_eq!(offered(&["check", "--format", "sa"]), ["sarif"]);
    assert_eq!(offered(&["build", "--rel"]), ["--release"]);
    assert_eq!(offered(&["init", "--c"]), ["--config", "--cmake", "--color"]);
    let verbs = offered(&[""]);
    for verb in
        ["build", "run", "test", "install", "check", "inspect", "exec", "explain", "lock", "init", "verify", "probe"]
    {
        assert!(verbs.iter().any(|word| word == verb), "{verb}: {verbs:?}");
    }
    assert!(!verbs.iter().any(|word| word == "cmake"), "what only programs call is not offered: {verbs:?}");
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = command::call(["completions", shell]).run().success().stdout;
        assert!(script.contains("explain") && script.contains("manifest-path"), "{shell}: {script}");
    }
}

/// Each subcommand has a manual page with its options, and `man` accepts the page.
#[e2e]
fn manual_pages_cover_all_subcommands() {
    let scratch = Scratch::new("manual");
    let dir = scratch.join("share/man/man1");
    let _ = command::call(["man"]).arg(&dir).run().success();
    let page = |name: &str| {
        fs::read_to_string(dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}")).replace('\\', "")
    };
    let index = page("cargo-cudaguard.1");
    assert!(index.contains("incompatible, or a build is refused"), "{index}");
    for verb in
        ["build", "run", "test", "install", "check", "inspect", "exec", "explain", "lock", "init", "verify", "probe"]
    {
        assert!(index.contains(&format!("cargo-cudaguard-{verb}(1)")), "{verb}: {index}");
        assert!(page(&format!("cargo-cudaguard-{verb}.1")).contains(".SH NAME"), "{verb}");
    }
    for entry in fs::read_dir(&dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a page");
        assert!(text.is_ascii(), "groff reads Latin-1: {}", path.display());
    }
    // The manual pages list the same subcommands and options as the help.
    let help = command::call(["--help"]).run().success().stdout;
    let (_, listed) = help.split_once("<COMMAND>\n").expect("the usage");
    let verbs: Vec<&str> = listed
        .lines()
        .take_while(|line| !line.starts_with("Options:") && !line.starts_with("Global options:"))
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.len() > 15, "{help}");
    for verb in verbs {
        let page = page(&format!("cargo-cudaguard-{verb}.1"));
        // cargo shows its own help for these subcommands, and has its own manual pages.
        if ["build", "run", "test", "install"].contains(&verb) {
            continue;
        }
        let help = command::call([verb, "--help"]).run().success().stdout;
        let options = help.split(|c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '=' | '`' | '<'));
        for option in options.filter(|word| word.starts_with("--") && word.len() > 2) {
            let option = option.trim_end_matches(['.', ';', ':', ')', '…']);
            assert!(page.contains(option), "cargo-cudaguard-{verb}.1  does not mention {option}");
        }
    }
    assert!(page("cargo-cudaguard-check.1").contains("--format"));
    assert!(page("cargo-cudaguard-cmake.1").contains("cargo-cudaguard-cmake-install(1)"));
    assert!(!dir.join("cargo-cudaguard-cmake-begin.1").exists(), "what only CMake calls has none");
    let not_there = scratch.file("file", "");
    let failed = command::call(["man"]).arg(not_there.join("man1")).run().expect(2);
    assert!(failed.stderr.contains("cannot write into "), "{failed}");
}
