//! Findings about files of NVIDIA's that run together and do not fit.
//!
//! Functions that one file binds and another lacks are reported by the simulation of the dynamic linker.

use std::collections::BTreeSet;

use super::fit_facts::{Member, file_name};
use crate::knowledge::vendor::{self, BUILTINS, CUBLAS, CUBLAS_LT, CUDART, NCCL, NVRTC, stem_of};
use cudaguard::internal::finding::{Finding, MessageTemplate, Values};
use cudaguard::internal::version::Version;

/// Returns the member (an index) that the dynamic linker loads for another member under a soname. The builtins of NVRTC count, although it
/// opens them only when it compiles.
pub(crate) type Resolve<'a> = dyn Fn(usize, &str) -> Option<usize> + 'a;

/// Returns true if a member (an index) that opens this name does not find it, neither among the members nor on the machine.
pub(crate) type Absent<'a> = dyn Fn(usize, &str) -> bool + 'a;

/// The members that run in one process.
pub(crate) struct MembersOfProcess {
    /// The name of the program, or of the library that no other file needs. It need not be a member.
    pub(crate) root: String,
    /// The members (indices) that the dynamic linker loads for it.
    pub(crate) members: Vec<usize>,
}

impl MembersOfProcess {
    /// Creates a process that loads each of `count` members.
    pub(crate) fn all(root: String, count: usize) -> Self {
        Self { root, members: (0..count).collect() }
    }
}

/// Returns the findings about the first `judged` of these members. The others are installed with them.
pub(crate) fn findings(
    members: &[&Member],
    judged: usize,
    processes: &[MembersOfProcess],
    resolve: &Resolve<'_>,
    absent: &Absent<'_>,
) -> Vec<Finding> {
    let set = Set { members, judged: &members[..judged], processes, resolve, absent };
    let mut findings = set.for_each(Set::mixed_cublas);
    findings.extend(set.for_each(Set::builtins));
    findings.extend(set.other_compilers());
    findings.extend(set.two_cudarts());
    findings.extend(set.cudnn());
    findings.extend(set.for_each(Set::older_nccl));
    findings
}

struct Set<'a> {
    members: &'a [&'a Member],
    judged: &'a [&'a Member],
    processes: &'a [MembersOfProcess],
    resolve: &'a Resolve<'a>,
    absent: &'a Absent<'a>,
}

