//! `simulate`: programs on machines that options or a host file describe.

use std::io::Write as _;
use std::process::{Command, Stdio};

use cudaguard_tests::{Call, Outcome, Scratch, command, e2e, places, tools, world};

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
    let cache = places::target().join("simulate");
    let call = Call::new(command::path()).env("XDG_CACHE_HOME", cache).arg("simulate");
    call.args(options.split_whitespace()).arg("--")
}

fn refused(outcome: &Outcome, message: &str) {
    assert_eq!(outcome.status(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains(message), "{message}: {outcome}");
}

#[e2e]
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
        let described = fixture::json(&described.run());
        let of_list: serde_json::Value =
            serde_json::from_str(of_list.stdout.lines().next().expect("a machine")).expect("JSON");
        assert_eq!(of_list["verdict"], described["verdict"], "{options}: {of_list} {described}");
    }
}

#[e2e]
fn simulated_host_file_is_probed_equal() {
    world::need();
    for name in HOSTS {
        let file = fixture::host(name);
        let text = std::fs::read_to_string(&file).expect("a host file");
        let described: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let options = format!("--host {}", file.display());
        let probed = fixture::json(&simulate(&options).arg(command::path()).args(["probe", "--json"]).run().success());
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
        let codes = fixture::codes(&fixture::json(&verified.run()));
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

    let killed = simulate("--gpu T4").args(["sh", "-c", "kill -TERM $$"]).run();
    assert_eq!(killed.signal(), Some(15));
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("this process has mounts");
    assert!(!mounts.contains("simulate/machine"), "{mounts}");
}

#[e2e]
fn impossible_simulation_is_explained() {
    world::need();
    tools::need("unshare");
    refused(&simulate("").arg("true").run(), "no machine is described");
    refused(&simulate("--gpu T4 --fail first=2").arg("true").run(), "expected a function of the driver");
    refused(&simulate("--gpu T4").arg("no-such-program").run(), "cannot start no-such-program");
    let scratch = Scratch::new("simulated-without");
    let empty = simulate("--gpu T4").arg("true").env("XDG_CACHE_HOME", scratch.path()).env("PATH", scratch.path());
    refused(&empty.run(), "PATH contains no C compiler");
    let forbid = "for kind in user mnt; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done && exec \"$@\"";
    let call = Call::new("unshare").args(["-r", "sh", "-c", forbid, "sh"]).arg(command::path());
    let call = call.env("XDG_CACHE_HOME", places::target().join("simulate"));
    let outcome = call.args(["simulate", "--gpu", "T4", "--", "true"]).run();
    refused(&outcome, "user.max_mnt_namespaces is 0; run `sudo sysctl -w user.max_mnt_namespaces=15000`");
}
