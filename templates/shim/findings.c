/* Keeping findings: nothing that refuses is lost, and what is left out is a finding of its own. */

/* How much is lost where it is left out. */
CODE int worth(const struct finding *f) {
  const struct note *n = f->note;
  if (f->severity != ERROR) return meaning_of(f)->verdict == OPEN;
  return 2 + in_scope(n) + (speaks_for(n) && note_refuses(n));
}

/* A place for one more, of this worth at most: where all are taken, that of the one that is worth least, if it is less. */
CODE struct finding *room_for_finding(int more) {
  struct findings *all = &g.findings;
  int k, least = 0;
  if (all->count < MAX_FINDINGS) return &all->at[all->count++];
  for (k = 1; k < all->count; k++)
    if (worth(&all->at[k]) <= worth(&all->at[least])) least = k;
  if (worth(&all->at[least]) >= more) {
    all->left_out_now++;
    return &all->spare;
  }
  if (least >= all->round) all->left_out_now++;
  else all->left_out++, all->round--;
  for (k = least + 1; k < all->count; k++) all->at[k - 1] = all->at[k];
  return &all->at[all->count - 1];
}

/* A finding about the note that is being judged, of this weight; of its values only the component is filled in. */
CODE void begin_finding(struct finding *f, enum words words, int severity) {
  memset(f, 0, sizeof *f);
  f->words = words, f->severity = severity, f->note = g.now;
  component(g.now, &f->component);
}

/* A new one, in its place among the others. */
CODE struct finding *find_weighing(enum words words, int severity) {
  struct finding *f = &g.findings.spare;
  begin_finding(f, words, severity);
  f = room_for_finding(worth(f));
  *f = g.findings.spare;
  return f;
}

CODE struct finding *find(enum words words) { return find_weighing(words, meanings[words].severity); }

/* Findings come in rounds: what a look at files alone has found is forgotten where the real library is asked afterwards. */
CODE void begin_round(void) {
  g.findings.round = g.findings.count;
  g.findings.left_out += g.findings.left_out_now;
  g.findings.left_out_now = 0;
}

CALLED void forget_round(void) {
  g.findings.count = g.findings.round;
  g.findings.left_out_now = 0;
}

CODE int round_has(int severity) {
  int k, n = (int)g.findings.left_out_now;
  for (k = g.findings.round; k < g.findings.count; k++) n += g.findings.at[k].severity >= severity;
  return n;
}

CODE void find_left_out(enum words words, uint32_t left_out, uint32_t kept) {
  struct finding *f = &g.findings.at[g.findings.count];
  if (!left_out) return;
  g.findings.count++;
  begin_finding(f, words, meanings[words].severity);
  f->left_out = left_out, f->kept = kept;
}

/* What was left out, said about the first note that this guard speaks for. */
CODE void find_what_was_left_out(void) {
  int k;
  for (k = 1, g.now = g.note; k < g.notes && !in_scope(g.now); k++) g.now++;
  find_left_out(NOT_ALL_KEPT, g.findings.left_out + g.findings.left_out_now, MAX_FINDINGS);
  find_left_out(NOT_ALL_KEPT_NOTES, g.notes_left_out, MAX_NOTES);
}

/* The finding that decided on this verdict: of several the one to be mended first; null where nothing is to be said. */
CODE const struct finding *decisive(int verdict) {
  const struct finding *best = 0;
  int k;
  for (k = 0; k < g.findings.count; k++) {
    const struct finding *f = &g.findings.at[k];
    const struct meaning *m = meaning_of(f);
    int decides = verdict == WRONG ? f->severity == ERROR && m->verdict == REFUSES : verdict == CANNOT_TELL && m->verdict == OPEN;
    if (decides && in_scope(f->note) && (!best || m->rank < meaning_of(best)->rank)) best = f;
  }
  return best;
}

/* The verdict is a function of the findings: see the column of findings.h. */
CODE int overall(void) { return decisive(WRONG) ? WRONG : decisive(CANNOT_TELL) ? CANNOT_TELL : RIGHT; }
