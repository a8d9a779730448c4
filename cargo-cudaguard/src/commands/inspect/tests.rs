use cudaguard::internal::manifest::PtxFallback;

use super::*;

#[test]
fn gpu_rows_begin_with_real_gpus() {
    let row = |from, to| Requirement::Gpu {
        from,
        to,
        by: GpuCoverage::Nothing,
        code: String::new(),
        cuda: None,
        release: None,
        guaranteed_from: None,
        ptx_fallback: PtxFallback::Nothing,
    };
    for (from, to, says) in [
        ((0, 0), Some((7, 4)), "GPU up to 7.4: not supported"),
        ((0, 0), Some((7, 255)), "GPU up to 7.x: not supported"),
        ((8, 0), Some((8, 6)), "GPU 8.0 to 8.6: not supported"),
        ((8, 7), Some((8, 7)), "GPU 8.7: not supported"),
        ((9, 1), None, "GPU 9.1 and newer: not supported"),
    ] {
        assert_eq!(describe_requirement(&row(from, to)), says);
    }
}
