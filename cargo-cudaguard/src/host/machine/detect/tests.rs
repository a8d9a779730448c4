use super::*;

/// A directory laid out like the root of a machine; removed on drop.
struct Fake(tempfile::TempDir);

impl Fake {
    fn new(files: &[(&str, &str)]) -> Self {
        let fake = Self(tempfile::tempdir().expect("a directory can be made"));
        for (name, text) in files {
            let path = fake.0.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a directory can be made");
            fs::write(path, text).expect("a file can be written");
        }
        fake
    }

    fn detect_in_root(&self) -> Machine {
        let mut machine = Machine::default();
        Root(self.0.path().to_owned()).detect_hardware(&mut machine);
        machine
    }
}

const INFORMATION: &str = "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 120\nGPU UUID: \t GPU-5c6e1fb4-0d1f-2c34-\
                           8c1b-3a0f0b6ce2d1\nVideo BIOS: \t 92.00.45.00.03\nBus Type: \t PCIe\nDevice Minor: \t 0\n";

#[test]
fn kernel_module_lines_are_parsed() {
    for (line, expected) in [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023", "535.129.03"),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.91.07  Release Build  (dvs-builder@U22)  Wed",
            "595.91.07",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release Build  (buildbrain@x)  Tue",
            "540.4.0",
        ),
        ("GCC version:  gcc 12\nNVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27", "580.65.06"),
    ] {
        assert_eq!(kernel_module(line).map(|release| release.to_string()).as_deref(), Some(expected), "{line}");
    }
    for none in ["", "NVRM version: ", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  soon", "Kernel Module 535.1"] {
        assert_eq!(kernel_module(none), None, "{none}");
    }
}

#[test]
fn gpus_are_read_from_procfs() {
    let fake = Fake::new(&[
        ("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue\n"),
        ("proc/driver/nvidia/gpus/0000:3b:00.0/information", INFORMATION),
        ("sys/bus/pci/devices/0000:3b:00.0/device", "0x20b0\n"),
        ("dev/nvidia0", ""),
        // A GPU with an unknown id, and whose device is not accessible to this process.
        (
            "proc/driver/nvidia/gpus/0000:af:00.0/information",
            "Model: \t Unknown\nGPU UUID: \t GPU-????\nDevice Minor: 1\n",
        ),
        ("sys/bus/pci/devices/0000:af:00.0/device", "0xfffe\n"),
    ]);
    let machine = fake.detect_in_root();
    assert_eq!(machine.driver.unwrap().kernel, Some(DriverRelease::new(550, 163, 1)));
    let text = |text: &str| Some(text.to_owned());
    let a100 = Gpu {
        name: text("NVIDIA A100-SXM4-40GB"),
        cc: Some((8, 0)),
        uuid: text("GPU-5c6e1fb4-0d1f-2c34-8c1b-3a0f0b6ce2d1"),
        pci: text("0000:3b:00.0"),
        visible: None,
        state: None,
        listed: true,
    };
    let other = Gpu { pci: text("0000:af:00.0"), visible: Some(false), listed: true, ..Gpu::default() };
    assert_eq!(machine.gpus, Some(vec![a100, other]));
    assert_eq!((machine.kind, machine.warnings.len()), (None, 0));
}

#[test]
fn host_kinds_are_detected() {
    let bare = Fake::new(&[("etc/os-release", "")]).detect_in_root();
    assert_eq!((bare.kind, bare.gpus, bare.driver), (None, None, Some(Driver::default())));
    assert_eq!(Fake::new(&[("dev/dxg", "")]).detect_in_root().kind, Some(MachineKind::Wsl2));
    assert_eq!(Fake::new(&[("etc/nv_tegra_release", "# R36")]).detect_in_root().kind, Some(MachineKind::Jetson));
    let tree = "nvidia,p3737-0000+p3701-0005\0nvidia,p3701-0005\0nvidia,tegra234\0";
    assert_eq!(Fake::new(&[("proc/device-tree/compatible", tree)]).detect_in_root().kind, Some(MachineKind::Jetson));
    // In a container the directory can exist and be empty.
    let masked = Fake::new(&[("proc/driver/nvidia/version", "what?\n"), ("proc/driver/nvidia/gpus/x/information", "")]);
    assert_eq!(masked.detect_in_root().warnings, ["/proc/driver/nvidia/version contains no release"]);
    assert_eq!(masked.detect_in_root().gpus.unwrap()[0].cc, None);
}

#[test]
fn cuda_compat_notes_are_read() {
    let note = parse_compat_note(b"{\"format\":1,\"CUDA version\":\"12.9\",\"driver\":[535,550],\"device\":[1,2]}\0\0")
        .unwrap();
    assert_eq!((note.cuda.unwrap().to_string(), note.branches), ("12.9".to_owned(), vec![535, 550]));
    // The note of Orin has no list of branches.
    assert_eq!(parse_compat_note(b"{\"format\":1,\"CUDA version\":\"13.2\"}").unwrap().branches, [0; 0]);
    assert_eq!(parse_compat_note(b"\xff{"), None);
}

#[test]
fn pci_addresses_are_parsed() {
    assert_eq!(normalize_slot("00000000:3B:00.0"), normalize_slot("0000:3b:00.0"));
    assert_ne!(normalize_slot("0001:3b:00.0"), normalize_slot("0000:3b:00.0"));
    assert_eq!(normalize_slot("junk"), "junk");
}

#[test]
fn driver_facts_precede_files() {
    let fake = Fake::new(&[
        ("proc/driver/nvidia/gpus/0000:3b:00.0/information", INFORMATION),
        ("sys/bus/pci/devices/0000:3b:00.0/device", "0x20b0\n"),
        ("proc/driver/nvidia/gpus/0000:af:00.0/information", "Model: NVIDIA T4\nDevice Minor: 1\n"),
        ("sys/bus/pci/devices/0000:af:00.0/device", "0x1eb8\n"),
    ]);
    let (mut machine, mut driver) = (fake.detect_in_root(), Driver::default());
    let device = super::super::driver_probe::Device {
        pci: Some("00000000:AF:00.0".to_owned()),
        cc: Some((7, 5)),
        ..Default::default()
    };
    apply_probe(
        &Env::from_process(),
        &mut machine,
        &mut driver,
        DriverAnswers { init: Some(0), gpus: Some(vec![device]), ..DriverAnswers::default() },
    );
    let gpus = machine.gpus.unwrap();
    assert_eq!(
        gpus.iter().map(|gpu| (gpu.cc, gpu.visible)).collect::<Vec<_>>(),
        [(Some((7, 5)), Some(true)), (Some((8, 0)), Some(false))]
    );
    assert_eq!(gpus[0].name.as_deref(), Some("NVIDIA T4"));
}
