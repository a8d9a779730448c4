//! Cached objects for many components: the shim, which is the same for all components of one compiler, and a note that
//! is filled in for each component without running the assembler again. In a build of fifty small programs, compiling
//! these would take most of the time.

use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::elf::Elf;
use cudaguard::internal::bytes::{u32_at, u64_at};
use cudaguard::internal::digest::Digest;
use cudaguard::internal::file_error::FileError;
use cudaguard::internal::guard::shared::SharedDir;
use cudaguard::internal::guard::{GuardCompiler, GuardError, Keep, NoteSource, note_assembly, note_group};
use cudaguard::internal::manifest::Component;
use cudaguard::internal::note::SIZE;
use object::elf::SHT_SYMTAB;

/// A directory of cached objects.
#[derive(Clone, Debug)]
pub(super) struct GuardObjectCache(SharedDir);

impl GuardObjectCache {
    pub(super) fn new(dir: &Path) -> Self {
        Self(SharedDir::new(dir))
    }

    /// Writes the note and the shim of a component into `dir`, from the cache if possible.
    pub(super) fn cached_guard(
        &self,
        compiler: &GuardCompiler,
        note: NoteSource<'_>,
        dir: &Path,
    ) -> Result<(PathBuf, PathBuf), GuardError> {
        let shim = self.cached_shim(compiler, dir)?;
        Ok((self.note_or_assemble(compiler, note, dir)?, shim))
    }

    /// Writes the note of this descriptor to `dir/cudaguard-note.o`.
    pub(super) fn note_or_assemble(
        &self,
        compiler: &GuardCompiler,
        note: NoteSource<'_>,
        dir: &Path,
    ) -> Result<PathBuf, GuardError> {
        match self.cached_note(compiler, note, dir)? {
            Some(note) => Ok(note),
            None => compiler.compile_note(note, dir),
        }
    }

    /// Writes the shim to `dir/cudaguard-shim.o`.
    fn cached_shim(&self, compiler: &GuardCompiler, dir: &Path) -> Result<PathBuf, GuardError> {
        let made = self.0.shim(compiler)?;
        let shim = dir.join("cudaguard-shim.o");
        // A copy, not a link, because build tools compare its modification time.
        fs::copy(&made, &shim).map_err(|error| FileError::write(&shim, error))?;
        Ok(shim)
    }

    /// Writes the note of this descriptor to `dir/cudaguard-note.o`. `None` if it must be assembled separately.
    fn cached_note(
        &self,
        compiler: &GuardCompiler,
        note: NoteSource<'_>,
        directory: &Path,
    ) -> Result<Option<PathBuf>, GuardError> {
        if note.dlopen.is_some() {
            return Ok(None);
        }
        let blank = (blank_descriptor(), blank_component());
        let blank = NoteSource { descriptor: &blank.0, component: &blank.1, dlopen: None };
        let form = Digest::from_bytes(note_assembly(blank, Keep::Retain).as_bytes());
        let blank_note = self.0.path(compiler, "note", "s", form);
        let made = match self.0.object(&blank_note, |dir| compiler.compile_note(blank, dir)) {
            Err(GuardError::NoGuard(_)) => return Ok(None),
            made => made?,
        };
        let bytes = fs::read(&made).map_err(|error| FileError::read(&made, error))?;
        let Some(filled) = fill_note(bytes, note.descriptor, &note_group(note.component)) else { return Ok(None) };
        let object = directory.join("cudaguard-note.o");
        fs::write(&object, filled).map_err(|error| FileError::write(&object, error))?;
        Ok(Some(object))
    }
}

/// The component of the blank note.
fn blank_component() -> Component {
    Component { name: "nobody".to_owned(), version: "0".to_owned() }
}

/// The descriptor of the blank note: bytes that no object contains by chance.
fn blank_descriptor() -> [u8; SIZE] {
    std::array::from_fn(|at| (at * 131 + at / 256 + 17).to_le_bytes()[0])
}

