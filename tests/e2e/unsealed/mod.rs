//! Files that nobody sealed: the shim sees their kernels by itself, and says what it says of the sealed twin.

mod bed;

use cudaguard_tests::world;
use cudaguard_tests::{Scratch, Trial, tools, trials};

use bed::{Build, before_linking, object, told, worlds};

pub(crate) fn trials() -> Vec<Trial> {
    trials![as_the_sealed_twin]
}

/// (what, the flags of each of its objects).
const BUILDS: &[(&str, &[&str])] = &[
    ("no kernels", &[]),
    ("sm_80", &["-gencode arch=compute_80,code=sm_80"]),
    ("sm_80 and PTX", &["-gencode arch=compute_80,code=[sm_80,compute_80]"]),
    ("PTX alone", &["-gencode arch=compute_90,code=compute_90"]),
    ("sm_90a", &["-gencode arch=compute_90a,code=sm_90a"]),
    ("sm_100f and sm_120", &["-gencode arch=compute_100f,code=sm_100f -gencode arch=compute_120,code=sm_120"]),
    ("partial", &["-gencode arch=compute_80,code=sm_80", "-gencode arch=compute_90a,code=sm_90a"]),
    ("partial by PTX", &["-gencode arch=compute_80,code=compute_80", "-gencode arch=compute_90a,code=sm_90a"]),
    ("all", &["-arch=all", "-arch=all-major"]),
    ("Tegra", &["-gencode arch=compute_87,code=sm_87"]),
];

/// The table: builds × machines × variables.
fn as_the_sealed_twin() {
    world::need();
    for tool in ["cc", "g++"] {
        tools::need(tool);
    }
    let machines: Vec<_> = worlds()
        .into_iter()
        .map(|(name, world)| {
            let scratch = Scratch::new("unsealed-world");
            let machine = world.make(&scratch.join("world"));
            (name, scratch, machine)
        })
        .collect();
    let mut refused = 0;
    for (what, objects) in BUILDS {
        let scratch = Scratch::without_blanks("unsealed");
        let objects: Vec<_> =
            objects.iter().enumerate().map(|(at, flags)| object(scratch.path(), &format!("k{at}"), flags)).collect();
        let manifest = before_linking();
        let twins = Build { compiler: "cc", options: &[], manifest: &manifest }.make(scratch.path(), &objects);
        for (name, place, machine) in &machines {
            for variables in [&[][..], &[("CUDA_FORCE_PTX_JIT", "1")], &[("CUDA_DISABLE_PTX_JIT", "1")]] {
                let [unsealed, sealed] = twins.each_ref().map(|twin| told(place, machine, twin, variables));
                let told = unsealed.0.replace("/unsealed/", "/sealed/");
                assert_eq!(told, sealed.0, "{what} on {name} with {variables:?}");
                assert_eq!(unsealed.1, sealed.1, "{what} on {name} with {variables:?}");
                refused += usize::from(told.starts_with("status Some(78)"));
            }
        }
    }
    assert!(refused > 50, "the table has refusals: {refused}");
}
