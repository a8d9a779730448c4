// Written by `cargo findings` from guard-core/data/findings.toml; a test keeps it so.

codes! {
    100 ToolkitMissing Error Refuses 255 ""
        "no CUDA toolkit where one is needed"
        "The policy requires a toolkit, or names one, and none was found in the places where builds look: NVCC, CUDACXX, PATH, CUDA_HOME, CUDA_PATH, CUDA_ROOT, CUDA_TOOLKIT_ROOT_DIR and the usual folders.\nWhat to do: install a toolkit, or set CUDA_HOME to its root; where the project needs none, drop [toolkit] require.";
    101 ToolkitMixed Error Refuses 255 ""
        "nvcc and cuda.h are of different releases"
        "The compiler comes from one toolkit and the headers from another, most often because PATH and CUDA_HOME or CUDA_PATH disagree. Such a build compiles, and fails or misbehaves at run time.\nWhat to do: make PATH and CUDA_HOME (CUDA_PATH, CUDA_ROOT) name one toolkit.";
    102 CudartMixed Error Refuses 255 ""
        "the libcudart that will be linked is of another release than nvcc"
        "The linker would most probably take a libcudart that another toolkit's release brought along. cudart and nvcc must be of one release, or kernels fail to register. Where it is found by LIBRARY_PATH, or in the system's folder, this is a warning: a build script may name another folder, which goes before those. What was linked is judged once it is.\nWhat to do: name the toolkit's own library folder first, or remove the other one from LIBRARY_PATH.";
    103 ToolkitNotAllowed Error Refuses 255 ""
        "the toolkit is not one that the policy allows"
        "cudaguard.toml says with [toolkit] require which releases may build this project; the one in use is not among them.\nWhat to do: use an allowed toolkit, or change the requirement and say why in the commit.";
    104 ToolkitUnreadable Warning Informs 255 ""
        "a CUDA toolkit's version cannot be read"
        "There is an nvcc or a cuda.h, but it does not say its version: it cannot be run, prints something else, or the file is damaged. What is built with it cannot be recorded rightly.\nWhat to do: run the named nvcc by hand with --version; reinstall the toolkit where that fails.";
    105 HostCompilerRejected Error Refuses 255 ""
        "this nvcc does not accept this host compiler"
        "Each nvcc supports host compilers up to a version and stops with `unsupported GNU version` otherwise. By itself it calls gcc, or what NVCC_CCBIN names; the cc crate has it call what CXX names, or c++, and then NVCC_CCBIN does not count. Where only one of the two is too new this is an info, since the build may well use the other; where nobody named the compiler for nvcc it is a warning, since the build may call no nvcc, or call it with -ccbin.\nWhat to do: name an older compiler (g++-11 for CUDA 11.8) with CXX, where a build script calls nvcc by the cc crate, else with NVCC_CCBIN or -ccbin; or use a newer toolkit.";
    106 StubInRuntimePath Error Refuses 255 ""
        "a stub folder stands in a runtime path"
        "The toolkit's lib/stubs holds empty libraries for the linker only. With that folder in LD_LIBRARY_PATH, RPATH or RUNPATH the program loads the empty libcuda and every call answers 34, CUDA_ERROR_STUB_LIBRARY.\nWhat to do: take the stubs folder out of LD_LIBRARY_PATH and of -rpath; keep it in -L only.";
    107 LockDrift Error Refuses 255 ""
        "the toolchain is another than the one locked"
        "cudaguard.lock records the toolkit, cuDNN, host compiler and archs that this workspace was agreed to be built with, and this build would use others: an update of the machine, another machine, or a variable.\nWhat to do: put back what was locked, or accept the new toolchain with `cargo cudaguard lock` and commit the file.";
    108 LockLacksTarget Warning Informs 255 ""
        "the lock says nothing about this target"
        "cudaguard.lock has a table for each target that it was written for, and none for the one being built: whether its toolchain has changed cannot be told.\nWhat to do: run `cargo cudaguard lock --target` with this target's triple and commit the file, or remove it where no lock is wanted.";
    109 StaleAllow Info Informs 255 ""
        "an allow that nothing was found for"
        "[allow] in cudaguard.toml excuses a finding of the toolchain that this build does not have: its reason may have gone, and the next one of its kind would pass unseen. Another machine or target may still need it.\nWhat to do: remove the line, unless a build elsewhere needs it.";
    110 CudnnMixed Error Refuses 255 ""
        "cuDNN's headers and its library are of different versions"
        "The program would be compiled against one cuDNN and linked to another. With a library older than the headers it fails where it is started; newer ones hide what was really tested.\nWhat to do: make headers and library come from one package: set CUDNN_PATH to its root.";
    111 CudnnForOtherCuda Error Refuses 255 ""
        "cuDNN is built for another CUDA major"
        "cuDNN comes in one build per CUDA major. The build found brings along, or expects, a cudart and cuBLAS of another major than the toolkit's: two of each in one process.\nWhat to do: install the cuDNN package for the toolkit's major, for example cudnn9-cuda-13.";
    112 CudnnIncomplete Error Refuses 255 ""
        "cuDNN's sub-libraries are missing or mixed"
        "libcudnn loads its parts by name at run time. Parts of another release, or none, abort the process at the first call.\nWhat to do: reinstall cuDNN whole from one package, and remove what older ones left in the same folder.";
    113 CudnnNotAllowed Error Refuses 255 ""
        "cuDNN is not one that the policy allows"
        "cudaguard.toml says with [cudnn] require or linkage what this project may be built with; what was found does not fit.\nWhat to do: use an allowed cuDNN, or change the policy and say why in the commit.";
    114 CudnnUnreadable Warning Informs 255 ""
        "the version of cuDNN's headers cannot be read"
        "There is a cudnn.h or cudnn_version.h, but it does not define CUDNN_MAJOR, CUDNN_MINOR and CUDNN_PATCHLEVEL. What the program is built with cannot be recorded, so nothing can be checked when it starts.\nWhat to do: reinstall cuDNN's headers; cuDNN 8 and newer keep the version in cudnn_version.h beside cudnn.h.";
    120 ArchTooNew Error Refuses 255 ""
        "the toolkit cannot make this architecture yet"
        "The arch was introduced by a later release than the toolkit in use: nvcc stops with `Unsupported gpu architecture`.\nWhat to do: use the toolkit that introduced it, or declare an older arch with PTX, which newer GPUs compile.";
    121 ArchDropped Error Refuses 255 ""
        "the toolkit no longer makes this architecture"
        "Later releases drop old architectures: CUDA 13 makes nothing below sm_75.\nWhat to do: drop the arch and the GPUs that need it, or build with the last toolkit that makes it.";
    122 NoPtx Info Informs 255 ""
        "no PTX: GPUs newer than the architectures named are not served"
        "Machine code runs on GPUs of its own major only. Without PTX of the newest architecture the program has nothing to run on GPUs of later generations.\nWhat to do: add PTX of the newest arch (compute_90, 9.0+PTX); where leaving it out is meant, say so in [allow].";
    123 ArchsContradict Warning Informs 255 ""
        "two sources name different architectures"
        "Variables, the policy file and the builder each may declare the archs; here they do not agree, and which of them the compiler follows depends on the build script.\nWhat to do: keep one of them, best [gpu] archs in cudaguard.toml, and unset the others.";
    124 NativeUnknown Error Refuses 255 ""
        "`native` was asked for, and there is no GPU to ask"
        "`native` means the architecture of the GPU in the building machine. Without a driver and a GPU it means nothing, and nvcc falls back to its default silently.\nWhat to do: name the archs, for example CUDAARCHS=\"80;90\".";
    125 NativeOutsideFleet Error Refuses 255 ""
        "`native` builds for this machine's GPU, which the fleet does not have"
        "The program is built for the GPU of the building machine; the policy's [gpu] fleet names others, which that code does not serve.\nWhat to do: name the archs of the fleet instead of `native`.";
    126 ArchUnreadable Error Refuses 255 ""
        "an architecture cannot be read"
        "A variable, the policy or the builder names an architecture in a spelling that no tool knows.\nWhat to do: write sm_90, 90a, 9.0+PTX, 90-real or compute_90; lists by comma, semicolon or blank.";
    127 ArchOnlyByPtx Warning Informs 255 ""
        "this architecture can only be served by PTX"
        "The toolkit cannot make machine code for the arch, but its PTX would be compiled by the driver at the first start: slow to start, and only on drivers that know this PTX.\nWhat to do: build with a toolkit that makes the arch, or accept it with [allow].";
    128 ArchMissing Error Refuses 255 ""
        "kernels of this package lack an architecture that the policy asks for"
        "[gpu] archs in cudaguard.toml says what the package's own kernels must be, and the linked file holds own kernels that are not: an arch was left out of nvcc's flags, the build script follows another variable, CUDA_COMPUTE_CAP=90 became sm_90a alone, or an object from an earlier build was linked in. On such a GPU the first launch of that kernel fails with `no kernel image is available`.\nWhat to do: compile the named sources for every arch in [gpu] archs and delete stale objects; where a file is meant for fewer, say so in [allow].";
    129 ArchSurplus Warning Informs 255 ""
        "kernels of this package are built for an architecture that the policy does not ask for"
        "[gpu] archs says what the package's own kernels must be, and the linked file holds code for more: larger files, longer builds, and an arch that nobody tests. Most often NVCC_APPEND_FLAGS, a default or a stale object brings it.\nWhat to do: take the arch out of nvcc's flags, or add it to [gpu] archs.";
    130 FleetUnserved Error Refuses 255 ""
        "a GPU of the fleet is not served"
        "[gpu] fleet names GPUs that the whole program must run on, and no kernel in the linked file has code for one of them: neither machine code of its generation nor PTX that its driver could compile. The program would fail there with `no kernel image is available`.\nWhat to do: add the arch (or PTX of an older one) to what nvcc compiles, or take the GPU out of [gpu] fleet.";
    131 FleetPartial Warning Informs 255 ""
        "a GPU is served by some kernels only"
        "Code is loaded by container, one for each source: where some containers serve a GPU and others have nothing for it, the program runs there until it launches a kernel of the others. Libraries that choose such kernels at run time do this on purpose (sm_90a variants); otherwise a source was compiled with other flags, or an object is stale.\nWhat to do: compile the named sources for the arch as well; where the program chooses at run time, say so in [allow].";
    132 FleetUndeclared Error Refuses 255 ""
        "no declared architecture serves a GPU of the fleet"
        "[gpu] fleet names GPUs that the program must run on, and none of the archs that this build declares has code for one of them: neither machine code of its generation nor PTX that its driver could compile. The kernels would fail there with `no kernel image is available`. Under plain cargo the declared archs are all there is to judge by, and it is a warning where only a variable declares them; `cargo cudaguard build` judges the linked file instead (CG130).\nWhat to do: add the arch that the message names, take the GPU out of [gpu] fleet, or, where the build script compiles for other archs than it declares, say so in [allow].";
    133 DriverFleetOlder Error Refuses 255 ""
        "the oldest driver of the fleet is too old for this CUDA"
        "[driver] fleet names the oldest driver branch that the program must run on, and a libcudart asks for a driver of its own major: CUDA 13 for 580, CUDA 12 for 525.60.13, CUDA 11 for 450.80.02. On an older one every call answers 35, cudaErrorInsufficientDriver. Programs without cudart, and data centre GPUs with cuda-compat, are not bound by it.\n`cargo cudaguard build` and CMake look into the linked file; under plain cargo only the toolkit is known, and this is a warning.\nWhat to do: build with a toolkit of the drivers' major, or raise [driver] fleet when the machines are updated.";
    134 BuildMachinePath Warning Informs 255 ""
        "a runtime path leads into a folder of the building machine"
        "RPATH and RUNPATH tell the loader where to look, before the system's own folders. A folder of the machine that built the file (a home, /tmp, cargo's target folder) is not there, or holds something else, on the machine that runs it.\nWhat to do: take the -rpath out of the build script or of RUSTFLAGS; name folders beside the program by $ORIGIN.";
    135 DriverFleetCode Error Refuses 255 ""
        "the oldest driver of the fleet cannot take the code for a GPU of the fleet"
        "PTX is compiled by the driver, and a driver reads only PTX that is no newer than itself; code compressed with Zstandard needs a driver that unpacks it. [driver] fleet and [gpu] fleet together name machines on which such code is all that there is: 222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION.\nWhat to do: add machine code (sm_XY) for that GPU, or raise [driver] fleet when the machines are updated.";
    136 CudnnFleetOlder Error Refuses 255 ""
        "the oldest cuDNN of the fleet is too old for this build"
        "A program works with a cuDNN of the major it was built with and of the same or a newer minor; with an older one it refuses to start (CG202). [cudnn] fleet names the oldest that the program must run with.\nWhat to do: build with that cuDNN or an older one of its major, or raise [cudnn] fleet when the machines are updated.";
    137 CudnnLeftGpu Error Refuses 255 ""
        "this cuDNN no longer serves a GPU of the fleet"
        "cuDNN drops old GPUs in minor releases: its builds from 9.11 on have no code below compute capability 7.5, so that Maxwell, Pascal and Volta (P100, V100) stayed with 9.10. A cuDNN newer than the one built with has less, never more.\nWhat to do: build with the release that the message names, or take the GPU out of [gpu] fleet.";
    138 CudnnBeforeGpu Warning Informs 255 ""
        "this cuDNN is older than a GPU of the fleet"
        "cuDNN 9 for CUDA 12 and later serves GPUs that came after it. Older builds have code up to a generation, and no document says what they do on later ones; a newer cuDNN on the machine may know them.\nWhat to do: build with a newer cuDNN, or accept it with [allow].";
    139 FleetCannotTell Info Informs 255 ""
        "whether a build serves the whole fleet cannot be told"
        "[gpu], [driver] and [cudnn] fleet are compared with what a build declares (archs, toolkit, cuDNN headers) or, under `cargo cudaguard`, with the linked file. Where neither is known nothing is judged.\nWhat to do: declare the archs in [gpu] archs, or build with `cargo cudaguard build`, which looks into the file.";
    140 Unguarded Warning Informs 255 ""
        "a target could not be guarded"
        "The guard needs ELF, a C compiler for the target and a program that starts through the C library. What was built here lacks one of them, so the file carries no manifest and will start anywhere.\nWhat to do: see the reason in the message; the build itself is not affected.";
    141 NoSuchPackage Warning Informs 255 ""
        "the policy speaks of a package that is not in this workspace"
        "[package.NAME] in cudaguard.toml lays its keys over those of all packages, for the package of that name alone. The workspace has none of that name, so what stands there holds for nobody: most often the name is mistyped, or the package has gone.\nWhat to do: correct the name, or remove the table.";
    142 NotAsRecorded Error Refuses 255 ""
        "the linked file needs another library than was recorded"
        "What was found before compiling and what the linker put into the file do not agree: a libcudart or libcudnn of another major than the toolkit's or the headers', or a cuDNN linked in another way than [cudnn] linkage says. The program mixes releases, and what the manifest asks of a machine would be wrong.\nWhat to do: make the build script link the libraries of the toolkit in use (CUDA_HOME, CUDNN_PATH and LIBRARY_PATH of one release), or correct [cudnn] linkage.";
    143 OwnKernelsUnknown Info Informs 255 ""
        "nobody can tell which kernels in the linked file are the package's own"
        "[gpu] archs is about the package's own kernels. Those are told by their bytes: the same stand in an object, an archive, a cubin or a PTX file that the build script made or that lies in the package. Here none was found, and some kernels in the file have other archs than the policy asks for; they may be another package's, where that is no mistake, or this one's, compiled to files that were deleted since.\nWhat to do: let the build script leave in OUT_DIR what nvcc made; or, where the package has no kernels of its own, take [gpu] archs out of the policy: [gpu] fleet says what the whole file must run on.";
    150 CrateForOtherCuda Error Refuses 255 ""
        "a crate has bindings for another CUDA than the toolkit in use"
        "A crate such as cudarc is told by a feature, a variable or the nvcc in PATH for which CUDA its bindings are. Linked with libraries of another major its structs and functions are not theirs: calls fail, or compute wrongly. What a crate opens by name only when the program runs is said as a warning, since other libraries may be there then.\nWhat to do: give the crate the toolkit's level (the line or variable is named), or build with the toolkit it is for.";
    151 CrateForOtherCudnn Error Refuses 255 ""
        "a crate has bindings for another cuDNN than the one in use"
        "Bindings of one cuDNN major do not fit a library of another. Older cudarc also looks up every function when it opens cuDNN, and panics at the first that the library lacks.\nWhat to do: use the cuDNN that the bindings are for, or take the bindings for the cuDNN in use.";
    152 CratesDisagree Error Refuses 255 ""
        "two crates of one program are for different majors"
        "Two crates, or two versions of one, have bindings for different majors of CUDA or cuDNN. In one process they share a library of one major, which is not the other's, or load two of them, with two sets of memory and handles.\nWhat to do: give both one level, or update the older crate so that one version serves both.";
    153 CrateRaisesDriver Error Refuses 255 ""
        "a crate would panic on the oldest driver of the fleet"
        "cudarc before 0.19.5 looks up every driver function of its level when it opens libcuda, used or not, and panics at the first that is missing: `Expected symbol in library: cuCtxFromGreenCtx`. So its level is a floor for the driver, higher than the toolkit's own and named nowhere. [driver] fleet in cudaguard.toml says which driver it must run on.\nWhat to do: lower the level (CUDARC_CUDA_VERSION, or the feature), update cudarc, or ask for a newer driver.";
    154 CrateToolkitMixed Error Refuses 255 ""
        "a crate compiles with another toolkit than the one in use, or with two"
        "Build scripts look for nvcc and cuda.h in orders of their own: one runs the first nvcc in PATH with the headers that CUDA_PATH names, another prefers NVCC. What they find here is not one toolkit, or not the one that the rest is built with and that the manifest records.\nWhat to do: let NVCC, PATH, CUDA_HOME and CUDA_PATH name one toolkit.";
    155 CrateStale Error Refuses 255 ""
        "a crate was built for what was in use earlier, and cargo has kept it"
        "cargo runs a build script again only when a variable or file that it announces changes, and PATH and CUDNN_PATH are not among those that most crates announce. So the crate still has the bindings or kernels of the toolkit or cuDNN that was in use when it was first built.\nWhat to do: `cargo clean -p` the crate and build again.";
    156 CrateArchOutsideFleet Error Refuses 255 ""
        "a crate compiles its kernels for one arch, which does not serve the fleet"
        "cudaforge and bindgen_cuda compile all kernels for the one arch in CUDA_COMPUTE_CAP. [gpu] fleet in cudaguard.toml names GPUs that this code does not serve: the first launch there would fail with `no kernel image is available`. From 90 on cudaforge adds the suffix a, and such code runs on that GPU alone.\nWhat to do: build once for each generation of the fleet, or take the GPU out of [gpu] fleet.";
    157 CrateArchSpecific Info Informs 255 ""
        "a crate makes code for one GPU alone of a plain arch"
        "cudaforge turns CUDA_COMPUTE_CAP=90 into sm_90a by itself (120 into sm_120a, 121 into sm_121f). Machine code and PTX of such an arch run on GPUs of that very compute capability, or its family, and on no later one.\nWhat to do: nothing where the program runs on that GPU only; otherwise build for an older arch as well.";
    158 BuilderGpuDecides Error Refuses 255 ""
        "the GPU of the building machine decides what a crate compiles for"
        "Without CUDA_COMPUTE_CAP cudaforge and bindgen_cuda ask nvidia-smi for the first GPU of the building machine and compile for it alone. [gpu] fleet in cudaguard.toml names GPUs that this does not serve.\nWhat to do: set CUDA_COMPUTE_CAP, and build once for each generation of the fleet.";
    159 CrateStops Warning Informs 255 ""
        "a crate's build script would stop"
        "The crate does not know the toolkit or cuDNN that is in use (`Unsupported cuda toolkit version`), or does not look where it is, and its build script panics. This is said before, with what to do.\nWhat to do: update the crate, name a level that it knows (CUDARC_CUDA_VERSION), or set the variable that it reads.";
    170 GuardNotLinked Error Refuses 255 ""
        "the linked file does not carry its guard"
        "CMake was told to link the guard's two objects into this file, and the linker left them out, or the note was removed after linking. The program would start on any machine, and nobody could tell what it was built with.\nWhat to do: see whether a linker script discards .note.cudaguard, or a step after linking strips it (strip --remove-section, objcopy); link the objects as they are.";
    201 CudnnOtherMajor Error Refuses 41 "cuDNN"
        "the cuDNN found is of another major"
        "cuDNN promises nothing across majors: functions are missing or mean something else.\nWhat to do: install the major that the program was built with, or rebuild it.";
    202 CudnnOlder Error Refuses 44 "cuDNN"
        "the cuDNN found is older than the one built with"
        "A program may use a cuDNN of the same major and the same or a newer minor. An older minor lacks what the program was compiled to call.\nWhat to do: update cuDNN at the named place, or put a newer one first in LD_LIBRARY_PATH; or rebuild against the older.";
    203 CudnnOlderPatch Error Refuses 45 "cuDNN"
        "the cuDNN found is an older patch, and the policy refuses that"
        "Patches of one minor are interchangeable by NVIDIA's rule; this project asked for more with [cudnn] patch = \"refuse\".\nWhat to do: update cuDNN to the patch that the program was built with, or drop the option.";
    204 CudnnInnerMissing Error Refuses 42 "cuDNN"
        "cuDNN's loader library is there, its inner library is not"
        "libcudnn.so.N is a thin loader. Without libcudnn_graph (9) or libcudnn_ops_infer (8) the first call aborts the process.\nWhat to do: reinstall cuDNN whole, so that all its libraries stand in one folder.";
    205 CudnnAbsent Error Refuses 40 "cuDNN"
        "no cuDNN was found"
        "The program is linked to libcudnn, or the policy requires it, and no folder that the loader looks into has it.\nWhat to do: install cuDNN, or name its folder in LD_LIBRARY_PATH.";
    206 CudnnInnerMixed Error Refuses 43 "cuDNN"
        "cuDNN's inner library is of another release than its loader"
        "All libcudnn libraries of one process must be of one release; a mix aborts or misbehaves. The inner library's version is the one that counts, and it does not fit what was built with.\nWhat to do: remove the stray copy named in the message, or reinstall cuDNN whole.";
    210 LibraryAbsent Error Refuses 11 ""
        "a library that the program is linked to is not found"
        "The loader would stop the program with `cannot open shared object file` before any of its code runs.\nWhat to do: install the package that holds it, or name its folder in LD_LIBRARY_PATH.";
    211 WrongMachine Error Refuses 10 "{file}"
        "the file is for another kind of machine"
        "The program, or a library that the loader would take, is built for another architecture.\nWhat to do: use the build for this machine.";
    212 LibraryDamaged Error Refuses 12 ""
        "a library that the loader would take is damaged"
        "The loader looks no further once it has found a file of the right name: one that is empty, cut off (a copy that was broken off) or no library at all (a linker script) ends the program.\nWhat to do: reinstall the package that the file belongs to, or remove the file.";
    213 LibraryTooOld Error Refuses 13 ""
        "a library lacks a version that the program was linked to"
        "The program was linked on a newer system: the loader would stop it with `version ... not found`, most often for GLIBC or GLIBCXX.\nWhat to do: run it on a system as new as the one it was built on, or build it on the older one.";
    214 LibraryLacksSymbol Error Refuses 14 ""
        "a library lacks a function that the program binds"
        "The loader looks up the functions that a program and its libraries use: all of them at the start where they were linked so (Rust, `-z now`) or where their addresses are stored, else each at its first call. One that no library has ends the program with `symbol lookup error`, status 127: most often a library is an older release than the one linked with. For the start of a program only what is bound at the start counts; `verify` and `doctor` also refuse for functions of NVIDIA's libraries that are bound at their first call.\nWhat to do: use a release of the library that has the function (the message names the first where it is known), or rebuild the program against the one that is there.";
    301 DriverTooOld Error Refuses 30 "driver"
        "the driver is too old for what the program is linked to"
        "A CUDA runtime works on drivers of its own major and newer; on an older one every call answers 35, cudaErrorInsufficientDriver. A driver API function that the driver does not have yet ends the program, too.\nWhat to do: update the driver to the release named, or rebuild with an older toolkit; on data centre GPUs cuda-compat may do.";
    302 DriverTooOldForCode Error Refuses 32 "driver"
        "the driver is too old for the code that this GPU needs"
        "PTX is compiled by the driver, and a driver reads only the PTX that it knows: newer PTX answers 222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION. Compressed code may need a newer driver, too. Minor version compatibility does not cover this.\nWhat to do: update the driver, or build with machine code (sm_XY) for this GPU.";
    303 NoCodeForGpu Error Refuses 31 "driver"
        "no code for any GPU that the program can see"
        "Machine code runs on GPUs of its own major from its minor on, PTX on all newer ones. For these GPUs the program has neither: every launch answers 209, no kernel image is available.\nWhat to do: rebuild with the architecture of the GPU, or with PTX of an older one.";
    304 DriverMismatch Error Refuses 23 "driver"
        "libcuda and the kernel module do not belong together"
        "cuInit answers 803: the user-mode library is of another release than the loaded kernel module, and the pair is not one that forward compatibility allows. Most often the driver was updated and the machine not restarted, or an image brings its own libcuda.\nWhat to do: reboot, or reload the nvidia module; in a container, remove the library that it brought along.";
    305 ForwardCompatUnsupported Error Refuses 24 "driver"
        "forward compatibility is not for this GPU"
        "cuInit answers 804: the libcuda found is of cuda-compat, which works on data centre GPUs and few others. One GPU that is not eligible fails the whole process.\nWhat to do: take the compat folder out of LD_LIBRARY_PATH and update the driver, or hide that GPU with CUDA_VISIBLE_DEVICES.";
    306 StubDriver Error Refuses 25 "driver"
        "the libcuda found is the toolkit's stub"
        "The toolkit's lib/stubs has an empty libcuda for the linker. Where the loader takes it, every call answers 34, CUDA_ERROR_STUB_LIBRARY.\nWhat to do: take the stubs folder out of LD_LIBRARY_PATH, RPATH and RUNPATH.";
    307 DriverMissing Error Refuses 20 "driver"
        "there is no driver, and the program requires a GPU"
        "The policy says [runtime] gpu = \"required\", and no folder that the loader looks into has libcuda.so.1.\nWhat to do: install the NVIDIA driver; start a container with its GPUs (--gpus all).";
    308 JitDisabled Error Refuses 34 "driver"
        "only PTX serves this GPU, and its compilation is switched off"
        "CUDA_DISABLE_PTX_JIT=1 keeps the driver from compiling PTX, and the program has no machine code for the GPUs that it can see: 223, CUDA_ERROR_JIT_COMPILATION_DISABLED.\nWhat to do: unset CUDA_DISABLE_PTX_JIT, or rebuild with machine code for this GPU.";
    309 JitMissing Error Refuses 35 "driver"
        "only PTX serves this GPU, and the driver's PTX compiler is missing"
        "The driver compiles PTX with libnvidia-ptxjitcompiler.so.1, a file of its own that is not to be found here: a container that was given only a part of the driver, or a stripped image. The first kernel fails with 221, CUDA_ERROR_JIT_COMPILER_NOT_FOUND.\nWhat to do: install the driver whole (on Debian, libnvidia-ptxjitcompiler1), start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility, or rebuild with machine code for this GPU.";
    310 GpuMissing Error Refuses 21 "driver"
        "there is no GPU, and the program requires one"
        "The policy says [runtime] gpu = \"required\", and the driver shows this process none: there is none, CUDA_VISIBLE_DEVICES hides it, or the container was started without.\nWhat to do: see what nvidia-smi says and what CUDA_VISIBLE_DEVICES holds; start a container with --gpus all.";
    311 PartialCode Error Refuses 36 "driver"
        "only a part of the program's code is for this GPU, and the policy refuses that"
        "Some of the kernels' containers serve the GPU and some do not. Careful programs choose at run time; this project asked for more with [gpu] partial = \"refuse\".\nWhat to do: rebuild all of it with that architecture, or drop the option.";
    312 NoGpuForAll Warning Informs 50 "driver"
        "no GPU is fit for all components of the program"
        "Each of the two components named has code for some GPU of this machine, and no GPU is fit for both: data that they share must go from one GPU to another, or one of them fails where the other has put it.\nWhat to do: rebuild the component named with the other GPU's architecture among those built for.";
    313 CudnnTooNewForGpu Error Refuses 46 "driver"
        "the cuDNN found no longer works on this GPU"
        "cuDNN drops old GPUs in minor releases: 9.11 and later have no code for Maxwell, Pascal and Volta (below compute capability 7.5), and cudnnCreate fails there with an architecture mismatch.\nWhat to do: install an older cuDNN that the program accepts (up to 9.10 for these GPUs), or run it on a newer GPU.";
    314 CudartOlder Warning Informs 51 "cudart"
        "the shared libcudart is older than the toolkit that the program was built with"
        "Programs may be built with a newer minor release of cudart than they run with, as long as they call nothing that is new in it: what is missing ends the program at the first such call.\nWhat to do: put the libcudart of the toolkit first (LD_LIBRARY_PATH), update it, or link it statically.";
    315 JitForced Error Refuses 33 "driver"
        "the program's machine code is switched off, and it has no PTX"
        "CUDA_FORCE_PTX_JIT=1 has the driver pass over machine code and compile PTX in its place; it is for trying out whether a program has PTX. This one has none for the GPUs that it can see, so that no kernel of it is found.\nWhat to do: unset CUDA_FORCE_PTX_JIT.";
    320 GpuUndriven Warning Informs 52 "driver"
        "there is a GPU, and no driver for it"
        "A GPU of NVIDIA's stands on the PCI bus, and the kernel module that drives it, libcuda, or both are not to be seen. Every CUDA program finds no GPU. On a host whose GPUs are for virtual machines or containers alone this is as it should be.\nWhat to do: install the NVIDIA driver, or load its module (modprobe nvidia); start a container with its GPUs (--gpus all).";
    321 DeviceDenied Warning Informs 53 "driver"
        "the device of a GPU cannot be opened by this user"
        "/dev/nvidia0 and its like must be opened for reading and writing. Where they cannot be, the driver shows no GPU and says nothing of the reason.\nWhat to do: see their owner and mode with ls -l /dev/nvidia*; add the user to that group (often video), or start the container with its GPUs.";
    322 CompatOutdated Warning Informs 54 "driver"
        "cuda-compat is no newer than the driver"
        "The libcuda found is of cuda-compat, which puts a newer CUDA on an older driver. The driver has been updated since: it supports all that the package brings, and NVIDIA supports the package on older drivers only.\nWhat to do: take the compat folder out of LD_LIBRARY_PATH and of the loader's configuration.";
    323 WslShadowed Warning Informs 55 "driver"
        "a Linux driver stands before the one that Windows brings"
        "In WSL2 the driver is Windows' own, and its libcuda is put into /usr/lib/wsl/lib. The loader takes another one, most often because a Linux driver's package was installed inside WSL; that one finds no kernel module.\nWhat to do: remove the NVIDIA driver's packages inside WSL (a toolkit without the driver: cuda-toolkit, not cuda).";
    324 DriverNotWorking Error Refuses 22 "driver"
        "the driver does not work"
        "cuInit, which every CUDA program calls first, answers with an error that is of no program's making: 802, a system that is not ready (its fabric manager does not run), 999 and others, a driver or a GPU in trouble.\nWhat to do: see what nvidia-smi says, and the kernel's log (dmesg | grep -i nvrm); reboot where a GPU has fallen off the bus.";
    325 GpusHidden Info Informs 56 "driver"
        "CUDA_VISIBLE_DEVICES hides every GPU"
        "The variable names the GPUs that a program may see, and none of those that it names is there: it is empty, or its first entry is no number and no UUID of a GPU here. All entries behind one that is not valid count for nothing.\nWhat to do: unset it, or name GPUs by number or as nvidia-smi -L says them.";
    501 CudnnCannotTell Info Open 63 "cuDNN"
        "cannot tell which cuDNN this is"
        "A libcudnn was found, but neither its file nor a question in a child process gave a version. The program goes on: what cannot be told never refuses.\nWhat to do: nothing, or see that the inner libraries stand beside the loader library.";
    502 NoteNewer Info Open 61 "manifest"
        "a manifest is of a newer revision than this reader"
        "The file was guarded by a newer cudaguard. What this reader knows of it was judged, the rest was left out.\nWhat to do: update cargo-cudaguard.";
    503 NoteDamaged Info Open 62 "manifest"
        "a manifest is damaged"
        "A file carries a manifest whose bytes do not hold together: an offset points outside, or its mark is missing. It was left out of the judgement, and never refuses by itself.\nWhat to do: rebuild the file; something wrote into it after it was linked.";
    504 NothingToSee Info Open 65 "driver"
        "no GPU to be seen: nothing to judge"
        "There is no driver here, or no GPU that this process may use. A program may have a way without one, so it starts, unless [runtime] gpu = \"required\".\nWhat to do: nothing.";
    505 DriverCannotTell Info Open 64 "driver"
        "cannot tell whether driver and GPU fit"
        "Something about the driver or the GPUs is not known: nobody could be asked, the driver did not answer, or it answered what says nothing about versions. What cannot be told never refuses.\nWhat to do: see what `cargo cudaguard doctor` says is missing; the program runs all the same.";
    506 KernelModuleUnknown Info Informs 66 "driver"
        "the kernel module's release is not known"
        "The driver was judged by libcuda alone. Where the kernel module under it is of another release that libcuda does not work with, cuInit answers 803 all the same.\nWhat to do: name the kernel module's release (/proc/driver/nvidia/version) with --kernel, for a whole answer.";
    507 CudartUnknown Info Informs 67 "cudart"
        "cannot tell whether the shared libcudart is as new as the toolkit built with"
        "NVIDIA's installers and distributions name the file by its whole version (libcudart.so.12.4.127); pip's packages name it by the major alone, and nothing in the file says more. An older one of the same major is a warning (CG314), never a refusal, so the verdict stays what it is without.\nWhat to do: to be sure, put the libcudart of the toolkit built with first, or link it statically.";
    508 NotAllKept Info Open 60 "manifest"
        "more findings or manifests than the guard keeps"
        "The guard in a program allocates nothing, so it has room for a fixed number of manifests and findings. Errors are kept first; what was left out may hold another one, so the verdict is never better than \"unknown\".\nWhat to do: run `cargo cudaguard verify` on the program, which has no such limit.";
    513 NoManifest Info Informs 68 "{file}"
        "the file carries no manifest"
        "It was built without cudaguard. Its GPU code, the CUDA libraries that it needs and the functions that it binds were read from the file, and the verdict rests on them. Which releases it was built with nobody recorded: a library may lack more than the functions tell. What the file leaves open has a finding of its own.\nWhat to do: build it with `cargo cudaguard build`, or put `cudaguard::embed!()` into its build.rs.";
    514 KernelsCannotTell Info Open 69 "{file}"
        "what the kernels of a file ask of driver and GPU cannot be told"
        "The file is an object or an archive, which holds only a part of a program, or its GPU code cannot be read. All that is known without was judged.\nWhat to do: verify the linked program or library instead.";
    515 MachineUnreadable Info Open 70 "machine"
        "not all of the machine could be looked at"
        "The real libcuda was asked in a child process and crashed, hung or could not be loaded, or a file of the kernel's did not say what it should. Nothing is refused for it; what is not known stays unknown.\nWhat to do: see whether nvidia-smi works and what the kernel's log says (dmesg); name a machine by hand with --host or --driver.";
    516 CudartInsideUnknown Info Open 71 "{file}"
        "the release of the cudart inside a file is not known"
        "Each CUDA runtime asks for a driver of its own major: 525.60.13 for CUDA 12, 580 for CUDA 13. A shared one tells its major by its name. One that was linked into the file tells it by the toolkit that built the file, and here no toolkit is known.\nWhat to do: build where the toolkit is found, with `cargo cudaguard build`; or link the shared libcudart.";
}

