//! `cargo face`: prints the public API of the library and its number of items, for the features in cargo's arguments.

use cudaguard_tests::{face, places};

fn main() {
    let features: Vec<String> = std::env::args().skip(1).collect();
    let features: Vec<&str> = features.iter().map(String::as_str).collect();
    let face = face::of(places::workspace(), &features, places::target());
    print!("{face}");
    println!("{} items", face::items(&face));
}
