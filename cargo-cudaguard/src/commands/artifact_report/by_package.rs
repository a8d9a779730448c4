//! One answer for each package of an environment, an image or a set of wheels, with the libraries of the others.

use std::collections::BTreeSet;

use super::packages::{ArtifactPackage, PackageId};
use super::{ArtifactMember, ArtifactReport, MemberClosure, MemberLoader, file_name};
use crate::binary::examined::NotExamined;
use crate::binary::file::BinaryKind;
use crate::cli::report::CliError;
use crate::host::machine::Components;

/// The part of an artifact that a question is about: a package, or the files that belong to none.
#[derive(Default)]
pub(super) struct PackageScope {
    /// The packages, as indices in [`ArtifactReport::packages`].
    packages: BTreeSet<usize>,
    /// True for the files of no package, and of packages that contain only libraries of NVIDIA's.
    is_rest: bool,
    /// The closures that start with one of its files, as indices in [`ArtifactReport::closures`].
    closures: BTreeSet<usize>,
    /// Libraries that only files of other packages need, with what they load.
    alone: Vec<MemberClosure>,
    /// The names of all files that it runs with.
    members: BTreeSet<String>,
    /// The names of the files that belong to it.
    own: BTreeSet<String>,
}

impl ArtifactReport {
    /// Returns the requirements of each package, and of the files that belong to none. `named`: the packages that the question is
    /// about; empty for all that use CUDA. The result is empty if the artifact is one package, or contains none.
    pub(crate) fn components_of_packages(
        &mut self,
        named: &[String],
    ) -> Result<Vec<(Option<PackageId>, Components)>, CliError> {
        let is_set = self.is_image() || self.walked.kind == "directory" || self.packages.len() > 1;
        let packages = if named.is_empty() { self.packages_with_cuda() } else { self.packages_named(named)? };
        if packages.is_empty() || named.is_empty() && !is_set {
            return Ok(Vec::new());
        }
        let owners = self.owners();
        let mut all = Vec::new();
        for at in &packages {
            let mut components = self.components_in(self.scope_of_packages(BTreeSet::from([*at]), &owners));
            components.file = self.packages[*at].name_and_version();
            // Only a package that the question names must have something to check.
            if components.is_empty() && named.is_empty() {
                continue;
            }
            if components.is_empty() {
                let why = "nothing to check: no file of it contains GPU code or requirements on a CUDA library";
                return Err(CliError::operational(format_args!("{}: {why}", components.file)));
            }
            all.push((Some(self.packages[*at].id()), components));
        }
        if named.is_empty() {
            let rest = self.components_in(self.scope_of_rest(&packages, &owners));
            all.extend((!rest.is_empty()).then_some((None, rest)));
        }
        Ok(all)
    }

    /// Returns the requirements of these packages together, or of everything if none is named.
    pub(crate) fn components_with_packages(&mut self, named: &[String]) -> Result<Components, CliError> {
        let each = self.components_of_packages(named)?;
        if each.is_empty() {
            return Ok(self.components());
        }
        let packages = each.into_iter().map(|(_, components)| components).collect();
        Ok(Components::from_packages(self.archive.display().to_string(), packages))
    }

    /// Limits the report to these packages, if any is named.
    pub(crate) fn limit_to(&mut self, named: &[String]) -> Result<(), CliError> {
        if !named.is_empty() {
            self.scope = Some(self.scope_of_packages(self.packages_named(named)?, &self.owners()));
        }
        Ok(())
    }

    /// Returns the package of each loader.
    fn owners(&self) -> Vec<Option<usize>> {
        self.loaders.iter().map(|loader| self.owner_of(&loader.name)).collect()
    }

    /// Returns the package with this member.
    fn owner_of(&self, member: &str) -> Option<usize> {
        self.packages.iter().position(|package| package.lists_member(member))
    }

