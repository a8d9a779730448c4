//! Unsealed files: the shim detects their kernels itself, and reports the same as for the sealed twin.

mod fixture;
mod front_ends;
mod ptx_text;

use std::fs;

use cudaguard_tests::containers::copies;
use cudaguard_tests::world::{self, A100, MakeMachine as _, V100, World};
use cudaguard_tests::{Call, Scratch, Test, e2e, last_report, parts, rows, test, tools};

use fixture::{Build, PLAIN_DATA, STATIC_CUDART, before_linking, object, reported, worlds};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let mut all = Vec::new();
    all.extend(BUILDS.iter().map(|(what, objects)| {
        let test =
            test(format!("matches_sealed_twin::{}", what.replace([',', ' '], "_")), move || sealed_twin(objects));
        if *what == "sm_80" { test } else { test.slow() }
    }));
    let counts = [("one_container", 1), ("200_containers", 200)];
    all.extend(rows("linkers_agree", counts, linkers_agree).map(Test::slow));
    all
}

/// Returns the compiler flags and linker options to test with this compiler, linker and number of containers.
fn ways(compiler: &str, linker: &str, count: usize) -> Vec<(&'static [&'static str], &'static [&'static str])> {
    // With many containers, only the size of the tables differs.
    if count > 1 {
        return vec![(&[], &["-Wl,--gc-sections", "-s"])];
    }
    let mut ways: Vec<(&[&str], &[&str])> =
        vec![(&[], &[]), (&[], &["-Wl,--gc-sections", "-s"]), (&[], &["-no-pie", "-O2"])];
    ways.push((&["-O0"], &[]));
    // gold does not support this option.
    if linker != "gold" {
        ways.push((&[], &["-static-pie"]));
    }
    // GNU ld does not support folding.
    if linker != "bfd" {
        ways.push((&[], &["-Wl,--icf=all", "-Wl,--gc-sections", "-s"]));
    }
    // lld has no plugin for gcc's LTO objects, and the others need one for clang's.
    if (compiler == "gcc") == (linker != "lld") {
        ways.push((&["-flto"], &["-flto", "-O2", "-Wl,--gc-sections", "-s"]));
    }
    ways
}

/// All linkers and options produce the same verdict and output.
fn linkers_agree(count: usize) {
    world::need();
    for tool in ["cc", "g++", "objcopy"] {
        tools::need(tool);
    }
    let machines: Vec<_> = [V100, A100]
        .map(|gpu| {
            let scratch = Scratch::new("unsealed-world");
            let machine = World::new("580.95.05", 13000, &[gpu]).make(&scratch.join("world"));
            (scratch, machine)
        })
        .into();
    let mut missing = Vec::new();
    let mut played = 0;
    let scratch = Scratch::without_blanks("unsealed");
    let one = object(scratch.path(), "k", "-gencode arch=compute_80,code=sm_80");
    let objects = if count == 1 { vec![one] } else { vec![copies(scratch.path(), &one, count - 1), one] };
    // Compiler and linker do not affect each other, so each linker occurs once.
    let pairs = tools::linking(&["gcc", "clang"], &mut missing).into_iter();
    for (compiler, linker) in
        pairs.filter(|(compiler, linker)| (*compiler == "gcc") == ["bfd", "gold"].contains(linker))
    {
        let chosen = format!("-fuse-ld={linker}");
        for (flags, options) in ways(compiler, linker, count) {
            let options = [&[&*chosen], options].concat();
            let manifest = before_linking();
            let build = Build { compiler, flags, options: &options, manifest: &manifest };
            let twins = build.make(scratch.path(), &objects);
            for (at, (place, machine)) in machines.iter().enumerate() {
                let [unsealed, sealed] = twins.each_ref().map(|twin| reported(place, machine, twin, &[]));
                let text = unsealed.0.replace("/unsealed/", "/sealed/");
                assert_eq!(text, sealed.0, "{count} containers, {compiler} {flags:?} {options:?}");
                assert_eq!(unsealed.1, sealed.1, "{count} containers, {compiler} {flags:?} {options:?}");
                assert_eq!(text.starts_with("status Some(78)"), at == 0, "{compiler} {options:?}: {text}");
                played += 1;
            }
        }
    }
    assert!(played >= 3 * machines.len(), "some linker is here: {played}");
    tools::done_without(&missing);
}

/// A program calls the runtime but has no kernels. The requirements of a shared cudart are checked as in the sealed twin. A
/// static cudart leaves no evidence at the start, so it is reported as not checked.
#[e2e]
fn cudart_without_kernels_is_accounted() {
    world::need();
    tools::need_all(&["cc", "g++"]);
    let scratch = Scratch::without_blanks("unsealed");
    let (source, uses) = (scratch.join("uses.c"), scratch.join("uses.o"));
    fs::write(&source, "int cudaGetDevice(int *);\nint uses(void) {\n  int n;\n  return cudaGetDevice(&n);\n}\n")
        .expect("written");
    let _ = Call::new("cc").args(["-fPIC", "-c", "-o"]).args([&uses, &source]).run().success();
    let library = cudaguard_tests::parts::cuda("13.0").join("lib/libcudart.so.13");
    fs::copy(&library, scratch.join("libcudart.so.13")).expect("a copy");
    let manifest = before_linking();
    let found_here = format!("-Wl,-rpath,{}", scratch.path().display());
    for (shared, objects) in [(false, vec![uses.clone()]), (true, vec![uses, library])] {
        let build = Build { compiler: "cc", flags: &[], options: &[&found_here], manifest: &manifest };
        let [unsealed, sealed] = build.make(scratch.path(), &objects);
        for (release, cuda, old) in [("535.261.03", 12020, true), ("580.95.05", 13000, false)] {
            let place = Scratch::new("unsealed-world");
            let machine = World::new(release, cuda, &[A100]).make(&place.join("world"));
            let [text, twin] = [&unsealed, &sealed].map(|program| reported(&place, &machine, program, &[]));
            assert_eq!(twin.0.starts_with("status Some(78)"), old, "{release}: {}", twin.0);
            let same_words = text.0.replace("/unsealed/", "/sealed/") == twin.0;
            assert_eq!(same_words, shared || !old, "{release}: {}", text.0);
            assert!(!shared || text.1 == twin.1, "{release}: {}", text.1);
            let file = place.join("left.json");
            let report = [("CUDAGUARD_REPORT", file.to_str().expect("UTF-8"))];
            let _ = machine.call(&unsealed, &report).dir(place.path()).run();
            let report = last_report(&file);
            let left: &[&str] = if shared { &[PLAIN_DATA] } else { &[PLAIN_DATA, STATIC_CUDART] };
            assert_eq!(report["components"][0]["not_judged"], serde_json::json!(left), "{release}");
        }
    }
}

