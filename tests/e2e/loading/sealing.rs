//! Sealing files of each linker, and obstacles to sealing.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use cargo_cudaguard::binary::file::{Binary, BinaryKind};
use cargo_cudaguard::knowledge::vendor::{CUDART, CUDNN};
use cargo_cudaguard::linked::seal::{LinkObservation, SealResult, seal_file};
use cudaguard::internal::arch::{Arch, Suffix, Target};
use cudaguard::internal::manifest::{Linkage, Manifest};
use cudaguard::internal::version::Version;
use cudaguard_tests::run::unless_busy;
use cudaguard_tests::{Scratch, e2e, tools};

use super::guarded_programs;

const BUILT: Version = Version::new(9, 15, 1);
const QUIET: &str = "int main(void) { return 0; }";

fn written() -> SealResult {
    SealResult { written: 1, ..SealResult::default() }
}

fn manifests(file: &Path) -> Vec<Manifest> {
    Binary::read(file).unwrap().manifests().map(|note| note.unwrap().manifest).collect()
}

fn program(dir: &Path, text: &str, manifests: &[Manifest]) -> PathBuf {
    let objects = guarded_programs::objects(dir, manifests);
    let file = dir.join("prog");
    guarded_programs::link(text, &file, &objects, &[]).unwrap();
    file
}

fn one(dir: &Path, text: &str) -> PathBuf {
    program(dir, text, &[guarded_programs::manifest("demo", BUILT, Linkage::Unknown)])
}

#[e2e(slow)]
fn seal_works_with_all_linkers() {
    let dir = Scratch::new("seal linkers");
    let objects = guarded_programs::objects(&dir, &[guarded_programs::manifest("demo", BUILT, Linkage::Unknown)]);
    let fake_library = dir.join("cudnn");
    cudaguard_tests::fake_library::cudnn(&fake_library, (9, 15, 1));
    let mut missing = Vec::new();
    for linker in tools::linkers(&mut missing) {
        for (name, extra) in [
            ("prog", &[][..]),
            ("stripped", &["-s", "-Wl,--gc-sections"]),
            ("fixed", &["-no-pie"]),
            ("libx.so", &["-shared", "-fPIC"]),
        ] {
            let file = dir.join(format!("{linker}-{name}"));
            let mut arguments = vec![format!("-fuse-ld={linker}")];
            arguments.extend(extra.iter().map(|argument| (*argument).to_owned()));
            arguments.push(fake_library.join("lib/libcudnn.so.9").display().to_string());
            let text = "unsigned long cudnnGetVersion(void); int main(void) { return cudnnGetVersion() == 0; }";
            guarded_programs::link(text, &file, &objects, &arguments)
                .unwrap_or_else(|error| panic!("{linker} {name}: {error}"));
            let before = fs::read(&file).unwrap();
            let binary = Binary::read(&file).unwrap();
            assert_eq!(
                binary.kind,
                if name == "libx.so" { BinaryKind::SharedLibrary } else { BinaryKind::Executable },
                "{linker} {name}"
            );
            assert_eq!(
                (binary.linkage(&CUDNN), binary.linkage(&CUDART)),
                (Linkage::Linked, Linkage::None),
                "{linker} {name}"
            );
            assert_eq!(binary.notes.len(), 1, "{linker} {name}");
            let arch = Target::Cubin(Arch { number: 90, suffix: Suffix::Specific });
            let observed = LinkObservation { archs: Some(vec![arch]), ..LinkObservation::from_binary(&binary) };
            assert_eq!(seal_file(&file, None, &observed).unwrap(), written(), "{linker} {name}");

            let after = fs::read(&file).unwrap();
            let at = usize::try_from(binary.notes[0].offset).unwrap();
            assert!(before[..at] == after[..at] && before[at + 4096..] == after[at + 4096..], "{linker} {name}");
            let [sealed] = &manifests(&file)[..] else { panic!("{linker} {name}") };
            assert!(sealed.sealed && sealed.observed == Some(vec![arch]));
            assert_eq!(sealed.library.as_ref().unwrap().linkage, Linkage::Linked);
            if name != "libx.so" {
                let ran = run(Command::new(&file).env("LD_LIBRARY_PATH", fake_library.join("lib")));
                assert!(ran.status.success() && ran.stderr.is_empty(), "{linker} {name}: {ran:?}");
            }
            let was = fs::metadata(&file).unwrap();
            assert_eq!(seal_file(&file, None, &observed).unwrap(), SealResult { same: 1, ..SealResult::default() });
            let is = fs::metadata(&file).unwrap();
            assert_eq!(
                (was.ino(), was.mtime(), was.mtime_nsec()),
                (is.ino(), is.mtime(), is.mtime_nsec()),
                "not touched"
            );
        }
    }
    tools::done_without(&missing);
}

#[e2e]
fn seal_keeps_links_and_modes() {
    let dir = Scratch::new("seal links");
    let file = one(&dir, QUIET);
    let before = fs::read(&file).unwrap();
    fs::hard_link(&file, dir.join("other name")).unwrap();
    fs::create_dir(dir.join("elsewhere")).unwrap();
    let link = dir.join("elsewhere/link");
    std::os::unix::fs::symlink("../prog", &link).unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o555)).unwrap();

    assert_eq!(
        seal_file(&link, None, &LinkObservation::from_binary(&Binary::read(&file).unwrap())).unwrap(),
        written()
    );
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o555);
    assert!(manifests(&file)[0].sealed);
    assert!(fs::read(dir.join("other name")).unwrap() == before, "the other name keeps the complete old file");
    assert!(run(&mut Command::new(&file)).status.success());
    assert_eq!(hidden(&dir), Vec::<String>::new());
}

