/* Words. */

CODE int about_driver(const struct finding *f) { return f->code / 100 == 3 || f->code > 503; }

#define BUILT_WITH " than " cuDNN " %B, which " WAS_BUILT_WITH
#define NEWER WITH cuDNN " %M or newer"
#define OR_REBUILD "; or " REBUILD " against " THE "one found"
#define WHERE_GPUS START_A_CONTAINER "its GPUs (--gpus all)"
#define WITH_ARCH REBUILD WITH "that architecture"

/* What is wrong, what to do; empty where the next says it for both. */
#define WORDS(X) \
  X(201, cuDNN "< %F> is of another major" BUILT_WITH,                                                                     \
    INSTALL cuDNN " %N (%M or newer) where " THE "loader looks first" OR_REBUILD)                                             \
  X(202, cuDNN " %F is" OLDER BUILT_WITH, "")                                                                              \
  X(203, cuDNN " %F is an" OLDER " patch" BUILT_WITH, "%w" NEWER "%s" OR_REBUILD)                                             \
  X(204, cuDNN "'s library %L" IS_MISSING "%w", "re" INSTALL cuDNN " whole, so" THAT "all its libraries stand in one folder")       \
  X(205, "no " cuDNN " was found", INSTALL cuDNN " %M or newer, or name its folder in " LD_LIBRARY_PATH)                        \
  X(206, cuDNN " is mixed: %L is %O, " THE "rest %F", "remove " THE "stray copy, or re" INSTALL cuDNN " whole from one package")     \
  X(301, "", "")                                                                                                          \
  X(302, THE "" DRIVER " is too old: %L needs one" THAT "supports CUDA %U",                                                     \
    "update " THE "" DRIVER "< to %R or newer>; or " REBUILD WITH "an" OLDER " toolkit")                                               \
  X(304, "libcuda and " THE "kernel module do not belong together (803)",                                                    \
    "reboot after a " DRIVER "'s update; in a container, remove its own libcuda")                                             \
  X(305, "cuda-compat does not work" WITH "this GPU (804)",                                                                 \
    "take " THE "compat folder out of " LD_LIBRARY_PATH " and update " THE "" DRIVER ", or hide" THAT "GPU by " CUDA_ "VISIBLE_DEVICES")      \
  X(306, "this libcuda is " THE "stub" THAT "is for linking only (34)",                                                        \
    "take " THE "folder" WITH THE "stubs out of " LD_LIBRARY_PATH " and of RPATH")                                                 \
  X(307, "there is no libcuda.so.1, and " THE "program requires a GPU", INSTALL THE "NVIDIA " DRIVER "; " WHERE_GPUS)            \
  X(308, CUDA_ "DISABLE_PTX_JIT forbids what %G needs: %L", "unset " CUDA_ "DISABLE_PTX_JIT; or " WITH_ARCH)                   \
  X(309, LIBJIT IS_MISSING ", and %G needs it for %L (221)",                                                              \
    INSTALL THE "" DRIVER " whole; " START_A_CONTAINER "NVIDIA_DRIVER_CAPABILITIES=compute,utility; or " WITH_ARCH)         \
  X(310, "there is no GPU, and " THE "program requires one", "see nvidia-smi and " CUDA_ "VISIBLE_DEVICES; " WHERE_GPUS)         \
  X(303, "%C has no code for %G", "")                                                                                     \
  X(311, "only a part of " THE "code in %C is for %G", "")                                                                   \
  X(312, "no GPU is fit for both %C and %L", WITH_ARCH " among those built for")                                          \
  X(313, cuDNN " %F no longer works on %G", INSTALL "an" OLDER " " cuDNN THAT THE "program accepts; or run it on a newer GPU")   \
  X(315, "%C has no PTX for %G, and " CUDA_ "FORCE_PTX_JIT passes over all else", "unset " CUDA_ "FORCE_PTX_JIT")             \
  X(314, "libcudart %F in %P is" OLDER " than " THE "toolkit %B" THAT "" WAS_BUILT_WITH,                                        \
    "put " THE "libcudart built" WITH "first in " LD_LIBRARY_PATH ", or update it; or link it statically")                         \
  X(501, "%w", "nothing; its inner libraries should stand beside it")                                                     \
  X(502, THE "manifest is newer than " THE "guard: judged as far as it is known", "update cudaguard")          \
  X(503, "a manifest is damaged: left out", REBUILD " " THE "file")                                                           \
  X(504, "no GPU to be seen: nothing to judge", "")                                                                       \
  X(507, "cannot tell how old libcudart in %P is", "nothing")                                                             \
  X(505, "cannot tell whether " DRIVER " and GPU fit", "nothing")

