//! The judge of a start in C (`templates/shim/judge.c`), which the build script compiles.
//!
//! The structures are those of `judge.h`, which documents each field; a test compares their members.

#![allow(unsafe_code)]

use std::mem;

/// A structure of `judge.h`.
pub(super) trait Zeroed {
    /// Returns null pointers and zeros.
    fn zeroed() -> Self;
}

/// Defines structures of `judge.h`, and lists their members for the test.
macro_rules! structures {
    ($($name:ident = $c_name:literal { $($field:ident: $type:ty,)* })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy, PartialEq, Eq)]
            pub(super) struct $name {
                $(pub(super) $field: $type,)*
            }

            impl Zeroed for $name {
                fn zeroed() -> Self {
                    // SAFETY: All members are numbers and raw pointers.
                    unsafe { mem::zeroed() }
                }
            }
        )*

        #[cfg(test)]
        const STRUCTURES: &[(&str, &[(&str, &str)])] =
            &[$(($c_name, &[$((stringify!($field), stringify!($type)),)*]),)*];
    };
}

structures! {
    Rows = "judge_rows" {
        at: *const NoteRow,
        count: u32,
        stride: u32,
    }
    ProgramFacts = "judge_manifest" {
        rows: [Rows; 2],
        gpu: u32,
        partial: u32,
        built_cuda: u32,
        cudart_built: u32,
    }
    PartFacts = "judge_part" {
        row: u32,
        state: u32,
        version: u32,
    }
    CudnnFacts = "judge_cudnn" {
        parts: *const PartFacts,
        part_count: u32,
        part_stride: u32,
        source: u32,
        state: u32,
        is_guess: u32,
        has_file: u32,
        major: u32,
        version: u32,
        loader: u32,
        is_minor: u32,
        made_with: u32,
    }
    CudartFacts = "judge_cudart" {
        source: u32,
        state: u32,
        version: u32,
    }
    GpuFacts = "judge_gpu" {
        cc: u32,
        product: u32,
        driven: u32,
        branch: u32,
        first_cuda: u32,
        first_release: u32,
    }
    DriverFacts = "judge_driver" {
        gpus: *const GpuFacts,
        gpu_count: i32,
        init: i32,
        source: u32,
        state: u32,
        cannot_load: u32,
        user: u32,
        kernel: u32,
        branch: u32,
        cuda: u32,
        least_cuda: u32,
        most_cuda: u32,
        compat: u32,
        compiler: u32,
        compiler_source: u32,
        forces_ptx: u32,
        disables_ptx: u32,
    }
    HostFacts = "judge_facts" {
        cudnn: *const CudnnFacts,
        cudart: *const CudartFacts,
        driver: *const DriverFacts,
    }
    JudgedFinding = "judge_finding" {
        gpus: u64,
        parts: u64,
        code: u32,
        severity: u32,
        row: u32,
        version: u32,
        needs_cuda: u32,
        needs_release: u32,
        isa: u32,
        unused: u32,
    }
    JudgeResult = "judge_result" {
        findings: *mut JudgedFinding,
        capacity: u32,
        count: u32,
        dropped: u32,
        needs: u32,
        unknown: u32,
        cudnn: u32,
        made_with: u32,
        library: u32,
        usable_gpus: u64,
    }
}

/// A row as in a note: `union row`.
pub(super) type NoteRow = [u8; 40];

/// The requirements of a program, without its rows.
#[derive(Clone, Copy, Default)]
pub(super) struct Requirements {
    pub(super) gpu: u32,
    pub(super) partial: u32,
    pub(super) built_cuda: u32,
    pub(super) cudart_built: u32,
}

/// The result of the judge.
pub(super) struct Judged {
    pub(super) findings: Vec<JudgedFinding>,
    /// Facts because of which the verdict about the driver is unknown, as bits.
    pub(super) unknown: u32,
    /// GPUs that have code for them, and nothing against them, as bits.
    pub(super) usable_gpus: u64,
}

unsafe extern "C" {
    fn cudaguard_judge_start(manifest: *const ProgramFacts, facts: *const HostFacts, result: *mut JudgeResult);
}

