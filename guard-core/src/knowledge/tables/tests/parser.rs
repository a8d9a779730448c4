//! Parsers of the data files. Only tests run them: they generate `rows.rs` and `cudnn/rows.rs` and compare both with
//! the data, so that no build script parses a table.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::knowledge::tables::pci::Range;
use crate::knowledge::tables::{
    ArchRow, ArchTable, BranchRow, Cc, Drivers, Floor, GpuTable, HostLimits, ToolkitRow, Toolkits,
};
use crate::model::arch::{Arch, Target};
use crate::model::version::CudaVersion;
use crate::text::toml_error::kind_of;

/// A table with unexpected contents: the message contains the file, the full key and the expected value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableError(String);

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The contents of a file in `data/`.
pub(crate) fn data(name: &str) -> String {
    std::fs::read_to_string(format!("{}/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// A row of a table, with its full key.
pub(crate) struct TableRow<'a> {
    file: &'a str,
    key: String,
    table: &'a DeTable<'a>,
}

impl<'a> TableRow<'a> {
    fn table_error(&self, key: &str, expected: &str, found: Option<&DeValue<'_>>) -> TableError {
        let found = match found {
            None => "nothing".to_owned(),
            Some(DeValue::String(text)) => format!("\"{text}\""),
            Some(other) => kind_of(other),
        };
        TableError(format!("{}: `{}.{key}`: expected {expected}, found {found}", self.file, self.key))
    }

    fn value_of(&self, key: &str) -> Option<&'a DeValue<'a>> {
        self.table.get(key).map(Spanned::get_ref)
    }

    /// Reads the value of `key` with `read`; `None` if it is absent.
    pub(crate) fn read_optional<T>(
        &self,
        key: &str,
        expected: &str,
        read: fn(&DeValue<'_>) -> Option<T>,
    ) -> Result<Option<T>, TableError> {
        let Some(value) = self.value_of(key) else { return Ok(None) };
        match read(value) {
            None => Err(self.table_error(key, expected, Some(value))),
            read => Ok(read),
        }
    }

    pub(crate) fn read_required<T>(
        &self,
        key: &str,
        expected: &str,
        read: fn(&DeValue<'_>) -> Option<T>,
    ) -> Result<T, TableError> {
        match self.read_optional(key, expected, read)? {
            Some(value) => Ok(value),
            None => Err(self.table_error(key, expected, None)),
        }
    }

    /// Checks that the row has only these keys, and a source that the file defines.
    fn check_known_keys(&self, keys: &[&str], sources: &[String]) -> Result<(), TableError> {
        for key in self.table.keys() {
            let key: &str = key.get_ref();
            if key != "source" && !keys.contains(&key) {
                return Err(self.table_error(key, "no such key", self.value_of(key)));
            }
        }
        let known =
            |value: &DeValue<'_>| value.as_str().is_some_and(|name| sources.iter().any(|source| source == name));
        let source = self.value_of("source");
        let is_known = match source {
            Some(DeValue::Array(names)) => !names.is_empty() && names.iter().all(|name| known(name.get_ref())),
            Some(name) => known(name),
            None => false,
        };
        if is_known {
            Ok(())
        } else {
            Err(self.table_error("source", "a name, or several, of the [source] table", source))
        }
    }
}

/// The tables of a file. Their sources and dates are checked.
pub(crate) struct TableFile<'a> {
    name: &'a str,
    table: &'a DeTable<'a>,
    sources: Vec<String>,
}

impl<'a> TableFile<'a> {
    fn from_table(name: &'a str, whole: &'a DeTable<'a>) -> Result<Self, TableError> {
        let top = TableRow { file: name, key: "(top)".into(), table: whole };
        let table = |key| {
            whole
                .get(key)
                .and_then(|value| value.get_ref().as_table())
                .ok_or_else(|| top.table_error(key, "a table", whole.get(key).map(Spanned::get_ref)))
        };
        let mut sources = Vec::new();
        for (source, value) in table("source")? {
            let key = format!("source.{}", source.get_ref());
            let Some(row) = value.get_ref().as_table() else {
                return Err(TableError(format!("{name}: `{key}`: expected a table with text and date")));
            };
            let row = TableRow { file: name, key, table: row };
            row.read_required("text", "the source of the value", |value| {
                value.as_str().filter(|text| text.len() > 9).map(drop)
            })?;
            row.read_required("date", "a date such as 2026-11-20", |value| {
                value.as_str().filter(|date| is_date(date)).map(drop)
            })?;
            sources.push(source.get_ref().to_string());
        }
        Ok(Self { name, table: table("table")?, sources })
    }

    /// Reads an array of rows with these keys and a source.
    pub(crate) fn read_rows<T>(
        &self,
        key: &str,
        keys: &[&str],
        read: &dyn Fn(&TableRow<'a>) -> Result<T, TableError>,
    ) -> Result<Vec<T>, TableError> {
        let mut rows = Vec::new();
        for row in self.checked_rows(key, keys)? {
            rows.push(read(&row)?);
        }
        Ok(rows)
    }

    /// Apart from [`Self::read_rows`], so that there is one instance for all types.
    fn checked_rows(&self, key: &str, keys: &[&str]) -> Result<Vec<TableRow<'a>>, TableError> {
        let fail = |key: &str, expected: &str| TableError(format!("{}: `{key}`: expected {expected}", self.name));
        let full = format!("table.{key}");
        let Some(array) = self.table.get(key).and_then(|value| value.get_ref().as_array()) else {
            return Err(fail(&full, "an array of rows"));
        };
        let mut rows = Vec::new();
        for (index, value) in array.iter().enumerate() {
            let key = format!("{full}[{index}]");
            let Some(table) = value.get_ref().as_table() else { return Err(fail(&key, "a row: { … }")) };
            let row = TableRow { file: self.name, key, table };
            row.check_known_keys(keys, &self.sources)?;
            rows.push(row);
        }
        Ok(rows)
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(index, b)| if matches!(index, 4 | 7) { b == b'-' } else { b.is_ascii_digit() })
}

/// Parses a file and converts it with `read`.
pub(crate) fn read_file<T>(
    name: &str,
    text: &str,
    read: impl Fn(&TableFile<'_>) -> Result<T, TableError>,
) -> Result<T, TableError> {
    let whole = DeTable::parse(text).map_err(|error| TableError(format!("{name}: {}", error.message())))?;
    read(&TableFile::from_table(name, whole.get_ref())?)
}

pub(crate) fn parse_text<T: std::str::FromStr>(value: &DeValue<'_>) -> Option<T> {
    value.as_str()?.parse().ok()
}

pub(crate) fn parse_number(value: &DeValue<'_>) -> Option<u32> {
    value.as_integer()?.as_str().parse().ok()
}

fn parse_flag(value: &DeValue<'_>) -> Option<bool> {
    value.as_bool()
}

pub(crate) fn parse_cc(value: &DeValue<'_>) -> Option<Cc> {
    parse_pair(value).and_then(|(major, minor)| Some((u8::try_from(major).ok()?, u8::try_from(minor).ok()?)))
}

fn parse_pair(value: &DeValue<'_>) -> Option<(u32, u32)> {
    parse_text::<CudaVersion>(value).map(|version| (version.major, version.minor))
}

fn parse_arch(value: &DeValue<'_>) -> Option<Arch> {
    match parse_text(value)? {
        Target::Cubin(arch) => Some(arch),
        Target::Ptx(_) => None,
    }
}

pub(crate) fn parse_list<T>(value: &DeValue<'_>, read: fn(&DeValue<'_>) -> Option<T>) -> Option<&'static [T]> {
    value.as_array()?.iter().map(|value| read(value.get_ref())).collect::<Option<Vec<T>>>().map(leak)
}

/// The tables of a program are constants.
pub(crate) fn leak<T>(rows: Vec<T>) -> &'static [T] {
    rows.leak()
}

const A_RELEASE: &str = "a release such as \"12.4\"";

pub(crate) const A_CC: &str = "a compute capability such as \"8.6\"";

impl ArchTable {
    pub(super) fn read(name: &str, content: &str) -> Result<Self, TableError> {
        read_file(name, content, |file| {
            Ok(Self {
                rows: leak(file.read_rows("arch", &["name", "cc", "first", "last", "tegra"], &|row| {
                    Ok(ArchRow {
                        arch: row.read_required("name", "an arch such as \"sm_90a\"", parse_arch)?,
                        cc: row.read_required("cc", A_CC, parse_cc)?,
                        first: row.read_required("first", A_RELEASE, parse_text)?,
                        last: row.read_optional("last", A_RELEASE, parse_text)?,
                        tegra: row.read_optional("tegra", "true or false", parse_flag)?.unwrap_or(false),
                    })
                })?),
                families: leak(file.read_rows("family", &["members"], &|row| {
                    row.read_required("members", "compute capabilities", |value| parse_list(value, parse_cc))
                })?),
                renamed: leak(file.read_rows("renamed", &["old", "new"], &|row| {
                    Ok((row.read_required("old", A_CC, parse_cc)?, row.read_required("new", A_CC, parse_cc)?))
                })?),
            })
        })
    }
}

/// Returns the ids and names in `products.tsv`.
pub(super) fn products_by_id() -> Vec<(u16, &'static str)> {
    let mut products = Vec::new();
    for line in data("products.tsv").leak().lines().filter(|line| !line.starts_with('#')) {
        let (id, name) = line.split_once('\t').expect("an id and a name");
        products.push((u16::from_str_radix(id, 16).expect("an id"), name));
    }
    products
}

/// Returns the ranges of ids in `pci.toml`.
fn pci_ranges() -> Vec<Range> {
    let id = |value: &DeValue<'_>| match value {
        DeValue::Integer(number) => u16::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    let ranges = read_file("pci.toml", &data("pci.toml"), |file| {
        file.read_rows("range", &["first", "last", "cc"], &|row| {
            let [first, last] = ["first", "last"].map(|key| row.read_required(key, "a PCI device id", id));
            Ok((first?, last?, row.read_required("cc", A_CC, parse_cc)?))
        })
    });
    ranges.expect("a table")
}

impl GpuTable {
    /// Reads a file like `gpus.toml`, and adds the products with a PCI device id.
    pub(super) fn read(name: &str, content: &str) -> Result<Self, TableError> {
        let ranges = pci_ranges();
        read_file(name, content, |file| {
            let named = |row: &TableRow<'_>| {
                let names = row.read_required("names", "names", |value| {
                    parse_list(value, |name| name.as_str().map(|name| &*name.to_owned().leak()))
                })?;
                Ok((row.read_required("cc", A_CC, parse_cc)?, names))
            };
            let products = leak(file.read_rows("gpu", &["cc", "names"], &named)?);
            let chips = leak(file.read_rows("chip", &["cc", "names"], &named)?);
            let mut listed: BTreeMap<Cc, Vec<&str>> = BTreeMap::new();
            for (id, name) in products_by_id() {
                let range = ranges.iter().find(|(first, last, _)| (*first..=*last).contains(&id));
                let (.., cc) = range.expect("a range for each product");
                let names = listed.entry(*cc).or_default();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            let listed = leak(listed.into_iter().map(|(cc, names)| (cc, leak(names))).collect());
            Ok(Self { products, chips, listed })
        })
    }
}

impl Toolkits {
    pub(super) fn read(name: &str, content: &str) -> Result<Self, TableError> {
        const KEYS: &[&str] = &["version", "ptx", "driver", "windows", "arch", "gcc", "clang", "unreleased"];
        const AN_ISA: &str = "a PTX ISA such as \"8.5\"";
        const A_MAJOR: &str = "a major number";
        read_file(name, content, |file| {
            Ok(Self {
                rows: leak(file.read_rows("toolkit", KEYS, &|row| {
                    Ok(ToolkitRow {
                        version: row.read_required("version", A_RELEASE, parse_text)?,
                        ptx: row.read_required("ptx", AN_ISA, parse_pair)?,
                        driver: row.read_optional("driver", "a driver release such as \"550.54.14\"", parse_text)?,
                        windows: row.read_optional("windows", "a driver release such as \"551.61\"", parse_text)?,
                        default_arch: row.read_optional("arch", "an arch such as \"sm_75\"", parse_arch)?,
                        host: HostLimits {
                            gcc_newest: row.read_optional("gcc", A_MAJOR, parse_number)?,
                            clang_below: row.read_optional("clang", A_MAJOR, parse_number)?,
                        },
                        unreleased: row.read_optional("unreleased", "true or false", parse_flag)?.unwrap_or(false),
                    })
                })?),
                older_ptx: leak(file.read_rows("older_ptx", &["ptx", "cuda"], &|row| {
                    Ok((
                        row.read_required("ptx", AN_ISA, parse_pair)?,
                        row.read_required("cuda", A_RELEASE, parse_text)?,
                    ))
                })?),
            })
        })
    }
}

impl Drivers {
    pub(super) fn read(name: &str, content: &str) -> Result<Self, TableError> {
        const BRANCH: &str = "the number before the first dot of a driver release";
        const A_DRIVER: &str = "a driver release such as \"550.54.14\"";
        let floor = |row: &TableRow<'_>| {
            let floor = Floor {
                cuda: row.read_required("cuda", A_RELEASE, parse_text)?,
                release: Some(row.read_required("driver", A_DRIVER, parse_text)?),
                exact: true,
            };
            Ok((row.read_required("major", "a major number", parse_number)?, floor))
        };
        read_file(name, content, |file| {
            Ok(Self {
                branches: leak(file.read_rows("branch", &["branch", "cuda", "least", "most"], &|row| {
                    let branch = row.read_required("branch", BRANCH, parse_number)?;
                    let most = row.read_optional("most", A_RELEASE, parse_text)?;
                    Ok(match row.read_optional("least", A_RELEASE, parse_text)? {
                        Some(least) => BranchRow { branch, least, exact: false, most },
                        None => BranchRow {
                            branch,
                            least: row.read_required("cuda", A_RELEASE, parse_text)?,
                            exact: true,
                            most,
                        },
                    })
                })?),
                cudart: leak(file.read_rows("cudart", &["major", "cuda", "driver", "windows"], &floor)?),
                cudart_on_windows: leak(file.read_rows("cudart", &["major", "cuda", "driver", "windows"], &|row| {
                    Ok((
                        row.read_required("driver", A_DRIVER, parse_text)?,
                        row.read_required("windows", A_DRIVER, parse_text)?,
                    ))
                })?),
                zstandard: leak(file.read_rows("zstandard", &["major", "cuda", "driver"], &floor)?),
                left: leak(file.read_rows("left", &["below", "last"], &|row| {
                    Ok((row.read_required("below", A_CC, parse_cc)?, row.read_required("last", BRANCH, parse_number)?))
                })?),
                compat: leak(file.read_rows("compat", &["cuda", "kernels"], &|row| {
                    let kernels =
                        row.read_required("kernels", "branches of drivers", |value| parse_list(value, parse_number))?;
                    Ok((row.read_required("cuda", A_RELEASE, parse_text)?, kernels))
                })?),
            })
        })
    }
}

