//! Requirements as JSON.

use cudaguard::internal::tables;
use serde::Serialize;

use super::text::jetpack_of;
use super::{RequirementsQuery, unfit_reason};
use crate::cli::json_output;
use crate::host::machine::judge::gpu_answer::Service;
use crate::host::machine::placement::{GpuRange, LibraryRange, OfLibrary, Unfit};

#[derive(Serialize)]
struct RequirementsView<'a> {
    files: Vec<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    processor: &'a str,
    driver_needed: bool,
    gpus: Vec<FitView>,
    not_served: Vec<UnfitView>,
    cudnn: Option<CudnnView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_judged: Vec<String>,
}

/// An interval of compute capabilities.
#[derive(Serialize)]
struct IntervalView {
    from: String,
    to: Option<String>,
}

#[derive(Serialize)]
struct FitView {
    #[serde(flatten)]
    gpus: IntervalView,
    by: Option<&'static str>,
    driver: Option<MinimumDriverView>,
    cudnn: Option<RangeView>,
}

#[derive(Serialize)]
struct MinimumDriverView {
    cuda: String,
    jetpack: Option<String>,
    release: Option<String>,
}

#[derive(Serialize)]
struct UnfitView {
    #[serde(flatten)]
    gpus: IntervalView,
    code: String,
    why: &'static str,
}

#[derive(Serialize)]
struct RangeView {
    min: String,
    below: String,
}

#[derive(Serialize)]
struct CudnnView {
    #[serde(flatten)]
    range: RangeView,
    needed: bool,
    leaves_gpus_behind_from: Option<String>,
}

impl IntervalView {
    /// If the last minor version of a major version is unknown, only the major version is given.
    fn new(from: (u8, u8), to: Option<(u8, u8)>) -> Self {
        let to = match to {
            Some((major, u8::MAX)) => Some(major.to_string()),
            Some(to) => Some(tables::dotted_cc(to)),
            None => None,
        };
        Self { from: tables::dotted_cc(from), to }
    }
}

impl FitView {
    fn new(gpus: &GpuRange) -> Self {
        let jetpack = jetpack_of(gpus);
        let driver = gpus.driver.map(|driver| MinimumDriverView {
            cuda: driver.cuda.to_string(),
            release: driver.release.filter(|_| jetpack.is_none()).map(|release| release.to_string()),
            jetpack,
        });
        Self {
            gpus: IntervalView::new(gpus.from, gpus.to),
            by: gpus.by.map(Service::name),
            driver,
            cudnn: gpus.library.map(RangeView::new),
        }
    }
}

impl UnfitView {
    fn new(gpus: &Unfit) -> Self {
        let code = gpus.why.code;
        Self { gpus: IntervalView::new(gpus.from, gpus.to), code: code.to_string(), why: unfit_reason(code) }
    }
}

impl RangeView {
    fn new(range: LibraryRange) -> Self {
        Self { min: range.min.to_string(), below: range.below.to_string() }
    }
}

impl CudnnView {
    fn new(library: OfLibrary) -> Self {
        Self {
            range: RangeView { min: library.min.to_string(), below: library.below.to_string() },
            needed: library.needed,
            leaves_gpus_behind_from: library.gpus_dropped_in.map(|version| version.to_string()),
        }
    }
}

pub(super) fn write_json(asked: &RequirementsQuery<'_>) -> String {
    let placement = asked.placement;
    let not_examined = asked.components.iter().flat_map(|file| &file.not_examined);
    json_output::render(&RequirementsView {
        files: asked.files.iter().map(|file| file.to_string_lossy().into_owned()).collect(),
        processor: &placement.processor,
        driver_needed: placement.needs_driver,
        gpus: placement.fit.iter().map(FitView::new).collect(),
        not_served: placement.unfit.iter().map(UnfitView::new).collect(),
        cudnn: placement.library.map(CudnnView::new),
        not_judged: not_examined.map(ToString::to_string).collect(),
    })
}
