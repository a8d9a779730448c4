//! `explain` for symptoms: texts of public threads, harmless texts, the output, and the pages of `docs/troubleshooting`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use cargo_cudaguard::knowledge::symptoms::{Symptom, SymptomMatches, all_statuses, all_symptoms, diagnose};
use cudaguard_tests::{Call, Scratch, Test, command, e2e, snapshot, test};

mod headers;

use crate::hints::is_applied;
use crate::policy::pages::held;

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    tests.extend(threads().into_iter().map(|thread| {
        let name = thread.address.trim_start_matches("https://github.com/");
        test(format!("thread::{name}"), move || thread_gets_expected_answer(&thread))
    }));
    tests
}

const THREADS: &str = include_str!("threads.txt");

/// Text of a public thread.
struct Thread {
    address: &'static str,
    symptom: &'static str,
    code: &'static str,
    text: String,
}

fn threads() -> Vec<Thread> {
    let mut threads = Vec::new();
    for line in THREADS.lines().filter(|line| !line.starts_with("# ")) {
        if let Some(address) = line.strip_prefix("= ") {
            threads.push(Thread { address, symptom: "", code: "", text: String::new() });
        } else if let Some(thread) = threads.last_mut() {
            match line.strip_prefix(": ").filter(|_| thread.symptom.is_empty()) {
                Some(expected) => (thread.symptom, thread.code) = expected.split_once(' ').expect("symptom and code"),
                None => thread.text = format!("{}{line}\n", thread.text),
            }
        }
    }
    threads
}

fn explain_stdin(text: &str) -> cudaguard_tests::Outcome {
    let scratch = Scratch::new("explain");
    let file = scratch.file("error.log", text);
    let call = Call::new("sh").args(["-c", "exec \"$0\" explain <\"$1\""]);
    call.arg(command::path()).arg(&file).run()
}

/// Other tests run the command; starting it for each thread would take half a minute.
fn thread_gets_expected_answer(thread: &Thread) {
    if let SymptomMatches::Shown(shown) = diagnose(&thread.text) {
        assert_eq!(shown[0].name, thread.symptom, "{}", thread.text);
        let mut codes = shown.iter().flat_map(|symptom| &symptom.causes).flat_map(|cause| &cause.codes);
        assert!(thread.code == "-" || codes.any(|code| code.to_string() == thread.code), "{}", thread.text);
        let ordinary = "INFO 09-20 12:27:37 [core.py:70] Loading weights took 5.17 seconds\n".repeat(100);
        let SymptomMatches::Shown(in_log) = diagnose(&format!("{ordinary}{}{ordinary}", thread.text)) else {
            panic!("no answer in a log: {}", thread.text)
        };
        assert_eq!(in_log[0].name, thread.symptom, "in a log: {}", thread.text);
        return;
    }
    let outcome = explain_stdin(&thread.text).expect(0);
    let symptom = outcome.stdout.split(':').next().unwrap_or_default();
    assert_eq!(symptom, thread.symptom, "{}: {outcome}", thread.text);
    assert!(thread.code == "-" || outcome.stdout.contains(thread.code), "{}: {outcome}", thread.text);
}

#[e2e]
fn thread_addresses_are_unique() {
    let threads = threads();
    let addresses: BTreeSet<_> = threads.iter().map(|thread| thread.address).collect();
    assert_eq!(addresses.len(), threads.len());
}

