//! Lists of machines.

use std::fmt::Write as _;

use cudaguard::internal::manifest::Linkage;
use cudaguard_tests::{Call, Scratch, e2e, snapshot};

use super::fixture::{self, call, demo, host, manifest, printed};

/// Returns a list with all kinds of machines, some of them repeated. Each line is the text of a host file.
fn list(times: usize) -> String {
    let mut text = String::new();
    for (name, often) in
        [("h100-580", 5), ("t4-535", 3), ("a100-550", 4), ("no-gpu", 1), ("two-unlike", 1), ("p100-580", 1)]
    {
        let file = std::fs::read_to_string(host(name)).expect("a host file");
        let value: serde_json::Value = serde_json::from_str(&file).expect("JSON");
        for number in 0..often * times {
            let mut value = value.clone();
            value["name"] = format!("{name}-{number}").into();
            let _ = writeln!(text, "{value}");
        }
    }
    text
}

#[e2e]
fn host_list_is_checked() {
    let scratch = Scratch::new("fleet");
    let file = scratch.file("fleet.jsonl", list(2));
    let loads = scratch.join("loads");
    fixture::program(&loads, &[manifest(Linkage::Dlopened)]);
    let outcome = call(["verify"]).args([demo(), &loads]).arg("--fleet").arg(&file).run().expect(1);
    snapshot::check("machine/fleet", &printed(&outcome, &[(&scratch, "<scratch>")]));
}

/// Each line equals the result for the machine's own file.
#[e2e]
fn json_lines_match_snapshot() {
    let scratch = Scratch::new("fleet-json");
    let file = scratch.file("fleet.jsonl", list(1));
    let outcome = call(["verify"]).arg(demo()).arg("--json").arg("--fleet").arg(&file).run().expect(1);
    let lines: Vec<serde_json::Value> = outcome
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    assert_eq!(lines.len(), 15);
    for (number, line) in lines.iter().enumerate() {
        let label = line["host"].as_str().expect("a label");
        let (name, _) = label.rsplit_once('-').expect("a number");
        let single = call(["verify"]).arg(demo()).arg("--json").arg("--host").arg(host(name)).run();
        let single = single.json();
        for key in ["file", "verdict", "findings"] {
            assert_eq!(line[key], single[key], "{label}");
        }
        assert_eq!(line["line"], number + 1);
    }
}

#[e2e]
fn unreadable_lines_are_reported() {
    let scratch = Scratch::new("fleet-mistakes");
    let good = r#"{"driver": {"user": "580.65.06"}, "gpus": [{"cc": "8.0"}], "cudnn": [{"version": "9.15.1"}]}"#;
    let mut bytes =
        format!("{good}\n\n{{\"driver\": {{\"user\": 535}}}}\n{{\"gpus\": [{{\"cc\": \"8.0\"\n").into_bytes();
    bytes.extend(b"{\"name\": \"\xff\"}\n");
    bytes.extend(b"{\"name\": \"");
    bytes.resize(bytes.len() + 5 * 1024 * 1024, b'x');
    bytes.extend(b"\"}\n");
    bytes.extend(good.as_bytes()); // without a newline at the end
    let file = scratch.file("fleet.jsonl", &bytes);
    let outcome = call(["verify"]).arg(demo()).arg("--fleet").arg(&file).run().expect(2);
    snapshot::check("machine/fleet_mistakes", &printed(&outcome, &[(&scratch, "<scratch>")]));
    // A refusal takes precedence over an unreadable line.
    let refused = r#"{"driver": {"user": "535.1"}, "gpus": [{"cc": "8.0"}]}"#;
    let file = scratch.file("refused.jsonl", format!("nothing\n{refused}\n{}", "nothing\n".repeat(20)));
    let outcome = call(["verify"]).arg(demo()).arg("--fleet").arg(&file).run().expect(1);
    assert!(outcome.stderr.contains("11 more entries cannot be read"), "{outcome}");
}

#[e2e]
fn invalid_lists_are_rejected() {
    let scratch = Scratch::new("fleet-none");
    let mut text = String::new();
    let (empty, blank) = (scratch.file("empty.jsonl", ""), scratch.file("blank.jsonl", "\n \n"));
    let dir = scratch.join("folder");
    std::fs::create_dir(&dir).expect("a directory can be made");
    let fifo = scratch.join("fifo");
    let _ = Call::new("mkfifo").arg(&fifo).run().success();
    let wide = scratch.file("wide.xml", [0xff, 0xfe, 0, 0xdc]);
    for file in [&empty, &blank, &wide, &dir, &scratch.join("absent.jsonl"), scratch.path(), &fifo] {
        let outcome = call(["verify"]).arg(demo()).arg("--fleet").arg(file).run().expect(2);
        text.push_str(&printed(&outcome, &[(&scratch, "<scratch>")]));
    }
    snapshot::check("machine/fleet_none", &text);
}

