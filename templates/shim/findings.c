/* Keeping findings: nothing that refuses is lost, and what is left out is a finding of its own. */

/* How much is lost where it is left out. */
CODE int worth(const struct finding *f) {
  const struct note *n = &g.note[f->note];
  if (f->severity != ERROR) return meaning_of(f)->verdict == OPEN;
  return 2 + in_scope(n) + (speaks_for(n) && note_refuses(n));
}

CODE void forget_at(int k) {
  for (g.findings.count--; k < g.findings.count; k++) g.findings.at[k] = g.findings.at[k + 1];
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
  if (all->at[least].round == all->round) all->left_out_now++;
  else all->left_out++;
  forget_at(least);
  return &all->at[all->count++];
}

/* A new finding about the note that is being judged, of this weight; only its component is filled in. */
CODE struct finding *find_weighing(enum words words, int severity) {
  struct finding *f = &g.findings.spare;
  f->words = words, f->severity = severity, f->note = g.now;
  f = room_for_finding(worth(f));
  memset(f, 0, sizeof *f);
  f->words = words, f->severity = severity, f->note = g.now, f->round = g.findings.round;
  component(&g.note[g.now], f->component, sizeof f->component);
  return f;
}

CODE struct finding *find(enum words words) { return find_weighing(words, meanings[words].severity); }

/* Findings come in rounds: what a look at files alone has found is forgotten where the real library is asked afterwards. */
CODE void begin_round(void) {
  g.findings.round++;
  g.findings.left_out += g.findings.left_out_now;
  g.findings.left_out_now = 0;
}

CODE void forget_round(void) {
  int k;
  for (k = g.findings.count; k-- > 0;)
    if (g.findings.at[k].round == g.findings.round) forget_at(k);
  g.findings.left_out_now = 0;
}

CODE int round_has(int severity) {
  int k, n = 0;
  for (k = 0; k < g.findings.count; k++)
    n += g.findings.at[k].round == g.findings.round && g.findings.at[k].severity >= severity;
  return n + (int)g.findings.left_out_now;
}

/* What was left out, said about the first note that this guard speaks for. */
CODE void find_what_was_left_out(void) {
  struct findings *all = &g.findings;
  const uint32_t left_out[2] = {all->left_out + all->left_out_now, g.notes_left_out};
  int k;
  for (g.now = 0; g.now + 1 < g.notes && !in_scope(&g.note[g.now]);) g.now++;
  for (k = 0; k < 2; k++) {
    struct finding *f = &all->at[all->count];
    if (!left_out[k]) continue;
    all->count++;
    memset(f, 0, sizeof *f);
    f->words = k ? NOT_ALL_KEPT_NOTES : NOT_ALL_KEPT;
    f->severity = meaning_of(f)->severity;
    f->note = g.now;
    f->left_out = left_out[k], f->kept = k ? MAX_NOTES : MAX_FINDINGS;
    component(&g.note[g.now], f->component, sizeof f->component);
  }
}

/* The verdict is a function of the findings: see the column of findings.h. */
CODE int overall(void) {
  int k, verdict = RIGHT;
  for (k = 0; k < g.findings.count; k++) {
    const struct finding *f = &g.findings.at[k];
    if (!in_scope(&g.note[f->note])) continue;
    if (f->severity == ERROR && meaning_of(f)->verdict == REFUSES) return WRONG;
    if (meaning_of(f)->verdict == OPEN) verdict = CANNOT_TELL;
  }
  return verdict;
}
