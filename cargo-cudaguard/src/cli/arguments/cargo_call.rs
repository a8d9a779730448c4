//! Parser for the cargo arguments that affect the guard.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use super::CargoVerb;

/// Cargo options that take a value, except those that [`Call`] reads. The parser skips their values, so that no value
/// is parsed as an option.
const WITH_VALUE: &[&str] = &[
    "-j",
    "--jobs",
    "--test",
    "--bench",
    "--lockfile-path",
    "--artifact-dir",
    "--out-dir",
    "--git",
    "--branch",
    "--tag",
    "--rev",
    "--root",
    "--registry",
    "--index",
    "--version",
    "--vers",
    "-C",
];

/// The cargo arguments that the guard needs. The arguments are passed to cargo unchanged.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Call {
    pub(crate) manifest_path: Option<PathBuf>,
    pub(crate) target_dir: Option<PathBuf>,
    pub(crate) targets: Vec<String>,
    pub(crate) packages: Vec<String>,
    pub(crate) excluded: Vec<String>,
    pub(crate) workspace: bool,
    pub(crate) release: bool,
    pub(crate) debug: bool,
    pub(crate) profile: Option<String>,
    pub(crate) configs: Vec<String>,
    pub(crate) quiet: bool,
    /// Number of `-v` flags.
    pub(crate) verbose: u8,
    /// Value of `--color`.
    pub(crate) color: Option<String>,
    pub(crate) json: bool,
    /// Values of `--message-format`.
    pub(crate) message_format: Vec<String>,
    /// Value of `check --format`.
    pub(crate) format: Option<String>,
    /// Value of `init --git`.
    pub(crate) git: Option<String>,
    /// Set by `init --cmake`.
    pub(crate) cmake: bool,
    /// Set by `init --dry-run`.
    pub(crate) dry_run: bool,
    /// Set by `--locked`, and by `--frozen`, which implies it.
    pub(crate) locked: bool,
    pub(crate) bins: Vec<String>,
    pub(crate) examples: Vec<String>,
    pub(crate) all_bins: bool,
    pub(crate) all_examples: bool,
    pub(crate) all_targets: bool,
    /// Set by `--lib`, `--test`, `--tests`, `--bench`, `--benches` and `--doc`: targets are selected, but none of them
    /// is guarded.
    pub(crate) others: bool,
    /// Value of `install --path` or `init --path`.
    pub(crate) path: Option<PathBuf>,
    /// Values of `rustc --crate-type`: the crate types that this call builds the library as.
    pub(crate) crate_types: Vec<String>,
    /// The selected features.
    pub(crate) features: Features,
    /// Set if the subcommand runs tests.
    pub(crate) tests: bool,
    /// Set by `--offline`, and by `--frozen`, which implies it.
    pub(crate) offline: bool,
    /// Set if the call only prints information about cargo, such as its help.
    pub(crate) help: bool,
    /// Set if the call asks for the usage of the subcommand.
    pub(crate) usage: bool,
    /// Values of `-Z`.
    pub(crate) unstable: Vec<String>,
}

/// The features that the arguments select.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features {
    named: Vec<String>,
    all: bool,
    no_default: bool,
}

impl Features {
    /// Returns the features as cargo arguments.
    pub(crate) fn to_args(&self) -> Vec<String> {
        let named = self.named.iter().flat_map(|one| ["--features".to_owned(), one.clone()]);
        let switches = [(self.all, "--all-features"), (self.no_default, "--no-default-features")];
        named.chain(switches.into_iter().filter(|(on, _)| *on).map(|(_, word)| word.to_owned())).collect()
    }

    /// Returns the declared features of a package that the arguments turn on. `other/feature` selects a feature of
    /// another package.
    pub(crate) fn enabled_features<V>(&self, package: &str, declared: &BTreeMap<String, V>) -> BTreeSet<String> {
        if self.all {
            return declared.keys().cloned().collect();
        }
        let named = self.named.iter().flat_map(|list| list.split([',', ' '])).map(str::trim);
        let mut on: BTreeSet<String> = named
            .filter_map(|name| match name.split_once('/') {
                Some((other, feature)) => (other == package).then_some(feature),
                None => Some(name),
            })
            .filter(|name| declared.contains_key(*name))
            .map(str::to_owned)
            .collect();
        if !self.no_default && declared.contains_key("default") {
            on.insert("default".to_owned());
        }
        on
    }
}

