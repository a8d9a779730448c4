//! Host files: written and read again, and read with unknown or invalid content.

use proptest::prelude::*;

use super::*;
use crate::cli::json_output;

fn label() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(any::<String>())
}

fn release() -> impl Strategy<Value = Option<DriverRelease>> {
    proptest::option::of((100..999_u32, 0..400_u32, 0..200_u32).prop_map(|(a, b, c)| DriverRelease::new(a, b, c)))
}

fn cuda() -> impl Strategy<Value = Option<CudaVersion>> {
    proptest::option::of((1..99_u32, 0..20_u32).prop_map(|(major, minor)| CudaVersion::new(major, minor)))
}

fn version() -> impl Strategy<Value = Option<Version>> {
    proptest::option::of((1..99_u32, 0..99_u32, 0..300_u32).prop_map(|(a, b, c)| Version::new(a, b, c)))
}

fn some<T: std::fmt::Debug>(one: impl Strategy<Value = T>) -> impl Strategy<Value = Option<Vec<T>>> {
    proptest::option::of(proptest::collection::vec(one, 0..4))
}

prop_compose! {
    fn driver()(
        absent: bool, library in label(), user in release(), kernel in release(), cuda in cuda(),
        init in proptest::option::of(0..2000_u32), ptx_compiler: Option<bool>,
        compat in proptest::option::of((self::cuda(), proptest::collection::vec(any::<u32>(), 0..4))), ordinary: bool,
    ) -> Driver {
        let compat = compat.map(|(cuda, branches)| CompatPackage { cuda, branches });
        Driver { absent, user, kernel, cuda, init, library, ptx_compiler, ordinary, compat }
    }
}

prop_compose! {
    fn gpu()(
        name in label(), cc in proptest::option::of((1..=u8::MAX, any::<u8>())), uuid in label(), pci in label(), visible: Option<bool>,
        state in proptest::option::of(proptest::sample::select(&GpuState::ALL[..])),
    ) -> Gpu {
        let listed = uuid.is_some() || pci.is_some();
        Gpu { name, cc, uuid, pci, visible, state, listed }
    }
}

fn loader() -> impl Strategy<Value = LoaderVersion> {
    prop_oneof![
        Just(LoaderVersion::Unknown),
        (0..99u32, 0..99u32, 0..99u32)
            .prop_map(|(major, minor, patch)| LoaderVersion::Version(Version::new(major, minor, patch))),
        (0..99u32, 0..99u32).prop_map(|(major, minor)| LoaderVersion::Minor(major, minor)),
    ]
}

prop_compose! {
    fn library()(
        soname in label(), version in version(), path in label(), taken: bool, by in label(), problem in label(),
        parts in some((any::<String>(), self::version()).prop_map(|(file, version)| HostLibraryPart { file, version, path: None })),
        loader in loader(), cuda in prop::option::of((1..99u32, 0..99u32)),
        needs in proptest::collection::vec(any::<String>(), 0..3),
        binds in proptest::collection::vec((any::<String>(), any::<String>(), 1..99u32), 0..2),
    ) -> HostLibrary {
        let bound = |(soname, name, major)| Bound { soname, name, first: Version::new(major, 0, 0) };
        let binds = binds.into_iter().map(bound).collect();
        let cuda = cuda.map(|(major, minor)| CudaVersion::new(major, minor));
        HostLibrary { soname, version, loader, cuda, path, by, taken, problem, needs, binds, parts }
    }
}

prop_compose! {
    fn libraries()(files in proptest::collection::vec(some(library()), vendor::COUNT + 1)) -> BTreeMap<&'static str, Vec<HostLibrary>> {
        let keys = vendor::DESCRIBED.into_iter().map(|library| library.key).chain([OTHER_LIBRARIES]);
        keys.zip(files).filter_map(|(key, files)| Some((key, files?))).collect()
    }
}

/// Generates pairs with unique names.
fn texts() -> impl Strategy<Value = Vec<(String, String)>> {
    proptest::collection::hash_map(any::<String>(), any::<String>(), 0..4).prop_map(|map| map.into_iter().collect())
}

prop_compose! {
    fn machine()(
        name in label(), platform in label(),
        kind in proptest::option::of(prop_oneof![Just(MachineKind::Wsl2), Just(MachineKind::Jetson)]),
        driver in proptest::option::of(driver()), gpus in some(gpu()), libraries in libraries(),
        variables in texts(), sources in texts(),
        warnings in proptest::collection::vec(any::<String>(), 0..3),
    ) -> Machine {
        Machine { name, platform, kind, driver, gpus, libraries, variables, sources, warnings }
    }
}