/// A program without kernels that calls functions of every libcuda needs one that works.
#[e2e]
fn linked_libcuda_is_checked() {
    world::need();
    tools::need_all(&["cc", "g++"]);
    let scratch = Scratch::without_blanks("unsealed");
    let (uses, object) = (
        scratch.file("uses.c", "int cuInit(unsigned);\nint use(void) { return cuInit(0); }\n"),
        scratch.join("uses.o"),
    );
    let _ = Call::new("cc").args(["-c", "-o"]).args([&object, &uses]).run().success();
    let stubs = parts::cuda("13.0").join("lib/stubs");
    let options = ["-L", &*stubs.to_string_lossy(), "-Wl,--no-as-needed", "-lcuda"];
    let manifest = before_linking();
    let twins =
        Build { compiler: "cc", flags: &[], options: &options, manifest: &manifest }.make(scratch.path(), &[object]);
    let good = || World::new("580.95.05", 13000, &[A100]);
    let upgraded = World { kernel: Some("570.86.10".into()), ..good() }.library(|library| library.init = 803);
    let stub = good().library(|library| (library.release, library.init) = ("1.1".into(), 34));
    for (world, code) in [(good(), ""), (upgraded, "CG304"), (stub, "CG306")] {
        let place = Scratch::new("unsealed-world");
        let machine = world.make(&place.join("world"));
        for twin in &twins {
            let started = machine.call(twin, &[]).run().expect(if code.is_empty() { 0 } else { 78 });
            assert!(started.stderr.contains(code) && started.stderr.is_empty() == code.is_empty(), "{started}");
        }
        let left = ["unsealed", "sealed"].map(|name| {
            let file = place.join("left.json");
            let report = [("CUDAGUARD_REPORT", file.to_str().expect("UTF-8"))];
            let _ = machine.call(scratch.join(name).join("program"), &report).dir(place.path()).run();
            let report = last_report(&file);
            report["components"][0]["not_judged"].clone()
        });
        // A static cudart leaves no trace in a file without kernels.
        assert_eq!(left, [serde_json::json!([PLAIN_DATA, STATIC_CUDART]), serde_json::json!([])], "{code}");
    }
}

/// Cases: name, and the flags of each object.
const BUILDS: &[(&str, &[&str])] = &[
    ("without kernels", &[]),
    ("sm_80", &["-gencode arch=compute_80,code=sm_80"]),
    ("sm_80 and PTX", &["-gencode arch=compute_80,code=[sm_80,compute_80]"]),
    ("PTX alone", &["-gencode arch=compute_90,code=compute_90"]),
    ("sm_90a", &["-gencode arch=compute_90a,code=sm_90a"]),
    ("sm_100f and sm_120", &["-gencode arch=compute_100f,code=sm_100f -gencode arch=compute_120,code=sm_120"]),
    ("partial", &["-gencode arch=compute_80,code=sm_80", "-gencode arch=compute_90a,code=sm_90a"]),
    (
        "PTX, and both elsewhere",
        &["-gencode arch=compute_80,code=compute_80", "-gencode arch=compute_80,code=[sm_80,compute_80]"],
    ),
    ("all", &["-arch=all-major"]),
    ("Tegra", &["-gencode arch=compute_87,code=sm_87"]),
];

/// Compares both twins on all machines, with all variables that concern PTX.
fn sealed_twin(objects: &[&str]) {
    world::need();
    for tool in ["cc", "g++"] {
        tools::need(tool);
    }
    let scratch = Scratch::without_blanks("unsealed");
    let objects: Vec<_> =
        objects.iter().enumerate().map(|(at, flags)| object(scratch.path(), &format!("k{at}"), flags)).collect();
    let manifest = before_linking();
    let twins = Build { compiler: "cc", flags: &[], options: &[], manifest: &manifest }.make(scratch.path(), &objects);
    for (name, world) in worlds() {
        let place = Scratch::new("unsealed-world");
        let machine = world.make(&place.join("world"));
        for variables in [&[][..], &[("CUDA_FORCE_PTX_JIT", "1")], &[("CUDA_DISABLE_PTX_JIT", "1")]] {
            let [unsealed, sealed] = twins.each_ref().map(|twin| reported(&place, &machine, twin, variables));
            assert_eq!(unsealed.0.replace("/unsealed/", "/sealed/"), sealed.0, "on {name} with {variables:?}");
            assert_eq!(unsealed.1, sealed.1, "on {name} with {variables:?}");
        }
    }
}
