//! The guard for Windows: a PE image has no notes, so the note is in the section `.cudagd`, and an initializer of the C runtime starts the shim.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{GuardCompiler, NoGuard, NoteSource, inline_includes_of};
use crate::manifest::model::{Linkage, Manifest, Requirement};
use crate::manifest::note::{OWNER, SIZE, TYPE};
use crate::sys::env::Env;

/// The section of the note. An image keeps eight characters of a name.
pub const SECTION: &str = ".cudagd";

/// Linker arguments that must follow the objects: rustc puts them after all libraries, and GNU ld does not search earlier
/// libraries again.
pub fn link_arguments(target: &str) -> &'static [&'static str] {
    match (is_windows(target), is_msvc(target)) {
        (false, _) => &[],
        (true, true) => &["kernel32.lib"],
        (true, false) => &["-lmsvcrt", "-lkernel32"],
    }
}

/// Returns linker arguments that delay-load cuDNN and cudart, so that the guard and not the loader reports a missing DLL or function.
/// The linkers of MSVC's ABI support this; GNU ld does not.
pub fn delay_load_arguments(manifest: &Manifest) -> Vec<String> {
    if !is_windows(&manifest.target) || !is_msvc(&manifest.target) {
        return Vec::new();
    }
    let linked = manifest.requires.iter().filter_map(|row| match row {
        Requirement::Library { soname, linkage: Linkage::Linked, .. } => Some(soname.clone()),
        _ => None,
    });
    let sonames = linked.chain(manifest.shared_cudart().map(|(soname, _)| soname));
    let mut arguments: Vec<String> =
        sonames.filter_map(|soname| Some(format!("/delayload:{}", dll_of_soname(&soname)?))).collect();
    if !arguments.is_empty() {
        arguments.push("delayimp.lib".to_owned());
    }
    arguments
}

/// Returns the DLL of a library of NVIDIA's: `libcudnn.so.9` is `cudnn64_9.dll`, `libcudart.so.11.0` is `cudart64_110.dll`.
fn dll_of_soname(soname: &str) -> Option<String> {
    let (stem, number) = soname.strip_prefix("lib")?.split_once(".so.")?;
    Some(format!("{stem}64_{}.dll", number.replace('.', "")))
}

/// The files of the shim for Windows.
pub(super) const PARTS: &[(&str, &str)] = parts!(
    "attributes.h" "windows/platform.h" "tables.h" "note_layout.h" "coverage.h" "findings.h" "judge.h"
    "windows/context.h" "shim.h" "text.c" "notes.c" "coverage.c" "findings.c" "judge.c" "verdict.c" "report.c"
    "windows/process.c" "windows/objects.c" "windows/detection.c" "windows/entry.c"
);

pub(super) const WHOLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/shim_windows.c"));

/// Returns true if files of this target are PE images.
pub fn is_windows(target: &str) -> bool {
    target.split('-').any(|part| part == "windows")
}

fn is_msvc(target: &str) -> bool {
    target.ends_with("-msvc")
}

/// Checks whether files of this target for Windows can contain the guard.
pub(super) fn check_target(target: &str) -> Result<(), NoGuard> {
    let is_supported = target.starts_with("x86_64-") && (target.ends_with("-gnu") || is_msvc(target));
    if is_supported { Ok(()) } else { Err(NoGuard::Windows(target.to_owned())) }
}

/// Returns the source of the shim: `templates/shim_windows.c` with its parts inserted.
pub fn shim_source() -> String {
    "#line 2 \"cudaguard.c\"\n".to_owned() + &inline_includes_of(WHOLE, PARTS)
}

/// Returns the note as C: the same header and descriptor as in an ELF file.
///
/// The TLS callback does nothing. It refers to the note, and no linker discards `.CRT$XL*`, so the note stays, too. There is no COMDAT
/// group: an object that is linked twice gives two equal notes, and readers use one of them.
pub fn note_in_c(note: NoteSource<'_>) -> String {
    let mut bytes = Vec::new();
    for number in &[OWNER.len(), SIZE, TYPE as usize] {
        bytes.extend_from_slice(&u32::try_from(*number).unwrap_or_default().to_le_bytes());
    }
    bytes.extend_from_slice(OWNER);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend_from_slice(note.descriptor);
    let mut text = format!(
        "__attribute__((section(\"{SECTION}\"), used, aligned(8))) static const unsigned char cudaguard_note[] = {{"
    );
    for line in bytes.chunks(32) {
        text.push('\n');
        for byte in line {
            let _ = write!(text, "{byte},");
        }
    }
    text.push_str(
        "};\n\
         static void cudaguard_keep(void *module, unsigned reason, void *unused) {\n\
         \x20 __asm__ volatile(\"\" : : \"r\"(cudaguard_note));\n\
         }\n\
         __attribute__((section(\".CRT$XLB\"), used)) static void (*const cudaguard_kept)(void *, unsigned, void *) =\n\
         \x20   cudaguard_keep;\n",
    );
    text
}

