// Written by `cargo findings` from guard-core/data/findings.toml; a test keeps it so.

codes! {
    100 ToolkitMissing Error Refuses 255 false;
    101 ToolkitMixed Error Refuses 255 false;
    102 CudartMixed Error Refuses 255 false;
    103 ToolkitNotAllowed Error Refuses 255 false;
    104 ToolkitUnreadable Warning Informs 255 false;
    105 HostCompilerRejected Error Refuses 255 false;
    106 StubInRuntimePath Error Refuses 255 false;
    107 LockDrift Error Refuses 255 false;
    108 LockLacksTarget Warning Informs 255 false;
    109 StaleAllow Info Informs 255 false;
    110 CudnnMixed Error Refuses 255 false;
    111 CudnnForOtherCuda Error Refuses 255 false;
    112 CudnnIncomplete Error Refuses 255 false;
    113 CudnnNotAllowed Error Refuses 255 false;
    114 CudnnUnreadable Warning Informs 255 false;
    115 MathHeadersConflict Error Refuses 255 false;
    120 ArchTooNew Error Refuses 255 false;
    121 ArchDropped Error Refuses 255 false;
    122 NoPtx Info Informs 255 false;
    123 ArchsContradict Warning Informs 255 false;
    124 NativeUnknown Error Refuses 255 false;
    125 NativeOutsideFleet Error Refuses 255 false;
    126 ArchUnreadable Error Refuses 255 false;
    127 ArchOnlyByPtx Warning Informs 255 false;
    128 ArchMissing Error Refuses 255 false;
    129 ArchSurplus Warning Informs 255 false;
    130 FleetUnserved Error Refuses 255 false;
    131 FleetPartial Warning Informs 255 false;
    132 FleetUndeclared Error Refuses 255 false;
    133 DriverFleetOlder Error Refuses 255 false;
    134 BuildMachinePath Warning Informs 255 false;
    135 DriverFleetCode Error Refuses 255 false;
    136 CudnnFleetOlder Error Refuses 255 false;
    137 CudnnLeftGpu Error Refuses 255 false;
    138 CudnnBeforeGpu Warning Informs 255 false;
    139 FleetCannotTell Warning Informs 255 false;
    140 Unguarded Warning Informs 255 false;
    141 NoSuchPackage Warning Informs 255 false;
    142 NotAsRecorded Error Refuses 255 false;
    143 OwnKernelsUnknown Info Informs 255 false;
    144 OtherToolkitUsed Error Refuses 255 false;
    145 CudartOfOtherToolkit Error Refuses 255 false;
    146 CudnnHeadersUnknown Warning Informs 255 false;
    147 TorchWithoutCuda Warning Informs 255 false;
    150 CrateForOtherCuda Error Refuses 255 false;
    151 CrateForOtherCudnn Error Refuses 255 false;
    152 CratesDisagree Error Refuses 255 false;
    153 CrateRaisesDriver Error Refuses 255 false;
    154 CrateToolkitMixed Error Refuses 255 false;
    155 CrateStale Error Refuses 255 false;
    156 CrateArchOutsideFleet Error Refuses 255 false;
    157 CrateArchSpecific Info Informs 255 false;
    158 BuilderGpuDecides Error Refuses 255 false;
    159 CrateStops Warning Informs 255 false;
    170 GuardNotLinked Error Refuses 255 false;
    201 CudnnOtherMajor Error Refuses 41 true;
    202 CudnnOlder Error Refuses 44 true;
    203 CudnnOlderPatch Error Refuses 45 true;
    204 CudnnInnerMissing Error Refuses 42 true;
    205 CudnnAbsent Error Refuses 40 true;
    206 CudnnInnerMixed Error Refuses 43 true;
    207 CudnnOtherCuda Warning Informs 57 true;
    210 LibraryAbsent Error Refuses 11 false;
    211 WrongMachine Error Refuses 10 false;
    212 LibraryDamaged Error Refuses 12 false;
    213 LibraryTooOld Error Refuses 13 false;
    214 LibraryLacksSymbol Error Refuses 14 true;
    231 FamilyMixed Warning Informs 28 false;
    232 CompilerAbsent Warning Informs 29 false;
    233 TwoCudarts Warning Informs 39 false;
    234 CudnnFamily Warning Informs 47 false;
    235 CompilerNewerThanDriver Warning Informs 37 false;
    236 CompilerUnknownGpu Warning Informs 38 false;
    237 NcclOlderThanHeaders Warning Informs 48 false;
    238 OpenedLibraryAbsent Warning Informs 49 false;
    301 DriverTooOld Error Refuses 30 true;
    302 DriverTooOldForCode Error Refuses 32 true;
    303 NoCodeForGpu Error Refuses 31 true;
    304 DriverMismatch Error Refuses 23 true;
    305 ForwardCompatUnsupported Error Refuses 24 true;
    306 StubDriver Error Refuses 25 true;
    307 DriverMissing Error Refuses 20 true;
    308 JitDisabled Error Refuses 34 true;
    309 JitMissing Error Refuses 35 true;
    310 GpuMissing Error Refuses 21 true;
    311 PartialCode Error Refuses 36 true;
    312 NoGpuForAll Warning Informs 50 false;
    313 CudnnTooNewForGpu Error Refuses 46 true;
    314 CudartOlder Warning Informs 51 true;
    315 JitForced Error Refuses 33 true;
    316 CudnnNeedsNewerDriver Error Refuses 26 true;
    317 GpuNotForDriver Error Refuses 27 true;
    320 GpuUndriven Warning Informs 52 false;
    321 DeviceDenied Warning Informs 53 false;
    322 CompatOutdated Warning Informs 54 false;
    323 WslShadowed Warning Informs 55 false;
    324 DriverNotWorking Error Refuses 22 false;
    325 GpusHidden Info Informs 56 false;
    501 CudnnCannotTell Info Open 63 true;
    502 NoteNewer Info Open 61 true;
    503 NoteDamaged Info Open 62 true;
    504 NothingToSee Info Open 65 true;
    505 DriverCannotTell Info Open 64 true;
    506 KernelModuleUnknown Info Informs 66 false;
    507 CudartUnknown Info Informs 67 true;
    508 NotAllKept Info Open 60 true;
    513 NoManifest Info Informs 68 false;
    514 KernelsCannotTell Info Open 69 false;
    515 MachineUnreadable Info Open 70 false;
    516 CudartInsideUnknown Info Open 71 false;
    517 CudnnBeforeThisGpu Info Open 72 true;
    518 PackageUnfit Warning Informs 250 false;
    519 LibraryNotStated Info Open 74 false;
    520 OnlyCompiledCode Info Open 76 false;
    521 OnlyCompiledPtx Info Open 77 false;
    601 ReleaseArchMissing Error Refuses 90 false;
    602 ReleaseArchPartial Error Refuses 91 false;
    603 ReleaseDriverFloor Error Refuses 92 false;
    604 ReleaseCudnnFloor Error Refuses 93 false;
    605 ReleaseUnguarded Error Refuses 94 false;
    606 ReleaseCannotTell Info Open 95 false;
    607 ReleaseStaleException Warning Informs 96 false;
    608 StrictUnknown Error Refuses 97 false;
}

