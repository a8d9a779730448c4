// Written by `cargo findings` from guard-core/data/findings.toml; a test keeps it so.

codes! {
    100 ToolkitMissing Error Refuses 255 false
        "no CUDA toolkit is found, and the policy requires one"
        "The policy requires a toolkit, and none was found. cudaguard searches NVCC, CUDACXX, PATH, CUDA_HOME, CUDA_PATH, CUDA_ROOT, CUDA_TOOLKIT_ROOT_DIR and the usual directories.\nWhat to do: install a toolkit, or set CUDA_HOME to its root. If the project needs none, remove [toolkit] require.";
    101 ToolkitMixed Error Refuses 255 false
        "nvcc and cuda.h are from different releases"
        "The compiler comes from one toolkit and the headers from another, most often because PATH and CUDA_HOME or CUDA_PATH disagree. Such a build compiles, and fails or misbehaves at run time.\nWhat to do: make PATH and CUDA_HOME (CUDA_PATH, CUDA_ROOT) name one toolkit.";
    102 CudartMixed Error Refuses 255 false
        "the libcudart that will be linked is from another release than nvcc"
        "The linker would probably use a libcudart from another toolkit. cudart and nvcc must be from one release, or kernels fail to register. If LIBRARY_PATH or a system directory contains it, this is a warning, because a build script may add a directory that is searched first. After linking, cudaguard checks the libcudart that the linker used.\nWhat to do: put the library directory of the toolkit first, or remove the other one from LIBRARY_PATH.";
    103 ToolkitNotAllowed Error Refuses 255 false
        "the policy does not allow this toolkit"
        "[toolkit] require in cudaguard.toml lists the releases that may build this project. The toolkit in use is not among them.\nWhat to do: use an allowed toolkit, or change the requirement and give the reason in the commit.";
    104 ToolkitUnreadable Warning Informs 255 false
        "a CUDA toolkit's version cannot be read"
        "cudaguard found nvcc or cuda.h but cannot read its version: nvcc does not run or prints unexpected output, or the file is damaged.\nWhat to do: run that nvcc with --version. Reinstall the toolkit if this fails.";
    105 HostCompilerRejected Error Refuses 255 false
        "this nvcc does not accept this host compiler"
        "Each nvcc supports host compilers up to a version and stops with `unsupported GNU version` otherwise. nvcc itself calls gcc, or the compiler in NVCC_CCBIN. The cc crate makes nvcc call CXX, or c++, and then NVCC_CCBIN does not count. If only one of the two is too new, this is an info, because the build may use the other. If no variable names the compiler, it is a warning, because the build may not call nvcc, or may call it with -ccbin.\nWhat to do: name an older compiler (g++-11 for CUDA 11.8) with CXX if a build script calls nvcc through the cc crate, otherwise with NVCC_CCBIN or -ccbin; or use a newer toolkit.";
    106 StubInRuntimePath Error Refuses 255 false
        "a stub directory is in a runtime path"
        "The directory lib/stubs of the toolkit contains empty libraries for the linker only. If it is in LD_LIBRARY_PATH, RPATH or RUNPATH, the program loads the empty libcuda, and every call returns 34, CUDA_ERROR_STUB_LIBRARY.\nWhat to do: remove the stubs directory from LD_LIBRARY_PATH and -rpath. Keep it in -L only.";
    107 LockDrift Error Refuses 255 false
        "the toolchain differs from the lock"
        "cudaguard.lock records the toolkit, cuDNN, host compiler and architectures of this workspace, and this build would use others. Causes are an update of the machine, another machine, or a variable.\nWhat to do: restore the locked toolchain, or accept the new one with `cargo cudaguard lock` and commit the file.";
    108 LockLacksTarget Warning Informs 255 false
        "the lock has no entry for this target"
        "cudaguard.lock contains one table for each locked target, and none for the target of this build. cudaguard cannot check whether its toolchain has changed.\nWhat to do: run `cargo cudaguard lock --target` with this triple and commit the file, or remove the file if you need no lock.";
    109 StaleAllow Info Informs 255 false
        "an [allow] entry matches no finding of this build"
        "[allow] in cudaguard.toml allows a finding that this build does not have. The reason may be obsolete, and the entry would hide the next finding of this kind. Another machine or target may still need it.\nWhat to do: remove the line, unless a build elsewhere needs it.";
    110 CudnnMixed Error Refuses 255 false
        "cuDNN's headers and its library have different versions"
        "The program would be compiled against one cuDNN and linked to another. With a library older than the headers, it fails when it starts. With a newer library, your tests run a different combination from the one that was compiled.\nWhat to do: use headers and library of one package: set CUDNN_PATH to its root.";
    111 CudnnForOtherCuda Error Refuses 255 false
        "cuDNN is built for another CUDA major"
        "cuDNN has one build per CUDA major. This build contains or expects a cudart and cuBLAS of a different major from the toolkit's, so one process would contain two of each.\nWhat to do: install the cuDNN package for the toolkit's major, for example cudnn9-cuda-13.";
    112 CudnnIncomplete Error Refuses 255 false
        "cuDNN's sub-libraries are missing or mixed"
        "libcudnn loads its libraries by name at run time. Libraries of another release, or missing ones, abort the process at the first call.\nWhat to do: reinstall cuDNN completely from one package, and remove old files in the same directory.";
    113 CudnnNotAllowed Error Refuses 255 false
        "the policy does not allow this cuDNN"
        "[cudnn] require or linkage in cudaguard.toml limits the cuDNN of this project. The detected one does not fit.\nWhat to do: use an allowed cuDNN, or change the policy and give the reason in the commit.";
    114 CudnnUnreadable Warning Informs 255 false
        "the version of cuDNN's headers cannot be read"
        "There is a cudnn.h or cudnn_version.h without CUDNN_MAJOR, CUDNN_MINOR and CUDNN_PATCHLEVEL. The version cannot be recorded, so nothing can be checked at start-up.\nWhat to do: reinstall the headers of cuDNN. cuDNN 8 and newer keep the version in cudnn_version.h next to cudnn.h.";
    115 MathHeadersConflict Error Refuses 255 false
        "the C library is newer than this toolkit supports"
        "glibc 2.41 declares sinpi and cospi, and glibc 2.42 rsqrt. CUDA's crt/math_functions.h declares these functions too. If it does so without glibc's exception specification, each file that nvcc or clang compiles as CUDA fails with `exception specification is incompatible with that of previous function`. If no variable names the host compiler, this is a warning, because the build may not call nvcc.\nWhat to do: use CUDA 13.0 or newer for glibc 2.41, and CUDA 13.2 or newer for glibc 2.42; or build where the headers of glibc are older.";
    120 ArchTooNew Error Refuses 255 false
        "the toolkit does not support this architecture yet"
        "A later release than the toolkit in use introduced this architecture. nvcc stops with `Unsupported gpu architecture`.\nWhat to do: use the toolkit that introduced it, or declare an older architecture with PTX, which newer GPUs compile.";
    121 ArchDropped Error Refuses 255 false
        "the toolkit no longer supports this architecture"
        "Later releases drop old architectures: CUDA 13 compiles nothing below sm_75.\nWhat to do: drop the architecture and the GPUs that need it, or build with the last toolkit that supports it.";
    122 NoPtx Info Informs 255 false
        "no PTX: the program has no code for newer GPUs"
        "Machine code runs only on GPUs of the same major. Without PTX of the newest architecture, the program has no code for later GPU generations.\nWhat to do: add PTX of the newest architecture (compute_90, 9.0+PTX). If the omission is intended, allow it with a reason.";
    123 ArchsContradict Warning Informs 255 false
        "two sources name different architectures"
        "Variables, the policy and the builder can each declare the architectures. Here they disagree, and the build script decides which one the compiler uses.\nWhat to do: keep one of them, preferably [gpu] archs in cudaguard.toml, and unset the others.";
    124 NativeUnknown Error Refuses 255 false
        "`native` was requested, and this machine has no usable GPU"
        "`native` means the architecture of the GPU in the building machine. Without a driver and a GPU, nvcc uses its default without a message.\nWhat to do: name the architectures, for example CUDAARCHS=\"80;90\".";
    125 NativeOutsideFleet Error Refuses 255 false
        "`native` builds for this machine's GPU, which the fleet does not have"
        "The program is built for the GPU of the building machine. [gpu] fleet lists other GPUs, which this code does not support.\nWhat to do: name the architectures of the fleet instead of `native`.";
    126 ArchUnreadable Error Refuses 255 false
        "an architecture cannot be read"
        "A variable, the policy or the builder contains an architecture in a spelling that no tool accepts.\nWhat to do: write sm_90, 90a, 9.0+PTX, 90-real or compute_90. Separate lists with commas, semicolons or blanks.";
    127 ArchOnlyByPtx Warning Informs 255 false
        "only PTX supports this architecture"
        "The toolkit cannot compile machine code for this architecture. The driver would compile its PTX at the first start, which is slow and works only with drivers that support this PTX.\nWhat to do: build with a toolkit that supports the architecture, or accept it with [allow].";
    128 ArchMissing Error Refuses 255 false
        "kernels of this package lack a requested architecture"
        "[gpu] archs in cudaguard.toml lists the architectures of the package's own kernels, and the linked file contains kernels of this package that lack one of them. Causes: nvcc's flags lack an architecture, the build script follows another variable, CUDA_COMPUTE_CAP=90 became sm_90a alone, or an object from an earlier build was linked. On such a GPU the first launch of that kernel fails with `no kernel image is available`.\nWhat to do: compile the named sources for every architecture in [gpu] archs and delete stale objects. If a file needs fewer, allow it with a reason. If a variable or a property requests the architecture, and not the policy, this is a warning.";
    129 ArchSurplus Warning Informs 255 false
        "kernels of this package are built for an architecture that the policy does not list"
        "[gpu] archs lists the architectures of the package's own kernels, and the linked file contains code for more. This makes files larger and builds longer, and adds an architecture without tests. Most often NVCC_APPEND_FLAGS, a default or a stale object adds it.\nWhat to do: remove the architecture from nvcc's flags, or add it to [gpu] archs.";
    130 FleetUnserved Error Refuses 255 false
        "the program has no code for a GPU of the fleet"
        "[gpu] fleet lists GPUs that the whole program must run on, and no kernel in the linked file has code for one of them: neither machine code of its generation nor PTX that its driver could compile. The program would fail there with `no kernel image is available`.\nWhat to do: add the architecture (or PTX of an older one) to nvcc's flags, or remove the GPU from [gpu] fleet.";
    131 FleetPartial Warning Informs 255 false
        "only some kernels have code for a GPU"
        "nvcc creates one fatbin for each source file, and the driver loads each separately. If only some fatbins have code for a GPU, the program runs there until it launches a kernel of another one. Libraries that select kernels at run time do this intentionally (sm_90a variants). Otherwise a source was compiled with other flags, or an object is stale.\nWhat to do: compile the named sources for the architecture too. If the program selects kernels at run time, allow it with a reason.";
    132 FleetUndeclared Error Refuses 255 false
        "no declared architecture supports a GPU of the fleet"
        "[gpu] fleet lists GPUs that the program must run on, and no declared architecture has code for one of them: neither machine code of its generation nor PTX that its driver could compile. The kernels would fail there with `no kernel image is available`. Plain cargo knows only the declared architectures. If only a variable declares them, this is a warning. `cargo cudaguard build` checks the linked file instead (CG130).\nWhat to do: add the architecture that the message names, or remove the GPU from [gpu] fleet. If the build script compiles for other architectures than it declares, allow it with a reason.";
    133 DriverFleetOlder Error Refuses 255 false
        "the oldest driver of the fleet is too old for this CUDA version"
        "[driver] fleet names the oldest driver branch that the program must run on. A libcudart needs a driver of the same major: 580 for CUDA 13, 525.60.13 for CUDA 12, 450.80.02 for CUDA 11. On an older driver every call returns 35, cudaErrorInsufficientDriver. cuDNN contains a cudart of the CUDA version that it was built for. This does not apply to programs without cudart, or to data centre GPUs with cuda-compat.\n`cargo cudaguard build` and CMake read the linked file. Plain cargo knows only the toolkit, so this is a warning there.\nWhat to do: build with a toolkit of the driver's major, or raise [driver] fleet after the machines are updated.";
    134 BuildMachinePath Warning Informs 255 false
        "a runtime path contains a directory of the building machine"
        "RPATH and RUNPATH name directories that the dynamic linker searches before the system directories. A directory of the building machine (a home directory, /tmp, cargo's target directory) does not exist on another machine, or contains something else.\nWhat to do: remove the -rpath from the build script or from RUSTFLAGS. Name directories next to the program with $ORIGIN.";
    135 DriverFleetCode Error Refuses 255 false
        "the oldest driver of the fleet cannot load the code for a GPU of the fleet"
        "The driver compiles PTX, and it reads only PTX that is no newer than itself. Code that is compressed with Zstandard needs a driver that can decompress it. [driver] fleet and [gpu] fleet together name machines on which the program has only such code: 222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION.\nWhat to do: add machine code (sm_XY) for that GPU, or raise [driver] fleet after the machines are updated.";
    136 CudnnFleetOlder Error Refuses 255 false
        "the oldest cuDNN of the fleet is too old for this build"
        "A program works with a cuDNN of the major that it was built with and of the same or a newer minor. With an older one it refuses to start (CG202). [cudnn] fleet names the oldest cuDNN that the program must run with.\nWhat to do: build with that cuDNN or an older one of its major, or raise [cudnn] fleet after the machines are updated.";
    137 CudnnLeftGpu Error Refuses 255 false
        "this cuDNN no longer supports a GPU of the fleet"
        "cuDNN drops old GPUs in minor releases. From 9.11 its builds have no code below compute capability 7.5, so 9.10 is the last for Maxwell, Pascal and Volta (P100, V100). A newer cuDNN at run time supports fewer old GPUs, never more.\nWhat to do: build with the release that the message names, or remove the GPU from [gpu] fleet.";
    138 CudnnBeforeGpu Warning Informs 255 false
        "this cuDNN is older than a GPU of the fleet"
        "cuDNN 9 for CUDA 12 and later supports GPUs that are newer than itself. Older builds have code up to one generation, and no document describes them on later GPUs. A newer cuDNN on the machine may support them.\nWhat to do: build with a newer cuDNN, or accept it with [allow].";
    139 FleetCannotTell Info Informs 255 false
        "it is unknown whether the build supports the whole fleet"
        "cudaguard compares [gpu], [driver] and [cudnn] fleet with the declarations of the build (architectures, toolkit, cuDNN headers), or under `cargo cudaguard` with the linked file. Neither is known here, so nothing was checked.\nWhat to do: declare the architectures in [gpu] archs, or build with `cargo cudaguard build`, which reads the linked file.";
    140 Unguarded Warning Informs 255 false
        "a target could not be guarded"
        "The guard needs a supported platform (Linux or Windows), a C compiler for the target, and a program that starts through the C library. One of them is missing, so the file contains no manifest and is not checked at start-up.\nWhat to do: read the reason in the message. To make this an error in release builds, set `build.unguarded = \"deny\"`.";
    141 NoSuchPackage Warning Informs 255 false
        "the policy names a package that is not in this workspace"
        "[package.NAME] in cudaguard.toml overrides keys for the package of that name. The workspace has no such package, so the table has no effect. Most often the name is misspelt, or the package was removed.\nWhat to do: correct the name, or remove the table.";
    142 NotAsRecorded Error Refuses 255 false
        "the linked file needs another library than was recorded"
        "The facts from before compilation contradict the linked file: a libcudart or libcudnn of another major than the toolkit or the headers, or another cuDNN linkage than [cudnn] linkage declares. The program mixes releases, and its manifest would contain wrong requirements.\nWhat to do: make the build script link the libraries of the toolkit in use (CUDA_HOME, CUDNN_PATH and LIBRARY_PATH of one release), or correct [cudnn] linkage.";
    143 OwnKernelsUnknown Info Informs 255 false
        "it is unknown which kernels in the linked file are the package's own"
        "[gpu] archs describes the package's own kernels. cudaguard recognises them by their bytes in an object, an archive, a cubin or a PTX file that the build script created or that is in the package. Here it recognised none, and some kernels in the file have other architectures than the policy requires. They can belong to another package, which is fine, or to this one, if the build deleted the files.\nWhat to do: make the build script keep nvcc's output in OUT_DIR. If the package has no own kernels, remove [gpu] archs: [gpu] fleet applies to the whole file.";
    144 OtherToolkitUsed Error Refuses 255 false
        "another toolkit than the one in use built the linked file"
        "The kernels and the cudart in a linked file show which release built them (docs/internals/evidence.md). Here it is not the toolkit that variables and PATH name: the build script calls another nvcc by its path, or objects of an earlier toolkit were kept. The manifest records the release in the file; everything that used the other toolkit can be wrong. If only some kernels are of another release, such as those of a prebuilt static library, this is a warning. For single PTX or cubin files, which may come with the sources, it is an info.\nWhat to do: make PATH, CUDA_HOME and the build script name one toolkit, or clean and build again.";
    145 CudartOfOtherToolkit Error Refuses 255 false
        "cudart and kernels in the linked file are from different releases"
        "The code of a static cudart and the kernels that it registers show their releases (docs/internals/evidence.md), and these differ. nvcc and cudart belong together: an older cudart may lack functions that nvcc's host code calls, and nothing is guaranteed across majors. Prebuilt kernels of an older release of the same major are guaranteed to work, so they are a warning.\nWhat to do: link the cudart of the toolkit that compiles, or build the kernels with the toolkit of the linked cudart.";
    146 CudnnHeadersUnknown Warning Informs 255 false
        "the linked file needs cuDNN, but its headers are not known"
        "A program needs the cuDNN of the headers that it was compiled with. No usual directory contains them; a build script may name the directory with -I, which no object records. cudaguard also reads compiler dependency lists (-MD), debug info, headers that the script announces to cargo, and bindgen's bindings. None of them names the headers here. Headers and library come in one package, so the manifest records the release of the linked library (known = \"linked\"). If this is unknown too, it records the first release with all bound functions (known = \"symbols\").\nWhat to do: set CUDNN_INCLUDE_DIR to the directory of the headers, or CPATH if the compiler uses it to find them. Or name their version in cudaguard.toml: [cudnn] built = \"9.1\".";
    147 TorchWithoutCuda Warning Informs 255 false
        "the linked file loads libtorch without its CUDA part"
        "The directory of libtorch contains libtorch_cuda.so. It registers PyTorch's CUDA functions when it is loaded, and no other code calls a function in it. The linker therefore drops it (--as-needed, the default of rustc and of many distributions). The program starts, and torch::cuda::is_available() returns false on every machine.\nWhat to do: link with -Wl,--no-as-needed and -ltorch_cuda. If the program is meant for the CPU, link a libtorch without CUDA, or allow the finding.";
    150 CrateForOtherCuda Error Refuses 255 false
        "a crate has bindings for a different CUDA version from the toolkit in use"
        "A feature, a variable or the nvcc in PATH determines the CUDA version of the bindings in crates such as cudarc. If libraries of another major are linked, structs and functions do not match: calls fail, or results are wrong. For libraries that a crate opens by name at run time this is a warning, because the machine may have other ones.\nWhat to do: set the crate to the toolkit's version (the message names the line or variable), or build with the matching toolkit.";
    151 CrateForOtherCudnn Error Refuses 255 false
        "a crate has bindings for a different cuDNN from the one in use"
        "Bindings of one cuDNN major do not fit a library of another. Older cudarc releases also resolve every function when they open cuDNN, and panic if one is missing.\nWhat to do: use the cuDNN of the bindings, or the bindings of the cuDNN in use.";
    152 CratesDisagree Error Refuses 255 false
        "two crates of one program are for different majors"
        "Two crates, or two versions of one, have bindings for different majors of CUDA or cuDNN. In one process they share a library of one major, which is wrong for the other, or load two of them, with separate memory and handles.\nWhat to do: set both to one version, or update the older crate so that one version is enough.";
    153 CrateRaisesDriver Error Refuses 255 false
        "a crate would panic on the oldest driver of the fleet"
        "cudarc before 0.19.5 resolves every driver function of its CUDA version when it opens libcuda, and panics if one is missing: `Expected symbol in library: cuCtxFromGreenCtx`. Its CUDA version is therefore a minimum for the driver, higher than the toolkit's own. [driver] fleet in cudaguard.toml names the driver that it must run on.\nWhat to do: select an older version (CUDARC_CUDA_VERSION, or the feature), update cudarc, or require a newer driver.";
    154 CrateToolkitMixed Error Refuses 255 false
        "a crate compiles with a different toolkit from the one in use, or with two"
        "Each build script searches for nvcc and cuda.h in its own order: one runs the first nvcc in PATH with the headers in CUDA_PATH, another prefers NVCC. Here they find parts of two toolkits, or a toolkit that differs from the one of the rest of the build and of the manifest.\nWhat to do: set NVCC, PATH, CUDA_HOME and CUDA_PATH to one toolkit.";
    155 CrateStale Error Refuses 255 false
        "cargo reuses a crate that was built for an earlier toolkit or cuDNN"
        "cargo runs a build script again only if a file or variable changes that the script declares (`rerun-if-changed`, `rerun-if-env-changed`). Most crates do not declare PATH and CUDNN_PATH. The crate therefore still has the bindings or kernels of the earlier toolkit or cuDNN.\nWhat to do: run `cargo clean -p` for the crate and build again.";
    156 CrateArchOutsideFleet Error Refuses 255 false
        "a crate compiles its kernels for one arch, which does not support the fleet"
        "cudaforge and bindgen_cuda compile all kernels for the one architecture in CUDA_COMPUTE_CAP. [gpu] fleet in cudaguard.toml lists GPUs that this code does not support: the first launch there would fail with `no kernel image is available`. From 90 on, cudaforge adds the suffix a (or f for 121), and such code runs on that GPU or its family only.\nWhat to do: build once for each generation of the fleet, or remove the GPU from [gpu] fleet.";
    157 CrateArchSpecific Info Informs 255 false
        "a crate narrows a plain arch to an architecture-specific one"
        "cudaforge turns CUDA_COMPUTE_CAP=90 into sm_90a (120 into sm_120a, 121 into sm_121f). Machine code and PTX of such an architecture run on GPUs of exactly that compute capability, or of its family, and on no later GPU.\nWhat to do: nothing if the program runs on that GPU only. Otherwise build for an older architecture too.";
    158 BuilderGpuDecides Error Refuses 255 false
        "the GPU of the building machine selects the architecture of a crate"
        "Without CUDA_COMPUTE_CAP, cudaforge and bindgen_cuda query nvidia-smi for the first GPU of the building machine and compile for it alone. [gpu] fleet in cudaguard.toml lists GPUs that this does not support.\nWhat to do: set CUDA_COMPUTE_CAP, and build once for each generation of the fleet.";
    159 CrateStops Warning Informs 255 false
        "a crate's build script would fail"
        "The crate does not know the toolkit or cuDNN in use (`Unsupported cuda toolkit version`), or does not search its directory. Or it compiles for the GPU of the building machine, and nvidia-smi reports none.\nWhat to do: update the crate, select a version that it knows (CUDARC_CUDA_VERSION), or set the variable that it reads (CUDA_COMPUTE_CAP).";
    170 GuardNotLinked Error Refuses 255 false
        "the linked file does not contain its guard"
        "CMake linked the two objects of the guard into this file, and the linker discarded them, or a later step removed the note. The program would start unchecked, and its build record is lost.\nWhat to do: check whether a linker script discards .note.cudaguard, or a step after linking strips it (strip --remove-section, objcopy). Link the objects unchanged.";
    201 CudnnOtherMajor Error Refuses 41 true
        "the cuDNN found is another major version"
        "cuDNN is not compatible across major versions: functions are missing or behave differently.\nWhat to do: install the major that the program was built with, or rebuild it.";
    202 CudnnOlder Error Refuses 44 true
        "the cuDNN found is older than the one built with"
        "A program may use a cuDNN of the same major and the same or a newer minor. An older minor lacks functions that the program was compiled to call.\nWhat to do: update cuDNN in the named directory, or put a newer one first in LD_LIBRARY_PATH; or rebuild with the older one.";
    203 CudnnOlderPatch Error Refuses 45 true
        "the cuDNN found is an older patch, and the policy refuses that"
        "NVIDIA guarantees that patches of one minor are interchangeable. This project requires more with [cudnn] patch = \"refuse\".\nWhat to do: update cuDNN to the patch that the program was built with, or remove the option.";
    204 CudnnInnerMissing Error Refuses 42 true
        "an inner library of cuDNN is missing"
        "libcudnn.so.N is a thin loader. Without libcudnn_graph (9) or libcudnn_ops_infer (8) the first call aborts the process. Calls open the other libraries when they need them: ops for normalisation, pooling and activations, cnn for convolutions, adv for recurrent networks and attention, train for backward passes, engines and heuristic for plans of the graph API. A program without such calls works without them.\nWhat to do: reinstall cuDNN completely from one package.";
    205 CudnnAbsent Error Refuses 40 true
        "no cuDNN was found"
        "The program links libcudnn, or the policy requires it, and no directory that the dynamic linker searches contains it.\nWhat to do: install cuDNN, or add its directory to LD_LIBRARY_PATH.";
    206 CudnnInnerMixed Error Refuses 43 true
        "cuDNN's inner library is from another release than its loader"
        "All libcudnn libraries of a process must be of one release; a mixed set aborts or misbehaves. The version of the inner library decides, and it does not fit the version that the program was built with.\nWhat to do: remove the wrong copy that the message names, or reinstall cuDNN completely.";
    207 CudnnOtherCuda Warning Informs 57 true
        "cuDNN is built for a different CUDA major from the program's"
        "NVIDIA publishes each release of cuDNN once per CUDA major, with the same soname. A build for another major brings its own CUDA runtime and opens the cuBLAS of that major. This works if the libraries of that major are installed. It needs a second CUDA runtime, and the driver must support both. The code of cuDNN's inner library contains the release of that runtime.\nWhat to do: install the cuDNN package for the program's CUDA (nvidia-cudnn-cu12 for 12), or put its directory first in LD_LIBRARY_PATH.";
    210 LibraryAbsent Error Refuses 11 false
        "a library that the program is linked to is not found"
        "The dynamic linker would stop the program with `cannot open shared object file` before any of its code runs.\nWhat to do: install the package that contains it, or add its directory to LD_LIBRARY_PATH. If the message has a `present` line, that file has a different major version. A program uses only the major that it was built with: install that one next to it.";
    211 WrongMachine Error Refuses 10 false
        "the file is for another processor architecture"
        "The program, or a library that the dynamic linker would load, is built for another processor architecture.\nWhat to do: use the build for this machine.";
    212 LibraryDamaged Error Refuses 12 false
        "a library that the dynamic linker would load is damaged"
        "The dynamic linker uses the first file with the right name. If this file is empty, truncated (an interrupted copy) or not a library (a linker script), the program ends.\nWhat to do: reinstall the package of the file, or remove the file.";
    213 LibraryTooOld Error Refuses 13 false
        "a library lacks a symbol version that the program needs"
        "The program was linked on a newer system. The dynamic linker would stop it with `version ... not found`, most often for GLIBC or GLIBCXX.\nWhat to do: run it on a system as new as the one it was built on, or build it on the older one.";
    214 LibraryLacksSymbol Error Refuses 14 true
        "a library lacks a function that the program binds"
        "The dynamic linker resolves the functions of a program and its libraries: all at the start if they were linked with `-z now` (the default of Rust) or if their addresses are stored, otherwise each at its first call. A function that no library has ends the program with `symbol lookup error`, status 127. Most often a library is an older release than at build time. At start-up only functions that are bound at the start count. `verify`, `doctor` and `exec` also refuse for functions of NVIDIA libraries that are bound at their first call.\nIn a sealed program the guard reports this before the dynamic linker does.\nWhat to do: use a release of the library that has the function (the message names the first one if it is known), or rebuild the program with the installed release.";
    231 FamilyMixed Warning Informs 28 false
        "libraries that belong together are of two releases"
        "NVIDIA releases some libraries as a unit: cuBLAS and cuBLASLt, NVRTC and its builtins. They call internal functions of each other and are tested in one release only. A mixed pair comes from LD_LIBRARY_PATH, from two packages with the same files, or from a copy of one file. NVRTC searches its builtins by a name with its own release, in its own directory; without them it compiles nothing. This is a warning, because a program may never call the functions that fail. Functions that are known to be missing are reported by CG214.\nWhat to do: remove one of the releases, or copy both files from the same one.";
    232 CompilerAbsent Warning Informs 29 false
        "a library opens a run-time compiler of another CUDA major"
        "Some libraries compile or link code at run time. They open NVRTC or nvJitLink by its name with the CUDA major, and other majors do not fit. This is a warning, because only some functions need the compiler, and because the machine may have it.\nWhat to do: install all libraries for one CUDA major.";
    233 TwoCudarts Warning Informs 39 false
        "a program loads shared CUDA runtimes of two majors"
        "Each shared CUDA runtime has its own state: streams, errors and registered kernels. Objects of one runtime do not work in functions of a library that uses the other one. It works if the libraries exchange nothing but device pointers. Runtimes that are linked statically are not counted.\nWhat to do: find the libraries with `ldd`, and install them for the same CUDA major.";
    234 CudnnFamily Warning Informs 47 false
        "cuDNN comes with libraries of another CUDA major"
        "cuDNN opens cuBLAS and NVRTC of its own CUDA major. Libraries of another major do not fit, and the functions that need them return an error.\nWhat to do: install cuDNN and the toolkit's libraries for one CUDA major.";
    235 CompilerNewerThanDriver Warning Informs 37 false
        "the driver does not compile the PTX that NVRTC writes"
        "NVRTC writes the PTX version of its own release. An older driver rejects it with error 222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, even if the rest of the toolkit runs on it (minor version compatibility). If a program calls NVRTC with `--gpu-architecture=sm_NN`, NVRTC writes machine code, and the driver compiles nothing. The files do not show which architecture the program passes. Therefore this is a warning.\nWhat to do: update the driver, use an older NVRTC, or compile with `--gpu-architecture=sm_NN`. `cargo cudaguard probe` prints what the\ndriver supports.";
    236 CompilerUnknownGpu Warning Informs 38 false
        "a run-time compiler does not support the GPU"
        "NVRTC, nvJitLink and ptxas compile for the GPUs that their release knows. For a newer GPU, a program can compile PTX for an older one and let the driver compile it. Older GPUs that a release has dropped are lost. This is a warning, because the program may never call the compiler.\nWhat to do: take a release that supports the GPU; the message names the first and the last one, if they are known.";
    301 DriverTooOld Error Refuses 30 true
        "the driver is too old for what the program is linked to"
        "A CUDA runtime works with drivers of the same or a newer major. On an older driver every call returns 35, cudaErrorInsufficientDriver. A missing driver API function also ends the program.\nWhat to do: update the driver to the named release, or rebuild with an older toolkit. On data centre GPUs cuda-compat can help.";
    302 DriverTooOldForCode Error Refuses 32 true
        "the driver is too old for the code that this GPU needs"
        "The driver compiles PTX, and it reads only PTX that it knows. For newer PTX it returns 222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION. Machine code needs a newer driver if nvcc compressed it with Zstandard (--compress-mode=size or balance): 550.54.14 for CUDA 12, 580.65.06 for CUDA 13. An older driver returns 200, device kernel image is invalid. Minor version compatibility covers neither case.\nWhat to do: update the driver. Or, for PTX, build with machine code (sm_XY) for this GPU; for compressed code, build with nvcc --compress-mode=none.";
    303 NoCodeForGpu Error Refuses 31 true
        "no code for any GPU that the program can see"
        "Machine code runs on GPUs of the same major with an equal or higher minor, PTX on all newer GPUs. The GPU of a Jetson (Tegra: 5.3, 6.2, 7.2, 8.7, 10.1, 11.0) is an exception: it runs machine code for exactly itself, and PTX. sm_80 does not run on an Orin (8.7). The program has no code for these GPUs: every launch returns 209, no kernel image is available.\nWhat to do: rebuild with the architecture of the GPU, or with PTX of an older one. If the toolkit of the build does not support that architecture, the hint names one that does.";
    304 DriverMismatch Error Refuses 23 true
        "libcuda and the kernel module are from different releases"
        "cuInit returns 803: the user-mode library is of another release than the loaded kernel module, and forward compatibility does not allow this pair. Most often the driver was updated without a restart of the machine, or an image contains its own libcuda.\nWhat to do: after an update, reboot, or reload the nvidia module. In a container, remove the libcuda of the image. `cargo cudaguard doctor` shows which libcuda is picked, and by which search path.";
    305 ForwardCompatUnsupported Error Refuses 24 true
        "this GPU does not support forward compatibility"
        "cuInit returns 804: this libcuda comes from cuda-compat, which works on data centre GPUs and few others. One GPU that is not supported fails the whole process.\nWhat to do: remove the compat directory from LD_LIBRARY_PATH or /etc/ld.so.conf.d (`cargo cudaguard doctor` shows which). Update the driver only if its own libcuda is too old for the program. Or hide that GPU with CUDA_VISIBLE_DEVICES.";
    306 StubDriver Error Refuses 25 true
        "the libcuda found is the toolkit's stub"
        "The directory lib/stubs of the toolkit contains an empty libcuda for the linker. If the program loads it, every call returns 34, CUDA_ERROR_STUB_LIBRARY.\nWhat to do: remove the stubs directory from LD_LIBRARY_PATH, RPATH and RUNPATH.";
    307 DriverMissing Error Refuses 20 true
        "there is no driver, and the program requires a GPU"
        "The policy has [runtime] gpu = \"required\", and no directory that the dynamic linker searches contains libcuda.so.1.\nWhat to do: install the NVIDIA driver. Start a container with its GPUs (--gpus all).";
    308 JitDisabled Error Refuses 34 true
        "only PTX supports this GPU, and its compilation is disabled"
        "CUDA_DISABLE_PTX_JIT=1 stops the driver from compiling PTX, and the program has no machine code for the visible GPUs: 223, CUDA_ERROR_JIT_COMPILATION_DISABLED.\nWhat to do: unset CUDA_DISABLE_PTX_JIT, or rebuild with machine code for this GPU.";
    309 JitMissing Error Refuses 35 true
        "only PTX supports this GPU, and the driver's PTX compiler is missing"
        "The driver compiles PTX with the separate library libnvidia-ptxjitcompiler.so.1, which is missing here. Causes are a container with only a part of the driver, or a stripped image. The first kernel fails with 221, CUDA_ERROR_JIT_COMPILER_NOT_FOUND.\nWhat to do: install the complete driver (on Debian, libnvidia-ptxjitcompiler1), start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility, or rebuild with machine code for this GPU.";
    310 GpuMissing Error Refuses 21 true
        "there is no GPU, and the program requires one"
        "The policy has [runtime] gpu = \"required\", and the driver shows no GPU to this process: there is none, CUDA_VISIBLE_DEVICES hides it, or the container was started without GPUs.\nWhat to do: check nvidia-smi and CUDA_VISIBLE_DEVICES. Start a container with --gpus all.";
    311 PartialCode Error Refuses 36 true
        "only part of the program's code is for this GPU, and the policy refuses that"
        "Some containers of kernels have code for the GPU and some do not. Some programs select kernels at run time; this project requires complete coverage with [gpu] partial = \"refuse\".\nWhat to do: rebuild everything with that architecture, or remove the option.";
    312 NoGpuForAll Warning Informs 50 true
        "no GPU can run all components of the program"
        "Each of the two named components has code for some GPU of this machine, and no GPU can run both. Data that they share must move between GPUs, or one component fails.\nWhat to do: rebuild the named component with the architecture of the other GPU.";
    313 CudnnTooNewForGpu Error Refuses 46 true
        "the cuDNN found no longer works on this GPU"
        "cuDNN drops old GPUs in minor releases. 9.11 and later have no code for Maxwell, Pascal and Volta (below compute capability 7.5). 8.9 and all of 9 have none for Kepler (below 5.0). cudnnCreate fails there with an architecture mismatch.\nWhat to do: install an older cuDNN that the program accepts (up to 9.10, or 8.7 for Kepler), or run it on a newer GPU.";
    314 CudartOlder Warning Informs 51 true
        "the shared libcudart is older than the toolkit that the program was built with"
        "A program may be built with a newer minor release of cudart than it runs with, if it calls no new function. A missing function ends the program at the first call.\nWhat to do: put the libcudart of the toolkit first (LD_LIBRARY_PATH), update it, or link it statically.";
    315 JitForced Error Refuses 33 true
        "the program's machine code is disabled, and it has no PTX"
        "CUDA_FORCE_PTX_JIT=1 makes the driver ignore machine code and compile PTX, to test whether a program has PTX. This program has none for the visible GPUs, so the driver finds no kernel.\nWhat to do: unset CUDA_FORCE_PTX_JIT.";
    316 CudnnNeedsNewerDriver Error Refuses 26 true
        "the cuDNN found is built for a newer CUDA than the driver supports"
        "NVIDIA publishes each release of cuDNN once per CUDA major, with the same soname and a CUDA runtime of that major inside. On a driver of an older major, every call of that runtime returns \"CUDA driver version is insufficient for CUDA runtime version\", and cudnnCreate fails.\nWhat to do: install the cuDNN package for the driver's CUDA (nvidia-cudnn-cu12 for 12), put its directory first in LD_LIBRARY_PATH, or update the driver.";
    317 GpuNotForDriver Error Refuses 27 false
        "the driver does not support this GPU"
        "Driver branches drop old GPU generations: 470 was the last for Kepler, 580 for Maxwell, Pascal and Volta. A new generation needs a minimum branch: 570 was the first for Blackwell. A driver does not report GPUs that it does not support, so this finding applies only to machines that a file or options describe.\nWhat to do: describe the machine with a driver that supports the GPU, or with another GPU.";
    320 GpuUndriven Warning Informs 52 false
        "there is a GPU, but no driver for it"
        "An NVIDIA GPU is on the PCI bus, and its kernel module, libcuda, or both are missing. Every CUDA program finds no GPU. This is normal on a host that reserves its GPUs for virtual machines or containers.\nWhat to do: install the NVIDIA driver, or load its module (modprobe nvidia). Start a container with its GPUs (--gpus all).";
    321 DeviceDenied Warning Informs 53 false
        "the device of a GPU cannot be opened by this user"
        "The program must open /dev/nvidia0 and similar devices for reading and writing. If it cannot, the driver shows no GPU and reports no reason.\nWhat to do: check owner and mode with ls -l /dev/nvidia*. Add the user to that group (often video), or start the container with its GPUs.";
    322 CompatOutdated Warning Informs 54 false
        "cuda-compat is no newer than the driver"
        "This libcuda comes from cuda-compat, which brings a newer CUDA to an older driver. The driver was updated since and supports everything in the package. NVIDIA supports the package on older drivers only.\nWhat to do: remove the compat directory from LD_LIBRARY_PATH and from the configuration of the dynamic linker.";
    323 WslShadowed Warning Informs 55 false
        "a Linux driver hides the Windows driver in WSL"
        "In WSL2 the driver belongs to Windows, and its libcuda is in /usr/lib/wsl/lib. The dynamic linker finds another one first, most often from a Linux driver package inside WSL. That one finds no kernel module.\nWhat to do: remove the NVIDIA driver packages inside WSL. Install the toolkit without the driver: cuda-toolkit, not cuda.";
    324 DriverNotWorking Error Refuses 22 false
        "the driver does not work"
        "Every CUDA program calls cuInit first. It returned an error that no program causes, for example 802 (the fabric manager is not running) or 999 (a fault of the driver or of a GPU).\nWhat to do: check nvidia-smi and the kernel log (dmesg | grep -i nvrm). Reboot if a GPU has fallen off the bus.";
    325 GpusHidden Info Informs 56 false
        "CUDA_VISIBLE_DEVICES hides every GPU"
        "The variable lists the GPUs that a program may see, and none of them exists: it is empty, or its first entry is neither a number nor a UUID of a GPU here. The driver ignores all entries after an invalid one.\nWhat to do: unset it, or name GPUs by number or as nvidia-smi -L prints them.";
    501 CudnnCannotTell Info Open 63 true
        "the version of cuDNN is unknown"
        "A libcudnn was found, but neither its file nor a query in a child process gave a version. The program continues, because an unknown version never causes a refusal.\nWhat to do: nothing, or put the other libraries of cuDNN next to it.";
    502 NoteNewer Info Open 61 true
        "a manifest is newer than this cudaguard"
        "A newer cudaguard guarded the file. This reader checked the parts that it knows and ignored the rest.\nWhat to do: update cargo-cudaguard.";
    503 NoteDamaged Info Open 62 true
        "a manifest is damaged"
        "The file contains a manifest with inconsistent bytes: an offset is out of range, or the magic number is missing. It was ignored, and does not cause a refusal. A guarded program with a damaged or missing manifest warns at start-up.\nWhat to do: rebuild the file; something wrote into it after it was linked.";
    504 NothingToSee Info Open 65 true
        "no GPU is visible: nothing to check"
        "There is no driver, or no GPU that this process may use. A program may work without one, so it starts, unless the policy has [runtime] gpu = \"required\".\nWhat to do: nothing.";
    505 DriverCannotTell Info Open 64 true
        "it is unknown whether driver and GPU fit"
        "A fact about the driver or the GPUs is unknown: the driver could not be queried, it did not respond, or it returned an unrelated error. An unknown fact never causes a refusal.\nWhat to do: run `cargo cudaguard doctor` to list the missing facts. The program starts anyway.";
    506 KernelModuleUnknown Info Informs 66 false
        "the release of the kernel module is unknown"
        "cudaguard checked the driver by libcuda alone. If the kernel module is of another release that libcuda does not support, cuInit returns 803.\nWhat to do: for a complete answer, pass the release of the kernel module (/proc/driver/nvidia/version) with --kernel.";
    507 CudartUnknown Info Informs 67 true
        "it is unknown whether the shared libcudart is as new as the toolkit of the build"
        "NVIDIA's installers and distributions put the whole version into the file name (libcudart.so.12.4.127). The packages of pip have only the major in it, and the file contains no other version. An older release of the same major is a warning (CG314), never a refusal, so the verdict does not change.\nWhat to do: to be sure, put the libcudart of the build's toolkit first, or link it statically.";
    508 NotAllKept Info Open 60 true
        "more findings or manifests than the guard can store"
        "The guard in a program allocates no memory, so it has space for a fixed number of manifests and findings. Errors are kept first. A dropped entry could be another error, so the verdict is at best \"unknown\".\nWhat to do: run `cargo cudaguard verify` on the program, which has no such limit.";
    513 NoManifest Info Informs 68 false
        "the file has no manifest"
        "The file was built without cudaguard. The verdict rests on its GPU code, the CUDA libraries that it needs and the functions that it binds. No record of the build's releases exists: a library may lack more than its functions show. Each unknown fact has a finding.\nWhat to do: build it with `cargo cudaguard build`, or add `cudaguard::embed!()` to its build.rs.";
    514 KernelsCannotTell Info Open 69 false
        "the requirements of the file's kernels are unknown"
        "The file is an object or an archive, which contains only a part of a program, or its GPU code cannot be read. cudaguard checked everything else.\nWhat to do: verify the linked program or library instead.";
    515 MachineUnreadable Info Open 70 false
        "part of the machine could not be examined"
        "The real libcuda crashed, hung or could not be loaded in a child process, or a kernel file has unexpected contents. This does not cause a refusal; unknown facts stay unknown.\nWhat to do: check nvidia-smi and the kernel log (dmesg). Describe a machine with --host or --driver.";
    516 CudartInsideUnknown Info Open 71 false
        "the release of the cudart inside a file is unknown"
        "Each CUDA runtime needs a driver of the same major: 525.60.13 for CUDA 12, 580 for CUDA 13. The name of a shared cudart contains its major. The release of a static one follows from the toolkit of the build, which is unknown here.\nWhat to do: build with `cargo cudaguard build` on a machine with the toolkit, or link the shared libcudart.";
    517 CudnnBeforeThisGpu Info Open 72 true
        "the cuDNN found is older than the GPU"
        "cuDNN 9 for CUDA 12 and later supports GPUs that are newer than itself. Older builds have code up to one generation, and no document describes them on later GPUs. This is no reason to refuse.\nWhat to do: put a newer cuDNN that the program accepts first in LD_LIBRARY_PATH. A program that was built with cuDNN 8 accepts no other major and must be rebuilt.";
    518 PackageUnfit Warning Informs 250 false
        "the contents or the metadata of the package are wrong"
        "A wheel that contains a part of the driver, two cuDNNs, or an RPATH of the build machine works on the build machine and fails on other machines. The same holds for one that requires an older cuDNN than its files need, or has another CUDA in its version than in its code. Two packages may install different files under one name, or a package may require another release than the installed one. `depends` and `run_exports` of a conda package declare such requirements, and so do NVIDIA_REQUIRE_CUDA, CUDA_VERSION and NV_CUDNN_VERSION of an image.\nWhat to do: change how the named files are packaged, or correct the requirements.";
    601 ReleaseArchMissing Error Refuses 90 false
        "a file of the release lacks a required architecture"
        "--archs, or archs in [release], lists the code that each file with kernels must contain. sm_90 is machine code for compute capability 9.0, and code of the same number counts if it runs on the same GPUs (sm_90a). compute_90 is PTX of exactly this number. For a library of NVIDIA, which the project does not compile, code that runs on the GPU is enough.\nWhat to do: correct the list of architectures in the build of that file, or exclude the file.";
    602 ReleaseArchPartial Error Refuses 91 false
        "some kernels of a file lack a required architecture"
        "A container is the GPU code of one source file. The file contains the required architecture, but other containers in it have nothing for that GPU. Kernels of those containers fail there. This is an error with --strict, and otherwise a warning.\nWhat to do: compile all sources for the same architectures, or exclude the file.";
    603 ReleaseDriverFloor Error Refuses 92 false
        "a file of the release needs a newer driver than the release allows"
        "--driver-floor, or driver-floor in [release], is the oldest driver that must be sufficient. The file itself causes a newer requirement: through its CUDA runtime, PTX that the driver must compile, the compression of its code, or a function of the driver that it binds. The oldest driver of the GPU itself does not count: sm_100 code does not raise the floor.\nWhat to do: read the reason in the message. PTX of a new toolkit is the most common one; machine code for the GPU avoids it.";
    604 ReleaseCudnnFloor Error Refuses 93 false
        "a file of the release needs a newer cuDNN than the release allows"
        "--cudnn-floor, or cudnn-floor in [release], is the oldest cuDNN that must be sufficient. The file binds a function of a newer release, is guarded and was built with a newer minor version, or its package requires a newer one. A cuDNN that the package contains does not count.\nWhat to do: build with the oldest cuDNN that you support.";
    605 ReleaseUnguarded Error Refuses 94 false
        "a file of the release is not guarded"
        "--guarded, or guarded in [release], requires that each program and library that uses CUDA contains the guard. A plain `cargo build` or an IDE may have replaced a guarded file. Libraries of NVIDIA need no guard.\nWhat to do: build the file again with the guard, and package it without a further build.";
    606 ReleaseCannotTell Info Open 95 false
        "it is unknown whether a file meets the requirements of the release"
        "Part of the GPU code cannot be read, or no document says whether a driver accepts it. The gate does not report success then: the status is 2, and 1 with --strict.\nWhat to do: read the reason in the message.";
    607 ReleaseStaleException Warning Informs 96 false
        "an exception of the release matches no file"
        "--except, or except in [release], excludes files from the required architectures and from the guard. This glob matches none of the examined files. It may be misspelt, or hide a later file by accident.\nWhat to do: correct the glob, or remove the exception.";
}

