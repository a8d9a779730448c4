//! Writes a machine as a host file.

use super::{Driver, Gpu, GpuState, HostLibrary, HostLibraryPart, Machine, MachineKind, OTHER_LIBRARIES, REVISION};
use crate::binary::symbols::Bound;
use crate::host::facts::LoaderVersion;
use cudaguard::internal::json::{Value, array, object};
use cudaguard::internal::tables;
use cudaguard::internal::vendor;

impl Machine {
    /// Returns the host file. `home` directories are written as `~`, because they contain the user's name.
    pub fn to_json(&self) -> Value {
        let mut value = object([("revision", REVISION.into())]);
        value.insert_some("name", self.name.as_deref());
        value.insert_some("platform", self.platform.as_deref());
        value.insert_some("kind", self.kind.map(MachineKind::name));
        value.insert_some("driver", self.driver.as_ref().map(Driver::to_json));
        value.insert_some("gpus", self.gpus.as_ref().map(|gpus| array(gpus.iter().map(Gpu::to_json))));
        for key in vendor::ALL.into_iter().map(|library| library.key).chain([OTHER_LIBRARIES]) {
            let files = self.libraries.get(key);
            value.insert_some(key, files.map(|files| array(files.iter().map(HostLibrary::to_json))));
        }
        let texts = |list: &[(String, String)]| {
            (!list.is_empty()).then(|| object(list.iter().map(|(key, text)| (key.as_str(), text.as_str().into()))))
        };
        value.insert_some("variables", texts(&self.variables));
        value.insert_some("sources", texts(&self.sources));
        value.insert_some(
            "doubts",
            (!self.warnings.is_empty()).then(|| array(self.warnings.iter().map(String::as_str))),
        );
        value
    }
}

impl Driver {
    fn to_json(&self) -> Value {
        let mut value = object::<&str>([]);
        value.insert_some("present", self.absent.then_some(false));
        value.insert_some("user", self.user.map(|release| release.to_string()));
        value.insert_some("kernel", self.kernel.map(|release| release.to_string()));
        value.insert_some("cuda", self.cuda.map(|version| version.to_string()));
        value.insert_some("init", self.init);
        value.insert_some("library", self.library.as_deref());
        value.insert_some("ptx_compiler", self.ptx_compiler);
        value.insert_some("ordinary", self.ordinary.then_some(true));
        value.insert_some(
            "compat",
            self.compat.as_ref().map(|compat| {
                let mut value = object::<&str>([]);
                value.insert_some("cuda", compat.cuda.map(|version| version.to_string()));
                value.insert_some("branches", Some(array(compat.branches.iter().copied())));
                value
            }),
        );
        value
    }
}

impl Gpu {
    fn to_json(&self) -> Value {
        let mut value = object::<&str>([]);
        value.insert_some("name", self.name.as_deref());
        value.insert_some("cc", self.cc.map(tables::dotted_cc));
        value.insert_some("uuid", self.uuid.as_deref());
        value.insert_some("pci", self.pci.as_deref());
        value.insert_some("visible", self.visible);
        value.insert_some("state", self.state.map(GpuState::name));
        value
    }
}

impl HostLibrary {
    fn to_json(&self) -> Value {
        let mut value = object::<&str>([]);
        value.insert_some("soname", self.soname.as_deref());
        value.insert_some("version", self.version.map(|version| version.to_string()));
        value.insert_some(
            "loader",
            match self.loader {
                LoaderVersion::Unknown => None,
                LoaderVersion::Version(version) => Some(version.to_string()),
                LoaderVersion::Minor(major, minor) => Some(format!("{major}.{minor}")),
            },
        );
        value.insert_some("cuda", self.cuda.map(|version| version.to_string()));
        value.insert_some("path", self.path.as_deref());
        value.insert_some("by", self.by.as_deref());
        value.insert_some("taken", (!self.taken).then_some(false));
        value.insert_some("problem", self.problem.as_deref());
        let part = |part: &HostLibraryPart| {
            let mut value = object([("file", part.file.as_str().into())]);
            value.insert_some("version", part.version.map(|version| version.to_string()));
            value
        };
        value.insert_some("needs", (!self.needs.is_empty()).then(|| array(self.needs.iter().map(String::as_str))));
        let bound = |bound: &Bound| {
            object([
                ("soname", bound.soname.as_str().into()),
                ("function", bound.name.as_str().into()),
                ("first", bound.first.to_string().into()),
            ])
        };
        value.insert_some("binds", (!self.binds.is_empty()).then(|| array(self.binds.iter().map(bound))));
        value.insert_some("parts", self.parts.as_ref().map(|parts| array(parts.iter().map(part))));
        value
    }
}
