/* Detects the driver by the version resource of nvcuda.dll and the registry entry of the display
 * driver. Neither shows which GPUs are present. */
#ifndef CUDAGUARD_DETECT_DRIVER_H
#define CUDAGUARD_DETECT_DRIVER_H

#include "detect_cudnn.h"
#include "registry.h"

/* Display adapters; its subkeys are 0000, 0001 and so on. */
#define ADAPTERS                                                                              \
  "\\Registry\\Machine\\SYSTEM\\CurrentControlSet\\Control\\Class\\{4d36e968-e325-11ce-bfc1-" \
  "08002be10318}\\"

/* Returns the release in a version of Windows, in the packing of widen_release(): the last five
 * digits of 31.0.15.5222 are 552.22. Returns 0 if it is none. */
SHIM_FN uint32_t decode_release(uint32_t third, uint32_t fourth) {
  const uint32_t digits = third % 10 * 10000 + fourth;
  if (fourth > 9999 || digits < 10000) return 0;
  return digits / 100 << 20 | digits % 100 << 8;
}

/* Parses "31.0.15.5222". */
SHIM_FN uint32_t parse_driver_version(const char *s) {
  long n[4];
  int k;
  for (k = 0; k < 4; k++) {
    n[k] = parse_number(&s, 65535);
    if (n[k] < 0 || (k < 3 && *s++ != '.')) return 0;
  }
  return decode_release((uint32_t)n[2], (uint32_t)n[3]);
}

/* Returns the release of the display driver of NVIDIA, or 0 if there is none, or several. */
SHIM_FN uint32_t read_display_driver(struct context *cx) {
  enum { MAX_ADAPTERS = 32 };
  struct registry r;
  uint32_t release = 0, other, k;
  if (!open_registry(cx, &r)) return 0;
  for (k = 0; k < MAX_ADAPTERS; k++) {
    char path[sizeof ADAPTERS + 8];
    struct text t = start_text(path, sizeof path);
    handle key;
    put(&t, ADAPTERS "00");
    put_char(&t, (char)('0' + k / 10));
    put_char(&t, (char)('0' + k % 10));
    key = open_key(cx, &r, path);
    if (!key) continue;
    other = 0;
    if (read_value(cx, &r, key, "ProviderName") && starts_with(cx->text, "NVIDIA") &&
        read_value(cx, &r, key, "DriverVersion"))
      other = parse_driver_version(cx->text);
    r.close(key);
    if (release && other && release != other) return 0;
    if (other) release = other;
  }
  return release;
}

/* Reads the nvcuda.dll of the driver. */
SHIM_FN void detect_nvcuda(struct context *cx, struct driver *d) {
  uint16_t v[4];
  struct text path;
  struct dll dll;
  d->path = &cx->libcuda;
  GetSystemDirectoryW(cx->wide, PATH_MAX);
  narrow(cx->wide, *d->path, PATH_MAX);
  path.at = *d->path;
  path.used = text_length(*d->path);
  path.size = PATH_MAX;
  put(&path, "\\nvcuda.dll");
  dll.module = LoadLibraryExW(widen(cx, *d->path), 0, AS_DATA);
  dll.is_data = dll.module != 0;
  if (dll.is_data) {
    d->is.state = FOUND;
    if (read_file_version(&dll, v)) d->is.user = decode_release(v[2], v[3]);
  } else {
    /* Others provide a DLL of this name for GPUs of another vendor, with its own releases. */
    switch (find_dll(cx, "nvcuda.dll", &dll)) {
    case NOT_THERE:
      **d->path = 0;
      d->is.state = cx->changes_search ? UNKNOWN : ABSENT;
      break;
    case UNREADABLE:
      d->is.state = UNKNOWN;
      break;
    default:
      d->is.state = FOUND;
      get_dll_path(cx, &dll, d->path);
    }
  }
  release_dll(&dll);
}

SHIM_FN void detect_driver(struct context *cx) {
  struct driver *d = &cx->driver;
  const char *devices;
  reset_driver(d);
  d->is.source = DETECTED;
  detect_nvcuda(cx, d);
  if (d->is.state != FOUND) return;
  d->is.kernel = read_display_driver(cx);
  if (is_variable_one("CUDA_FORCE_PTX_JIT")) d->is.forces_ptx = FOUND;
  if (is_variable_one("CUDA_DISABLE_PTX_JIT")) d->is.disables_ptx = FOUND;
  devices = get_variable("CUDA_VISIBLE_DEVICES");
  d->chosen = *devices != 0;
  if (texts_are_equal(devices, "-1")) d->is.gpu_count = 0;
}

#endif
