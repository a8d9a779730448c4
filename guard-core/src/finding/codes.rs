// Written by `cargo findings` from guard-core/data/findings.toml; a test keeps it so.

codes! {
    100 ToolkitMissing Error Refuses 255
        "no CUDA toolkit where one is needed"
        "The policy requires a toolkit, or names one, and none was found in the places where builds look: NVCC, CUDACXX, PATH, CUDA_HOME, CUDA_PATH, CUDA_ROOT, CUDA_TOOLKIT_ROOT_DIR and the usual folders.\nWhat to do: install a toolkit, or set CUDA_HOME to its root; where the project needs none, drop [toolkit] require.";
    101 ToolkitMixed Error Refuses 255
        "nvcc and cuda.h are from different releases"
        "The compiler comes from one toolkit and the headers from another, most often because PATH and CUDA_HOME or CUDA_PATH disagree. Such a build compiles, and fails or misbehaves at run time.\nWhat to do: make PATH and CUDA_HOME (CUDA_PATH, CUDA_ROOT) name one toolkit.";
    102 CudartMixed Error Refuses 255
        "the libcudart that will be linked is from another release than nvcc"
        "The linker would most probably take a libcudart from another toolkit. cudart and nvcc must be from one release, or kernels fail to register. Where LIBRARY_PATH or the system's folder has it, this is a warning: a build script may name another folder, which is searched first. Once the file is linked, the libcudart that the linker took is judged.\nWhat to do: name the toolkit's own library folder first, or remove the other one from LIBRARY_PATH.";
    103 ToolkitNotAllowed Error Refuses 255
        "the toolkit is not one that the policy allows"
        "cudaguard.toml says with [toolkit] require which releases may build this project; the one in use is not among them.\nWhat to do: use an allowed toolkit, or change the requirement and say why in the commit.";
    104 ToolkitUnreadable Warning Informs 255
        "a CUDA toolkit's version cannot be read"
        "There is an nvcc or a cuda.h, but it does not say its version: it cannot be run, prints something else, or the file is damaged. What is built with it cannot be recorded rightly.\nWhat to do: run the named nvcc by hand with --version; reinstall the toolkit where that fails.";
    105 HostCompilerRejected Error Refuses 255
        "this nvcc does not accept this host compiler"
        "Each nvcc supports host compilers up to a version and stops with `unsupported GNU version` otherwise. By itself it calls gcc, or what NVCC_CCBIN names; the cc crate has it call what CXX names, or c++, and then NVCC_CCBIN does not count. Where only one of the two is too new this is an info, since the build may well use the other; where nobody named the compiler for nvcc it is a warning, since the build may call no nvcc, or call it with -ccbin.\nWhat to do: name an older compiler (g++-11 for CUDA 11.8) with CXX, where a build script calls nvcc by the cc crate, else with NVCC_CCBIN or -ccbin; or use a newer toolkit.";
    106 StubInRuntimePath Error Refuses 255
        "a stub folder stands in a runtime path"
        "The toolkit's lib/stubs holds empty libraries for the linker only. With that folder in LD_LIBRARY_PATH, RPATH or RUNPATH the program loads the empty libcuda and every call answers 34, CUDA_ERROR_STUB_LIBRARY.\nWhat to do: take the stubs folder out of LD_LIBRARY_PATH and of -rpath; keep it in -L only.";
    107 LockDrift Error Refuses 255
        "the toolchain is not the one that is locked"
        "cudaguard.lock records the toolkit, cuDNN, host compiler and archs that this workspace was agreed to be built with, and this build would use others: an update of the machine, another machine, or a variable.\nWhat to do: go back to what was locked, or accept the new toolchain with `cargo cudaguard lock` and commit the file.";
    108 LockLacksTarget Warning Informs 255
        "the lock says nothing about this target"
        "cudaguard.lock has a table for each target that it was written for, and none for the one being built: whether its toolchain has changed cannot be told.\nWhat to do: run `cargo cudaguard lock --target` with this target's triple and commit the file, or remove it where no lock is wanted.";
    109 StaleAllow Info Informs 255
        "an [allow] for a finding that this build does not have"
        "[allow] in cudaguard.toml excuses a finding of the toolchain that this build does not have: its reason may have gone, and the next one of its kind would pass unseen. Another machine or target may still need it.\nWhat to do: remove the line, unless a build elsewhere needs it.";
    110 CudnnMixed Error Refuses 255
        "cuDNN's headers and its library are of different versions"
        "The program would be compiled against one cuDNN and linked to another. With a library older than the headers it fails where it is started; newer ones hide what was really tested.\nWhat to do: make headers and library come from one package: set CUDNN_PATH to its root.";
    111 CudnnForOtherCuda Error Refuses 255
        "cuDNN is built for another CUDA major"
        "cuDNN comes in one build per CUDA major. The build found brings along, or expects, a cudart and cuBLAS of another major than the toolkit's: two of each in one process.\nWhat to do: install the cuDNN package for the toolkit's major, for example cudnn9-cuda-13.";
    112 CudnnIncomplete Error Refuses 255
        "cuDNN's sub-libraries are missing or mixed"
        "libcudnn loads its parts by name at run time. Parts of another release, or none, abort the process at the first call.\nWhat to do: reinstall cuDNN whole from one package, and remove what older ones left in the same folder.";
    113 CudnnNotAllowed Error Refuses 255
        "cuDNN is not one that the policy allows"
        "cudaguard.toml says with [cudnn] require or linkage what this project may be built with; what was found does not fit.\nWhat to do: use an allowed cuDNN, or change the policy and say why in the commit.";
    114 CudnnUnreadable Warning Informs 255
        "the version of cuDNN's headers cannot be read"
        "There is a cudnn.h or cudnn_version.h, but it does not define CUDNN_MAJOR, CUDNN_MINOR and CUDNN_PATCHLEVEL. What the program is built with cannot be recorded, so nothing can be checked when it starts.\nWhat to do: reinstall cuDNN's headers; cuDNN 8 and newer keep the version in cudnn_version.h beside cudnn.h.";
    120 ArchTooNew Error Refuses 255
        "the toolkit cannot make this architecture yet"
        "The arch was introduced by a later release than the toolkit in use: nvcc stops with `Unsupported gpu architecture`.\nWhat to do: use the toolkit that introduced it, or declare an older arch with PTX, which newer GPUs compile.";
    121 ArchDropped Error Refuses 255
        "the toolkit no longer makes this architecture"
        "Later releases drop old architectures: CUDA 13 makes nothing below sm_75.\nWhat to do: drop the arch and the GPUs that need it, or build with the last toolkit that makes it.";
    122 NoPtx Info Informs 255
        "no PTX: GPUs newer than the architectures named are not served"
        "Machine code runs on GPUs of its own major only. Without PTX of the newest architecture the program has nothing to run on GPUs of later generations.\nWhat to do: add PTX of the newest arch (compute_90, 9.0+PTX); where leaving it out is meant, say so in [allow].";
    123 ArchsContradict Warning Informs 255
        "two sources name different architectures"
        "Variables, the policy file and the builder each may declare the archs; here they do not agree, and which of them the compiler follows depends on the build script.\nWhat to do: keep one of them, preferably [gpu] archs in cudaguard.toml, and unset the others.";
    124 NativeUnknown Error Refuses 255
        "`native` was asked for, and there is no GPU to ask"
        "`native` means the architecture of the GPU in the building machine. Without a driver and a GPU it means nothing, and nvcc falls back to its default silently.\nWhat to do: name the archs, for example CUDAARCHS=\"80;90\".";
    125 NativeOutsideFleet Error Refuses 255
        "`native` builds for this machine's GPU, which the fleet does not have"
        "The program is built for the GPU of the building machine; the policy's [gpu] fleet names others, which that code does not serve.\nWhat to do: name the archs of the fleet instead of `native`.";
    126 ArchUnreadable Error Refuses 255
        "an architecture cannot be read"
        "A variable, the policy or the builder names an architecture in a spelling that no tool knows.\nWhat to do: write sm_90, 90a, 9.0+PTX, 90-real or compute_90; lists by comma, semicolon or blank.";
    127 ArchOnlyByPtx Warning Informs 255
        "this architecture can only be served by PTX"
        "The toolkit cannot make machine code for the arch, but its PTX would be compiled by the driver at the first start: slow to start, and only on drivers that know this PTX.\nWhat to do: build with a toolkit that makes the arch, or accept it with [allow].";
    128 ArchMissing Error Refuses 255
        "kernels of this package lack an architecture that was asked for"
        "[gpu] archs in cudaguard.toml says what the package's own kernels must be, and the linked file holds own kernels that are not: an arch was left out of nvcc's flags, the build script follows another variable, CUDA_COMPUTE_CAP=90 became sm_90a alone, or an object from an earlier build was linked in. On such a GPU the first launch of that kernel fails with `no kernel image is available`.\nWhat to do: compile the named sources for every arch in [gpu] archs and delete stale objects; where a file is meant for fewer, say so in [allow]. Where a variable or a property asks for the arch, and not the policy, it is a warning.";
    129 ArchSurplus Warning Informs 255
        "kernels of this package are built for an architecture that the policy does not ask for"
        "[gpu] archs says what the package's own kernels must be, and the linked file holds code for more: larger files, longer builds, and an arch that nobody tests. Most often NVCC_APPEND_FLAGS, a default or a stale object brings it.\nWhat to do: take the arch out of nvcc's flags, or add it to [gpu] archs.";
    130 FleetUnserved Error Refuses 255
        "a GPU of the fleet is not served"
        "[gpu] fleet names GPUs that the whole program must run on, and no kernel in the linked file has code for one of them: neither machine code of its generation nor PTX that its driver could compile. The program would fail there with `no kernel image is available`.\nWhat to do: add the arch (or PTX of an older one) to what nvcc compiles, or take the GPU out of [gpu] fleet.";
    131 FleetPartial Warning Informs 255
        "a GPU is served by some kernels only"
        "Code is loaded by container, one for each source: where some containers serve a GPU and others have nothing for it, the program runs there until it launches a kernel of the others. Libraries that choose such kernels at run time do this on purpose (sm_90a variants); otherwise a source was compiled with other flags, or an object is stale.\nWhat to do: compile the named sources for the arch as well; where the program chooses at run time, say so in [allow].";
    132 FleetUndeclared Error Refuses 255
        "no declared architecture serves a GPU of the fleet"
        "[gpu] fleet names GPUs that the program must run on, and none of the archs that this build declares has code for one of them: neither machine code of its generation nor PTX that its driver could compile. The kernels would fail there with `no kernel image is available`. Under plain cargo the declared archs are all there is to judge by, and it is a warning where only a variable declares them; `cargo cudaguard build` judges the linked file instead (CG130).\nWhat to do: add the arch that the message names, take the GPU out of [gpu] fleet, or, where the build script compiles for other archs than it declares, say so in [allow].";
    133 DriverFleetOlder Error Refuses 255
        "the oldest driver of the fleet is too old for this CUDA"
        "[driver] fleet names the oldest driver branch that the program must run on, and a libcudart asks for a driver of its own major: CUDA 13 for 580, CUDA 12 for 525.60.13, CUDA 11 for 450.80.02. On an older one every call answers 35, cudaErrorInsufficientDriver. A cuDNN holds a cudart of its own, of the CUDA that it is made for. Programs without cudart, and data centre GPUs with cuda-compat, are not bound by it.\n`cargo cudaguard build` and CMake look into the linked file; under plain cargo only the toolkit is known, and this is a warning.\nWhat to do: build with a toolkit of the drivers' major, or raise [driver] fleet when the machines are updated.";
    134 BuildMachinePath Warning Informs 255
        "a runtime path leads into a folder of the building machine"
        "RPATH and RUNPATH tell the loader where to look, before the system's own folders. A folder of the machine that built the file (a home, /tmp, cargo's target folder) is not there, or holds something else, on the machine that runs it.\nWhat to do: take the -rpath out of the build script or of RUSTFLAGS; name folders beside the program by $ORIGIN.";
    135 DriverFleetCode Error Refuses 255
        "the oldest driver of the fleet cannot take the code for a GPU of the fleet"
        "PTX is compiled by the driver, and a driver reads only PTX that is no newer than itself; code compressed with Zstandard needs a driver that unpacks it. [driver] fleet and [gpu] fleet together name machines on which such code is all that there is: 222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION.\nWhat to do: add machine code (sm_XY) for that GPU, or raise [driver] fleet when the machines are updated.";
    136 CudnnFleetOlder Error Refuses 255
        "the oldest cuDNN of the fleet is too old for this build"
        "A program works with a cuDNN of the major it was built with and of the same or a newer minor; with an older one it refuses to start (CG202). [cudnn] fleet names the oldest that the program must run with.\nWhat to do: build with that cuDNN or an older one of its major, or raise [cudnn] fleet when the machines are updated.";
    137 CudnnLeftGpu Error Refuses 255
        "this cuDNN no longer serves a GPU of the fleet"
        "cuDNN drops old GPUs in minor releases: its builds from 9.11 on have no code below compute capability 7.5, so that Maxwell, Pascal and Volta (P100, V100) stayed with 9.10. A cuDNN newer than the one built with has less, never more.\nWhat to do: build with the release that the message names, or take the GPU out of [gpu] fleet.";
    138 CudnnBeforeGpu Warning Informs 255
        "this cuDNN is older than a GPU of the fleet"
        "cuDNN 9 for CUDA 12 and later serves GPUs that came after it. Older builds have code up to a generation, and no document says what they do on later ones; a newer cuDNN on the machine may know them.\nWhat to do: build with a newer cuDNN, or accept it with [allow].";
    139 FleetCannotTell Info Informs 255
        "whether a build serves the whole fleet cannot be told"
        "[gpu], [driver] and [cudnn] fleet are compared with what a build declares (archs, toolkit, cuDNN headers) or, under `cargo cudaguard`, with the linked file. Where neither is known nothing is judged.\nWhat to do: declare the archs in [gpu] archs, or build with `cargo cudaguard build`, which looks into the file.";
    140 Unguarded Warning Informs 255
        "a target could not be guarded"
        "The guard needs ELF, a C compiler for the target and a program that starts through the C library. What was built here lacks one of them, so the file carries no manifest and will start anywhere.\nWhat to do: see the reason in the message; the build itself is not affected.";
    141 NoSuchPackage Warning Informs 255
        "the policy names a package that is not in this workspace"
        "[package.NAME] in cudaguard.toml lays its keys over those of all packages, for the package of that name alone. The workspace has none of that name, so what stands there holds for nobody: most often the name is mistyped, or the package has gone.\nWhat to do: correct the name, or remove the table.";
    142 NotAsRecorded Error Refuses 255
        "the linked file needs another library than was recorded"
        "What was found before compiling and what the linker put into the file do not agree: a libcudart or libcudnn of another major than the toolkit's or the headers', or a cuDNN linked in another way than [cudnn] linkage says. The program mixes releases, and what the manifest asks of a machine would be wrong.\nWhat to do: make the build script link the libraries of the toolkit in use (CUDA_HOME, CUDNN_PATH and LIBRARY_PATH of one release), or correct [cudnn] linkage.";
    143 OwnKernelsUnknown Info Informs 255
        "cannot tell which kernels in the linked file are the package's own"
        "[gpu] archs is about the package's own kernels. Those are told by their bytes: the same stand in an object, an archive, a cubin or a PTX file that the build script made or that lies in the package. Here none was found, and some kernels in the file have other archs than the policy asks for; they may be another package's, where that is no mistake, or this one's, compiled to files that were deleted since.\nWhat to do: make the build script keep in OUT_DIR what nvcc made; or, where the package has no kernels of its own, take [gpu] archs out of the policy: [gpu] fleet says what the whole file must run on.";
    144 OtherToolkitUsed Error Refuses 255
        "the linked file was made by another toolkit than the one in use"
        "The kernels and the cudart in a linked file tell which release made them (docs/evidence.md), and here that is not the toolkit that variables and PATH name: the build script calls another nvcc by its path, or objects of an earlier toolkit were kept. The manifest records what is in the file; whatever else went by the toolkit in use may be wrong. A warning where only some kernels are of another release: a static library that was made elsewhere. An info where it is PTX or a cubin by itself, which may have come with the sources.\nWhat to do: let PATH, CUDA_HOME and the build script name one toolkit; or clean and build again.";
    145 CudartOfOtherToolkit Error Refuses 255
        "cudart and kernels in the linked file are from different releases"
        "The code of cudart that was linked into the file and the kernels that it registers tell their releases (docs/evidence.md), and these differ. nvcc and cudart belong together: a cudart that is older than nvcc may not know what the kernels' host code asks of it, and across majors nothing is promised. A warning where kernels of an older release of the same major came from elsewhere: those are promised to work.\nWhat to do: link the cudart of the toolkit that compiles, or build the kernels with the toolkit whose cudart is linked.";
    146 CudnnHeadersUnknown Warning Informs 255
        "the linked file needs cuDNN, but its headers are not known"
        "A program is held to the cuDNN whose headers it was compiled with, and these were found in none of the places where builds look: a build script may name their folder with -I, which stands in no object. What shows it all the same is taken: a compiler's list of what it read (-MD), debug info, a header that the script announces to cargo, bindings that bindgen made. Here nothing does. Headers and library come in one package, so the release of the library that the linker took is recorded in their place (in the manifest's JSON, known = \"linked\"); where that cannot be told either, the first release that has all the functions that the file binds (known = \"symbols\").\nWhat to do: set CUDNN_INCLUDE_DIR to the folder of the headers, or CPATH where the compiler shall find them by it; or say in cudaguard.toml which cuDNN they are of: [cudnn] built = \"9.1\".";
    150 CrateForOtherCuda Error Refuses 255
        "a crate has bindings for another CUDA than the toolkit in use"
        "A crate such as cudarc is told by a feature, a variable or the nvcc in PATH for which CUDA its bindings are. Linked with libraries of another major, its structs and functions do not match: calls fail, or compute wrongly. For libraries that a crate opens by name when the program runs this is a warning, since others may be there then.\nWhat to do: give the crate the toolkit's level (the line or variable is named), or build with the toolkit it is for.";
    151 CrateForOtherCudnn Error Refuses 255
        "a crate has bindings for another cuDNN than the one in use"
        "Bindings of one cuDNN major do not fit a library of another. Older cudarc also looks up every function when it opens cuDNN, and panics at the first that the library lacks.\nWhat to do: use the cuDNN that the bindings are for, or take the bindings for the cuDNN in use.";
    152 CratesDisagree Error Refuses 255
        "two crates of one program are for different majors"
        "Two crates, or two versions of one, have bindings for different majors of CUDA or cuDNN. In one process they share a library of one major, which is not the other's, or load two of them, with two sets of memory and handles.\nWhat to do: give both one level, or update the older crate so that one version serves both.";
    153 CrateRaisesDriver Error Refuses 255
        "a crate would panic on the oldest driver of the fleet"
        "cudarc before 0.19.5 looks up every driver function of its level when it opens libcuda, used or not, and panics at the first that is missing: `Expected symbol in library: cuCtxFromGreenCtx`. So its level is a floor for the driver, higher than the toolkit's own and named nowhere. [driver] fleet in cudaguard.toml says which driver it must run on.\nWhat to do: lower the level (CUDARC_CUDA_VERSION, or the feature), update cudarc, or ask for a newer driver.";
    154 CrateToolkitMixed Error Refuses 255
        "a crate compiles with another toolkit than the one in use, or with two"
        "Build scripts look for nvcc and cuda.h in orders of their own: one runs the first nvcc in PATH with the headers that CUDA_PATH names, another prefers NVCC. What they find here is not one toolkit, or not the one that the rest is built with and that the manifest records.\nWhat to do: let NVCC, PATH, CUDA_HOME and CUDA_PATH name one toolkit.";
    155 CrateStale Error Refuses 255
        "a crate was built for what was in use earlier, and cargo uses that build again"
        "cargo runs a build script again only when a variable or file that it announces changes, and PATH and CUDNN_PATH are not among those that most crates announce. So the crate still has the bindings or kernels of the toolkit or cuDNN that was in use when it was first built.\nWhat to do: `cargo clean -p` the crate and build again.";
    156 CrateArchOutsideFleet Error Refuses 255
        "a crate compiles its kernels for one arch, which does not serve the fleet"
        "cudaforge and bindgen_cuda compile all kernels for the one arch in CUDA_COMPUTE_CAP. [gpu] fleet in cudaguard.toml names GPUs that this code does not serve: the first launch there would fail with `no kernel image is available`. From 90 on cudaforge adds the suffix a, and such code runs on that GPU alone.\nWhat to do: build once for each generation of the fleet, or take the GPU out of [gpu] fleet.";
    157 CrateArchSpecific Info Informs 255
        "a crate turns a plain arch into code for one GPU alone"
        "cudaforge turns CUDA_COMPUTE_CAP=90 into sm_90a by itself (120 into sm_120a, 121 into sm_121f). Machine code and PTX of such an arch run on GPUs of that very compute capability, or its family, and on no later one.\nWhat to do: nothing where the program runs on that GPU only; otherwise build for an older arch as well.";
    158 BuilderGpuDecides Error Refuses 255
        "the GPU of the building machine decides what a crate compiles for"
        "Without CUDA_COMPUTE_CAP cudaforge and bindgen_cuda ask nvidia-smi for the first GPU of the building machine and compile for it alone. [gpu] fleet in cudaguard.toml names GPUs that this does not serve.\nWhat to do: set CUDA_COMPUTE_CAP, and build once for each generation of the fleet.";
    159 CrateStops Warning Informs 255
        "a crate's build script would stop"
        "The crate does not know the toolkit or cuDNN that is in use (`Unsupported cuda toolkit version`), or does not look where it is, and its build script panics. This is said before, with what to do.\nWhat to do: update the crate, name a level that it knows (CUDARC_CUDA_VERSION), or set the variable that it reads.";
    170 GuardNotLinked Error Refuses 255
        "the linked file does not carry its guard"
        "CMake was told to link the guard's two objects into this file, and the linker left them out, or the note was removed after linking. The program would start on any machine, and nobody could tell what it was built with.\nWhat to do: see whether a linker script discards .note.cudaguard, or a step after linking strips it (strip --remove-section, objcopy); link the objects as they are.";
    201 CudnnOtherMajor Error Refuses 41
        "the cuDNN found is another major version"
        "cuDNN promises nothing across majors: functions are missing or mean something else.\nWhat to do: install the major that the program was built with, or rebuild it.";
    202 CudnnOlder Error Refuses 44
        "the cuDNN found is older than the one built with"
        "A program may use a cuDNN of the same major and the same or a newer minor. An older minor lacks what the program was compiled to call.\nWhat to do: update cuDNN at the named place, or put a newer one first in LD_LIBRARY_PATH; or rebuild against the older.";
    203 CudnnOlderPatch Error Refuses 45
        "the cuDNN found is an older patch, and the policy refuses that"
        "Patches of one minor are interchangeable by NVIDIA's rule; this project asked for more with [cudnn] patch = \"refuse\".\nWhat to do: update cuDNN to the patch that the program was built with, or drop the option.";
    204 CudnnInnerMissing Error Refuses 42
        "cuDNN's loader library is there, an inner library is not"
        "libcudnn.so.N is a thin loader. Without libcudnn_graph (9) or libcudnn_ops_infer (8) the first call aborts the process. The other libraries are opened by the calls that need them: ops for normalisation, pooling and activations, cnn for convolutions, adv for recurrent networks and attention, train for all that goes backward, engines and heuristic for the plans of the graph API. A program that makes no such call does without them.\nWhat to do: reinstall cuDNN whole from one package.";
    205 CudnnAbsent Error Refuses 40
        "no cuDNN was found"
        "The program is linked to libcudnn, or the policy requires it, and no folder that the loader looks into has it.\nWhat to do: install cuDNN, or name its folder in LD_LIBRARY_PATH.";
    206 CudnnInnerMixed Error Refuses 43
        "cuDNN's inner library is from another release than its loader"
        "All libcudnn libraries of one process must be of one release; a mix aborts or misbehaves. The inner library's version is the one that counts, and it does not fit what was built with.\nWhat to do: remove the stray copy named in the message, or reinstall cuDNN whole.";
    207 CudnnOtherCuda Warning Informs 57
        "cuDNN is made for another CUDA major than the program"
        "Each release of cuDNN is published once for each CUDA major, under one and the same soname. The build of another major brings its own CUDA runtime along and opens the cuBLAS of its own major: that works, but costs memory twice, and the driver has to serve both. The release of the runtime inside stands in the code of cuDNN's inner library.\nWhat to do: install the package of cuDNN for the program's CUDA (nvidia-cudnn-cu12 for 12), or put its folder first in LD_LIBRARY_PATH.";
    210 LibraryAbsent Error Refuses 11
        "a library that the program is linked to is not found"
        "The loader would stop the program with `cannot open shared object file` before any of its code runs.\nWhat to do: install the package that holds it, or name its folder in LD_LIBRARY_PATH.";
    211 WrongMachine Error Refuses 10
        "the file is for another kind of machine"
        "The program, or a library that the loader would take, is built for another architecture.\nWhat to do: use the build for this machine.";
    212 LibraryDamaged Error Refuses 12
        "a library that the loader would take is damaged"
        "The loader looks no further once it has found a file of the right name: one that is empty, cut off (a copy that was broken off) or no library at all (a linker script) ends the program.\nWhat to do: reinstall the package that the file belongs to, or remove the file.";
    213 LibraryTooOld Error Refuses 13
        "a library lacks a version that the program was linked to"
        "The program was linked on a newer system: the loader would stop it with `version ... not found`, most often for GLIBC or GLIBCXX.\nWhat to do: run it on a system as new as the one it was built on, or build it on the older one.";
    214 LibraryLacksSymbol Error Refuses 14
        "a library lacks a function that the program binds"
        "The loader looks up the functions that a program and its libraries use: all of them at the start where they were linked so (Rust, `-z now`) or where their addresses are stored, else each at its first call. One that no library has ends the program with `symbol lookup error`, status 127: most often a library is an older release than the one linked with. For the start of a program only what is bound at the start counts; `verify` and `doctor` also refuse for functions of NVIDIA's libraries that are bound at their first call.\nIn a sealed program the guard says it in the loader's place.\nWhat to do: use a release of the library that has the function (the message names the first where it is known), or rebuild the program against the one that is there.";
    301 DriverTooOld Error Refuses 30
        "the driver is too old for what the program is linked to"
        "A CUDA runtime works on drivers of its own major and newer; on an older one every call answers 35, cudaErrorInsufficientDriver. A driver API function that the driver does not have yet ends the program, too.\nWhat to do: update the driver to the release named, or rebuild with an older toolkit; on data centre GPUs cuda-compat may do.";
    302 DriverTooOldForCode Error Refuses 32
        "the driver is too old for the code that this GPU needs"
        "PTX is compiled by the driver, and a driver reads only the PTX that it knows: newer PTX answers 222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION. Compressed code may need a newer driver, too. Minor version compatibility does not cover this.\nWhat to do: update the driver, or build with machine code (sm_XY) for this GPU.";
    303 NoCodeForGpu Error Refuses 31
        "no code for any GPU that the program can see"
        "Machine code runs on GPUs of its own major from its minor on, PTX on all newer ones. For these GPUs the program has neither: every launch answers 209, no kernel image is available.\nWhat to do: rebuild with the architecture of the GPU, or with PTX of an older one. Where the toolkit that it was built with does not make that architecture, the hint names one that does.";
    304 DriverMismatch Error Refuses 23
        "libcuda and the kernel module do not belong together"
        "cuInit answers 803: the user-mode library is of another release than the loaded kernel module, and the pair is not one that forward compatibility allows. Most often the driver was updated and the machine not restarted, or an image brings its own libcuda.\nWhat to do: reboot, or reload the nvidia module; in a container, remove the library that it brought along.";
    305 ForwardCompatUnsupported Error Refuses 24
        "forward compatibility is not for this GPU"
        "cuInit answers 804: the libcuda found is of cuda-compat, which works on data centre GPUs and few others. One GPU that is not eligible fails the whole process.\nWhat to do: take the compat folder out of LD_LIBRARY_PATH and update the driver, or hide that GPU with CUDA_VISIBLE_DEVICES.";
    306 StubDriver Error Refuses 25
        "the libcuda found is the toolkit's stub"
        "The toolkit's lib/stubs has an empty libcuda for the linker. Where the loader takes it, every call answers 34, CUDA_ERROR_STUB_LIBRARY.\nWhat to do: take the stubs folder out of LD_LIBRARY_PATH, RPATH and RUNPATH.";
    307 DriverMissing Error Refuses 20
        "there is no driver, and the program requires a GPU"
        "The policy says [runtime] gpu = \"required\", and no folder that the loader looks into has libcuda.so.1.\nWhat to do: install the NVIDIA driver; start a container with its GPUs (--gpus all).";
    308 JitDisabled Error Refuses 34
        "only PTX serves this GPU, and its compilation is switched off"
        "CUDA_DISABLE_PTX_JIT=1 keeps the driver from compiling PTX, and the program has no machine code for the GPUs that it can see: 223, CUDA_ERROR_JIT_COMPILATION_DISABLED.\nWhat to do: unset CUDA_DISABLE_PTX_JIT, or rebuild with machine code for this GPU.";
    309 JitMissing Error Refuses 35
        "only PTX serves this GPU, and the driver's PTX compiler is missing"
        "The driver compiles PTX with libnvidia-ptxjitcompiler.so.1, a file of its own that is not to be found here: a container that was given only a part of the driver, or a stripped image. The first kernel fails with 221, CUDA_ERROR_JIT_COMPILER_NOT_FOUND.\nWhat to do: install the driver whole (on Debian, libnvidia-ptxjitcompiler1), start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility, or rebuild with machine code for this GPU.";
    310 GpuMissing Error Refuses 21
        "there is no GPU, and the program requires one"
        "The policy says [runtime] gpu = \"required\", and the driver shows this process none: there is none, CUDA_VISIBLE_DEVICES hides it, or the container was started without.\nWhat to do: see what nvidia-smi says and what CUDA_VISIBLE_DEVICES holds; start a container with --gpus all.";
    311 PartialCode Error Refuses 36
        "only part of the program's code is for this GPU, and the policy refuses that"
        "Some of the kernels' containers serve the GPU and some do not. Careful programs choose at run time; this project asked for more with [gpu] partial = \"refuse\".\nWhat to do: rebuild all of it with that architecture, or drop the option.";
    312 NoGpuForAll Warning Informs 50
        "no GPU can run all components of the program"
        "Each of the two components named has code for some GPU of this machine, and no GPU can run both: data that they share must go from one GPU to another, or one of them fails where the other has put it.\nWhat to do: rebuild the component named with the other GPU's architecture among those built for.";
    313 CudnnTooNewForGpu Error Refuses 46
        "the cuDNN found no longer works on this GPU"
        "cuDNN drops old GPUs in minor releases: 9.11 and later have no code for Maxwell, Pascal and Volta (below compute capability 7.5), 8.9 and all of 9 have none for Kepler (below 5.0), and cudnnCreate fails there with an architecture mismatch.\nWhat to do: install an older cuDNN that the program accepts (up to 9.10, or 8.7 for Kepler), or run it on a newer GPU.";
    314 CudartOlder Warning Informs 51
        "the shared libcudart is older than the toolkit that the program was built with"
        "Programs may be built with a newer minor release of cudart than they run with, as long as they call nothing that is new in it: what is missing ends the program at the first such call.\nWhat to do: put the libcudart of the toolkit first (LD_LIBRARY_PATH), update it, or link it statically.";
    315 JitForced Error Refuses 33
        "the program's machine code is switched off, and it has no PTX"
        "CUDA_FORCE_PTX_JIT=1 has the driver pass over machine code and compile PTX in its place; it is for trying out whether a program has PTX. This one has none for the GPUs that it can see, so that no kernel of it is found.\nWhat to do: unset CUDA_FORCE_PTX_JIT.";
    316 CudnnNeedsNewerDriver Error Refuses 26
        "the cuDNN found is made for a newer CUDA than the driver serves"
        "Each release of cuDNN is published once for each CUDA major, under one and the same soname, with a CUDA runtime of that major inside. On a driver of an older major that runtime answers every call with \"CUDA driver version is insufficient for CUDA runtime version\", and cudnnCreate fails.\nWhat to do: install the package of cuDNN for the driver's CUDA (nvidia-cudnn-cu12 for 12), put its folder first in LD_LIBRARY_PATH, or update the driver.";
    317 GpuNotForDriver Error Refuses 27
        "the driver does not drive this GPU"
        "Driver branches drop old generations of GPUs: 470 was the last for Kepler, 580 for Maxwell, Pascal and Volta. And a new generation is driven from some branch on: 570 was the first for Blackwell. A driver does not see other GPUs at all. This is told of machines that a file or flags describe: where a driver is there, it says itself which GPUs it drives.\nWhat to do: describe the machine with a driver that it can have, or with another GPU.";
    320 GpuUndriven Warning Informs 52
        "there is a GPU, but no driver for it"
        "A GPU of NVIDIA's stands on the PCI bus, and the kernel module that drives it, libcuda, or both were not found. Every CUDA program finds no GPU. On a host whose GPUs are for virtual machines or containers alone this is as it should be.\nWhat to do: install the NVIDIA driver, or load its module (modprobe nvidia); start a container with its GPUs (--gpus all).";
    321 DeviceDenied Warning Informs 53
        "the device of a GPU cannot be opened by this user"
        "/dev/nvidia0 and its like must be opened for reading and writing. Where they cannot be, the driver shows no GPU and says nothing of the reason.\nWhat to do: see their owner and mode with ls -l /dev/nvidia*; add the user to that group (often video), or start the container with its GPUs.";
    322 CompatOutdated Warning Informs 54
        "cuda-compat is no newer than the driver"
        "The libcuda found is of cuda-compat, which puts a newer CUDA on an older driver. The driver has been updated since: it supports all that the package brings, and NVIDIA supports the package on older drivers only.\nWhat to do: take the compat folder out of LD_LIBRARY_PATH and of the loader's configuration.";
    323 WslShadowed Warning Informs 55
        "a Linux driver stands before the one that Windows brings"
        "In WSL2 the driver is Windows' own, and its libcuda is put into /usr/lib/wsl/lib. The loader takes another one, most often because a Linux driver's package was installed inside WSL; that one finds no kernel module.\nWhat to do: remove the NVIDIA driver's packages inside WSL (a toolkit without the driver: cuda-toolkit, not cuda).";
    324 DriverNotWorking Error Refuses 22
        "the driver does not work"
        "cuInit, which every CUDA program calls first, answers with an error that is of no program's making: 802, a system that is not ready (its fabric manager does not run), 999 and others, a driver or a GPU in trouble.\nWhat to do: see what nvidia-smi says, and the kernel's log (dmesg | grep -i nvrm); reboot where a GPU has fallen off the bus.";
    325 GpusHidden Info Informs 56
        "CUDA_VISIBLE_DEVICES hides every GPU"
        "The variable names the GPUs that a program may see, and none of those that it names is there: it is empty, or its first entry is no number and no UUID of a GPU here. All entries behind one that is not valid count for nothing.\nWhat to do: unset it, or name GPUs by number or as nvidia-smi -L says them.";
    501 CudnnCannotTell Info Open 63
        "cannot tell which cuDNN this is"
        "A libcudnn was found, but neither its file nor a question in a child process gave a version. The program goes on: what cannot be told never refuses.\nWhat to do: nothing, or see that the inner libraries stand beside the loader library.";
    502 NoteNewer Info Open 61
        "a manifest is newer than this cudaguard"
        "The file was guarded by a newer cudaguard. What this reader knows of it was judged, the rest was left out.\nWhat to do: update cargo-cudaguard.";
    503 NoteDamaged Info Open 62
        "a manifest is damaged"
        "A file carries a manifest whose bytes do not hold together: an offset points outside, or its mark is missing. It was left out of the judgement, and never refuses by itself. A guarded program whose own manifest is damaged or was removed warns at start-up.\nWhat to do: rebuild the file; something wrote into it after it was linked.";
    504 NothingToSee Info Open 65
        "no GPU is visible: nothing to judge"
        "There is no driver here, or no GPU that this process may use. A program may have a way without one, so it starts, unless [runtime] gpu = \"required\".\nWhat to do: nothing.";
    505 DriverCannotTell Info Open 64
        "cannot tell whether driver and GPU fit"
        "Something about the driver or the GPUs is not known: nobody could be asked, the driver did not answer, or it answered what says nothing about versions. What cannot be told never refuses.\nWhat to do: see what `cargo cudaguard doctor` says is missing; the program runs all the same.";
    506 KernelModuleUnknown Info Informs 66
        "the kernel module's release is not known"
        "The driver was judged by libcuda alone. Where the kernel module under it is of another release that libcuda does not work with, cuInit answers 803 all the same.\nWhat to do: name the kernel module's release (/proc/driver/nvidia/version) with --kernel, for a complete answer.";
    507 CudartUnknown Info Informs 67
        "cannot tell whether the shared libcudart is as new as the toolkit built with"
        "NVIDIA's installers and distributions name the file by its whole version (libcudart.so.12.4.127); pip's packages name it by the major alone, and nothing in the file says more. An older one of the same major is a warning (CG314), never a refusal, so the verdict stays what it is without.\nWhat to do: to be sure, put the libcudart of the toolkit built with first, or link it statically.";
    508 NotAllKept Info Open 60
        "more findings or manifests than the guard keeps"
        "The guard in a program allocates nothing, so it has room for a fixed number of manifests and findings. Errors are kept first; what was left out may hold another one, so the verdict is never better than \"unknown\".\nWhat to do: run `cargo cudaguard verify` on the program, which has no such limit.";
    513 NoManifest Info Informs 68
        "the file carries no manifest"
        "It was built without cudaguard. Its GPU code, the CUDA libraries that it needs and the functions that it binds were read from the file, and the verdict rests on them. Which releases it was built with nobody recorded: a library may lack more than the functions tell. What the file leaves open has a finding of its own.\nWhat to do: build it with `cargo cudaguard build`, or put `cudaguard::embed!()` into its build.rs.";
    514 KernelsCannotTell Info Open 69
        "what the kernels of a file ask of driver and GPU cannot be told"
        "The file is an object or an archive, which holds only a part of a program, or its GPU code cannot be read. All that is known without was judged.\nWhat to do: verify the linked program or library instead.";
    515 MachineUnreadable Info Open 70
        "part of the machine could not be looked at"
        "The real libcuda was asked in a child process and crashed, hung or could not be loaded, or a file of the kernel's did not say what it should. Nothing is refused for it; what is not known stays unknown.\nWhat to do: see whether nvidia-smi works and what the kernel's log says (dmesg); name a machine by hand with --host or --driver.";
    516 CudartInsideUnknown Info Open 71
        "the release of the cudart inside a file is not known"
        "Each CUDA runtime asks for a driver of its own major: 525.60.13 for CUDA 12, 580 for CUDA 13. A shared one tells its major by its name. One that was linked into the file tells it by the toolkit that built the file, and here no toolkit is known.\nWhat to do: build where the toolkit is found, with `cargo cudaguard build`; or link the shared libcudart.";
    517 CudnnBeforeThisGpu Info Open 72
        "the cuDNN found is older than the GPU"
        "cuDNN 9 for CUDA 12 and later serves GPUs that came after it. Older builds have code up to a generation, and no document says what they do on later ones: that is no reason to refuse.\nWhat to do: put a newer cuDNN that the program accepts first in LD_LIBRARY_PATH; a program that was built with cuDNN 8 accepts no other major, and is to be rebuilt.";
    518 PackageUnfit Warning Informs 250
        "what a package brings or promises does not fit"
        "A wheel that carries a part of the driver, two cuDNNs, or the building machine's folders in an RPATH works where it was made, and fails on other machines; so does one that requires an older cuDNN than its files need, or whose version names another CUDA than its code. A conda package promises by `depends` and `run_exports`, an image by NVIDIA_REQUIRE_CUDA, CUDA_VERSION and NV_CUDNN_VERSION.\nWhat to do: pack what each finding names in another way, or require what the files need.";
}

