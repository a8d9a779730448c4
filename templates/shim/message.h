/* Formats the messages of findings.h with the values of a finding. */
#ifndef CUDAGUARD_MESSAGE_H
#define CUDAGUARD_MESSAGE_H

#include "note.h"

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

enum line {
#define LINE(name, text) LINE_##name,
  LINES(LINE)
#undef LINE
      LINE_none
};

static const uint16_t lines[] = {
#define LINE(name, text) TEXT_AT(line_##name),
    LINES(LINE)
#undef LINE
        TEXT_AT(line_none)};

/* A row of the table of findings. Strings are offsets. The offsets of subjects are below 256. */
struct meaning {
  uint16_t code, sentence, hint;
  uint8_t severity : 4, verdict : 4;
  uint8_t rank, subject, line[3];
};

static const struct meaning meanings[] = {
#define MEANING(name, code, severity, verdict, rank, subject, one, two, three, sentence, hint) \
  {code,                                                                                       \
   TEXT_AT(name##_sentence),                                                            \
   TEXT_AT(name##_hint),                                                                    \
   severity,                                                                                   \
   verdict,                                                                                    \
   rank,                                                                                       \
   (uint8_t)TEXT_AT(subject_##subject),                                                        \
   {LINE_##one, LINE_##two, LINE_##three}},
    FINDINGS(MEANING)
#undef MEANING
};

SHIM_FN const struct meaning *get_meaning(const struct finding *f) {
  return &meanings[f->kind];
}

SHIM_FN const char *get_text(uint32_t offset) { return (const char *)&texts + offset; }

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
  uint32_t n;
  if (field->kind == TEXT_VALUE) {
    const size_t before = t->used;
    uint16_t text;
    memcpy(&text, at, sizeof text);
    if (at == (const char *)&f->component) put_component(cx, t, text);
    else put(t, cx->texts.at + text);
    return t->used > before;
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
SHIM_FN int put_filled(struct context *cx, struct text *t, const char *format,
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

/* Appends the sentence, and each line that has a value. */
SHIM_FN void put_message(struct context *cx, struct text *t, const struct finding *f) {
  const struct meaning *m = get_meaning(f);
  int k;
  put_filled(cx, t, get_text(m->sentence), f);
  for (k = 0; k < 3; k++) {
    size_t line = t->used;
    put_char(t, '\n');
    if (!put_filled(cx, t, get_text(lines[m->line[k]]), f)) shorten_text(t, line);
  }
}

#endif
