/* The shim under libFuzzer: its own text, compiled with ASan and UBSan, on a kernel that answers with the fuzzer's bytes. Every
 * call of the system goes through `kernel`, so that nothing of this machine is read or written. */
#define _GNU_SOURCE 1
#include <unistd.h>
long kernel(long number, ...);
#define syscall kernel
#include "joined.c" /* made by `run`: the shim, with the calls of the system by the C library's function */
#undef syscall

/* The one file that there is, whatever its name; of openings and looks, those that a bit of `absent` stands for find nothing. */
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
      about.st_ino = (ino_t)(a[0] == AT_FDCWD ? absent & 3 : a[0]); /* it may be what standard output or error leads to */
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
      static char room[3 * REPORT_ROOM];
      void *map = a[4] < 0 ? room : malloc((size_t)a[1]); /* of this very size: what is read behind it is seen */
      if (!map || map == room) return map ? (long)map : -1;
      memset(map, 0, (size_t)a[1]);
      give(map, (size_t)a[1], 0);
      return (long)map;
    }
    case SYS_munmap:
      if (a[1] != 3 * REPORT_ROOM) free((void *)a[0]);
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
    default: return -1; /* nothing is written, and no child is made */
  }
}

/* The state of a process that begins; what is large and behind a count of its own stays. */
static void forget(void) {
  static struct state fresh;
  g.notes = g.codes = g.looks = g.driver_known = g.driver_asked = g.seen = g.outcome = g.level = 0;
  g.answered = 0, g.notes_left_out = 0;
  g.driver = fresh.driver, g.told = fresh.told;
  g.asked[0] = g.self[0] = 0;
  g.findings.count = 0;
  g.library_path = "";
  memset(&g.first, 0, sizeof g.first);
  g.ready = g.program = 1;
  g.mode = MODE_MANIFEST;
  g.patience = g.left.tv_sec = 1;
  shut = 0;
}

static void judge_all(void) {
  char text[64];
  struct text t = text_in(text, sizeof text);
  const struct finding *f = 0;
  judge(1, 1);
  for (int refuse = 0; refuse < 2; refuse++)
    while ((f = next_to_tell(f, refuse))) put_told(&t, f, 1, refuse);
  tell(1);
  setenv("CUDAGUARD_REPORT", "report", 1);
  leave_report("checked");
  f = decisive(overall());
  if (f) compose(f);
}

static struct note *add_note(const unsigned char *bytes, size_t size) {
  struct note *n = &g.note[g.notes++];
  unsigned char *copy = (unsigned char *)malloc(size + !size);
  memcpy(copy, bytes, size);
  read_note(n, copy, (uint32_t)size);
  n->own = 1;
  memset(&n->image, 0, sizeof n->image);
  n->image.name = "program";
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
    case NOTE: /* and behind it a file */
      add_note(data, half);
      file = data + half, file_size = size - half;
      judge_all();
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
        if (ph[k].p_type == PT_LOAD) ph[k].p_type = PT_NOTE; /* what is mapped, the loader has seen to */
      ph[0].p_type = PT_LOAD, ph[0].p_flags = PF_R, ph[0].p_vaddr = 0, ph[0].p_filesz = ph[0].p_memsz = size;
      memset(&im, 0, sizeof im);
      im.base = (uintptr_t)copy, im.ph = ph, im.n = 3, im.name = "lib";
      take_notes(&im, 1, 1);
      if (g.notes) judge_all();
      free(copy);
      g.notes = 0;
      break;
    }
    case CACHE_FILE: {
      static char to[PATH_MAX];
      in_cache("libcuda.so.1", &to);
      in_cache("libcudnn.so.9", &to);
      break;
    }
    case GPUS_TEXT:
      n = add_note(data, half);
      look_at_driver(n);
      cc_of((const char *)(file_size && !data[size - 1] ? data : (const unsigned char *)"0x2330"));
      judge_all();
      break;
    case DRIVER_ANSWERS:
    case CUDNN_ANSWERS: {
      size_t most = sizeof g.answer - 1;
      n = add_note(data, half);
      file = data + half, file_size = size - half;
      g.answered = file_size < most ? file_size : most;
      memcpy(g.answer, file, g.answered);
      g.answer[g.answered] = 0;
      g.outcome = (int)(first % 3) + ANSWERED;
      if (kind == DRIVER_ANSWERS) {
        keep_path(&g.asked, LIBCUDA);
        look_at_driver(n);
        ask_the_driver();
        g.driver_known = 1;
        begin_round();
        g.now = n;
        if (n->state != NOTE_IS_DAMAGED) judge_driver(n, 1);
      } else {
        struct cudnn *c = &g.cudnn[0];
        struct library_row row;
        memcpy(&row, data, half < sizeof row ? 0 : sizeof row);
        if (half < sizeof row) break;
        look(c, n, &row, 0);
        keep_path(&g.asked, c->state == ABSENT || n->own ? c->names : c->path);
        ask_and_look(c, n, &row);
        g.now = n;
        begin_round();
        judge_cudnn(c, &row);
      }
      break;
    }
    case ELF_FILE: {
      struct elf e;
      char own[NOTE_TEXT];
      if (elf_open(&e, "x") <= 0) break;
      elf_string(&e, DT_SONAME, own, sizeof own);
      elf_string(&e, DT_RUNPATH, g.runpath, sizeof g.runpath);
      elf_word(&e, "cudnn_graph_version");
      own_minor(&e);
      made_with(&e, "cudnnGetCudartVersion");
      break;
    }
    case REPORT: { /* what another guard of this process has left, and a name */
      static char to[1 << 17], name[PATH_MAX];
      struct text t = text_in(to, sizeof to), path = text_in(name, sizeof name);
      const char *mine = "{\"host\":\"h\",\"file\":\"f\"}";
      enum { PROCESS = 11, GUARD = 22 };
      char *old = (char *)calloc(1, PROCESS + size + 1);
      memcpy(old, mine, PROCESS);
      memcpy(old + PROCESS, data, size);
      g.program = first & 1;
      put_all(&t, mine, GUARD, old);
      put_name(&path, old, "host");
      free(old);
      break;
    }
    default: break;
  }
  for (; g.notes > 0; g.notes--) free((void *)(uintptr_t)g.note[g.notes - 1].descriptor);
  return 0;
}
