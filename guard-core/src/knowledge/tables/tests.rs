pub(crate) mod parser;

use std::fmt;

use super::gpus::{gpu_names, gpu_words};
use super::*;
use parser::products_by_id;

fn toolkit(text: &str) -> Version {
    text.parse().unwrap()
}

fn target(text: &str) -> Target {
    text.parse().unwrap()
}

fn cuda(text: &str) -> CudaVersion {
    text.parse().unwrap()
}

#[test]
fn windows_driver_has_branch_of_linux() {
    for (release, branch) in [
        ("411.31", 410),
        ("472.50", 470),
        ("528.33", 525),
        ("537.13", 535),
        ("546.12", 545),
        ("553.62", 550),
        ("566.36", 565),
        ("572.61", 570),
        ("577.00", 575),
        ("582.28", 580),
        ("591.59", 590),
    ] {
        assert_eq!(branch_of_windows(release.parse().unwrap()).branch, branch, "{release}");
    }
    let newest = branch_rows().last().unwrap().branch;
    let later = DriverRelease::new(newest + 9, 10, 0);
    assert_eq!(branch_of_windows(later), later);
    for (version, linux, windows) in [
        ("11.0", "450.80.02", "452.39"),
        ("11.0", "450.51.05", "451.48"),
        ("12.4", "550.54.14", "551.61"),
        ("13.1", "590.44.01", "590"),
    ] {
        assert_eq!(windows_release(cuda(version), linux.parse().unwrap()).to_string(), windows);
    }
}

#[test]
fn toolkit_archs_are_listed() {
    let too_new = |first: &str| CcSupport::TooNew { first: Some(cuda(first)) };
    let dropped = |last: &str| CcSupport::Dropped { last: Some(cuda(last)) };
    for (release, name, answer) in [
        ("12.4", "sm_90a", CcSupport::Made),
        ("12.4.131", "compute_90", CcSupport::Made),
        ("12.4", "sm_120", too_new("12.8")),
        ("12.4", "compute_120", too_new("12.8")),
        ("11.8", "sm_90a", too_new("12.0")),
        ("13.0", "sm_70", dropped("12.9")),
        ("13.0", "sm_101", dropped("12.9")),
        ("12.9", "sm_110", too_new("13.0")),
        ("13.0", "sm_107", too_new("13.4")),
        ("10.2", "sm_30", CcSupport::Made),
        ("9.0", "sm_70", CcSupport::Made),
        // No known release supports these.
        ("13.0", "sm_91", CcSupport::TooNew { first: None }),
        ("13.5", "sm_990", CcSupport::TooNew { first: None }),
        ("12.4", "sm_80a", CcSupport::TooNew { first: None }),
        ("12.4", "sm_20", CcSupport::Dropped { last: None }),
        // A toolkit that is newer than the table supports what the newest one supports, and possibly more.
        ("14.2", "sm_90a", CcSupport::Made),
        ("14.2", "sm_70", dropped("12.9")),
        ("14.2", "sm_150a", CcSupport::Unknown),
        ("8.0", "sm_20", CcSupport::Unknown),
    ] {
        assert_eq!(can_make(toolkit(release), target(name)), answer, "{name} by {release}");
    }
}

#[test]
fn ptx_only_archs_are_listed() {
    assert_eq!(only_ptx(toolkit("12.4"), (12, 0)), Some(Arch::without_suffix(90)));
    assert_eq!(only_ptx(toolkit("11.8"), (8, 8)), Some(Arch::without_suffix(87)));
    assert_eq!(only_ptx(toolkit("13.0"), (7, 0)), None);
}

