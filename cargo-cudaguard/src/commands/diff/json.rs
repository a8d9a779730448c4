//! The comparison as JSON.

use std::collections::{BTreeMap, BTreeSet};

use cudaguard::internal::json::{Value, array, object};
use cudaguard::internal::tables;

use super::compare::{GpuChange, Loss, ReleaseDiff, ValueChange};
use super::facts::{ComparedGpu, DriverNeed, ReleaseFacts};

impl ReleaseDiff {
    pub(super) fn to_json(&self) -> Value {
        let side = |facts: &ReleaseFacts| {
            let mut value = object([("file", Value::from(facts.file.as_str())), ("name", facts.title.as_str().into())]);
            value.insert_some("processor", Some(facts.processor.as_str()).filter(|name| !name.is_empty()));
            let gpu = |(cc, state): &((u8, u8), ComparedGpu)| {
                let mut value = object([("cc", Value::from(tables::dotted_cc(*cc)))]);
                put_state(&mut value, *state);
                value
            };
            value.insert_some("gpus", Some(array(facts.gpus.iter().map(gpu))));
            value.insert_some("driver", facts.driver.map(driver_value));
            value.insert_some("cudnn", facts.cudnn.map(|version| version.to_string()));
            let list = |map: &BTreeMap<String, BTreeSet<String>>| {
                object(map.iter().map(|(name, values)| (name.clone(), array(values.iter().map(String::as_str)))))
            };
            value.insert_some("inside", Some(list(&facts.inside)));
            value.insert_some("from_elsewhere", Some(list(&facts.elsewhere)));
            value.insert_some("requires", Some(list(&facts.requires)));
            let sizes = facts.sizes.iter().map(|(arch, size)| (arch.clone(), Value::from(*size)));
            value.insert_some("gpu_code", Some(object(sizes)));
            let guarded = facts.guarded.iter().map(|(file, guarded)| (file.clone(), Value::from(*guarded)));
            value.insert_some("guarded", Some(object(guarded)));
            let open = facts.not_examined.iter().map(Value::from);
            value.insert_some("not_judged", (!facts.not_examined.is_empty()).then(|| array(open)));
            value
        };
        let gpu = |change: &GpuChange| {
            let state = |state: ComparedGpu| {
                let mut value = object::<&str>([]);
                put_state(&mut value, state);
                value
            };
            let mut value = object([("cc", Value::from(tables::dotted_cc(change.cc)))]);
            value.insert_some("newer", change.newer.then_some(true));
            value.insert_some("name", change.example());
            value.insert_some("change", Some(change.kind()));
            value.insert_some("old", Some(state(change.old)));
            value.insert_some("new", Some(state(change.new)));
            value
        };
        let value_change = |change: &ValueChange| {
            let mut value = object([("name", Value::from(change.name.as_str()))]);
            value.insert_some("old", Some(change.old.as_str()).filter(|text| !text.is_empty()));
            value.insert_some("new", Some(change.new.as_str()).filter(|text| !text.is_empty()));
            value
        };
        let size = |(arch, old, new): &(String, u64, u64)| {
            object([("arch", Value::from(arch.as_str())), ("old", (*old).into()), ("new", (*new).into())])
        };
        let guard = |(file, old, new): &(String, Option<bool>, Option<bool>)| {
            let mut value = object([("name", Value::from(file.as_str()))]);
            value.insert_some("old", *old);
            value.insert_some("new", *new);
            value
        };
        let loss = |loss: &Loss| {
            object([
                ("kind", Value::from(loss.kind.name())),
                ("subject", loss.subject.as_str().into()),
                ("old", loss.old.as_str().into()),
                ("new", loss.new.as_str().into()),
                ("allowed", loss.allowed.into()),
            ])
        };
        let mut value = object([("old", side(&self.old)), ("new", side(&self.new))]);
        value.insert_some("gpus", Some(array(self.gpus.iter().map(gpu))));
        value.insert_some("drivers", Some(array(self.drivers.iter().map(gpu))));
        value.insert_some("driver", self.driver.as_ref().map(value_change));
        value.insert_some("cudnn", self.cudnn.as_ref().map(value_change));
        value.insert_some("inside", Some(array(self.inside.iter().map(value_change))));
        value.insert_some("from_elsewhere", Some(array(self.elsewhere.iter().map(value_change))));
        value.insert_some("requires", Some(array(self.requires.iter().map(value_change))));
        value.insert_some("gpu_code", Some(array(self.sizes.iter().map(size))));
        value.insert_some("guard", Some(array(self.guard.iter().map(guard))));
        value.insert_some("lost", Some(array(self.losses.iter().map(loss))));
        value
    }
}

fn put_state(value: &mut Value, state: ComparedGpu) {
    value.insert_some("by", Some(state.service.name()));
    value.insert_some("driver", state.driver.map(driver_value));
}

fn driver_value((cuda, release): DriverNeed) -> Value {
    let mut value = object([("cuda", Value::from(cuda.to_string()))]);
    value.insert_some("release", release.map(|release| release.to_string()));
    value
}
