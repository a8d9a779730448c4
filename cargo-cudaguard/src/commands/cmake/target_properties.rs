//! The properties of a target in one configuration, as the CMake module writes them: lines of a key and a value. The
//! module writes one file for each language of the project, because include directories and flags may differ by
//! language.
//!
//! The format is not JSON, because a generator expression cannot escape its result. The end of a line is the only
//! character that no path in a build file contains.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::guard::Tool;
use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::cudnn;
use cudaguard::internal::file_error::{FileError, FileProblem};
use cudaguard::internal::files;
use cudaguard::internal::manifest::Component;
use cudaguard::internal::shell_words::split_words;
use cudaguard::internal::toolchain::{BuildSystem, BuildSystemFacts, HostCompiler, Sourced, include_flags};

/// The first line of a facts file. Only the same revision writes and reads the format.
pub(crate) const HEAD: &str = "cudaguard-facts 1";
/// Prefix of the names of facts files; the language follows.
const STEM: &str = "facts.";

/// The value of `by` if CMake did not write the facts.
pub(crate) const BY_OPTIONS: &str = "options";

/// Directory of objects that all targets share, below the build directory.
const KEPT: &str = "CMakeFiles/cudaguard-kept";

/// A target in one configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct TargetDescription {
    /// Name of the target.
    pub(crate) target: String,
    /// CMake's type of the target: `EXECUTABLE`, `SHARED_LIBRARY`, …
    pub(crate) kind: String,
    pub(crate) component: Component,
    /// Configuration as CMake spells it; empty if there is none.
    pub(crate) configuration: String,
    /// Set if the configuration is a release configuration: not empty, and not in `DEBUG_CONFIGURATIONS`.
    pub(crate) release: bool,
    /// Directory of the calling CMakeLists.txt.
    pub(crate) source: PathBuf,
    /// Root of the project. Policies are not searched above it.
    pub(crate) top: PathBuf,
    /// The build directory.
    pub(crate) binary: PathBuf,
    /// The file of the target.
    pub(crate) output: Option<PathBuf>,
    /// For a library that is not linked itself: its archive.
    pub(crate) archive: Option<PathBuf>,
    /// For such a library: the files of the project that it is linked into, as far as CMake's configuration shows them.
    pub(crate) linked_into: Vec<PathBuf>,
    /// The command that links `output`, and its directory, if it is the file of another target that contains this library.
    pub(crate) link_command: Option<(Vec<String>, PathBuf)>,
    /// The policy file, if one is specified.
    pub(crate) policy: Option<PathBuf>,
    /// The compiler of the guard.
    pub(crate) tool: Tool,
    /// The target triple of this compiler, if it was queried when CMake configured.
    pub(crate) triple: Option<String>,
    /// Set if the file is linked with the runtime path of the installed file.
    pub(crate) install_rpath: bool,
    /// The reason why no guard is possible, if it is known in advance: from the options of `embed`, or when CMake
    /// configured.
    pub(crate) unguarded: Option<String>,
    /// Set if any difference from the lock is an error.
    pub(crate) locked: bool,
    /// The facts files that were read.
    pub(crate) files: Vec<PathBuf>,
    /// The objects of the target.
    pub(crate) objects: Vec<PathBuf>,
    /// The objects of project libraries that are linked into the target, and of other targets among its sources.
    pub(crate) inside: Vec<PathBuf>,
    pub(crate) given: BuildSystemFacts,
}