#[test]
fn symbolic_archs_are_resolved() {
    let text = |targets: Vec<Target>| targets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    // The output of `nvcc --dryrun -arch=…` of 13.0.88 and 11.8.89.
    assert_eq!(
        text(expand_all(toolkit("13.0"))),
        "sm_75 sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_100 sm_103 sm_110 sm_120 sm_121 compute_120"
    );
    assert_eq!(text(expand_all_major(toolkit("13.0"))), "sm_75 sm_80 sm_90 sm_100 sm_110 sm_120 compute_120");
    assert_eq!(text(expand_all_major(toolkit("11.8"))), "sm_35 sm_50 sm_60 sm_70 sm_80 sm_90 compute_90");
    // A toolkit that is newer than the table is treated like the newest one in it.
    let newest = toolkit_rows().last().expect("a toolkit").version;
    assert_eq!(expand_all(toolkit("99.0")), expand_all(toolkit(&newest.to_string())));
}

#[test]
fn toolkit_defaults_are_listed() {
    for (release, arch) in [("10.2", 30), ("11.0", 52), ("12.9", 52), ("12.7", 52), ("13.0", 75), ("15.1", 75)] {
        assert_eq!(default_arch(toolkit(release)), Some(Arch::without_suffix(arch)), "{release}");
    }
    assert_eq!(default_arch(toolkit("8.0")), None);
    assert_eq!(host_compiler(toolkit("11.8.89")), HostLimits { gcc_newest: Some(11), clang_below: Some(15) });
    assert_eq!(host_compiler(toolkit("13.4")), HostLimits { gcc_newest: Some(16), clang_below: Some(23) });
    assert_eq!(host_compiler(toolkit("14.0")), HostLimits::default());
}

#[test]
fn driver_floors_are_listed() {
    let floor = |cuda_: &str, release: &str| Floor {
        cuda: cuda(cuda_),
        release: (!release.is_empty()).then(|| release.parse().unwrap()),
        exact: true,
    };
    for (isa, wanted) in [
        ((8, 5), floor("12.5", "555.42.02")),
        ((8, 6), floor("12.7", "565")),
        ((8, 7), floor("12.8", "570.26")),
        ((7, 9), floor("12.0", "525.60.13")),
        ((6, 0), floor("9.0", "390")),
        ((3, 2), floor("6.5", "340")),
    ] {
        assert_eq!(ptx_floor(isa), wanted, "PTX {isa:?}");
    }
    // An ISA that is newer than every row.
    let newest = toolkit_rows().last().expect("a toolkit");
    assert_eq!(ptx_floor(newest.ptx), Floor { cuda: newest.version, release: newest.driver, exact: true });
    let newest = newest.version;
    let above = CudaVersion::new(newest.major, newest.minor + 1);
    assert_eq!(ptx_floor((99, 9)), Floor { cuda: above, release: None, exact: false });
    for (cudart, wanted) in [
        ("12.9", floor("12.0", "525.60.13")),
        ("11.4", floor("11.0", "450.80.02")),
        ("13.0", floor("13.0", "580.65.06")),
        ("10.2", floor("10.2", "440.33")),
        ("14.3", floor("14.0", "")),
    ] {
        assert_eq!(cudart_floor(cuda(cudart)), wanted, "cudart {cudart}");
    }
    assert_eq!(toolkit_floor(toolkit("12.6.85")), floor("12.6", "560.28.03"));
    let after = Version::new(above.major, above.minor, 0);
    assert_eq!(toolkit_floor(after), Floor { cuda: above, release: None, exact: true });
    assert_eq!(zstandard_floor(12), Some(floor("12.4", "550.54.14")));
    assert_eq!(zstandard_floor(14), None);
    assert_eq!(ptx_isa(toolkit("12.6")), Some((8, 5)));
    assert_eq!(ptx_isa(toolkit("14.0")), None);
}

