//! Parses the output of nvcc: its release and its root. Another module runs the program.

use std::path::{Path, PathBuf};

use super::SelectionReason;
use crate::model::version::Version;
use crate::text::shell_words::split_words;

/// A candidate for the compiler in use.
pub(super) struct NvccCandidate {
    pub(super) path: PathBuf,
    pub(super) flags: Vec<String>,
    pub(super) source: String,
    pub(super) reason: SelectionReason,
}

/// An nvcc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nvcc {
    /// The path as specified by a variable, or as found in a directory.
    pub path: PathBuf,
    /// Its release, `V13.0.88`: the third number is the compiler's build, not the toolkit's update.
    pub version: Option<Version>,
    /// The root that it compiles with (`TOP` of `nvcc --dryrun`), if it was queried, as for a wrapper.
    pub top: Option<PathBuf>,
    /// The directory or compiler that its `nvcc.profile` sets as `compiler-bindir`.
    pub compiler_bindir: Option<PathBuf>,
    /// The reason why its release is unknown, to append to its name: `did not answer within 10 s`.
    pub problem: Option<String>,
}

/// Parses the release in the output of `nvcc --version`: `Cuda compilation tools, release 12.4, V12.4.131`.
pub(super) fn parse_version(text: &str) -> Option<Version> {
    for line in text.lines() {
        let Some((_, rest)) = line.split_once("release ") else { continue };
        let mut parts = rest.split(',').map(str::trim);
        let release: Option<Version> = parts.next().and_then(|text| text.parse().ok());
        let build: Option<Version> =
            parts.next().and_then(|text| text.strip_prefix('V')).and_then(|text| text.parse().ok());
        match (release, build) {
            (Some(release), Some(build)) if (release.major, release.minor) == (build.major, build.minor) => {
                return Some(build);
            }
            (Some(release), _) => return Some(release),
            (None, _) => {}
        }
    }
    None
}

/// Returns why the output of `nvcc --version` has no release, to append to the name of the program.
pub(super) fn describe_no_version(text: &str) -> String {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    if first.is_empty() {
        "prints nothing with --version".to_owned()
    } else {
        format!("prints no release with --version, but `{}`", clip_line(first))
    }
}

pub(super) fn clip_line(line: &str) -> String {
    let mut out: String = line.chars().take(80).collect();
    if out.len() < line.len() {
        out.push('…');
    }
    out
}

/// The paths in the output of `nvcc --dryrun`: `TOP` and the directories of `INCLUDES`, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dryrun {
    /// `TOP`: the toolkit's root.
    pub(super) top: Option<PathBuf>,
    /// The directories that it searches for `cuda.h`.
    pub(super) includes: Vec<PathBuf>,
}

/// Parses the lines `#$ NAME=value` of `nvcc --dryrun`.
pub(super) fn parse_dryrun(text: &str) -> Dryrun {
    let mut parsed = Dryrun::default();
    for line in text.lines() {
        let Some(line) = line.trim_start().strip_prefix("#$ ") else { continue };
        if let Some(top) = line.strip_prefix("TOP=") {
            parsed.top = (!top.trim().is_empty()).then(|| PathBuf::from(top.trim()));
        } else if let Some(includes) = line.strip_prefix("INCLUDES=") {
            parsed.includes = split_words(includes)
                .into_iter()
                .filter_map(|word| word.strip_prefix("-I").map(PathBuf::from))
                .filter(|dir| !dir.as_os_str().is_empty())
                .collect::<Vec<_>>();
        }
    }
    parsed
}

/// Returns the program that a wrapper script calls: the last absolute path of an `nvcc` in its text. Used only if nvcc
/// does not print its root: without an accepted host compiler, `--dryrun` fails before that.
pub(super) fn parse_wrapper(script: &str) -> Option<PathBuf> {
    const AROUND_PATH: [char; 7] = ['\'', '"', ';', '=', '`', '(', ')'];
    if !script.starts_with("#!") {
        return None;
    }
    let words = script.lines().flat_map(split_words).collect::<Vec<_>>();
    words.iter().rev().find_map(|word| {
        // A quoted path may contain blanks; in a quoted command, blanks surround the path.
        let mut parts = word.split(AROUND_PATH).flat_map(str::split_whitespace).chain(word.split(AROUND_PATH)).rev();
        parts.find(|part| part.starts_with('/') && part.ends_with("/nvcc")).map(PathBuf::from)
    })
}

