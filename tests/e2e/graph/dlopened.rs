//! Libraries that crates open with dlopen: a real program with cudarc of two versions and ort, guarded without changes to
//! its source. The tests read its records with several tools, and predict its start.

use std::fs;
use std::path::Path;

use cargo_cudaguard::binary::dlopen_note;
use cargo_cudaguard::binary::elf::Elf;
use cargo_cudaguard::binary::file::Binary;
use cargo_cudaguard::host::machine::judge;
use cargo_cudaguard::host::machine::{Driver, Gpu, LibraryState, Machine};
use cudaguard::internal::finding::Severity;
use cudaguard::internal::guard::{DLOPEN_SECTION, DLOPEN_TYPE};
use cudaguard::internal::manifest::{Linkage, Manifest, Requirement};
use cudaguard::internal::version::CudaVersion;
use cudaguard_tests::{Call, command, e2e, fake_library, parts, scratch, snapshot};

use super::fixture::Tree;
use super::real_crates::tree;

const DEPENDENCIES: &str = "\
old = { package = \"cudarc\", version = \"=0.17.8\", default-features = false, features = [\"std\", \"driver\", \"cuda-12080\", \
\"dynamic-loading\"] }
cudarc = { version = \"=0.19.10\", default-features = false, features = [\"std\", \"driver\", \"cudnn\", \"cuda-12080\", \
\"dynamic-loading\"] }
ort = { version = \"=2.0.0-rc.10\", default-features = false, features = [\"load-dynamic\", \"cuda\"] }
";

const MAIN: &str = "\
fn main() {
    match std::env::args().nth(1).as_deref() {
        Some(\"old\") => println!(\"{:?}\", old::driver::result::init()),
        Some(\"cudnn\") => println!(\"{:?}\", cudarc::cudnn::result::create_handle().is_ok()),
        Some(\"ort\") => println!(\"{}\", ort::info()),
        _ => println!(\"it starts\"),
    }
}
";

#[e2e(slow)]
fn dlopening_crates_are_detected() {
    let tree = tree("loaded", DEPENDENCIES);
    tree.write("src/main.rs", MAIN);
    fake_library::cudnn(&tree.sibling("cudnn-nine"), (9, 15, 1));
    fake_library::cudnn(&tree.sibling("cudnn-eight"), (8, 9, 7));
    let built = tree.call("12.8", &["build"]).env("CUDNN_PATH", tree.sibling("cudnn-nine")).run().success();
    assert!(!built.stderr.contains("[CG15"), "one level, one major: {built}");
    let program = tree.root().join("target/debug/app");
    let manifest = manifest(&program);
    recorded(&manifest);
    readable_by_others(&tree, &program);
    predicted(&tree, &program);
    a_driver_without_the_functions(&program, &manifest);
}

fn manifest(program: &Path) -> Manifest {
    let binary = Binary::read(program).unwrap_or_else(|error| panic!("{error}"));
    let mut notes = binary.manifests();
    let note = notes.next().expect("a note").unwrap_or_else(|error| panic!("{error}"));
    assert!(notes.next().is_none() && note.manifest.sealed);
    note.manifest
}

fn recorded(manifest: &Manifest) {
    let opens: Vec<_> = manifest.opens.iter().map(|one| (one.by.as_str(), one.libraries.join(" "))).collect();
    assert_eq!(
        opens,
        [
            ("cudarc 0.17.8", "cuda".to_owned()),
            ("cudarc 0.19.10", "cuda cudnn".to_owned()),
            ("ort 2.0.0-rc.10", "onnxruntime".to_owned())
        ]
    );
    assert_eq!(manifest.opens[1].candidate_names("cudnn")[..3], ["libcudnn.so", "libcudnn.so.12", "libcudnn.so.11"]);
    let cudnn = manifest.library.as_ref().expect("its headers were in use");
    assert_eq!(cudnn.linkage, Linkage::Dlopened, "seen in the file");
    let floors: Vec<_> = manifest
        .requires
        .iter()
        .filter_map(|row| match row {
            Requirement::Driver { cuda, because, .. } => Some(format!("{cuda}: {because}")),
            _ => None,
        })
        .collect();
    assert_eq!(floors, ["12.8: cudarc 0.17.8 (cuEventElapsedTime_v2)"]);
}

/// The note survives strip. Our reader and binutils read the same contents.
fn readable_by_others(tree: &Tree, program: &Path) {
    let stripped = tree.sibling("stripped");
    let _ = Call::new("strip").args([program, Path::new("-o"), &stripped]).run().success();
    let data = fs::read(&stripped).expect("strip wrote it");
    let entries = dlopen_note::read_notes(&Elf::parse(&data).expect("an ELF file"));
    let features: Vec<&str> = entries.iter().map(|entry| entry.feature.as_str()).collect();
    assert_eq!(features, ["cuda", "cuda", "cudnn", "onnxruntime"]);
    assert!(entries.iter().all(|entry| entry.priority == "suggested" && !entry.sonames.is_empty()));
    // binutils 2.40 does not know the owner of the note. It prints the note anyway and exits with status 1.
    let shown = Call::new("readelf").args(["--notes", "--wide"]).arg(&stripped).run().stdout;
    let note = shown.split("Displaying notes found in: ").find(|part| part.starts_with(DLOPEN_SECTION));
    let note = note.expect("a section of that name");
    assert!(note.contains("FDO") && note.contains("0x407c0c0a"), "{note}");
    let section = tree.sibling("section");
    let dump = format!("--dump-section={}={}", DLOPEN_SECTION, section.display());
    let copy = tree.sibling("copy");
    let _ = Call::new("objcopy").arg(dump).args([&stripped, &copy]).run().success();
    // Python readers parse the note in this way: name and text follow three numbers, and unexpected end of the text at its NUL.
    let bytes = fs::read(&section).expect("dumped");
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((number(0), number(8), &bytes[12..16]), (4, DLOPEN_TYPE, b"FDO\0".as_slice()));
    let length = usize::try_from(number(4)).expect("small");
    let text = bytes[16..16 + length].strip_suffix(b"\0").expect("ends with a NUL");
    let mut value: serde_json::Value = serde_json::from_slice(text).expect("JSON");
    value.sort_all_objects();
    snapshot::check("graph/dlopen-note", &serde_json::to_string_pretty(&value).expect("JSON"));
}

/// cudarc opens the first existing file in its list of names, even if another one has the right number.
fn predicted(tree: &Tree, program: &Path) {
    let exec = |dirs: &[&Path]| {
        let path = std::env::join_paths(dirs).expect("folders");
        command::call(["exec", "--"]).arg(program).env("LD_LIBRARY_PATH", path).run()
    };
    let (nine, eight) = (tree.sibling("cudnn-nine/lib"), tree.sibling("cudnn-eight/lib"));
    assert!(exec(&[&nine]).success().stdout.contains("it starts"));
    // Both `libcudnn.so.9` and a `libcudnn.so` of another major exist, and cudarc opens the latter.
    let only_nine = tree.sibling("only-nine");
    for name in ["libcudnn.so.9", "libcudnn_graph.so.9", "libcudnn_ops.so.9"] {
        let real = fs::canonicalize(nine.join(name.replace(".so.9", ".so"))).expect("a stand-in");
        cudaguard_tests::layout::link(&real, &only_nine.join(name));
    }
    assert!(exec(&[&only_nine]).success().stdout.contains("it starts"));
    let refused = exec(&[&only_nine, &eight]).expect(78);
    snapshot::check("graph/another-major-by-name", &tree.printed(&refused));
    scratch::write(&tree.sibling("none/readme"), "");
    assert!(exec(&[&tree.sibling("none")]).success().stdout.contains("it starts"), "absent, it may never be asked for");
}

/// `exec` reports the failure that would end the program later.
fn a_driver_without_the_functions(program: &Path, manifest: &Manifest) {
    let driver = parts::driver("535");
    let dies = Call::new(program).arg("old").env("LD_LIBRARY_PATH", &driver).run();
    assert_eq!(dies.status(), Some(101), "{dies}");
    assert!(
        dies.stderr.contains("Expected symbol in library") && dies.stderr.contains("undefined symbol: cu"),
        "{dies}"
    );
    let judged = |cuda| {
        let driver = Driver { cuda: Some(cuda), init: Some(0), ..Driver::default() };
        let gpus = vec![Gpu { cc: Some((8, 0)), ..Gpu::default() }];
        let machine = Machine { driver: Some(driver), gpus: Some(gpus), ..Machine::default() };
        judge::judge(manifest, &machine.host("this machine"), LibraryState::Unknown)
    };
    let found = judged(CudaVersion::new(12, 2));
    let refused: Vec<String> = found
        .iter()
        .filter(|one| one.severity == Severity::Error)
        .map(cudaguard::internal::finding::Finding::render)
        .collect();
    snapshot::check("graph/driver-without-functions", &refused.join("\n"));
    let found = judged(CudaVersion::new(12, 8));
    assert!(found.iter().all(|one| one.severity < Severity::Warning), "{found:?}");
}