words! {
    ToolkitMissing ToolkitMissing "toolkit"
        "the policy requires a CUDA toolkit, but none was found.\nrequired:\t{require} ([toolkit] require[ in {policy}])\n{dangling}\nnot in use:\t{others}"
        "install a toolkit, or set CUDA_HOME to its root; remove [toolkit] require if none is needed";
    ToolkitMissingUnused ToolkitMissing "toolkit"
        "the policy requires a CUDA toolkit, but none was found.\nrequired:\t{require} ([toolkit] require[ in {policy}])\n{dangling}\nnot in use:\t{others}"
        "set CUDA_HOME={root}, or install the toolkit";
    ToolkitMissingCMake ToolkitMissing "toolkit"
        "the policy requires a CUDA toolkit, but none was found.\nrequired:\t{require} ([toolkit] require[ in {policy}])\n{dangling}\nnot in use:\t{others}"
        "enable the language CUDA, or call find_package(CUDAToolkit) before cudaguard_embed; remove [toolkit] require if none is needed";
    ToolkitMissingOptions ToolkitMissing "toolkit"
        "the policy requires a CUDA toolkit, but none was found.\nrequired:\t{require} ([toolkit] require[ in {policy}])\n{dangling}\nnot in use:\t{others}"
        "name the toolkit with --nvcc or --toolkit; remove [toolkit] require if none is needed";
    ToolkitMixed ToolkitMixed "toolkit"
        "nvcc is from CUDA {nvcc_cuda}, but {variable} names CUDA {headers_cuda}.\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "for {headers_cuda}, put {bin} first in PATH; for the other, set {variable}={root}";
    ToolkitMixedByVariable ToolkitMixed "toolkit"
        "nvcc is from CUDA {nvcc_cuda}, but {variable} names CUDA {headers_cuda}.\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "set {variable}={root}, or unset it";
    ToolkitMixedOneRoot ToolkitMixed "toolkit"
        "nvcc is from CUDA {nvcc_cuda}, the headers are from CUDA {headers_cuda}.\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "reinstall the toolkit: this root contains parts of two releases";
    ToolkitMixedCMake ToolkitMixed "toolkit"
        "nvcc is from CUDA {nvcc_cuda}, the headers are from CUDA {headers_cuda}.\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "take compiler and headers from one toolkit: configure an empty build directory with -DCUDAToolkit_ROOT={root}, or with the other's -DCMAKE_CUDA_COMPILER";
    ToolkitMixedOptions ToolkitMixed "toolkit"
        "nvcc is from CUDA {nvcc_cuda}, the headers are from CUDA {headers_cuda}.\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "pass the same toolkit to --nvcc, --toolkit and --include as to the compilers";
    ToolkitMixedAlsoNamed ToolkitMixed "{variable}"
        "{variable} names CUDA {found_cuda}, but the headers in use are from CUDA {headers_cuda}.\n{variable}:\t{found_cuda} in {path}\nin use:\t{headers}"
        "not all build scripts read the same variable: unset {variable}, or set both to one root";
    CudartMixed CudartMixed "libcudart"
        "the linker would use libcudart {found}, but nvcc is from CUDA {nvcc_cuda}.\ncudart:\t{path} ({source})\ntoolkit:\t{toolkit}"
        "remove that directory from {source}, or put the library directory of the toolkit before it";
    CudartMixedOneRoot CudartMixed "libcudart"
        "the linker would use libcudart {found}, but nvcc is from CUDA {nvcc_cuda}.\ncudart:\t{path} ({source})\ntoolkit:\t{toolkit}"
        "reinstall the toolkit: this root contains parts of two releases";
    CudartMixedOfSystem CudartMixed "libcudart"
        "the linker would use libcudart {found}, but nvcc is from CUDA {nvcc_cuda}.\ncudart:\t{path} ({source})\ntoolkit:\t{toolkit}"
        "the toolkit in use has no libcudart: install its cudart package";
    ToolkitNotAllowed ToolkitNotAllowed "toolkit"
        "the policy requires CUDA {require}, but {found} is in use.\nrequired:\t{require} ([toolkit] require[ in {policy}])\nin use:\t{found} ({source})\ninstalled:\t{others}"
        "put the bin directory of an allowed toolkit first in PATH and set CUDA_HOME to its root, or change [toolkit] require";
    ToolkitNotAllowedCMake ToolkitNotAllowed "toolkit"
        "the policy requires CUDA {require}, but {found} is in use.\nrequired:\t{require} ([toolkit] require[ in {policy}])\nin use:\t{found} ({source})\ninstalled:\t{others}"
        "configure an empty build directory with an allowed toolkit: -DCMAKE_CUDA_COMPILER=ROOT/bin/nvcc and -DCUDAToolkit_ROOT=ROOT; or change [toolkit] require";
    ToolkitNotAllowedOptions ToolkitNotAllowed "toolkit"
        "the policy requires CUDA {require}, but {found} is in use.\nrequired:\t{require} ([toolkit] require[ in {policy}])\nin use:\t{found} ({source})\ninstalled:\t{others}"
        "build with an allowed toolkit, and name it with --nvcc or --toolkit; or change [toolkit] require";
    ToolkitNotAllowedLinked ToolkitNotAllowed "{file}"
        "the policy requires CUDA {require}, but {file} contains code from CUDA {found}.\nrequired:\t{require} ([toolkit] require[ in {policy}])\nkernels:\t{kernels}\ncudart:\t{code}"
        "make the build script use the nvcc and the cudart of an allowed toolkit; or change [toolkit] require";
    ToolkitUnreadable ToolkitUnreadable "{path}"
        "the release of nvcc is unknown.\n{path} {why}"
        "run `nvcc --version`; reinstall the toolkit if that fails";
    ToolkitUnreadableHeaders ToolkitUnreadable "cuda.h"
        "the release of cuda.h is unknown.\nfile:\t{path}"
        "reinstall the headers of the toolkit: cuda.h should contain a line `#define CUDA_VERSION 13000`";
    ToolkitUnreadableNotThere ToolkitUnreadable "{variable}"
        "{variable} names a compiler that cannot be found.\n{dangling}"
        "correct {variable}, or unset it to use the nvcc in PATH";
    HostCompilerRejected HostCompilerRejected "{compiler}"
        "nvcc from CUDA {nvcc_cuda} does not accept {maker} {major}: the newest that it accepts is {newest}.\ncompiler:\t{refused}\naccepted:\t{accepted}\nnvcc:\t{nvcc}\nlimit:\t{limit}"
        "install {cxx}-{newest} and set CXX={cxx}-{newest} if the cc crate calls nvcc, otherwise NVCC_CCBIN={cxx}-{newest}; or build with a newer toolkit";
    HostCompilerRejectedCMake HostCompilerRejected "{compiler}"
        "nvcc from CUDA {nvcc_cuda} does not accept {maker} {major}: the newest that it accepts is {newest}.\ncompiler:\t{refused}\naccepted:\t{accepted}\nnvcc:\t{nvcc}\nlimit:\t{limit}"
        "install {cxx}-{newest} and configure with -DCMAKE_CUDA_HOST_COMPILER={cxx}-{newest}, or build with a newer toolkit";
    HostCompilerRejectedOptions HostCompilerRejected "{compiler}"
        "nvcc from CUDA {nvcc_cuda} does not accept {maker} {major}: the newest that it accepts is {newest}.\ncompiler:\t{refused}\naccepted:\t{accepted}\nnvcc:\t{nvcc}\nlimit:\t{limit}"
        "install {cxx}-{newest} and pass -ccbin {cxx}-{newest} to nvcc and in --nvcc-flags; or build with a newer toolkit";
    StubInRuntimePath StubInRuntimePath "{variable}"
        "{variable} makes programs load the toolkit's empty stub libraries.\ndirectory:\t{folder}"
        "remove the stubs directory from {variable}; only the linker needs it, in -L or LIBRARY_PATH";
    StubInRuntimePathInFile StubInRuntimePath "{file}"
        "the {variable} of {file} makes it load the toolkit's empty stub libraries.\ndirectory:\t{folder}"
        "remove the stubs directory from -rpath; only the linker needs it, in -L";
    LockDrift LockDrift "{what}"
        "{what} differs from the lock: {was} → {now}.\nlocked:\t{was} ({lock}, {target})\nin use:\t{now}[ ({source})]"
        "restore the locked version, or accept the new one: run `cargo cudaguard lock[ --target {lock_target}]` and commit cudaguard.lock";
    LockDriftCMake LockDrift "{what}"
        "{what} differs from the lock: {was} → {now}.\nlocked:\t{was} ({lock}, {target})\nin use:\t{now}[ ({source})]"
        "restore the locked version, or accept the new one: run `cmake --build BUILD --target cudaguard-lock` and commit cudaguard.lock";
    LockDriftOptions LockDrift "{what}"
        "{what} differs from the lock: {was} → {now}.\nlocked:\t{was} ({lock}, {target})\nin use:\t{now}[ ({source})]"
        "restore the locked version, or write the new one into cudaguard.lock and commit the file";
    LockLacksTarget LockLacksTarget "cudaguard.lock"
        "cudaguard.lock has no entry for {target}.\nlock:\t{lock}"
        "run `cargo cudaguard lock --target {target}` and commit the file";
    LockLacksTargetCMake LockLacksTarget "cudaguard.lock"
        "cudaguard.lock has no entry for {target}.\nlock:\t{lock}"
        "run `cmake --build BUILD --target cudaguard-lock` and commit the file";
    LockLacksTargetOptions LockLacksTarget "cudaguard.lock"
        "cudaguard.lock has no entry for {target}.\nlock:\t{lock}"
        "add a table for {target} to cudaguard.lock and commit the file";
    StaleAllow StaleAllow "{finding}"
        "{finding} is allowed, but this build has no such finding.\nallow:\t{why}[ ({policy})]"
        "remove {finding} from [allow], unless a build on another machine or for another target needs it";
    CudnnMixed CudnnMixed "cuDNN"
        "cuDNN's headers are {built}, its library is {found}.\nheaders:\t{headers}\nlibrary:\t{found} in {path} ({source})\nevidence:\t{told_by}"
        "use headers and library of one package: set CUDNN_PATH to its root and unset the other CUDNN_ variables";
    CudnnMixedCMake CudnnMixed "cuDNN"
        "cuDNN's headers are {built}, its library is {found}.\nheaders:\t{headers}\nlibrary:\t{found} in {path} ({source})\nevidence:\t{told_by}"
        "use headers and library of one package: the include directories of the target and its linked library are from two";
    CudnnMixedOptions CudnnMixed "cuDNN"
        "cuDNN's headers are {built}, its library is {found}.\nheaders:\t{headers}\nlibrary:\t{found} in {path} ({source})\nevidence:\t{told_by}"
        "use headers and library of one package: --include and the linked library name two";
    CudnnMixedAlsoNamed CudnnMixed "{variable}"
        "{variable} names cuDNN {found}, but the headers in use are {built}.\n{variable}:\t{found} in {path}\nin use:\t{headers}"
        "not all build scripts read the same variable: unset {variable}, or set all to one root";
    CudnnForOtherCuda CudnnForOtherCuda "cuDNN"
        "cuDNN {found} is built for CUDA {cuda_major}, the toolkit is CUDA {toolkit_cuda}.\ncuDNN:\t{path}\nevidence:\t{told_by}\ntoolkit:\t{toolkit}"
        "install the cuDNN package for CUDA {toolkit_major}: for example cudnn{built_major}-cuda-{toolkit_major}, or the wheel nvidia-cudnn-cu{toolkit_major}";
    CudnnForOtherCudaNever CudnnForOtherCuda "cuDNN"
        "no build of cuDNN {found} for CUDA {toolkit_major} exists.\ncuDNN:\t{path}\nevidence:\t{told_by}\ntoolkit:\t{toolkit}"
        "install the cuDNN package for CUDA {toolkit_major}: for example cudnn{built_major}-cuda-{toolkit_major}, or the wheel nvidia-cudnn-cu{toolkit_major}";
    CudnnIncomplete CudnnIncomplete "cuDNN"
        "cuDNN {found} is incomplete: it lacks {missing}.\nlibrary:\t{path}\ndirectory:\t{folder}"
        "reinstall cuDNN completely: a call that needs the missing part aborts the program";
    CudnnIncompleteMixed CudnnIncomplete "cuDNN"
        "cuDNN's libraries are from different releases: {part} among those of {found}.\ndirectory:\t{folder}\nother:\t{parts}\nevidence:\t{told_by}"
        "remove the files of the older cuDNN from that directory, and reinstall cuDNN completely";
    CudnnNotAllowed CudnnNotAllowed "cuDNN"
        "the policy requires cuDNN {require}, but {found} is in use.\nrequired:\t{require} ([cudnn] require[ in {policy}])\nin use:\t{path} ({source})\nnot in use:\t{others}"
        "set CUDNN_PATH to the root of an allowed cuDNN, or change [cudnn] require";
    CudnnNotAllowedCMake CudnnNotAllowed "cuDNN"
        "the policy requires cuDNN {require}, but {found} is in use.\nrequired:\t{require} ([cudnn] require[ in {policy}])\nin use:\t{path} ({source})\nnot in use:\t{others}"
        "set the target's include directories, or CUDNN_INCLUDE_DIR of cudaguard_embed, to an allowed cuDNN, or change [cudnn] require";
    CudnnNotAllowedOptions CudnnNotAllowed "cuDNN"
        "the policy requires cuDNN {require}, but {found} is in use.\nrequired:\t{require} ([cudnn] require[ in {policy}])\nin use:\t{path} ({source})\nnot in use:\t{others}"
        "set --include to the headers of an allowed cuDNN, or change [cudnn] require";
    CudnnNotAllowedAbsent CudnnNotAllowed "cuDNN"
        "the policy requires cuDNN, but none was found.\nrequired:\t{require} ([cudnn] require[ in {policy}])\nin use:\t{path} ({source})\nnot in use:\t{others}"
        "set CUDNN_PATH to the root of an allowed cuDNN, or change [cudnn] require";
    CudnnNotAllowedAbsentCMake CudnnNotAllowed "cuDNN"
        "the policy requires cuDNN, but none was found.\nrequired:\t{require} ([cudnn] require[ in {policy}])\nin use:\t{path} ({source})\nnot in use:\t{others}"
        "set the target's include directories, or CUDNN_INCLUDE_DIR of cudaguard_embed, to an allowed cuDNN, or change [cudnn] require";
    CudnnNotAllowedAbsentOptions CudnnNotAllowed "cuDNN"
        "the policy requires cuDNN, but none was found.\nrequired:\t{require} ([cudnn] require[ in {policy}])\nin use:\t{path} ({source})\nnot in use:\t{others}"
        "set --include to the headers of an allowed cuDNN, or change [cudnn] require";
    CudnnUnreadable CudnnUnreadable "cuDNN"
        "the version of cuDNN's headers is unknown.\nfile:\t{path}"
        "reinstall cuDNN's headers: cudnn_version.h should define CUDNN_MAJOR, CUDNN_MINOR and CUDNN_PATCHLEVEL";
    MathHeadersConflict MathHeadersConflict "glibc {found}"
        "CUDA {nvcc_cuda} cannot compile with glibc {found}: its headers declare {symbols} differently.\nheader:\t{path}\ncompiler:\t{compiler}"
        "build with CUDA {first} or newer, or with a host compiler whose headers are of glibc {newest} or older (a container of an older distribution, or conda's gxx_linux-64)";
    ArchTooNew ArchTooNew "{targets}"
        "CUDA {toolkit_cuda} cannot compile for {targets}: the first release that can is {first}.\ndeclared:\t{declared}\nnvcc:\t{nvcc}"
        "build with CUDA {first} or newer[, such as the installed {others}][, or declare compute_{ptx}: newer GPUs run its PTX, which the driver compiles at start-up]";
    ArchTooNewCMake ArchTooNew "{targets}"
        "CUDA {toolkit_cuda} cannot compile for {targets}: the first release that can is {first}.\ndeclared:\t{declared}\nnvcc:\t{nvcc}"
        "configure a new build directory with CUDA {first} or newer (CMAKE_CUDA_COMPILER)[, such as the installed {others}][, or replace {targets} in {variable} by {ptx}-virtual: newer GPUs run its PTX, which the driver compiles at start-up]";
    ArchTooNewUnknown ArchTooNew "{targets}"
        "CUDA {toolkit_cuda} cannot compile for {targets}: no known release can.\ndeclared:\t{declared}\nnvcc:\t{nvcc}"
        "correct the arch, or build with a toolkit that supports it[, or declare compute_{ptx}: newer GPUs run its PTX, which the driver compiles at start-up]";
    ArchDropped ArchDropped "{targets}"
        "CUDA {toolkit_cuda} cannot compile for {targets} any more[: the last release that could is {last}].\ndeclared:\t{declared}\nnvcc:\t{nvcc}"
        "remove it, if no GPU needs it, or build with [CUDA {last} or ]an older toolkit";
    ArchDroppedCMake ArchDropped "{targets}"
        "CUDA {toolkit_cuda} cannot compile for {targets} any more[: the last release that could is {last}].\ndeclared:\t{declared}\nnvcc:\t{nvcc}"
        "remove it from {variable}, if no GPU needs it, or configure a new build directory with [CUDA {last} or ]an older toolkit (CMAKE_CUDA_COMPILER)";
    NoPtx NoPtx "{file}"
        "{file} has no PTX for GPUs newer than those it is built for.\nbuilt for:\t{built_for}\ndeclared:\t{declared}"
        "add compute_{ptx} to the archs, or allow the finding with a reason";
    NoPtxDeclared NoPtx "{file}"
        "{file} has no PTX for GPUs newer than those it is built for, although {targets} is declared.\nbuilt for:\t{built_for}\ndeclared:\t{declared}"
        "make the build script pass the declared archs to nvcc, or correct the declaration";
    ArchsContradict ArchsContradict "archs"
        "{variable} and {others} name different architectures.\n{sources}"
        "keep one of them, preferably [gpu] archs in cudaguard.toml, and unset the others";
    ArchsContradictCMake ArchsContradict "archs"
        "{variable} and {others} name different architectures.\n{sources}"
        "set [gpu] archs in cudaguard.toml and the target's CUDA_ARCHITECTURES to the same list";
    ArchsContradictOptions ArchsContradict "archs"
        "{variable} and {others} name different architectures.\n{sources}"
        "make [gpu] archs in cudaguard.toml and nvcc's flags agree";
    NativeUnknown NativeUnknown "native"
        "`native` was requested, and this machine has no usable GPU.\n{variable}:\t{value}\ndriver:\t{why}"
        "name the archs, for example CUDAARCHS=\"80;90\"";
    NativeUnknownCMake NativeUnknown "native"
        "`native` was requested, and this machine has no usable GPU.\n{variable}:\t{value}\ndriver:\t{why}"
        "name the archs, for example CMAKE_CUDA_ARCHITECTURES=\"80;90\"";
    NativeUnknownOptions NativeUnknown "native"
        "`native` was requested, and this machine has no usable GPU.\n{variable}:\t{value}\ndriver:\t{why}"
        "name the archs to nvcc, for example with -arch=sm_80";
    NativeOutsideFleet NativeOutsideFleet "native"
        "`native` builds for this machine's GPU ({here}), and that code does not run on the fleet's {gpus}.\n{variable}:\t{value}\nthis machine:\t{here} ({source})\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "name the archs of the fleet instead of `native`";
    NativeOutsideFleetCMake NativeOutsideFleet "native"
        "`native` builds for this machine's GPU ({here}), and that code does not run on the fleet's {gpus}.\n{variable}:\t{value}\nthis machine:\t{here} ({source})\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "replace `native` in {variable} by the architectures of the fleet: {archs}";
    ArchUnreadable ArchUnreadable "{variable}"
        "{variable} names an architecture that cannot be read: {why}.\n{variable}:\t{value}"
        "correct {variable}, for example to `80;90`";
    ArchOnlyByPtx ArchOnlyByPtx "{gpu}"
        "CUDA {toolkit_cuda} cannot compile machine code for {gpus}, only PTX.\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])\nnvcc:\t{nvcc}\ndeclared:\t{declared}"
        "build with a newer toolkit, or declare compute_{ptx} as well";
    ArchOnlyByPtxDeclared ArchOnlyByPtx "{gpu}"
        "CUDA {toolkit_cuda} cannot compile machine code for {gpus}, only PTX.\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])\nnvcc:\t{nvcc}\ndeclared:\t{declared}"
        "to avoid the compilation at the first start, build with a newer toolkit";
    ArchOnlyByPtxCMake ArchOnlyByPtx "{gpu}"
        "CUDA {toolkit_cuda} cannot compile machine code for {gpus}, only PTX.\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])\nnvcc:\t{nvcc}\ndeclared:\t{declared}"
        "configure a new build directory with a newer toolkit (CMAKE_CUDA_COMPILER), or add {ptx}-virtual to {variable}";
    ArchMissing ArchMissing "{file}"
        "kernels of this package in {file} are not built for {targets}, which the policy requires.\nkernels:\t{kernels}\nfound:\t{built_for}\ndeclared:\t{declared} ([gpu] archs[ in {policy}])"
        "compile them for every arch in [gpu] archs and delete objects of earlier builds; if fewer are intended, allow it with a reason";
    ArchMissingDeclared ArchMissing "{file}"
        "kernels of this package in {file} are not built for {targets}, which {source} names.\nkernels:\t{kernels}\nfound:\t{built_for}\ndeclared:\t{declared}"
        "make the build script pass the archs in {source} to nvcc, or remove them there";
    ArchMissingDeclaredCMake ArchMissing "{file}"
        "kernels of this target in {file} are not built for {targets}, which {source} names.\nkernels:\t{kernels}\nfound:\t{built_for}\ndeclared:\t{declared}"
        "check which flags remove it: CMAKE_CUDA_FLAGS or target_compile_options";
    ArchMissingDeclaredOptions ArchMissing "{file}"
        "kernels of this program in {file} are not built for {targets}, which {source} names.\nkernels:\t{kernels}\nfound:\t{built_for}\ndeclared:\t{declared}"
        "pass the same archs to nvcc and in {source}";
    ArchSurplus ArchSurplus "{file}"
        "kernels of this package in {file} are built for {targets}, which the policy does not list.\nkernels:\t{kernels}\nfound:\t{built_for}\ndeclared:\t{declared} ([gpu] archs[ in {policy}])"
        "find the source of the arch (nvcc's flags in the build script, NVCC_APPEND_FLAGS, NVCC_PREPEND_FLAGS, or an object of an earlier build) and remove it there; or add it to [gpu] archs";
    FleetUnserved FleetUnserved "{file}"
        "{file} has no code for {gpus}, which the fleet contains.\nbuilt for:\t{built_for}\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "{cure}, or remove {gpus} from [gpu] fleet";
    FleetPartial FleetPartial "{file}"
        "{file} runs on {gpus} only in part: {left_out} of its fatbins have no code for it.\nwithout:\t{without}\nbuilt for:\t{built_for}\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "compile them for {archs} as well; if the program selects kernels at run time, allow it with a reason";
    FleetPartialOne FleetPartial "{file}"
        "{file} runs on {gpus} only in part: 1 of its containers has no code for it.\nwithout:\t{without}\nbuilt for:\t{built_for}\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "compile them for {archs} as well; if the program selects kernels at run time, allow it with a reason";
    FleetPartialNoFleet FleetPartial "{file}"
        "{file} runs only in part on GPUs of {gpus}.\nwithout:\t{without} (for {gpu})\nbuilt for:\t{built_for}"
        "run `cargo cudaguard inspect` to see all containers; list the GPUs that it must run on in [gpu] fleet to have them checked";
    FleetUndeclared FleetUndeclared "fleet"
        "this build will not run on {gpus}: no declared architecture supports it.\ndeclared:\t{declared} ({source})\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "{cure}, or remove {gpus} from [gpu] fleet";
    DriverFleetOlder DriverFleetOlder "{file}"
        "{file} will not run on driver {driver_fleet}, the oldest of the fleet: CUDA {cuda_major} needs a newer one.\ncudart:\tCUDA {found_cuda}, linked\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])"
        "[build with CUDA {instead}, or ]raise [driver] fleet[ to \"{branch}\"] after those machines are updated; if the program does not use cudart, or those machines have cuda-compat, allow it with a reason. On older drivers every call returns 35, cudaErrorInsufficientDriver";
    DriverFleetOlderInside DriverFleetOlder "{file}"
        "{file} will not run on driver {driver_fleet}, the oldest of the fleet: CUDA {cuda_major} needs a newer one.\ncudart:\tCUDA {found_cuda}, inside\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])"
        "[build with CUDA {instead}, or ]raise [driver] fleet[ to \"{branch}\"] after those machines are updated; if the program does not use cudart, or those machines have cuda-compat, allow it with a reason. On older drivers every call returns 35, cudaErrorInsufficientDriver";
    DriverFleetOlderCudnn DriverFleetOlder "{file}"
        "{file} will not run on driver {driver_fleet}, the oldest of the fleet: its cuDNN is built for CUDA {cuda_major}, which needs a newer one.\ncuDNN:\t{found} in {path}\nevidence:\t{told_by}\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])"
        "[link a cuDNN for CUDA {instead}, or ]raise [driver] fleet[ to \"{branch}\"] after those machines are updated; if they have a cuDNN for an older CUDA, or cuda-compat, allow it with a reason";
    DriverFleetOlderDeclared DriverFleetOlder "this build"
        "if this build contains cudart, it will not run on driver {driver_fleet}, the oldest of the fleet: CUDA {cuda_major} needs a newer one.\ntoolkit:\t{toolkit}\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])"
        "[build with CUDA {instead}, or ]raise [driver] fleet[ to \"{branch}\"] after those machines are updated; if the program does not use cudart, or those machines have cuda-compat, allow it with a reason. On older drivers every call returns 35, cudaErrorInsufficientDriver";
    BuildMachinePath BuildMachinePath "{file}"
        "the {variable} of {file} contains a directory in {what}.\ndirectory:\t{folder}"
        "remove that -rpath from the build script or RUSTFLAGS, or name the directory relative to the program with $ORIGIN";
    DriverFleetCode DriverFleetCode "{file}"
        "driver {driver_fleet}, the oldest of the fleet, cannot compile the PTX that {file} has for {gpus}.\ncode:\t{code}, PTX {isa}\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])\nGPUs:\t{fleet} ([gpu] fleet[ in {policy}])"
        "{cure}, or raise [driver] fleet[ to \"{branch}\"] after those machines are updated";
    DriverFleetCodePacked DriverFleetCode "{file}"
        "driver {driver_fleet}, the oldest of the fleet, cannot decompress the code that {file} has for {gpus}.\ncode:\t{code}, compressed with Zstandard\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])\nGPUs:\t{fleet} ([gpu] fleet[ in {policy}])"
        "disable the compression (nvcc -compress-mode=none), or raise [driver] fleet[ to \"{branch}\"] after those machines are updated";
    DriverFleetCodeDeclared DriverFleetCode "this build"
        "driver {driver_fleet}, the oldest of the fleet, cannot compile the PTX of CUDA {toolkit_cuda} that this build has for {gpus}.\ntoolkit:\t{toolkit}\nneeds:\ta driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])\nGPUs:\t{fleet} ([gpu] fleet[ in {policy}])"
        "{cure}, or raise [driver] fleet[ to \"{branch}\"] after those machines are updated";
    CudnnFleetOlder CudnnFleetOlder "cuDNN"
        "this build will not start with cuDNN {library_fleet}, the oldest of the fleet.\ncuDNN:\t{found} in {path}\nfleet:\t{library_fleet} ([cudnn] fleet[ in {policy}])"
        "build with cuDNN {instead} or older: set CUDNN_PATH to its root; or raise [cudnn] fleet to \"{min}\" after those machines are updated";
    CudnnFleetOlderCMake CudnnFleetOlder "cuDNN"
        "this build will not start with cuDNN {library_fleet}, the oldest of the fleet.\ncuDNN:\t{found} in {path}\nfleet:\t{library_fleet} ([cudnn] fleet[ in {policy}])"
        "build with cuDNN {instead} or older: set the target's include directories and its library to it; or raise [cudnn] fleet to \"{min}\" after those machines are updated";
    CudnnFleetOlderOptions CudnnFleetOlder "cuDNN"
        "this build will not start with cuDNN {library_fleet}, the oldest of the fleet.\ncuDNN:\t{found} in {path}\nfleet:\t{library_fleet} ([cudnn] fleet[ in {policy}])"
        "build with cuDNN {instead} or older: name its headers with --include; or raise [cudnn] fleet to \"{min}\" after those machines are updated";
    CudnnLeftGpu CudnnLeftGpu "cuDNN"
        "cuDNN {found} no longer supports {gpus}.\ncuDNN:\t{found} in {path}\nsupports:\tcompute capability {oldest} and newer, in its build for CUDA {cuda_major}\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "build with cuDNN {last} or older, the last that supports it, or remove {gpus} from [gpu] fleet; if the package does not use cuDNN, set [cudnn] linkage = \"none\"";
    CudnnLeftGpuNone CudnnLeftGpu "cuDNN"
        "cuDNN {found} no longer supports {gpus}.\ncuDNN:\t{found} in {path}\nsupports:\tcompute capability {oldest} and newer, in its build for CUDA {cuda_major}\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "build for an older CUDA: no cuDNN for CUDA {cuda_major} supports it, or remove {gpus} from [gpu] fleet; if the package does not use cuDNN, set [cudnn] linkage = \"none\"";
    CudnnBeforeGpu CudnnBeforeGpu "cuDNN"
        "cuDNN {found} is older than {gpus}.\ncuDNN:\t{found} in {path}\nhas code:\tup to compute capability {newest}, in its build for CUDA {cuda_major}\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "build with a cuDNN that supports that GPU; it is not documented whether this one works there";
    FleetCannotTell FleetCannotTell "fleet"
        "it is unknown whether this build supports the whole fleet.\n{open}"
        "build with `cargo cudaguard build`, which reads the linked file";
    Unguarded Unguarded "{component}"
        "{component} is built without the guard: {why}"
        "if a C compiler for the target is missing, install one or set CC; targets other than Linux and Windows, or without a C library, cannot be guarded";
    NoSuchPackage NoSuchPackage "{package}"
        "the policy has a table for the package {package}, which is not in this workspace.\nfile:\t{policy}:{line}"
        "correct the name in package.{package}, or remove the table";
    NoSuchPackageMeant NoSuchPackage "{package}"
        "the policy has a table for the package {package}, which is not in this workspace.\nfile:\t{policy}:{line}"
        "did you mean package.{meant}? If not, remove the table";
    NotAsRecorded NotAsRecorded "{file}"
        "{file} is built with CUDA {built_cuda}, but linked to {library}.\nneeds:\t{library}\nbuilt with:\tCUDA {built_cuda}"
        "link the libcudart of CUDA {built_major}: check -L in the build script, and LIBRARY_PATH";
    NotAsRecordedCMake NotAsRecorded "{file}"
        "{file} is built with CUDA {built_cuda}, but linked to {library}.\nneeds:\t{library}\nbuilt with:\tCUDA {built_cuda}"
        "link CUDA::cudart of the toolkit that compiles: configure an empty build directory with its root as -DCUDAToolkit_ROOT";
    NotAsRecordedOptions NotAsRecorded "{file}"
        "{file} is built with CUDA {built_cuda}, but linked to {library}.\nneeds:\t{library}\nbuilt with:\tCUDA {built_cuda}"
        "link the libcudart of the toolkit that compiles, and pass that toolkit with --nvcc or --toolkit";
    NotAsRecordedLinkage NotAsRecorded "{file}"
        "the policy declares another cuDNN linkage than {file} has.\ndeclared:\t{declared} ([cudnn] linkage = \"{value}\"[ in {policy}])\nfound:\t{linkage}\nneeds:\t{library}"
        "correct [cudnn] linkage, or the libraries that the build script links";
    NotAsRecordedLinkageCMake NotAsRecorded "{file}"
        "the policy declares another cuDNN linkage than {file} has.\ndeclared:\t{declared} ([cudnn] linkage = \"{value}\"[ in {policy}])\nfound:\t{linkage}\nneeds:\t{library}"
        "correct [cudnn] linkage, or target_link_libraries";
    NotAsRecordedLinkageOptions NotAsRecorded "{file}"
        "the policy declares another cuDNN linkage than {file} has.\ndeclared:\t{declared} ([cudnn] linkage = \"{value}\"[ in {policy}])\nfound:\t{linkage}\nneeds:\t{library}"
        "correct [cudnn] linkage, or the linked libraries";
    NotAsRecordedHeaders NotAsRecorded "{file}"
        "the headers found are from cuDNN {built}, but {file} is linked to {library}.\nneeds:\t{library}\nrecorded:\tcuDNN {built}, by its headers"
        "use headers and library of one package: set CUDNN_PATH to its root";
    NotAsRecordedHeadersCMake NotAsRecorded "{file}"
        "the headers found are from cuDNN {built}, but {file} is linked to {library}.\nneeds:\t{library}\nrecorded:\tcuDNN {built}, by its headers"
        "use headers and library of one package: set the target's include directories, or CUDNN_INCLUDE_DIR of cudaguard_embed, to those of the library";
    NotAsRecordedHeadersOptions NotAsRecorded "{file}"
        "the headers found are from cuDNN {built}, but {file} is linked to {library}.\nneeds:\t{library}\nrecorded:\tcuDNN {built}, by its headers"
        "use headers and library of one package: set --include to the headers of the linked library";
    OwnKernelsUnknown OwnKernelsUnknown "{file}"
        "it is unknown which kernels in {file} belong to this package: [gpu] archs was not checked.\nkernels:\t{kernels}\nbuilt for:\t{built_for}\ndeclared:\t{declared} ([gpu] archs[ in {policy}])"
        "make the build script keep nvcc's output in OUT_DIR; if the package has no own kernels, use [gpu] fleet, which applies to the whole file";
    OtherToolkitUsed OtherToolkitUsed "{file}"
        "{file} contains code from CUDA {built}, but the toolkit in use is CUDA {toolkit_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "set PATH and CUDA_HOME to the toolkit that the build script calls; if objects of an earlier build were kept, run cargo clean and build again";
    OtherToolkitUsedCMake OtherToolkitUsed "{file}"
        "{file} contains code from CUDA {built}, but the toolkit in use is CUDA {toolkit_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "configure an empty build directory with the toolkit that compiled the kernels: -DCMAKE_CUDA_COMPILER=ROOT/bin/nvcc and -DCUDAToolkit_ROOT=ROOT; or build all objects again";
    OtherToolkitUsedOptions OtherToolkitUsed "{file}"
        "{file} contains code from CUDA {built}, but the toolkit in use is CUDA {toolkit_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "set --nvcc or --toolkit to the toolkit that compiled the kernels; or build all objects again";
    OtherToolkitUsedBesides OtherToolkitUsed "{file}"
        "{file} also contains kernels from CUDA {built}, but the toolkit in use is CUDA {toolkit_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "build that library with the toolkit in use; if another is intended, allow it with a reason";
    CudartOfOtherToolkit CudartOfOtherToolkit "{file}"
        "{file} contains kernels from CUDA {built}, but its cudart is from CUDA {found_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "link the libcudart_static.a of the toolkit that compiled the kernels: check -L in the build script, and LIBRARY_PATH";
    CudartOfOtherToolkitCMake CudartOfOtherToolkit "{file}"
        "{file} contains kernels from CUDA {built}, but its cudart is from CUDA {found_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "use nvcc and cudart of one toolkit: configure an empty build directory with one -DCMAKE_CUDA_COMPILER and -DCUDAToolkit_ROOT, or rebuild the library with the other kernels";
    CudartOfOtherToolkitOptions CudartOfOtherToolkit "{file}"
        "{file} contains kernels from CUDA {built}, but its cudart is from CUDA {found_cuda}.\nkernels:\t{kernels}\ncudart:\t{code}\nin use:\t{toolkit}"
        "link the libcudart of the toolkit that compiled the kernels, or rebuild the library with the other kernels";
    CudnnHeadersUnknown CudnnHeadersUnknown "{file}"
        "{file} is linked to {library}, but it is unknown which cuDNN headers it was compiled with.\nrecorded:\tcuDNN {found}, from {path}\nuses:\t{symbol}, added in cuDNN {min}"
        "set CUDNN_INCLUDE_DIR to the directory of the headers that the build script passes with -I";
    CudnnHeadersUnknownNothing CudnnHeadersUnknown "{file}"
        "{file} is linked to {library} of an unknown release: the guard will accept any cuDNN.\nrecorded:\tcuDNN {found}, from {path}\nuses:\t{symbol}, added in cuDNN {min}"
        "set CUDNN_INCLUDE_DIR to the directory of the headers that the build script passes with -I";
    CudnnHeadersUnknownCMake CudnnHeadersUnknown "{file}"
        "{file} is linked to {library}, but it is unknown which cuDNN headers it was compiled with.\nrecorded:\tcuDNN {found}, from {path}\nuses:\t{symbol}, added in cuDNN {min}"
        "pass the directory of the headers to cudaguard_embed with CUDNN_INCLUDE_DIR, or to the target with target_include_directories";
    CudnnHeadersUnknownOptions CudnnHeadersUnknown "{file}"
        "{file} is linked to {library}, but it is unknown which cuDNN headers it was compiled with.\nrecorded:\tcuDNN {found}, from {path}\nuses:\t{symbol}, added in cuDNN {min}"
        "pass the directory of the headers with --include";
    TorchWithoutCuda TorchWithoutCuda "{file}"
        "{file} needs {library}, but nothing that it loads needs libtorch_cuda: its PyTorch code runs on the CPU only.\nhas CUDA:\t{path}"
        "keep the library: in the build script of the program, print cargo:rustc-link-arg=-Wl,--no-as-needed,-ltorch_cuda";
    TorchWithoutCudaCMake TorchWithoutCuda "{file}"
        "{file} needs {library}, but nothing that it loads needs libtorch_cuda: its PyTorch code runs on the CPU only.\nhas CUDA:\t{path}"
        "keep the library: add -Wl,--no-as-needed to target_link_options of the target and link torch_cuda, or link TORCH_LIBRARIES of find_package(Torch)";
    TorchWithoutCudaOptions TorchWithoutCuda "{file}"
        "{file} needs {library}, but nothing that it loads needs libtorch_cuda: its PyTorch code runs on the CPU only.\nhas CUDA:\t{path}"
        "keep the library: add -Wl,--no-as-needed -ltorch_cuda to the linker's options";
    CrateForOtherCuda CrateForOtherCuda "{crate}"
        "{crate} has bindings for CUDA {found_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nbindings:\t{found_cuda} ({by})\ntoolkit:\t{toolkit}\nuses:\t{uses}"
        "update {crate} ({named_in}): it has no bindings for CUDA {toolkit_cuda}";
    CrateForOtherCudaUnset CrateForOtherCuda "{crate}"
        "{crate} has bindings for CUDA {found_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nbindings:\t{found_cuda} ({by})\ntoolkit:\t{toolkit}\nuses:\t{uses}"
        "unset {variable}, or set it to {value}";
    CrateForOtherCudaFeature CrateForOtherCuda "{crate}"
        "{crate} has bindings for CUDA {found_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nbindings:\t{found_cuda} ({by})\ntoolkit:\t{toolkit}\nuses:\t{uses}"
        "{named_in}: use the feature {feature} instead of {now}; or set {variable}={value}";
    CrateForOtherCudaSet CrateForOtherCuda "{crate}"
        "{crate} has bindings for CUDA {found_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nbindings:\t{found_cuda} ({by})\ntoolkit:\t{toolkit}\nuses:\t{uses}"
        "set {variable}={value}, which overrides {now} of {named_in}";
    CrateForOtherCudaPath CrateForOtherCuda "{crate}"
        "{crate} has bindings for CUDA {found_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nbindings:\t{found_cuda} ({by})\ntoolkit:\t{toolkit}\nuses:\t{uses}"
        "put the bin directory of the toolkit in use first in PATH";
    CrateForOtherCudaPathOrSet CrateForOtherCuda "{crate}"
        "{crate} has bindings for CUDA {found_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nbindings:\t{found_cuda} ({by})\ntoolkit:\t{toolkit}\nuses:\t{uses}"
        "put the bin directory of the toolkit in use first in PATH, or set {variable}={value}";
    CrateForOtherCudnn CrateForOtherCudnn "{crate}"
        "{crate} has bindings for cuDNN {level}, but the cuDNN in use is {found}.\ncrate:\t{way}\nbindings:\t{level} ({by})\ncuDNN:\t{found} ({path})\nuses:\t{uses}"
        "install cuDNN {built_major} and set CUDNN_PATH to its root[, or select bindings for cuDNN {major} in {named_in}]";
    CrateForOtherCudnnSymbol CrateForOtherCudnn "{crate}"
        "{crate} looks up {code} when it opens cuDNN, but cuDNN {found} does not have it.\ncrate:\t{way}\nbindings:\t{level} ({by})\ncuDNN:\t{found} ({path})\nuses:\t{uses}"
        "use a newer cuDNN (9.15 has it), or cudarc 0.19.5 or newer, which looks up only the functions that are called";
    CratesDisagree CratesDisagree "{library}"
        "one program contains {crate} for {library} {major} and {other} for {library} {other_major}.\ncrate:\t{way}\nbindings:\t{level} ({by})\nuses:\t{uses}\nand:\t{other_way}\nbindings:\t{other_level} ({other_by})\nuses:\t{other_uses}"
        "select one CUDA version for both: {crate} in {named_in}, {other} in {other_named_in}";
    CrateRaisesDriver CrateRaisesDriver "{crate}"
        "{crate} would panic on the oldest driver of the fleet: it looks up {code} when it opens libcuda.\ncrate:\t{way}\nbindings:\t{level} ({by})\nneeds:\ta driver that supports CUDA {needs_cuda}\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])"
        "raise [driver] fleet to a newer driver";
    CrateRaisesDriverLevel CrateRaisesDriver "{crate}"
        "{crate} would panic on the oldest driver of the fleet: it looks up {code} when it opens libcuda.\ncrate:\t{way}\nbindings:\t{level} ({by})\nneeds:\ta driver that supports CUDA {needs_cuda}\nfleet:\t{driver_fleet}[, which supports CUDA {cuda}][, which supports CUDA {most} at most] ([driver] fleet[ in {policy}])"
        "set {variable}={value}[ ({named_in}: or use the feature {feature})]; cudarc 0.19.5 and newer look up only the functions that are called";
    CrateToolkitMixed CrateToolkitMixed "{crate}"
        "{crate} compiles with CUDA {nvcc_cuda}, but the toolkit in use is {toolkit_cuda}.\ncrate:\t{way}\nnvcc:\t{nvcc}\ntoolkit:\t{toolkit}"
        "set NVCC, PATH and CUDA_HOME to one toolkit: {package} searches for nvcc in another order";
    CrateToolkitMixedHeaders CrateToolkitMixed "{crate}"
        "{crate} runs nvcc from CUDA {nvcc_cuda} with headers from CUDA {headers_cuda}.\ncrate:\t{way}\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "set CUDA_PATH={root}, or put the bin directory of the other toolkit first in PATH";
    CrateToolkitMixedNoVariable CrateToolkitMixed "{crate}"
        "{crate} runs nvcc from CUDA {nvcc_cuda} with headers from CUDA {headers_cuda}.\ncrate:\t{way}\nnvcc:\t{nvcc}\ncuda.h:\t{headers}"
        "set CUDA_PATH={root}: no variable that the crate reads names a toolkit";
    CrateStale CrateStale "{crate}"
        "{crate} was built for {was}, and cargo reuses that build.\ncrate:\t{way}\nnow:\t{now}\nrebuilt on:\t{variable}"
        "run `cargo clean -p {package}@{value}[ --{profile}]` and build again";
    CrateArchOutsideFleet CrateArchOutsideFleet "{crate}"
        "{variable}={value} leaves {gpus} of the fleet without kernels.\ncrate:\t{way}\nmakes:\t{targets} ({variable}={value})\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "build once for each generation of the fleet, each with another {variable}: {package} compiles for one arch";
    CrateArchOutsideFleetSpecific CrateArchOutsideFleet "{crate}"
        "{variable}={value} leaves {gpus} of the fleet without kernels.\ncrate:\t{way}\nmakes:\t{targets}, which runs on that GPU only ({variable}={value})\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "build once for each generation of the fleet, each with another {variable}: {package} compiles for one arch";
    CrateArchSpecific CrateArchSpecific "{crate}"
        "{crate} compiles {variable}={value} as {targets}.\ncrate:\t{way}\nruns on:\tGPUs of compute capability {gpu} and no others"
        "if the program runs on other GPUs too, build for an older {variable} as well";
    CrateArchSpecificFamily CrateArchSpecific "{crate}"
        "{crate} compiles {variable}={value} as {targets}.\ncrate:\t{way}\nruns on:\tthe family of compute capability {gpu} and no others"
        "if the program runs on other GPUs too, build for an older {variable} as well";
    BuilderGpuDecides BuilderGpuDecides "{crate}"
        "{crate} compiles for the GPU of this machine, which leaves {gpus} of the fleet without kernels.\ncrate:\t{way}\nhere:\t{here}, so it compiles {targets} (nvidia-smi)\nfleet:\t{fleet} ([gpu] fleet[ in {policy}])"
        "set {variable}, and build once for each generation of the fleet";
    CrateStops CrateStops "{crate}"
        "{crate} has no bindings for CUDA {found_cuda}, and its build script fails.\ncrate:\t{way}\nrequested:\t{found_cuda} ({by})\nnewest:\tCUDA {newest}"
        "run `cargo update -p {package}`, or set {variable}={value}: bindings for an older release of the same major work";
    CrateStopsNoCompiler CrateStops "{crate}"
        "{crate} reads the release from nvcc, and PATH contains no nvcc.\ncrate:\t{way}\ntoolkit:\t{toolkit}"
        "add {root}/bin to PATH, or set CUDARC_CUDA_VERSION";
    CrateStopsNoCompilerAtAll CrateStops "{crate}"
        "{crate} reads the release from nvcc, and PATH contains no nvcc.\ncrate:\t{way}"
        "install a toolkit, or set CUDARC_CUDA_VERSION";
    CrateStopsNoHeaders CrateStops "{crate}"
        "{crate} needs the headers of CUDA {min} or newer, and its build script finds none and stops.\ncrate:\t{way}\nfound:\t{found_cuda} ({by})\nlooks in:\t{places}\ntoolkit:\t{toolkit}"
        "set {variable} to the root of a toolkit of CUDA {min} or newer";
    CrateStopsNoGpu CrateStops "{crate}"
        "the build script of {package} compiles for the GPU that nvidia-smi reports, and stops: {why}.\ncrate:\t{way}"
        "set {variable} to the compute capability of the GPUs that run the program, for example {variable}=90";
    CrateStopsNoLibraries CrateStops "{crate}"
        "{crate} finds no CUDA toolkit, and its build script fails.\ncrate:\t{way}\nsearched:\t{places}\ntoolkit:\t{toolkit}"
        "set CUDA_LIBRARY_PATH={root}";
    CrateStopsNoLibrariesAtAll CrateStops "{crate}"
        "{crate} finds no CUDA toolkit, and its build script fails.\ncrate:\t{way}\nsearched:\t{places}\ntoolkit:\t{toolkit}"
        "install a toolkit, and set CUDA_LIBRARY_PATH to its root";
    CrateStopsUnknownCudnn CrateStops "{crate}"
        "{crate} has no bindings for cuDNN {found}, and its build script fails.\ncrate:\t{way}\nheader:\t{path}\nhas:\t{levels}"
        "in {named_in} select the bindings with a feature (cudnn-…), not by the headers; bindings of the same major fit";
    GuardNotLinked GuardNotLinked "{file}"
        "{file} is linked without its guard: {why}.\nfile:\t{path}\nguard:\t{component}"
        "check whether a linker script or a step after linking discards .note.cudaguard (strip --remove-section, objcopy), and whether cudaguard_embed names the target of this file";
    CudnnOtherMajor CudnnOtherMajor "cuDNN"
        "cuDNN[ {found}] is another major version than cuDNN {built}, which {component} was built with\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "install cuDNN {built_major} ({min} or newer) where the loader looks first; or rebuild against the one found";
    CudnnOtherMajorLinked CudnnOtherMajor "cuDNN"
        "{library} is not found, and cuDNN {found} is another major version: the loader would stop the program\nneeded by:\t{needed_by}\nsearched:\t{looked_in}\nfound:\t{path}"
        "{cure}; or rebuild the program against cuDNN {major}";
    CudnnOlder CudnnOlder "cuDNN"
        "cuDNN {found} is older than cuDNN {built}, which {component} was built with\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "update it, or put a directory with cuDNN {min} or newer first in LD_LIBRARY_PATH; or rebuild against cuDNN {found}";
    CudnnOlderPatch CudnnOlderPatch "cuDNN"
        "cuDNN {found} is an older patch than cuDNN {built}, which {component} was built with\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "update it, or put a directory with cuDNN {min} or newer first in LD_LIBRARY_PATH; or rebuild against cuDNN {found}";
    CudnnInnerMissing CudnnInnerMissing "cuDNN"
        "cuDNN lacks {library}: calls that need it fail\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "reinstall cuDNN completely from one package";
    CudnnInnerMissingNeeded CudnnInnerMissing "cuDNN"
        "cuDNN lacks {library}: the first call would abort\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "reinstall cuDNN completely from one package";
    CudnnAbsent CudnnAbsent "cuDNN"
        "no cuDNN was found: the loader finds no {library}\nbuilt with: cuDNN {built} ({component})"
        "install cuDNN {min} or newer, or add its directory to LD_LIBRARY_PATH";
    CudnnAbsentLinked CudnnAbsent "cuDNN"
        "{library} is not found: the loader would stop the program\nneeded by:\t{needed_by}\nsearched:\t{looked_in}"
        "{cure}";
    CudnnInnerMixed CudnnInnerMixed "cuDNN"
        "cuDNN is mixed: {library} is {part}, the rest {found}\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "remove the stray copy[ of {library} in {beside}], or reinstall cuDNN completely from one package";
    CudnnInnerMixedLoader CudnnInnerMixed "cuDNN"
        "cuDNN is mixed: its loader library is {loader}, the rest {found}\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "reinstall cuDNN completely from one package";
    CudnnOtherCuda CudnnOtherCuda "cuDNN"
        "cuDNN[ {found}] is for CUDA {found_cuda}, and {component} for CUDA {built_cuda}\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "put a cuDNN for CUDA {built_cuda} first in LD_LIBRARY_PATH";
    LibraryAbsent LibraryAbsent "{library}"
        "{library} is not found: the loader would stop the program\nneeded by:\t{needed_by}\nsearched:\t{looked_in}\npresent:\t{beside}"
        "{cure}";
    LibraryAbsentInterpreter LibraryAbsent "{library}"
        "the loader that {file} names cannot start it\n{why}"
        "the program is built for another kind of system (glibc where there is musl, or for other directories, as on NixOS)";
    LibraryAbsentMusl LibraryAbsent "{library}"
        "the loader that {file} names cannot start it\n{why}"
        "it is built for musl: install musl, or use the build for glibc";
    WrongMachine WrongMachine "{file}"
        "{file} is for {processor}, but {place} is {machine}"
        "use the build for {machine}";
    WrongMachineElsewhere WrongMachine "{library}"
        "{library} was found for another processor only\nneeded by:\t{needed_by}\nsearched:\t{looked_in}\nfound:\t{path}, which {why}"
        "{cure}";
    LibraryDamaged LibraryDamaged "{library}"
        "the loader would pick {path} and fail: {why}\nneeded by:\t{needed_by}\npicked by:\t{picked_by}"
        "reinstall the package that the file belongs to, or remove the file";
    LibraryTooOld LibraryTooOld "{path}"
        "version `{value}` is not in {path}: the loader would stop the program\nneeded by:\t{needed_by}"
        "run it on a system as new as the one it was built on, or build it on the older one";
    LibraryLacksSymbol LibraryLacksSymbol "{symbol}"
        "{library} lacks {symbols}: the loader would stop the program[ when it first calls {later}]\nneeded by:\t{needed_by}\nfound:\t{path}, picked by: {picked_by}"
        "use the {library} that the program was linked with, or a newer one; or rebuild against the installed one";
    LibraryLacksSymbolBefore LibraryLacksSymbol "{symbol}"
        "{library} lacks {symbols}: the loader would stop the program[ when it first calls {later}]\nneeded by:\t{needed_by}\nfound:\t{path}, picked by: {picked_by}\nfirst in:\t{library} {first}"
        "use {library} {first} or newer; or rebuild against the installed one";
    LibraryLacksSymbolOutside LibraryLacksSymbol "{symbol}"
        "{library} lacks {symbols}: the loader would stop the program[ when it first calls {later}]\nneeded by:\t{needed_by}\nfound:\t{path}, picked by: {picked_by}\nfirst in:\t{library} {first} up to {last}"
        "use {library} {first} up to {last}; or rebuild against the installed one";
    LibraryLacksSymbolAfter LibraryLacksSymbol "{symbol}"
        "{library} lacks {symbols}: the loader would stop the program[ when it first calls {later}]\nneeded by:\t{needed_by}\nfound:\t{path}, picked by: {picked_by}\nlast in:\t{library} {last}"
        "use {library} {last} or older; or rebuild against the installed one";
    LibraryLacksSymbolNowhere LibraryLacksSymbol "{symbol}"
        "no library has {symbols}: the loader would stop the program[ when it first calls {later}]\nneeded by:\t{needed_by}\nfound:\t{path}, picked by: {picked_by}"
        "one of the libraries is of another release than the program was linked with: use that one, or rebuild the program";
    LibraryLacksSymbolUnversioned LibraryLacksSymbol "{symbol}"
        "{library} has no versions, and the program needs {symbols} in version {value}: the loader would stop it\nneeded by:\t{needed_by}\nfound:\t{path}, picked by: {picked_by}"
        "use the {library} that the program was linked with";
    LibraryLacksSymbolOnMachine LibraryLacksSymbol "{symbol}"
        "{library} {found} lacks {symbols}, which {file} binds: the loader would stop the program\nfound:\t{path}\nfirst in:\t{library} {first}"
        "use {library} {first} or newer; or rebuild against the installed one";
    LibraryLacksSymbolEmptySlot LibraryLacksSymbol "library"
        "{component} uses {symbol}, which no library has\nfound:      {path}\nfirst in:   {library} {min}"
        "update the library, or rebuild";
    LibraryLacksSymbolByTheLoader LibraryLacksSymbol "library"
        "{path}: symbol lookup error: {path}: undefined symbol: {symbol}[, version {library}]"
        "update the library, or rebuild";
    FamilyMixed FamilyMixed "{library}"
        "{library} {found} and {other} {part} are of two releases\n{library}:\t{path}\n{other}:\t{beside}"
        "install both from one release: one package contains them";
    FamilyMixedFunctions FamilyMixed "{library}"
        "{library} is not of the release of {other} {part}: it has the functions of {library} {value}\n{library}:\t{path}\n{other}:\t{beside}"
        "install both from one release: one package contains them";
    FamilyMixedBuiltins FamilyMixed "{library}"
        "{library} {found} has only the builtins of {part}: each compilation at run time fails\n{library}:\t{path}\n{other}:\t{beside}"
        "put {needed_by} of the same release into the directory of {library}";
    FamilyMixedBuiltinsAbsent FamilyMixed "{library}"
        "{library} {found} comes without {needed_by}: each compilation at run time fails, unless the machine has this file\n{library}:\t{path}"
        "put {needed_by} of the same release into the directory of {library}";
    CompilerAbsent CompilerAbsent "{library}"
        "{component} opens {library}, but only {other} is here\nopened by:\t{needed_by}\nfound:\t{path}"
        "install {library}, or the build of {component} for the other CUDA major";
    TwoCudarts TwoCudarts "{component}"
        "{component} loads {library} and {other}\n{library}:\tneeded by {needed_by}\n{other}:\tneeded by {by}"
        "take all libraries for one CUDA major";
    CudnnFamily CudnnFamily "cuDNN"
        "cuDNN is made for CUDA {cuda}, but only {other} is here\ncuDNN:\t{path}\n{other}:\t{beside}"
        "install the cuDNN for CUDA {major}, or {library}";
    CompilerNewerThanDriver CompilerNewerThanDriver "{library}"
        "{library} {found} writes PTX that this driver does not compile\nwrites:\tPTX {isa}[, which needs a driver that supports CUDA {needs_cuda}]\ndriver:\tsupports CUDA {cuda}\nfound:\t{path}"
        "update the driver, use {library} {newest} or older, or compile for the GPU itself (--gpu-architecture=sm_NN), which needs no PTX";
    CompilerUnknownGpu CompilerUnknownGpu "{library}"
        "{library} {found} does not compile for compute capability {gpus}\nfirst in:\tCUDA {first}\nlast in:\tCUDA {last}\nfound:\t{path}"
        "use another release of {library}, and avoid what compiles at run time until then";
    DriverTooOld DriverTooOld "driver"
        "the driver is too old for {code}[, which needs one that supports CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "update the driver[ to {needs_release} or newer]; or rebuild with an older toolkit";
    DriverTooOldNoneKnown DriverTooOld "driver"
        "the driver is too old for {code}[, which needs one that supports CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "rebuild with an older toolkit: no known driver supports this one";
    DriverTooOldForCode DriverTooOldForCode "driver"
        "the driver is too old for {code} on compute capability {gpus}[, which needs one that supports CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "update the driver[ to {needs_release} or newer]; or rebuild with {archs} added";
    DriverTooOldForCodeNoneKnown DriverTooOldForCode "driver"
        "the driver is too old for {code} on compute capability {gpus}[, which needs one that supports CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild with {archs} added, or with an older toolkit: no known driver supports this one";
    DriverTooOldForCodeCompressed DriverTooOldForCode "driver"
        "the driver is too old for compressed {code} on compute capability {gpus}[: it needs CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "update the driver[ to {needs_release} or newer]; or compile with --compress-mode=none";
    DriverTooOldForCodeText DriverTooOldForCode "driver"
        "the driver is too old for {code} on compute capability {gpus}[, which needs one that supports CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "update the driver[ to {needs_release} or newer]; or compile the PTX text with an older toolkit";
    DriverTooOldForCodeForced DriverTooOldForCode "driver"
        "CUDA_FORCE_PTX_JIT=1 needs {code} for compute capability {gpus}: the driver is too old[: CUDA {needs_cuda}]\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "unset CUDA_FORCE_PTX_JIT[; or update the driver to {needs_release} or newer]";
    NoCodeForGpu NoCodeForGpu "driver"
        "{component} has no code for compute capability {gpus}\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild it with {archs} added";
    NoCodeForGpuNoLongerMade NoCodeForGpu "driver"
        "{component} has no code for compute capability {gpus}\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild it with {archs} added and CUDA {made_to} or older: CUDA {built_cuda} dropped it";
    NoCodeForGpuJetson NoCodeForGpu "driver"
        "{component} has no code for compute capability {gpus}\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nbecause:    {why}"
        "rebuild it with {archs} added";
    NoCodeForGpuNotYetMade NoCodeForGpu "driver"
        "{component} has no code for compute capability {gpus}\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild it with {archs} added and CUDA {made_from} or newer; or with PTX of an older arch";
    DriverMismatch DriverMismatch "driver"
        "libcuda and the kernel module are from different releases (803)\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "reboot after a driver update; in a container, remove the libcuda of the image[: {libcuda}]";
    DriverMismatchPicked DriverMismatch "driver"
        "libcuda and the kernel module are from different releases (803)\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "{fix}, so that the loader finds the libcuda of driver {kernel}[: {next}]";
    ForwardCompatUnsupported ForwardCompatUnsupported "driver"
        "cuda-compat does not work with this GPU (804)\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "remove the directory of cuda-compat[ ({libcuda})] from the loader's path and update the driver; or hide that GPU with CUDA_VISIBLE_DEVICES";
    ForwardCompatUnsupportedPicked ForwardCompatUnsupported "driver"
        "cuda-compat does not work with this GPU (804)\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "{fix} and update the driver; or hide that GPU with CUDA_VISIBLE_DEVICES";
    ForwardCompatUnsupportedBehind ForwardCompatUnsupported "driver"
        "cuda-compat does not work with this GPU (804)\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "{fix}: the loader then finds {next}[, which supports CUDA {cuda}]; or hide that GPU with CUDA_VISIBLE_DEVICES";
    StubDriver StubDriver "driver"
        "the libcuda found is the stub, which is for linking only (34)\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "remove the stubs directory[ ({libcuda})] from LD_LIBRARY_PATH and RPATH";
    StubDriverPicked StubDriver "driver"
        "the libcuda found is the stub, which is for linking only (34)\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "{fix}[, so that the loader finds {next}]";
    DriverMissing DriverMissing "driver"
        "there is no libcuda.so.1, and {component} requires a GPU"
        "install the NVIDIA driver (container: --gpus all)";
    JitDisabled JitDisabled "driver"
        "CUDA_DISABLE_PTX_JIT=1 disables what compute capability {gpus} needs: {code}\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "unset CUDA_DISABLE_PTX_JIT; or rebuild with {archs} added";
    JitMissing JitMissing "driver"
        "libnvidia-ptxjitcompiler.so.1 is missing, and compute capability {gpus} needs it for {code} (221)\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "install the complete driver (container: NVIDIA_DRIVER_CAPABILITIES=compute,utility); or rebuild with {archs} added";
    JitMissingAnybody JitMissing "driver"
        "libcuda would not find libnvidia-ptxjitcompiler.so.1: programs that need PTX fail\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "install the complete driver (on Debian, libnvidia-ptxjitcompiler1); start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility";
    GpuMissing GpuMissing "driver"
        "there is no GPU, and {component} requires one\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "check nvidia-smi and CUDA_VISIBLE_DEVICES (container: --gpus all)";
    PartialCode PartialCode "driver"
        "only part of the code in {component} is for compute capability {gpus}\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild all of it with {archs} added, or remove gpu.partial from cudaguard.toml";
    NoGpuForAll NoGpuForAll "driver"
        "no GPU can run both {component} and {other}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "rebuild both for one of {archs}";
    CudnnTooNewForGpu CudnnTooNewForGpu "driver"
        "cuDNN {found} no longer works on compute capability {gpus}\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "use a newer GPU, or a cuDNN from {min} to below {dropped_in}, if there is one";
    CudartOlder CudartOlder "cudart"
        "{library} is from CUDA {found_cuda}, older than CUDA {built_cuda}, which {component} was built with\nfound:      {path}"
        "put the libcudart of CUDA {built_cuda} first in LD_LIBRARY_PATH; or link it statically";
    JitForced JitForced "driver"
        "{component} has no PTX for compute capability {gpus}, and CUDA_FORCE_PTX_JIT=1 disables its machine code\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "unset CUDA_FORCE_PTX_JIT";
    CudnnNeedsNewerDriver CudnnNeedsNewerDriver "driver"
        "cuDNN[ {found}] is for CUDA {found_cuda}, and needs a driver that supports CUDA {needs_cuda}\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "put a cuDNN for CUDA[ {cuda_major}] first in LD_LIBRARY_PATH; or update the driver";
    GpuNotForDriver GpuNotForDriver "driver"
        "the driver no longer supports compute capability {gpus}: the last branch that did is {branch}\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "use a driver of branch {branch} or older, or another GPU";
    GpuNotForDriverYet GpuNotForDriver "driver"
        "the driver does not support compute capability {gpus} yet: it needs one that supports CUDA {needs_cuda}\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "update the driver[ to {needs_release} or newer]; or use another GPU";
    GpuUndriven GpuUndriven "driver"
        "there is an NVIDIA GPU, but neither its kernel module nor libcuda was found\non the bus: {devices}"
        "install the NVIDIA driver, or load its module (modprobe nvidia); in a container, start it with its GPUs (--gpus all)";
    GpuUndrivenNoLibrary GpuUndriven "driver"
        "there is an NVIDIA GPU with its kernel module, but the loader finds no libcuda.so.1\non the bus: {devices}"
        "install the driver's libraries of the same release; in a container, start it with its GPUs (--gpus all)";
    GpuUndrivenNoModule GpuUndriven "driver"
        "there is an NVIDIA GPU and a libcuda, but the kernel module is not loaded\non the bus: {devices}"
        "load the module (modprobe nvidia), or install the NVIDIA driver; in a container, start it with its GPUs (--gpus all)";
    DeviceDenied DeviceDenied "driver"
        "this user may not open {devices}"
        "check their owner and mode (ls -l {devices}): most often the user is not in the group video";
    CompatOutdated CompatOutdated "driver"
        "cuda-compat is no newer than the driver\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "remove the directory of cuda-compat[ ({libcuda})] from LD_LIBRARY_PATH: the driver supports the same CUDA version itself";
    CompatOutdatedPicked CompatOutdated "driver"
        "cuda-compat is no newer than the driver\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "{fix}: the driver supports the same CUDA version itself";
    WslShadowed WslShadowed "driver"
        "the loader finds the libcuda of a Linux driver before that of Windows\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "remove the packages of the NVIDIA driver inside WSL: WSL uses the driver of Windows, in /usr/lib/wsl/lib";
    DriverNotWorking DriverNotWorking "driver"
        "cuInit returns {answer}: no program can use a GPU here\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "check nvidia-smi and the kernel log (dmesg | grep -i nvrm)";
    DriverNotWorkingNotReady DriverNotWorking "driver"
        "cuInit returns {answer}: the system is not ready, and no program can use a GPU here\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "start the fabric manager (systemctl status nvidia-fabricmanager), and check its state with nvidia-smi -q";
    DriverNotWorkingNoGpu DriverNotWorking "driver"
        "this machine has an NVIDIA GPU, but the driver shows none (cuInit returns 100)\non the bus: {devices}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "in a container, start it with its GPUs (--gpus all); on a host, create the device files (nvidia-modprobe -c 0 -u), and check the kernel log (dmesg | grep -i nvrm)";
    DriverNotWorkingClosedModule DriverNotWorking "driver"
        "this GPU needs the open kernel modules, but the proprietary kernel module is loaded (cuInit returns 100)\non the bus: {devices}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "install the open kernel modules of this driver: nvidia-driver-<release>-open on Ubuntu, nvidia-open on other systems; then reboot";
    GpusHidden GpusHidden "driver"
        "no GPU is visible: CUDA_VISIBLE_DEVICES is set to \"{value}\""
        "unset CUDA_VISIBLE_DEVICES, or name GPUs that exist: by number, or by UUID as nvidia-smi -L lists it";
    CudnnCannotTell CudnnCannotTell "cuDNN"
        "the version of this cuDNN is unknown\nbuilt with: cuDNN {built} ({component})\nfound:      cuDNN[ {found}] in {path}[, with {beside}]\npicked by:  {picked_by}"
        "check that cuDNN's inner libraries are next to it: run `cargo cudaguard doctor`";
    CudnnCannotTellNotLoaded CudnnCannotTell "cuDNN"
        "it is unknown which cuDNN {component} would load\nbuilt with: cuDNN {built} ({component})"
        "check that cuDNN {min} or newer is installed: run `cargo cudaguard doctor`";
    NoteNewer NoteNewer "manifest"
        "the manifest of {component} is newer than this cudaguard: only its known parts were checked"
        "update cudaguard";
    NoteNewerRows NoteNewer "manifest"
        "the manifest of {component} has rows of unknown kinds: {kinds}"
        "update cudaguard";
    NoteDamaged NoteDamaged "manifest"
        "a manifest in {file} is damaged: it was ignored\nbecause:    {why}"
        "rebuild {file}: a tool changed it after linking";
    NoteDamagedNotFound NoteDamaged "manifest"
        "{file} has a guard and no manifest: it was not checked"
        "rebuild {file} and keep its notes: a tool removed the manifest";
    NothingToSee NothingToSee "driver"
        "no GPU is visible: nothing to check"
        "";
    DriverCannotTell DriverCannotTell "driver"
        "it is unknown whether driver and GPU fit: facts are missing\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "run `cargo cudaguard doctor` to list the missing facts";
    DriverCannotTellAnswer DriverCannotTell "driver"
        "it is unknown whether driver and GPU fit: cuInit returns {answer}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "check nvidia-smi and the kernel log (dmesg | grep -i nvrm)";
    DriverCannotTellNotLoaded DriverCannotTell "driver"
        "it is unknown whether driver and GPU fit: libcuda.so.1 cannot be loaded: {why}\nGPUs:       compute capability {gpus}"
        "run `cargo cudaguard doctor` to list the missing facts";
    DriverCannotTellUnsure DriverCannotTell "driver"
        "it is unknown whether {code} of nvcc {nvcc_major} loads on this driver: NVIDIA guarantees it for nvcc {nvcc_major} from driver {needs_release} on\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "update the driver to {needs_release} or newer[; or rebuild with CUDA {cuda_major}]";
    DriverCannotTellNewerPtx DriverCannotTell "driver"
        "it is unknown whether this driver compiles {code}: both are newer than the guard\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "rebuild it with {archs} added";
    DriverCannotTellForced DriverCannotTell "driver"
        "it is unknown whether CUDA_FORCE_PTX_JIT=1 leaves code for compute capability {gpus}: some in {component} may have no PTX\nbuilt for:  {built_for}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "unset CUDA_FORCE_PTX_JIT";
    DriverCannotTellNotNamed DriverCannotTell "driver"
        "it is unknown whether driver and GPU fit. Unknown: {missing}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]\nGPUs:       compute capability {gpus}"
        "pass the facts with --driver, --kernel and --gpu, or in a host file: run `cargo cudaguard probe --json` on such a machine to write one";
    DriverCannotTellBranch DriverCannotTell "driver"
        "it is unknown whether driver {driver} supports {code}: that needs CUDA {needs_cuda}, and no table lists what this driver's branch supports[, but at least {least}][ and at most {most}]\nneeded by:  {component}\nGPUs:       compute capability {gpus}"
        "run `cargo cudaguard verify` on such a machine, or copy the CUDA version that nvidia-smi prints there to the key \"cuda\" of \"driver\" in the host file";
    DriverCannotTellDrives DriverCannotTell "driver"
        "it is unknown whether this driver supports compute capability {gpus}: CUDA {needs_cuda} is the first that does, and no table lists which updates of older drivers added it\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "update the driver[ to {needs_release} or newer] to be sure; nvidia-smi on such a machine lists the GPUs that its driver supports";
    KernelModuleUnknown KernelModuleUnknown "driver"
        "the release of the kernel module is unknown: only libcuda was checked\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "pass the release that is in /proc/driver/nvidia/version with --kernel";
    CudartUnknown CudartUnknown "cudart"
        "it is unknown whether {library} is older than CUDA {built_cuda}, which {component} was built with: its name has no minor\nfound:      {path}"
        "put the libcudart of CUDA {built_cuda} first in LD_LIBRARY_PATH; or link it statically";
    NotAllKept NotAllKept "manifest"
        "{left_out} findings were dropped: the guard keeps at most {kept}"
        "run `cargo cudaguard verify` to see all";
    NotAllKeptNotes NotAllKept "manifest"
        "{left_out} manifests were not checked: the guard keeps at most {kept}"
        "run `cargo cudaguard verify` to see all";
    NoManifest NoManifest "{file}"
        "{file} has no manifest: only its GPU code, its libraries and their functions are checked"
        "build it with `cargo cudaguard build`, or add `cudaguard::embed!()` to its build.rs";
    NoManifestGpuCode NoManifest "{file}"
        "{file} is a file of GPU code without a manifest: only its code is checked"
        "guard the program that loads it, and list these archs in [gpu] archs of its cudaguard.toml";
    KernelsCannotTell KernelsCannotTell "{file}"
        "the kernels in {file} cannot be read[: {why}]"
        "check that {file} is complete, or rebuild it";
    KernelsCannotTellUnlinked KernelsCannotTell "{file}"
        "{file} is not linked yet: the requirements of its kernels are unknown"
        "verify the linked program or library";
    MachineUnreadable MachineUnreadable "machine"
        "part of this machine could not be examined: {why}"
        "check nvidia-smi";
    CudartInsideUnknown CudartInsideUnknown "{file}"
        "{file} contains a static cudart of an unknown release: the driver that it needs is unknown"
        "set CUDA_HOME for the build, or link the shared libcudart, whose name contains its major";
    CudnnBeforeThisGpu CudnnBeforeThisGpu "driver"
        "it is unknown whether cuDNN {found} works on compute capability {gpus}: it has code up to {newest_major}.x\nneeded by:  {component}\nfound:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}]"
        "put a newer cuDNN first in LD_LIBRARY_PATH: cuDNN 9 for CUDA 12 and later supports newer GPUs";
    PackageUnfit PackageUnfit "package"
        "the package contains {path}, which belongs to the driver"
        "exclude libcuda from the package (auditwheel repair --exclude libcuda.so.1): only the libcuda of a machine fits its kernel module";
    PackageUnfitTwice PackageUnfit "package"
        "the package contains {library} more than once: {value}"
        "package it once, for all members: a process uses the copy that it loads first";
    PackageUnfitPromise PackageUnfit "package"
        "{value}, but {path} needs {library} {min} or newer[ ({symbol})]"
        "require {min} or newer";
    PackageUnfitPromiseMajor PackageUnfit "package"
        "{value}, but {path} needs {library}"
        "require the release that {library} comes from";
    PackageUnfitTag PackageUnfit "package"
        "{value}, but {path} is for CUDA {found_cuda}"
        "name the CUDA version of its code: users select the package by it";
    PackageUnfitDriver PackageUnfit "package"
        "{value}, but {path} needs a driver that supports CUDA {cuda}"
        "require that driver: `cargo cudaguard requirements --format nvidia-require` prints the variable";
    PackageUnfitExport PackageUnfit "package"
        "{value}, but {path} is {library}"
        "set run_exports to the release in the package: dependents link to that one";
    PackageUnfitPath PackageUnfit "package"
        "{path} searches for libraries outside of the package, in {folder}"
        "link without that RPATH, or with one that begins with $ORIGIN: on another machine, that directory contains something else or does not exist";
    PackageUnfitOverwritten PackageUnfit "package"
        "{component} and {other} both contain {path}, with different contents\nin place:\t{value}"
        "uninstall both packages, then install the one that you need: the file of the package that was installed last replaces the other one";
    PackageUnfitRequirement PackageUnfit "package"
        "{component} requires {value}, but {other} is installed"
        "install a release that fulfils the requirement, or update both packages: `pip check` lists the others";
    ReleaseArchMissing ReleaseArchMissing "{file}"
        "{file} has no code for {targets}, which the release requires\nbuilt for:  {built_for}"
        "build it for {targets}; if the file needs no such code, exclude it with --except";
    ReleaseArchMissingEverywhere ReleaseArchMissing "{file}"
        "{file} contains no GPU code, and the release requires {targets}"
        "check whether the build has compiled its kernels; if the file needs none, exclude it with --except";
    ReleaseArchPartial ReleaseArchPartial "{file}"
        "{file} has code for compute capability {gpus} in some of its containers only\nwithout:    {without}"
        "build all of its sources for {targets}; if they are intended for other GPUs, exclude the file with --except";
    ReleaseDriverFloor ReleaseDriverFloor "{file}"
        "{file} needs a newer driver than {floor}, the driver floor of the release\nneeds:      a driver that supports CUDA {needs_cuda}[, {needs_release} or newer]\nbecause:    {why}\nGPUs:       compute capability {gpus}"
        "build it with an older toolkit, or without the code that raises the requirement; or raise the driver floor and announce it";
    ReleaseCudnnFloor ReleaseCudnnFloor "{file}"
        "{file} needs cuDNN {min} or newer, and the cuDNN floor of the release is {floor}\nbecause:    {why}"
        "build it with cuDNN {floor}, or raise the cuDNN floor and announce it";
    ReleaseCudnnFloorMajor ReleaseCudnnFloor "{file}"
        "{file} needs a cuDNN below {built}, and the cuDNN floor of the release is {floor}\nbecause:    {why}"
        "build it with cuDNN {floor}";
    ReleaseUnguarded ReleaseUnguarded "{file}"
        "{file} uses CUDA and contains no guard"
        "build it with `cargo cudaguard build` or the CMake package; if this is intended, exclude the file with --except";
    ReleaseCannotTell ReleaseCannotTell "{file}"
        "{file}: it cannot be determined whether it meets the requirements of the release: {why}"
        "check that the file is complete, and exclude it with --except if it does not belong to the release";
    ReleaseStaleException ReleaseStaleException "release"
        "the exception {value} matches no file of the release that has GPU code"
        "correct the glob, or remove the exception";
}