#[test]
fn driver_support_is_listed() {
    for (release, least, most) in [
        ("535.261.03", "12.2", "12.2"),
        ("580.65.06", "13.0", "13.0"),
        ("565.57.01", "12.7", "12.7"),
        ("585.10", "13.0", "13.1"),
        ("304.1", "", "6.5"),
        ("430.50", "10.1", "10.2"),
        ("425.10", "10.1", "10.2"),
        // JetPack 6 reports 12.6 for it.
        ("540.4.0", "12.2", ""),
        ("541.0", "12.2", "12.3"),
    ] {
        let version = |text: &str| (!text.is_empty()).then(|| cuda(text));
        let found = driver_supports(release.parse().unwrap());
        assert_eq!(found, Supports { least: version(least), most: version(most) }, "{release}");
    }
    let newest = branch_rows().last().expect("a branch");
    let open = driver_supports(DriverRelease::new(newest.branch + 5, 10, 0));
    assert_eq!(open, Supports { least: Some(newest.least), most: None }, "news");
    let later = CudaVersion::new(newest.least.major + 1, 0);
    assert_eq!((open.covers(newest.least), open.covers(later)), (Some(true), None));
    let old = driver_supports("535.261.03".parse().unwrap());
    assert_eq!((old.covers(cuda("12.4")), old.exact_version()), (Some(false), Some(cuda("12.2"))));
}

#[test]
fn gpus_are_found_by_name() {
    for (name, cc) in [
        ("T4", (7, 5)),
        ("Tesla T4", (7, 5)),
        ("A100", (8, 0)),
        ("NVIDIA A100-SXM4-80GB", (8, 0)),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", (8, 9)),
        ("geforce rtx 2080 super", (7, 5)),
        ("RTX 6000 Ada Generation", (8, 9)),
        ("NVIDIA H100 PCIe", (9, 0)),
        // Names as nvidia-smi prints them.
        ("NVIDIA H100 80GB HBM3", (9, 0)),
        ("NVIDIA H100 SXM5 64GB", (9, 0)),
        ("NVIDIA H20-3e", (9, 0)),
        ("NVIDIA GH200 144G HBM3e", (9, 0)),
        ("NVIDIA B300 SXM6 AC", (10, 3)),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", (12, 0)),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", (12, 0)),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", (8, 0)),
        ("NVIDIA A10G", (8, 6)),
        ("NVIDIA A40-8Q", (8, 6)),
        ("GRID T4-16Q", (7, 5)),
        ("Tesla V100S-PCIE-32GB", (7, 0)),
        ("Tesla K40m", (3, 5)),
        ("NVIDIA TITAN X (Pascal)", (6, 1)),
        ("Orin (nvgpu)", (8, 7)),
        ("NVIDIA Thor", (11, 0)),
        ("8.6", (8, 6)),
        ("10.3", (10, 3)),
        ("13.1", (13, 1)),
        ("sm_86", (8, 6)),
        ("RTX4090", (8, 9)),
        ("rtx-3080ti", (8, 6)),
        ("GA102", (8, 6)),
        ("gh100", (9, 0)),
    ] {
        assert_eq!(gpu_cc(name), Some(cc), "{name}");
    }
    for name in ["", "T5", "sm_90a", "A1000", "8", "8.66", "RTX", "NVIDIA", "GeForce", "8.6.1", "-8.6"] {
        assert_eq!(gpu_cc(name), None, "{name}");
    }
    for (typed, expected_gpu) in [
        ("T4s", Some("Tesla T4")),
        ("RTX 4091", Some("GeForce RTX 4090")),
        ("Spark", Some("DGX Spark")),
        ("Voodoo", None),
    ] {
        assert_eq!((gpu_cc(typed), suggest_gpu(typed)), (None, expected_gpu), "{typed}");
    }
    for name in gpu_names() {
        assert!(gpu_cc(name).is_some() && !gpu_words(name).is_empty(), "{name}");
    }
    assert_eq!(gpu_examples((7, 5))[0], "Tesla T4");
}

#[test]
fn product_archs_match_pci_ids() {
    let mut names = std::collections::HashSet::new();
    for (id, name) in products_by_id() {
        names.insert(name);
        let cc = pci::compute_capability(id);
        assert!(cc.is_some(), "{id:04X} {name}");
        assert_eq!((gpu_cc(name), gpu_typed(name)), (cc, cc), "{id:04X} {name}");
    }
    assert_eq!(names.len(), 222);
}

