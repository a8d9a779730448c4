//! `map`: each cell shows the verdict of `verify` for its machine, and each format is valid.

use cudaguard_tests::{Call, Scratch, command, e2e, parts, places, snapshot};

use crate::requirements::example;

fn map(form: &str) -> String {
    command::call(["map", "--format", form]).arg(example()).run().success().stdout
}

/// Returns (GPU, branch, letter) of each cell in the terminal output.
fn squares(text: &str) -> Vec<(String, String, char)> {
    let mut squares = Vec::new();
    for part in text.split("\n\n").filter(|part| part.trim_start().starts_with("driver")) {
        let mut lines = part.lines().map(str::trim_start);
        let branches: Vec<&str> = lines.next().expect("a head").split_whitespace().skip(1).collect();
        for line in lines.skip(1) {
            let cc = line.split_whitespace().next().expect("a GPU");
            let letters: Vec<&str> = line.split_whitespace().rev().take(branches.len()).collect();
            for (branch, letter) in branches.iter().zip(letters.into_iter().rev()) {
                squares.push((cc.to_owned(), (*branch).to_owned(), letter.chars().next().expect("a letter")));
            }
        }
    }
    squares
}

#[e2e(slow)]
fn cells_match_verify() {
    let squares = squares(&map("text"));
    assert!(squares.len() > 100, "{squares:?}");
    for (cc, branch, letter) in squares.iter().step_by(3) {
        let call = command::call(["verify", "--json", "--driver", branch, "--gpu", cc, "--cudnn", "9.15.1"]);
        let value = call.arg(example()).run().json();
        let codes = value["findings"].as_array().expect("findings").iter().map(|finding| finding["code"].clone());
        let undriven = codes.into_iter().any(|code| code == "CG317");
        let by = value["gpus"][0]["by"].as_str().unwrap_or("none");
        let expected = match (value["verdict"].as_str().expect("a verdict"), by) {
            _ if undriven => '·',
            ("refused", _) => 'x',
            ("unknown", _) => '?',
            (_, "jit") => 'J',
            (_, "partial") => 'P',
            _ => 'N',
        };
        assert_eq!(*letter, expected, "{cc} with {branch}: {value:#}");
    }
    for letter in ['N', 'J', 'x', '·'] {
        assert!(squares.iter().any(|square| square.2 == letter), "{letter} in {squares:?}");
    }
}

#[e2e]
fn text_map_matches_snapshot() {
    snapshot::check("machine/map", &map("text"));
}

/// The command generates the picture in docs/reference/artifacts.md. Each cell has a text equivalent.
#[e2e]
fn svg_map_is_valid() {
    let drawn = map("svg");
    let picture = places::workspace().join("docs/images/map.svg");
    if std::env::var_os("CUDAGUARD_BLESS").is_some_and(|value| !value.is_empty()) {
        std::fs::write(&picture, &drawn).expect("the picture");
    }
    let kept = std::fs::read_to_string(&picture).expect("docs/images/map.svg");
    assert!(kept == drawn, "docs/images/map.svg is stale: CUDAGUARD_BLESS=1 draws it");
    let scratch = Scratch::new("map");
    let file = scratch.file("map.svg", &drawn);
    let count = "import sys, xml.etree.ElementTree as t; r = t.parse(sys.argv[1]).getroot(); n = '{http://www.w3.org/2000/svg}'\n\
                 print(r.get('role'), len([g for g in r.iter(n + 'g') if g.find(n + 'title') is not None]))";
    let reported = Call::new("python3").args(["-c", count]).arg(&file).run().success().stdout;
    assert_eq!(reported.trim(), format!("img {}", squares(&map("text")).len()));
    assert!(drawn.contains("prefers-color-scheme: dark") && drawn.contains("is refused (CG303: "), "{drawn}");
}

/// The HTML page loads no other file, and each cell has a text and can be reached with the keyboard.
#[e2e(slow)]
fn html_map_is_valid() {
    let page = map("html");
    for outside in ["http:", "https:", "<script", "<link", "<img", "@import", "url("] {
        assert!(!page.contains(outside), "{outside} in {page}");
    }
    let count = squares(&map("text")).len();
    for each in ["<td class=", " data-why=\""] {
        assert_eq!(page.matches(each).count(), count, "{each}");
    }
    assert_eq!(page.matches("tabindex=\"0\" aria-label=\"").count(), count);
    assert_eq!(page.matches("<th scope=\"row\">").count() + 1, page.matches("<tr>").count());
    for part in [
        "<html lang=\"en\">",
        "<title>my-model: ",
        "prefers-color-scheme: dark",
        "name=\"viewport\"",
        "overflow-x: auto",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    // Special characters in a file name are escaped.
    let scratch = Scratch::new("map-names");
    let odd = scratch.join("<b>\"&.so");
    let _ = std::fs::copy(example(), &odd).expect("a copy");
    for form in ["html", "svg"] {
        let drawn = command::call(["map", "--format", form]).arg(&odd).run().success().stdout;
        assert!(drawn.contains("&lt;b&gt;&quot;&amp;.so") && !drawn.contains("<b>"), "{drawn}");
    }
}

#[e2e]
fn file_without_kernels_has_own_state() {
    let cudart = parts::cuda("13.0").join("lib/libcudart.so.13");
    let map = |form: &str| command::call(["map", "--format", form]).arg(&cudart).run().success().stdout;
    let text = map("text");
    assert!(text.contains("  R  runs, and has no GPU code\n") && !text.contains("machine code"), "{text}");
    let listed = map("json");
    assert!(listed.contains("\"state\": \"runs\"") && !listed.contains("\"native\""), "{listed}");
}

#[e2e]
fn unmappable_input_is_an_error() {
    let scratch = Scratch::new("map-none");
    let none = command::call(["map"]).arg(scratch.join("none")).run().expect(2);
    assert!(none.stderr.contains("none") && none.stdout.is_empty(), "{none}");
    let nowhere = command::call(["map", "-o"]).arg(scratch.join("no/map.svg")).arg(example()).run().expect(2);
    assert!(nowhere.stderr.contains("cannot write"), "{nowhere}");
    let file = scratch.join("map.html");
    let written = command::call(["map", "--format", "html", "-o"]).arg(&file).arg(example()).run().success();
    assert!(written.stdout.is_empty());
    assert_eq!(std::fs::read_to_string(&file).expect("the page"), map("html"));
}
