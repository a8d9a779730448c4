//! The command with packages of all kinds: several programs, workspaces, cargo's own arguments, unusual directories.

use cudaguard_tests::command::components;
use cudaguard_tests::{Call, e2e, parts};

use super::fixture::{build, program_in, runs, start};

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
