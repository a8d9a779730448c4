//! Implementations of the consumers, based on their own documentation. Each decides if it admits a machine.
//!
//! They use none of our terms for a requirement: they parse the command's output, and the facts that the consumer has.

use std::collections::HashMap;

use cudaguard_tests::{Call, Scratch};

/// Machine as each consumer sees it: its driver, and the compute capabilities of its GPUs.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Processor, such as `x86_64`.
    pub(crate) processor: &'static str,
    /// Driver release, such as `550.163.01`.
    pub(crate) release: String,
    /// CUDA version that the driver supports.
    pub(crate) cuda: (u32, u32),
    pub(crate) gpus: Vec<(u32, u32)>,
}

/// Parses two numbers of a version. A missing number is 0, as in libnvidia-container.
pub(super) fn two(text: &str) -> (u32, u32) {
    let mut numbers = text.split('.').map(|number| number.parse().expect("digits and dots"));
    (numbers.next().expect("a number"), numbers.next().unwrap_or(0))
}

/// Returns the value of the line `name=value`.
fn variable<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.trim_start_matches("ENV ").strip_prefix(name)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {name} in:\n{text}")).trim_matches('"')
}

/// libnvidia-container, src/cli/dsl.c and src/cli/configure.c: a blank is OR; a comma is AND and binds tighter. Each
/// requirement must hold for all visible GPUs. An unknown property fails the start.
pub(crate) fn nvidia_require(text: &str, machine: &Seen) -> bool {
    let expression = variable(text, "NVIDIA_REQUIRE_CUDA");
    assert!(!expression.is_empty() && !expression.contains("  "), "{expression:?}");
    let factor = |factor: &str, cc: (u32, u32)| {
        let at = factor.find(['<', '>', '=', '!']).unwrap_or_else(|| panic!("no operator: {factor}"));
        let (property, rest) = factor.split_at(at);
        let value = rest.trim_start_matches(['<', '>', '=', '!']);
        let (own, other) = (if property == "cuda" { machine.cuda } else { cc }, two(value));
        assert!(["cuda", "arch"].contains(&property), "{property} is not among those that are used");
        match &rest[..rest.len() - value.len()] {
            "=" => own == other,
            "!=" => own != other,
            "<" => own < other,
            "<=" => own <= other,
            ">" => own > other,
            ">=" => own >= other,
            operator => panic!("{operator} is no operator"),
        }
    };
    let holds = |cc: &(u32, u32)| expression.split(' ').any(|term| term.split(',').all(|one| factor(one, *cc)));
    machine.gpus.iter().all(holds)
}

/// Node affinity of Kubernetes (component-helpers, scheduling/corev1/nodeaffinity): terms are alternatives, and a term
/// needs all its expressions. An empty term matches no node. `Gt` and `Lt` compare integers, and an absent label matches
/// neither.
pub(crate) fn affinity(text: &str, machine: &Seen) -> bool {
    let cc = machine.gpus[0];
    let labels: HashMap<&str, u32> = HashMap::from([
        ("nvidia.com/gpu.compute.major", cc.0),
        ("nvidia.com/gpu.compute.minor", cc.1),
        ("nvidia.com/cuda.runtime-version.major", machine.cuda.0),
        ("nvidia.com/cuda.runtime-version.minor", machine.cuda.1),
    ]);
    let terms: Vec<&str> = text.split("- matchExpressions:\n").skip(1).collect();
    assert!(!terms.is_empty(), "{text}");
    let expression = |line: &str| {
        let inside = line.trim().strip_prefix("- {").and_then(|line| line.strip_suffix('}')).expect("an expression");
        let value = |name: &str| {
            inside.split(", ").find_map(|part| part.strip_prefix(name)?.strip_prefix(": ")).expect("a key of it")
        };
        let wanted = value("values").trim_matches(['[', ']', '"']);
        if value("key") == "kubernetes.io/arch" {
            assert_eq!(value("operator"), "In");
            return wanted == if machine.processor == "aarch64" { "arm64" } else { "amd64" };
        }
        let number: u32 = wanted.parse().expect("a whole number");
        let own = labels[value("key")];
        match value("operator") {
            "In" => own == number,
            "Gt" => own > number,
            "Lt" => own < number,
            operator => panic!("{operator}"),
        }
    };
    terms.iter().any(|term| {
        let lines: Vec<&str> = term.lines().filter(|line| !line.trim().is_empty()).collect();
        !lines.is_empty() && lines.iter().all(|line| expression(line))
    })
}

/// conda's version specifications (conda/models/version.py: `,` binds tighter than `|`), CEP 30 and CEP 46: the lowest
/// compute capability of the machine counts. A recipe with a variant builds one package per value, and one suitable package
/// is enough.
pub(crate) fn conda(text: &str, machine: &Seen) -> bool {
    let (run, constraints) = text.split_once("  run_constraints:\n").unwrap_or((text, ""));
    assert!(run.contains("- cuda-version") && !run.contains("- __cuda"), "{text}");
    match constraints.split("- if: least_driver == ").collect::<Vec<_>>()[..] {
        [_, ref packages @ ..] if !packages.is_empty() => packages.iter().any(|pins| conda_package(pins, machine)),
        _ => conda_package(constraints, machine),
    }
}

