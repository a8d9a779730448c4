//! Start-up checks with different compilers and linkers: each linker once, each compiler with and without optimization.

use cudaguard_tests::world::{A100, T4};
use cudaguard_tests::{Call, Scratch, Test, test, tools};

use super::fixture;
use super::refused_starts::r580;
use super::scenario::{Stage, codes};

pub(crate) fn tests() -> Vec<Test> {
    [("gcc", "-O3", "bfd"), ("gcc", "-O0", "gold"), ("clang", "-O0", "lld"), ("clang", "-O3", "mold")]
        .into_iter()
        .map(|(compiler, level, linker)| {
            let name = format!("linkers::{compiler}_{}_{linker}", level.trim_start_matches('-'));
            test(name, move || by(compiler, level, linker)).slow()
        })
        .collect()
}

fn by(compiler: &str, level: &str, linker: &str) {
    tools::need_linker(linker);
    let (fit, unfit) = (Stage::new(&r580(&[A100])), Stage::new(&r580(&[T4])));
    tools::need(compiler);
    let scratch = Scratch::new("linked");
    let shim = scratch.join("shim.o");
    let _ = Call::new(compiler).args([level, "-fPIC", "-c", "-o"]).args([&shim, &fixture::shim()]).run().success();
    let chosen = format!("-fuse-ld={linker}");
    let options = [shim.as_ref(), level.as_ref(), chosen.as_ref(), "-Wl,--gc-sections".as_ref(), "-s".as_ref()];
    let program = fixture::in_c("model", &scratch, compiler, &options);
    let outcome = fit.call(&[], &program, &[]).run().success();
    assert_eq!((&*outcome.stdout, &*outcome.stderr), ("main ran\n", ""), "{linker}");
    assert_eq!(fit.report()["level"], 0, "{linker}");
    let outcome = unfit.call(&[], &program, &[]).run().expect(78);
    assert!(outcome.stderr.starts_with("cudaguard: error[CG303]: model 0.1.0 has no code"), "{linker}: {outcome}");
    assert_eq!((&*outcome.stdout, &*codes(&unfit.report())), ("", "CG303 error"), "{linker}");
}
