/* Written by `cargo findings` from guard-core/data/findings.toml; a test keeps it so. What the shim speaks, and
 * the placeholders in it: that table says what each column means, and how the words are read. */

/* name, code, severity, verdict, rank, subject, sentence, its three lines, the finding that has the same hint, hint */
#define FINDINGS(X) \
  /* cuDNN[ {found}] is another major version than cuDNN {built}, which {component} was built with */ \
  X(CUDNN_OTHER_MAJOR, 201, ERROR, REFUSES, 41, cudnn, \
    W_cudnn "[ " V_found "]" W_is "another major version than " W_cudnn " " V_built "," W_which V_component W_was_built_with, \
    built_with, found_cudnn, picked_by, CUDNN_OTHER_MAJOR, \
    W_install " " W_cudnn " " V_built_major " (" V_min W_or W_newer ") where" W_the "loader looks first;" W_or W_rebuild " against" W_the "one found") \
  /* cuDNN {found} is older than cuDNN {built}, which {component} was built with */ \
  X(CUDNN_OLDER, 202, ERROR, REFUSES, 44, cudnn, \
    W_cudnn " " V_found W_is W_older " than " W_cudnn " " V_built "," W_which V_component W_was_built_with, \
    built_with, found_cudnn, picked_by, CUDNN_OLDER, \
    W_update W_it "," W_or W_put_a "f" W_older W_with " " W_cudnn " " V_min W_or W_newer W_first_in_path ";" W_or W_rebuild " against " W_cudnn " " V_found) \
  /* cuDNN {found} is an older patch than cuDNN {built}, which {component} was built with */ \
  X(CUDNN_OLDER_PATCH, 203, ERROR, REFUSES, 45, cudnn, \
    W_cudnn " " V_found W_is "an " W_older " patch than " W_cudnn " " V_built "," W_which V_component W_was_built_with, \
    built_with, found_cudnn, picked_by, CUDNN_OLDER, \
    "") \
  /* cuDNN lacks {library}: calls that need it fail */ \
  X(CUDNN_INNER_MISSING, 204, ERROR, REFUSES, 42, cudnn, \
    W_cudnn " lacks " V_library ": calls" W_that "need" W_it " fail", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, \
    "re" W_install " " W_cudnn " whole from" W_on "e package") \
  /* cuDNN lacks {library}: the first call would abort */ \
  X(CUDNN_INNER_MISSING_NEEDED, 204, ERROR, REFUSES, 42, cudnn, \
    W_cudnn " lacks " V_library ":" W_the "first call would abort", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, \
    "") \
  /* no cuDNN was found: no folder that the loader looks into has {library} */ \
  X(CUDNN_ABSENT, 205, ERROR, REFUSES, 40, cudnn, \
    "no " W_cudnn " was found:" W_no " f" W_older W_that "the loader looks" W_in "to" W_has " " V_library, \
    built_with, none, none, CUDNN_ABSENT, \
    W_install " " W_cudnn " " V_min W_or W_newer "," W_or "name" W_it "s f" W_older W_in W_library_path) \
  /* cuDNN is mixed: {library} is {part}, the rest {found} */ \
  X(CUDNN_INNER_MIXED, 206, ERROR, REFUSES, 43, cudnn, \
    W_cudnn W_is "mixed: " V_library W_is V_part "," W_the "rest " V_found, \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MIXED, \
    "remove" W_the "stray copy[" W_of " " V_library W_in " " V_beside "]," W_or "re" W_install " " W_cudnn " whole from" W_on "e package") \
  /* cuDNN is mixed: its loader library is {loader}, the rest {found} */ \
  X(CUDNN_INNER_MIXED_LOADER, 206, ERROR, REFUSES, 43, cudnn, \
    W_cudnn W_is "mixed:" W_it "s loader " W_librar "y" W_is V_loader "," W_the "rest " V_found, \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, \
    "") \
  /* cuDNN[ {found}] is made for CUDA {found_cuda}, and {component} for CUDA {built_cuda} */ \
  X(CUDNN_OTHER_CUDA, 207, WARNING, INFORMS, 57, cudnn, \
    W_cudnn "[ " V_found "]" W_is "made" W_for W_cuda V_found_cuda "," W_and " " V_component W_for W_cuda V_built_cuda, \
    found_cudnn, picked_by, none, CUDNN_OTHER_CUDA, \
    W_put_a W_cudnn W_for W_cuda V_built_cuda W_first_in_path) \
  /* {component} uses {symbol}, which no library has */ \
  X(LIBRARY_LACKS_SYMBOL_EMPTY_SLOT, 214, ERROR, REFUSES, 14, library, \
    V_component " uses " V_symbol "," W_which "no " W_librar "y" W_has, \
    first_in, none, none, LIBRARY_LACKS_SYMBOL_EMPTY_SLOT, \
    W_update W_the W_librar "y," W_or W_rebuild) \
  /* {path}: symbol lookup error: {path}: undefined symbol: {symbol}[, version {library}] */ \
  X(LIBRARY_LACKS_SYMBOL_BY_THE_LOADER, 214, ERROR, REFUSES, 14, library, \
    V_path ": symbol lookup error: " V_path ": undefined symbol: " V_symbol "[, version " V_library "]", \
    none, none, none, LIBRARY_LACKS_SYMBOL_EMPTY_SLOT, \
    "") \
  /* the driver is too old for {code}[, which needs one that supports CUDA {needs_cuda}] */ \
  X(DRIVER_TOO_OLD, 301, ERROR, REFUSES, 30, driver, \
    "the " W_driver W_is "too old" W_for " " V_code "[," W_which W_needs W_on "e" W_that W_supports W_cuda V_needs_cuda "]", \
    needed_by, found_driver, gpus, DRIVER_TOO_OLD, \
    W_update W_the W_driver "[ to " V_needs_release W_or W_newer "];" W_or W_rebuild W_with " an " W_older " toolkit") \
  /* the driver is too old for {code} on compute capability {gpus}[, which needs one that supports CUDA {needs_cuda}] */ \
  X(DRIVER_TOO_OLD_FOR_CODE, 302, ERROR, REFUSES, 32, driver, \
    "the " W_driver W_is "too old" W_for " " V_code W_on W_compute_capability V_gpus "[," W_which W_needs W_on "e" W_that W_supports W_cuda V_needs_cuda "]", \
    needed_by, found_driver, none, DRIVER_TOO_OLD_FOR_CODE, \
    W_update W_the W_driver "[ to " V_needs_release W_or W_newer "];" W_or W_rebuild W_with " " V_archs W_added) \
  /* {component} has no code for compute capability {gpus} */ \
  X(NO_CODE_FOR_GPU, 303, ERROR, REFUSES, 31, driver, \
    V_component W_has W_no " code" W_for W_compute_capability V_gpus, \
    built_for, found_driver, none, NO_CODE_FOR_GPU, \
    W_rebuild W_it W_with " " V_archs W_added) \
  /* {component} has no code for compute capability {gpus} */ \
  X(NO_CODE_FOR_GPU_NO_LONGER_MADE, 303, ERROR, REFUSES, 31, driver, \
    V_component W_has W_no " code" W_for W_compute_capability V_gpus, \
    built_for, found_driver, none, NO_CODE_FOR_GPU_NO_LONGER_MADE, \
    W_rebuild W_it W_with " " V_archs W_added W_and W_cuda V_made_to W_or W_older ":" W_cuda V_built_cuda W_no " longer makes that") \
  /* {component} has no code for compute capability {gpus} */ \
  X(NO_CODE_FOR_GPU_NOT_YET_MADE, 303, ERROR, REFUSES, 31, driver, \
    V_component W_has W_no " code" W_for W_compute_capability V_gpus, \
    built_for, found_driver, none, NO_CODE_FOR_GPU_NOT_YET_MADE, \
    W_rebuild W_it W_with " " V_archs W_added W_and W_cuda V_made_from W_or W_newer ";" W_or "with PTX" W_of " an " W_older " arch" W_added) \
  /* libcuda and the kernel module do not belong together (803) */ \
  X(DRIVER_MISMATCH, 304, ERROR, REFUSES, 23, driver, \
    W_libcuda W_and W_the "kernel module do" W_no "t belong together (803)", \
    found_driver, gpus, none, DRIVER_MISMATCH, \
    "reboot after a " W_driver " " W_update ";" W_in " a container, remove" W_the W_libcuda W_that "it brought along[: " V_libcuda "]") \
  /* cuda-compat does not work with this GPU (804) */ \
  X(FORWARD_COMPAT_UNSUPPORTED, 305, ERROR, REFUSES, 24, driver, \
    "cuda-compat does" W_no "t work" W_with " this" W_gpu " (804)", \
    found_driver, gpus, none, FORWARD_COMPAT_UNSUPPORTED, \
    "take" W_the "f" W_older W_of " cuda-compat[, where " V_libcuda " lies,] out" W_of W_library_path W_and " " W_update W_the W_driver ";" W_or "hide" W_that "GPU" W_with " CUDA" W_visible_devices) \
  /* the libcuda found is the stub, which is for linking only (34) */ \
  X(STUB_DRIVER, 306, ERROR, REFUSES, 25, driver, \
    "the " W_libcuda " found" W_is "the stub," W_which "is" W_for " linking" W_on "ly (34)", \
    found_driver, gpus, none, STUB_DRIVER, \
    "take" W_the "stubs f" W_older "[, where " V_libcuda " lies,] out" W_of W_library_path W_and W_of " RPATH") \
  /* there is no libcuda.so.1, and {component} requires a GPU */ \
  X(DRIVER_MISSING, 307, ERROR, REFUSES, 20, driver, \
    "there" W_is "no " W_libcuda ".so.1," W_and " " V_component " requires a" W_gpu, \
    none, none, none, DRIVER_MISSING, \
    W_install W_the "NVIDIA " W_driver W_start_a_container W_with W_its_gpus) \
  /* CUDA_DISABLE_PTX_JIT=1 forbids what compute capability {gpus} needs: {code} */ \
  X(JIT_DISABLED, 308, ERROR, REFUSES, 34, driver, \
    "CUDA_DISABLE" W_ptx_jit "=1" W_for "bids what" W_compute_capability V_gpus " " W_needs ": " V_code, \
    needed_by, found_driver, none, JIT_DISABLED, \
    "unset CUDA_DISABLE" W_ptx_jit ";" W_or W_rebuild W_with " " V_archs W_added) \
  /* libnvidia-ptxjitcompiler.so.1 is missing, and compute capability {gpus} needs it for {code} (221) */ \
  X(JIT_MISSING, 309, ERROR, REFUSES, 35, driver, \
    "libnvidia-ptxjitcompiler.so.1" W_is "missing," W_and W_compute_capability V_gpus " " W_needs W_it W_for " " V_code " (221)", \
    needed_by, found_driver, none, JIT_MISSING, \
    W_install W_the W_driver " whole" W_start_a_container W_with " NVIDIA_DRIVER_CAPABILITIES=compute,utility;" W_or W_rebuild W_with " " V_archs W_added) \
  /* there is no GPU, and {component} requires one */ \
  X(GPU_MISSING, 310, ERROR, REFUSES, 21, driver, \
    "there" W_is "no" W_gpu "," W_and " " V_component " requires" W_on "e", \
    found_driver, none, none, GPU_MISSING, \
    W_nvidia_smi W_and " what CUDA" W_visible_devices " holds" W_start_a_container W_with W_its_gpus) \
  /* only part of the code in {component} is for compute capability {gpus} */ \
  X(PARTIAL_CODE, 311, ERROR, REFUSES, 36, driver, \
    "only part" W_of W_the "code" W_in " " V_component W_is "for" W_compute_capability V_gpus, \
    built_for, found_driver, none, PARTIAL_CODE, \
    W_rebuild " all" W_of W_it W_with " " V_archs W_added "," W_or "drop gpu.partial from " W_cudaguard ".toml") \
  /* no GPU can run both {component} and {other} */ \
  X(NO_GPU_FOR_ALL, 312, WARNING, INFORMS, 50, driver, \
    "no" W_gpu " can run both " V_component W_and " " V_other, \
    found_driver, gpus, none, NO_GPU_FOR_ALL, \
    W_rebuild " both" W_for W_on "e" W_of " " V_archs) \
  /* cuDNN {found} no longer works on compute capability {gpus} */ \
  X(CUDNN_TOO_NEW_FOR_GPU, 313, ERROR, REFUSES, 46, driver, \
    W_cudnn " " V_found W_no " longer works" W_on W_compute_capability V_gpus, \
    needed_by, found_driver, none, CUDNN_TOO_NEW_FOR_GPU, \
    W_put_a W_cudnn " " W_older " than " V_dropped_in W_first_in_path " (the program takes " V_min W_and " " W_newer ");" W_or "run" W_it W_on " a " W_newer W_gpu) \
  /* {library} is of CUDA {found_cuda}, older than CUDA {built_cuda}, which {component} was built with */ \
  X(CUDART_OLDER, 314, WARNING, INFORMS, 51, cudart, \
    V_library W_is "of" W_cuda V_found_cuda ", " W_older " than" W_cuda V_built_cuda "," W_which V_component W_was_built_with, \
    found_file, none, none, CUDART_OLDER, \
    W_put_a "f" W_older W_with W_the W_libcuda "rt" W_of W_cuda V_built_cuda W_first_in_path ";" W_or "link" W_it " statically") \
  /* {component} has no PTX for compute capability {gpus}, and CUDA_FORCE_PTX_JIT=1 allows nothing else */ \
  X(JIT_FORCED, 315, ERROR, REFUSES, 33, driver, \
    V_component W_has W_no " PTX" W_for W_compute_capability V_gpus "," W_and " CUDA_FORCE" W_ptx_jit "=1 allows" W_no "thing else", \
    built_for, found_driver, none, JIT_FORCED, \
    "unset CUDA_FORCE" W_ptx_jit) \
  /* cuDNN[ {found}] is made for CUDA {found_cuda}, and needs a driver that supports CUDA {needs_cuda} */ \
  X(CUDNN_NEEDS_NEWER_DRIVER, 316, ERROR, REFUSES, 26, driver, \
    W_cudnn "[ " V_found "]" W_is "made" W_for W_cuda V_found_cuda "," W_and " " W_needs " a " W_driver W_that W_supports W_cuda V_needs_cuda, \
    needed_by, found_driver, gpus, CUDNN_NEEDS_NEWER_DRIVER, \
    W_put_a W_cudnn W_for " CUDA[ " V_cuda_major "]" W_first_in_path ";" W_or W_update W_the W_driver) \
  /* cannot tell which cuDNN this is */ \
  X(CUDNN_CANNOT_TELL, 501, INFO, OPEN, 63, cudnn, \
    "cannot tell" W_which W_cudnn " this is", \
    built_with, found_cudnn, picked_by, CUDNN_CANNOT_TELL, \
    "see" W_that W_cudnn "'s" W_in "ner " W_librar "ies stand beside" W_it ": " W_doctor) \
  /* cannot tell which cuDNN {component} would get */ \
  X(CUDNN_CANNOT_TELL_NOT_LOADED, 501, INFO, OPEN, 63, cudnn, \
    "cannot tell" W_which W_cudnn " " V_component " would get", \
    built_with, none, none, CUDNN_CANNOT_TELL_NOT_LOADED, \
    "see" W_that W_cudnn " " V_min W_or W_newer W_is W_install "ed: " W_doctor) \
  /* the manifest of {component} is newer than this cudaguard: what this one knows of it was judged */ \
  X(NOTE_NEWER, 502, INFO, OPEN, 61, manifest, \
    "the " W_manifest W_of " " V_component W_is W_newer " than this " W_cudaguard ": what this" W_on "e knows" W_of W_it " was" W_judge "d", \
    none, none, none, NOTE_NEWER, \
    W_update " " W_cudaguard) \
  /* the manifest of {component} asks for what this cudaguard does not know: rows of kind {kinds} */ \
  X(NOTE_NEWER_ROWS, 502, INFO, OPEN, 61, manifest, \
    "the " W_manifest W_of " " V_component " asks" W_for " what this " W_cudaguard " does" W_no "t know: rows" W_of " kind " V_kinds, \
    none, none, none, NOTE_NEWER, \
    "") \
  /* a manifest in {file} is damaged: it was not judged */ \
  X(NOTE_DAMAGED, 503, INFO, OPEN, 62, manifest, \
    "a " W_manifest W_in " " V_file W_is "damaged:" W_it " was" W_no "t" W_judge "d", \
    because, none, none, NOTE_DAMAGED, \
    W_rebuild " " V_file ": something wrote" W_in "to" W_it " after" W_it " was linked") \
  /* no GPU is visible: nothing to judge */ \
  X(NOTHING_TO_SEE, 504, INFO, OPEN, 65, driver, \
    "no" W_gpu W_is "visible:" W_no "thing to" W_judge, \
    none, none, none, NOTHING_TO_SEE, \
    "") \
  /* cannot tell whether driver and GPU fit: some facts are missing */ \
  X(DRIVER_CANNOT_TELL, 505, INFO, OPEN, 64, driver, \
    W_cannot_tell W_driver W_and W_gpu " fit: some facts are missing", \
    found_driver, gpus, none, DRIVER_CANNOT_TELL, \
    "`cargo " W_cudaguard " doctor` says what" W_is "missing") \
  /* cannot tell whether driver and GPU fit: cuInit answers {answer} */ \
  X(DRIVER_CANNOT_TELL_ANSWER, 505, INFO, OPEN, 64, driver, \
    W_cannot_tell W_driver W_and W_gpu " fit: cuInit answers " V_answer, \
    found_driver, gpus, none, DRIVER_CANNOT_TELL_ANSWER, \
    W_nvidia_smi "," W_and W_the "kernel's log: dmesg | grep -i nvrm") \
  /* cannot tell whether {code} loads on this driver: nvcc {nvcc_major} made it, and NVIDIA promises that for drivers from {needs_release} on */ \
  X(DRIVER_CANNOT_TELL_UNSURE, 505, INFO, OPEN, 64, driver, \
    W_cannot_tell V_code " loads" W_on " this " W_driver ": nvcc " V_nvcc_major " made" W_it "," W_and " NVIDIA promises" W_that "for " W_driver "s from " V_needs_release W_on, \
    needed_by, found_driver, none, DRIVER_CANNOT_TELL_UNSURE, \
    W_update W_the W_driver " to " V_needs_release W_or W_newer " to be sure[;" W_or W_rebuild W_with W_cuda V_cuda_major "]") \
  /* cannot tell whether this driver compiles {code}: both are newer than the guard */ \
  X(DRIVER_CANNOT_TELL_NEWER_PTX, 505, INFO, OPEN, 64, driver, \
    W_cannot_tell "this " W_driver " compiles " V_code ": both are " W_newer " than" W_the "guard", \
    needed_by, found_driver, none, NO_CODE_FOR_GPU, \
    "") \
  /* cannot tell whether {library} is older than CUDA {built_cuda}, which {component} was built with: its file's name does not say */ \
  X(CUDART_UNKNOWN, 507, INFO, INFORMS, 67, cudart, \
    W_cannot_tell V_library W_is W_older " than" W_cuda V_built_cuda "," W_which V_component W_was_built_with ":" W_it "s file's name does" W_no "t say", \
    found_file, none, none, CUDART_OLDER, \
    "") \
  /* {left_out} findings are left out: the guard keeps {kept} at most */ \
  X(NOT_ALL_KEPT, 508, INFO, OPEN, 60, manifest, \
    V_left_out " findings are left out:" W_the "guard keeps " V_kept " at most", \
    none, none, none, NOT_ALL_KEPT, \
    "`cargo " W_cudaguard " verify` shows all" W_of " them") \
  /* {left_out} manifests were not judged: the guard keeps {kept} at most */ \
  X(NOT_ALL_KEPT_NOTES, 508, INFO, OPEN, 60, manifest, \
    V_left_out " " W_manifest "s were" W_no "t" W_judge "d:" W_the "guard keeps " V_kept " at most", \
    none, none, none, NOT_ALL_KEPT, \
    "")

