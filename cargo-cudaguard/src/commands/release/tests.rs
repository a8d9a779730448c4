use super::*;

fn target(text: &str) -> Target {
    text.parse().unwrap()
}

#[test]
fn suffixed_code_counts_on_the_same_gpus() {
    for (found, required, expected) in [
        ("sm_90", "sm_90", true),
        ("sm_90a", "sm_90", true),
        ("sm_90", "sm_90a", false),
        ("sm_100a", "sm_100", false),
        ("sm_100f", "sm_100", true),
        ("sm_80", "sm_86", false),
        ("compute_90", "sm_90", false),
        ("compute_80", "compute_90", false),
        ("compute_90", "compute_90", true),
        ("compute_90a", "compute_90", false),
    ] {
        assert_eq!(fulfils(target(found), target(required)), expected, "{found} for {required}");
    }
}

#[test]
fn globs_match_members_and_artifacts() {
    let artifact = Path::new("dist/app-1.0.tar.gz");
    for (glob, member, expected) in [
        ("*.so", "app/lib/a.so", true),
        ("lib/*.so", "app/lib/a.so", false),
        ("app/*/a.so", "app/lib/a.so", true),
        ("a.so", "app/lib/a.so", true),
        ("?.so", "app/lib/a.so", true),
        ("b.so", "app/lib/a.so", false),
        ("*.tar.gz", "", true),
        ("*", "app/lib/a.so", true),
        ("a*b*c", "axbxbc", true),
        ("a*b*c", "axbxb", false),
    ] {
        assert_eq!(matches_glob(glob, artifact, member), expected, "{glob} {member}");
    }
}
