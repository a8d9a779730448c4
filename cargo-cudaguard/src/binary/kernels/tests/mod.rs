mod damage;
mod driver;
mod targets;
pub(crate) mod writer;

use proptest::prelude::*;
use proptest::sample::select;
use writer::{Image, cubin, data, fatbin, program};

use super::*;
use cudaguard::internal::arch::Suffix;
use cudaguard::internal::coverage::compatibility::Compatibility;
use cudaguard::internal::manifest::{GpuCoverage, PtxFallback, Requirement};

fn image(kind: u16, arch: u32, flags: u64, payload: Vec<u8>) -> Image {
    let version = if kind == 1 { (8, 5) } else { (1, 7) };
    Image { kind, arch, version, flags, payload, unpacked: None, options: Vec::new(), name: String::new() }
}

/// Returns a cubin entry with a kernel.
pub(crate) fn sm(arch: u32) -> Vec<u8> {
    writer::entry(&image(2, arch, 0, cubin(arch, 7, &["k"])))
}

pub(crate) fn compute(arch: u32, isa: (u16, u16)) -> Vec<u8> {
    let text = writer::ptx("8.5", "sm_80", "k").into_bytes();
    writer::entry(&Image { version: isa, ..image(1, arch, 0, text) })
}

fn archs(kernels: &Kernels) -> Vec<String> {
    kernels.entries().iter().map(KernelImage::arch_name).collect()
}

fn by(kernels: &Kernels, cc: (u8, u8)) -> Coverage {
    kernels.gpu_support(cc).by
}

pub(crate) fn plain(containers: &[Vec<u8>]) -> Kernels {
    let section = containers.concat();
    read_bytes(&program(&[data(".nv_fatbin", false, &section)])).unwrap()
}

#[test]
fn container_coverage_follows_rules() {
    let kernels = plain(&[fatbin(&[sm(80), compute(90, (8, 5))])]);
    assert_eq!(archs(&kernels), ["sm_80", "compute_90"]);
    assert_eq!(by(&kernels, (7, 5)), Coverage::Nothing);
    assert_eq!(by(&kernels, (8, 0)), Coverage::Cubin);
    assert_eq!(by(&kernels, (8, 9)), Coverage::Cubin);
    assert_eq!(by(&kernels, (8, 7)), Coverage::Nothing, "a Tegra runs no machine code of another arch");
    assert_eq!(by(&kernels, (12, 0)), Coverage::Ptx);
    let service = kernels.gpu_support((12, 0));
    assert_eq!(service.isa, Some((8, 5)));
    assert_eq!(service.floor.unwrap().cuda.to_string(), "12.5");
    assert_eq!(kernels.gpu_support((8, 0)).floor, None);
}

#[test]
fn coverage_is_per_container() {
    let kernels = plain(&[fatbin(&[sm(80), sm(90)]), fatbin(&[sm(90)])]);
    assert_eq!(by(&kernels, (9, 0)), Coverage::Cubin);
    assert_eq!(by(&kernels, (8, 0)), Coverage::Partial);
    assert_eq!(by(&kernels, (7, 5)), Coverage::Nothing);
    let without: Vec<u64> = kernels.containers_without((8, 0)).map(|container| container.offset).collect();
    assert_eq!(without, [kernels.containers()[1].offset]);
    assert_eq!(kernels.containers_without((7, 5)).count(), 2);
}

/// The version of Tile IR is in its payload. It needs a driver of that CUDA version and a GPU from 8.0 on.
#[test]
fn tile_ir_needs_driver_of_its_version() {
    let tile = |payload: &[u8]| {
        let image = Image { version: (3333, 0), ..image(0x80, 0, 0, payload.to_vec()) };
        plain(&[fatbin(&[writer::entry(&image)])])
    };
    let kernels = tile(b"\x7fTileIR\0\x0d\x04rest of the image");
    let floor = |cc: (u8, u8)| {
        let support = kernels.gpu_support(cc);
        (support.by, support.floor.map(|floor| floor.cuda.to_string()))
    };
    assert_eq!(floor((7, 5)), (Coverage::Nothing, None));
    assert_eq!(floor((8, 0)), (Coverage::Ptx, Some("13.4".to_owned())));
    assert_eq!(floor((12, 0)), (Coverage::Ptx, Some("13.4".to_owned())));
    assert_eq!(kernels.entries()[0].version, (13, 4));
    // Newer than every table: no driver is known.
    let newer = tile(b"\x7fTileIR\0\x63\x00rest of the image").gpu_support((9, 0));
    assert!(newer.by == Coverage::Ptx && newer.floor.is_some_and(|floor| !floor.exact));
    assert_eq!(by(&tile(b"something else entirely"), (7, 5)), Coverage::Unknown);
}