phrases! {
    AddMachineCode
        "add machine code for {archs}";
    AddMachineCodeElsewhere
        "add machine code for {archs}, with a toolkit that supports it";
    AddToFlags
        "compile for {archs}";
    AddToList
        "add {archs} to {variable}";
    BuildWithAnOlder
        "the toolkit in use no longer supports {targets}: build with an older one";
    BuildWithNewer
        "the toolkit in use does not support {targets} yet: build with CUDA {first} or newer, or let nvcc add PTX of its newest arch";
    BuildWithOlder
        "the toolkit in use no longer supports {targets}: build with CUDA {last} or older";
    ByName
        "loads cuDNN by name at run time";
    FoundElsewhere
        "it is in {folder}, which the loader does not search: set LD_LIBRARY_PATH={folder}";
    Inside
        "contains cuDNN";
    InstallCudnn
        "install cuDNN {major}, or add its directory to LD_LIBRARY_PATH";
    InstallDriver
        "it is a part of the NVIDIA driver: install the driver";
    InstallPackage
        "install the package that contains it, or add its directory to LD_LIBRARY_PATH";
    InstallToolkit
        "it is a part of the CUDA toolkit: install the release that the program was built with, or add its directory to LD_LIBRARY_PATH";
    Linked
        "linked to libcudnn";
    NoBindings
        "CUDA {found_cuda} ({by}), for which it has no bindings; the newest are for {newest}";
    NoBindingsCudnn
        "cuDNN {found} ({path}), for which it has no bindings";
    NotThere
        "{variable}:\t{path} (not found)";
    OfCc
        "{compiler} in {path} (by the cc crate: {source})";
    OfNvcc
        "{compiler} in {path} ({source})";
    OpenArchs
        "[gpu] fleet:\tno source declares the archs";
    OpenCudnn
        "[cudnn] fleet:\tno cuDNN with a known version is in use";
    OpenDriver
        "[driver] fleet:\tit is not documented which CUDA version driver {driver_fleet} supports";
    OpenGpus
        "[gpu] fleet:\tit is not documented whether {targets} runs on {gpus}";
    OpenPtx
        "[gpu] fleet:\tthe crate that compiles {targets} decides whether to add PTX for {gpus}";
    OpenToolkit
        "[driver] fleet:\tno CUDA toolkit with a known release is in use";
    Unused
        "does not use cuDNN";
}

