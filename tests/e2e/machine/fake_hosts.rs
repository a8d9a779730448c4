//! Machines with a driver and GPUs, in a mount namespace: the output of `probe`, and `verify` compared with the start of
//! the guarded program.

use std::path::{Path, PathBuf};

use cudaguard_tests::world::{
    self, A100, Gpu, H100, Layout, Library, Machine, MakeMachine as _, Manner, ORIN, RTX_4090, RTX_5090, T4, World,
};
use cudaguard_tests::{Scratch, codes, command, e2e, snapshot, sorted_codes};
use serde_json::Value;

use super::fixture;

const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";
/// Note from NVIDIA's cuda-compat of this release.
const NOTE_575: &str =
    r#"{"format":1,"CUDA version":"12.9","driver":[535,550,560,565,570,575],"device":[1,2,7,8,9,10,11,12,13,14]}"#;

fn r580(gpus: &[Gpu]) -> World {
    World::new("580.95.05", 13000, gpus)
}

fn r535(gpus: &[Gpu]) -> World {
    World::new("535.261.03", 12020, gpus)
}

fn wsl(gpus: &[Gpu]) -> World {
    let windows = r580(gpus).library(|library| library.suffix = Some("1.1".into()));
    World { kernel: None, layout: Layout::Wsl, ..windows }
}

fn jetson() -> World {
    let library = r580(&[ORIN]).library(|library| library.suffix = Some("1.1".into()));
    World { kernel: Some("540.4.0".into()), layout: Layout::Jetson, ..library }
}

/// Fake machine with a program.
struct Stage {
    scratch: Scratch,
    machine: Machine,
    app: PathBuf,
}

impl Stage {
    fn new(world: &World) -> Self {
        world::need();
        let scratch = Scratch::new("machine-world");
        let machine = world.make(&scratch.join("world"));
        let app = scratch.join("app");
        fixture::link(fixture::of_driver(), &app);
        Self { scratch, machine, app }
    }

    fn probe(&self, variables: &[(&str, &str)]) -> Value {
        let outcome = self.machine.call(command::path(), variables).args(["probe", "--json"]).run().success();
        outcome.json()
    }

    fn verify(&self, variables: &[(&str, &str)], more: &[&Path]) -> (String, Vec<String>) {
        let call = self.machine.call(command::path(), variables).args(["verify", "--json"]).arg(&self.app);
        let value = call.args(more).run().json();
        (value["verdict"].as_str().expect("a verdict").to_owned(), sorted_codes(&value))
    }
}

