//! `doctor --bundle`: what a bug report needs in one file, without private data; what was taken out is said.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cudaguard::env::Env;
use cudaguard::files;
use cudaguard::sanitize;
use cudaguard::vendor;
use serde_json::{Value, json};

use crate::inspect;
use crate::report::{self, CliError};

/// Variables that change what is found, read and judged, beside those that name a library's folder. Others stay out: they may
/// hold secrets.
const VARIABLES: &[&str] = &[
    "CUDA_DEVICE_ORDER",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_HOME",
    "CUDA_MODULE_LOADING",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDAGUARD",
    "CUDAGUARD_REPORT",
    "CUDAGUARD_TIMEOUT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
];

pub(crate) fn write(
    env: &Env,
    file: &Path,
    program: Option<&Path>,
    doctor: &cudaguard::json::Value,
) -> Result<(), CliError> {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).expect("what was written as JSON");
    let folders = vendor::ALL.iter().flat_map(|library| library.names.roots);
    let variables = VARIABLES.iter().chain(folders).filter_map(|name| {
        let value = env.var_os_raw(name)?;
        Some(((*name).to_owned(), Value::String(value.to_string_lossy().into_owned())))
    });
    let mut bundle = json!({
        "bundle": 1,
        "cudaguard": env!("CARGO_PKG_VERSION"),
        "doctor": parsed(&doctor.pretty()),
        "variables": variables.collect::<serde_json::Map<_, _>>(),
    });
    if let Some(program) = program {
        bundle["program"] = parsed(&inspect::as_json(program)?);
    }
    let mut private = Private::of(env, |path| fs::read_to_string(path).unwrap_or_default());
    let mut bundle = private.taken_out(bundle);
    let removed = private.removed();
    bundle["removed"] = removed.iter().map(|(what, written)| json!({ "what": what, "as": written })).collect();
    let text = format!("{bundle:#}\n");
    // `--bundle ./my-model` is easily typed for `--bundle bug.json ./my-model`.
    if file.symlink_metadata().is_ok() && !is_bundle(file) {
        let why = "is there, and is no bundle: name a new file";
        return Err(CliError::operational(format_args!("{} {why}", file.display())));
    }
    files::write(file, text.as_bytes())
        .map_err(|error| CliError::operational(format_args!("cannot write {}: {error}", file.display())))?;
    let mut told = format!("{}: written, {} bytes; read it before you send it\n", file.display(), text.len());
    for (what, written) in &removed {
        let _ = writeln!(told, "  taken out: {what}, now {written}");
    }
    if removed.is_empty() {
        told += "  nothing private was in it\n";
    }
    report::result(&told)
}

/// One that was written before.
fn is_bundle(file: &Path) -> bool {
    let value = files::text(file).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
    value.is_some_and(|value| value["bundle"] == 1 && value["cudaguard"].is_string())
}

/// What says whose machine it is.
struct Private {
    /// What is taken out, what it is, and what stands for it; the longer ones first.
    words: Vec<(String, &'static str, &'static str)>,
    /// The GPUs' own numbers, as they were met.
    gpus: Vec<String>,
    /// What was taken out: what it is, and what stands for it.
    met: BTreeMap<&'static str, String>,
}

impl Private {
    fn of(env: &Env, read: impl Fn(&Path) -> String) -> Self {
        let mut words = Vec::new();
        let home = env.var("HOME").unwrap_or_default();
        let home = home.trim_end_matches('/');
        if home.len() > 1 && home.starts_with('/') {
            words.push((home.to_owned(), "the home folder", "~"));
        }
        for name in ["USER", "LOGNAME", "SUDO_USER"].iter().filter_map(|variable| env.var(variable)) {
            words.push((name, "a user's name", "<user>"));
        }
        // Homes of others, as well: they stand in paths of libraries.
        for line in read(Path::new("/etc/passwd")).lines() {
            let fields: Vec<&str> = line.split(':').collect();
            if let [name, _, number, ..] = fields[..] {
                if number.parse::<u32>().is_ok_and(|number| (1000..65534).contains(&number)) {
                    words.push((name.to_owned(), "a user's name", "<user>"));
                }
            }
        }
        let host = read(Path::new("/proc/sys/kernel/hostname"));
        words.push((host.trim().to_owned(), "the machine's name", "<host>"));
        // A name of two letters is met everywhere, and `root` is nobody's.
        words.retain(|(word, ..)| word.len() > 2 && word != "root" && word != "localhost");
        words.sort_by_key(|(word, ..)| (std::cmp::Reverse(word.len()), word.clone()));
        words.dedup();
        Self { words, gpus: Vec::new(), met: BTreeMap::new() }
    }