/// Returns the path of a list of this suite.
fn kept(name: &str) -> std::path::PathBuf {
    cudaguard_tests::places::workspace().join("tests/e2e/machine/fleets").join(name)
}

/// Reads nvidia-smi's XML and CSV, Kubernetes nodes, and a directory with all of these.
#[e2e]
fn real_inventories_are_read() {
    let dir = kept("");
    for name in [
        "smi.xml",
        "smi-390.xml",
        "smi-mig.xml",
        "smi-two.xml",
        "smi.csv",
        "smi-odd.csv",
        "hosts.csv",
        "nodes.json",
        "folder",
    ] {
        let outcome = call(["verify"]).arg(fixture::of_driver()).arg("--fleet").arg(kept(name)).run();
        let made = fixture::of_driver().parent().expect("a folder");
        let text = printed(&outcome, &[(dir.as_path(), "fleets/"), (made, "<made>")]);
        snapshot::check(&format!("machine/fleet_of_{}", name.replace('.', "_")), &text);
    }
}

/// All formats describe the same machine, so there is one verdict.
#[e2e]
fn host_formats_agree() {
    let scratch = Scratch::new("fleet-forms");
    let forms = [
        r#"{"name": "a", "driver": {"user": "550.127.05", "kernel": "550.127.05", "cuda": "12.4"}, "gpus": [{"cc": "8.6"}]}"#,
        "<nvidia_smi_log><driver_version>550.127.05</driver_version><cuda_version>12.4</cuda_version><gpu><product_name>NVIDIA A40</product_name></gpu></nvidia_smi_log>",
        "host, name, driver_version\na, NVIDIA A40, 550.127.05\n",
        "compute_cap, driver_version\n8.6, 550.127.05\n",
        r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "6",
            "nvidia.com/cuda.driver-version.major": "550", "nvidia.com/cuda.driver-version.minor": "127", "nvidia.com/cuda.driver-version.revision": "05",
            "nvidia.com/cuda.runtime-version.major": "12", "nvidia.com/cuda.runtime-version.minor": "4"}}}"#,
    ];
    let mut verdicts = Vec::new();
    for (at, form) in forms.iter().enumerate() {
        let file = scratch.file(format!("{at}"), form);
        let outcome =
            call(["verify"]).arg(fixture::of_driver()).arg("--json").arg("--fleet").arg(&file).run().expect(1);
        let value = outcome.json();
        verdicts.push((value["verdict"].clone(), value["findings"].clone(), value["change"].clone()));
    }
    assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{verdicts:#?}");
    assert_eq!(verdicts[0].2, "driver 580 or newer");
}

