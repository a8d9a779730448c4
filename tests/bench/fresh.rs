//! Measures the first steps of a newcomer in a fresh clone: `cargo bench -p cudaguard-tests --bench fresh`.
//!
//! - `demo`: `cargo demo`
//! - `tests`: `cargo test`, the fast layer, compilation included
//! - `install`: `cargo install --path cargo-cudaguard`
//!
//! Arguments after `--` select rows (`-- demo install`). Each row also prints the ratio to a clean dev build of the
//! command in the same run, because machines differ. The components must have been fetched; the registry must be warm.

use std::path::Path;
use std::process::{Command, Stdio};

use cudaguard_tests::cost::Cost;
use cudaguard_tests::{Call, Scratch, parts, places};

/// The arguments of cargo, and the budget on two cores in elapsed seconds.
const ROWS: [(&str, &[&str], Option<f64>); 3] = [
    ("demo", &["demo"], Some(120.0)),
    ("tests", &["test"], Some(300.0)),
    ("install", &["install", "--path", "cargo-cudaguard", "--root", "installed"], None),
];

fn main() {
    // `cargo test --benches` only checks that it compiles.
    if !std::env::args().any(|word| word == "--bench") {
        return;
    }
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let yardstick = measure(&["build", "--package", "cargo-cudaguard"]);
    print("a clean dev build of the command", yardstick, yardstick);
    for (name, arguments, budget) in ROWS {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let cost = measure(arguments);
        print(&format!("cargo {}", arguments.join(" ")), cost, yardstick);
        if let Some(budget) = budget {
            println!("    {:.0} % of the budget of {budget} s", 100.0 * cost.wall.as_secs_f64() / budget);
        }
    }
}

/// Runs cargo with these arguments in a fresh clone of the commit that is checked out.
fn measure(arguments: &[&str]) -> Cost {
    let scratch = Scratch::new("fresh-clone");
    let clone = scratch.join("clone");
    let _ = Call::new("git").args(["clone", "--quiet"]).args([places::workspace(), &*clone]).run().success();
    Cost::measure(&mut || run(arguments, &clone))
}

fn run(arguments: &[&str], dir: &Path) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(dir).env_remove("CARGO_TARGET_DIR").env("CUDAGUARD_PARTS", parts::dir());
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("cargo can be started");
    assert!(status.success(), "{command:?} failed");
}

fn print(what: &str, cost: Cost, yardstick: Cost) {
    let (wall, processor) = (cost.wall.as_secs_f64(), cost.processor.as_secs_f64());
    let (wall_ratio, processor_ratio) =
        (wall / yardstick.wall.as_secs_f64(), processor / yardstick.processor.as_secs_f64());
    println!("{what}: {wall:.0} s ({wall_ratio:.2} x), processor {processor:.0} s ({processor_ratio:.2} x)");
}
