/* Reads the registry with functions of ntdll, which is in every process: advapi32 may be missing.
 */
#ifndef CUDAGUARD_REGISTRY_H
#define CUDAGUARD_REGISTRY_H

#include "process.h"

struct counted_text { /* UNICODE_STRING */
  uint16_t length, room;
  wide *at;
};

struct object { /* OBJECT_ATTRIBUTES */
  uint32_t size;
  handle root;
  struct counted_text *name;
  uint32_t flags;
  void *security, *quality;
};

struct value { /* KEY_VALUE_PARTIAL_INFORMATION */
  uint32_t index, type, size;
  wide data[128];
};

struct registry {
  int(__stdcall *open)(handle *key, uint32_t access, const struct object *object);
  int(__stdcall *query)(handle key, const struct counted_text *name, int what, struct value *to,
                        uint32_t size, uint32_t *needed);
  int(__stdcall *close)(handle key);
};

/* Returns whether the functions exist. */
SHIM_FN int open_registry(struct context *cx, struct registry *r) {
  const handle ntdll = GetModuleHandleW(widen(cx, "ntdll.dll"));
  void *found[3];
  if (!ntdll) return 0;
  found[0] = GetProcAddress(ntdll, "NtOpenKey");
  found[1] = GetProcAddress(ntdll, "NtQueryValueKey");
  found[2] = GetProcAddress(ntdll, "NtClose");
  memcpy(&r->open, &found[0], sizeof found[0]);
  memcpy(&r->query, &found[1], sizeof found[1]);
  memcpy(&r->close, &found[2], sizeof found[2]);
  return found[0] && found[1] && found[2];
}

/* Returns the text in cx->wide. */
SHIM_FN struct counted_text count_wide(struct context *cx) {
  struct counted_text t;
  t.length = 0;
  while (cx->wide[t.length / 2]) t.length = (uint16_t)(t.length + 2);
  t.room = t.length;
  t.at = cx->wide;
  return t;
}

/* Opens a key for reading; returns null if there is none. */
SHIM_FN handle open_key(struct context *cx, const struct registry *r, const char *path) {
  enum { READ_KEY = 0x20019, IGNORE_CASE = 0x40 };
  struct counted_text name;
  struct object object;
  handle key = 0;
  widen(cx, path);
  name = count_wide(cx);
  memset(&object, 0, sizeof object);
  object.size = sizeof object;
  object.name = &name;
  object.flags = IGNORE_CASE;
  return r->open(&key, READ_KEY, &object) >= 0 ? key : 0;
}

/* Reads a text of a key to cx->text; returns whether there is one. */
SHIM_FN int read_value(struct context *cx, const struct registry *r, handle key, const char *name) {
  enum { PARTIAL = 2, TEXT_TYPE = 1 };
  struct counted_text counted;
  struct value value;
  uint32_t needed;
  widen(cx, name);
  counted = count_wide(cx);
  memset(&value, 0, sizeof value);
  if (r->query(key, &counted, PARTIAL, &value, sizeof value - 2, &needed) < 0 ||
      value.type != TEXT_TYPE)
    return 0;
  narrow(value.data, cx->text, sizeof cx->text);
  return cx->text[0] != 0;
}

#endif
