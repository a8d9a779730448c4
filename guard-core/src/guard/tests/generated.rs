//! Generates the parts of the shim that depend on other data in this library. To rewrite the files, run
//! `CUDAGUARD_BLESS=1 cargo test -p cudaguard --all-features --lib generated`.

use std::fmt::{Display, Write as _};
use std::fs;
use std::path::Path;

use crate::knowledge::cudnn;
use crate::knowledge::tables::pci;
use crate::knowledge::tables::{self, Cc, Floor};
use crate::manifest::model::REVISION;
use crate::manifest::note::layout::{self, Field, Kind};
use crate::model::arch::Suffix;
use crate::model::version::{CudaVersion, DriverRelease};

fn c_struct(name: &str, fields: &[Field]) -> String {
    let mut text = format!("\nstruct {name} {{\n");
    for Field { name, kind } in fields {
        let _ = match kind {
            Kind::Magic => writeln!(text, "  char {name}[8];"),
            Kind::U8 => writeln!(text, "  uint8_t {name};"),
            Kind::U16 => writeln!(text, "  uint16_t {name};"),
            Kind::U32 => writeln!(text, "  uint32_t {name};"),
            Kind::Text => writeln!(text, "  struct text_ref {name};"),
        };
    }
    text + "};\n"
}

fn c_constants<T: Display>(list: &[(&str, T)]) -> String {
    let all: Vec<String> = list.iter().map(|(name, value)| format!("  {name} = {value},\n")).collect();
    format!("enum {{\n{}}};\n", all.concat())
}

/// Formats a header with this name, with its include guard after its first comment.
fn header(name: &str, comment: &str, body: &str) -> String {
    let guard = format!("CUDAGUARD_{}", name.to_uppercase().replace('.', "_"));
    format!("{comment}\n#ifndef {guard}\n#define {guard}\n\n{}\n\n#endif\n", body.trim())
}

fn note_layout() -> String {
    let comment = "/* Generated from guard-core/src/manifest/note/layout.rs: the layout of a note's descriptor. MANIFEST.md\n \
                   * documents each value. `CUDAGUARD_BLESS=1 cargo test -p cudaguard --lib generated` writes it. */";
    let mut text = "#include <stdint.h>\n\n\
                    /* A text: the offset of its bytes in the descriptor, and how many there are. */\n\
                    struct text_ref {\n  uint16_t at, length;\n};\n"
        .to_owned();
    text += &c_struct("note_head", layout::head::FIELDS);
    text += &c_struct("library_row", layout::library_row::FIELDS);
    text += &c_struct("part_row", layout::part_row::FIELDS);
    text += &c_struct("driver_row", layout::driver_row::FIELDS);
    text += &c_struct("gpu_row", layout::gpu_row::FIELDS);
    let sizes = [("HEAD_SIZE", layout::head::SIZE), ("ROW_SIZE", layout::ROW_SIZE)];
    let _ = write!(text, "\nenum {{ REVISION = {REVISION} }};\n{}", c_constants(&sizes));
    text += &c_constants(layout::ROW_KINDS);
    text += &c_constants(layout::LIBRARY_FLAGS);
    text += &c_constants(layout::GPU_FLAGS);
    text += &c_constants(layout::MISMATCHES);
    text += &c_constants(layout::GPU_NEEDS);
    text += &c_constants(layout::LIBRARIES);
    text += &c_constants(layout::ARCHS);
    text += &c_constants(layout::PARTIALS);
    header("note_layout.h", comment, &text)
}

fn pci_ranges() -> String {
    let comment = "/* From guard-core/data/pci.toml: PCI device ids of NVIDIA's GPUs, first and last, and\n \
                   * their compute capability. */";
    let mut text = "#define PCI_RANGES(X)".to_owned();
    for (first, last, (major, minor)) in pci::PCI_RANGES {
        let _ = write!(text, " \\\n  X({first:#06x}, {last:#06x}, {major} << 8 | {minor})");
    }
    format!("{comment}\n{text}")
}

fn arch_makers() -> String {
    let comment = "/* From guard-core/data/archs.toml: the first and the last toolkit that compiles for a\n \
                   * compute capability. A last one of 0: the newest toolkit still does. */";
    let mut text = "#define ARCH_MAKERS(X)".to_owned();
    let number = |cuda: CudaVersion| cuda.major * 1000 + cuda.minor * 10;
    for row in tables::arch_rows().iter().filter(|row| row.arch.suffix == Suffix::None) {
        let (major, minor) = row.cc;
        let (first, last) = (number(row.first), row.last.map_or(0, number));
        let _ = write!(text, " \\\n  X({major} << 8 | {minor}, {first}, {last})");
    }
    format!("{comment}\n{text}")
}

