"""What packages and wheels leave out, compared with an installed toolkit or cuDNN."""
import os, re, subprocess, tempfile

CC = os.environ.get("CC", "cc")


def link(target, path):
    if not os.path.lexists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)


def compiled(source, soname, path):
    """A shared library of this C text."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "x.c"), "w") as file:
            file.write(source)
        subprocess.run([CC, "-shared", "-fPIC", "-w", "-Wl,-soname," + soname, "-o", path, os.path.join(folder, "x.c")],
                       check=True)


def development_links(folder):
    """libX.so beside each libX.so.N."""
    for name in os.listdir(folder):
        if ".so." in name:
            link(name, os.path.join(folder, name.partition(".so.")[0] + ".so"))


def toolkit_of_wheels(root, version):
    """A toolkit root as NVIDIA's installer lays it out, from the wheels' one."""
    link("lib", os.path.join(root, "lib64"))
    link("../../include", os.path.join(root, "targets/x86_64-linux/include"))
    link("../../lib", os.path.join(root, "targets/x86_64-linux/lib"))
    link("../../lib/libnvvm.so.4", os.path.join(root, "nvvm/lib64/libnvvm.so"))
    development_links(os.path.join(root, "lib"))
    # No wheel has the linker's stub of the driver library: every function that cuda.h declares, answering 34
    # (CUDA_ERROR_STUB_LIBRARY).
    text = open(os.path.join(root, "include/cuda.h"), errors="replace").read()
    names = set(re.findall(r"^(?:extern +)?CUresult +CUDAAPI +(cu\w+)", text, re.M))
    names |= set(re.findall(r"^ *# *define +cu[A-Z]\w* +(?:__CUDA_API_PT(?:DS|SZ)\()?(cu[A-Z]\w*)", text, re.M))
    compiled("".join("int %s(void){return 34;}\n" % name for name in sorted(names)), "libcuda.so.1",
             os.path.join(root, "lib/stubs/libcuda.so"))
    with open(os.path.join(root, "version.json"), "w") as file:
        file.write('{"cuda": {"name": "CUDA SDK", "version": "%s"},\n'
                   ' "cuda_nvcc": {"name": "CUDA NVCC", "version": "%s"}}\n' % (version, version))


def toolkit_of_debian(root, version):
    """Debian's nvcc.profile has absolute paths of its own layout."""
    link("lib64", os.path.join(root, "lib"))
    with open(os.path.join(root, "bin/nvcc.profile"), "w") as profile:
        profile.write("""TOP              = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
LD_LIBRARY_PATH += $(TOP)/lib64:
PATH            += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES        +=  "-I$(TOP)/include" $(_SPACE_)
LIBRARIES        =+ $(_SPACE_) "-L$(TOP)/lib64/stubs" "-L$(TOP)/lib64"
CUDAFE_FLAGS    +=
PTXAS_FLAGS     +=
""")


def cudnn(root, version):
    """The development link; and for cuDNN 8.5 to 8.7 empty stand-ins of the cuBLAS that its inner library needs."""
    development_links(os.path.join(root, "lib"))
    if version < "8.8" and os.path.exists(os.path.join(root, "lib/libcudnn_ops_infer.so.8")):
        for soname in ("libcublas.so.11", "libcublasLt.so.11"):
            compiled("", soname, os.path.join(root, "stand-in", soname))


def driver(root, version):
    """Nothing to add."""
