/* Written by `cargo findings` from guard-core/data/findings.toml; a test keeps it so. What the shim speaks, and
 * the placeholders in it: that table says what each column means, and how the words are read. In a text each
 * placeholder is one byte, from 0x80 on, and behind those what many texts have in common. */

/* name, code, severity, verdict, rank, subject, sentence, its three lines, the finding that has the same hint, hint */
#define FINDINGS(X) \
  /* cuDNN[ {found}] is another major version than cuDNN {built}, which {component} was built with | install cuDNN {built_major} ({min} or newer) where the loader looks first; or rebuild against the one found */ \
  X(CUDNN_OTHER_MAJOR, 201, ERROR, REFUSES, 41, cudnn, "\325[ \216]\327a\303\314\261 maj\255v\261si\312\370\247\203\262\210\302", \
    built_with, found_cudnn, picked_by, CUDNN_OTHER_MAJOR, "\304 \247\206 (\232\274) \357\261e\322\361ook\253fir\363\320\256 aga\277\363\322\312\265\324") \
  /* cuDNN {found} is older than cuDNN {built}, which {component} was built with | update it, or put a folder with cuDNN {min} or newer first in LD_LIBRARY_PATH; or rebuild against cuDNN {found} */ \
  X(CUDNN_OLDER, 202, ERROR, REFUSES, 44, cudnn, "\247\216\327\271\370\247\203\262\210\302", \
    built_with, found_cudnn, picked_by, CUDNN_OLDER, "\333\265it\355\255\323f\271\350\247\232\274 \306\320\256 aga\277s\260\247\216") \
  /* cuDNN {found} is an older patch than cuDNN {built}, which {component} was built with | update it, or put a folder with cuDNN {min} or newer first in LD_LIBRARY_PATH; or rebuild against cuDNN {found} */ \
  X(CUDNN_OLDER_PATCH, 203, ERROR, REFUSES, 45, cudnn, "\247\216\327\313 \271 p\374ch\370\247\203\262\210\302", \
    built_with, found_cudnn, picked_by, CUDNN_OLDER, "") \
  /* cuDNN lacks {library}: calls that need it fail | reinstall cuDNN whole from one package */ \
  X(CUDNN_INNER_MISSING, 204, ERROR, REFUSES, 42, cudnn, "\247lack\253\226\301c\331s\351\360\272\260fail", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, "\353\342ge") \
  /* cuDNN lacks {library}: the first call would abort | reinstall cuDNN whole from one package */ \
  X(CUDNN_INNER_MISSING_NEEDED, 204, ERROR, REFUSES, 42, cudnn, "\247lack\253\226:\322firs\260c\331 would ab\354t", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, "") \
  /* no cuDNN was found: no folder that the loader looks into has {library} | install cuDNN {min} or newer, or name its folder in LD_LIBRARY_PATH */ \
  X(CUDNN_ABSENT, 205, ERROR, REFUSES, 40, cudnn, "\367\247wa\253\324\301\367f\271\250\374\322\361ook\253\277to ha\253\226", \
    built_with, none, none, CUDNN_ABSENT, "\304 \247\232\274\355\255nam\265it\253f\271\272n\251") \
  /* cuDNN is mixed: {library} is {part}, the rest {found} | remove the stray copy[ of {library} in {beside}], or reinstall cuDNN whole from one package */ \
  X(CUDNN_INNER_MIXED, 206, ERROR, REFUSES, 43, cudnn, "\247\365mix\326\301\226\327\240,\322\353s\260\216", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MIXED, "\353move\322\363ray copy[ \330\226\272n \202]\355\255\353\342ge") \
  /* cuDNN is mixed: its loader library is {loader}, the rest {found} | reinstall cuDNN whole from one package */ \
  X(CUDNN_INNER_MIXED_LOADER, 206, ERROR, REFUSES, 43, cudnn, "\247\365mix\326:\272t\253\361ibr\335y\327\227,\322\353s\260\216", \
    built_with, found_cudnn, picked_by, CUDNN_INNER_MISSING, "") \
  /* cuDNN[ {found}] is made for CUDA {found_cuda}, and {component} for CUDA {built_cuda} | put a cuDNN for CUDA {built_cuda} first in LD_LIBRARY_PATH */ \
  X(CUDNN_OTHER_CUDA, 207, WARNING, INFORMS, 57, cudnn, "\325[ \216]\327mad\265\352\332\217,\263\210 \352\332\204", \
    found_cudnn, picked_by, none, CUDNN_OTHER_CUDA, "\323\247\352\332\204 \306") \
  /* {component} uses {symbol}, which no library has | update the library, or rebuild */ \
  X(LIBRARY_LACKS_SYMBOL_EMPTY_SLOT, 214, ERROR, REFUSES, 14, library, "\210 u\371\253\243\262\367\377br\335y has", \
    found_file, first_in, none, LIBRARY_LACKS_SYMBOL_EMPTY_SLOT, "\333e\322\377br\335y\355\255\256") \
  /* {path}: symbol lookup error: {path}: undefined symbol: {symbol}[, version {library}] | update the library, or rebuild */ \
  X(LIBRARY_LACKS_SYMBOL_BY_THE_LOADER, 214, ERROR, REFUSES, 14, library, "\241\301symbol lookup \261r\354\301\241\301undef\277\326 symbol\301\243[\355v\261si\312 \226]", \
    none, none, none, LIBRARY_LACKS_SYMBOL_EMPTY_SLOT, "") \
  /* the driver is too old for {code}[, which needs one that supports CUDA {needs_cuda}] | update the driver[ to {needs_release} or newer]; or rebuild with an older toolkit */ \
  X(DRIVER_TOO_OLD, 301, ERROR, REFUSES, 30, driver, "\314\270\255\207[\300\233]", \
    needed_by, found_driver, gpus, DRIVER_TOO_OLD, "\273[\321\234\274]\320\256\315") \
  /* the driver is too old for {code}[, which needs one that supports CUDA {needs_cuda}] | rebuild with an older toolkit: no driver is known that supports this one */ \
  X(DRIVER_TOO_OLD_NONE_KNOWN, 301, ERROR, REFUSES, 30, driver, "\314\270\255\207[\300\233]", \
    needed_by, found_driver, gpus, DRIVER_TOO_OLD_NONE_KNOWN, "\256\337") \
  /* the driver is too old for {code} on compute capability {gpus}[, which needs one that supports CUDA {needs_cuda}] | update the driver[ to {needs_release} or newer]; or rebuild with {archs} added */ \
  X(DRIVER_TOO_OLD_FOR_CODE, 302, ERROR, REFUSES, 32, driver, "\314\270\255\207 \312 \276\220[\300\233]", \
    needed_by, found_driver, none, DRIVER_TOO_OLD_FOR_CODE, "\273[\321\234\274]\320\256\350\201\275") \
  /* the driver is too old for {code} on compute capability {gpus}[, which needs one that supports CUDA {needs_cuda}] | rebuild with {archs} added, or with an older toolkit: no driver is known that supports this one */ \
  X(DRIVER_TOO_OLD_FOR_CODE_NONE_KNOWN, 302, ERROR, REFUSES, 32, driver, "\314\270\255\207 \312 \276\220[\300\233]", \
    needed_by, found_driver, none, DRIVER_TOO_OLD_FOR_CODE_NONE_KNOWN, "\256\350\201\275\355\354\337") \
  /* CUDA_FORCE_PTX_JIT=1 needs {code} for compute capability {gpus}: the driver is too old for that[, CUDA {needs_cuda}] | unset CUDA_FORCE_PTX_JIT[; or update the driver to {needs_release} or newer] */ \
  X(DRIVER_TOO_OLD_FOR_CODE_FORCED, 302, ERROR, REFUSES, 32, driver, "\266=1 \360\253\207 \352\276\220:\250\270\354\250\374[\355\332\233]", \
    needed_by, found_driver, none, DRIVER_TOO_OLD_FOR_CODE_FORCED, "un\371\260\266[\320\273\321\234\274]") \
  /* {component} has no code for compute capability {gpus} | rebuild it with {archs} added */ \
  X(NO_CODE_FOR_GPU, 303, ERROR, REFUSES, 31, driver, "\210\316\220", \
    built_for, found_driver, none, NO_CODE_FOR_GPU, "\256\272t\350\201\275") \
  /* {component} has no code for compute capability {gpus} | rebuild it with {archs} added and CUDA {made_to} or older: CUDA {built_cuda} no longer makes that */ \
  X(NO_CODE_FOR_GPU_NO_LONGER_MADE, 303, ERROR, REFUSES, 31, driver, "\210\316\220", \
    built_for, found_driver, none, NO_CODE_FOR_GPU_NO_LONGER_MADE, "\256\272t\350\201\275\263\332\231 \255\271\301\332\204 \367l\312g\261 makes\250\374") \
  /* {component} has no code for compute capability {gpus} | rebuild it with {archs} added and CUDA {made_from} or newer; or with PTX of an older arch added */ \
  X(NO_CODE_FOR_GPU_NOT_YET_MADE, 303, ERROR, REFUSES, 31, driver, "\210\316\220", \
    built_for, found_driver, none, NO_CODE_FOR_GPU_NOT_YET_MADE, "\256\272t\350\201\275\263\332\230\274; \354\350PTX \330\313 \271 \335ch\275") \
  /* libcuda and the kernel module do not belong together (803) | reboot after a driver update; in a container, remove the libcuda that it brought along[: {libcuda}] */ \
  X(DRIVER_MISMATCH, 304, ERROR, REFUSES, 23, driver, "\305 \313d\322\364do \303\260bel\312g toge\314\261 (803)", \
    found_driver, gpus, none, DRIVER_MISMATCH, "\353boo\260aft\261 a\246 \333e;\272n a c\312ta\277\261\355\353move\322\305\351i\260brough\260al\312g[\301\225]") \
  /* cuda-compat does not work with this GPU (804) | take the folder of cuda-compat[, where {libcuda} lies,] out of LD_LIBRARY_PATH and update the driver; or hide that GPU with CUDA_VISIBLE_DEVICES */ \
  X(FORWARD_COMPAT_UNSUPPORTED, 305, ERROR, REFUSES, 24, driver, "cuda-\362a\260\373w\354k\254\250\365\317 (804)", \
    found_driver, gpus, none, FORWARD_COMPAT_UNSUPPORTED, "\376\322f\271 \330cuda-\362\374[\355\357\261\265\225 \377es,] ou\260of\251\263\273\320hide\351\317\350\344S") \
  /* the libcuda found is the stub, which is for linking only (34) | take the stubs folder[, where {libcuda} lies,] out of LD_LIBRARY_PATH and of RPATH */ \
  X(STUB_DRIVER, 306, ERROR, REFUSES, 25, driver, "\314\265\305 \324\272s\322\363ub\262\365\352l\277k\277g \312ly (34)", \
    found_driver, gpus, none, STUB_DRIVER, "\376\322\363ub\253f\271[\355\357\261\265\225 \377es,] ou\260of\251\263\330RPATH") \
  /* there is no libcuda.so.1, and {component} requires a GPU | install the NVIDIA driver; start a container with its GPUs (--gpus all) */ \
  X(DRIVER_MISSING, 307, ERROR, REFUSES, 20, driver, "\314\261\265\365\367\305.so.1,\263\210 \353qui\353\253a \317", \
    none, none, none, DRIVER_MISSING, "\304\322\375\246\340") \
  /* CUDA_DISABLE_PTX_JIT=1 forbids what compute capability {gpus} needs: {code} | unset CUDA_DISABLE_PTX_JIT; or rebuild with {archs} added */ \
  X(JIT_DISABLED, 308, ERROR, REFUSES, 34, driver, "\257_DISABL\336=1 f\354bid\253\357a\260\276\220 \360s\301\207", \
    needed_by, found_driver, none, JIT_DISABLED, "un\371\260\257_DISABL\336\320\256\350\201\275") \
  /* libnvidia-ptxjitcompiler.so.1 is missing, and compute capability {gpus} needs it for {code} (221) | install the driver whole; start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility; or rebuild with {archs} added */ \
  X(JIT_MISSING, 309, ERROR, REFUSES, 35, driver, "\377bnvidia-ptxjit\362il\261.so.1\327\372,\263\276\220 \360\253i\260\352\207 (221)", \
    needed_by, found_driver, none, JIT_MISSING, "\304\250e\246 \357ole\310\350\375_DRIVER_CAPABILITIES=\362ute,uti\377ty\320\256\350\201\275") \
  /* there is no GPU, and {component} requires one | see what nvidia-smi says and what CUDA_VISIBLE_DEVICES holds; start a container with its GPUs (--gpus all) */ \
  X(GPU_MISSING, 310, ERROR, REFUSES, 21, driver, "\314\261\265\365\367\317,\263\210 \353qui\353\253\312e", \
    found_driver, none, none, GPU_MISSING, "\371\343say\253\313d \357a\260\344S holds\340") \
  /* only part of the code in {component} is for compute capability {gpus} | rebuild all of it with {archs} added, or drop gpu.partial from cudaguard.toml */ \
  X(PARTIAL_CODE, 311, ERROR, REFUSES, 36, driver, "\312ly p\335\260of\322cod\265\277 \210\327\352\276\220", \
    built_for, found_driver, none, PARTIAL_CODE, "\256 \331 of\272t\350\201\275\355\255drop gpu.p\335tial \334\267.toml") \
  /* no GPU can run both {component} and {other} | rebuild both for one of {archs} */ \
  X(NO_GPU_FOR_ALL, 312, WARNING, INFORMS, 50, driver, "\367\317 c\313 run bo\314 \210\263\237", \
    found_driver, gpus, none, NO_GPU_FOR_ALL, "\256 bo\314 \352\312\265\330\201") \
  /* cuDNN {found} no longer works on compute capability {gpus} | put a cuDNN older than {dropped_in} first in LD_LIBRARY_PATH, if the program takes it (it takes {min} and newer); or run it on a newer GPU */ \
  X(CUDNN_TOO_NEW_FOR_GPU, 313, ERROR, REFUSES, 46, driver, "\247\216 \367l\312g\261 w\354k\253\312 \276\220", \
    needed_by, found_driver, none, CUDNN_TOO_NEW_FOR_GPU, "\323\247\271\370\214 \306,\272f\322program \376\253i\260(i\260\376\253\232\263\346)\320run\272\260\312 a \346 \317") \
  /* {library} is of CUDA {found_cuda}, older than CUDA {built_cuda}, which {component} was built with | put a folder with the libcudart of CUDA {built_cuda} first in LD_LIBRARY_PATH; or link it statically */ \
  X(CUDART_OLDER, 314, WARNING, INFORMS, 51, cudart, "\226\327\330\332\217\355\271\370\332\204\262\210\302", \
    found_file, none, none, CUDART_OLDER, "\323f\271\254\322\305r\260\330\332\204 \306\320l\277k\272\260\363\374ic\331y") \
  /* {component} has no PTX for compute capability {gpus}, and CUDA_FORCE_PTX_JIT=1 allows nothing else | unset CUDA_FORCE_PTX_JIT */ \
  X(JIT_FORCED, 315, ERROR, REFUSES, 33, driver, "\210 ha\253\367PTX \352\276\220,\263\266=1 \331ow\253\303\314\277g el\371", \
    built_for, found_driver, none, JIT_FORCED, "un\371\260\266") \
  /* cuDNN[ {found}] is made for CUDA {found_cuda}, and needs a driver that supports CUDA {needs_cuda} | put a cuDNN for CUDA[ {cuda_major}] first in LD_LIBRARY_PATH; or update the driver */ \
  X(CUDNN_NEEDS_NEWER_DRIVER, 316, ERROR, REFUSES, 26, driver, "\325[ \216]\327mad\265\352\332\217,\263\360\253a\246\264\253\332\233", \
    needed_by, found_driver, gpus, CUDNN_NEEDS_NEWER_DRIVER, "\323\247\352\257[ \212] \306\320\273") \
  /* cannot tell which cuDNN this is | see that cuDNN's inner libraries stand beside it: `cargo cudaguard doctor` lists every candidate */ \
  X(CUDNN_CANNOT_TELL, 501, INFO, OPEN, 63, cudnn, "\252ich \247\314\365is", \
    built_with, found_cudnn, picked_by, CUDNN_CANNOT_TELL, "\371e\351\325'\253\277n\261 \377br\335ie\253\363\313d besid\265it\301`\341\374e") \
  /* cannot tell which cuDNN {component} would get | see that cuDNN {min} or newer is installed: `cargo cudaguard doctor` lists every candidate */ \
  X(CUDNN_CANNOT_TELL_NOT_LOADED, 501, INFO, OPEN, 63, cudnn, "\252ich \247\210 would get", \
    built_with, none, none, CUDNN_CANNOT_TELL_NOT_LOADED, "\371e\351\247\232\274\327\304\326\301`\341\374e") \
  /* the manifest of {component} is newer than this cudaguard: what this one knows of it was judged | update cudaguard */ \
  X(NOTE_NEWER, 502, INFO, OPEN, 61, manifest, "\314\265\347\260\330\210\327\346\250\313\250\365\267\301\357\374\250\365\312\265k\303w\253of\272\260wa\253judg\326", \
    none, none, none, NOTE_NEWER, "\333\265\267") \
  /* the manifest of {component} asks for what this cudaguard does not know: rows of kind {kinds} | update cudaguard */ \
  X(NOTE_NEWER_ROWS, 502, INFO, OPEN, 61, manifest, "\314\265\347\260\330\210 ask\253\352\357\374\250\365\267 \373k\303w\301row\253\330k\277d \223", \
    none, none, none, NOTE_NEWER, "") \
  /* a manifest in {file} is damaged: it was not judged | rebuild {file}: something wrote into it after it was linked */ \
  X(NOTE_DAMAGED, 503, INFO, OPEN, 62, manifest, "a \347\260\277 \215\327damag\326:\272\260wa\253\303\260judg\326", \
    because, none, none, NOTE_DAMAGED, "\256 \215\301some\314\277g wrot\265\277to\272\260aft\261\272\260wa\253l\277k\326") \
  /* no GPU is visible: nothing to judge |  */ \
  X(NOTHING_TO_SEE, 504, INFO, OPEN, 65, driver, "\367\317\327visible\301\303\314\277g\321judge", \
    none, none, none, NOTHING_TO_SEE, "") \
  /* cannot tell whether driver and GPU fit: some facts are missing | `cargo cudaguard doctor` says what is missing */ \
  X(DRIVER_CANNOT_TELL, 505, INFO, OPEN, 64, driver, "\311som\265fact\253\335\265\372", \
    found_driver, gpus, none, DRIVER_CANNOT_TELL, "`\307say\253\357a\260\365\372") \
  /* cannot tell whether driver and GPU fit: cuInit answers {answer} | see what nvidia-smi says, and the kernel's log: dmesg | grep -i nvrm */ \
  X(DRIVER_CANNOT_TELL_ANSWER, 505, INFO, OPEN, 64, driver, "\311cuIni\260\313sw\261\253\200", \
    found_driver, gpus, none, DRIVER_CANNOT_TELL_ANSWER, "\371\343says\355\313d\322k\261nel'\253log\301dmesg | g\353p -i nvrm") \
  /* cannot tell whether driver and GPU fit: libcuda.so.1 is there, and cannot be loaded: {why} | `cargo cudaguard doctor` says what is missing */ \
  X(DRIVER_CANNOT_TELL_NOT_LOADED, 505, INFO, OPEN, 64, driver, "\311\305.so.1\272s\250\261e,\263c\313\303\260b\265load\326\301\244", \
    gpus, none, none, DRIVER_CANNOT_TELL, "") \
  /* cannot tell whether {code} loads on this driver: nvcc {nvcc_major} made it, and NVIDIA promises that for drivers from {needs_release} on | update the driver to {needs_release} or newer to be sure[; or rebuild with CUDA {cuda_major}] */ \
  X(DRIVER_CANNOT_TELL_UNSURE, 505, INFO, OPEN, 64, driver, "\345 \207 load\253\312\250is\246\301nvcc \236 mad\265it,\263\375 promi\371s\351f\354\246\253\334\234 \312", \
    needed_by, found_driver, none, DRIVER_CANNOT_TELL_UNSURE, "\273\321\234\274\321b\265su\353[\320\256\350\332\212]") \
  /* cannot tell whether this driver compiles {code}: both are newer than the guard | rebuild it with {archs} added */ \
  X(DRIVER_CANNOT_TELL_NEWER_PTX, 505, INFO, OPEN, 64, driver, "\345\250is\246 \362ile\253\207\301bo\314 \335\265\346\250\313\322gu\335d", \
    needed_by, found_driver, none, NO_CODE_FOR_GPU, "") \
  /* cannot tell whether CUDA_FORCE_PTX_JIT=1 leaves code for compute capability {gpus}: not all in {component} is known to have PTX | unset CUDA_FORCE_PTX_JIT */ \
  X(DRIVER_CANNOT_TELL_FORCED, 505, INFO, OPEN, 64, driver, "\345 \266=1 leave\253cod\265\352\276\220\301\303\260\331\272n \210\327k\303wn\321hav\265PTX", \
    built_for, found_driver, none, JIT_FORCED, "") \
  /* cannot tell whether {library} is older than CUDA {built_cuda}, which {component} was built with: its file's name does not say | put a folder with the libcudart of CUDA {built_cuda} first in LD_LIBRARY_PATH; or link it statically */ \
  X(CUDART_UNKNOWN, 507, INFO, INFORMS, 67, cudart, "\345 \226\327\271\370\332\204\262\210\302:\272t\253file'\253nam\265\373say", \
    found_file, none, none, CUDART_OLDER, "") \
  /* {left_out} findings are left out: the guard keeps {kept} at most | `cargo cudaguard verify` shows all of them */ \
  X(NOT_ALL_KEPT, 508, INFO, OPEN, 60, manifest, "\224 f\277d\277g\253\335\265lef\260out\366\221 a\260mo\363", \
    none, none, none, NOT_ALL_KEPT, "`c\335go \267 v\261ify` show\253\331 of\250em") \
  /* {left_out} manifests were not judged: the guard keeps {kept} at most | `cargo cudaguard verify` shows all of them */ \
  X(NOT_ALL_KEPT_NOTES, 508, INFO, OPEN, 60, manifest, "\224 \347t\253w\261\265\303\260judg\326\366\221 a\260mo\363", \
    none, none, none, NOT_ALL_KEPT, "") \
  /* cannot tell whether cuDNN {found} works on compute capability {gpus}: it has code up to {newest_major}.x | put a newer cuDNN first in LD_LIBRARY_PATH: from cuDNN 9 for CUDA 12 on it serves GPUs that came after it */ \
  X(CUDNN_BEFORE_THIS_GPU, 517, INFO, OPEN, 72, driver, "\345 \247\216 w\354k\253\312 \276\220:\272\260ha\253cod\265up\321\235.x", \
    needed_by, found_driver, none, CUDNN_BEFORE_THIS_GPU, "\323\346 \247\306\301\334\2479 \352\33212 \312\272\260s\261ve\253\317s\351cam\265aft\261\272t")

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
  X(because, "becau\371\301   \244") \
  /* built for:  {built_for} */ \
  X(built_for, "buil\260f\354\301 \205") \
  /* built with: cuDNN {built} ({component}) */ \
  X(built_with, "built\254\301\247\203 (\210)") \
  /* first in:   {library} {min} */ \
  X(first_in, "firs\260\277\301  \226 \232") \
  /* found:      cuDNN[ {found}] in {path}[, with {beside}] */ \
  X(found_cudnn, "\324\356 \325[ \216]\272n \241[,\350\202]") \
  /* found:      driver[ {driver}][ that supports CUDA {cuda}][ on kernel module {kernel}][ in {libcuda}] */ \
  X(found_driver, "\324\356\246[ \213][\264\253\332\211][ \312 \364\222][\272n \225]") \
  /* found:      {path} */ \
  X(found_file, "\324\356 \241") \
  /* GPUs:       compute capability {gpus} */ \
  X(gpus, "\317s\356  \276\220") \
  /* needed by:  {component} */ \
  X(needed_by, "\360\326 by\301 \210") \
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
  "put\265capabi\377ty " "\0" \
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
  "\257_FORC\336" "\0" \
  "cudagu\335d" "\0" \
  "e\246\327too old f" "\0" \
  "old\261" "\0" \
  " i" "\0" \
  "\333e\250e\246" "\0" \
  " \255\346" "\0" \
  " add\326" "\0" \
  "com\245" "\0" \
  "in" "\0" \
  "\262\360\253\312e\264\253\332" "\0" \
  ": " "\0" \
  " wa\253built\254" "\0" \
  "no" "\0" \
  "\277\363\331" "\0" \
  "\377bcuda" "\0" \
  "firs\260\277\251" "\0" \
  "c\335go \267 doct\354` " "\0" \
  "; \363\335\260a c\312ta\277\261" "\0" \
  "\345\246\263\317 fit\301" "\0" \
  "on" "\0" \
  "an" "\0" \
  "th" "\0" \
  "\350\313 \271 toolkit" "\0" \
  " ha\253\367cod\265\352\276" "\0" \
  "GPU" "\0" \
  "; \255" "\0" \
  " to " "\0" \
  "\250\265" "\0" \
  "pu\260a " "\0" \
  "found" "\0" \
  "cuDNN" "\0" \
  "ed" "\0" \
  "\272\253" "\0" \
  "of " "\0" \
  "all" "\0" \
  "\257 " "\0" \
  "upd\374" "\0" \
  "from " "\0" \
  "ar" "\0" \
  "E_PTX_JIT" "\0" \
  "\315\301\303\246\327k\303wn\264s\250\365\312e" "\0" \
  "\310\254\272t\253\317\253(--gpu\253\331)" "\0" \
  "\307\377\363\253ev\261y c\313did" "\0" \
  "\304 \247\357ol\265\334\312\265packa" "\0" \
  "\265\357a\260nvidia-smi " "\0" \
  "\257_VISIBLE_DEVICE" "\0" \
  "\252e\314\261" "\0" \
  "new\261" "\0" \
  "m\313ifes" "\0" \
  "\254 " "\0" \
  "\250a\260" "\0" \
  "f\255" "\0" \
  "re" "\0" \
  "or" "\0" \
  ", " "\0" \
  "\301    " "\0" \
  "wh" "\0" \
  "ne\326" "\0" \
  "load\261 l" "\0" \
  "comp" "\0" \
  "st" "\0" \
  "k\261nel modul\265" "\0" \
  "i\253" "\0" \
  ":\322gu\335d keep\253" "\0" \
  "\303 " "\0" \
  "\250\313 " "\0" \
  "se" "\0" \
  "miss\277g" "\0" \
  "doe\253\303\260" "\0" \
  "at" "\0" \
  "NVIDIA" "\0" \
  "take" "\0" \
  "li" "\0"