fn conda_package(text: &str, machine: &Seen) -> bool {
    let spec = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix("- ")?.strip_prefix(name));
        line.map(str::trim)
    };
    let holds = |spec: &str, own: (u32, u32)| {
        spec.split('|').any(|all| {
            all.split(',').all(|one| match one.strip_prefix(">=") {
                Some(least) => own >= two(least),
                None => own < two(one.strip_prefix('<').unwrap_or_else(|| panic!("{one} in {spec}"))),
            })
        })
    };
    let own = |name: &str, own: (u32, u32)| match spec(name) {
        None | Some("") => true,
        Some(spec) => holds(spec, own),
    };
    let lowest = *machine.gpus.iter().min().expect("a GPU");
    own("__cuda ", machine.cuda) && own("__cuda_arch ", lowest)
}

/// wheelnext/nvidia-variant-provider, plugin.py: a machine provides the values of its driver's CUDA version, 11.0 to 15.20,
/// and of its newest GPU, from 5.0 on. One value of each feature of a variant must match. One of several wheels is
/// installed.
pub(crate) fn wheel_variant(text: &str, machine: &Seen) -> bool {
    match text.split("# variant: ").collect::<Vec<_>>()[..] {
        // Each mark is followed by the name and the properties of a wheel.
        [_, ref wheels @ ..] if !wheels.is_empty() => {
            wheels.iter().any(|wheel| wheel_of_variant(wheel.split_once('\n').expect("a name").1, machine))
        }
        _ => wheel_of_variant(text, machine),
    }
}

fn wheel_of_variant(text: &str, machine: &Seen) -> bool {
    let newest = *machine.gpus.iter().max().expect("a GPU");
    let drivers = (11..=15).flat_map(|major| (0..=20).map(move |minor| (major, minor)));
    let drivers = drivers.filter(|version| *version <= machine.cuda).map(|(major, minor)| format!("{major}.{minor}"));
    let archs = (0..=newest.1).map(|minor| format!("{}{minor}_real", newest.0));
    let archs = archs.chain([format!("{}0_virtual", newest.0)]).filter(|_| newest >= (5, 0));
    let own = HashMap::from([
        ("cuda_version_lower_bound", drivers.collect::<Vec<_>>()),
        ("sm_arch", archs.filter(|_| machine.cuda >= (11, 0)).collect()),
    ]);
    let mut met: HashMap<&str, bool> = HashMap::new();
    for property in text.lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = property.split(" :: ").collect();
        let ["nvidia", feature, value] = parts[..] else { panic!("{property:?} is no property of it") };
        let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
        assert!(value.chars().all(known), "{property:?}");
        *met.entry(feature).or_default() |= own[feature].iter().any(|own| own == value);
    }
    assert!(!met.is_empty(), "{text}");
    met.values().all(|met| *met)
}

/// Evaluates `--format json` as docs/reference/requirements.md describes it: one of the GPUs, with a driver that supports
/// it.
pub(crate) fn json(asked: &serde_json::Value, machine: &Seen) -> bool {
    let version = |value: &serde_json::Value| two(value.as_str().expect("a version"));
    let fits = |gpu: &(u32, u32)| {
        asked["gpus"].as_array().expect("GPUs").iter().any(|row| {
            let to = row["to"].as_str().map(|to| if to.contains('.') { two(to) } else { (two(to).0, u32::MAX) });
            let driver = &row["driver"];
            *gpu >= version(&row["from"])
                && to.is_none_or(|to| *gpu <= to)
                && (driver.is_null() || machine.cuda >= version(&driver["cuda"]))
        })
    };
    asked["processor"].as_str().is_none_or(|processor| processor == machine.processor) && machine.gpus.iter().any(fits)
}

/// Runs the Slurm check in a shell with a fake nvidia-smi for each machine.
pub(crate) fn slurm(text: &str, machines: &[Seen]) -> Vec<bool> {
    let scratch = Scratch::new("requirements-slurm");
    let script = scratch.file("check.sh", text);
    let says = |machine: &Seen| {
        let line = |cc: &(u32, u32)| format!("{}.{}, {}\\n", cc.0, cc.1, machine.release);
        machine.gpus.iter().map(line).collect::<String>()
    };
    let all: Vec<String> = machines.iter().map(|machine| format!("{} {}", machine.processor, says(machine))).collect();
    let list = scratch.file("machines", all.join("\n") + "\n");
    // A shell function takes precedence over a program of its name. The script runs in a subshell, because it may exit.
    let loop_over = "while read -r processor said; do (nvidia-smi() { printf \"$said\"; }; uname() { echo $processor; }; . \"$1\") 2>/dev/null; echo $?; done <\"$2\"";
    let outcome = Call::new("bash").args(["-c", loop_over, "bash"]).arg(&script).arg(&list).run().success();
    let status = |line: &str| match line {
        "0" => true,
        "1" => false,
        other => panic!("status {other} of:\n{text}"),
    };
    outcome.stdout.lines().map(status).collect()
}
