/* Generated from guard-core/src/knowledge/vendor: the library that a manifest has rows for. */
#ifndef CUDAGUARD_VENDORS_H
#define CUDAGUARD_VENDORS_H

#define CUDNN_FILE "libcudnn.so"
#define CUDNN_GETTER "cudnnGetVersion"

/* The weight of the major in the answer of that function. */
#define CUDNN_VERSION_FROM(answer) ((answer) >= 90000 ? 10000 : 1000)

#endif
