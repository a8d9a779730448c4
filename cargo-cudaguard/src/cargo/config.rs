//! Reader for the parts of cargo's configuration that affect the guard; cargo has no stable interface for them. See
//! <https://doc.rust-lang.org/cargo/reference/config.html>: cargo reads the files of the current directory and its
//! parents, then `$CARGO_HOME`. Variables override files, and `--config` overrides both.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cargo_platform::{Cfg, Platform};
use cudaguard::internal::env::Env;
use cudaguard::internal::files;
use toml::{Table, Value};

use crate::cli::report::CliError;

/// The merged configuration. The first layer that has a key defines its value.
#[derive(Debug)]
pub(crate) struct Config {
    /// The environment that was read.
    pub(crate) env: Env,
    /// `--config KEY=VALUE` and `--config FILE`, the last one first. They override variables.
    given: Vec<Layer>,
    files: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    /// The base directory of relative paths in this layer.
    base: PathBuf,
    table: Table,
}

/// The program and arguments of a key such as `target.<triple>.runner`. A relative program path is already resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words(pub(crate) Vec<String>);

impl Config {
    /// Reads the configuration for this environment with these `--config` values.
    pub(crate) fn read(env: &Env, given: &[String]) -> Result<Self, CliError> {
        let dir = env.current_dir();
        if dir.as_os_str().is_empty() {
            return Err(CliError::operational("the current directory does not exist"));
        }
        let mut config = Self { env: env.clone(), given: Vec::new(), files: Vec::new() };
        for text in given.iter().rev() {
            config.given.push(match text.parse::<Table>() {
                Ok(table) => Layer { base: dir.to_owned(), table },
                Err(_) => Layer::from_file(&dir.join(text))?,
            });
        }
        let mut seen = Vec::new();
        for home in dir.ancestors().map(|dir| dir.join(".cargo")).chain(cargo_home(env)) {
            // `config` without an extension is the older name; cargo prefers it if both exist.
            let Some(file) = ["config", "config.toml"].iter().map(|name| home.join(name)).find(|path| path.is_file())
            else {
                continue;
            };
            if !seen.contains(&file) {
                config.files.push(Layer::from_file(&file)?);
                seen.push(file);
            }
        }
        Ok(config)
    }

    /// Returns the string of a dotted key, from its variable (`CARGO_BUILD_TARGET_DIR`) or a file.
    pub(crate) fn string_value(&self, key: &[&str]) -> Option<String> {
        self.find_value(key)?.1.as_str().map(str::to_owned)
    }

    /// Returns the boolean of a dotted key; false if it is not set.
    pub(crate) fn bool_value(&self, key: &[&str]) -> bool {
        match self.find_value(key) {
            Some((_, Value::String(text))) => text == "true",
            Some((_, value)) => value.as_bool().unwrap_or(false),
            None => false,
        }
    }

    /// Returns the program and arguments of a dotted key. A program with a slash is relative to the base directory of
    /// its layer.
    pub(crate) fn program_with_args(&self, key: &[&str]) -> Option<Words> {
        let (base, value) = self.find_value(key)?;
        let mut words = words_of(&value)?;
        let first = words.first_mut()?;
        if first.contains('/') {
            *first = base.join(&*first).to_string_lossy().into_owned();
        }
        Some(Words(words))
    }

    /// Returns the expansion of an alias if the configuration defines it.
    pub(crate) fn alias_words(&self, name: &str) -> Option<Vec<String>> {
        words_of(&self.find_value(&["alias", name])?.1)
    }

    /// Returns a program without arguments (a compiler or a wrapper) by its dotted key. As in cargo, blanks are part of
    /// the name, and a program with a slash is relative to the base directory of its layer.
    pub(crate) fn program_path(&self, key: &[&str]) -> Option<String> {
        let (base, value) = self.find_value(key)?;
        let name = value.as_str()?;
        Some(if name.contains('/') { base.join(name).to_string_lossy().into_owned() } else { name.to_owned() })
    }

    /// Returns the strings of a key that accepts one string or a list (`build.target`).
    pub(crate) fn string_values(&self, key: &[&str]) -> Vec<String> {
        match self.find_value(key) {
            Some((_, Value::String(text))) => vec![text],
            Some((_, Value::Array(items))) => strings_of(&items),
            _ => Vec::new(),
        }
    }

    /// Returns the `cfg(…)` keys of `[target]` that have a runner, with their runners.
    pub(crate) fn cfg_runners(&self) -> Vec<(String, Words)> {
        let mut runners = Vec::new();
        for layer in self.given.iter().chain(&self.files) {
            let Some(Value::Table(targets)) = layer.table.get("target") else { continue };
            for key in targets.keys().map(String::as_str).filter(|key| key.starts_with("cfg(")) {
                if let Some(words) = self.program_with_args(&["target", key, "runner"]) {
                    runners.push((key.to_owned(), words));
                }
            }
        }
        runners
    }

    /// Returns the variables of `[env]` as cargo sets them for the compiler, for build scripts and for the programs
    /// that it runs.
    pub(crate) fn env_table(&self) -> BTreeMap<String, OsString> {
        let mut variables = BTreeMap::new();
        for layer in self.given.iter().chain(&self.files) {
            let Some(Value::Table(entries)) = layer.table.get("env") else { continue };
            for (name, entry) in entries {
                if variables.contains_key(name) {
                    continue;
                }
                let (value, force, relative) = match entry {
                    Value::String(value) => (value, false, false),
                    Value::Table(table) => {
                        let Some(Value::String(value)) = table.get("value") else { continue };
                        let [force, relative] =
                            ["force", "relative"].map(|key| table.get(key).and_then(Value::as_bool).unwrap_or(false));
                        (value, force, relative)
                    }
                    _ => continue,
                };
                let value = if relative { layer.base.join(value).into_os_string() } else { value.into() };
                if force || self.env.var_os(name).is_none() {
                    variables.insert(name.clone(), value);
                }
            }
        }
        variables
    }

