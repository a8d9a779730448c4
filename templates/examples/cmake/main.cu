#include <cstdio>
__global__ void scale(float *x) { x[threadIdx.x] *= 2; }
int main() {
    float *x;
    cudaMalloc(&x, 32 * sizeof *x);
    scale<<<1, 32>>>(x);
    std::puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
