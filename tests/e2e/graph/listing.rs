//! `check` lists the crates that reach CUDA, and names those that it does not know.

use cudaguard_tests::{crates, e2e, snapshot};

use super::fixture::Tree;

/// Returns the lines of `check` about crates.
fn listed(tree: &Tree, features: &[&str]) -> String {
    let arguments: Vec<&str> = ["check"].iter().chain(features).copied().collect();
    let outcome = tree.call("13.0", &arguments).env("CUDA_COMPUTE_CAP", "90").run().success();
    let text = snapshot::paths(&outcome.stdout, &[(&tree.root(), "<tree>"), (&tree.sibling(""), "<installs>/")]);
    let lines = text.lines().skip_while(|line| !line.starts_with("  crates "));
    lines.take_while(|line| line.starts_with("  ")).fold(String::new(), |text, line| text + line + "\n")
}

#[e2e]
fn crates_are_listed_by_level_and_libraries() {
    let graphs =
        ["candle-0.11", "candle-0.9", "cubecl-0.8", "cust-0.3", "llama-cpp-2-0.1", "ort-2.0.0-rc.10", "tch-0.26"];
    let text = graphs.iter().fold(String::new(), |text, graph| {
        text + &format!("# {graph}\n{}\n", listed(&Tree::recorded("listed", graph), &[]))
    });
    snapshot::check("graph/listed-crates", &text);
}

/// Crates of the project that no table can have.
#[e2e]
fn unknown_crates_are_named_in_every_format() {
    let tree = Tree::new(
        "unlisted",
        "fast-sum = { path = \"fast-sum\" }\nmy-gpu = { path = \"my-gpu\" }\n\
                                      optional = { path = \"optional\" }\nplain = { path = \"plain\" }\n",
    );
    let member = |name: &str, more: &str, script: &str| {
        tree.write(
            &format!("{name}/Cargo.toml"),
            &format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2021\"\n{more}"),
        );
        tree.write(&format!("{name}/src/lib.rs"), "");
        tree.write(&format!("{name}/build.rs"), script);
    };
    let links = "fn main() { println!(\"cargo:rustc-link-lib=cublas\"); }\n";
    member("fast-sum", "", links);
    member("my-gpu", "links = \"cuda\"\n", "fn main() {}\n");
    member("optional", "[features]\ncuda = []\n", links);
    member("plain", "", "fn main() { println!(\"cargo:rustc-link-lib=z\"); }\n");
    crates::settle(&tree.root());
    snapshot::check("graph/unlisted-crates", &listed(&tree, &["--offline"]));
    let outcome = tree.call("13.0", &["check", "--offline", "--json"]).run().success();
    let value = outcome.json();
    let open = value["packages"][0]["not_judged"].as_array().expect("a list");
    assert_eq!(open.len(), 2, "{open:?}");
    let crates = value["packages"][0]["crates"].as_array().expect("a list");
    assert!(crates.iter().all(|one| one["known"] == false), "{crates:?}");
}
