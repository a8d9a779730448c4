use super::*;
use crate::model::arch::{Arch, Suffix};

fn library(version: Version, policy: &Policy) -> Vec<String> {
    let rows = BuiltWith { version, linkage: Linkage::Linked }.requirement_rows(policy);
    rows.iter().map(|row| row.to_json().to_string()).collect()
}

#[test]
fn cudnn_rule_is_an_interval() {
    assert_eq!(
        library(Version::new(9, 15, 1), &Policy::default()),
        [
            r#"{"kind":"cudnn","min":"9.15.0","below":"10.0.0","built":"9.15.1","soname":"libcudnn.so.9","linkage":"linked"}"#,
            r#"{"kind":"cudnn-inner","file":"libcudnn_graph.so.9","symbol":"cudnn_graph_version","needed":true}"#,
            r#"{"kind":"cudnn-inner","file":"libcudnn_ops.so.9","symbol":"cudnn_ops_infer_version","needed":false}"#,
            r#"{"kind":"cudnn-inner","file":"libcudnn_cnn.so.9","needed":false}"#,
            r#"{"kind":"cudnn-inner","file":"libcudnn_adv.so.9","needed":false}"#,
            r#"{"kind":"cudnn-inner","file":"libcudnn_engines_precompiled.so.9","needed":false}"#,
            r#"{"kind":"cudnn-inner","file":"libcudnn_engines_runtime_compiled.so.9","needed":false}"#,
            r#"{"kind":"cudnn-inner","file":"libcudnn_heuristic.so.9","needed":false}"#,
        ]
    );
    let strict = Policy { library_patch_refuse: true, library_required: true, ..Policy::default() };
    assert_eq!(
        library(Version::new(7, 6, 5), &strict),
        [
            r#"{"kind":"cudnn","min":"7.6.5","below":"8.0.0","built":"7.6.5","soname":"libcudnn.so.7","linkage":"linked","patch":"refuse","required":true}"#
        ]
    );
}

#[test]
fn empty_project_has_a_manifest() {
    let component = Component { name: "plain".to_owned(), version: "1.0.0".to_owned() };
    let manifest = Manifest::from_build(
        component,
        "x86_64-unknown-linux-gnu",
        "release",
        &Policy::default(),
        &Toolchain::default(),
    );
    assert_eq!(manifest.requires, []);
    let expected = format!(
        "{{\"revision\":1,\"component\":{{\"name\":\"plain\",\"version\":\"1.0.0\"}},\"cudaguard\":\"{}\",\
             \"target\":\"x86_64-unknown-linux-gnu\",\"profile\":\"release\",\
             \"archs\":{{\"known\":\"unsealed\",\"declared\":[]}},\"sealed\":false,\
             \"policy\":{{\"mismatch\":\"refuse\",\"gpu\":\"auto\",\"library\":\"report\",\"partial\":\"silent\"}},\
             \"allow\":{{}},\"requires\":[]}}",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(manifest.to_json().to_string(), expected);
}

#[test]
fn arch_sources_are_recorded() {
    let component = Component { name: "k".to_owned(), version: "1.0.0".to_owned() };
    let mut manifest = Manifest::from_build(component, "t", "dev", &Policy::default(), &Toolchain::default());
    assert_eq!(manifest.archs_known(), "unsealed");
    manifest.declared = vec![Target::Cubin(Arch { number: 90, suffix: Suffix::Specific })];
    assert_eq!((manifest.archs_known(), manifest.not_judged()), ("declared", None));
    manifest.observed = Some(Vec::new());
    assert_eq!(manifest.archs_known(), "declared");
    assert_eq!(manifest.not_judged(), Some("declared GPU code that was not found"));
    manifest.observed = Some(manifest.declared.clone());
    assert_eq!((manifest.archs_known(), manifest.not_judged()), ("observed", None));
    (manifest.observed, manifest.declared) = (Some(Vec::new()), Vec::new());
    assert_eq!((manifest.archs_known(), manifest.not_judged()), ("observed", None));
}

#[test]
fn linkage_names_are_stable() {
    for linkage in [Linkage::Linked, Linkage::Static, Linkage::Dlopened, Linkage::None] {
        assert_eq!(Linkage::from_name(linkage.name().unwrap()), linkage);
    }
    assert_eq!(Linkage::from_name("by pigeon"), Linkage::Unknown);
}
