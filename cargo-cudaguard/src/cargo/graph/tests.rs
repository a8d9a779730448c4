use super::*;

#[test]
fn lock_with_cuda_crates_is_detected() {
    assert!(speaks_of_cuda("[[package]]\nname = \"cudarc\"\nversion = \"0.19.10\"\n"));
    assert!(
        speaks_of_cuda("name = \"my-cudnn-bindings\"\n") && speaks_of_cuda("name = \"tch\"\nname = \"torch-sys\"\n")
    );
    assert!(!speaks_of_cuda("name = \"serde\"\ndependencies = [\n \"cudarc\",\n]\n"));
}

#[test]
fn cached_graph_is_reused_until_change() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let one = Crate {
        name: "cudarc".into(),
        version: "0.19.10".into(),
        features: ["a".to_owned(), "b".to_owned()].into(),
        known: ["cuda-13000".to_owned()].into(),
        links: Some("cuda".into()),
        path: vec!["app".into(), "cudarc 0.19.10".into()],
        tool: true,
        named_in: vec!["Cargo.toml:7".into()],
        assumed: Some("its name".into()),
    };
    let crates = BTreeMap::from([("t".to_owned(), BTreeMap::from([("app".to_owned(), vec![one])]))]);
    let graph = CrateGraph { crates, unchecked: None };
    let (file, input) = (dir.join("graph.json"), dir.join("Cargo.lock"));
    fs::write(&input, "one").unwrap();
    let inputs = json!([[input, digest_of(&input)]]);
    fs::write(&file, json!({ "inputs": inputs, "targets": graph }).to_string()).unwrap();
    assert_eq!(read_cached(&file), Some(graph));
    fs::write(&input, "two").unwrap();
    assert_eq!(read_cached(&file), None);
    fs::write(&file, "{\"inputs\": [[1]]}").unwrap();
    assert_eq!(read_cached(&file), None);
}

#[test]
fn dependency_lines_are_found() {
    let text = "[package]\nname = \"app\"\n\n[dependencies]\nserde = \"1\"\nold = { package = \"cudarc\", version = \"0.17\" }\n\
                    cudarc = \"0.19.10\"\n\n[target.'cfg(unix)'.dependencies.cust]\nversion = \"0.3\"\n\n\
                    [workspace.dependencies]\ncandle-core.workspace = true\n";
    let manifest =
        CargoManifest { path: "Cargo.toml".into(), text: text.into(), table: Toml::Table(text.parse().unwrap()) };
    let line = |name: &str, version: &str| manifest.declaration_line(name, &version.parse().unwrap());
    assert_eq!(line("cudarc", "0.19.10"), Some((7, false)));
    assert_eq!(line("cudarc", "0.17.8"), Some((6, false)));
    assert_eq!(line("cudarc", "0.16.6"), None);
    assert_eq!(line("cust", "0.3.2"), Some((9, false)));
    assert_eq!(line("candle-core", "0.11.1"), Some((13, true)));
    assert_eq!(line("app", "0.1.0"), None);
}
