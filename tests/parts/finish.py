"""What packages and wheels leave out, compared with an installed toolkit or cuDNN."""
import glob, os, re, shutil, subprocess, tempfile

CC = os.environ.get("CC", "cc")


# What a machine must have for a part to be finished, and the packages of Debian's that have it.
NEEDS = {"rust_cross": (["/usr/bin/x86_64-w64-mingw32-dlltool", "/usr/lib/x86_64-linux-musl/libc.a"],
                        "musl-tools gcc-mingw-w64-x86-64-win32")}


def lacking(part):
    """Why this machine cannot finish a part, or nothing."""
    files, packages = NEEDS.get(part, ([], ""))
    absent = [file for file in files if not os.path.exists(file)]
    return "this machine has no %s (apt install %s)" % (" and no ".join(absent), packages) if absent else ""


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


def cmake(root, version):
    """A wheel's files are for an installer to make executable."""
    for name in ("cmake", "ctest"):
        os.chmod(os.path.join(root, "bin", name), 0o755)


def program(root, version):
    """The same for each program in bin/."""
    for name in os.listdir(os.path.join(root, "bin")):
        os.chmod(os.path.join(root, "bin", name), 0o755)


def make(root, version):
    """Makefiles call `$(MAKE)` as make itself was called, without quotes: by its name alone a folder may have a blank."""
    os.mkdir(os.path.join(root, "libexec"))
    os.rename(os.path.join(root, "bin/make"), os.path.join(root, "libexec/make"))
    with open(os.path.join(root, "bin/make"), "w") as file:
        file.write('#!/bin/sh\nhere=$(cd "${0%/*}/../libexec" && pwd)\nPATH="$here:$PATH" exec make "$@"\n')
    program(root, version)


def meson(root, version):
    """The program that pip would write."""
    os.makedirs(os.path.join(root, "bin"), exist_ok=True)
    with open(os.path.join(root, "bin/meson"), "w") as file:
        file.write("#!/usr/bin/env python3\nimport os, sys\n"
                   "sys.dont_write_bytecode = True\n"
                   "sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '../lib'))\n"
                   "from mesonbuild.mesonmain import main\n"
                   "sys.exit(main())\n")
    program(root, version)


def headers(root, version):
    """Complete as it comes."""


def python(root, version):
    """Complete as it comes."""


def consumers(root, version):
    """Complete as it comes."""


def project(root, version):
    """Complete as it comes, and left as it is."""


def cudnn(root, version):
    """The development link; and for cuDNN 8.5 to 8.7 empty stand-ins of the cuBLAS that its inner library needs."""
    development_links(os.path.join(root, "lib"))
    if version < "8.8" and os.path.exists(os.path.join(root, "lib/libcudnn_ops_infer.so.8")):
        for soname in ("libcublas.so.11", "libcublasLt.so.11"):
            compiled("", soname, os.path.join(root, "stand-in", soname))


def driver(root, version):
    """Nothing to add."""


def assembler(root, version):
    """Nothing to add: before CUDA 13 no wheel has the rest of the compiler."""


def library(root, version):
    """Nothing to add: it is read, never linked to."""


STD = "-Zbuild-std=std,panic_abort,panic_unwind"
CORE = "-Zbuild-std=core"
FROM_SOURCE = {
    "x86_64-unknown-linux-musl": STD,
    "x86_64-pc-windows-gnu": STD,
    "wasm32-unknown-unknown": STD,
    "powerpc64-unknown-linux-musl": CORE,  # big-endian, and lld can link it
    "armv7-unknown-linux-gnueabihf": CORE,  # of 32 bits
}


def rust_oldest(root, version):
    """A rustc of another Debian release than this machine's: started by its own loader, with its own C library."""
    rustc = os.path.join(root, "bin/rustc")
    os.makedirs(os.path.dirname(rustc))
    with open(rustc, "w") as file:
        file.write('#!/bin/sh\nroot=${0%/*}/..\n'
                   'exec "$root/lib/ld-linux-x86-64.so.2" --library-path "$root/lib" "$root/libexec/rustc" '
                   '--sysroot "$root" "$@"\n')
    os.chmod(rustc, 0o755)


