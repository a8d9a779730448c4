use super::*;

#[test]
fn build_without_cuda_has_no_findings() {
    assert_eq!(check_build(&Policy::default(), &Toolchain::default()), []);
}

#[test]
fn unknown_patch_does_not_refuse() {
    let takes = |require: &str, version: &str, known| {
        requirement_matches(&require.parse().unwrap(), version.parse().unwrap(), known)
    };
    assert!(takes(">=12.4, <14", "13.0.88", true));
    assert!(!takes("<13", "13.0.88", true));
    assert!(takes("=12.4", "12.4.131", true));
    // cuda.h contains 12.4, which may be 12.4.131.
    assert!(takes(">=12.4.127", "12.4.0", false));
    assert!(takes("=12.4.131", "12.4.0", false));
    assert!(!takes(">=12.4.127", "12.4.0", true));
    assert!(!takes(">=12.5", "12.4.0", false));
    assert!(!takes("<12.4", "12.4.0", false));
}
