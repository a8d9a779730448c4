//! Each mismatch is triggered once: refused in release, warned of otherwise. The graphs are recordings of cargo's output
//! for the real crates; the toolkits are fakes.
//!
//! Most are blocks of `mismatches.txt` ([`Table`]). Their lines build a package and check it, in their order; `@/` is the directory with
//! the toolkits:
//!
//! - `graph` NAME: a package with this recorded graph; `policy` TEXT; `program` PATH TEXT; `directory` PATH; `like` NAME: the lines of a part
//! - `refused` SNAPSHOT CALL: a release build is refused, and others warn; `reported` SNAPSHOT CALL: the findings of a release build that
//!   passes; `passes` CALL, `passes-dev` CALL: there is no finding about crates
//!
//! A CALL is the release of the toolkit in `PATH` and `CUDA_HOME` (`-`: none), and variables. Findings of `check` about the toolchain (an arch
//! without PTX) do not concern crates.

use cudaguard_tests::{Block, Call, Table, Test, e2e, snapshot};

use super::fixture::Tree;
use super::real_crates;
use cudaguard_tests::scratch::program;

const MISMATCHES: Table = Table { file: "mismatches.txt", text: include_str!("mismatches.txt"), marks: &[] };

#[e2e(rows)]
fn tests() -> Vec<Test> {
    MISMATCHES.tests("mismatches::", |block| follow(block, &mut None))
}

/// Follows the lines of a block, which create the package first.
fn follow(block: &Block, package: &mut Option<Tree>) {
    block.follow(|word, rest| {
        let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
        let tree = match word {
            "graph" => package.insert(Tree::recorded(block.name, first)),
            "like" => {
                follow(&MISMATCHES.block(first), package);
                return true;
            }
            _ => package.as_mut().expect("the first line is `graph`"),
        };
        match word {
            "graph" => {}
            "policy" => tree.write("cudaguard.toml", &rest.replace("\\n", "\n")),
            "program" => program(&tree.sibling(first), &second.replace("\\n", "\n")),
            "directory" => std::fs::create_dir_all(tree.sibling(first)).expect("a directory"),
            "refused" => tree.refused(first, |_, arguments| call(tree, second, arguments)),
            "reported" => {
                let printed = tree.passes(|arguments| call(tree, second, arguments));
                snapshot::check(&format!("graph/{first}"), &printed);
            }
            "passes" | "passes-dev" => {
                let printed = match word {
                    "passes" => tree.passes(|arguments| call(tree, rest, arguments)),
                    _ => tree.printed(&call(tree, rest, &["check"]).run().success()),
                };
                assert!(!printed.contains("[CG15"), "{printed}");
            }
            _ => return false,
        }
        true
    });
}

/// Returns a call with the toolkit and the variables of these words.
fn call(tree: &Tree, words: &str, arguments: &[&str]) -> Call {
    let mut words = words.split(' ');
    let call = match words.next().expect("a release") {
        "-" => {
            let path = std::env::var("PATH").expect("a PATH");
            tree.call("13.0", arguments).env_remove("CUDA_HOME").env("PATH", path)
        }
        release => tree.call(release, arguments),
    };
    words.fold(call, |call, word| {
        let (name, value) = word.split_once('=').expect("NAME=VALUE");
        call.env(name, value.replace("@/", &tree.sibling("").display().to_string()))
    })
}

const FLEET: &str = "[gpu]\nfleet = [\"T4\", \"H100\"]\n";

/// The build script of candle-kernels fails without `CUDA_COMPUTE_CAP` if nvidia-smi reports no GPU.
#[e2e]
fn builder_without_gpu_is_reported() {
    let printed = ["candle-0.11", "candle-0.9"].map(|graph| {
        let tree = Tree::recorded("no-gpu", graph);
        tree.write("cudaguard.toml", FLEET);
        program(&tree.sibling("cuda-13.0/bin/nvidia-smi"), "#!/bin/sh\necho 'No devices were found' >&2\nexit 6\n");
        let printed = tree.passes(|arguments| tree.call("13.0", arguments));
        let named = tree.passes(|arguments| tree.call("13.0", arguments).env("CUDA_COMPUTE_CAP", "75"));
        assert!(!named.contains("CG159"), "{named}");
        let ours = printed.split_inclusive('\n').skip_while(|line| !line.contains("CG159")).take(3).collect::<String>();
        format!("# {graph}\n{ours}")
    });
    snapshot::check("graph/builder-without-gpu", &printed.concat());
}

#[e2e]
fn arch_suffix_change_is_reported() {
    let tree = Tree::recorded("specific", "candle-0.11");
    let printed = tree.passes(|arguments| tree.call("13.0", arguments).env("CUDA_COMPUTE_CAP", "90"));
    let ours: String = printed.split_inclusive('\n').skip_while(|line| !line.contains("CG157")).take(4).collect();
    snapshot::check("graph/specific-arch", &ours);
}

/// A crate that only opens libraries at run time does not use the toolkit of the machine.
#[e2e]
fn toolkit_is_checked_if_crates_use_it() {
    let rows = [
        ("\"dynamic-loading\", \"cuda-13000\"", "info"),
        ("\"dynamic-loading\", \"cuda-version-from-build-system\"", "warning"),
        ("\"dynamic-linking\", \"cuda-13000\"", "warning"),
    ];
    for (features, severity) in rows {
        let tree = real_crates::tree(
            "used-toolkit",
            &format!(
                "cudarc = {{ version = \"=0.19.10\", default-features = false, features = [\"driver\", {features}] }}\n"
            ),
        );
        let checked = tree.call("13.0", &["check"]).env("CUDA_HOME", "/nowhere").run().success();
        assert!(
            checked.stderr.contains(&format!("{severity}[CG104]: CUDA_HOME names a path")),
            "{features}: {checked}"
        );
    }
}