/// If a container has only PTX for a GPU, its minimum driver applies, whatever other containers have.
#[test]
fn partial_code_keeps_its_floor() {
    let row = |containers: &[Vec<u8>], cc: (u8, u8)| {
        let rows = plain(containers).requirement_rows();
        let inside = |row: &&Requirement| matches!(row, Requirement::Gpu { from, to, .. } if cc >= *from && to.is_none_or(|to| cc <= to));
        let Some(Requirement::Gpu { by, cuda, .. }) = rows.iter().find(inside).cloned() else { panic!("no row") };
        (by, cuda.map(|cuda| cuda.to_string()))
    };
    let zstd = Image { unpacked: Some(1 << 20), ..image(2, 90, 0x8000, vec![0; 64]) };
    let floor = |text: &str| Some(text.to_owned());
    for (containers, expected) in [
        (vec![fatbin(&[compute(80, (8, 4))]), fatbin(&[sm(75)])], (GpuCoverage::PartialPtx, floor("12.4"))),
        (vec![fatbin(&[compute(80, (8, 4)), sm(90)]), fatbin(&[sm(75)])], (GpuCoverage::Partial, None)),
        (
            vec![fatbin(&[sm(90)]), fatbin(&[compute(80, (8, 4))]), fatbin(&[sm(75)])],
            (GpuCoverage::PartialPtx, floor("12.4")),
        ),
        (vec![fatbin(&[writer::entry(&zstd)]), fatbin(&[sm(75)])], (GpuCoverage::Partial, floor("12.4"))),
        (vec![fatbin(&[compute(80, (8, 4))]), fatbin(&[sm(90)])], (GpuCoverage::Ptx, floor("12.4"))),
    ] {
        assert_eq!(row(&containers, (9, 0)), expected);
    }
}

/// In NVIDIA's libraries it does not apply if machine code supports the GPU: cuBLASLt 12.6 has one such container of
/// 1686.
#[test]
fn machine_code_decides_in_published_libraries() {
    let containers = [fatbin(&[compute(52, (8, 4))]), fatbin(&[sm(75), sm(90)]), fatbin(&[sm(80)])];
    for (published, cc, expected, floor, without) in [
        (false, (7, 5), Coverage::Partial, Some("12.4"), 1),
        (true, (7, 5), Coverage::Partial, None, 2),
        (true, (9, 0), Coverage::Partial, None, 2),
        (true, (8, 6), Coverage::Partial, None, 2),
        // GPUs that no other code supports.
        (true, (7, 0), Coverage::Partial, Some("12.4"), 2),
        (false, (7, 0), Coverage::Partial, Some("12.4"), 2),
        (true, (5, 0), Coverage::Nothing, None, 3),
    ] {
        let mut kernels = Kernels { published, ..plain(&containers) };
        let service = kernels.gpu_support(cc);
        let actual =
            (service.by, service.floor.map(|floor| floor.cuda.to_string()), kernels.containers_without(cc).count());
        assert_eq!(actual, (expected, floor.map(str::to_owned), without), "{published} {cc:?}");
        // The package has other libraries with machine code for Volta, and for Maxwell, for which this one has no code
        // at all.
        kernels.mark_fallback(|cc| [(7, 0), (5, 0)].contains(&cc));
        let service = kernels.gpu_support(cc);
        let floor = floor.filter(|_| !published);
        assert_eq!(
            (service.by, service.floor.map(|floor| floor.cuda.to_string())),
            (expected, floor.map(str::to_owned)),
            "{published} {cc:?}"
        );
    }
}

