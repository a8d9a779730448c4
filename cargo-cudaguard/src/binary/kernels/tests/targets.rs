//! Tests the targets of a file, which the note, the policy and `inspect` use.

use super::writer::{data, entry, fatbin, program};
use super::*;

fn lto(arch: u32) -> Vec<u8> {
    entry(&image(8, arch, 0, vec![0; 16]))
}

fn ptx(arch: u32) -> Vec<u8> {
    compute(arch, (8, 5))
}

/// Builds a program with these containers: complete ones, outputs of device links, and relocatable ones.
fn built(whole: &[Vec<u8>], linked: &[Vec<u8>], relocatable: &[Vec<u8>]) -> Kernels {
    let (mut section, mut records) = (Vec::new(), Vec::new());
    for container in linked {
        // The first section begins after the file's header; the record of a linked container has version 2.
        let address = 64 + section.len() as u64;
        records.extend([0x5062_43b1u32, 2].into_iter().flat_map(u32::to_le_bytes));
        records.extend([address, 0].into_iter().flat_map(u64::to_le_bytes));
        section.extend(container);
    }
    section.extend(whole.concat());
    let inputs = relocatable.concat();
    read_bytes(&program(&[
        data(".nv_fatbin", false, &section),
        data("__nv_relfatbin", false, &inputs),
        data(".nvFatBinSegment", true, &records),
    ]))
    .unwrap()
}

#[test]
fn targets_follow_counted_code() {
    let both = || fatbin(&[sm(75), ptx(75)]);
    let rows: &[(&str, Kernels, &str)] = &[
        ("nothing", built(&[], &[], &[]), ""),
        ("machine code and PTX", built(&[both()], &[], &[]), "sm_75 compute_75"),
        ("two files' code", built(&[fatbin(&[sm(80)]), both()], &[], &[]), "sm_75 sm_80 compute_75"),
        ("PTX only", built(&[fatbin(&[ptx(80)])], &[], &[]), "compute_80"),
        ("LTO-IR only", built(&[fatbin(&[lto(80)])], &[], &[]), ""),
        ("LTO-IR and machine code", built(&[fatbin(&[lto(90), sm(80)])], &[], &[]), "sm_80"),
        ("linked: the inputs' PTX counts", built(&[], &[fatbin(&[sm(75)])], &[both(), both()]), "sm_75 compute_75"),
        // The machine code of the inputs is relocatable, so no GPU runs it; the linker's output is in another
        // container.
        (
            "linked for fewer archs than the inputs have",
            built(&[], &[fatbin(&[sm(75)])], &[fatbin(&[sm(75), sm(90), ptx(90)]), fatbin(&[sm(75), ptx(90)])]),
            "sm_75 compute_90",
        ),
        // The driver links either all inputs or none.
        ("linked, one input without PTX", built(&[], &[fatbin(&[sm(75)])], &[both(), fatbin(&[sm(75)])]), "sm_75"),
        ("linked out of LTO-IR", built(&[], &[fatbin(&[sm(80)])], &[fatbin(&[lto(80)]), fatbin(&[lto(80)])]), "sm_80"),
        (
            "linked, with PTX and LTO-IR",
            built(&[], &[fatbin(&[sm(80)])], &[fatbin(&[lto(80), ptx(80)]), fatbin(&[lto(80), ptx(80)])]),
            "sm_80 compute_80",
        ),
        ("linked from PTX only", built(&[], &[fatbin(&[])], &[fatbin(&[ptx(75)])]), "compute_75"),
        // No device linker has processed them, so their own contents count.
        ("not linked yet", built(&[], &[], &[both(), fatbin(&[sm(90)])]), "sm_75 sm_90 compute_75"),
        ("not linked yet, LTO-IR", built(&[], &[], &[fatbin(&[lto(80)])]), ""),
        (
            "linked code and whole code",
            built(&[fatbin(&[sm(90)])], &[fatbin(&[sm(75)])], &[both()]),
            "sm_75 sm_90 compute_75",
        ),
    ];
    for (name, kernels, expected) in rows {
        assert_eq!(kernels.warnings(), [""; 0], "{name}");
        let targets: Vec<String> = kernels.built_targets().iter().map(Target::to_string).collect();
        assert_eq!(targets.join(" "), *expected, "{name}: {:?}", kernels.containers());
        // The groups that are compared with [gpu] archs have exactly the same targets.
        let mut of_groups: Vec<Target> =
            kernels.container_groups().into_iter().flat_map(|group| group.targets).collect();
        of_groups.sort_unstable();
        of_groups.dedup();
        assert_eq!(of_groups, kernels.built_targets(), "{name}");
        // Each target supports the GPU of its number.
        for target in kernels.built_targets() {
            assert_ne!(by(kernels, target.base_arch().cc()), Coverage::Nothing, "{name}: {target}");
        }
    }
}
