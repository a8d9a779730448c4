/* Written by `cargo findings` from guard-core/data/findings.toml; a test keeps it so. What the shim speaks, and
 * the placeholders in it: that table says what each column means, and how the words are read. In a text each
 * placeholder is one byte, from 0x80 on, and behind those what many texts have in common. */

/* name, code, severity, verdict, rank, subject, sentence, its three lines, the finding that has the same hint, hint */
#define FINDINGS(X) \
  /* cuDNN[ {found}] is another major version than cuDNN {built}, which {component} was built with | install cuDNN {built_major} ({min} or newer) where the loader looks first; or rebuild against the one found */ \
  X(CUDNN_OTHER_MAJOR, 201, ERROR, REFUSES, 41, cudnn, "\323[ \216]\327a\304\313\261 maj\255v\261si\303\250\312\365\203\262\210\302", \
    built_with, found_cudnn, picked_by, CUDNN_OTHER_MAJOR, "\305\365\206 (\232\274) \357\261e\325\360ook\252fir\363\324\256 aga\277\363\325\303\265\322") \
  /* cuDNN {found} is older than cuDNN {built}, which {component} was built with | update it, or put a folder with cuDNN {min} or newer first in LD_LIBRARY_PATH; or rebuild against cuDNN {found} */ \
  X(CUDNN_OLDER, 202, ERROR, REFUSES, 44, cudnn, "\247\216\327\271\250\312\365\203\262\210\302", \
    built_with, found_cudnn, picked_by, CUDNN_OLDER, "\333\265it\354\255\334f\271\347\247\232\274 \314\254\324\256 aga\277s\260\247\216") \
  /* cuDNN {found} is an older patch than cuDNN {built}, which {component} was built with | update it, or put a folder with cuDNN {min} or newer first in LD_LIBRARY_PATH; or rebuild against cuDNN {found} */ \
  X(CUDNN_OLDER_PATCH, 203, ERROR, REFUSES, 45, cudnn, "\247\216\327\312 \271 p\372ch\250\312\365\203\262\210\302", \
    built_with, found_cudnn, picked_by, CUDNN_OLDER, "") \
  /* cuDNN lacks {library}: calls that need it fail | reinstall cuDNN whole from one package */ \
  X(CUDNN_INNER_MISSING, 204, ERROR, REFUSES, 42, cudnn, "\247lack\252\226\301c\331s\350\352\326\272\260fail", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, "\355\341ge") \
  /* cuDNN lacks {library}: the first call would abort | reinstall cuDNN whole from one package */ \
  X(CUDNN_INNER_MISSING_NEEDED, 204, ERROR, REFUSES, 42, cudnn, "\247lack\252\226:\325firs\260c\331 would ab\351t", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, "") \
  /* no cuDNN was found: no folder that the loader looks into has {library} | install cuDNN {min} or newer, or name its folder in LD_LIBRARY_PATH */ \
  X(CUDNN_ABSENT, 205, ERROR, REFUSES, 40, cudnn, "\304\365wa\252\322\301\374f\271\250\372\325\360ook\252\277to ha\252\226", \
    built_with, none, none, CUDNN_ABSENT, "\305\365\232\274\354\255nam\265it\252f\271\272n\254") \
  /* cuDNN is mixed: {library} is {part}, the rest {found} | remove the stray copy[ of {library} in {beside}], or reinstall cuDNN whole from one package */ \
  X(CUDNN_INNER_MIXED, 206, ERROR, REFUSES, 43, cudnn, "\247\361mix\326\301\226\327\240,\325\355s\260\216", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MIXED, "\355move\325\363ray copy[ \330\226\272n \202]\354\255\355\341ge") \
  /* cuDNN is mixed: its loader library is {loader}, the rest {found} | reinstall cuDNN whole from one package */ \
  X(CUDNN_INNER_MIXED_LOADER, 206, ERROR, REFUSES, 43, cudnn, "\247\361mix\326:\272t\252\360ibr\335y\327\227,\325\355s\260\216", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, "") \
  /* cuDNN[ {found}] is made for CUDA {found_cuda}, and {component} for CUDA {built_cuda} | put a cuDNN for CUDA {built_cuda} first in LD_LIBRARY_PATH */ \
  X(CUDNN_OTHER_CUDA, 207, WARNING, INFORMS, 57, cudnn, "\323[ \216]\327mad\265\353\332\217,\263\210 \353\332\204", \
    found_cudnn, picked_by, none, CUDNN_OTHER_CUDA, "\334\247\353\332\204 \314\254") \
  /* {component} uses {symbol}, which no library has | update the library, or rebuild */ \
  X(LIBRARY_LACKS_SYMBOL_EMPTY_SLOT, 214, ERROR, REFUSES, 14, library, "\210 u\366\252\243\262\374\375br\335y has", \
    found_file, first_in, none, LIBRARY_LACKS_SYMBOL_EMPTY_SLOT, "\333e\325\375br\335y\354\255\256") \
  /* {path}: symbol lookup error: {path}: undefined symbol: {symbol}[, version {library}] | update the library, or rebuild */ \
  X(LIBRARY_LACKS_SYMBOL_BY_THE_LOADER, 214, ERROR, REFUSES, 14, library, "\241\301symbol lookup \261r\351\301\241\301undef\277\326 symbol\301\243[\354v\261si\303 \226]", \
    none, none, none, LIBRARY_LACKS_SYMBOL_EMPTY_SLOT, "") \
  /* the driver is too old for {code}[, which needs one that supports CUDA {needs_cuda}] | update the driver[ to {needs_release} or newer]; or rebuild with an older toolkit */ \
  X(DRIVER_TOO_OLD, 301, ERROR, REFUSES, 30, driver, "\313\270\255\207[\300\233]", \
    needed_by, found_driver, gpus, DRIVER_TOO_OLD, "\273[\320\234\274]\324\256\315") \
  /* the driver is too old for {code}[, which needs one that supports CUDA {needs_cuda}] | rebuild with an older toolkit: no driver is known that supports this one */ \
  X(DRIVER_TOO_OLD_NONE_KNOWN, 301, ERROR, REFUSES, 30, driver, "\313\270\255\207[\300\233]", \
    needed_by, found_driver, gpus, DRIVER_TOO_OLD_NONE_KNOWN, "\256\337") \
  /* the driver is too old for {code} on compute capability {gpus}[, which needs one that supports CUDA {needs_cuda}] | update the driver[ to {needs_release} or newer]; or rebuild with {archs} added */ \
  X(DRIVER_TOO_OLD_FOR_CODE, 302, ERROR, REFUSES, 32, driver, "\313\270\255\207 \303 \276\220[\300\233]", \
    needed_by, found_driver, none, DRIVER_TOO_OLD_FOR_CODE, "\273[\320\234\274]\324\256\347\201\275") \
  /* the driver is too old for {code} on compute capability {gpus}[, which needs one that supports CUDA {needs_cuda}] | rebuild with {archs} added, or with an older toolkit: no driver is known that supports this one */ \
  X(DRIVER_TOO_OLD_FOR_CODE_NONE_KNOWN, 302, ERROR, REFUSES, 32, driver, "\313\270\255\207 \303 \276\220[\300\233]", \
    needed_by, found_driver, none, DRIVER_TOO_OLD_FOR_CODE_NONE_KNOWN, "\256\347\201\275\354\351\337") \
  /* CUDA_FORCE_PTX_JIT=1 needs {code} for compute capability {gpus}: the driver is too old for that[, CUDA {needs_cuda}] | unset CUDA_FORCE_PTX_JIT[; or update the driver to {needs_release} or newer] */ \
  X(DRIVER_TOO_OLD_FOR_CODE_FORCED, 302, ERROR, REFUSES, 32, driver, "\266=1 \352\326\252\207 \353\276\220:\250\270\351\250\372[\354\332\233]", \
    needed_by, found_driver, none, DRIVER_TOO_OLD_FOR_CODE_FORCED, "un\366\260\266[\324\273\320\234\274]") \
  /* {component} has no code for compute capability {gpus} | rebuild it with {archs} added */ \
  X(NO_CODE_FOR_GPU, 303, ERROR, REFUSES, 31, driver, "\210\316\220", \
    built_for, found_driver, none, NO_CODE_FOR_GPU, "\256\272t\347\201\275") \
  /* {component} has no code for compute capability {gpus} | rebuild it with {archs} added and CUDA {made_to} or older: CUDA {built_cuda} no longer makes that */ \
  X(NO_CODE_FOR_GPU_NO_LONGER_MADE, 303, ERROR, REFUSES, 31, driver, "\210\316\220", \
    built_for, found_driver, none, NO_CODE_FOR_GPU_NO_LONGER_MADE, "\256\272t\347\201\275\263\332\231 \255\271\301\332\204 \374l\303g\261 makes\250\372") \
  /* {component} has no code for compute capability {gpus} | rebuild it with {archs} added and CUDA {made_from} or newer; or with PTX of an older arch added */ \
  X(NO_CODE_FOR_GPU_NOT_YET_MADE, 303, ERROR, REFUSES, 31, driver, "\210\316\220", \
    built_for, found_driver, none, NO_CODE_FOR_GPU_NOT_YET_MADE, "\256\272t\347\201\275\263\332\230\274; \351\347PTX \330\312 \271 \335ch\275") \
  /* libcuda and the kernel module do not belong together (803) | reboot after a driver update; in a container, remove the libcuda that it brought along[: {libcuda}] */ \
  X(DRIVER_MISMATCH, 304, ERROR, REFUSES, 23, driver, "\306 \312d\325\370do \304\260bel\303g toge\313\261 (803)", \
    found_driver, gpus, none, DRIVER_MISMATCH, "\355boo\260aft\261 a\246 \333e;\272n a c\303ta\277\261\354\355move\325\306\350i\260brough\260al\303g[\301\225]") \
  /* cuda-compat does not work with this GPU (804) | take the folder of cuda-compat[, where {libcuda} lies,] out of LD_LIBRARY_PATH and update the driver; or hide that GPU with CUDA_VISIBLE_DEVICES */ \
  X(FORWARD_COMPAT_UNSUPPORTED, 305, ERROR, REFUSES, 24, driver, "\377-\362a\260\371w\351k\253\250\361\317 (804)", \
    found_driver, gpus, none, FORWARD_COMPAT_UNSUPPORTED, "take\325f\271 \330\377-\362\372[\354\357\261\265\225 \375es,] ou\260of\254\263\273\324hide\350\317\347\343S") \
  /* the libcuda found is the stub, which is for linking only (34) | take the stubs folder[, where {libcuda} lies,] out of LD_LIBRARY_PATH and of RPATH */ \
  X(STUB_DRIVER, 306, ERROR, REFUSES, 25, driver, "\313\265\306 \322\272s\325\363ub\262\361\353l\277k\277g \303ly (34)", \
    found_driver, gpus, none, STUB_DRIVER, "take\325\363ub\252f\271[\354\357\261\265\225 \375es,] ou\260of\254\263\330RPATH") \
  /* there is no libcuda.so.1, and {component} requires a GPU | install the NVIDIA driver; start a container with its GPUs (--gpus all) */ \
  X(DRIVER_MISSING, 307, ERROR, REFUSES, 20, driver, "\313\261\265\361\374\306.so.1,\263\210 \355qui\355\252a \317", \
    none, none, none, DRIVER_MISSING, "\305\325\373\246\346") \
  /* CUDA_DISABLE_PTX_JIT=1 forbids what compute capability {gpus} needs: {code} | unset CUDA_DISABLE_PTX_JIT; or rebuild with {archs} added */ \
  X(JIT_DISABLED, 308, ERROR, REFUSES, 34, driver, "\257_DISABL\336=1 f\351bid\252\357a\260\276\220 \352\326s\301\207", \
    needed_by, found_driver, none, JIT_DISABLED, "un\366\260\257_DISABL\336\324\256\347\201\275") \
  /* libnvidia-ptxjitcompiler.so.1 is missing, and compute capability {gpus} needs it for {code} (221) | install the driver whole; start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility; or rebuild with {archs} added */ \
  X(JIT_MISSING, 309, ERROR, REFUSES, 35, driver, "\375bnvidia-ptxjit\362il\261.so.1\327\367,\263\276\220 \352\326\252i\260\353\207 (221)", \
    needed_by, found_driver, none, JIT_MISSING, "\305\250e\246 \357ole\310 \373_DRIVER_CAPABILITIES=\362ute,uti\375ty\324\256\347\201\275") \
  /* there is no GPU, and {component} requires one | see what nvidia-smi says and what CUDA_VISIBLE_DEVICES holds; start a container with its GPUs (--gpus all) */ \
  X(GPU_MISSING, 310, ERROR, REFUSES, 21, driver, "\313\261\265\361\374\317,\263\210 \355qui\355\252\303e", \
    found_driver, none, none, GPU_MISSING, "\366\342say\252\312d \357a\260\343S holds\346") \
  /* only part of the code in {component} is for compute capability {gpus} | rebuild all of it with {archs} added, or drop gpu.partial from cudaguard.toml */ \
  X(PARTIAL_CODE, 311, ERROR, REFUSES, 36, driver, "\303ly p\335\260of\325cod\265\277 \210\327\353\276\220", \
    built_for, found_driver, none, PARTIAL_CODE, "\256 \331 of\272t\347\201\275\354\255drop gpu.p\335tial \321\267.toml") \
  /* no GPU can run both {component} and {other} | rebuild both for one of {archs} */ \
  X(NO_GPU_FOR_ALL, 312, WARNING, INFORMS, 50, driver, "\374\317 c\312 run bo\313 \210\263\237", \
    found_driver, gpus, none, NO_GPU_FOR_ALL, "\256 bo\313 \353\303\265\330\201") \
  /* cuDNN {found} no longer works on compute capability {gpus} | run it on a newer GPU, or with a cuDNN from {min} on and older than {dropped_in}, if there is one */ \
  X(CUDNN_TOO_NEW_FOR_GPU, 313, ERROR, REFUSES, 46, driver, "\247\216 \374l\303g\261 w\351k\252\303 \276\220", \
    needed_by, found_driver, none, CUDNN_TOO_NEW_FOR_GPU, "run\272\260\303 a \352w\261 \317\354\351\347a\365\321\232 \303\263\271\250\312 \214,\272f\250\261\265\361\303e") \
  /* {library} is of CUDA {found_cuda}, older than CUDA {built_cuda}, which {component} was built with | put a folder with the libcudart of CUDA {built_cuda} first in LD_LIBRARY_PATH; or link it statically */ \
  X(CUDART_OLDER, 314, WARNING, INFORMS, 51, cudart, "\226\327\330\332\217\354\271\250\312 \332\204\262\210\302", \
    found_file, none, none, CUDART_OLDER, "\334f\271\253\325\306r\260\330\332\204 \314\254\324l\277k\272\260\363\372ic\331y") \
  /* {component} has no PTX for compute capability {gpus}, and CUDA_FORCE_PTX_JIT=1 allows nothing else | unset CUDA_FORCE_PTX_JIT */ \
  X(JIT_FORCED, 315, ERROR, REFUSES, 33, driver, "\210 ha\252\374PTX \353\276\220,\263\266=1 \331ow\252\304\313\277g el\366", \
    built_for, found_driver, none, JIT_FORCED, "un\366\260\266") \
  /* cuDNN[ {found}] is made for CUDA {found_cuda}, and needs a driver that supports CUDA {needs_cuda} | put a cuDNN for CUDA[ {cuda_major}] first in LD_LIBRARY_PATH; or update the driver */ \
  X(CUDNN_NEEDS_NEWER_DRIVER, 316, ERROR, REFUSES, 26, driver, "\323[ \216]\327mad\265\353\332\217,\263\352\326\252a\246\264\252\332\233", \
    needed_by, found_driver, gpus, CUDNN_NEEDS_NEWER_DRIVER, "\334\247\353\257[ \212] \314\254\324\273") \
  /* cannot tell which cuDNN this is | see that cuDNN's inner libraries stand beside it: `cargo cudaguard doctor` lists every candidate */ \
  X(CUDNN_CANNOT_TELL, 501, INFO, OPEN, 63, cudnn, "\251ich\365\313\361is", \
    built_with, found_cudnn, picked_by, CUDNN_CANNOT_TELL, "\366e\350\323'\252\277n\261 \375br\335ie\252\363\312d besid\265it\301`\340\372e") \
  /* cannot tell which cuDNN {component} would get | see that cuDNN {min} or newer is installed: `cargo cudaguard doctor` lists every candidate */ \
  X(CUDNN_CANNOT_TELL_NOT_LOADED, 501, INFO, OPEN, 63, cudnn, "\251ich\365\210 would get", \
    built_with, none, none, CUDNN_CANNOT_TELL_NOT_LOADED, "\366e\350\247\232\274\327\305\326\301`\340\372e") \
  /* the manifest of {component} is newer than this cudaguard: what this one knows of it was judged | update cudaguard */ \
  X(NOTE_NEWER, 502, INFO, OPEN, 61, manifest, "\313\265\345\260\330\210\327\352w\261\250\312\250\361\267\301\357\372\250\361\303\265k\304w\252of\272\260wa\252\376\326", \
    none, none, none, NOTE_NEWER, "\333\265\267") \
  /* the manifest of {component} asks for what this cudaguard does not know: rows of kind {kinds} | update cudaguard */ \
  X(NOTE_NEWER_ROWS, 502, INFO, OPEN, 61, manifest, "\313\265\345\260\330\210 ask\252\353\357\372\250\361\267 \371k\304w\301row\252\330k\277d \223", \
    none, none, none, NOTE_NEWER, "") \
  /* a manifest in {file} is damaged: it was not judged | rebuild {file}: something wrote into it after it was linked */ \
  X(NOTE_DAMAGED, 503, INFO, OPEN, 62, manifest, "a \345\260\277 \215\327damag\326:\272\260wa\252\304\260\376\326", \
    because, none, none, NOTE_DAMAGED, "\256 \215\301some\313\277g wrot\265\277to\272\260aft\261\272\260wa\252l\277k\326") \
  /* no GPU is visible: nothing to judge |  */ \
  X(NOTHING_TO_SEE, 504, INFO, OPEN, 65, driver, "\374\317\327visible\301\304\313\277g\320\376e", \
    none, none, none, NOTHING_TO_SEE, "") \
  /* cannot tell whether driver and GPU fit: some facts are missing | `cargo cudaguard doctor` says what is missing */ \
  X(DRIVER_CANNOT_TELL, 505, INFO, OPEN, 64, driver, "\311som\265fact\252\335\265\367", \
    found_driver, gpus, none, DRIVER_CANNOT_TELL, "`\307say\252\357a\260\361\367") \
  /* cannot tell whether driver and GPU fit: cuInit answers {answer} | see what nvidia-smi says, and the kernel's log: dmesg | grep -i nvrm */ \
  X(DRIVER_CANNOT_TELL_ANSWER, 505, INFO, OPEN, 64, driver, "\311cuIni\260\312sw\261\252\200", \
    found_driver, gpus, none, DRIVER_CANNOT_TELL_ANSWER, "\366\342says\354\312d\325k\261\352l'\252log\301dmesg | g\355p -i nvrm") \
  /* cannot tell whether driver and GPU fit: libcuda.so.1 is there, and cannot be loaded: {why} | `cargo cudaguard doctor` says what is missing */ \
  X(DRIVER_CANNOT_TELL_NOT_LOADED, 505, INFO, OPEN, 64, driver, "\311\306.so.1\272s\250\261e,\263c\312\304\260b\265load\326\301\244", \
    gpus, none, none, DRIVER_CANNOT_TELL, "") \
  /* cannot tell whether {code} loads on this driver: nvcc {nvcc_major} made it, and NVIDIA promises that for drivers from {needs_release} on | update the driver to {needs_release} or newer to be sure[; or rebuild with CUDA {cuda_major}] */ \
  X(DRIVER_CANNOT_TELL_UNSURE, 505, INFO, OPEN, 64, driver, "\344 \207 load\252\303\250is\246\301nvcc \236 mad\265it,\263\373 promi\366s\350f\351\246\252\321\234 \303", \
    needed_by, found_driver, none, DRIVER_CANNOT_TELL_UNSURE, "\273\320\234\274\320b\265su\355[\324\256\347\332\212]") \
  /* cannot tell whether this driver compiles {code}: both are newer than the guard | rebuild it with {archs} added */ \
  X(DRIVER_CANNOT_TELL_NEWER_PTX, 505, INFO, OPEN, 64, driver, "\344\250is\246 \362ile\252\207\301bo\313 \335\265\352w\261\250\312\325gu\335d", \
    needed_by, found_driver, none, NO_CODE_FOR_GPU, "") \
  /* cannot tell whether CUDA_FORCE_PTX_JIT=1 leaves code for compute capability {gpus}: not all in {component} is known to have PTX | unset CUDA_FORCE_PTX_JIT */ \
  X(DRIVER_CANNOT_TELL_FORCED, 505, INFO, OPEN, 64, driver, "\344 \266=1 leave\252cod\265\353\276\220\301\304\260\331\272n \210\327k\304wn\320hav\265PTX", \
    built_for, found_driver, none, JIT_FORCED, "") \
  /* cannot tell whether {library} is older than CUDA {built_cuda}, which {component} was built with: its file's name does not say | put a folder with the libcudart of CUDA {built_cuda} first in LD_LIBRARY_PATH; or link it statically */ \
  X(CUDART_UNKNOWN, 507, INFO, INFORMS, 67, cudart, "\344 \226\327\271\250\312 \332\204\262\210\302:\272t\252file'\252nam\265\371say", \
    found_file, none, none, CUDART_OLDER, "") \
  /* {left_out} findings are left out: the guard keeps {kept} at most | `cargo cudaguard verify` shows all of them */ \
  X(NOT_ALL_KEPT, 508, INFO, OPEN, 60, manifest, "\224 f\277d\277g\252\335\265lef\260out\364\221 a\260mo\363", \
    none, none, none, NOT_ALL_KEPT, "`c\335go \267 v\261ify` show\252\331 of\250em") \
  /* {left_out} manifests were not judged: the guard keeps {kept} at most | `cargo cudaguard verify` shows all of them */ \
  X(NOT_ALL_KEPT_NOTES, 508, INFO, OPEN, 60, manifest, "\224 \345t\252w\261\265\304\260\376\326\364\221 a\260mo\363", \
    none, none, none, NOT_ALL_KEPT, "") \
  /* cannot tell whether cuDNN {found} works on compute capability {gpus}: it has code up to {newest_major}.x | put a newer cuDNN first in LD_LIBRARY_PATH: from cuDNN 9 for CUDA 12 on it serves GPUs that came after it */ \
  X(CUDNN_BEFORE_THIS_GPU, 517, INFO, OPEN, 72, driver, "\344\365\216 w\351k\252\303 \276\220:\272\260ha\252cod\265up\320\235.x", \
    needed_by, found_driver, none, CUDNN_BEFORE_THIS_GPU, "\334\352w\261\365\314\254\301\321\2479 \353\33212 \303\272\260s\261ve\252\317s\350cam\265aft\261\272t")

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
  X(because, "becau\366\301   \244") \
  /* built for:  {built_for} */ \
  X(built_for, "buil\260f\351\301 \205") \
  /* built with: cuDNN {built} ({component}) */ \
  X(built_with, "built\253\301\247\203 (\210)") \
  /* first in:   {library} {min} */ \
  X(first_in, "\314\301  \226 \232") \
  /* found:      cuDNN[ {found}] in {path}[, with {beside}] */ \
  X(found_cudnn, "\322\356 \323[ \216]\272n \241[,\347\202]") \
  /* found:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}] */ \
  X(found_driver, "\322\356\246[ \213][\264\252\332\211][ \303 \370\222][\272n \225]") \
  /* found:      {path} */ \
  X(found_file, "\322\356 \241") \
  /* GPUs:       compute capability {gpus} */ \
  X(gpus, "\317s\356  \276\220") \
  /* needed by:  {component} */ \
  X(needed_by, "\352\326\326 by\301 \210") \
  /* picked by:  {picked_by} */ \
  X(picked_by, "pick\326 by\301 \242")

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
  "put\265capabi\375ty " "\0" \
  " driv\261" "\0" \
  "\323 " "\0" \
  " \313" "\0" \
  "c\312\304\260tell \357" "\0" \
  "s " "\0" \
  " wi\313" "\0" \
  " LD_LIBRARY_PATH" "\0" \
  "\351 " "\0" \
  "\355build" "\0" \
  "CUDA" "\0" \
  "t " "\0" \
  "er" "\0" \
  "\354\357ich " "\0" \
  " \312d " "\0" \
  "\350supp\351t" "\0" \
  "e " "\0" \
  "\257_FORC\336" "\0" \
  "\377gu\335d" "\0" \
  "e\246\327too old f" "\0" \
  "old\261" "\0" \
  " i" "\0" \
  "\333e\250e\246" "\0" \
  " \255\352w\261" "\0" \
  " add\326" "\0" \
  "com\245" "\0" \
  "in" "\0" \
  "\262\352\326\252\303e\264\252\332" "\0" \
  ": " "\0" \
  " wa\252built\253" "\0" \
  "on" "\0" \
  "no" "\0" \
  "\277\363\331" "\0" \
  "\375b\377" "\0" \
  "c\335go \267 doct\351` " "\0" \
  "; \363\335\260a c\303ta\277\261\253" "\0" \
  "\344\246\263\317 fit\301" "\0" \
  "an" "\0" \
  "th" "\0" \
  "firs\260\277" "\0" \
  "\347\312 \271 toolkit" "\0" \
  " ha\252\374cod\265\353\276" "\0" \
  "GPU" "\0" \
  " to " "\0" \
  "from " "\0" \
  "found" "\0" \
  "cuDNN" "\0" \
  "; \255" "\0" \
  "\250\265" "\0" \
  "ed" "\0" \
  "\272\252" "\0" \
  "of " "\0" \
  "all" "\0" \
  "\257 " "\0" \
  "upd\372" "\0" \
  "pu\260a " "\0" \
  "ar" "\0" \
  "E_PTX_JIT" "\0" \
  "\315\301\304\246\327k\304wn\264s\250\361\303e" "\0" \
  "\307\375\363\252ev\261y c\312did" "\0" \
  "\305\365\357ol\265\321\303\265packa" "\0" \
  "\265\357a\260nvidia-smi " "\0" \
  "\257_VISIBLE_DEVICE" "\0" \
  "\251e\313\261" "\0" \
  "m\312ifes" "\0" \
  "\310\272t\252\317\252(--gpu\252\331)" "\0" \
  "\253 " "\0" \
  "\250a\260" "\0" \
  "or" "\0" \
  "ne" "\0" \
  "f\255" "\0" \
  ", " "\0" \
  "re" "\0" \
  "\301    " "\0" \
  "wh" "\0" \
  "load\261 l" "\0" \
  "i\252" "\0" \
  "comp" "\0" \
  "st" "\0" \
  ":\325gu\335d keep\252" "\0" \
  " \247" "\0" \
  "se" "\0" \
  "miss\277g" "\0" \
  "k\261\352l modul\265" "\0" \
  "doe\252\304\260" "\0" \
  "at" "\0" \
  "NVIDIA" "\0" \
  "\304 " "\0" \
  "li" "\0" \
  "judg" "\0" \
  "cuda" "\0"
