//! Guarded programs without cargo: a manifest, its note and the shim, linked by gcc.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_cudaguard::binary::dlopen_note::note_text;
use cargo_cudaguard::knowledge::vendor::CUDNN;
use cudaguard::internal::cudnn;
use cudaguard::internal::env::Env;
use cudaguard::internal::guard::{self, GuardObjects, NoteSource};
use cudaguard::internal::manifest::{BuiltWith, Component, Linkage, Manifest, Requirement};
use cudaguard::internal::note;
use cudaguard::internal::policy::Runtime;
use cudaguard::internal::version::Version;
use cudaguard_tests::parts;
use cudaguard_tests::run::unless_busy;

/// Returns the target of this machine.
fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Returns a manifest of this component, built with this cuDNN.
pub(crate) fn manifest(component: &str, built: Version, linkage: Linkage) -> Manifest {
    let mut requires = vec![Requirement::Library {
        min: Version::new(built.major, built.minor, 0),
        below: Version::new(built.major + 1, 0, 0),
        built,
        soname: CUDNN.soname(built),
        linkage,
        patch_refuse: false,
        required: false,
    }];
    requires.extend(cudnn::needed_parts(built.major).map(Requirement::for_part));
    Manifest {
        component: Component { name: component.to_owned(), version: "0.1.0".to_owned() },
        cudaguard: "0.1.0".to_owned(),
        target: target(),
        profile: "release".to_owned(),
        toolkit: Some(Version::new(13, 0, 0)),
        toolkit_known: None,
        other_toolkits: Vec::new(),
        library: Some(BuiltWith { version: built, linkage }),
        library_known: None,
        library_linked: None,
        cudart: None,
        declared: Vec::new(),
        observed: None,
        host_compiler: None,
        runtime: Runtime::default(),
        partial_refuse: false,
        allow: Vec::new(),
        opens: Vec::new(),
        sealed: false,
        requires,
    }
}

/// Builds the objects to link for these manifests: a note for each, and one shim.
pub(crate) fn objects(dir: &Path, manifests: &[Manifest]) -> Vec<PathBuf> {
    objects_for(dir, manifests, &target())
}

/// Builds the objects for another target.
pub(crate) fn objects_for(dir: &Path, manifests: &[Manifest], target: &str) -> Vec<PathBuf> {
    let mut objects = Vec::new();
    let shims = dir.join("shims");
    for (index, manifest) in manifests.iter().enumerate() {
        let dir = dir.join(format!("guard-{index}"));
        std::fs::create_dir_all(&dir).unwrap();
        let descriptor = note::encode(manifest).unwrap();
        let dlopen = note_text(manifest);
        let source = NoteSource { descriptor: &descriptor, component: &manifest.component, dlopen: dlopen.as_deref() };
        match guard::compile_guard(&Env::from_process(), source, target, &dir, &shims).unwrap() {
            GuardObjects::Objects { note, shim } => {
                if objects.is_empty() {
                    objects.push(shim);
                }
                objects.push(note);
            }
            GuardObjects::Unguarded(why) => panic!("{why}"),
        }
    }
    objects
}

/// Links these objects with this C text. Returns the linker's output as an error.
pub(crate) fn link(text: &str, output: &Path, objects: &[PathBuf], arguments: &[String]) -> Result<(), String> {
    let source = output.with_extension("c");
    std::fs::write(&source, text).unwrap();
    let done = Command::new("gcc")
        .arg("-o")
        .arg(output)
        .arg(&source)
        .args(objects)
        .args(arguments)
        .args(["-ldl"])
        .output()
        .unwrap();
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}

/// Returns the cuDNN that programs are linked with.
pub(crate) fn library() -> String {
    parts::cudnn("9.15.1").join("lib/libcudnn.so.9").display().to_string()
}

/// Builds a program from this C text, linked with that library.
pub(crate) fn program(dir: &Path, text: &str, objects: &[PathBuf], options: &[&str]) -> PathBuf {
    let program = dir.join("prog");
    let mut arguments = vec![library(), "-Wl,--allow-shlib-undefined".to_owned()];
    arguments.extend(options.iter().map(|option| (*option).to_owned()));
    link(text, &program, objects, &arguments).unwrap_or_else(|error| panic!("{options:?}: {error}"));
    program
}

/// Exit status, stdout and stderr.
pub(crate) type Ended = (Option<i32>, String, String);

/// Starts a program with these libraries and only these variables.
pub(crate) fn started(program: &Path, libraries: &Path, variables: &[(&str, &str)]) -> Ended {
    let mut command = Command::new(program);
    command.env_clear().env("LD_LIBRARY_PATH", libraries).env("LC_ALL", "C");
    command.envs(variables.iter().copied());
    let ended = unless_busy(|| command.output()).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ended.status.code(), text(&ended.stdout), text(&ended.stderr))
}
