//! Hints of `verify` and `doctor` on simulated machines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudaguard::internal::manifest::GpuCoverage;
use cudaguard_tests::world::{A10, A100, H100, Library, RTX_4090, RTX_5090, T4, V100, World};
use cudaguard_tests::{Scratch, command, world};
use serde_json::Value;

use crate::machine::fixture;

use super::{hint_of, is_solved, part};

/// A fault of a machine, and the literal application of its hint. Of an update of the driver, the simulated machine gets the release
/// that the hint names.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) code: &'static str,
    scene: fn(&mut Place),
    fix: fn(&mut Place, &str),
}

impl Row {
    pub(super) fn check(&self) {
        world::need();
        let mut place = Place::new(self.name);
        (self.scene)(&mut place);
        let hint = hint_of(&place.run(), self.code);
        (self.fix)(&mut place, &hint);
        is_solved(&place.run(), self.code, &hint);
    }
}

/// A machine, a program on it, and the command that examines them.
struct Place {
    scratch: Scratch,
    /// Number of the machines that were made.
    made: usize,
    world: World,
    verb: &'static str,
    program: Option<PathBuf>,
    library_path: Vec<PathBuf>,
    variables: BTreeMap<&'static str, String>,
}

impl Place {
    fn new(name: &str) -> Self {
        Self {
            scratch: Scratch::without_blanks(name),
            made: 0,
            world: World::new("580.95.05", 13000, &[A100]),
            verb: "doctor",
            program: None,
            library_path: Vec::new(),
            variables: BTreeMap::new(),
        }
    }

    fn run(&mut self) -> Value {
        self.made += 1;
        let machine = self.world.make(&self.scratch.join(format!("machine{}", self.made)));
        let path: Vec<&PathBuf> = self.library_path.iter().chain(&machine.library_path).collect();
        let path = std::env::join_paths(path).expect("paths without colons");
        let path = path.to_str().expect("UTF-8").to_owned();
        let mut variables: Vec<(&str, &str)> =
            self.variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        if !path.is_empty() {
            variables.push(("LD_LIBRARY_PATH", &path));
        }
        let mut call = machine.call(command::path(), &variables).args([self.verb, "--json"]);
        if let Some(program) = &self.program {
            call = call.arg(program);
        }
        let outcome = call.run();
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
    }

    /// Examines a program that needs driver and GPU: cudart 13.0, machine code for 8.x, PTX for newer GPUs.
    fn verify_program(&mut self) {
        (self.verb, self.program) = ("verify", Some(fixture::of_driver().to_owned()));
    }

    /// Installs the driver of this release, which the hint names.
    fn install_driver(&mut self, release: &str) {
        let gpus = self.world.gpus.clone();
        let cuda =
            cudaguard::internal::tables::driver_supports(release.parse().expect("a release")).least.expect("a release");
        self.world = World::new(release.to_owned().leak(), cuda.major * 1000 + cuda.minor * 10, &gpus);
    }

    /// Sets the result of `cuInit`.
    fn answer(&mut self, status: u32) {
        self.world.library.as_mut().expect("a libcuda").init = status;
    }
}