/// The flags of the guard's own code.
pub(super) fn own_flags(is_clang: bool, language: &str) -> Vec<&'static str> {
    let mut flags = vec![if is_clang { "-Oz" } else { "-Os" }, "-g0", "-w", "-c"];
    // GNU ld puts the sections of zero-initialised variables into the file.
    flags.extend_from_slice(&["-fno-data-sections", "-fno-function-sections"]);
    if language == "c" {
        flags.extend_from_slice(&[
            "-x",
            "c",
            "-std=gnu11",
            "-ffreestanding",
            "-fno-lto",
            "-fno-stack-protector",
            "-mno-stack-arg-probe",
        ]);
        flags.extend_from_slice(&["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]);
    }
    flags
}

/// Returns true for an object of this processor: the linker of Windows accepts it.
pub(super) fn is_object(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x64, 0x86])
}

/// Finds the compiler for MSVC's ABI. It must be a clang, because the shim has inline assembly. `CC_<target>` and `CC` may name one,
/// also as `clang-cl`.
pub(super) fn detect_clang(env: &Env, target: &str) -> Option<Result<GuardCompiler, NoGuard>> {
    if !is_msvc(target) {
        return None;
    }
    let variables = [format!("CC_{target}"), format!("CC_{}", target.replace('-', "_")), "CC".to_owned()];
    let mut named = variables.iter().filter_map(|name| env.var_os(name)).map(PathBuf::from);
    let named = named
        .find(|program| program.file_stem().is_some_and(|name| name.to_string_lossy().contains("clang")))
        .or_else(|| {
            let dirs = env.path_list("PATH");
            ["clang", "clang.exe", "clang-cl", "clang-cl.exe"]
                .iter()
                .find_map(|name| dirs.iter().map(|dir| dir.join(name)).find(|file| file.is_file()))
        });
    Some(match named {
        Some(program) => {
            let flags = ["--driver-mode=gcc".into(), format!("--target={target}").into()];
            Ok(GuardCompiler {
                program,
                is_clang: true,
                flags: flags.into(),
                target: target.to_owned(),
                is_fast: false,
            })
        }
        None => Err(NoGuard::NoClang(target.to_owned())),
    })
}

/// Returns the name of the archive of both objects, as the linker of the target searches it.
pub fn archive_path(dir: &Path, target: &str, name: &str) -> PathBuf {
    dir.join(if is_msvc(target) { format!("{name}.lib") } else { format!("lib{name}.a") })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::policy::Policy;
    use crate::manifest::model::{BuiltWith, Component};
    use crate::model::version::Version;
    use crate::toolchain::Toolchain;

    #[test]
    fn supported_windows_targets_are_recognized() {
        for good in ["x86_64-pc-windows-gnu", "x86_64-pc-windows-msvc"] {
            assert_eq!(check_target(good), Ok(()), "{good}");
        }
        for bad in
            ["i686-pc-windows-msvc", "aarch64-pc-windows-msvc", "x86_64-pc-windows-gnullvm", "x86_64-uwp-windows-x"]
        {
            assert!(check_target(bad).unwrap_err().to_string().contains(bad), "{bad}");
        }
    }

    #[test]
    fn linked_cudnn_is_delay_loaded() {
        let arguments = |target: &str, linkage: Linkage| {
            let (component, policy) = (Component::unrecorded("app"), Policy::default());
            let mut manifest = Manifest::from_build(component, target, "", &policy, &Toolchain::default());
            let built = BuiltWith { version: Version::new(9, 15, 1), linkage };
            manifest.requires.extend(built.requirement_rows(&policy));
            delay_load_arguments(&manifest)
        };
        let msvc = "x86_64-pc-windows-msvc";
        assert_eq!(arguments(msvc, Linkage::Linked), ["/delayload:cudnn64_9.dll", "delayimp.lib"]);
        for (target, linkage) in [
            ("x86_64-pc-windows-gnu", Linkage::Linked),
            (msvc, Linkage::Dlopened),
            ("x86_64-unknown-linux-gnu", Linkage::Linked),
        ] {
            assert_eq!(arguments(target, linkage), [""; 0], "{target}");
        }
    }

    #[test]
    fn windows_shim_contains_all_parts() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/shim/windows");
        let joined = shim_source();
        for entry in fs::read_dir(&dir).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            assert!(joined.contains(text.lines().next().unwrap()));
        }
        assert!(!joined.contains("#include \""), "a part that the library does not hold");
        assert!(!joined.contains("/proc/"), "a part of Linux");
    }
}
