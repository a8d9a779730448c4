"""Completes components: adds what an installed toolkit or cuDNN has and its packages and wheels do not. The field `finish` of
parts.json names one of these functions."""
import glob, os, re, shutil, subprocess, tempfile

CC = os.environ.get("CC", "cc")


# Files that a function needs on this machine, and the Debian packages that contain them.
PREREQUISITES = {"rust_cross": (["/usr/bin/x86_64-w64-mingw32-dlltool", "/usr/lib/x86_64-linux-musl/libc.a"],
                        "musl-tools gcc-mingw-w64-x86-64-win32")}


def missing_prerequisites(part):
    """Returns why this machine cannot complete a component, or an empty string."""
    files, packages = PREREQUISITES.get(part, ([], ""))
    absent = [file for file in files if not os.path.exists(file)]
    return "this machine has no %s (apt install %s)" % (" and no ".join(absent), packages) if absent else ""


def link(target, path):
    if not os.path.lexists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)


def compile_library(source, soname, path):
    """Compiles a shared library from C source text."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tempfile.TemporaryDirectory() as dir:
        with open(os.path.join(dir, "x.c"), "w") as file:
            file.write(source)
        subprocess.run([CC, "-shared", "-fPIC", "-w", "-Wl,-soname," + soname, "-o", path, os.path.join(dir, "x.c")],
                       check=True)


def development_links(dir):
    """Creates libX.so next to each libX.so.N."""
    for name in os.listdir(dir):
        if ".so." in name:
            link(name, os.path.join(dir, name.partition(".so.")[0] + ".so"))


def toolkit_of_wheels(root, version):
    """Gives the files of wheels the layout of NVIDIA's installer."""
    link("lib", os.path.join(root, "lib64"))
    link("../../include", os.path.join(root, "targets/x86_64-linux/include"))
    link("../../lib", os.path.join(root, "targets/x86_64-linux/lib"))
    link("../../lib/libnvvm.so.4", os.path.join(root, "nvvm/lib64/libnvvm.so"))
    development_links(os.path.join(root, "lib"))
    # No wheel has the stub of libcuda for the linker. Every function that cuda.h declares returns 34
    # (CUDA_ERROR_STUB_LIBRARY).
    text = open(os.path.join(root, "include/cuda.h"), errors="replace").read()
    names = set(re.findall(r"^(?:extern +)?CUresult +CUDAAPI +(cu\w+)", text, re.M))
    names |= set(re.findall(r"^ *# *define +cu[A-Z]\w* +(?:__CUDA_API_PT(?:DS|SZ)\()?(cu[A-Z]\w*)", text, re.M))
    compile_library("".join("int %s(void){return 34;}\n" % name for name in sorted(names)), "libcuda.so.1",
             os.path.join(root, "lib/stubs/libcuda.so"))
    with open(os.path.join(root, "version.json"), "w") as file:
        file.write('{"cuda": {"name": "CUDA SDK", "version": "%s"},\n'
                   ' "cuda_nvcc": {"name": "CUDA NVCC", "version": "%s"}}\n' % (version, version))


def toolkit_of_debian(root, version):
    """Replaces Debian's nvcc.profile, which has absolute paths of Debian's layout."""
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
    """Makes the programs executable, which an installer of wheels does."""
    for name in ("cmake", "ctest"):
        os.chmod(os.path.join(root, "bin", name), 0o755)


def program(root, version):
    """Makes each program in bin/ executable."""
    for name in os.listdir(os.path.join(root, "bin")):
        os.chmod(os.path.join(root, "bin", name), 0o755)


def make(root, version):
    """Adds a wrapper that starts make by its name. Makefiles use `$(MAKE)` without quotes, so its path must have no blank."""
    os.mkdir(os.path.join(root, "libexec"))
    os.rename(os.path.join(root, "bin/make"), os.path.join(root, "libexec/make"))
    with open(os.path.join(root, "bin/make"), "w") as file:
        file.write('#!/bin/sh\nhere=$(cd "${0%/*}/../libexec" && pwd)\nPATH="$here:$PATH" exec make "$@"\n')
    program(root, version)


def meson(root, version):
    """Creates the program that pip creates from the entry point of the wheel."""
    os.makedirs(os.path.join(root, "bin"), exist_ok=True)
    with open(os.path.join(root, "bin/meson"), "w") as file:
        file.write("#!/usr/bin/env python3\nimport os, sys\n"
                   "sys.dont_write_bytecode = True\n"
                   "sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '../lib'))\n"
                   "from mesonbuild.mesonmain import main\n"
                   "sys.exit(main())\n")
    program(root, version)


def headers(root, version):
    """Complete without changes."""


def python(root, version):
    """Complete without changes."""


def consumers(root, version):
    """Complete without changes."""


def project(root, version):
    """Complete without changes."""


def cudnn(root, version):
    """Adds the development link, and for cuDNN 8.5 to 8.7 empty stubs of the cuBLAS libraries that its sublibrary needs."""
    development_links(os.path.join(root, "lib"))
    if version < "8.8" and os.path.exists(os.path.join(root, "lib/libcudnn_ops_infer.so.8")):
        for soname in ("libcublas.so.11", "libcublasLt.so.11"):
            compile_library("", soname, os.path.join(root, "stand-in", soname))


