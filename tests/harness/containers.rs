//! Generator of files with many GPU code containers.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Call;

/// Returns an object with `count` containers, which are copies of the container in `object`, in the form that nvcc
/// writes.
pub fn copies(dir: &Path, object: &Path, count: usize) -> PathBuf {
    let section = dir.join("container");
    let _ = Call::new("objcopy")
        .args(["-O", "binary", "--only-section=.nv_fatbin"])
        .args([object, &section])
        .run()
        .success();
    let mut text = String::new();
    for at in 0..count {
        let _ = writeln!(
            text,
            ".section .nv_fatbin,\"a\"\n.balign 8\nc{at}:\n.incbin \"{}\"\n.section .nvFatBinSegment,\"aw\"\n.balign 8\n\
             .long 0x466243b1, 1\n.quad c{at}, 0",
            section.display()
        );
    }
    let (source, copies) = (dir.join("copies.s"), dir.join(format!("copies-{count}.o")));
    fs::write(&source, text + ".section .note.GNU-stack,\"\",%progbits\n").expect("a file can be written");
    let _ = Call::new("cc").args(["-c", "-o"]).args([&copies, &source]).run().success();
    copies
}
