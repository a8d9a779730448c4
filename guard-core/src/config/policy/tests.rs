use super::parser::{MOST, SECTIONS};
use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Result<Policy, String> {
    Policy::parse(Path::new("cudaguard.toml"), text.as_bytes(), "demo").map_err(|error| error.to_string())
}

const WHOLE: &str = r#"
[toolkit]
require = ">=12.4, <14"
[cudnn]
require = "^9.1"
linkage = "dlopened"
patch = "refuse"
required = true
fleet = "9.1"
[gpu]
archs = ["sm_80", "sm_90a", "compute_90", "8.6+PTX"]
fleet = ["T4", "A100", "8.6"]
partial = "refuse"
[driver]
fleet = "535"
[build]
release = "warn"
dev = "deny"
[runtime]
mismatch = "warn"
gpu = "required"
library = "enforce"
[allow]
CG122 = "Hopper only, no PTX on purpose"
"#;

#[test]
fn all_keys_are_parsed() {
    let policy = read(WHOLE).unwrap();
    assert_eq!(policy.path.as_deref(), Some(Path::new("cudaguard.toml")));
    assert_eq!(policy.toolkit.as_ref().unwrap().to_string(), ">=12.4, <14");
    assert!(policy.library.as_ref().unwrap().parsed.matches(&semver::Version::new(9, 15, 1)));
    assert!(!policy.library.as_ref().unwrap().parsed.matches(&semver::Version::new(9, 0, 0)));
    assert_eq!(policy.library_linkage, Some(Linkage::Dlopened));
    assert!(policy.library_patch_refuse && policy.library_required && policy.partial_refuse);
    assert_eq!(policy.library_fleet_version(), Some(Version::new(9, 1, 0)));
    let archs: Vec<String> = policy.archs.iter().map(ToString::to_string).collect();
    assert_eq!(archs, ["sm_80", "sm_90a", "compute_90", "sm_86", "compute_86"]);
    assert_eq!(policy.fleet_ccs(), [("T4", (7, 5)), ("A100", (8, 0)), ("8.6", (8, 6))]);
    assert_eq!(policy.driver_fleet_release(), Some(DriverRelease::new(535, 0, 0)));
    assert_eq!((policy.build_action(true), policy.build_action(false)), (BuildAction::Warn, BuildAction::Deny));
    assert_eq!(policy.runtime, Runtime { mismatch_warns: true, gpu: GpuNeed::Required, library_enforces: true });
    assert_eq!(policy.allow.get(&Code::NoPtx).map(String::as_str), Some("Hopper only, no PTX on purpose"));
}

#[test]
fn empty_policy_is_the_default() {
    for text in ["", "# only a comment\n", "[gpu]\n", "[package.demo]\n"] {
        let policy = read(text).unwrap();
        let Policy { path, over, packages, .. } = policy.clone();
        let default = Policy { path, over, packages, ..Policy::default() };
        assert_eq!(format!("{policy:?}"), format!("{default:?}"), "{text}");
        assert_eq!((policy.build_action(true), policy.build_action(false)), (BuildAction::Deny, BuildAction::Warn));
    }
}

#[test]
fn editor_formatting_is_accepted() {
    let windows = format!("\u{feff}{}", WHOLE.replace('\n', "\r\n"));
    assert_eq!(format!("{:?}", read(&windows).unwrap()), format!("{:?}", read(WHOLE).unwrap()));
    assert_eq!(
        read("\u{feff}[gpu]\r\n\r\narchs = 90\r\n").unwrap_err(),
        "cudaguard.toml:3: `gpu.archs`: expected an array of strings such as \"sm_90a\" or \"compute_90\", found an integer"
    );
}

#[test]
fn package_policy_overrides_workspace() {
    let text = "[cudnn]\nrequire = \"^9.1\"\n[gpu]\narchs = [\"sm_80\"]\nfleet = [\"A100\"]\n[allow]\nCG123 = \"two lists\"\n\
                    [package.demo.gpu]\narchs = [\"sm_90\"]\n[package.demo.cudnn]\nlinkage = \"none\"\n\
                    [package.demo.allow]\nCG122 = \"on purpose\"\n[package.other.runtime]\ngpu = \"required\"\n";
    let policy = read(text).unwrap();
    assert_eq!(policy.archs, ["sm_90".parse().unwrap()]);
    assert_eq!(policy.fleet, ["A100"]);
    assert_eq!((policy.library.clone(), policy.library_linkage), (None, Some(Linkage::None)));
    assert_eq!(policy.allow.len(), 2);
    assert_eq!(policy.runtime.gpu, GpuNeed::Auto);
    let other = Policy::parse(Path::new("p"), text.as_bytes(), "other").unwrap();
    assert_eq!((other.runtime.gpu, other.archs.len(), other.library.is_some()), (GpuNeed::Required, 1, true));
    // The opposite order.
    let text = "[cudnn]\nlinkage = \"none\"\n[package.demo.cudnn]\nrequire = \"^9\"\n";
    let policy = read(text).unwrap();
    assert_eq!((policy.library.is_some(), policy.library_linkage), (true, None));
}

