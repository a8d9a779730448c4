//! `explain` by symptom: what people pasted into public threads, the printed form, and `docs/symptoms.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use cudaguard::symptoms::table;
use cudaguard_tests::{Call, Scratch, Trial, command, snapshot, trials};

use crate::policy::pages::held;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        public_threads,
        other_errors,
        the_printed_form,
        ways_to_ask,
        for_programs,
        the_page_says_what_the_table_says
    ]
}

const THREADS: &str = include_str!("threads.txt");

/// A text of a public thread.
struct Thread {
    part: &'static str,
    address: &'static str,
    symptom: &'static str,
    code: &'static str,
    said: String,
}

fn threads() -> Vec<Thread> {
    let (mut threads, mut part) = (Vec::new(), "");
    for line in THREADS.lines().filter(|line| !line.starts_with("# ")) {
        if let Some(name) = line.strip_prefix("== ") {
            part = name;
        } else if let Some(address) = line.strip_prefix("= ") {
            threads.push(Thread { part, address, symptom: "", code: "", said: String::new() });
        } else if let Some(thread) = threads.last_mut() {
            match line.strip_prefix(": ").filter(|_| thread.symptom.is_empty()) {
                Some(expected) => (thread.symptom, thread.code) = expected.split_once(' ').expect("symptom and code"),
                None => thread.said = format!("{}{line}\n", thread.said),
            }
        }
    }
    threads
}

/// The first line's name, and the first code of the first cause.
fn first(page: &str) -> (&str, &str) {
    let symptom = page.split(':').next().unwrap_or_default();
    let cause = page.split("\n1. ").nth(1).and_then(|rest| rest.split("\n2. ").next()).unwrap_or_default();
    let cause = cause.split("   do: ").next().unwrap_or_default();
    let code = cause.split('[').nth(1).map_or("-", |codes| &codes[..5]);
    (symptom, code)
}

/// Each by stdin, as it was pasted: how many get the right answer first, and none another symptom's cure.
fn public_threads() {
    let scratch = Scratch::new("threads");
    let threads = threads();
    let (mut right, mut silent, mut wrong) = (0, Vec::new(), Vec::new());
    for (at, thread) in threads.iter().enumerate() {
        let file = scratch.file(format!("{at}.log"), &thread.said);
        let call = Call::new("sh").args(["-c", "exec \"$0\" explain - <\"$1\""]);
        let outcome = call.arg(command::path()).arg(&file).run();
        let (symptom, code) = first(&outcome.stdout);
        match outcome.status() {
            Some(0) if (symptom, code) == (thread.symptom, thread.code) => right += 1,
            // The cause is on the same page, further down.
            Some(0) if symptom == thread.symptom => {}
            Some(0) => wrong.push(format!("{} ({}): {symptom} {code}", thread.address, thread.part)),
            Some(3) => silent.push(format!("{} ({})", thread.address, thread.part)),
            _ => panic!("{outcome}"),
        }
    }
    assert!(threads.len() >= 60, "{} texts", threads.len());
    assert!(wrong.is_empty(), "another symptom's cure for {wrong:#?}; no answer for {silent:#?}");
    let unseen = threads.iter().filter(|thread| thread.part == "unseen").count();
    assert!(unseen >= 60, "{unseen} texts that the table was not written for");
    assert!(right * 60 >= threads.len() * 50, "{right} of {} are right; no answer for {silent:#?}", threads.len());
}

/// What is no symptom gets no cure, and a status of its own.
fn other_errors() {
    for said in [
        "Segmentation fault (core dumped)",
        "error: linker `cc` not found",
        "HTTP error 804 from the registry",
        "Connection refused (os error 111)",
        "  File \"train.py\", line 209, in forward\nKeyError: 'cuda'",
        "ModuleNotFoundError: No module named 'torch'",
        "error[E0433]: failed to resolve: use of undeclared crate or module `cudarc`",
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        "OSError: [Errno 28] No space left on device",
        "undefined symbol: _ZN3c106detail14torchCheckFailEPKcS2_jRKSs",
        "cudaErrorThatNobodyKnows",
        "4711",
        "CUDA",
    ] {
        let outcome = command::call(["explain", said]).run().expect(3);
        assert!(outcome.stdout.is_empty(), "{outcome}");
        assert!(outcome.stderr.contains("explain - < LOG") && outcome.stderr.contains("doctor"), "{outcome}");
    }
}

fn the_printed_form() {
    for (name, said) in [
        ("number", &["803"][..]),
        ("status", &["CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"]),
        ("text", &["RuntimeError: CUDA error: no kernel image is available for execution on the device"]),
        ("several", &["202"]),
    ] {
        let outcome = command::call(["explain"]).args(said).run().success();
        snapshot::check(&format!("symptoms/{name}"), &outcome.stdout);
    }
    let outcome = command::call(["explain", "HTTP", "error", "804"]).run().expect(3);
    snapshot::check("symptoms/nothing", &outcome.stderr);
}

