//! A FIFO, a socket, a directory, a device, a symbolic link to itself or a sparse file of a terabyte replaces each file
//! that the command reads. The command reports it or continues without it. It never blocks and never reads endlessly.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use cudaguard::internal::toolchain::SYSROOT;
use cudaguard_tests::{Call, Scratch, command, e2e, places, project, scratch, skip};

const ODD: [&str; 6] = ["fifo", "socket", "folder", "device", "loop", "huge"];

/// Returns two kinds for the file with this number, so that all kinds occur among three files.
fn two_kinds(number: usize) -> [&'static str; 2] {
    [ODD[number % 6], ODD[(number + 3) % 6]]
}

/// Creates a special file of this kind.
fn put(kind: &str, path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir_all(path);
    fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
    match kind {
        "fifo" => {
            let _ = Call::new("mkfifo").arg(path).run().success();
        }
        // The path of a socket is limited to 108 bytes.
        "socket" => {
            let dir = fs::File::open(path.parent().expect("it has a folder")).expect("a folder");
            let short = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string());
            drop(UnixListener::bind(short.join(path.file_name().expect("a name"))).expect("a socket"));
        }
        "folder" => fs::create_dir(path).expect("a folder"),
        "device" => symlink("/dev/zero", path).expect("a link"),
        "loop" => symlink(path.file_name().expect("a name"), path).expect("a link"),
        _ => {
            let file = fs::File::create(path).expect("a file");
            if file.set_len(1 << 40).is_err() {
                skip("files with holes", "a file system that has them");
            }
        }
    }
}

/// Checks that the command ends soon, with one of its statuses, with a message on errors, and without a panic.
#[track_caller]
fn ends(call: Call, what: &str) {
    let outcome = call.env("CARGO_NET_OFFLINE", "true").run();
    assert!(matches!(outcome.status(), Some(0..=3 | 78)), "{what}: {outcome}");
    assert!(outcome.status() != Some(2) || outcome.stderr.contains("error: "), "{what}: {outcome}");
    for word in ["panicked", "out of memory"] {
        assert!(!outcome.stderr.contains(word), "{what}: {outcome}");
    }
}

fn call(words: &[&str], scratch: &Scratch) -> Call {
    let call = command::call(words).dir(scratch.path()).env(SYSROOT, scratch.join("nothing"));
    project::LEAD_ELSEWHERE.iter().fold(call, Call::env_remove)
}

#[e2e(slow)]
fn only_named_files_are_opened() {
    let scratch = Scratch::new("odd-named");
    let odd = scratch.join("odd");
    let program = command::path().to_str().expect("UTF-8");
    for kind in ODD {
        put(kind, &odd);
        for words in [
            &["inspect", "odd"][..],
            &["verify", "odd"],
            &["verify", "odd", "--driver", "535", "--gpu", "T4"],
            &["verify", program, "--host", "odd"],
            &["verify", program, "--fleet", "odd", "--json"],
            &["doctor", "odd"],
            &["exec", "--", "./odd"],
            &["seal", "odd"],
            &["seal", "odd", "--guard", "odd"],
            &["man", "odd"],
            &["cmake", "install", "--prefix", "odd"],
        ] {
            // Deletes the files that a subcommand wrote into a directory.
            if kind == "folder" {
                put(kind, &odd);
            }
            // A list of machines has no size limit, so this one is read to its end.
            if kind != "huge" || !words.contains(&"--fleet") {
                ends(call(words, &scratch), &format!("{kind} {words:?}"));
            }
        }
    }
}

fn package(scratch: &Scratch) {
    scratch.file("Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n");
    scratch.file("src/main.rs", "fn main() {}\n");
}

/// Files that cargo reads first are not covered.
#[e2e(slow)]
fn project_files_are_opened() {
    let core = places::workspace().join("guard-core");
    let core = core.to_str().expect("UTF-8");
    for (number, (file, words)) in [
        ("cudaguard.toml", &["check"][..]),
        ("cudaguard.lock", &["check"]),
        ("cudaguard.lock", &["lock"]),
        ("cudaguard.toml", &["init", "--path", core]),
        ("build.rs", &["init", "--path", core]),
        ("src/kernels.cu", &["check"]),
        ("CMakeLists.txt", &["init", "--cmake"]),
    ]
    .into_iter()
    .enumerate()
    {
        for kind in two_kinds(number) {
            let scratch = Scratch::new("odd-project");
            // The repository of these tests is in a parent directory, and `init` would write to it.
            scratch.file(".git/HEAD", "ref: refs/heads/main\n");
            package(&scratch);
            put(kind, &scratch.join(file));
            ends(call(words, &scratch), &format!("{kind} {file} {words:?}"));
        }
    }
}