impl<'a> Set<'a> {
    /// Returns the member that a soname denotes for another member: the one that the dynamic linker finds, or the only one of
    /// that name.
    fn provider(&self, by: usize, soname: &str) -> Option<&'a Member> {
        if let Some(found) = (self.resolve)(by, soname) {
            return self.members.get(found).copied();
        }
        let plain = vendor::plain_name(soname);
        let mut named = self.members.iter().filter(|member| member.soname == *plain);
        named.next().filter(|_| named.next().is_none()).copied()
    }

    /// Checks each file.
    fn for_each(&self, check: impl Fn(&Self, usize, &Member) -> Option<Finding>) -> Vec<Finding> {
        self.judged.iter().enumerate().filter_map(|(at, member)| check(self, at, member)).collect()
    }

    /// Compares a cuBLAS with the cuBLASLt that it loads.
    fn mixed_cublas(&self, at: usize, cublas: &Member) -> Option<Finding> {
        if !cublas.is(&CUBLAS) {
            return None;
        }
        let soname = cublas.needed.iter().find(|name| vendor::plain_name(name).starts_with(CUBLAS_LT.stem()))?;
        let light = self.provider(at, soname).filter(|light| light.is(&CUBLAS_LT))?;
        let part = light.version()?;
        let values = pair(cublas, CUBLAS.name, light, CUBLAS_LT.name).with("part", part);
        if let Some(found) = cublas.version().filter(|found| *found != part) {
            return Some(MessageTemplate::FamilyMixed.to_finding(&values.with("found", found)));
        }
        // The version may be that of a package whose file was replaced.
        let (from, before) = cublas.cublas_range;
        let is_older = from.is_some_and(|from| minor(part) < minor(from));
        let is_newer = before.is_some_and(|before| minor(part) >= minor(before));
        let value = match (from, before) {
            (Some(from), Some(before)) => format!("{from} or newer, and none of {before}"),
            (Some(from), None) => format!("{from} or newer"),
            (None, Some(before)) => format!("before {before}"),
            (None, None) => return None,
        };
        (is_older || is_newer).then(|| MessageTemplate::FamilyMixedFunctions.to_finding(&values.with("value", value)))
    }

    /// Compares an NVRTC with the builtins that it opens.
    fn builtins(&self, at: usize, nvrtc: &Member) -> Option<Finding> {
        if !nvrtc.is(&NVRTC) {
            return None;
        }
        let (found, wanted) = (nvrtc.version()?, nvrtc.builtins_name()?);
        let other = match (self.resolve)(at, &wanted).map(|opened| &self.members[opened]) {
            Some(opened) if !has_other_minor(opened, found) => return None,
            Some(opened) => Some(opened),
            None => self
                .members
                .iter()
                .find(|member| member.is(&BUILTINS) && member.dir() == nvrtc.dir() && has_other_minor(member, found)),
        };
        let values = Values::default().with("library", NVRTC.name).with("path", &nvrtc.name);
        let values = values.with("found", found).with("needed_by", wanted);
        Some(match other {
            Some(other) => {
                let values = values.with("other", BUILTINS.name).with("beside", &other.name);
                MessageTemplate::FamilyMixedBuiltins.to_finding(&values.with_known("part", other.version_text()))
            }
            None => MessageTemplate::LibraryNotStatedBuiltins.to_finding(&values),
        })
    }

    /// Reports libraries that open a compiler of a CUDA major, if the set has only other majors of it.
    fn other_compilers(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (at, member) in self.judged.iter().enumerate() {
            for soname in &member.opens {
                if self.provider(at, soname).is_some() || self.members.iter().any(|other| other.soname == *soname) {
                    continue;
                }
                let stem = stem_of(soname);
                let Some(other) = self.members.iter().find(|other| stem_of(&other.soname) == stem) else { continue };
                let title = member.release.as_ref().map_or_else(|| file_name(&member.name), |release| release.of.name);
                let values = Values::default().with("component", title).with("needed_by", &member.name);
                let values = values.with("library", soname).with("other", &other.soname).with("path", &other.name);
                findings.push(MessageTemplate::CompilerAbsent.to_finding(&values));
            }
        }
        findings
    }

    /// Reports processes that load shared cudarts of two majors. The same two files are reported once.
    fn two_cudarts(&self) -> Vec<Finding> {
        let (mut findings, mut reported) = (Vec::new(), BTreeSet::new());
        for process in self.processes {
            let mut cudarts: BTreeSet<(u32, &str, usize)> = BTreeSet::new();
            for at in &process.members {
                cudarts.extend(self.cudarts(*at).map(|(major, soname)| (major, soname, *at)));
            }
            let mut cudarts = cudarts.iter();
            let Some((major, first, needed_by)) = cudarts.next() else { continue };
            let Some((_, second, by)) = cudarts.find(|(other, ..)| other != major) else { continue };
            if !reported.insert((*needed_by, *by)) {
                continue;
            }
            let values =
                Values::default().with("component", &process.root).with("library", *first).with("other", *second);
            let values = values.with("needed_by", &self.members[*needed_by].name).with("by", &self.members[*by].name);
            findings.push(MessageTemplate::TwoCudarts.to_finding(&values));
        }
        findings
    }

    /// Returns the shared cudarts that a member needs itself: the major and the name.
    fn cudarts(&self, at: usize) -> impl Iterator<Item = (u32, &'a str)> {
        self.members[at].needed.iter().filter_map(|soname| Some((CUDART.major(soname)?, soname.as_str())))
    }

    /// Compares the CUDA major of each cuDNN with that of cuBLASLt and NVRTC, which it opens.
    fn cudnn(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let made = self.judged.iter().enumerate().filter_map(|(at, member)| Some((at, member, member.cudnn_for?)));
        let majors: BTreeSet<u32> = made.clone().map(|(_, _, cuda)| cuda.major).collect();
        for (at, cudnn, cuda) in made {
            // An environment may contain several, and only one of them is used.
            if majors.len() > 1 || findings.iter().any(|finding: &Finding| finding.subject == "cuDNN") {
                continue;
            }
            let mut absent = Vec::new();
            for library in [&CUBLAS_LT, &NVRTC] {
                let wanted = format!("{}.so.{}", library.stem(), cuda.major);
                let mut all = self.members.iter().filter(|member| member.is(library)).peekable();
                let Some(other) = all.peek().copied() else {
                    // If the name with the major is absent, cuDNN opens the one of the files for development.
                    let names = [wanted, format!("{}.so", library.stem())];
                    if names.iter().all(|name| (self.absent)(at, name)) {
                        absent.extend(names.into_iter().take(1));
                    }
                    continue;
                };
                let here = vendor::major_of(&other.soname);
                if all.any(|member| vendor::major_of(&member.soname) == Some(cuda.major)) {
                    continue;
                }
                let values = Values::default().with("cuda", cuda).with_known("major", here).with("library", wanted);
                let values = values.with("other", &other.soname).with("beside", &other.name).with("path", &cudnn.name);
                findings.push(MessageTemplate::CudnnFamily.to_finding(&values));
                absent.clear();
                break;
            }
            // The names of the runtime libraries of CUDA 11 do not follow its major.
            if !absent.is_empty() && cuda.major >= 12 {
                let values = Values::default().with("library", absent.join(", ")).with("path", &cudnn.name);
                findings.push(MessageTemplate::CudnnFamilyAbsent.to_finding(&values.with("major", cuda.major)));
            }
        }
        findings
    }
}