/// Replaces the descriptor and the group name in the blank note's object. `None` if its format is unexpected.
///
/// The group name is appended to the string table, which is moved to the end of the object for this.
fn fill_note(mut object: Vec<u8>, descriptor: &[u8; SIZE], group_name: &str) -> Option<Vec<u8>> {
    const SECTION_HEADER: usize = 64;
    const SYMBOL: usize = 24;
    let at = memchr::memmem::find(&object, &blank_descriptor())?;
    object[at..at + SIZE].copy_from_slice(descriptor);
    let elf = Elf::parse(&object).ok().filter(|elf| elf.is_64_bit)?;
    let table = elf.sections().find(|section| section.kind == SHT_SYMTAB)?;
    let names = elf.sections().nth(table.link as usize)?;
    let header = usize::try_from(u64_at(&object, 0x28)?).ok()? + names.index * SECTION_HEADER;
    let first = usize::try_from(table.offset).ok()?;
    let length = u32::try_from(names.data.len()).ok()?;
    let moved = [names.data, group_name.as_bytes(), b"\0"].concat();
    let blank_name = [note_group(&blank_component()).as_bytes(), b"\0"].concat();
    let mut found = false;
    for symbol in (first..first + table.data.len()).step_by(SYMBOL) {
        let name = u32_at(&object, symbol)? as usize;
        if moved.get(name..)?.starts_with(&blank_name) {
            object[symbol..symbol + 4].copy_from_slice(&length.to_le_bytes());
            found = true;
        }
    }
    let place = object.len() as u64;
    object[header + 24..header + 32].copy_from_slice(&place.to_le_bytes());
    object[header + 32..header + 40].copy_from_slice(&(moved.len() as u64).to_le_bytes());
    object.extend_from_slice(&moved);
    found.then_some(object)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::guard::{Tool, compile_with};
    use cudaguard::internal::env::Env;
    use cudaguard::internal::guard::GuardObjects;

    fn component(name: &str) -> Component {
        Component { name: name.to_owned(), version: "0.3.1".to_owned() }
    }

    /// A cached note equals one that is compiled for its component only, the shim is compiled once, and the linker keeps one
    /// note of each component.
    #[test]
    fn cached_guard_equals_fresh_guard() {
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        let mut found = Env::from_process().path_list("PATH").into_iter().map(|dir| dir.join("cc"));
        let program = found.find(|file| file.is_file()).expect("cargo links with it");
        let tool = Tool { program: program.clone(), flags: Vec::new(), kept: Some(at("kept")) };
        let mut objects = Vec::new();
        for (name, byte) in [("a-rather-long-name-of-a-component", 3), ("b", 5)] {
            let descriptor = [byte; SIZE];
            let (alone, shared) = (at(&format!("{name}-alone")), at(&format!("{name}-shared")));
            for dir in [&alone, &shared] {
                fs::create_dir_all(dir).unwrap();
            }
            let made = compile_with(&tool, &descriptor, &component(name), &target, &shared);
            let Ok(GuardObjects::Objects { note, shim }) = made else { panic!("{made:?}") };
            let source = NoteSource { descriptor: &descriptor, component: &component(name), dlopen: None };
            let other_note = tool.to_compiler(&target).compile_note(source, &alone).unwrap();
            let (note_bytes, other_bytes) = (fs::read(&note).unwrap(), fs::read(&other_note).unwrap());
            let (one, other) = (Elf::parse(&note_bytes).unwrap(), Elf::parse(&other_bytes).unwrap());
            let notes = |elf: &Elf<'_>| elf.notes().map(|note| note.desc.to_vec()).collect::<Vec<_>>();
            assert_eq!(notes(&one), notes(&other));
            assert_eq!(notes(&one), [descriptor.to_vec()]);
            objects.extend([note, other_note, shim]);
        }
        assert_eq!(fs::read_dir(at("kept")).unwrap().count(), 2, "a shim, a note, and nothing else");
        fs::write(at("main.c"), "int main(void) { return 0; }\n").unwrap();
        for linker in ["bfd", "gold", "lld", "mold"] {
            let mut call = Command::new(&program);
            call.arg(format!("-fuse-ld={linker}")).args(["-s", "-Wl,--gc-sections", "-o"]).arg(at("program"));
            let linked = call.arg(at("main.c")).args(&objects).arg("-ldl").output().unwrap();
            if !linked.status.success() {
                let message = String::from_utf8_lossy(&linked.stderr).into_owned();
                assert!(message.contains("-fuse-ld") || message.contains("cannot find"), "{linker}: {message}");
                continue;
            }
            let program = fs::read(at("program")).unwrap();
            let elf = Elf::parse(&program).unwrap();
            let mut notes: Vec<u8> =
                elf.notes().filter(|note| note.owner == "cudaguard").map(|note| note.desc[0]).collect();
            notes.sort_unstable();
            assert_eq!(notes, [3, 5], "{linker}: each component's note once");
        }
    }

    #[test]
    fn non_object_is_not_patched() {
        let blank = blank_descriptor();
        assert_eq!(fill_note(Vec::new(), &blank, "x"), None);
        assert_eq!(fill_note(blank.to_vec(), &blank, "x"), None);
        let mut wild = blank.to_vec();
        wild.splice(0..0, [0xff; 0x40]);
        assert_eq!(fill_note(wild, &blank, "x"), None);
    }
}
