# Functions for the rows of `rows.txt`. Paths are relative to the directory of the row, which is also the root of a machine for `check`.

# Writes a file from its first argument on: `file PATH LINE…`.
file() { to=$1; shift; mkdir -p "$(dirname "$to")"; printf '%s\n' "$@" > "$to"; }
script() { file "$@"; chmod +x "$1"; }
policy() { file app/cudaguard.toml "$@"; }

# Describes a simulated machine: options of `simulate`.
machine() { echo "$@" > machine; }

# Links a real toolkit, or a real cuDNN, into a directory.
cuda() { mkdir -p "$1"; ln -s "$PARTS/cuda-$2"/* "$1"; }
cudnn() { mkdir -p "$1"; ln -s "$PARTS/cudnn-$2"/* "$1"; }

# Creates a toolkit with nvcc, cuda.h and libcudart that only have this release.
toolkit() {
  lines="nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2025 NVIDIA Corporation\nBuilt on Thu_Mar_28_02:18:24_PDT_2024"
  lines="$lines\nCuda compilation tools, release $2, V$2.131\nBuild cuda_$2.r$2/compiler.34097967_0\n"
  script "$1/bin/nvcc" '#!/bin/sh' "case \$1 in --version) printf '$lines' ;; --dryrun) echo '#$ TOP=$PWD/$1/bin/..' >&2" \
    "echo '#$ INCLUDES=\"-I$PWD/$1/bin/../include\"' >&2 ;; *) exit 1 ;; esac"
  file "$1/include/cuda.h" "#define CUDA_VERSION ${2%.*}0${2#*.}0"
  file "$1/lib64/libcudart.so.$2.131"
  ln -s "libcudart.so.$2.131" "$1/lib64/libcudart.so.${2%.*}"
  ln -s "libcudart.so.$2.131" "$1/lib64/libcudart.so"
}

# Copies the libraries of a real cuDNN to a directory, and creates the parts that were not fetched.
cudnn_files() {
  mkdir -p "$1"; cp -fL "$PARTS/cudnn-$2"/lib/*.so.9 "$1"
  for part in cnn adv engines_precompiled engines_runtime_compiled heuristic; do library "$1/libcudnn_$part.so.9"; done
}

# Creates the headers of a cuDNN.
cudnn_headers() {
  file "$1/include/cudnn.h"
  file "$1/include/cudnn_version.h" "#define CUDNN_MAJOR ${2%%.*}" "#define CUDNN_MINOR $(echo "$2" | cut -d. -f2)" "#define CUDNN_PATCHLEVEL ${2##*.}"
}

# Creates a gcc that prints this release, also for nvcc.
gcc_of() {
  script "$1" '#!/bin/sh' 'if [ "$1" = -E ]; then' "echo '__NV_CPLUSPLUS 201703L'" "echo '__NV_GNUC__ ${2%%.*}'" "echo '__NV_GNUC_MINOR__ 1'" \
    "echo '__NV_GNUC_PATCHLEVEL__ 0'" 'echo __NV_LINUX__' "echo __NV_$(uname -m | tr a-z A-Z)__" 'exit; fi' "echo '${1##*/} (a stand-in) $2'" \
    "echo '(C) Free Software Foundation, Inc.'"
}

