//! The Python API in the wheel: `cargo-cudaguard/python`. `.ci/wheel` builds and tests the wheel itself.

use cudaguard_tests::{Call, Scratch, command, e2e, parts, places, tools};

/// Script that checks a library with known code and requirements: NCCL 2.19.3, compiled by CUDA 12.3 for compute
/// capabilities 5.0 to 9.0.
const ASKED: &str = r#"
import cudaguard, sys
library, host_file = sys.argv[1:]

def fails(kind, call, *words):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), str(error)
        return error
    raise AssertionError("%s: nothing was raised" % (words,))

runs = cudaguard.verify(library, driver="535.261.03", gpus=["A100"])
assert runs and runs.status is cudaguard.Status.COMPATIBLE and runs.file == library, runs
assert [(gpu.cc, gpu.by) for gpu in runs.gpus] == [("8.0", "native")], runs
refused = cudaguard.verify(library, driver="470.256.02", gpus=["A100"])
assert not refused and refused.verdict == "refused" and refused.status is cudaguard.Status.INCOMPATIBLE, refused
assert refused == cudaguard.verify(library, driver="470.256.02", gpus="A100"), "one string is one GPU"
assert "470" in refused.findings[0].found and refused.not_judged == [], refused
assert [finding.code for finding in refused.findings if finding.severity == "error"][0] == "CG301", refused
error = fails(cudaguard.IncompatibleError, lambda: cudaguard.verify(library, driver="470.256.02", gpus=["A100"], check=True), library, "CG301", "hint: ")
assert error.findings[0].code == "CG301" and error.result == refused

host = cudaguard.Host(dict(cudaguard.Host.here().facts, driver={"user": "535.261.03", "kernel": "535.261.03"}, gpus=[{"cc": "8.0"}]))
assert cudaguard.verify(library, host=host).verdict == "runs"
assert cudaguard.Host.read(host_file).facts["gpus"], "a host file"
assert cudaguard.verify(library, host=host_file).verdict == cudaguard.verify(library, host=cudaguard.Host.read(host_file)).verdict

assert {entry.arch for entry in cudaguard.inspect(library).kernels} >= {"sm_50", "sm_90"}
needs = cudaguard.requirements(library, library)
assert needs.driver_needed is True and needs.gpus[0].first == "5.0" and needs.gpus[0].driver.cuda == "12.0", needs
results = cudaguard.fleet(library, [host, cudaguard.Host({"driver": {"user": "470.256.02", "kernel": "470.256.02"}, "gpus": [{"cc": "8.0"}]})])
assert [result.verdict for result in results] == ["runs", "refused"], results
assert cudaguard.fleet([library], host_file), "a file"
assert cudaguard.explain("803").symptoms[0].causes[0].do and cudaguard.explain("CG301").findings[0].code == "CG301"
assert not cudaguard.explain("a text without meaning")
assert cudaguard.__version__.count(".") == 2, cudaguard.__version__
assert "__cuda >=12.3" in cudaguard.requirements(library, format="conda")
assert cudaguard.gate(library, archs=["sm_90"], driver_floor="535")["verdict"] == "runs"
assert cudaguard.gate(library, driver_floor="450")["verdict"] == "refused"
assert cudaguard.diff(library, library)["lost"] == [] and cudaguard.map(library)["files"] == [library]

# The requirements of a project are another question.
here = cudaguard.verify(library)
with open("pyproject.toml", "w") as project:
    project.write('[tool.cudaguard.release]\narchs = ["80"]\n')
assert cudaguard.verify(library) == here and here.verdict == cudaguard.verify(library, host=cudaguard.Host.here()).verdict, here

for kind in FileNotFoundError, cudaguard.FileMissingError, cudaguard.Error:
    fails(kind, lambda: cudaguard.verify(library + ".gone"), library + ".gone")
fails(cudaguard.CommandError, lambda: cudaguard.inspect(__file__), "not an ELF file")
fails(cudaguard.CommandError, lambda: cudaguard.requirements(library, format="x"), "conda")
fails(cudaguard.CommandError, lambda: cudaguard.verify(library, gpus=["no such GPU"]), "no such GPU")
fails(cudaguard.CommandError, lambda: cudaguard.Host.read(__file__), __file__)
fails(FileNotFoundError, lambda: cudaguard.inspect("--help"), "--help")
fails(ValueError, lambda: cudaguard.verify(library, host=host, driver="535"), "host")
"#;

#[e2e(slow)]
fn python_functions_work() {
    // The `python3` in PATH may be a script that starts the real one.
    let found = Call::new(tools::need("python3")).args(["-c", "import sys; print(sys.executable)"]).run().success();
    let python = found.stdout.trim_end();
    let library = parts::part("nccl-2.19.3").join("lib/libnccl.so.2");
    let scratch = Scratch::new("python face ü");
    let asked = scratch.file("asked.py", ASKED);
    let face = places::workspace().join("cargo-cudaguard/python");
    let host = places::workspace().join("tests/e2e/machine/hosts/t4-535.json");
    let call = || {
        let call = Call::new(python).env("PYTHONPATH", &face).env("PYTHONDONTWRITEBYTECODE", "1").dir(&*scratch);
        call.env("PATH", command::path().parent().expect("a folder"))
    };
    let _ = call().args(["-W", "error"]).arg(asked).args([library, host]).run().success();
    let dir = call().args(["-m", "cudaguard", "--cmakedir"]).run().success().stdout;
    assert!(std::path::Path::new(dir.trim_end()).join("CudaGuardConfig.cmake").is_file(), "{dir}");
    let version = call().args(["-m", "cudaguard", "--version"]).run().success().stdout;
    assert_eq!(version.lines().next().unwrap_or_default(), concat!("cargo-cudaguard ", env!("CARGO_PKG_VERSION")));
    let absent = call().env("PATH", "/nowhere").args(["-m", "cudaguard", "--version"]).run().expect(1);
    assert!(absent.stderr.starts_with("error: cargo-cudaguard, the command of this package, is neither"), "{absent}");
}

#[e2e]
fn python_types_are_strict() {
    let mypy = tools::need("mypy");
    let package = places::workspace().join("cargo-cudaguard/python/cudaguard");
    let scratch = Scratch::new("mypy");
    let call = Call::new(mypy).args(["--strict", "--cache-dir"]).arg(scratch.join("cache")).arg(package);
    let _ = call.dir(&*scratch).run().success();
}
