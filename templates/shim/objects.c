/* Loaded objects, from the list of the dynamic linker. */
#include "shim.h"
#include "returned_constant.h"

/* Reads a dynamic table up to DT_NULL. `d` is null for a static program. */
SHIM_API void read_tags(struct tags *t, const ElfW(Dyn) * d) {
  memset(t, 0, sizeof *t);
  for (; d && d->d_tag != DT_NULL; d++)
    if ((uint64_t)d->d_tag < SPECIAL_SEARCH) t->at[d->d_tag] = d->d_un.d_ptr;
    else if (d->d_tag == DT_GNU_HASH) t->at[0] = d->d_un.d_ptr;
    else if (d->d_tag == DT_AUDIT || d->d_tag == DT_DEPAUDIT ||
             (d->d_tag == DT_FLAGS_1 && (d->d_un.d_val & DF_1_NODEFLIB)))
      t->at[SPECIAL_SEARCH] = 1;
}

/* Returns the number of bytes from this address on that are mapped from the file of the object, or
 * 0 if the address is not in a readable segment. Adjacent segments count as one, because patchelf
 * inserts a segment before the first one and a note may extend over both. Only PT_LOAD headers are
 * used, because the others may be wrong. */
SHIM_API size_t count_mapped(const struct image *im, uintptr_t address) {
  size_t size = 0;
  int k;
  for (k = 0; k < im->file.n; k++) {
    const ElfW(Phdr) *ph = &im->file.ph[k];
    uintptr_t into = address + size - (im->file.base + ph->p_vaddr);
    if (ph->p_type == PT_LOAD && (ph->p_flags & PF_R) && into < ph->p_filesz)
      size += ph->p_filesz - into;
  }
  return size;
}

/* Returns the address of a segment in memory, or 0. Computes it from the file offset, because GNU
 * strip sets the address of a PT_NOTE to 0 when it removes another note section. */
SHIM_FN uintptr_t find_segment(const struct image *im, const ElfW(Phdr) * ph) {
  uintptr_t found = 0;
  int k;
  for (k = 0; k < im->file.n; k++) {
    const ElfW(Phdr) *load = &im->file.ph[k];
    const ElfW(Off) into = ph->p_offset - load->p_offset;
    uintptr_t address = im->file.base + load->p_vaddr + into;
    if (load->p_type != PT_LOAD || into >= load->p_filesz) continue;
    if (!found || address == im->file.base + ph->p_vaddr) found = address;
  }
  return found;
}

/* Returns the pointer for an address in the dynamic table. */
SHIM_API const char *resolve_address(const struct image *im, ElfW(Addr) at) {
  return (const char *)(at < im->file.base ? at + im->file.base : at); /* musl: not relocated */
}

/* Returns a string of the object, or null if the dynamic table has none. */
SHIM_FN const char *get_image_string(const struct image *im, ElfW(Addr) at) {
  return at ? im->strings + at : 0;
}

/* Reads the names in the dynamic table. It is valid, because the dynamic linker has used it to load
 * the object. */
SHIM_API struct image read_image(const struct loaded_file *file) {
  struct image im;
  struct tags t;
  int k;
  im.file = *file;
  im.dynamic = 0;
  for (k = 0; k < file->n; k++)
    if (file->ph[k].p_type == PT_DYNAMIC)
      im.dynamic = (const ElfW(Dyn) *)(file->base + file->ph[k].p_vaddr);
  read_tags(&t, im.dynamic);
  im.strings = resolve_address(&im, t.at[DT_STRTAB]);
  im.soname = get_image_string(&im, t.at[DT_SONAME]);
  im.rpath = get_image_string(&im, t.at[DT_RPATH]);
  im.runpath = get_image_string(&im, t.at[DT_RUNPATH]);
  im.has_special_search = t.at[SPECIAL_SEARCH] != 0;
  return im;
}

/* Reads an object that dl_iterate_phdr() visits. */
SHIM_API struct image read_visited(const struct dl_phdr_info *info) {
  struct loaded_file file;
  file.base = info->dlpi_addr;
  file.ph = info->dlpi_phdr;
  file.n = info->dlpi_phnum;
  file.name = info->dlpi_name;
  return read_image(&file);
}