fn rising<T: PartialOrd + fmt::Debug>(what: &str, values: impl IntoIterator<Item = T>) {
    let values: Vec<T> = values.into_iter().collect();
    assert!(!values.is_empty(), "{what}: empty");
    for pair in values.windows(2) {
        assert!(pair[0] < pair[1], "{what}: {:?} precedes {:?}", pair[0], pair[1]);
    }
}

fn never_falling<T: PartialOrd + fmt::Debug>(what: &str, values: impl IntoIterator<Item = T>) {
    let values: Vec<T> = values.into_iter().collect();
    for pair in values.windows(2) {
        assert!(pair[0] <= pair[1], "{what}: {:?} precedes {:?}", pair[0], pair[1]);
    }
}

#[test]
fn tables_are_consistent() {
    let archs = ARCHS;
    // Ordered by number, then without suffix, `a`, `f`.
    rising("archs", archs.rows.iter().map(|row| (row.arch.number, row.arch.to_string())));
    for row in archs.rows {
        assert_eq!(row.cc, row.arch.cc(), "sm_{}", row.arch);
        assert!(row.last.is_none_or(|last| row.first <= last), "sm_{}", row.arch);
        let plain = archs.rows.iter().find(|other| other.arch == Arch::without_suffix(row.arch.number)).unwrap();
        assert!(plain.first <= row.first && plain.last == row.last && plain.tegra == row.tegra, "sm_{}", row.arch);
        assert!(row.arch.suffix != Suffix::Family || same_family(row.cc, row.cc) == Some(true), "sm_{}", row.arch);
    }
    for members in archs.families {
        rising("family", members.iter());
        assert!(
            members.iter().all(|cc| archs.rows.iter().any(|row| row.cc == *cc && row.arch.suffix == Suffix::Family))
        );
    }
    for rows in [GPUS.products, GPUS.chips] {
        rising("GPUs", rows.iter().map(|(cc, _)| cc));
    }
    let table = GPUS;
    let rows = table.products.iter().chain(table.chips).flat_map(|(_, names)| *names);
    let mut names: Vec<String> = rows.map(|name| gpu_words(name).concat()).collect();
    names.sort();
    rising("names of GPUs", names);

    let toolkits = TOOLKITS;
    rising("toolkits", toolkits.rows.iter().map(|row| row.version));
    never_falling("PTX ISA", toolkits.rows.iter().map(|row| row.ptx));
    rising("drivers", toolkits.rows.iter().filter_map(|row| row.driver));
    never_falling("default archs", toolkits.rows.iter().filter_map(|row| row.default_arch));
    never_falling("gcc", toolkits.rows.iter().filter_map(|row| row.host.gcc_newest));
    never_falling("clang", toolkits.rows.iter().filter_map(|row| row.host.clang_below));
    rising("older PTX", toolkits.older_ptx.iter().copied().chain([(toolkits.rows[0].ptx, toolkits.rows[0].version)]));
    for row in toolkits.rows.iter().filter(|row| !row.unreleased) {
        assert!(row.default_arch.is_some(), "{}", row.version);
        // This includes the newest: a new toolkit is added together with its driver.
        let driver = row.driver.unwrap_or_else(|| panic!("toolkit {} has no driver", row.version));
        assert_eq!(driver_supports(driver).exact_version(), Some(row.version), "the driver of {}", row.version);
        if let Some(windows) = row.windows {
            let supports = driver_supports(branch_of_windows(windows)).exact_version();
            assert_eq!(supports, Some(row.version), "the driver of {} for Windows", row.version);
        }
        let default = Target::Cubin(row.default_arch.unwrap());
        assert_eq!(can_make(Version::new(row.version.major, row.version.minor, 0), default), CcSupport::Made);
    }
    for arch in archs.rows {
        for release in arch.last.iter().chain([&arch.first]).filter(|release| **release >= cuda("10.0")) {
            assert!(
                toolkits.rows.iter().any(|row| row.version == *release && !row.unreleased),
                "sm_{}: {release}",
                arch.arch
            );
        }
    }

    let drivers = DRIVERS;
    rising("branches", drivers.branches.iter().map(|row| row.branch));
    never_falling("what branches support", drivers.branches.iter().map(|row| row.least));
    rising("cudart", drivers.cudart.iter().map(|(major, _)| major));
    for (major, floor) in drivers.cudart.iter().chain(drivers.zstandard) {
        assert_eq!(floor.cuda.major, *major);
        assert_eq!(driver_supports(floor.release.unwrap()).covers(floor.cuda), Some(true), "{major}");
    }
    let released = toolkits.rows.iter().flat_map(|row| [row.driver, row.windows]);
    let floors = drivers.cudart.iter().chain(drivers.zstandard).map(|(_, floor)| floor.release);
    for release in released.chain(floors).flatten() {
        assert_eq!(
            DriverRelease::from_packed(release.packed_saturating()),
            release,
            "a row of a note cannot contain it"
        );
    }
    let majors = toolkits.rows.iter().map(|row| row.version.major).filter(|major| *major > 10);
    for major in majors {
        assert!(cudart_floor(CudaVersion::new(major, 0)).release.is_some(), "cudart {major}");
    }
}