/* name, subject */
#define SUBJECTS(X) \
  X(cudart, "cudart") \
  X(cudnn, "cuDNN") \
  X(driver, "driver") \
  X(library, "library") \
  X(manifest, "manifest")

/* name, line; `none` is no line */
#define LINES(X) \
  X(because, "because:    " V_why) \
  X(built_for, "built" W_for ":  " V_built_for) \
  X(built_with, "built" W_with ": " W_cudnn " " V_built " (" V_component ")") \
  X(first_in, "first" W_in ":   " V_library " " V_min) \
  X(found_cudnn, W_found W_cudnn "[ " V_found "]" W_in " " V_path "[," W_with " " V_beside "]") \
  X(found_driver, W_found W_driver "[ " V_driver "][" W_that W_supports W_cuda V_cuda "][" W_on " kernel module " V_kernel "][" W_in " " V_libcuda "]") \
  X(found_file, W_found V_path) \
  X(gpus, "GPUs:      " W_compute_capability V_gpus) \
  X(needed_by, "needed by:  " V_component) \
  X(picked_by, "picked by:  " V_picked_by)

/* name, kind */
#define FIELDS(X) \
  X(answer, NUMBER) /* what cuInit answered */ \
  X(archs, TEXT) /* the same GPUs as nvcc's -arch spells them: sm_75, sm_86 */ \
  X(beside, TEXT) /* a file in another folder that tells the version, or that does not fit */ \
  X(built, VERSION) /* what was built with */ \
  X(built_cuda, CUDA) /* the CUDA version that was built with */ \
  X(built_for, TEXT) /* what the package's code was built for */ \
  X(built_major, NUMBER) /* the major of what was built with */ \
  X(code, TEXT) /* the code or library that asks for something: sm_80, libcudart 13.0 */ \
  X(component, TEXT) /* name and version of the package that the finding is about */ \
  X(cuda, CUDA) /* the CUDA version that libcuda supports */ \
  X(cuda_major, NUMBER) /* the CUDA major that the driver supports */ \
  X(driver, RELEASE) /* the release of libcuda */ \
  X(dropped_in, VERSION) /* the first that no longer works on the GPU */ \
  X(file, TEXT) /* the name of the file that carries the manifest */ \
  X(found, VERSION) /* what was found */ \
  X(found_cuda, CUDA) /* the CUDA version that was found */ \
  X(gpus, TEXT) /* the GPUs that the finding is about, by compute capability: 7.5, 8.6 */ \
  X(kept, NUMBER) /* how many there is room for */ \
  X(kernel, RELEASE) /* the release of the kernel module, where it is another than libcuda's */ \
  X(kinds, TEXT) /* numbers with commas: kinds of rows */ \
  X(left_out, NUMBER) /* how many were left out */ \
  X(libcuda, TEXT) /* the file of libcuda */ \
  X(library, TEXT) /* a library by the name that is asked for */ \
  X(loader, CUDA) /* major and minor of a cuDNN, by the code of its loader library */ \
  X(made_from, CUDA) /* the first toolkit that makes code for those GPUs */ \
  X(made_to, CUDA) /* the last toolkit that makes it */ \
  X(min, VERSION) /* the oldest that the program accepts */ \
  X(needs_cuda, CUDA) /* the CUDA version that the driver must support */ \
  X(needs_release, RELEASE) /* the oldest driver that will do */ \
  X(nvcc_major, NUMBER) /* the CUDA major of the nvcc that made the code */ \
  X(other, TEXT) /* name and version of the second package */ \
  X(part, VERSION) /* the version of that library, where it is not the one of the rest */ \
  X(path, TEXT) /* the file that was found */ \
  X(picked_by, TEXT) /* why the loader takes that file */ \
  X(symbol, TEXT) /* a function */ \
  X(why, TEXT) /* why something could not be read */