/// PTX that every driver of its major compiles excludes no driver and is reported as usual.
#[test]
fn first_major_ptx_counts_in_libraries() {
    for (isa, by) in
        [((8, 0), Coverage::Ptx), ((8, 1), Coverage::Partial), ((9, 0), Coverage::Ptx), ((9, 2), Coverage::Partial)]
    {
        let mut kernels = Kernels { published: true, ..plain(&[fatbin(&[compute(75, isa)])]) };
        assert_eq!(kernels.gpu_support((8, 0)).by, Coverage::Ptx, "{isa:?}");
        kernels.mark_fallback(|_| true);
        assert_eq!(kernels.gpu_support((8, 0)).by, by, "{isa:?}");
    }
}

/// `CUDA_FORCE_PTX_JIT=1` makes the driver ignore the machine code of other containers, too.
#[test]
fn ptx_serves_across_containers() {
    let (old, new) = (|| compute(80, (8, 0)), || compute(80, (8, 4)));
    for (containers, expected) in [
        (vec![fatbin(&[old()])], PtxFallback::Undetermined),
        (vec![fatbin(&[old()]), fatbin(&[sm(90), old()])], PtxFallback::Undetermined),
        (vec![fatbin(&[new()]), fatbin(&[sm(90), old()])], PtxFallback::Undetermined),
        (vec![fatbin(&[old()]), fatbin(&[sm(90), new()])], PtxFallback::Isa((8, 4))),
        (vec![fatbin(&[old()]), fatbin(&[sm(90)])], PtxFallback::Nothing),
        (vec![fatbin(&[old()]), fatbin(&[sm(90)]), fatbin(&[sm(90), new()])], PtxFallback::Nothing),
    ] {
        let rows = plain(&containers).requirement_rows();
        let last = rows.iter().find(|row| matches!(row, Requirement::Gpu { from: (9, 0), .. }));
        let Some(Requirement::Gpu { by, ptx_fallback, .. }) = last.or(rows.last()) else { panic!("no row") };
        assert_eq!((*by, *ptx_fallback), (GpuCoverage::Ptx, expected), "{rows:?}");
    }
}

#[test]
fn containers_without_kernels_do_not_count() {
    let empty = writer::entry(&image(2, 75, 0, cubin(75, 7, &[])));
    let kernels = plain(&[fatbin(&[]), fatbin(&[empty]), fatbin(&[sm(90)])]);
    let roles: Vec<Role> = kernels.containers().iter().map(|container| container.role).collect();
    assert_eq!(roles, [Role::Empty, Role::Kernels], "the guard's own container, without entries, is not listed");
    assert_eq!(by(&kernels, (9, 0)), Coverage::Cubin);
    assert_eq!(by(&kernels, (7, 5)), Coverage::Nothing);
    assert_eq!(kernels.built_targets(), [Target::Cubin(Arch { number: 90, suffix: Suffix::None })]);
}

#[test]
fn only_small_compressed_images_are_unpacked() {
    // An LZ4 block of literals only: the token, further bytes of the length, the bytes.
    let pack = |image: &[u8]| {
        let mut block = vec![0xf0];
        let mut rest = image.len() - 15;
        while rest >= 255 {
            block.push(255);
            rest -= 255;
        }
        block.push(u8::try_from(rest).unwrap());
        block.extend(image);
        block
    };
    let packed = |image: &[u8], unpacked: usize| {
        writer::entry(&Image {
            unpacked: Some(unpacked as u64),
            ..super::tests::image(2, 90, writer::LZ4, pack(image))
        })
    };
    let (with, without) = (cubin(90, 7, &["k"]), cubin(90, 7, &[]));
    let kernels = plain(&[
        fatbin(&[packed(&with, with.len())]),
        fatbin(&[packed(&without, without.len())]),
        fatbin(&[packed(&without, without.len() + 1)]),
        fatbin(&[packed(&without, 1 << 40)]),
    ]);
    let roles: Vec<Role> = kernels.containers().iter().map(|container| container.role).collect();
    assert_eq!(roles, [Role::Kernels, Role::Empty, Role::Kernels, Role::Kernels], "if unknown, it counts as a kernel");
    assert_eq!(kernels.entries()[0].compression, Compression::Lz4);
}