/// Names of the placeholders that a text may contain.
const FIELDS: &[&str] = &["accepted", "answer", "archs", "at_start", "beside", "bin", "branch", "built", "built_cuda", "built_for", "built_major", "by", "code", "command", "compiler", "component", "crate", "cuda", "cuda_major", "cure", "cxx", "dangling", "declared", "devices", "driver", "driver_fleet", "dropped_in", "feature", "file", "finding", "first", "fix", "fleet", "floor", "folder", "found", "found_cuda", "gpu", "gpus", "headers", "headers_cuda", "here", "instead", "isa", "kept", "kernel", "kernels", "kinds", "last", "later", "least", "left_out", "level", "levels", "libcuda", "library", "library_fleet", "limit", "line", "linkage", "loader", "lock", "lock_target", "looked_in", "machine", "made_from", "made_to", "major", "maker", "meant", "min", "missing", "most", "named_in", "needed_by", "needs_cuda", "needs_release", "newest", "newest_major", "next", "now", "nvcc", "nvcc_cuda", "nvcc_major", "oldest", "open", "other", "other_by", "other_level", "other_major", "other_named_in", "other_uses", "other_way", "others", "package", "part", "parts", "path", "picked_by", "place", "places", "policy", "processor", "profile", "ptx", "refused", "require", "root", "source", "sources", "symbol", "symbols", "target", "targets", "told_by", "toolkit", "toolkit_cuda", "toolkit_major", "uses", "value", "variable", "was", "way", "what", "why", "without"];