/// Any contents produce an error message, without a panic and without exhausting the memory.
#[e2e(slow)]
fn contradictory_lists_are_reported() {
    let scratch = Scratch::new("fleet-lies");
    let deep = format!("<nvidia_smi_log>{}", "<a>".repeat(100_000));
    let nested = format!(r#"{{"apiVersion": "v1", "items": [{}"#, "[".repeat(100_000));
    let long = format!(r#"{{"apiVersion": "v1", "items": [{{"kind": "{}"}}]}}"#, "x".repeat(20 * 1024 * 1024));
    let entity = "<!DOCTYPE a [<!ENTITY b \"c\"><!ENTITY d \"&b;&b;&b;\">]><nvidia_smi_log><driver_version>&d;</driver_version></nvidia_smi_log>";
    let mut text = String::new();
    for (name, what) in [
        ("deep.xml", deep.as_str()),
        ("other.xml", "<html><body>nvidia-smi</body></html>"),
        ("cut.xml", "<nvidia_smi_log>\n<driver_version>550.54.14</driver_version>\n<gpu>"),
        ("odd.xml", "<nvidia_smi_log>\n<driver_version>new</driver_version></nvidia_smi_log>"),
        ("entity.xml", entity),
        ("nested.json", &nested),
        ("long.json", &long),
        ("cut.json", r#"{"apiVersion": "v1", "items": [{"kind": "Node", "metadata": "#),
        ("pods.json", r#"{"apiVersion": "v1", "items": [{"kind": "Pod", "metadata": {"name": "a"}}]}"#),
        ("none.json", r#"{"apiVersion": "v1"}"#),
        ("text.json", r#"{"apiVersion": "v1", "items": "none"}"#),
        (
            "no-gpu.json",
            r#"{"apiVersion": "v1", "items": [{"kind": "Node", "metadata": {"name": "a", "labels": {}}}]}"#,
        ),
        (
            "version.xml",
            "<nvidia_smi_log>\n<driver_version>550.54.14</driver_version>\n<cuda_version>twelve</cuda_version>\n\n</nvidia_smi_log>",
        ),
        ("nothing.xml", "<nvidia_smi_log>\n<driver_version>N/A</driver_version>\n</nvidia_smi_log>"),
        (
            "second.xml",
            "<nvidia_smi_log><driver_version>550.54.14</driver_version></nvidia_smi_log>\n<nvidia_smi_log>\n<driver_version>1",
        ),
        (
            "people.txt",
            "\n==============NVSMI LOG==============\n\nDriver Version                            : 550.127.05\n",
        ),
        (
            "table.txt",
            "Thu Sep 11 20:22:19 2025\n+-----------------------+\n| NVIDIA-SMI 540.4.0    Driver Version: 540.4.0      CUDA Version: 12.6     |\n",
        ),
        ("mismatch.txt", "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.183\n"),
        (
            "failed.txt",
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n",
        ),
        ("none.txt", "No devices were found\n"),
        ("noheader.csv", "NVIDIA A40, 8.6, 550.127.05\n"),
        ("header.csv", "name, driver_version\n"),
        ("two-drivers.csv", "name, driver_version\nNVIDIA A40, 550.54.14\nNVIDIA A40, 535.54.03\n"),
    ] {
        let file = scratch.file(name, what);
        let outcome = call(["verify"]).arg(fixture::of_driver()).arg("--fleet").arg(&file).run();
        assert!(outcome.signal().is_none() && !outcome.stderr.contains("panicked"), "{name}: {outcome}");
        let made = fixture::of_driver().parent().expect("a folder");
        let _ = write!(text, "{name}\n{}", printed(&outcome, &[(&scratch, "<scratch>"), (made, "<made>")]));
    }
    snapshot::check("machine/fleet_lies", &text);
}

/// Returns the verdicts on [`fixture::of_driver`] for a list with this text.
#[track_caller]
fn verdicts(name: &str, text: &str) -> Vec<String> {
    let scratch = Scratch::new("fleet-verdicts");
    let file = scratch.file(name, text);
    let outcome = call(["verify"]).arg(fixture::of_driver()).arg("--json").arg("--fleet").arg(&file).run();
    let verdict = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        value["verdict"].as_str().expect("a verdict").to_owned()
    };
    outcome.stdout.lines().map(verdict).collect()
}

#[e2e]
fn unusable_gpus_are_ignored() {
    let log = |gpu: &str| {
        format!(
            "<nvidia_smi_log><driver_version>580.65.06</driver_version><gpu><product_name>NVIDIA A100</product_name>{gpu}</gpu></nvidia_smi_log>"
        )
    };
    let mig = |devices: &str| {
        log(&format!("<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices>{devices}</mig_devices>"))
    };
    for (text, verdict) in [
        (log(""), "runs"),
        (log("<compute_mode>Prohibited</compute_mode>"), "unknown"),
        (log("<gpu_reset_status><reset_required>Yes</reset_required></gpu_reset_status>"), "unknown"),
        (mig("None"), "unknown"),
        (mig("<mig_device><index>0</index></mig_device>"), "runs"),
        (log("<compute_mode>GPU requires reset</compute_mode>"), "unknown"),
        (log("<compute_mode>ERR!</compute_mode>"), "unknown"),
        (log("<compute_mode>Unknown Error</compute_mode>"), "unknown"),
        (log("<compute_mode>N/A</compute_mode>"), "runs"),
        (log("<mig_mode><current_mig>Unknown Error</current_mig></mig_mode>"), "unknown"),
        (log("<fan_speed>ERR!</fan_speed><power><draw>Unknown Error</draw></power>"), "runs"),
        (log("<fan_speed>GPU is lost</fan_speed>"), "unknown"),
        (log("<product_name>GPU is lost</product_name><pci><pci_device_id>20B010DE</pci_device_id></pci>"), "unknown"),
        (
            log(
                "<gpu_reset_status><reset_required>Requested functionality has been deprecated</reset_required></gpu_reset_status>",
            ),
            "runs",
        ),
        (log("<gpu_recovery_action>None</gpu_recovery_action><fabric><state>N/A</state></fabric>"), "runs"),
        (log("<gpu_recovery_action>Drain and Reset</gpu_recovery_action>"), "runs"),
        (log("<gpu_recovery_action>Reset</gpu_recovery_action>"), "unknown"),
        (log("<gpu_recovery_action>Reboot</gpu_recovery_action>"), "unknown"),
        (log("<fabric><state>Completed</state><status>Success</status></fabric>"), "runs"),
        (log("<fabric><state>In Progress</state><status>N/A</status></fabric>"), "unknown"),
        ("name, driver_version, mig.mode.current\nNVIDIA A100, 580.65.06, Enabled\n".to_owned(), "unknown"),
        ("name, driver_version, mig.mode.current\nNVIDIA A100, 580.65.06, [N/A]\n".to_owned(), "runs"),
        ("name, driver_version, compute_mode\nNVIDIA A100, 580.65.06, Prohibited\n".to_owned(), "unknown"),
        ("name, driver_version, compute_mode\nNVIDIA A100, 580.65.06, [GPU requires reset]\n".to_owned(), "unknown"),
        ("name, driver_version, mig.mode.current\nNVIDIA A100, 580.65.06, [Unknown Error]\n".to_owned(), "unknown"),
        ("name, driver_version, fan.speed [%]\nNVIDIA A100, 580.65.06, [Unknown Error]\n".to_owned(), "runs"),
        ("name, driver_version, fan.speed [%]\nNVIDIA A100, 580.65.06, [GPU is lost]\n".to_owned(), "unknown"),
        ("name, pci.device_id, driver_version\n[GPU is lost], 0x20B010DE, 580.65.06\n".to_owned(), "unknown"),
        ("name, driver_version, gpu_recovery_action\nNVIDIA A100, 580.65.06, Reboot\n".to_owned(), "unknown"),
        ("name, driver_version, gpu_recovery_action\nNVIDIA A100, 580.65.06, None\n".to_owned(), "runs"),
        ("name, driver_version, fabric.state\nNVIDIA A100, 580.65.06, In Progress\n".to_owned(), "unknown"),
    ] {
        assert_eq!(verdicts("list", &text), [verdict], "{text}");
    }
}

#[e2e]
fn nodes_without_compute_capability() {
    let driver = r#""nvidia.com/cuda.driver.major": "580", "nvidia.com/cuda.driver.minor": "65", "nvidia.com/cuda.driver.rev": "06""#;
    let node = |labels: &str, status: &str| {
        format!(
            r#"{{"apiVersion": "v1", "kind": "Node", "metadata": {{"name": "a", "labels": {{{driver}{labels}}}}}, "status": {{{status}}}}}"#
        )
    };
    let product = r#", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB""#;
    let lists =
        |capacity: &str, allocatable: &str| format!(r#""capacity": {{{capacity}}}, "allocatable": {{{allocatable}}}"#);
    let capacity = |resources: &str| lists(resources, resources);
    for (labels, status, expected) in [
        ("", String::new(), &[][..]),
        ("", capacity(r#""nvidia.com/gpu": "0""#), &[]),
        ("", capacity(r#""nvidia.com/gpu": "8""#), &["unknown"]),
        ("", lists(r#""nvidia.com/gpu": "8""#, r#""nvidia.com/gpu": "0""#), &["unknown"]),
        ("", capacity(r#""nvidia.com/mig-1g.5gb": "7""#), &["unknown"]),
        ("", capacity(r#""nvidia.com/GA102GL_A10": "2""#), &["unknown"]),
        ("", capacity(r#""nvidia.com/hostdev": "8", "nvidia.com/sriov_rdma_vf": "8""#), &[]),
        ("", capacity(r#""volcano.sh/vgpu-number": "10""#), &["unknown"]),
        ("", capacity(r#""aliyun.com/gpu-mem": "16""#), &["unknown"]),
        (r#", "nvidia.com/gpu.present": "true""#, String::new(), &["unknown"]),
        (r#", "nvidia.com/gpu.family": "ampere", "nvidia.com/gpu.memory": "40960""#, String::new(), &["unknown"]),
        (r#", "feature.node.kubernetes.io/pci-0302_10de_20b0.present": "true""#, String::new(), &["unknown"]),
        (r#", "feature.node.kubernetes.io/pci-0300_10de.present": "true""#, String::new(), &["unknown"]),
        (r#", "feature.node.kubernetes.io/pci-0680_10de.present": "true""#, String::new(), &[]),
        (product, String::new(), &["runs"]),
        (product, capacity(r#""nvidia.com/gpu": "0", "nvidia.com/hostdev": "8""#), &["unknown"]),
        (product, capacity(r#""nvidia.com/hostdev": "8""#), &["runs"]),
        (product, capacity(r#""nvidia.com/gpu": "0", "nvidia.com/GA102GL_A10": "8""#), &["unknown"]),
        (product, capacity(r#""nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "8""#), &["runs"]),
        (product, capacity(r#""nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "7""#), &["runs"]),
        (
            r#", "cloud.google.com/gke-accelerator": "nvidia-tesla-t4""#,
            capacity(r#""nvidia.com/gpu": "1""#),
            &["refused"],
        ),
        (r#", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-INVALID""#, String::new(), &["unknown"]),
    ] {
        assert_eq!(verdicts("nodes.json", &node(labels, &status)), *expected, "{labels} {status}");
    }
}
