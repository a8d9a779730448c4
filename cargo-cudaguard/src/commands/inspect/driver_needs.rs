//! The minimum driver for the GPUs that a file has code for.

use crate::binary::kernels::Coverage;
use crate::host::machine::Components;
use crate::host::machine::oldest_driver::{self, DriverNeeds, OldestDriver, machine_with_gpu};
use cudaguard::internal::tables;
use serde::{Serialize, Serializer};

/// The minimum driver of a file on a range of GPUs; without kernels, on all GPUs.
pub(crate) struct Needs {
    gpus: Option<((u8, u8), (u8, u8))>,
    /// Without a driver: any that supports these GPUs.
    needs: DriverNeeds,
}

/// Returns the requirements for the GPUs that the file has code for. Consecutive GPUs with equal requirements share one
/// entry.
pub(crate) fn driver_needs(components: &Components, covers: &[((u8, u8), Coverage)]) -> Vec<Needs> {
    let files = [components.without_repeats()];
    let mut all: Vec<Needs> = Vec::new();
    if covers.is_empty() {
        let needs = oldest_driver::driver_needs(&files, &machine_with_gpu(None));
        return needs.driver.map(|_| Needs { gpus: None, needs }).into_iter().collect();
    }
    // Prevents GPUs from sharing an entry if a GPU between them has no code.
    let mut alike = false;
    for (cc, by) in covers.iter().copied() {
        if by == Coverage::Nothing {
            alike = false;
            continue;
        }
        let needs = oldest_driver::driver_needs(&files, &machine_with_gpu(Some(cc)));
        match all.last_mut() {
            Some(Needs { gpus: Some((_, to)), needs: last }) if alike && *last == needs => *to = cc,
            _ => all.push(Needs { gpus: Some((cc, cc)), needs }),
        }
        alike = true;
    }
    all
}

impl Serialize for Needs {
    fn serialize<S: Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct NeedsView {
            from: Option<String>,
            to: Option<String>,
            #[serde(flatten)]
            driver: Option<OldestDriver>,
            sure_from: Option<OldestDriver>,
        }

        let DriverNeeds { driver, guaranteed_from } = self.needs;
        let needs = NeedsView {
            from: self.gpus.map(|(from, _)| tables::dotted_cc(from)),
            to: self.gpus.map(|(_, to)| tables::dotted_cc(to)),
            driver,
            sure_from: guaranteed_from,
        };
        needs.serialize(json)
    }
}

impl Needs {
    pub(crate) fn describe(&self) -> String {
        let DriverNeeds { driver, guaranteed_from } = self.needs;
        let supports = |OldestDriver { cuda, release }| match release {
            None => format!("CUDA {cuda}"),
            Some(release) => format!("CUDA {cuda} ({release} or newer)"),
        };
        let needs = match driver {
            None => "any that supports it".to_owned(),
            Some(driver) => format!("one that supports {}", supports(driver)),
        };
        let needs = match guaranteed_from {
            None => needs,
            Some(driver) => format!("{needs}; guaranteed from {}", supports(driver)),
        };
        match self.gpus {
            None => needs,
            Some(((a, b), (c, d))) if (a, b) == (c, d) => format!("{a}.{b}: {needs}"),
            Some(((a, b), (c, d))) => format!("{a}.{b} to {c}.{d}: {needs}"),
        }
    }
}
