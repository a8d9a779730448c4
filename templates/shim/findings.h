/* Written by `cargo findings` from guard-core/data/findings.toml; a test keeps it so. What the shim speaks, and
 * the placeholders in it: that table says what each column means, and how the words are read. In a text each
 * placeholder is one byte, from 0x80 on, and behind those what many texts have in common. */

/* name, code, severity, verdict, rank, subject, sentence, its three lines, the finding that has the same hint, hint */
#define FINDINGS(X) \
  /* cuDNN[ {found}] is another major version than cuDNN {built}, which {component} was built with | install cuDNN {built_major} ({min} or newer) where the loader looks first; or rebuild against the one found */ \
  X(CUDNN_OTHER_MAJOR, 201, ERROR, REFUSES, 41, cudnn, "\325[ \216]\302a\303\314\332maj\255v\261si\312\371\247\203\262\210\301", \
    built_with, found_cudnn, picked_by, CUDNN_OTHER_MAJOR, "\304 \247\206 (\232\275) \357\261e\326\360\332look\253fir\364\321\256 aga\272\364\326\312\265\324") \
  /* cuDNN {found} is older than cuDNN {built}, which {component} was built with | update it, or put a folder with cuDNN {min} or newer first in LD_LIBRARY_PATH; or rebuild against cuDNN {found} */ \
  X(CUDNN_OLDER, 202, ERROR, REFUSES, 44, cudnn, "\247\216\302\271\371\247\203\262\210\301", \
    built_with, found_cudnn, picked_by, CUDNN_OLDER, "\334\265\331\355\255\323f\271\350\247\232\275 \307\321\256 aga\272s\260\247\216") \
  /* cuDNN {found} is an older patch than cuDNN {built}, which {component} was built with | update it, or put a folder with cuDNN {min} or newer first in LD_LIBRARY_PATH; or rebuild against cuDNN {found} */ \
  X(CUDNN_OLDER_PATCH, 203, ERROR, REFUSES, 45, cudnn, "\247\216\302\313 \271 p\376ch\371\247\203\262\210\301", \
    built_with, found_cudnn, picked_by, CUDNN_OLDER, "") \
  /* cuDNN lacks {library}: calls that need it fail | reinstall cuDNN whole from one package */ \
  X(CUDNN_INNER_MISSING, 204, ERROR, REFUSES, 42, cudnn, "\247lack\253\226\274c\330s\351\345\327 \365fail", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, "\353\342ge") \
  /* cuDNN lacks {library}: the first call would abort | reinstall cuDNN whole from one package */ \
  X(CUDNN_INNER_MISSING_NEEDED, 204, ERROR, REFUSES, 42, cudnn, "\247lack\253\226:\326firs\260c\330 would ab\354t", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, "") \
  /* no cuDNN was found: no folder that the loader looks into has {library} | install cuDNN {min} or newer, or name its folder in LD_LIBRARY_PATH */ \
  X(CUDNN_ABSENT, 205, ERROR, REFUSES, 40, cudnn, "\367\247wa\253\324\274\367f\271\250\376\326\360\332look\253\272to ha\253\226", \
    built_with, none, none, CUDNN_ABSENT, "\304 \247\232\275\355\255nam\265\331\253f\271 \272\251") \
  /* cuDNN is mixed: {library} is {part}, the rest {found} | remove the stray copy[ of {library} in {beside}], or reinstall cuDNN whole from one package */ \
  X(CUDNN_INNER_MIXED, 206, ERROR, REFUSES, 43, cudnn, "\247\362mix\327\274\226\302\240,\326\353s\260\216", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MIXED, "\353move\326\364ray copy[ \317\226 \272 \202]\355\255\353\342ge") \
  /* cuDNN is mixed: its loader library is {loader}, the rest {found} | reinstall cuDNN whole from one package */ \
  X(CUDNN_INNER_MIXED_LOADER, 206, ERROR, REFUSES, 43, cudnn, "\247\362mix\327\274\331\253\360\332\361y\302\227,\326\353s\260\216", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, "") \
  /* cuDNN[ {found}] is made for CUDA {found_cuda}, and {component} for CUDA {built_cuda} | put a cuDNN for CUDA {built_cuda} first in LD_LIBRARY_PATH */ \
  X(CUDNN_OTHER_CUDA, 207, WARNING, INFORMS, 57, cudnn, "\325[ \216]\302mad\265\352\333\217,\263\210 \352\333\204", \
    found_cudnn, picked_by, none, CUDNN_OTHER_CUDA, "\323\247\352\333\204 \307") \
  /* {component} uses {symbol}, which no library has | update the library, or rebuild */ \
  X(LIBRARY_LACKS_SYMBOL_EMPTY_SLOT, 214, ERROR, REFUSES, 14, library, "\210 u\372\253\243\262\367\361y has", \
    found_file, first_in, none, LIBRARY_LACKS_SYMBOL_EMPTY_SLOT, "\334e\326\361y\355\255\256") \
  /* {path}: symbol lookup error: {path}: undefined symbol: {symbol}[, version {library}] | update the library, or rebuild */ \
  X(LIBRARY_LACKS_SYMBOL_BY_THE_LOADER, 214, ERROR, REFUSES, 14, library, "\241\274symbol lookup \261r\354\274\241\274undef\272\327 symbol\274\243[\355v\261si\312 \226]", \
    none, none, none, LIBRARY_LACKS_SYMBOL_EMPTY_SLOT, "") \
  /* the driver is too old for {code}[, which needs one that supports CUDA {needs_cuda}] | update the driver[ to {needs_release} or newer]; or rebuild with an older toolkit */ \
  X(DRIVER_TOO_OLD, 301, ERROR, REFUSES, 30, driver, "\314\270\255\207[\300\233]", \
    needed_by, found_driver, gpus, DRIVER_TOO_OLD, "\273[\322\234\275]\321\256\315") \
  /* the driver is too old for {code}[, which needs one that supports CUDA {needs_cuda}] | rebuild with an older toolkit: no driver is known that supports this one */ \
  X(DRIVER_TOO_OLD_NONE_KNOWN, 301, ERROR, REFUSES, 30, driver, "\314\270\255\207[\300\233]", \
    needed_by, found_driver, gpus, DRIVER_TOO_OLD_NONE_KNOWN, "\256\340") \
  /* the driver is too old for {code} on compute capability {gpus}[, which needs one that supports CUDA {needs_cuda}] | update the driver[ to {needs_release} or newer]; or rebuild with {archs} added */ \
  X(DRIVER_TOO_OLD_FOR_CODE, 302, ERROR, REFUSES, 32, driver, "\314\270\255\207 \312 \277\220[\300\233]", \
    needed_by, found_driver, none, DRIVER_TOO_OLD_FOR_CODE, "\273[\322\234\275]\321\256\350\201\276") \
  /* the driver is too old for {code} on compute capability {gpus}[, which needs one that supports CUDA {needs_cuda}] | rebuild with {archs} added, or with an older toolkit: no driver is known that supports this one */ \
  X(DRIVER_TOO_OLD_FOR_CODE_NONE_KNOWN, 302, ERROR, REFUSES, 32, driver, "\314\270\255\207 \312 \277\220[\300\233]", \
    needed_by, found_driver, none, DRIVER_TOO_OLD_FOR_CODE_NONE_KNOWN, "\256\350\201\276\355\354\340") \
  /* CUDA_FORCE_PTX_JIT=1 needs {code} for compute capability {gpus}: the driver is too old for that[, CUDA {needs_cuda}] | unset CUDA_FORCE_PTX_JIT[; or update the driver to {needs_release} or newer] */ \
  X(DRIVER_TOO_OLD_FOR_CODE_FORCED, 302, ERROR, REFUSES, 32, driver, "\266=1 \345\327\253\207 \352\277\220:\250\270\354\250\376[\355\333\233]", \
    needed_by, found_driver, none, DRIVER_TOO_OLD_FOR_CODE_FORCED, "un\372\260\266[\321\273\322\234\275]") \
  /* {component} has no code for compute capability {gpus} | rebuild it with {archs} added */ \
  X(NO_CODE_FOR_GPU, 303, ERROR, REFUSES, 31, driver, "\210\316\220", \
    built_for, found_driver, none, NO_CODE_FOR_GPU, "\256 \331\350\201\276") \
  /* {component} has no code for compute capability {gpus} | rebuild it with {archs} added and CUDA {made_to} or older: CUDA {built_cuda} no longer makes that */ \
  X(NO_CODE_FOR_GPU_NO_LONGER_MADE, 303, ERROR, REFUSES, 31, driver, "\210\316\220", \
    built_for, found_driver, none, NO_CODE_FOR_GPU_NO_LONGER_MADE, "\256 \331\350\201\276\263\333\231 \255\271\274\333\204 \367l\312g\332makes\250\376") \
  /* {component} has no code for compute capability {gpus} | rebuild it with {archs} added and CUDA {made_from} or newer; or with PTX of an older arch added */ \
  X(NO_CODE_FOR_GPU_NOT_YET_MADE, 303, ERROR, REFUSES, 31, driver, "\210\316\220", \
    built_for, found_driver, none, NO_CODE_FOR_GPU_NOT_YET_MADE, "\256 \331\350\201\276\263\333\230\275; \354\350PTX \317\313 \271 \336ch\276") \
  /* libcuda and the kernel module do not belong together (803) | reboot after a driver update; in a container, remove the libcuda that it brought along[: {libcuda}] */ \
  X(DRIVER_MISMATCH, 304, ERROR, REFUSES, 23, driver, "\306 \313d\326\374do \303\260bel\312g toge\314\332(803)", \
    found_driver, gpus, none, DRIVER_MISMATCH, "\353boo\260aft\332a\246 \334e; \272 a c\312ta\272\261\355\353move\326\306\351\365brough\260al\312g[\274\225]") \
  /* cuda-compat does not work with this GPU (804) | take the folder of cuda-compat[, where {libcuda} lies,] out of LD_LIBRARY_PATH and update the driver; or hide that GPU with CUDA_VISIBLE_DEVICES */ \
  X(FORWARD_COMPAT_UNSUPPORTED, 305, ERROR, REFUSES, 24, driver, "cuda-\363a\260\375w\354k\254\250\362\320 (804)", \
    found_driver, gpus, none, FORWARD_COMPAT_UNSUPPORTED, "take\326f\271 \317cuda-\363\376[\355\357\261\265\225 lies,] ou\260of\251\263\273\321hide\351\320\350\344S") \
  /* the libcuda found is the stub, which is for linking only (34) | take the stubs folder[, where {libcuda} lies,] out of LD_LIBRARY_PATH and of RPATH */ \
  X(STUB_DRIVER, 306, ERROR, REFUSES, 25, driver, "\314\265\306 \324 is\326\364ub\262\362\352l\272k\272g \312ly (34)", \
    found_driver, gpus, none, STUB_DRIVER, "take\326\364ub\253f\271[\355\357\261\265\225 lies,] ou\260of\251\263\317RPATH") \
  /* there is no libcuda.so.1, and {component} requires a GPU | install the NVIDIA driver; start a container with its GPUs (--gpus all) */ \
  X(DRIVER_MISSING, 307, ERROR, REFUSES, 20, driver, "\314\261\265\362\367\306.so.1,\263\210 \353qui\353\253a \320", \
    none, none, none, DRIVER_MISSING, "\304\326\377\246\347") \
  /* CUDA_DISABLE_PTX_JIT=1 forbids what compute capability {gpus} needs: {code} | unset CUDA_DISABLE_PTX_JIT; or rebuild with {archs} added */ \
  X(JIT_DISABLED, 308, ERROR, REFUSES, 34, driver, "\257_DISABL\337=1 f\354bid\253\357a\260\277\220 \345\327s\274\207", \
    needed_by, found_driver, none, JIT_DISABLED, "un\372\260\257_DISABL\337\321\256\350\201\276") \
  /* libnvidia-ptxjitcompiler.so.1 is missing, and compute capability {gpus} needs it for {code} (221) | install the driver whole; start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility; or rebuild with {archs} added */ \
  X(JIT_MISSING, 309, ERROR, REFUSES, 35, driver, "libnvidia-ptxj\331\363il\261.so.1\302\373,\263\277\220 \345\327\253\365\352\207 (221)", \
    needed_by, found_driver, none, JIT_MISSING, "\304\250e\246 \357ole; \305\377_DRIVER_CAPABILITIES=\363ute,util\331y\321\256\350\201\276") \
  /* there is no GPU, and {component} requires one | see what nvidia-smi says and what CUDA_VISIBLE_DEVICES holds; start a container with its GPUs (--gpus all) */ \
  X(GPU_MISSING, 310, ERROR, REFUSES, 21, driver, "\314\261\265\362\367\320,\263\210 \353qui\353\253\312e", \
    found_driver, none, none, GPU_MISSING, "\372\343say\253\313d \357a\260\344S holds\347") \
  /* only part of the code in {component} is for compute capability {gpus} | rebuild all of it with {archs} added, or drop gpu.partial from cudaguard.toml */ \
  X(PARTIAL_CODE, 311, ERROR, REFUSES, 36, driver, "\312ly p\336\260of\326cod\265\272 \210\302\352\277\220", \
    built_for, found_driver, none, PARTIAL_CODE, "\256 \330 \317\331\350\201\276\355\255drop gpu.p\336tial \335\267.toml") \
  /* no GPU can run both {component} and {other} | rebuild both for one of {archs} */ \
  X(NO_GPU_FOR_ALL, 312, WARNING, INFORMS, 50, driver, "\367\320 c\313 run bo\314 \210\263\237", \
    found_driver, gpus, none, NO_GPU_FOR_ALL, "\256 bo\314 \352\312\265\317\201") \
  /* cuDNN {found} no longer works on compute capability {gpus} | put a cuDNN older than {dropped_in} first in LD_LIBRARY_PATH (the program takes {min} and newer); or run it on a newer GPU */ \
  X(CUDNN_TOO_NEW_FOR_GPU, 313, ERROR, REFUSES, 46, driver, "\247\216 \367l\312g\332w\354k\253\312 \277\220", \
    needed_by, found_driver, none, CUDNN_TOO_NEW_FOR_GPU, "\323\247\271\371\214 \307 (\314\265program take\253\232\263\345w\261)\321run \365\312 a \345w\332\320") \
  /* {library} is of CUDA {found_cuda}, older than CUDA {built_cuda}, which {component} was built with | put a folder with the libcudart of CUDA {built_cuda} first in LD_LIBRARY_PATH; or link it statically */ \
  X(CUDART_OLDER, 314, WARNING, INFORMS, 51, cudart, "\226\302\317\333\217\355\271\371\333\204\262\210\301", \
    found_file, none, none, CUDART_OLDER, "\323f\271\254\326\306r\260\317\333\204 \307\321l\272k \365\364\376ic\330y") \
  /* {component} has no PTX for compute capability {gpus}, and CUDA_FORCE_PTX_JIT=1 allows nothing else | unset CUDA_FORCE_PTX_JIT */ \
  X(JIT_FORCED, 315, ERROR, REFUSES, 33, driver, "\210 ha\253\367PTX \352\277\220,\263\266=1 \330ow\253\303\314\272g el\372", \
    built_for, found_driver, none, JIT_FORCED, "un\372\260\266") \
  /* cuDNN[ {found}] is made for CUDA {found_cuda}, and needs a driver that supports CUDA {needs_cuda} | put a cuDNN for CUDA[ {cuda_major}] first in LD_LIBRARY_PATH; or update the driver */ \
  X(CUDNN_NEEDS_NEWER_DRIVER, 316, ERROR, REFUSES, 26, driver, "\325[ \216]\302mad\265\352\333\217,\263\345\327\253a\246\264\253\333\233", \
    needed_by, found_driver, gpus, CUDNN_NEEDS_NEWER_DRIVER, "\323\247\352\257[ \212] \307\321\273") \
  /* cannot tell which cuDNN this is | see that cuDNN's inner libraries stand beside it: `cargo cudaguard doctor` lists every candidate */ \
  X(CUDNN_CANNOT_TELL, 501, INFO, OPEN, 63, cudnn, "\252ich \247\314\362is", \
    built_with, found_cudnn, picked_by, CUDNN_CANNOT_TELL, "\372e\351\325'\253\272n\332\361ie\253\364\313d besid\265\331\274`\341\376e") \
  /* cannot tell which cuDNN {component} would get | see that cuDNN {min} or newer is installed: `cargo cudaguard doctor` lists every candidate */ \
  X(CUDNN_CANNOT_TELL_NOT_LOADED, 501, INFO, OPEN, 63, cudnn, "\252ich \247\210 would get", \
    built_with, none, none, CUDNN_CANNOT_TELL_NOT_LOADED, "\372e\351\247\232\275\302\304\327\274`\341\376e") \
  /* the manifest of {component} is newer than this cudaguard: what this one knows of it was judged | update cudaguard */ \
  X(NOTE_NEWER, 502, INFO, OPEN, 61, manifest, "\314\265\346\260\317\210\302\345w\261\250\313\250\362\267\274\357\376\250\362\312\265k\303w\253\317\365wa\253judg\327", \
    none, none, none, NOTE_NEWER, "\334\265\267") \
  /* the manifest of {component} asks for what this cudaguard does not know: rows of kind {kinds} | update cudaguard */ \
  X(NOTE_NEWER_ROWS, 502, INFO, OPEN, 61, manifest, "\314\265\346\260\317\210 ask\253\352\357\376\250\362\267 \375k\303w\274row\253\317k\272d \223", \
    none, none, none, NOTE_NEWER, "") \
  /* a manifest in {file} is damaged: it was not judged | rebuild {file}: something wrote into it after it was linked */ \
  X(NOTE_DAMAGED, 503, INFO, OPEN, 62, manifest, "a \346\260\272 \215\302damag\327\274\365wa\253\303\260judg\327", \
    because, none, none, NOTE_DAMAGED, "\256 \215\274some\314\272g wrot\265\272to \365aft\332\365wa\253l\272k\327") \
  /* no GPU is visible: nothing to judge |  */ \
  X(NOTHING_TO_SEE, 504, INFO, OPEN, 65, driver, "\367\320\302visible\274\303\314\272g\322judge", \
    none, none, none, NOTHING_TO_SEE, "") \
  /* cannot tell whether driver and GPU fit: some facts are missing | `cargo cudaguard doctor` says what is missing */ \
  X(DRIVER_CANNOT_TELL, 505, INFO, OPEN, 64, driver, "\311som\265fact\253\336\265\373", \
    found_driver, gpus, none, DRIVER_CANNOT_TELL, "`\310say\253\357a\260\362\373") \
  /* cannot tell whether driver and GPU fit: cuInit answers {answer} | see what nvidia-smi says, and the kernel's log: dmesg | grep -i nvrm */ \
  X(DRIVER_CANNOT_TELL_ANSWER, 505, INFO, OPEN, 64, driver, "\311cuIn\365\313sw\261\253\200", \
    found_driver, gpus, none, DRIVER_CANNOT_TELL_ANSWER, "\372\343says\355\313d\326k\261\345l'\253log\274dmesg | g\353p -i nvrm") \
  /* cannot tell whether driver and GPU fit: libcuda.so.1 is there, and cannot be loaded: {why} | `cargo cudaguard doctor` says what is missing */ \
  X(DRIVER_CANNOT_TELL_NOT_LOADED, 505, INFO, OPEN, 64, driver, "\311\306.so.1 is\250\261e,\263c\313\303\260b\265\360\327\274\244", \
    gpus, none, none, DRIVER_CANNOT_TELL, "") \
  /* cannot tell whether {code} loads on this driver: nvcc {nvcc_major} made it, and NVIDIA promises that for drivers from {needs_release} on | update the driver to {needs_release} or newer to be sure[; or rebuild with CUDA {cuda_major}] */ \
  X(DRIVER_CANNOT_TELL_UNSURE, 505, INFO, OPEN, 64, driver, "\370\332\207 \360\253\312\250is\246\274nvcc \236 mad\265\331,\263\377 promi\372s\351f\354\246\253\335\234 \312", \
    needed_by, found_driver, none, DRIVER_CANNOT_TELL_UNSURE, "\273\322\234\275\322b\265su\353[\321\256\350\333\212]") \
  /* cannot tell whether this driver compiles {code}: both are newer than the guard | rebuild it with {archs} added */ \
  X(DRIVER_CANNOT_TELL_NEWER_PTX, 505, INFO, OPEN, 64, driver, "\370\261\250is\246 \363ile\253\207\274bo\314 \336\265\345w\261\250\313\326gu\336d", \
    needed_by, found_driver, none, NO_CODE_FOR_GPU, "") \
  /* cannot tell whether CUDA_FORCE_PTX_JIT=1 leaves code for compute capability {gpus}: not all in {component} is known to have PTX | unset CUDA_FORCE_PTX_JIT */ \
  X(DRIVER_CANNOT_TELL_FORCED, 505, INFO, OPEN, 64, driver, "\370\332\266=1 leave\253cod\265\352\277\220\274\303\260\330 \272 \210\302k\303wn\322hav\265PTX", \
    built_for, found_driver, none, JIT_FORCED, "") \
  /* cannot tell whether {library} is older than CUDA {built_cuda}, which {component} was built with: its file's name does not say | put a folder with the libcudart of CUDA {built_cuda} first in LD_LIBRARY_PATH; or link it statically */ \
  X(CUDART_UNKNOWN, 507, INFO, INFORMS, 67, cudart, "\370\332\226\302\271\371\333\204\262\210\301\274\331\253file'\253nam\265\375say", \
    found_file, none, none, CUDART_OLDER, "") \
  /* {left_out} findings are left out: the guard keeps {kept} at most | `cargo cudaguard verify` shows all of them */ \
  X(NOT_ALL_KEPT, 508, INFO, OPEN, 60, manifest, "\224 f\272d\272g\253\336\265lef\260out\366\221 a\260mo\364", \
    none, none, none, NOT_ALL_KEPT, "`c\336go \267 v\261ify` show\253\330 of\250em") \
  /* {left_out} manifests were not judged: the guard keeps {kept} at most | `cargo cudaguard verify` shows all of them */ \
  X(NOT_ALL_KEPT_NOTES, 508, INFO, OPEN, 60, manifest, "\224 \346t\253w\261\265\303\260judg\327\366\221 a\260mo\364", \
    none, none, none, NOT_ALL_KEPT, "") \
  /* cannot tell whether cuDNN {found} works on compute capability {gpus}: it has code up to {newest_major}.x | put a newer cuDNN first in LD_LIBRARY_PATH: from cuDNN 9 for CUDA 12 on it serves GPUs that came after it */ \
  X(CUDNN_BEFORE_THIS_GPU, 517, INFO, OPEN, 72, driver, "\370\332\247\216 w\354k\253\312 \277\220\274\365ha\253cod\265up\322\235.x", \
    needed_by, found_driver, none, CUDNN_BEFORE_THIS_GPU, "\323\345w\332\247\307\274\335\2479 \352\33312 \312 \365s\261ve\253\320s\351cam\265aft\332\331")

