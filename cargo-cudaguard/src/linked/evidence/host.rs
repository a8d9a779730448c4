//! Detects the host compilers of a build from its objects, whatever `CXX` or `PATH` contain.

use crate::binary::ar;
use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::binary::elf::Elf;
use crate::binary::kernels::SECTIONS;
use crate::binary::mapped_file::OpenFiles;
use cudaguard::internal::toolchain::HostCompiler;

/// The compilers of the host code in the outputs of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCode {
    /// `gcc 12.2.0`, `clang 14.0.6`.
    pub compilers: Vec<String>,
    /// True if they compiled host code that is in one object with GPU code, which means that nvcc called them.
    pub compiles_kernels: bool,
}

impl HostCode {
    /// Returns the compiler if there is only one. If there are several, it is unknown which one was intended.
    pub fn only_compiler(&self) -> Option<&String> {
        self.compilers.first().filter(|_| self.compilers.len() == 1)
    }

    /// Returns the host compiler that nvcc called.
    pub fn nvcc_host_compiler(&self) -> Option<&String> {
        self.only_compiler().filter(|_| self.compiles_kernels)
    }

    /// Collects the compilers of a build's objects and static libraries. If some of these contain GPU code, for which
    /// nvcc calls its host compiler, only these count. Objects of an earlier build count only if the linked file may
    /// have been built from them.
    pub fn from_objects(linked: &[u8], objects: &[PathBuf], files: &OpenFiles) -> Self {
        let mut found = ScannedObjects::default();
        for data in objects.iter().filter_map(|object| files.open(object).ok()) {
            if ar::is_archive(&data) {
                for member in ar::archive_members(&data).into_iter().flatten().map_while(Result::ok) {
                    found.scan_object(member.data.unwrap_or_default());
                }
            } else {
                found.scan_object(&data);
            }
        }
        let compiles_kernels = !found.with_kernels.is_empty();
        let mut all = if compiles_kernels { found.with_kernels } else { found.others };
        // A linked file that is not stripped lists the compilers of all its parts.
        let listed = Some(linked).filter(|_| !all.is_empty()).and_then(|data| {
            let elf = Elf::parse(data).ok()?;
            let listed: BTreeSet<String> = comment_strings(&elf).filter_map(HostCompiler::in_comment).collect();
            (!listed.is_empty()).then_some(listed)
        });
        if let Some(listed) = listed {
            all.retain(|one| listed.contains(one));
        }
        Self { compilers: all.into_iter().collect(), compiles_kernels }
    }
}
#[derive(Default)]
struct ScannedObjects {
    with_kernels: BTreeSet<String>,
    others: BTreeSet<String>,
}

impl ScannedObjects {
    fn scan_object(&mut self, object: &[u8]) {
        let Ok(elf) = Elf::parse(object) else { return };
        let kernels = elf.sections().any(|section| SECTIONS.contains(&section.name));
        let into = if kernels { &mut self.with_kernels } else { &mut self.others };
        into.extend(comment_strings(&elf).filter_map(HostCompiler::in_comment));
    }
}

fn comment_strings<'a>(elf: &Elf<'a>) -> impl Iterator<Item = &'a str> {
    let texts = elf
        .sections()
        .filter(|section| section.name == ".comment")
        .flat_map(|section| section.data.split(|byte| *byte == 0));
    texts.filter_map(|text| std::str::from_utf8(text).ok())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::binary::kernels::tests::writer::{self, WrittenSection};

    fn object(compiler: &str, kernels: bool) -> Vec<u8> {
        let comment = format!("\0{compiler}\0");
        let mut sections = vec![WrittenSection { name: ".comment", kind: 1, flags: 0x30, data: comment.as_bytes() }];
        if kernels {
            sections.push(WrittenSection { name: SECTIONS[0], kind: 1, flags: 2, data: &[0; 16] });
        }
        writer::elf(1, 62, 0, 0, &sections)
    }

    #[test]
    fn objects_with_kernels_name_the_compiler() {
        const GCC: &str = "GCC: (Debian 12.2.0-14+deb12u1) 12.2.0";
        const CLANG: &str = "Debian clang version 14.0.6";
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path();
        let write = |name: &str, bytes: Vec<u8>| {
            let file = dir.join(name);
            fs::write(&file, bytes).unwrap();
            file
        };
        let both = write("both", object(&format!("{GCC}\0{CLANG}\0rustc version 1.86.0"), false));
        let (plain, other) = (write("plain.o", object(GCC, false)), write("other.o", object(CLANG, false)));
        let kernels = write("kernels.o", object(CLANG, true));
        let named_compilers = |linked: &PathBuf, objects: &[&PathBuf]| {
            let objects: Vec<_> = objects.iter().map(|object| (*object).clone()).collect();
            HostCode::from_objects(&fs::read(linked).unwrap(), &objects, &OpenFiles::default()).compilers
        };
        assert_eq!(named_compilers(&both, &[]), [""; 0]);
        assert_eq!(named_compilers(&both, &[&plain]), ["gcc 12.2.0"]);
        assert_eq!(named_compilers(&both, &[&plain, &kernels]), ["clang 14.0.6"]);
        assert_eq!(named_compilers(&both, &[&plain, &other]), ["clang 14.0.6", "gcc 12.2.0"]);
        // An object that the linker did not use, and a stripped linked file.
        let gcc = write("gcc", object(GCC, false));
        assert_eq!(named_compilers(&gcc, &[&plain, &other]), ["gcc 12.2.0"]);
        assert_eq!(named_compilers(&gcc, &[&kernels]), [""; 0]);
        let stripped = write("stripped", writer::elf(2, 62, 0, 0, &[]));
        assert_eq!(named_compilers(&stripped, &[&kernels]), ["clang 14.0.6"]);
        assert_eq!(named_compilers(&stripped, &[&write("text.o", b"no object".to_vec())]), [""; 0]);
    }
}
