mod generated;

use super::*;

fn component(name: &str) -> Component {
    Component { name: name.to_owned(), version: "0.3.1".to_owned() }
}

fn descriptor() -> [u8; SIZE] {
    std::array::from_fn(|at| u8::try_from(at % 251).unwrap())
}

#[test]
fn supported_targets_are_recognized() {
    for good in [
        "x86_64-unknown-linux-gnu",
        "x86_64-unknown-linux-musl",
        "aarch64-unknown-linux-gnu",
        "powerpc64le-unknown-linux-gnu",
        "x86_64-pc-linux-gnu",
        "riscv64gc-unknown-linux-gnu",
    ] {
        assert_eq!(check_target(good), Ok(()), "{good}");
    }
    for bad in [
        "i686-pc-windows-msvc",
        "aarch64-apple-darwin",
        "wasm32-unknown-unknown",
        "wasm32-wasip1",
        "aarch64-linux-android",
        "x86_64-unknown-none",
        "x86_64-unknown-linux-none",
        "powerpc64-unknown-linux-gnu",
        "s390x-unknown-linux-gnu",
        "aarch64_be-unknown-linux-gnu",
        "i686-unknown-linux-gnu",
        "armv7-unknown-linux-gnueabihf",
        "x86_64-unknown-linux-gnux32",
        "aarch64-unknown-linux-gnu_ilp32",
        "",
    ] {
        let why = check_target(bad).unwrap_err();
        assert!(why.to_string().contains(bad) && !why.to_string().contains('\n'), "{bad}: {why}");
    }
}

#[test]
fn static_libc_flags_are_parsed() {
    for (flag, stated) in [
        ("-Ctarget-feature=+crt-static", Some(true)),
        ("target-feature=+avx2,-crt-static", Some(false)),
        ("target-feature=-crt-static,+crt-static", Some(true)),
        ("target-feature=+avx2", None),
        ("+crt-static", None),
    ] {
        assert_eq!(crt_static(flag), stated, "{flag}");
    }
    let asked = |target| is_static(target, None, "rustc".as_ref());
    assert!(asked("x86_64-unknown-linux-musl") && !asked("x86_64-unknown-linux-gnu"));
    assert!(!is_static("x86_64-unknown-linux-musl", Some(false), "rustc".as_ref()));
    assert!(!is_static("x86_64-unknown-linux-musl", None, "/nowhere/rustc".as_ref()), "no answer is no");
}

#[test]
fn shim_source_contains_all_parts() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/shim");
    let joined = shim_source();
    for entry in fs::read_dir(&dir).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "h" && extension != "c") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let first = text.lines().next().unwrap();
        assert_eq!(joined.matches(first).count(), 1, "{} is in the shim once", file.display());
    }
    assert!(!joined.contains("#include \""), "a part that the library does not hold");
    assert!(joined.contains("struct cudaguard_verdict {"), "the header for programs is a part");
}

#[test]
fn note_groups_are_distinct() {
    assert_eq!(note_group(&component("resnet-rs")), "cudaguard_note_resnet_2d_rs_40_0_2e_3_2e_1");
    assert_ne!(note_group(&component("a-b")), note_group(&component("a_b")));
    assert!(note_group(&component("größe")).is_ascii());
}

#[test]
fn guard_archives_are_valid() {
    let bytes = write_archive(&[("note.o", b"odd"), ("shim.o", b"even")]);
    assert_eq!(bytes.len(), 8 + 60 + 4 + 60 + 4);
    assert!(bytes.starts_with(b"!<arch>\nnote.o/"));
    let second = &bytes[8 + 60 + 4..];
    assert!(second.starts_with(b"shim.o/") && second.ends_with(b"`\neven"));
}

/// Tests both ways to keep the note with each installed linker: a program that links it twice with `--gc-sections`,
/// and is stripped, contains it once.
#[test]
fn notes_are_retained_and_unique() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).current_dir(dir.path()).output().is_ok_and(|out| out.status.success())
    };
    fs::write(at("main.c"), "int main(void) { return 0; }\n").unwrap();
    if !run("cc", &["-c", "main.c", "-o", "main.o"]) {
        return;
    }
    let bytes = descriptor();
    for (name, keep) in [("retain", Keep::Retain), ("anchor", Keep::Anchor)] {
        fs::write(
            at("note.s"),
            note_assembly(NoteSource { descriptor: &bytes, component: &component("twice"), dlopen: None }, keep),
        )
        .unwrap();
        if !run("cc", &["-c", "note.s", "-o", "one.o"]) {
            assert!(matches!(keep, Keep::Retain), "every assembler knows what {name} needs");
            continue;
        }
        fs::copy(at("one.o"), at("two.o")).unwrap();
        for linker in ["bfd", "gold", "lld", "mold"] {
            let linker = format!("-fuse-ld={linker}");
            let link = ["main.o", "one.o", "two.o", "-s", "-Wl,--gc-sections", "-o", "program", &linker];
            if !run("cc", &link) {
                continue;
            }
            let program = fs::read(at("program")).unwrap();
            let notes = program.windows(SIZE).filter(|window| *window == bytes).count();
            assert_eq!(notes, 1, "{name} under {linker}");
        }
    }
}

#[test]
fn objects_contain_no_paths() {
    let one = tempfile::tempdir().unwrap();
    let other = one.path().join("another's \"folder\" of $5 \\n");
    fs::create_dir(&other).unwrap();
    let objects = |dir: &Path| {
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let note = NoteSource { descriptor: &descriptor(), component: &component("same"), dlopen: None };
        match compile_guard(&Env::from_process(), note, &target, dir, &dir.join("shims")).unwrap() {
            GuardObjects::Objects { note, shim } => Some([fs::read(note).unwrap(), fs::read(shim).unwrap()]),
            GuardObjects::Unguarded(_) => None,
        }
    };
    assert_eq!(objects(one.path()), objects(&other));
    let note = NoteSource { descriptor: &descriptor(), component: &component("x"), dlopen: None };
    let unguarded =
        compile_guard(&Env::from_process(), note, "wasm32-unknown-unknown", one.path(), one.path()).unwrap();
    assert!(matches!(unguarded, GuardObjects::Unguarded(why) if why.contains("wasm32")));
}
