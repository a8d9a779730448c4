/* Written by `cargo findings` from guard-core/data/findings.toml; a test keeps it so. What the shim speaks, and
 * the placeholders in it: that table says what each column means, and how the words are read. */

/* name, code, severity, verdict, rank, subject, sentence, its three lines, the finding that has the same hint, hint */
#define FINDINGS(X) \
  X(CUDNN_OTHER_MAJOR, 201, ERROR, REFUSES, 41, cudnn, \
    W_cudnn "[ " V_found "]" W_is "another major version than " W_cudnn " " V_built "," W_which V_component W_was_built_with, \
    built_with, found_cudnn, picked_by, CUDNN_OTHER_MAJOR, \
    "install " W_cudnn " " V_built_major " (" V_min " or " W_newer ") where" W_the "loader looks first; or " W_rebuild " against" W_the "one found") \
  X(CUDNN_OLDER, 202, ERROR, REFUSES, 44, cudnn, \
    W_cudnn " " V_found W_is "older than " W_cudnn " " V_built "," W_which V_component W_was_built_with, \
    built_with, found_cudnn, picked_by, CUDNN_OLDER, \
    "update it, or put a folder" W_with " " W_cudnn " " V_min " or " W_newer W_first_in_path "; or " W_rebuild " against " W_cudnn " " V_found) \
  X(CUDNN_OLDER_PATCH, 203, ERROR, REFUSES, 45, cudnn, \
    W_cudnn " " V_found W_is "an older patch than " W_cudnn " " V_built "," W_which V_component W_was_built_with, \
    built_with, found_cudnn, picked_by, CUDNN_OLDER, \
    "") \
  X(CUDNN_INNER_MISSING, 204, ERROR, REFUSES, 42, cudnn, \
    W_cudnn " lacks " V_library ": calls" W_that "need it fail", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, \
    "reinstall " W_cudnn " whole from one package") \
  X(CUDNN_INNER_MISSING_NEEDED, 204, ERROR, REFUSES, 42, cudnn, \
    W_cudnn " lacks " V_library ":" W_the "first call would abort", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, \
    "") \
  X(CUDNN_ABSENT, 205, ERROR, REFUSES, 40, cudnn, \
    "no " W_cudnn " was found: no folder" W_that "the loader looks into has " V_library, \
    built_with, none, none, CUDNN_ABSENT, \
    "install " W_cudnn " " V_min " or " W_newer ", or name its folder in LD_LIBRARY_PATH") \
  X(CUDNN_INNER_MIXED, 206, ERROR, REFUSES, 43, cudnn, \
    W_cudnn W_is "mixed: " V_library W_is V_part "," W_the "rest " V_found, \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MIXED, \
    "remove" W_the "stray copy[ of " V_library " in " V_beside "], or reinstall " W_cudnn " whole from one package") \
  X(CUDNN_INNER_MIXED_LOADER, 206, ERROR, REFUSES, 43, cudnn, \
    W_cudnn W_is "mixed: its loader library" W_is V_loader "," W_the "rest " V_found, \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, \
    "") \
  X(CUDNN_OTHER_CUDA, 207, WARNING, INFORMS, 57, cudnn, \
    W_cudnn "[ " V_found "]" W_is "made for" W_cuda V_found_cuda ", and " V_component " for" W_cuda V_built_cuda, \
    found_cudnn, picked_by, none, CUDNN_OTHER_CUDA, \
    "put a " W_cudnn " for" W_cuda V_built_cuda W_first_in_path) \
  X(DRIVER_TOO_OLD, 301, ERROR, REFUSES, 30, driver, \
    "the " W_driver W_is "too old for " V_code "[," W_which "needs one" W_that "supports" W_cuda V_needs_cuda "]", \
    needed_by, found_driver, gpus, DRIVER_TOO_OLD, \
    "update" W_the W_driver "[ to " V_needs_release " or " W_newer "]; or " W_rebuild W_with " an older toolkit") \
  X(DRIVER_TOO_OLD_FOR_CODE, 302, ERROR, REFUSES, 32, driver, \
    "the " W_driver W_is "too old for " V_code " on" W_compute_capability V_gpus "[," W_which "needs one" W_that "supports" W_cuda V_needs_cuda "]", \
    needed_by, found_driver, none, DRIVER_TOO_OLD_FOR_CODE, \
    "update" W_the W_driver "[ to " V_needs_release " or " W_newer "]; or " W_rebuild W_with " " V_archs " added") \
  X(NO_CODE_FOR_GPU, 303, ERROR, REFUSES, 31, driver, \
    V_component " has no code for" W_compute_capability V_gpus, \
    built_for, found_driver, none, NO_CODE_FOR_GPU, \
    W_rebuild " it" W_with " " V_archs " added") \
  X(NO_CODE_FOR_GPU_NO_LONGER_MADE, 303, ERROR, REFUSES, 31, driver, \
    V_component " has no code for" W_compute_capability V_gpus, \
    built_for, found_driver, none, NO_CODE_FOR_GPU_NO_LONGER_MADE, \
    W_rebuild " it" W_with " " V_archs " added and" W_cuda V_made_to " or older:" W_cuda V_built_cuda " no longer makes that") \
  X(NO_CODE_FOR_GPU_NOT_YET_MADE, 303, ERROR, REFUSES, 31, driver, \
    V_component " has no code for" W_compute_capability V_gpus, \
    built_for, found_driver, none, NO_CODE_FOR_GPU_NOT_YET_MADE, \
    W_rebuild " it" W_with " " V_archs " added and" W_cuda V_made_from " or " W_newer "; or" W_with " PTX of an older arch added") \
  X(DRIVER_MISMATCH, 304, ERROR, REFUSES, 23, driver, \
    "libcuda and" W_the "kernel module do not belong together (803)", \
    found_driver, gpus, none, DRIVER_MISMATCH, \
    "reboot after a " W_driver " update; in a container, remove" W_the "libcuda" W_that "it brought along[: " V_libcuda "]") \
  X(FORWARD_COMPAT_UNSUPPORTED, 305, ERROR, REFUSES, 24, driver, \
    "cuda-compat does not work" W_with " this GPU (804)", \
    found_driver, gpus, none, FORWARD_COMPAT_UNSUPPORTED, \
    "take" W_the "folder of cuda-compat[, where " V_libcuda " lies,] out of LD_LIBRARY_PATH and update" W_the W_driver "; or hide" W_that "GPU" W_with " CUDA_VISIBLE_DEVICES") \
  X(STUB_DRIVER, 306, ERROR, REFUSES, 25, driver, \
    "the libcuda found" W_is "the stub," W_which "is for linking only (34)", \
    found_driver, gpus, none, STUB_DRIVER, \
    "take" W_the "stubs folder[, where " V_libcuda " lies,] out of LD_LIBRARY_PATH and of RPATH") \
  X(DRIVER_MISSING, 307, ERROR, REFUSES, 20, driver, \
    "there" W_is "no libcuda.so.1, and " V_component " requires a GPU", \
    none, none, none, DRIVER_MISSING, \
    "install" W_the "NVIDIA " W_driver W_start_a_container W_with " its GPUs (--gpus all)") \
  X(JIT_DISABLED, 308, ERROR, REFUSES, 34, driver, \
    "CUDA_DISABLE_PTX_JIT=1 forbids what" W_compute_capability V_gpus " needs: " V_code, \
    needed_by, found_driver, none, JIT_DISABLED, \
    "unset CUDA_DISABLE_PTX_JIT; or " W_rebuild W_with " " V_archs " added") \
  X(JIT_MISSING, 309, ERROR, REFUSES, 35, driver, \
    "libnvidia-ptxjitcompiler.so.1" W_is "missing, and" W_compute_capability V_gpus " needs it for " V_code " (221)", \
    needed_by, found_driver, none, JIT_MISSING, \
    "install" W_the W_driver " whole" W_start_a_container W_with " NVIDIA_DRIVER_CAPABILITIES=compute,utility; or " W_rebuild W_with " " V_archs " added") \
  X(GPU_MISSING, 310, ERROR, REFUSES, 21, driver, \
    "there" W_is "no GPU, and " V_component " requires one", \
    found_driver, none, none, GPU_MISSING, \
    "see what nvidia-smi says and what CUDA_VISIBLE_DEVICES holds" W_start_a_container W_with " its GPUs (--gpus all)") \
  X(PARTIAL_CODE, 311, ERROR, REFUSES, 36, driver, \
    "only part of" W_the "code in " V_component W_is "for" W_compute_capability V_gpus, \
    built_for, found_driver, none, PARTIAL_CODE, \
    W_rebuild " all of it" W_with " " V_archs " added, or drop gpu.partial from " W_cudaguard ".toml") \
  X(NO_GPU_FOR_ALL, 312, WARNING, INFORMS, 50, driver, \
    "no GPU can run both " V_component " and " V_other, \
    found_driver, gpus, none, NO_GPU_FOR_ALL, \
    W_rebuild " both for one and" W_the "same of " V_archs) \
  X(CUDNN_TOO_NEW_FOR_GPU, 313, ERROR, REFUSES, 46, driver, \
    W_cudnn " " V_found " no longer works on" W_compute_capability V_gpus, \
    needed_by, found_driver, none, CUDNN_TOO_NEW_FOR_GPU, \
    "put a " W_cudnn " older than " V_dropped_in W_first_in_path " (the program takes " V_min " and " W_newer "); or run it on a " W_newer " GPU") \
  X(CUDART_OLDER, 314, WARNING, INFORMS, 51, cudart, \
    V_library W_is "of" W_cuda V_found_cuda ", older than" W_cuda V_built_cuda "," W_which V_component W_was_built_with, \
    found_file, none, none, CUDART_OLDER, \
    "put a folder" W_with W_the "libcudart of" W_cuda V_built_cuda W_first_in_path "; or link it statically") \
  X(JIT_FORCED, 315, ERROR, REFUSES, 33, driver, \
    V_component " has no PTX for" W_compute_capability V_gpus ", and CUDA_FORCE_PTX_JIT=1 allows nothing else", \
    built_for, found_driver, none, JIT_FORCED, \
    "unset CUDA_FORCE_PTX_JIT") \
  X(CUDNN_NEEDS_NEWER_DRIVER, 316, ERROR, REFUSES, 26, driver, \
    W_cudnn "[ " V_found "]" W_is "made for" W_cuda V_found_cuda ", and needs a " W_driver W_that "supports" W_cuda V_needs_cuda, \
    needed_by, found_driver, gpus, CUDNN_NEEDS_NEWER_DRIVER, \
    "put a " W_cudnn " for CUDA[ " V_cuda_major "]" W_first_in_path "; or update" W_the W_driver) \
  X(CUDNN_CANNOT_TELL, 501, INFO, OPEN, 63, cudnn, \
    "cannot tell" W_which W_cudnn " this is", \
    built_with, found_cudnn, picked_by, CUDNN_CANNOT_TELL, \
    "see" W_that W_cudnn "'s inner libraries stand beside it: `cargo " W_cudaguard " doctor` lists every one" W_that "could be taken") \
  X(CUDNN_CANNOT_TELL_NOT_LOADED, 501, INFO, OPEN, 63, cudnn, \
    "cannot tell" W_which W_cudnn " " V_component " would get", \
    built_with, none, none, CUDNN_CANNOT_TELL_NOT_LOADED, \
    "see" W_that W_cudnn " " V_min " or " W_newer W_is "installed and can be read: `cargo " W_cudaguard " doctor` lists every one" W_that "could be taken") \
  X(NOTE_NEWER, 502, INFO, OPEN, 61, manifest, \
    "the manifest of " V_component W_is W_newer " than this " W_cudaguard ": what this one knows of it was judged", \
    none, none, none, NOTE_NEWER, \
    "update " W_cudaguard) \
  X(NOTE_NEWER_ROWS, 502, INFO, OPEN, 61, manifest, \
    "the manifest of " V_component " asks for what this " W_cudaguard " does not know: rows of kind " V_kinds, \
    none, none, none, NOTE_NEWER, \
    "") \
  X(NOTE_DAMAGED, 503, INFO, OPEN, 62, manifest, \
    "a manifest in " V_file W_is "damaged: it was not judged", \
    because, none, none, NOTE_DAMAGED, \
    W_rebuild " " V_file ": something wrote into it after it was linked") \
  X(NOTHING_TO_SEE, 504, INFO, OPEN, 65, driver, \
    "no GPU" W_is "visible: nothing to judge", \
    none, none, none, NOTHING_TO_SEE, \
    "") \
  X(DRIVER_CANNOT_TELL, 505, INFO, OPEN, 64, driver, \
    W_cannot_tell W_driver " and GPU fit: not everything about them" W_is "known", \
    found_driver, gpus, none, DRIVER_CANNOT_TELL, \
    "`cargo " W_cudaguard " doctor` says what" W_is "missing") \
  X(DRIVER_CANNOT_TELL_ANSWER, 505, INFO, OPEN, 64, driver, \
    W_cannot_tell W_driver " and GPU fit: cuInit answers " V_answer, \
    found_driver, gpus, none, DRIVER_CANNOT_TELL_ANSWER, \
    "see what nvidia-smi says, and" W_the "kernel's log: dmesg | grep -i nvrm") \
  X(DRIVER_CANNOT_TELL_UNSURE, 505, INFO, OPEN, 64, driver, \
    W_cannot_tell V_code " loads on this " W_driver ": nvcc " V_nvcc_major " made it, and NVIDIA promises" W_that "for " W_driver "s from " V_needs_release " on", \
    needed_by, found_driver, none, DRIVER_CANNOT_TELL_UNSURE, \
    "update" W_the W_driver " to " V_needs_release " or " W_newer " to be sure[; or " W_rebuild W_with W_cuda V_cuda_major "]") \
  X(DRIVER_CANNOT_TELL_NEWER_PTX, 505, INFO, OPEN, 64, driver, \
    W_cannot_tell "this " W_driver " compiles " V_code ": both are " W_newer " than" W_the "guard", \
    needed_by, found_driver, none, NO_CODE_FOR_GPU, \
    "") \
  X(CUDART_UNKNOWN, 507, INFO, INFORMS, 67, cudart, \
    W_cannot_tell V_library W_is "older than" W_cuda V_built_cuda "," W_which V_component W_was_built_with ": its file's name does not say", \
    found_file, none, none, CUDART_UNKNOWN, \
    "put a folder" W_with W_the "libcudart of" W_cuda V_built_cuda W_first_in_path " to be sure; or link it statically") \
  X(NOT_ALL_KEPT, 508, INFO, OPEN, 60, manifest, \
    V_left_out " findings are left out:" W_the "guard keeps " V_kept " at most", \
    none, none, none, NOT_ALL_KEPT, \
    "`cargo " W_cudaguard " verify` shows all of them") \
  X(NOT_ALL_KEPT_NOTES, 508, INFO, OPEN, 60, manifest, \
    V_left_out " manifests were not judged:" W_the "guard keeps " V_kept " at most", \
    none, none, none, NOT_ALL_KEPT, \
    "")

