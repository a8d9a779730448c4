//! `simulate`: programs on machines that options or a host file describe.

use std::io::Write as _;
use std::process::{Command, Stdio};

use cudaguard_tests::{Call, Outcome, Scratch, command, e2e, parts, places, skip, tools, world};

use super::fixture;

/// A host file whose probe on its simulated machine must have the same driver and GPUs.
const HOSTS: [&str; 6] = ["a100-550", "h100-580", "half-updated", "p100-580", "t4-535", "wsl2"];

/// Prints the results of some functions of the driver.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
  int count = -1, major = -1, minor = -1, version = -1, init, launch;
  if (!cuda) return puts("no libcuda"), 0;
  init = ((int (*)(unsigned))dlsym(cuda, "cuInit"))(0);
  ((int (*)(int *))dlsym(cuda, "cuDriverGetVersion"))(&version);
  ((int (*)(int *))dlsym(cuda, "cuDeviceGetCount"))(&count);
  ((int (*)(int *, int, int))dlsym(cuda, "cuDeviceGetAttribute"))(&major, 75, 0);
  ((int (*)(int *, int, int))dlsym(cuda, "cuDeviceGetAttribute"))(&minor, 76, 0);
  launch = ((int (*)(void))dlsym(cuda, "cuLaunchKernel"))();
  printf("init %d cuda %d gpus %d cc %d.%d launch %d\n", init, version, count, major, minor, launch);
  return 0;
}
"#;

fn simulate(options: &str) -> Call {
    simulate_with(options.split_whitespace())
}

fn simulate_with<'a>(options: impl IntoIterator<Item = &'a str>) -> Call {
    let cache = places::target().join("simulate");
    Call::new(command::path()).env("XDG_CACHE_HOME", cache).arg("simulate").args(options).arg("--")
}