    /// Returns the packages with files that use CUDA and are not libraries of NVIDIA's: those are judged with the files that load them.
    fn packages_with_cuda(&self) -> BTreeSet<usize> {
        let is_of_vendor = |part: &&ArtifactMember| part.is_of_nvidia() || part.is_of_vendor() || part.is_driver();
        // A static library is for the programs that link it, as is loose code without kernels.
        let is_linked = |part: &&ArtifactMember| match part.binary.kind {
            BinaryKind::Archive => false,
            BinaryKind::GpuCode => part.kernels.has_kernels(),
            _ => true,
        };
        let own = self.own_parts().filter(|part| !is_of_vendor(part)).filter(is_linked);
        own.filter_map(|part| self.owner_of(&part.name)).collect()
    }

    fn packages_named(&self, named: &[String]) -> Result<BTreeSet<usize>, CliError> {
        let mut found = BTreeSet::new();
        for name in named {
            let before = found.len();
            found.extend((0..self.packages.len()).filter(|at| self.packages[*at].is_named(name)));
            if found.len() == before {
                let known: BTreeSet<String> =
                    self.packages.iter().filter(|one| one.is_one()).map(ArtifactPackage::name_and_version).collect();
                let known = known.into_iter().collect::<Vec<_>>().join(", ");
                let known = if known.is_empty() { "none".to_owned() } else { known };
                let archive = self.archive.display();
                return Err(CliError::operational(format_args!("{archive}: no package {name}; its packages: {known}")));
            }
        }
        Ok(found)
    }

    fn scope_of_packages(&self, packages: BTreeSet<usize>, owners: &[Option<usize>]) -> PackageScope {
        let is_own = |at: &usize| owners[*at].is_some_and(|owner| packages.contains(&owner));
        let own: BTreeSet<usize> = (0..owners.len()).filter(is_own).collect();
        let closures = self.closures_from(&own);
        let mut loaded: BTreeSet<usize> = closures.iter().flat_map(|at| self.closures[*at].members()).collect();
        let is_alone = |at: &&usize| {
            !loaded.contains(at) && self.loaders[**at].is_loadable() && !self.loaders[**at].is_for_windows
        };
        let alone: Vec<MemberClosure> = own.iter().filter(is_alone).map(|at| self.load_members(*at)).collect();
        loaded.extend(alone.iter().flat_map(MemberClosure::members));
        loaded.extend(&own);
        let (members, own) = (self.names_of(&loaded), self.names_of(&own));
        PackageScope { packages, closures, alone, members, own, ..PackageScope::default() }
    }

    /// Returns the scope of what neither belongs to one of these packages nor is loaded for it.
    fn scope_of_rest(&self, packages: &BTreeSet<usize>, owners: &[Option<usize>]) -> PackageScope {
        let is_judged = |owner: &Option<usize>| owner.is_some_and(|owner| packages.contains(&owner));
        let of_packages: BTreeSet<usize> = (0..owners.len()).filter(|at| is_judged(&owners[*at])).collect();
        let closures = self.closures_from(&of_packages);
        let mut loaded: BTreeSet<usize> = closures.iter().flat_map(|at| self.closures[*at].members()).collect();
        loaded.extend(of_packages);
        let own: BTreeSet<usize> = (0..owners.len()).filter(|at| !loaded.contains(at)).collect();
        let closures = self.closures_from(&own);
        let mut members: BTreeSet<usize> = closures.iter().flat_map(|at| self.closures[*at].members()).collect();
        members.extend(&own);
        PackageScope {
            packages: (0..self.packages.len()).filter(|at| !packages.contains(at)).collect(),
            is_rest: true,
            closures,
            members: self.names_of(&members),
            own: self.names_of(&own),
            ..PackageScope::default()
        }
    }

    /// Returns the closures whose first member is one of these.
    fn closures_from(&self, roots: &BTreeSet<usize>) -> BTreeSet<usize> {
        let starts = |at: &usize| roots.contains(&self.closures[*at].root());
        (0..self.closures.len()).filter(starts).collect()
    }

    fn names_of(&self, loaders: &BTreeSet<usize>) -> BTreeSet<String> {
        // No process loads a static library.
        let loaders = loaders.iter().map(|at| &self.loaders[*at]).filter(|loader| !loader.is_archive());
        loaders.map(|loader| loader.name.clone()).collect()
    }