#[test]
fn entry_with_several_cubins_is_read() {
    let images = [
        Image { name: "a.cu".to_owned(), ..image(2, 75, 0, vec![1; 24]) },
        Image { options: b"--x".to_vec(), ..image(2, 90, writer::SPECIFIC, vec![2; 40]) },
        image(2, 100, writer::FAMILY, vec![3; 8]),
    ];
    let kernels = plain(&[fatbin(&[writer::concatenated(&images, &[0; 16], 1 << 20), compute(100, (9, 5))])]);
    assert_eq!(archs(&kernels), ["sm_75", "sm_90a", "sm_100f", "compute_100"]);
    assert_eq!(kernels.entries()[1].size, 40);
    assert_eq!(kernels.entries()[1].compression, Compression::Lz4);
    assert_eq!(by(&kernels, (7, 5)), Coverage::Cubin);
}

#[test]
fn bare_images_have_alternatives() {
    let text = writer::ptx("7.8", "sm_75", "k");
    let mut rodata = b"some text .version of nothing ".to_vec();
    rodata.extend(cubin(80, 7, &["k"]));
    rodata.extend(b"?");
    rodata.extend(cubin(90, 8, &["k"]));
    rodata.extend(text.as_bytes());
    rodata.extend(b"called with {} arguments");
    let kernels = read_bytes(&program(&[data(".rodata", false, &rodata)])).unwrap();
    assert_eq!(archs(&kernels), ["sm_80", "sm_90", "compute_75"]);
    assert_eq!(kernels.entries()[2].size, (text.len() - text.find(".version").unwrap() - 1) as u64);
    // Alternatives of a kernel for three GPUs: the program selects one.
    assert_eq!(by(&kernels, (8, 0)), Coverage::Cubin);
    assert_eq!(by(&kernels, (9, 0)), Coverage::Cubin);
    assert_eq!(by(&kernels, (7, 5)), Coverage::Ptx);
    // A different kernel for one GPU only.
    rodata.extend(cubin(90, 7, &["other"]));
    let kernels = read_bytes(&program(&[data(".rodata", false, &rodata)])).unwrap();
    assert_eq!(by(&kernels, (9, 0)), Coverage::Cubin);
    assert_eq!(by(&kernels, (8, 0)), Coverage::Partial);
}

#[test]
fn fatbins_are_found_in_any_section() {
    let container = fatbin(&[sm(80)]);
    let mut odd = vec![7u8; 3];
    odd.extend(&container);
    let mut large = vec![0u8; 5 << 20];
    large.extend(&container);
    let file = program(&[
        data(".rodata", false, &odd),
        data(".data", true, &odd),
        data(".cask_resource", false, &container),
        data(".ldata", true, &large),
        writer::WrittenSection { name: ".debug_str", kind: 1, flags: 0, data: &container },
        writer::WrittenSection { name: ".text", kind: 1, flags: 6, data: &container },
    ]);
    let kernels = read_bytes(&file).unwrap();
    let sections: Vec<&str> = kernels.containers().iter().map(|container| kernels.section_name(container)).collect();
    assert_eq!(sections, [".rodata", ".data", ".cask_resource", ".ldata"]);
}

/// Alignment is relative to the file: the section may begin at any offset, as `.ldata` of cuFFT 11.3.3 does.
#[test]
fn unaligned_large_data_is_scanned() {
    let mut large = vec![0u8; 5 << 20];
    large.extend(fatbin(&[sm(80)]));
    for cut in 0..8u64 {
        let mut file = program(&[data(".ldata", true, &large)]);
        let table = usize::try_from(u64::from_le_bytes(file[40..48].try_into().unwrap())).unwrap();
        for (field, by) in [(24, cut), (32, cut.wrapping_neg())] {
            let place = table + 64 + field..table + 64 + field + 8;
            let value = u64::from_le_bytes(file[place.clone()].try_into().unwrap());
            file[place].copy_from_slice(&value.wrapping_add(by).to_le_bytes());
        }
        let kernels = read_bytes(&file).unwrap();
        assert_eq!(archs(&kernels), ["sm_80"], "{cut}");
        assert_eq!(file[usize::try_from(kernels.containers()[0].offset).unwrap()..][..4], fatbin::MAGIC, "{cut}");
    }
}

