//! Verifies the linked file of a crate against the checks of its build.

use crate::cli::report::CliError;
use cudaguard::internal::cudnn;
use std::fs;
use std::path::{Path, PathBuf};

use super::CrateBuild;
use crate::binary::file::Binary;
use crate::binary::kernels::Kernels;
use crate::binary::mapped_file::OpenFiles;
use crate::knowledge::vendor::{CUDART, CUDNN};
use crate::linked::check::Linked;
use crate::linked::evidence::{self, HostCode, Included, LinkEvidence};
use crate::linked::kernel_ownership;
use crate::linked::seal::ResolvedCudnn;
use crate::pipeline::{self, CheckedBuild};
use cudaguard::internal::checks;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::Finding;
use cudaguard::internal::lock::is_locked;
use cudaguard::internal::manifest::Linkage;
use cudaguard::internal::pipeline::BuildCheck;
use cudaguard::internal::toolchain::BuildSystem;

impl CrateBuild<'_> {
    /// Returns the objects that the linker is given by name, if this build created them.
    fn linked_objects(&self) -> Vec<PathBuf> {
        self.unit.objects.iter().filter(|object| object.starts_with(self.target_dir())).cloned().collect()
    }

    /// Returns the locations of build script outputs.
    fn build_outputs<'p>(
        &'p self,
        env: &Env,
        objects: &'p [PathBuf],
        files: &'p OpenFiles,
    ) -> kernel_ownership::BuildPlaces<'p> {
        let (out_dirs, target_dir) = (self.out_dirs(env), self.target_dir());
        kernel_ownership::BuildPlaces { package: None, out_dirs, objects, files, target_dir }
    }

    /// Returns the cuDNN headers that the code was compiled with, as far as the outputs of build scripts show them.
    fn included_headers(&self, env: &Env, binary: &Binary) -> Vec<Included> {
        if !binary.imported().any(|name| CUDNN.is_named(name)) {
            return Vec::new();
        }
        evidence::included_headers(&self.out_dirs(env))
    }

    /// Collects the evidence in the linked file about the toolkit.
    pub(super) fn link_evidence(
        &self,
        env: &Env,
        judged: &CheckedBuild,
        binary: &Binary,
        kernels: &Kernels,
        open: &OpenFiles,
    ) -> LinkEvidence {
        let in_use = judged.toolchain.toolkit_version().map(Into::into);
        // A directory that the linker searches without a `-L` option comes last.
        let usual = judged.toolchain.cudart.as_ref().filter(|cudart| !cudart.is_of_toolkit());
        let usual = usual.and_then(|cudart| cudart.path.parent().map(Path::to_owned));
        let library = judged.toolchain.library_used().and_then(|library| library.path.parent().map(Path::to_owned));
        let searched: Vec<PathBuf> = self.unit.searched.iter().cloned().chain(usual).chain(library).collect();
        let objects = self.linked_objects();
        let places = self.build_outputs(env, &objects, open);
        let mut seen = LinkEvidence::from_linked_file(binary, kernels, in_use, &searched, |data| {
            kernel_ownership::owned_containers(data, kernels, &places)
        });
        seen.host = Some(HostCode::from_objects(binary.data(), &kernel_ownership::object_files(&places), open));
        seen
    }

    /// Checks the linked file against the policy and its manifest.
    pub(super) fn verify_linked_file(
        &self,
        env: &Env,
        judged: &CheckedBuild,
        binary: &Binary,
        kernels: &Kernels,
        seen: &LinkEvidence,
        open: &OpenFiles,
    ) -> Result<(Option<ResolvedCudnn>, Vec<Finding>), CliError> {
        let BuildCheck { policy, toolchain, .. } = &judged.build;
        let noted = binary.manifests().flatten().map(|note| note.manifest);
        let manifest = noted.into_iter().find(|manifest| manifest.component.name == self.of.component.name);
        let facts = self.of.build_inputs();
        let manifest = manifest.unwrap_or_else(|| judged.to_manifest(&facts));
        let target_dir = self.target_dir();
        let mut own = Vec::new();
        if kernels.has_kernels()
            && !(policy.archs.is_empty() && policy.arch_words.is_empty() && manifest.declared.is_empty())
        {
            let places = kernel_ownership::BuildPlaces {
                package: Some(&self.of.dir),
                out_dirs: env.var_os("OUT_DIR").map(PathBuf::from).into_iter().collect(),
                objects: &self.unit.objects,
                files: open,
                target_dir,
            };
            own = kernel_ownership::owned_containers(binary.data(), kernels, &places);
        }
        let mut dirs = vec![(target_dir.to_owned(), "cargo's target directory")];
        dirs.extend(env.var_os("HOME").map(|home| (PathBuf::from(home), "the home directory of the building user")));
        let in_use = toolchain.named_releases();
        let linked = Linked {
            name: &self.unit.name,
            release: self.of.release,
            kernels,
            own: &own,
            declared_by: toolchain.archs.named_by(),
            seen,
            in_use: &in_use,
            by: BuildSystem::Cargo,
            needed: &binary.needed,
            cudart: binary.linkage_in_build(&CUDART),
            library: binary.linkage_in_build(&CUDNN),
            rpath: binary.rpath.as_deref(),
            runpath: binary.runpath.as_deref(),
            dirs: &dirs,
        };
        let shown = pipeline::compiled_with(policy, toolchain, seen, &self.included_headers(env, binary));
        let (taken, library) = if let Some((taken, new_findings)) = shown {
            (Some(taken), new_findings)
        } else {
            let found = self.links_the_library_found(judged, binary);
            let mut library = if found { checks::build::linked_library(policy, toolchain) } else { Vec::new() };
            let (taken, new_findings) = pipeline::resolve_cudnn(&facts, policy, toolchain, &manifest, binary, seen);
            library.extend(new_findings);
            (taken, library)
        };
        let mut findings = pipeline::judge_linked(&facts, policy, &manifest, &linked, library, taken.as_ref());
        findings.extend(pipeline::lock_drift(&facts, policy, &manifest, &linked, &judged.deferred, is_locked(env))?);
        Ok((taken, findings))
    }

    /// Returns true if the file links the cuDNN of the checked toolchain. A cuDNN that a build script passes to the
    /// linker is not the detected one.
    fn links_the_library_found(&self, judged: &CheckedBuild, binary: &Binary) -> bool {
        let Some(library) = judged.toolchain.library_used() else { return false };
        let soname = format!("{}.{}", cudnn::LINK_NAME, library.major);
        let real = |path: &Path| fs::canonicalize(path).ok();
        let found = real(&library.path);
        binary.linkage_in_build(&CUDNN) == Linkage::Linked
            && binary.needed.contains(&soname)
            && !self.unit.searched.iter().any(|dir| {
                let named = real(&dir.join(cudnn::LINK_NAME)).or_else(|| real(&dir.join(&soname)));
                named.is_some() && named != found
            })
    }
}