fn refused(outcome: &Outcome, message: &str) {
    assert_eq!(outcome.status(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains(message), "{message}: {outcome}");
}

#[e2e(slow)]
fn driver_answers_for_described_machine() {
    world::need();
    let scratch = Scratch::new("simulated calls");
    let source = scratch.file("ask.c", PROGRAM);
    let program = scratch.join("fragt die GPU — ü");
    let _ = Call::new("cc").arg(source).arg("-o").arg(&program).arg("-ldl").run().success();
    for (options, expected) in [
        ("--gpu V100 --driver 535.261.03", "init 0 cuda 12020 gpus 1 cc 7.0 launch 801"),
        ("--gpu T4,H100 --driver 580.95.05", "init 0 cuda 13000 gpus 2 cc 7.5 launch 801"),
        ("--gpu T4 H100 --driver 580", "init 0 cuda 13000 gpus 2 cc 7.5 launch 801"),
        ("--gpu sm_90 --driver 550 --mig", "init 0 cuda 12040 gpus 1 cc 9.0 launch 801"),
        ("--gpu V100 --driver 620", "init 100 cuda 13050 gpus 0 cc -1.-1 launch 801"),
        ("--gpu V100", "init 0 cuda 13000 gpus 1 cc 7.0 launch 801"),
        ("--gpu none --driver 580", "init 100 cuda 13000 gpus 0 cc -1.-1 launch 801"),
        ("--gpu A100 --driver 580.95.05 --kernel 550.54.14", "init 803 cuda 13000 gpus 1 cc 8.0 launch 801"),
        ("--gpu A100 --driver 535.261.03 --compat 550.54.15", "init 0 cuda 12040 gpus 1 cc 8.0 launch 801"),
        ("--gpu A100 --driver 580 --wsl", "init 0 cuda 13000 gpus 1 cc 8.0 launch 801"),
        ("--gpu A100 --driver 580 --fail cuInit=802", "init 802 cuda 13000 gpus 1 cc 8.0 launch 801"),
        ("--gpu A100 --driver none", "no libcuda"),
    ] {
        let outcome = simulate(options).arg(&program).run().success();
        assert_eq!(outcome.stdout.trim(), expected, "{options}");
        let says = outcome.stderr.contains("cuLaunchKernel: kernels do not run on a simulated machine");
        assert_eq!(says, expected.contains("launch"), "{options}: {outcome}");
    }
}

#[e2e]
fn simulated_nvidia_smi_describes_machine() {
    world::need();
    let scratch = Scratch::new("simulated-smi");
    let ask = "--query-gpu=index,name,driver_version,compute_cap,memory.total --format=csv";
    for (options, arguments, status, expected) in [
        (
            "--gpu T4,H100 --driver 580.95.05",
            ask,
            0,
            "index, name, driver_version, compute_cap, memory.total [MiB]\n0, Tesla T4, 580.95.05, 7.5, [N/A]\n\
             1, NVIDIA H100, 580.95.05, 9.0, [N/A]\n",
        ),
        ("--gpu V100 --driver 535", "--query-gpu=name --format=csv,noheader,nounits", 0, "Tesla V100\n"),
        ("--gpu A100 --driver 535", "-L", 0, "GPU 0: NVIDIA A100 (UUID: GPU-00000001-0000-4000-8000-000000000001)\n"),
        (
            "--gpu A100 --driver 535 --kernel 550",
            "-L",
            18,
            "Failed to initialize NVML: Driver/library version mismatch\n",
        ),
        ("--gpu none --driver 535", "", 6, "No devices were found\n"),
        (
            "--gpu T4 --driver 535 --mps --memory 16",
            "--query-gpu=compute_mode,memory.total,memory.free,utilization.gpu --format=csv,noheader,nounits",
            0,
            "Exclusive_Process, 16384, 16384, 0\n",
        ),
        (
            "--gpu T4 --driver 535",
            "--query-gpu=colour --format=csv",
            2,
            "Field \"colour\" is not a valid field to query.\n\n",
        ),
    ] {
        let outcome = simulate(options).arg("nvidia-smi").args(arguments.split_whitespace()).run().expect(status);
        assert_eq!(outcome.stdout, expected, "{options} {arguments}");
    }
    // The output describes the machine in the fleet: the verdict is that of the same options.
    for (options, arguments) in [
        ("--gpu V100 --driver 535.261.03", "-q -x"),
        ("--gpu T4,H100 --driver 580.95.05 --together", "-q -x"),
        ("--gpu H100 --driver 550.54.15", "--query-gpu=name,driver_version,compute_cap --format=csv"),
    ] {
        let outcome = simulate(options).arg("nvidia-smi").args(arguments.split_whitespace()).run().success();
        let list = scratch.file("fleet", &outcome.stdout);
        let of_list = fixture::call(["verify", "--json", "--fleet"]).arg(list).arg(fixture::of_driver()).run();
        let described = fixture::call(["verify", "--json"]).args(options.split_whitespace()).arg(fixture::of_driver());
        let described = described.run().json();
        let of_list: serde_json::Value =
            serde_json::from_str(of_list.stdout.lines().next().expect("a machine")).expect("JSON");
        assert_eq!(of_list["verdict"], described["verdict"], "{options}: {of_list} {described}");
    }
}

#[e2e(slow)]
fn simulated_host_file_is_probed_equal() {
    world::need();
    for name in HOSTS {
        let file = fixture::host(name);
        let text = std::fs::read_to_string(&file).expect("a host file");
        let described: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let simulated = simulate_with(["--host", file.to_str().expect("a path")]);
        let probed = simulated.arg(command::path()).args(["probe", "--json"]).run().success().json();
        for key in ["user", "kernel", "cuda", "init"] {
            let stated = &described["driver"][key];
            assert!(stated.is_null() || *stated == probed["driver"][key], "{name}: {key}: {probed}");
        }
        let stated = described["gpus"].as_array().expect("GPUs").iter();
        for (n, gpu) in stated.enumerate() {
            assert_eq!((&gpu["name"], &gpu["cc"]), (&probed["gpus"][n]["name"], &probed["gpus"][n]["cc"]), "{name}");
        }
    }
}

#[e2e]
fn guarded_program_is_refused_as_verified() {
    world::need();
    for options in ["--gpu V100 --driver 535.261.03", "--gpu H100 --driver 580.95.05", "--driver none"] {
        let verified = fixture::call(["verify", "--json"]).args(options.split_whitespace()).arg(fixture::of_driver());
        let codes = cudaguard_tests::codes(&verified.run().json());
        let started = simulate(options).arg(fixture::of_driver()).run();
        let errors: Vec<String> = codes.iter().filter_map(|code| code.strip_suffix(" error")).map(Into::into).collect();
        for code in &errors {
            assert!(started.stderr.contains(code.as_str()), "{options}: {code}: {started}");
        }
        assert_eq!(started.status() == Some(78), !errors.is_empty(), "{options}: {codes:?} {started}");
    }
}

#[e2e]
fn simulated_command_keeps_its_surroundings() {
    world::need();
    let scratch = Scratch::new("simulated surroundings");
    let script = "read line; printf '%s|%s|%s|%s' \"$line\" \"$NAME\" \"$PWD\" \"$1\"; exit 7";
    let mut child = Command::new(command::path())
        .args(["simulate", "--gpu", "T4", "--", "sh", "-c", script, "sh", "--gpu a b"])
        .envs([("XDG_CACHE_HOME", places::target().join("simulate")), ("NAME", "ä b".into())])
        .current_dir(scratch.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    child.stdin.take().expect("a pipe").write_all(b"the input\n").expect("the shell reads");
    let output = child.wait_with_output().expect("it ends");
    let expected = format!("the input|ä b|{}|--gpu a b", scratch.path().display());
    assert_eq!((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code()), (expected, Some(7)));

    // Two machines at the same time do not share files.
    let calls = ["T4", "A100"].map(|gpu| {
        let call = simulate(&format!("--gpu {gpu} --driver 580")).args(["sh", "-c", "sleep 1; nvidia-smi -L"]);
        (gpu, std::thread::spawn(move || call.run().success()))
    });
    for (gpu, call) in calls {
        let outcome = call.join().expect("the call ends");
        assert!(outcome.stdout.contains(&format!("{gpu} (UUID")), "{outcome}");
    }
    let script = "test -d \"$CUDA_MPS_PIPE_DIRECTORY\"";
    let _ = simulate("--gpu T4 --mps").args(["sh", "-c", script]).run().success();

    let killed = simulate("--gpu T4").args(["sh", "-c", "kill -TERM $$"]).run();
    assert_eq!(killed.signal(), Some(15));
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("this process has mounts");
    assert!(!mounts.contains("simulate/machine"), "{mounts}");
}

/// A test suite for each recipe of the book. Each passes on the machine of its recipe only.
const SUITES: [(&str, &str, &str); 4] = [
    (
        "pytest",
        "test_gpu.py",
        "import ctypes\ndef test_gpu():\n    cuda, version = ctypes.CDLL('libcuda.so.1'), ctypes.c_int()\n    \
         assert cuda.cuInit(0) == 0 and cuda.cuDriverGetVersion(ctypes.byref(version)) == 0\n    \
         assert version.value == 13000\n",
    ),
    (
        "cargo test",
        "Cargo.toml",
        "[package]\nname = \"fallback\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n",
    ),
    (
        "cargo test",
        "src/lib.rs",
        "#[test]\nfn driver_is_absent() { assert!(!std::path::Path::new(\"/proc/driver/nvidia/version\").exists()); }\n",
    ),
    (
        "ctest",
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.24)\nproject(gpus NONE)\nenable_testing()\n\
         add_test(NAME two COMMAND sh -c \"test $(nvidia-smi -L | wc -l) = 2\")\n\
         add_test(NAME refuses COMMAND cargo cudaguard simulate --gpu V100 --driver 535 -- sh -c \"nvidia-smi -L | grep V100\")\n",
    ),
];

#[e2e(slow)]
fn recipes_of_book_run_suites() {
    world::need();
    let (cmake, pytest) = (parts::part("cmake-4.4").join("bin"), parts::part("pytest"));
    let scratch = Scratch::new("simulated-recipes");
    let page = std::fs::read_to_string(places::workspace().join("docs/guides/simulate.md")).expect("the page exists");
    let commands: Vec<&str> =
        page.lines().filter(|line| line.starts_with("cargo cudaguard simulate")).skip(1).collect();
    assert_eq!(commands.len(), 3);
    std::fs::create_dir(scratch.join("bin")).expect("a directory can be made");
    let tool = scratch.file("bin/pytest", "#!/bin/sh\nexec python3 -m pytest \"$@\"\n");
    let _ = Call::new("chmod").arg("+x").arg(tool).run().success();
    let path = std::env::var_os("PATH").expect("a path");
    let own = [scratch.join("bin"), cmake, command::path().parent().expect("a directory").to_owned()];
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path))).expect("no colons");
    for command in commands {
        let (_, suite) = command.split_once(" -- ").expect("a command");
        let project = scratch.join(suite.split(' ').next().expect("a word"));
        for (_, file, text) in SUITES.iter().filter(|(tool, _, _)| suite.starts_with(tool)) {
            std::fs::create_dir_all(project.join("src")).expect("a directory can be made");
            std::fs::write(project.join(file), text).expect("a file can be written");
        }
        let run = |program: &str| {
            let call = Call::new("sh").args(["-c", program]).dir(&project).env("PATH", &path);
            let call = call.env("PYTHONPATH", pytest.join("lib")).env("CARGO_TARGET_DIR", project.join("target"));
            call.env("XDG_CACHE_HOME", places::target().join("simulate")).run()
        };
        if suite.starts_with("ctest") {
            let _ = run("cmake -S . -B build").success();
        }
        let outcome = run(command).success();
        let passed = ["1 passed", "1 passed", "100% tests passed"];
        assert!(passed.iter().any(|text| outcome.stdout.contains(text)), "{command}: {outcome}");
        let other = command.replace("T4", "V100").replace("580.95.05", "470").replace("H100,H100", "T4");
        let other = other.replace("--driver none", "--gpu T4 --driver 580");
        assert_ne!(run(&other).status(), Some(0), "{other}");
    }
}