#[test]
fn symbolic_archs_need_a_toolkit() {
    let policy = read("[gpu]\narchs = [\"sm_90a\", \"all-major\"]\n").unwrap();
    let by = |release: Version| policy.archs_by(release).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!(by(Version::new(13, 0, 88)), "sm_90a sm_75 sm_80 sm_90 sm_100 sm_110 sm_120 compute_120");
    assert_eq!(by(Version::new(11, 8, 0)), "sm_90a sm_35 sm_50 sm_60 sm_70 sm_80 sm_90 compute_90");
}

#[test]
fn errors_name_line_key_and_expectation() {
    for (text, message) in [
        ("[toolkits]\n", ":1: `toolkits`: no such key; did you mean `toolkit`?"),
        ("[gpu]\narch = []\n", ":2: `gpu.arch`: no such key; did you mean `archs`?"),
        ("[toolkit]\narchs = []\n", ":2: `toolkit.archs`: no such key; it belongs to [gpu] or [release]"),
        ("fleet = [\"T4\"]\n", ":1: `fleet`: no such key; it belongs to [cudnn] or [gpu] or [driver]"),
        (
            "[build]\ndebug_assertions = 1\n",
            ":2: `build.debug_assertions`: no such key; expected one of release, dev, unguarded",
        ),
        (
            "speed = 1\n",
            ":1: `speed`: no such key; expected one of toolkit, cudnn, gpu, driver, build, runtime, release, allow, package",
        ),
        ("toolkit = \">=12\"\n", ":1: `toolkit`: expected a table: [toolkit], found \">=12\""),
        (
            "[toolkit]\nrequire = 12.4\n",
            ":2: `toolkit.require`: expected a version requirement in cargo's syntax, such as \">=12.4, <14\", found a \
                 float",
        ),
        (
            "[toolkit]\nrequire = \">=twelve\"\n",
            ":2: `toolkit.require`: expected a version requirement in cargo's syntax, such as \">=12.4, <14\", found \
                 \">=twelve\": unexpected character 't' while parsing major version number",
        ),
        (
            "[cudnn]\nrequire = \"\"\n",
            ":2: `cudnn.require`: expected a version requirement in cargo's syntax, such as \"^9.1\", found \"\": \
                 unexpected end of input while parsing major version number",
        ),
        (
            "[cudnn]\nlinkage = \"dynamic\"\n",
            ":2: `cudnn.linkage`: expected one of \"linked\", \"static\", \"dlopened\", \"none\", found \"dynamic\"",
        ),
        ("[cudnn]\npatch = true\n", ":2: `cudnn.patch`: expected \"accept\" or \"refuse\", found a boolean"),
        ("[cudnn]\nrequired = \"yes\"\n", ":2: `cudnn.required`: expected true or false, found \"yes\""),
        (
            "[cudnn]\nfleet = 9.1\n",
            ":2: `cudnn.fleet`: expected the oldest cuDNN as a string such as \"9.1\", found a float",
        ),
        (
            "[cudnn]\nlinkage = \"none\"\nrequire = \"^9\"\n",
            ":3: `cudnn.require`: contradicts linkage = \"none\" in the same table; keep one of them",
        ),
        (
            "[gpu]\narchs = [\"sm_80\",\n  90]\n",
            ":3: `gpu.archs[1]`: expected one of strings such as \"sm_90a\" or \"compute_90\", found an integer",
        ),
        (
            "[gpu]\narchs = [\"sm90\"]\n",
            ":2: `gpu.archs[0]`: `sm90` is not an architecture; expected a spelling such as sm_90, compute_90, 90, 90a, \
                 90-real, 90-virtual, 9.0 or 9.0+PTX",
        ),
        ("[gpu]\narchs = [\"\"]\n", ":2: `gpu.archs[0]`: expected an architecture such as \"sm_90a\", found \"\""),
        (
            "[gpu]\narchs = [\"native\"]\n",
            ":2: `gpu.archs[0]`: `native` depends on the machine; expected architectures such as \"sm_90a\"",
        ),
        (
            "[gpu]\narchs = [\"lto_90\"]\n",
            ":2: `gpu.archs[0]`: `lto_90` is LTO-IR, which runs on no GPU before it is linked; write the machine code (sm_…) \
                 or PTX (compute_…) that it becomes",
        ),
        (
            "[gpu]\nfleet = [\"A100\", \"L41\"]\n",
            ":2: `gpu.fleet[1]`: \"L41\" is not a known GPU; expected its compute capability, such as \"8.6\", \
                 or did you mean \"L4\"?",
        ),
        (
            "[gpu]\nfleet = [\"Voodoo2 of 1998\"]\n",
            ":2: `gpu.fleet[0]`: \"Voodoo2 of 1998\" is not a known GPU; expected its compute capability, such \
                 as \"8.6\"",
        ),
        (
            "[driver]\nfleet = \"12.2\"\n",
            ":2: `driver.fleet`: expected the oldest driver as a string such as \"535\" or \"535.261.03\", found \"12.2\"",
        ),
        (
            "[driver]\nfleet = 535\n",
            ":2: `driver.fleet`: expected the oldest driver as a string such as \"535\" or \"535.261.03\", found an integer",
        ),
        ("[build]\nrelease = \"allow\"\n", ":2: `build.release`: expected \"deny\" or \"warn\", found \"allow\""),
        (
            "[runtime]\ngpu = \"always\"\n",
            ":2: `runtime.gpu`: expected one of \"auto\", \"required\", \"optional\", found \"always\"",
        ),
        ("[runtime]\nmismatches = 1\n", ":2: `runtime.mismatches`: no such key; did you mean `mismatch`?"),
        ("[allow]\nCG122 = \" \"\n", ":2: `allow.CG122`: expected the reason, a string that is not empty, found \" \""),
        (
            "[allow]\nCG122 = true\n",
            ":2: `allow.CG122`: expected the reason, a string that is not empty, found a boolean",
        ),
        ("[allow]\nCG98765 = \"because\"\n", ":2: `allow.CG98765`: no such finding; expected a code such as CG122"),
        (
            "[allow]\nCG1O1 = \"because\"\n",
            ":2: `allow.CG1O1`: no such finding; expected a code such as CG122, did you mean `CG101`?",
        ),
        ("[allow]\nCG999 = \"because\"\n", ":2: `allow.CG999`: no such finding; expected a code such as CG122"),
        (
            "[allow]\ncg101 = \"one\"\n\nCG101 = \"other\"\n",
            ":4: `allow.CG101`: line 2 has `allow.cg101` for the same code; keep one of them",
        ),
        ("[allow]\nptx = \"because\"\n", ":2: `allow.ptx`: no such finding; expected a code such as CG122"),
        ("[package]\ndemo = 1\n", ":2: `package.demo`: expected a table: [package.demo], found an integer"),
        ("[package.demo.gpus]\n", ":1: `package.demo.gpus`: no such key; did you mean `gpu`?"),
        ("[package.other.gpu]\nfleets = []\n", ":2: `package.other.gpu.fleets`: no such key; did you mean `fleet`?"),
        (
            "[package.demo.package.x]\n",
            ":1: `package.demo.package`: no such key; expected one of toolkit, cudnn, gpu, driver, build, runtime, allow",
        ),
    ] {
        assert_eq!(read(text).map(|_| ()), Err(format!("cudaguard.toml{message}")), "{text}");
    }
}