fn run(command: &mut Command) -> Output {
    unless_busy(|| command.output()).unwrap()
}

/// Returns the names of temporary files that the seal creates.
fn hidden(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(".cudaguard-")).collect()
}

/// A file that is being executed cannot be written, so it is replaced.
#[e2e]
fn running_program_is_sealed_aside() {
    let dir = Scratch::new("seal running");
    let text = "#include <stdio.h>\nint main(void) { puts(\"up\"); fflush(stdout); return getchar() != 'x'; }";
    let file = one(&dir, text);
    let mut child = unless_busy(|| Command::new(&file).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()).unwrap();
    let mut printed = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut printed).unwrap();
    assert_eq!(seal_file(&file, None, &LinkObservation::default()).unwrap(), written());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"x").unwrap();
    assert!(child.wait().unwrap().success(), "the old file runs on to its end");
    assert!(manifests(&file)[0].sealed);
}

#[e2e]
fn component_notes_are_all_sealed() {
    let dir = Scratch::new("seal components");
    let names = ["one", "two", "three"].map(|name| guarded_programs::manifest(name, BUILT, Linkage::Unknown));
    let file = program(&dir, QUIET, &names);
    let observed =
        LinkObservation { component: Some("two".to_owned()), library: Linkage::Static, ..LinkObservation::default() };
    assert_eq!(seal_file(&file, None, &observed).unwrap(), written());
    for manifest in manifests(&file) {
        assert_eq!(manifest.sealed, manifest.component.name == "two", "{}", manifest.component);
    }
    assert_eq!(
        seal_file(&file, None, &LinkObservation::default()).unwrap(),
        SealResult { written: 2, same: 1, left: Vec::new() }
    );
}

#[e2e]
fn unsealed_files_are_reported() {
    let dir = Scratch::new("seal none");
    let objects = guarded_programs::objects(&dir, &[guarded_programs::manifest("demo", BUILT, Linkage::Unknown)]);
    let untouched = |file: &Path| {
        let before = fs::read(file).unwrap();
        let result = seal_file(file, None, &LinkObservation::default());
        assert!(fs::read(file).unwrap() == before, "{}", file.display());
        result
    };
    assert_eq!(untouched(&objects[1]), Ok(SealResult::default()), "an object is not linked yet");
    let plain = dir.join("plain");
    guarded_programs::link(QUIET, &plain, &[], &[]).unwrap();
    assert_eq!(untouched(&plain), Ok(SealResult::default()), "no note");
    let script = dir.file("script", "#!/bin/sh\n");
    assert!(untouched(&script).unwrap_err().to_string().contains("is not an ELF file"));
    assert!(
        seal_file(&dir.join("absent"), None, &LinkObservation::default()).unwrap_err().to_string().contains("absent")
    );

    let file = one(&dir, QUIET);
    let at = usize::try_from(Binary::read(&file).unwrap().notes[0].offset).unwrap();
    let whole = fs::read(&file).unwrap();
    let damaged = |at: usize, byte: u8, why: &str| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        let file = dir.file("damaged", &bytes);
        let sealed = untouched(&file).unwrap();
        assert_eq!((sealed.written, sealed.same, sealed.left.len()), (0, 0, 1), "{sealed:?}");
        assert!(sealed.left[0].contains(why), "{sealed:?}");
    };
    damaged(at, b'x', "an unreadable note");
    // An entry of a newer cudaguard, which this version would lose: a byte that is zero in revision 1.
    damaged(at + 27, 1, "written by the newer cudaguard");
}

/// Seals a file again and again in a child process, with alternating contents, until it is killed.
pub(crate) fn forever(file: &Path) -> ! {
    for cudnn in [Linkage::Static, Linkage::Linked].into_iter().cycle() {
        seal_file(file, None, &LinkObservation { library: cudnn, ..LinkObservation::default() }).unwrap();
    }
    unreachable!("a cycle has no end")
}

#[e2e(slow)]
fn killed_seal_leaves_intact_file() {
    let dir = Scratch::new("seal killed");
    let file = one(&dir, QUIET);
    let at = usize::try_from(Binary::read(&file).unwrap().notes[0].offset).unwrap();
    let whole = fs::read(&file).unwrap();
    for round in 0..40_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(super::FOREVER, &file)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The kills are spread over start and work of the child. The exact moment does not matter.
        std::thread::sleep(Duration::from_micros(2000 + round * 397));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = fs::read(&file).unwrap();
        assert_eq!(now.len(), whole.len());
        assert!(now[..at] == whole[..at] && now[at + 4096..] == whole[at + 4096..], "round {round}");
        let linkage = manifests(&file)[0].library.as_ref().unwrap().linkage;
        assert!(matches!(linkage, Linkage::Unknown | Linkage::Static | Linkage::Linked));
    }
    // The next seal deletes temporary files of killed processes, but keeps those whose process number is in use.
    let alive = |name: &String| {
        let process = name.rsplit("cudaguard-").next().unwrap().split('-').nth(1).unwrap();
        Path::new("/proc").join(process).exists()
    };
    let dead: Vec<_> = hidden(&dir).into_iter().filter(|name| !alive(name)).collect();
    let observed = LinkObservation { library: Linkage::Dlopened, ..LinkObservation::default() };
    assert_eq!(seal_file(&file, None, &observed).unwrap(), written());
    assert!(hidden(&dir).iter().all(|name| !dead.contains(name)), "{dead:?}");
}