/// Generates the tables that the shim needs to check unsealed kernels: oldest drivers, and the GPUs outside of the
/// general rule.
fn kernel_tables() -> String {
    // Each kind uses its own range of numbers, so that one search serves all: the first row that is not below the
    // number.
    let mut floors: Vec<(u32, Floor)> = Vec::new();
    for major in [12, 13] {
        floors.push((major, tables::zstandard_floor(major).expect("a floor")));
    }
    let mut isas: Vec<(u32, u32)> = tables::toolkit_rows().iter().map(|row| row.ptx).collect();
    isas.extend((4..7).flat_map(|major| (0..10).map(move |minor| (major, minor))));
    isas.sort_unstable();
    isas.dedup();
    let ptx: Vec<_> = isas.iter().map(|isa| (isa.0 << 8 | isa.1, tables::ptx_floor(*isa))).collect();
    for (at, (of, floor)) in ptx.iter().enumerate() {
        // A row also applies to all numbers below it.
        if ptx.get(at + 1).is_none_or(|(_, next)| next != floor) {
            floors.push((*of, *floor));
        }
    }
    floors.push((0xfff, tables::ptx_floor((15, 255))));
    let mut put = |of: u32, floor: Floor| match floors.last_mut() {
        Some((last, same)) if *same == floor => *last = of,
        _ => floors.push((of, floor)),
    };
    let released = tables::toolkit_rows().iter().map(|row| row.version);
    // Releases that do not exist yet have the floor of their major.
    let later = (11..=13).map(|major| CudaVersion::new(major, 99));
    let mut cudarts: Vec<CudaVersion> = released.filter(|version| version.major <= 13).chain(later).collect();
    cudarts.sort_unstable();
    for cudart in cudarts {
        put(cudart.to_int(), tables::cudart_floor(cudart));
    }
    let mut text =
        "/* The oldest driver for: Zstandard that CUDA 12 or 13 wrote; PTX by its ISA, major << 8 | minor; a\n \
                    * cudart by its version: the CUDA that it supports, and its release for Linux and for Windows. A\n \
                    * number that is not listed has the driver of the next higher one. */\n\
                    #define FLOORS(X)"
            .to_owned();
    for (of, floor) in floors {
        let packed = |release: Option<DriverRelease>| release.and_then(DriverRelease::packed).unwrap_or_default();
        let on_windows = floor.release.map(|linux| tables::windows_release(floor.cuda, linux));
        let (linux, windows) = (packed(floor.release), packed(on_windows));
        let _ = write!(text, " \\\n  X({of}, {}, {linux:#x}, {windows:#x})", floor.cuda.to_int());
    }
    let newest = tables::toolkit_rows().last().map_or(0, |row| row.version.to_int());
    let nobody = tables::NO_DRIVER_KNOWN.0.to_int();
    let _ = write!(
        text,
        "\n\n/* The newest CUDA of them: no driver is sure to compile PTX that needs a newer one. */\n\
         #define NEWEST_CUDA {newest}\n#define NO_DRIVER_KNOWN {nobody}"
    );
    text += "\n\n/* The last driver branch for GPUs below a compute capability. */\n#define LAST_BRANCHES(X)";
    for ((major, minor), last) in tables::last_branches() {
        let _ = write!(text, " \\\n  X({major} << 8 | {minor}, {last})");
    }
    text += "\n\n/* GPUs outside the general rule: the compute capability, that of the same chip under its other\n \
             * name, whether it is a part of a Tegra, and the number of its family. */\n#define CHIPS(X)";
    let mut chips: Vec<Cc> = tables::arch_rows().iter().map(|row| row.cc).collect();
    chips.sort_unstable();
    chips.dedup();
    for &cc in &chips {
        let family = chips.iter().position(|other| tables::same_family(cc, *other) == Some(true));
        let (other, tegra) = (tables::other_name(cc), tables::is_tegra(cc));
        if other.is_some() || tegra || family.is_some() {
            let name = |(major, minor): Cc| format!("{major} << 8 | {minor}");
            let other = other.map_or("0".to_owned(), name);
            let family = family.map_or(0, |family| family + 1);
            let _ = write!(text, " \\\n  X({}, {other}, {}, {family})", name(cc), u8::from(tegra));
        }
    }
    text
}

/// Generates the facts about cuDNN that the shim needs to find it and to query its version.
fn guarded_library() -> String {
    let scales = cudnn::GETTER.scales.iter().map(|(from, scale)| match from {
        0 => scale.to_string(),
        _ => format!("(answer) >= {from} ? {scale} : "),
    });
    let body = format!(
        "#define CUDNN_FILE \"{}\"\n#define CUDNN_GETTER \"{}\"\n\n\
         /* The weight of the major in the answer of that function. */\n\
         #define CUDNN_VERSION_FROM(answer) ({})",
        cudnn::LINK_NAME,
        cudnn::GETTER.function,
        scales.collect::<String>()
    );
    let comment = "/* From guard-core/src/knowledge/cudnn: the library that a manifest has rows for. */";
    format!("{comment}\n{body}")
}

/// Generates all tables of the shim.
fn tables_header() -> String {
    let comment = "/* Generated from the tables of guard-core/data, and guard-core/src/knowledge/cudnn. */";
    header("tables.h", comment, &[kernel_tables(), guarded_library(), pci_ranges(), arch_makers()].join("\n\n"))
}

#[test]
#[allow(clippy::disallowed_methods)] // A test's own variable, which no build reads.
fn parts_of_the_shim_are_as_written() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/shim");
    let bless = std::env::var_os("CUDAGUARD_BLESS").is_some_and(|value| !value.is_empty());
    let all = [("note_layout.h", note_layout()), ("tables.h", tables_header())];
    for (name, text) in all {
        let path = dir.join(name);
        if bless {
            fs::write(&path, &text).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{name} is stale: CUDAGUARD_BLESS=1 writes it");
    }
}
