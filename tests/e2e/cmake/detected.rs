//! CMake detects compilers once for trees with equal options, variables and languages. nvcc needs two seconds for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

/// Result of a detection: files of the build directory with their contents.
type Detected = BTreeMap<PathBuf, String>;

static KNOWN: Mutex<BTreeMap<String, Arc<Detected>>> = Mutex::new(BTreeMap::new());

/// Writes the result of an equal configuration to a new build directory. Returns a function that keeps the result of this
/// one, to be called after its success.
pub(super) fn reuse(tree: &Path, command: &Command) -> Option<Box<dyn FnOnce()>> {
    let build = tree.join("build");
    let key = key(tree, command).filter(|_| !build.join("CMakeCache.txt").exists())?;
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = known().get(&key).map(Arc::clone);
    if let Some(detected) = kept {
        for (file, text) in &*detected {
            cudaguard_tests::scratch::write(&build.join(file), text);
        }
        return None;
    }
    let tree = tree.to_owned();
    Some(Box::new(move || {
        if let Some(detected) = read(&tree) {
            known().insert(key, Arc::new(detected));
        }
    }))
}

/// Returns what the detection depends on. `None` if that is in the tree, so that no other tree has it.
fn key(tree: &Path, command: &Command) -> Option<String> {
    let mut key = vec![command.get_program().to_string_lossy().into_owned()];
    let mut arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    while let Some(argument) = arguments.next() {
        match &*argument {
            // Generators detect compilers in the same way.
            "-S" | "-B" | "-G" => drop(arguments.next()),
            // The type of the build affects no compiler. Options of the project have other names.
            _ if ["-DCMAKE_BUILD_TYPE=", "-DCMAKE_MAKE_PROGRAM="].iter().any(|one| argument.starts_with(one)) => {}
            _ if argument.starts_with("-D")
                && !["CMAKE_", "CUDA"].iter().any(|ours| argument[2..].starts_with(ours)) => {}
            _ if argument.starts_with("-DCUDAGUARD_") => {}
            // The detection only depends on whether the project selects archs, except for those of the machine.
            _ if argument.starts_with("-DCMAKE_CUDA_ARCHITECTURES=") && !argument.ends_with("native") => {
                key.push("-DCMAKE_CUDA_ARCHITECTURES".to_owned());
            }
            _ => key.push(argument),
        }
    }
    key.extend(command.get_envs().map(|(name, value)| format!("{name:?}={value:?}")));
    key.push(languages(&tree.join("source"))?);
    let key = key.join("\n");
    (!key.contains(&*tree.to_string_lossy())).then_some(key)
}

/// Returns the commands that precede the last `project()` or `enable_language()`, without names. `None` if a file of another
/// directory enables a language.
fn languages(source: &Path) -> Option<String> {
    let enables = |line: &str| ["project(", "enable_language("].iter().any(|one| line.trim_start().starts_with(one));
    let nested = fs::read_dir(source).ok()?.flatten().filter(|entry| entry.path().is_dir());
    let mut nested = nested.map(|entry| fs::read_to_string(entry.path().join("CMakeLists.txt")).unwrap_or_default());
    if nested.any(|text| text.lines().any(enables)) {
        return None;
    }
    let text = fs::read_to_string(source.join("CMakeLists.txt")).ok()?;
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().rposition(|line| enables(line))?;
    let languages = lines[..=last].iter().map(|line| line.split_once("LANGUAGES").map_or(*line, |(_, rest)| rest));
    Some(languages.collect::<Vec<_>>().join("\n"))
}

fn read(tree: &Path) -> Option<Detected> {
    let build = tree.join("build");
    let mut detected = Detected::new();
    for dir in fs::read_dir(build.join("CMakeFiles")).ok()?.flatten() {
        // The directory has the version of CMake as its name.
        if dir.file_name().to_string_lossy().starts_with(|first: char| first.is_ascii_digit()) {
            for file in fs::read_dir(dir.path())
                .ok()?
                .flatten()
                .filter(|file| file.path().extension() == Some("cmake".as_ref()))
            {
                let name = Path::new("CMakeFiles").join(dir.file_name()).join(file.file_name());
                detected.insert(name, fs::read_to_string(file.path()).ok()?);
            }
        }
    }
    let cache = fs::read_to_string(build.join("CMakeCache.txt")).ok()?;
    let of_tree = tree.display().to_string();
    let kept = cache.lines().filter(|line| is_detected(line) && !line.contains(&of_tree));
    let kept: String = kept.flat_map(|line| [line, "\n"]).collect();
    detected.insert("CMakeCache.txt".into(), kept);
    (detected.len() > 2 && !detected.values().any(|text| text.contains(&of_tree))).then_some(detected)
}

/// Returns whether a line of the cache is a result of the detection: a tool, or that CMake knows the platform.
fn is_detected(line: &str) -> bool {
    const TOOLS: [&str; 12] = [
        "ADDR2LINE",
        "AR",
        "DLLTOOL",
        "LINKER",
        "NM",
        "OBJCOPY",
        "OBJDUMP",
        "RANLIB",
        "READELF",
        "STRIP",
        "TAPI",
        "UNAME",
    ];
    let Some((name, _)) = line.strip_prefix("CMAKE_").and_then(|rest| rest.split_once(':')) else { return false };
    TOOLS.contains(&name)
        || name.contains("_COMPILER")
        || ["EXECUTABLE_FORMAT", "PLATFORM_INFO_INITIALIZED"].contains(&name)
}