#[test]
fn all_errors_appear_in_file_order() {
    let error = read("[runtime]\ngpu = 1\n[build]\ndev = 2\n[allow]\nX = 3\n").unwrap_err();
    let lines: Vec<&str> = error.lines().map(|line| line.split('`').next().unwrap()).collect();
    assert_eq!(lines, ["cudaguard.toml:2: ", "cudaguard.toml:4: ", "cudaguard.toml:6: "]);
}

#[test]
fn invalid_toml_is_rejected() {
    for (text, start) in [
        ("[gpu\n", "cudaguard.toml:1: is not TOML: "),
        ("[gpu]\n\narchs = [\"sm_80\"", "cudaguard.toml:3: is not TOML: "),
        ("[gpu]\n[gpu]\n", "cudaguard.toml:2: is not TOML: duplicate key `gpu`"),
        ("[build]\ndev = \"warn\"\ndev = \"deny\"\n", "cudaguard.toml:3: is not TOML: duplicate key `dev`"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with(start) && error.lines().count() == 1, "{text}: {error}");
    }
    let error = Policy::parse(Path::new("p"), b"[gpu]\n# \xff\n", "").unwrap_err();
    assert_eq!(error.to_string(), "p:2: is not UTF-8 text");
}

#[test]
fn deep_nesting_is_rejected() {
    let depth = 200_000;
    for text in [
        format!("x = {}", "[".repeat(depth)),
        format!("x = {}", "{a=".repeat(depth)),
        format!("{} = 1", vec!["a"; depth].join(".")),
        format!("[{}]", vec!["a"; depth].join(".")),
        format!("[package.demo]\n{} = 1", vec!["a"; depth].join(".")),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.len() < 1000, "{}", &error[..1000]);
    }
}

