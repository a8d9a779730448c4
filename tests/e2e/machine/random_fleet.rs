//! Many random machines: `verify --fleet` counts the verdicts that the judge has for the facts of each, without the host file
//! format and without the caches of machines and lines.
//!
//!     CUDAGUARD_HOSTS=1000000 cargo test --release --test e2e machine::random_fleet -- --include-ignored

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use cargo_cudaguard::host::facts::{CudnnState, DriverState, Host, HostDriver, HostGpu, Jit, LoaderVersion};
use cargo_cudaguard::host::judge::judge;
use cargo_cudaguard::verdict::Verdict;
use cudaguard::internal::manifest::{Linkage, Manifest, Requirement};
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};
use cudaguard_tests::{Dice, Scratch, command, e2e};

use crate::judge_equal::fixture::{NATIVE, descriptor};
use crate::judge_equal::{number, random_programs};

/// Number of machine models in the fleet.
const MODELS: usize = 200;

/// Driver releases, and the CUDA version that the branch of each supports. No table contains the last branch.
const DRIVERS: [(&str, Option<(u32, u32)>); 7] = [
    ("470.256.02", Some((11, 4))),
    ("525.60.13", Some((12, 0))),
    ("535.261.03", Some((12, 2))),
    ("550.163.01", Some((12, 4))),
    ("580.95.05", Some((13, 0))),
    ("590.44.01", Some((13, 1))),
    ("700.01", None),
];

