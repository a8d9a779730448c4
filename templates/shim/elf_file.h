/* Readers of ELF files. They use read calls instead of mmap, so a file that shrinks meanwhile
 * raises no signal. */
#ifndef CUDAGUARD_ELF_FILE_H
#define CUDAGUARD_ELF_FILE_H

#include "files.h"
#include "image.h"
#include "returned_constant.h"

/* Reads until the end of the file at most, and returns the number of bytes. */
SHIM_FN size_t read_part_of_file(long fd, uint64_t at, void *to, size_t size) {
  size_t done = 0;
  while (done < size) {
    long got =
        sys4(SYS_pread64, fd, (long)((char *)to + done), (long)(size - done), (long)(at + done));
    if (got == -EINTR) continue;
    if (got <= 0) break;
    done += (size_t)got;
  }
  return done;
}

SHIM_FN int read_at(long fd, uint64_t at, void *to, size_t size) {
  return read_part_of_file(fd, at, to, size) == size;
}

SHIM_FN int read_elf(const struct elf *e, ElfW(Addr) at, void *to, size_t size) {
  int k;
  for (k = 0; k < e->n; k++) {
    const ElfW(Phdr) *ph = &e->ph[k];
    if (ph->p_type == PT_LOAD && at >= ph->p_vaddr && at - ph->p_vaddr <= ph->p_filesz &&
        size <= ph->p_filesz - (at - ph->p_vaddr))
      return read_at(e->fd, ph->p_offset + (at - ph->p_vaddr), to, size);
  }
  return 0;
}

/* Reads the program headers and the dynamic table of a file. Returns the result that the dynamic
 * linker would have. */
SHIM_FN enum lookup read_headers(struct elf *e) {
  /* Usually the program headers follow directly, so one read is enough. */
  enum { FIRST_READ = sizeof e->eh + 16 * sizeof *e->ph };
  const ElfW(Phdr) *end = e->ph;
  const int machine = NATIVE_MACHINE;
  const size_t got = read_part_of_file(e->fd, 0, &e->eh, FIRST_READ);
  const unsigned char *ident = e->eh.e_ident;
  if (got < sizeof e->eh || !bytes_are_equal(ident, ELFMAG, SELFMAG)) return UNREADABLE;
  if (ident[EI_CLASS] != NATIVE_CLASS) return NOT_THERE;
  if (ident[EI_DATA] != ELFDATA2LSB || ident[EI_VERSION] != EV_CURRENT ||
      e->eh.e_version != EV_CURRENT ||
      (ident[EI_OSABI] != ELFOSABI_SYSV && ident[EI_OSABI] != ELFOSABI_GNU))
    return UNREADABLE;
  if (machine != EM_NONE && e->eh.e_machine != machine) return NOT_THERE;
  e->n = e->eh.e_phnum < (int)MAX_PHDRS ? e->eh.e_phnum : (int)MAX_PHDRS;
  if (!e->n || e->eh.e_phentsize != sizeof *e->ph) return UNREADABLE;
  if ((e->eh.e_phoff != sizeof e->eh || got < sizeof e->eh + (size_t)e->n * sizeof *e->ph) &&
      !read_at(e->fd, e->eh.e_phoff, e->ph, (size_t)e->n * sizeof *e->ph))
    return UNREADABLE;
  for (end += e->n; end-- > e->ph;)
    if (end->p_type == PT_DYNAMIC) {
      const size_t size = end->p_filesz < sizeof e->dynamic ? end->p_filesz : sizeof e->dynamic;
      if (!read_at(e->fd, end->p_offset, e->dynamic, size)) return UNREADABLE;
      read_tags(&e->tags, e->dynamic, size / sizeof *e->dynamic);
    }
  return IS_THERE;
}

SHIM_NOINLINE void close_elf(struct context *cx) {
  if (cx->is_elf_open) close_file(cx->elf.fd);
  cx->is_elf_open = 0;
}

