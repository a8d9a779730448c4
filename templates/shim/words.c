/* Findings and their words. The words stand in findings.h, which is made from the same table as the judge's in Rust. */

/* What an error of a code does to the verdict. A finding of an open code leaves it open, whatever it weighs. */
enum { REFUSES, OPEN, INFORMS };

enum words {
#define NAME(name, code, severity, verdict, rank, subject, sentence, one, two, three, hint_of, hint) name,
  FINDINGS(NAME)
#undef NAME
  /* What is judged may also come off without a word. */
  FITS,
  CANNOT_BE_TOLD
};

struct finding {
  enum words words;
  int severity;
  const struct note *note;
  /* The values of its words, each by its name there. */
  uint32_t part, found, built, built_major, min, dropped_in, found_cuda, built_cuda, loader, needs_cuda, needs_release;
  uint32_t nvcc_major, cuda_major, newest_major, driver, cuda, kernel, answer, left_out, kept, made_from, made_to;
  char component[2 * NOTE_TEXT], other[2 * NOTE_TEXT], file[NOTE_TEXT], symbol[NOTE_TEXT], why[SHOW], kinds[64];
  char path[SHOW + 4], beside[SHOW + 4], picked_by[WHY], library[SHOW], libcuda[SHOW + 4];
  char code[NOTE_TEXT], built_for[NOTE_TEXT], gpus[6 * MAX_GPUS], archs[8 * MAX_GPUS];
};

struct findings {
  int count, round; /* round: the first that was found in this one */
  uint32_t left_out, left_out_now; /* now: in this round */
  struct finding at[MAX_FINDINGS + 2]; /* two more say what was left out */
  struct finding spare;                /* the one for which there is no room */
};

/* All texts, each a member of one object: an offset finds it, and needs no relocation at start-up. */
struct message_texts {
#define TEXTS(name, code, severity, verdict, rank, subject, sentence, one, two, three, hint_of, hint) \
  char name##_sentence[sizeof(sentence)];                                                             \
  char name##_hint[sizeof(hint)];
  FINDINGS(TEXTS)
#undef TEXTS
#define TEXT(name, text) char line_##name[sizeof(text)];
  LINES(TEXT)
#undef TEXT
#define TEXT(name, text) char subject_##name[sizeof(text)];
  SUBJECTS(TEXT)
#undef TEXT
  char line_none[1];
};

static const struct message_texts texts = {
#define TEXTS(name, code, severity, verdict, rank, subject, sentence, one, two, three, hint_of, hint) sentence, hint,
    FINDINGS(TEXTS)
#undef TEXTS
#define TEXT(name, text) text,
    LINES(TEXT) SUBJECTS(TEXT)
#undef TEXT
    ""};

#define TEXT_AT(member) ((uint16_t)offsetof(struct message_texts, member))

/* What the table of findings says about a message; texts by their offsets. */
struct meaning {
  uint16_t code;
  uint8_t severity, verdict, rank;
  uint16_t subject, sentence, lines[3], hint;
};

static const struct meaning meanings[] = {
#define MEANING(name, code, severity, verdict, rank, subject, sentence, one, two, three, hint_of, hint) \
  {code, severity, verdict, rank, TEXT_AT(subject_##subject), TEXT_AT(name##_sentence),                 \
   {TEXT_AT(line_##one), TEXT_AT(line_##two), TEXT_AT(line_##three)}, TEXT_AT(hint_of##_hint)},
    FINDINGS(MEANING)
#undef MEANING
};

CODE const struct meaning *meaning_of(const struct finding *f) { return &meanings[f->words]; }

CODE const char *text_of(uint32_t offset) { return (const char *)&texts + offset; }

enum { TEXT_VALUE, NUMBER_VALUE, VERSION_VALUE, CUDA_VALUE, RELEASE_VALUE };

static const struct field {
  char name[16];
  uint16_t kind, at;
} fields[] = {
#define FIELD(name, kind) {#name, kind##_VALUE, offsetof(struct finding, name)},
    FIELDS(FIELD)
#undef FIELD
};

/* Appends the value of a placeholder, which is named up to its brace; returns whether it has one. */
CODE int put_value(struct text *t, const struct finding *f, const char *name) {
  const struct field *field = fields;
  const char *at;
  uint32_t n;
  while (!starts(name, field->name) || name[len(field->name)] != '}') field++;
  at = (const char *)f + field->at;
  if (field->kind == TEXT_VALUE) {
    put(t, at);
    return *at != 0;
  }
  memcpy(&n, at, sizeof n);
  if (!n) return 0;
  if (field->kind == NUMBER_VALUE) put_number(t, n);
  if (field->kind == VERSION_VALUE) put_version(t, n);
  if (field->kind == CUDA_VALUE) put_cuda(t, n);
  if (field->kind == RELEASE_VALUE) put_release(t, n);
  return 1;
}

/* Appends a text with the values of its placeholders, and omits a part in [ ] if a value in it is empty. Returns whether it has
 * any value, and no empty one outside of [ ]. */
CODE int put_filled(struct text *t, const char *words, const struct finding *f) {
  size_t optional = t->used;
  int inside = 0, lacks = 0, inside_lacks = 0, any = 0;
  for (; *words; words++) {
    if (*words == '[') {
      inside = 1, inside_lacks = 0, optional = t->used;
    } else if (*words == ']') {
      if (inside_lacks) cut_back(t, optional);
      inside = 0;
    } else if (*words == '{') {
      if (put_value(t, f, words + 1)) any = 1;
      else if (inside) inside_lacks = 1;
      else lacks = 1;
      while (*words != '}') words++;
    } else {
      put_char(t, *words);
    }
  }
  return any && !lacks;
}

/* The sentence, and each line that has something to say. */
CODE void put_message(struct text *t, const struct finding *f) {
  const struct meaning *m = meaning_of(f);
  int k;
  put_filled(t, text_of(m->sentence), f);
  for (k = 0; k < 3; k++) {
    size_t line = t->used;
    put_char(t, '\n');
    if (!put_filled(t, text_of(m->lines[k]), f)) cut_back(t, line);
  }
}