words! {
    ToolkitMissing ToolkitMissing "toolkit"
        "the policy asks for a CUDA toolkit, but a build would find none.\nrequired:\t{require} ([toolkit] require[ in {policy}])\n{dangling}\nnot in use:\t{others}"
        "install a toolkit, or set CUDA_HOME to the root of one; drop [toolkit] require where none is needed";
    ToolkitMissingUnused ToolkitMissing "toolkit"
        "the policy asks for a CUDA toolkit, but a build would find none.\nrequired:\t{require} ([toolkit] require[ in {policy}])\n{dangling}\nnot in use:\t{others}"
        "set CUDA_HOME={root}, or install the toolkit";
    ToolkitMissingCMake ToolkitMissing "toolkit"
        "the policy asks for a CUDA toolkit, but a build would find none.\nrequired:\t{require} ([toolkit] require[ in {policy}])\n{dangling}\nnot in use:\t{others}"
        "enable the language CUDA, or call find_package(CUDAToolkit) before cudaguard_embed; drop [toolkit] require where none is needed";
    ToolkitMissingOptions ToolkitMissing "toolkit"
        "the policy asks for a CUDA toolkit, but a build would find none.\nrequired:\t{require} ([toolkit] require[ in {policy}])\n{dangling}\nnot in use:\t{others}"
        "name the toolkit with --nvcc or --toolkit; drop [toolkit] require where none is needed";
    ToolkitMixed ToolkitMixed "toolkit"
        "nvcc is from CUDA {nvcc_cuda}, but {variable} names CUDA {headers_cuda}.\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "for {headers_cuda}, put {bin} first in PATH; for the other, set {variable}={root}";
    ToolkitMixedByVariable ToolkitMixed "toolkit"
        "nvcc is from CUDA {nvcc_cuda}, but {variable} names CUDA {headers_cuda}.\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "set {variable}={root}, or unset it";
    ToolkitMixedOneRoot ToolkitMixed "toolkit"
        "nvcc is from CUDA {nvcc_cuda}, the headers are from CUDA {headers_cuda}.\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "reinstall the toolkit: this root holds parts of two releases";
    ToolkitMixedCMake ToolkitMixed "toolkit"
        "nvcc is from CUDA {nvcc_cuda}, the headers are from CUDA {headers_cuda}.\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "take compiler and headers from one toolkit: configure an empty build folder with -DCUDAToolkit_ROOT={root}, or with the other's -DCMAKE_CUDA_COMPILER";
    ToolkitMixedOptions ToolkitMixed "toolkit"
        "nvcc is from CUDA {nvcc_cuda}, the headers are from CUDA {headers_cuda}.\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "let --nvcc, --toolkit and --include name one toolkit, as the compilers' own command lines do";
    ToolkitMixedAlsoNamed ToolkitMixed "{variable}"
        "{variable} names CUDA {found_cuda}, but the headers in use are from CUDA {headers_cuda}.\n{variable}:\t{found_cuda} in {path}\nin use:\t{headers}"
        "build scripts differ in which variable they follow: unset {variable}, or let both name one root";
    CudartMixed CudartMixed "libcudart"
        "by itself the linker would take libcudart {found}, but nvcc is from CUDA {nvcc_cuda}.\ncudart:\t{path} ({source})\ntoolkit:\t{toolkit}"
        "take that folder out of {source}, or put the toolkit's own library folder before it";
    CudartMixedOneRoot CudartMixed "libcudart"
        "by itself the linker would take libcudart {found}, but nvcc is from CUDA {nvcc_cuda}.\ncudart:\t{path} ({source})\ntoolkit:\t{toolkit}"
        "reinstall the toolkit: this root holds parts of two releases";
    CudartMixedOfSystem CudartMixed "libcudart"
        "by itself the linker would take libcudart {found}, but nvcc is from CUDA {nvcc_cuda}.\ncudart:\t{path} ({source})\ntoolkit:\t{toolkit}"
        "the toolkit in use has no libcudart of its own: install its cudart package";
    ToolkitNotAllowed ToolkitNotAllowed "toolkit"
        "the policy asks for CUDA {require}, but {found} is in use.\nrequired:\t{require} ([toolkit] require[ in {policy}])\nin use:\t{found} ({source})\nalso here:\t{others}"
        "put an allowed toolkit's bin folder first in PATH and set CUDA_HOME to its root, or change [toolkit] require";
    ToolkitNotAllowedCMake ToolkitNotAllowed "toolkit"
        "the policy asks for CUDA {require}, but {found} is in use.\nrequired:\t{require} ([toolkit] require[ in {policy}])\nin use:\t{found} ({source})\nalso here:\t{others}"
        "configure an empty build folder with an allowed toolkit: -DCMAKE_CUDA_COMPILER=ROOT/bin/nvcc and -DCUDAToolkit_ROOT=ROOT; or change [toolkit] require";
    ToolkitNotAllowedOptions ToolkitNotAllowed "toolkit"
        "the policy asks for CUDA {require}, but {found} is in use.\nrequired:\t{require} ([toolkit] require[ in {policy}])\nin use:\t{found} ({source})\nalso here:\t{others}"
        "build with an allowed toolkit, and name it with --nvcc or --toolkit; or change [toolkit] require";
    ToolkitNotAllowedLinked ToolkitNotAllowed "{file}"
        "the policy asks for CUDA {require}, but {file} holds code from CUDA {found}.\nrequired:\t{require} ([toolkit] require[ in {policy}])\nkernels:\t{kernels}\ncudart:\t{code}"
        "let the build script call the nvcc of an allowed toolkit, and link its cudart; or change [toolkit] require";
    ToolkitUnreadable ToolkitUnreadable "{path}"
        "nvcc does not say which release it is.\n{path} {why}"
        "run it by hand with --version; reinstall the toolkit where that fails";
    ToolkitUnreadableHeaders ToolkitUnreadable "cuda.h"
        "cuda.h does not say which release it is from.\nfile:\t{path}"
        "it should hold a line `#define CUDA_VERSION 13000`; reinstall the toolkit's headers";
    ToolkitUnreadableNotThere ToolkitUnreadable "{variable}"
        "{variable} names a compiler that cannot be found.\n{dangling}"
        "correct {variable}, or unset it to use the nvcc in PATH";
    HostCompilerRejected HostCompilerRejected "{compiler}"
        "nvcc from CUDA {nvcc_cuda} does not accept {maker} {major}: {newest} is the newest that it takes.\ncompiler:\t{refused}\nanother:\t{accepted}\nnvcc:\t{nvcc}\nlimit:\t{limit}"
        "install {cxx}-{newest} and set CXX={cxx}-{newest} where the cc crate calls nvcc, NVCC_CCBIN={cxx}-{newest} where anything else does, or build with a newer toolkit";
    HostCompilerRejectedCMake HostCompilerRejected "{compiler}"
        "nvcc from CUDA {nvcc_cuda} does not accept {maker} {major}: {newest} is the newest that it takes.\ncompiler:\t{refused}\nanother:\t{accepted}\nnvcc:\t{nvcc}\nlimit:\t{limit}"
        "install {cxx}-{newest} and configure with -DCMAKE_CUDA_HOST_COMPILER={cxx}-{newest}, or build with a newer toolkit";
    HostCompilerRejectedOptions HostCompilerRejected "{compiler}"
        "nvcc from CUDA {nvcc_cuda} does not accept {maker} {major}: {newest} is the newest that it takes.\ncompiler:\t{refused}\nanother:\t{accepted}\nnvcc:\t{nvcc}\nlimit:\t{limit}"
        "install {cxx}-{newest} and let nvcc call it, with -ccbin {cxx}-{newest} also in --nvcc-flags; or build with a newer toolkit";
    StubInRuntimePath StubInRuntimePath "{variable}"
        "{variable} makes programs load the toolkit's empty stub libraries.\nfolder:\t{folder}"
        "take the stubs folder out of {variable}; the linker needs it in -L or LIBRARY_PATH only";
    StubInRuntimePathInFile StubInRuntimePath "{file}"
        "the {variable} of {file} makes it load the toolkit's empty stub libraries.\nfolder:\t{folder}"
        "take the stubs folder out of -rpath: the linker needs it in -L only";
    LockDrift LockDrift "{what}"
        "{what} is not the one that is locked: {was} → {now}.\nlocked:\t{was} ({lock}, {target})\nin use:\t{now}[ ({source})]"
        "go back to what was locked, or accept the new one: `cargo cudaguard lock[ --target {lock_target}]`, and commit cudaguard.lock";
    LockDriftCMake LockDrift "{what}"
        "{what} is not the one that is locked: {was} → {now}.\nlocked:\t{was} ({lock}, {target})\nin use:\t{now}[ ({source})]"
        "go back to what was locked, or accept the new one: `cmake --build BUILD --target cudaguard-lock`, and commit cudaguard.lock";
    LockDriftOptions LockDrift "{what}"
        "{what} is not the one that is locked: {was} → {now}.\nlocked:\t{was} ({lock}, {target})\nin use:\t{now}[ ({source})]"
        "put back what was locked, or write the new one into cudaguard.lock, and commit it";
    LockLacksTarget LockLacksTarget "cudaguard.lock"
        "cudaguard.lock says nothing about {target}.\nlock:\t{lock}"
        "`cargo cudaguard lock --target {target}` adds it; commit the file";
    LockLacksTargetCMake LockLacksTarget "cudaguard.lock"
        "cudaguard.lock says nothing about {target}.\nlock:\t{lock}"
        "`cmake --build BUILD --target cudaguard-lock` adds it; commit the file";
    LockLacksTargetOptions LockLacksTarget "cudaguard.lock"
        "cudaguard.lock says nothing about {target}.\nlock:\t{lock}"
        "give {target} a table in cudaguard.lock; commit the file";
    StaleAllow StaleAllow "{finding}"
        "{finding} is allowed, but this build has no such finding.\nallow:\t{why}[ ({policy})]"
        "remove {finding} from [allow], unless a build on another machine or for another target needs it";
    CudnnMixed CudnnMixed "cuDNN"
        "cuDNN's headers are {built}, its library is {found}.\nheaders:\t{headers}\nlibrary:\t{found} in {path} ({source})\ntold by:\t{told_by}"
        "make both come from one package: set CUDNN_PATH to its root and unset the other CUDNN_ variables";
    CudnnMixedCMake CudnnMixed "cuDNN"
        "cuDNN's headers are {built}, its library is {found}.\nheaders:\t{headers}\nlibrary:\t{found} in {path} ({source})\ntold by:\t{told_by}"
        "make both come from one package: the include directories of the target and the library it links are of two";
    CudnnMixedOptions CudnnMixed "cuDNN"
        "cuDNN's headers are {built}, its library is {found}.\nheaders:\t{headers}\nlibrary:\t{found} in {path} ({source})\ntold by:\t{told_by}"
        "make both come from one package: what --include names, and what is linked, are of two";
    CudnnMixedAlsoNamed CudnnMixed "{variable}"
        "{variable} names cuDNN {found}, but the headers in use are {built}.\n{variable}:\t{found} in {path}\nin use:\t{headers}"
        "build scripts differ in which variable they follow: unset {variable}, or let all name one root";
    CudnnForOtherCuda CudnnForOtherCuda "cuDNN"
        "cuDNN {found} is built for CUDA {cuda_major}, the toolkit is CUDA {toolkit_cuda}.\ncuDNN:\t{path}\ntold by:\t{told_by}\ntoolkit:\t{toolkit}"
        "install the cuDNN package for CUDA {toolkit_major}: for example cudnn{built_major}-cuda-{toolkit_major}, or the wheel nvidia-cudnn-cu{toolkit_major}";
    CudnnForOtherCudaNever CudnnForOtherCuda "cuDNN"
        "cuDNN {found} was never made for CUDA {toolkit_major}.\ncuDNN:\t{path}\ntold by:\t{told_by}\ntoolkit:\t{toolkit}"
        "install the cuDNN package for CUDA {toolkit_major}: for example cudnn{built_major}-cuda-{toolkit_major}, or the wheel nvidia-cudnn-cu{toolkit_major}";
    CudnnIncomplete CudnnIncomplete "cuDNN"
        "cuDNN {found} is incomplete: it lacks {missing}.\nlibrary:\t{path}\nfolder:\t{folder}"
        "reinstall cuDNN whole: a call that needs the missing part aborts the program";
    CudnnIncompleteMixed CudnnIncomplete "cuDNN"
        "cuDNN's libraries are mixed: {part} among those of {found}.\nfolder:\t{folder}\nmixed in:\t{parts}\ntold by:\t{told_by}"
        "remove what an older cuDNN left in that folder, and reinstall cuDNN whole";
    CudnnNotAllowed CudnnNotAllowed "cuDNN"
        "the policy asks for cuDNN {require}, but {found} is in use.\nrequired:\t{require} ([cudnn] require[ in {policy}])\nin use:\t{path} ({source})\nnot in use:\t{others}"
        "set CUDNN_PATH to the root of an allowed cuDNN, or change [cudnn] require";
    CudnnNotAllowedCMake CudnnNotAllowed "cuDNN"
        "the policy asks for cuDNN {require}, but {found} is in use.\nrequired:\t{require} ([cudnn] require[ in {policy}])\nin use:\t{path} ({source})\nnot in use:\t{others}"
        "let the target's include directories, or CUDNN_INCLUDE_DIR of cudaguard_embed, name an allowed cuDNN, or change [cudnn] require";
    CudnnNotAllowedOptions CudnnNotAllowed "cuDNN"
        "the policy asks for cuDNN {require}, but {found} is in use.\nrequired:\t{require} ([cudnn] require[ in {policy}])\nin use:\t{path} ({source})\nnot in use:\t{others}"
        "let --include name an allowed cuDNN, or change [cudnn] require";
    CudnnNotAllowedAbsent CudnnNotAllowed "cuDNN"
        "the policy asks for cuDNN, but a build would find none.\nrequired:\t{require} ([cudnn] require[ in {policy}])\nin use:\t{path} ({source})\nnot in use:\t{others}"
        "set CUDNN_PATH to the root of an allowed cuDNN, or change [cudnn] require";
    CudnnNotAllowedAbsentCMake CudnnNotAllowed "cuDNN"
        "the policy asks for cuDNN, but a build would find none.\nrequired:\t{require} ([cudnn] require[ in {policy}])\nin use:\t{path} ({source})\nnot in use:\t{others}"
        "let the target's include directories, or CUDNN_INCLUDE_DIR of cudaguard_embed, name an allowed cuDNN, or change [cudnn] require";
    CudnnNotAllowedAbsentOptions CudnnNotAllowed "cuDNN"
        "the policy asks for cuDNN, but a build would find none.\nrequired:\t{require} ([cudnn] require[ in {policy}])\nin use:\t{path} ({source})\nnot in use:\t{others}"
        "let --include name an allowed cuDNN, or change [cudnn] require";
    CudnnUnreadable CudnnUnreadable "cuDNN"
        "cuDNN's headers do not say which version they are.\nfile:\t{path}"
        "cudnn_version.h should define CUDNN_MAJOR, CUDNN_MINOR and CUDNN_PATCHLEVEL; reinstall cuDNN's headers";
    ArchTooNew ArchTooNew "{targets}"
        "CUDA {toolkit_cuda} cannot make {targets}: {first} is the first that can.\ndeclared:\t{declared}\nnvcc:\t{nvcc}"
        "build with CUDA {first} or newer[, or declare compute_{ptx}, whose PTX newer GPUs compile at start]";
    ArchTooNewUnknown ArchTooNew "{targets}"
        "CUDA {toolkit_cuda} cannot make {targets}: no known release can.\ndeclared:\t{declared}\nnvcc:\t{nvcc}"
        "correct the arch, or build with a toolkit that makes it[, or declare compute_{ptx}, whose PTX newer GPUs compile at start]";
    ArchDropped ArchDropped "{targets}"
        "CUDA {toolkit_cuda} no longer makes {targets}[: {last} was the last].\ndeclared:\t{declared}\nnvcc:\t{nvcc}"
        "drop it together with the GPUs that need it, or build with [CUDA {last} or ]an older toolkit";
    NoPtx NoPtx "{file}"
        "{file} has no PTX for GPUs newer than those it is built for.\nbuilt for:\t{built_for}\ndeclared:\t{declared}"
        "add compute_{ptx} to the archs; where that is not wanted, allow it with a reason";
    NoPtxDeclared NoPtx "{file}"
        "{file} has no PTX for GPUs newer than those it is built for, although {targets} is declared.\nbuilt for:\t{built_for}\ndeclared:\t{declared}"
        "make the build script pass what is declared to nvcc, or declare what it makes";
    ArchsContradict ArchsContradict "archs"
        "{variable} and {others} name different architectures.\n{sources}"
        "keep one of them, preferably [gpu] archs in cudaguard.toml, and unset the others";
    ArchsContradictCMake ArchsContradict "archs"
        "{variable} and {others} name different architectures.\n{sources}"
        "let both name the same: [gpu] archs in cudaguard.toml and the target's CUDA_ARCHITECTURES";
    ArchsContradictOptions ArchsContradict "archs"
        "{variable} and {others} name different architectures.\n{sources}"
        "let both name the same: [gpu] archs in cudaguard.toml and nvcc's flags";
    NativeUnknown NativeUnknown "native"
        "`native` was asked for, and there is no GPU to ask.\n{variable}:\t{value}\ndriver:\t{why}"
        "name the archs, for example CUDAARCHS=\"80;90\"";
    NativeUnknownCMake NativeUnknown "native"
        "`native` was asked for, and there is no GPU to ask.\n{variable}:\t{value}\ndriver:\t{why}"
        "name the archs, for example CMAKE_CUDA_ARCHITECTURES=\"80;90\"";
    NativeUnknownOptions NativeUnknown "native"
        "`native` was asked for, and there is no GPU to ask.\n{variable}:\t{value}\ndriver:\t{why}"
        "name the archs to nvcc, for example with -arch=sm_80";
    NativeOutsideFleet NativeOutsideFleet "native"
        "`native` builds for this machine's GPU ({here}), which does not serve the fleet's {gpus}.\n{variable}:\t{value}\nthis machine:\t{here} ({source})\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "name the archs of the fleet instead of `native`";
    ArchUnreadable ArchUnreadable "{variable}"
        "{variable} names an architecture that cannot be read: {why}.\n{variable}:\t{value}"
        "correct {variable}, for example to `80;90`";
    ArchOnlyByPtx ArchOnlyByPtx "{gpu}"
        "CUDA {toolkit_cuda} makes no machine code for {gpus}, only PTX serves it.\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])\nnvcc:\t{nvcc}\ndeclared:\t{declared}"
        "build with a newer toolkit, or declare compute_{ptx} as well";
    ArchOnlyByPtxDeclared ArchOnlyByPtx "{gpu}"
        "CUDA {toolkit_cuda} makes no machine code for {gpus}, only PTX serves it.\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])\nnvcc:\t{nvcc}\ndeclared:\t{declared}"
        "the driver compiles it at the first start; a newer toolkit makes machine code";
    ArchMissing ArchMissing "{file}"
        "kernels of this package in {file} are not built for {targets}, which the policy asks for.\nkernels:\t{kernels}\nfound:\t{built_for}\ndeclared:\t{declared} ([gpu] archs[ in {policy}])"
        "compile them for every arch in [gpu] archs and delete objects of earlier builds; where fewer are meant, allow it with a reason";
    ArchMissingDeclared ArchMissing "{file}"
        "kernels of this package in {file} are not built for {targets}, which {source} names.\nkernels:\t{kernels}\nfound:\t{built_for}\ndeclared:\t{declared}"
        "let the build script hand what {source} names to nvcc, or take it out there";
    ArchMissingDeclaredCMake ArchMissing "{file}"
        "kernels of this target in {file} are not built for {targets}, which {source} names.\nkernels:\t{kernels}\nfound:\t{built_for}\ndeclared:\t{declared}"
        "see what takes it away: flags in CMAKE_CUDA_FLAGS or target_compile_options";
    ArchMissingDeclaredOptions ArchMissing "{file}"
        "kernels of this program in {file} are not built for {targets}, which {source} names.\nkernels:\t{kernels}\nfound:\t{built_for}\ndeclared:\t{declared}"
        "let nvcc be called with what {source} says, and the other way round";
    ArchSurplus ArchSurplus "{file}"
        "kernels of this package in {file} are built for {targets}, which the policy does not ask for.\nkernels:\t{kernels}\nfound:\t{built_for}\ndeclared:\t{declared} ([gpu] archs[ in {policy}])"
        "see what adds it: nvcc's flags in the build script, NVCC_APPEND_FLAGS, NVCC_PREPEND_FLAGS, or an object of an earlier build; or add it to [gpu] archs";
    FleetUnserved FleetUnserved "{file}"
        "{file} has no code for {gpus}, which it must run on.\nbuilt for:\t{built_for}\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "{cure}, or take {gpus} out of [gpu] fleet";
    FleetPartial FleetPartial "{file}"
        "{file} runs on {gpus} only in part: {left_out} of its containers have no code for it.\nwithout:\t{without}\nbuilt for:\t{built_for}\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "compile them for {archs} as well; where the program chooses such kernels at run time, allow it with a reason";
    FleetPartialOne FleetPartial "{file}"
        "{file} runs on {gpus} only in part: 1 of its containers has no code for it.\nwithout:\t{without}\nbuilt for:\t{built_for}\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "compile them for {archs} as well; where the program chooses such kernels at run time, allow it with a reason";
    FleetPartialNoFleet FleetPartial "{file}"
        "{file} runs only in part on GPUs of {gpus}.\nwithout:\t{without} (for {gpu})\nbuilt for:\t{built_for}"
        "`cargo cudaguard inspect` shows all of it; name in [gpu] fleet what it must run on, and that is judged";
    FleetUndeclared FleetUndeclared "fleet"
        "this build will not run on {gpus}: no declared architecture serves it.\ndeclared:\t{declared} ({source})\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "{cure}, or take {gpus} out of [gpu] fleet";
    DriverFleetOlder DriverFleetOlder "{file}"
        "{file} will not run on driver {driver_fleet}, the oldest of the fleet: CUDA {cuda_major} needs a newer one.\ncudart:\tCUDA {found_cuda}, linked\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])"
        "[build with CUDA {instead}, or ]raise [driver] fleet[ to \"{branch}\"] once those machines are updated: on older drivers every call answers 35, cudaErrorInsufficientDriver; without cudart, or with cuda-compat on those machines, allow it with a reason";
    DriverFleetOlderInside DriverFleetOlder "{file}"
        "{file} will not run on driver {driver_fleet}, the oldest of the fleet: CUDA {cuda_major} needs a newer one.\ncudart:\tCUDA {found_cuda}, inside\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])"
        "[build with CUDA {instead}, or ]raise [driver] fleet[ to \"{branch}\"] once those machines are updated: on older drivers every call answers 35, cudaErrorInsufficientDriver; without cudart, or with cuda-compat on those machines, allow it with a reason";
    DriverFleetOlderCudnn DriverFleetOlder "{file}"
        "{file} will not run on driver {driver_fleet}, the oldest of the fleet: the cuDNN that it is linked to is made for CUDA {cuda_major}, which needs a newer one.\ncuDNN:\t{found} in {path}\ntold by:\t{told_by}\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])"
        "[link a cuDNN for CUDA {instead}, or ]raise [driver] fleet[ to \"{branch}\"] once those machines are updated; where they have a cuDNN of their own for an older CUDA, or cuda-compat, allow it with a reason";
    DriverFleetOlderDeclared DriverFleetOlder "this build"
        "this build, if cudart is in it, will not run on driver {driver_fleet}, the oldest of the fleet: CUDA {cuda_major} needs a newer one.\ntoolkit:\t{toolkit}\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])"
        "[build with CUDA {instead}, or ]raise [driver] fleet[ to \"{branch}\"] once those machines are updated: on older drivers every call answers 35, cudaErrorInsufficientDriver; without cudart, or with cuda-compat on those machines, allow it with a reason";
    BuildMachinePath BuildMachinePath "{file}"
        "the {variable} of {file} leads into {what}.\nfolder:\t{folder}"
        "take that -rpath out of the build script or RUSTFLAGS, or name the folder from the program's own by $ORIGIN";
    DriverFleetCode DriverFleetCode "{file}"
        "driver {driver_fleet}, the oldest of the fleet, cannot compile the PTX that {file} has for {gpus}.\ncode:\t{code}, PTX {isa}\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])\nGPUs:\t{fleet} ([gpu] fleet[ in {policy}])"
        "{cure}, or raise [driver] fleet[ to \"{branch}\"] once those machines are updated";
    DriverFleetCodePacked DriverFleetCode "{file}"
        "driver {driver_fleet}, the oldest of the fleet, cannot unpack the code that {file} has for {gpus}.\ncode:\t{code}, compressed with Zstandard\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])\nGPUs:\t{fleet} ([gpu] fleet[ in {policy}])"
        "let nvcc leave it uncompressed (-compress-mode=none), or raise [driver] fleet[ to \"{branch}\"] once those machines are updated";
    DriverFleetCodeDeclared DriverFleetCode "this build"
        "driver {driver_fleet}, the oldest of the fleet, cannot compile the PTX of CUDA {toolkit_cuda} that this build has for {gpus}.\ntoolkit:\t{toolkit}\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])\nGPUs:\t{fleet} ([gpu] fleet[ in {policy}])"
        "{cure}, or raise [driver] fleet[ to \"{branch}\"] once those machines are updated";
    CudnnFleetOlder CudnnFleetOlder "cuDNN"
        "this build will not start with cuDNN {library_fleet}, the oldest of the fleet.\ncuDNN:\t{found} in {path}\nfleet:\t{library_fleet} ([cudnn] fleet[ in {policy}])"
        "build with cuDNN {instead} or older: set CUDNN_PATH to its root; or raise [cudnn] fleet to \"{min}\" once those machines are updated";
    CudnnFleetOlderCMake CudnnFleetOlder "cuDNN"
        "this build will not start with cuDNN {library_fleet}, the oldest of the fleet.\ncuDNN:\t{found} in {path}\nfleet:\t{library_fleet} ([cudnn] fleet[ in {policy}])"
        "build with cuDNN {instead} or older: let the target name its headers and its library; or raise [cudnn] fleet to \"{min}\" once those machines are updated";
    CudnnFleetOlderOptions CudnnFleetOlder "cuDNN"
        "this build will not start with cuDNN {library_fleet}, the oldest of the fleet.\ncuDNN:\t{found} in {path}\nfleet:\t{library_fleet} ([cudnn] fleet[ in {policy}])"
        "build with cuDNN {instead} or older: name its headers with --include; or raise [cudnn] fleet to \"{min}\" once those machines are updated";
    CudnnLeftGpu CudnnLeftGpu "cuDNN"
        "cuDNN {found} no longer serves {gpus}.\ncuDNN:\t{found} in {path}\nserves:\tcompute capability {oldest} and newer, in its build for CUDA {cuda_major}\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "build with cuDNN {last} or older, the last that serves it, or take {gpus} out of [gpu] fleet; for a package that uses no cuDNN: [cudnn] linkage = \"none\"";
    CudnnLeftGpuNone CudnnLeftGpu "cuDNN"
        "cuDNN {found} no longer serves {gpus}.\ncuDNN:\t{found} in {path}\nserves:\tcompute capability {oldest} and newer, in its build for CUDA {cuda_major}\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "no cuDNN for CUDA {cuda_major} serves it: build for an older CUDA, or take {gpus} out of [gpu] fleet; for a package that uses no cuDNN: [cudnn] linkage = \"none\"";
    CudnnBeforeGpu CudnnBeforeGpu "cuDNN"
        "cuDNN {found} is older than {gpus}.\ncuDNN:\t{found} in {path}\nhas code:\tup to compute capability {newest}, in its build for CUDA {cuda_major}\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "build with a cuDNN that knows that GPU; whether this one works there is in no document";
    FleetCannotTell FleetCannotTell "fleet"
        "whether this build serves the whole fleet cannot be told here.\n{open}"
        "`cargo cudaguard build` reads the linked file, and judges that";
    Unguarded Unguarded "{component}"
        "{component} is built without the guard: {why}"
        "where the target lacks a C compiler, install one or name it in CC; targets without ELF or a C library cannot be guarded";
    NoSuchPackage NoSuchPackage "{package}"
        "the policy names a package {package}, which this workspace does not have.\nfile:\t{policy}:{line}"
        "correct the name in package.{package}, or remove the table";
    NoSuchPackageMeant NoSuchPackage "{package}"
        "the policy names a package {package}, which this workspace does not have.\nfile:\t{policy}:{line}"
        "did you mean package.{meant}? Else remove the table";
    NotAsRecorded NotAsRecorded "{file}"
        "{file} is built with CUDA {built_cuda}, but linked to {library}.\nneeds:\t{library}\nbuilt with:\tCUDA {built_cuda}"
        "link the libcudart of CUDA {built_major}: see -L in the build script, and LIBRARY_PATH";
    NotAsRecordedCMake NotAsRecorded "{file}"
        "{file} is built with CUDA {built_cuda}, but linked to {library}.\nneeds:\t{library}\nbuilt with:\tCUDA {built_cuda}"
        "link CUDA::cudart of the toolkit that compiles: configure an empty build folder with its root as -DCUDAToolkit_ROOT";
    NotAsRecordedOptions NotAsRecorded "{file}"
        "{file} is built with CUDA {built_cuda}, but linked to {library}.\nneeds:\t{library}\nbuilt with:\tCUDA {built_cuda}"
        "link the libcudart of the toolkit that compiles, and name that one with --nvcc or --toolkit";
    NotAsRecordedLinkage NotAsRecorded "{file}"
        "the policy declares another cuDNN linkage than {file} has.\ndeclared:\t{declared} ([cudnn] linkage = \"{value}\"[ in {policy}])\nfound:\t{linkage}\nneeds:\t{library}"
        "correct [cudnn] linkage, or what the build script links";
    NotAsRecordedLinkageCMake NotAsRecorded "{file}"
        "the policy declares another cuDNN linkage than {file} has.\ndeclared:\t{declared} ([cudnn] linkage = \"{value}\"[ in {policy}])\nfound:\t{linkage}\nneeds:\t{library}"
        "correct [cudnn] linkage, or what target_link_libraries names";
    NotAsRecordedLinkageOptions NotAsRecorded "{file}"
        "the policy declares another cuDNN linkage than {file} has.\ndeclared:\t{declared} ([cudnn] linkage = \"{value}\"[ in {policy}])\nfound:\t{linkage}\nneeds:\t{library}"
        "correct [cudnn] linkage, or what is linked";
    NotAsRecordedHeaders NotAsRecorded "{file}"
        "the headers found are from cuDNN {built}, but {file} is linked to {library}.\nneeds:\t{library}\nrecorded:\tcuDNN {built}, by its headers"
        "make headers and library come from one package: set CUDNN_PATH to its root";
    NotAsRecordedHeadersCMake NotAsRecorded "{file}"
        "the headers found are from cuDNN {built}, but {file} is linked to {library}.\nneeds:\t{library}\nrecorded:\tcuDNN {built}, by its headers"
        "make headers and library come from one package: let the target's include directories, or CUDNN_INCLUDE_DIR of cudaguard_embed, name the library's own";
    NotAsRecordedHeadersOptions NotAsRecorded "{file}"
        "the headers found are from cuDNN {built}, but {file} is linked to {library}.\nneeds:\t{library}\nrecorded:\tcuDNN {built}, by its headers"
        "make headers and library come from one package: what --include names, and what is linked";
    OwnKernelsUnknown OwnKernelsUnknown "{file}"
        "cannot tell which kernels in {file} are this package's: none was compared with [gpu] archs.\nkernels:\t{kernels}\nbuilt for:\t{built_for}\ndeclared:\t{declared} ([gpu] archs[ in {policy}])"
        "make the build script keep in OUT_DIR what nvcc made; where the package has no kernels of its own, [gpu] fleet says what the whole file must run on";
    OtherToolkitUsed OtherToolkitUsed "{file}"
        "{file} holds code from CUDA {built}, but the toolkit in use is CUDA {toolkit_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "let PATH and CUDA_HOME name the toolkit that the build script calls; where objects of an earlier build were kept, run cargo clean and build again";
    OtherToolkitUsedCMake OtherToolkitUsed "{file}"
        "{file} holds code from CUDA {built}, but the toolkit in use is CUDA {toolkit_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "configure an empty build folder with the toolkit that made the kernels: -DCMAKE_CUDA_COMPILER=ROOT/bin/nvcc and -DCUDAToolkit_ROOT=ROOT; or build all objects again";
    OtherToolkitUsedOptions OtherToolkitUsed "{file}"
        "{file} holds code from CUDA {built}, but the toolkit in use is CUDA {toolkit_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "let --nvcc or --toolkit name the toolkit that made the kernels; or build all objects again";
    OtherToolkitUsedBesides OtherToolkitUsed "{file}"
        "{file} also holds kernels from CUDA {built}, but the toolkit in use is CUDA {toolkit_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "build that library with the toolkit in use; where it is meant to be of another, allow it with a reason";
    CudartOfOtherToolkit CudartOfOtherToolkit "{file}"
        "{file} holds kernels from CUDA {built}, but the cudart that it was linked with is {found_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "link the libcudart_static.a of the toolkit that compiled the kernels: see -L in the build script, and LIBRARY_PATH";
    CudartOfOtherToolkitCMake CudartOfOtherToolkit "{file}"
        "{file} holds kernels from CUDA {built}, but the cudart that it was linked with is {found_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "let nvcc and cudart come from one toolkit: configure an empty build folder with one -DCMAKE_CUDA_COMPILER and -DCUDAToolkit_ROOT, or build the library with the other kernels anew";
    CudartOfOtherToolkitOptions CudartOfOtherToolkit "{file}"
        "{file} holds kernels from CUDA {built}, but the cudart that it was linked with is {found_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "link the libcudart of the toolkit that compiled the kernels, or build the library with the other kernels anew";
    CudnnHeadersUnknown CudnnHeadersUnknown "{file}"
        "{file} is linked to {library}, but nobody can tell which cuDNN headers it was compiled with.\nrecorded:\tcuDNN {found}, the release of {path}\nuses:\t{symbol}, which cuDNN {min} brought"
        "set CUDNN_INCLUDE_DIR to the folder of the headers that the build script names with -I";
    CudnnHeadersUnknownNothing CudnnHeadersUnknown "{file}"
        "{file} is linked to {library}, but nobody can tell from which release: any cuDNN will be accepted where it runs.\nrecorded:\tcuDNN {found}, the release of {path}\nuses:\t{symbol}, which cuDNN {min} brought"
        "set CUDNN_INCLUDE_DIR to the folder of the headers that the build script names with -I";
    CudnnHeadersUnknownCMake CudnnHeadersUnknown "{file}"
        "{file} is linked to {library}, but nobody can tell which cuDNN headers it was compiled with.\nrecorded:\tcuDNN {found}, the release of {path}\nuses:\t{symbol}, which cuDNN {min} brought"
        "name the folder of the headers to cudaguard_embed with CUDNN_INCLUDE_DIR, or to the target with target_include_directories";
    CudnnHeadersUnknownOptions CudnnHeadersUnknown "{file}"
        "{file} is linked to {library}, but nobody can tell which cuDNN headers it was compiled with.\nrecorded:\tcuDNN {found}, the release of {path}\nuses:\t{symbol}, which cuDNN {min} brought"
        "name the folder of the headers with --include";
    CrateForOtherCuda CrateForOtherCuda "{crate}"
        "{crate} has bindings for CUDA {found_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nlevel:\t{found_cuda} ({by})\ntoolkit:\t{toolkit}\nuses:\t{uses}"
        "{crate} knows no CUDA {toolkit_cuda}: update it ({named_in})";
    CrateForOtherCudaUnset CrateForOtherCuda "{crate}"
        "{crate} has bindings for CUDA {found_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nlevel:\t{found_cuda} ({by})\ntoolkit:\t{toolkit}\nuses:\t{uses}"
        "unset {variable}, or set it to {value}";
    CrateForOtherCudaFeature CrateForOtherCuda "{crate}"
        "{crate} has bindings for CUDA {found_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nlevel:\t{found_cuda} ({by})\ntoolkit:\t{toolkit}\nuses:\t{uses}"
        "{named_in}: take the feature {feature} instead of {now}; or set {variable}={value}";
    CrateForOtherCudaSet CrateForOtherCuda "{crate}"
        "{crate} has bindings for CUDA {found_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nlevel:\t{found_cuda} ({by})\ntoolkit:\t{toolkit}\nuses:\t{uses}"
        "set {variable}={value}; {now} is asked for by {named_in}";
    CrateForOtherCudaPath CrateForOtherCuda "{crate}"
        "{crate} has bindings for CUDA {found_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nlevel:\t{found_cuda} ({by})\ntoolkit:\t{toolkit}\nuses:\t{uses}"
        "put the bin folder of the toolkit in use first in PATH";
    CrateForOtherCudaPathOrSet CrateForOtherCuda "{crate}"
        "{crate} has bindings for CUDA {found_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nlevel:\t{found_cuda} ({by})\ntoolkit:\t{toolkit}\nuses:\t{uses}"
        "put the bin folder of the toolkit in use first in PATH, or set {variable}={value}";
    CrateForOtherCudnn CrateForOtherCudnn "{crate}"
        "{crate} has bindings for cuDNN {level}, but the cuDNN in use is {found}.\ncrate:\t{way}\nlevel:\t{level} ({by})\ncuDNN:\t{found} ({path})\nuses:\t{uses}"
        "install cuDNN {built_major} and set CUDNN_PATH to its root[, or take bindings for cuDNN {major} in {named_in}]";
    CrateForOtherCudnnSymbol CrateForOtherCudnn "{crate}"
        "{crate} looks up {code} when it opens cuDNN, but cuDNN {found} does not have it.\ncrate:\t{way}\nlevel:\t{level} ({by})\ncuDNN:\t{found} ({path})\nuses:\t{uses}"
        "use a newer cuDNN (9.15 has it), or a cudarc from 0.19.5 on, which looks up what is called";
    CratesDisagree CratesDisagree "{library}"
        "{crate} is for {library} {major}, {other} for {library} {other_major}, and both are in one program.\ncrate:\t{way}\nlevel:\t{level} ({by})\nuses:\t{uses}\nand:\t{other_way}\nlevel:\t{other_level} ({other_by})\nuses:\t{other_uses}"
        "give both one level: {crate} is named in {named_in}, {other} in {other_named_in}";
    CrateRaisesDriver CrateRaisesDriver "{crate}"
        "{crate} would panic on the oldest driver of the fleet: it looks up {code} when it opens libcuda.\ncrate:\t{way}\nlevel:\t{level} ({by})\nneeds:\ta driver that supports CUDA {needs_cuda}\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])"
        "ask for a newer driver in [driver] fleet";
    CrateRaisesDriverLevel CrateRaisesDriver "{crate}"
        "{crate} would panic on the oldest driver of the fleet: it looks up {code} when it opens libcuda.\ncrate:\t{way}\nlevel:\t{level} ({by})\nneeds:\ta driver that supports CUDA {needs_cuda}\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])"
        "set {variable}={value}[ ({named_in}: or take the feature {feature})]; cudarc from 0.19.5 on looks up only what is called";
    CrateToolkitMixed CrateToolkitMixed "{crate}"
        "{crate} compiles with CUDA {nvcc_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nnvcc:\t{nvcc}\ntoolkit:\t{toolkit}"
        "{package} looks for nvcc in another order: let NVCC, PATH and CUDA_HOME name one toolkit";
    CrateToolkitMixedHeaders CrateToolkitMixed "{crate}"
        "{crate} runs nvcc from CUDA {nvcc_cuda} with headers from CUDA {headers_cuda}.\ncrate:\t{way}\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "set CUDA_PATH={root}, or put the other toolkit's bin folder first in PATH";
    CrateToolkitMixedNoVariable CrateToolkitMixed "{crate}"
        "{crate} runs nvcc from CUDA {nvcc_cuda} with headers from CUDA {headers_cuda}.\ncrate:\t{way}\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "set CUDA_PATH={root}: no variable that it reads names a toolkit";
    CrateStale CrateStale "{crate}"
        "{crate} was built for {was}, and cargo uses that build again.\ncrate:\t{way}\nnow:\t{now}\nreruns on:\t{variable}"
        "cargo clean -p {package}@{value}[ --{profile}], then build again";
    CrateArchOutsideFleet CrateArchOutsideFleet "{crate}"
        "{variable}={value} leaves {gpus} of the fleet without kernels.\ncrate:\t{way}\nmakes:\t{targets} ({variable}={value})\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "{package} compiles for one arch: build once for each generation of the fleet, with its own {variable}";
    CrateArchOutsideFleetSpecific CrateArchOutsideFleet "{crate}"
        "{variable}={value} leaves {gpus} of the fleet without kernels.\ncrate:\t{way}\nmakes:\t{targets}, which runs on that GPU alone ({variable}={value})\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "{package} compiles for one arch: build once for each generation of the fleet, with its own {variable}";
    CrateArchSpecific CrateArchSpecific "{crate}"
        "{crate} turns {variable}={value} into {targets}.\ncrate:\t{way}\nserves:\tGPUs of compute capability {gpu} and no others"
        "leave it where the program runs on that GPU only; otherwise build for an older {variable} as well";
    CrateArchSpecificFamily CrateArchSpecific "{crate}"
        "{crate} turns {variable}={value} into {targets}.\ncrate:\t{way}\nserves:\tthe family of compute capability {gpu} and no others"
        "leave it where the program runs on that GPU only; otherwise build for an older {variable} as well";
    BuilderGpuDecides BuilderGpuDecides "{crate}"
        "{crate} compiles for the GPU of this machine, which leaves {gpus} of the fleet without kernels.\ncrate:\t{way}\nhere:\t{here}, hence {targets} (nvidia-smi)\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "set {variable}, and build once for each generation of the fleet";
    CrateStops CrateStops "{crate}"
        "{crate} has no bindings for CUDA {found_cuda}, and its build script stops.\ncrate:\t{way}\nasked:\t{found_cuda} ({by})\nnewest:\tCUDA {newest}"
        "`cargo update -p {package}`, or set {variable}={value}: bindings for an older release of one major work";
    CrateStopsNoCompiler CrateStops "{crate}"
        "{crate} asks nvcc for the release, and there is none in PATH.\ncrate:\t{way}\ntoolkit:\t{toolkit}"
        "add {root}/bin to PATH, or set CUDARC_CUDA_VERSION";
    CrateStopsNoCompilerAtAll CrateStops "{crate}"
        "{crate} asks nvcc for the release, and there is none in PATH.\ncrate:\t{way}"
        "install a toolkit, or set CUDARC_CUDA_VERSION";
    CrateStopsNoLibraries CrateStops "{crate}"
        "{crate} finds no CUDA where it looks, and its build script stops.\ncrate:\t{way}\nlooks in:\t{places}\ntoolkit:\t{toolkit}"
        "set CUDA_LIBRARY_PATH={root}";
    CrateStopsNoLibrariesAtAll CrateStops "{crate}"
        "{crate} finds no CUDA where it looks, and its build script stops.\ncrate:\t{way}\nlooks in:\t{places}\ntoolkit:\t{toolkit}"
        "install a toolkit, and name its root in CUDA_LIBRARY_PATH";
    CrateStopsUnknownCudnn CrateStops "{crate}"
        "{crate} has no bindings for cuDNN {found}, and its build script stops.\ncrate:\t{way}\nheader:\t{path}\nhas:\t{levels}"
        "in {named_in} name the bindings (feature cudnn-…) instead of asking the headers; those of one major fit";
    GuardNotLinked GuardNotLinked "{file}"
        "{file} is linked without its guard: {why}.\nfile:\t{path}\nguard:\tof {component}"
        "see whether a linker script or a step after linking discards .note.cudaguard (strip --remove-section, objcopy); cudaguard_embed is for the target that makes this file";
    CudnnOtherMajor CudnnOtherMajor "cuDNN"
        "cuDNN[ {found}] is another major version than cuDNN {built}, which {component} was built with\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "install cuDNN {built_major} ({min} or newer) where the loader looks first; or rebuild against the one found";
    CudnnOtherMajorLinked CudnnOtherMajor "cuDNN"
        "{library} is not found, and cuDNN {found} is another major version: the loader would stop the program\nneeded by:\t{needed_by}\nlooked in:\t{looked_in}\nfound:\t{path}"
        "{cure}; or rebuild the program against cuDNN {major}";
    CudnnOlder CudnnOlder "cuDNN"
        "cuDNN {found} is older than cuDNN {built}, which {component} was built with\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "update it, or put a folder with cuDNN {min} or newer first in LD_LIBRARY_PATH; or rebuild against cuDNN {found}";
    CudnnOlderPatch CudnnOlderPatch "cuDNN"
        "cuDNN {found} is an older patch than cuDNN {built}, which {component} was built with\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "update it, or put a folder with cuDNN {min} or newer first in LD_LIBRARY_PATH; or rebuild against cuDNN {found}";
    CudnnInnerMissing CudnnInnerMissing "cuDNN"
        "cuDNN lacks {library}: calls that need it fail\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "reinstall cuDNN whole from one package";
    CudnnInnerMissingNeeded CudnnInnerMissing "cuDNN"
        "cuDNN lacks {library}: the first call would abort\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "reinstall cuDNN whole from one package";
    CudnnAbsent CudnnAbsent "cuDNN"
        "no cuDNN was found: no folder that the loader looks into has {library}\nbuilt with: cuDNN {built} ({component})"
        "install cuDNN {min} or newer, or name its folder in LD_LIBRARY_PATH";
    CudnnAbsentLinked CudnnAbsent "cuDNN"
        "{library} is not found: the loader would stop the program\nneeded by:\t{needed_by}\nlooked in:\t{looked_in}"
        "{cure}";
    CudnnInnerMixed CudnnInnerMixed "cuDNN"
        "cuDNN is mixed: {library} is {part}, the rest {found}\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "remove the stray copy[ of {library} in {beside}], or reinstall cuDNN whole from one package";
    CudnnInnerMixedLoader CudnnInnerMixed "cuDNN"
        "cuDNN is mixed: its loader library is {loader}, the rest {found}\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "reinstall cuDNN whole from one package";
    CudnnOtherCuda CudnnOtherCuda "cuDNN"
        "cuDNN[ {found}] is made for CUDA {found_cuda}, and {component} for CUDA {built_cuda}\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "put a cuDNN for CUDA {built_cuda} first in LD_LIBRARY_PATH";
    LibraryAbsent LibraryAbsent "{library}"
        "{library} is not found: the loader would stop the program\nneeded by:\t{needed_by}\nlooked in:\t{looked_in}"
        "{cure}";
    LibraryAbsentInterpreter LibraryAbsent "{library}"
        "the loader that {file} names cannot start it\n{why}"
        "the program is built for another kind of system (glibc where there is musl, or for other folders, as on NixOS)";
    LibraryAbsentMusl LibraryAbsent "{library}"
        "the loader that {file} names cannot start it\n{why}"
        "it is built for musl: install musl, or use the build for glibc";
    WrongMachine WrongMachine "{file}"
        "{file} is for {processor}, and {place} is {machine}"
        "use the build for {machine}";
    WrongMachineElsewhere WrongMachine "{library}"
        "{library} is there for another machine only\nneeded by:\t{needed_by}\nlooked in:\t{looked_in}\nfound:\t{path}, which {why}"
        "{cure}";
    LibraryDamaged LibraryDamaged "{library}"
        "the loader would take {path} and die of it: {why}\nneeded by:\t{needed_by}\npicked by:\t{picked_by}"
        "reinstall the package that the file belongs to, or remove the file";
    LibraryTooOld LibraryTooOld "{path}"
        "version `{value}` is not in {path}: the loader would stop the program\nneeded by:\t{needed_by}"
        "run it on a system as new as the one it was built on, or build it on the older one";
    LibraryLacksSymbol LibraryLacksSymbol "{symbol}"
        "{library} lacks {symbols}: the loader would stop the program[ when it first calls {later}]\nneeded by:\t{needed_by}\nfound:\t{path}, picked by: {picked_by}"
        "use the {library} that the program was linked with, or a newer one; or rebuild against the one that is there";
    LibraryLacksSymbolBefore LibraryLacksSymbol "{symbol}"
        "{library} lacks {symbols}: the loader would stop the program[ when it first calls {later}]\nneeded by:\t{needed_by}\nfound:\t{path}, picked by: {picked_by}\nfirst in:\t{library} {first}"
        "use {library} {first} or newer; or rebuild against the one that is there";
    LibraryLacksSymbolOutside LibraryLacksSymbol "{symbol}"
        "{library} lacks {symbols}: the loader would stop the program[ when it first calls {later}]\nneeded by:\t{needed_by}\nfound:\t{path}, picked by: {picked_by}\nfirst in:\t{library} {first} up to {last}"
        "use {library} {first} up to {last}; or rebuild against the one that is there";
    LibraryLacksSymbolAfter LibraryLacksSymbol "{symbol}"
        "{library} lacks {symbols}: the loader would stop the program[ when it first calls {later}]\nneeded by:\t{needed_by}\nfound:\t{path}, picked by: {picked_by}\nlast in:\t{library} {last}"
        "use {library} {last} or older; or rebuild against the one that is there";
    LibraryLacksSymbolNowhere LibraryLacksSymbol "{symbol}"
        "no library has {symbols}: the loader would stop the program[ when it first calls {later}]\nneeded by:\t{needed_by}\nfound:\t{path}, picked by: {picked_by}"
        "one of the libraries is of another release than the program was linked with: use that one, or rebuild the program";
    LibraryLacksSymbolUnversioned LibraryLacksSymbol "{symbol}"
        "{library} has no versions, and {symbols} is asked of it in version {value}: the loader would stop the program\nneeded by:\t{needed_by}\nfound:\t{path}, picked by: {picked_by}"
        "use the {library} that the program was linked with";
    LibraryLacksSymbolOnMachine LibraryLacksSymbol "{symbol}"
        "{library} {found} lacks {symbols}, which {file} binds: the loader would stop the program\nfound:\t{path}\nfirst in:\t{library} {first}"
        "use {library} {first} or newer; or rebuild against the one that is there";
    LibraryLacksSymbolEmptySlot LibraryLacksSymbol "library"
        "{component} uses {symbol}, which no library has\nfound:      {path}\nfirst in:   {library} {min}"
        "update the library, or rebuild";
    LibraryLacksSymbolByTheLoader LibraryLacksSymbol "library"
        "{path}: symbol lookup error: {path}: undefined symbol: {symbol}[, version {library}]"
        "update the library, or rebuild";
    DriverTooOld DriverTooOld "driver"
        "the driver is too old for {code}[, which needs one that supports CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "update the driver[ to {needs_release} or newer]; or rebuild with an older toolkit";
    DriverTooOldNoneKnown DriverTooOld "driver"
        "the driver is too old for {code}[, which needs one that supports CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "rebuild with an older toolkit: no driver is known that supports this one";
    DriverTooOldForCode DriverTooOldForCode "driver"
        "the driver is too old for {code} on compute capability {gpus}[, which needs one that supports CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "update the driver[ to {needs_release} or newer]; or rebuild with {archs} added";
    DriverTooOldForCodeNoneKnown DriverTooOldForCode "driver"
        "the driver is too old for {code} on compute capability {gpus}[, which needs one that supports CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild with {archs} added, or with an older toolkit: no driver is known that supports this one";
    DriverTooOldForCodeForced DriverTooOldForCode "driver"
        "CUDA_FORCE_PTX_JIT=1 needs {code} for compute capability {gpus}: the driver is too old for that[, CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "unset CUDA_FORCE_PTX_JIT[; or update the driver to {needs_release} or newer]";
    NoCodeForGpu NoCodeForGpu "driver"
        "{component} has no code for compute capability {gpus}\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild it with {archs} added";
    NoCodeForGpuNoLongerMade NoCodeForGpu "driver"
        "{component} has no code for compute capability {gpus}\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild it with {archs} added and CUDA {made_to} or older: CUDA {built_cuda} no longer makes that";
    NoCodeForGpuNotYetMade NoCodeForGpu "driver"
        "{component} has no code for compute capability {gpus}\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild it with {archs} added and CUDA {made_from} or newer; or with PTX of an older arch added";
    DriverMismatch DriverMismatch "driver"
        "libcuda and the kernel module do not belong together (803)\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "reboot after a driver update; in a container, remove the libcuda that it brought along[: {libcuda}]";
    ForwardCompatUnsupported ForwardCompatUnsupported "driver"
        "cuda-compat does not work with this GPU (804)\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "take the folder of cuda-compat[, where {libcuda} lies,] out of LD_LIBRARY_PATH and update the driver; or hide that GPU with CUDA_VISIBLE_DEVICES";
    StubDriver StubDriver "driver"
        "the libcuda found is the stub, which is for linking only (34)\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "take the stubs folder[, where {libcuda} lies,] out of LD_LIBRARY_PATH and of RPATH";
    DriverMissing DriverMissing "driver"
        "there is no libcuda.so.1, and {component} requires a GPU"
        "install the NVIDIA driver; start a container with its GPUs (--gpus all)";
    JitDisabled JitDisabled "driver"
        "CUDA_DISABLE_PTX_JIT=1 forbids what compute capability {gpus} needs: {code}\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "unset CUDA_DISABLE_PTX_JIT; or rebuild with {archs} added";
    JitMissing JitMissing "driver"
        "libnvidia-ptxjitcompiler.so.1 is missing, and compute capability {gpus} needs it for {code} (221)\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "install the driver whole; start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility; or rebuild with {archs} added";
    JitMissingAnybody JitMissing "driver"
        "libcuda would not find libnvidia-ptxjitcompiler.so.1: programs that need PTX fail\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "install the driver whole (on Debian, libnvidia-ptxjitcompiler1); start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility";
    GpuMissing GpuMissing "driver"
        "there is no GPU, and {component} requires one\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "see what nvidia-smi says and what CUDA_VISIBLE_DEVICES holds; start a container with its GPUs (--gpus all)";
    PartialCode PartialCode "driver"
        "only part of the code in {component} is for compute capability {gpus}\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild all of it with {archs} added, or drop gpu.partial from cudaguard.toml";
    NoGpuForAll NoGpuForAll "driver"
        "no GPU can run both {component} and {other}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "rebuild both for one of {archs}";
    CudnnTooNewForGpu CudnnTooNewForGpu "driver"
        "cuDNN {found} no longer works on compute capability {gpus}\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "run it on a newer GPU, or with a cuDNN from {min} on and older than {dropped_in}, if there is one";
    CudartOlder CudartOlder "cudart"
        "{library} is of CUDA {found_cuda}, older than CUDA {built_cuda}, which {component} was built with\nfound:      {path}"
        "put a folder with the libcudart of CUDA {built_cuda} first in LD_LIBRARY_PATH; or link it statically";
    JitForced JitForced "driver"
        "{component} has no PTX for compute capability {gpus}, and CUDA_FORCE_PTX_JIT=1 allows nothing else\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "unset CUDA_FORCE_PTX_JIT";
    CudnnNeedsNewerDriver CudnnNeedsNewerDriver "driver"
        "cuDNN[ {found}] is made for CUDA {found_cuda}, and needs a driver that supports CUDA {needs_cuda}\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "put a cuDNN for CUDA[ {cuda_major}] first in LD_LIBRARY_PATH; or update the driver";
    GpuNotForDriver GpuNotForDriver "driver"
        "the driver no longer drives compute capability {gpus}: branch {branch} was the last\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "use a driver of branch {branch} or older for it; or another GPU";
    GpuNotForDriverYet GpuNotForDriver "driver"
        "the driver does not drive compute capability {gpus} yet: the first that does supports CUDA {needs_cuda}\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "update the driver[ to {needs_release} or newer]; or take another GPU";
    GpuUndriven GpuUndriven "driver"
        "there is an NVIDIA GPU, but neither its kernel module nor libcuda was found\non the bus: {devices}"
        "install the NVIDIA driver, or load its module (modprobe nvidia); in a container, start it with its GPUs (--gpus all)";
    GpuUndrivenNoLibrary GpuUndriven "driver"
        "there is an NVIDIA GPU with its kernel module, but no libcuda.so.1 where the loader looks\non the bus: {devices}"
        "install the driver's libraries of the same release; in a container, start it with its GPUs (--gpus all)";
    GpuUndrivenNoModule GpuUndriven "driver"
        "there is an NVIDIA GPU and a libcuda, but the kernel module is not loaded\non the bus: {devices}"
        "load the module (modprobe nvidia), or install the NVIDIA driver; in a container, start it with its GPUs (--gpus all)";
    DeviceDenied DeviceDenied "driver"
        "this user may not open {devices}"
        "see their owner and mode (ls -l {devices}): most often the user is not in the group video";
    CompatOutdated CompatOutdated "driver"
        "cuda-compat is no newer than the driver\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "take the folder of cuda-compat[, where {libcuda} lies,] out of LD_LIBRARY_PATH: the driver itself now does all that it did";
    WslShadowed WslShadowed "driver"
        "a Linux driver's libcuda stands before the one that Windows brings\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "remove the NVIDIA driver's packages inside WSL: Windows' own driver serves it, in /usr/lib/wsl/lib";
    DriverNotWorking DriverNotWorking "driver"
        "cuInit answers {answer}: no program can use a GPU here\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "see what nvidia-smi says, and the kernel's log: dmesg | grep -i nvrm";
    DriverNotWorkingNotReady DriverNotWorking "driver"
        "cuInit answers {answer}: the system is not ready, and no program can use a GPU here\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "start the fabric manager (systemctl status nvidia-fabricmanager), and see nvidia-smi -q for its state";
    DriverNotWorkingNoGpu DriverNotWorking "driver"
        "this machine has an NVIDIA GPU, but the driver shows none (cuInit answers 100)\non the bus: {devices}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "in a container, start it with its GPUs (--gpus all); on a host, create the device files (nvidia-modprobe -c 0 -u), and read dmesg | grep -i nvrm";
    DriverNotWorkingClosedModule DriverNotWorking "driver"
        "this GPU needs the open kernel modules, but the proprietary kernel module is loaded (cuInit answers 100)\non the bus: {devices}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "install the open kernel modules of this driver: nvidia-driver-<release>-open on Ubuntu, nvidia-open on other systems; then reboot";
    GpusHidden GpusHidden "driver"
        "no GPU is visible: CUDA_VISIBLE_DEVICES is set to \"{value}\""
        "unset CUDA_VISIBLE_DEVICES, or name GPUs that exist: by number, or by UUID as nvidia-smi -L lists it";
    CudnnCannotTell CudnnCannotTell "cuDNN"
        "cannot tell which cuDNN this is\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "see that cuDNN's inner libraries stand beside it: `cargo cudaguard doctor` lists every candidate";
    CudnnCannotTellNotLoaded CudnnCannotTell "cuDNN"
        "cannot tell which cuDNN {component} would get\nbuilt with: cuDNN {built} ({component})"
        "see that cuDNN {min} or newer is installed: `cargo cudaguard doctor` lists every candidate";
    NoteNewer NoteNewer "manifest"
        "the manifest of {component} is newer than this cudaguard: what this one knows of it was judged"
        "update cudaguard";
    NoteNewerRows NoteNewer "manifest"
        "the manifest of {component} asks for what this cudaguard does not know: rows of kind {kinds}"
        "update cudaguard";
    NoteDamaged NoteDamaged "manifest"
        "a manifest in {file} is damaged: it was not judged\nbecause:    {why}"
        "rebuild {file}: something wrote into it after it was linked";
    NoteDamagedNotFound NoteDamaged "manifest"
        "{file} has a guard and no manifest: it was not checked"
        "rebuild {file}, and keep its notes: a tool removed the manifest after it was linked";
    NothingToSee NothingToSee "driver"
        "no GPU is visible: nothing to judge"
        "";
    DriverCannotTell DriverCannotTell "driver"
        "cannot tell whether driver and GPU fit: some facts are missing\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "`cargo cudaguard doctor` says what is missing";
    DriverCannotTellAnswer DriverCannotTell "driver"
        "cannot tell whether driver and GPU fit: cuInit answers {answer}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "see what nvidia-smi says, and the kernel's log: dmesg | grep -i nvrm";
    DriverCannotTellNotLoaded DriverCannotTell "driver"
        "cannot tell whether driver and GPU fit: libcuda.so.1 is there, and cannot be loaded: {why}\nGPUs:       compute capability {gpus}"
        "`cargo cudaguard doctor` says what is missing";
    DriverCannotTellUnsure DriverCannotTell "driver"
        "cannot tell whether {code} loads on this driver: nvcc {nvcc_major} made it, and NVIDIA promises that for drivers from {needs_release} on\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "update the driver to {needs_release} or newer to be sure[; or rebuild with CUDA {cuda_major}]";
    DriverCannotTellNewerPtx DriverCannotTell "driver"
        "cannot tell whether this driver compiles {code}: both are newer than the guard\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild it with {archs} added";
    DriverCannotTellForced DriverCannotTell "driver"
        "cannot tell whether CUDA_FORCE_PTX_JIT=1 leaves code for compute capability {gpus}: not all in {component} is known to have PTX\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "unset CUDA_FORCE_PTX_JIT";
    DriverCannotTellNotNamed DriverCannotTell "driver"
        "cannot tell whether driver and GPU fit: not known is {missing}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "name it by --driver, --kernel and --gpu, or in a host file: `cargo cudaguard probe --json` on such a machine writes one";
    DriverCannotTellBranch DriverCannotTell "driver"
        "cannot tell whether driver {driver} serves {code}: that needs CUDA {needs_cuda}, and how much this driver's branch supports is in no table[, but {least} at least][ and {most} at most]\nneeded by:  {component}\nGPUs:       compute capability {gpus}"
        "the driver itself knows: ask it by `cargo cudaguard verify` on such a machine; nvidia-smi there says it, too, for the key \"cuda\" of \"driver\" in a host file";
    DriverCannotTellDrives DriverCannotTell "driver"
        "cannot tell whether this driver drives compute capability {gpus}: toolkits make code for it from CUDA {needs_cuda} on, and which update of an older driver brought it is in no table\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "update the driver[ to {needs_release} or newer] to be sure; nvidia-smi on such a machine lists the GPUs that its driver drives";
    KernelModuleUnknown KernelModuleUnknown "driver"
        "the kernel module's release is not known: libcuda alone was judged\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "for a complete answer name it with --kernel; /proc/driver/nvidia/version says it";
    CudartUnknown CudartUnknown "cudart"
        "cannot tell whether {library} is older than CUDA {built_cuda}, which {component} was built with: its file's name does not say\nfound:      {path}"
        "put a folder with the libcudart of CUDA {built_cuda} first in LD_LIBRARY_PATH; or link it statically";
    NotAllKept NotAllKept "manifest"
        "{left_out} findings are left out: the guard keeps {kept} at most"
        "`cargo cudaguard verify` shows all of them";
    NotAllKeptNotes NotAllKept "manifest"
        "{left_out} manifests were not judged: the guard keeps {kept} at most"
        "`cargo cudaguard verify` shows all of them";
    NoManifest NoManifest "{file}"
        "{file} carries no manifest: it is judged by its GPU code, the libraries that it needs and their functions"
        "build it with `cargo cudaguard build`, or put `cudaguard::embed!()` into its build.rs";
    NoManifestGpuCode NoManifest "{file}"
        "{file} is GPU code by itself and carries no manifest: it is judged by its code"
        "guard the program that loads it, and name these archs under [gpu] archs of its cudaguard.toml";
    KernelsCannotTell KernelsCannotTell "{file}"
        "the kernels in {file} cannot be read[: {why}]"
        "see whether {file} is whole; rebuild it";
    KernelsCannotTellUnlinked KernelsCannotTell "{file}"
        "{file} is not linked yet: what its kernels ask of driver and GPU cannot be told"
        "verify the linked program or library";
    MachineUnreadable MachineUnreadable "machine"
        "part of this machine could not be looked at: {why}"
        "see what nvidia-smi says";
    CudartInsideUnknown CudartInsideUnknown "{file}"
        "{file} has a cudart inside, and nobody recorded its release: which driver it needs cannot be told"
        "name the toolkit to the build (CUDA_HOME), or link the shared libcudart, whose name tells its major";
    CudnnBeforeThisGpu CudnnBeforeThisGpu "driver"
        "cannot tell whether cuDNN {found} works on compute capability {gpus}: it has code up to {newest_major}.x\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "put a newer cuDNN first in LD_LIBRARY_PATH: from cuDNN 9 for CUDA 12 on it serves GPUs that came after it";
    PackageUnfit PackageUnfit "package"
        "{path} belongs to the driver, and stands in the package"
        "leave libcuda out of what is packed (auditwheel repair --exclude libcuda.so.1): a machine's own fits its kernel module, and no other does";
    PackageUnfitTwice PackageUnfit "package"
        "{library} stands in the package more than once: {value}"
        "pack it once, and let all members find that one: which is loaded first decides for the whole process";
    PackageUnfitPromise PackageUnfit "package"
        "{value}, and {path} needs {library} {min} or newer[ ({symbol})]"
        "require {min} or newer";
    PackageUnfitPromiseMajor PackageUnfit "package"
        "{value}, and {path} needs {library}"
        "require the release that {library} comes from";
    PackageUnfitTag PackageUnfit "package"
        "{value}, and {path} is for CUDA {found_cuda}"
        "name it after the CUDA that its code is for: people choose by it";
    PackageUnfitDriver PackageUnfit "package"
        "{value}, and {path} needs a driver that supports CUDA {cuda}"
        "ask for that one: `cargo cudaguard requirements --format nvidia-require` writes the variable";
    PackageUnfitExport PackageUnfit "package"
        "{value}, and {path} is {library}"
        "let run_exports name the release that is in the package: whoever is linked to it looks for that one";
    PackageUnfitPath PackageUnfit "package"
        "libraries are looked for outside of the package, in {folder}, by {path}"
        "link without that RPATH, or with one that begins with $ORIGIN: what lies there on another machine, nobody knows";
}

