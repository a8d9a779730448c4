//! Functions for `serialize_with` that write a value as text.

#![expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]

use std::fmt::Display;

use cudaguard::internal::tables;
use serde::Serializer;

pub(crate) fn value<T: Display, S: Serializer>(value: &T, json: S) -> Result<S::Ok, S::Error> {
    json.collect_str(value)
}

pub(crate) fn optional<T: Display, S: Serializer>(value: &Option<T>, json: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => json.collect_str(value),
        None => json.serialize_none(),
    }
}

pub(crate) fn each<T: Display, S: Serializer>(values: &[T], json: S) -> Result<S::Ok, S::Error> {
    json.collect_seq(values.iter().map(ToString::to_string))
}

/// Writes a compute capability: `8.6`.
pub(crate) fn dotted_cc<S: Serializer>(cc: &(u8, u8), json: S) -> Result<S::Ok, S::Error> {
    json.serialize_str(&tables::dotted_cc(*cc))
}