impl TargetDescription {
    /// Reads the facts files in a directory.
    pub(crate) fn read_dir(dir: &Path) -> Result<Self, FileError> {
        let entries = fs::read_dir(dir).map_err(|error| FileError::read(dir, error))?;
        let mut files: Vec<(String, PathBuf)> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let language = path.file_name()?.to_str()?.strip_prefix(STEM)?.to_owned();
                Some((language, path))
            })
            .collect();
        // The facts of CUDA come first, because the include path of nvcc is the relevant one for kernels.
        files.sort_by_key(|(language, path)| {
            (["CUDA", "CXX", "C"].iter().position(|known| known == language).unwrap_or(3), path.clone())
        });
        let (mut all, paths) = (Vec::new(), files.iter().map(|(_, path)| path.clone()).collect());
        for (language, path) in files {
            all.push((language, Lines::read(&path)?));
        }
        if all.is_empty() {
            let problem = FileProblem::damaged("contains no data from CMake; run cmake again");
            return Err(FileError::read(dir, problem));
        }
        let read = Self::from_lines(&all).map_err(|problem| FileError::read(dir, problem))?;
        Ok(Self { files: paths, ..read })
    }

    /// Reads the facts file that `embed` has written from its options.
    pub(crate) fn from_options_file(path: &Path) -> Result<Self, FileError> {
        let lines = Lines::read(path)?;
        let language = if lines.0.contains_key("cuda-source") { "CUDA" } else { "C" };
        let read = Self::from_lines(&[(language.to_owned(), lines)]);
        let mut read = read.map_err(|problem| FileError::read(path, problem))?;
        read.tool.kept = None;
        Ok(Self { files: vec![path.to_owned()], ..read })
    }

    fn from_lines(all: &[(String, Lines)]) -> Result<Self, FileProblem> {
        let lines = Merged(all);
        let target = lines.required_value("target")?;
        let configuration = lines.single_value("configuration").unwrap_or_default();
        let debug = lines.all_values("debug-configuration");
        let is_debug = debug.iter().any(|name| name.eq_ignore_ascii_case(&configuration));
        let mut flags = Vec::new();
        flags.extend(lines.single_value("compiler-target").map(|triple| format!("--target={triple}")));
        flags.extend(lines.all_values("compiler-flag"));
        flags.extend(lines.single_value("sysroot").map(|dir| format!("--sysroot={dir}")));
        let given = Self::build_system_facts(&lines, &target);
        let binary = PathBuf::from(lines.required_value("binary")?);
        // `$<TARGET_OBJECTS:…>` among the sources, except objects that this build did not create.
        let as_source = lines.all_values("source-file").into_iter().map(PathBuf::from);
        let as_source =
            as_source.filter(|file| file.starts_with(&binary) && file.extension().is_some_and(|ending| ending == "o"));
        let inside = lines.all_values("inside-object").into_iter().map(PathBuf::from).chain(as_source).collect();
        Ok(Self {
            kind: lines.required_value("type")?,
            component: Component {
                name: lines.required_value("component")?,
                version: lines.required_value("version")?,
            },
            release: !configuration.is_empty() && !is_debug,
            configuration,
            output: lines.single_value("output").map(PathBuf::from),
            archive: lines.single_value("archive").map(PathBuf::from),
            linked_into: lines.all_values("linked-into").into_iter().map(PathBuf::from).collect(),
            link_command: None,
            source: lines.required_value("source")?.into(),
            top: lines.required_value("top")?.into(),
            policy: lines.single_value("policy").map(PathBuf::from),
            triple: lines.single_value("triple"),
            tool: Tool { program: lines.required_value("compiler")?.into(), flags, kept: Some(binary.join(KEPT)) },
            binary,
            unguarded: lines.single_value("unguarded"),
            locked: lines.single_value("locked").is_some_and(|value| is_true(&value)),
            files: Vec::new(),
            install_rpath: lines.single_value("install-rpath").is_some_and(|value| is_true(&value)),
            objects: lines.all_values("object").into_iter().map(PathBuf::from).collect(),
            inside,
            given,
            target,
        })
    }

    fn build_system_facts(lines: &Merged<'_>, target: &str) -> BuildSystemFacts {
        let by = if lines.single_value("by").is_some_and(|by| by == BY_OPTIONS) {
            BuildSystem::Options
        } else {
            BuildSystem::CMake
        };
        let of_target =
            |cmake: &str, option: &str| by.choose(String::new(), format!("{cmake} of {target}"), option.to_owned());
        let mut sources = lines.all_values("source-file").into_iter();
        let kernels = lines.has_language("CUDA")
            && (lines.single_value("cuda-source").is_some() || sources.any(|source| source.ends_with(".cu")));
        let compiles = kernels
            // clang compiles CUDA too, with the headers of the toolkit, but nvcc's rules do not apply to it.
            && lines.single_value("cuda-compiler-id").is_none_or(|id| id == "NVIDIA");
        let compiler_source = by.choose("", "CMAKE_CUDA_COMPILER", "--nvcc");
        let nvcc = lines
            .path("cuda-compiler", compiler_source)
            .filter(|_| lines.single_value("cuda-compiler-id").is_some_and(|id| id == "NVIDIA"))
            .or_else(|| lines.path("toolkit-nvcc", "CUDAToolkit_NVCC_EXECUTABLE"))
            .or_else(|| lines.path("findcuda-nvcc", "CUDA_NVCC_EXECUTABLE"))
            .filter(|nvcc| nvcc.value.is_file());
        let options = lines.all_of("CUDA", "flags").into_iter().chain(lines.all_of("CUDA", "option"));
        let flags = options.map(|flag| flag.strip_prefix("SHELL:").unwrap_or(&flag).to_owned()).collect();
        let of_flags = lines.all_values("flags").into_iter().flat_map(|flags| split_words(&flags));
        let of_flags: Vec<String> =
            of_flags.chain(lines.all_values("option").into_iter().flat_map(words_of_option)).collect();
        let mut includes = lines.paths("include", &of_target("an include directory", "--include"));
        let flag = of_target("a compile option", "--nvcc-flags");
        includes.extend(include_flags(&of_flags).into_iter().map(|directory| Sourced::new(directory, &flag)));
        // Code of a library that is linked into the target. Its headers are not visible to the target itself.
        includes.extend(lines.paths("inside-include", &format!("an include directory of a library in {target}")));
        let options: Vec<String> = lines.all_values("inside-option").into_iter().flat_map(words_of_option).collect();
        let flag = format!("a compile option of a library in {target}");
        includes.extend(include_flags(&options).into_iter().map(|directory| Sourced::new(directory, &flag)));
        let host_known = ["CXX", "C"].iter().find_map(|language| {
            let named = format!("CMAKE_{language}_COMPILER");
            let compiler = lines.single_value(&format!("{language}-compiler"))?;
            let id = lines.single_value(&format!("{language}-compiler-id"))?;
            let version = lines.single_value(&format!("{language}-compiler-version"))?;
            Some(HostCompiler::from_cmake(compiler.into(), &named, &id, &version))
        });
        let [named_archs, archs] = [("named-architectures", "ARCHITECTURES"), ("architectures", "CUDA_ARCHITECTURES")]
            .map(|(key, name)| lines.single_value(key).map(|text| Sourced::new(text, format!("{name} of {target}"))));
        BuildSystemFacts {
            by,
            nvcc,
            compiles,
            flags,
            toolkit: lines
                .path("toolkit", by.choose("", "CUDAToolkit_ROOT", "--toolkit"))
                .or_else(|| lines.path("cuda-toolkit", compiler_source))
                .or_else(|| lines.path("findcuda-toolkit", "CUDA_TOOLKIT_ROOT_DIR")),
            host: lines.path("cuda-host-compiler", "CMAKE_CUDA_HOST_COMPILER"),
            host_known,
            includes,
            own_includes: lines.all_values("own-include").into_iter().map(PathBuf::from).collect(),
            libraries: lines.paths("link-directory", &of_target("a link directory", "--library-dir")),
            archs: named_archs.or(archs.filter(|_| kernels)),
            native: lines.single_value("native").map(|text| Sourced::new(text, "CMAKE_CUDA_ARCHITECTURES_NATIVE")),
            library_include: lines.path(&format!("{}-include", CUDNN.key), cudnn::INCLUDE_VARIABLE),
        }
    }

    /// Returns the name of the linked file for messages: the target, or the file that contains this library.
    pub(crate) fn linked_name(&self) -> String {
        match self.output.as_ref().and_then(|output| output.file_name()).filter(|_| self.link_command.is_some()) {
            Some(name) => name.to_string_lossy().into_owned(),
            None => self.target.clone(),
        }
    }

    /// Returns true if a later step inspects the linked file: the linker launcher, or `seal`.
    pub(crate) fn sees_linked(&self) -> bool {
        self.output.is_some() || !self.linked_into.is_empty() || self.given.by == BuildSystem::Options
    }

    /// Returns the configuration as the manifest contains it. CMake treats `Release` and `release` as equal.
    pub(crate) fn profile_name(&self) -> String {
        if self.configuration.is_empty() { "none".to_owned() } else { self.configuration.to_lowercase() }
    }
}

