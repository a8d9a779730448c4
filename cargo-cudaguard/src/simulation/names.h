/* The exported functions of a fake library, and the first CUDA version that has each; 0: every version. None if unsimulated.c is
 * not part of it. */
struct exported {
  const char *name;
  int first;
};
extern const struct exported exported[] __attribute__((weak, visibility("hidden")));