/* Returns the DT_NEEDED name of the library `stem`, of any version, or null. */
SHIM_API const char *find_needed(const struct image *im, const char *stem) {
  const ElfW(Dyn) *d = im->dynamic;
  for (; d && d->d_tag != DT_NULL; d++) {
    const char *needed = d->d_tag == DT_NEEDED ? get_image_string(im, d->d_un.d_ptr) : 0;
    if (!needed) continue;
    needed = base_name(needed);
    if (starts_with(needed, stem) &&
        (!needed[text_length(stem)] || needed[text_length(stem)] == '.'))
      return needed;
  }
  return 0;
}

/* Loaded libraries. */

struct loaded {
  const char *name;       /* soname or file name; null: any cuDNN loader library */
  char (*path)[PATH_MAX]; /* or null */
  int found;
};

/* Returns whether a file name or soname is this one; without one, whether it is that of a cuDNN. */
SHIM_FN int has_name(const char *s, const char *name) {
  if (name) return texts_are_equal(s, name);
  return parse_major_in_name(s) || texts_are_equal(s, CUDNN_FILE);
}

SHIM_FN int visit_loaded(struct dl_phdr_info *info, size_t size, void *data) {
  struct loaded *l = (struct loaded *)data;
  const struct image im = read_visited(info);
  (void)size;
  if (!*im.file.name) return 0;
  if (!has_name(base_name(im.file.name), l->name) && !(im.soname && has_name(im.soname, l->name)))
    return 0;
  if (l->path) copy_path(l->path, l->found ? "" : im.file.name);
  return l->found++ || l->name;
}

/* Returns whether a library is loaded; without a name, whether exactly one cuDNN is. */
SHIM_API int is_loaded(const char *name, char (*path)[PATH_MAX]) {
  struct loaded l;
  l.name = name;
  l.path = path;
  l.found = 0;
  dl_iterate_phdr(visit_loaded, &l);
  return l.found == 1;
}

/* Finds the notes of the loaded objects. */

static const char anchor = 0; /* its address identifies the image of this file */

/* Stores the notes of an image, or only counts them. */
SHIM_FN int collect_image_notes(struct context *cx, const struct image *im, int own, int keep) {
  int taken = 0, k;
  for (k = 0; k < im->file.n; k++) {
    const ElfW(Phdr) *ph = &im->file.ph[k];
    const uintptr_t at = ph->p_type == PT_NOTE ? find_segment(im, ph) : 0;
    if (at && ph->p_filesz <= count_mapped(im, at))
      taken += collect_notes(cx, (const unsigned char *)at, ph->p_filesz, &im->file, own, keep);
  }
  return taken;
}

struct walk {
  struct context *context;
  int all, index, noted;
};

/* Stores the notes of this file and, in a program, those of the libraries that were loaded with it,
 * because neither can be unloaded meanwhile. A constructor stores all notes for the report, because
 * nothing can be unloaded then. */
SHIM_FN int visit_image(struct dl_phdr_info *info, size_t size, void *data) {
  struct walk *w = (struct walk *)data;
  struct context *cx = w->context;
  struct image im = read_visited(info);
  int own, first = w->index++ == 0, program, taken;
  (void)size;
#ifdef __GLIBC__
  /* In a dlmopen namespace, the first object is a library. The name of the program is empty, unless
   * it was started as `ld.so program`. */
  program = first && (!*im.file.name || (uintptr_t)info->dlpi_phdr == getauxval(AT_PHDR));
#else
  program = first;
#endif
  if (texts_are_equal(base_name(im.file.name), "libc.so.6")) cx->libc = im.file.name;
  if (program && *im.file.name) cx->loader_name = im.file.name;
  if (program) im.file.name = "";
  own = count_mapped(&im, (uintptr_t)&anchor) != 0;
  if (first) cx->first = im;
  if (own) {
    cx->program = program;
    cx->own = im;
  }
  taken =
      collect_image_notes(cx, &im, own, own || w->all || (cx->program && w->index <= cx->startup));
  if (taken && !w->noted++) cx->first_noted = own;
  return 0;
}

/* Reads the notes of the loaded objects. The start reads all, a later check those that cannot be
 * unloaded meanwhile. */
