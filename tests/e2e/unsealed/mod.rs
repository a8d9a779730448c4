//! Files that nobody sealed: the shim sees their kernels by itself, and says what it says of the sealed twin.

mod doors;
mod fixture;

use std::fs;
use std::path::Path;

use cudaguard_tests::containers::copies;
use cudaguard_tests::world::{self, A100, V100, World};
use cudaguard_tests::{Scratch, Trial, tools, trials};

use fixture::{Build, before_linking, object, told, worlds};

pub(crate) fn trials() -> Vec<Trial> {
    let mut all =
        trials![as_the_sealed_twin, by_every_linker, ptx_that_no_table_has, more_images_than_there_is_room_for];
    all.extend(doors::trials());
    all
}

/// Whoever links it, and however: the same verdict and the same words.
fn by_every_linker() {
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
    for count in [0, 1, 200] {
        let scratch = Scratch::without_blanks("unsealed");
        let one = object(scratch.path(), "k", "-gencode arch=compute_80,code=sm_80");
        let objects = match count {
            0 => Vec::new(),
            1 => vec![one],
            _ => vec![copies(scratch.path(), &one, count - 1), one],
        };
        for (compiler, linker) in tools::linking(&["gcc", "clang"], &mut missing) {
            let linker = format!("-fuse-ld={linker}");
            for options in [&[][..], &["-Wl,--gc-sections", "-s"], &["-no-pie", "-O2"]] {
                let options = [&[&*linker], options].concat();
                let manifest = before_linking();
                let build = Build { compiler, options: &options, manifest: &manifest };
                let twins = build.make(scratch.path(), &objects);
                for (at, (place, machine)) in machines.iter().enumerate() {
                    let [unsealed, sealed] = twins.each_ref().map(|twin| told(place, machine, twin, &[]));
                    let text = unsealed.0.replace("/unsealed/", "/sealed/");
                    assert_eq!(text, sealed.0, "{count} containers, {compiler} {options:?}");
                    assert_eq!(unsealed.1, sealed.1, "{count} containers, {compiler} {options:?}");
                    let refused = at == 0 && count > 0;
                    assert_eq!(text.starts_with("status Some(78)"), refused, "{compiler} {options:?}: {text}");
                    played += 1;
                }
            }
        }
    }
    assert!(played >= 3 * 3 * machines.len(), "some linker is here: {played}");
    tools::done_without(&missing);
}

/// Of more than the guard keeps, it cannot tell what the rest serves: nothing is refused, and nothing said to be right.
fn more_images_than_there_is_room_for() {
    world::need();
    for tool in ["cc", "g++", "objcopy"] {
        tools::need(tool);
    }
    let place = Scratch::new("unsealed-world");
    let machine = World::new("580.95.05", 13000, &[V100]).make(&place.join("world"));
    let scratch = Scratch::without_blanks("unsealed");
    let one = object(scratch.path(), "k", "-gencode arch=compute_80,code=compute_80");
    let manifest = before_linking();
    for (count, refused) in [(16_000, true), (17_000, false)] {
        let objects = [copies(scratch.path(), &one, count - 1), one.clone()];
        let build = Build { compiler: "cc", options: &[], manifest: &manifest };
        let [unsealed, sealed] = build.make(scratch.path(), &objects);
        let verdict = |program: &Path| {
            let file = place.join("report.json");
            let _ = fs::remove_file(&file);
            let report = [("CUDAGUARD_REPORT", file.to_str().expect("UTF-8"))];
            let outcome = machine.call(program, &report).dir(place.path()).run();
            let report = fs::read_to_string(&file).expect("a report");
            let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
            (outcome.status(), report["verdict"].as_str().unwrap_or_default().to_owned())
        };
        let open = (Some(0), "unknown".to_owned());
        let wrong = (Some(78), "refused".to_owned());
        assert_eq!(verdict(&sealed), wrong, "{count}: whoever seals reads them all");
        assert_eq!(verdict(&unsealed), if refused { wrong } else { open }, "{count}");
    }
}