/* name, what many sentences say */
#define PIECES(X) \
  X(compute_capability, " compute capability ") \
  X(first_in_path, " first in LD_LIBRARY_PATH") \
  X(cannot_tell, "cannot tell whether ") \
  X(was_built_with, " was built with") \
  X(start_a_container, "; start a container") \
  X(rebuild, "rebuild") \
  X(cudaguard, "cudaguard") \
  X(cudnn, "cuDNN") \
  X(driver, "driver") \
  X(cuda, " CUDA ") \
  X(which, " which ") \
  X(newer, "newer") \
  X(that, " that ") \
  X(with, " with") \
  X(the, " the ") \
  X(is, " is ") \
  X(and, " and") \
  X(or, " or ") \
  X(for, " for") \
  X(older, "older") \
  X(install, "install") \
  X(update, "update") \
  X(added, " added") \
  X(library_path, " LD_LIBRARY_PATH") \
  X(libcuda, "libcuda") \
  X(gpu, " GPU") \
  X(manifest, "manifest") \
  X(supports, "supports") \
  X(it, " it") \
  X(on, " on") \
  X(no, " no") \
  X(of, " of") \
  X(librar, "librar") \
  X(has, " has") \
  X(visible_devices, "_VISIBLE_DEVICES") \
  X(in, " in") \
  X(ptx_jit, "_PTX_JIT") \
  X(needs, "needs") \
  X(its_gpus, " its GPUs (--gpus all)") \
  X(found, "found:      ") \
  X(put_a, "put a ") \
  X(doctor, "`cargo cudaguard doctor` lists every candidate") \
  X(judge, " judge") \
  X(nvidia_smi, "see what nvidia-smi says")

