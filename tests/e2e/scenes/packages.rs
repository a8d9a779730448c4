//! The command with packages of all kinds: several programs, workspaces, cargo's own arguments, unusual directories.

use cudaguard_tests::command::components;
use cudaguard_tests::{Call, e2e, parts};

use super::fixture::{build, program_in, runs, start, unguarded};

#[e2e]
fn command_guards_package_without_embed() {
    let project = unguarded("plain");
    let cudnn = parts::cudnn("9.15.1");
    let _ = project.cudaguard(["build", "--release"]).env("CUDNN_PATH", &cudnn).run().success();
    let program = project.built("release/plain");
    assert_eq!(components(&program), ["plain"]);
    runs(start(&program, &cudnn).run(), 91501);
    let _ = start(&program, &parts::cudnn("9.1.0")).run().expect(78);
    let call = || project.cudaguard(["run", "--release", "--quiet"]).env("CUDNN_PATH", &cudnn);
    runs(call().env("LD_LIBRARY_PATH", cudnn.join("lib")).run(), 91501);
    let absent = call().run().expect(78);
    assert!(absent.stderr.contains("libcudnn.so.9") && absent.stdout.is_empty(), "{absent}");
    let other = call().env("LD_LIBRARY_PATH", parts::cudnn("8.9.7-loader").join("lib")).run().expect(78);
    assert!(other.stderr.contains("libcudnn.so.9") && other.stdout.is_empty(), "{other}");
}

#[e2e(slow)]
fn non_ascii_directories_work() {
    let project = program_in("odd", "größe 大 'quoted' $HOME");
    let built = project.sibling().join("cuDNN für alle");
    cudaguard_tests::layout::farm(&parts::cudnn("9.15.1"), &built);
    build(&project, &built);
    let program = project.built("release/odd");
    runs(start(&program, &built).run(), 91501);
    assert_eq!(components(&program), ["odd"]);
    let _ = project.cudaguard(["build", "--release"]).env("CUDNN_PATH", &built).run().success();
    assert_eq!(components(&program), ["odd"]);
    let older = project.sibling().join("ältere cuDNN");
    cudaguard_tests::layout::farm(&parts::cudnn("9.1.0"), &older);
    let refused = start(&program, &older).run().expect(78);
    assert!(refused.stderr.contains("ältere cuDNN/lib/libcudnn.so.9"), "{refused}");
    let renamed = project.sibling().join("das Programm");
    std::fs::copy(&program, &renamed).expect("a program can be copied");
    runs(Call::new(&renamed).env("LD_LIBRARY_PATH", built.join("lib")).run(), 91501);
}
