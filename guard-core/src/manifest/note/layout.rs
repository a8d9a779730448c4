//! The layout of a note's descriptor (MANIFEST.md): the writer and the reader use these offsets, and the shim's structs
//! are generated from them.

// MANIFEST.md documents each value.
#![allow(missing_docs)]

/// The encoding of a value; integers are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Magic,
    U8,
    U16,
    U32,
    /// A string: the offset of its bytes, and their number.
    Text,
}

impl Kind {
    const fn size(self) -> usize {
        match self {
            Self::Magic => 8,
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::Text => 4,
        }
    }
}

/// A field of a structure, with its name in the shim.
pub struct Field {
    #[cfg_attr(not(test), allow(dead_code))] // Used only for the shim's header.
    pub name: &'static str,
    pub kind: Kind,
}

const fn offset(fields: &[Field], of: usize) -> usize {
    let (mut at, mut index) = (0, 0);
    while index < of {
        at += fields[index].kind.size();
        index += 1;
    }
    at
}

/// Defines a module for each structure, with the offset of every field and the list of all fields.
macro_rules! layout {
    ($($module:ident { $($name:ident $field:literal $kind:ident,)* })*) => {$(
        #[allow(dead_code)]
        pub mod $module {
            use super::{Field, Kind, offset};

            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            enum Place { $($name,)* }

            pub const FIELDS: &[Field] = &[$(Field { name: $field, kind: Kind::$kind },)*];
            pub const SIZE: usize = offset(FIELDS, FIELDS.len());
            $(pub const $name: usize = offset(FIELDS, Place::$name as usize);)*
        }
    )*};
}

// Fields named `unused` are zero. Fields that precede `mismatch` have the same offset in every revision.
layout! {
    head {
        MAGIC "magic" Magic,
        REVISION "revision" U16,
        ROWS "rows" U16,
        ROWS_AT "rows_at" U16,
        ROW_SIZE "row_size" U16,
        JSON_AT "json_at" U16,
        JSON_SIZE "json_size" U16,
        MISMATCH "mismatch" U8,
        GPU "gpu" U8,
        LIBRARY "library" U8,
        ARCHS_KNOWN "archs_known" U8,
        SEALED "sealed" U8,
        PARTIAL "partial" U8,
        UNUSED_26 "unused_26" U16,
        NAME "name" Text,
        VERSION "version" Text,
        CUDAGUARD "cudaguard" Text,
        TOOLKIT "toolkit" Text,
    }
    library_row {
        KIND "kind" U16,
        FLAGS "flags" U16,
        MIN "min" U32,
        BELOW "below" U32,
        BUILT "built" U32,
        DROPS_GPUS_FROM "drops_gpus_from" U32,
        OLDEST_GPU "oldest_gpu" U16,
        OLDEST_GPU_BEFORE "oldest_gpu_before" U16,
        SONAME "soname" Text,
        LIBRARY "library" Text,
        NAMES "names" Text,
        NEWEST_GPUS "newest_gpus" U8,
        NEWEST_GPUS_FROM "newest_gpus_from" U8,
        NEWEST_GPUS_BEFORE "newest_gpus_before" U8,
        NEWEST_GPUS_BELOW_CUDA "newest_gpus_below_cuda" U8,
    }
    part_row {
        KIND "kind" U16,
        NEEDED "needed" U16,
        OLDER_CUDA "older_cuda" U32,
        OLDER_RELEASE "older_release" U32,
        NEWER_CUDA "newer_cuda" U32,
        NEWER_RELEASE "newer_release" U32,
        UNUSED_20 "unused_20" U32,
        FILE "file" Text,
        SYMBOL "symbol" Text,
        MADE_WITH "made_with" Text,
        UNUSED_36 "unused_36" U32,
    }
    driver_row {
        KIND "kind" U16,
        UNUSED_2 "unused_2" U16,
        UNUSED_4 "unused_4" U32,
        UNUSED_8 "unused_8" U32,
        CUDART_BUILT "cudart_built" U32,
        CUDA "cuda" U32,
        RELEASE "release" U32,
        BECAUSE "because" Text,
        CUDART "cudart" Text,
        NAMES "names" Text,
        UNUSED_36 "unused_36" U32,
    }
    gpu_row {
        KIND "kind" U16,
        SERVED_BY "served_by" U16,
        LOWEST "lowest" U32,
        HIGHEST "highest" U32,
        ARCH "arch" U32,
        CUDA "cuda" U32,
        RELEASE "release" U32,
        CODE "code" Text,
        BUILT_FOR "built_for" Text,
        SURE_CUDA "sure_cuda" U32,
        SURE_RELEASE "sure_release" U32,
    }
}

/// Defines named numbers, as constants and as a list.
macro_rules! numbers {
    ($($(#[$doc:meta])* $list:ident: $type:ty { $($name:ident = $value:literal,)* })*) => {$(
        $(#[$doc])*
        #[cfg_attr(not(test), allow(dead_code))]
        pub const $list: &[(&str, $type)] = &[$((stringify!($name), $value),)*];
        $(#[allow(dead_code)] pub const $name: $type = $value;)*
    )*};
}

numbers! {
    ROW_KINDS: u16 { ROW_LIBRARY = 1, ROW_PART = 2, ROW_DRIVER = 3, ROW_GPU = 4, }
    /// If none of the first three is set, the linkage is unknown.
    LIBRARY_FLAGS: u16 { LIBRARY_LINKED = 1, LIBRARY_DLOPENED = 2, LIBRARY_STATIC = 4, LIBRARY_PATCH = 8, LIBRARY_REQUIRED = 16, }
    GPU_FLAGS: u16 { BY_CUBIN = 1, BY_PTX = 2, BY_SOME = 4, BY_NONE = 8, BY_UNKNOWN = 16, NO_PTX = 32, PTX_ISA = 256, }
    MISMATCHES: u8 { MISMATCH_WARNS = 0, MISMATCH_REFUSES = 1, }
    GPU_NEEDS: u8 { GPU_AUTO = 0, GPU_REQUIRED = 1, GPU_OPTIONAL = 2, }
    LIBRARIES: u8 { LIBRARY_REPORTS = 0, LIBRARY_ENFORCES = 1, }
    ARCHS: u8 { ARCHS_UNSEALED = 0, ARCHS_DECLARED = 1, ARCHS_OBSERVED = 2, }
    PARTIALS: u8 { PARTIAL_SILENT = 0, PARTIAL_REFUSES = 1, }
}

/// Size of every row.
pub const ROW_SIZE: usize = gpu_row::SIZE;

const _: () = assert!(
    library_row::SIZE == ROW_SIZE && part_row::SIZE == ROW_SIZE && driver_row::SIZE == ROW_SIZE && head::SIZE == 44
);
