//! Machines that a host file or flags describe.

use std::fs;

use cargo_cudaguard::binary::symbols::Bound;
use cargo_cudaguard::host::machine::{
    CompatPackage, Driver, Gpu, GpuState, HostLibrary, HostLibraryPart, LoaderVersion, Machine, MachineKind,
};
use cargo_cudaguard::knowledge::vendor;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};
use cudaguard_tests::{Call, Scratch, codes, command, e2e, places, snapshot};
use serde_json::Value;

use super::fixture::{call, demo, host, printed};

/// The host files are written manually. They do not come from real machines.
#[e2e]
fn host_kinds_are_checked() {
    let names = [
        "t4-535",
        "a100-550",
        "h100-580",
        "b200-595",
        "orin",
        "wsl2",
        "p100-580",
        "no-gpu",
        "half-updated",
        "two-unlike",
        "almost-nothing",
    ];
    let mut text = String::new();
    for name in names {
        let outcome = call(["verify".as_ref(), demo().as_os_str(), "--host".as_ref(), host(name).as_os_str()]).run();
        text = text + "== " + name + "\n" + &printed(&outcome, &[]) + "\n";
    }
    snapshot::check("machine/host_kinds_are_checked", &text);
}

#[e2e]
fn json_output_matches_snapshot() {
    for (name, verdict, status, expected) in [
        ("h100-580", "runs", 0, &[][..]),
        ("a100-550", "refused", 1, &["CG301 error", "CG202 error"]),
        ("no-gpu", "unknown", 2, &["CG504 info"]),
        ("two-unlike", "runs", 0, &["CG303 info", "CG313 info"]),
        ("half-updated", "refused", 1, &["CG304 error"]),
    ] {
        let outcome = call(["verify".as_ref(), demo().as_os_str()]).args(["--json", "--host"]).arg(host(name)).run();
        let value = outcome.expect(status).json();
        assert_eq!(value["verdict"], verdict, "{name}: {value}");
        assert_eq!(value["file"], demo().display().to_string());
        assert_eq!(codes(&value), expected, "{name}: {value}");
        for finding in value["findings"].as_array().expect("findings") {
            let finding = finding.as_object().expect("an object");
            for key in ["code", "component", "hint", "message", "severity", "subject"] {
                assert!(finding.contains_key(key), "{key}: {finding:?}");
            }
            // The facts of the message are keys, too.
            let facts = |code: &str| finding["code"] == code;
            assert!(!facts("CG301") || finding["needs_cuda"] == "13.0", "{finding:?}");
            assert!(!facts("CG303") || finding.contains_key("gpus"), "{finding:?}");
        }
    }
}

#[e2e]
fn flags_describe_a_host() {
    for (flags, verdict, expected) in [
        ("--driver 580.65.06 --gpu 8.6 --cudnn 9.15.1", "runs", &[][..]),
        ("--driver R580 --kernel 580 --gpu sm_90 --cudnn 9.28.0", "runs", &[]),
        ("--driver 580.65.06-1ubuntu1 --gpu A100 T4 --cudnn 9.15.1", "refused", &["CG303 error"]),
        ("--driver 580.65.06 --gpu A100 T4 --together --cudnn 9.15.1", "runs", &["CG303 info"]),
        ("--driver 580.65.06 --gpu A100,H100 --cudnn 9.15.1", "runs", &[]),
        ("--driver 535 --gpu RTX5090,A100 --cudnn 9.15.1", "refused", &["CG317 error", "CG301 error"]),
        ("--driver 535 --gpu 8.6 --cudnn 9.15.1", "refused", &["CG301 error"]),
        ("--driver 580.65.06 --gpu 8.6 --cudnn none", "refused", &["CG205 error"]),
        ("--driver 580.65.06 --gpu 8.6 --cudnn 8.9.7", "refused", &["CG201 error"]),
        ("--driver 580.65.06 --gpu T4 --cudnn 9.15.1", "refused", &["CG303 error"]),
        ("--driver none --gpu none --cudnn 9.15.1", "unknown", &["CG504 info"]),
        ("--driver 580.65.06 --gpu none --cudnn 9.15.1", "unknown", &["CG504 info"]),
        ("--driver 700 --gpu 13.0 --cudnn 9.15.1", "runs", &[]),
        ("--driver 540.4.0 --kernel 540.4.0 --gpu 8.7 --cudnn 9.15.1", "unknown", &["CG505 info"]),
        (
            "--gpu 6.1,7.5",
            "refused",
            &["CG303 error", "CG303 error", "CG313 error", "CG501 info", "CG505 info", "CG505 info"],
        ),
        ("--gpu 6.1,7.5 --together", "refused", &["CG303 error", "CG313 error", "CG501 info", "CG505 info"]),
        // No option asks about the driver or the GPU.
        ("--cudnn 9.15.1", "runs", &["CG505 info"]),
        // libcuda decides; the kernel module alone never refuses.
        ("--kernel 535.261.03 --gpu 8.0 --cudnn 9.15.1", "runs", &["CG505 info"]),
    ] {
        let outcome = call(["verify"]).arg(demo()).arg("--json").args(flags.split(' ')).run();
        let value = outcome.json();
        assert_eq!(
            (value["verdict"].as_str(), codes(&value)),
            (Some(verdict), expected.iter().map(|code| (*code).to_owned()).collect()),
            "{flags}: {value}"
        );
    }
}

