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
  int severity, round;
  const struct note *note;
  /* The values of its words, each by its name there. */
  uint32_t part, found, built, built_major, min, dropped_in, found_cuda, built_cuda, loader, needs_cuda, needs_release;
  uint32_t nvcc_major, cuda_major, driver, cuda, kernel, answer, left_out, kept, made_from, made_to;
  char component[2 * NOTE_TEXT], other[2 * NOTE_TEXT], file[NOTE_TEXT], symbol[NOTE_TEXT], why[64], kinds[64];
  char path[SHOW + 4], beside[SHOW + 4], picked_by[WHY], library[SHOW], libcuda[SHOW + 4];
  char code[NOTE_TEXT], built_for[NOTE_TEXT], gpus[6 * MAX_GPUS], archs[8 * MAX_GPUS];
};

struct findings {
  int count, round;
  uint32_t left_out, left_out_now; /* now: in this round */
  struct finding at[MAX_FINDINGS + 2]; /* two more say what was left out */
  struct finding spare;                /* the one for which there is no room */
};

/* All texts stand in one object, and the table says where each begins: addresses would have to be corrected by the loader at
 * every start. */
struct phrases {
#define PHRASES(name, code, severity, verdict, rank, subject, sentence, one, two, three, hint_of, hint) \
  char name##_sentence[sizeof(sentence)], name##_hint[sizeof(hint)];
  FINDINGS(PHRASES)
#undef PHRASES
#define PHRASE(name, line) char line_##name[sizeof(line)];
  LINES(PHRASE)
#undef PHRASE
#define PHRASE(name, subject) char subject_##name[sizeof(subject)];
  SUBJECTS(PHRASE)
#undef PHRASE
  char line_none[1];
#define PIECE(name, piece) char piece_##name[sizeof(piece)];
  PIECES(PIECE)
#undef PIECE
};

static const struct phrases phrases = {
#define PHRASES(name, code, severity, verdict, rank, subject, sentence, one, two, three, hint_of, hint) sentence, hint,
    FINDINGS(PHRASES)
#undef PHRASES
#define PHRASE(name, text) text,
    LINES(PHRASE)
    SUBJECTS(PHRASE)
#undef PHRASE
    "",
#define PIECE(name, piece) piece,
    PIECES(PIECE)
#undef PIECE
};

struct meaning {
  uint16_t code;
  uint8_t severity : 4, verdict : 4, rank;
  uint16_t subject, sentence, lines[3], hint; /* where they begin */
};

static const struct meaning meanings[] = {
#define AT(member) offsetof(struct phrases, member)
#define MEANING(name, code, severity, verdict, rank, subject, sentence, one, two, three, hint_of, hint) \
  {code, severity, verdict, rank, AT(subject_##subject), AT(name##_sentence), {AT(line_##one), AT(line_##two), AT(line_##three)}, AT(hint_of##_hint)},
    FINDINGS(MEANING)
#undef MEANING
#undef AT
};

CODE const struct meaning *meaning_of(const struct finding *f) { return &meanings[f->words]; }
CODE const char *phrase(uint16_t at) { return (const char *)&phrases + at; }

enum { TEXT_VALUE, NUMBER_VALUE, VERSION_VALUE, CUDA_VALUE, RELEASE_VALUE, PIECE_VALUE };

static const struct {
  uint16_t kind, at;
} fields[] = {
#define FIELD(name, kind) {kind##_VALUE, offsetof(struct finding, name)},
    FIELDS(FIELD)
#undef FIELD
#define FIELD(name, piece) {PIECE_VALUE, offsetof(struct phrases, piece_##name)},
    PIECES(FIELD)
#undef FIELD
};

enum { A_VALUE = 0x80 }; /* a byte of words that is no letter: this, and the number of the field or piece */

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
      if (fields[k].kind == PIECE_VALUE) put(t, phrase(fields[k].at));
      else if (put_value(t, f, k)) any = 1;
      else if (inside) inside_lacks = 1;
      else lacks = 1;
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
  put_filled(t, phrase(m->sentence), f);
  for (k = 0; k < 3; k++) {
    size_t line = t->used;
    put_char(t, '\n');
    if (!put_filled(t, phrase(m->lines[k]), f)) cut_back(t, line);
  }
}