/// Ordinary log lines, and errors that are unrelated to CUDA, return status 3 and advice about what to send.
#[e2e]
fn harmless_texts_get_no_answer() {
    for text in [
        "Segmentation fault (core dumped)",
        "error: linker `cc` not found",
        "HTTP error 804 from the registry",
        "Connection refused (os error 111)",
        "  File \"train.py\", line 209, in forward\nKeyError: 'cuda'",
        "ModuleNotFoundError: No module named 'torch'",
        "error[E0433]: failed to resolve: use of undeclared crate or module `cudarc`",
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        "OSError: [Errno 28] No space left on device",
        "cudaErrorThatNobodyKnows",
        "4711",
        "CUDA",
        "Xid 79",
        "No devices were found on the network",
        "runtime error: load of misaligned address 0x7ffd for type 'int'",
        "[WinError 126] The specified module could not be found: 'C:\\Python\\DLLs\\_ssl.pyd'",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build",
        "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
        "nvidia-nvlink: Nvlink Core is being initialized, major device number 235",
        "host:1:2 [0] NCCL INFO NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open shared \
         object file: No such file or directory",
        "host:1:2 [0] NCCL INFO TUNER/Plugin: Failed to find ncclTunerPlugin_v4 symbol. libnccl-tuner.so: cannot open shared \
         object file: No such file or directory",
        "I tensorflow/stream_executor/cuda/cuda_gpu_executor.cc:964] successful NUMA node read from SysFS had negative value \
         (-1), but there must be at least one NUMA node, so returning NUMA node zero",
        "E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to \
         register factory for plugin cuDNN when one has already been registered",
        "W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; \
         dlerror: libnvinfer.so.7: cannot open shared object file: No such file or directory",
        "I tensorflow/stream_executor/platform/default/dso_loader.cc:48] Successfully opened dynamic library libcuda.so.1",
        "PyTorch version: 2.1.0\nCUDA used to build PyTorch: 11.7\nROCM used to build PyTorch: N/A\nHIP runtime version: \
         N/A\nMIOpen runtime version: N/A\nIs XNNPACK available: True",
        "    ECC Errors\n        Volatile\n            SRAM Uncorrectable : 0\n            DRAM Uncorrectable : 0",
        "-- The CUDA compiler identification is NVIDIA 13.0.88\n-- Detecting CUDA compiler ABI info - done",
        "ggml_cuda_init: found 1 CUDA devices:\n  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes",
        "nvcc warning : Support for offline compilation for architectures prior to '<compute/sm/lto>_75' will be removed in a \
         future release (Use -Wno-deprecated-gpu-targets to suppress warning).",
        "cp: cannot stat 'Ne': Aucun fichier ou dossier de ce type",
    ] {
        let outcome = explain_stdin(text).expect(3);
        assert!(outcome.stdout.is_empty(), "{outcome}");
        assert!(outcome.stderr.contains("explain < LOG") && outcome.stderr.contains("doctor"), "{outcome}");
        assert!(outcome.stderr.contains("send the complete log"), "{outcome}");
    }
}

/// Messages of nvcc 13.0, g++ 12, clang 14, cl and NVRTC 13 for sources and GPUs that CUDA 12 and 13 dropped, and messages of
/// frameworks in 2025 and 2026. The third text is a part of the right answer, the fourth the row of the suite `hints` that applies it.
#[e2e]
fn recent_messages_get_the_right_fix() {
    let (mut all, mut executed) = (0, 0);
    for line in include_str!("recent.txt").lines().filter(|line| !line.starts_with('#')) {
        let [text, symptom, part, row] = line.split(" | ").collect::<Vec<_>>()[..] else { panic!("{line}") };
        let SymptomMatches::Shown(shown) = diagnose(text) else { panic!("no answer: {text}") };
        assert_eq!(shown[0].name, symptom, "{text}");
        let answer = format!("{shown:?}");
        assert!(answer.contains(part), "{text}: {part} is not in {answer}");
        all += 1;
        if !row.starts_with("marked: ") {
            assert!(is_applied(row, shown[0]), "{text}: {row} applies no hint of {symptom}");
            executed += 1;
        }
    }
    println!("{executed} of {all} texts have an executed hint");
    assert!(executed * 30 >= all * 27, "27 of 30 texts need an executed hint");
}

