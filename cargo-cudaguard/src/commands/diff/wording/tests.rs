use super::*;

#[test]
fn sizes_are_short() {
    for (bytes, expected) in [(0, "0"), (999, "999 B"), (1500, "1 kB"), (12_340_000, "12.3 MB")] {
        assert_eq!(describe_size(bytes), expected);
    }
}
