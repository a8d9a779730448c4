//! Each format and its consumer: random files and random machines, compared with our verdicts.
//!
//!     CUDAGUARD_PAIRS=100000 CUDAGUARD_SEED=7 cargo test --release --test e2e requirements::consumer_agreement -- --include-ignored

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cargo_cudaguard::binary::file::Binary;
use cargo_cudaguard::host::machine::{Components, Driver, Gpu, HostLibrary, Machine};
use cargo_cudaguard::knowledge::vendor::CUDNN;
use cargo_cudaguard::linked::evidence::Evidence;
use cargo_cudaguard::verdict::Verdict;
use cudaguard::internal::manifest::{Manifest, Requirement};
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};
use cudaguard_tests::{Dice, Scratch, command, e2e};

use super::cel::Claim;
use super::consumers::{self, Seen};
use crate::judge_equal::fixture::{NATIVE, descriptor};
use crate::judge_equal::{number, random_programs};

/// Number of machines for each file.
const MACHINES: usize = 100;

struct Consumer {
    form: &'static str,
    /// Returns for each machine if the consumer admits it.
    takes: fn(&str, &[Seen]) -> Vec<bool>,
    /// Returns true for machines that the format covers. Another mechanism handles properties that its grammar cannot
    /// express.
    meets: fn(&Seen) -> bool,
    /// Documented losses of the format: the reason why it does not admit a machine on which the program runs. The function
    /// receives the verdict for any GPU on that machine.
    gives_away: GivesAway,
}

type GivesAway = fn(&Seen, &dyn Fn((u32, u32)) -> Verdict) -> Option<&'static str>;

const NOTHING: GivesAway = |_, _| None;

const CONSUMERS: [Consumer; 7] = [
    Consumer {
        form: "json",
        takes: |text, all| {
            let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
            all.iter().map(|seen| consumers::json(&value, seen)).collect()
        },
        meets: |_| true,
        gives_away: NOTHING,
    },
    Consumer {
        form: "oci",
        takes: |text, all| all.iter().map(|seen| consumers::nvidia_require(text, seen)).collect(),
        meets: its_processor,
        gives_away: NOTHING,
    },
    Consumer {
        form: "k8s-dra",
        takes: |text, all| Claim::of(text).takes_gpus(all),
        meets: its_processor,
        gives_away: NOTHING,
    },
    Consumer {
        form: "k8s-affinity",
        takes: |text, all| all.iter().map(|seen| consumers::affinity(text, seen)).collect(),
        meets: |_| true,
        gives_away: NOTHING,
    },
    Consumer {
        form: "conda",
        takes: |text, all| all.iter().map(|seen| consumers::conda(text, seen)).collect(),
        meets: its_processor,
        gives_away: NOTHING,
    },
    Consumer {
        form: "wheel-variant",
        takes: |text, all| all.iter().map(|seen| consumers::wheel_variant(text, seen)).collect(),
        // The provider has no values for other GPUs.
        meets: |seen| {
            let newest = *seen.gpus.iter().max().expect("a GPU");
            let has_values = (5..=12).contains(&newest.0) && seen.cuda >= (11, 0);
            its_processor(seen) && has_values && !seen.gpus.iter().any(|gpu| is_tegra(*gpu))
        },
        gives_away: |seen, judged| {
            let newest = *seen.gpus.iter().max().expect("a GPU");
            let mut minors = (0..10).map(|minor| (newest.0, minor)).filter(|gpu| !is_tegra(*gpu));
            minors.any(|gpu| judged(gpu) != Verdict::Runs).then_some("not all of the major is fit")
        },
    },
    Consumer { form: "slurm", takes: consumers::slurm, meets: |_| true, gives_away: NOTHING },
];

/// The other formats cannot express the processor: it is that of the image, the pod or the package.
fn its_processor(seen: &Seen) -> bool {
    seen.processor == std::env::consts::ARCH
}

/// Returns true if the driver no longer supports one of the GPUs, or if it exists only with another processor.
fn has_impossible_gpu(seen: &Seen) -> bool {
    let release: DriverRelease = seen.release.parse().expect("a release");
    let last = |(major, minor): (u32, u32)| tables::last_branch((narrow(major), narrow(minor)));
    seen.gpus.iter().any(|gpu| is_tegra(*gpu) || last(*gpu).is_some_and(|last| release.branch > last))
}

fn narrow(number: u32) -> u8 {
    u8::try_from(number).expect("a small number")
}

