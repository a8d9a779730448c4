//! Contents of the linked file, compared with the declarations: release builds with a real nvcc.

mod fixture;

use cudaguard::internal::finding::Code;
use cudaguard::internal::manifest::{GpuCoverage, Linkage, Requirement};
use cudaguard_tests::{Call, command, e2e, snapshot};

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