#[test]
fn policy_is_searched_upwards() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("workspace");
    let member = top.join("crates/member");
    fs::create_dir_all(&member).unwrap();
    let found = || Policy::for_package(&member, &top, "member").unwrap().path;
    fs::write(dir.path().join(FILE), "nonsense above the workspace").unwrap();
    assert_eq!(found(), None);
    fs::write(top.join(FILE), "[driver]\nfleet = \"535\"\n").unwrap();
    assert_eq!(found(), Some(top.join(FILE)));
    fs::write(member.join(FILE), "").unwrap();
    assert_eq!(found(), Some(member.join(FILE)));
    assert_eq!(
        Policy::candidate_paths(&member, &top),
        [member.join(FILE), top.join("crates").join(FILE), top.join(FILE)]
    );
    assert_eq!(Policy::candidate_paths(&top, &top), [top.join(FILE)]);
    // A member outside of the directory.
    let other = dir.path().join("elsewhere");
    assert_eq!(Policy::candidate_paths(&other, &top), [other.join(FILE), top.join(FILE)]);
    assert_eq!(Policy::for_package(&other, &top, "other").unwrap().path, Some(top.join(FILE)));
}

#[test]
fn other_files_are_not_policies() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let error = || Policy::for_package(dir.path(), dir.path(), "demo").unwrap_err().to_string();
    fs::create_dir(&path).unwrap();
    assert_eq!(error(), format!("{}: is a directory; expected a policy file", path.display()));
    fs::remove_dir(&path).unwrap();
    let file = fs::File::create(&path).unwrap();
    file.set_len(LARGEST + 1).unwrap();
    assert!(error().contains("has 1048577 bytes, but a policy file has at most 1048576"), "{}", error());
    fs::remove_file(&path).unwrap();
    #[cfg(unix)]
    {
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(error(), format!("{}: is not a regular file; expected a policy file", path.display()));
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(dir.path().join("gone"), &path).unwrap();
        let gone = dir.path().join("gone");
        assert_eq!(error(), format!("{}: is a link to {}, which does not exist", path.display(), gone.display()));
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&path, &path).unwrap();
        assert!(error().starts_with(&format!("{}: Too many levels", path.display())), "{}", error());
    }
}

fn finding(code: Code) -> Finding {
    Finding::from_record(code, code.severity(), ["", "subject", "message", "hint"].map(str::to_owned))
}

#[test]
fn severities_are_applied() {
    let weights = |policy: &Policy, release| {
        let codes = [Code::ToolkitMixed, Code::ToolkitUnreadable, Code::NoPtx];
        let judged = policy.apply_to(codes.map(finding).to_vec(), release);
        (
            judged.findings.iter().map(|finding| finding.severity.name()).collect::<Vec<_>>().join(" "),
            crate::pipeline::fails_build(&judged.findings),
        )
    };
    let default = Policy::default();
    assert_eq!(weights(&default, true), ("error warning info".into(), true));
    assert_eq!(weights(&default, false), ("warning warning info".into(), false));
    let turned = read("[build]\nrelease = \"warn\"\ndev = \"deny\"\n").unwrap();
    assert_eq!(weights(&turned, true), ("warning warning info".into(), false));
    assert_eq!(weights(&turned, false), ("error warning info".into(), true));
}