/// Returns the newest release of NCCL's headers that one of these members was compiled with, and that member. `None` if the
/// set has an NCCL.
pub(crate) fn wanted_nccl<'a>(members: impl IntoIterator<Item = &'a Member>) -> Option<(String, Version)> {
    let mut newest: Option<(String, Version)> = None;
    for member in members {
        if member.is_nccl() {
            return None;
        }
        if let Some(built) = member.nccl_headers.filter(|built| newest.as_ref().is_none_or(|(_, known)| known < built))
        {
            newest = Some((member.name.clone(), built));
        }
    }
    newest
}

/// Returns the finding that a file was compiled with the headers of a newer NCCL than the one that is loaded.
pub(crate) fn older_nccl_finding(file: &str, built: Version, found: Version, path: Option<&str>) -> Option<Finding> {
    let values = Values::default().with("component", file_name(file)).with("built", built).with("found", found);
    let values = values.with("needed_by", file).with_known("path", path);
    (found < built).then(|| MessageTemplate::NcclOlderThanHeaders.to_finding(&values))
}

impl Set<'_> {
    /// Compares the NCCL that a file loads with the headers that the file was compiled with.
    fn older_nccl(&self, at: usize, member: &Member) -> Option<Finding> {
        let built = member.nccl_headers?;
        let soname = member.needed.iter().find(|name| NCCL.is_named(name))?;
        let library = self.provider(at, soname).filter(|library| library.is_nccl())?;
        older_nccl_finding(&member.name, built, library.version()?, Some(&library.name))
    }
}

fn pair(one: &Member, name: &str, other: &Member, other_name: &str) -> Values {
    let values = Values::default().with("library", name).with("other", other_name);
    values.with("path", &one.name).with("beside", &other.name)
}

fn has_other_minor(member: &Member, version: Version) -> bool {
    member.version().is_some_and(|own| minor(own) != minor(version))
}

