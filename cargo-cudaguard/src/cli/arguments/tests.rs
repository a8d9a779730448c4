use super::cargo_options::CARGO_OPTIONS;
use super::*;

#[test]
fn commands_are_well_formed() {
    build_command(true).debug_assert();
    build_command(false).debug_assert();
    for_people().debug_assert();
}

#[test]
fn commands_are_in_one_group() {
    let command = build_command(false);
    let mut listed: Vec<&str> = help::GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    listed.sort_unstable();
    let mut all: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    all.sort_unstable();
    assert_eq!(listed, all);
}

#[test]
fn commands_have_imperative_summaries() {
    for command in build_command(false).get_subcommands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(about.starts_with(char::is_uppercase) && !about.ends_with('.'), "{}", command.get_name());
        let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let complete = help.contains("Example") && help.contains("Exit status:");
        assert!(complete || command.get_name() == "cmake", "{}: {help}", command.get_name());
    }
}

#[test]
fn examples_in_help_are_valid() {
    let help = build_command(false)
        .get_subcommands()
        .filter_map(Command::get_after_long_help)
        .map(ToString::to_string)
        .chain([help::MAIN.to_owned()])
        .collect::<String>();
    let mut examples = 0;
    for line in help.lines().filter_map(|line| line.trim().strip_prefix("cargo cudaguard ")) {
        let line = line.split("   ").next().unwrap_or_default();
        let line = line.split([';', '|', '>']).next().unwrap_or_default().trim();
        if line.starts_with("-- ") {
            continue;
        }
        let words = std::iter::once("cargo-cudaguard").chain(line.split_whitespace());
        let parsed = build_command(true).try_get_matches_from(words);
        assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        examples += 1;
    }
    assert!(examples > 20, "{examples}");
}

#[test]
fn global_options_move_behind_subcommand() {
    for (typed, moved) in [
        ("-v check", "check -v"),
        ("--color never -qv build --release", "build --color never -qv --release"),
        ("--color=always verify file", "verify --color=always file"),
        ("--quiet -- clippy --fix", "-- clippy --quiet --fix"),
        ("-v", "-v"),
        ("--color", "--color"),
        ("--help", "--help"),
        ("-vh check", "-vh check"),
        ("check -v", "check -v"),
        ("", ""),
    ] {
        let words = move_global_options(typed.split_whitespace().map(OsString::from).collect());
        let words: Vec<&str> = words.iter().map(|word| word.to_str().expect("text")).collect();
        assert_eq!(words.join(" "), moved, "{typed}");
    }
}

#[test]
fn commands_in_symptoms_are_valid() {
    let mut own = 0;
    for cause in crate::knowledge::symptoms::all_symptoms().iter().flat_map(|symptom| &symptom.causes) {
        let named = cause.fix.split('`').filter(|text| text.starts_with("cargo cudaguard"));
        for command_line in named.chain(std::iter::once(cause.see.as_str())) {
            let Some(words) = command_line.strip_prefix("cargo cudaguard") else { continue };
            let words = std::iter::once("cargo-cudaguard").chain(words.split_whitespace());
            let parsed = build_command(true).try_get_matches_from(words);
            assert!(parsed.is_ok(), "{command_line}: {}", parsed.unwrap_err());
            own += 1;
        }
    }
    assert!(own > 50, "{own}");
}

#[test]
fn completed_options_exist_in_cargo() {
    for (verb, letter) in [("build", 'b'), ("run", 'r'), ("test", 't'), ("install", 'i')] {
        let cargo = cudaguard::internal::env::Env::from_process().var_os("CARGO").expect("cargo runs the tests");
        let help = std::process::Command::new(cargo).args([verb, "--help"]).output().expect("cargo starts");
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        let words: Vec<&str> = help.split(|c: char| c.is_whitespace() || "[]<>,=.".contains(c)).collect();
        for (long, short, ..) in CARGO_OPTIONS.iter().filter(|(.., commands)| commands.contains(letter)) {
            assert!(words.contains(&format!("--{long}").as_str()), "cargo {verb} has no --{long}");
            if let Some(short) = short {
                assert!(words.contains(&format!("-{short}").as_str()), "cargo {verb} has no -{short}");
            }
        }
    }
}

/// Returns the arguments that a subcommand requires or takes by position, with values of the right kind.
fn required_arguments(command: &Command) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(below) = command.get_subcommands().find(|below| below.get_name() == "install") {
        words.push(below.get_name().to_owned());
        words.extend(required_arguments(below));
    }
    for argument in command.get_arguments().filter(|argument| argument.is_required_set() || argument.is_positional()) {
        words.extend(argument.get_long().map(|long| format!("--{long}")));
        words.extend(argument.is_last_set().then(|| "--".to_owned()));
        let values = argument.get_possible_values();
        words.push(values.first().map_or("file".to_owned(), |value| value.get_name().to_owned()));
    }
    words
}

/// Every subcommand accepts the global options before and after its name, in each combination of spelling and place.
#[test]
fn global_options_work_in_each_place() {
    let levels = [
        ("", false, 0),
        ("-q", true, 0),
        ("--quiet", true, 0),
        ("-v", false, 1),
        ("-vv", false, 2),
        ("-v --verbose", false, 2),
    ];
    let colors =
        [("", ColorChoice::Auto), ("--color never", ColorChoice::Never), ("--color=always", ColorChoice::Always)];
    let mut tried = 0;
    for command in build_command(true).get_subcommands() {
        let name = command.get_name();
        let required = required_arguments(command).join(" ");
        for ((level, quiet, verbose), (color, choice)) in
            levels.iter().flat_map(|level| colors.map(|color| (*level, color)))
        {
            for typed in [
                format!("{level} {color} {name} {required}"),
                format!("{color} {level} {name} {required}"),
                format!("{level} {name} {color} {required}"),
                format!("{color} {name} {level} {required}"),
                format!("{name} {level} {color} {required}"),
            ] {
                let words = move_global_options(typed.split_whitespace().map(OsString::from).collect());
                assert_eq!(words.first().and_then(|word| word.to_str()), Some(name), "{typed}");
                let global = if let Some(verb) = CargoVerb::from_name(name) {
                    cargo(verb, &words[1..]).0
                } else {
                    let words = std::iter::once(OsString::from("cargo-cudaguard")).chain(words);
                    let matches = build_command(true).try_get_matches_from(words);
                    let matches = matches.unwrap_or_else(|error| panic!("{typed}: {error}"));
                    GlobalOptions::from_arg_matches(matches.subcommand().expect("a subcommand").1).expect("declared")
                };
                assert_eq!((global.quiet, global.verbose, global.color), (quiet, verbose, choice), "{typed}");
                tried += 1;
            }
        }
    }
    assert!(tried > 1000, "{tried}");
}