/// Returns `compiler-bindir` of an `nvcc.profile` (Debian's is a directory with an older gcc).
pub(super) fn parse_profile(text: &str, here: &Path) -> Option<PathBuf> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        let value = value.trim().replace("$(_HERE_)", &here.to_string_lossy());
        (name.trim() == "compiler-bindir" && !value.is_empty() && !value.contains("$(")).then(|| PathBuf::from(value))
    })
}

/// Splits a variable such as `CUDACXX="ccache /opt/cuda/bin/nvcc -ccbin g++-11"` into program and flags. A value that
/// is the name of an existing file, including blanks, is that file; so is a path of which no prefix is a file, unless
/// flags follow.
pub(super) fn parse_command(value: &str, is_file: impl Fn(&Path) -> bool) -> Option<(PathBuf, Vec<String>)> {
    let words = split_words(value);
    let gone = value.starts_with('/')
        && words.get(1).is_some_and(|word| !word.starts_with('-'))
        && !is_file(Path::new(&words[0]));
    if gone || is_file(Path::new(value)) {
        return Some((PathBuf::from(value), Vec::new()));
    }
    let mut words = words.into_iter();
    let mut program = PathBuf::from(words.next()?);
    let launcher = program.file_name().is_some_and(|name| name == "ccache" || name == "sccache");
    if launcher {
        program = PathBuf::from(words.next()?);
    }
    Some((program, words.collect::<Vec<_>>()))
}