/* name, subject */
#define SUBJECTS(X) \
  X(cudnn, "cuDNN") \
  X(cudart, "cudart") \
  X(driver, "driver") \
  X(library, "library") \
  X(manifest, "manifest")

/* name, line; `none` is no line */
#define LINES(X) \
  /* because:    {why} */ \
  X(because, "becau\372\274   \244") \
  /* built for:  {built_for} */ \
  X(built_for, "buil\260f\354\274 \205") \
  /* built with: cuDNN {built} ({component}) */ \
  X(built_with, "built\254\274\247\203 (\210)") \
  /* first in:   {library} {min} */ \
  X(first_in, "firs\260\272\274  \226 \232") \
  /* found:      cuDNN[ {found}] in {path}[, with {beside}] */ \
  X(found_cudnn, "\324\356 \325[ \216] \272 \241[,\350\202]") \
  /* found:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}] */ \
  X(found_driver, "\324\356\246[ \213][\264\253\333\211][ \312 \374\222][ \272 \225]") \
  /* found:      {path} */ \
  X(found_file, "\324\356 \241") \
  /* GPUs:       compute capability {gpus} */ \
  X(gpus, "\320s\356  \277\220") \
  /* needed by:  {component} */ \
  X(needed_by, "\345\327\327 by\274 \210") \
  /* picked by:  {picked_by} */ \
  X(picked_by, "pick\327 by\274 \242")

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
  X(newest_major, NUMBER) /* the major of the newest compute capability that it has code for */ \
  X(nvcc_major, NUMBER) /* the CUDA major of the nvcc that made the code */ \
  X(other, TEXT) /* name and version of the second package */ \
  X(part, VERSION) /* the version of that library, where it is not the one of the rest */ \
  X(path, TEXT) /* the file that was found */ \
  X(picked_by, TEXT) /* why the loader takes that file */ \
  X(symbol, TEXT) /* a function */ \
  X(why, TEXT) /* why something could not be read */

