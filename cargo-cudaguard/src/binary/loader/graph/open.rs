//! Libraries that a program opens by name.

use std::path::PathBuf;

use super::{LibraryRequest, LoadGraph, LoadOutcome, SearchSource};

impl LoadGraph {
    /// Loads this name like [`Self::dlopen_library`] if all of its dependencies are found. Otherwise `dlopen` fails: the graph does
    /// not change, and the result is `None`.
    pub(crate) fn open_library(&mut self, from: usize, name: &str) -> Option<usize> {
        let (objects, requests) = (self.objects.len(), self.requests.len());
        let opened = self.dlopen_library(from, name);
        let is_found = |answer: &LoadOutcome| matches!(answer, LoadOutcome::Object(..));
        if opened.is_some() && self.requests[requests..].iter().all(|request| is_found(&request.answer)) {
            return opened;
        }
        self.objects.truncate(objects);
        self.requests.truncate(requests);
        None
    }

    /// Loads the libraries that the loader does not find from the places that `find` returns, with their dependencies. A library
    /// that is loaded by its path serves requests for its soname only.
    pub(crate) fn load_absent(&mut self, find: impl Fn(&str) -> Option<PathBuf>) {
        let mut at = 0;
        while let Some(LibraryRequest { by, name, answer }) = self.requests.get(at).cloned() {
            let found = matches!(answer, LoadOutcome::Absent(_)).then(|| {
                self.find_loaded(name.as_bytes()).or_else(|| {
                    let (objects, requests) = (self.objects.len(), self.requests.len());
                    let index = self.dlopen_library(by, find(&name)?.to_str()?)?;
                    if !self.objects[index].is_named(&name) {
                        self.objects.truncate(objects);
                        self.requests.truncate(requests);
                        return None;
                    }
                    self.objects[index].place = SearchSource::Package;
                    Some(index)
                })
            });
            if let Some(index) = found.flatten() {
                self.requests[at].answer = LoadOutcome::Object(index, SearchSource::Package);
            }
            at += 1;
        }
    }
}
