//! The typical forum question: a program is built with one cuDNN and started with an older one.

use cudaguard_tests::{Test, fake_library, layout, parts, tests};

use super::fixture::{build, program, refused, runs, start};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        #[slow]
        cudnn_8_1_rejects_8_0,
        cudnn_9_15_rejects_9_1,
        newer_cudnn_minors_run,
    ]
}

/// No package contains a real 8.1.0 or 8.0.5, so these are fakes.
fn cudnn_8_1_rejects_8_0() {
    let project = program("forum");
    let (built, older) = (project.sibling().join("cudnn-8.1.0"), project.sibling().join("cudnn-8.0.5"));
    fake_library::cudnn(&built, (8, 1, 0));
    fake_library::cudnn(&older, (8, 0, 5));
    build(&project, &built);
    let program = project.built("release/forum");
    runs(start(&program, &built).run(), 8100);
    let outcome = refused(start(&program, &older).run(), "forum", &[(project.sibling(), "<scene>")]);
    for word in ["8.1.0", "8.0.5", "libcudnn.so.8", "LD_LIBRARY_PATH"] {
        assert!(outcome.stderr.contains(word), "{word} is not named: {outcome}");
    }
    runs(start(&program, &parts::cudnn("8.9.7")).run(), 8907);
}

fn cudnn_9_15_rejects_9_1() {
    let project = program("real-9");
    let (built, older) = (parts::cudnn("9.15.1"), parts::cudnn("9.1.0"));
    build(&project, &built);
    let program = project.built("release/real-9");
    runs(start(&program, &built).run(), 91501);
    refused(start(&program, &older).run(), "real_9", &[(&parts::dir(), "<parts>")]);
}

/// Compatible libraries produce no output: newer minors, the same files through symbolic links, the build of the same
/// release for the other CUDA major.
fn newer_cudnn_minors_run() {
    let project = program("newer");
    let built = parts::cudnn("9.15.1");
    build(&project, &built);
    let program = project.built("release/newer");
    runs(start(&program, &parts::cudnn("9.17.1")).run(), 91701);
    runs(start(&program, &parts::cudnn("9.28.0")).run(), 92800);
    runs(start(&program, &parts::cudnn("9.15.1-cu12")).run(), 91501);
    let farm = project.sibling().join("farm");
    layout::farm(&built, &farm);
    runs(start(&program, &farm).run(), 91501);
}
