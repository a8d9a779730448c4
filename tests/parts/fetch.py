#!/usr/bin/env python3
"""Fetches the real parts that the tests run on: toolkits, cuDNN, driver libraries. See --help."""
import argparse, concurrent.futures, contextlib, fcntl, hashlib, json, os, re, shutil, sys, time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import crates, debs, finish, wheels  # noqa: E402 (after the path is set)

HELP = """Each part becomes one folder, DIR/NAME, once it is whole and its checksums are right; its path is printed.
What was interrupted goes on where it stopped. Nothing is installed, and no address stands here: wheels come by way
of pip, Debian packages by way of apt, crates by way of cargo, as they are configured on this machine. The part `crates`
is what tests build of others' crates; cargo keeps it in its own home.

status: 0 every part is there, 1 something received is wrong, 3 something could not be had (no network)"""
BY_HAND = {
    "cmake": "a CMake %s, as its archive has it: bin/cmake, bin/ctest, share/cmake-*",
    "program": "a program of this name, version %s or near it, in bin/",
    "make": "make, version %s or near it, as bin/make",
    "meson": "Meson %s: the program bin/meson, and what it needs",
    "headers": "the headers of pybind11 %s as include/pybind11, and its CMake package as share/cmake/pybind11",
    "python": "modules of Python below lib/, as pip installs them: scikit-build-core %s, and what it needs",
    "consumers": "modules of Python below lib/, as pip installs them: py-rattler %s and the others that tests/parts/parts.json names, "
                 "and the schemas of CycloneDX and of Kubernetes below schemas/, as it says",
    "project": "the sources of cuvec %s, as their archive has them: cuvec/CMakeLists.txt and the rest",
    "toolkit_of_wheels": "a CUDA toolkit %s, as its installer lays it out (bin/nvcc, include/, lib64/)",
    "toolkit_of_debian": "a CUDA toolkit %s, as its installer lays it out (bin/nvcc, include/, lib64/)",
    "cudnn": "cuDNN %s, as its archive has it: include/cudnn_version.h and the rest, lib/libcudnn*.so*",
    "library": "the library of version %s, as an installed toolkit has it in lib64/, below lib/",
    "rust_cross": "a rustc %s as bin/rustc, with the standard library of the targets that tests/parts/finish.py names",
    "rust_oldest": "a rustc %s, the oldest that guard-core/Cargo.toml promises, as bin/rustc",
    "assembler": "ptxas of CUDA %s as bin/ptxas, and its include/crt/host_config.h",
    "driver": "libcuda.so.1 and libnvidia-ml.so.1 of the driver %s",
}


class Wrong(Exception):
    """What came is not what was recorded."""


class Progress:
    """How far one part is, on stderr, a line every few seconds at most."""

    def __init__(self, name):
        self.name, self.done, self.total, self.said = name, 0, 0, time.monotonic()

    def __call__(self, came, expected=0):
        self.done += came
        self.total += expected
        if time.monotonic() - self.said > 3:
            self.said = time.monotonic()
            of = " of %d" % (max(self.total, self.done) >> 20) if self.total else ""
            self.say("%d%s MB" % (self.done >> 20, of))

    def say(self, text):
        print("%s: %s" % (self.name, text), file=sys.stderr, flush=True)


