/* ELF files, by bounded reads: a file that shrinks while it is read is no signal. */

enum { MAX_PHDRS = 48 };

struct elf {
  long fd;
  int n;
  ElfW(Ehdr) eh;
  struct tags tags;
  ElfW(Phdr) ph[MAX_PHDRS];
};

CODE int read_at(long fd, uint64_t at, void *to, size_t size) {
  size_t done = 0;
  while (done < size) {
    long got = sys4(SYS_pread64, fd, (long)((char *)to + done), (long)(size - done), (long)(at + done));
    if (got == -EINTR) continue;
    if (got <= 0) return 0;
    done += (size_t)got;
  }
  return 1;
}

CODE int elf_read(const struct elf *e, ElfW(Addr) at, void *to, size_t size) {
  int k;
  for (k = 0; k < e->n; k++) {
    const ElfW(Phdr) *ph = &e->ph[k];
    if (ph->p_type == PT_LOAD && at >= ph->p_vaddr && at - ph->p_vaddr <= ph->p_filesz &&
        size <= ph->p_filesz - (at - ph->p_vaddr))
      return read_at(e->fd, ph->p_offset + (at - ph->p_vaddr), to, size);
  }
  return 0;
}

/* 1: a library of this kind of machine; 0: not there, or of another kind (the loader looks on); -1: not to be read (the
 * loader would stop at it). Open only where 1. */
CODE int elf_open(struct elf *e, const char *path) {
#if defined(__x86_64__)
  const int machine = EM_X86_64;
#elif defined(__aarch64__)
  const int machine = EM_AARCH64;
#else
  const int machine = EM_NONE;
#endif
  int k, is = -1;
  memset(e, 0, sizeof *e);
  e->fd = open_file(path, O_RDONLY);
  if (e->fd < 0) return 0;
  if (read_at(e->fd, 0, &e->eh, sizeof e->eh) && same_bytes(e->eh.e_ident, ELFMAG, SELFMAG)) {
    e->n = e->eh.e_phnum < (int)MAX_PHDRS ? e->eh.e_phnum : (int)MAX_PHDRS;
    if (e->eh.e_ident[EI_CLASS] != NATIVE_CLASS || (machine != EM_NONE && e->eh.e_machine != machine)) is = 0;
    else if (e->n && e->eh.e_phentsize == sizeof *e->ph && read_at(e->fd, e->eh.e_phoff, e->ph, (size_t)e->n * sizeof *e->ph)) is = 1;
  }
  for (k = 0; k < e->n && is > 0; k++)
    if (e->ph[k].p_type == PT_DYNAMIC) {
      static ElfW(Dyn) d[128];
      size_t size = e->ph[k].p_filesz < sizeof d ? e->ph[k].p_filesz : sizeof d;
      if (!read_at(e->fd, e->ph[k].p_offset, d, size)) is = -1;
      else take_tags(&e->tags, d, size / sizeof *d);
    }
  if (is <= 0) close_file(e->fd);
  return is;
}

/* Returns whether the file has the program headers of a loaded image. */
CODE int file_is_image(const char *path, const struct image *im) {
  static struct elf e;
  int is = elf_open(&e, path);
  if (is > 0) close_file(e.fd);
  return is > 0 && e.n && e.n <= im->n && same_bytes(e.ph, im->ph, (size_t)e.n * sizeof *e.ph);
}

/* A string of the file's dynamic table, or null where it has none; what is longer than `size` is cut. */
CODE const char *elf_string(const struct elf *e, int tag, char *to, size_t size) {
  ElfW(Addr) at = e->tags.at[tag], left = e->tags.at[DT_STRSZ] - at;
  if (!at || at >= e->tags.at[DT_STRSZ]) return 0;
  if (left > size - 1) left = (ElfW(Addr))(size - 1);
  to[left] = 0;
  return elf_read(e, e->tags.at[DT_STRTAB] + at, to, (size_t)left) ? to : 0;
}

/* The exported symbol of this name; whether there is one. By the GNU hash table, the only one that cuDNN's libraries have
 * (measured: 8.5.0 to 9.28.0). */
CODE int elf_symbol(const struct elf *e, const char *name, ElfW(Sym) * s) {
  struct {
    uint32_t buckets, first, bloom_words, bloom_shift;
  } head;
  ElfW(Addr) buckets, chains;
  char text[NOTE_TEXT];
  size_t size = len(name) + 1, i;
  uint32_t wanted = 5381, hash, at, steps;
  if (size > sizeof text) return 0;
  if (!e->tags.at[0] || !elf_read(e, e->tags.at[0], &head, sizeof head) || !head.buckets) return 0;
  for (i = 0; name[i]; i++) wanted = wanted * 33 + (unsigned char)name[i];
  buckets = e->tags.at[0] + sizeof head + (ElfW(Addr))head.bloom_words * sizeof(ElfW(Addr));
  chains = buckets + (ElfW(Addr))head.buckets * sizeof at;
  if (!elf_read(e, buckets + (ElfW(Addr))(wanted % head.buckets) * sizeof at, &at, sizeof at) || at < head.first) return 0;
  for (steps = 0; steps < 4096; steps++, at++) {
    if (!elf_read(e, chains + (ElfW(Addr))(at - head.first) * sizeof hash, &hash, sizeof hash)) break;
    if ((hash | 1) == (wanted | 1) && elf_read(e, e->tags.at[DT_SYMTAB] + at * sizeof *s, s, sizeof *s) &&
        s->st_shndx != SHN_UNDEF && elf_read(e, e->tags.at[DT_STRTAB] + s->st_name, text, size) && same_bytes(text, name, size))
      return 1;
    if (hash & 1) break; /* the last of its chain */
  }
  return 0;
}

/* The value of an exported 4-byte data object; 0 where there is none. */
CODE uint32_t elf_word(const struct elf *e, const char *name) {
  ElfW(Sym) s;
  uint32_t value;
  return elf_symbol(e, name, &s) && (!s.st_size || s.st_size == sizeof value) && elf_read(e, s.st_value, &value, sizeof value) ? value : 0;
}

/* The machine code of an exported function, with so many bytes of what stands before it where its segment has them: how many
 * there are. */
CODE size_t elf_code(const struct elf *e, const char *name, size_t before, unsigned char (*code)[2048]) {
  ElfW(Sym) s;
  int k;
  if (e->eh.e_machine != EM_X86_64 || !elf_symbol(e, name, &s)) return 0;
  for (k = 0; k < 2; k++, before = 0) {
    size_t size = before + (size_t)s.st_size;
    if (size > sizeof *code) size = sizeof *code;
    if (elf_read(e, s.st_value - before, *code, size)) return size;
  }
  return 0;
}