phrases! {
    AddMachineCode
        "add machine code of {archs}";
    AddMachineCodeElsewhere
        "add machine code of {archs}, by a toolkit that makes it";
    AddToFlags
        "let nvcc make {archs}";
    AddToList
        "add {archs} to {variable}";
    BuildWithAnOlder
        "the toolkit in use no longer makes {targets}: build with an older one";
    BuildWithNewer
        "the toolkit in use does not make {targets} yet: build with CUDA {first} or newer, or let nvcc add PTX of its newest arch";
    BuildWithOlder
        "the toolkit in use no longer makes {targets}: build with CUDA {last} or older";
    ByName
        "loads cuDNN by name at run time";
    Inside
        "with cuDNN inside";
    InstallDriver
        "it is a part of the NVIDIA driver: install the driver";
    InstallGuarded
        "install cuDNN {major}, or name its folder in LD_LIBRARY_PATH";
    InstallPackage
        "install the package that holds it, or name its folder in LD_LIBRARY_PATH";
    InstallToolkit
        "it is a part of the CUDA toolkit: install the release that the program was built with, or name its folder in LD_LIBRARY_PATH";
    LiesElsewhere
        "it is in {folder}, where the loader does not look: add LD_LIBRARY_PATH={folder}";
    Linked
        "linked to libcudnn";
    NoBindings
        "CUDA {found_cuda} ({by}), for which it has no bindings; the newest are for {newest}";
    NoBindingsCudnn
        "cuDNN {found} ({path}), for which it has no bindings";
    NotThere
        "{variable}:\t{path}, which is not there";
    OfCc
        "{compiler} in {path} (by the cc crate: {source})";
    OfNvcc
        "{compiler} in {path} ({source})";
    OpenArchs
        "[gpu] fleet:\tno source declares the archs";
    OpenCudnn
        "[cudnn] fleet:\tno cuDNN is in use whose version can be told";
    OpenDriver
        "[driver] fleet:\twhat driver {driver_fleet} supports is in no document";
    OpenGpus
        "[gpu] fleet:\tno document says whether {targets} serves {gpus}";
    OpenPtx
        "[gpu] fleet:\twhether PTX stands beside {targets} for {gpus} is up to the crate that compiles";
    OpenToolkit
        "[driver] fleet:\tno CUDA toolkit is in use whose release can be told";
    Unused
        "without any use of cuDNN";
}

