//! COFF objects: members of the static and import libraries of Windows (`.lib`).

use object::LittleEndian as LE;
use object::elf::{EM_NONE, Machine};
use object::pe;
use object::read::coff::CoffHeader;

use super::{PeSection, machine_number};

/// A COFF object.
#[derive(Clone, Debug)]
pub struct CoffObject<'data> {
    /// The processor, as an ELF file would number it; `EM_NONE` if it has no number there.
    pub machine: Machine,
    /// The sections; their addresses are not set. An import, which names a function of a DLL, has none.
    pub sections: Vec<PeSection<'data>>,
}

/// A linked object has thousands of sections, one for each function.
const MOST_SECTIONS: usize = 1 << 16;

impl<'data> CoffObject<'data> {
    /// Parses an object, a large object (`/bigobj`) or an import; `None` if the bytes are none of them.
    pub fn parse(data: &'data [u8]) -> Option<Self> {
        match data.get(..6)? {
            [0, 0, 0xff, 0xff, 0, 0] => Some(Self { machine: EM_NONE, sections: Vec::new() }),
            [0, 0, 0xff, 0xff, ..] => Self::parse_header::<pe::AnonObjectHeaderBigobj>(data),
            _ => Self::parse_header::<pe::ImageFileHeader>(data).filter(|object| object.machine != EM_NONE),
        }
    }

    fn parse_header<Header: CoffHeader>(data: &'data [u8]) -> Option<Self> {
        let mut offset = 0;
        let header = Header::parse(data, &mut offset).ok()?;
        let table = header.sections(data, offset).ok()?;
        let strings = header.symbols(data).ok()?.strings();
        let sections = table.iter().take(MOST_SECTIONS).map(|section| {
            let flags = section.characteristics.get(LE);
            PeSection {
                name: section.name(strings).ok().and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default(),
                address: 0,
                offset: section.pointer_to_raw_data.get(LE).into(),
                data: section.coff_data(data).unwrap_or_default(),
                is_code: flags.contains(pe::IMAGE_SCN_MEM_EXECUTE) || flags.contains(pe::IMAGE_SCN_CNT_CODE),
                is_writable: flags.contains(pe::IMAGE_SCN_MEM_WRITE),
            }
        });
        Some(Self { machine: machine_number(header.machine()), sections: sections.collect() })
    }
}