#[e2e]
fn probe_matches_fake_host() {
    let probe = |world: &World, variables: &[(&str, &str)]| Stage::new(world).probe(variables);
    let value = probe(&r580(&[T4, H100]), &[]);
    let driver = &value["driver"];
    assert_eq!(
        (&driver["user"], &driver["kernel"], &driver["cuda"]),
        (&"580.95.05".into(), &"580.95.05".into(), &"13.0".into())
    );
    assert_eq!((&driver["init"], &driver["ptx_compiler"]), (&0.into(), &true.into()), "{value}");
    for (n, (name, cc)) in [("Tesla T4", "7.5"), ("NVIDIA H100 80GB HBM3", "9.0")].into_iter().enumerate() {
        let gpu = &value["gpus"][n];
        assert_eq!((&gpu["name"], &gpu["cc"]), (&name.into(), &cc.into()), "{value}");
        assert_eq!((&gpu["uuid"], &gpu["visible"]), (&World::uuid(n).into(), &true.into()), "{value}");
    }
    assert!(value.get("kind").is_none() && value.get("doubts").is_none(), "{value}");

    // The variable hides the GPU: it is present but not visible.
    let seen = |value: &Value| -> Vec<(String, bool)> {
        let gpus = value["gpus"].as_array().expect("GPUs").iter();
        gpus.map(|gpu| (gpu["cc"].as_str().unwrap_or("?").to_owned(), gpu["visible"].as_bool().expect("known")))
            .collect()
    };
    let two = World { fastest: vec![1, 0], ..r580(&[T4, A100]) };
    for (variables, expected) in [
        (&[(VISIBLE, "0")][..], [("8.0", true), ("7.5", false)]),
        (&[(VISIBLE, "0"), ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")], [("7.5", true), ("8.0", false)]),
        (&[(VISIBLE, "")], [("7.5", false), ("8.0", false)]),
        (&[(VISIBLE, "-1")], [("7.5", false), ("8.0", false)]),
    ] {
        let value = probe(&two, variables);
        assert_eq!(seen(&value), expected.map(|(cc, visible)| (cc.to_owned(), visible)), "{variables:?}: {value}");
        assert_eq!(value["variables"][VISIBLE], variables[0].1, "{value}");
    }

    // The container received one of two GPUs.
    let given = r580(&[T4, A100]).each(|n, gpu| (gpu.node, gpu.driven) = (n != 0, n != 0));
    assert_eq!(seen(&probe(&given, &[])), [("8.0".to_owned(), true), ("7.5".to_owned(), false)]);
    // The container's procfs is empty, so the driver lists its GPUs.
    let value = probe(&World { empty: true, ..r580(&[A100]) }, &[]);
    assert_eq!((seen(&value), value["driver"].get("kernel")), (vec![("8.0".to_owned(), true)], None), "{value}");

    let value = probe(&wsl(&[RTX_4090]), &[]);
    assert_eq!((&value["kind"], value["driver"].get("user")), (&"wsl2".into(), None), "{value}");
    assert_eq!((&value["driver"]["cuda"], &value["gpus"][0]["cc"]), (&"13.0".into(), &"8.9".into()), "{value}");
    let value = probe(&jetson(), &[]);
    assert_eq!((&value["kind"], &value["gpus"][0]["cc"]), (&"jetson".into(), &"8.7".into()), "{value}");
    assert_eq!((value["driver"].get("user"), &value["driver"]["kernel"]), (None, &"540.4.0".into()), "{value}");

    let compat = Library { note: Some(NOTE_575.into()), ..Library::new("575.57.08", 12090) };
    let value = probe(&World { compat: Some(compat), ..r535(&[A100]) }, &[]);
    let driver = &value["driver"];
    assert_eq!((&driver["user"], &driver["kernel"]), (&"575.57.08".into(), &"535.261.03".into()), "{value}");
    assert_eq!((&driver["compat"]["cuda"], &driver["compat"]["branches"][0]), (&"12.9".into(), &535.into()), "{value}");
    assert!(driver.get("ordinary").is_none(), "{value}");

    let value = probe(&r535(&[T4]).library(|library| library.manner = Manner::Crashes), &[]);
    assert!(value["doubts"][0].as_str().is_some_and(|warning| warning.ends_with("in cuInit")), "{value}");
    assert_eq!((&value["driver"]["cuda"], value["driver"].get("init")), (&"12.2".into(), None), "{value}");
    assert_eq!((&value["gpus"][0]["cc"], value["gpus"][0].get("visible")), (&"7.5".into(), None), "{value}");

    let value = probe(&World::bare(), &[]);
    assert_eq!(value["driver"], serde_json::json!({"present": false}), "{value}");
    // The absence of a GPU is not proven if there is no kernel module and no list.
    assert!(value.get("gpus").is_none(), "{value}");
}

#[e2e]
fn probe_text_matches_fake_host() {
    let stage = Stage::new(&r580(&[T4, H100]));
    let outcome = stage.machine.call(command::path(), &[(VISIBLE, "1")]).arg("probe").run().success();
    let text = snapshot::replace(&outcome.stdout, &[(&format!("{}-linux-gnu", std::env::consts::ARCH), "<triplet>")]);
    snapshot::check("machine/probe_with_gpus", text.split("cuDNN\n").next().expect("a part"));
}

/// `verify` with the probed host file equals `verify` on the machine itself.
#[e2e]
fn probe_and_detection_agree() {
    for world in [
        r580(&[A100]),
        r580(&[T4]),
        r535(&[A100]),
        World { fastest: vec![1, 0], ..r580(&[T4, A100]) },
        wsl(&[RTX_4090]),
    ] {
        for variables in [&[][..], &[(VISIBLE, "1")]] {
            let stage = Stage::new(&world);
            let there = stage.verify(variables, &[]);
            let host = stage.scratch.file("host.json", stage.probe(variables).to_string());
            let value = fixture::call(["verify", "--json"]).arg(&stage.app).arg("--host").arg(host).run().json();
            let elsewhere = (value["verdict"].as_str().expect("a verdict").to_owned(), sorted_codes(&value));
            assert_eq!(elsewhere, there, "{variables:?} {world:?}");
        }
    }
}

/// Cases of [`doctor_diagnoses_fake_hosts`] whose output is a snapshot.
const SHOWN: [&str; 8] = [
    "a good machine",
    "half updated",
    "no driver",
    "the closed kernel module",
    "a compat that is no longer needed",
    "an older compat in the cache",
    "a compat that is not for this GPU",
    "a compat in the cache that is not for this GPU",
];

/// Cases: name, machine, variables, codes that the doctor reports without and with the program.
#[e2e(slow)]
fn doctor_diagnoses_fake_hosts() {
    let outdated = Library { note: Some(NOTE_575.into()), ..Library::new("575.57.08", 12090) };
    let newer = Library { note: Some(NOTE_575.into()), ..Library::new("575.57.08", 12090) };
    let denied = |world: World| world.each(|_, gpu| (gpu.node, gpu.driven) = (false, false));
    let updated = World { kernel: Some("580.65.06".into()), ..r580(&[A100]).library(|library| library.init = 803) };
    let mut text = String::new();
    for (name, world, variables, status, expected) in [
        ("a good machine", r580(&[A100]), &[][..], 0, &[][..]),
        ("half updated", updated, &[], 1, &["CG304 error"]),
        ("not ready", r580(&[H100]).library(|library| library.init = 802), &[], 1, &["CG324 error"]),
        ("a stub", r580(&[H100]).library(|library| library.init = 34), &[], 1, &["CG306 error"]),
        (
            "a compat that is no longer needed",
            World { compat: Some(outdated.clone()), ..r580(&[A100]) },
            &[],
            0,
            &["CG322 warning"],
        ),
        (
            "an older compat in the cache",
            World { compat: Some(Library { init: 803, ..outdated.clone() }), compat_cached: true, ..r580(&[A100]) },
            &[],
            1,
            &["CG304 error", "CG322 warning"],
        ),
        (
            "a compat that is not for this GPU",
            World { compat: Some(Library { init: 804, ..newer.clone() }), ..r535(&[RTX_4090]) },
            &[],
            1,
            &["CG305 error"],
        ),
        (
            "a compat in the cache that is not for this GPU",
            World { compat: Some(Library { init: 804, ..newer }), compat_cached: true, ..r535(&[RTX_4090]) },
            &[],
            1,
            &["CG305 error"],
        ),
        ("hidden", r580(&[A100]), &[(VISIBLE, "7")], 0, &["CG325 info"]),
        ("no driver", World { kernel: None, library: None, ..r580(&[A100]) }, &[], 0, &["CG320 warning"]),
        ("no library", World { library: None, ..r580(&[A100]) }, &[], 0, &["CG320 warning"]),
        ("no compiler of PTX", r580(&[A100]).library(|library| library.jit = false), &[], 0, &["CG309 warning"]),
        (
            "a driver that crashes",
            r580(&[A100]).library(|library| library.manner = Manner::Crashes),
            &[],
            0,
            &["CG515 info"],
        ),
        ("no GPU given", denied(r580(&[A100])), &[], 0, &["CG324 warning"]),
        ("no GPU shown", r580(&[A100]).library(|library| library.init = 100), &[], 1, &["CG324 error"]),
        (
            "the closed kernel module",
            World { open: false, ..r580(&[RTX_5090]).library(|library| library.init = 100) },
            &[],
            1,
            &["CG324 error"],
        ),
        ("nothing of NVIDIA", World::bare(), &[], 0, &[]),
    ] {
        let stage = Stage::new(&world);
        let doctor = |more: &[&str]| stage.machine.call(command::path(), variables).arg("doctor").args(more).run();
        let value = doctor(&["--json"]).expect(status).json();
        assert_eq!(codes(&value), expected, "{name}: {value}");
        assert!(value.get("verdict").is_none(), "{value}");
        let app = stage.app.to_str().expect("UTF-8");
        let of_app = doctor(&[app, "--json"]).json();
        assert_eq!(of_app["verdict"].as_str(), Some(&*stage.verify(variables, &[]).0), "{name}: {of_app}");
        let outcome = doctor(&[app]);
        let expected = match of_app["status"].as_str() {
            Some("compatible") => 0,
            Some("incompatible") => 1,
            _ => 2,
        };
        assert_eq!(outcome.status(), Some(expected), "{name}: {outcome}");
        assert_eq!(expected == 0, name == "a good machine" || name == "no compiler of PTX", "{name}: {outcome}");
        assert_eq!(expected == 2, of_app["not_judged"].is_array() && expected != 1, "{name}: {of_app}");
        assert!(outcome.stdout.lines().last().is_some_and(|line| line.starts_with("next step: ")), "{name}: {outcome}");
        if SHOWN.contains(&name) {
            let printed = outcome.stdout;
            let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
            let printed = snapshot::paths(&printed, &[(&stage.scratch, "<scratch>")]);
            text = text + "== " + name + "\n" + &snapshot::replace(&printed, &[(&triplet, "<triplet>")]) + "\n";
        }
    }
    snapshot::check("machine/doctor", &text);
}
