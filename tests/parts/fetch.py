#!/usr/bin/env python3
"""Fetches the real components that the tests use: toolkits, cuDNN, driver libraries. See --help."""
import argparse, concurrent.futures, contextlib, fcntl, hashlib, json, os, re, shutil, sys, time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import crates, debs, finish, wheels  # noqa: E402 (after the path is set)

HELP = """Each component becomes a directory DIR/NAME when it is complete and its checksums match; the script prints its path. An
interrupted download continues where it stopped. The script installs nothing and contains no addresses: it downloads wheels
with pip, Debian packages with apt and crates with cargo, with their configuration on this machine. The component `crates` is
the published crates that tests build; cargo stores them in its own home.

status: 0 all components are complete, 1 a checksum or a file is wrong, 3 a download failed (no network)"""
MANUAL_CONTENTS = {
    "cmake": "a CMake %s, laid out like its archive: bin/cmake, bin/ctest, share/cmake-*",
    "program": "a program of this name, version %s or close to it, in bin/",
    "make": "make, version %s or close to it, as bin/make",
    "meson": "Meson %s: the program bin/meson and its dependencies",
    "headers": "the headers of pybind11 %s as include/pybind11, and its CMake package as share/cmake/pybind11",
    "python": "Python modules below lib/, as pip installs them: the package of this name, version %s, and its dependencies",
    "consumers": "Python modules below lib/, as pip installs them: py-rattler %s and the others that tests/parts/parts.json lists, "
                 "and the schemas of CycloneDX and Kubernetes below schemas/",
    "project": "the sources of cuvec %s, laid out like their archive: cuvec/CMakeLists.txt and the other files",
    "toolkit_of_wheels": "a CUDA toolkit %s, laid out like its installer does (bin/nvcc, include/, lib64/)",
    "toolkit_of_debian": "a CUDA toolkit %s, laid out like its installer does (bin/nvcc, include/, lib64/)",
    "cudnn": "cuDNN %s, laid out like its archive: include/cudnn_version.h and the other headers, lib/libcudnn*.so*",
    "library": "the library of version %s from lib64/ of a toolkit, below lib/",
    "rust_cross": "a rustc %s as bin/rustc, with the standard library of the targets that tests/parts/finish.py lists",
    "rust_oldest": "a rustc %s, the oldest that guard-core/Cargo.toml supports, as bin/rustc",
    "assembler": "ptxas of CUDA %s as bin/ptxas, and its include/crt/host_config.h",
    "driver": "libcuda.so.1 and libnvidia-ml.so.1 of the driver %s",
}


class ChecksumError(Exception):
    """A downloaded file differs from the recorded one, or is missing."""


class Progress:
    """Prints the progress of one component to stderr, at most every three seconds."""

    def __init__(self, name):
        self.name, self.done, self.total, self.reported = name, 0, 0, time.monotonic()

    def __call__(self, received, expected=0):
        self.done += received
        self.total += expected
        if time.monotonic() - self.reported > 3:
            self.reported = time.monotonic()
            of = " of %d" % (max(self.total, self.done) >> 20) if self.total else ""
            self.print("%d%s MB" % (self.done >> 20, of))

    def print(self, text):
        print("%s: %s" % (self.name, text), file=sys.stderr, flush=True)