words! {
    ToolkitMissing ToolkitMissing;
    ToolkitMixed ToolkitMixed;
    ToolkitMixedOneRoot ToolkitMixed;
    ToolkitMixedElsewhere ToolkitMixed;
    ToolkitMixedAlsoNamed ToolkitMixed;
    CudartMixed CudartMixed;
    CudartMixedOneRoot CudartMixed;
    CudartMixedOfSystem CudartMixed;
    ToolkitNotAllowed ToolkitNotAllowed;
    ToolkitNotAllowedLinked ToolkitNotAllowed;
    ToolkitUnreadable ToolkitUnreadable;
    ToolkitUnreadableHeaders ToolkitUnreadable;
    ToolkitUnreadableNamed ToolkitUnreadable;
    HostCompilerRejected HostCompilerRejected;
    StubInRuntimePath StubInRuntimePath;
    StubInRuntimePathInFile StubInRuntimePath;
    LockDrift LockDrift;
    LockLacksTarget LockLacksTarget;
    StaleAllow StaleAllow;
    CudnnMixed CudnnMixed;
    CudnnMixedAlsoNamed CudnnMixed;
    CudnnForOtherCuda CudnnForOtherCuda;
    CudnnForOtherCudaNever CudnnForOtherCuda;
    CudnnIncomplete CudnnIncomplete;
    CudnnIncompleteMixed CudnnIncomplete;
    CudnnNotAllowed CudnnNotAllowed;
    CudnnNotAllowedAbsent CudnnNotAllowed;
    CudnnUnreadable CudnnUnreadable;
    MathHeadersConflict MathHeadersConflict;
    ArchTooNew ArchTooNew;
    ArchTooNewUnknown ArchTooNew;
    ArchDropped ArchDropped;
    NoPtx NoPtx;
    NoPtxDeclared NoPtx;
    ArchsContradict ArchsContradict;
    NativeUnknown NativeUnknown;
    NativeOutsideFleet NativeOutsideFleet;
    ArchUnreadable ArchUnreadable;
    ArchOnlyByPtx ArchOnlyByPtx;
    ArchMissing ArchMissing;
    ArchMissingDeclared ArchMissing;
    ArchSurplus ArchSurplus;
    FleetUnserved FleetUnserved;
    FleetPartial FleetPartial;
    FleetPartialNoFleet FleetPartial;
    FleetUndeclared FleetUndeclared;
    DriverFleetOlder DriverFleetOlder;
    DriverFleetOlderInside DriverFleetOlder;
    DriverFleetOlderCudnn DriverFleetOlder;
    DriverFleetOlderDeclared DriverFleetOlder;
    BuildMachinePath BuildMachinePath;
    DriverFleetCode DriverFleetCode;
    DriverFleetCodePacked DriverFleetCode;
    DriverFleetCodeDeclared DriverFleetCode;
    CudnnFleetOlder CudnnFleetOlder;
    CudnnLeftGpu CudnnLeftGpu;
    CudnnLeftGpuNone CudnnLeftGpu;
    CudnnBeforeGpu CudnnBeforeGpu;
    FleetCannotTell FleetCannotTell;
    FleetCannotTellCMake FleetCannotTell;
    Unguarded Unguarded;
    NoSuchPackage NoSuchPackage;
    NoSuchPackageMeant NoSuchPackage;
    NotAsRecorded NotAsRecorded;
    NotAsRecordedLinkage NotAsRecorded;
    NotAsRecordedHeaders NotAsRecorded;
    OwnKernelsUnknown OwnKernelsUnknown;
    OtherToolkitUsed OtherToolkitUsed;
    OtherToolkitUsedBesides OtherToolkitUsed;
    CudartOfOtherToolkit CudartOfOtherToolkit;
    CudnnHeadersUnknown CudnnHeadersUnknown;
    CudnnHeadersUnknownNothing CudnnHeadersUnknown;
    TorchWithoutCuda TorchWithoutCuda;
    CrateForOtherCuda CrateForOtherCuda;
    CrateForOtherCudaUnset CrateForOtherCuda;
    CrateForOtherCudaFeature CrateForOtherCuda;
    CrateForOtherCudaPath CrateForOtherCuda;
    CrateForOtherCudaDownload CrateForOtherCuda;
    CrateForOtherCudnn CrateForOtherCudnn;
    CrateForOtherCudnnSymbol CrateForOtherCudnn;
    CratesDisagree CratesDisagree;
    CrateRaisesDriver CrateRaisesDriver;
    CrateRaisesDriverLevel CrateRaisesDriver;
    CrateRaisesDriverLevelFeature CrateRaisesDriver;
    CrateToolkitMixed CrateToolkitMixed;
    CrateToolkitMixedHeaders CrateToolkitMixed;
    CrateStale CrateStale;
    CrateArchOutsideFleet CrateArchOutsideFleet;
    CrateArchOutsideFleetSpecific CrateArchOutsideFleet;
    CrateArchSpecific CrateArchSpecific;
    CrateArchSpecificFamily CrateArchSpecific;
    BuilderGpuDecides BuilderGpuDecides;
    CrateStops CrateStops;
    CrateStopsNoCompiler CrateStops;
    CrateStopsNoHeaders CrateStops;
    CrateStopsNoGpu CrateStops;
    CrateStopsNoLibraries CrateStops;
    CrateStopsOtherMajor CrateStops;
    CrateStopsTwoReleases CrateStops;
    CrateStopsNotLinked CrateStops;
    CrateStopsNoDownload CrateStops;
    CrateStopsUnknownCudnn CrateStops;
    GuardNotLinked GuardNotLinked;
    CudnnOtherMajor CudnnOtherMajor;
    CudnnOtherMajorLinked CudnnOtherMajor;
    CudnnOlder CudnnOlder;
    CudnnOlderPatch CudnnOlderPatch;
    CudnnInnerMissing CudnnInnerMissing;
    CudnnInnerMissingNeeded CudnnInnerMissing;
    CudnnAbsent CudnnAbsent;
    CudnnAbsentLinked CudnnAbsent;
    CudnnInnerMixed CudnnInnerMixed;
    CudnnInnerMixedLoader CudnnInnerMixed;
    CudnnOtherCuda CudnnOtherCuda;
    LibraryAbsent LibraryAbsent;
    LibraryAbsentModule LibraryAbsent;
    LibraryAbsentFile LibraryAbsent;
    LibraryAbsentInterpreter LibraryAbsent;
    WrongMachine WrongMachine;
    WrongMachineElsewhere WrongMachine;
    LibraryDamaged LibraryDamaged;
    LibraryTooOld LibraryTooOld;
    LibraryLacksSymbol LibraryLacksSymbol;
    LibraryLacksSymbolNowhere LibraryLacksSymbol;
    LibraryLacksSymbolUnversioned LibraryLacksSymbol;
    LibraryLacksSymbolOnMachine LibraryLacksSymbol;
    LibraryLacksSymbolAtOpening LibraryLacksSymbol;
    LibraryLacksSymbolAtCall LibraryLacksSymbol;
    LibraryLacksSymbolChecked LibraryLacksSymbol;
    LibraryLacksSymbolOfDriver LibraryLacksSymbol;
    LibraryLacksSymbolEmptySlot LibraryLacksSymbol;
    LibraryLacksSymbolByTheLoader LibraryLacksSymbol;
    FamilyMixed FamilyMixed;
    FamilyMixedFunctions FamilyMixed;
    FamilyMixedBuiltins FamilyMixed;
    CompilerAbsent CompilerAbsent;
    TwoCudarts TwoCudarts;
    CudnnFamily CudnnFamily;
    CudnnFamilyAbsent CudnnFamily;
    CompilerNewerThanDriver CompilerNewerThanDriver;
    CompilerUnknownGpu CompilerUnknownGpu;
    NcclOlderThanHeaders NcclOlderThanHeaders;
    OpenedLibraryAbsent OpenedLibraryAbsent;
    OpenedLibraryAbsentOtherName OpenedLibraryAbsent;
    DriverTooOld DriverTooOld;
    DriverTooOldNoneKnown DriverTooOld;
    DriverTooOldForCode DriverTooOldForCode;
    DriverTooOldForCodeNoneKnown DriverTooOldForCode;
    DriverTooOldForCodeCompressed DriverTooOldForCode;
    DriverTooOldForCodeText DriverTooOldForCode;
    DriverTooOldForCodeForced DriverTooOldForCode;
    NoCodeForGpu NoCodeForGpu;
    NoCodeForGpuNoLongerMade NoCodeForGpu;
    NoCodeForGpuJetson NoCodeForGpu;
    NoCodeForGpuNotYetMade NoCodeForGpu;
    DriverMismatch DriverMismatch;
    DriverMismatchPicked DriverMismatch;
    DriverMismatchOwn DriverMismatch;
    ForwardCompatUnsupported ForwardCompatUnsupported;
    ForwardCompatUnsupportedPicked ForwardCompatUnsupported;
    ForwardCompatUnsupportedBehind ForwardCompatUnsupported;
    StubDriver StubDriver;
    StubDriverPicked StubDriver;
    DriverMissing DriverMissing;
    JitDisabled JitDisabled;
    JitMissing JitMissing;
    JitMissingAnybody JitMissing;
    GpuMissing GpuMissing;
    PartialCode PartialCode;
    NoGpuForAll NoGpuForAll;
    CudnnTooNewForGpu CudnnTooNewForGpu;
    CudartOlder CudartOlder;
    JitForced JitForced;
    CudnnNeedsNewerDriver CudnnNeedsNewerDriver;
    GpuNotForDriver GpuNotForDriver;
    GpuNotForDriverYet GpuNotForDriver;
    GpuUndriven GpuUndriven;
    GpuUndrivenNoLibrary GpuUndriven;
    GpuUndrivenNoModule GpuUndriven;
    DeviceDenied DeviceDenied;
    CompatOutdated CompatOutdated;
    WslShadowed WslShadowed;
    DriverNotWorking DriverNotWorking;
    DriverNotWorkingCaused DriverNotWorking;
    DriverNotWorkingNoGpu DriverNotWorking;
    DriverNotWorkingClosedModule DriverNotWorking;
    DriverNotWorkingOpenModule DriverNotWorking;
    GpusHidden GpusHidden;
    CudnnCannotTell CudnnCannotTell;
    CudnnCannotTellNotLoaded CudnnCannotTell;
    NoteNewer NoteNewer;
    NoteNewerRows NoteNewer;
    NoteDamaged NoteDamaged;
    NoteDamagedNotFound NoteDamaged;
    NothingToSee NothingToSee;
    DriverCannotTell DriverCannotTell;
    DriverCannotTellAnswer DriverCannotTell;
    DriverCannotTellNotLoaded DriverCannotTell;
    DriverCannotTellUnsure DriverCannotTell;
    DriverCannotTellNewerPtx DriverCannotTell;
    DriverCannotTellForced DriverCannotTell;
    DriverCannotTellPtxText DriverCannotTell;
    DriverCannotTellNotNamed DriverCannotTell;
    DriverCannotTellBranch DriverCannotTell;
    DriverCannotTellDrives DriverCannotTell;
    KernelModuleUnknown KernelModuleUnknown;
    CudartUnknown CudartUnknown;
    NotAllKept NotAllKept;
    NotAllKeptNotes NotAllKept;
    NoManifest NoManifest;
    NoManifestGpuCode NoManifest;
    KernelsCannotTell KernelsCannotTell;
    KernelsCannotTellUnlinked KernelsCannotTell;
    MachineUnreadable MachineUnreadable;
    CudartInsideUnknown CudartInsideUnknown;
    CudnnBeforeThisGpu CudnnBeforeThisGpu;
    PackageUnfit PackageUnfit;
    PackageUnfitTwice PackageUnfit;
    PackageUnfitPromise PackageUnfit;
    PackageUnfitPromiseMajor PackageUnfit;
    PackageUnfitTag PackageUnfit;
    PackageUnfitDriver PackageUnfit;
    PackageUnfitExport PackageUnfit;
    PackageUnfitPath PackageUnfit;
    PackageUnfitOverwritten PackageUnfit;
    PackageUnfitRequirement PackageUnfit;
    LibraryNotStated LibraryNotStated;
    LibraryNotStatedInSearchPath LibraryNotStated;
    LibraryNotStatedOpened LibraryNotStated;
    LibraryNotStatedVersion LibraryNotStated;
    LibraryNotStatedBindings LibraryNotStated;
    LibraryNotStatedCompiler LibraryNotStated;
    LibraryNotStatedOptional LibraryNotStated;
    LibraryNotStatedBuiltins LibraryNotStated;
    OnlyCompiledCode OnlyCompiledCode;
    OnlyCompiledPtx OnlyCompiledPtx;
    ReleaseArchMissing ReleaseArchMissing;
    ReleaseArchMissingEverywhere ReleaseArchMissing;
    ReleaseArchPartial ReleaseArchPartial;
    ReleaseDriverFloor ReleaseDriverFloor;
    ReleaseCudnnFloor ReleaseCudnnFloor;
    ReleaseCudnnFloorMajor ReleaseCudnnFloor;
    ReleaseUnguarded ReleaseUnguarded;
    ReleaseCannotTell ReleaseCannotTell;
    ReleaseStaleException ReleaseStaleException;
    StrictUnknown StrictUnknown;
    StrictUnknownPartial StrictUnknown;
}

