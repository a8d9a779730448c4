//! Requirements of public conda packages, compared with the interpretation of rattler.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use cudaguard_tests::{Call, Scratch, command, e2e, parts, places, skip::skip, tools};
use serde_json::json;

/// Lines from public lock files.
const SPECS: &str = include_str!("conda_specs.txt");
/// Placeholder soname in the library, as long as the longest soname.
const ROOM: &str = "libabsentabsentabsent.so.9999";

/// Returns a library that a package contains, and the majors of its soname.
fn library(package: &str) -> (&'static str, &'static [u32]) {
    const CUDA: &[u32] = &[9, 10, 11, 12, 13];
    match package.strip_prefix("lib").unwrap_or(package) {
        "cublas" => ("cublas", CUDA),
        "cusparse" => ("cusparse", CUDA),
        "cusolver" => ("cusolver", &[10, 11, 12]),
        "cufft" => ("cufft", CUDA),
        "curand" => ("curand", &[9, 10]),
        "cufile" => ("cufile", &[0]),
        "npp" => ("nppc", CUDA),
        "nvjitlink" => ("nvJitLink", &[12, 13]),
        "nvjpeg" => ("nvjpeg", CUDA),
        "cudnn" => ("cudnn", &[7, 8, 9]),
        "cusparselt" => ("cusparseLt", &[0]),
        "nccl" => ("nccl", &[2]),
        "cuda-cupti" => ("cupti", CUDA),
        "cuda-nvrtc" => ("nvrtc", CUDA),
        "cuda-nvtx" => ("nvToolsExt", &[1]),
        _ => ("cudart", CUDA),
    }
}

/// Returns releases of this major for rattler to select from: those in the requirement, and many others.
fn releases(major: u32, range: &str) -> Vec<String> {
    let named = range.split([',', '|', ' ']).map(|one| one.trim_start_matches(['<', '>', '=']).trim_end_matches(".*"));
    let named = named.filter(|one| one.split('.').next() == Some(&major.to_string()) && !one.contains('a'));
    let around = (0..40).flat_map(|minor| [format!("{major}.{minor}"), format!("{major}.{minor}.999")]);
    named.map(str::to_owned).chain(around).collect()
}

/// Builds one environment with a package for each requirement and each major that a member may need. A finding is expected
/// exactly if the requirement admits no release of that major.
#[e2e(slow)]
fn lock_file_requirements_are_checked() {
    let part = parts::part("consumers");
    if Call::new("python3").args(["-c", "import sys; sys.exit(sys.version_info < (3, 10))"]).run().status() != Some(0) {
        skip("Python 3.10 or newer", "rattler wants one");
    }
    tools::need("gcc");
    let scratch = Scratch::new("conda lock files");
    for (file, text) in [("a.c", "int a(void) { return 0; }\n"), ("b.c", "int a(void); int b(void) { return a(); }\n")]
    {
        scratch.file(file, text);
    }
    let link = |arguments: &[&str]| {
        let _ = Call::new("gcc")
            .args(["-shared", "-fPIC", "-nostdlib"])
            .args(arguments)
            .dir(scratch.path())
            .run()
            .success();
    };
    link(&["a.c", &format!("-Wl,-soname,{ROOM}"), "-o", "liba.so"]);
    link(&["b.c", "liba.so", "-o", "b.so"]);
    let needs = fs::read(scratch.join("b.so")).expect("a library");
    let room = needs.windows(ROOM.len()).position(|some| some == ROOM.as_bytes()).expect("a soname");

    let (mut requests, mut asked) = (String::new(), Vec::new());
    for (index, spec) in SPECS.lines().filter(|line| !line.starts_with('#')).enumerate() {
        let mut words = spec.split(' ');
        let (package, range) = (words.next().expect("a name"), words.next().expect("a range"));
        let (stem, majors) = library(package);
        for major in majors {
            let member = format!("lib/{stem}-{index}-{major}.so");
            let soname = format!("lib{stem}.so.{major}\0");
            let mut data = needs.clone();
            data[room..room + soname.len()].copy_from_slice(soname.as_bytes());
            scratch.file(format!("env/{member}"), data);
            let about = json!({ "name": "files", "version": "1", "build": "0", "depends": [spec], "files": [member] });
            scratch.file(format!("env/conda-meta/files-1-{index}-{major}.json"), about.to_string());
            let all = releases(*major, range);
            let _ = writeln!(
                requests,
                "{}",
                json!({ "form": "conda-spec", "text": format!("{package} {range}"), "machines": all })
            );
            asked.push((spec, member, stem));
        }
    }
    let file = scratch.file("requests", requests);
    let script = places::workspace().join("tests/e2e/requirements/consumers.py");
    let call = Call::new("sh").args(["-c", "python3 \"$0\" \"$1\" <\"$2\""]).arg(script).arg(part).arg(file);
    let printed = call.run().success().stdout;
    let lets_in: Vec<bool> = printed.lines().map(|line| line == "true").collect();
    assert_eq!(lets_in.len(), asked.len());

    let reported = command::inspect(&scratch.join("env"));
    let messages: Vec<&str> =
        reported["findings"].as_array().into_iter().flatten().filter_map(|one| one["message"].as_str()).collect();
    let mut found: BTreeMap<&str, &str> = BTreeMap::new();
    for message in &messages {
        let member = message.split(' ').find(|word| word.starts_with("lib/")).expect("a member");
        found.insert(member, message);
    }
    let mut counts = [0, 0];
    for ((spec, member, stem), lets_in) in asked.iter().zip(lets_in) {
        // The releases of these packages do not determine a soname.
        let lets_in = lets_in || ["cufile", "nvToolsExt"].contains(stem);
        // An admitted older major has a different message.
        let refused = found.get(member.as_str()).filter(|message| !message.ends_with(" or newer"));
        assert_eq!(refused.is_none(), lets_in, "{spec}, {member}: {refused:?}");
        counts[usize::from(lets_in)] += 1;
    }
    println!("{} requirements, {counts:?} libraries that are not let in, and that are", SPECS.lines().count() - 1);
}
