//! Loader failures of unguarded files, as `exec`, `verify` and `doctor` report them. The tests compare them with the
//! loader's own messages, for each fault of a library, each importer and each search path.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Outcome, Scratch, Test, command, e2e, test};

use super::guarded_programs;

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for way in WAYS {
        for (is_direct, needs) in [(true, "the program"), (false, "a library of its")] {
            let name = format!("front_ends::library_fault_is_reported::{way}, needed by {needs}").replace(' ', "_");
            let test = test(name, move || library_fault_is_reported(way, needs));
            tests.push(if is_direct && way == "RUNPATH" { test } else { test.slow() });
        }
    }
    tests
}

const USES: &str = "int first_of_x(void); int second_of_x(void);\nint use(int n) { return n > 9 ? first_of_x() + second_of_x() : 0; }\n";
const MAIN: &str = "int use(int);\nint main(int n, char **a) { (void)a; return use(n); }\n";
const FAULTS: [&str; 9] =
    ["none", "absent", "32 bits", "another machine", "text", "empty", "cut off", "lacks second_of_x", "lacks V_2"];
const WAYS: [&str; 5] = ["LD_LIBRARY_PATH", "RPATH", "RUNPATH", "$ORIGIN", "path"];

/// Builds a library at this path with these symbol versions.
fn library(file: &Path, text: &str, versions: &str, more: &[String]) {
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    let script = file.with_extension("map");
    fs::write(&script, versions).expect("a file");
    let mut arguments = ["-shared", "-fPIC", "-nostdlib"].map(str::to_owned).to_vec();
    arguments.push(format!("-Wl,--version-script={}", script.display()));
    arguments.extend_from_slice(more);
    guarded_programs::link(text, file, &[], &arguments).unwrap_or_else(|error| panic!("{error}"));
}

/// Copies the library with this fault to `place`.
fn put(fault: &str, good: &Path, place: &Path) {
    fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
    let _ = fs::remove_file(place);
    let whole = fs::read(good).expect("it was made");
    let altered = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    let soname = ["-Wl,-soname,libx.so.1".to_owned()];
    match fault {
        "absent" => return,
        "lacks second_of_x" => {
            let versions = "V_1 { global: first_of_x; }; V_2 { global: other; } V_1;";
            return library(place, "int first_of_x(void) { return 0; } int other;\n", versions, &soname);
        }
        "lacks V_2" => {
            return library(place, "int first_of_x(void) { return 0; }\n", "V_1 { global: first_of_x; };", &soname);
        }
        _ => {}
    }
    let bytes = match fault {
        "32 bits" => altered(4, 1),
        "another machine" => altered(18, 183),
        "text" => "INPUT(libx.so.2) /* for the linker */\n".repeat(4).into(),
        "empty" => Vec::new(),
        "cut off" => whole[..45].to_vec(),
        _ => whole,
    };
    fs::write(place, bytes).expect("a file");
}

/// Returns the symbol, the version or the library name in the loader's message.
fn complaint(printed: &str) -> &str {
    let ends = |rest: &'static [char]| move |c: char| rest.contains(&c);
    let behind = |mark: &str, end| printed.split_once(mark).and_then(|(_, rest)| rest.split(end).next());
    let word = behind("undefined symbol: ", ends(&[',', '\n', ' ']));
    let word = word.or_else(|| behind("version `", ends(&['\''])));
    let word = word.or_else(|| behind("shared libraries: ", ends(&[':'])));
    word.unwrap_or_else(|| panic!("unknown message of the loader: {printed}")).rsplit('/').next().expect("a word")
}

fn loader(program: &Path, variables: &BTreeMap<&str, PathBuf>) -> Outcome {
    variables.iter().fold(Call::new(program).env("LC_ALL", "C"), |call, (name, value)| call.env(name, value)).run()
}

/// Fails if a subcommand reports something else than the loader.
fn hold(program: &Path, variables: &BTreeMap<&str, PathBuf>, what: &str) -> bool {
    hold_in(&|program: &Path| Call::new(program), program, variables, what)
}