phrases! {
    AddMachineCode
    AddMachineCodeElsewhere
    AddToFlags
    AddToList
    BuildWithAnOlder
    BuildWithNewer
    BuildWithOlder
    ByName
    FoundElsewhere
    Inside
    InstallCudnn
    InstallDriver
    InstallPackage
    InstallToolkit
    Linked
    NoBindings
    NoBindingsCudnn
    NotThere
    OfCc
    OfNvcc
    OpenArchs
    OpenCudnn
    OpenDriver
    OpenGpus
    OpenPtx
    OpenToolkit
    Unused
}

/// Names of the placeholders that a text may contain.
const FIELDS: &[&str] = &["accepted", "action", "answer", "archs", "at_start", "beside", "bin", "branch", "built", "built_cuda", "built_for", "built_major", "by", "code", "command", "compiler", "component", "crate", "cuda", "cuda_major", "cure", "cxx", "dangling", "declared", "devices", "driver", "driver_fleet", "dropped_in", "example", "feature", "file", "finding", "first", "fix", "fleet", "floor", "folder", "found", "found_cuda", "gpu", "gpus", "headers", "headers_cuda", "here", "instead", "isa", "kept", "kernel", "kernels", "kinds", "last", "later", "least", "left_out", "level", "levels", "libcuda", "library", "library_fleet", "limit", "line", "linkage", "loader", "lock", "lock_target", "looked_in", "machine", "made_from", "made_to", "major", "maker", "meant", "min", "missing", "most", "named_in", "needed_by", "needs_cuda", "needs_release", "newest", "newest_major", "next", "now", "nvcc", "nvcc_cuda", "nvcc_major", "oldest", "open", "other", "other_by", "other_level", "other_major", "other_named_in", "other_uses", "other_way", "others", "package", "part", "parts", "path", "picked_by", "place", "places", "policy", "problem", "processor", "profile", "ptx", "refused", "require", "root", "source", "sources", "status", "symbol", "symbols", "target", "targets", "told_by", "toolkit", "toolkit_cuda", "toolkit_major", "uses", "value", "variable", "was", "way", "what", "why", "without"];

