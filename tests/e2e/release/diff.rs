//! `diff` of two releases.

use cudaguard_tests::{Outcome, Scratch, command, e2e, parts, snapshot};
use serde_json::Value;

use super::{compile, link, wheel};

fn diff(scratch: &Scratch, words: &[&str]) -> Outcome {
    command::call(["diff"]).args(words).dir(scratch.path()).run()
}

/// Packs a library with these kernels as a wheel of this version.
fn package(scratch: &Scratch, version: &str, gencodes: &[&str], requires: &str) {
    let object = compile(scratch, "kernels", gencodes);
    link(scratch, "tree/app/lib.so", &[&object]);
    let text = format!("Metadata-Version: 2.1\nName: app\nVersion: {version}\nRequires-Dist: {requires}\n");
    scratch.file("tree/app.dist-info/METADATA", text);
    wheel(scratch, &format!("app-{version}.whl"));
}

/// The old release runs on Volta and newer, the new one on Ampere and Hopper.
fn two_wheels(name: &str) -> Scratch {
    let scratch = Scratch::without_blanks(name);
    let old = &["arch=compute_75,code=sm_75", "arch=compute_80,code=[sm_80,compute_80]"];
    package(&scratch, "1.0", old, "nvidia-cuda-runtime (==13.0.48)\nRequires-Dist: torch>=2.8,<2.9");
    let new = &["arch=compute_80,code=sm_80", "arch=compute_90,code=sm_90"];
    package(&scratch, "1.1", new, "nvidia-cuda-runtime==13.0.96\nRequires-Dist: torch>=2.9");
    scratch
}

#[e2e(slow)]
fn changes_of_two_wheels() {
    let scratch = two_wheels("diff-wheels");
    let text = diff(&scratch, &["app-1.0.whl", "app-1.1.whl"]).expect(1);
    let markdown = diff(&scratch, &["app-1.0.whl", "app-1.1.whl", "--format", "markdown"]).expect(1);
    // The size of the code depends on the release of the compiler.
    let without_sizes = |text: &str| {
        let end = text.find("GPU code").unwrap_or(text.len());
        text[..end].trim_end_matches("| ").trim_end().to_owned() + "\n"
    };
    snapshot::check(
        "release/diff",
        &format!("{}---\n{}", without_sizes(&text.stdout), without_sizes(&markdown.stdout)),
    );
    let value: Value =
        serde_json::from_str(&diff(&scratch, &["app-1.0.whl", "app-1.1.whl", "--json"]).expect(1).stdout)
            .expect("JSON");
    let lost: Vec<&str> =
        value["lost"].as_array().expect("a list").iter().filter_map(|loss| loss["subject"].as_str()).collect();
    assert_eq!(lost[0], "7.5 (Tesla T4)", "{value}");
    let sizes = value["gpu_code"].as_array().expect("a list");
    let size = |arch: &str, side: &str| sizes.iter().find(|size| size["arch"] == arch).map(|size| size[side].as_u64());
    assert!(size("sm_75", "old").flatten() > Some(0) && size("sm_75", "new") == Some(Some(0)), "{sizes:?}");
    let same = diff(&scratch, &["app-1.0.whl", "app-1.0.whl"]).success();
    assert!(same.stdout.contains("app-1.0.whl → app-1.0.whl: no support is lost"), "{same}");
    // The other direction loses no support.
    let back = diff(&scratch, &["app-1.1.whl", "app-1.0.whl"]).success();
    assert!(back.stdout.contains("gained    7.5 (Tesla T4)"), "{back}");
}

#[e2e(slow)]
fn policy_decides_what_is_lost() {
    let scratch = two_wheels("diff-policy");
    for (options, policy, status) in [
        (&["--allow-loss", "gpu"][..], "", 0),
        (&["--allow-loss", "driver,guard"], "", 1),
        (&[], "[release]\nallow-loss = [\"gpu\"]\n", 0),
        (&[], "[release]\nallow-loss = [\"driver\"]\n", 1),
        // Only GPUs of these archs count.
        (&[], "[release]\narchs = [\"80\", \"90\"]\n", 0),
        (&[], "[release]\narchs = [\"75\"]\n", 1),
        (&["--allow-loss", "gpus"], "", 2),
    ] {
        scratch.file("cudaguard.toml", policy);
        let outcome = diff(&scratch, &[&["app-1.0.whl", "app-1.1.whl"], options].concat());
        assert_eq!(outcome.status(), Some(status), "{policy}: {outcome}");
    }
}

/// Compares with the differences in NVIDIA's release notes.
#[e2e(slow)]
fn real_libraries() {
    let scratch = Scratch::new("diff-parts");
    let path = |part: &str, file: &str| parts::part(part).join(file).to_string_lossy().into_owned();
    for (old, new, status, expected) in [
        // cuDNN 9.15 for CUDA 13 against 9.1 for CUDA 12: CUDA 13 drops GPUs before Turing, and needs driver 580.
        (
            path("cudnn-9.1.0-engines", "lib"),
            path("cudnn-9.15.1-engines", "lib"),
            1,
            &[
                "lost      5.0",
                "7.0 (Tesla V100)",
                "525.60.13 (CUDA 12.0) → 580.65.06 (CUDA 13.0)",
                "cudart: 12.4 → 13.0",
            ][..],
        ),
        (
            path("cuda-11.8", "lib/libcudart.so.11.0"),
            path("cuda-13.0", "lib/libcudart.so.13"),
            1,
            &["450.80.02", "580.65.06"],
        ),
        (
            path("cuda-13.0", "lib/libcudart.so.13"),
            path("cuda-13.5", "lib/libcudart.so.13"),
            0,
            &["cudart: 13.0 → 13.5"],
        ),
        (path("cudnn-9.1.0", "lib"), path("cudnn-9.17.1", "lib"), 1, &["cuDNN: 9.1.0 → 9.17.1\n"]),
    ] {
        let outcome = diff(&scratch, &[&old, &new]);
        assert_eq!(outcome.status(), Some(status), "{outcome}");
        for text in expected {
            assert!(outcome.stdout.contains(text), "{text}: {outcome}");
        }
    }
}

#[e2e]
fn unexamined_parts_leave_it_unknown() {
    let scratch = Scratch::without_blanks("diff-unexamined");
    let object = compile(&scratch, "kernels", &["arch=compute_80,code=sm_80"]);
    link(&scratch, "tree/lib.so", &[&object]);
    wheel(&scratch, "old.whl");
    // Code for AMD's GPUs is listed, and changes no answer about NVIDIA's.
    for (name, contents, status) in
        [("gpu.co", &b"__CLANG_OFFLOAD_BUNDLE__\x02\0\0\0\0\0\0\0"[..], 0), ("gpu.7z", b"7z\xbc\xaf\x27\x1c\0\x04", 2)]
    {
        scratch.file(format!("tree/{name}"), contents);
        wheel(&scratch, "new.whl");
        let outcome = diff(&scratch, &["old.whl", "new.whl"]).expect(status);
        assert!(outcome.stdout.contains(&format!("not examined (new): {name}")), "{outcome}");
    }
}
