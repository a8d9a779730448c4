//! Libraries that a program opens by name.

use super::{LoadGraph, LoadOutcome};

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
}
