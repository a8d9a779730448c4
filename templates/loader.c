
/* ---- [runtime] loader = "guard" ----
 * What the system's loader would do for NVIDIA's libraries, done by the guard, so that it can say in words what is wrong with
 * one. Sealing (guard-core/src/seal/late.rs) has taken them from the loader's list; here they are loaded by that very loader,
 * through dlopen, and bound before any constructor of the program's runs. All at the start: a symbol that is missing leaves
 * its slot empty, for which slots.c answers. */
#if defined(__linux__) && defined(__ELF__) && defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(__ILP32__)

#pragma weak dlvsym

enum {
  LOADED_BY_GUARD = 0x6000cd01, /* a tag: DT_NEEDED, but for the guard */
  BOUND_BY_GUARD = 32,          /* in st_other, beside MADE_WEAK */
  MOST_LOADED = 16
};

/* Sealing says here that there is something to load, and how many objects stand before it where nobody adds one (a library
 * that is preloaded): 0 where the program itself defines what a library might refer to. */
static const volatile struct {
  unsigned char mark[12];
  uint32_t loads, objects;
} late = {{0xc6, 0x2a, 'c', 'u', 'd', 'a', 'l', 'o', 'a', 'd', 's', 0x95}, 0, 0};

/* For packagers' tools, which read DT_NEEDED and this note; sealing writes the list. */
__asm__(".pushsection .note.dlopen,\"a\",%note\n"
        ".balign 4\n.long 4, 1024, 0x407c0c0a\n.ascii \"FDO\\0\"\n.ascii \"[]\"\n.zero 1022\n"
        ".popsection\n");

static struct {
  const char *name;
  void *handle;
} loaded_late[MOST_LOADED];

/* What the loader's answer means, by its words: the code of what `verify` says of the same, and what to do. */
static const struct {
  const char *words, *code, *hint;
} late_answers[] = {
    {"wrong ELF class", "211", "use the library for this machine"},
    {"version `", "213", "run it on a system as new as the one it was built on, or build it on the older one"},
    {"undefined symbol", "214", "the libraries are of different releases: install those of one"},
    {"cannot open shared object file", "210", "install the package that holds it, or name its folder in LD_LIBRARY_PATH"},
    {"", "212", "reinstall the package that the file belongs to, or remove the file"},
};

enum { VERSION_MISSING = 1 /* of which the loader tells in another form */, FILE_MISSING = 3 };

/* Ends the program: in our words, or in the loader's where the guard may not refuse. */
CODE void end_without(const char *library, const char *why) {
  static char page[4096];
  struct text t = text_in(page, sizeof page);
  int k = 0, refuse;
  prepare(1);
  refuse = g.mode != MODE_OFF && g.mode != MODE_WARN && (!g.notes || note_refuses(g.note));
  while (*late_answers[k].words && !find_text(why, late_answers[k].words)) k++;
  if (g.mode != MODE_OFF) {
    put(&t, refuse ? "cudaguard: error[CG" : "cudaguard: warning[CG");
    put(&t, k == FILE_MISSING && starts(why, library) && major_in_name(base_name(library)) ? "205" : late_answers[k].code);
    put(&t, "]: ");
    put_outside(&t, library);
    put(&t, " cannot be loaded\n  needed by:  ");
    put_outside(&t, self());
    put(&t, "\n  the loader: ");
    put_outside(&t, why);
    put(&t, "\n  what to do: ");
    put(&t, k == FILE_MISSING && starts(base_name(library), "libcuda.so") ? "it is a part of the NVIDIA driver: install the driver" : late_answers[k].hint);
    put(&t, "\n");
  }
  if (!refuse) {
    put_outside(&t, read_text("/proc/self/cmdline", g.answer, sizeof g.answer) ? g.answer : self());
    put(&t, k == VERSION_MISSING ? ": " : ": error while loading shared libraries: ");
    put_outside(&t, why);
    put(&t, "\n");
  }
  say(page);
  leave(refuse ? STATUS_REFUSED : k == VERSION_MISSING ? 1 : STATUS_OF_LOADER);
}

/* The symbol, of the library that is asked for it; where no version says which, of the first that has it. */
CODE void *look_up(const struct image *im, const ElfW(Sym) * s) {
  const char *name = im->strings + s->st_name, *of = im->strings + ((uint64_t)s->st_size >> 32);
  int k;
  for (k = 0; k < MOST_LOADED && loaded_late[k].name; k++) {
    void *found = 0;
    if (!(s->st_other & HAS_VERSION)) found = dlsym(loaded_late[k].handle, name);
    else if (same(loaded_late[k].name, of)) found = dlvsym(loaded_late[k].handle, name, of);
    if (found) return found;
  }
  return 0;
}

CODE int is_own(const struct image *im, ElfW(Addr) at) {
  int k;
  for (k = 0; k < im->n; k++)
    if (im->ph[k].p_type == PT_LOAD && at - (im->base + im->ph[k].p_vaddr) < im->ph[k].p_memsz) return 1;
  return 0;
}