#[e2e(slow)]
fn ordinary_user_enters_machine() {
    world::need();
    tools::need("setpriv");
    if !rustix::process::geteuid().is_root() {
        skip("root", "run the tests as root");
    }
    let scratch = Scratch::new("simulated user, home: ä");
    let (home, cache) = (scratch.join("home"), scratch.join("cache"));
    for dir in [&home, &cache] {
        std::fs::create_dir(dir).expect("a directory can be made");
    }
    std::os::unix::fs::chown(&home, Some(1234), Some(1234)).expect("root may");
    std::fs::copy(command::path(), scratch.join("command")).expect("a copy");
    let ask = ["simulate", "--gpu", "T4", "--driver", "580", "--", "nvidia-smi", "-L"];
    let setpriv = || Call::new("setpriv").args(["--reuid", "1234", "--regid", "1234", "--clear-groups"]);
    if setpriv().arg("test").arg("-x").arg(&home).run().status() != Some(0) {
        skip("a checkout that other users can enter", "chmod a+x the directories above it");
    }
    let user = || setpriv().arg(scratch.join("command")).args(ask);
    let outcome = user().env("HOME", &home).run().success();
    assert!(outcome.stdout.starts_with("GPU 0: Tesla T4 "), "{outcome}");
    // The cache of root cannot be written, and is complete after a call of root.
    refused(&user().env("XDG_CACHE_HOME", &cache).run(), "hint: set XDG_CACHE_HOME to a directory that can be written");
    let _ = Call::new(command::path()).args(ask).env("XDG_CACHE_HOME", &cache).run().success();
    let outcome = user().env("XDG_CACHE_HOME", &cache).run().success();
    assert!(outcome.stdout.starts_with("GPU 0: Tesla T4 "), "{outcome}");
}