/* What many texts have in common */
#define PIECES \
  "put\265capabil\331y " "\0" \
  " driv\261" "\0" \
  "\325 " "\0" \
  " \314" "\0" \
  " LD_LIBRARY_PATH" "\0" \
  "c\313\303\260tell \357" "\0" \
  "s " "\0" \
  " wi\314" "\0" \
  "\354 " "\0" \
  "\353build" "\0" \
  "CUDA" "\0" \
  "t " "\0" \
  "er" "\0" \
  "\355\357ich " "\0" \
  " \313d " "\0" \
  "\351supp\354t" "\0" \
  "e " "\0" \
  "\257_FORC\337" "\0" \
  "cudagu\336d" "\0" \
  "e\246\302too old f" "\0" \
  "old\261" "\0" \
  "in" "\0" \
  "\334e\250e\246" "\0" \
  ": " "\0" \
  " \255\345w\261" "\0" \
  " add\327" "\0" \
  "com\245" "\0" \
  "\262\345\327\253\312e\264\253\333" "\0" \
  " wa\253built\254" "\0" \
  " \362" "\0" \
  "no" "\0" \
  "\272\364\330" "\0" \
  "\364\336\260a c\312ta\272\261\350" "\0" \
  "libcuda" "\0" \
  "firs\260\272\251" "\0" \
  "c\336go \267 doct\354` " "\0" \
  "\370\261\246\263\320 f\331\274" "\0" \
  "on" "\0" \
  "an" "\0" \
  "th" "\0" \
  "\350\313 \271 toolk\331" "\0" \
  " ha\253\367cod\265\352\277" "\0" \
  "of " "\0" \
  "GPU" "\0" \
  "; \255" "\0" \
  " to " "\0" \
  "pu\260a " "\0" \
  "found" "\0" \
  "cuDNN" "\0" \
  "\250\265" "\0" \
  "ed" "\0" \
  "all" "\0" \
  "it" "\0" \
  "\261 " "\0" \
  "\257 " "\0" \
  "upd\376" "\0" \
  "from " "\0" \
  "ar" "\0" \
  "E_PTX_JIT" "\0" \
  "\315\274\303\246\302k\303wn\264s\250\362\312e" "\0" \
  "\310li\364\253ev\261y c\313did" "\0" \
  "\304 \247\357ol\265\335\312\265packa" "\0" \
  "\265\357a\260nvidia-smi " "\0" \
  "\257_VISIBLE_DEVICE" "\0" \
  "ne" "\0" \
  "m\313ifes" "\0" \
  "; \305\331\253\320\253(--gpu\253\330)" "\0" \
  "\254 " "\0" \
  "\250a\260" "\0" \
  "f\255" "\0" \
  "re" "\0" \
  "or" "\0" \
  ", " "\0" \
  "\274    " "\0" \
  "wh" "\0" \
  "load" "\0" \
  "libr\336" "\0" \
  "i\253" "\0" \
  "comp" "\0" \
  "st" "\0" \
  "i\260" "\0" \
  ":\326gu\336d keep\253" "\0" \
  "\303 " "\0" \
  "\252e\314" "\0" \
  "\250\313 " "\0" \
  "se" "\0" \
  "miss\272g" "\0" \
  "k\261\345l modul\265" "\0" \
  "doe\253\303\260" "\0" \
  "at" "\0" \
  "NVIDIA" "\0"