#[test]
fn archives_and_bare_files_are_read() {
    let container = fatbin(&[sm(80)]);
    let object = |machine| writer::elf(1, machine, 0, 0, &[data(".nv_fatbin", false, &container)]);
    let file = writer::archive(&[("a.o", &object(62)), ("lib.rmeta", b"metadata"), ("b.o", &object(183))]);
    let kernels = read_bytes(&file).unwrap();
    let members: Vec<_> = kernels.containers().iter().map(|container| kernels.member_name(container)).collect();
    assert_eq!(members, [Some("a.o"), Some("b.o")]);
    assert_eq!(kernels.containers()[1].origin.as_deref(), Some("b.o"));
    for (bytes, arch) in [
        (container.clone(), "sm_80"),
        (cubin(90, 8, &["k"]), "sm_90"),
        (cubin(90, 7, &["k"]), "sm_90"),
        (writer::ptx("8.0", "sm_90a, debug", "k").into_bytes(), "compute_90a"),
    ] {
        assert_eq!(archs(&read_bytes(&bytes).unwrap()), [arch]);
    }
    for (bytes, expected_error) in [
        (&b""[..], "is empty"),
        (b"hello", "is not an ELF file, an"),
        (b"\x7fELF", "is cut off"),
        (b".version 8.0 // and no more", "has no `.target"),
    ] {
        let error = read_bytes(bytes).unwrap_err();
        assert!(error.to_string().contains(expected_error), "{error}");
    }
}

#[test]
fn unknown_kinds_are_accepted() {
    let kernels = plain(&[fatbin(&[sm(80), writer::entry(&image(0x4242, 90, 0, vec![0; 8]))])]);
    assert_eq!(kernels.entries()[1].kind.to_string(), "kind 0x4242");
    assert_eq!(by(&kernels, (8, 0)), Coverage::Cubin);
    assert_eq!(by(&kernels, (9, 0)), Coverage::Unknown);
    let kernels = plain(&[fatbin(&[writer::entry(&image(8, 80, 0, vec![0; 8]))])]);
    assert_eq!(archs(&kernels), ["lto_80"]);
    assert!(!kernels.has_kernels(), "LTO-IR runs nowhere by itself");
}

/// LTO-IR is not a kernel: machine code is compiled from it at run time.
#[test]
fn lto_ir_leaves_coverage_unknown() {
    let lto = || writer::entry(&image(8, 80, 0, vec![0; 8]));
    let alone = plain(&[fatbin(&[lto()])]);
    assert_eq!(
        (archs(&alone), alone.has_kernels(), alone.requirement_rows().len()),
        (vec!["lto_80".to_owned()], false, 0)
    );
    let roles = |kernels: &Kernels| kernels.containers().iter().map(|container| container.role).collect::<Vec<_>>();
    assert_eq!(roles(&alone), [Role::LinkTime]);
    let mixed = plain(&[fatbin(&[lto()]), fatbin(&[sm(90)]), fatbin(&[lto(), sm(80)])]);
    assert_eq!(roles(&mixed), [Role::LinkTime, Role::Kernels, Role::Kernels]);
    let plainly = plain(&[fatbin(&[sm(90)]), fatbin(&[sm(80)])]);
    assert_eq!(mixed.coverage_by_cc(), plainly.coverage_by_cc(), "the second container lacks 9.0, the first nothing");
    // If it is cut off, it may have contained anything.
    let mut cut = fatbin(&[lto(), sm(80)]);
    cut.truncate(cut.len() - 200);
    assert_eq!(by(&read_bytes(&cut).unwrap(), (8, 0)), Coverage::Unknown);
}