static const uint16_t TIGHT codes[] = {
#define CODE_OF(code, what, hint) code,
    WORDS(CODE_OF)};
static const char TIGHT words[] =
#define WORDS_OF(code, what, hint) what "\0" hint "\0"
    WORDS(WORDS_OF);

CODE const char *words_of(const struct finding *f, int skip) {
  const char *s = words;
  int k;
  for (k = 0; codes[k] != f->code; k++) skip += 2;
  for (; skip-- || !*s; s += len(s) + 1)
    if (skip < 0) skip = 1;
  return s;
}

/* A finding as a program gets it that asks: in g.verdict, all but the verdict. Each fact stands on a line of its own. */
CODE void compose(const struct finding *f) {
  struct verdict *v = &g.verdict;
  struct text t;
  int driver = about_driver(f), first = starts(f->why, "LD_LIBRARY_PATH");
  v->code = f->code, v->severity = f->severity;
  format(v->subject, sizeof v->subject, f->code == 314 || f->code == 507 ? "cudart" : driver ? "driver" : f->code > 501 ? "manifest" : "cuDNN");
  cut(v->component, sizeof v->component, f->component);
  format(v->built, sizeof v->built, driver ? "<%c>" : "<%v>", driver ? f->min : f->built);
  format(v->found, sizeof v->found, driver ? "<%c>" : "<%v>", driver ? g.driver.cuda : f->found);
  t.of = f;
  t.at = v->message, t.used = 0, t.size = sizeof v->message;
  putf(&t, words_of(f, 0), f->code == 204 ? f->severity == ERROR ? ": " THE "first call would abort" : "" : f->path[0] ? "cannot tell which " cuDNN " this is" : "no " cuDNN " is loaded yet, so it cannot be told which");
  putf(&t, !driver ? "<\nbuilt with: " cuDNN " %B (%C)><\nfound:      " cuDNN "< %F> in %P<," WITH "%G>><\npicked by:  %W>"
                    : "<\nbuilt for:  %s><\nneeded by:  %C%E><\nfound:      %D><\nGPUs:       %G>",
       f->code == 303 ? f->file : "");
  t.at = v->hint, t.used = 0, t.size = sizeof v->hint;
  putf(&t, words_of(f, 1), first ? "take" THAT "folder out of " LD_LIBRARY_PATH ", or put one" : "update it, or put a folder in " LD_LIBRARY_PATH, first ? " first" : "");
}

/* One write: never mixed with what other processes write, and no signal where nobody reads. */
CODE void say(const char *text) {
  uint64_t pipe_only = (uint64_t)1 << (SIGPIPE - 1), before, pending;
  struct timespec now;
  now.tv_sec = now.tv_nsec = 0;
  sys2(SYS_rt_sigpending, (long)&pending, sizeof pending);
  sys4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&pipe_only, (long)&before, sizeof before);
  if (sys3(SYS_write, STDERR_FILENO, (long)text, (long)len(text)) == -EPIPE && !(pending & pipe_only))
    sys4(SYS_rt_sigtimedwait, (long)&pipe_only, 0, (long)&now, sizeof pipe_only);
  sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before);
}

static const char TIGHT names[][8] = {"runs", "refused", "unknown", "info", "warning", "error", "whole", "newer", "damaged"};

CODE void say_finding(const struct finding *f, int refuse) {
  char line[4096];
  compose(f);
  format(line, sizeof line, "cudaguard: %s[CG%n]: %i\n  what to do: %s\n%s", names[4 + refuse], (uint32_t)f->code, g.verdict.message,
         g.verdict.hint, refuse ? "  (CUDAGUARD=warn starts it all the same; CUDAGUARD_REPORT=FILE tells more)\n" : "");
  say(line);
}
