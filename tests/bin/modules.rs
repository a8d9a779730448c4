//! `cargo modules`: where the modules of a crate of this workspace name each other in a circle, and which file names which.
//!
//! Status 0: nowhere; 1: there is one or more.

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