/* What is filled already is somebody's who stands before the library, as LD_PRELOAD has it. What the loader looks up at its first
 * call it finds then, too, where anybody has it; where nobody has, it is left empty now, for there would be no words then. */
CODE void bind_late(const struct image *im, const struct tags *t, int table, size_t size) {
  const ElfW(Rela) *r = (const ElfW(Rela) *)in_image(im, t->at[table]);
  for (; size >= sizeof *r; size -= sizeof *r, r++) {
    const ElfW(Sym) *s = (const ElfW(Sym) *)in_image(im, t->at[DT_SYMTAB]) + ELF64_R_SYM(r->r_info);
    ElfW(Addr) *slot = (ElfW(Addr) *)(im->base + r->r_offset), found, unfilled = (ElfW(Addr))r->r_addend;
    int lazy = table == DT_JMPREL && is_own(im, *slot);
    if (!ELF64_R_SYM(r->r_info) || !(s->st_other & BOUND_BY_GUARD) || (!lazy && *slot != unfilled)) continue;
    found = (ElfW(Addr))look_up(im, s);
    if (!lazy) {
      *slot = found + unfilled;
    } else if (!found && (s->st_other & MADE_WEAK)) {
      found = (ElfW(Addr))dlsym(RTLD_DEFAULT, im->strings + s->st_name);
      if (!found || is_own(im, found)) *slot = unfilled;
    }
  }
}

struct at_start {
  struct image program;
  uint32_t objects;
};

/* The kernel's own object stands there on most machines, and defines nothing that a library refers to. */
CODE int on_object(struct dl_phdr_info *info, size_t size, void *data) {
  struct at_start *start = (struct at_start *)data;
  if (!start->objects) start->program = image_of(info);
  start->objects += !starts(info->dlpi_name, "linux-vdso.");
  (void)size;
  return 0;
}

CODE void protect(const struct image *im, int how) {
  ElfW(Addr) page = (ElfW(Addr))getpagesize();
  int k;
  for (k = 0; k < im->n; k++)
    if (im->ph[k].p_type == PT_GNU_RELRO) {
      ElfW(Addr) from = (im->base + im->ph[k].p_vaddr) & ~(page - 1), to = (im->base + im->ph[k].p_vaddr + im->ph[k].p_memsz) & ~(page - 1);
      if (from < to) sys3(SYS_mprotect, (long)from, (long)(to - from), how);
    }
}

CODE int is_writable(const struct image *im) {
  ElfW(Addr) at = (ElfW(Addr))im->dynamic;
  int k;
  for (k = 0; k < im->n; k++)
    if (im->ph[k].p_type == PT_LOAD && at - (im->base + im->ph[k].p_vaddr) < im->ph[k].p_memsz) return (im->ph[k].p_flags & PF_W) != 0;
  return 0;
}

CODE void load_late(void) {
  struct at_start start;
  struct image *im = &start.program;
  struct tags t;
  size_t i;
  int n = 0, how = RTLD_LAZY | RTLD_GLOBAL | RTLD_NODELETE;
  if (!late.loads) return;
  start.objects = 0;
  dl_iterate_phdr(on_object, &start);
  image_names(im);
  /* Where the C and C++ runtime alone stands before them, a library that looks among its own first finds the same. libstdc++,
   * which comes along, refers to symbols in some 4,000 places: to look for each in the program and in the C library first would
   * take longer than all else that is done here. */
  if (start.objects == late.objects) how |= RTLD_DEEPBIND;
  take_tags(&t, im->dynamic, im->entries);
  for (i = 0; i < im->entries && im->dynamic[i].d_tag != DT_NULL; i++) {
    if (im->dynamic[i].d_tag != LOADED_BY_GUARD || n == MOST_LOADED) continue;
    loaded_late[n].name = im->strings + im->dynamic[i].d_un.d_ptr;
    loaded_late[n].handle = dlopen(loaded_late[n].name, how);
    if (!loaded_late[n].handle) end_without(loaded_late[n].name, dlerror());
    n++;
  }
  protect(im, PROT_READ | PROT_WRITE);
  bind_late(im, &t, DT_RELA, t.at[DT_RELASZ]);
  bind_late(im, &t, DT_JMPREL, t.at[DT_PLTRELSZ]);
  for (i = 0; i < im->entries && im->dynamic[i].d_tag != DT_NULL; i++) /* for who asks what this file needs, the guard itself too */
    if (im->dynamic[i].d_tag == LOADED_BY_GUARD && is_writable(im)) ((ElfW(Dyn) *)im->dynamic)[i].d_tag = DT_NEEDED;
  protect(im, PROT_READ);
}

/* Before the constructor of every copy of the shim, and before those of the program. */
__attribute__((section(".init_array.00100"), used)) static void (*const cudaguard_r1_load)(void) = load_late;

#endif
