/* Written from guard-core/src/vendor; a test keeps it so. The library that a manifest has rows for. */
#define GUARDED_FILE "libcudnn.so"
#define GUARDED_ASKS "cudnnGetVersion"

/* By how much the major counts in what cudnnGetVersion answers. */
#define GUARDED_SCALE(answer) ((answer) >= 90000 ? 10000 : 1000)