    fn taken_out(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(all) => all.into_iter().map(|value| self.taken_out(value)).collect(),
            Value::Object(all) => {
                Value::Object(all.into_iter().map(|(key, value)| (self.text(&key), self.taken_out(value))).collect())
            }
            other => other,
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (word, what, written) in &self.words {
            let without = sanitize::replaced(&text, word, written);
            if without != text {
                self.met.insert(what, (*written).to_owned());
                text = without;
            }
        }
        self.without_numbers(&text)
    }

    /// `GPU-8932f937-d72c-4106-c12f-20bd9faed9f6` says which GPU of all in the world it is, and so does MIG's.
    fn without_numbers(&mut self, text: &str) -> String {
        let is_in = |c: char| c.is_ascii_hexdigit() || c == '-';
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = ["GPU-", "MIG-"].iter().filter_map(|kind| rest.find(kind)).min() {
            let (kind, behind) = rest[at..].split_at(4);
            // A start of the number is enough for CUDA_VISIBLE_DEVICES.
            let end = behind.find(|c| !is_in(c)).unwrap_or(behind.len());
            let number = behind[..end].to_ascii_lowercase();
            out += &rest[..at + 4];
            if number.is_empty() {
                rest = behind;
                continue;
            }
            let known =
                self.gpus.iter().position(|known| known.starts_with(&number) || number.starts_with(known.as_str()));
            let place = known.unwrap_or_else(|| {
                self.gpus.push(number);
                self.gpus.len() - 1
            });
            let _ = write!(out, "<{}>", place + 1);
            self.met.insert("the GPUs' own numbers", format!("{kind}<1> and so on"));
            rest = &behind[end..];
        }
        out + rest
    }

    fn removed(&self) -> Vec<(&'static str, String)> {
        self.met.iter().map(|(what, written)| (*what, written.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn private() -> Private {
        let variables = [("HOME", "/home/al.fredo/"), ("USER", "al.fredo")];
        let env = Env::of(variables.map(|(name, value)| (name.to_owned(), value.into())).into(), "/");
        Private::of(&env, |path| match path.to_str() {
            Some("/etc/passwd") => {
                "root:x:0:0::/root:\nbea:x:1001:1::/srv/bea:\nio:x:1002:1::/:\ndaemon:x:1:1::/:\n".to_owned()
            }
            _ => "gpu-box\n".to_owned(),
        })
    }

    #[test]
    fn what_says_whose_it_is_is_taken_out() {
        for (text, expected) in [
            ("/home/al.fredo/lib:/srv/bea/lib", "~/lib:/srv/<user>/lib"),
            ("/home/al.fredo", "~"),
            ("/home/al.fredoni/x", "/home/al.fredoni/x"),
            ("/mnt/al.fredo/x", "/mnt/<user>/x"),
            ("libbea.so, beatrix, bea-1", "libbea.so, beatrix, bea-1"),
            ("on gpu-box: no GPU", "on <host>: no GPU"),
            ("-I/home/al.fredo/include", "-I~/include"),
            ("/srv/io/daemon", "/srv/io/daemon"),
            ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,GPU-77", "GPU-<1>,GPU-<2>"),
            ("MIG-c12f, GPU-8932, GPU-8932f937", "MIG-<1>, GPU-<2>, GPU-<2>"),
            ("GPU-, a GPU-x", "GPU-, a GPU-x"),
        ] {
            assert_eq!(private().text(text), expected, "{text}");
        }
    }

    #[test]
    fn what_was_taken_out_is_said() {
        let mut all = private();
        let value = all.taken_out(json!({ "/home/al.fredo": ["bea", 3, null, { "x": "GPU-12" }] }));
        assert_eq!(value, json!({ "~": ["<user>", 3, null, { "x": "GPU-<1>" }] }));
        let removed: Vec<&str> = all.removed().into_iter().map(|(what, _)| what).collect();
        assert_eq!(removed, ["a user's name", "the GPUs' own numbers", "the home folder"]);
        assert!(private().removed().is_empty());
    }
}