SHIM_API void read_process(struct context *cx, int all) {
  struct walk w;
  w.context = cx;
  w.all = all;
  w.index = w.noted = 0;
  cx->notes = 0;
  cx->dropped_notes = 0;
  if (!cx->startup) cx->library_path = get_variable("LD_LIBRARY_PATH");
  dl_iterate_phdr(visit_image, &w);
  add_absent_note(cx, &cx->own.file);
  read_own_kernels(cx);
  if (cx->startup) return;
  cx->startup = w.index;
  read_mode(cx, cx->first_noted);
}

/* Readers of ELF files. They use read calls instead of mmap, so a file that shrinks meanwhile
 * raises no signal. */

/* Returns the number of bytes that were read, or an error. */
SHIM_FN long read_up_to(long fd, uint64_t at, void *to, size_t size) {
  long got;
  do got = sys4(SYS_pread64, fd, (long)to, (long)size, (long)at);
  while (got == -EINTR);
  return got;
}

/* Returns whether the file has these bytes. */
SHIM_FN int read_at(long fd, uint64_t at, void *to, size_t size) {
  return read_up_to(fd, at, to, size) == (long)size;
}

SHIM_FN int read_elf(const struct elf *e, ElfW(Addr) at, void *to, size_t size) {
  int k;
  for (k = 0; k < e->n; k++) {
    const ElfW(Phdr) *ph = &e->ph[k];
    const ElfW(Addr) into = at - ph->p_vaddr;
    if (ph->p_type == PT_LOAD && into <= ph->p_filesz && size <= ph->p_filesz - into)
      return read_at(e->fd, ph->p_offset + into, to, size);
  }
  return 0;
}

/* Reads the program headers, unless they follow the ELF header and are among the bytes that were
 * read with it: `ph` follows `eh`. */
SHIM_FN int read_program_headers(struct elf *e, size_t got) {
  const size_t size = (size_t)e->n * sizeof *e->ph;
  if (e->eh.e_phoff == sizeof e->eh && got >= sizeof e->eh + size) return 1;
  return read_at(e->fd, e->eh.e_phoff, e->ph, size);
}

/* Reads the program headers and the dynamic table of a file, which must be complete. */
SHIM_FN enum lookup read_headers(struct elf *e) {
  const unsigned char *ident = e->eh.e_ident;
  struct stat is;
  int k, has_table = 0;
  const long got = read_up_to(e->fd, 0, &e->eh, sizeof e->eh + sizeof e->ph);
  if (got < (long)sizeof e->eh || !bytes_are_equal(ident, ELFMAG, SELFMAG)) return ASK_LOADER;
  if (ident[EI_CLASS] != ELFCLASS64) return NOT_THERE;
  if (ident[EI_DATA] != ELFDATA2LSB || ident[EI_VERSION] != EV_CURRENT ||
      e->eh.e_version != EV_CURRENT ||
      (ident[EI_OSABI] != ELFOSABI_SYSV && ident[EI_OSABI] != ELFOSABI_GNU))
    return ASK_LOADER;
  if (e->eh.e_machine != NATIVE_MACHINE) return NOT_THERE;
  e->n = e->eh.e_phnum < (int)MAX_PHDRS ? e->eh.e_phnum : (int)MAX_PHDRS;
  if (e->eh.e_type != ET_DYN || e->eh.e_phentsize != sizeof *e->ph ||
      !read_program_headers(e, (size_t)got) || stat_at(e->fd, "", &is, AT_EMPTY_PATH))
    return ASK_LOADER;
  for (k = 0; k < e->n; k++) {
    const ElfW(Phdr) *ph = &e->ph[k];
    if (ph->p_type == PT_LOAD && (uint64_t)is.st_size < (uint64_t)ph->p_offset + ph->p_filesz)
      return ASK_LOADER;
    if (ph->p_type == PT_DYNAMIC) {
      const size_t n = ph->p_filesz / sizeof *e->dynamic;
      const size_t kept = n < MAX_TAGS ? n : (size_t)MAX_TAGS;
      if (!read_at(e->fd, ph->p_offset, e->dynamic, kept * sizeof *e->dynamic)) return ASK_LOADER;
      e->dynamic[kept].d_tag = DT_NULL;
      read_tags(&e->tags, e->dynamic);
      has_table = 1;
    }
  }
  return has_table ? IS_THERE : ASK_LOADER;
}

