//! Unreadable files and files without content: each is reported with the reason.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use cudaguard_tests::run::Call;
use cudaguard_tests::scratch::Scratch;
use cudaguard_tests::{command, e2e, fake_library, places, snapshot};

use super::toolkit_tools::Bench;

#[path = "../../fuzz/src/target.rs"]
mod target;

#[e2e]
fn uninspected_files_are_reported() {
    let dir = Scratch::new("awkward");
    dir.file("empty", "");
    dir.file("text", "#!/bin/sh\n");
    dir.file("ptx-to-be", ".version 8.0 // and no more\n");
    dir.file("elf-to-be", b"\x7fELF\x02\x01\x01");
    fs::create_dir(dir.path().join("folder")).unwrap();
    std::os::unix::fs::symlink("nothing", dir.path().join("link-to-nothing")).unwrap();
    let _ = Call::new("mkfifo").arg("fifo").dir(dir.path()).run().success();
    let locked = dir.file("locked", b"\x7fELF");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    let mut printed = String::new();
    for file in [
        "absent",
        "link-to-nothing",
        "folder",
        "fifo",
        "/dev/zero",
        "locked",
        "empty",
        "text",
        "ptx-to-be",
        "elf-to-be",
        "text/beyond",
    ] {
        // A privileged user drops its rights first.
        let call = if file == "locked" && fs::read(&locked).is_ok() {
            Call::new("setpriv").args(["--bounding-set=-all", "--inh-caps=-all"]).arg(command::path()).arg("inspect")
        } else {
            command::call(["inspect"])
        };
        // Files that would block or never end are not opened.
        let outcome = call.arg(file).dir(dir.path()).run().expect(2);
        assert!(outcome.stdout.is_empty() && outcome.stderr.contains(file), "{outcome}");
        printed += &outcome.stderr;
    }
    snapshot::check("kernels/awkward", &printed);
}

/// The fuzz targets read all inputs that the fuzzer has found.
#[e2e(slow)]
fn fuzzer_corpora_never_panic() {
    for (name, read) in target::ALL {
        let dir = places::workspace().join("tests/fuzz/corpus").join(name);
        let files: Vec<_> = fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() > 100, "{}", dir.display());
        for file in files {
            read(&fs::read(&file).unwrap());
        }
    }
}

/// Another process truncates the file after it is mapped. A preloaded library does this here, so that it happens in each
/// run.
#[e2e]
fn concurrently_truncated_file_is_an_error() {
    let dir = Scratch::new("cut-off");
    let file = dir.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &file).unwrap();
    let library = dir.path().join("libshortens.so");
    let source = r#"#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
void *mmap64(void *at, size_t length, int protection, int flags, int fd, long offset) {
    void *mapped = (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
    const char *name = getenv("SHORTEN");
    struct stat this, that;
    if (name && fd >= 0 && !fstat(fd, &this) && !stat(name, &that) && this.st_ino == that.st_ino && truncate(name, 0))
        abort();
    return mapped;
}
void *mmap(void *at, size_t length, int protection, int flags, int fd, long offset) {
    return mmap64(at, length, protection, flags, fd, offset);
}
"#;
    fake_library::shared_library("libshortens.so").source(source).make(&library);
    let call = command::call(["inspect"]).arg("program").dir(dir.path());
    let outcome = call.env("LD_PRELOAD", "./libshortens.so").env("SHORTEN", "program").run().expect(2);
    assert!(outcome.stdout.is_empty(), "{outcome}");
    snapshot::check("kernels/cut-off", &snapshot::paths(&outcome.stderr, &[(dir.path(), "<scratch>")]));
}

/// Inspects a sparse file that one section of constants covers, with memory for a quarter of it.
#[e2e]
fn large_file_needs_little_memory() {
    let dir = Scratch::new("sparse");
    let path = dir.file("sparse", sparse_head(SIZE));
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(SIZE).unwrap();
    // Limits the private memory, in KiB. Mapped files do not count.
    let script = format!("ulimit -d {} && exec \"$0\" inspect \"$1\"", SIZE / 4 / 1024);
    let outcome = Call::new("sh").args(["-c", &script]).arg(command::path()).arg(&path).run().expect(0);
    assert!(outcome.stdout.contains("no GPU code in this file"), "{outcome}");
}

