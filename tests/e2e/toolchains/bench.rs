//! A machine for one scene: a system root in a scratch folder, laid out from real parts and, where no real one may be
//! fetched, from composed answers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cudaguard::finding::Finding;
use cudaguard::policy::{Policy, Requirement};
use cudaguard::toolchain::{Request, Toolchain};
use cudaguard::{env, judge};
use cudaguard_tests::{Scratch, parts, scratch, snapshot};

/// One machine, its environment and what is asked of it.
pub(crate) struct Bench {
    name: &'static str,
    root: Scratch,
    variables: BTreeMap<String, OsString>,
    pub(crate) request: Request,
    pub(crate) policy: Policy,
}

/// What was found and judged.
pub(crate) struct Told {
    pub(crate) toolchain: Toolchain,
    pub(crate) findings: Vec<Finding>,
}

impl Bench {
    /// A bare machine: gcc 12.2.0 in `/usr/bin`, which is its `PATH`, and nothing else.
    pub(crate) fn new(name: &'static str) -> Self {
        let root = Scratch::new(name);
        let mut request = Request::new("x86_64-unknown-linux-gnu");
        request.release = true;
        root.path().clone_into(&mut request.system_root);
        // Long enough for any load: only the scene of a hanging nvcc waits for it.
        request.patience = Duration::from_secs(120);
        let mut bench = Self { name, root, variables: BTreeMap::new(), request, policy: Policy::default() };
        bench.gcc("usr/bin/gcc", "12.2.0");
        let path = bench.at("usr/bin");
        bench.set("PATH", path);
        bench
    }

