//! PTX as plain text: in files, and in the data of programs that compile it themselves at run time.

use crate::arch::{Arch, Suffix};

/// What the text says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ptx {
    pub(super) arch: Arch,
    pub(super) isa: (u16, u16),
    pub(super) debug: bool,
    /// Where its first directive stands.
    pub(super) start: usize,
    /// Behind its last line.
    pub(super) end: usize,
    /// How far the text has been read: nothing else begins before.
    pub(super) read: usize,
    /// Of its kernels' names, as in [`super::cubin::Cubin`]; 0 where it has none.
    pub(super) kernels: u64,
    /// Whether anything stands behind the lines that every PTX begins with.
    pub(super) declares: bool,
}

/// Reads the PTX module whose `.version` stands at `at`. `None` where that is something else, such as a compiler's
/// message, or a text whose numbers are filled in at run time.
pub(super) fn read_module(data: &[u8], at: usize) -> Option<Ptx> {
    // Bounded: what only begins like PTX must not cost a walk through the file.
    let mut lexer = Lexer { data: &data[..data.len().min(at.saturating_add(LONGEST_HEAD))], at };
    if lexer.next_word()? != b".version" {
        return None;
    }
    let isa = lexer.read_version()?;
    // `.target` is the next directive, by the PTX manual; comments may stand between.
    if lexer.next_word()? != b".target" {
        return None;
    }
    let (arch, debug) = lexer.read_target()?;
    let body = lexer.at;
    let mut lexer = Lexer { data, at: body };
    let Module { end, kernels, declares } = lexer.read_rest();
    Some(Ptx { arch, isa, debug, start: at, end: end.max(body), read: lexer.at.max(body), kernels, declares })
}

/// Bytes from `.version` to the end of `.target`, comments included.
const LONGEST_HEAD: usize = 1024;

/// Whether this looks like a text in PTX from its beginning: `.version` comes first, behind nothing but comments.
pub(super) fn find_version(data: &[u8]) -> Option<usize> {
    let mut lexer = Lexer { data, at: 0 };
    lexer.skip_blank();
    data[lexer.at..].starts_with(b".version").then_some(lexer.at)
}

/// What stands behind the head of a module.
struct Module {
    end: usize,
    kernels: u64,
    declares: bool,
}

struct Lexer<'data> {
    data: &'data [u8],
    at: usize,
}

impl<'data> Lexer<'data> {
    fn remaining(&self) -> &'data [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    /// Passes blanks and comments.
    fn skip_blank(&mut self) {
        loop {
            let rest = self.remaining();
            if rest.first().is_some_and(u8::is_ascii_whitespace) {
                self.at += 1;
            } else if rest.starts_with(b"//") {
                self.at += rest.iter().position(|byte| matches!(byte, b'\n' | 0)).unwrap_or(rest.len());
            } else if rest.starts_with(b"/*") {
                // To its end, or to the end of the text; whatever comes first, so that comments cost what they are long.
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

    /// The next directive, modifier or name; `None` where something else comes. A dot begins one and is in none, so that
    /// no blank need stand before it.
    fn next_word(&mut self) -> Option<&'data [u8]> {
        self.skip_blank();
        let rest = self.remaining();
        let dot = usize::from(rest.first() == Some(&b'.'));
        let length = dot + rest[dot..].iter().take_while(|byte| is_word(**byte)).count();
        self.at += length;
        (length > 0).then(|| &rest[..length])
    }

    /// `8.5`.
    fn read_version(&mut self) -> Option<(u16, u16)> {
        let major = std::str::from_utf8(self.next_word()?).ok()?;
        let minor = std::str::from_utf8(self.remaining().strip_prefix(b".").and_then(|_| self.next_word())?).ok()?;
        Some((major.parse().ok()?, minor.strip_prefix('.')?.parse().ok()?))
    }

    /// Passes what stands behind a directive that no semicolon ends, to the end of its line or to the next directive.
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

    /// `sm_90a, debug`; `compute_90` is accepted as assemblers do.
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

    /// The rest of the module: where it ends, and the mark of its kernels. A module ends at a NUL, at what is no text,
    /// at the next module, or where at the outermost level something comes that is no directive (texts of a Rust
    /// program follow each other without anything between).
    fn read_rest(&mut self) -> Module {
        let (mut end, mut kernels, mut depth) = (self.at, 0u64, 0usize);
        let mut declares = false;
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
                        // These end without a semicolon.
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
                    if word == b".entry" {
                        if let Some(name) = self.next_word() {
                            kernels = kernels.wrapping_add(super::cubin::name_mark(name));
                        }
                    }
                }
            }
        }
        Module { end, kernels, declares }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'@')
}

/// Whether PTX text holds a kernel.
pub(super) fn has_kernels(text: &[u8]) -> bool {
    text.windows(6).any(|window| window == b".entry")
}
