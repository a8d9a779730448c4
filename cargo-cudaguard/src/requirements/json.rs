//! For programs.

use cudaguard::json::{Value, array, object};
use cudaguard::judge::run::answer::Service;
use cudaguard::machine::placement::{Gpus, OfLibrary, OldestDriver, Unfit};
use cudaguard::vendor::CUDNN;

use super::{Asked, dotted, reason};
use crate::verify::put_not_judged;

pub(super) fn write(asked: &Asked<'_>) -> String {
    let placement = asked.placement;
    let files = asked.files.iter().map(|file| file.to_string_lossy().into_owned());
    let mut value = object([("files", array(files))]);
    value.put("processor", Some(placement.processor.as_str()).filter(|name| !name.is_empty()));
    value.put("driver_needed", Some(placement.needs_driver));
    value.put("gpus", Some(array(placement.fit.iter().map(fit))));
    value.put("not_served", Some(array(placement.unfit.iter().map(unfit))));
    value.put(CUDNN.key, placement.library.map(library));
    let not_examined: Vec<String> =
        asked.components.iter().flat_map(|file| &file.not_examined).map(ToString::to_string).collect();
    put_not_judged(&mut value, &not_examined);
    format!("{}\n", value.pretty())
}

/// The last minor of a major is not known: then the major alone.
fn interval(from: (u8, u8), to: Option<(u8, u8)>) -> Value {
    let mut value = object([("from", dotted(from).into())]);
    let end = |to: (u8, u8)| if to.1 == u8::MAX { to.0.to_string() } else { dotted(to) };
    value.put("to", to.map(end));
    value
}

fn fit(gpus: &Gpus) -> Value {
    let mut value = interval(gpus.from, gpus.to);
    value.put("by", gpus.by.map(Service::name));
    value.put("driver", gpus.driver.map(driver));
    value
}

fn driver(driver: OldestDriver) -> Value {
    let mut value = object([("cuda", driver.cuda.to_string().into())]);
    value.put("release", driver.release.map(|release| release.to_string()));
    value
}

fn unfit(gpus: &Unfit) -> Value {
    let mut value = interval(gpus.from, gpus.to);
    value.put("code", Some(gpus.why.code.to_string()));
    value.put("why", Some(reason(gpus.why.code)));
    value
}

fn library(library: OfLibrary) -> Value {
    let mut value = object([("min", library.min.to_string().into()), ("below", library.below.to_string().into())]);
    value.put("needed", Some(library.needed));
    value.put("leaves_gpus_behind_from", library.leaves_behind.map(|version| version.to_string()));
    value
}