/// A helper text of a compiler in a program with kernels does not affect their GPU support.
#[test]
fn bare_images_near_fatbins_are_ignored() {
    let texts = [writer::ptx("4.0", "sm_50", "helper").into_bytes(), cubin(70, 7, &["other"])].concat();
    let file = |fatbins: &[Vec<u8>]| {
        read_bytes(&program(&[data(".nv_fatbin", false, &fatbins.concat()), data(".rodata", false, &texts)])).unwrap()
    };
    let mixed = file(&[fatbin(&[sm(90)])]);
    assert_eq!(archs(&mixed), ["sm_90", "compute_50", "sm_70"], "they are listed");
    assert_eq!(mixed.coverage_by_cc(), plain(&[fatbin(&[sm(90)])]).coverage_by_cc());
    // If the fatbins have no kernels, the bare images are the kernels.
    for fatbins in [&[][..], &[fatbin(&[])], &[fatbin(&[writer::entry(&image(8, 80, 0, vec![0; 8]))])]] {
        let alone = file(fatbins);
        assert_eq!((by(&alone, (9, 0)), by(&alone, (7, 5))), (Coverage::Partial, Coverage::Ptx));
    }
}

/// ptxas requires neither a blank before a dot nor a line break.
#[test]
fn concatenated_ptx_is_split() {
    for (text, kernels) in [
        (".version 8.0.target sm_80.address_size 64 .visible.entry k(){ret;}", true),
        (".version 8.0 .target sm_80 .address_size 64 .visible .entry k(){ret;}", true),
        (".version 8.0.target sm_80.entry k(){ret;}", true),
        (".version 8.0 .target sm_80 .file 1 \"a.cu\" .entry k(){ret;}", true),
        (".version 8.0\n.target\nsm_80\n.address_size\n64\n.visible\n.entry\nk(){ret;}", true),
        (".version 8.0.target sm_80.visible.func f(){add.f32 %f1,%f2,0.5;}", false),
        (".version 8.0.target sm_80.func f(){ret;}.visible.entry k(){ret;}", true),
    ] {
        for kernels_of in [
            read_bytes(text.as_bytes()).unwrap(),
            read_bytes(&program(&[data(".rodata", false, format!("x{text}\0y").as_bytes())])).unwrap(),
        ] {
            assert_eq!(archs(&kernels_of), ["compute_80"], "{text}");
            assert_eq!(kernels_of.entries()[0].size, text.len() as u64, "{text}");
            assert_eq!(
                (kernels_of.has_kernels(), kernels_of.entries()[0].ptx_isa()),
                (kernels, Some((8, 0))),
                "{text}"
            );
        }
    }
    for text in [
        ".version8.0.target sm_80",
        ".version 8.0.targetsm_80",
        ".version 8.target sm_80",
        ".version 8.0.1.target sm_80",
    ] {
        assert!(read_bytes(text.as_bytes()).is_err(), "{text}");
    }
}

/// A flag bit that means the suffix `a` from arch 90 on, and has another meaning before: CUPTI 12.6 has such an
/// `sm_60`.
#[test]
fn bare_cubin_suffixes_are_read() {
    for (arch, flags, name) in [(60, 0x3c_0d3c_u32, "sm_60"), (90, 0x5a_0d5a, "sm_90a"), (90, 0x5a_055a, "sm_90")] {
        let mut bytes = cubin(arch, 7, &["k"]);
        bytes[48..52].copy_from_slice(&flags.to_le_bytes());
        assert_eq!(archs(&read_bytes(&bytes).unwrap()), [name]);
    }
}

#[test]
fn ptx_comments_are_skipped() {
    let head = "/* one **/ // two\n.version 8.0 /**/ .target sm_80 /* .target sm_90 */\n";
    for (text, kernels) in [
        ("/* .entry no() */ .visible .entry k() { ret; }", 1),
        ("/* no end .visible .entry k() { ret; }", 0),
        ("/* the text ends \0 .visible .entry k() { ret; } */", 0),
        ("/*/ .entry no() */ .visible .entry k() { ret; } /", 1),
    ] {
        let read = read_bytes(format!("{head}{text}").as_bytes()).unwrap();
        assert_eq!((archs(&read), read.has_kernels()), (vec!["compute_80".to_owned()], kernels > 0), "{text}");
    }
}

