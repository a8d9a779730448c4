use super::*;
use crate::arch::{Arch, Suffix};
use crate::manifest::{Component, Cudnn};
use crate::policy::Runtime;
use crate::version::Version;

fn manifest(linkage: Linkage) -> Manifest {
    let version = Version::new(9, 15, 1);
    Manifest {
        component: Component { name: "demo".to_owned(), version: "0.1.0".to_owned() },
        cudaguard: "0.1.0".to_owned(),
        target: "x86_64-unknown-linux-gnu".to_owned(),
        profile: "release".to_owned(),
        toolkit: None,
        cudnn: Some(Cudnn { version, linkage }),
        declared: Vec::new(),
        observed: None,
        host_compiler: None,
        runtime: Runtime::default(),
        partial_refuse: false,
        allow: Vec::new(),
        sealed: false,
        requires: vec![
            Requirement::Cudnn {
                min: Version::new(9, 15, 0),
                below: Version::new(10, 0, 0),
                built: version,
                soname: "libcudnn.so.9".to_owned(),
                linkage,
                patch_refuse: false,
                required: false,
            },
            Requirement::CudnnInner { file: "libcudnn_graph.so.9".to_owned(), symbol: String::new(), needed: true },
        ],
    }
}

#[test]
fn what_is_seen_goes_before_what_was_declared() {
    use Linkage::{Dlopened, Linked, None, Static, Unknown};
    for (declared, seen, sealed) in [
        (Unknown, Linked, Linked),
        (Unknown, Unknown, Unknown),
        (Unknown, Static, Static),
        (Unknown, None, None),
        (Dlopened, None, Dlopened),
        (Dlopened, Unknown, Dlopened),
        (Dlopened, Linked, Linked),
        (Linked, Static, Static),
        (Linked, None, None),
    ] {
        let observed = Observed { cudnn: seen, ..Observed::default() };
        let truth = truth(manifest(declared), &observed);
        assert!(truth.sealed);
        assert_eq!(truth.cudnn.as_ref().unwrap().linkage, sealed, "{declared:?} {seen:?}");
        let rows: Vec<_> = truth
            .requires
            .iter()
            .filter_map(|row| match row {
                Requirement::Cudnn { linkage, .. } => Some(*linkage),
                _ => Option::None,
            })
            .collect();
        assert_eq!(rows, if sealed == None { vec![] } else { vec![sealed] }, "{declared:?} {seen:?}");
        assert_eq!(super::truth(truth.clone(), &observed), truth, "twice is once");
    }
}

#[test]
fn archs_are_written_where_somebody_looked() {
    let arch = Target::Cubin(Arch { number: 90, suffix: Suffix::Specific });
    let observed = Observed { archs: Some(vec![arch]), ..Observed::default() };
    assert_eq!(truth(manifest(Linkage::Unknown), &observed).observed, Some(vec![arch]));
    assert_eq!(truth(manifest(Linkage::Unknown), &Observed::default()).observed, None);
    let mut plain = manifest(Linkage::Unknown);
    (plain.cudnn, plain.requires) = (None, Vec::new());
    assert_eq!(truth(plain.clone(), &Observed::default()), Manifest { sealed: true, ..plain });
}