@contextlib.contextmanager
def locked(path):
    """Locks a component, so that only one process fetches it and others wait."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def chooser(take):
    """Returns a function from a file name to its place, or None. `take` maps a file, or a directory (its name ends in "/"), to
    a place or to null. The longest match wins. `*` matches any text without "/"."""
    patterns = {key: re.compile(re.escape(key).replace(r"\*", "[^/]*") + ("" if key.endswith("/") else "$"))
                for key in take}

    def place(name):
        matches = {key: match for key, pattern in patterns.items() if (match := pattern.match(name))}
        best = max(matches, key=len, default=None)
        if best is None or take[best] is None:
            return None
        return take[best] + name[matches[best].end():] if best.endswith("/") else take[best]
    return place


def tree_digest(digests):
    text = "".join("%s  %s\n" % (digests[place], place) for place in sorted(digests))
    return hashlib.sha256(text.encode()).hexdigest()


def assemble(name, part, downloads, into, recording):
    progress = Progress(name)
    why = finish.missing_prerequisites(part["finish"])
    if why:
        raise wheels.Unreachable(why)
    for source in part["from"]:
        what = source.get("wheel") or source.get("sources") or " ".join(source["packages"])
        progress.print("fetching from " + what)
        place, pinned = chooser(source["take"]), True
        if "wheel" in source:
            processor = source.get("processor", "x86_64")
            digests = wheels.take(source["wheel"], place, downloads, into, progress, processor)
        elif "sources" in source:
            digests = wheels.take_sources(source["sources"], place, downloads, into, progress)
        else:
            digests, pinned = debs.take(source["packages"], source["suite"], source.get("or_newer", False), place,
                                        downloads, into)
        missing = [p for k, p in source["take"].items() if p and not k.endswith("/") and p not in digests]
        if missing:
            raise ChecksumError("%s: has no %s" % (what, ", ".join(missing)))
        digest = tree_digest(digests)
        if recording:
            source["sha256"] = digest
        elif not pinned:
            progress.print("the mirror has newer packages than recorded; only apt's signatures verify them")
        elif digest != source["sha256"]:
            raise ChecksumError("%s: the extracted files have the digest %s, the recorded one is %s" %
                        (what, digest, source["sha256"]))
    getattr(finish, part["finish"])(into, part["version"])


def provide(name, part, parts, recording):
    """Returns the directory of a component. Creates it if it does not exist or has another definition."""
    dir = os.path.join(parts, name)
    stamp = os.path.join(dir, ".part")
    definition = hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest() + "\n"

    def is_current():
        if not os.path.isdir(dir):
            return False
        if not os.path.exists(stamp):  # created by a person
            return True
        with open(stamp) as file:
            return file.read() == definition

    if is_current() and not recording:
        return dir
    with locked(os.path.join(parts, ".locks", name)):
        if is_current() and not recording:
            return dir
        began = time.monotonic()
        fresh, downloads = os.path.join(parts, ".fresh", name), os.path.join(parts, ".downloads", name)
        shutil.rmtree(fresh, ignore_errors=True)
        os.makedirs(fresh)
        os.makedirs(downloads, exist_ok=True)
        try:
            assemble(name, part, downloads, fresh, recording)
        except BaseException as error:
            shutil.rmtree(fresh, ignore_errors=True)
            if isinstance(error, ChecksumError):  # do not use the same wrong download again
                shutil.rmtree(downloads, ignore_errors=True)
            raise
        definition = hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest() + "\n"
        with open(os.path.join(fresh, ".part"), "w") as file:
            file.write(definition)
        shutil.rmtree(dir, ignore_errors=True)
        os.rename(fresh, dir)
        shutil.rmtree(downloads, ignore_errors=True)
        Progress(name).print("ready after %.0f s" % (time.monotonic() - began))
    return dir


def provide_part(name, part, parts, recording):
    """Prints the directory of a component, or an error. Returns 0, 1 or 3: see HELP."""
    try:
        print(provide(name, part, parts, recording), flush=True)
        return 0
    except wheels.Unreachable as error:
        print("error: %s, version %s, could not be fetched.\n  %s\n  hint: correct this and run the command again, or put "
              "%s\n  into the directory %s" % (name, part["version"], str(error).replace("\n", "\n  "),
                                            MANUAL_CONTENTS[part["finish"]] % part["version"], os.path.join(parts, name)),
              file=sys.stderr, flush=True)
        return 3
    except (ChecksumError, ValueError, OSError) as error:
        print("error: %s: %s" % (name, error), file=sys.stderr, flush=True)
        return 1


def provide_crates():
    """Fetches the component `crates`. Returns 0, 1 or 3: see HELP."""
    try:
        crates.provide(Progress("crates").print)
        return 0
    except crates.Unreachable as error:
        print("error: crates could not be fetched.\n  %s\n  hint: run this command again with a network" %
              str(error).replace("\n", "\n  "), file=sys.stderr, flush=True)
        return 3
    except (ValueError, OSError) as error:
        print("error: crates: %s" % error, file=sys.stderr, flush=True)
        return 1


def main():
    with open(os.path.join(HERE, "parts.json")) as file:
        known = json.load(file)
    parser = argparse.ArgumentParser(description=__doc__, epilog=HELP,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="crates, or one of: " + ", ".join(known))
    parser.add_argument("--into", metavar="DIR", default=os.path.join(HERE, "../../target/parts"))
    parser.add_argument("--all", action="store_true", help="every component that the tests use: all but the large ones of a benchmark")
    parser.add_argument("--record", action="store_true", help="fetch again and write the checksums to parts.json")
    call = parser.parse_args()
    parts = os.path.abspath(call.into)
    names = [*(name for name in known if not known[name].get("on_demand")), "crates"] if call.all else call.names
    for name in names:
        if name != "crates" and name not in known:
            parser.error("no such component: %s (known: crates, %s)" % (name, ", ".join(known)))

    def provided(name):
        return provide_crates() if name == "crates" else provide_part(name, known[name], parts, call.record)

    # One thread more than processors, because some wait for the network while others unpack and compile.
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 1) as workers:
        statuses = list(workers.map(provided, names))
    status = 1 if 1 in statuses else max(statuses, default=0)
    if call.record:
        with open(os.path.join(HERE, "parts.json"), "w") as file:
            json.dump(known, file, indent=2)
            file.write("\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