    /// Returns a value and the base directory of its layer. That of a variable is a string.
    fn find_value(&self, key: &[&str]) -> Option<(&Path, Value)> {
        for layer in &self.given {
            if let Some(value) = lookup(&layer.table, key) {
                return Some((&layer.base, value.clone()));
            }
        }
        if let Some(text) = self.env.var(&variable_name(key)) {
            return Some((Path::new(""), Value::String(text)));
        }
        self.files.iter().find_map(|layer| Some((layer.base.as_path(), lookup(&layer.table, key)?.clone())))
    }
}

/// Returns the words of a command line. As in cargo, a string is split at blanks and a list is not split.
fn words_of(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(text.split_whitespace().map(str::to_owned).collect()),
        Value::Array(items) => Some(strings_of(items)),
        _ => None,
    }
}

fn strings_of(items: &[Value]) -> Vec<String> {
    items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

impl Layer {
    fn from_file(path: &Path) -> Result<Self, CliError> {
        let text = files::read_text(path)
            .map_err(|error| CliError::operational(format_args!("cannot read {}: {error}", path.display())))?;
        let table = text
            .parse()
            .map_err(|error| CliError::operational(format_args!("cannot read {}: {error}", path.display())))?;
        // Relative paths start from the directory that contains `.cargo`.
        let base = path.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_owned();
        Ok(Self { base, table })
    }
}

fn lookup<'a>(table: &'a Table, key: &[&str]) -> Option<&'a Value> {
    let (last, tables) = key.split_last()?;
    let mut here = table;
    for name in tables {
        here = here.get(*name)?.as_table()?;
    }
    here.get(*last)
}

/// Returns the variable of a dotted key: `CARGO_BUILD_TARGET_DIR` for `build.target-dir`.
pub(crate) fn variable_name(key: &[&str]) -> String {
    format!("CARGO_{}", key.join("_").to_uppercase().replace(['-', '.'], "_"))
}

fn cargo_home(env: &Env) -> Option<PathBuf> {
    env.var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env.var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))
}

/// Returns true if a `cfg(…)` expression matches `set`, the lines of `rustc --print cfg`. An invalid expression does
/// not match.
pub(crate) fn cfg_holds(expression: &str, set: &[String]) -> bool {
    let set: Vec<Cfg> = set.iter().filter_map(|line| line.parse().ok()).collect();
    matches!(expression.trim().parse(), Ok(Platform::Cfg(expression)) if expression.matches(&set))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(given: &[&str]) -> Config {
        let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
        Config::read(&Env::from_variables([], "/nowhere/at/all"), &given).unwrap()
    }

    #[test]
    fn later_config_takes_precedence() {
        let config = config(&["build.target='a'", "build.target='b'"]);
        assert_eq!(config.string_value(&["build", "target"]).as_deref(), Some("b"));
    }

    #[test]
    fn program_strings_are_split() {
        let config = config(&["target.x.runner='qemu -L /usr'", "target.y.runner=['my runner', '-v']"]);
        assert_eq!(config.program_with_args(&["target", "x", "runner"]).unwrap().0, ["qemu", "-L", "/usr"]);
        assert_eq!(config.program_with_args(&["target", "y", "runner"]).unwrap().0, ["my runner", "-v"]);
    }

    #[test]
    fn program_without_arguments_keeps_blanks() {
        let config = config(&["build.rustc='my tools/rustc'", "build.rustc-wrapper='sc cache'"]);
        assert_eq!(config.program_path(&["build", "rustc"]).as_deref(), Some("/nowhere/at/all/my tools/rustc"));
        assert_eq!(config.program_path(&["build", "rustc-wrapper"]).as_deref(), Some("sc cache"));
        assert_eq!(config.program_path(&["build", "rustdoc"]), None);
    }

    #[test]
    fn env_section_variables_are_read() {
        let config = config(&["env.CUDAGUARD_TEST_A='1'", "env.CUDAGUARD_TEST_B={value='d', relative=true}"]);
        let variables = config.env_table();
        assert_eq!(variables["CUDAGUARD_TEST_A"], "1");
        assert_eq!(variables["CUDAGUARD_TEST_B"], "/nowhere/at/all/d");
    }

    #[test]
    fn cfg_conditions_are_evaluated() {
        let set = ["unix".to_owned(), "target_os=\"linux\"".to_owned()];
        for (expression, truth) in [
            ("cfg(unix)", true),
            ("cfg(windows)", false),
            ("cfg(all(unix, target_os = \"linux\"))", true),
            ("cfg(any(windows, all(unix, not(target_os = \"macos\"))))", true),
            ("cfg(not(unix))", false),
            ("cfg(all())", true),
            ("cfg(any())", false),
            ("cfg(all(unix)", false),
            ("unix", false),
        ] {
            assert_eq!(cfg_holds(expression, &set), truth, "{expression}");
        }
    }

    #[test]
    fn variable_name_follows_cargo_rule() {
        assert_eq!(
            variable_name(&["target", "x86_64-unknown-linux-gnu", "runner"]),
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER"
        );
    }
}