/// Parts of texts that name something of Linux, and the same for Windows.
pub const WINDOWS_NAMES: &[(&str, &str)] = &[("LD_LIBRARY_PATH and RPATH", "PATH"), ("the loader's path", "PATH"), ("LD_LIBRARY_PATH", "PATH"), ("libnvidia-ptxjitcompiler.so.1", "the compiler of the driver"), ("libcuda.so.1", "nvcuda.dll"), ("libcudart", "cudart"), ("libcuda and the kernel module", "nvcuda.dll and the display driver"), ("the libcuda found", "the nvcuda.dll found"), (" (container: --gpus all)", ""), ("; in a container, remove the libcuda of the image", ""), ("; in a container, start it with its GPUs (--gpus all)", ""), (" (container: NVIDIA_DRIVER_CAPABILITIES=compute,utility)", ""), (", or load its module (modprobe nvidia)", ""), ("the kernel log (dmesg | grep -i nvrm)", "the event log")];

/// Values of hints that differ by the tool that builds: for cargo, CMake and other tools.
const FRONT_ENDS: &[(&str, [&str; 3])] = &[("anew", ["", ", in an empty build directory", ""]), ("arch_sources", ["nvcc's flags in the build script", "{variable}, CMAKE_CUDA_FLAGS, target_compile_options, CUDAFLAGS", "nvcc's flags"]), ("keep_torch", ["in the build script of the program, print cargo:rustc-link-arg=-Wl,--no-as-needed,-ltorch_cuda", "add -Wl,--no-as-needed to target_link_options of the target and link torch_cuda, or link TORCH_LIBRARIES of find_package(Torch)", "add -Wl,--no-as-needed -ltorch_cuda to the linker's options"]), ("link_cudart", ["check -L in the build script, and LIBRARY_PATH", "configure an empty build directory with -DCMAKE_CUDA_COMPILER=ROOT/bin/nvcc and -DCUDAToolkit_ROOT=ROOT", "check the linker's -L, and name the toolkit with --nvcc or --toolkit"]), ("lock_it", ["run `cargo cudaguard lock[ --target {lock_target}]` and commit cudaguard.lock", "run `cmake --build BUILD --target cudaguard-lock` and commit cudaguard.lock", "write it into the table of {target} in cudaguard.lock, and commit the file"]), ("name_toolkit", ["set CUDA_HOME to its root", "enable the language CUDA, or call find_package(CUDAToolkit) before cudaguard_embed", "name it with --nvcc or --toolkit"]), ("ptx_instead", ["declare compute_{ptx} instead", "replace {targets} in {variable} by {ptx}-virtual", "declare compute_{ptx} instead"]), ("same_archs", ["unset the others", "set CUDA_ARCHITECTURES of the target to the same list", "pass the same list to nvcc"]), ("some_archs", ["CUDAARCHS=\"80;90\"", "CMAKE_CUDA_ARCHITECTURES=\"80;90\"", "-arch=sm_80 for nvcc"]), ("use_cudnn", ["set CUDNN_PATH to its root, and unset the other CUDNN_ variables", "set the target's include directories, or CUDNN_INCLUDE_DIR of cudaguard_embed, to it", "name its headers with --include"]), ("use_host_compiler", ["set CXX={cxx}-{newest} if the cc crate calls nvcc, otherwise NVCC_APPEND_FLAGS=-ccbin={cxx}-{newest}", "configure with -DCMAKE_CUDA_HOST_COMPILER={cxx}-{newest}", "pass -ccbin {cxx}-{newest} to nvcc and in --nvcc-flags"]), ("use_toolkit", ["put its bin directory first in PATH and set CUDA_HOME to its root", "configure an empty build directory with -DCMAKE_CUDA_COMPILER=ROOT/bin/nvcc and -DCUDAToolkit_ROOT=ROOT", "name it with --nvcc or --toolkit"])];
