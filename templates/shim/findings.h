/* Written by `cargo findings` from guard-core/data/findings.toml; a test keeps it so. What the shim speaks, and
 * the placeholders in it: that table says what each column means, and how the words are read. */

/* name, code, severity, verdict, rank, subject, sentence, its three lines, the finding that has the same hint, hint */
#define FINDINGS(X) \
  X(CUDNN_OTHER_MAJOR, 201, ERROR, REFUSES, 41, cudnn, \
    "cuDNN[ " V_found "] is of another major than cuDNN " V_built ", which " V_component " was built with", \
    built_with, found_cudnn, picked_by, CUDNN_OTHER_MAJOR, \
    "install cuDNN " V_built_major " (" V_min " or newer) where the loader looks first; or rebuild against the one found") \
  X(CUDNN_OLDER, 202, ERROR, REFUSES, 44, cudnn, \
    "cuDNN " V_found " is older than cuDNN " V_built ", which " V_component " was built with", \
    built_with, found_cudnn, picked_by, CUDNN_OLDER, \
    "update it, or put a folder with cuDNN " V_min " or newer first in LD_LIBRARY_PATH; or rebuild against cuDNN " V_found) \
  X(CUDNN_OLDER_PATCH, 203, ERROR, REFUSES, 45, cudnn, \
    "cuDNN " V_found " is an older patch than cuDNN " V_built ", which " V_component " was built with", \
    built_with, found_cudnn, picked_by, CUDNN_OLDER, \
    "") \
  X(CUDNN_INNER_MISSING, 204, ERROR, REFUSES, 42, cudnn, \
    "cuDNN's library " V_library " is missing", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, \
    "reinstall cuDNN whole, so that all its libraries stand in one folder") \
  X(CUDNN_INNER_MISSING_NEEDED, 204, ERROR, REFUSES, 42, cudnn, \
    "cuDNN's library " V_library " is missing: the first call would abort", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, \
    "") \
  X(CUDNN_ABSENT, 205, ERROR, REFUSES, 40, cudnn, \
    "no cuDNN was found: no folder that the loader looks into has " V_library, \
    built_with, none, none, CUDNN_ABSENT, \
    "install cuDNN " V_min " or newer, or name its folder in LD_LIBRARY_PATH") \
  X(CUDNN_INNER_MIXED, 206, ERROR, REFUSES, 43, cudnn, \
    "cuDNN is mixed: " V_library " is " V_part ", the rest " V_found, \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MIXED, \
    "remove the stray copy[ of " V_library " in " V_beside "], or reinstall cuDNN whole from one package") \
  X(CUDNN_INNER_MIXED_LOADER, 206, ERROR, REFUSES, 43, cudnn, \
    "cuDNN is mixed: its loader library is " V_loader ", the rest " V_found, \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MIXED_LOADER, \
    "reinstall cuDNN whole from one package") \
  X(CUDNN_OTHER_CUDA, 207, WARNING, INFORMS, 57, cudnn, \
    "cuDNN[ " V_found "] is made for CUDA " V_found_cuda ", and " V_component " for CUDA " V_built_cuda, \
    found_cudnn, picked_by, none, CUDNN_OTHER_CUDA, \
    "put the cuDNN for that CUDA first in LD_LIBRARY_PATH") \
  X(DRIVER_TOO_OLD, 301, ERROR, REFUSES, 30, driver, \
    "the driver is too old for " V_code "[, which needs one that supports CUDA " V_needs_cuda "]", \
    needed_by, found_driver, gpus, DRIVER_TOO_OLD, \
    "update the driver[ to " V_needs_release " or newer]; or rebuild with an older toolkit") \
  X(DRIVER_TOO_OLD_FOR_CODE, 302, ERROR, REFUSES, 32, driver, \
    "the driver is too old for " V_code " on compute capability " V_gpus "[, which needs one that supports CUDA " V_needs_cuda "]", \
    needed_by, found_driver, none, DRIVER_TOO_OLD_FOR_CODE, \
    "update the driver[ to " V_needs_release " or newer]; or rebuild with " V_archs " added") \
  X(NO_CODE_FOR_GPU, 303, ERROR, REFUSES, 31, driver, \
    V_component " has no code for compute capability " V_gpus, \
    built_for, found_driver, none, NO_CODE_FOR_GPU, \
    "rebuild it with " V_archs " added") \
  X(NO_CODE_FOR_GPU_NO_LONGER_MADE, 303, ERROR, REFUSES, 31, driver, \
    V_component " has no code for compute capability " V_gpus, \
    built_for, found_driver, none, NO_CODE_FOR_GPU_NO_LONGER_MADE, \
    "rebuild it with " V_archs " added, by CUDA " V_made_to " or older: CUDA " V_built_cuda " no longer makes that") \
  X(NO_CODE_FOR_GPU_NOT_YET_MADE, 303, ERROR, REFUSES, 31, driver, \
    V_component " has no code for compute capability " V_gpus, \
    built_for, found_driver, none, NO_CODE_FOR_GPU_NOT_YET_MADE, \
    "rebuild it with " V_archs " added, by CUDA " V_made_from " or newer; or with PTX of an older arch added") \
  X(DRIVER_MISMATCH, 304, ERROR, REFUSES, 23, driver, \
    "libcuda and the kernel module do not belong together (803)", \
    found_driver, gpus, none, DRIVER_MISMATCH, \
    "reboot after a driver update; in a container, remove the libcuda that it brought along[: " V_libcuda "]") \
  X(FORWARD_COMPAT_UNSUPPORTED, 305, ERROR, REFUSES, 24, driver, \
    "cuda-compat does not work with this GPU (804)", \
    found_driver, gpus, none, FORWARD_COMPAT_UNSUPPORTED, \
    "take the folder of cuda-compat[, where " V_libcuda " lies,] out of LD_LIBRARY_PATH and update the driver; or hide that GPU with CUDA_VISIBLE_DEVICES") \
  X(STUB_DRIVER, 306, ERROR, REFUSES, 25, driver, \
    "the libcuda found is the stub, which is for linking only (34)", \
    found_driver, gpus, none, STUB_DRIVER, \
    "take the stubs folder[, where " V_libcuda " lies,] out of LD_LIBRARY_PATH and of RPATH") \
  X(DRIVER_MISSING, 307, ERROR, REFUSES, 20, driver, \
    "there is no libcuda.so.1, and " V_component " requires a GPU", \
    none, none, none, DRIVER_MISSING, \
    "install the NVIDIA driver; start a container with its GPUs (--gpus all)") \
  X(JIT_DISABLED, 308, ERROR, REFUSES, 34, driver, \
    "CUDA_DISABLE_PTX_JIT=1 forbids what compute capability " V_gpus " needs: " V_code, \
    needed_by, found_driver, none, JIT_DISABLED, \
    "unset CUDA_DISABLE_PTX_JIT; or rebuild with " V_archs " added") \
  X(JIT_MISSING, 309, ERROR, REFUSES, 35, driver, \
    "libnvidia-ptxjitcompiler.so.1 is missing, and compute capability " V_gpus " needs it for " V_code " (221)", \
    needed_by, found_driver, none, JIT_MISSING, \
    "install the driver whole; start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility; or rebuild with " V_archs " added") \
  X(GPU_MISSING, 310, ERROR, REFUSES, 21, driver, \
    "there is no GPU, and " V_component " requires one", \
    found_driver, none, none, GPU_MISSING, \
    "see what nvidia-smi says and what CUDA_VISIBLE_DEVICES holds; start a container with its GPUs (--gpus all)") \
  X(PARTIAL_CODE, 311, ERROR, REFUSES, 36, driver, \
    "only a part of the code in " V_component " is for compute capability " V_gpus, \
    built_for, found_driver, none, PARTIAL_CODE, \
    "rebuild all of it with " V_archs " added, or drop gpu.partial from cudaguard.toml") \
  X(NO_GPU_FOR_ALL, 312, WARNING, INFORMS, 50, driver, \
    "no GPU is fit for both " V_component " and " V_other, \
    found_driver, gpus, none, NO_GPU_FOR_ALL, \
    "rebuild both for one and the same of " V_archs) \
  X(CUDNN_TOO_NEW_FOR_GPU, 313, ERROR, REFUSES, 46, driver, \
    "cuDNN " V_found " no longer works on compute capability " V_gpus, \
    needed_by, found_driver, none, CUDNN_TOO_NEW_FOR_GPU, \
    "put a cuDNN older than " V_dropped_in " first in LD_LIBRARY_PATH (the program takes " V_min " and newer); or run it on a newer GPU") \
  X(CUDART_OLDER, 314, WARNING, INFORMS, 51, cudart, \
    V_library " is of CUDA " V_found_cuda ", older than CUDA " V_built_cuda ", which " V_component " was built with", \
    found_file, none, none, CUDART_OLDER, \
    "put a folder with the libcudart of CUDA " V_built_cuda " first in LD_LIBRARY_PATH; or link it statically") \
  X(JIT_FORCED, 315, ERROR, REFUSES, 33, driver, \
    V_component " has no PTX for compute capability " V_gpus ", and CUDA_FORCE_PTX_JIT=1 passes over all else", \
    built_for, found_driver, none, JIT_FORCED, \
    "unset CUDA_FORCE_PTX_JIT") \
  X(CUDNN_NEEDS_NEWER_DRIVER, 316, ERROR, REFUSES, 26, driver, \
    "cuDNN[ " V_found "] is made for CUDA " V_found_cuda ", and needs a driver that supports CUDA " V_needs_cuda, \
    needed_by, found_driver, gpus, CUDNN_NEEDS_NEWER_DRIVER, \
    "put a cuDNN for CUDA[ " V_cuda_major "] first in LD_LIBRARY_PATH; or update the driver") \
  X(CUDNN_CANNOT_TELL, 501, INFO, OPEN, 63, cudnn, \
    "cannot tell which cuDNN this is", \
    built_with, found_cudnn, picked_by, CUDNN_CANNOT_TELL, \
    "see that cuDNN's inner libraries stand beside it: `cargo cudaguard doctor` lists every one that could be taken") \
  X(CUDNN_CANNOT_TELL_NOT_LOADED, 501, INFO, OPEN, 63, cudnn, \
    "cannot tell which cuDNN " V_component " would get", \
    built_with, none, none, CUDNN_CANNOT_TELL_NOT_LOADED, \
    "see that cuDNN " V_min " or newer is installed and can be read: `cargo cudaguard doctor` lists every one that could be taken") \
  X(NOTE_NEWER, 502, INFO, OPEN, 61, manifest, \
    "the manifest of " V_component " is of a newer revision than this cudaguard: judged as far as it is known", \
    none, none, none, NOTE_NEWER, \
    "update cudaguard") \
  X(NOTE_NEWER_ROWS, 502, INFO, OPEN, 61, manifest, \
    "the manifest of " V_component " asks what this cudaguard does not know yet: rows of kind " V_kinds, \
    none, none, none, NOTE_NEWER, \
    "") \
  X(NOTE_DAMAGED, 503, INFO, OPEN, 62, manifest, \
    "a manifest in " V_file " is damaged: it was left out", \
    because, none, none, NOTE_DAMAGED, \
    "rebuild " V_file ": something wrote into it after it was linked") \
  X(NOTHING_TO_SEE, 504, INFO, OPEN, 65, driver, \
    "no GPU to be seen: nothing to judge", \
    none, none, none, NOTHING_TO_SEE, \
    "") \
  X(DRIVER_CANNOT_TELL, 505, INFO, OPEN, 64, driver, \
    "cannot tell whether driver and GPU fit: not all is known of them", \
    found_driver, gpus, none, DRIVER_CANNOT_TELL, \
    "`cargo cudaguard doctor` says what is missing") \
  X(DRIVER_CANNOT_TELL_ANSWER, 505, INFO, OPEN, 64, driver, \
    "cannot tell whether driver and GPU fit: cuInit answers " V_answer, \
    found_driver, gpus, none, DRIVER_CANNOT_TELL_ANSWER, \
    "see what nvidia-smi says, and the kernel's log: dmesg | grep -i nvrm") \
  X(DRIVER_CANNOT_TELL_UNSURE, 505, INFO, OPEN, 64, driver, \
    "cannot tell whether " V_code " loads on this driver: nvcc " V_nvcc_major " made it, and NVIDIA promises that for drivers from " V_needs_release " on", \
    needed_by, found_driver, none, DRIVER_CANNOT_TELL_UNSURE, \
    "update the driver to " V_needs_release " or newer to be sure[; or rebuild with CUDA " V_cuda_major "]") \
  X(CUDART_UNKNOWN, 507, INFO, INFORMS, 67, cudart, \
    "cannot tell whether " V_library " is older than CUDA " V_built_cuda ", which " V_component " was built with: its file's name does not say", \
    found_file, none, none, CUDART_UNKNOWN, \
    "put a folder with the libcudart of CUDA " V_built_cuda " first in LD_LIBRARY_PATH to be sure; or link it statically") \
  X(NOT_ALL_KEPT, 508, INFO, OPEN, 60, manifest, \
    V_left_out " findings are not told: the guard keeps " V_kept " at most", \
    none, none, none, NOT_ALL_KEPT, \
    "`cargo cudaguard verify` tells all of them") \
  X(NOT_ALL_KEPT_NOTES, 508, INFO, OPEN, 60, manifest, \
    V_left_out " manifests were not judged: the guard keeps " V_kept " at most", \
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
  X(built_with, "built with: cuDNN " V_built " (" V_component ")") \
  X(found_cudnn, "found:      cuDNN[ " V_found "] in " V_path "[, with " V_beside "]") \
  X(found_driver, "found:      driver[ " V_driver "][ that supports CUDA " V_cuda "][ on kernel module " V_kernel "][ in " V_libcuda "]") \
  X(found_file, "found:      " V_path) \
  X(gpus, "GPUs:       compute capability " V_gpus) \
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