/// Returns true for Jetson GPUs, which do not exist with this machine's processor.
fn is_tegra((major, minor): (u32, u32)) -> bool {
    std::env::consts::ARCH == "x86_64" && tables::is_tegra((narrow(major), narrow(minor)))
}

#[derive(Default)]
struct Count {
    pairs: usize,
    /// Verdict `runs`, and the consumer admits the machine.
    taken: usize,
    /// Verdict `runs`, but the consumer does not admit the machine, whose GPUs differ.
    over_unlike: usize,
    /// Verdict `runs`, but the consumer does not admit the machine for a documented reason.
    given_away: BTreeMap<&'static str, usize>,
    /// Verdict `runs`, but the consumer does not admit the machine for no documented reason.
    over: usize,
    /// Verdict unknown, and the consumer admits the machine.
    open: usize,
    /// The format cannot express the requirements.
    none: usize,
}

/// Random file, its manifests, and machines.
struct Drawn {
    file: PathBuf,
    manifests: Vec<Manifest>,
    machines: Vec<Seen>,
}

/// Returns the number of pairs of a file and a machine for each format.
fn wanted_pairs() -> usize {
    usize::try_from(number("CUDAGUARD_PAIRS", 300)).expect("so many fit")
}

/// Passes random files to `take` until it returns `Break`. Some formats cannot express the requirements of some files.
fn each_drawn(name: &str, mut take: impl FnMut(&Drawn) -> ControlFlow<()>) {
    let seed = number("CUDAGUARD_SEED", 0x5851_f42d_4c95_7f2d).max(1);
    let mut dice = Dice::new(seed, 1);
    let scratch = Scratch::new(name);
    for (at, manifests) in random_programs(seed, 8 * wanted_pairs().div_ceil(MACHINES)).iter().enumerate() {
        let file = scratch.join(format!("p{at}"));
        let manifests: Vec<Manifest> =
            manifests.iter().map(|manifest| Manifest { sealed: true, ..manifest.clone() }).collect();
        let descriptors: Vec<_> = manifests.iter().map(descriptor).collect();
        NATIVE.program(&file, &descriptors, None);
        let machines: Vec<Seen> = (0..MACHINES).map(|_| random_seen(&mut dice)).collect();
        let drawn = Drawn { file, manifests, machines };
        let more = take(&drawn);
        std::fs::remove_file(&drawn.file).expect("it was made");
        if more.is_break() {
            break;
        }
    }
}

