//! Compares the crate table with the sources of the crates and with real libraries, if they are on this machine: a row
//! claims nothing that its version does not have.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cargo_cudaguard::binary::elf::{Elf, Symbol};
use cargo_cudaguard::binary::mapped_file::Contents;
use cargo_cudaguard::knowledge::crates::table::{CrateRow, LibraryRule, table};
use cudaguard::internal::version::CudaVersion;
use cudaguard_tests::{crates, e2e, parts};

use super::real_crates::tree;

/// Cargo fetches the versions of cudarc that the table was derived from. Other versions are compared if they are present.
#[e2e]
fn crate_rows_match_crate_sources() {
    let _fetched = tree(
        "sources",
        "cudarc = { version = \"=0.19.10\", features = [\"cuda-13000\"] }\n\
        old = { package = \"cudarc\", version = \"=0.17.8\", features = [\"cuda-12080\"] }\n",
    );
    let looked: BTreeSet<String> = table()
        .crates
        .iter()
        .filter_map(|row| {
            let dir = crates::source(&row.name, &row.read)?;
            check(row, &dir);
            Some(format!("{} {}", row.name, row.read))
        })
        .collect();
    for wanted in ["cudarc 0.17.8", "cudarc 0.19.10"] {
        assert!(looked.contains(wanted), "{wanted} was fetched: {looked:?}");
    }
}

#[track_caller]
fn check(row: &CrateRow, dir: &Path) {
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
    let (script, library, manifest) = (read("build.rs"), read("src/lib.rs"), read("Cargo.toml"));
    let others: String = [
        "src/toolkit.rs",
        "src/utils.rs",
        "src/compute_cap.rs",
        "src/builder.rs",
        "build/main.rs",
        "build/vars.rs",
        "build/download/resolve.rs",
    ]
    .iter()
    .map(|name| read(name))
    .collect();
    let code = format!("{script}{library}{others}");
    let reported =
        |what: &str, wanted: &str| assert!(code.contains(wanted), "{} {}: {what}: {wanted}", row.name, row.read);
    let feature = |name: &str| {
        let declared = manifest.lines().any(|line| line.starts_with(&format!("{name} = ")));
        assert!(name.is_empty() || declared, "{} {}: no feature {name}", row.name, row.read);
    };
    row.modes.iter().for_each(|(name, _)| feature(name));
    if let Some(rule) = &row.download {
        rule.cuda.iter().chain(&rule.unless).chain([&rule.feature]).for_each(|name| feature(name));
        rule.instead.iter().chain(&rule.variable).for_each(|name| reported("variable", name));
    }
    row.libraries.iter().for_each(|(name, _)| feature(name));
    if let Some(rule) = &row.level {
        reported("variable", &rule.variable);
        feature(&rule.nvcc);
        rule.newest.iter().for_each(|name| feature(name));
        let level = |line: &str| rule.level_of(line.split(' ').next()?);
        let levels: Vec<CudaVersion> = manifest.lines().filter_map(level).collect();
        assert!(levels.contains(&CudaVersion::new(12, 8)), "{} {}: {levels:?}", row.name, row.read);
    }
    if let Some(rule) = &row.header_level {
        reported("variable", &rule.target);
        let oldest = format!("MIN_CUDA_VERSION: u32 = {};", rule.oldest.to_int());
        reported("oldest release", &oldest);
        rule.roots.iter().for_each(|root| reported("root", root.trim_start_matches('$')));
    }
    match &row.library {
        Some(LibraryRule::Fixed { feature: name, symbol, .. }) => {
            feature(name);
            let bindings = read("src/cudnn/sys/mod.rs");
            assert!(bindings.contains(&format!("b\"{symbol}\\0\"")), "{symbol} is looked up");
        }
        Some(LibraryRule::Named { headers, newest, .. }) => [headers, newest].iter().for_each(|name| feature(name)),
        None => {}
    }
    if !library.is_empty() && row.level.is_some() {
        // All versions build the names from one list of patterns, in this order.
        let list = library.split("fn get_lib_name_candidates").nth(1).expect("the list of names");
        let list = list.split("\n}").next().expect("its end");
        let mut patterns = Vec::new();
        for part in list.split("format!(\"").skip(1) {
            let pattern = part.split("\")").next().expect("a pattern");
            let pattern = pattern.replace("{DLL_PREFIX}", "lib").replace("{DLL_SUFFIX}", ".so");
            patterns.push(pattern.replace("{lib_name}", "{lib}").replace("{pointer_width}", "64"));
        }
        assert_eq!(patterns, row.names, "{} {}", row.name, row.read);
    }
    row.reruns.iter().for_each(|variable| reported("variable", variable));
    for place in row.nvcc.iter().chain(&row.headers).chain(&row.link) {
        let variable = place.strip_prefix('$').map(|rest| rest.split(['/', ' ']).next().unwrap_or_default());
        match variable {
            Some(variable) => reported("variable", variable),
            None if place.starts_with('/') => {
                let endings = ["/bin/nvcc", "/include", "/lib64", "/lib"];
                let root = endings.iter().fold(place.as_str(), |root, ending| root.trim_end_matches(ending));
                // cuda-driver-sys and similar crates search with a separate crate.
                if !code.contains("cuda_config") {
                    reported("folder", root);
                }
            }
            None => {}
        }
    }
}

