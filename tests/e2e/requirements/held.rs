//! Every form against its consumer: random files, random machines, and our judge beside them.
//!
//!     CUDAGUARD_PAIRS=100000 CUDAGUARD_SEED=7 cargo test --test e2e requirements::held

use std::fmt::Write as _;
use std::path::Path;

use cudaguard::dry_run;
use cudaguard::env::Env;
use cudaguard::finding::Verdict;
use cudaguard::machine::{Components, Driver, Gpu, Library, Machine};
use cudaguard::manifest::{Manifest, Requirement};
use cudaguard::tables;
use cudaguard::vendor::GUARDED;
use cudaguard::version::{CudaVersion, DriverRelease, Version};
use cudaguard_tests::{Scratch, Trial, command, trial};

use super::consumers::{self, Claim, Seen};
use crate::judge_equal::fixture::{NATIVE, descriptor};
use crate::judge_equal::{Dice, number, random_programs};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("held::nothing_is_taken_that_the_judge_refuses", nothing_is_taken_that_the_judge_refuses)]
}

/// Machines for each file.
const MACHINES: usize = 100;

/// A form, and whether its consumer takes each of these machines.
type Consumer = (&'static str, fn(&str, &[Seen]) -> Vec<bool>);

const CONSUMERS: [Consumer; 6] = [
    ("nvidia-require", |text, all| all.iter().map(|seen| consumers::nvidia_require(text, seen)).collect()),
    ("oci", |text, all| all.iter().map(|seen| consumers::nvidia_require(text, seen)).collect()),
    ("k8s-dra", |text, all| {
        let claim = Claim::of(text);
        all.iter().map(|seen| seen.gpus.iter().any(|gpu| claim.takes_gpu(seen, *gpu))).collect()
    }),
    ("k8s-affinity", |text, all| all.iter().map(|seen| consumers::affinity(text, seen)).collect()),
    ("conda", |text, all| all.iter().map(|seen| consumers::conda(text, seen)).collect()),
    ("slurm", consumers::slurm),
];

#[derive(Default)]
struct Count {
    pairs: usize,
    /// The judge says `runs`, and the consumer takes it.
    taken: usize,
    /// The judge says `runs`, and the consumer does not take it: of a machine with GPUs that are not alike, or with one model.
    over_unlike: usize,
    /// The same of conda, where a GPU would do with an older driver than the one `__cuda` for all asks for.
    over_one_cuda: usize,
    /// The same for no reason that has a name.
    over: usize,
    /// The judge cannot tell, and the consumer takes it.
    open: usize,
    /// Nothing can be said in that form.
    none: usize,
}

fn nothing_is_taken_that_the_judge_refuses() {
    let pairs = usize::try_from(number("CUDAGUARD_PAIRS", 3000)).expect("so many fit");
    let seed = number("CUDAGUARD_SEED", 0x5851_f42d_4c95_7f2d).max(1);
    let mut dice = Dice(seed.rotate_left(29));
    let scratch = Scratch::new("requirements-held");
    let mut counts: [Count; CONSUMERS.len()] = Default::default();
    let mut wrong = String::new();
    for (at, manifests) in random_programs(seed, pairs.div_ceil(MACHINES)).iter().enumerate() {
        let file = scratch.join(format!("p{at}"));
        let manifests: Vec<Manifest> =
            manifests.iter().map(|manifest| Manifest { sealed: true, ..manifest.clone() }).collect();
        let descriptors: Vec<_> = manifests.iter().map(descriptor).collect();
        NATIVE.program(&file, &descriptors, None);
        let components = dry_run::components_of(&file, &Env::of_process()).expect("a program");
        let machines: Vec<Seen> = (0..MACHINES).map(|_| dice.seen()).collect();
        let verdicts: Vec<Verdict> = machines.iter().map(|seen| judged(&components, &manifests, seen)).collect();
        for ((form, takes), count) in CONSUMERS.iter().zip(&mut counts) {
            let Some(text) = written(&file, form) else {
                count.none += 1;
                continue;
            };
            // The others have no word for the processor: it is that of the image, the pod or the package.
            let knows_processor = ["k8s-affinity", "slurm"].contains(form);
            for ((seen, verdict), taken) in machines.iter().zip(&verdicts).zip(takes(&text, &machines)) {
                if !knows_processor && seen.processor != std::env::consts::ARCH {
                    continue;
                }
                count.pairs += 1;
                let unlike = seen.gpus.windows(2).any(|pair| pair[0] != pair[1]);
                match (verdict, taken) {
                    (Verdict::Refused, true) => {
                        let _ = writeln!(wrong, "{form} takes {seen:?}, which is refused:\n{text}\n{manifests:?}");
                    }
                    (Verdict::Runs, true) => count.taken += 1,
                    (Verdict::Runs, false) if unlike => count.over_unlike += 1,
                    (Verdict::Runs, false)
                        if *form == "conda" && consumers::conda_cuda(&text).is_some_and(|least| seen.cuda < least) =>
                    {
                        count.over_one_cuda += 1;
                    }
                    (Verdict::Runs, false) => count.over += 1,
                    (Verdict::Unknown, true) => count.open += 1,
                    (Verdict::Unknown | Verdict::Refused, false) => {}
                }
            }
        }
        std::fs::remove_file(&file).expect("it was made");
    }
    for ((form, _), count) in CONSUMERS.iter().zip(&counts) {
        let Count { pairs, taken, over_unlike, over_one_cuda, over, open, none } = count;
        println!(
            "{form}: {pairs} pairs, {taken} run and are taken; not taken: {over_unlike} of unlike GPUs, \
             {over_one_cuda} by one __cuda for all, {over} others; \
             {open} cannot be told and are taken; {none} files without a requirement"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.chars().take(6000).collect::<String>());
    for ((form, _), count) in CONSUMERS.iter().zip(&counts) {
        assert!(count.taken > count.pairs / 20, "{form}: only {} of {} pairs tell anything", count.taken, count.pairs);
        assert!(
            count.over == 0 && count.over_unlike * 100 <= count.pairs,
            "{form}: of {} pairs {} are refused without need for unlike GPUs, {} for nothing that is known",
            count.pairs,
            count.over_unlike,
            count.over
        );
    }
}

/// What is written in this form; `None`: nothing can be said, which is then told in words.
fn written(file: &Path, form: &str) -> Option<String> {
    let outcome = command::call(["requirements", "--format", form]).arg(file).run();
    if outcome.status() == Some(0) {
        return Some(outcome.stdout);
    }
    let told = outcome.stderr.contains("no requirement can be derived")
        || outcome.stderr.contains("there is nothing to select by")
        || outcome.stderr.contains("no driver is known");
    assert!(outcome.status() == Some(2) && outcome.stdout.is_empty() && told, "{form}: {outcome}");
    None
}

/// What our judge says of it.
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
    // The cuDNN comes with the program: the oldest that all of it takes.
    let rows = manifests.iter().flat_map(|manifest| &manifest.requires);
    let min = rows.filter_map(|row| match row {
        Requirement::Library { min, .. } => Some(*min),
        _ => None,
    });
    let library = |version: Version| Library { version: Some(version), taken: true, ..Library::default() };
    let machine = Machine {
        platform: Some(format!("{}-linux", seen.processor)),
        driver: Some(driver),
        gpus: Some(seen.gpus.iter().map(gpu).collect()),
        libraries: min.max().map(|min| (GUARDED.key, vec![library(min)])).into_iter().collect(),
        ..Machine::default()
    };
    Verdict::of(&components.on(&machine, "that machine"))
}

impl Dice {
    /// Drivers of every branch of the table, GPUs that it knows and that it does not; few machines have GPUs that are not alike.
    fn seen(&mut self) -> Seen {
        let branches: Vec<_> = tables::branches().iter().filter(|branch| branch.exact && branch.branch > 400).collect();
        let branch = branches[self.below(branches.len())];
        let release = format!("{}.{}.{:02}", branch.branch, 10 + self.below(240), self.below(20));
        let mut gpus = vec![self.gpu()];
        if self.below(100) == 0 {
            gpus.push(self.gpu());
        }
        let other = if std::env::consts::ARCH == "aarch64" { "x86_64" } else { "aarch64" };
        let processor = if self.below(20) == 0 { other } else { std::env::consts::ARCH };
        Seen { processor, release, cuda: (branch.least.major, branch.least.minor), gpus }
    }

    fn gpu(&mut self) -> (u32, u32) {
        let rows = tables::archs();
        let known = rows[self.below(rows.len())].cc;
        let later = [(8, 8), (9, 1), (10, 5), (12, 5), (13, 0), (14, 2), (21, 0)];
        if self.below(8) == 0 { later[self.below(later.len())] } else { (known.0.into(), known.1.into()) }
    }
}