# A package `app` on a machine whose root is this directory and whose PATH is $search.
package() {
  file app/Cargo.toml '[package]' 'name = "app"' 'version = "0.1.0"' 'edition = "2021"' "$@"
  file app/src/main.rs 'fn main() {}'
  gcc_of usr/bin/gcc 12.2.0
  export search="$PWD/usr/bin" CUDAGUARD_SYSROOT="$PWD"
}
first() { case $1 in /*) search=$1:$search ;; *) search=$PWD/$1:$search ;; esac; }
check() { PATH=$search exec "$COMMAND" check --release --json --manifest-path app/Cargo.toml; }

# The package with a recorded graph of crates, which a fake cargo prints.
crates() {
  [ -e cargo ] || package
  sed "s,@ROOT@,$PWD/app,g" "${2:-$TESTS/e2e/graph/recorded/$1.json}" > metadata.json
  sed -n 's/^   "name": \("[^"]*"\),/[[package]]\nname = \1/p' metadata.json > app/Cargo.lock
  [ -e cargo ] || script cargo '#!/bin/sh' 'case "$*" in' "*--no-deps*) exec '$CARGO' \"\$@\" ;;" "metadata*) exec /bin/cat '$PWD/metadata.json' ;;" '*) exit 9 ;; esac'
  export CARGO="$PWD/cargo"
}

# The package with one crate of any version: `crate NAME VERSION FEATURE…`. It also knows the features in $known.
crate() {
  name=$1 version=$2; shift 2; features=$(printf ',"%s"' "$@") known=$(printf ',"%s":[]' "$@" ${known:-})
  sed "s/@NAME@/$name/g; s/@VERSION@/$version/g; s/@FEATURES@/${features#,}/g; s/@KNOWN@/${known#,}/" "$TESTS/e2e/hints/crate.json" > one.json
  crates "$name" one.json
}

# Selects the versions of crates that were fetched for the tests.
locked() { cp "$TESTS/crates/Cargo.lock" app; (cd app; "$CARGO" fetch --offline --target "$(uname -m)-unknown-linux-gnu"); }

# A package that links the objects in app/link.
linked_package() {
  package 'build = "build.rs"'
  file app/link "$ROW/app/k.o"
  file app/build.rs 'fn main() { println!("cargo:rerun-if-changed=."); for line in include_str!("link").lines() { println!("cargo:rustc-link-arg={line}"); }' \
    "for word in \"$PARTS/cuda-13.0/lib64/libcudart_static.a -lstdc++ -ldl -lrt -lpthread\".split(' ') { println!(\"cargo:rustc-link-arg={word}\"); } }"
}

# Compiles an object with a kernel, with these options of nvcc.
kernels() {
  name=$1; shift; kernel=${name##*/}
  file "$name.cu" "__global__ void $kernel(int *p) { *p = 1; }" "void f_$kernel(int *p) { $kernel<<<1, 1>>>(p); }"
  "${TOOLKIT:-$PARTS/cuda-13.0}/bin/nvcc" -Xcompiler -fPIC "$@" -c "$name.cu" -o "$name.o"
}

# Creates a library with these functions, and then options of the linker.
library() {
  to=$1; shift; mkdir -p "$(dirname "$to")"
  for word in "$@"; do case $word in -*) ;; *) echo "int $word(void) { return 0; }"; shift ;; esac; done > "$to.c"
  gcc -shared -fPIC -w -Wl,-soname,"${to##*/}" "$to.c" "$@" -o "$to"; rm "$to.c"
}

# Guards, links and seals a library of these objects, in the directory of the policy.
build() {
  mkdir -p app; cd app
  "$COMMAND" embed --release --name "${NAME:-app}" --toolkit "${TOOLKIT:-$PARTS/cuda-13.0}" ${EMBED:-} --compiler 'gcc -fPIC' -o ../guard.o; cd ..
  g++ -shared -o "${NAME:-app}.so" "$@" guard.o ${LINK:-"$PARTS/cuda-13.0/lib64/libcudart_static.a"} -ldl -lrt -lpthread
  "$COMMAND" seal "${NAME:-app}.so" "$@" guard.o
}

# Creates main.o, which calls these functions, and a program NAME that calls one function, with these options of the linker.
calls() { for function in "$@"; do echo "int $function(void); int call_$function(void) { return $function(); }"; done | gcc -fPIC -w -x c - -c -o main.o; }
program() { to=$1 function=$2; shift 2; echo "int $function(void); int main(int n, char **a) { return n > 9 ? $function() : 0; }" | gcc -w -x c - -x none "$@" -o "$to"; }

# Builds main.o against the headers and the library of this cuDNN.
cudnn_build() {
  LINK="-L$PARTS/cudnn-$1/lib -l:libcudnn.so.${1%%.*}" EMBED="-I $PARTS/cudnn-$1/include" build main.o
}

