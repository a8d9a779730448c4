//! GPU names and compute capabilities.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{ARCHS, Cc, GPUS, arch_rows};
use crate::model::arch::{Suffix, Target};
use crate::text::suggest::closest_match;

/// Formats a compute capability as `8.0`.
pub fn dotted_cc((major, minor): Cc) -> String {
    format!("{major}.{minor}")
}

/// Returns true for GPUs of a Tegra, to which binary compatibility does not apply. An unknown cc counts as a discrete
/// GPU.
pub fn is_tegra(cc: Cc) -> bool {
    arch_rows().iter().any(|row| row.tegra && row.cc == cc)
}

/// Returns true if two cc's are names of the same chip.
pub fn same_chip(one: Cc, other: Cc) -> bool {
    ARCHS.renamed.iter().any(|&pair| pair == (one, other) || pair == (other, one))
}

/// Returns the other name of a chip, if it has one: 10.1 → 11.0.
pub fn other_name(cc: Cc) -> Option<Cc> {
    ARCHS.renamed.iter().find_map(|&(old, new)| {
        if old == cc {
            Some(new)
        } else if new == cc {
            Some(old)
        } else {
            None
        }
    })
}

/// Returns true if two cc's share `f` code; `None` if one of them is in no family of the table.
pub fn same_family(one: Cc, other: Cc) -> Option<bool> {
    let [one, other] = [one, other].map(|cc| ARCHS.families.iter().position(|members| members.contains(&cc)));
    Some(one? == other?)
}

/// Returns the compute capability of a GPU in the usual notations: `8.6`, `sm_86`, a product (`T4`,
/// `NVIDIA A100-SXM4-80GB`), a chip (`GA102`). `None` if it is in no table.
pub fn gpu_cc(name: &str) -> Option<Cc> {
    let name = name.trim();
    if let Some((major, minor)) = name.split_once('.') {
        if let (Ok(major @ 1..=99), Ok(minor @ 0..=9)) = (major.parse(), minor.parse()) {
            return Some((major, minor));
        }
    }
    if let Ok(Target::Cubin(arch)) = name.parse() {
        return (arch.suffix == Suffix::None).then(|| arch.cc());
    }
    CC_BY_WORDS.get(&gpu_words(name).concat()).copied()
}

/// The compute capability of every product and chip, by the words of its name.
static CC_BY_WORDS: LazyLock<HashMap<String, Cc>> = LazyLock::new(|| {
    let mut ccs = HashMap::new();
    for (cc, names) in GPUS.products.iter().chain(GPUS.chips).chain(GPUS.listed) {
        for name in *names {
            ccs.insert(gpu_words(name).concat(), *cc);
        }
    }
    ccs
});

/// Returns products of this compute capability, the best known first; empty if the table has none.
pub fn gpu_examples(cc: Cc) -> &'static [&'static str] {
    GPUS.products.iter().find(|(known, _)| *known == cc).map_or(&[], |(_, names)| *names)
}

/// Parses a GPU as users write it on a command line: `8.6`, `sm_86`, `A100`.
pub fn gpu_typed(text: &str) -> Option<Cc> {
    let numbers = match text.strip_prefix("sm_") {
        Some(arch) => {
            let digits = arch.trim_end_matches(['a', 'f']);
            digits.len().checked_sub(1).and_then(|at| digits.split_at_checked(at))
        }
        None => text.split_once('.'),
    };
    let cc = numbers.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    cc.or_else(|| gpu_cc(text)).filter(|(major, _)| *major > 0)
}

/// Returns every product and chip that [`gpu_cc`] knows by name.
pub(super) fn gpu_names() -> Vec<&'static str> {
    let mut all = Vec::new();
    for (_, names) in GPUS.products.iter().chain(GPUS.chips).chain(GPUS.listed) {
        all.extend_from_slice(names);
    }
    all
}

/// Suggests a GPU for a name that [`gpu_cc`] does not know: a typing mistake, or a single word of a name (`Spark`).
pub fn suggest_gpu(name: &str) -> Option<&'static str> {
    let typed = gpu_words(name).concat();
    let names = gpu_names();
    let known = names.iter().map(|name| gpu_words(name).concat()).collect::<Vec<_>>();
    let by_letters = closest_match(&typed, &known.iter().map(String::as_str).collect::<Vec<_>>())
        .and_then(|similar| known.iter().position(|words| words == similar));
    match by_letters {
        Some(index) => Some(names[index]),
        None => names.into_iter().find(|name| gpu_words(name).contains(&typed)),
    }
}

/// Splits a product name into the parts that distinguish it from others: without product line, form factor and memory.
pub(super) fn gpu_words(name: &str) -> Vec<String> {
    const SHARED: &[&str] = &[
        "nvidia",
        "tesla",
        "geforce",
        "quadro",
        "pcie",
        "nvl",
        "gpu",
        "generation",
        "super",
        "laptop",
        "mobile",
        "superchip",
        "edition",
        "server",
        "workstation",
        "max",
        "q",
        "sff",
        "grid",
    ];
    name.to_ascii_lowercase()
        .split(|c: char| c.is_whitespace() || matches!(c, '-' | '_'))
        // The text that follows denotes a part of the GPU: `MIG 1g.5gb`.
        .take_while(|word| *word != "mig")
        .filter(|word| {
            let shared = SHARED.contains(word) || word.starts_with("sxm") || word.starts_with("hbm");
            // Memory (`80GB`, `144G`, `HBM3e`) and the profiles of virtual GPUs (`16Q`).
            let letters = word.trim_start_matches(|c: char| c.is_ascii_digit());
            let size = letters.len() < word.len() && matches!(letters, "gb" | "g" | "q" | "c" | "b" | "a");
            !word.is_empty() && !shared && !size
        })
        .map(str::to_owned)
        .collect::<Vec<_>>()
}
