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
        cudart: None,
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
fn a_cudnn_of_another_major_is_not_what_the_headers_say() {
    let seen = |major: u32| Observed { cudnn: Linkage::Linked, cudnn_named: Some(major), ..Observed::default() };
    assert_eq!(truth(manifest(Linkage::Unknown), &seen(9)).requires.len(), 2);
    assert_eq!(truth(manifest(Linkage::Unknown), &seen(8)).requires, []);
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

#[test]
fn cudart_asks_for_a_driver() {
    let plain = Manifest {
        cudnn: None,
        requires: Vec::new(),
        toolkit: Some(Version::new(13, 0, 88)),
        ..manifest(Linkage::Unknown)
    };
    let rows = |manifest: &Manifest| {
        manifest.requires.iter().map(|row| row.to_json().to_string()).collect::<Vec<_>>().join("\n")
    };
    let sealed = |cudart: Linkage, soname: &str, toolkit: Option<Version>| {
        let seen = Observed { cudart, cudart_named: cudart_named(soname), ..Observed::default() };
        let truth = truth(Manifest { toolkit, ..plain.clone() }, &seen);
        assert_eq!(super::truth(truth.clone(), &seen), truth, "twice is once");
        let fact = truth.to_json().to_string();
        let fact =
            fact.split("\"cudart\":").nth(1).and_then(|rest| rest.split(",\"archs\"").next()).unwrap_or_default();
        (fact.to_owned(), rows(&truth))
    };
    let thirteen = Some(Version::new(13, 0, 88));
    let row = |cuda: &str, release: &str, because: &str| {
        format!(r#"{{"kind":"driver","cuda":"{cuda}","release":"{release}","because":"{because}"}}"#)
    };
    assert_eq!(
        sealed(Linkage::Static, "", thirteen),
        (r#"{"linkage":"static","version":"13.0"}"#.into(), row("13.0", "580.65.06", "libcudart 13.0"))
    );
    assert_eq!(
        sealed(Linkage::Linked, "libcudart.so.12", thirteen),
        (r#"{"linkage":"linked"}"#.into(), row("12.0", "525.60.13", "libcudart 12"))
    );
    assert_eq!(sealed(Linkage::Linked, "libcudart.so.10.2", None).1, row("10.2", "440.33", "libcudart 10.2"));
    // Nobody knows what such a cudart will want, but there is no reason to invent it.
    assert_eq!(
        sealed(Linkage::Linked, "libcudart.so.17", None).1,
        r#"{"kind":"driver","cuda":"17.0","because":"libcudart 17"}"#
    );
    assert_eq!(sealed(Linkage::Static, "", None), (r#"{"linkage":"static"}"#.into(), String::new()));
    for linkage in [Linkage::None, Linkage::Dlopened] {
        let (fact, rows) = sealed(linkage, "", thirteen);
        assert_eq!((fact, rows.as_str()), (format!(r#"{{"linkage":"{}"}}"#, linkage.name().unwrap()), ""));
    }
}

#[test]
fn rows_of_older_seals_are_replaced() {
    let kernels = |archs: &[u32]| {
        let entries: Vec<_> = archs.iter().map(|arch| crate::kernels::tests::sm(*arch)).collect();
        crate::kernels::tests::plain(&[crate::kernels::tests::writer::fatbin(&entries)])
    };
    let seen = |archs: &[u32]| Observed {
        cudart: Linkage::Static,
        gpus: Some(kernels(archs).requirements()),
        ..Observed::default()
    };
    let unsealed = Manifest { toolkit: Some(Version::new(13, 0, 88)), ..manifest(Linkage::Linked) };
    let first = truth(unsealed.clone(), &seen(&[80, 90, 100]));
    assert_eq!(truth(first, &seen(&[90])), truth(unsealed.clone(), &seen(&[90])));
    let last = truth(unsealed, &seen(&[]));
    assert!(!last.requires.iter().any(|row| matches!(row, Requirement::Gpu { .. })));
}

/// Every arch that a toolkit makes, in every kind: the rows and the text of what a host must have still fit.
#[test]
fn what_every_arch_asks_for_fits() {
    let toolkit = Version::new(13, 5, 0);
    let entries: Vec<_> = crate::tables::expand_all(toolkit)
        .into_iter()
        .map(|target| match target {
            Target::Cubin(arch) => crate::kernels::tests::sm(arch.number.into()),
            Target::Ptx(arch) => crate::kernels::tests::compute(arch.number.into(), (9, 5)),
        })
        .collect();
    let kernels = crate::kernels::tests::plain(&[crate::kernels::tests::writer::fatbin(&entries)]);
    let seen = Observed {
        cudart: Linkage::Static,
        cudnn: Linkage::Linked,
        archs: Some(kernels.targets()),
        gpus: Some(kernels.requirements()),
        ..Observed::default()
    };
    let sealed = truth(Manifest { toolkit: Some(toolkit), ..manifest(Linkage::Unknown) }, &seen);
    assert!(sealed.requires.iter().filter(|row| matches!(row, Requirement::Gpu { .. })).count() > 10);
    let note = note::encode(&sealed).unwrap();
    assert_eq!(note::decode(&note[..]).unwrap().manifest, sealed);
    // A release that no field holds is an error that names it.
    let row = Requirement::Driver {
        cuda: CudaVersion::new(13, 0),
        release: DriverRelease::new(580, 300, 1),
        because: String::new(),
    };
    let error = note::encode(&Manifest { requires: vec![row], ..sealed }).unwrap_err();
    assert!(error.contains("driver 580.300.01"), "{error}");
}