/// Judges a program on a host. `gpus` are those that the process sees; `None`: unknown.
pub(super) fn judge_start(
    rows: &[NoteRow],
    requirements: Requirements,
    (cudnn, parts): (CudnnFacts, &[PartFacts]),
    cudart: CudartFacts,
    (driver, gpus): (DriverFacts, Option<&[GpuFacts]>),
) -> Judged {
    // Each row results in at most one finding, the cuDNN of a row in one for each part and eight more, each GPU in at most one.
    let known_gpus = gpus.unwrap_or_default();
    let capacity = rows.len() * 2 + 64 + known_gpus.len() + 8 + parts.len() * rows.len().min(4);
    let mut findings: Vec<JudgedFinding> = Vec::with_capacity(capacity);
    let [stride, part_stride, row_count, part_count, most_findings] =
        [size_of::<NoteRow>(), size_of::<PartFacts>(), rows.len(), parts.len(), capacity]
            .map(|length| u32::try_from(length).unwrap_or(u32::MAX));
    let no_rows = Rows { stride, ..Rows::zeroed() };
    let Requirements { gpu, partial, built_cuda, cudart_built } = requirements;
    let rows = [Rows { at: rows.as_ptr(), count: row_count, stride }, no_rows];
    let manifest = ProgramFacts { rows, gpu, partial, built_cuda, cudart_built };
    let cudnn = CudnnFacts { parts: parts.as_ptr(), part_count, part_stride, ..cudnn };
    let gpu_count = gpus.map_or(-1, |gpus| i32::try_from(gpus.len()).unwrap_or(i32::MAX));
    let driver = DriverFacts { gpus: known_gpus.as_ptr(), gpu_count, ..driver };
    let facts = HostFacts { cudnn: &raw const cudnn, cudart: &raw const cudart, driver: &raw const driver };
    let mut result = JudgeResult { findings: findings.as_mut_ptr(), capacity: most_findings, ..JudgeResult::zeroed() };
    // SAFETY: The structures have the members of `judge.h` (a test compares them). Each pointer is to a live object, or to the
    // first of as many elements as its count specifies; only `result` and the `capacity` elements after `findings` are written, and
    // nothing else refers to these. The function keeps no pointer.
    unsafe { cudaguard_judge_start(&raw const manifest, &raw const facts, &raw mut result) };
    let count = usize::try_from(result.count).unwrap_or_default();
    assert!(count <= findings.capacity() && result.dropped == 0, "the judge has room for each finding");
    // SAFETY: The judge initialized the first `count` elements, which are within the capacity.
    unsafe { findings.set_len(count) };
    Judged { findings, unknown: result.unknown, usable_gpus: result.usable_gpus }
}

#[cfg(test)]
mod tests {
    use cudaguard::internal::finding::MessageTemplate;
    use cudaguard::internal::note::layout;

    use super::*;
    use crate::host::machine::judge::MESSAGES;

    const HEADER: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/shim/judge.h"));

    /// The header without its comments.
    fn header() -> String {
        let mut text = HEADER.to_owned();
        while let Some(start) = text.find("/*") {
            let end = text[start..].find("*/").expect("the comment has an end") + start + 2;
            text.replace_range(start..end, " ");
        }
        text
    }

    /// The members of a structure of the header, with the types that they have in Rust.
    fn members(text: &str, name: &str) -> Vec<(String, String)> {
        let start = text.find(&format!("struct {name} {{")).unwrap_or_else(|| panic!("judge.h has no {name}"));
        let body = &text[start..];
        let body = &body[body.find('{').expect("a body") + 1..body.find("};").expect("the end of the body")];
        let mut found = Vec::new();
        for declaration in body.split(';').map(str::trim).filter(|declaration| !declaration.is_empty()) {
            let (c_type, names) = declaration.rsplit_once([' ', '*']).map_or((declaration, ""), |_| {
                let first = declaration.split(',').next().unwrap_or_default();
                let at = first.rfind([' ', '*']).expect("a type and a name") + 1;
                declaration.split_at(at)
            });
            for member in names.split(',').map(str::trim) {
                let (member, length) = member
                    .split_once('[')
                    .map_or((member, None), |(name, rest)| (name, Some(rest.trim_end_matches(']').to_owned())));
                let rust = rust_type(c_type.trim());
                let rust = length.map_or(rust.clone(), |length| format!("[{rust}; {length}]"));
                found.push((member.to_owned(), rust));
            }
        }
        found
    }