/// Formats a constant. `Debug` prints it as Rust code, except for references and variants; each row gets a line.
pub(crate) fn constant(declaration: &str, value: &dyn Debug) -> String {
    let text = format!("{value:?}")
        .replace('[', "&[")
        .replace("suffix: ", "suffix: Suffix::")
        .replace("4294967295", "u32::MAX");
    let rows = ["ArchRow {", "ToolkitRow {", "BranchRow {", "CudnnBuild {", "((", "(\""];
    let text = rows.iter().fold(text, |text, row| text.replace(&format!(", {row}"), &format!(",\n    {row}")));
    let text = text.replace(")), (", ")),\n    (");
    format!("{declaration} = {text};\n")
}

/// Compares a generated file in this directory or above with this text; `CUDAGUARD_BLESS=1` writes it.
#[allow(clippy::disallowed_methods)] // A test's own variable, which no build reads.
pub(crate) fn check_generated(file: &str, text: &str) {
    let path = format!("{}/src/knowledge/{file}", env!("CARGO_MANIFEST_DIR"));
    let command = "CUDAGUARD_BLESS=1 cargo test -p cudaguard --lib rows";
    let text = format!("// Generated from guard-core/data. To rewrite it, run `{command}`.\n\n{text}");
    if std::env::var_os("CUDAGUARD_BLESS").is_some_and(|value| !value.is_empty()) {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{file} is stale: {command} writes it");
}

/// Returns the date of the newest fact in the tables.
fn newest_date() -> String {
    let mut dates = Vec::new();
    for file in ["archs.toml", "gpus.toml", "toolkits.toml", "drivers.toml", "cudnn.toml"] {
        dates.extend(data(file).split("date = \"").skip(1).map(|rest| rest[..10].to_owned()));
    }
    dates.into_iter().max().expect("a date")
}

#[test]
fn rows_of_tables_are_generated() {
    let mut text = constant("const DATE: &str", &newest_date());
    text += &constant("const ARCHS: ArchTable", &ArchTable::read("archs.toml", &data("archs.toml")).unwrap());
    text += &constant("const GPUS: GpuTable", &GpuTable::read("gpus.toml", &data("gpus.toml")).unwrap());
    text += &constant("const TOOLKITS: Toolkits", &Toolkits::read("toolkits.toml", &data("toolkits.toml")).unwrap());
    text += &constant("const DRIVERS: Drivers", &Drivers::read("drivers.toml", &data("drivers.toml")).unwrap());
    text += &constant("pub(crate) const PCI_RANGES: &[pci::Range]", &pci_ranges());
    check_generated("tables/rows.rs", &text);
}
