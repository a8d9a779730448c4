use memchr::memmem;
use proptest::collection;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

#[test]
fn texts_are_found_at_any_offset() {
    let text = FileStrings::new(vec![b"cudnn_version_x cudnn_version_9_1", b"cudnn_version_"]);
    assert_eq!(text.occurrences(b"cudnn_version_").count(), 3);
    assert!(text.occurrences(b"cudnn_version_").any(|behind| behind.starts_with(b"9_1")));
}

proptest! {
    /// Texts that begin with each other or overlap, in several parts, some of them empty.
    #[test]
    fn combined_search_matches_single_searches(
        parts in collection::vec(collection::vec(select(b"cudnCm_v".to_vec()), 0..40), 0..4),
        put in collection::vec((any::<Index>(), any::<Index>(), any::<Index>()), 0..6),
    ) {
        let texts = ["cudnn", "cudnn_version_", "cudnnCreate", "nccl", "cud", "nnC", "version"];
        let mut parts = parts;
        for (part, text, at) in put.into_iter().filter(|_| !parts.is_empty()).collect::<Vec<_>>() {
            let part = part.index(parts.len());
            let at = at.index(parts[part].len() + 1);
            let text = texts[text.index(texts.len())].bytes();
            parts[part].splice(at..at, text);
        }
        let text = FileStrings::new(parts.iter().map(Vec::as_slice).collect());
        for (wanted, first) in texts.iter().zip(text.find_first_of_each(&texts)) {
            let slowly = parts.iter().enumerate().find_map(|(number, part)| {
                Some((number, part.windows(wanted.len()).position(|window| window == wanted.as_bytes())?))
            });
            prop_assert_eq!(first, slowly, "{}", wanted);
            let behind = |part: &Vec<u8>| memmem::find_iter(part, wanted).count();
            prop_assert_eq!(text.occurrences(wanted.as_bytes()).count(), parts.iter().map(behind).sum::<usize>());
        }
    }
}

#[test]
fn non_binary_is_rejected_with_reason() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let file = |name: &str, data: &[u8]| {
        let path = dir.join(name);
        std::fs::write(&path, data).unwrap();
        path
    };
    let fifo = dir.join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for (path, why) in [
        (file("empty", b""), "is empty"),
        (file("text", b"#!/bin/sh"), "is not an ELF file"),
        (dir.to_owned(), "is a directory"),
        (dir.join("absent"), "No such file"),
        (fifo, "is not a regular file"),
        (PathBuf::from("/dev/zero"), "is not a regular file"),
    ] {
        let error = Binary::read(&path).unwrap_err();
        assert!(error.to_string().contains(why) && error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn test_executable_is_parsed() {
    let binary = Binary::read(&std::env::current_exe().unwrap()).unwrap();
    assert_eq!(binary.kind, BinaryKind::Executable);
    assert!(binary.needed.iter().any(|name| name.starts_with("libc.")));
    assert!(binary.interpreter.is_some() && binary.damage.is_none() && binary.notes.is_empty());
}
