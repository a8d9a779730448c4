//! `cargo modules`: lists cycles among the modules of each crate of this workspace, with the files that refer to each
//! other.
//!
//! Status 0: no cycle; 1: one or more.

use std::process::ExitCode;

use cudaguard_tests::modules::{Modules, crates};

fn main() -> ExitCode {
    let mut found = 0;
    for root in crates() {
        let modules = Modules::of(&root);
        let circles = modules.circles();
        println!("{}: {} circles", root.display(), circles.len());
        for circle in &circles {
            println!("  {}", circle.join(", "));
            for line in modules.within(circle) {
                println!("    {line}");
            }
        }
        found += circles.len();
    }
    ExitCode::from(u8::from(found > 0))
}
