//! Fakes: small shared libraries in C that have the name and the interface of a library that is not available.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Call, Scratch, layout, scratch};

/// A fake shared library.
#[derive(Clone, Debug)]
pub struct Library {
    soname: String,
    source: String,
    options: Vec<String>,
    compiler: String,
}

/// Creates an empty library with this soname.
pub fn shared_library(soname: &str) -> Library {
    Library { soname: soname.to_owned(), source: String::new(), options: Vec::new(), compiler: "cc".to_owned() }
}

impl Library {
    /// Exports this 4-byte data object. The inner libraries of cuDNN export their version in this way.
    #[must_use]
    pub fn word(mut self, symbol: &str, value: u32) -> Self {
        let _ = writeln!(self.source, "const unsigned {symbol} = {value:#x};");
        self
    }

    /// Exports this function without arguments, which returns this number.
    #[must_use]
    pub fn answers(mut self, function: &str, number: u64) -> Self {
        let _ = writeln!(self.source, "unsigned long {function}(void) {{ return {number}; }}");
        self
    }

    /// Adds C source.
    #[must_use]
    pub fn source(mut self, text: &str) -> Self {
        self.source.push_str(text);
        self.source.push('\n');
        self
    }

    /// Adds an argument for the compiler, which also links (`-lfoo`, `-Wl,-rpath,…`).
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// Selects this C compiler instead of `cc`, for another machine.
    #[must_use]
    pub fn by(mut self, compiler: &str) -> Self {
        compiler.clone_into(&mut self.compiler);
        self
    }

    /// Builds the library at this path and returns the path. If the file name differs from the soname, creates a link
    /// with the soname next to it.
    pub fn make(&self, path: &Path) -> PathBuf {
        let work = Scratch::new("stand-in");
        let source = work.file("fake_library.c", &self.source);
        fs::create_dir_all(path.parent().expect("a file has a parent directory")).expect("a directory can be made");
        let _ = Call::new(&self.compiler)
            .args(["-shared", "-fPIC", "-O1", "-w", &format!("-Wl,-soname,{}", self.soname), "-o"])
            .arg(path)
            .arg(source)
            .args(&self.options)
            .run()
            .success();
        let link = path.with_file_name(&self.soname);
        if link != path {
            layout::link(Path::new(path.file_name().expect("a file has a name")), &link);
        }
        path.to_owned()
    }
}

/// Builds the fake of a cuDNN release in the layout of NVIDIA's archive: `include/cudnn_version.h`, `include/cudnn.h`,
/// `lib/libcudnn.so` → `libcudnn.so.8` → `libcudnn.so.8.0.5`, and the inner libraries that a program start needs, with
/// the same naming and the data symbol with their version. The main library has one function, `cudnnGetVersion`.
pub fn cudnn(dir: &Path, version: (u32, u32, u32)) {
    cudnn_by("cc", dir, version);
}

/// Builds the fake of a cuDNN release with this C compiler, for another machine.
pub fn cudnn_by(compiler: &str, dir: &Path, (major, minor, patch): (u32, u32, u32)) {
    let number = if major < 9 { major * 1000 + minor * 100 + patch } else { major * 10000 + minor * 100 + patch };
    let define = |name: &str, value: u32| format!("#define CUDNN_{name} {value}\n");
    scratch::write(
        &dir.join("include/cudnn_version.h"),
        "/* A fake. */\n".to_owned()
            + &define("MAJOR", major)
            + &define("MINOR", minor)
            + &define("PATCHLEVEL", patch)
            + &define("VERSION", number),
    );
    scratch::write(
        &dir.join("include/cudnn.h"),
        "/* A fake. */\n#include <stddef.h>\n#include \"cudnn_version.h\"\nsize_t cudnnGetVersion(void);\n",
    );
    let make = |stem: &str, library: Library| {
        library.make(&dir.join(format!("lib/{stem}.so.{major}.{minor}.{patch}")));
        layout::link(Path::new(&format!("{stem}.so.{major}")), &dir.join(format!("lib/{stem}.so")));
    };
    let library = |stem: &str| shared_library(&format!("{stem}.so.{major}")).by(compiler);
    make("libcudnn", library("libcudnn").answers("cudnnGetVersion", number.into()));
    let inner: &[&str] = match major {
        ..8 => &[],
        8 => &["ops_infer"],
        _ => &["graph", "ops"],
    };
    for name in inner {
        let stem = format!("libcudnn_{name}");
        let packed = major << 16 | minor << 8 | patch;
        make(&stem, library(&stem).word(&format!("cudnn_{name}_version"), packed));
    }
}
