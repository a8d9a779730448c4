//! Libraries that run together, alone and in a directory: those that the dynamic linker finds, and their functions.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use cudaguard_tests::{Call, Scratch, command, e2e, parts, tools};

const LIBRARY: &str = "libown.so";

fn compile(arguments: &[&str], source: &Path, to: &Path) {
    let _ = Call::new("cc").args(["-w", "-fPIC"]).arg(source).args(arguments).arg("-o").arg(to).run().success();
}

/// Adds files to a directory.
type Arrange<'a> = &'a dyn Fn(&Path);

/// Each directory with its program, and the status for a machine that can run it.
#[e2e]
fn library_counts_if_it_is_found() {
    tools::need("cc");
    let scratch = Scratch::new("libraries of a program");
    let source = scratch.file("own.c", "int own(void) { return 3; }\n");
    let cudart = scratch.file("cudart.c", "int cudaMalloc(void) { return 0; }\n");
    let main =
        scratch.file("main.c", "int own(void), cudaMalloc(void); int main(void) { return own() + cudaMalloc(); }\n");
    let (library, runtime) = (scratch.join(LIBRARY), scratch.join("libcudart.so.12"));
    compile(&["-shared", "-Wl,-soname,libown.so"], &source, &library);
    compile(&["-shared", "-Wl,-soname,libcudart.so.12"], &cudart, &runtime);
    let link = |path: &str, name: &str| {
        let program = scratch.join(name);
        let libraries = [&library, &runtime].map(|file| file.to_string_lossy().into_owned());
        compile(&[&libraries[0], &libraries[1], &format!("-Wl,-rpath,{path}")], &main, &program);
        program
    };
    let here = link("$ORIGIN", "here");
    let absolute = link("/opt/app", "absolute");
    let pack = |arguments: &[&str], dir: &Path| {
        let _ = Call::new(arguments[0]).args(&arguments[1..]).dir(dir).run().success();
    };
    let copy = |to: &Path| {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&library, to).unwrap();
    };
    let arrangements: [(&str, &Path, Arrange, i32); 11] = [
        ("beside", &here, &|dir| copy(&dir.join(LIBRARY)), 0),
        (
            "link",
            &here,
            &|dir| (copy(&dir.join("libown.so.1")), symlink("libown.so.1", dir.join(LIBRARY)).unwrap()).1,
            0,
        ),
        ("of the system", &here, &|dir| copy(&dir.join("usr/lib/x86_64-linux-gnu").join(LIBRARY)), 0),
        ("absolute", &absolute, &|dir| copy(&dir.join("opt/app").join(LIBRARY)), 0),
        ("broken link", &here, &|dir| symlink("libown.so.1", dir.join(LIBRARY)).unwrap(), 2),
        ("other directory", &here, &|dir| copy(&dir.join("other").join(LIBRARY)), 2),
        ("compressed", &here, &|dir| (copy(&dir.join(LIBRARY)), pack(&["gzip", LIBRARY], dir)).1, 2),
        (
            "packed",
            &here,
            &|dir| (copy(&dir.join(LIBRARY)), pack(&["tar", "-cf", "l.tar", "--remove-files", LIBRARY], dir)).1,
            2,
        ),
        ("object", &here, &|dir| compile(&["-c"], &source, &dir.join(LIBRARY)), 1),
        ("soname", &here, &|dir| compile(&["-shared", "-Wl,-soname,libown.so"], &source, &dir.join("foo.so")), 2),
        ("none", &here, &|_| (), 2),
    ];
    for (name, program, arrange, status) in arrangements {
        let dir = scratch.join(format!("in {name}"));
        fs::create_dir(&dir).unwrap();
        fs::copy(program, dir.join("app")).unwrap();
        fs::copy(&runtime, dir.join("libcudart.so.12")).unwrap();
        arrange(&dir);
        let archive = scratch.join(format!("{name}.tar"));
        let _ = Call::new("tar").arg("-cf").arg(&archive).arg("-C").arg(&dir).arg(".").run().success();
        for artifact in [&dir, &archive] {
            let machine = ["--gpu", "9.0", "--driver", "580.95.05"];
            let outcome = command::call(["verify"]).args(machine).arg(artifact).run();
            assert_eq!(outcome.status(), Some(status), "{name}\n{outcome}");
            assert_eq!(outcome.to_string().contains("libown.so: needed by"), status == 2, "{name}\n{outcome}");
        }
    }
}

/// Two parts of cuDNN, each from these releases.
#[e2e]
fn versioned_functions_are_compared() {
    for (ops, graph, status) in [("9.15.1", "9.15.1", 0), ("9.15.1", "9.1.0", 1)] {
        let scratch = Scratch::new("parts of cudnn");
        for (name, release) in [("libcudnn_ops.so.9", ops), ("libcudnn_graph.so.9", graph)] {
            fs::copy(parts::cudnn(release).join("lib").join(name), scratch.join(name)).expect("a library");
        }
        for artifact in [scratch.path().to_owned(), scratch.join("libcudnn_ops.so.9")] {
            let machine = ["--gpu", "A100", "--driver", "580.95.05"];
            let outcome = command::call(["verify"]).args(machine).arg(artifact).run().expect(status);
            assert_eq!(outcome.stderr.contains("CG214"), status == 1, "{outcome}");
        }
    }
}