#[e2e(slow)]
fn impossible_simulation_is_explained() {
    world::need();
    tools::need("unshare");
    refused(&simulate("").arg("true").run(), "no machine is described");
    refused(&simulate("--gpu T4 --fail first=2").arg("true").run(), "expected a function of the driver");
    refused(&simulate("--gpu T4").arg("no-such-program").run(), "cannot start no-such-program");
    let scratch = Scratch::new("simulated-without");
    let empty = simulate("--gpu T4").arg("true").env("XDG_CACHE_HOME", scratch.path()).env("PATH", scratch.path());
    refused(&empty.run(), "PATH contains no C compiler");
    let settings = scratch.join("settings");
    std::fs::create_dir(&settings).expect("a directory can be made");
    std::fs::write(settings.join("apparmor_restrict_unprivileged_userns"), "1\n").expect("a file can be written");
    std::fs::write(settings.join("unprivileged_userns_clone"), "0\n").expect("a file can be written");
    let forbid = "mount --bind \"$0\" /proc/sys/kernel || exit 9; for kind in user mnt; do \
                  echo 0 > /proc/sys/user/max_${kind}_namespaces; done && exec \"$@\"";
    let call = Call::new("unshare").args(["-r", "-m", "sh", "-c", forbid]).arg(settings).arg(command::path());
    let call = call.env("XDG_CACHE_HOME", places::target().join("simulate"));
    let outcome = call.args(["simulate", "--gpu", "T4", "--", "true"]).run();
    for hint in [
        "user.max_mnt_namespaces is 0; run `sudo sysctl -w user.max_mnt_namespaces=15000`",
        "kernel.unprivileged_userns_clone is 0; run `sudo sysctl -w kernel.unprivileged_userns_clone=1`",
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`",
    ] {
        refused(&outcome, hint);
    }
}
