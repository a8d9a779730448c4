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

/* All texts, one behind the other, each known by its number: addresses would have to be corrected by the loader at every start. */
static char texts[] AMONG_VARIABLES =
#define TEXTS(name, code, severity, verdict, rank, subject, sentence, one, two, three, hint_of, hint) sentence "\0" hint "\0"
#define TEXT(name, text) text "\0"
    FINDINGS(TEXTS) LINES(TEXT) SUBJECTS(TEXT);
#undef TEXTS
#undef TEXT

static char pieces[] AMONG_VARIABLES = PIECES;

enum {
#define NUMBERS(name, code, severity, verdict, rank, subject, sentence, one, two, three, hint_of, hint) name##_SENTENCE, name##_HINT,
  FINDINGS(NUMBERS)
#undef NUMBERS
#define NUMBER(name, text) LINE_##name,
  LINES(NUMBER)
#undef NUMBER
#define NUMBER(name, text) SUBJECT_##name,
  SUBJECTS(NUMBER)
#undef NUMBER
  LINE_none /* the NUL that ends them all */
};

struct meaning {
  uint16_t code;
  uint8_t severity : 4, verdict : 4, rank;
  uint8_t subject, sentence, lines[3], hint; /* texts */
};

static const struct meaning meanings[] = {
#define MEANING(name, code, severity, verdict, rank, subject, sentence, one, two, three, hint_of, hint) \
  {code, severity, verdict, rank, SUBJECT_##subject, name##_SENTENCE, {LINE_##one, LINE_##two, LINE_##three}, hint_of##_HINT},
    FINDINGS(MEANING)
#undef MEANING
};

CODE const struct meaning *meaning_of(const struct finding *f) { return &meanings[f->words]; }

CALLED const char *text_at(const char *s, int n) {
  for (; n; n--) s += len(s) + 1;
  return s;
}

CODE const char *text_of(int n) { return text_at(texts, n); }

enum { TEXT_VALUE, NUMBER_VALUE, VERSION_VALUE, CUDA_VALUE, RELEASE_VALUE };

static const struct {
  uint16_t kind, at;
} fields[] = {
#define FIELD(name, kind) {kind##_VALUE, offsetof(struct finding, name)},
    FIELDS(FIELD)
#undef FIELD
};

/* A byte of a text that is no letter: this, and the number of the field; behind the fields, of the piece. */
enum { A_VALUE = 0x80, FIELDS_END = sizeof fields / sizeof *fields };

/* Puts a field's value; whether there is one. */
CODE int put_value(struct text *t, const struct finding *f, int k) {
  const char *at = (const char *)f + fields[k].at;
  uint32_t n;
  if (fields[k].kind == TEXT_VALUE) {
    put(t, at);
    return *at != 0;
  }
  memcpy(&n, at, sizeof n);
  if (!n) return 0;
  if (fields[k].kind == NUMBER_VALUE) put_number(t, n);
  if (fields[k].kind == VERSION_VALUE) put_version(t, n);
  if (fields[k].kind == CUDA_VALUE) put_cuda(t, n);
  if (fields[k].kind == RELEASE_VALUE) put_release(t, n);
  return 1;
}

/* NOLINTBEGIN(misc-no-recursion): a piece holds pieces that `cargo findings` took before it, and never itself. */
/* A text with its values: each is one byte; what stands between [ and ] is left out where a value in it is empty. Whether there
 * is any value outside of those that were left out, and none outside of [ ] is empty. */
CODE int put_filled(struct text *t, const char *words, const struct finding *f) {
  size_t optional = t->used;
  int inside = 0, lacks = 0, inside_lacks = 0, any = 0;
  for (; *words; words++) {
    if (*words == '[') {
      inside = 1, inside_lacks = 0, optional = t->used;
    } else if (*words == ']') {
      if (inside_lacks) cut_back(t, optional);
      inside = 0;
    } else if (*words & A_VALUE) {
      int k = *words & (A_VALUE - 1);
      if (k >= FIELDS_END) put_filled(t, text_at(pieces, k - FIELDS_END), f);
      else if (put_value(t, f, k)) any = 1;
      else if (inside) inside_lacks = 1;
      else lacks = 1;
    } else {
      put_char(t, *words);
    }
  }
  return any && !lacks;
}
/* NOLINTEND(misc-no-recursion) */

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
