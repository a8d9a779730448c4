//! Libraries that a program opens by name.

use std::path::PathBuf;

use super::{LibraryRequest, LoadGraph, LoadOutcome, SearchSource};

impl LoadGraph {
    /// Loads this name like [`Self::dlopen_library`] if all of its dependencies are found, except those that `may_be_absent` selects.
    /// Otherwise `dlopen` fails: the graph does not change, and the result is `None`.
    pub(crate) fn open_library_without(
        &mut self,
        from: usize,
        name: &str,
        may_be_absent: impl Fn(&str) -> bool,
    ) -> Option<usize> {
        let (objects, requests) = (self.objects.len(), self.requests.len());
        let opened = self.dlopen_library(from, name);
        let are_found = self.requests[requests..].iter().all(|request| match request.answer {
            LoadOutcome::Object(..) => true,
            LoadOutcome::Absent(_) => may_be_absent(&request.name),
            LoadOutcome::Broken(_) => false,
        });
        if opened.is_some() && are_found {
            return opened;
        }
        self.objects.truncate(objects);
        self.requests.truncate(requests);
        None
    }

    /// Loads the libraries that the loader does not find from the places that `find` returns, with their dependencies.
    pub(crate) fn load_absent(&mut self, find: impl Fn(&str) -> Option<PathBuf>) {
        let mut at = 0;
        while let Some(LibraryRequest { by, name, answer }) = self.requests.get(at).cloned() {
            let found = matches!(answer, LoadOutcome::Absent(_)).then(|| {
                self.find_loaded(name.as_bytes()).or_else(|| {
                    let index = self.dlopen_library(by, find(&name)?.to_str()?)?;
                    let object = &mut self.objects[index];
                    object.place = SearchSource::Package;
                    // A file of another soname than its name is not the library that is needed.
                    object.names.push(name.clone().into_bytes());
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
