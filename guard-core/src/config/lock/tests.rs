use proptest::prelude::*;

use super::*;
use crate::toolchain::{CompilerFamily, HostCompiler, Nvcc, Selection, SelectionReason, Toolkit};

fn read(text: &str) -> Result<Lock, String> {
    Lock::parse(Path::new("cudaguard.lock"), text.as_bytes()).map_err(|error| error.to_string())
}

const WHOLE: &str = "\
# The toolchain of this project. `cargo cudaguard lock`, or CMake's target cudaguard-lock, writes this file; commit it.
version = 1

[target.aarch64-unknown-linux-gnu]
toolkit = \"12.4.131\"

[target.x86_64-unknown-linux-gnu]
archs = [\"sm_80\", \"compute_90\"]
cudnn = \"9.15.1\"
host-compiler = \"gcc 12.2.0\"
toolkit = \"13.0.88\"

[target.x86_64-unknown-linux-gnu.packages]
engine = [\"sm_90a\"]
plain = []
";

#[test]
fn lock_roundtrips() {
    let lock = read(WHOLE).unwrap();
    assert_eq!(lock.to_text(), WHOLE);
    assert_eq!(lock.targets.get(HOST).unwrap().archs_of("engine"), ["sm_90a"]);
    assert_eq!(lock.targets.get(HOST).unwrap().archs_of("plain"), [""; 0]);
    assert_eq!(lock.targets.get(HOST).unwrap().archs_of("other"), ["sm_80", "compute_90"]);
    let mut odd = Lock::default();
    odd.targets.insert("thumbv8m.main".into(), Pins::default());
    assert_eq!(read(&odd.to_text()).unwrap(), odd);
}

#[test]
fn errors_name_file_and_line() {
    for (text, expected_error) in [
        ("", "cudaguard.lock:1: has no `version`; expected `version = 1` in the first line"),
        ("version = \"1\"\n", "cudaguard.lock:1: `version`: expected the number 1, found \"1\""),
        (
            "# x\nversion = 0\n[what]\n",
            "cudaguard.lock:2: has format 0, which cudaguard no longer reads; remove the file and run `cargo cudaguard lock`",
        ),
        (
            "version = 1\n\n[target.t]\n<<<<<<< HEAD\ntoolkit = \"13.0\"\n=======\n",
            "cudaguard.lock:4: contains merge conflict markers; keep one side of each, or restore the file of one \
                 branch and run `cargo cudaguard lock`, or build CMake's target cudaguard-lock",
        ),
        (
            "version = 1\n[target.t]\ntoolkit = 13.0\n",
            "cudaguard.lock:3: `target.t.toolkit`: expected a version as a string such as \"13.0.88\", found a float",
        ),
        (
            "version = 1\n[target.t]\ncuda = \"13.0\"\n",
            "cudaguard.lock:3: `target.t.cuda`: no such key; expected one of archs, cudnn, host-compiler, packages, \
                 toolkit",
        ),
        (
            "version = 1\n[target.t]\narchs = [\n  \"sm_80\",\n  \"sm80x\",\n]\n",
            "cudaguard.lock:5: `target.t.archs`: expected architectures such as \"sm_90a\" or \"compute_90\", found \
                 \"sm80x\"",
        ),
        ("version = 1\ntarget = 3\n", "cudaguard.lock:2: `target`: expected a table, found an integer"),
        ("version = 1\nx = 3\n", "cudaguard.lock:2: `x`: no such key; expected version, target"),
    ] {
        assert_eq!(read(text).unwrap_err(), expected_error, "{text}");
    }
    let newer = read("version = 2\n[[news]]\n").unwrap_err();
    assert!(newer.starts_with("cudaguard.lock:1: has format 2, ") && newer.ends_with(": update cudaguard"));
    let broken = read("version = 1\n[target\n").unwrap_err();
    assert!(broken.starts_with("cudaguard.lock:2: is not TOML: "), "{broken}");
    assert!(read("version = 1\nversion = 1\n").unwrap_err().ends_with(": is not TOML: duplicate key `version`"));
    let bytes = Lock::parse(Path::new("l"), b"version = 1\n\xff").unwrap_err();
    assert_eq!(bytes.to_string(), "l:2: is not UTF-8 text");
}

fn toolchain(nvcc: Version) -> Toolchain {
    let compiler = Nvcc { path: "/cuda/bin/nvcc".into(), version: Some(nvcc), ..Nvcc::default() };
    let mut toolchain = Toolchain::default();
    HOST.clone_into(&mut toolchain.target);
    toolchain.toolkits = vec![Toolkit { root: "/cuda".into(), nvcc: Some(compiler), ..Toolkit::default() }];
    toolchain.compiler = Some(Selection { index: 0, reason: SelectionReason::Other("first nvcc in PATH".into()) });
    toolchain.host = Some(HostCompiler {
        path: "/usr/bin/g++".into(),
        source: "PATH".into(),
        family: CompilerFamily::Gcc,
        version: Some(Version::new(12, 2, 0)),
    });
    toolchain
}

fn judged(lock: &Lock, toolchain: &Toolchain) -> Vec<Finding> {
    check_lock(lock, Path::new("cudaguard.lock"), "p", &Policy::default(), toolchain, LockScope::WHOLE)
}

#[test]
fn unchanged_toolchain_does_not_drift() {
    let toolchain = toolchain(Version::new(13, 0, 88));
    let pins = Pins::from_toolchain(&Policy::default(), &toolchain, LockScope::WHOLE);
    let lock = Lock { targets: [(HOST.to_owned(), pins)].into_iter().collect() };
    assert_eq!(judged(&lock, &toolchain), []);
    assert_eq!(judged(&read(&lock.to_text()).unwrap(), &toolchain), []);
}

#[test]
fn drift_names_old_new_and_source() {
    let mut lock = Lock::default();
    let mut pins = Pins::from_toolchain(&Policy::default(), &toolchain(Version::new(12, 4, 131)), LockScope::WHOLE);
    lock.targets.insert(HOST.to_owned(), pins.clone());
    let found = judged(&lock, &toolchain(Version::new(13, 0, 88)));
    assert_eq!(
        found.iter().map(Finding::render).collect::<Vec<_>>(),
        ["error[CG107]: the toolkit differs from the lock: 12.4.131 → 13.0.88.\n  \
              locked: 12.4.131 (cudaguard.lock, x86_64-unknown-linux-gnu)\n  \
              in use: 13.0.88 (/cuda/bin/nvcc --version)\n  \
              hint: restore the locked version, or accept the new one: run `cargo cudaguard lock` and commit cudaguard.lock"]
    );
    // Only cuda.h is known on one side, so there is no difference.
    pins.toolkit = Some("13.0".to_owned());
    lock.targets.insert(HOST.to_owned(), pins.clone());
    assert_eq!(judged(&lock, &toolchain(Version::new(13, 0, 88))), []);
    pins.host_compiler = Some("gcc 11.4.0".to_owned());
    pins.archs = vec!["sm_80".to_owned()];
    lock.targets.insert(HOST.to_owned(), pins);
    let found = judged(&lock, &toolchain(Version::new(13, 0, 88)));
    let subjects: Vec<&str> = found.iter().map(|finding| finding.subject.as_str()).collect();
    assert_eq!(subjects, ["the host compiler", "the list of declared archs"]);
    let scope = LockScope { archs: false, library: false, ..LockScope::WHOLE };
    let path = Path::new("l");
    let rest = check_lock(&lock, path, "p", &Policy::default(), &toolchain(Version::new(13, 0, 88)), scope);
    assert_eq!(rest.len(), 1, "archs that the build script names are kept with it: {rest:?}");
}

#[test]
fn other_target_warns_unless_locked() {
    let lock = Lock::default();
    let mut found = judged(&lock, &toolchain(Version::new(13, 0, 88)));
    assert_eq!((found[0].code, found[0].severity), (Code::LockLacksTarget, Severity::Warning));
    let allowing =
        Policy { allow: [(Code::LockLacksTarget, "x".to_owned())].into_iter().collect(), ..Policy::default() };
    enforce_locked(&mut found, &allowing);
    assert_eq!(found[0].severity, Severity::Warning);
    enforce_locked(&mut found, &Policy::default());
    assert_eq!(found[0].severity, Severity::Error);
}

proptest! {
    #[test]
    fn parsing_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = Lock::parse(Path::new("l"), &bytes) {
            prop_assert!(error.to_string().lines().all(|line| line.starts_with("l:")), "{error}");
        }
    }

    #[test]
    fn parsing_keys_never_panics(
        section in "(target|target\\.t|target\\.t\\.packages|[a-z]{1,6})",
        key in "(toolkit|cudnn|host-compiler|archs|packages|version|[a-z]{1,6})",
        value in "(\"\\PC{0,8}\"|[0-9]{1,25}|\\[\\]|\\[\"\\PC{0,6}\", 3\\]|true|\\{\\}|1979-05-27|\"9\\.[0-9]\"|\\[\"sm_9[0-9]a?\"\\])",
    ) {
        match read(&format!("version = 1\n[{section}]\n{key} = {value}\n")) {
            Ok(lock) => prop_assert_eq!(read(&lock.to_text()), Ok(lock)),
            Err(error) => prop_assert!(error.lines().all(|line| line.starts_with("cudaguard.lock:")), "{}", error),
        }
    }
}