/// The libcuda of driver 535 supports 12.2. It has all functions that cudarc looks up at that level, and lacks some of each
/// level that needs a newer driver according to the table.
#[e2e]
fn levels_need_driver_with_their_functions() {
    let _fetched =
        tree("levels", "old = { package = \"cudarc\", version = \"=0.17.8\", features = [\"cuda-12080\"] }\n");
    let dir = crates::source("cudarc", "0.17.8").expect("fetched");
    let text = fs::read_to_string(dir.join("src/driver/sys/mod.rs")).expect("bindings");
    let path = parts::driver("535").join("libcuda.so.1");
    let data = Contents::open(&path).unwrap_or_else(|error| panic!("{error}"));
    let elf = Elf::parse(&data).expect("a library");
    let exported: BTreeSet<&str> =
        elf.dynamic_symbols().filter(Symbol::is_exported).filter_map(|symbol| symbol.name()).collect();
    let looked_up = functions(&text);
    for row in table().driver.levels.iter().filter(|row| row.level <= CudaVersion::new(13, 0)) {
        let feature = format!("cuda-{}", row.level.to_int());
        let of_level: Vec<_> =
            looked_up.iter().filter(|(_, levels)| levels.is_empty() || levels.contains(&feature)).collect();
        assert!(of_level.len() > 300, "{feature}: {}", of_level.len());
        let newest = of_level.iter().filter_map(|(_, levels)| levels.iter().min()).max();
        let newest = newest.and_then(|feature| feature.strip_prefix("cuda-")?.parse().ok()).map(CudaVersion::from_int);
        assert_eq!(newest, Some(row.needs), "{feature}: the newest function looked up");
        assert!(
            of_level.iter().any(|(name, levels)| *name == row.symbol
                && levels.iter().min().is_none_or(|least| {
                    least.strip_prefix("cuda-").is_some_and(|number| number == row.needs.to_int().to_string())
                })),
            "{feature}: {}",
            row.symbol
        );
        let lacks = of_level.iter().any(|(name, _)| !exported.contains(name.as_str()));
        assert_eq!(lacks, row.needs > CudaVersion::new(12, 2), "{feature} on a driver of 12.2");
    }
}

/// Returns the functions that the bindings look up when they open the library, with the features that enable each.
fn functions(text: &str) -> Vec<(String, BTreeSet<String>)> {
    let (mut found, mut condition, mut within) = (Vec::new(), String::new(), false);
    for line in text.lines().skip_while(|line| !line.contains("fn from_library")) {
        let line = line.trim();
        if within || line.starts_with("#[cfg(") {
            if !within {
                condition.clear();
            }
            condition.push_str(line);
            within = !line.ends_with(")]");
        } else if let Some(name) = line.strip_prefix(".get(b\"").and_then(|rest| rest.strip_suffix("\\0\")")) {
            let levels = condition.split('"').filter(|word| word.starts_with("cuda-")).map(str::to_owned).collect();
            found.push((name.to_owned(), levels));
            condition.clear();
        } else if line.starts_with("Ok(") {
            break;
        }
    }
    found
}
