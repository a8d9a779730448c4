#!/bin/sh
# Installs the command of cudaguard, with its man pages, completions and CMake package:
#
#   curl -LsSf https://github.com/cudaguard/cudaguard/releases/download/v@VERSION@/install.sh | sh
#
# CUDAGUARD_PREFIX    directory to install into; default: ~/.local
# CUDAGUARD_VERSION   version; default: @VERSION@
# CUDAGUARD_DOWNLOAD  address of the directory with the archives; default: the release on GitHub. file:// works without a network
# CUDAGUARD_STATIC=1  install the static command
set -eu

version=${CUDAGUARD_VERSION:-@VERSION@}
prefix=${CUDAGUARD_PREFIX:-$HOME/.local}
download=${CUDAGUARD_DOWNLOAD:-https://github.com/cudaguard/cudaguard/releases/download/v$version}
fail() { echo "cudaguard: $*" >&2; exit 1; }

[ "$(uname -s)" = Linux ] || fail "this script supports Linux only; the release has an archive for Windows"
static=${CUDAGUARD_STATIC-}
# The command for glibc does not start with another C library.
ldd --version 2>&1 | grep -qiE 'glibc|gnu libc' || static=1
case $(uname -m):$static in
    x86_64:) target=x86_64-unknown-linux-gnu ;;
    x86_64:*) target=x86_64-unknown-linux-musl ;;
    aarch64:) target=aarch64-unknown-linux-gnu ;;
    aarch64:*) target=aarch64-linux-static ;;
    *) fail "no archive for the processor $(uname -m); install with: cargo install --locked cargo-cudaguard" ;;
esac
name=cudaguard-$version-$target

if command -v curl >/dev/null; then
    fetch() { curl --fail --silent --show-error --location --retry 2 --output "$2" "$1"; }
elif command -v wget >/dev/null; then
    fetch() { wget --quiet --output-document "$2" "$1"; }
else
    fail "install curl or wget first"
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fetch "$download/$name.tar.gz" "$scratch/$name.tar.gz" || fail "cannot download $download/$name.tar.gz"
fetch "$download/SHA256SUMS" "$scratch/SHA256SUMS" || fail "cannot download $download/SHA256SUMS"
(cd "$scratch" && grep -F "  $name.tar.gz" SHA256SUMS >sum && sha256sum --check sum >/dev/null 2>&1) ||
    fail "the archive differs from its digest in SHA256SUMS"
mkdir -p "$prefix"
tar -xzf "$scratch/$name.tar.gz" -C "$prefix" --strip-components 1
"$prefix/bin/cargo-cudaguard" --version | head -n 1
echo "installed: $prefix/bin/cargo-cudaguard"
case :$PATH: in
    *":$prefix/bin:"*) ;;
    *) echo "To use it, add its directory to PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