#[test]
fn json_output_is_stable() {
    let debug = writer::entry(&image(2, 90, writer::SPECIFIC | writer::DEBUG, cubin(90, 7, &["k"])));
    let kernels = plain(&[fatbin(&[debug, compute(90, (8, 5))])]);
    let text = crate::cli::json_output::to_value(&kernels).to_string();
    let size = cubin(90, 7, &["k"]).len();
    assert!(
        text.starts_with(&format!(
            r#"{{"entries":[{{"kind":"cubin","arch":"sm_90a","container":0,"section":".nv_fatbin","size":{size},"debug":true}},{{"kind":"ptx","arch":"compute_90","isa":"8.5","container":0,"section":".nv_fatbin","size":"#
        )),
        "{text}"
    );
    assert!(text.contains(r#"{"cc":"8.0","by":"none"}"#), "{text}");
    assert!(text.contains(r#"{"cc":"9.0","by":"cubin","code":"sm_90a"}"#), "{text}");
    assert!(text.contains(r#"{"cc":"12.0","by":"ptx","code":"compute_90"}"#), "{text}");
}

/// PTX or not, number, suffix flag, PTX ISA.
type Code = (bool, u32, u64, (u16, u16));

/// Generates any entry that a GPU can use.
fn any_code() -> impl Strategy<Value = Code> {
    let number =
        select(vec![50u32, 60, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 107, 110, 120, 121, 130]);
    let letter = select(vec![0, 0, 0, writer::SPECIFIC, writer::FAMILY]);
    (any::<bool>(), number, letter, select(vec![(6, 4), (7, 8), (8, 0), (8, 5), (9, 0), (9, 5)]))
}

fn built((ptx, number, letter, isa): Code) -> Vec<u8> {
    if ptx {
        writer::entry(&Image { version: isa, ..image(1, number, letter, b".entry k".to_vec()) })
    } else {
        writer::entry(&image(2, number, letter, cubin(number, 7, &["k"])))
    }
}

fn target_of((ptx, number, letter, _): Code) -> Target {
    let suffix = match letter {
        writer::SPECIFIC => Suffix::Specific,
        writer::FAMILY => Suffix::Family,
        _ => Suffix::None,
    };
    let arch = Arch { number: u16::try_from(number).unwrap(), suffix };
    if ptx { Target::Ptx(arch) } else { Target::Cubin(arch) }
}

fn any_file() -> impl Strategy<Value = Vec<Vec<Code>>> {
    prop::collection::vec(prop::collection::vec(any_code(), 1..5), 1..5)
}

fn written(file: &[Vec<Code>]) -> Vec<Vec<u8>> {
    file.iter().map(|container| fatbin(&container.iter().map(|code| built(*code)).collect::<Vec<_>>())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 3 / 8))]

    #[test]
    fn written_file_roundtrips(file in any_file(), padding in 0usize..40) {
        let mut section = Vec::new();
        for container in written(&file) {
            section.extend(container);
            section.resize(section.len() + padding * 4, 0);
        }
        let kernels = read_bytes(&program(&[data(".nv_fatbin", false, &section)])).unwrap();
        prop_assert_eq!(kernels.containers().len(), file.len());
        prop_assert!(kernels.warnings().is_empty());
        let read: Vec<(u32, Target)> = kernels.entries().iter().map(|e| (e.container, e.runnable_target().unwrap())).collect();
        let wrote: Vec<(u32, Target)> = (0u32..).zip(&file).flat_map(|(number, container)| {
            container.iter().map(move |code| (number, target_of(*code)))
        }).collect();
        prop_assert_eq!(read, wrote);
    }

    /// Compares with a slow implementation of the rule: each container supports the GPU or does not.
    #[test]
    fn coverage_matches_rule(file in any_file()) {
        let kernels = plain(&written(&file));
        for major in 0..15u8 {
            for minor in 0..12u8 {
                let cc = (major, minor);
                let verdicts: Vec<Coverage> = file.iter().map(|container| {
                    let is = |ptx: bool, serves: Compatibility| container.iter().any(|code| {
                        code.0 == ptx && target_of(*code).compatibility_with(cc) == serves
                    });
                    if is(false, Compatibility::Yes) { Coverage::Cubin }
                    else if is(true, Compatibility::Yes) { Coverage::Ptx }
                    else if is(false, Compatibility::CannotTell) || is(true, Compatibility::CannotTell) { Coverage::Unknown }
                    else { Coverage::Nothing }
                }).collect();
                let all = |by: &[Coverage]| verdicts.iter().all(|verdict| by.contains(verdict));
                let any = |by: Coverage| verdicts.contains(&by);
                let expected = if all(&[Coverage::Cubin]) { Coverage::Cubin }
                    else if all(&[Coverage::Cubin, Coverage::Ptx]) { Coverage::Ptx }
                    else if all(&[Coverage::Nothing]) { Coverage::Nothing }
                    else if any(Coverage::Nothing) && (any(Coverage::Cubin) || any(Coverage::Ptx)) { Coverage::Partial }
                    else { Coverage::Unknown };
                prop_assert_eq!(by(&kernels, cc), expected, "{:?}", cc);
            }
        }
    }

    /// The rows agree with the file for every GPU and cover all of them.
    #[test]
    fn rows_cover_all_gpus(file in any_file()) {
        let kernels = plain(&written(&file));
        let mut next = Some((0u8, 0u8));
        for row in kernels.requirement_rows() {
            let Requirement::Gpu { from, to, by: served, cuda, .. } = row else { panic!("a row of another kind") };
            prop_assert_eq!(Some(from), next);
            next = to.map(|(major, minor)| if minor == 255 { (major + 1, 0) } else { (major, minor + 1) });
            for cc in [from, to.unwrap_or((200, 3))] {
                let service = kernels.gpu_support(cc);
                let expected = match service.by {
                    Coverage::Cubin => GpuCoverage::Cubin,
                    Coverage::Ptx => GpuCoverage::Ptx,
                    Coverage::Nothing => GpuCoverage::Nothing,
                    Coverage::Partial if matches!(service.code, Some(Target::Ptx(_))) => GpuCoverage::PartialPtx,
                    Coverage::Partial => GpuCoverage::Partial,
                    Coverage::Unknown => match service.code {
                        Some(Target::Ptx(_)) => GpuCoverage::AtLeastPartialPtx,
                        Some(Target::Cubin(_)) => GpuCoverage::AtLeastPartial,
                        None if service.lacks => GpuCoverage::AtMostPartial,
                        None => GpuCoverage::Unknown,
                    },
                };
                prop_assert_eq!(served, expected);
                prop_assert_eq!(cuda, service.floor.map(|floor| floor.cuda));
            }
        }
        prop_assert_eq!(next, None);
    }

    /// An additional image never removes support for a GPU.
    #[test]
    fn more_code_serves_more(file in any_file(), at in any::<prop::sample::Index>(), code in any_code()) {
        let before = plain(&written(&file));
        let mut more = file.clone();
        at.get_mut(&mut more).push(code);
        let after = plain(&written(&more));
        for cover in before.coverage_by_cc() {
            let now = by(&after, cover.cc);
            prop_assert!(now <= cover.service.by || matches!((cover.service.by, now), (Coverage::Nothing, _) | (Coverage::Unknown, Coverage::Partial)), "{:?} {:?}", cover, now);
        }
    }

    #[test]
    fn never_panics(
        file in any_file(),
        cut in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        whole in any::<bool>(),
    ) {
        let section = written(&file).concat();
        let mut rodata = b"xyz".to_vec();
        rodata.extend(cubin(80, 7, &["k"]));
        rodata.extend(writer::ptx("8.0", "sm_80", "k").bytes());
        let object = program(&[
            data(".nv_fatbin", false, &section),
            data("__nv_relfatbin", false, &section),
            data(".nvFatBinSegment", true, &[1; 48]),
            data("__nv_module_id", false, b"_570e7b9d_22_cuda_device_runtime_cu_8b1a5d37\0"),
            data(".rodata", false, &rodata),
        ]);
        let mut bytes = writer::archive(&[("a.o", &object), ("b.o", &object)]);
        if whole {
            bytes = object;
        }
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        for bytes in [&bytes[..], &section[..section.len().min(bytes.len())]] {
            if let Ok(kernels) = read_bytes(bytes) {
                let _ = (serde_json::to_string(&kernels), kernels.requirement_rows());
            }
        }
    }
}