    fn components_in(&mut self, scope: PackageScope) -> Components {
        let whole = self.scope.replace(scope);
        let components = self.components();
        self.scope = whole;
        components
    }

    /// Returns the closures that the question is about: those that count, and those that start with a library of NVIDIA's which no
    /// other file loads.
    pub(super) fn used_and_idle_closures(&self) -> (Vec<&MemberClosure>, Vec<&MemberClosure>) {
        let (mut used, mut idle): (Vec<_>, Vec<_>) =
            self.judged_closures().partition(|closure| self.is_used(&self.loaders[closure.root()]));
        let is_package = self.scope.as_ref().is_some_and(|scope| !scope.is_rest);
        if is_package || used.is_empty() && !self.is_rest() {
            used.append(&mut idle);
        }
        (used, idle)
    }

    /// Returns true for a file that is no library of NVIDIA's, and for one that such a file may open by its name.
    pub(super) fn is_used(&self, root: &MemberLoader) -> bool {
        let names = [Some(file_name(&root.name)), root.soname.as_deref()];
        let may_open = |loader: &MemberLoader| names.into_iter().flatten().any(|name| loader.may_open_library(name));
        !root.is_of_nvidia() || self.judged_loaders().any(|loader| !loader.is_of_nvidia() && may_open(loader))
    }

    /// Returns true if the question is about the files of no package.
    pub(super) fn is_rest(&self) -> bool {
        self.scope.as_ref().is_some_and(|scope| scope.is_rest)
    }

    /// Returns the members that the question is about, with those that are loaded for them.
    pub(crate) fn judged_parts(&self) -> impl Iterator<Item = &ArtifactMember> {
        self.parts.iter().filter(|part| self.scope.as_ref().is_none_or(|scope| scope.members.contains(&part.name)))
    }

    /// Returns the closures that the question is about.
    pub(super) fn judged_closures(&self) -> impl Iterator<Item = &MemberClosure> {
        let is_judged = |at: usize| self.scope.as_ref().is_none_or(|scope| scope.closures.contains(&at));
        let closures =
            self.closures.iter().enumerate().filter(move |(at, _)| is_judged(*at)).map(|(_, closure)| closure);
        closures.chain(self.scope.iter().flat_map(|scope| &scope.alone))
    }

    /// Returns the own programs and libraries of the question.
    pub(super) fn judged_loaders(&self) -> impl Iterator<Item = &MemberLoader> {
        self.loaders.iter().filter(|loader| self.scope.as_ref().is_none_or(|scope| scope.own.contains(&loader.name)))
    }

    /// Returns true if the question is about this member, and not only about a file that loads it. Libraries of NVIDIA's packages
    /// are judged with the files that load them.
    pub(super) fn is_own(&self, name: &str) -> bool {
        let Some(scope) = &self.scope else { return true };
        scope.own.contains(name) && !(scope.is_rest && self.owner_of(name).is_some())
    }

    /// Returns the members that the question is about, without what is loaded for them.
    pub(crate) fn released_parts(&self) -> impl Iterator<Item = &ArtifactMember> {
        self.own_parts().filter(|part| self.is_own(&part.name))
    }

    /// Returns the packages that the question is about.
    pub(super) fn judged_packages(&self) -> impl Iterator<Item = &ArtifactPackage> {
        let is_judged = |at: usize| self.scope.as_ref().is_none_or(|scope| scope.packages.contains(&at));
        self.packages.iter().enumerate().filter(move |(at, _)| is_judged(*at)).map(|(_, package)| package)
    }

    /// Returns what was not examined of the part that the question is about.
    pub(crate) fn judged_not_examined(&self) -> Vec<NotExamined> {
        let Some(scope) = &self.scope else { return self.not_examined.clone() };
        let is_own = |name: &str| match self.owner_of(name) {
            Some(owner) => scope.packages.contains(&owner),
            None => scope.is_rest || scope.members.contains(name),
        };
        self.not_examined.iter().filter(|part| is_own(&part.name)).cloned().collect()
    }
}
