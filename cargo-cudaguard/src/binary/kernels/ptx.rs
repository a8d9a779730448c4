//! Parses PTX text in files, and in the data of programs that compile it at run time.

use std::io::Read as _;

use cudaguard::internal::arch::{Arch, Suffix};

/// The facts from the text of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ptx {
    pub(super) arch: Arch,
    pub(super) isa: (u16, u16),
    pub(super) debug: bool,
    /// Offset of its first directive.
    pub(super) start: usize,
    /// Offset of the end of its last line.
    pub(super) end: usize,
    /// Offset up to which the text has been read; no other module begins before it.
    pub(super) read: usize,
    /// Hash of its kernel names, as in [`super::cubin::Cubin`]; 0 if it has none.
    pub(super) kernels: u64,
    /// True if there is anything after the lines that every PTX module begins with.
    pub(super) declares: bool,
    /// True if its kernels set conditions of CUDA graphs, which only drivers of CUDA 12.3 and newer support. A program with
    /// an older driver does not use them.
    pub(super) sets_conditions: bool,
}

/// Reads the PTX module whose `.version` is at offset `at`. Returns `None` if the text is not a module, such as a
/// message of a compiler, or a template whose numbers are filled in at run time.
pub(super) fn read_module(data: &[u8], at: usize) -> Option<Ptx> {
    // Bounded, so that text that only begins like PTX does not cost a walk through the file.
    let mut lexer = Lexer { data: &data[..data.len().min(at.saturating_add(LONGEST_HEAD))], at };
    if lexer.next_word()? != b".version" {
        return None;
    }
    let isa = lexer.read_version()?;
    // According to the PTX manual, `.target` is the next directive; comments may precede it.
    if lexer.next_word()? != b".target" {
        return None;
    }
    let (arch, debug) = lexer.read_target()?;
    let body = lexer.at;
    let mut lexer = Lexer { data, at: body };
    let Module { end, kernels, declares, sets_conditions } = lexer.read_rest();
    let (end, read) = (end.max(body), lexer.at.max(body));
    Some(Ptx { arch, isa, debug, start: at, end, read, kernels, declares, sets_conditions })
}

/// Maximum number of bytes from `.version` to the end of `.target`, including comments.
const LONGEST_HEAD: usize = 1024;

/// Returns the offset of `.version` if the data begins like PTX: only blanks and comments may precede it.
pub(super) fn find_version(data: &[u8]) -> Option<usize> {
    let mut lexer = Lexer { data, at: 0 };
    lexer.skip_blank();
    data[lexer.at..].starts_with(b".version").then_some(lexer.at)
}

/// PTX that a program contains as a gzip stream, as `FFmpeg` does.
pub(super) struct GzippedPtx {
    pub(super) text: Vec<u8>,
    /// Offset of `.version` in the text.
    pub(super) version: usize,
    /// Length of the stream in bytes.
    pub(super) packed: usize,
}

/// Unpacks the gzip stream at the start of these bytes if it contains PTX.
///
/// # Errors
/// Returns a description if the stream begins like PTX, and is cut off, damaged or too long.
pub(super) fn unpack_gzipped_ptx(data: &[u8]) -> Result<Option<GzippedPtx>, &'static str> {
    /// The longest text: a hundred times the largest modules of `FFmpeg`.
    const LONGEST: u64 = 16 << 20;
    const HEAD: u64 = 1 << 10;
    let mut stream = flate2::bufread::GzDecoder::new(data);
    let mut text = Vec::new();
    // The data only begins like a stream if this fails.
    let is_stream = stream.by_ref().take(HEAD).read_to_end(&mut text).is_ok();
    if !is_stream || find_version(&text).is_none() {
        return Ok(None);
    }
    stream.by_ref().take(LONGEST).read_to_end(&mut text).map_err(|_| "PTX in a damaged gzip stream")?;
    if text.len() as u64 >= LONGEST {
        return Err("PTX in a gzip stream of more than 16 MiB");
    }
    let packed = data.len() - stream.get_ref().len();
    Ok(find_version(&text).map(|version| GzippedPtx { text, version, packed }))
}

/// Returns true if the beginning of a file does not show that it is not PTX: it ends before the first directive.
pub(super) fn may_continue_as_ptx(head: &[u8]) -> bool {
    let mut lexer = Lexer { data: head, at: 0 };
    lexer.skip_blank();
    let rest = lexer.remaining();
    b".version".starts_with(rest) || rest == b"/"
}

/// The contents of a module after its head.
struct Module {
    end: usize,
    kernels: u64,
    declares: bool,
    sets_conditions: bool,
}

struct Lexer<'data> {
    data: &'data [u8],
    at: usize,
}

impl<'data> Lexer<'data> {
    fn remaining(&self) -> &'data [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    /// Skips blanks and comments.
    fn skip_blank(&mut self) {
        loop {
            let rest = self.remaining();
            if rest.first().is_some_and(u8::is_ascii_whitespace) {
                self.at += 1;
            } else if rest.starts_with(b"//") {
                self.at += rest.iter().position(|byte| matches!(byte, b'\n' | 0)).unwrap_or(rest.len());
            } else if rest.starts_with(b"/*") {
                // Skip to the end of the comment or of the text, whichever is first, so that the cost is proportional
                // to the comment.
                let body = &rest[2..];
                let stop = body.iter().enumerate().position(|(at, byte)| *byte == 0 || body[at..].starts_with(b"*/"));
                self.at += 2 + match stop {
                    Some(stop) if body[stop] != 0 => stop + 2,
                    Some(stop) => stop,
                    None => body.len(),
                };
            } else {
                return;
            }
        }
    }