impl Call {
    /// Parses the arguments of a subcommand (`None` means `check`) up to the arguments of the program.
    pub(crate) fn parse(verb: Option<CargoVerb>, arguments: &[OsString]) -> Self {
        let mut call = Self { tests: verb == Some(CargoVerb::Test), ..Self::default() };
        let mut arguments = arguments;
        // The profiles of nextest are not cargo profiles.
        let mut nextest = false;
        if let (Some(CargoVerb::Any), Some((name, rest))) = (verb, arguments.split_first()) {
            (arguments, nextest) = (rest, name == "nextest");
            call.release = name == "bench";
            call.tests = nextest || name == "bench";
        }
        let mut words = arguments.iter().map(|word| word.to_string_lossy()).peekable();
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            if !word.starts_with('-') || word == "-" {
                if verb == Some(CargoVerb::Run) {
                    break;
                }
                continue;
            }
            let (name, glued) = match word.split_once('=') {
                Some((name, value)) if word.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
                _ if word.len() > 2 && !word.starts_with("--") && "pFjZ".contains(&word[1..2]) => {
                    (word[..2].to_owned(), Some(word[2..].trim_start_matches('=').to_owned()))
                }
                _ => (word.to_string(), None),
            };
            let mut value = || glued.clone().or_else(|| words.next_if(|next| !next.starts_with('-')).map(Into::into));
            match name.as_str() {
                "--manifest-path" => call.manifest_path = value().map(PathBuf::from),
                "--target-dir" => call.target_dir = value().map(PathBuf::from),
                "--path" => call.path = value().map(PathBuf::from),
                "--target" => call.targets.extend(value().map(|target| without_glibc(&target).to_owned())),
                "-p" | "--package" => call.packages.extend(value()),
                "--exclude" => call.excluded.extend(value()),
                "--profile" if nextest => drop(value()),
                "--profile" => call.profile = value(),
                "--config" => call.configs.extend(value()),
                "--crate-type" => {
                    call.crate_types.extend(value().unwrap_or_default().split(',').map(str::to_owned));
                }
                "--bin" => call.bins.extend(value()),
                "--example" => call.examples.extend(value()),
                "--workspace" | "--all" => call.workspace = true,
                "--release" => call.release = true,
                "--debug" => call.debug = true,
                "--quiet" => call.quiet = true,
                "--verbose" => call.verbose += 1,
                "--color" => call.color = value(),
                "--json" => call.json = true,
                "--message-format" => {
                    let values = value().unwrap_or_default();
                    call.message_format.extend(values.split(',').map(|one| one.trim().to_lowercase()));
                }
                "--format" if verb.is_none() => call.format = value(),
                "--git" if verb.is_none() => call.git = value(),
                "--cmake" if verb.is_none() => call.cmake = true,
                "--dry-run" if verb.is_none() => call.dry_run = true,
                "--locked" => call.locked = true,
                "--frozen" => (call.locked, call.offline) = (true, true),
                "--offline" => call.offline = true,
                "-F" | "--features" => call.features.named.extend(value()),
                "--all-features" => call.features.all = true,
                "--no-default-features" => call.features.no_default = true,
                "--bins" => call.all_bins = true,
                "--examples" => call.all_examples = true,
                "--all-targets" => call.all_targets = true,
                "--lib" | "--tests" | "--benches" | "--doc" => call.others = true,
                "--test" | "--bench" => {
                    call.others = true;
                    let _ = value();
                }
                "-Z" => call.unstable.extend(value()),
                "--cargo-profile" if verb == Some(CargoVerb::Any) => call.profile = value(),
                "--help" => (call.help, call.usage) = (true, true),
                "--list" => call.help = true,
                "--version" if glued.is_none() && verb != Some(CargoVerb::Install) => call.help = true,
                other if WITH_VALUE.contains(&other) => drop(value()),
                short if !short.starts_with("--") => {
                    for letter in short[1..].chars() {
                        match letter {
                            'q' => call.quiet = true,
                            'v' => call.verbose += 1,
                            'r' => call.release = true,
                            'h' => (call.help, call.usage) = (true, true),
                            'V' => call.help = true,
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        call
    }
}

/// Removes the glibc release from a target that zigbuild accepts, such as `x86_64-unknown-linux-gnu.2.17`.
fn without_glibc(target: &str) -> &str {
    match target.find("-gnu").and_then(|at| Some((at, target[at..].find('.')?))) {
        Some((at, dot)) if target[at + dot..].bytes().all(|byte| byte == b'.' || byte.is_ascii_digit()) => {
            &target[..at + dot]
        }
        _ => target,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn call(verb: CargoVerb, words: &str) -> Call {
        Call::parse(Some(verb), &words.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn cargo_arguments_are_parsed() {
        let read =
            call(CargoVerb::Build, "-p a -pb --package=c --target-dir t --release -j 4 -qv --bin x --config k='v'");
        assert_eq!(read.packages, ["a", "b", "c"]);
        assert_eq!(read.target_dir.as_deref(), Some(Path::new("t")));
        assert!(read.release && read.quiet && !read.workspace);
        assert_eq!(read.bins, ["x"]);
        assert_eq!(read.configs, ["k='v'"]);
    }

    #[test]
    fn unknown_subcommand_arguments_are_parsed() {
        let read = |words| call(CargoVerb::Any, words);
        let tests = read("nextest run -p a --cargo-profile dist --profile ci -Zbuild-std name");
        assert_eq!((tests.profile.as_deref(), tests.packages.as_slice()), (Some("dist"), &["a".to_owned()][..]));
        assert_eq!((tests.unstable, tests.tests), (vec!["build-std".to_owned()], true));
        let with_glibc =
            read("zigbuild --target x86_64-unknown-linux-gnu.2.17 --target=armv7-unknown-linux-gnueabihf.2.28");
        assert_eq!(with_glibc.targets, ["x86_64-unknown-linux-gnu", "armv7-unknown-linux-gnueabihf"]);
        assert_eq!(read("b --target thumbv8m.main-none-eabi").targets, ["thumbv8m.main-none-eabi"]);
        assert_eq!(read("b --target x86_64-gnu.json").targets, ["x86_64-gnu.json"]);
        assert_eq!(read("rustc --lib --crate-type lib,cdylib -r").crate_types, ["lib", "cdylib"]);
        assert!(read("bench").release && !read("clippy -- -r").release && read("zigbuild --release").release);
    }

    #[test]
    fn program_arguments_are_not_parsed() {
        let read = call(CargoVerb::Run, "--bin x word --release");
        assert!(!read.release);
        assert!(!call(CargoVerb::Build, "-- -q").quiet);
        assert!(call(CargoVerb::Test, "name --release").release);
        assert!(!call(CargoVerb::Build, "--features --release").packages.contains(&"--release".to_owned()));
    }
}
