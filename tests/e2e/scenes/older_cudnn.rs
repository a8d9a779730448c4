//! The typical forum question: a program is built with one cuDNN and started with an older one.

use cudaguard_tests::{e2e, parts};

use super::fixture::{build, program, refused, runs, start};

#[e2e]
fn older_cudnn_is_refused() {
    let project = program("real-9");
    let (built, older) = (parts::cudnn("9.15.1"), parts::cudnn("9.1.0"));
    build(&project, &built);
    let program = project.built("release/real-9");
    runs(start(&program, &built).run(), 91501);
    runs(start(&program, &parts::cudnn("9.28.0")).run(), 92800);
    refused(start(&program, &older).run(), "real_9", &[(&parts::dir(), "<parts>")]);
}