/// `check` finds the files by variables, and `embed` by options.
#[e2e(slow)]
fn toolkit_files_are_opened() {
    let parts = [
        ("version.json", "{\"cuda\":{\"version\":\"12.4.1\"}}"),
        ("include/cuda.h", "#define CUDA_VERSION 12040\n"),
        ("include/cudnn_version.h", "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n"),
        ("bin/nvcc", "#!/bin/sh\necho 'Cuda compilation tools, release 12.4, V12.4.131'\n"),
        ("bin/nvcc.profile", "TOP = $(_HERE_)/..\n"),
        ("lib64/libcudart.so", ""),
        ("lib64/libcudart_static.a", "!<arch>\n"),
        ("lib64/libcudnn.so.9", ""),
        ("lib64/pkgconfig/cuda-12.4.pc", "cudaroot=/nowhere\n"),
    ];
    for (number, (file, _)) in parts.into_iter().enumerate() {
        for kind in two_kinds(number) {
            let scratch = Scratch::new("odd-toolkit");
            package(&scratch);
            for (part, text) in parts {
                scratch::write(&scratch.join("cuda").join(part), text);
            }
            let _ = Call::new("chmod").arg("+x").arg(scratch.join("cuda/bin/nvcc")).run().success();
            put(kind, &scratch.join("cuda").join(file));
            let root = scratch.join("cuda");
            let check = call(&["check"], &scratch).env("CUDA_HOME", &root).env("CUDNN_PATH", &root);
            let check = check.env("LIBRARY_PATH", root.join("lib64"));
            ends(check.env("PKG_CONFIG_PATH", root.join("lib64/pkgconfig")), &format!("{kind} {file}"));
        }
    }
}

/// Replaces a library of the machine, and the files that variables name.
#[e2e(slow)]
fn host_files_are_opened() {
    let scratch = Scratch::new("odd-machine");
    package(&scratch);
    for kind in ODD {
        for library in ["libcuda.so.1", "libcudnn.so.9", "libcudnn_graph.so.9", "libcudart.so.13"] {
            let _ = fs::remove_dir_all(scratch.join("lib"));
            put(kind, &scratch.join("lib").join(library));
            for verb in ["probe", "doctor"] {
                ends(
                    call(&[verb], &scratch).env("LD_LIBRARY_PATH", scratch.join("lib")),
                    &format!("{kind} {library} {verb}"),
                );
            }
        }
        put(kind, &scratch.join("odd"));
        for variable in ["NVCC", "CUDA_HOME", "CUDA_PATH", "CUDNN_PATH", "NVCC_CCBIN", SYSROOT] {
            ends(call(&["check"], &scratch).env(variable, scratch.join("odd")), &format!("{kind} {variable}"));
        }
    }
}

#[e2e]
fn embed_files_are_opened() {
    let scratch = Scratch::new("odd-embed");
    let embed = ["embed", "--name", "app", "-o"];
    for kind in ODD {
        for words in [
            &["guard.c", "--policy", "odd"][..],
            &["guard.c", "--depfile", "odd"],
            &["guard.c", "--nvcc", "odd"],
            &["guard.c", "--toolkit", "odd"],
            &["guard.c", "-I", "odd", "-L", "odd"],
            &["odd.c"],
        ] {
            for odd in ["odd", "odd.c"] {
                put(kind, &scratch.join(odd));
            }
            ends(call(&[&embed, words].concat(), &scratch), &format!("{kind} {words:?}"));
        }
        // The facts file next to a guard.
        let _ = fs::remove_file(scratch.join("guard.c"));
        let _ = call(&["embed", "--name", "app", "-o", "guard.c"], &scratch).run().success();
        put(kind, &scratch.join("guard.c.facts"));
        let program = command::path().to_str().expect("UTF-8");
        ends(call(&["seal", program, "--guard", "guard.c", "-o", "sealed"], &scratch), &format!("{kind} facts"));
        let _ = fs::remove_dir_all(scratch.join("guard.c.facts"));
        let _ = fs::remove_file(scratch.join("guard.c.facts"));
    }
}