SHIM_API void close_elf(struct elf *e) {
  if (!e->is_open) return; /* writes to no page */
  close_file(e->fd);
  e->is_open = 0;
}

/* Opens a library for this processor, and closes the one that was open. IS_THERE: it is open.
 * NOT_THERE: it does not exist or is for another processor, so the dynamic linker would continue.
 * ASK_LOADER: the dynamic linker may stop with an error. */
SHIM_API enum lookup open_elf(struct context *cx, struct elf *e, const char *path) {
  enum lookup is;
  close_elf(e);
  memset(e, 0, offsetof(struct elf, eh));
  e->fd = open_file(cx, path, O_RDONLY);
  if (e->fd < 0) return e->fd == -ENOENT || e->fd == -EACCES ? NOT_THERE : ASK_LOADER;
  e->is_open = 1;
  is = read_headers(e);
  if (is != IS_THERE) close_elf(e);
  return is;
}

/* Reads a string of the dynamic table, truncated to `size`. Returns null if the table has none. */
SHIM_API const char *read_elf_string(const struct elf *e, int tag, char *to, size_t size) {
  ElfW(Addr) at = e->tags.at[tag], left = e->tags.at[DT_STRSZ] - at;
  if (!at || at >= e->tags.at[DT_STRSZ]) return 0;
  if (left > size - 1) left = (ElfW(Addr))(size - 1);
  to[left] = 0;
  return read_elf(e, e->tags.at[DT_STRTAB] + at, to, (size_t)left) ? to : 0;
}

/* Finds an exported symbol by name; returns whether it exists. Uses the GNU hash table, the only
 * hash table of cuDNN's libraries (measured: 8.5.0 to 9.28.0). */
SHIM_FN int find_elf_symbol(const struct elf *e, const char *name, ElfW(Sym) * s) {
  struct {
    uint32_t buckets, first, bloom_words, bloom_shift;
  } head;
  ElfW(Addr) buckets, chains;
  char text[NOTE_TEXT];
  size_t size = text_length(name) + 1, i;
  uint32_t wanted = 5381, hash, at, steps;
  if (!e->tags.at[0] || !read_elf(e, e->tags.at[0], &head, sizeof head) || !head.buckets) return 0;
  for (i = 0; name[i]; i++) wanted = wanted * 33 + (unsigned char)name[i];
  buckets = e->tags.at[0] + sizeof head + (ElfW(Addr))head.bloom_words * sizeof(ElfW(Addr));
  chains = buckets + (ElfW(Addr))head.buckets * sizeof at;
  if (!read_elf(e, buckets + (ElfW(Addr))(wanted % head.buckets) * sizeof at, &at, sizeof at) ||
      at < head.first)
    return 0;
  /* In a damaged file, a chain may not end. */
  for (steps = 0; steps < 4096; steps++, at++) {
    if (!read_elf(e, chains + (ElfW(Addr))(at - head.first) * sizeof hash, &hash, sizeof hash))
      return 0;
    if ((hash | 1) == (wanted | 1) &&
        read_elf(e, e->tags.at[DT_SYMTAB] + at * sizeof *s, s, sizeof *s) &&
        s->st_shndx != SHN_UNDEF && read_elf(e, e->tags.at[DT_STRTAB] + s->st_name, text, size) &&
        bytes_are_equal(text, name, size))
      return 1;
    if (hash & 1) break; /* end of the chain */
  }
  return 0;
}

/* Returns the value of an exported 4-byte data object, or 0. */
SHIM_API uint32_t read_elf_word(const struct elf *e, const char *name) {
  ElfW(Sym) s;
  uint32_t value;
  return find_elf_symbol(e, name, &s) && (!s.st_size || s.st_size == sizeof value) &&
                 read_elf(e, s.st_value, &value, sizeof value)
             ? value
             : 0;
}

/* Returns the constant that an exported getter returns, or 0 if it is unknown. */
SHIM_API uint32_t read_returned_constant(const struct elf *e, const char *name) {
  unsigned char code[GETTER_SIZE];
  size_t size;
  ElfW(Sym) s;
  if (!find_elf_symbol(e, name, &s)) return 0;
  size = s.st_size < sizeof code ? (size_t)s.st_size : sizeof code;
  if (!read_elf(e, s.st_value, code, size)) return 0;
  return find_returned_constant(code, size, NATIVE_MACHINE);
}
