#!/bin/sh
# Runs tools and test suites of other projects, unchanged, on a simulated H100: tests/foreign-suites.sh COMMAND, where COMMAND is
# cargo-cudaguard. Needs Python with venv, and pip's index. Failures of the suites are expected: kernels do not run.
set -eu
command=$(realpath "$1") work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet nvidia-ml-py==13.615.71 py3nvml==0.2.7 GPUtil==1.4.0 gpustat==1.1.1 nvitop==1.7.2 'setuptools<80' pytest mockito \
    cuda-bindings==13.0.3 numba-cuda==0.30.4 nvidia-cuda-runtime==13.0.96 nvidia-cuda-nvrtc==13.0.88 nvidia-nvvm==13.0.88 filecheck cffi psutil
venv/bin/pip download --quiet --no-deps --no-binary :all: gpustat==1.1.1
tar xf gpustat-1.1.1.tar.gz
simulate() { "$command" simulate --gpu H100 --driver 580.95.05 --memory 80 -- "$@"; }
python=venv/bin/python
simulate $python -c 'import pynvml as n; n.nvmlInit(); print("nvidia-ml-py", n.nvmlDeviceGetName(n.nvmlDeviceGetHandleByIndex(0)))'
simulate $python -c 'from py3nvml import py3nvml as n; n.nvmlInit(); print("py3nvml", n.nvmlDeviceGetName(n.nvmlDeviceGetHandleByIndex(0)))'
simulate $python -c 'import GPUtil; print("GPUtil", GPUtil.getGPUs()[0].name, GPUtil.getAvailable())'
simulate $python -c 'from cuda.bindings import driver as d; d.cuInit(0); print("cuda-bindings", d.cuDeviceGetName(20, d.cuDeviceGet(0)[1]))'
simulate venv/bin/gpustat --no-color
simulate venv/bin/nvitop --once
simulate $python -m pytest -q gpustat-1.1.1/gpustat | tail -1
for suite in nocuda cudadrv; do
    simulate $python -m numba.runtests numba.cuda.tests.$suite 2>&1 | tail -3 || true
done
