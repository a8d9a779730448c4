//! Contents of the linked file, compared with the declarations: release builds with a real nvcc.

mod fixture;

use cudaguard::internal::finding::Code;
use cudaguard::internal::manifest::{GpuCoverage, Linkage, Requirement};
use cudaguard_tests::{Call, command, e2e, fake_library, layout, snapshot};

use fixture::{Fixture, gencode};

const ARCHS: &str = "[gpu]\narchs = [\"sm_80\", \"sm_90\", \"compute_90\"]\n";
const RIGHT: &str = "80:sm_80 90:sm_90,compute_90";

#[e2e(slow)]
fn missing_arch_is_refused() {
    let fixture = Fixture::new("missing", &gencode("80:sm_80 90:compute_90"), ARCHS);
    let refused = fixture.build(&["--release"]).expect(101);
    fixture.check("refused", &refused);
    assert!(!fixture.built("release").exists());
    // cargo does not consider the refused program built.
    let again = fixture.build(&["--release"]).expect(101);
    assert_eq!(fixture.printed(&again), fixture.printed(&refused));

    // A dev build continues, and repeats the warning each time.
    let first = fixture.build(&[]).success();
    fixture.check("dev", &first);
    assert_eq!(fixture.printed(&fixture.build(&[]).success()), fixture.printed(&first));

    fixture.change("cudaguard.toml", &format!("{ARCHS}[allow]\nCG128 = \"no H100 before spring\"\n"));
    let allowed = fixture.build(&["--release"]).success();
    fixture.check("allowed", &allowed);
    let recorded = fixture.manifest("release").allow;
    assert_eq!(recorded, [(Code::ArchMissing, "no H100 before spring".to_owned())]);

    fixture.change("cudaguard.toml", ARCHS);
    fixture.change("kernels/flags", &gencode(RIGHT));
    let right = fixture.build(&["--release"]).success();
    assert_eq!(fixture.printed(&right), "cudaguard: 1 of 1 target guarded (CUDA 13.0)");
    sealed(&fixture);
}

