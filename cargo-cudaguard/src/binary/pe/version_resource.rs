//! The version resource of a PE file.

use std::fmt;

use crate::knowledge::vendor::{CUDART, Library};
use cudaguard::internal::bytes::u16_at;
use cudaguard::internal::version::{CudaVersion, Version};
use memchr::memmem;

/// The signature of `VS_FIXEDFILEINFO`.
const FIXED: [u8; 4] = 0xfeef_04bd_u32.to_le_bytes();
/// Real resources have about a thousand bytes.
const LONGEST: usize = 1 << 16;
const LONGEST_TEXT: usize = 256;

/// The version of a file as its maker recorded it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionResource {
    /// The four numbers of the file version.
    pub numbers: [u16; 4],
    /// `FileDescription`; empty if absent.
    pub description: String,
    /// `ProductName`; empty if absent.
    pub product: String,
}

impl VersionResource {
    /// Parses `VS_VERSIONINFO`; `None` if it has no `VS_FIXEDFILEINFO`.
    pub(super) fn parse(resource: &[u8]) -> Option<Self> {
        let resource = &resource[..resource.len().min(LONGEST)];
        let fixed = resource.get(memmem::find(resource, &FIXED)?..)?;
        // Each pair of numbers is one integer of 32 bits, so the more significant half is the second.
        let numbers = [u16_at(fixed, 10)?, u16_at(fixed, 8)?, u16_at(fixed, 14)?, u16_at(fixed, 12)?];
        let [description, product] =
            ["FileDescription", "ProductName"].map(|key| text_after(fixed, key).unwrap_or_default());
        Some(Self { numbers, description, product })
    }
}

impl fmt::Display for VersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, build, revision] = self.numbers;
        write!(f, "{major}.{minor}.{build}.{revision}")?;
        if self.description.is_empty() { Ok(()) } else { write!(f, " ({})", self.description) }
    }
}

/// Returns the UTF-16 text that follows a key.
fn text_after(resource: &[u8], key: &str) -> Option<String> {
    let key: Vec<u8> = key.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    let rest = &resource[memmem::find(resource, &key)? + key.len()..];
    let units = rest.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    // Zeros align the value.
    let value: Vec<u16> =
        units.skip_while(|unit| *unit == 0).take_while(|unit| *unit != 0).take(LONGEST_TEXT).collect();
    Some(String::from_utf16_lossy(&value).trim().to_owned())
}

/// Returns the version that the resource of a library's own file states: at the end of its description, `NVIDIA NVRTC Library, Version
/// 12.4.127`, or in its numbers, if the library has a descriptor. The numbers of others count in another way than their releases, and
/// the last one of cudart is `CUDART_VERSION`.
pub(crate) fn version_in_resource(library: Option<&Library>, resource: &VersionResource) -> Option<Version> {
    let described = resource.description.rsplit_once("Version ").and_then(|(_, version)| version.trim().parse().ok());
    let in_numbers = |library: &Library| {
        let [major, minor, patch, last] = resource.numbers.map(u32::from);
        // A number of the driver model of Windows, which no release of a library has.
        let is_of_driver_model = (major, minor, patch) == (6, 14, 11);
        if library.key == CUDART.key {
            let coded = CudaVersion::from_int(last);
            return CudaVersion::is_plausible(last).then(|| Version::new(coded.major, coded.minor, 0));
        }
        (library.majors.contains(&major) && !is_of_driver_model).then(|| Version::new(major, minor, patch))
    };
    described.or_else(|| library.and_then(in_numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::vendor::CUDNN;

    #[test]
    fn resource_states_the_version() {
        let resource = |numbers, description: &str| VersionResource {
            numbers,
            description: description.to_owned(),
            ..VersionResource::default()
        };
        let cudart = resource([6, 14, 11, 12090], "NVIDIA CUDA Runtime, Version 12.9.79");
        assert_eq!(version_in_resource(Some(&CUDART), &cudart), Some(Version::new(12, 9, 79)));
        let undescribed = resource([6, 14, 11, 11080], "NVIDIA CUDA Runtime");
        assert_eq!(version_in_resource(Some(&CUDART), &undescribed), Some(Version::new(11, 8, 0)));
        assert_eq!(version_in_resource(Some(&CUDNN), &resource([9, 1, 0, 70], "")), Some(Version::new(9, 1, 0)));
        assert_eq!(version_in_resource(Some(&CUDNN), &resource([6, 14, 11, 10000], "")), None);
        assert_eq!(version_in_resource(Some(&CUDNN), &resource([0, 0, 0, 0], "")), None);
    }
}
