//! Wine, with a directory of files that it takes for a Windows system.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudaguard_tests::{Call, Outcome, Scratch, once, places, tools};

use super::COMPILER;

pub(super) const WINE: &str = "/usr/lib/wine/wine64";
const SERVER: &str = "/usr/lib/wine/wineserver64";

/// Wine with a directory for its files.
pub(crate) struct Wine(Scratch);

impl Wine {
    pub(crate) fn new(name: &str) -> Self {
        tools::need(WINE);
        let wine = Self(Scratch::without_blanks(name));
        create_prefix(&wine.prefix());
        // The first process starts those of Wine itself, and they inherit its output. If one crashes, it would print among
        // the output of a test. The time ends the server if this process is killed.
        let start = r#"exec < /dev/null > /dev/null 2>&1; "$0" -p600; "$1" cmd /c exit"#;
        let _ = call("sh", &wine.prefix()).args(["-c", start, SERVER, WINE]).run().success();
        wine
    }

    pub(super) fn call(&self, program: impl AsRef<OsStr>, directory: &Path) -> Call {
        call(WINE, &self.prefix()).arg(program).dir(directory)
    }

    /// Starts a copy of the program in a directory with these files and no others: pairs of a file and its name.
    pub(crate) fn start(&self, program: &Path, libraries: &[(PathBuf, &str)], variables: &[(&str, &str)]) -> Outcome {
        let directory = self.0.path().join("run");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        fs::copy(program, directory.join("app.exe")).unwrap();
        for (file, name) in libraries {
            fs::copy(file, directory.join(name)).unwrap();
        }
        let call = self.call("app.exe", &directory);
        variables.iter().fold(call, |call, (name, value)| call.env(name, value)).run()
    }

    /// Adds the DLL that Rust's standard library gets random numbers from, which the Wine of Debian 12 does not have.
    pub(crate) fn add_random_numbers(&self) {
        let source = "#include <windows.h>
             __declspec(dllexport) int ProcessPrng(unsigned char *to, unsigned long long size) {
               static LONG64 count;
               LARGE_INTEGER now;
               QueryPerformanceCounter(&now);
               while (size) {
                 unsigned long long next = now.QuadPart + InterlockedIncrement64(&count) * 0x9e3779b97f4a7c15ull;
                 to[--size] = (unsigned char)(next >> 56);
               }
               return 1;
             }";
        let library = once("bcryptprimitives.dll", || {
            let (source, library) = (self.0.file("random.c", source), self.0.path().join("random.dll"));
            let _ = Call::new(COMPILER).arg("-shared").arg(source).arg("-o").arg(&library).run().success();
            fs::read(library).unwrap()
        });
        fs::write(self.system().join("bcryptprimitives.dll"), library).unwrap();
    }

    /// Returns the directory of the system's DLLs.
    pub(super) fn system(&self) -> PathBuf {
        self.prefix().join("drive_c/windows/system32")
    }

    pub(crate) fn prefix(&self) -> PathBuf {
        self.0.path().join("prefix")
    }

    pub(super) fn report(&self) -> String {
        fs::read_to_string(self.0.path().join("run/report.json")).expect("a report")
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        let _ = call(SERVER, &self.prefix()).arg("-k").run();
    }
}

fn call(program: &str, prefix: &Path) -> Call {
    Call::new(program).env("WINEPREFIX", prefix).env("WINEDEBUG", "-all")
}

/// Copies a Wine prefix, because Wine needs seconds to create its 700 MB. The files of Windows are hard links.
fn create_prefix(prefix: &Path) {
    static CREATED: OnceLock<PathBuf> = OnceLock::new();
    let created = CREATED.get_or_init(|| {
        let dir = places::target().join("wine");
        let _ = call(WINE, &dir).args(["cmd", "/c", "exit"]).run();
        // Until it ends, the registry is not written.
        let _ = call(SERVER, &dir).arg("-w").run();
        assert!(dir.join("system.reg").is_file(), "Wine made no prefix");
        dir
    });
    fs::create_dir_all(prefix).expect("a temporary directory takes directories");
    let copy = |options: &str, names: &[&str]| {
        let names = names.iter().map(|name| created.join(name));
        let _ = Call::new("cp").args([options, "-t"]).arg(prefix).args(names).run().success();
    };
    copy("-al", &["drive_c"]);
    copy("-a", &["dosdevices", "system.reg", "user.reg", "userdef.reg", ".update-timestamp"]);
}