/// A description cannot contain everything that the doctor of the machine would find.
#[e2e]
fn missing_facts_are_named() {
    let mut text = String::new();
    for (flags, status) in [
        ("--gpu 8.6", 0),
        ("--driver 580.65.06", 0),
        ("--kernel 535.261.03 --gpu 8.6", 0),
        ("--cudnn 9.15.1", 0),
        // Everything is stated, and no table lists this driver.
        ("--driver 540.4.0 --kernel 540.4.0 --gpu 8.7 --cudnn 9.15.1", 2),
    ] {
        let outcome = call(["verify"]).arg(demo()).args(flags.split(' ')).run().expect(status);
        text = text + "== " + flags + "\n" + &printed(&outcome, &[]);
    }
    // cuda-compat with a kernel module that no table lists for it, and with one that is listed, with an unnamed GPU.
    let scratch = Scratch::new("lacking");
    for driver in [
        r#""user": "580.95.05", "kernel": "550.163.01", "library": "/usr/local/cuda-13.0/compat/libcuda.so.1""#,
        r#""user": "580.95.05", "kernel": "535.261.03", "compat": {"cuda": "13.0", "branches": [535]}"#,
    ] {
        let host =
            format!(r#"{{"driver": {{{driver}}}, "gpus": [{{"cc": "8.0"}}], "cudnn": [{{"version": "9.15.1"}}]}}"#);
        let host = scratch.file("host.json", host);
        let outcome = call(["verify"]).arg(demo()).arg("--host").arg(host).run().expect(2);
        text = text + "== " + driver + "\n" + &printed(&outcome, &[(&scratch, "<scratch>")]);
    }
    snapshot::check("machine/missing_facts_are_named", &text);
}

#[e2e]
fn meaningless_flags_are_rejected() {
    let mut text = String::new();
    for flags in
        ["--driver latest", "--kernel 5x", "--gpu fast", "--gpu 8", "--cudnn nine", "--driver 535 --host x.json"]
    {
        let outcome = call(["verify"]).arg(demo()).args(flags.split(' ')).run().expect(2);
        text = text + "== " + flags + "\n" + &printed(&outcome, &[]);
    }
    snapshot::check("machine/meaningless_flags_are_rejected", &text);
}

#[e2e]
fn invalid_host_files_are_rejected() {
    let scratch = Scratch::new("host-files");
    let mut huge = b"{\"name\": \"".to_vec();
    huge.resize(17 * 1024 * 1024, b'x');
    let deep = "[".repeat(100_000);
    let whole = fs::read(host("h100-580")).expect("a host file");
    let files: [(&str, &[u8]); 13] = [
        ("empty.json", b""),
        ("blank.json", b" \n\n"),
        ("cut.json", &whole[..whole.len() / 2]),
        ("list.json", b"[]"),
        ("latin1.json", b"{\"name\": \"Gr\xfc\xdfe\"}"),
        ("binary.json", b"\x7fELF\x02\x01\x01\x00"),
        ("type.json", b"{\n  \"driver\": {\n    \"user\": 535\n  }\n}\n"),
        ("twice.json", b"{\n  \"gpus\": [{\"cc\": \"8.0\",\n    \"cc\": \"9.0\"}]\n}\n"),
        ("smi.xml", b"<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n</nvidia_smi_log>\n"),
        ("smi.txt", b"GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-0)\n"),
        ("several.json", b"{\"name\": \"a\"}\n{\"name\": \"b\"}\n"),
        ("deep.json", deep.as_bytes()),
        ("huge.json", &huge),
    ];
    let mut text = String::new();
    for (name, content) in files {
        let file = scratch.file(name, content);
        let outcome =
            call(["verify".as_ref(), demo().as_os_str(), "--host".as_ref(), file.as_os_str()]).run().expect(2);
        assert!(outcome.stdout.is_empty(), "{outcome}");
        text.push_str(&printed(&outcome, &[(&scratch, "<scratch>")]));
    }
    // The FIFO has no writer, so opening it would block.
    let fifo = scratch.join("fifo");
    let _ = Call::new("mkfifo").arg(&fifo).run().success();
    for other in [scratch.join("absent.json"), scratch.path().to_owned(), fifo, "/dev/zero".into()] {
        let outcome =
            call(["verify".as_ref(), demo().as_os_str(), "--host".as_ref(), other.as_os_str()]).run().expect(2);
        text.push_str(&printed(&outcome, &[(&scratch, "<scratch>")]));
    }
    snapshot::check("machine/invalid_host_files_are_rejected", &text);
}

/// Runs `verify --host <(ssh box cargo-cudaguard probe --json)`, and the same with `--fleet`.
#[e2e]
fn host_file_is_read_from_pipe() {
    for place in ["--host", "--fleet"] {
        let outcome = Call::new("bash")
            .args(["-c", r#""$0" verify "$1" "$2" <(tr -d '\n' <"$3")"#])
            .args([command::path(), demo()])
            .arg(place)
            .arg(host("h100-580"))
            .run()
            .success();
        assert!(outcome.stdout.contains("run"), "{outcome}");
    }
}

#[e2e]
fn newer_host_file_is_read() {
    let scratch = Scratch::new("newer-host");
    let file = scratch.file(
        "host.json",
        r#"{"revision": 9, "driver": {"user": "700.1", "qpu": []}, "gpus": [{"cc": "8.0"}],
        "cudnn": [{"version": "9.15.1"}]}"#,
    );
    let outcome = call(["verify".as_ref(), demo().as_os_str(), "--host".as_ref(), file.as_os_str()]).run().success();
    assert!(outcome.stderr.contains("has revision 9, which is newer than this cudaguard"), "{outcome}");
    assert!(outcome.stdout.contains(": runs ("), "{outcome}");
}

/// Walks through a host file with all facts, key by key.
#[e2e]
fn schema_and_page_list_all_keys() {
    fn walk(value: &Value, schema: &Value, whole: &Value, at: &str, page: &str) {
        let schema = match schema["$ref"].as_str() {
            Some(name) => &whole["definitions"][name.rsplit('/').next().expect("a name")],
            None => schema,
        };
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    let at = format!("{at}.{key}");
                    let known = schema["properties"].get(key).or_else(|| schema.get("additionalProperties"));
                    let known = known.unwrap_or_else(|| panic!("the schema does not know {at}"));
                    assert!(
                        page.contains(&format!("`{key}`")) || at.contains("sources."),
                        "docs/reference/host-file.md does not name {at}"
                    );
                    walk(value, known, whole, &at, page);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, &schema["items"], whole, at, page)),
            other => {
                let kind = match other {
                    Value::Bool(_) => "boolean",
                    Value::Number(_) => "integer",
                    _ => "string",
                };
                assert_eq!(schema["type"], kind, "{at}");
            }
        }
    }
    let text = |text: &str| Some(text.to_owned());
    let part =
        HostLibraryPart { file: "libcudnn_graph.so.9".to_owned(), version: Some(Version::new(9, 1, 0)), path: None };
    let library = HostLibrary {
        soname: text("libcudnn.so.9"),
        version: Some(Version::new(9, 1, 0)),
        path: text("/x"),
        problem: text("is empty"),
        taken: false,
        by: text("LD_LIBRARY_PATH: /x"),
        parts: Some(vec![part]),
        loader: LoaderVersion::Minor(9, 15),
        cuda: Some(CudaVersion::new(12, 4)),
        needs: vec!["libcublasLt.so.12".to_owned()],
        binds: vec![Bound {
            soname: "libcublasLt.so.12".to_owned(),
            name: "cublasLtCreate".to_owned(),
            first: Version::new(12, 4, 0),
        }],
    };
    let cuda = Some(CudaVersion::new(12, 2));
    let release = Some(DriverRelease::new(535, 261, 3));
    let machine = Machine {
        name: text("x"),
        platform: text("x86_64-linux"),
        kind: Some(MachineKind::Wsl2),
        driver: Some(Driver {
            absent: true,
            library: text("/x"),
            user: release,
            kernel: release,
            cuda,
            init: Some(0),
            ptx_compiler: Some(true),
            compat: Some(CompatPackage { cuda, branches: vec![535] }),
            ordinary: true,
        }),
        gpus: Some(vec![Gpu {
            name: text("T4"),
            cc: Some((7, 5)),
            uuid: text("x"),
            pci: text("x"),
            visible: Some(true),
            state: Some(GpuState::ResetRequired),
            listed: true,
        }]),
        libraries: vendor::DESCRIBED.into_iter().map(|of| (of.key, vec![library.clone()])).collect(),
        variables: vec![("CUDA_VISIBLE_DEVICES".to_owned(), "0".to_owned())],
        sources: vec![("driver.user".to_owned(), "x".to_owned())],
        warnings: vec!["x".to_owned()],
    };
    let root = places::workspace();
    let file = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let schema: Value = serde_json::from_str(&file("templates/cudaguard-host.schema.json")).expect("JSON");
    let page = file("docs/reference/host-file.md");
    let value: Value = serde_json::to_value(machine.to_host_file()).expect("JSON");
    walk(&value, &schema, &schema, "", &page);
    // All examples of the page and all host files of this suite match the schema.
    let examples = page.split("```json").skip(1).map(|rest| rest.split("```").next().expect("an end").to_owned());
    let hosts = fs::read_dir(root.join("tests/e2e/machine/hosts")).expect("a folder");
    let hosts = hosts.map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a text"));
    for text in examples.chain(hosts) {
        Machine::read(&text).unwrap_or_else(|mistake| panic!("{mistake}: {text}"));
    }
}

/// The shim has its own table of GPUs. Its entries equal the command's for all ids.
#[e2e]
fn shim_and_command_gpus_match() {
    let scratch = Scratch::new("pci-ids");
    let source = "#include \"shim.c\"\n#include <stdio.h>\nint main(void) {\n  char id[16];\n  for (int n = 0; n < 65536; n++) {\n    \
                  snprintf(id, sizeof id, \"0x%04x\\n\", n);\n    printf(\"%d\\n\", get_capability(id));\n  }\n}\n";
    let main = scratch.file("main.c", source);
    let program = scratch.join("ids");
    let compile = Call::new("cc").args(["-w", "-O1", "-I"]).arg(places::templates());
    let _ = compile.arg("-o").args([&program, &main]).arg("-ldl").run().success();
    let theirs = Call::new(&program).run().success().stdout;
    let theirs: Vec<u32> = theirs.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(theirs.len(), 65536);
    for (id, theirs) in (0..=u16::MAX).zip(theirs) {
        let ours = cargo_cudaguard::host::machine::cc_of_pci_device(id);
        assert_eq!(ours.map_or(0, |(major, minor)| u32::from(major) << 8 | u32::from(minor)), theirs, "{id:#06x}");
    }
}
