//! The script that fetches the real parts: a part that is unavailable, or has other contents than expected.

use std::path::Path;

use cudaguard_tests::{Call, Outcome, Scratch, Test, places, tests};

pub(crate) fn tests() -> Vec<Test> {
    tests![unavailable_part_is_named, existing_part_is_reused, part_with_wrong_hash_is_deleted]
}

/// Fetches a part into the scratch directory. pip uses no index, only the wheels in `wheels`.
fn fetch(into: &Path, wheels: &Path, part: &str) -> Outcome {
    Call::new("python3")
        .arg(places::workspace().join("tests/parts/fetch.py"))
        .args(["--into".as_ref(), into.as_os_str(), part.as_ref()])
        .env("PIP_NO_INDEX", "1")
        // The variable is split at blanks.
        .env("PIP_FIND_LINKS", format!("file://{}", wheels.display().to_string().replace(' ', "%20")))
        .run()
}

fn unavailable_part_is_named() {
    let scratch = Scratch::new("no network");
    let reported = fetch(&scratch, &scratch, "cudnn-9.15.1-loader").expect(3);
    let dir = scratch.join("cudnn-9.15.1-loader");
    for word in ["cudnn-9.15.1-loader", "9.15.1.9", "hint:", "cudnn_version.h", dir.to_str().expect("UTF-8")] {
        assert!(reported.stderr.contains(word), "{word} is not named: {reported}");
    }
    assert!(!dir.exists(), "nothing half done: {reported}");
}

fn existing_part_is_reused() {
    let scratch = Scratch::new("by hand");
    scratch.file("cudnn-9.15.1/include/cudnn_version.h", "");
    let reported = fetch(&scratch, &scratch, "cudnn-9.15.1").success();
    assert_eq!(reported.stdout.trim_end(), scratch.join("cudnn-9.15.1").display().to_string());
}

fn part_with_wrong_hash_is_deleted() {
    let scratch = Scratch::new("another wheel");
    let wheel = scratch.join("nvidia_cudnn_cu13-9.15.1.9-py3-none-manylinux_2_27_x86_64.whl");
    let make = "import sys, zipfile\n\
                with zipfile.ZipFile(sys.argv[1], 'w') as wheel:\n    \
                    wheel.writestr('nvidia/cudnn/lib/libcudnn.so.9', 'not cuDNN')\n";
    let _ = Call::new("python3").args(["-c", make]).arg(&wheel).run().success();
    let reported = fetch(&scratch, &scratch, "cudnn-9.15.1-loader").expect(1);
    assert!(
        reported.stderr.contains("nvidia-cudnn-cu13==9.15.1.9") && reported.stderr.contains("digest"),
        "{reported}"
    );
    assert!(!scratch.join("cudnn-9.15.1-loader").exists(), "{reported}");
    assert!(!scratch.join(".fresh/cudnn-9.15.1-loader").exists(), "{reported}");
}