@contextlib.contextmanager
def locked(path):
    """Alone, among processes: another one that wants the same part waits and then finds it there."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def chooser(take):
    """`take` maps a file, or a folder (its name ends in "/"), to its place, or to null: the longest match counts. `*`
    stands for any text without "/"."""
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
    why = finish.lacking(part["finish"])
    if why:
        raise wheels.Unreachable(why)
    for source in part["from"]:
        what = source.get("wheel") or source.get("sources") or " ".join(source["packages"])
        progress.say("fetching from " + what)
        place, pinned = chooser(source["take"]), True
        if "wheel" in source:
            processor = source.get("processor", "x86_64")
            digests = wheels.take(source["wheel"], place, downloads, into, progress, processor)
        elif "sources" in source:
            digests = wheels.take_sources(source["sources"], place, downloads, into, progress)
        else:
            digests, pinned = debs.take(source["packages"], source["suite"], source.get("or_newer", False), place,
                                        downloads, into)
        lacking = [p for k, p in source["take"].items() if p and not k.endswith("/") and p not in digests]
        if lacking:
            raise Wrong("%s: has no %s" % (what, ", ".join(lacking)))
        digest = tree_digest(digests)
        if recording:
            source["sha256"] = digest
        elif not pinned:
            progress.say("the mirror has newer packages than recorded: taken as apt vouches for them")
        elif digest != source["sha256"]:
            raise Wrong("%s: the files taken from it have the digest %s, recorded is %s" %
                        (what, digest, source["sha256"]))
    getattr(finish, part["finish"])(into, part["version"])


def provide(name, part, parts, recording):
    """The folder of this part; makes it where it is not there, or is of another definition."""
    folder = os.path.join(parts, name)
    stamp = os.path.join(folder, ".part")
    definition = hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest() + "\n"

    def there():
        if not os.path.isdir(folder):
            return False
        if not os.path.exists(stamp):  # provided by hand
            return True
        with open(stamp) as file:
            return file.read() == definition

    if there() and not recording:
        return folder
    with locked(os.path.join(parts, ".locks", name)):
        if there() and not recording:
            return folder
        began = time.monotonic()
        fresh, downloads = os.path.join(parts, ".fresh", name), os.path.join(parts, ".downloads", name)
        shutil.rmtree(fresh, ignore_errors=True)
        os.makedirs(fresh)
        os.makedirs(downloads, exist_ok=True)
        try:
            assemble(name, part, downloads, fresh, recording)
        except BaseException as error:
            shutil.rmtree(fresh, ignore_errors=True)
            if isinstance(error, Wrong):  # or the same wrong bytes would be taken up again
                shutil.rmtree(downloads, ignore_errors=True)
            raise
        definition = hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest() + "\n"
        with open(os.path.join(fresh, ".part"), "w") as file:
            file.write(definition)
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(fresh, folder)
        shutil.rmtree(downloads, ignore_errors=True)
        Progress(name).say("ready after %.0f s" % (time.monotonic() - began))
    return folder


def provide_part(name, part, parts, recording):
    """Prints the part's folder, or what is wrong. Status 0, 1 or 3: see HELP."""
    try:
        print(provide(name, part, parts, recording), flush=True)
        return 0
    except wheels.Unreachable as error:
        print("error: %s, version %s, could not be had.\n  %s\n  hint: with what was lacking, run this again; without, put "
              "%s\n  into the folder %s" % (name, part["version"], str(error).replace("\n", "\n  "),
                                            BY_HAND[part["finish"]] % part["version"], os.path.join(parts, name)),
              file=sys.stderr, flush=True)
        return 3
    except (Wrong, ValueError, OSError) as error:
        print("error: %s: %s" % (name, error), file=sys.stderr, flush=True)
        return 1


def provide_crates():
    """As provide_part."""
    try:
        crates.provide(Progress("crates").say)
        return 0
    except crates.Unreachable as error:
        print("error: crates that are not fetched yet could not be had.\n  %s\n  hint: with a network, run this again" %
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
    parser.add_argument("--all", action="store_true", help="every part that the tests run on: all but the large ones that only a benchmark asks for")
    parser.add_argument("--record", action="store_true", help="fetch anew and write the checksums to parts.json")
    call = parser.parse_args()
    parts = os.path.abspath(call.into)
    names = [*(name for name in known if not known[name].get("on_demand")), "crates"] if call.all else call.names
    for name in names:
        if name != "crates" and name not in known:
            parser.error("no such part: %s (known: crates, %s)" % (name, ", ".join(known)))

    def provided(name):
        return provide_crates() if name == "crates" else provide_part(name, known[name], parts, call.record)

    # What takes long is unpacking and compiling, and some wait for the network meanwhile.
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