const CCS: [(u8, u8); 11] = [(5, 2), (6, 0), (7, 0), (7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (12, 0)];

/// Known facts of a machine.
#[derive(Clone, Debug)]
struct Facts {
    processor: &'static str,
    driver: OfDriver,
    gpus: Option<Vec<((u8, u8), bool)>>,
    /// `None` if it was not searched; empty if there is none.
    cudnn: Option<Vec<&'static str>>,
    forced: bool,
    disabled: bool,
}

#[derive(Clone, Debug)]
enum OfDriver {
    Unknown,
    Absent,
    Found { release: &'static str, supports: Option<(u32, u32)>, printed: bool, init: Option<u32>, compiler: bool },
}

fn facts(dice: &mut Dice) -> Facts {
    let other = if std::env::consts::ARCH == "aarch64" { "x86_64" } else { "aarch64" };
    let driver = match dice.below(20) {
        0 => OfDriver::Unknown,
        1 => OfDriver::Absent,
        _ => {
            let (release, supports) = dice.pick(&DRIVERS);
            let init = dice.pick(&[None, None, None, Some(0), Some(0), Some(100), Some(803)]);
            OfDriver::Found { release, supports, printed: dice.below(2) == 0, init, compiler: dice.below(9) > 0 }
        }
    };
    let mut gpus = Vec::new();
    let alike = dice.pick(&CCS);
    for _ in 0..dice.pick(&[0, 1, 1, 2, 4, 8, 8]) {
        gpus.push((if dice.below(12) == 0 { dice.pick(&CCS) } else { alike }, dice.below(8) > 0));
    }
    Facts {
        processor: if dice.below(30) == 0 { other } else { std::env::consts::ARCH },
        driver,
        gpus: (dice.below(30) > 0).then_some(gpus),
        cudnn: dice.pick(&[
            None,
            Some(vec![]),
            Some(vec!["9.4.0"]),
            Some(vec!["9.15.1"]),
            Some(vec!["9.28.0"]),
            Some(vec!["8.9.7"]),
        ]),
        forced: dice.below(20) == 0,
        disabled: dice.below(20) == 0,
    }
}

impl Facts {
    /// Converts the facts for the reference implementation, for a component that opens or links the cuDNN of this major.
    fn host(&self, manifest: &Manifest) -> Host {
        let wanted = manifest.requires.iter().find_map(|row| match row {
            Requirement::Library { built, linkage, .. } => Some((built.major, *linkage)),
            _ => None,
        });
        let library = match (self.cudnn.as_deref(), wanted) {
            (None, _) | (_, None) => CudnnState::Unknown,
            (Some([]), _) => CudnnState::Absent,
            (Some([text, ..]), Some((major, linkage))) => {
                let version: Version = text.parse().expect("a version");
                if linkage == Linkage::Dlopened && version.major != major {
                    CudnnState::Absent
                } else {
                    CudnnState::Found {
                        path: PathBuf::new(),
                        picked_by: None,
                        major: version.major,
                        version: Some(version),
                        inner: Vec::new(),
                        loader: LoaderVersion::Unknown,
                        made_with: None,
                    }
                }
            }
        };
        let (driver, compiler) = match &self.driver {
            OfDriver::Unknown => (DriverState::Unknown, None),
            OfDriver::Absent => (DriverState::Absent, None),
            OfDriver::Found { release, supports, init, compiler, .. } => {
                let release = Some(release.parse().expect("a release"));
                let cuda = supports.map(|(major, minor)| CudaVersion::new(major, minor));
                let branch = release.map(|release: DriverRelease| release.branch);
                let driver =
                    HostDriver { user: release, kernel: release, branch, cuda, init: *init, ..HostDriver::default() };
                (DriverState::Found(driver), Some(*compiler))
            }
        };
        let gpu = |(cc, visible): &((u8, u8), bool)| HostGpu { cc: Some(*cc), visible: *visible, ..HostGpu::default() };
        Host {
            library,
            driver,
            gpus: self.gpus.as_ref().map(|gpus| gpus.iter().map(gpu).collect()),
            jit: Jit { forced: self.forced, disabled: self.disabled, compiler },
            ..Host::default()
        }
    }

    fn verdict(&self, manifests: &[Manifest]) -> Verdict {
        if self.processor != std::env::consts::ARCH {
            return Verdict::Refused;
        }
        let findings = manifests.iter().flat_map(|manifest| judge(manifest, &self.host(manifest)));
        Verdict::from_findings(&findings.collect::<Vec<_>>())
    }

    /// Returns the host file on one line, in one of several equivalent JSON styles.
    fn line(&self, number: usize, dice: &mut Dice) -> String {
        let (habit, blank) = (dice.below(4), [" ", ""][dice.below(2)]);
        let name = match dice.below(50) {
            0 => format!("n\\u00f6de \\\"{number}\\\""),
            1 => format!("nœud-{number}"),
            _ => format!("node-{number}"),
        };
        let mut members = vec![format!("\"platform\":{blank}\"{}-linux\"", self.processor)];
        match &self.driver {
            OfDriver::Unknown => {}
            OfDriver::Absent => members.push("\"driver\":{\"present\":false}".to_owned()),
            OfDriver::Found { release, supports, printed, init, compiler } => {
                let mut of = format!("\"driver\":{{\"user\":\"{release}\",{blank}\"kernel\":\"{release}\"");
                if let (true, Some((major, minor))) = (*printed, supports) {
                    let _ = write!(of, ",\"cuda\":\"{major}.{minor}\"");
                }
                if let Some(init) = init {
                    let _ = write!(of, ",\"init\":{init}");
                }
                members.push(
                    of + &format!(",\"ptx_compiler\":{compiler},\"library\":\"/usr/lib/libcuda.so.{release}\"}}"),
                );
            }
        }
        if let Some(gpus) = &self.gpus {
            let all: Vec<String> = gpus
                .iter()
                .enumerate()
                .map(|(at, ((major, minor), visible))| {
                    let uuid = format!("GPU-{number:08x}-{at:04x}-{:08x}", dice.below(1 << 30));
                    let seen = if *visible && habit == 0 { String::new() } else { format!(",\"visible\":{visible}") };
                    match habit {
                        1 => format!("{{\"uuid\":\"{uuid}\",{blank}\"cc\":\"{major}.{minor}\"{seen}}}"),
                        2 => format!("{{\"cc\":\"{major}.{minor}\",\"pci\":\"0000:{at:02x}:00.0\"{seen}}}"),
                        _ => format!("{{\"name\":\"A GPU\",\"cc\":\"{major}.{minor}\",\"uuid\":\"{uuid}\"{seen}}}"),
                    }
                })
                .collect();
            members.push(format!("\"gpus\":[{}]", all.join(",")));
        }
        match self.cudnn.as_deref() {
            None => {}
            Some([]) => members.push("\"cudnn\":[]".to_owned()),
            Some([version, ..]) => {
                members.push(format!(
                    "\"cudnn\":[{{\"version\":\"{version}\",\"path\":\"/opt/cudnn/libcudnn.so\",\"by\":\"{}\"}}]",
                    dice.pick(&["/etc/ld.so.cache", "LD_LIBRARY_PATH: /opt/cudnn"])
                ));
            }
        }
        let mut variables = Vec::new();
        variables.extend(self.forced.then_some("\"CUDA_FORCE_PTX_JIT\":\"1\""));
        variables.extend(self.disabled.then_some("\"CUDA_DISABLE_PTX_JIT\":\"1\""));
        if !variables.is_empty() {
            members.push(format!("\"variables\":{{{}}}", variables.join(",")));
        }
        if habit == 3 {
            members.reverse();
        }
        members.insert(if habit == 3 { members.len() } else { 0 }, format!("\"name\":{blank}\"{name}\""));
        format!("{{{}}}\n", members.join(if blank.is_empty() { "," } else { ", " }))
    }
}

#[e2e(slow)]
fn totals_match_slow_judge() {
    let hosts = usize::try_from(number("CUDAGUARD_HOSTS", 20_000)).expect("so many fit");
    let seed = number("CUDAGUARD_SEED", 0x2545_f491_4f6c_dd1d).max(1);
    let scratch = Scratch::new("million");
    // Selects programs that run on some of the machines only.
    let programs: Vec<Vec<Manifest>> = random_programs(seed, 40)
        .into_iter()
        .map(|all| all.into_iter().map(|manifest| Manifest { sealed: true, ..manifest }).collect::<Vec<_>>())
        .filter(|manifests| {
            let mut dice = Dice::new(seed, 0);
            let verdicts: Vec<Verdict> = (0..300).map(|_| facts(&mut dice).verdict(manifests)).collect();
            let many = |verdict: Verdict| verdicts.iter().filter(|one| **one == verdict).count() > 30;
            many(Verdict::Runs) && many(Verdict::Refused) && many(Verdict::Unknown)
        })
        .take(3)
        .collect();
    assert_eq!(programs.len(), 3, "CUDAGUARD_SEED={seed} gives too few programs whose result depends on the machine");
    let files: Vec<PathBuf> = (0..programs.len()).map(|at| scratch.join(format!("p{at}"))).collect();
    for (file, manifests) in files.iter().zip(&programs) {
        let descriptors: Vec<_> = manifests.iter().map(descriptor).collect();
        NATIVE.program(file, &descriptors, None);
    }
    let mut counts = [[0_usize; 3]; 4];
    let mut verdicts = Vec::with_capacity(hosts);
    each_host(seed, hosts, |facts, _| {
        let of: Vec<usize> = programs.iter().map(|manifests| weight(facts.verdict(manifests))).collect();
        let worst = *of.iter().max().expect("programs");
        for (count, weight) in counts.iter_mut().zip(of.iter().chain([&worst])) {
            count[*weight] += 1;
        }
        verdicts.push([of[0], of[1], of[2]].map(|weight| u8::try_from(weight).expect("a small number")));
    });
    let feed = |input: &mut ChildStdin| {
        each_host(seed, hosts, |_, line| input.write_all(line().as_bytes()).expect("it reads all of it"));
    };

    let mut at = 0;
    run(&files, &["--json"], hosts, feed, |line| {
        let (host, file) = (at / files.len(), at % files.len());
        let verdict = [Verdict::Runs, Verdict::Unknown, Verdict::Refused][usize::from(verdicts[host][file])].name();
        let tells = line.contains(&format!("\"verdict\":\"{verdict}\""))
            && line.ends_with(&format!(",\"line\":{}}}", host + 1));
        assert!(tells, "expected {verdict} of {file}: {line}\n{}\n{:?}", host_line(seed, host), programs[file]);
        at += 1;
    });
    assert_eq!(at, hosts * files.len());

    let mut printed = String::new();
    run(&files, &[], hosts, feed, |line| printed = std::mem::take(&mut printed) + &line + "\n");
    let blocks: Vec<&str> = printed.split(" machines\n").skip(1).collect();
    assert_eq!(blocks.len(), counts.len(), "{printed}");
    for (block, count) in blocks.iter().zip(&counts) {
        let reported = |words: &[&str]| {
            let lines = block.lines().map(str::trim_start).filter_map(|line| line.split_once("  "));
            let mut found = lines.filter(|(_, what)| words.contains(what));
            found.next().map_or(0, |(count, _)| count.parse::<usize>().expect("a number"))
        };
        assert_eq!(
            [reported(&["run it", "run all of them"]), reported(&["unknown"]), reported(&["refused"])],
            *count,
            "{printed}"
        );
    }
}

fn weight(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Runs => 0,
        Verdict::Unknown => 1,
        Verdict::Refused => 2,
    }
}

/// Generates the same machines for the same seed. Most of them belong to a few models.
fn each_host(seed: u64, hosts: usize, mut take: impl FnMut(&Facts, &mut dyn FnMut() -> String)) {
    let mut dice = Dice::new(seed, 1);
    let models: Vec<Facts> = (0..MODELS).map(|_| facts(&mut dice)).collect();
    for number in 0..hosts {
        let facts = if dice.below(50) == 0 { facts(&mut dice) } else { dice.pick(&models) };
        let mut habits = Dice::new(dice.below(1 << 30) as u64, 0);
        take(&facts, &mut || facts.line(number, &mut habits));
    }
}

/// Returns the line of one machine.
fn host_line(seed: u64, host: usize) -> String {
    let (mut number, mut found) = (0, String::new());
    each_host(seed, host + 1, |_, line| {
        if number == host {
            found = line();
        }
        number += 1;
    });
    found
}

/// Runs `verify --fleet -` and writes one machine at a time. Reports its cost, and limits its memory to some megabytes.
fn run(
    files: &[PathBuf],
    arguments: &[&str],
    hosts: usize,
    feed: impl Fn(&mut ChildStdin) + Sync,
    mut take: impl FnMut(String),
) {
    let mut child = Command::new(command::path())
        .arg("verify")
        .args(files)
        .args(arguments)
        .args(["--fleet", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("it can be started");
    let (mut input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let (mut peak, mut time) = (0, 0.0);
    std::thread::scope(|scope| {
        let (feed, child) = (&feed, &child);
        let fed = scope.spawn(move || {
            feed(&mut input);
            cost(child)
        });
        for line in BufReader::new(output).lines() {
            take(line.expect("text"));
        }
        (peak, time) = fed.join().expect("all of it was read");
    });
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(1), "{status}");
    #[allow(clippy::cast_precision_loss)]
    let rate = (hosts * files.len()) as f64 / time;
    println!(
        "{hosts} machines, {} files {}: {time:.2} s of processor time, {rate:.0} verdicts a second, {peak} KiB at most",
        files.len(),
        arguments.concat()
    );
    assert!(peak < 96 * 1024, "{peak} KiB");
}

/// Returns the peak memory in KiB and the processor time in seconds of a process. Source: proc(5).
fn cost(child: &Child) -> (u64, f64) {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", child.id())).expect("it still runs");
    let status = read("status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let stat = read("stat");
    let (_, fields) = stat.rsplit_once(')').expect("the program's name");
    let ticks = fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<f64>().expect("a number"));
    (peak.expect("a size").parse().expect("a number"), ticks.sum::<f64>() / 100.0)
}