def rust_cross(root, version):
    """A rustc that finds its own libraries, and from source the standard library of those targets that Debian has none
    for. It is compiled with whatever cargo there is; nothing of it is ever measured, so it is not optimized."""
    rustc, rustlib = os.path.join(root, "bin/rustc"), os.path.join(root, "lib/rustlib")
    os.makedirs(os.path.dirname(rustc))
    with open(rustc, "w") as file:
        file.write('#!/bin/sh\nroot=${0%/*}/..\n'
                   'LD_LIBRARY_PATH=$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$root/libexec/rustc" "$@"\n')
    os.chmod(rustc, 0o755)
    kept = re.compile("(?!CARGO|RUST|MAKE|CC$|CFLAGS)|CARGO_HOME|CARGO_BUILD_JOBS|RUSTUP")
    environment = {name: value for name, value in os.environ.items() if kept.match(name)}
    # RUSTC_BOOTSTRAP: how else than as the compiler's own build does could a standard library be compiled?
    environment |= {"RUSTC": rustc, "RUSTC_BOOTSTRAP": "1", "CARGO_NET_OFFLINE": "true", "CARGO_INCREMENTAL": "0",
                    "CARGO_PROFILE_DEV_DEBUG": "0"}
    library = os.path.join(rustlib, "src/rust/library")

    def run(*call, **options):
        done = subprocess.run(call, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, **options)
        if done.returncode:
            raise OSError("%s: %s" % (" ".join(call), done.stderr.strip()))

    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "src"))
        with open(os.path.join(folder, "Cargo.toml"), "w") as file:
            file.write('[package]\nname = "nothing"\nedition = "2021"\n')
        with open(os.path.join(folder, "src/lib.rs"), "w") as file:
            file.write("#![no_std]\n")
        for target, what in FROM_SOURCE.items():
            made, place = os.path.join(folder, "target", target, "debug/deps"), os.path.join(rustlib, target, "lib")
            os.makedirs(place)
            musl = {"RUSTFLAGS": "-Lnative=/usr/lib/x86_64-linux-musl"} if target.startswith("x86_64-unknown") else {}
            environment.update(musl)
            run(os.environ.get("CARGO", "cargo"), "build", "--quiet", "--target", target, what, "--config",
                'source.crates-io.replace-with="vendored"', "--config",
                "source.vendored.directory='%s/vendor'" % library, cwd=folder)
            for name in musl:
                del environment[name]
            for file in glob.glob(made + "/*.rlib"):
                if not os.path.basename(file).startswith("libnothing-"):
                    shutil.copy(file, place)
            shutil.rmtree(made)
    # What a target of Windows and of musl has in its folder, as it comes from the makers of Rust.
    for name in ("rsbegin", "rsend"):
        place = os.path.join(rustlib, "x86_64-pc-windows-gnu/lib", name + ".o")
        run(rustc, "--target", "x86_64-pc-windows-gnu", "--emit", "obj", "-o", place, library + "/rtstartup/%s.rs" % name)
    contained = os.path.join(rustlib, "x86_64-unknown-linux-musl/lib/self-contained")
    os.mkdir(contained)
    for name in ("crt1.o", "rcrt1.o", "Scrt1.o", "crti.o", "crtn.o", "libc.a"):
        shutil.copy("/usr/lib/x86_64-linux-musl/" + name, contained)
    for name in ("crtbegin.o", "crtbeginS.o", "crtend.o", "crtendS.o", "libgcc_eh.a"):
        path = subprocess.run([CC, "-print-file-name=" + name], stdout=subprocess.PIPE, text=True, check=True).stdout
        shutil.copy(path.strip(), contained)
    # The unwinder of gcc asks glibc for something that musl lacks, and does without where the answer is no. A panic does
    # not get through it.
    os.rename(contained + "/libgcc_eh.a", contained + "/libunwind.a")
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/no.c", "w") as file:
            file.write("int _dl_find_object(void *address, void *result) { return -1; }\n")
        run(CC, "-c", "-Os", "-fPIC", "no.c", cwd=folder)
        run("ar", "q", contained + "/libunwind.a", "no.o", cwd=folder)
    shutil.copy(contained + "/libunwind.a", os.path.dirname(contained))
    shutil.rmtree(os.path.join(rustlib, "src"))