/// (what, the flags of each of its objects).
const BUILDS: &[(&str, &[&str])] = &[
    ("no kernels", &[]),
    ("sm_80", &["-gencode arch=compute_80,code=sm_80"]),
    ("sm_80 and PTX", &["-gencode arch=compute_80,code=[sm_80,compute_80]"]),
    ("PTX alone", &["-gencode arch=compute_90,code=compute_90"]),
    ("sm_90a", &["-gencode arch=compute_90a,code=sm_90a"]),
    ("sm_100f and sm_120", &["-gencode arch=compute_100f,code=sm_100f -gencode arch=compute_120,code=sm_120"]),
    ("partial", &["-gencode arch=compute_80,code=sm_80", "-gencode arch=compute_90a,code=sm_90a"]),
    ("partial by PTX", &["-gencode arch=compute_80,code=compute_80", "-gencode arch=compute_90a,code=sm_90a"]),
    ("all", &["-arch=all", "-arch=all-major"]),
    ("Tegra", &["-gencode arch=compute_87,code=sm_87"]),
];

/// The table: builds × machines × variables.
fn as_the_sealed_twin() {
    world::need();
    for tool in ["cc", "g++"] {
        tools::need(tool);
    }
    let machines: Vec<_> = worlds()
        .into_iter()
        .map(|(name, world)| {
            let scratch = Scratch::new("unsealed-world");
            let machine = world.make(&scratch.join("world"));
            (name, scratch, machine)
        })
        .collect();
    let mut refused = 0;
    for (what, objects) in BUILDS {
        let scratch = Scratch::without_blanks("unsealed");
        let objects: Vec<_> =
            objects.iter().enumerate().map(|(at, flags)| object(scratch.path(), &format!("k{at}"), flags)).collect();
        let manifest = before_linking();
        let twins = Build { compiler: "cc", options: &[], manifest: &manifest }.make(scratch.path(), &objects);
        for (name, place, machine) in &machines {
            for variables in [&[][..], &[("CUDA_FORCE_PTX_JIT", "1")], &[("CUDA_DISABLE_PTX_JIT", "1")]] {
                let [unsealed, sealed] = twins.each_ref().map(|twin| told(place, machine, twin, variables));
                let told = unsealed.0.replace("/unsealed/", "/sealed/");
                assert_eq!(told, sealed.0, "{what} on {name} with {variables:?}");
                assert_eq!(unsealed.1, sealed.1, "{what} on {name} with {variables:?}");
                refused += usize::from(told.starts_with("status Some(78)"));
            }
        }
    }
    assert!(refused > 50, "the table has refusals: {refused}");
}

/// The entries of PTX in this object now say that they are of PTX ISA 9.9.
fn newer_ptx(object: &Path) {
    let mut bytes = fs::read(object).expect("an object");
    // A header begins with its kind, PTX, and version 1.1; the ISA stands in it as minor and major.
    let starts: Vec<_> = (0..bytes.len() - 64).step_by(8).filter(|at| bytes[*at..*at + 4] == [1, 0, 1, 1]).collect();
    assert_eq!(starts.len(), 1, "one entry of PTX");
    for at in starts {
        bytes[at + 24..at + 28].copy_from_slice(&[9, 0, 9, 0]);
    }
    fs::write(object, bytes).expect("a file can be written");
}

/// Drivers that the tables know do not compile it; of newer ones it cannot be told, and that is said.
fn ptx_that_no_table_has() {
    world::need();
    let scratch = Scratch::without_blanks("unsealed");
    let object = object(scratch.path(), "k", "-gencode arch=compute_80,code=compute_80");
    newer_ptx(&object);
    let manifest = before_linking();
    let [unsealed, sealed] =
        Build { compiler: "cc", options: &[], manifest: &manifest }.make(scratch.path(), &[object]);
    for (release, cuda, code) in [("590.44.01", 13010, "CG302"), ("620.01", 13050, "CG302"), ("630.01", 13060, "CG505")]
    {
        let place = Scratch::new("unsealed-world");
        let machine = World::new(release, cuda, &[A100]).make(&place.join("world"));
        let [text, twin] = [&unsealed, &sealed].map(|program| told(&place, &machine, program, &[]));
        assert_eq!((text.0.replace("/unsealed/", "/sealed/"), &text.1), (twin.0, &twin.1), "{release}");
        let refused = code == "CG302";
        assert_eq!(text.0.starts_with("status Some(78)"), refused, "{release}: {}", text.0);
        let findings = text.1["findings"].as_array().expect("findings");
        assert!(findings.iter().any(|finding| finding["code"] == code), "{release}: {findings:?}");
        let newer = findings.iter().any(|finding| finding["message"].to_string().contains("newer than the guard"));
        assert_eq!(newer, !refused, "{release}: {findings:?}");
    }
}
