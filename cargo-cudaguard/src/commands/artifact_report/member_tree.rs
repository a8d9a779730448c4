//! The members of an artifact as a file system, in which the dynamic linker searches.

use cudaguard::internal::file_error::{FileError, FileProblem};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::member::{MemberLoader, file_name};
use crate::binary::loader::{Entry, LoadFacts, Tree};
use crate::binary::mapped_file::Contents;

/// What a path of an artifact denotes.
#[derive(Debug)]
enum TreeNode {
    /// The program or library with this index in [`super::ArtifactReport::loaders`].
    Loader(usize),
    /// A link to another path.
    Link(String),
    /// A file that the dynamic linker cannot load.
    Other,
}

/// One archive, or all wheels that are installed together. Its top is the root of a file system.
#[derive(Debug, Default)]
pub(super) struct MemberTree {
    nodes: HashMap<String, TreeNode>,
    dirs: HashSet<String>,
    /// For each name the paths of all files and links.
    named: HashMap<String, Vec<String>>,
    facts: HashMap<usize, Arc<LoadFacts>>,
    settings: HashMap<String, Arc<Contents>>,
    known_dirs: RefCell<HashMap<PathBuf, bool>>,
    /// True if no path leads out of the tree.
    is_root: bool,
}

/// The trees of an artifact: an inner archive is a tree of its own.
#[derive(Debug, Default)]
pub(super) struct MemberTrees(BTreeMap<String, Rc<MemberTree>>);

/// The input of a tree.
pub(super) struct TreeInput<'a> {
    pub(super) loaders: &'a [MemberLoader],
    pub(super) links: &'a BTreeMap<String, String>,
    /// Other files whose names are those of libraries.
    pub(super) others: Vec<&'a str>,
    pub(super) settings: Vec<(String, Vec<u8>)>,
    /// True if the artifact is the file system of a machine.
    pub(super) is_root: bool,
}

/// Splits the name of a member into the key of its tree and its path in the tree.
fn split(name: &str) -> (&str, &str) {
    match name.rfind('!') {
        Some(at) if name[..at].ends_with(".whl") => ("*.whl!", &name[at + 1..]),
        Some(at) => name.split_at(at + 1),
        None => ("", name),
    }
}

impl MemberTrees {
    pub(super) fn new(input: TreeInput<'_>) -> Self {
        let mut trees: BTreeMap<String, MemberTree> = BTreeMap::new();
        for name in input.others {
            let (key, path) = split(name);
            trees.entry(key.to_owned()).or_default().insert(path, TreeNode::Other);
        }
        for (at, loader) in input.loaders.iter().enumerate() {
            let (key, path) = split(&loader.name);
            let tree = trees.entry(key.to_owned()).or_default();
            tree.insert(path, TreeNode::Loader(at));
            tree.facts.insert(at, Arc::clone(&loader.facts));
        }
        for (name, target) in input.links {
            let (key, path) = split(name);
            trees.entry(key.to_owned()).or_default().insert(path, TreeNode::Link(split(target).1.to_owned()));
        }
        for (name, contents) in input.settings {
            let (key, path) = split(&name);
            let tree = trees.entry(key.to_owned()).or_default();
            let contents = Arc::new(Contents::from(contents));
            if !tree.nodes.contains_key(path) {
                tree.insert(path, TreeNode::Other);
            }
            tree.settings.insert(path.to_owned(), contents);
        }
        for tree in trees.values_mut() {
            tree.is_root = input.is_root;
            tree.named.values_mut().for_each(|paths| paths.sort());
        }
        Self(trees.into_iter().map(|(key, tree)| (key, Rc::new(tree))).collect())
    }

    /// Returns the tree with a member, and the path of the member in it.
    pub(super) fn place_of(&self, member: &str) -> Option<(Rc<MemberTree>, PathBuf)> {
        let (key, path) = split(member);
        Some((Rc::clone(self.0.get(key)?), Path::new("/").join(path)))
    }
}

impl MemberTrees {
    /// Returns true if the top of the artifact configures the dynamic linker: it is the file system of a machine.
    pub(super) fn has_settings_of_loader(&self) -> bool {
        let known = ["etc/ld.so.cache", "etc/ld.so.conf"];
        self.0.get("").is_some_and(|tree| known.iter().any(|name| tree.settings.contains_key(*name)))
    }

    /// Returns true if the tree of a program contains its dynamic linker: it is the file system of a machine.
    pub(super) fn has_own_loader(&self, program: &str) -> bool {
        let Some((tree, path)) = self.place_of(program) else { return false };
        let interpreter = tree.facts(&path).ok().and_then(|facts| facts.interpreter().map(Path::to_owned));
        interpreter.is_some_and(|interpreter| tree.loader_at(&interpreter).is_some())
    }
}

impl MemberTree {
    fn insert(&mut self, path: &str, node: TreeNode) {
        if self.nodes.contains_key(path) {
            return;
        }
        for (at, _) in path.match_indices('/') {
            if !self.dirs.contains(&path[..at]) {
                self.dirs.insert(path[..at].to_owned());
            }
        }
        self.named.entry(file_name(path).to_owned()).or_default().push(path.to_owned());
        self.nodes.insert(path.to_owned(), node);
    }

