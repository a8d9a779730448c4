//! NCCL, which only its descriptor knows. The tests use the real library of the pip package, whose file name only contains
//! its major.

use std::path::{Path, PathBuf};

use cudaguard::internal::manifest::Linkage;
use cudaguard::internal::vendor::{self, Library};
use cudaguard::internal::version::Version;
use cudaguard_tests::{Call, Scratch, e2e, parts};

use super::fixture::{self, call};
use super::guarded_programs;

const REAL: Version = Version::new(2, 19, 3);

fn nccl() -> &'static Library {
    vendor::library_for_key("nccl").expect("a descriptor")
}

fn dir() -> PathBuf {
    parts::part("nccl-2.19.3").join("lib")
}

/// Builds a program that prints the version that NCCL returns.
fn program(to: &Path, objects: &[PathBuf]) {
    let text = "#include <stdio.h>\nextern int ncclGetVersion(int *);\n\
                int main(void) { int v = 0; return ncclGetVersion(&v) || printf(\"%d\\n\", v) < 0; }\n";
    let linked = [format!("-L{}", dir().display()), "-l:libnccl.so.2".to_owned()];
    guarded_programs::link(text, to, objects, &linked).unwrap_or_else(|error| panic!("{error}"));
}

#[e2e]
fn nccl_file_names_its_version() {
    let scratch = Scratch::new("nccl-answer");
    let app = scratch.join("app");
    program(&app, &[]);
    let outcome = Call::new(&app).env("LD_LIBRARY_PATH", dir()).run().success();
    let answer = outcome.stdout.trim().parse().unwrap_or_else(|_| panic!("{outcome}"));
    assert_eq!(nccl().asked.as_ref().and_then(|asked| asked.version_of_answer(answer)), Some(REAL));
    assert_eq!(
        cargo_cudaguard::binary::file::Binary::read(&dir().join("libnccl.so.2")).unwrap().version_inside(nccl()),
        Some(REAL)
    );
}

#[e2e]
fn inspect_shows_how_nccl_loads() {
    let scratch = Scratch::new("nccl-inspect");
    let linked = scratch.join("linked");
    program(&linked, &[]);
    let opened = scratch.join("opened");
    let text = "#include <dlfcn.h>\nint main(void) { void *lib = dlopen(\"libnccl.so.2\", 2);\n\
                return !(lib && dlsym(lib, \"ncclCommInitRank\")); }\n";
    guarded_programs::link(text, &opened, &[], &[]).unwrap_or_else(|error| panic!("{error}"));
    let plain = scratch.join("plain");
    guarded_programs::link("int main(void) { return 0; }", &plain, &[], &[]).unwrap_or_else(|error| panic!("{error}"));
    for (file, linkage, inside) in [
        (linked, Linkage::Linked, None),
        (opened, Linkage::Dlopened, None),
        (plain, Linkage::None, None),
        (dir().join("libnccl.so.2"), Linkage::Static, Some(REAL.to_string())),
    ] {
        let value = call(["inspect", "--json"]).arg(&file).run().json();
        assert_eq!(value["nccl"].as_str(), linkage.name(), "{}: {value}", file.display());
        assert_eq!(value["inside"]["nccl"].as_str(), inside.as_deref(), "{}", file.display());
    }
}

#[e2e]
fn probe_and_doctor_find_nccl() {
    let file = dir().join("libnccl.so.2").display().to_string();
    let value = call(["probe", "--json"]).env("LD_LIBRARY_PATH", dir()).run().success().json();
    let found = &value["nccl"][0];
    assert_eq!((found["version"].as_str(), found["path"].as_str()), (Some("2.19.3"), Some(file.as_str())), "{value}");
    let value = call(["doctor", "--json"]).env("LD_LIBRARY_PATH", dir()).run().json();
    let picked = value["libraries"].as_array().expect("a list").iter().find(|one| one["path"] == file.as_str());
    let picked = picked.unwrap_or_else(|| panic!("{value}"));
    assert_eq!((&picked["version"], &picked["fate"]), (&"2.19.3".into(), &"picked".into()), "{value}");
}

/// The structure for options begins as `NCCL_CONFIG_INITIALIZER` of each release writes it.
#[e2e]
fn nccl_older_than_headers_is_reported() {
    let scratch = Scratch::new("nccl-headers");
    let app = scratch.join("app");
    let host = scratch.file("host.json", r#"{"driver": {"user": "550.163.01"}, "nccl": [{"version": "2.18.5"}]}"#);
    let linked = [format!("-L{}", dir().display()), "-l:libnccl.so.2".to_owned()];
    for (code, here, there) in [(22_703, true, true), (21_903, false, true), (21_805, false, false), (7, false, false)]
    {
        let text = format!(
            "#include <stddef.h>\nextern int ncclCommInitRankConfig(void *, int, int, int, void *);\n\
             int main(int n, char **a) {{ void *comm = a; struct {{ size_t size; unsigned magic, version; }} config = \
             {{ 80, 0xcafebeef, {code} }};\n return n > 9 && ncclCommInitRankConfig(&comm, n, n, n, &config); }}\n"
        );
        guarded_programs::link(&text, &app, &[], &linked).unwrap_or_else(|error| panic!("{error}"));
        let on_host = call(["verify", "--json", "--host"]).arg(&host).arg(&app).run();
        for (outcome, found, reported) in [
            (call(["verify", "--json"]).arg(&app).env("LD_LIBRARY_PATH", dir()).run(), "2.19.3", here),
            (on_host, "2.18.5", there),
        ] {
            let value = outcome.json();
            let findings = value["findings"].as_array().expect("findings");
            let finding = findings.iter().find(|finding| finding["code"] == "CG237");
            assert_eq!(finding.is_some(), reported, "{code} {found}: {value:#}");
            assert!(finding.is_none_or(|one| one["found"] == found && one["severity"] == "warning"), "{value:#}");
        }
    }
}

#[e2e]
fn verify_names_the_loaded_nccl() {
    let scratch = Scratch::new("nccl-verify");
    let app = scratch.join("app");
    let objects = guarded_programs::objects(&scratch, &[fixture::manifest(Linkage::None)]);
    program(&app, &objects);
    let value = call(["verify", "--json"]).arg(&app).env("LD_LIBRARY_PATH", dir()).run().json();
    let loaded = value["libraries"].as_array().expect("a list");
    let loaded: Vec<_> = loaded.iter().map(|one| (one["library"].as_str(), one["version"].as_str())).collect();
    assert_eq!(loaded, [(Some("nccl"), Some("2.19.3"))], "{value}");
    // The loader itself reports a library that it does not find.
    let value = call(["verify", "--json"]).arg(&app).run().json();
    assert_eq!(value["findings"][0]["code"], "CG210", "{value}");
}