/// An option is one argument, even with blanks, unless it is marked as a piece of a command line.
fn words_of_option(option: String) -> Vec<String> {
    match option.strip_prefix("SHELL:") {
        Some(piece) => split_words(piece),
        None => vec![option],
    }
}

/// Returns true if CMake evaluates the value as true.
fn is_true(value: &str) -> bool {
    let value = value.to_uppercase();
    matches!(value.as_str(), "1" | "ON" | "YES" | "TRUE" | "Y")
        || value.parse::<f64>().is_ok_and(|number| number != 0.0)
}

/// The lines of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Lines(BTreeMap<String, Vec<String>>);

impl Lines {
    fn read(path: &Path) -> Result<Self, FileError> {
        let text = files::read_text(path).map_err(|error| FileError::read(path, error))?;
        Self::parse(&text).map_err(|problem| FileError::read(path, problem))
    }

    fn parse(text: &str) -> Result<Self, FileProblem> {
        let mut lines = text.lines();
        match lines.next() {
            Some(HEAD) => {}
            other => {
                return Err(FileProblem::unsupported(format!(
                    "the first line is `{}`, not `{HEAD}`: the CMake package and the command are from different releases",
                    other.unwrap_or_default()
                )));
            }
        }
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (number, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
            let Some((key, value)) = line.split_once(' ') else {
                return Err(FileProblem::damaged(format!("line {}: expected a key and a value", number + 2)));
            };
            if !value.is_empty() {
                all.entry(key.to_owned()).or_default().push(value.to_owned());
            }
        }
        Ok(Self(all))
    }
}

/// The merged files of all languages.
struct Merged<'a>(&'a [(String, Lines)]);