    /// A path on this machine.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.insert(name.to_owned(), value.into());
    }

    /// Sets a variable to a path on this machine.
    pub(crate) fn set_at(&mut self, name: &str, path: &str) {
        let path = self.at(path);
        self.set(name, path);
    }

    /// Puts a folder of this machine first in `PATH`.
    pub(crate) fn path_first(&mut self, folder: &str) {
        let mut path = self.at(folder).into_os_string();
        path.push(":");
        path.push(&self.variables["PATH"]);
        self.set("PATH", path);
    }

    /// A file.
    pub(crate) fn file(&self, path: &str, text: impl AsRef<[u8]>) {
        scratch::write(&self.at(path), text);
    }

    /// A link, to another path of this machine.
    pub(crate) fn link(&self, path: &str, to: &str) {
        self.link_to(path, &self.at(to));
    }

    fn link_to(&self, path: &str, to: &Path) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// A program: a shell script of shell built-ins, since `PATH` has no other programs here.
    pub(crate) fn program(&self, path: &str, script: &str) {
        self.file(path, format!("#!/bin/sh\n{script}\n"));
        let mut mode = fs::metadata(self.at(path)).unwrap().permissions();
        mode.set_mode(0o755);
        fs::set_permissions(self.at(path), mode).unwrap();
    }

    /// A stand-in of gcc: it tells this version to `--version`, and to nvcc, which asks by preprocessing a file.
    pub(crate) fn gcc(&self, path: &str, version: &str) {
        let name = Path::new(path).file_name().unwrap().to_string_lossy().into_owned();
        let mut numbers = version.split('.');
        let (major, minor) = (numbers.next().unwrap(), numbers.next().unwrap());
        let machine = if cfg!(target_arch = "aarch64") { "AARCH64" } else { "X86_64" };
        self.program(
            path,
            &format!(
                "if [ \"$1\" = -E ]; then\necho '__NV_CPLUSPLUS 201703L'\necho '__NV_GNUC__ {major}'\necho '__NV_GNUC_MINOR__ \
                 {minor}'\necho '__NV_GNUC_PATCHLEVEL__ 0'\necho __NV_LINUX__\necho __NV_{machine}__\nexit\nfi\necho '{name} (a \
                 stand-in) {version}'\necho '(C) Free Software Foundation, Inc.'"
            ),
        );
    }

    /// A real toolkit with its root here. Its folders are links to the part's.
    pub(crate) fn cuda(&self, root: &str, version: &str) {
        self.all_of(root, &parts::cuda(version));
    }

    /// A real cuDNN with its root here.
    pub(crate) fn cudnn(&self, root: &str, version: &str) {
        self.all_of(root, &parts::cudnn(version));
    }

    fn all_of(&self, root: &str, part: &Path) {
        for entry in fs::read_dir(part).unwrap() {
            let entry = entry.unwrap();
            self.link_to(&format!("{root}/{}", entry.file_name().to_string_lossy()), &entry.path());
        }
    }

    /// The files of a part's folder whose names begin so, as links in a folder here.
    pub(crate) fn some_of(&self, folder: &str, part: &Path, prefix: &str) {
        for entry in fs::read_dir(part).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(prefix) {
                // Links to a neighbour stay that, as packages have them.
                let link = fs::read_link(entry.path()).ok().filter(|link| link.components().count() == 1);
                self.link_to(&format!("{folder}/{name}"), &link.unwrap_or(entry.path()));
            }
        }
    }

    /// A wrapper script of an nvcc of this machine.
    pub(crate) fn wrapper(&self, path: &str, nvcc: &str) {
        self.program(path, &format!("exec '{}' \"$@\"", self.at(nvcc).display()));
    }

    /// A toolkit by its composed answer: an nvcc that says what the real one of this build says, `cuda.h` with its
    /// `CUDA_VERSION`, and a libcudart by name. These releases are in no package that tests may fetch.
    pub(crate) fn composed(&self, root: &str, build: &str) {
        self.composed_nvcc(root, build);
        self.composed_headers(&format!("{root}/include"), build);
        self.composed_cudart(&format!("{root}/lib64"), build);
    }

    /// The nvcc alone.
    pub(crate) fn composed_nvcc(&self, root: &str, build: &str) {
        let short = build.rsplit_once('.').unwrap().0;
        let top = self.at(root);
        self.program(
            &format!("{root}/bin/nvcc"),
            &format!(
                "case $1 in\n--version)\necho 'nvcc: NVIDIA (R) Cuda compiler driver'\necho 'Copyright (c) 2005-2024 NVIDIA \
                 Corporation'\necho 'Built on Thu_Mar_28_02:18:24_PDT_2024'\necho 'Cuda compilation tools, release {short}, \
                 V{build}'\necho 'Build cuda_{short}.r{short}/compiler.34097967_0' ;;\n--dryrun)\necho '#$ \
                 TOP={top}/bin/..' >&2\necho '#$ INCLUDES=\"-I{top}/bin/../include\"' >&2 ;;\n*) exit 1 ;;\nesac",
                top = top.display()
            ),
        );
    }

    /// `cuda.h` alone.
    pub(crate) fn composed_headers(&self, include: &str, build: &str) {
        let mut numbers = build.split('.').map(|number| number.parse::<u32>().unwrap());
        let number = numbers.next().unwrap() * 1000 + numbers.next().unwrap() * 10;
        self.file(&format!("{include}/cuda.h"), format!("#ifndef __cuda_cuda_h__\n#define CUDA_VERSION {number}\n"));
    }

    /// libcudart alone: only its name is ever read.
    pub(crate) fn composed_cudart(&self, lib: &str, build: &str) {
        let mut numbers = build.split('.');
        let (major, minor) = (numbers.next().unwrap(), numbers.next().unwrap());
        let soname = match major {
            "10" => format!("{major}.{minor}"),
            "11" => "11.0".to_owned(),
            _ => major.to_owned(),
        };
        let file = format!("libcudart.so.{build}");
        self.file(&format!("{lib}/{file}"), "");
        symlink(&file, self.at(&format!("{lib}/libcudart.so.{soname}"))).unwrap();
        symlink(format!("libcudart.so.{soname}"), self.at(&format!("{lib}/libcudart.so"))).unwrap();
    }

    /// `[toolkit] require`, `[cudnn] require`.
    pub(crate) fn require(text: &str) -> Requirement {
        Requirement { text: text.to_owned(), parsed: text.parse().unwrap() }
    }

    /// Looks and judges, without a snapshot.
    pub(crate) fn tell(&self) -> Told {
        let toolchain = env::with(self.variables.clone(), || Toolchain::look(&self.request));
        let findings = judge::build::judge(&self.policy, &toolchain);
        for finding in &findings {
            assert!(!finding.hint.is_empty(), "a finding says what to do: {finding:?}");
        }
        for file in toolchain.files() {
            assert!(file.exists(), "{} was never read", file.display());
        }
        Told { toolchain, findings }
    }

    /// Looks, judges, compares the codes and severities with what is expected (`CG101 error`), and all that a user reads
    /// with the snapshot.
    pub(crate) fn expect(&self, codes: &[&str]) -> Told {
        let told = self.tell();
        let found: Vec<_> = told.findings.iter().map(|f| format!("{} {}", f.code, f.severity)).collect();
        let mut text = told.toolchain.render();
        for finding in &told.findings {
            text = text + "\n" + &finding.render() + "\n";
        }
        let names = [(self.root.path(), ""), (&*parts::folder(), "<parts>")];
        let text = snapshot::paths(&text, &names);
        assert_eq!(found, codes, "{text}");
        snapshot::check(&format!("toolchains/{}", self.name), &text);
        told
    }

    /// The same, and the whole answer of `check --json` in a snapshot of its own.
    pub(crate) fn expect_json(&self, codes: &[&str]) -> Told {
        let told = self.expect(codes);
        let names = [(self.root.path(), ""), (&*parts::folder(), "<parts>")];
        let text = snapshot::paths(&told.toolchain.to_json().pretty(), &names);
        let _: serde_json::Value = serde_json::from_str(&text).unwrap();
        snapshot::check(&format!("toolchains/{}.json", self.name), &text);
        told
    }
}