    /// Reads the next directive, modifier or name; `None` if there is something else. A dot begins a word and is never
    /// inside one, so no blank is needed before it.
    fn next_word(&mut self) -> Option<&'data [u8]> {
        self.skip_blank();
        let rest = self.remaining();
        let dot = usize::from(rest.first() == Some(&b'.'));
        let length = dot + rest[dot..].iter().take_while(|byte| is_word(**byte)).count();
        self.at += length;
        (length > 0).then(|| &rest[..length])
    }

    /// Reads a version such as `8.5`.
    fn read_version(&mut self) -> Option<(u16, u16)> {
        let major = std::str::from_utf8(self.next_word()?).ok()?;
        let minor = std::str::from_utf8(self.remaining().strip_prefix(b".").and_then(|_| self.next_word())?).ok()?;
        Some((major.parse().ok()?, minor.strip_prefix('.')?.parse().ok()?))
    }

    /// Skips the operands of a directive that does not end with a semicolon, to the end of its line or to the next
    /// directive.
    fn skip_operands(&mut self) {
        loop {
            let rest = self.remaining();
            match rest.first() {
                Some(b' ' | b'\t' | b',' | b'+' | b'-') => self.at += 1,
                Some(b'"') => {
                    let end = rest[1..].iter().position(|byte| matches!(byte, b'"' | b'\n' | 0));
                    self.at += 1 + end.map_or(rest.len() - 1, |end| end + usize::from(rest[1 + end] == b'"'));
                }
                Some(byte) if is_word(*byte) && *byte != b'@' => self.at += 1,
                _ => return,
            }
        }
    }

    /// Reads `sm_90a, debug`; `compute_90` is accepted because assemblers accept it.
    fn read_target(&mut self) -> Option<(Arch, bool)> {
        let word = std::str::from_utf8(self.next_word()?).ok()?;
        let name = word.strip_prefix("sm_").or_else(|| word.strip_prefix("compute_"))?;
        let (number, suffix) = match name.as_bytes().last()? {
            b'a' => (&name[..name.len() - 1], Suffix::Specific),
            b'f' => (&name[..name.len() - 1], Suffix::Family),
            _ => (name, Suffix::None),
        };
        let number = number.parse().ok().filter(|number| super::fatbin::is_possible_arch(*number))?;
        let arch = Arch { number, suffix };
        let mut debug = false;
        loop {
            self.skip_blank();
            if self.remaining().first() != Some(&b',') {
                return Some((arch, debug));
            }
            self.at += 1;
            debug |= self.next_word()? == b"debug";
        }
    }

    /// Reads the rest of the module and returns its end and the hash of its kernels. A module ends at a NUL, at a byte
    /// that is not text, at the next module, or at the outermost level at anything but a directive (texts of a Rust
    /// program follow each other without a separator).
    fn read_rest(&mut self) -> Module {
        let (mut end, mut kernels, mut depth) = (self.at, 0u64, 0usize);
        let (mut declares, mut sets_conditions) = (false, false);
        let mut statement = false;
        loop {
            let before = self.at;
            self.skip_blank();
            let rest = self.remaining();
            let Some(&first) = rest.first() else { break };
            if first == 0 || !(first.is_ascii_graphic() || first >= 0x80) {
                break;
            }
            match first {
                b'{' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' => {
                    if depth == 0 {
                        break;
                    }
                    depth -= 1;
                    self.at += 1;
                    statement = false;
                    if depth == 0 {
                        end = self.at;
                    }
                }
                b';' => {
                    self.at += 1;
                    if depth == 0 {
                        statement = false;
                        end = self.at;
                    }
                }
                b'"' => {
                    let text = &rest[1..];
                    match text.iter().position(|byte| matches!(byte, b'"' | b'\n' | 0)) {
                        Some(length) if text[length] == b'"' => self.at += length + 2,
                        _ => break,
                    }
                }
                _ => {
                    let Some(word) = self.next_word() else {
                        self.at += 1;
                        continue;
                    };
                    if word == b".version" || depth == 0 && !statement && !matches!(word[0], b'.' | b'@') {
                        self.at = before;
                        break;
                    }
                    if depth == 0 && !statement {
                        // The directives that end without a semicolon.
                        statement = !matches!(word, b".address_size" | b".file" | b".loc");
                        declares |= statement;
                        if !statement {
                            if word == b".address_size" {
                                self.skip_blank();
                            }
                            self.skip_operands();
                            end = self.at;
                        }
                    }
                    sets_conditions |= depth == 0 && word == b"cudaGraphSetConditional";
                    if word == b".entry"
                        && let Some(name) = self.next_word()
                    {
                        kernels = kernels.wrapping_add(super::cubin::name_mark(name));
                    }
                }
            }
        }
        Module { end, kernels, declares, sets_conditions }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'@')
}

/// Returns true if PTX text contains a kernel.
pub(super) fn has_kernels(text: &[u8]) -> bool {
    text.windows(6).any(|window| window == b".entry")
}