#[test]
fn allowed_findings_are_retained() {
    let policy =
        read("[allow]\nCG101 = \"headers are patched\"\nCG105 = \"gcc 13\"\nCG122 = \"Hopper only\"\nCG202 = \"at run time\"\n")
            .unwrap();
    let judged = policy.apply_to(vec![finding(Code::ToolkitMixed), finding(Code::ToolkitMissing)], true);
    assert_eq!(judged.findings[0].severity, Severity::Info);
    assert_eq!(judged.findings[0].message, "message\nallowed: headers are patched");
    assert_eq!(judged.findings[1].severity, Severity::Error);
    assert_eq!(judged.allowed, [(Code::ToolkitMixed, "headers are patched".to_owned())]);
    assert_eq!(judged.stale_allows, [Code::HostCompilerRejected]);
    assert_eq!(policy.apply_to(Vec::new(), true).findings, []);
}

#[test]
fn error_count_is_limited() {
    let words = |word: &dyn Fn(usize) -> String| (0..20_000).map(word).collect::<Vec<_>>().concat();
    for text in [
        format!("[gpu]\nfleet = [{}]\n", words(&|number| format!("\"T{number}\","))),
        format!("[gpu]\narchs = [{}]\n", words(&|number| format!("{number},"))),
        format!("[gpu]\n{}", words(&|number| format!("flet{number} = 1\n"))),
        format!("[allow]\n{}", words(&|number| format!("CGX{number} = 1\n"))),
        words(&|number| format!("[section{number}]\n")),
    ] {
        let error = read(&text).unwrap_err();
        assert_eq!(error.lines().count(), MOST + 1, "{}", &error[..200]);
        assert!(error.ends_with("cudaguard.toml: and more errors, which are not listed"));
    }
}

#[test]
fn named_packages_are_listed() {
    let policy = read("[package.b.gpu]\narchs = [\"sm_80\"]\n[package.a]\n[package.b.build]\n").unwrap();
    assert_eq!(policy.packages, BTreeMap::from([("a".to_owned(), 3), ("b".to_owned(), 1)]));
    assert_eq!(policy.over, None, "none of them is the one that is built");
    assert_eq!(read("[package.demo.gpu]\n[package.a]\n").unwrap().over.as_deref(), Some("demo"));
}

proptest! {
    /// A typing mistake in any key is reported with its line, its full key and a suggestion.
    #[test]
    fn mistyped_key_gets_a_suggestion(
        section in prop::sample::select(SECTIONS.iter().filter(|(_, keys)| !keys.is_empty()).collect::<Vec<_>>()),
        key in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        letter in "[a-z]",
        lines in 0..5_usize,
        in_package in any::<bool>(),
    ) {
        let (section, keys) = section;
        let key = keys[key.index(keys.len())];
        let at = at.index(key.len());
        let mut typed = key.to_owned();
        typed.replace_range(at..=at, &letter);
        prop_assume!(!keys.contains(&typed.as_str()));
        let in_package = in_package && *section != "release";
        let section = if in_package { format!("package.demo.{section}") } else { (*section).to_owned() };
        let error = read(&format!("{}[{section}]\n{typed} = \"x\"\n", "\n".repeat(lines))).unwrap_err();
        let error_line = format!("cudaguard.toml:{}: `{section}.{typed}`: no such key", lines + 2);
        prop_assert!(error.starts_with(&error_line), "{error}");
        // If two keys are equally similar, either may be suggested.
        let suggestion = keys.iter().any(|key| error.ends_with(&format!("; did you mean `{key}`?")));
        prop_assert!(suggestion || key.len() < 3, "{error}");
    }

    #[test]
    fn parsing_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = Policy::parse(Path::new("p"), &bytes, "demo") {
            prop_assert!(error.to_string().lines().all(|line| line.starts_with("p:")), "{error}");
        }
    }

    #[test]
    fn parsing_keys_never_panics(
        section in "(toolkit|cudnn|gpu|driver|build|runtime|allow|package\\.demo\\.gpu|package|[a-z]{1,6})",
        key in "(require|linkage|patch|required|fleet|archs|partial|release|dev|mismatch|gpu|library|CG[0-9]{3}|[a-z]{1,6})",
        value in "(\"\\PC{0,8}\"|[0-9]{1,5}|\\[\\]|\\[\"\\PC{0,6}\", 3\\]|true|\\{\\}|1979-05-27|\"9\\.[0-9]\"|\"warn\")",
    ) {
        if let Err(error) = read(&format!("[{section}]\n{key} = {value}\n")) {
            prop_assert!(error.lines().all(|line| line.starts_with("cudaguard.toml:")), "{error}");
        }
    }
}