/* Opens a library for this processor, and closes the one that was open. IS_THERE: it is open.
 * NOT_THERE: it does not exist or is for another processor, so the dynamic linker would continue.
 * UNREADABLE: the dynamic linker would stop with an error. */
SHIM_NOINLINE enum lookup open_elf(struct context *cx, const char *path) {
  struct elf *e = &cx->elf;
  enum lookup is;
  close_elf(cx);
  memset(e, 0, offsetof(struct elf, eh));
  e->fd = open_file(cx, path, O_RDONLY);
  if (e->fd < 0) return e->fd == -ENOENT || e->fd == -EACCES ? NOT_THERE : UNREADABLE;
  cx->is_elf_open = 1;
  is = read_headers(e);
  if (is != IS_THERE) close_elf(cx);
  return is;
}

/* Opens the library that the last search found, unless it is still open. */
SHIM_FN enum lookup open_found(struct context *cx, const char *path) {
  return cx->is_elf_open ? IS_THERE : open_elf(cx, path);
}

/* Returns whether the file has the program headers of a loaded image. */
SHIM_FN int is_file_of_image(struct context *cx, const char *path, const struct image *im) {
  struct elf *e = &cx->elf;
  if (open_elf(cx, path) != IS_THERE) return 0;
  close_elf(cx);
  return e->n <= im->file.n && bytes_are_equal(e->ph, im->file.ph, (size_t)e->n * sizeof *e->ph);
}

/* Reads a string of the dynamic table, truncated to `size`. Returns null if the table has none. */
SHIM_FN const char *read_elf_string(const struct elf *e, int tag, char *to, size_t size) {
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
  if (size > sizeof text) return 0;
  if (!e->tags.at[0] || !read_elf(e, e->tags.at[0], &head, sizeof head) || !head.buckets) return 0;
  for (i = 0; name[i]; i++) wanted = wanted * 33 + (unsigned char)name[i];
  buckets = e->tags.at[0] + sizeof head + (ElfW(Addr))head.bloom_words * sizeof(ElfW(Addr));
  chains = buckets + (ElfW(Addr))head.buckets * sizeof at;
  if (!read_elf(e, buckets + (ElfW(Addr))(wanted % head.buckets) * sizeof at, &at, sizeof at) ||
      at < head.first)
    return 0;
  for (steps = 0; steps < 4096; steps++) {
    if (!read_elf(e, chains + (ElfW(Addr))(at - head.first) * sizeof hash, &hash, sizeof hash))
      break;
    if ((hash | 1) == (wanted | 1) &&
        read_elf(e, e->tags.at[DT_SYMTAB] + at * sizeof *s, s, sizeof *s) &&
        s->st_shndx != SHN_UNDEF && read_elf(e, e->tags.at[DT_STRTAB] + s->st_name, text, size) &&
        bytes_are_equal(text, name, size))
      return 1;
    if (hash & 1) break; /* end of the chain */
    at++;
  }
  return 0;
}

/* Returns the value of an exported 4-byte data object, or 0. */
SHIM_FN uint32_t read_elf_word(const struct elf *e, const char *name) {
  ElfW(Sym) s;
  uint32_t value;
  return find_elf_symbol(e, name, &s) && (!s.st_size || s.st_size == sizeof value) &&
                 read_elf(e, s.st_value, &value, sizeof value)
             ? value
             : 0;
}

/* Returns the constant that an exported getter returns, or 0 if it is unknown. */
SHIM_FN uint32_t read_returned_constant(struct context *cx, const struct elf *e, const char *name) {
  unsigned char *code = (unsigned char *)cx->scratch;
  size_t size;
  ElfW(Sym) s;
  if (!find_elf_symbol(e, name, &s)) return 0;
  size = s.st_size < GETTER_SIZE ? (size_t)s.st_size : (size_t)GETTER_SIZE;
  if (!read_elf(e, s.st_value, code, size)) return 0;
  return find_returned_constant(code, size, NATIVE_MACHINE);
}

#endif