/// Messages of glibc 2.36, GNU ld 2.40 and Windows, with and without the quotation marks of the language.
#[e2e]
fn loader_messages_match_in_other_languages() {
    for (text, symptom) in [
        (
            "libcublas.so.12: Kann die Shared-Object-Datei nicht öffnen: Datei oder Verzeichnis nicht gefunden",
            "cuda-library-missing",
        ),
        (
            "ImportError: libcublas.so.12: Ne peut ouvrir le fichier d'objet partagé: Aucun fichier ou dossier de ce type",
            "cuda-library-missing",
        ),
        (
            "./a: Fehler beim Laden der Shared Libraries: libcudnn.so.9: Kann die Shared-Object-Datei nicht öffnen",
            "cudnn-missing",
        ),
        (
            "./a: error al cargar las bibliotecas compartidas: libcudart.so.12: no se puede abrir el fichero del objeto compartido: No existe el fichero o el directorio",
            "cuda-library-missing",
        ),
        ("./a: 载入共享库时出错: libcuda.so.1: 无法打开共享对象文件: 没有那个文件或目录", "no-driver"),
        (
            "./a: 載入共用函式庫時發生錯誤: libcudart.so.12: 無法開啟共用物件: 沒有此一檔案或目錄",
            "cuda-library-missing",
        ),
        (
            "OSError: libcudnn.so.8: 共有オブジェクトファイルを開けません: そのようなファイルやディレクトリはありません",
            "cudnn-missing",
        ),
        (
            "libcufft.so.11: impossibile aprire il file oggetto condiviso: File o directory non esistente",
            "cuda-library-missing",
        ),
        ("libcuda.so.1: невозможно открыть разделяемый объектный файл: Нет такого файла или каталога", "no-driver"),
        (
            "libcudart.so.12: não é possível abrir arquivo compartilhado: Arquivo ou diretório inexistente",
            "cuda-library-missing",
        ),
        ("libcuda.so.1: 동적 오브젝트 파일을 열 수 없습니다", "no-driver"),
        (
            "erreur lors du chargement des librairies partagées: libGL.so.1: Ne peut ouvrir le fichier d'objet partagé",
            "library-missing",
        ),
        ("libcuda.so.1: fichier trop court", "no-driver"),
        ("libfoo.so: mauvaise classe ELF : ELFCLASS32", "wrong-machine"),
        ("/usr/bin/ld : ne peut pas trouver -lcudart : Aucun fichier ou dossier de ce type", "link-cannot-find"),
        ("/usr/bin/ld: no se puede encontrar -lcudnn: No existe el fichero o el directorio", "link-cannot-find"),
        ("/usr/bin/ld: 找不到 -lcublas: 没有那个文件或目录", "link-cannot-find"),
        ("/usr/bin/ld: -lcuda が見つかりません: そのようなファイルやディレクトリはありません", "link-cannot-find"),
        ("a.c:(.text+0x5): référence indéfinie vers « cudaMalloc »", "link-undefined"),
        ("a.c:(.text+0x5): referencia a `cudaMalloc' sin definir", "link-undefined"),
        (
            "OSError: [WinError 126] Das angegebene Modul wurde nicht gefunden. Error loading \"C:\\x\\torch\\lib\\c10_cuda.dll\" or one of its dependencies.",
            "windows-dll-missing",
        ),
    ] {
        let outcome = explain_stdin(text).expect(0);
        assert!(outcome.stdout.starts_with(&format!("{symptom}: ")), "{text}: {outcome}");
    }
}

/// A text of Windows gets a fix with the names of Windows.
#[e2e]
fn windows_texts_get_windows_names() {
    for text in [
        "Could not load library cudnn_ops64_9.dll. Error code 126",
        "FileNotFoundError: Could not find module 'C:\\x\\llama.dll' (or one of its dependencies). Try using the full path",
        "[WinError 126] The specified module could not be found. Error loading \"C:\\x\\torch\\lib\\c10_cuda.dll\"",
    ] {
        let outcome = explain_stdin(text).expect(0);
        assert!(outcome.stdout.contains("PATH") && !outcome.stdout.contains("LD_LIBRARY_PATH"), "{outcome}");
    }
}

