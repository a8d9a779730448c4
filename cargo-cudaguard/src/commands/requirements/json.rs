//! Requirements as JSON.

use crate::host::judge::answer::Service;
use crate::host::machine::oldest_driver::OldestDriver;
use crate::host::machine::placement::{GpuRange, LibraryRange, OfLibrary, Unfit};
use cudaguard::internal::json::{Value, array, object};
use cudaguard::internal::tables;
use cudaguard::internal::vendor::CUDNN;

use super::text::jetpack_of;
use super::{RequirementsQuery, unfit_reason};
use crate::cli::json_output;
use crate::commands::verify::put_not_judged;

pub(super) fn write_json(asked: &RequirementsQuery<'_>) -> String {
    let placement = asked.placement;
    let files = asked.files.iter().map(|file| file.to_string_lossy().into_owned());
    let mut value = object([("files", array(files))]);
    value.insert_some("processor", Some(placement.processor.as_str()).filter(|name| !name.is_empty()));
    value.insert_some("driver_needed", Some(placement.needs_driver));
    value.insert_some("gpus", Some(array(placement.fit.iter().map(fit_value))));
    value.insert_some("not_served", Some(array(placement.unfit.iter().map(unfit_value))));
    value.insert_some(CUDNN.key, placement.library.map(library_value));
    let not_examined: Vec<String> =
        asked.components.iter().flat_map(|file| &file.not_examined).map(ToString::to_string).collect();
    put_not_judged(&mut value, &not_examined);
    json_output::render(value)
}

/// Returns an interval as JSON. If the last minor version of a major version is unknown, only the major version is
/// given.
fn interval_value(from: (u8, u8), to: Option<(u8, u8)>) -> Value {
    let mut value = object([("from", tables::dotted_cc(from).into())]);
    let end = |to: (u8, u8)| if to.1 == u8::MAX { to.0.to_string() } else { tables::dotted_cc(to) };
    value.insert_some("to", to.map(end));
    value
}

fn fit_value(gpus: &GpuRange) -> Value {
    let mut value = interval_value(gpus.from, gpus.to);
    value.insert_some("by", gpus.by.map(Service::name));
    value.insert_some("driver", gpus.driver.map(|driver| driver_value(driver, jetpack_of(gpus))));
    let range = |of: LibraryRange| object([("min", of.min.to_string().into()), ("below", of.below.to_string().into())]);
    value.insert_some(CUDNN.key, gpus.library.map(range));
    value
}

fn driver_value(driver: OldestDriver, jetpack: Option<String>) -> Value {
    let mut value = object([("cuda", driver.cuda.to_string().into())]);
    match jetpack {
        Some(jetpack) => value.insert_some("jetpack", Some(jetpack)),
        None => value.insert_some("release", driver.release.map(|release| release.to_string())),
    }
    value
}

fn unfit_value(gpus: &Unfit) -> Value {
    let mut value = interval_value(gpus.from, gpus.to);
    value.insert_some("code", Some(gpus.why.code.to_string()));
    value.insert_some("why", Some(unfit_reason(gpus.why.code)));
    value
}

fn library_value(library: OfLibrary) -> Value {
    let mut value = object([("min", library.min.to_string().into()), ("below", library.below.to_string().into())]);
    value.insert_some("needed", Some(library.needed));
    value.insert_some("leaves_gpus_behind_from", library.gpus_dropped_in.map(|version| version.to_string()));
    value
}