/// Returns the headers of a program with one section of constants, from byte 64 to the end.
fn sparse_head(size: u64) -> Vec<u8> {
    let mut head = vec![0u8; 64 + 2 * 64];
    head[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    for (at, value) in [(16, 3u64), (18, 62), (40, 64), (52, 64), (58, 64), (60, 2)] {
        let width = if at == 40 { 8 } else { 2 };
        head[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }
    for (at, value) in [(4, 1), (8, 2), (24, 64), (32, size - 64)] {
        head[128 + at..128 + at + 8].copy_from_slice(&u64::to_le_bytes(value));
    }
    head
}

/// Inspects an endless text about PTX with less memory than its size.
#[e2e]
fn ptx_mentions_need_little_memory() {
    let dir = Scratch::new("flooded");
    let words = b".version 8.0 .target sm_80 ".repeat(4 << 20);
    let path = dir.file("flooded", [&sparse_head(64 + words.len() as u64 + 192), &words[..]].concat());
    let script = format!("ulimit -d {} && exec \"$0\" inspect --json \"$1\"", SIZE / 4 / 1024);
    let outcome = Call::new("sh").args(["-c", &script]).arg(command::path()).arg(&path).run().expect(0);
    assert!(outcome.stdout.contains("\"entries\": []"), "{outcome}");
}

/// `inspect` and `verify` accept the same files, and options in any order.
#[e2e]
fn file_kinds_are_recognized() {
    let corpus = places::workspace().join("tests/fuzz/corpus/kernels_read_bytes");
    for (name, kind, archs, verdict) in [
        ("fatbin", "GPU code", "sm_75", "runs"),
        ("cubin-7", "GPU code", "sm_90", "refused"),
        ("cubin-8", "GPU code", "sm_121", "refused"),
        ("ptx", "GPU code", "compute_90a", "refused"),
        ("object", "object", "sm_75", "runs"),
        // It also contains input for the device linker.
        ("archive", "static archive", "sm_75", "unknown"),
    ] {
        let file = corpus.join(name);
        let outcome = command::call(["inspect", "--json"]).arg(&file).run().expect(0);
        let listed = outcome.json();
        assert_eq!((listed["kind"].as_str(), &listed["components"]), (Some(kind), &serde_json::json!([])), "{outcome}");
        assert_eq!(listed["kernels"]["entries"][0]["arch"], archs, "{outcome}");
        for call in [
            command::call(["verify", "--json", "--gpu", "T4", "--driver", "590"]).arg(&file),
            command::call(["verify", "--json", "--driver", "590", "--gpu", "T4"]).arg(&file),
            command::call(["verify", "--gpu", "7.5", "T4"]).arg(&file).args(["--driver", "590", "--json"]),
            command::call(["verify"]).arg(&file).args(["--gpu", "sm_75", "--json", "--driver", "590"]),
        ] {
            let outcome = call.run();
            let listed = outcome.json();
            assert_eq!(listed["verdict"], verdict, "{name}: {outcome}");
        }
    }
    let dir = Scratch::new("every-kind");
    dir.file("empty.a", "!<arch>\n");
    dir.file("cut.fatbin", &fs::read(corpus.join("fatbin")).unwrap()[..200]);
    dir.file("cut.cubin", &fs::read(corpus.join("cubin-7")).unwrap()[..200]);
    dir.file("only.ltoir", fs::read(corpus.join("ltoir")).unwrap());
    let mut printed = String::new();
    // Machine code of CUDA 13, which needs a known driver.
    let bench = Bench::new("13.0");
    bench.nvcc("-cubin -arch=sm_80 alone.cu -o of-13.cubin");
    fs::copy(bench.path("of-13.cubin"), dir.path().join("of-13.cubin")).unwrap();
    for (file, status) in [("of-13.cubin", 0), ("empty.a", 0), ("cut.fatbin", 2), ("cut.cubin", 2), ("only.ltoir", 0)] {
        let outcome = command::call(["inspect", file]).dir(dir.path()).run().expect(status);
        printed.extend([outcome.stdout, outcome.stderr]);
        let outcome = command::call(["verify", "--gpu", "A100", file]).dir(dir.path()).run();
        printed.extend([outcome.stdout, outcome.stderr]);
    }
    snapshot::check("kernels/every-kind", &printed);
}

const SIZE: u64 = 128 << 20;