#[e2e]
fn output_matches_snapshot() {
    for (name, printed) in [
        ("number", &["803"][..]),
        ("status", &["CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"]),
        ("text", &["RuntimeError: CUDA error: no kernel image is available for execution on the device"]),
        ("several", &["202"]),
    ] {
        let outcome = command::call(["explain"]).args(printed).run().success();
        snapshot::check(&format!("symptoms/{name}"), &outcome.stdout);
    }
    let outcome = command::call(["explain", "HTTP", "error", "804"]).run().expect(3);
    snapshot::check("symptoms/nothing", &outcome.stderr);
}

/// A text needs no quotes, a symptom can be selected by name, and a message of cudaguard returns its finding.
#[e2e]
fn input_methods_agree() {
    let explain = |words: &[&str]| command::call(["explain"]).args(words).run().success().stdout;
    let page = explain(&["no kernel image is available"]);
    assert!(page.starts_with("no-kernel-image: ") && page == explain(&["no", "kernel", "image", "is", "available"]));
    assert_eq!(page, explain(&["no-kernel-image"]));
    assert_eq!(page, explain(&["cudaErrorNoKernelImageForDevice"]));
    let own = explain(&[
        "cudaguard: error[CG202]: cuDNN 9.1.0 is older than cuDNN 9.15.1, which my-model 0.3.0 was built with",
    ]);
    assert_eq!(own, explain(&["CG202"]));
    let list = command::call(["explain"]).run().success().stdout;
    assert!(all_symptoms().iter().all(|symptom| list.contains(&symptom.title)), "{list}");
}

/// The JSON output contains the page and its sources.
#[e2e]
fn json_output() {
    let explain = |words: &[&str], status| command::call(["explain", "--json"]).args(words).run().expect(status).json();
    let value = explain(&["no kernel image is available"], 0);
    let expected = all_symptoms().iter().find(|one| one.name == "no-kernel-image").expect("a symptom");
    let symptom = &value["symptoms"][0];
    assert_eq!(symptom["name"], "no-kernel-image");
    assert_eq!(symptom["causes"][0]["codes"][0], expected.causes[0].codes[0].to_string());
    assert_eq!(symptom["causes"][0]["do"], expected.causes[0].fix.as_str());
    assert_eq!(symptom["sources"].as_array().map(Vec::len), Some(expected.sources.len()));
    let value = explain(&["CG202"], 0);
    assert_eq!((&value["findings"][0]["code"], &value["symptoms"]), (&"CG202".into(), &serde_json::json!([])));
    let value = explain(&["202"], 0);
    assert_eq!((&value["number"], &value["findings"][0]["code"]), (&202.into(), &"CG202".into()));
    assert!(value["symptoms"][0]["numbers"].as_array().is_some_and(|numbers| !numbers.is_empty()), "{value}");
    assert_eq!(explain(&[], 0)["symptoms"].as_array().map(Vec::len), Some(all_symptoms().len()));
    assert_eq!(explain(&["4711"], 3)["symptoms"], serde_json::json!([]));
}

const HEAD: &str = "\
# Troubleshooting

Ask the command about a number, a status name, an error text or a whole log:

```sh
cargo cudaguard explain 803
cargo cudaguard explain \"no kernel image is available\"
./my-program 2>&1 | cargo cudaguard explain
cargo cudaguard explain --json CUDNN_STATUS_NOT_INITIALIZED
```

It prints the likeliest causes. Each has a command that confirms it, the findings that detect it, and the fix. PROGRAM is your executable,
or the library of Python that fails (`torch/lib/libtorch_cuda.so`).

Paths, numbers, versions and line breaks in the text do not matter. Messages of glibc and GNU ld are recognised in many
languages. If nothing matches, the exit status is 3.

`explain` answers for mismatches between a build and a machine. [The statuses](statuses.md) of other mistakes have a table.

