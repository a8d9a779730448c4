//! `cargo face`: what the library shows to whoever depends on it, and how many items that is; for the features given as
//! cargo's own arguments.

use cudaguard_tests::{face, places};

fn main() {
    let features: Vec<String> = std::env::args().skip(1).collect();
    let features: Vec<&str> = features.iter().map(String::as_str).collect();
    let face = face::of(places::workspace(), &features, places::target());
    print!("{face}");
    println!("{} items", face::items(&face));
}