#[e2e(slow)]
fn requirements_admit_only_accepted_hosts() {
    let mut counts: [Count; CONSUMERS.len()] = Default::default();
    let mut wrong = String::new();
    each_drawn("requirements-held", |Drawn { file, manifests, machines }| {
        let binary = Binary::read(file).expect("a program");
        let evidence = Evidence::from_binary(&binary, binary.kernels().expect("GPU code"));
        let components = Components::from_binary(file, &binary, &evidence);
        for (Consumer { form, takes, meets, gives_away }, count) in CONSUMERS.iter().zip(&mut counts) {
            if count.pairs >= wanted_pairs() {
                continue;
            }
            let Some(text) = written(file, form) else {
                count.none += 1;
                continue;
            };
            for (seen, taken) in machines.iter().zip(takes(&text, machines)) {
                if !meets(seen) || has_impossible_gpu(seen) {
                    continue;
                }
                let verdict = judged(&components, manifests, seen);
                count.pairs += 1;
                let unlike = seen.gpus.windows(2).any(|pair| pair[0] != pair[1]);
                let with = |gpu| judged(&components, manifests, &Seen { gpus: vec![gpu], ..seen.clone() });
                match (verdict, taken) {
                    (Verdict::Refused, true) => {
                        let _ = writeln!(wrong, "{form} takes {seen:?}, which is refused:\n{text}\n{manifests:?}");
                    }
                    (Verdict::Runs, true) => count.taken += 1,
                    (Verdict::Runs, false) if unlike => count.over_unlike += 1,
                    (Verdict::Runs, false) => match gives_away(seen, &with) {
                        Some(why) => *count.given_away.entry(why).or_default() += 1,
                        None => count.over += 1,
                    },
                    (Verdict::Unknown, true) => count.open += 1,
                    (Verdict::Unknown | Verdict::Refused, false) => {}
                }
            }
        }
        let enough = CONSUMERS.iter().zip(&counts).all(|(_, count)| count.pairs >= wanted_pairs());
        if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    for (Consumer { form, .. }, count) in CONSUMERS.iter().zip(&counts) {
        let Count { pairs, taken, over_unlike, given_away, over, open, none } = count;
        let given_away: Vec<String> = given_away.iter().map(|(why, count)| format!("{count} for {why}, ")).collect();
        let given_away = given_away.concat();
        println!(
            "{form}: {pairs} pairs, {taken} run and are taken; not taken: {over_unlike} of unlike GPUs, {given_away}{over} \
             others; {open} cannot be told and are taken; {none} files without a requirement"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.chars().take(6000).collect::<String>());
    for (Consumer { form, .. }, count) in CONSUMERS.iter().zip(&counts) {
        assert!(
            count.taken > count.pairs / 20,
            "{form}: only {} of {} pairs show a difference",
            count.taken,
            count.pairs
        );
        let named = count.over_unlike + count.given_away.values().sum::<usize>();
        assert!(
            // The few pairs of a quick run vary.
            count.over == 0 && named * 100 <= count.pairs + 300,
            "{form}: of {} pairs {named} are refused without need, and {} for nothing that is known",
            count.pairs,
            count.over
        );
    }
}

/// Returns the output in this format, or `None` if the format cannot express the requirements, with an error message.
fn written(file: &Path, form: &str) -> Option<String> {
    let outcome = command::call(["requirements", "--format", form]).arg(file).run();
    if outcome.status() == Some(0) {
        return Some(outcome.stdout);
    }
    let reported = outcome.stderr.contains("no requirement can be derived")
        || outcome.stderr.contains("no requirement to express")
        || outcome.stderr.contains("no known driver release")
        || outcome.stderr.contains("no requirement on driver or GPU")
        || outcome.stderr.contains("no value of sm_arch")
        || outcome.stderr.contains("no CUDA component is required");
    assert!(outcome.status() == Some(2) && outcome.stdout.is_empty() && reported, "{form}: {outcome}");
    None
}

/// Returns our verdict.
fn judged(components: &Components, manifests: &[Manifest], seen: &Seen) -> Verdict {
    let release: DriverRelease = seen.release.parse().expect("a release");
    let driver = Driver {
        user: Some(release),
        kernel: Some(release),
        cuda: Some(CudaVersion::new(seen.cuda.0, seen.cuda.1)),
        init: Some(0),
        ..Driver::default()
    };
    let narrow = |number: u32| u8::try_from(number).expect("a small number");
    let gpu = |cc: &(u32, u32)| Gpu { cc: Some((narrow(cc.0), narrow(cc.1))), visible: Some(true), ..Gpu::default() };
    // The program contains cuDNN, so the oldest accepted release is used.
    let rows = manifests.iter().flat_map(|manifest| &manifest.requires);
    let min = rows.filter_map(|row| match row {
        Requirement::Library { min, .. } => Some(*min),
        _ => None,
    });
    let library = |version: Version| HostLibrary { version: Some(version), taken: true, ..HostLibrary::default() };
    let machine = Machine {
        platform: Some(format!("{}-linux", seen.processor)),
        driver: Some(driver),
        gpus: Some(seen.gpus.iter().map(gpu).collect()),
        libraries: min.max().map(|min| (CUDNN.key, vec![library(min)])).into_iter().collect(),
        ..Machine::default()
    };
    Verdict::from_findings(&components.check_on(&machine, "that machine"))
}

/// Selects drivers from all branches of the table, and known and unknown GPUs. Few machines have GPUs that differ.
fn random_seen(dice: &mut Dice) -> Seen {
    let branches: Vec<_> = tables::branch_rows().iter().filter(|branch| branch.exact && branch.branch > 400).collect();
    let branch = branches[dice.below(branches.len())];
    let release = format!("{}.{}.{:02}", branch.branch, 10 + dice.below(240), dice.below(20));
    let mut gpus = vec![random_gpu(dice)];
    if dice.below(100) == 0 {
        gpus.push(random_gpu(dice));
    }
    let other = if std::env::consts::ARCH == "aarch64" { "x86_64" } else { "aarch64" };
    let processor = if dice.below(20) == 0 { other } else { std::env::consts::ARCH };
    Seen { processor, release, cuda: (branch.least.major, branch.least.minor), gpus }
}

fn random_gpu(dice: &mut Dice) -> (u32, u32) {
    let rows = tables::arch_rows();
    let known = rows[dice.below(rows.len())].cc;
    let later = [(8, 8), (9, 1), (10, 5), (12, 5), (13, 0), (14, 2), (21, 0)];
    if dice.below(8) == 0 { later[dice.below(later.len())] } else { (known.0.into(), known.1.into()) }
}