words! {
    CudnnOtherMajor CudnnOtherMajor
        "cuDNN[ {found}] is of another major than cuDNN {built}, which {component} was built with\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "install cuDNN {built_major} ({min} or newer) where the loader looks first; or rebuild against the one found";
    CudnnOlder CudnnOlder
        "cuDNN {found} is older than cuDNN {built}, which {component} was built with\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "update it, or put a folder with cuDNN {min} or newer first in LD_LIBRARY_PATH; or rebuild against cuDNN {found}";
    CudnnOlderPatch CudnnOlderPatch
        "cuDNN {found} is an older patch than cuDNN {built}, which {component} was built with\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "update it, or put a folder with cuDNN {min} or newer first in LD_LIBRARY_PATH; or rebuild against cuDNN {found}";
    CudnnInnerMissing CudnnInnerMissing
        "cuDNN's library {library} is missing\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "reinstall cuDNN whole, so that all its libraries stand in one folder";
    CudnnInnerMissingNeeded CudnnInnerMissing
        "cuDNN's library {library} is missing: the first call would abort\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "reinstall cuDNN whole, so that all its libraries stand in one folder";
    CudnnAbsent CudnnAbsent
        "no cuDNN was found: no folder that the loader looks into has {library}\nbuilt with: cuDNN {built} ({component})"
        "install cuDNN {min} or newer, or name its folder in LD_LIBRARY_PATH";
    CudnnInnerMixed CudnnInnerMixed
        "cuDNN is mixed: {library} is {part}, the rest {found}\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "remove the stray copy[ of {library} in {beside}], or reinstall cuDNN whole from one package";
    WrongMachine WrongMachine
        "{file} is for {processor}, and {place} is {machine}"
        "use the build for {machine}";
    DriverTooOld DriverTooOld
        "the driver is too old for {code}[, which needs one that supports CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "update the driver[ to {needs_release} or newer]; or rebuild with an older toolkit";
    DriverTooOldForCode DriverTooOldForCode
        "the driver is too old for {code} on compute capability {gpus}[, which needs one that supports CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "update the driver[ to {needs_release} or newer]; or rebuild with {archs} added";
    NoCodeForGpu NoCodeForGpu
        "{component} has no code for compute capability {gpus}\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild it with {archs} added";
    DriverMismatch DriverMismatch
        "libcuda and the kernel module do not belong together (803)\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "reboot after a driver update; in a container, remove the libcuda that it brought along[: {libcuda}]";
    ForwardCompatUnsupported ForwardCompatUnsupported
        "cuda-compat does not work with this GPU (804)\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "take the folder of cuda-compat[, where {libcuda} lies,] out of LD_LIBRARY_PATH and update the driver; or hide that GPU with CUDA_VISIBLE_DEVICES";
    StubDriver StubDriver
        "the libcuda found is the stub, which is for linking only (34)\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "take the stubs folder[, where {libcuda} lies,] out of LD_LIBRARY_PATH and of RPATH";
    DriverMissing DriverMissing
        "there is no libcuda.so.1, and {component} requires a GPU"
        "install the NVIDIA driver; start a container with its GPUs (--gpus all)";
    JitDisabled JitDisabled
        "CUDA_DISABLE_PTX_JIT=1 forbids what compute capability {gpus} needs: {code}\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "unset CUDA_DISABLE_PTX_JIT; or rebuild with {archs} added";
    JitMissing JitMissing
        "libnvidia-ptxjitcompiler.so.1 is missing, and compute capability {gpus} needs it for {code} (221)\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "install the driver whole; start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility; or rebuild with {archs} added";
    JitMissingAnybody JitMissing
        "libcuda would not find libnvidia-ptxjitcompiler.so.1: programs that need PTX fail\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "install the driver whole (on Debian, libnvidia-ptxjitcompiler1); start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility";
    GpuMissing GpuMissing
        "there is no GPU, and {component} requires one\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "see what nvidia-smi says and what CUDA_VISIBLE_DEVICES holds; start a container with its GPUs (--gpus all)";
    PartialCode PartialCode
        "only a part of the code in {component} is for compute capability {gpus}\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild all of it with {archs} added, or drop gpu.partial from cudaguard.toml";
    NoGpuForAll NoGpuForAll
        "no GPU is fit for both {component} and {other}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "rebuild both for one and the same of {archs}";
    CudnnTooNewForGpu CudnnTooNewForGpu
        "cuDNN {found} no longer works on compute capability {gpus}\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "put a cuDNN older than {dropped_in} first in LD_LIBRARY_PATH (the program takes {min} and newer); or run it on a newer GPU";
    CudartOlder CudartOlder
        "{library} is of CUDA {found_cuda}, older than CUDA {built_cuda}, which {component} was built with\nfound:      {path}"
        "put a folder with the libcudart of CUDA {built_cuda} first in LD_LIBRARY_PATH; or link it statically";
    JitForced JitForced
        "{component} has no PTX for compute capability {gpus}, and CUDA_FORCE_PTX_JIT=1 passes over all else\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "unset CUDA_FORCE_PTX_JIT";
    GpuUndriven GpuUndriven
        "there is an NVIDIA GPU, and neither its kernel module nor libcuda is to be seen\non the bus: {devices}"
        "install the NVIDIA driver, or load its module (modprobe nvidia); in a container, start it with its GPUs (--gpus all)";
    GpuUndrivenNoLibrary GpuUndriven
        "there is an NVIDIA GPU with its kernel module, and no libcuda.so.1 where the loader looks\non the bus: {devices}"
        "install the driver's libraries of the same release; in a container, start it with its GPUs (--gpus all)";
    GpuUndrivenNoModule GpuUndriven
        "there is an NVIDIA GPU and a libcuda, and the kernel module is not loaded\non the bus: {devices}"
        "load the module (modprobe nvidia), or install the NVIDIA driver; in a container, start it with its GPUs (--gpus all)";
    DeviceDenied DeviceDenied
        "this user may not open {devices}"
        "see their owner and mode (ls -l {devices}): most often the user is not in the group video";
    CompatOutdated CompatOutdated
        "cuda-compat is no newer than the driver\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "take the folder of cuda-compat[, where {libcuda} lies,] out of LD_LIBRARY_PATH: the ordinary driver does all that it did";
    WslShadowed WslShadowed
        "a Linux driver's libcuda stands before the one that Windows brings\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "remove the NVIDIA driver's packages inside WSL: Windows' own driver serves it, in /usr/lib/wsl/lib";
    DriverNotWorking DriverNotWorking
        "cuInit answers {answer}: no program can use a GPU here\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "see what nvidia-smi says, and the kernel's log: dmesg | grep -i nvrm";
    DriverNotWorkingNotReady DriverNotWorking
        "cuInit answers {answer}: the system is not ready, and no program can use a GPU here\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "start the fabric manager (systemctl status nvidia-fabricmanager), and see nvidia-smi -q for its state";
    GpusHidden GpusHidden
        "no GPU is visible: CUDA_VISIBLE_DEVICES is set to \"{value}\""
        "unset CUDA_VISIBLE_DEVICES, or name GPUs that there are: by number, or by UUID as nvidia-smi -L says it";
    CudnnCannotTell CudnnCannotTell
        "cannot tell which cuDNN this is\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "see that cuDNN's inner libraries stand beside it: `cargo cudaguard doctor` lists every one that could be taken";
    CudnnCannotTellNotLoaded CudnnCannotTell
        "cannot tell which cuDNN {component} would get\nbuilt with: cuDNN {built} ({component})"
        "see that cuDNN {min} or newer is installed and can be read: `cargo cudaguard doctor` lists every one that could be taken";
    NoteNewer NoteNewer
        "the manifest of {component} is of a newer revision than this cudaguard: judged as far as it is known"
        "update cudaguard";
    NoteNewerRows NoteNewer
        "the manifest of {component} asks what this cudaguard does not know yet: rows of kind {kinds}"
        "update cudaguard";
    NoteDamaged NoteDamaged
        "a manifest in {file} is damaged: it was left out\nbecause:    {why}"
        "rebuild {file}: something wrote into it after it was linked";
    NothingToSee NothingToSee
        "no GPU to be seen: nothing to judge"
        "";
    DriverCannotTell DriverCannotTell
        "cannot tell whether driver and GPU fit: not all is known of them\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "`cargo cudaguard doctor` says what is missing";
    DriverCannotTellAnswer DriverCannotTell
        "cannot tell whether driver and GPU fit: cuInit answers {answer}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "see what nvidia-smi says, and the kernel's log: dmesg | grep -i nvrm";
    DriverCannotTellUnsure DriverCannotTell
        "cannot tell whether {code} loads on this driver: nvcc {nvcc_major} made it, and NVIDIA promises that for drivers from {needs_release} on\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "update the driver to {needs_release} or newer to be sure[; or rebuild with CUDA {cuda_major}]";
    KernelModuleUnknown KernelModuleUnknown
        "the kernel module's release is not known: judged by libcuda alone\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "name it for a whole answer: /proc/driver/nvidia/version has it, --kernel takes it";
    CudartUnknown CudartUnknown
        "cannot tell whether {library} is older than CUDA {built_cuda}, which {component} was built with: its file's name does not say\nfound:      {path}"
        "put a folder with the libcudart of CUDA {built_cuda} first in LD_LIBRARY_PATH to be sure; or link it statically";
    NotAllKept NotAllKept
        "{left_out} findings are not told: the guard keeps {kept} at most"
        "`cargo cudaguard verify` tells all of them";
    NotAllKeptNotes NotAllKept
        "{left_out} manifests were not judged: the guard keeps {kept} at most"
        "`cargo cudaguard verify` tells all of them";
    NoManifest NoManifest
        "{file} carries no manifest: it is judged by its GPU code, the libraries that it needs and their functions"
        "build it with `cargo cudaguard build`, or put `cudaguard::embed!()` into its build.rs";
    KernelsCannotTell KernelsCannotTell
        "the kernels in {file} cannot be read[: {why}]"
        "see whether {file} is whole; rebuild it";
    KernelsCannotTellUnlinked KernelsCannotTell
        "{file} is not linked yet: what its kernels ask of driver and GPU cannot be told"
        "verify the linked program or library";
    MachineUnreadable MachineUnreadable
        "not all of this machine could be looked at: {why}"
        "see what the driver says: nvidia-smi";
    CudartInsideUnknown CudartInsideUnknown
        "{file} has a cudart inside, and nobody recorded its release: which driver it needs cannot be told"
        "name the toolkit to the build (CUDA_HOME), or link the shared libcudart, whose name tells its major";
}

/// What may stand in words as a placeholder.
const FIELDS: &[&str] = &["answer", "archs", "beside", "built", "built_cuda", "built_for", "built_major", "code", "component", "cuda", "cuda_major", "devices", "driver", "dropped_in", "file", "found", "found_cuda", "gpus", "kept", "kernel", "kinds", "left_out", "libcuda", "library", "machine", "min", "needs_cuda", "needs_release", "nvcc_major", "other", "part", "path", "picked_by", "place", "processor", "value", "why"];