# Creates an NVRTC of this release, with builtins of this release, in a directory.
nvrtc() {
  mkdir -p "$1"
  echo "const char *nvrtcName(int a) { return a ? \"Cuda compilation tools, release $2, V$2.77\" : \"libnvrtc-builtins.so.$2\"; }" |
    gcc -shared -fPIC -x c - "-Wl,-soname,libnvrtc.so.${2%.*},-rpath,\$ORIGIN" -o "$1/libnvrtc.so.${2%.*}"
  echo "void __nvrtc_builtins__${3%.*}_${3#*.}_getBuiltinHeader(void) {}" | gcc -shared -fPIC -x c - "-Wl,-soname,libnvrtc-builtins.so.$3" -o "$1/libnvrtc-builtins.so.$3"
}

verify() { "$COMMAND" verify --json "$@"; }
doctor() { "$COMMAND" doctor --json "$@"; }

# Builds a library that contains cudart.
cudart_build() { calls cudaDeviceReset; build main.o; }

# A CMake project with these commands; `configure` uses the toolkit in $root.
cmake_project() {
  file app/CMakeLists.txt 'cmake_minimum_required(VERSION 3.24)' 'project(bare LANGUAGES C)' 'include($ENV{CMAKE_FILE})' 'add_executable(app main.c)' "$@"
  file app/main.c 'int main(void) { return 0; }'
  export PATH=$PARTS/cmake-4.4/bin:$PARTS/make/bin:$PATH CMAKE_FILE=$TESTS/../cmake/CudaGuard.cmake root=$PARTS/cuda-13.0
}
configure() {
  rm -rf out
  cmake -S app -B out -DCMAKE_BUILD_TYPE=Release -DCUDAGUARD_COMMAND="$COMMAND" -DCUDAToolkit_ROOT="$root" -Wno-unused-cli \
    ${archs:+"-DCMAKE_CUDA_COMPILER=$root/bin/nvcc" "-DCMAKE_CUDA_ARCHITECTURES=$archs"} > log
  cmake --build out >> log
}

# The same with a kernel, for the architectures in $archs.
cuda_project() {
  cmake_project
  file app/CMakeLists.txt 'cmake_minimum_required(VERSION 3.24)' 'project(app LANGUAGES C CUDA)' 'include($ENV{CMAKE_FILE})' 'add_executable(app app.cu)' "$@" 'cudaguard_embed(app)'
  file app/app.cu '__global__ void k(int *p) { *p = 1; }' 'int main(void) { k<<<1, 1>>>(nullptr); }'
}

# Writes the metadata of a wheel, of a conda package, or of an installed package, which may require others.
metadata() { file tree/app.dist-info/METADATA 'Metadata-Version: 2.1' 'Name: app' "Version: $1" ${2:+"Requires-Dist: $2"}; }
conda() { file tree/info/index.json "{\"name\": \"app\", \"version\": \"1.0\", \"build\": \"0\", \"depends\": [${1:-}]}"; }
installed() {
  file "site/$1-$2.dist-info/METADATA" 'Metadata-Version: 2.1' "Name: $1" "Version: $2" ${4:+"Requires-Dist: $4"}
  file "site/$1-$2.dist-info/RECORD" "$3"
}
wheel() { rm -f app.whl; (cd tree; python3 -m zipfile -c ../app.whl *); verify app.whl --driver 580 --gpu A100; }

# Builds a library that loads a kernel as PTX text of this version.
ptx_object() {
  file text.c "const char text[] = \".version $1\\n.target sm_75\\n.address_size 64\\n.visible .entry k() { ret; }\\n\";" \
    'int cuModuleLoadData(void **, const void *); int load(void **m) { return cuModuleLoadData(m, text); }'
  gcc -fPIC -w -c text.c -o main.o
}
ptx_text() { ptx_object "$1"; build main.o; }
nvrtc_functions() { strings app/target/debug/app | grep -o 'nvrtc[A-Z][A-Za-z0-9]*' | sort -u; }