`cargo cudaguard doctor` examines a machine, and with a file also the program on it.
";

const STATUSES: &str = "\
# Numbers and statuses

`cargo cudaguard explain` accepts each number and name. The same number can have several meanings. The CUDA runtime and the driver API agree
since CUDA 10.1; the runtime used other numbers before. cuDNN uses four digits since 9.0. NVML, the library of `nvidia-smi`, has its own
numbers, and so do the math libraries. This page is generated from the files in `cargo-cudaguard/data`.

The second column has the name that `explain` answers with; [Troubleshooting](index.md) lists these names. If it is the name of a
status, a mismatch of build and machine rarely causes this status.
";

/// Returns the symptoms in table order, with the preceding heading of the file.
fn sections() -> Vec<(&'static str, Vec<&'static Symptom>)> {
    let mut sections: Vec<(&str, Vec<&Symptom>)> = Vec::new();
    for line in include_str!("../../../cargo-cudaguard/data/symptoms.toml").lines() {
        if let Some(heading) = line.strip_prefix("# ---- ") {
            sections.push((heading, Vec::new()));
        } else if let Some(symptom) = all_symptoms().iter().find(|one| line == format!("name = \"{}\"", one.name)) {
            sections.last_mut().expect("a heading precedes the first symptom").1.push(symptom);
        }
    }
    assert_eq!(sections.iter().map(|(_, symptoms)| symptoms.len()).sum::<usize>(), all_symptoms().len());
    sections
}

/// Returns the error text that people search for, without pattern characters.
fn error_text(symptom: &Symptom) -> String {
    let text = symptom.texts.first().or(symptom.names.first()).expect("a symptom has a text or a name");
    text.trim_start_matches("= ").replace(" ... ", " … ").replace('*', "…").replace('#', "N").replace('`', "'")
}

fn index() -> String {
    let mut page = HEAD.to_owned();
    for (heading, symptoms) in sections() {
        let _ = write!(page, "\n## {heading}\n\n| error | problem | `explain` |\n| --- | --- | --- |\n");
        for symptom in symptoms {
            let _ = writeln!(page, "| `{}` | {} | {} |", error_text(symptom), capital(&symptom.title), symptom.name);
        }
    }
    page.push_str("\nThis page is generated from `cargo-cudaguard/data/symptoms.toml`.\n");
    page
}

/// Returns the page of the numbers and statuses: the symptom that `explain` prints for each, or the text of the status.
fn statuses_page() -> String {
    let mut rows: BTreeMap<&str, BTreeMap<u32, String>> = BTreeMap::new();
    for symptom in all_symptoms() {
        for number in &symptom.numbers {
            rows.entry(&number.family).or_default().insert(number.number, format!("`{}`", symptom.name));
        }
    }
    for status in all_statuses() {
        let number = &status.numbers[0];
        rows.entry(&number.family).or_default().insert(number.number, format!("`{}`", status.name));
    }
    let mut page = STATUSES.to_owned();
    for (family, numbers) in rows {
        let _ = write!(page, "\n## {family}\n\n| number | meaning |\n| --- | --- |\n");
        for (number, meaning) in numbers {
            let _ = writeln!(page, "| {number} | {meaning} |");
        }
    }
    page
}

/// Starts a sentence with a title. Names such as `nvcc` and `cuDNN` keep their spelling.
fn capital(text: &str) -> String {
    const NAMES: [&str; 7] = ["cuda-compat", "cudaguard", "docker", "libcuda", "libdevice", "nvcc", "tch"];
    let word = text.split(' ').next().unwrap_or_default();
    if NAMES.contains(&word) || word.contains(|c: char| c.is_ascii_uppercase()) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The pages of the book match the tables.
#[e2e]
fn pages_match_the_tables() {
    held("docs/troubleshooting/index.md", &index());
    held("docs/troubleshooting/statuses.md", &statuses_page());
}
