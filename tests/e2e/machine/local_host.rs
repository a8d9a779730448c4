//! This machine, with a driver from `LD_LIBRARY_PATH`.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use cudaguard::internal::manifest::Linkage;
use cudaguard_tests::{Call, Scratch, codes, command, e2e, parts};

use super::fixture::{self, call};

#[e2e]
fn real_libcuda_535_is_probed() {
    let dir = parts::driver("535");
    let value = call(["probe", "--json"]).env("LD_LIBRARY_PATH", &dir).run().success().json();
    assert_eq!(value["driver"]["user"], "535.261.03", "{value}");
    assert_eq!(value["driver"]["cuda"], "12.2", "{value}");
    assert_eq!(value["driver"]["library"], dir.join("libcuda.so.1").display().to_string());
    assert!(value["sources"]["driver.cuda"].as_str().is_some_and(|source| source.contains("cuDriverGetVersion")));
    // A machine with a GPU and a real driver answers differently.
    if !Path::new("/proc/driver/nvidia").exists() {
        assert_eq!(value["driver"]["init"], 100, "{value}");
        assert!(value["driver"].get("kernel").is_none() && value.get("gpus").is_none(), "absent, not null: {value}");
    }
}

/// The host file contains no host name, user name or home directory.
#[e2e]
fn user_name_is_not_recorded() {
    let scratch = Scratch::new("probe-home");
    let home = scratch.join("home/alice");
    let driver = fixture::driver(&home, "550.163.01", "12040 0 0 2048");
    let outcome = call(["probe", "--json"])
        .env("HOME", &home)
        .env("USER", "alice")
        .env("HOSTNAME", "wonderland")
        .env("LD_LIBRARY_PATH", &driver)
        .run()
        .success();
    assert!(!outcome.stdout.contains("alice") && !outcome.stdout.contains("wonderland"), "{outcome}");
    assert!(outcome.stdout.contains("\"~/driver 550.163.01/libcuda.so.1\""), "{outcome}");
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    assert!(name.trim().len() < 4 || !outcome.stdout.contains(name.trim()), "{outcome}");
}

/// Answers before the timeout are retained.
#[e2e(slow)]
fn probe_survives_hanging_driver() {
    let scratch = Scratch::new("probe-hangs");
    let driver = fixture::driver(&scratch, "580.65.08", "13000 0 2 2048");
    let probed = call(["probe", "--json"]).env("LD_LIBRARY_PATH", &driver).run().success().json();
    assert_eq!((&probed["driver"]["cuda"], probed["driver"].get("init")), (&"13.0".into(), None), "{probed:#}");
    let warnings = probed["doubts"].to_string();
    assert!(warnings.contains("did not answer in time, in cuInit"), "{probed:#}");
}

/// The templates collect one line per machine, and `verify` reads the result. A fake `srun` starts them on three machines.
#[e2e]
fn fleet_is_collected() {
    let dir = cudaguard_tests::places::workspace().join("templates/collect");
    let scratch = Scratch::new("collect");
    let link = scratch.join("bin/cargo-cudaguard");
    std::fs::create_dir_all(scratch.join("bin")).expect("a folder");
    symlink(command::path(), &link).expect("a link");
    let srun = scratch.file(
        "bin/srun",
        "#!/bin/sh\ntest \"$1 $2 $3 $4\" = \"--partition=gpus --nodes=3 --ntasks-per-node=1 --immediate=60\" || exit 9\nshift 4\n\
         for node in n1 n2 n3; do SLURMD_NODENAME=$node \"$@\"; done\n",
    );
    std::fs::set_permissions(&srun, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    let path = format!("{}:/usr/bin:/bin", scratch.join("bin").display());
    let mut fleet =
        Call::new("sh").arg(dir.join("slurm.sh")).args(["gpus", "3"]).env("PATH", &path).run().success().stdout;
    // The command is taken from the YAML of the pod.
    let job = std::fs::read_to_string(dir.join("kubernetes.yaml")).expect("the template");
    let line = job.lines().find_map(|line| line.trim().strip_prefix("command: [sh, -c, '")).expect("a command");
    let pod = Call::new("sh").args(["-c", line.strip_suffix("']").expect("its end")]);
    fleet += &pod.env("PATH", &path).env("NODE_NAME", "gpu-node-4").run().success().stdout;
    // The command is taken from the Ansible play.
    let play = std::fs::read_to_string(dir.join("ansible.yml")).expect("the template");
    let words = play.lines().find_map(|line| line.trim().strip_prefix("argv: [")).expect("a command");
    let words: Vec<&str> = words.trim_end_matches(']').split(", ").map(|word| word.trim_matches('"')).collect();
    assert_eq!((words[0], words[4]), ("{{ place.path }}/cudaguard", "{{ inventory_hostname }}"), "{words:?}");
    fleet += &call(&words[1..4]).arg("host-5").run().success().stdout;
    let fleet = scratch.file("fleet.jsonl", fleet);
    let app = scratch.join("app");
    fixture::program(&app, &[fixture::manifest(Linkage::Dlopened)]);
    let outcome = call(["verify", "--json"]).arg(&app).arg("--fleet").arg(&fleet).run();
    let reported = outcome.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let names: Vec<String> = reported.filter_map(|line| Some(line["host"].as_str()?.to_owned())).collect();
    assert_eq!(names, ["n1", "n2", "n3", "gpu-node-4", "host-5"], "{outcome}");
    let text = call(["probe", "--name", "n1"]).run().success().stdout;
    assert!(text.starts_with("n1: "), "{text}");
}

/// Candidates are selected, shadowed, skipped or not searched.
#[e2e]
fn all_candidates_are_explained() {
    let scratch = Scratch::new("doctor");
    let app = scratch.join("app");
    fixture::program(&app, &[fixture::manifest(Linkage::Dlopened)]);
    let (old, new) = (parts::cudnn("9.1.0").join("lib"), parts::cudnn("9.15.1"));
    let mut foreign = std::fs::read(old.join("libcudnn.so.9")).expect("a library");
    foreign[18] = 183;
    let foreign = scratch.file("foreign/libcudnn.so.9", foreign);
    let path = std::env::join_paths([foreign.parent().expect("a folder"), &old]).expect("a path");
    let call = call(["doctor", "--json"]).arg(&app).env("LD_LIBRARY_PATH", path).env("CUDNN_PATH", &new);
    let value = call.run().expect(1).json();
    assert_eq!(value["verdict"], "refused", "{value}");
    assert!(codes(&value).contains(&"CG202 error".to_owned()), "{value}");
    let libraries = value["libraries"].as_array().expect("a list").iter();
    let fates: Vec<_> = libraries
        .filter(|library| library["name"] == "libcudnn.so.9")
        .map(|library| (library["fate"].as_str().unwrap_or("?"), library["version"].as_str().unwrap_or("?")))
        .collect();
    assert_eq!(fates[..2], [("passed over", "?"), ("picked", "9.1.0")], "{value}");
    assert!(fates.contains(&("not searched", "9.15.1")), "{value}");
}
