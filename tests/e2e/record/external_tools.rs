//! Contents of a linked file as other tools show them: NVIDIA's cuobjdump and readelf, and machine code.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cudaguard_tests::{Call, Scratch, parts, tools};

/// Returns the toolkit releases that compiled the cubins in a file.
pub(crate) fn makers(file: &Path) -> BTreeSet<String> {
    let scratch = Scratch::new("cubins");
    let dump = Call::new(parts::cuda("13.2").join("bin/cuobjdump")).args(["-xelf", "all"]).arg(file);
    let _ = dump.dir(scratch.path()).run().success();
    let cubins = fs::read_dir(scratch.path()).expect("a folder").map(|entry| entry.expect("a file").path());
    cubins.map(|cubin| maker(&cubin)).collect()
}

/// Returns the release that compiled a cubin. A cubin of CUDA 13 has a note; an older one has a version in its header,
/// where 0x76 is 11.8.
fn maker(cubin: &Path) -> String {
    let readelf = |words: &[&str]| Call::new(tools::need("readelf")).args(words).arg(cubin).run().success().stdout;
    let note = readelf(&["-p", ".note.nv.tkinfo"]);
    if let Some((_, release)) = note.split_once("Cuda compilation tools, release ") {
        return release.split(',').next().expect("a release").to_owned();
    }
    let header = readelf(&["-h"]);
    let mut versions =
        header.lines().filter_map(|line| line.trim().strip_prefix("Version:")?.trim().strip_prefix("0x"));
    let version = u32::from_str_radix(versions.next_back().expect("e_version"), 16).expect("a number");
    format!("{}.{}", version / 10, version % 10)
}

/// Returns true if a file contains the code of a static cudart of this release: `movl $13000,(%rdi)` for 13.0, twice.
pub(crate) fn has_cudart(file: &Path, release: &str) -> bool {
    let (major, minor) = release.split_once('.').expect("a release");
    let number = major.parse::<u32>().expect("a number") * 1000 + minor.parse::<u32>().expect("a number") * 10;
    let store = [&[0xc7, 0x07][..], &number.to_le_bytes()].concat();
    let bytes = fs::read(file).expect("a linked file");
    bytes.windows(store.len()).filter(|window| *window == store).count() == 2
}
