//! A table of a compiled-in data file. Error messages contain the file, the key and the expected value.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use cudaguard::internal::tables::kind_of;

/// A table in a data file, with the path of its key.
pub(crate) struct DataEntry<'a> {
    /// Name of the file.
    pub(crate) file: &'static str,
    /// Path of the key in the file, with a trailing dot.
    pub(crate) key: String,
    /// The parsed table.
    pub(crate) table: &'a DeTable<'a>,
}

impl<'a> DataEntry<'a> {
    pub(crate) fn value_of(&self, key: &str) -> Option<&'a DeValue<'a>> {
        self.table.get(key).map(Spanned::get_ref)
    }

    pub(crate) fn key_error(&self, key: &str, expected: &str) -> String {
        let found = match self.value_of(key) {
            None => "nothing".to_owned(),
            Some(DeValue::String(text)) => format!("\"{text}\""),
            Some(other) => kind_of(other),
        };
        format!("{}: `{}{key}`: expected {expected}, found {found}", self.file, self.key)
    }

    pub(crate) fn check_known_keys(&self, keys: &[&str]) -> Result<(), String> {
        let unexpected = self.table.keys().find(|key| !keys.contains(&key.get_ref().as_ref()));
        unexpected.map_or(Ok(()), |key| Err(self.key_error(key.get_ref(), "no such key")))
    }

    pub(crate) fn string_of(&self, key: &str) -> Result<String, String> {
        self.optional_text(key)?.ok_or_else(|| self.key_error(key, "a text"))
    }

    pub(crate) fn optional_text(&self, key: &str) -> Result<Option<String>, String> {
        let read = |value: &DeValue<'_>| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.value_of(key).map(|value| read(value).ok_or_else(|| self.key_error(key, "a text"))).transpose()
    }

    pub(crate) fn parsed_value<T: std::str::FromStr>(&self, key: &str) -> Result<T, String> {
        self.string_of(key)?.parse().map_err(|_| self.key_error(key, "a version"))
    }

    pub(crate) fn strings_of(&self, key: &str) -> Result<Vec<String>, String> {
        let Some(value) = self.value_of(key) else { return Ok(Vec::new()) };
        let one = |value: &Spanned<DeValue<'_>>| value.get_ref().as_str().map(str::to_owned);
        let read = value.as_array().and_then(|array| array.iter().map(one).collect());
        read.ok_or_else(|| self.key_error(key, "a list of strings"))
    }

    pub(crate) fn pairs_of(&self, key: &str) -> Result<Vec<(String, String)>, String> {
        let Some(value) = self.value_of(key) else { return Ok(Vec::new()) };
        let pair = |value: &Spanned<DeValue<'_>>| {
            let array = value.get_ref().as_array()?;
            let text = |at: usize| array.get(at)?.get_ref().as_str().map(str::to_owned);
            (array.len() == 2).then(|| Some((text(0)?, text(1)?)))?
        };
        let read = value.as_array().and_then(|array| array.iter().map(pair).collect());
        read.ok_or_else(|| self.key_error(key, "a list of pairs of strings"))
    }

    pub(crate) fn inner_table(&self, key: &str) -> Result<Option<Self>, String> {
        let read = |value: &'a DeValue<'a>| {
            let table = value.as_table().ok_or_else(|| self.key_error(key, "a table"))?;
            Ok(Self { file: self.file, key: format!("{}{key}.", self.key), table })
        };
        self.value_of(key).map(read).transpose()
    }
}