fn is_in(path: &Path, list: &[PathBuf]) -> bool {
    list.iter().any(|other| other == path)
}

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "driver-too-old",
        code: "CG301",
        scene: |place| {
            place.world = World::new("535.261.03", 12020, &[A100]);
            place.verify_program();
        },
        fix: |place, hint| {
            let release = part(hint, "update the driver to ", " or newer").to_owned();
            place.install_driver(&release);
        },
    },
    Row {
        name: "no-code-for-the-gpu",
        code: "CG303",
        scene: |place| {
            place.world.gpus = vec![T4];
            place.verify_program();
        },
        fix: |place, hint| {
            let arch = part(hint, "rebuild it with ", " added").to_owned();
            assert_eq!(arch, "sm_75", "{hint}");
            let mut manifest = fixture::asks_driver();
            manifest.requires.retain(|row| !format!("{row:?}").contains("Nothing"));
            manifest.requires.push(fixture::gpu((7, 5), Some((7, 255)), GpuCoverage::Cubin, "sm_75", None));
            let path = place.scratch.join("rebuilt");
            fixture::program(&path, &[manifest]);
            place.program = Some(path);
        },
    },
    Row {
        name: "driver-parts-differ",
        code: "CG304",
        scene: |place| {
            place.world.kernel = Some("535.261.03");
            place.answer(803);
        },
        fix: |place, hint| {
            assert!(hint.starts_with("reboot after a driver update"), "{hint}");
            place.install_driver("580.95.05");
        },
    },
    Row {
        name: "compat-not-for-this-gpu",
        code: "CG305",
        scene: |place| {
            place.world = World::new("535.261.03", 12020, &[RTX_4090]);
            place.world.compat = Some(Library { init: 804, ..Library::new("580.95.05", 13000) });
        },
        fix: |place, hint| {
            assert_eq!(part(hint, "remove ", " from LD_LIBRARY_PATH"), "/usr/local/cuda/compat", "{hint}");
            place.world.compat = None;
        },
    },
    Row {
        name: "compat-not-for-this-gpu-and-driver-too-old",
        code: "CG305",
        scene: |place| {
            place.world = World::new("535.261.03", 12020, &[RTX_4090]);
            place.world.compat = Some(Library { init: 804, ..Library::new("580.95.05", 13000) });
            place.program = Some(fixture::of_driver().to_owned());
        },
        fix: |place, hint| {
            assert_eq!(part(hint, "remove ", " from LD_LIBRARY_PATH"), "/usr/local/cuda/compat", "{hint}");
            assert_eq!(part(hint, "update the driver to one that supports CUDA ", ";"), "13.0", "{hint}");
            place.install_driver("580.65.06");
        },
    },
    Row {
        name: "stub-in-library-path",
        code: "CG306",
        scene: |place| {
            let stubs = fixture::driver(&place.scratch.join("stubs"), "580.95.05", "13000 34 0 2048");
            place.library_path = vec![stubs];
        },
        fix: |place, hint| {
            let dir = PathBuf::from(part(hint, "remove ", " from LD_LIBRARY_PATH"));
            assert!(is_in(&dir, &place.library_path), "{hint}");
            place.library_path.clear();
        },
    },
    Row {
        name: "driver-missing",
        code: "CG307",
        scene: |place| {
            place.world = World::bare();
            place.program = Some(fixture::of_driver().to_owned());
        },
        fix: |place, hint| {
            assert!(hint.starts_with("install the NVIDIA driver"), "{hint}");
            place.world = World::new("580.95.05", 13000, &[A100]);
        },
    },
    Row {
        name: "jit-disabled",
        code: "CG308",
        scene: |place| {
            place.world.gpus = vec![H100];
            place.verify_program();
            place.variables.insert("CUDA_DISABLE_PTX_JIT", "1".to_owned());
        },
        fix: |place, hint| {
            let variable = part(hint, "unset ", ";").to_owned();
            assert!(place.variables.remove(variable.as_str()).is_some(), "{hint}");
        },
    },
    Row {
        name: "jit-compiler-missing",
        code: "CG309",
        scene: |place| {
            place.world.gpus = vec![H100];
            place.world.library.as_mut().expect("a libcuda").jit = false;
            place.verify_program();
        },
        fix: |place, hint| {
            assert!(hint.starts_with("install the complete driver"), "{hint}");
            place.world.library.as_mut().expect("a libcuda").jit = true;
        },
    },
    Row {
        name: "driver-dropped-the-gpu",
        code: "CG317",
        scene: |place| {
            place.world = World::new("595.45.04", 13020, &[V100]);
            place.answer(100);
        },
        fix: |place, hint| {
            assert_eq!(part(hint, "use a driver of branch ", " or older"), "580", "{hint}");
            place.install_driver("580.95.05");
            place.world.open = false;
        },
    },
    Row {
        name: "driver-missing-for-a-gpu",
        code: "CG320",
        scene: |place| {
            place.world = World::bare();
            place.world.gpus = vec![A10];
        },
        fix: |place, hint| {
            assert!(hint.starts_with("install the NVIDIA driver"), "{hint}");
            place.world = World::new("580.95.05", 13000, &[A10]);
        },
    },
    Row {
        name: "compat-older-than-the-driver",
        code: "CG322",
        scene: |place| place.world.compat = Some(Library::new("535.261.03", 12020)),
        fix: |place, hint| {
            assert_eq!(part(hint, "remove ", " from LD_LIBRARY_PATH"), "/usr/local/cuda/compat", "{hint}");
            place.world.compat = None;
        },
    },
    Row {
        name: "mps-daemon-does-not-answer",
        code: "CG324",
        scene: |place| {
            place.answer(805);
            place.variables.insert("CUDA_MPS_PIPE_DIRECTORY", "/var/run/nvidia-mps".to_owned());
        },
        fix: |place, hint| {
            assert!(hint.to_lowercase().contains("unset"), "{hint}");
            place.variables.clear();
            place.answer(0);
        },
    },
    Row {
        name: "virtual-gpu-without-licence",
        code: "CG324",
        scene: |place| {
            place.world.gpus = vec![cudaguard_tests::world::Gpu { name: "NVIDIA A10-24Q", ..A10 }];
            place.answer(46);
        },
        fix: |place, hint| {
            let _ = part(hint, "start nvidia-gridd", "");
            place.answer(0);
        },
    },
    Row {
        name: "open-module-for-an-old-gpu",
        code: "CG324",
        scene: |place| {
            place.world = World::new("580.95.05", 13000, &[V100]);
            place.answer(100);
        },
        fix: |place, hint| {
            assert!(hint.starts_with("install the proprietary kernel module of branch 580"), "{hint}");
            place.world.open = false;
            place.answer(0);
        },
    },
    Row {
        name: "proprietary-module-for-a-new-gpu",
        code: "CG324",
        scene: |place| {
            place.world = World::new("580.95.05", 13000, &[RTX_5090]);
            place.world.open = false;
            place.answer(100);
        },
        fix: |place, hint| {
            assert!(hint.starts_with("install the open kernel modules"), "{hint}");
            place.world.open = true;
            place.answer(0);
        },
    },
    Row {
        name: "visible-devices-hides-all",
        code: "CG325",
        scene: |place| {
            place.variables.insert("CUDA_VISIBLE_DEVICES", "7".to_owned());
        },
        fix: |place, hint| {
            let variable = part(hint, "unset ", ",").to_owned();
            assert!(place.variables.remove(variable.as_str()).is_some(), "{hint}");
        },
    },
];