fn minor(version: Version) -> (u32, u32) {
    (version.major, version.minor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{FileVersion, Release};
    use cudaguard::internal::finding::{Code, Severity};
    use cudaguard::internal::version::CudaVersion;

    /// A member with this name, and with a version if it is in the family. `needs` are sonames, separated by spaces.
    fn member(name: &str, version: &str, needs: &str) -> Member {
        let of = vendor::released_library(file_name(name));
        let version = version.parse().ok().map(|number: Version| FileVersion {
            version: number,
            is_exact: true,
            read_from: "text".to_owned(),
        });
        Member {
            name: name.to_owned(),
            soname: vendor::plain_name(file_name(name)).into_owned(),
            release: of.map(|of| Release { of, version }),
            needed: needs.split_whitespace().map(str::to_owned).collect(),
            ..Member::default()
        }
    }

    /// Returns the codes and first lines of the findings. A library is found by its file name, in any directory.
    fn messages(members: &[Member]) -> Vec<String> {
        messages_of(members, &[])
    }

    fn messages_of(members: &[Member], processes: &[MembersOfProcess]) -> Vec<String> {
        let all: Vec<&Member> = members.iter().collect();
        let resolve = |_: usize, soname: &str| members.iter().position(|member| file_name(&member.name) == soname);
        let findings = findings(&all, all.len(), processes, &resolve, &|_, _| false);
        assert!(findings.iter().all(|finding| finding.severity < Severity::Error), "{findings:?}");
        findings.iter().map(|finding| finding.message.lines().next().unwrap_or_default().to_owned()).collect()
    }

    fn nothing() -> Vec<String> {
        Vec::new()
    }

    #[test]
    fn mixed_cublas_is_reported() {
        let cublas = |version| member("lib/libcublas.so.12", version, "libcublasLt.so.12 libc.so.6");
        let light = |version| member("lib/libcublasLt.so.12", version, "libc.so.6");
        assert_eq!(messages(&[cublas("12.4.5.8"), light("12.4.5")]), nothing());
        assert_eq!(
            messages(&[cublas("12.8.4.1"), light("12.1.3")]),
            ["cuBLAS 12.8.4 and cuBLASLt 12.1.3 are of two releases"]
        );
        // Without a version, the functions decide: those of 12.4.2 to 12.5.1.
        let range = (Some(Version::new(12, 4, 2)), Some(Version::new(12, 5, 2)));
        let by_functions = |range| Member { cublas_range: range, ..cublas("") };
        assert_eq!(messages(&[by_functions(range), light("12.4.5")]), nothing());
        assert_eq!(
            messages(&[by_functions(range), light("12.1.3")]),
            [
                "cuBLAS is not of the release of cuBLASLt 12.1.3: it has the functions of cuBLAS 12.4.2 or newer, and none of 12.5.2"
            ]
        );
        assert_eq!(messages(&[by_functions((None, None)), light("12.1.3")]), nothing());
        // The file of another release replaced that of the package.
        let replaced = Member { cublas_range: (None, Some(Version::new(12, 4, 2))), ..cublas("12.4.5") };
        assert_eq!(
            messages(&[replaced, light("12.4.5")]),
            ["cuBLAS is not of the release of cuBLASLt 12.4.5: it has the functions of cuBLAS before 12.4.2"]
        );
        // Neither version of another file, nor a file that is not there, is compared.
        assert_eq!(messages(&[cublas("12.8.4"), light("")]), nothing());
        assert_eq!(messages(&[cublas("12.8.4")]), nothing());
    }

    #[test]
    fn builtins_of_another_release_are_reported() {
        let nvrtc = member("lib/libnvrtc.so.12", "12.4.127", "libc.so.6");
        let builtins = |name, version| member(name, version, "libc.so.6");
        assert_eq!(messages(&[nvrtc.clone(), builtins("lib/libnvrtc-builtins.so.12.4", "12.4")]), nothing());
        assert_eq!(messages(&[nvrtc.clone(), builtins("other/libnvrtc-builtins.so.12.4", "12.4")]), nothing());
        assert_eq!(
            messages(&[nvrtc.clone(), builtins("lib/libnvrtc-builtins.so.12.6", "12.6.77")]),
            ["NVRTC 12.4.127 has only the builtins of 12.6.77: each compilation at run time fails"]
        );
        assert_eq!(
            messages(&[nvrtc.clone(), builtins("other/libnvrtc-builtins.so.12.6", "12.6.77")]),
            [
                "NVRTC 12.4.127 comes without libnvrtc-builtins.so.12.4: each compilation at run time fails, unless the machine has this file"
            ]
        );
        // Wheel repair renamed the builtins, but not the name in NVRTC.
        let renamed = builtins("lib/libnvrtc-builtins-ef567890.so.12.4.127", "12.4");
        assert_eq!(messages(&[nvrtc.clone(), renamed.clone()]).len(), 1);
        let patched = Member { builtins: Some("libnvrtc-builtins-ef567890.so.12.4.127".to_owned()), ..nvrtc.clone() };
        assert_eq!(messages(&[patched, renamed]), nothing());
        let alt = member("lib/libnvrtc.alt.so.12", "12.9.86", "");
        assert_eq!(messages(&[alt.clone(), builtins("lib/libnvrtc-builtins.alt.so.12.9", "12.9")]), nothing());
        assert_eq!(messages(&[alt, builtins("lib/libnvrtc-builtins.so.12.9", "12.9")]).len(), 1);
        let dll = member("nvrtc64_120_0.dll", "12.4.127", "KERNEL32.dll");
        assert_eq!(messages(&[dll, builtins("nvrtc-builtins64_124.dll", "12.4")]), nothing());
        assert_eq!(messages(&[member("lib/libnvrtc.so.12", "", "")]), nothing());
    }

    #[test]
    fn opened_compiler_of_another_major_is_reported() {
        let opens = |name, opened: &str| Member { opens: vec![opened.to_owned()], ..member(name, "12.0.0", "") };
        let cufft = opens("lib/libcufft.so.12", "libnvJitLink.so.13");
        let linker = |name| member(name, "12.4.127", "");
        let mixed = [cufft.clone(), linker("lib/libnvJitLink.so.12")];
        assert_eq!(
            findings(&mixed.each_ref(), mixed.len(), &[], &|_, _| None, &|_, _| false)[0].code,
            Code::CompilerAbsent
        );
        assert_eq!(messages(&mixed), ["cuFFT opens libnvJitLink.so.13, but only libnvJitLink.so.12 is here"]);
        let both = [cufft.clone(), linker("lib/libnvJitLink.so.12"), linker("lib/libnvJitLink.so.13")];
        assert_eq!(messages(&both), nothing());
        assert_eq!(messages(&[cufft]), nothing());
    }

    #[test]
    fn program_with_two_shared_cudarts_is_reported() {
        let library = |name, needs| member(name, "", needs);
        let process =
            |root: &str, members: &[usize]| MembersOfProcess { root: root.to_owned(), members: members.to_vec() };
        let mixed = [library("liba.so", "libcudart.so.12"), library("libb.so", "libcudart.so.13")];
        // The program needs no library of NVIDIA itself, so it is no member.
        let app = process("bin/app", &[0, 1]);
        assert_eq!(messages_of(&mixed, &[app]), ["bin/app loads libcudart.so.12 and libcudart.so.13"]);
        let two = [process("bin/app", &[0, 1]), process("bin/other", &[0, 1])];
        assert_eq!(messages_of(&mixed, &two), ["bin/app loads libcudart.so.12 and libcudart.so.13"]);
        // Variants in one directory that nothing loads together.
        assert_eq!(messages_of(&mixed, &[process("liba.so", &[0]), process("libb.so", &[1])]), nothing());
        let same = [library("liba.so", "libcudart.so.12"), library("libb.so", "libcudart-ab12cd34.so.12.4.127")];
        assert_eq!(messages_of(&same, &[process("bin/app", &[0, 1])]), nothing());
    }

    #[test]
    fn nccl_older_than_headers_is_reported() {
        let built = Some(Version::new(2, 28, 9));
        let program = Member { nccl_headers: built, ..member("bin/app", "", "libnccl.so.2 libc.so.6") };
        let nccl = |version| member("lib/libnccl.so.2", version, "libc.so.6");
        assert_eq!(
            messages(&[program.clone(), nccl("2.20.5")]),
            ["app was compiled with the headers of NCCL 2.28.9, but NCCL 2.20.5 is loaded"]
        );
        for fits in [nccl("2.28.9"), nccl("2.30.3"), nccl(""), member("lib/libcudart.so.12", "12.4", "")] {
            assert_eq!(messages(&[program.clone(), fits]), nothing());
        }
        let wanted = wanted_nccl([&program, &member("liba.so", "", "libnccl.so.2")]);
        assert_eq!(wanted, built.map(|built| ("bin/app".to_owned(), built)));
        assert_eq!(wanted_nccl([&program, &nccl("2.20.5")]), None);
        let unknown = member("bin/app", "", "libnccl.so.2");
        assert_eq!(messages(&[unknown, nccl("2.20.5")]), nothing());
    }

    #[test]
    fn cudnn_of_another_major_is_reported() {
        let cudnn = |cuda| Member { cudnn_for: Some(cuda), ..member("lib/libcudnn_graph.so.9", "", "") };
        let twelve = cudnn(CudaVersion::new(12, 9));
        let light = |name| member(name, "12.9.1", "");
        assert_eq!(messages(&[twelve.clone(), light("lib/libcublasLt.so.12")]), nothing());
        assert_eq!(
            messages(&[twelve.clone(), light("lib/libcublasLt.so.13")]),
            ["cuDNN is made for CUDA 12.9, but only libcublasLt.so.13 is here"]
        );
        let absent = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let found = findings(&[&twelve], 1, &[], &|_, _| None, &move |_, name| names.iter().any(|one| one == name));
            found.into_iter().map(|finding| finding.message).collect::<Vec<_>>()
        };
        assert_eq!(
            absent(&["libnvrtc.so.12", "libnvrtc.so", "libcublasLt.so.12", "libcublasLt.so"]),
            [
                "the dynamic linker does not find libcublasLt.so.12, libnvrtc.so.12, which cuDNN opens by name\ncuDNN: lib/libcudnn_graph.so.9"
            ]
        );
        assert_eq!(absent(&["libnvrtc.so.12"]), nothing());
        // Several environments in one directory.
        let several = [twelve.clone(), cudnn(CudaVersion::new(13, 0)), light("lib/libcublasLt.so.13")];
        assert_eq!(messages(&several), nothing());
        assert_eq!(messages(&[twelve]), nothing());
        assert_eq!(Code::CudnnFamily.severity(), Severity::Warning);
    }
}
