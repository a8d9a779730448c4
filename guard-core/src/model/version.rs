//! Version types. Each kind of version has a separate type, so that a driver's release cannot be compared with the CUDA
//! version that it supports, nor a toolkit with a library.

use std::fmt;
use std::str::FromStr;

/// Three numbers: the release of a toolkit, of nvcc or of a library. A missing number is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number: patch level, or nvcc's build.
    pub patch: u32,
}

impl Version {
    /// Creates the version `major.minor.patch`.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Formats the known numbers: `13.0.88`, or `13.0` if the third number is 0, which means that it is unknown.
    pub fn known_text(self) -> String {
        match self.patch {
            0 => format!("{}.{}", self.major, self.minor),
            _ => self.to_string(),
        }
    }

    /// Packs the version as NVIDIA's inner libraries export it and the manifest's rows store it:
    /// `major << 16 | minor << 8 | patch`. Returns `None` if a number does not fit.
    pub fn packed(self) -> Option<u32> {
        (self.major <= 0xffff && self.minor <= 0xff && self.patch <= 0xff)
            .then_some(self.major << 16 | self.minor << 8 | self.patch)
    }

    /// Packs the version like [`Version::packed`]. Numbers that do not fit count as the largest that do.
    pub fn packed_saturating(self) -> u32 {
        self.major.min(0xffff) << 16 | self.minor.min(0xff) << 8 | self.patch.min(0xff)
    }

    /// Unpacks the result of [`Version::packed`].
    pub const fn from_packed(packed: u32) -> Self {
        Self::new(packed >> 16, packed >> 8 & 0xff, packed & 0xff)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The error of a text that is not a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseVersionError(String);

impl fmt::Display for ParseVersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a version such as 12.4 or 9.15.1", self.0)
    }
}

impl std::error::Error for ParseVersionError {}

fn numbers(text: &str) -> Result<Vec<u32>, ParseVersionError> {
    let mut numbers = Vec::new();
    for part in text.split('.') {
        match part.parse() {
            Ok(number) if part.bytes().all(|b| b.is_ascii_digit()) => numbers.push(number),
            _ => return Err(ParseVersionError(text.to_owned())),
        }
    }
    Ok(numbers)
}

impl FromStr for Version {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        match numbers(text)?[..] {
            [major, minor] => Ok(Self::new(major, minor, 0)),
            // A fourth number (`9.15.1.9`) is the package's build. No macro contains it, and no rule uses it.
            [major, minor, patch] | [major, minor, patch, _] => Ok(Self::new(major, minor, patch)),
            _ => Err(ParseVersionError(text.to_owned())),
        }
    }
}

/// The CUDA version of a toolkit or libcudart, or that a driver supports: two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaVersion {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
}

impl CudaVersion {
    /// Creates the version `major.minor`.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Converts from `CUDA_VERSION`, `cuDriverGetVersion`, …: `major * 1000 + minor * 10`.
    pub const fn from_int(number: u32) -> Self {
        Self::new(number / 1000, number % 1000 / 10)
    }

    /// Returns true if a number is in the format of CUDA releases: 13000, 13010, …
    pub const fn is_plausible(number: u32) -> bool {
        number >= 7000 && number < 100_000 && number % 10 == 0 && number % 1000 < 100
    }

    /// Converts to the format that [`CudaVersion::from_int`] reads.
    pub const fn to_int(self) -> u32 {
        self.major * 1000 + self.minor * 10
    }
}

impl From<Version> for CudaVersion {
    fn from(version: Version) -> Self {
        Self::new(version.major, version.minor)
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for CudaVersion {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        match numbers(text)?[..] {
            [major, minor] | [major, minor, _] => Ok(Self::new(major, minor)),
            _ => Err(ParseVersionError(text.to_owned())),
        }
    }
}

/// The release of a driver, `535.261.03`, from the kernel module or from libcuda's file name. The third number is
/// written with two digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriverRelease {
    /// The branch.
    pub branch: u32,
    /// Second number.
    pub minor: u32,
    /// Third number; 0 if the release has only two.
    pub patch: u32,
}

impl DriverRelease {
    /// The branch of Jetson drivers in 2024, which no other driver has.
    pub(crate) const JETPACK: u32 = 540;