/// The note contains the file's requirements on a machine; this produces no output.
fn sealed(fixture: &Fixture) {
    let manifest = fixture.manifest("release");
    let names: Vec<String> = manifest.observed.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(names, ["sm_80", "sm_90", "compute_90"]);
    assert_eq!(manifest.cudart.map(|cudart| cudart.linkage), Some(Linkage::Static));
    let Some(Requirement::Driver { cuda, because, .. }) = manifest.requires.first() else { panic!("{manifest:?}") };
    assert_eq!((cuda.to_string().as_str(), because.as_str()), ("13.0", "libcudart 13.0"));
    let rows: Vec<_> = manifest
        .requires
        .iter()
        .filter_map(|row| match row {
            Requirement::Gpu { from, to, by, code, .. } => Some((*from, *to, *by, code.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(rows.first().map(|row| (row.0, row.2)), Some(((0, 0), GpuCoverage::Nothing)));
    assert_eq!(rows.last().map(|row| (row.1, row.2, row.3)), Some((None, GpuCoverage::Ptx, "compute_90")));
    let file = fixture.built("release");
    let inspected = command::call(["inspect"]).arg(&file).run().success();
    // Libraries of the machine's own compiler are not compared.
    let of_the_machine = |line: &&str| ["  target", "  compiler", "  others"].iter().any(|name| line.starts_with(name));
    let lines = inspected.stdout.lines().skip_while(|line| !line.starts_with("component"));
    let shown: Vec<&str> = lines.filter(|line| !of_the_machine(line)).collect();
    let shown = shown.join("\n").replace(&format!("cudaguard {}", manifest.cudaguard), "cudaguard <version>");
    snapshot::check("verified/inspected", &shown);
    let ran = Call::new(&file).run().success();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("ran\n", ""));
}

#[e2e(slow)]
fn stale_object_is_reported() {
    let fixture = Fixture::new("stale", &gencode(RIGHT), ARCHS);
    fixture.source("second");
    // An earlier build left this object, for older GPUs.
    fixture.nvcc(&format!("{} -c kernels/second.cu -o kernels/second.o", gencode("75:sm_75 80:sm_80")));
    std::fs::remove_file(fixture.project.path().join("kernels/second.cu")).expect("it is there");
    fixture.check("refused", &fixture.build(&["--release"]).expect(101));
    fixture.nvcc(&format!("{} -c kernels/first.cu -o kernels/second.o", gencode(RIGHT)));
    std::fs::remove_file(fixture.project.path().join("kernels/first.cu")).expect("it is there");
    fixture.change("kernels/flags", "");
    let right = fixture.build(&["--release"]).success();
    assert_eq!(fixture.printed(&right), "cudaguard: 1 of 1 target guarded (CUDA 13.0)");
}

#[e2e(slow)]
fn append_flags_arch_is_found() {
    let mut fixture = Fixture::new("appended", &gencode(RIGHT), ARCHS);
    fixture.set("NVCC_APPEND_FLAGS", "-gencode arch=compute_86,code=sm_86");
    fixture.check("said", &fixture.build(&["--release"]).success());
}

#[e2e(slow)]
fn fleet_is_checked() {
    let policy = |fleet: &str| format!("[gpu]\nfleet = [{fleet}]\n");
    let fixture = Fixture::new("fleet", &gencode(RIGHT), &policy("\"T4\", \"A100\""));
    fixture.check("unserved", &fixture.build(&["--release"]).expect(101));
    // Only the policy changes, and the linked file is checked again.
    fixture.change("cudaguard.toml", &policy("\"A100\", \"H100\", \"L40S\""));
    let right = fixture.build(&["--release"]).success();
    assert_eq!(fixture.printed(&right), "cudaguard: 1 of 1 target guarded (CUDA 13.0)");
    fixture.source("narrow");
    fixture.change("kernels/narrow.flags", &gencode("80:sm_80"));
    fixture.check("partial", &fixture.build(&["--release"]).success());
    let fresh = fixture.build(&["--release"]).success();
    fixture.check("partial", &fresh);
    fixture.change("cudaguard.toml", &format!("{}partial = \"refuse\"\n", policy("\"H100\"")));
    fixture.check("partial-refused", &fixture.build(&["--release"]).expect(101));
    // The finding is a warning if there is no fleet.
    fixture.change("cudaguard.toml", "");
    fixture.check("partial-unasked", &fixture.build(&["--release"]).success());
    // The file contains no PTX.
    fixture.change("cudaguard.toml", "[gpu]\narchs = [\"sm_80\"]\n");
    fixture.change("kernels/flags", &gencode("80:sm_80"));
    fixture.check("no-ptx", &fixture.build(&["--release"]).success());
}

#[e2e(slow)]
fn runtime_paths_are_checked() {
    let fixture = Fixture::new("paths", &gencode(RIGHT), "");
    let library = fixture.project.path().join("target/lib");
    let dirs = format!("$ORIGIN:/tmp/nowhere:/usr/lib:{}", library.display());
    fixture.change("kernels/link", &format!("-Wl,--enable-new-dtags,-rpath,{dirs}"));
    fixture.check("release", &fixture.build(&["--release"]).success());
    let dev = fixture.build(&[]).success();
    assert_eq!(fixture.printed(&dev), "cudaguard: 1 of 1 target guarded (CUDA 13.0)");
    fixture.change("kernels/link", "-Wl,-rpath,/usr/local/cuda/lib64/stubs");
    fixture.check("stubs", &fixture.build(&["--release"]).expect(101));
    fixture.change("cudaguard.toml", "[allow]\nCG106 = \"a test\"\n");
    let _ = fixture.build(&["--release"]).success();
    assert_eq!(fixture.manifest("release").allow, [(Code::StubInRuntimePath, "a test".to_owned())]);
    fixture.change("cudaguard.toml", "");
    fixture.change("kernels/link", "-Wl,-rpath,$ORIGIN/../lib:/usr/local/cuda/lib64");
    let right = fixture.build(&["--release"]).success();
    assert_eq!(fixture.printed(&right), "cudaguard: 1 of 1 target guarded (CUDA 13.0)");
}

/// `[gpu] archs` only applies to the package's own kernels; the fleet applies to all kernels.
#[e2e(slow)]
fn dependency_kernels_are_not_blamed() {
    let fixture = Fixture::new("dependency", &gencode(RIGHT), ARCHS);
    let manifest = "[package]\nname = \"dep\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let flags = gencode("75:sm_75 80:sm_80,compute_80");
    let build = format!(
        r#"fn main() {{
    let out = std::env::var("OUT_DIR").unwrap();
    let nvcc = std::process::Command::new("nvcc").args("-lib {flags} k.cu -o".split(' ')).arg(format!("{{out}}/libk.a")).status();
    assert!(nvcc.unwrap().success());
    println!("cargo:rustc-link-search=native={{out}}");
    println!("cargo:rustc-link-lib=static:+whole-archive=k");
}}
"#
    );
    fixture.change("dep/Cargo.toml", manifest);
    fixture.change("dep/build.rs", &build);
    fixture.change("dep/k.cu", "__global__ void of_another(int *p) { *p = 3; }\n");
    fixture.change("dep/src/lib.rs", "");
    fixture.change("src/main.rs", "extern crate dep as _;\nfn main() {}\n");
    let head = std::fs::read_to_string(fixture.project.path().join("Cargo.toml")).expect("it is there");
    fixture.change("Cargo.toml", &format!("{head}\n[dependencies]\ndep = {{ path = \"dep\" }}\n"));
    let built = fixture.build(&["--release"]).success();
    let found: Vec<String> = fixture.manifest("release").observed.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(found, ["sm_75", "sm_80", "sm_90", "compute_80", "compute_90"]);
    fixture.check("said", &built);
    fixture.change("cudaguard.toml", &format!("{ARCHS}fleet = [\"T4\", \"H100\"]\n"));
    fixture.check("fleet", &fixture.build(&["--release"]).success());
}

/// The output of nvcc is put into a library in a system directory, and both are deleted after linking.
#[e2e(slow)]
fn deleted_objects_are_tolerated() {
    let fixture = Fixture::new("deleted", &gencode("80:sm_80"), ARCHS);
    let build = std::fs::read_to_string(fixture.project.path().join("build.rs")).expect("it is there");
    let sibling = fixture.sibling("objects");
    let dir = sibling.display();
    let (from, to) = ("PathBuf::from(env::var_os(\"OUT_DIR\").unwrap())", format!("PathBuf::from(\"{dir}\")"));
    assert!(build.contains(from));
    let link = "println!(\"cargo:rustc-link-arg={}\", object.display());";
    let archived = format!(
        "assert!(Command::new(\"ar\").arg(\"rcs\").arg(\"{dir}/liball.a\").arg(&object).status().unwrap().success());
        fs::remove_file(&object).unwrap();
        println!(\"cargo:rustc-link-arg=-Wl,--whole-archive,-L{dir},-lall,--no-whole-archive\");"
    );
    assert!(build.contains(link));
    std::fs::create_dir_all(&sibling).expect("a folder");
    fixture.change("build.rs", &build.replace(from, &to).replace(link, &archived));
    fixture.check("said", &fixture.build(&["--release"]).success());
    // The kernels have the same archs as the policy, so their owner does not matter.
    fixture.change("kernels/flags", &gencode(RIGHT));
    let right = fixture.build(&["--release"]).success();
    assert_eq!(fixture.printed(&right), "cudaguard: 1 of 1 target guarded (CUDA 13.0)");
}

#[e2e(slow)]
fn other_cudart_release_is_reported() {
    let fixture = Fixture::new("cudart", &gencode(RIGHT), "");
    let library = fixture.sibling("libcudart.so.12");
    fake_library::shared_library("libcudart.so.12").source("int stands_in(void) { return 12; }\n").make(&library);
    fixture.change("kernels/link", &format!("-Wl,--no-as-needed\n{}", library.display()));
    fixture.check("refused", &fixture.build(&["--release"]).expect(101));
}

/// The environment contains a mixed cuDNN. This is a warning while it is unknown if the program uses it.
#[e2e(slow)]
fn undeclared_cudnn_is_recorded() {
    let mut fixture = Fixture::new("cudnn", &gencode(RIGHT), "");
    let environment = fixture.sibling("env");
    layout::farm(&fixture.cuda, &environment);
    fake_library::cudnn(&environment, (9, 1, 0));
    let newer = fixture.sibling("newer");
    fake_library::cudnn(&newer, (9, 15, 1));
    let header = "include/cudnn_version.h";
    std::fs::copy(newer.join(header), environment.join(header)).expect("it is there");
    fixture.set("CUDA_HOME", &environment);
    fixture.check("not-linked", &fixture.build(&["--release"]).success());
    let about_cudnn = |profile: &str| {
        let of_cudnn = |row: &&Requirement| matches!(row, Requirement::Library { .. } | Requirement::Part { .. });
        fixture.manifest(profile).requires.iter().filter(of_cudnn).count()
    };
    assert_eq!(about_cudnn("release"), 0);

    let link = |dir: &std::path::Path| format!("-Wl,--no-as-needed\n-L{}\n-lcudnn", dir.join("lib").display());
    fixture.change("kernels/link", &link(&environment));
    fixture.check("linked", &fixture.build(&["--release"]).expect(101));
    // The build script selects another one, so the one in the environment is not in the program.
    fixture.change("kernels/link", &link(&newer));
    fixture.check("another-linked", &fixture.build(&["--release"]).success());
    assert_eq!(about_cudnn("release"), 8);
    // The library and the headers have different majors, so the version that the program was built with is unknown.
    let older = fixture.sibling("older");
    fake_library::cudnn(&older, (8, 9, 7));
    fixture.change("kernels/link", &link(&older));
    fixture.check("other-major", &fixture.build(&["--release"]).expect(101));
    let _ = fixture.build(&[]).success();
    assert_eq!(about_cudnn("debug"), 0, "asked of no machine");
}
