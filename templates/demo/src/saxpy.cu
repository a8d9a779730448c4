// A kernel, and a function that runs it on the GPU. Returns null, or the error string of cudart.
#include <cuda_runtime.h>

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" const char *demo_saxpy(void)
{
    const int n = 1024;
    float *x = nullptr, *y = nullptr;
    cudaError_t error = cudaMalloc(&x, n * sizeof(float));
    if (error == cudaSuccess)
        error = cudaMalloc(&y, n * sizeof(float));
    if (error == cudaSuccess) {
        saxpy<<<(n + 255) / 256, 256>>>(n, 2.0f, x, y);
        error = cudaDeviceSynchronize();
    }
    cudaFree(x);
    cudaFree(y);
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