proptest! {
    #[test]
    fn host_file_roundtrips(machine in machine(), pretty: bool) {
        let file = json_output::to_value(&machine.to_host_file());
        let text = if pretty { format!("{file:#}") } else { file.to_string() };
        // Standard JSON parsers read it too.
        prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
        prop_assert_eq!(Machine::read(&text).expect(&text), (machine.clone(), REVISION));
        // The facts that the checks use are equal in both ways of reading: paths are only displayed.
        let judged = |machine: &Machine| {
            let driver = machine.driver.clone().map(|driver| Driver { library: None, ..driver });
            (driver, format!("{:?}", machine.visible_gpu_list()), machine.variables.clone())
        };
        prop_assert_eq!(judged(&Machine::read_for_judging(&text).expect(&text).1), judged(&machine));
    }

    #[test]
    fn invalid_host_file_is_an_error(text: String, machine in machine(), cut: prop::sample::Index) {
        let _ = Machine::read(&text);
        let whole = json_output::to_value(&machine.to_host_file()).to_string();
        let cut = cut.index(whole.len());
        if let Some(part) = whole.get(..cut) {
            prop_assert!(Machine::read(part).is_err(), "{}", part);
        }
    }
}

#[test]
fn unknown_keys_are_ignored() {
    let text = r#"{"revision": 7, "driver": {"user": "535.261.03", "gsp": {"on": [true, null, 1.5e3]}}, "new": [[[]]],
                   "gpus": [{"cc": "7.5", "memory": 15360, "mig": null}], "kind": "quantum", "name": null}"#;
    let (machine, revision) = Machine::read(text).unwrap();
    assert_eq!(revision, 7);
    assert_eq!(machine.driver.unwrap().user, Some(DriverRelease::new(535, 261, 3)));
    assert_eq!((machine.gpus.unwrap()[0].cc, machine.kind, machine.name), (Some((7, 5)), None, None));
}

#[test]
fn errors_name_key_and_expectation() {
    for (text, expected) in [
        (
            "",
            "expected a host file: an object, `{ … }`, as `cargo cudaguard probe --json` writes it; unexpected end of the text",
        ),
        ("[]", "expected a host file: an object, `{ … }`, as `cargo cudaguard probe --json` writes it; found `[]`"),
        (r#"{"driver": "535"}"#, "`driver`: invalid type: string \"535\", expected a driver: an object, `{ … }`"),
        (
            r#"{"driver": {"kernel": "new"}}"#,
            "`driver.kernel`: invalid value: string \"new\", expected a driver's release in quotes such as \"535.261.03\"",
        ),
        (
            r#"{"gpus": [{"cc": "8.0"}, {"cc": 8.6}]}"#,
            "`gpus[1].cc`: invalid type: floating point `8.6`, expected a compute capability in quotes such as \"8.6\"",
        ),
        (
            r#"{"gpus": [{"cc": "0.0"}]}"#,
            "`gpus[0].cc`: invalid value: string \"0.0\", expected a compute capability in quotes such as \"8.6\"",
        ),
        (
            r#"{"cudnn": [{"version": "nine"}]}"#,
            "`cudnn[0].version`: invalid value: string \"nine\", expected a version in quotes such as \"9.15.1\"",
        ),
        (r#"{"driver": {"init": -1}}"#, "`driver.init`: invalid value: integer `-1`, expected u32"),
        (r#"{"gpus": [{"visible": 1}]}"#, "`gpus[0].visible`: invalid type: integer `1`, expected a boolean"),
        (r#"{"gpus": [], "gpus": []}"#, "duplicate field `gpus`"),
        (r#"{"gpus": [{"cc": "8.0", "cc": "8.6"}]}"#, "`gpus[0]`: duplicate field `cc`"),
        (
            r#"{"variables": {"CUDA_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}}"#,
            "`variables`: duplicate field `CUDA_VISIBLE_DEVICES`",
        ),
        (r#"{"revision": 1} {"#, "trailing characters"),
    ] {
        assert_eq!(Machine::read(text).expect_err(text).to_string(), expected, "{text}");
    }
}

#[test]
fn release_spellings_are_accepted() {
    for (text, expected) in [
        ("535.261.03", Some((535, 261, 3))),
        ("580.65.06", Some((580, 65, 6))),
        ("535.261.03-1", Some((535, 261, 3))),
        ("535.261.03-0ubuntu0.22.04.1", Some((535, 261, 3))),
        ("R535", Some((535, 0, 0))),
        ("535", Some((535, 0, 0))),
        (" v550.54.15 ", Some((550, 54, 15))),
        ("540.4.0", Some((540, 4, 0))),
        ("", None),
        ("R", None),
        ("latest", None),
        // The CUDA version that the driver supports.
        ("12.4", None),
        ("12", None),
        ("535.", None),
        ("535.x", None),
        ("5350", None),
        ("5350.1", None),
        ("99999999999", None),
    ] {
        let expected = expected.map(|(branch, minor, patch)| DriverRelease::new(branch, minor, patch));
        assert_eq!(parse_release(text), expected, "{text}");
    }
}
