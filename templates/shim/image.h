/* Loaded objects, from the list of the dynamic linker. */
#ifndef CUDAGUARD_IMAGE_H
#define CUDAGUARD_IMAGE_H

#include "context.h"
#include "c_strings.h"

SHIM_FN void read_tags(struct tags *t, const ElfW(Dyn) * d, size_t n) {
  memset(t, 0, sizeof *t);
  for (; n && d->d_tag != DT_NULL; n--, d++)
    if (d->d_tag > 0 && d->d_tag < SPECIAL_SEARCH) t->at[d->d_tag] = d->d_un.d_ptr;
    else if (d->d_tag == DT_GNU_HASH) t->at[0] = d->d_un.d_ptr;
    else if (d->d_tag == DT_AUDIT || d->d_tag == DT_DEPAUDIT ||
             (d->d_tag == DT_FLAGS_1 && (d->d_un.d_val & DF_1_NODEFLIB)))
      t->at[SPECIAL_SEARCH] = 1;
}

/* Returns the number of bytes from this address on that are mapped from the file of the object, or
 * 0 if the address is not in a readable segment. Adjacent segments count as one, because patchelf
 * inserts a segment before the first one and a note may extend over both. Only PT_LOAD headers are
 * used, because the others may be wrong. */
SHIM_FN size_t count_mapped(const struct image *im, uintptr_t address) {
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
    uintptr_t address = im->file.base + load->p_vaddr + (ph->p_offset - load->p_offset);
    if (load->p_type != PT_LOAD || ph->p_offset < load->p_offset ||
        ph->p_offset - load->p_offset >= load->p_filesz)
      continue;
    if (!found || address == im->file.base + ph->p_vaddr) found = address;
  }
  return found;
}

/* Returns the pointer for an address in the dynamic table. */
SHIM_FN const char *resolve_address(const struct image *im, ElfW(Addr) at) {
  return (const char *)(at < im->file.base ? at + im->file.base : at); /* musl: not relocated */
}

/* Returns a string of the object, or null if the dynamic table has none. */
SHIM_FN const char *get_image_string(const struct image *im, ElfW(Addr) at) {
  return at ? im->strings + at : 0;
}

/* Reads the names in the dynamic table. It is valid, because the dynamic linker has used it to load
 * the object. */
SHIM_FN void read_image_names(struct image *im) {
  struct tags t;
  int k;
  im->dynamic = 0;
  im->entries = 0;
  for (k = 0; k < im->file.n; k++)
    if (im->file.ph[k].p_type == PT_DYNAMIC) {
      im->dynamic = (const ElfW(Dyn) *)(im->file.base + im->file.ph[k].p_vaddr);
      im->entries = im->file.ph[k].p_memsz / sizeof *im->dynamic;
    }
  read_tags(&t, im->dynamic, im->entries);
  im->strings = resolve_address(im, t.at[DT_STRTAB]);
  im->soname = get_image_string(im, t.at[DT_SONAME]);
  im->rpath = get_image_string(im, t.at[DT_RPATH]);
  im->runpath = get_image_string(im, t.at[DT_RUNPATH]);
  im->has_special_search = t.at[SPECIAL_SEARCH] != 0;
}

SHIM_FN struct image make_image(const struct dl_phdr_info *info) {
  struct image im;
  memset(&im, 0, sizeof im);
  im.file.base = info->dlpi_addr;
  im.file.ph = info->dlpi_phdr;
  im.file.n = info->dlpi_phnum;
  im.file.name = info->dlpi_name;
  return im;
}

SHIM_FN struct image read_image(const struct loaded_file *file) {
  struct image im;
  memset(&im, 0, sizeof im);
  im.file = *file;
  read_image_names(&im);
  return im;
}

/* Returns the DT_NEEDED name of the library `stem`, of any version, or null. */
SHIM_FN const char *find_needed(const struct image *im, const char *stem) {
  size_t i;
  for (i = 0; i < im->entries && im->dynamic[i].d_tag != DT_NULL; i++) {
    const char *needed =
        im->dynamic[i].d_tag == DT_NEEDED ? get_image_string(im, im->dynamic[i].d_un.d_ptr) : 0;
    if (!needed) continue;
    needed = base_name(needed);
    if (starts_with(needed, stem) &&
        (!needed[text_length(stem)] || needed[text_length(stem)] == '.'))
      return needed;
  }
  return 0;
}

#endif
