/* Generated from guard-core/src/knowledge/vendor: the library that a manifest has rows for. */
#ifndef CUDAGUARD_VENDORS_H
#define CUDAGUARD_VENDORS_H

#define GUARDED_FILE "libcudnn.so"
#define GUARDED_ASKS "cudnnGetVersion"

/* The weight of the major in the answer of that function. */
#define GUARDED_SCALE(answer) ((answer) >= 90000 ? 10000 : 1000)

#endif
