/* Fuzz target of the shim, compiled with ASan and UBSan. `kernel` simulates all system calls with the bytes of the fuzzer, so the
 * shim reads and writes nothing on this machine. */
#define _GNU_SOURCE 1
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
long kernel(long number, ...);
#define syscall kernel
#include "shim.c" /* a copy by `run`, which calls syscall() for system calls */
#undef syscall

static struct context *const cx = &the_context;

/* The single simulated file, which has every name. Calls of open and stat whose bit in `absent` is set fail. */
static const unsigned char *file;
static size_t file_size, file_at;
static unsigned absent, opened;

static long give(void *to, size_t size, size_t at) {
  size_t left = at < file_size ? file_size - at : 0;
  if (size > left) size = left;
  if (size) memcpy(to, file + at, size);
  return (long)size;
}

long kernel(long number, ...) {
  long a[6];
  va_list list;
  int k;
  va_start(list, number);
  for (k = 0; k < 6; k++) a[k] = va_arg(list, long);
  va_end(list);
  errno = ENOENT;
  switch (number) {
    case SYS_openat:
      file_at = 0;
      return absent >> (opened++ & 31) & 1 ? -1 : 100;
    case SYS_newfstatat: {
      struct stat about;
      memset(&about, 0, sizeof about);
      about.st_size = (off_t)file_size;
      about.st_mode = absent & 4 ? S_IFLNK : S_IFREG;
      about.st_ino = (ino_t)(a[0] == AT_FDCWD ? absent & 3 : a[0]); /* may equal that of standard output or error */
      memcpy((void *)a[2], &about, sizeof about);
      return absent >> (opened++ & 31) & 1 ? -1 : 0;
    }
    case SYS_access:
    case SYS_faccessat: return absent >> (opened++ & 31) & 1 ? -1 : 0;
    case SYS_read: {
      long n = give((void *)a[1], (size_t)a[2], file_at);
      file_at += (size_t)n;
      return n;
    }
    case SYS_pread64: return give((void *)a[1], (size_t)a[2], (size_t)a[3]);
    case SYS_readlink: return absent & 1 ? -1 : give((void *)a[1], (size_t)a[2] < 300 ? (size_t)a[2] : 300, 0);
    case SYS_mmap: {
      static char room[4 << 20]; /* for the report */
      void *map = a[4] < 0 ? room : malloc((size_t)a[1]); /* exact size, so that ASan detects reads after the end */
      if (!map || map == room) return map ? (long)map : -1;
      memset(map, 0, (size_t)a[1]);
      give(map, (size_t)a[1], 0);
      return (long)map;
    }
    case SYS_munmap:
      if (a[1] != 4 << 20) free((void *)a[0]);
      return 0;
    case SYS_getdents64: {
      struct {
        uint64_t inode;
        int64_t offset;
        unsigned short size;
        unsigned char type;
        char name[13];
      } one;
      if (file_at) return 0;
      file_at = 1;
      memset(&one, 0, sizeof one);
      one.size = sizeof one;
      memcpy(one.name, "0000:01:00.0", sizeof one.name);
      memcpy((void *)a[1], &one, sizeof one);
      return sizeof one;
    }
    case SYS_close: return 0;
    case SYS_getpid: return 7;
    default: return -1; /* writes and new children fail */
  }
}

/* Resets the state as for a new process, except large arrays whose count is reset. */
static void forget(void) {
  cx->notes = cx->searches_kernels = cx->outcome = cx->level = 0;
  cx->answered = 0, cx->dropped_notes = 0;
  memset(&cx->driver, 0, sizeof cx->driver);
  memset(&cx->probed, 0, sizeof cx->probed);
  cx->asked[0] = cx->self[0] = 0;
  cx->findings.count = 0;
  cx->library_path = "";
  memset(&cx->first, 0, sizeof cx->first);
  cx->startup = cx->program = 1;
  cx->mode = MODE_MANIFEST;
  cx->patience = cx->left.tv_sec = 1;
  cx->lookup_failed = 0;
  cx->gpu_rows_of = 0;
}

static void judge_all_notes(void) {
  char text[64];
  struct text t = start_text(text, sizeof text);
  const struct finding *f = 0;
  judge(cx, 1, 1);
  for (int refuse = 0; refuse < 2; refuse++)
    while ((f = find_next_printed(cx, f, refuse))) put_printed(cx, &t, f, f, refuse);
  print_findings(cx, 1);
  setenv("CUDAGUARD_REPORT", "report", 1);
  write_report(cx, "checked");
  f = find_decisive(cx, get_result(cx));
  if (f) compose_verdict(cx, f, &cx->checked);
}