    fn rust_type(c_type: &str) -> String {
        let plain = match c_type {
            "uint32_t" => "u32",
            "int32_t" => "i32",
            "uint64_t" => "u64",
            "const void *" => "*const NoteRow",
            other => {
                let name = other.trim_start_matches("const ").trim_start_matches("struct ").trim_end_matches(" *");
                let rust = match name {
                    "judge_rows" => "Rows",
                    "judge_part" => "PartFacts",
                    "judge_gpu" => "GpuFacts",
                    "judge_cudnn" => "CudnnFacts",
                    "judge_cudart" => "CudartFacts",
                    "judge_driver" => "DriverFacts",
                    "judge_finding" => "JudgedFinding",
                    _ => panic!("{c_type} has no type in Rust"),
                };
                return match (other.starts_with("const "), other.ends_with('*')) {
                    (true, true) => format!("*const {rust}"),
                    (false, true) => format!("*mut {rust}"),
                    _ => rust.to_owned(),
                };
            }
        };
        plain.to_owned()
    }

    #[test]
    fn structures_are_those_of_the_header() {
        let text = header();
        for (name, fields) in STRUCTURES {
            let expected: Vec<_> = fields.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect();
            assert_eq!(members(&text, name), expected, "{name}");
        }
        assert_eq!(size_of::<NoteRow>(), layout::gpu_row::SIZE);
    }

    /// The names in a list of the header: its lines are continued, but for the last.
    fn list(text: &str, name: &str) -> Vec<String> {
        let (_, body) = text.split_once(&format!("#define {name}(X)")).unwrap_or_else(|| panic!("no {name}"));
        let names = body.lines().skip(1).map_while(|line| line.trim().strip_prefix("X(")?.split_once(')'));
        names.map(|(name, _)| name.to_owned()).collect()
    }

    #[test]
    fn codes_are_those_of_the_header() {
        let text = header();
        let names = list(&text, "JUDGE_FINDINGS").into_iter().chain(list(&text, "DESCRIBED_FINDINGS"));
        let capitalized = |word: &str| word[..1].to_owned() + &word[1..].to_lowercase();
        let names: Vec<String> = names.map(|name| name.split('_').map(capitalized).collect()).collect();
        let expected: Vec<String> = MESSAGES.iter().map(|message: &MessageTemplate| format!("{message:?}")).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn numbers_are_those_of_the_header() {
        use crate::host::machine::judge::code;
        let text = header();
        for (names, numbers) in [
            (&["NOT_DETECTED", "BY_FILES", "DETECTED"][..], &[0, 1, code::DETECTED][..]),
            (&["UNKNOWN", "ABSENT", "FOUND"], &[0, code::ABSENT, code::FOUND]),
            (
                &["IS_DRIVEN", "MAY_BE_DRIVEN", "NOT_YET_DRIVEN", "NO_LONGER_DRIVEN"],
                &[0, code::MAY_BE_DRIVEN, code::NOT_YET_DRIVEN, code::NO_LONGER_DRIVEN],
            ),
            (
                &["PRODUCT_UNKNOWN", "PRODUCT_OF_DATA_CENTERS", "PRODUCT_OF_CONSUMERS"],
                &[0, code::PRODUCT_OF_DATA_CENTERS, code::PRODUCT_OF_CONSUMERS],
            ),
            (
                &["COMPAT_UNKNOWN", "COMPAT_NONE", "COMPAT_LISTED", "COMPAT_UNLISTED", "COMPAT_ANY"],
                &[0, code::COMPAT_NONE, code::COMPAT_LISTED, code::COMPAT_UNLISTED, code::COMPAT_ANY],
            ),
        ] {
            let written: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(written.contains(&names.join(", ")), "{names:?}");
            assert!(numbers.iter().copied().eq(0..u32::try_from(numbers.len()).unwrap()), "{names:?}: {numbers:?}");
        }
    }
}