/* How each stands in the words: one byte, its place among these. */
#define V_answer "\200"
#define V_archs "\201"
#define V_beside "\202"
#define V_built "\203"
#define V_built_cuda "\204"
#define V_built_for "\205"
#define V_built_major "\206"
#define V_code "\207"
#define V_component "\210"
#define V_cuda "\211"
#define V_cuda_major "\212"
#define V_driver "\213"
#define V_dropped_in "\214"
#define V_file "\215"
#define V_found "\216"
#define V_found_cuda "\217"
#define V_gpus "\220"
#define V_kept "\221"
#define V_kernel "\222"
#define V_kinds "\223"
#define V_left_out "\224"
#define V_libcuda "\225"
#define V_library "\226"
#define V_loader "\227"
#define V_made_from "\230"
#define V_made_to "\231"
#define V_min "\232"
#define V_needs_cuda "\233"
#define V_needs_release "\234"
#define V_nvcc_major "\235"
#define V_other "\236"
#define V_part "\237"
#define V_path "\240"
#define V_picked_by "\241"
#define V_symbol "\242"
#define V_why "\243"
#define W_compute_capability "\244"
#define W_first_in_path "\245"
#define W_cannot_tell "\246"
#define W_was_built_with "\247"
#define W_start_a_container "\250"
#define W_rebuild "\251"
#define W_cudaguard "\252"
#define W_cudnn "\253"
#define W_driver "\254"
#define W_cuda "\255"
#define W_which "\256"
#define W_newer "\257"
#define W_that "\260"
#define W_with "\261"
#define W_the "\262"
#define W_is "\263"
#define W_and "\264"
#define W_or "\265"
#define W_for "\266"
#define W_older "\267"
#define W_install "\270"
#define W_update "\271"
#define W_added "\272"
#define W_library_path "\273"
#define W_libcuda "\274"
#define W_gpu "\275"
#define W_manifest "\276"
#define W_supports "\277"
#define W_it "\300"
#define W_on "\301"
#define W_no "\302"
#define W_of "\303"
#define W_librar "\304"
#define W_has "\305"
#define W_visible_devices "\306"
#define W_in "\307"
#define W_ptx_jit "\310"
#define W_needs "\311"
#define W_its_gpus "\312"
#define W_found "\313"
#define W_put_a "\314"
#define W_doctor "\315"
#define W_judge "\316"
#define W_nvidia_smi "\317"