/// Like [`hold`], with a function that starts each program.
fn hold_in(call: &dyn Fn(&Path) -> Call, program: &Path, variables: &BTreeMap<&str, PathBuf>, what: &str) -> bool {
    let with = |call: Call| variables.iter().fold(call.env("LC_ALL", "C"), |call, (name, value)| call.env(name, value));
    let real = with(call(program)).run();
    for (front_end, refused) in [(&["exec", "--"][..], 78), (&["verify"], 1), (&["doctor"], 1)] {
        let reported = with(call(command::path()).args(front_end)).arg(program).run();
        let scene = format!("{what} {front_end:?}\nthe loader: {real}\nwe: {reported}");
        let printed = format!("{}{}", reported.stdout, reported.stderr);
        if real.status() == Some(0) {
            assert!(!printed.contains("error[CG21"), "a false alarm: {scene}");
            assert!(front_end[0] != "exec" || reported.status() == Some(0), "{scene}");
            continue;
        }
        assert_eq!(reported.status(), Some(refused), "{scene}");
        assert!(printed.contains(complaint(&real.stderr)) && printed.contains("error[CG"), "{scene}");
    }
    real.status() != Some(0)
}

fn library_fault_is_reported(way: &str, needs: &str) {
    let scene = Scratch::new("front-ends");
    let (good, place) = (scene.join("good/libx.so.1"), scene.join("lib/libx.so.1"));
    let versions = "V_1 { global: first_of_x; }; V_2 { global: second_of_x; } V_1;";
    // A library without a soname is imported by the path that the linker received.
    let soname: &[String] = if way == "path" { &[] } else { &["-Wl,-soname,libx.so.1".to_owned()] };
    library(&good, "int first_of_x(void) { return 0; } int second_of_x(void) { return 0; }\n", versions, soname);
    put("none", &good, &place);
    let named = |dir: &str| scene.join(dir).display().to_string();
    let search = |dirs: [&str; 2]| match way {
        "RPATH" => vec![format!("-Wl,--disable-new-dtags,-rpath,{}:{}", named("lib"), named("y"))],
        "RUNPATH" => vec![format!("-Wl,--enable-new-dtags,-rpath,{}:{}", named("lib"), named("y"))],
        "$ORIGIN" => vec![format!("-Wl,--enable-new-dtags,-rpath,{}:{}", dirs[0], dirs[1])],
        _ => Vec::new(),
    };
    let program = scene.join("prog");
    let common = ["-Wl,-z,now", "-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined"].map(str::to_owned);
    let mut arguments = [&common[..], &search(["$ORIGIN/lib", "$ORIGIN/y"])].concat();
    let text = if needs == "the program" {
        arguments.push(place.display().to_string());
        format!("{USES}{MAIN}")
    } else {
        let middle = scene.join("y/liby.so.1");
        let mut more = search(["$ORIGIN/../lib", "$ORIGIN"]);
        more.extend(["-Wl,-soname,liby.so.1".to_owned(), place.display().to_string()]);
        library(&middle, USES, "{ global: use; };", &[&common[..], &more].concat());
        arguments.push(middle.display().to_string());
        MAIN.to_owned()
    };
    guarded_programs::link(&text, &program, &[], &arguments).unwrap_or_else(|error| panic!("{way} {needs}: {error}"));
    let mut variables = BTreeMap::new();
    if matches!(way, "LD_LIBRARY_PATH" | "path") {
        variables.insert("LD_LIBRARY_PATH", format!("{}:{}", named("lib"), named("y")).into());
    }
    for fault in FAULTS {
        put(fault, &good, &place);
        let ended = hold(&program, &variables, &format!("{fault}, by {way}, needed by {needs}"));
        assert_eq!(ended, fault != "none", "{fault} {way} {needs}");
    }
}

/// The system's libm has all versions except this one.
#[e2e]
fn old_glibc_is_refused() {
    let scene = Scratch::new("front-ends-glibc");
    let newer = scene.join("newer/libm.so.6");
    library(
        &newer,
        "int newer(void) { return 0; }\n",
        "GLIBC_9.99 { global: newer; };",
        &["-Wl,-soname,libm.so.6".to_owned()],
    );
    let program = scene.join("prog");
    let text = "int newer(void);\nint main(int n, char **a) { (void)a; return n > 9 ? newer() : 0; }\n";
    guarded_programs::link(text, &program, &[], &[newer.display().to_string()])
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(hold(&program, &BTreeMap::new(), "a glibc that is too old"));
    assert_eq!(complaint(&loader(&program, &BTreeMap::new()).stderr), "GLIBC_9.99");
}