#[test]
fn errors_name_file_and_key() {
    let drivers = |rows: &str| {
        let text = format!(
            "[source]\ns = {{ text = \"read somewhere\", date = \"2026-11-20\" }}\n[table]\ncudart = []\nzstandard = []\nleft = []\ncompat = []\n\
                 branch = [{rows}]\n"
        );
        Drivers::read("drivers.toml", &text).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(drivers("{ branch = 535, cuda = \"12.2\", source = \"s\" }"), Ok(()));
    for (rows, message) in [
        (
            "{ branch = 535, cuda = 12.2, source = \"s\" }",
            "drivers.toml: `table.branch[0].cuda`: expected a release such as \"12.4\", found a float",
        ),
        (
            "{ branch = 535, cuda = \"twelve\", source = \"s\" }",
            "drivers.toml: `table.branch[0].cuda`: expected a release such as \"12.4\", found \"twelve\"",
        ),
        (
            "{ branch = -1, cuda = \"12.2\", source = \"s\" }",
            "drivers.toml: `table.branch[0].branch`: expected the number before the first dot of a driver release, found \
                 an integer",
        ),
        (
            "{ cuda = \"12.2\", source = \"s\" }",
            "drivers.toml: `table.branch[0].branch`: expected the number before the first dot of a driver release, found \
                 nothing",
        ),
        (
            "{ branch = 535, cuda = \"12.2\" }",
            "drivers.toml: `table.branch[0].source`: expected a name, or several, of the [source] table, found nothing",
        ),
        (
            "{ branch = 535, cuda = \"12.2\", source = [\"s\", \"t\"] }",
            "drivers.toml: `table.branch[0].source`: expected a name, or several, of the [source] table, found an array",
        ),
        (
            "{ branch = 535, cuda = \"12.2\", color = 1, source = \"s\" }",
            "drivers.toml: `table.branch[0].color`: expected no such key, found an integer",
        ),
        ("535", "drivers.toml: `table.branch[0]`: expected a row: { … }"),
    ] {
        assert_eq!(drivers(rows), Err(message.to_owned()));
    }
    let error = |text: &str| Drivers::read("drivers.toml", text).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error(""), "drivers.toml: `(top).source`: expected a table, found nothing");
    assert_eq!(
        error("[source]\ns = { text = \"read somewhere\", date = \"lately\" }"),
        "drivers.toml: `source.s.date`: expected a date such as 2026-11-20, found \"lately\""
    );
    assert!(error("[").starts_with("drivers.toml: "));
}