    /// Returns the path at which all links end. `None` if a link leads out of the tree, or in a circle.
    fn follow(&self, path: &Path) -> Option<String> {
        let text = path.to_str()?.trim_start_matches('/');
        if matches!(self.nodes.get(text), Some(TreeNode::Loader(_) | TreeNode::Other)) {
            return Some(text.to_owned());
        }
        let mut rest: Vec<&str> = text.split('/').rev().collect();
        let (mut at, mut links) = (String::new(), 0);
        while let Some(part) = rest.pop() {
            match part {
                "" | "." => {}
                ".." if at.is_empty() && !self.is_root => return None,
                ".." => at.truncate(at.rfind('/').unwrap_or_default()),
                part => {
                    if !at.is_empty() {
                        at.push('/');
                    }
                    at.push_str(part);
                    if let Some(TreeNode::Link(target)) = self.nodes.get(&at) {
                        // The dynamic linker does not follow more links.
                        links += 1;
                        if links > 40 {
                            return None;
                        }
                        at.clear();
                        rest.extend(target.split('/').rev());
                    }
                }
            }
        }
        Some(at)
    }

    /// Returns the index of the program or library at a path.
    pub(super) fn loader_at(&self, path: &Path) -> Option<usize> {
        match self.nodes.get(&self.follow(path)?)? {
            TreeNode::Loader(at) => Some(*at),
            _ => None,
        }
    }

    /// Returns the path of the only library that has this name, at any place.
    pub(super) fn only_file_named(&self, name: &str) -> Option<PathBuf> {
        let mut found: Option<(usize, &String)> = None;
        for path in self.named.get(name)? {
            let Some(at) = self.loader_at(Path::new(path)) else { continue };
            if found.is_some_and(|(known, _)| known != at) {
                return None;
            }
            found.get_or_insert((at, path));
        }
        found.map(|(_, path)| Path::new("/").join(path))
    }

    /// Returns the path of the first library that has this name, at any place.
    pub(super) fn any_file_named(&self, name: &str) -> Option<PathBuf> {
        let mut paths = self.named.get(name)?.iter();
        paths.find(|path| self.loader_at(Path::new(path)).is_some()).map(|path| Path::new("/").join(path))
    }
}

impl Tree for MemberTree {
    fn entry(&self, path: &Path) -> Entry {
        let Some(real) = self.follow(path) else { return Entry::Missing };
        match self.nodes.get(&real) {
            Some(TreeNode::Loader(at)) => Entry::File(Some((0, *at as u64)), 1),
            Some(_) => Entry::File(None, 1),
            None if real.is_empty() || self.dirs.contains(&real) => Entry::Dir,
            None => Entry::Missing,
        }
    }

    fn list(&self, dir: &Path) -> Vec<String> {
        let Some(dir) = self.follow(dir) else { return Vec::new() };
        let start = if dir.is_empty() { dir } else { dir + "/" };
        let below = self.nodes.keys().filter_map(|path| path.strip_prefix(&start));
        below.filter(|name| !name.contains('/')).map(str::to_owned).collect()
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, FileError> {
        let real = self.follow(path).map(|real| Path::new("/").join(real));
        real.ok_or_else(|| FileError::read(path, FileProblem::unsupported("cannot be followed")))
    }

    fn facts(&self, path: &Path) -> Result<Arc<LoadFacts>, FileError> {
        let known = self.loader_at(path).and_then(|at| self.facts.get(&at));
        Ok(known.map_or_else(|| Arc::new(LoadFacts::read(&[])), Arc::clone))
    }

    fn settings(&self, path: &Path) -> Result<Arc<Contents>, FileError> {
        let real = self.follow(path);
        let known = real.and_then(|real| self.settings.get(&real)).map(Arc::clone);
        known.ok_or_else(|| FileError::read(path, FileProblem::unsupported("is not in the artifact")))
    }

    fn is_partial(&self) -> bool {
        true
    }

    fn is_dir(&self, path: &Path) -> bool {
        if let Some(known) = self.known_dirs.borrow().get(path) {
            return *known;
        }
        let found = self.entry(path) == Entry::Dir;
        self.known_dirs.borrow_mut().insert(path.to_owned(), found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_within_the_tree() {
        let mut tree = MemberTree::default();
        for (path, node) in [
            ("usr/lib/libx.so.1", TreeNode::Loader(7)),
            ("lib", TreeNode::Link("usr/lib".to_owned())),
            ("app/libx.so", TreeNode::Link("lib/libx.so.1".to_owned())),
            ("a", TreeNode::Link("b".to_owned())),
            ("b", TreeNode::Link("a".to_owned())),
        ] {
            tree.insert(path, node);
        }
        for (path, expected) in [
            ("/lib/libx.so.1", Some(7)),
            ("/app/../lib/./libx.so.1", Some(7)),
            ("/app/libx.so", Some(7)),
            ("/app/../../lib/libx.so.1", None),
            ("/lib/liby.so", None),
            ("/a", None),
        ] {
            assert_eq!(tree.loader_at(Path::new(path)), expected, "{path}");
        }
        assert_eq!(tree.entry(Path::new("/lib")), Entry::Dir);
        tree.is_root = true;
        assert_eq!(tree.loader_at(Path::new("/app/../../lib/libx.so.1")), Some(7));
    }
}