def driver(root, version):
    """Complete without changes."""


def assembler(root, version):
    """Complete without changes: before CUDA 13 no wheel has the rest of the compiler."""


def library(root, version):
    """Complete without changes: tests read the library and never link to it."""


STD = "-Zbuild-std=std,panic_abort,panic_unwind"
CORE = "-Zbuild-std=core"
FROM_SOURCE = {
    "x86_64-unknown-linux-musl": STD,
    "x86_64-pc-windows-gnu": STD + ",test",  # Wine runs unit tests
    "wasm32-unknown-unknown": CORE,
    "powerpc64-unknown-linux-musl": CORE,  # big-endian, and lld can link it
    "armv7-unknown-linux-gnueabihf": CORE,  # 32-bit
}


def rust_oldest(root, version):
    """Adds a wrapper for a rustc of another Debian release, which needs the dynamic linker and the C library of that release."""
    rustc = os.path.join(root, "bin/rustc")
    os.makedirs(os.path.dirname(rustc))
    with open(rustc, "w") as file:
        file.write('#!/bin/sh\nroot=${0%/*}/..\n'
                   'exec "$root/lib/ld-linux-x86-64.so.2" --library-path "$root/lib" "$root/libexec/rustc" '
                   '--sysroot "$root" "$@"\n')
    os.chmod(rustc, 0o755)


def rust_cross(root, version):
    """Adds a wrapper for rustc that sets its library path, and compiles the standard library for the targets that Debian does
    not package. It is not optimized, because no benchmark uses it."""
    rustc, rustlib = os.path.join(root, "bin/rustc"), os.path.join(root, "lib/rustlib")
    os.makedirs(os.path.dirname(rustc))
    with open(rustc, "w") as file:
        file.write('#!/bin/sh\nroot=${0%/*}/..\n'
                   'LD_LIBRARY_PATH=$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$root/libexec/rustc" "$@"\n')
    os.chmod(rustc, 0o755)
    passed_on = re.compile("(?!CARGO|RUST|MAKE|CC$|CFLAGS)|CARGO_HOME|CARGO_BUILD_JOBS|RUSTUP")
    environment = {name: value for name, value in os.environ.items() if passed_on.match(name)}
    # RUSTC_BOOTSTRAP: the standard library uses unstable features, which a stable compiler allows only with this variable.
    environment |= {"RUSTC": rustc, "RUSTC_BOOTSTRAP": "1", "CARGO_NET_OFFLINE": "true", "CARGO_INCREMENTAL": "0",
                    "CARGO_PROFILE_DEV_DEBUG": "0"}
    library = os.path.join(rustlib, "src/rust/library")

    def run(*call, **options):
        done = subprocess.run(call, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, **options)
        if done.returncode:
            raise OSError("%s: %s" % (" ".join(call), done.stderr.strip()))

    with tempfile.TemporaryDirectory() as dir:
        # rustc calls dlltool, which leaves empty files there.
        environment["TMPDIR"] = dir
        os.mkdir(os.path.join(dir, "src"))
        with open(os.path.join(dir, "Cargo.toml"), "w") as file:
            file.write('[package]\nname = "nothing"\nedition = "2021"\n')
        with open(os.path.join(dir, "src/lib.rs"), "w") as file:
            file.write("#![no_std]\n")
        for target, what in FROM_SOURCE.items():
            made, place = os.path.join(dir, "target", target, "debug/deps"), os.path.join(rustlib, target, "lib")
            os.makedirs(place)
            musl = {"RUSTFLAGS": "-Lnative=/usr/lib/x86_64-linux-musl"} if target.startswith("x86_64-unknown") else {}
            environment.update(musl)
            run(os.environ.get("CARGO", "cargo"), "build", "--quiet", "--target", target, what, "--config",
                'source.crates-io.replace-with="vendored"', "--config",
                "source.vendored.directory='%s/vendor'" % library, cwd=dir)
            for name in musl:
                del environment[name]
            for file in glob.glob(made + "/*.rlib"):
                if not os.path.basename(file).startswith("libnothing-"):
                    shutil.copy(file, place)
            shutil.rmtree(made)
    environment["TMPDIR"] = tempfile.gettempdir()
    # Add the object files that Rust's own distribution has in the directories of the Windows and musl targets.
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
    # The unwinder of gcc calls _dl_find_object, which musl does not have. With a function that returns -1 it uses another
    # method. Unwinding of panics does not work with it.
    os.rename(contained + "/libgcc_eh.a", contained + "/libunwind.a")
    with tempfile.TemporaryDirectory() as dir:
        with open(dir + "/no.c", "w") as file:
            file.write("int _dl_find_object(void *address, void *result) { return -1; }\n")
        run(CC, "-c", "-Os", "-fPIC", "no.c", cwd=dir)
        run("ar", "q", contained + "/libunwind.a", "no.o", cwd=dir)
    shutil.copy(contained + "/libunwind.a", os.path.dirname(contained))
    shutil.rmtree(os.path.join(rustlib, "src"))