/// Returns the value of `-ccbin` (or `--compiler-bindir`) in nvcc's flags; the last one wins.
pub(super) fn find_ccbin(flags: &[String]) -> Option<String> {
    let mut found = None;
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        let rest = ["-ccbin", "--ccbin", "-compiler-bindir", "--compiler-bindir"].iter().find_map(|name| {
            let rest = flag.strip_prefix(name)?;
            (rest.is_empty() || rest.starts_with('=')).then_some(rest)
        });
        match rest {
            Some("") => found = flags.next().cloned().or(found),
            Some(value) => found = Some(value[1..].to_owned()),
            None => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Real output of nvcc from the wheels and from Debian.
    const REAL: &[(&str, &str)] = &[
        ("11.8.89", include_str!("transcripts/real-nvcc-11.8.txt")),
        ("13.0.88", include_str!("transcripts/real-nvcc-13.0.txt")),
        ("13.2.86", include_str!("transcripts/real-nvcc-13.2.txt")),
        ("13.5.37", include_str!("transcripts/real-nvcc-13.5.txt")),
    ];

    #[test]
    fn nvcc_versions_are_parsed() {
        for (version, text) in REAL {
            assert_eq!(parse_version(text), version.parse().ok());
        }
    }

    #[test]
    fn unusable_nvcc_output_is_rejected() {
        assert_eq!(parse_version(""), None);
        assert_eq!(describe_no_version(""), "prints nothing with --version");
        let error = describe_no_version("clang version 14.0.6\n");
        assert!(error.contains("`clang version 14.0.6`"), "{error}");
        assert_eq!(parse_version("release , V"), None);
        // The release counts if there is no build number, or if it contradicts the release.
        assert_eq!(parse_version("release 14.1"), Some(Version::new(14, 1, 0)));
        assert_eq!(parse_version("release 14.1, V9.9.9"), Some(Version::new(14, 1, 0)));
    }

    #[test]
    fn real_dryrun_is_parsed() {
        let parsed = parse_dryrun(include_str!("transcripts/real-dryrun-13.0.txt"));
        assert_eq!(parsed.top, Some(PathBuf::from("/opt/cuda-13.0/bin/..")));
        assert_eq!(parsed.includes, [PathBuf::from("/opt/cuda-13.0/bin/../targets/x86_64-linux/include")]);
        assert_eq!(parse_dryrun("nvcc fatal   : Unknown option"), Dryrun::default());
    }

    /// The output of 12.6.20 for these two lines, as shown in github.com/mozilla/sccache/pull/2247 (an older release in
    /// pull/1047 prints the same).
    #[test]
    fn published_12_6_dryrun_is_parsed() {
        let parsed = parse_dryrun(
            "#$ TOP=/usr/local/cuda/bin/..\n#$ CICC_PATH=/usr/local/cuda/bin/../nvvm/bin\n#$ \
             INCLUDES=\"-I/usr/local/cuda/bin/../targets/x86_64-linux/include\"  \n",
        );
        assert_eq!(parsed.top, Some(PathBuf::from("/usr/local/cuda/bin/..")));
        assert_eq!(parsed.includes, [PathBuf::from("/usr/local/cuda/bin/../targets/x86_64-linux/include")]);
    }

    #[test]
    fn nvcc_wrappers_are_followed() {
        let script = "#!/bin/sh\n# not /usr/bin/nvcc\nexec \"/opt/cuda/bin/nvcc\" \"$@\"\n";
        assert_eq!(parse_wrapper(script), Some("/opt/cuda/bin/nvcc".into()));
        for (line, called) in [
            ("exec '/o p/cuda/bin/nvcc' \"$@\"", "/o p/cuda/bin/nvcc"),
            ("exec /o\\ p/bin/nvcc \"$@\" # it's here", "/o p/bin/nvcc"),
            ("NVCC=\"/o p/nvcc\"; exec \"$NVCC\" \"$@\"", "/o p/nvcc"),
            ("sh -c \"ccache /opt/nvcc -O2\"", "/opt/nvcc"),
            ("out=$(/opt/nvcc --version)", "/opt/nvcc"),
        ] {
            assert_eq!(parse_wrapper(&format!("#!/bin/sh\n{line}\n")), Some(called.into()), "{line}");
        }
        assert_eq!(parse_wrapper("#!/bin/sh\nexec $HERE/nvcc"), None);
        assert_eq!(parse_wrapper("\u{7f}ELF /opt/cuda/bin/nvcc"), None);
    }

    #[test]
    fn nvcc_profiles_are_parsed() {
        let debian = "TOP = /usr/lib/nvidia-cuda-toolkit\ncompiler-bindir = /usr/lib/nvidia-cuda-toolkit/bin\n";
        assert_eq!(parse_profile(debian, Path::new("/x")), Some("/usr/lib/nvidia-cuda-toolkit/bin".into()));
        assert_eq!(parse_profile("compiler-bindir=$(_HERE_)/host", Path::new("/x")), Some("/x/host".into()));
        assert_eq!(parse_profile("TOP = $(_HERE_)/..\n", Path::new("/x")), None);
    }

    #[test]
    fn nvcc_commands_and_flags_split() {
        let plain = |_: &Path| false;
        let (program, flags) = parse_command("ccache '/o p/nvcc' -O2 -ccbin=g++-11", plain).unwrap();
        assert_eq!((program, find_ccbin(&flags)), (PathBuf::from("/o p/nvcc"), Some("g++-11".to_owned())));
        assert_eq!(parse_command("/o p/nvcc", |_| true), Some(("/o p/nvcc".into(), Vec::new())));
        assert_eq!(parse_command("/o p/gone/nvcc", plain), Some(("/o p/gone/nvcc".into(), Vec::new())));
        assert_eq!(parse_command("/gone/nvcc -w", plain), Some(("/gone/nvcc".into(), vec!["-w".to_owned()])));
        let launched = parse_command("/usr/bin/ccache /opt/nvcc", |path| path.ends_with("ccache"));
        assert_eq!(launched, Some(("/opt/nvcc".into(), Vec::new())));
        assert_eq!(parse_command("  ", plain), None);
        assert_eq!(find_ccbin(&split_words("-ccbin a --compiler-bindir b")), Some("b".to_owned()));
        assert_eq!(find_ccbin(&split_words("-ccbinary -ccbin")), None);
    }

    proptest::proptest! {
        #[test]
        fn parsers_never_panic(text: String) {
            let _ = parse_version(&text);
            let _ = parse_dryrun(&text);
            let _ = parse_wrapper(&text);
            let _ = parse_profile(&text, Path::new("/x"));
            let _ = parse_command(&text, |_| false).map(|(_, flags)| find_ccbin(&flags));
        }
    }
}
