/* Formats the messages of findings.h with the values of a finding. */
#include "shim.h"

/* All strings are members of one object, so that offsets can refer to them without relocations at
 * start-up. */
struct message_texts {
#define TEXT(name, text) char subject_##name[sizeof(text)];
  SUBJECTS(TEXT)
#undef TEXT
#define TEXTS(name, code, severity, verdict, rank, subject, one, two, three, sentence, hint) \
  char name##_sentence[sizeof(sentence)];                                                    \
  char name##_hint[sizeof(hint)];
  FINDINGS(TEXTS)
#undef TEXTS
#define TEXT(name, text) char line_##name[sizeof(text)];
  LINES(TEXT)
#undef TEXT
  char line_none[1];
};

static const struct message_texts texts = {
#define TEXT(name, text) text,
    SUBJECTS(TEXT)
#undef TEXT
#define TEXTS(name, code, severity, verdict, rank, subject, one, two, three, sentence, hint) \
  sentence, hint,
        FINDINGS(TEXTS)
#undef TEXTS
#define TEXT(name, text) text,
            LINES(TEXT)
#undef TEXT
                ""};

#define TEXT_AT(member) ((uint16_t)offsetof(struct message_texts, member))

static const struct meaning meanings[] = {
#define MEANING(name, code, severity, verdict, rank, subject, one, two, three, sentence, hint) \
  {code,                                                                                       \
   TEXT_AT(name##_sentence),                                                                   \
   TEXT_AT(name##_hint),                                                                       \
   {TEXT_AT(line_##one), TEXT_AT(line_##two), TEXT_AT(line_##three)},                          \
   severity,                                                                                   \
   verdict,                                                                                    \
   rank,                                                                                       \
   (uint8_t)TEXT_AT(subject_##subject)},
    FINDINGS(MEANING)
#undef MEANING
};

SHIM_API const struct meaning *get_meaning(const struct finding *f) { return &meanings[f->kind]; }

SHIM_API int is_about_driver(const struct finding *f) {
  return get_meaning(f)->subject == TEXT_AT(subject_driver);
}

SHIM_API const char *get_text(uint32_t offset) { return (const char *)&texts + offset; }

enum { TEXT_VALUE, NUMBER_VALUE, VERSION_VALUE, CUDA_VALUE, RELEASE_VALUE };

/* The placeholders, by their names. */
static const struct field {
  char name[16];
  uint8_t kind, at;
} fields[] = {
#define FIELD(name, kind) {#name, kind##_VALUE, (uint8_t)offsetof(struct finding, name)},
    FIELDS(FIELD)
#undef FIELD
};

/* Returns the field that the placeholder at `s` names: {gpus}. */
SHIM_FN const struct field *find_field(const char *s) {
  size_t k, length;
  for (k = 0; k < sizeof fields / sizeof *fields; k++) {
    length = text_length(fields[k].name);
    if (starts_with(s + 1, fields[k].name) && s[1 + length] == '}') return &fields[k];
  }
  return fields; /* the generator of findings.h knows all names */
}

/* Appends the value of a field; returns whether the value exists. */
SHIM_FN int put_value(struct context *cx, struct text *t, const struct finding *f,
                      const struct field *field) {
  const char *at = (const char *)f + field->at;
  const size_t before = t->used;
  uint16_t text;
  uint32_t n;
  if (at == (const char *)&f->component) {
    put_component(t, f->component);
    return t->used > before;
  }
  if (field->kind == TEXT_VALUE) {
    memcpy(&text, at, sizeof text);
    put(t, cx->texts + text);
    return text != 0;
  }
  memcpy(&n, at, sizeof n);
  if (!n) return 0;
  if (field->kind == NUMBER_VALUE) put_number(t, n);
  if (field->kind == VERSION_VALUE) put_version(t, n);
  if (field->kind == CUDA_VALUE) put_cuda(t, n);
  if (field->kind == RELEASE_VALUE) put_release(t, n);
  return 1;
}

/* Appends a template with the values of its placeholders, and omits a part in [ ] if a value in it
 * is empty. Returns whether it has at least one value, and no empty value outside of [ ]. */
SHIM_API int put_filled(struct context *cx, struct text *t, const char *format,
                        const struct finding *f) {
  size_t optional = t->used;
  int inside = 0, lacks = 0, inside_lacks = 0, any = 0;
  for (; *format; format++) {
    if (*format == '[') {
      inside = 1;
      inside_lacks = 0;
      optional = t->used;
    } else if (*format == ']') {
      if (inside_lacks) shorten_text(t, optional);
      inside = 0;
    } else if (*format == '{') {
      const struct field *field = find_field(format);
      format += text_length(field->name) + 1;
      if (put_value(cx, t, f, field)) any = 1;
      else if (inside) inside_lacks = 1;
      else lacks = 1;
    } else {
      put_char(t, *format);
    }
  }
  return any && !lacks;
}

/* Returns whether the message has a line with the component, which several findings can share. */
SHIM_API int names_component(const struct finding *f) {
  return get_meaning(f)->line[0] == TEXT_AT(line_needed_by);
}

/* Appends `before` and a line of the message, if the line has a value; returns whether it has. */
SHIM_API int put_line(struct context *cx, struct text *t, const char *before,
                      const struct finding *f, int k) {
  const size_t start = t->used;
  put(t, before);
  if (put_filled(cx, t, get_text(get_meaning(f)->line[k]), f)) return 1;
  shorten_text(t, start);
  return 0;
}

/* The notes that a guard is responsible for, and the effect of CUDAGUARD. */

/* Returns whether errors about the note refuse the program. CUDAGUARD overrides the note. */
SHIM_API int refuses(struct context *cx, const struct note *n) {
  if (cx->mode == MODE_WARN) return 0;
  return cx->mode == MODE_ENFORCE || n->head.mismatch == MISMATCH_REFUSES;
}

/* Returns whether this guard reports the findings of the note. The guard of a library reports only
 * if it is configured to end the process; otherwise the guard of the program reports for it. */
SHIM_API int reports_note(struct context *cx, const struct note *n) {
  int library =
      cx->mode == MODE_WARN || cx->mode == MODE_ENFORCE || n->head.library == LIBRARY_ENFORCES;
  return cx->program ? n->own || !library : n->own && library;
}

/* Returns whether the note contributes to the verdict of this guard. */
SHIM_API int in_scope(struct context *cx, const struct note *n) { return n->own || cx->program; }

/* The collection of findings. A finding that refuses is never dropped; if others are dropped, a
 * finding reports that. */

/* Retention priority of a finding when the table is full. */
SHIM_FN int get_retention_rank(struct context *cx, const struct finding *f) {
  const struct note *n = f->component;
  if (f->severity != ERROR) return get_meaning(f)->verdict == OPEN;
  return 2 + in_scope(cx, n) + (reports_note(cx, n) && refuses(cx, n));
}

/* Returns a place for a finding with the priority `more`. If the table is full, drops the finding
 * with the lowest priority if that is lower than `more`, and returns `spare` otherwise. */
SHIM_FN struct finding *make_room(struct context *cx, int more) {
  struct findings *all = &cx->findings;
  int k, least = 0;
  if (all->count < MAX_FINDINGS) return &all->at[all->count++];
  for (k = 1; k < all->count; k++)
    if (get_retention_rank(cx, &all->at[k]) <= get_retention_rank(cx, &all->at[least])) least = k;
  all->dropped++;
  if (get_retention_rank(cx, &all->at[least]) >= more) return &all->spare;
  for (k = least + 1; k < all->count; k++) all->at[k - 1] = all->at[k];
  return &all->at[all->count - 1];
}

/* Stores the string that start_kept_text() began, and returns its offset. Equal strings are stored
 * once. */
SHIM_API uint16_t store_last_text(struct context *cx, const struct text *t) {
  const char *stored = cx->texts;
  size_t at, *used = &cx->findings.texts_used;
  if (!*t->at || t->used + 1 == t->size) return 0;
  for (at = 0; at < *used; at += text_length(stored + at) + 1)
    if (texts_are_equal(stored + at, t->at)) return (uint16_t)at;
  *used += t->used + 1;
  return (uint16_t)at;
}

SHIM_API struct text start_stored_text(struct context *cx) {
  size_t *used = &cx->findings.texts_used;
  if (!*used) *used = 1;
  return start_text(cx->texts + *used, sizeof cx->texts - *used);
}

/* Stores a string without changes. */
SHIM_API uint16_t store_text(struct context *cx, const char *s) {
  struct text t;
  if (!*s) return 0; /* touches no page */
  t = start_stored_text(cx);
  put(&t, s);
  return store_last_text(cx, &t);
}

/* Stores an untrusted string, sanitized and truncated. */
SHIM_API uint16_t store_untrusted_text(struct context *cx, const char *s) {
  struct text t;
  if (!*s) return 0;
  t = start_stored_text(cx);
  put_untrusted(&t, s);
  return store_last_text(cx, &t);
}

/* Initialises a finding about the current note. */
SHIM_FN void begin_finding(struct context *cx, struct finding *f, enum message kind, int severity) {
  memset(f, 0, sizeof *f);
  f->kind = kind;
  f->severity = severity;
  f->component = cx->now;
}

/* Adds a finding with another severity than the table has. */
SHIM_API struct finding *add_finding_with_severity(struct context *cx, enum message kind,
                                                   int severity) {
  struct finding *f = &cx->findings.spare;
  begin_finding(cx, f, kind, severity);
  f = make_room(cx, get_retention_rank(cx, f));
  *f = cx->findings.spare;
  return f;
}

SHIM_API struct finding *add_finding(struct context *cx, enum message kind) {
  return add_finding_with_severity(cx, kind, meanings[kind].severity);
}

SHIM_FN void report_dropped(struct context *cx, enum message kind, uint32_t left_out,
                            uint32_t capacity) {
  struct finding *f = &cx->findings.at[cx->findings.count];
  if (!left_out) return;
  cx->findings.count++;
  begin_finding(cx, f, kind, meanings[kind].severity);
  f->left_out = left_out;
  f->kept = capacity;
}

/* Adds a finding about dropped findings and notes to the first note in scope. */
SHIM_API void report_all_dropped(struct context *cx) {
  int k;
  cx->now = cx->note;
  for (k = 1; k < cx->notes && !in_scope(cx, cx->now); k++) cx->now++;
  report_dropped(cx, NOT_ALL_KEPT, cx->findings.dropped, MAX_FINDINGS);
  report_dropped(cx, NOT_ALL_KEPT_NOTES, cx->dropped_notes, MAX_NOTES);
}

/* Returns the finding that determines this verdict, or null. If there are several, returns the one
 * with the lowest rank, which should be fixed first. */
SHIM_API const struct finding *find_decisive(struct context *cx, int verdict) {
  const struct finding *best = 0;
  int k;
  for (k = 0; k < cx->findings.count; k++) {
    const struct finding *f = &cx->findings.at[k];
    const struct meaning *m = get_meaning(f);
    int decides = verdict == WRONG ? f->severity == ERROR && m->verdict == REFUSES
                                   : verdict == CANNOT_TELL && m->verdict == OPEN;
    if (decides && in_scope(cx, f->component) && (!best || m->rank < get_meaning(best)->rank))
      best = f;
  }
  return best;
}

/* Computes the verdict from the findings; findings.h has a column for it. */
SHIM_API int get_result(struct context *cx) {
  return find_decisive(cx, WRONG) ? WRONG : find_decisive(cx, CANNOT_TELL) ? CANNOT_TELL : RIGHT;
}