/* name, subject */
#define SUBJECTS(X) \
  X(cudart, "cudart") \
  X(cudnn, "cuDNN") \
  X(driver, "driver") \
  X(manifest, "manifest")

/* name, line; `none` is no line */
#define LINES(X) \
  X(because, "because:    " V_why) \
  X(built_for, "built for:  " V_built_for) \
  X(built_with, "built" W_with ": " W_cudnn " " V_built " (" V_component ")") \
  X(found_cudnn, "found:      " W_cudnn "[ " V_found "] in " V_path "[," W_with " " V_beside "]") \
  X(found_driver, "found:      " W_driver "[ " V_driver "][" W_that "supports" W_cuda V_cuda "][ on kernel module " V_kernel "][ in " V_libcuda "]") \
  X(found_file, "found:      " V_path) \
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
  X(is, " is ")

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
#define V_why "\242"
#define W_compute_capability "\243"
#define W_first_in_path "\244"
#define W_cannot_tell "\245"
#define W_was_built_with "\246"
#define W_start_a_container "\247"
#define W_rebuild "\250"
#define W_cudaguard "\251"
#define W_cudnn "\252"
#define W_driver "\253"
#define W_cuda "\254"
#define W_which "\255"
#define W_newer "\256"
#define W_that "\257"
#define W_with "\260"
#define W_the "\261"
#define W_is "\262"
