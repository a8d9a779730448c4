//! Wheels with Python extension modules, built by tools that call cargo themselves, and repaired by auditwheel.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, command, e2e, parts, tools};

use super::fixture::{Fixture, cargo, package, sealed};

const LIBRARY: &str = "extern \"C\" {\n    fn PyModule_New(name: *const std::ffi::c_char) -> *mut std::ffi::c_void;\n}\n#[no_mangle]\n\
                   pub extern \"C\" fn PyInit_ext() -> *mut std::ffi::c_void {\n    \
                   unsafe { PyModule_New(b\"ext\\0\".as_ptr().cast()) }\n}\n";

/// Returns the extension module in an unpacked wheel.
fn module_in(dir: &Path) -> PathBuf {
    let listed = fs::read_dir(dir).expect("an unpacked wheel").flatten().map(|entry| entry.path());
    let mut modules = listed.filter(|path| path.extension().is_some_and(|ending| ending == "so"));
    modules.next().unwrap_or_else(|| panic!("no extension module in {}", dir.display()))
}

/// maturin builds a Python extension module. The library in its wheel is sealed.
#[e2e(slow)]
fn maturin_wheels_are_guarded() {
    let maturin = parts::program("maturin", "maturin");
    let python = tools::need("python3");
    // maturin only needs the name of the bindings.
    let bindings = package("pyo3-ffi", "[features]\nextension-module = []\n").replace("0.1.0", "0.22.0");
    let fixture = Fixture::new(
        "maturin",
        &[
            (
                "Cargo.toml",
                &package(
                    "ext",
                    "[workspace]\n[lib]\ncrate-type = [\"cdylib\"]\n[dependencies]\npyo3-ffi = { path = \"pyo3-ffi\" }\n",
                ),
            ),
            ("src/lib.rs", LIBRARY),
            ("pyo3-ffi/Cargo.toml", &bindings),
            ("pyo3-ffi/src/lib.rs", ""),
            (
                "pyproject.toml",
                "[build-system]\nrequires = [\"maturin>=1\"]\nbuild-backend = \"maturin\"\n[project]\nname = \"ext\"\n\
                 version = \"0.1.0\"\n",
            ),
        ],
    );
    let variables = fixture.guard(["env", "--release"]).run().success().stdout;
    let build = format!(
        "{variables}\"$1\" build --release --offline --skip-auditwheel --interpreter \"$2\" -o wheels\n\
         \"$2\" -m zipfile -e wheels/*.whl unpacked\n"
    );
    let call = Call::new("sh").args(["-ec", &build, "sh"]).args([&maturin, &python]).dir(&fixture.root);
    let _ = call.env("CARGO", cargo()).env("CARGO_NET_OFFLINE", "true").run().success();
    let _ = sealed(&module_in(&fixture.root.join("unpacked/ext")), "ext");
}

/// setuptools-rust builds an extension module that links a shared cudart. The library in its wheel is sealed. auditwheel
/// adds the cudart under a new name, and note and verdict stay the same.
#[e2e(slow)]
fn setuptools_rust_wheels_are_guarded() {
    tools::need_all(&["python3", "gcc"]);
    let (cuda, packaging) = (parts::cuda("13.0"), parts::part("python-packaging"));
    let setup = "from setuptools import setup\nfrom setuptools_rust import Binding, RustExtension\nsetup(name='ext', version='0.1.0', \
                 rust_extensions=[RustExtension('ext', binding=Binding.NoBinding)], zip_safe=False)\n";
    let script = format!(
        "fn main() {{\n    for word in [\"-Wl,--no-as-needed\", {:?}, \"-lcudart\"] {{\n        \
         println!(\"cargo:rustc-link-arg={{word}}\");\n    }}\n}}\n",
        format!("-L{}", cuda.join("lib64").display())
    );
    let files = [
        ("Cargo.toml", package("ext", "[workspace]\n[lib]\ncrate-type = [\"cdylib\"]\n")),
        ("build.rs", script),
        ("src/lib.rs", LIBRARY.to_owned()),
        ("setup.py", setup.to_owned()),
    ];
    let fixture = Fixture::new("setuptools-rust", &files.each_ref().map(|(name, text)| (*name, text.as_str())));
    let path = parts::path(&["python-packaging", "cuda-13.0"]);
    let variables = fixture.guard(["env", "--release"]).env("PATH", &path).run().success().stdout;
    let build = format!(
        "{variables}python3 setup.py -q bdist_wheel -d wheels\npython3 -m zipfile -e wheels/*.whl unpacked\n\
         LD_LIBRARY_PATH=\"$1\" python3 -m auditwheel repair -w repaired wheels/*.whl\n\
         python3 -m zipfile -e repaired/*.whl unpacked-repaired\n"
    );
    let call = Call::new("sh").args(["-ec", &build, "sh"]).arg(cuda.join("lib64")).dir(&fixture.root);
    let call = call.env("PATH", &path).env("PYTHONPATH", packaging.join("lib")).env("PYTHONDONTWRITEBYTECODE", "1");
    let _ = call.env("CARGO", cargo()).env("CARGO_NET_OFFLINE", "true").run().success();
    let both = ["unpacked", "unpacked-repaired"].map(|dir| module_in(&fixture.root.join(dir)));
    let [before, after] = both.each_ref().map(|module| {
        let note = sealed(module, "ext");
        let driver = ["verify", "--driver", "535.261.03", "--gpu", "A100"];
        let refused = command::call(driver).arg(module).run().expect(1);
        assert!(refused.stderr.contains("error[CG301]") && refused.stderr.contains("libcudart 13.0"), "{refused}");
        let _ = command::call(["verify", "--driver", "580.95.05", "--gpu", "A100"]).arg(module).run().success();
        let page = command::call(["inspect"]).arg(module).run().success().stdout;
        // The machine provides the cudart of the first module only (CG519).
        let refusal = refused.stderr.split("info[").next().expect("the error").to_owned();
        (note.manifest, refusal, page)
    });
    assert_eq!((before.0, before.1), (after.0, after.1));
    assert!(before.2.contains("  CUDA       libcudart.so.13\n"), "{}", before.2);
    assert!(after.2.contains("  CUDA       libcudart-") && after.2.contains("  cudart     linked\n"), "{}", after.2);
}
