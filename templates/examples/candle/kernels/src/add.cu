extern "C" __global__ void add(float *x, const float *y) { x[threadIdx.x] += y[threadIdx.x]; }
