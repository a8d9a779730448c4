use super::*;

fn read(line: &str, bin: bool) -> Option<RustcArgs> {
    let variables = bin.then(|| ("CARGO_BIN_NAME".to_owned(), OsString::from("x")));
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    RustcArgs::parse(&Env::from_variables(variables, "/"), &words)
}

const BIN: &str = "--crate-name app --edition=2024 src/main.rs --crate-type bin --emit=dep-info,link \
                       -C extra-filename=-0123 --out-dir /t/debug/deps";

#[test]
fn programs_examples_and_c_libraries() {
    let unit = read(BIN, true).unwrap();
    assert_eq!(unit.kind, Some(ArtifactKind::Bin));
    assert_eq!(unit.output_file(ArtifactKind::Bin), Path::new("/t/debug/deps/app-0123"));
    let unit = read(&BIN.replace("deps", "examples"), true).unwrap();
    assert_eq!(unit.kind, Some(ArtifactKind::Example));
    let line = "--crate-name x src/lib.rs --crate-type lib --crate-type cdylib --emit dep-info,link --out-dir /t/deps";
    let unit = read(line, false).unwrap();
    assert_eq!((unit.kind, unit.extra.as_str()), (Some(ArtifactKind::Cdylib), ""));
    assert_eq!(unit.output_file(ArtifactKind::Cdylib), Path::new("/t/deps/libx.so"));
}

#[test]
fn other_crates_are_not_guarded() {
    for (line, bin) in [
        (BIN.to_owned(), false),
        (format!("{BIN} --test"), true),
        (BIN.replace("app", "build_script_build"), true),
        (BIN.replace("dep-info,link", "dep-info,metadata"), true),
        (BIN.replace("--crate-type bin", "--crate-type lib"), true),
        (BIN.replace("--crate-type bin", "--crate-type proc-macro"), false),
        (BIN.replace("--crate-type bin", "--crate-type dylib"), false),
    ] {
        assert_eq!(read(&line, bin).unwrap().kind, None, "{line}");
    }
    assert_eq!(read("-vV", false), None);
    assert_eq!(read("- --crate-name ___ --print=file-names --crate-type bin", false), None);
}

#[test]
fn static_c_library_is_detected() {
    let new_findings = |more: &str| read(&format!("{BIN} {more}"), true).unwrap().crt_static;
    assert_eq!(new_findings("-C target-feature=+avx2"), None);
    assert_eq!(new_findings("-C target-feature=+crt-static"), Some(true));
    assert_eq!(new_findings("-Ctarget-feature=+avx2,+crt-static -C target-feature=-crt-static"), Some(false));
}

#[test]
fn embed_guard_is_detected() {
    assert!(!read(BIN, true).unwrap().embeds);
    for more in [
        "-C link-arg=/t/build/app-1/out/cudaguard-note.o",
        "-Clink-arg=/t/cudaguard-shim.o",
        "-l static:+whole-archive=cudaguard_note",
        "-lstatic=cudaguard_app",
    ] {
        assert!(read(&format!("{BIN} {more}"), true).unwrap().embeds, "{more}");
    }
    for more in ["-C link-arg=-lfoo", "-l cuda", "--extern cudaguard=/t/libcudaguard.rlib"] {
        assert!(!read(&format!("{BIN} {more}"), true).unwrap().embeds, "{more}");
    }
}

#[test]
fn linked_cuda_libraries_are_detected() {
    let toolkit = tempfile::tempdir().unwrap();
    fs::write(toolkit.path().join("libcudart.so"), "").unwrap();
    let toolkit = toolkit.path().display();
    for more in [
        "-l cudart".to_owned(),
        "-lstatic=cudart_static".to_owned(),
        "-l dylib:+as-needed=cublasLt".to_owned(),
        "-l dylib=cuda:renamed".to_owned(),
        "-C link-arg=-lcudnn".to_owned(),
        "-Clink-args=-Wl,--as-needed,-lnvrtc".to_owned(),
        "-C link-arg=/opt/cuda/lib64/libcurand.so.10".to_owned(),
        format!("-L native={toolkit}"),
        format!("-L {toolkit}"),
    ] {
        assert!(read(&format!("{BIN} {more}"), true).unwrap().links_cuda, "{more}");
    }
    for more in [
        "-l static=kernels".to_owned(),
        "-l nvidia-ml".to_owned(),
        "-l cudaish".to_owned(),
        "-C link-arg=-Wl,--as-needed".to_owned(),
        "-C link-arg=/t/out/cuda.o".to_owned(),
        "-L native=/nowhere".to_owned(),
        format!("-L dependency={toolkit}"),
    ] {
        assert!(!read(&format!("{BIN} {more}"), true).unwrap().links_cuda, "{more}");
    }
}

#[test]
fn dependencies_are_added_to_depfile_rules() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let unit = RustcArgs { name: "x".into(), out: dir.to_owned(), dep_info: true, ..RustcArgs::default() };
    fs::write(dir.join("x.d"), "/t/x.d: src/lib.rs\n\n/t/libx.so: src/lib.rs\n\nsrc/lib.rs:\n\n# env-dep:A=b: c\n")
        .unwrap();
    unit.depend_on(Path::new("/a b/guard"), true).unwrap();
    assert_eq!(
        fs::read_to_string(dir.join("x.d")).unwrap(),
        "/t/x.d: src/lib.rs /a\\ b/guard\n\n/t/libx.so: src/lib.rs /a\\ b/guard\n\nsrc/lib.rs:\n\n# env-dep:A=b: c\n\n\
             # env-dep:CUDAGUARD_WRAPS=1\n"
    );
}