/// Words need no quotes, a symptom can be named, and this program's own message leads to its finding.
fn ways_to_ask() {
    let told = |words: &[&str]| command::call(["explain"]).args(words).run().success().stdout;
    let page = told(&["no kernel image is available"]);
    assert!(page.starts_with("no-kernel-image: ") && page == told(&["no", "kernel", "image", "is", "available"]));
    assert_eq!(page, told(&["no-kernel-image"]));
    assert_eq!(page, told(&["cudaErrorNoKernelImageForDevice"]));
    let own =
        told(&["cudaguard: error[CG202]: cuDNN 9.1.0 is older than cuDNN 9.15.1, which my-model 0.3.0 was built with"]);
    assert_eq!(own, told(&["CG202"]));
    let list = command::call(["explain"]).run().success().stdout;
    assert!(table().iter().all(|symptom| list.contains(&symptom.title)), "{list}");
}

/// The same as data: what is on the page, with the sources, and nothing else on stdout where nothing fits.
fn for_programs() {
    let told = |words: &[&str], status| {
        let outcome = command::call(["explain", "--json"]).args(words).run().expect(status);
        serde_json::from_str::<serde_json::Value>(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
    };
    let value = told(&["no kernel image is available"], 0);
    let expected = table().iter().find(|one| one.name == "no-kernel-image").expect("a symptom");
    let symptom = &value["symptoms"][0];
    assert_eq!(symptom["name"], "no-kernel-image");
    assert_eq!(symptom["causes"][0]["codes"][0], expected.causes[0].codes[0].to_string());
    assert_eq!(symptom["causes"][0]["do"], expected.causes[0].cure.as_str());
    assert_eq!(symptom["sources"].as_array().map(Vec::len), Some(expected.sources.len()));
    let value = told(&["CG202"], 0);
    assert_eq!((&value["findings"][0]["code"], &value["symptoms"]), (&"CG202".into(), &serde_json::json!([])));
    let value = told(&["202"], 0);
    assert_eq!((&value["number"], &value["findings"][0]["code"]), (&202.into(), &"CG202".into()));
    assert!(value["symptoms"][0]["numbers"].as_array().is_some_and(|numbers| !numbers.is_empty()), "{value}");
    assert_eq!(told(&[], 0)["symptoms"].as_array().map(Vec::len), Some(table().len()));
    assert_eq!(told(&["4711"], 3)["symptoms"], serde_json::json!([]));
}

const HEAD: &str = "\
# Symptoms

What people have in hand when a CUDA program fails, what it most often means, and what to do. `cargo cudaguard explain` says the
same in the terminal, for a number, a status, an error's text or a whole log:

```sh
cargo cudaguard explain 803
cargo cudaguard explain \"no kernel image is available\"
./my-program 2>&1 | cargo cudaguard explain -
cargo cudaguard explain --json CUDNN_STATUS_NOT_INITIALIZED
```

Paths, numbers, versions, line breaks and colours in a pasted text do not matter. Where it shows several symptoms, the one that
says most is told first. Where nothing fits, it says so, with status 3.

Under each symptom the likeliest cause comes first, with the [findings](findings.md) that would have said it (`cargo cudaguard
explain CG303` says more), the command that shows whether it is this one, and the cure. PROGRAM stands for your executable; for Python it is the
library that fails, for example `torch/lib/libtorch_cuda.so` in site-packages.

The same number can mean different things. The runtime and the driver API agree since CUDA 10.1, and few numbers are of one of them
alone (35 is the runtime's); before that the runtime counted otherwise (48 is now 209, 38 is 100, 30 is 999). cuDNN counts in
thousands since 9.0 (1 is now 1001). NVML, which `nvidia-smi` speaks, has its own.

This page is written from `guard-core/data/symptoms.toml`; a test keeps it so.
";

fn page() -> String {
    let mut page = format!("{HEAD}\n| number | of | symptom |\n| --- | --- | --- |\n");
    let mut numbers: Vec<_> =
        table().iter().flat_map(|one| one.numbers.iter().map(move |number| (number, one))).collect();
    numbers.sort_by_key(|(number, _)| (number.number, number.family.clone()));
    for (number, symptom) in numbers {
        let _ = writeln!(page, "| {} | {} | [{}](#{}) |", number.number, number.family, symptom.title, symptom.name);
    }
    for symptom in table() {
        let _ = write!(page, "\n## {}\n\n**{}.** {}\n\n", symptom.name, capital(&symptom.title), symptom.means);
        for known in symptom.names.iter().chain(&symptom.texts) {
            let _ = writeln!(page, "- `{}`", known.replace('`', "'"));
        }
        for (at, cause) in symptom.causes.iter().enumerate() {
            let codes: Vec<_> = cause.codes.iter().map(ToString::to_string).collect();
            let codes = if codes.is_empty() { String::new() } else { format!(" ({})", codes.join(", ")) };
            let gap = if at == 0 { "\n" } else { "" };
            let _ =
                writeln!(page, "{gap}{}. {}{codes}<br>See: `{}`<br>Do: {}", at + 1, cause.why, cause.see, cause.cure);
        }
        if !symptom.sources.is_empty() {
            let links: Vec<_> = symptom.sources.iter().map(|source| format!("<{source}>")).collect();
            let _ = write!(page, "\nSources: {}\n", links.join(" · "));
        }
    }
    page
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn the_page_says_what_the_table_says() {
    held("docs/symptoms.md", &page());
    let threads = threads();
    let addresses: BTreeSet<_> = threads.iter().map(|thread| thread.address).collect();
    assert_eq!(addresses.len(), threads.len(), "a thread is there twice");
}
