/* Limits and constants of all systems. */
#ifndef CUDAGUARD_LIMITS_H
#define CUDAGUARD_LIMITS_H

/* Values of CUDAGUARD. */
enum { MODE_MANIFEST, MODE_OFF, MODE_WARN, MODE_ENFORCE };

enum {
  STATUS_REFUSED = 78,
  STATUS_OF_LOADER = 127,
  PATIENCE = 10, /* default time limit of all probes in seconds; many sleeping GPUs take time */
  REAP_MS = 200, /* time limit for killing a child, which the driver may delay */
  MAX_NOTES = 256,
  MAX_INNER = 8,
  MAX_GPUS = 64,
  MAX_CODES = 16384,
  MAX_FINDINGS = 48,
  MAX_TEXTS = 16 * 1024, /* bytes of strings of findings */
  MAX_SEEN = 8,          /* cuDNNs in the report */
  MAX_PRINTED = 8,       /* findings on stderr */
  SHOW = 400,            /* characters of an untrusted string in a message */
  WHY = SHOW + 160,
  NOTE_TEXT = 256 /* size of a string in a note, with its NUL */
};

#endif
