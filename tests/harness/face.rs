//! The public API of the library, as rustdoc lists it: each item, method and trait that is reachable and not hidden, as
//! a line or a block.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::project::cargo;

/// Returns the public API of the package `cudaguard` in this workspace with these features (arguments of cargo).
/// rustdoc writes its output below `target`.
pub fn of(workspace: &Path, features: &[&str], target: &Path) -> String {
    let out = target.join("doc/cudaguard");
    let _ = fs::remove_dir_all(&out);
    let call = cargo(["doc", "--quiet", "--no-deps", "--lib", "--package", "cudaguard", "--target-dir"]).arg(target);
    let _ = call.args(features).dir(workspace).env("RUSTDOCFLAGS", "").run().success();
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let all = read("all.html");
    let list = between(&all, "<h1>List of all items", "</section>").expect("rustdoc lists all items");
    let mut pages: Vec<&str> = pieces(list, "<a href=\"", "\"").filter(|page| page.ends_with(".html")).collect();
    pages.sort_unstable();
    let mut face = String::new();
    for page in pages {
        let html = read(page);
        let directory = page.rsplit_once('/').map(|(directory, _)| format!("{}::", directory.replace('/', "::")));
        let declaration = between(&html, "<pre class=\"rust ", "</pre>").unwrap_or_else(|| panic!("{page}: of what?"));
        let declaration = declaration.split_once('>').map_or("", |(_, code)| code);
        // rustdoc shows the attribute on a separate line.
        let declaration = plain(declaration).replace("#[non_exhaustive]pub ", "#[non_exhaustive]\npub ");
        let _ = writeln!(face, "{}{declaration}", directory.unwrap_or_default());
        let own = between(&html, "<div id=\"implementations-list\">", "<h2 ").unwrap_or_default();
        for item in pieces(own, "<h4 class=\"code-header\">", "</h4>") {
            let _ = writeln!(face, "    {}", one_line(item));
        }
        let traits = between(&html, "<div id=\"trait-implementations-list\">", "<h2 ").unwrap_or_default();
        for head in pieces(traits, "<h3 class=\"code-header\">", "</h3>") {
            let _ = writeln!(face, "    {}", one_line(head));
        }
    }
    face
}

/// Counts the items of an API: declarations, methods and public fields, but not implemented traits.
pub fn items(face: &str) -> usize {
    face.lines()
        .filter(|line| ["pub ", "macro_rules!"].iter().any(|start| line.trim_start().starts_with(start)))
        .count()
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end).map_or(rest, |(inside, _)| inside))
}

fn pieces<'a>(text: &'a str, start: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(start).skip(1).filter_map(move |rest| Some(rest.split_once(end)?.0))
}

/// Converts HTML to text: removes tags and decodes `&lt;` and similar entities.
fn plain(html: &str) -> String {
    let mut text = String::new();
    for piece in html.split('<') {
        text.push_str(piece.split_once('>').map_or(piece, |(_, behind)| behind));
    }
    let signs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    signs.iter().fold(text, |text, (from, to)| text.replace(from, to)).trim().to_owned()
}

fn one_line(html: &str) -> String {
    plain(html).split_whitespace().collect::<Vec<_>>().join(" ").replace("( ", "(").replace(", )", ")")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{places, snapshot};

    #[test]
    fn public_api_matches_snapshot() {
        let face = |features: &[&str]| of(places::workspace(), features, places::target());
        let default = face(&[]);
        snapshot::check("face/default", &default);
        snapshot::check("face/program", &face(&["--no-default-features"]));
        assert!(!default.contains("internal"), "the modules of the command are hidden");
    }
}