/// What may stand in words as a placeholder.
const FIELDS: &[&str] = &["accepted", "answer", "archs", "beside", "bin", "branch", "built", "built_cuda", "built_for", "built_major", "by", "code", "command", "compiler", "component", "crate", "cuda", "cuda_major", "cure", "cxx", "dangling", "declared", "devices", "driver", "driver_fleet", "dropped_in", "feature", "file", "finding", "first", "fleet", "folder", "found", "found_cuda", "gpu", "gpus", "headers", "headers_cuda", "here", "instead", "isa", "kept", "kernel", "kernels", "kinds", "last", "later", "least", "left_out", "level", "levels", "libcuda", "library", "library_fleet", "limit", "line", "linkage", "loader", "lock", "lock_target", "looked_in", "machine", "made_from", "made_to", "major", "maker", "meant", "min", "missing", "most", "named_in", "needed_by", "needs_cuda", "needs_release", "newest", "newest_major", "now", "nvcc", "nvcc_cuda", "nvcc_major", "oldest", "open", "other", "other_by", "other_level", "other_major", "other_named_in", "other_uses", "other_way", "others", "package", "part", "parts", "path", "picked_by", "place", "places", "policy", "processor", "profile", "ptx", "refused", "require", "root", "source", "sources", "symbol", "symbols", "target", "targets", "told_by", "toolkit", "toolkit_cuda", "toolkit_major", "uses", "value", "variable", "was", "way", "what", "why", "without"];
