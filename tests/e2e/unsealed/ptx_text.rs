//! PTX text in the read-only data of unsealed programs: the start, the start of the sealed twin and `verify` agree.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::command::call;
use cudaguard_tests::world::{self, A100, MakeMachine as _, World};
use cudaguard_tests::{Call, Scratch, e2e, parts, tools};

use super::fixture::{Build, STATIC_CUDART, before_linking, nvcc, object, reported};

/// Returns an object with this text in its read-only data, behind this number of other bytes.
fn text_object(dir: &Path, text: &str, before: usize) -> PathBuf {
    let object = dir.join("text.o");
    fs::write(dir.join("text.ptx"), text).expect("written");
    let source = format!(
        ".section .rodata\n.globl text\n.zero {before}\ntext: .incbin \"{}\"\n.byte 0\n\
         .section .note.GNU-stack,\"\",%progbits\n",
        dir.join("text.ptx").display()
    );
    fs::write(dir.join("text.s"), source).expect("written");
    let _ = Call::new("cc").arg("-c").arg(dir.join("text.s")).arg("-o").arg(&object).run().success();
    object
}

/// Returns the PTX that nvcc 13.5 writes: ISA 9.5, which needs a driver that supports CUDA 13.5.
fn newest_ptx(dir: &Path) -> String {
    let (source, ptx) = (dir.join("text.cu"), dir.join("made.ptx"));
    fs::write(&source, "extern \"C\" __global__ void q(int *p) { *p = 2; }\n").expect("written");
    let made = nvcc(&parts::cuda("13.5")).args(["-ptx", "-arch=compute_80"]).arg(&source).arg("-o").arg(&ptx);
    let _ = made.run().success();
    let text = fs::read_to_string(ptx).expect("nvcc made it");
    assert!(text.contains(".version 9.5\n.target sm_80\n"), "{text}");
    text
}

/// Builds the twins with these objects.
fn twins(scratch: &Scratch, objects: &[PathBuf]) -> [PathBuf; 2] {
    world::need();
    tools::need_all(&["cc", "g++"]);
    let manifest = before_linking();
    Build { compiler: "cc", flags: &[], options: &["-Wl,-u,text"], manifest: &manifest }.make(scratch.path(), objects)
}

/// Starts the unsealed program on this driver with an A100, and returns its output. Asserts whether it is refused, and
/// that `verify` gives the same answer.
fn started(unsealed: &Path, release: &'static str, cuda: u32, refused: bool) -> String {
    let place = Scratch::new("unsealed-world");
    let machine = World::new(release, cuda, &[A100]).make(&place.join("world"));
    let (text, _) = reported(&place, &machine, unsealed, &[]);
    assert_eq!(text.starts_with("status Some(78)"), refused, "{release}: {text}");
    let verified = call(["verify", "--driver", release, "--gpu", "A100"]).arg(unsealed).run();
    assert_eq!(verified.status() == Some(1), refused, "{release}: {verified}");
    text
}

/// The layout of candle: machine code in containers, and PTX text of a newer toolkit.
#[e2e]
fn ptx_text_needs_driver() {
    let scratch = Scratch::without_blanks("unsealed");
    let ptx = newest_ptx(scratch.path());
    let objects =
        [object(scratch.path(), "k", "-gencode arch=compute_80,code=sm_80"), text_object(scratch.path(), &ptx, 0)];
    let [unsealed, sealed] = twins(&scratch, &objects);
    for (release, cuda, refused) in [("580.95.05", 13000, true), ("620.70.06", 13050, false)] {
        let text = started(&unsealed, release, cuda, refused);
        let place = Scratch::new("unsealed-world");
        let machine = World::new(release, cuda, &[A100]).make(&place.join("world"));
        let twin = reported(&place, &machine, &sealed, &[]).0;
        assert_eq!(text.replace("/unsealed/", "/sealed/"), twin, "{release}");
        let named = text
            .contains("error[CG302]: the driver is too old for sm_80 and PTX text 9.5 on compute capability 8.0")
            && text.contains("or compile the PTX text with an older toolkit");
        assert_eq!(named, refused, "{text}");
    }
}

/// The layout of a program that opens libcuda by name and contains only PTX text.
#[e2e]
fn ptx_text_alone_needs_driver() {
    let scratch = Scratch::without_blanks("unsealed");
    let ptx = newest_ptx(scratch.path());
    let [unsealed, _] = twins(&scratch, &[text_object(scratch.path(), &ptx, 0)]);
    let text = started(&unsealed, "580.95.05", 13000, true);
    assert!(text.contains("error[CG302]: the driver is too old for compute_80 on compute capability 8.0"), "{text}");
    let _ = started(&unsealed, "620.70.06", 13050, false);
    // Nothing shows whether a static cudart is linked.
    let place = Scratch::new("unsealed-world");
    let machine = World::new("620.70.06", 13050, &[A100]).make(&place.join("world"));
    let outcome = machine.call(&unsealed, &[]).arg("check").dir(place.path()).run().success();
    assert!(outcome.stdout.contains(STATIC_CUDART), "{outcome}");
}

/// Text about PTX, and templates whose numbers are filled in at run time, are not PTX. Modules that set conditions of CUDA graphs require
/// nothing.
#[e2e(slow)]
fn ptx_header_is_strict() {
    const KERNEL: &str = ".address_size 64\n.visible .entry q() { ret; }\n";
    const CONDITION: &str = ".extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);\n";
    let rows = [
        (format!(".version 9.5\n.target sm_80\n{KERNEL}"), true),
        (format!("//\n// Generated\n//\n.version 9.5 // newest\n.target sm_80, debug\n{KERNEL}"), true),
        (format!(".version 9.5\n.target sm_80a\n{KERNEL}"), true),
        (format!(".version 7.0\n.target sm_80\n{KERNEL}"), false),
        (format!(".version %d.%d\n.target sm_80\n{KERNEL}"), false),
        (format!(".version 9.5\n.target sm_{{}}\n{KERNEL}"), false),
        (format!(".version 9.5\n.address_size 64\n{KERNEL}"), false),
        (".version 9.5\n.target sm_80\n.address_size 64\n".to_owned(), false),
        (format!(".version 9.5 is followed by .target sm_80\n{KERNEL}"), false),
        (format!(".version 9.5\n.target sm_80\n{KERNEL}{CONDITION}"), false),
        (format!(".version 9.5\n.target sm_80\n{KERNEL}.version 7.0\n.target sm_80\n{KERNEL}{CONDITION}"), true),
        (format!(".version 7.0\n.target sm_80\n{KERNEL}.version 9.5\n.target sm_80\n{KERNEL}{CONDITION}"), false),
    ];
    let made = Scratch::without_blanks("unsealed");
    let kernel = object(made.path(), "k", "-gencode arch=compute_80,code=sm_80");
    for (at, (text, refused)) in rows.into_iter().enumerate() {
        let others = if at % 2 == 0 { vec![kernel.clone()] } else { Vec::new() };
        let scratch = Scratch::without_blanks("unsealed");
        let [unsealed, _] = twins(&scratch, &[others, vec![text_object(scratch.path(), &text, 0)]].concat());
        let _ = started(&unsealed, "580.95.05", 13000, refused);
    }
}