impl Merged<'_> {
    fn has_language(&self, language: &str) -> bool {
        self.0.iter().any(|(known, _)| known == language)
    }

    fn single_value(&self, key: &str) -> Option<String> {
        self.0.iter().find_map(|(_, lines)| lines.0.get(key)?.first().cloned())
    }

    fn path(&self, key: &str, source: &str) -> Option<Sourced<PathBuf>> {
        Some(Sourced::new(self.single_value(key)?.into(), source))
    }

    fn paths(&self, key: &str, source: &str) -> Vec<Sourced<PathBuf>> {
        self.all_values(key).into_iter().map(|directory| Sourced::new(directory.into(), source)).collect()
    }

    fn required_value(&self, key: &str) -> Result<String, FileProblem> {
        self.single_value(key).ok_or_else(|| FileProblem::damaged(format!("`{key}` is missing")))
    }

    /// Returns the values of all languages, without duplicates.
    fn all_values(&self, key: &str) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for value in self.0.iter().filter_map(|(_, lines)| lines.0.get(key)).flatten() {
            if !all.contains(value) {
                all.push(value.clone());
            }
        }
        all
    }

    fn all_of(&self, language: &str, key: &str) -> Vec<String> {
        let of = self.0.iter().find(|(known, _)| known == language);
        of.and_then(|(_, lines)| lines.0.get(key)).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "cudaguard-facts 1\ntarget app\ntype EXECUTABLE\ncomponent my app\nversion 1.0\nsource /s\ntop /\n\
                         binary /b\npolicy \ncompiler /usr/bin/cc\nconfiguration Release\ndebug-configuration Debug\n\
                         include /a b/ü\ninclude /c;d\n\n";

    fn facts(files: &[(&str, &str)]) -> Result<TargetDescription, FileProblem> {
        let all: Result<Vec<_>, FileProblem> =
            files.iter().map(|(language, text)| Ok(((*language).to_owned(), Lines::parse(text)?))).collect();
        TargetDescription::from_lines(&all?)
    }

    #[test]
    fn lines_are_parsed() {
        let facts = facts(&[("C", LINES)]).unwrap();
        assert_eq!(
            (facts.component.name.as_str(), facts.release, facts.profile_name()),
            ("my app", true, "release".to_owned())
        );
        assert_eq!(facts.policy, None, "an empty value is none");
        let dirs: Vec<_> = facts.given.includes.iter().map(|dir| dir.value.to_string_lossy()).collect();
        assert_eq!(dirs, ["/a b/ü", "/c;d"]);
        assert!(!facts.given.compiles && facts.given.nvcc.is_none());
    }

    #[test]
    fn configurations_are_classified() {
        for (configuration, debug, release) in [
            ("Release", "Debug", true),
            ("debug", "Debug", false),
            ("", "Debug", false),
            ("Coverage", "coverage", false),
        ] {
            let text = LINES.replace(
                "configuration Release\ndebug-configuration Debug",
                "configuration CONFIG\ndebug-configuration DEBUG",
            );
            let text = text.replace("CONFIG", configuration).replace("DEBUG", debug);
            assert_eq!(facts(&[("C", &text)]).unwrap().release, release, "{configuration}");
        }
    }

    #[test]
    fn only_cuda_keeps_its_flags() {
        let cuda =
            LINES.replace("include /c;d", "include /cuda\nsource-file a.cu\noption SHELL:-ccbin g++-11\nflags -O3");
        let cxx = LINES.replace("include /c;d", "option -fopenmp");
        let facts = facts(&[("CUDA", &cuda), ("CXX", &cxx)]).unwrap();
        assert_eq!(facts.given.flags, ["-O3", "-ccbin g++-11"]);
        assert_eq!(facts.given.includes.len(), 2, "{:?}", facts.given.includes);
        assert!(facts.given.compiles);
    }

    #[test]
    fn missing_or_outdated_facts_are_reported() {
        assert_eq!(
            facts(&[("C", &LINES.replace("compiler", "other"))]).unwrap_err().to_string(),
            "`compiler` is missing"
        );
        let newer = facts(&[("C", "cudaguard-facts 2\n")]).unwrap_err();
        assert!(newer.to_string().contains("cudaguard-facts 2") && newer.to_string().contains("releases"), "{newer}");
        assert!(facts(&[("C", "cudaguard-facts 1\nkey\n")]).unwrap_err().to_string().contains("line 2"));
        assert!(Lines::parse("").is_err());
    }

    proptest::proptest! {
        #[test]
        fn parsing_never_panics(text: String, cut in 0..LINES.len()) {
            let _ = facts(&[("C", &text)]);
            let _ = facts(&[("CUDA", &format!("{HEAD}\n{text}"))]);
            if LINES.is_char_boundary(cut) {
                let _ = facts(&[("CUDA", &LINES[..cut])]);
            }
        }
    }
}