static struct note *add_note(const unsigned char *bytes, size_t size) {
  struct note *n = &cx->note[cx->notes++];
  unsigned char *copy = (unsigned char *)malloc(size + !size);
  memcpy(copy, bytes, size);
  read_note(n, copy, (uint32_t)size);
  n->own = 1;
  memset(&n->file, 0, sizeof n->file);
  n->file.name = "program";
  return n;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  enum { NOTE, IMAGE, CACHE_FILE, GPUS_TEXT, DRIVER_ANSWERS, CUDNN_ANSWERS, ELF_FILE, REPORT, KINDS };
  unsigned kind, first;
  size_t half;
  struct note *n;
  if (size < 8 || size > 65535) return 0;
  forget();
  kind = data[0] % KINDS;
  memcpy(&absent, data + 1, sizeof absent);
  opened = 0;
  first = data[5];
  data += 8, size -= 8;
  file = data, file_size = size;
  half = size < 4096 ? size : 4096;
  switch (kind) {
    case NOTE: /* and a file after it */
      add_note(data, half);
      file = data + half, file_size = size - half;
      judge_all_notes();
      break;
    case IMAGE: {
      ElfW(Phdr) ph[3];
      struct image im;
      unsigned char *copy;
      if (size < sizeof ph) break;
      copy = (unsigned char *)aligned_alloc(16, (size + 15) & ~(size_t)15);
      memcpy(copy, data, size);
      memcpy(ph, data, sizeof ph);
      for (int k = 1; k < 3; k++)
        /* The dynamic linker has checked the segments and used the dynamic table. */
        if (ph[k].p_type == PT_LOAD || ph[k].p_type == PT_DYNAMIC) ph[k].p_type = PT_NOTE;
      ph[0].p_type = PT_LOAD, ph[0].p_flags = PF_R, ph[0].p_vaddr = 0, ph[0].p_filesz = ph[0].p_memsz = size;
      memset(&im, 0, sizeof im);
      im.file.base = (uintptr_t)copy, im.file.ph = ph, im.file.n = 3, im.file.name = "lib";
      collect_image_notes(cx, &im, 1, 1);
      if (cx->notes) judge_all_notes();
      free(copy);
      cx->notes = 0;
      break;
    }
    case CACHE_FILE: {
      static char to[PATH_MAX];
      search_cache(cx, CACHE, "libcuda.so.1", &to);
      search_cache(cx, CACHE, "libcudnn.so.9", &to);
      break;
    }
    case GPUS_TEXT:
      n = add_note(data, half);
      detect_driver(cx, n, &cx->file);
      get_capability((const char *)(file_size && !data[size - 1] ? data : (const unsigned char *)"0x2330"));
      judge_all_notes();
      break;
    case DRIVER_ANSWERS:
    case CUDNN_ANSWERS: {
      size_t most = sizeof cx->answer.at - 1;
      n = add_note(data, half);
      file = data + half, file_size = size - half;
      cx->answered = file_size < most ? file_size : most;
      memcpy(cx->answer.at, file, cx->answered);
      cx->answer.at[cx->answered] = 0;
      cx->outcome = (int)(first % 3) + ANSWERED;
      if (kind == DRIVER_ANSWERS) {
        copy_path(&cx->asked, LIBCUDA);
        detect_driver(cx, n, &cx->file);
        probe_driver(cx, &cx->file);
        cx->now = n;
        judge_note(cx, n, 0, 0);
      } else {
        struct cudnn *c = &cx->shared.note.cudnn;
        struct library_row row;
        memcpy(&row, data, half < sizeof row ? 0 : sizeof row);
        if (half < sizeof row) break;
        detect_cudnn(cx, c, n, &row, 0, &cx->file);
        close_elf(&cx->file.elf);
        copy_path(&cx->asked, c->is.state == ABSENT || n->own ? c->names : c->path);
        probe_cudnn(cx, c, n, &row, &cx->file);
        cx->now = n;
        if (!is_note_readable(n)) break;
        call_judge(cx, n, 0, 0);
        add_judged_findings(cx);
      }
      break;
    }
    case ELF_FILE: {
      struct elf *e = &cx->file.elf;
      char own[NOTE_TEXT];
      if (open_elf(cx, e, "x") != IS_THERE) break;
      read_elf_string(e, DT_SONAME, own, sizeof own);
      read_elf_string(e, DT_RUNPATH, cx->shared.note.runpath, sizeof cx->shared.note.runpath);
      read_elf_word(e, "cudnn_graph_version");
      read_cuda_version(e, "cudnnGetCudartVersion");
      break;
    }
    case REPORT: { /* the name of a report */
      static char name[PATH_MAX];
      struct text path = start_text(name, sizeof name);
      char *pattern = (char *)calloc(1, size + 1);
      memcpy(pattern, data, size);
      put_name(&path, pattern, "host");
      free(pattern);
      break;
    }
    default: break;
  }
  for (; cx->notes > 0; cx->notes--) free((void *)(uintptr_t)cx->note[cx->notes - 1].descriptor);
  return 0;
}