    /// `branch.minor.patch`.
    pub const fn new(branch: u32, minor: u32, patch: u32) -> Self {
        Self { branch, minor, patch }
    }

    /// Decodes the release in the last two numbers of a driver's version on Windows: the last five digits of 31.0.15.5222 are 552.22.
    pub fn from_windows(third: u32, fourth: u32) -> Option<Self> {
        let digits = third % 10 * 10_000 + Some(fourth).filter(|fourth| *fourth <= 9999)?;
        (digits >= 10_000).then(|| Self::new(digits / 100, digits % 100, 0))
    }

    /// Returns true if the branch has three digits, as for every driver of a current GPU. `12.4` is a CUDA version
    /// instead.
    pub const fn is_one(self) -> bool {
        matches!(self.branch, 100..1000)
    }

    /// Packs the release as the manifest's rows store it: `branch << 16 | minor << 8 | patch`. Numbers that do not fit
    /// count as the largest that do.
    pub fn packed_saturating(self) -> u32 {
        Version::new(self.branch, self.minor, self.patch).packed_saturating()
    }

    /// Unpacks the result of [`DriverRelease::packed_saturating`].
    pub const fn from_packed(packed: u32) -> Self {
        Self::new(packed >> 16, packed >> 8 & 0xff, packed & 0xff)
    }
}

impl fmt::Display for DriverRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A whole branch, where nothing more is known.
            Self { branch, minor: 0, patch: 0 } => write!(f, "{branch}"),
            // Drivers of JetPack 6 have three numbers; in others the second has two digits at least (`576.02` of Windows).
            Self { branch: Self::JETPACK, minor: minor @ 0..10, patch: 0 } => write!(f, "{}.{minor}.0", Self::JETPACK),
            Self { branch, minor, patch: 0 } => write!(f, "{branch}.{minor:02}"),
            Self { branch, minor, patch } => write!(f, "{branch}.{minor:02}.{patch:02}"),
        }
    }
}

impl FromStr for DriverRelease {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        match numbers(text)?[..] {
            [branch] => Ok(Self::new(branch, 0, 0)),
            [branch, minor] => Ok(Self::new(branch, minor, 0)),
            [branch, minor, patch] => Ok(Self::new(branch, minor, patch)),
            // The version in the device manager of Windows: 31.0.15.5222.
            [_, 0, third, fourth] => {
                Self::from_windows(third, fourth).ok_or_else(|| ParseVersionError(text.to_owned()))
            }
            _ => Err(ParseVersionError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_version_roundtrips() {
        for version in [Version::new(9, 15, 1), Version::new(8, 9, 7), Version::new(7, 0, 255)] {
            assert_eq!(Version::from_packed(version.packed().unwrap()), version);
        }
        assert_eq!(Version::new(9, 15, 1).packed(), Some(0x9_0F01));
        assert_eq!(Version::new(9, 256, 0).packed(), None);
    }

    #[test]
    fn version_texts_are_parsed() {
        assert_eq!("9.15.1.9".parse(), Ok(Version::new(9, 15, 1)));
        assert_eq!("12.4".parse(), Ok(CudaVersion::new(12, 4)));
        assert_eq!("535.261.03".parse(), Ok(DriverRelease::new(535, 261, 3)));
        assert_eq!(DriverRelease::new(535, 261, 3).to_string(), "535.261.03");
        for text in ["580.65.06", "576.02", "540.4.0", "550", "535.54.03"] {
            assert_eq!(text.parse::<DriverRelease>().unwrap().to_string(), text);
        }
        assert_eq!("31.0.15.5222".parse(), Ok(DriverRelease::new(552, 22, 0)));
        for bad in ["31.1.15.5222", "31.0.10.9", "31.0.15.10000"] {
            assert!(bad.parse::<DriverRelease>().is_err(), "{bad}");
        }
        for bad in ["", ".", "12.", "v12", "12.x", "1.2.3.4.5", "4294967296.0", "+1.2"] {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
        assert_eq!(CudaVersion::from_int(12_020).to_string(), "12.2");
        assert_eq!(CudaVersion::new(13, 5).to_int(), 13_050);
    }
}
