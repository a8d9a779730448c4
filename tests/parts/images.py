#!/usr/bin/env python3
"""Holds what `inspect` lists of large libraries against a plain search for the marks of images. See --help."""
import argparse, hashlib, json, mmap, os, re, subprocess, sys, zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
HELP = """The wheels of images.json, 1.1 GB in all, come by way of pip, as it is configured on this machine, and are kept in DIR.
Nothing is installed.

status: 0 every image is listed, 1 one is not, or a wheel is not what was recorded, 3 a wheel could not be had"""
PLATFORMS = ["manylinux_2_%d_x86_64" % n for n in (28, 27, 25, 17)] + ["manylinux2014_x86_64"]
FATBIN = re.compile(b"\x50\xed\x55\xba\x01\0\x10\0")
ELF = re.compile(b"\x7fELF")
PTX = re.compile(rb"\.version\s+\d+\.\d+\s*(?://[^\n]*\n\s*)*\.target\s+(?:sm|compute)_\d+")


def fetch(wheel, folder):
    """The path of the wheel; None where pip has none."""
    into = os.path.join(folder, wheel)
    if not os.path.isdir(into) or not os.listdir(into):
        call = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", into,
                "--python-version", "3.11"]
        for platform in PLATFORMS:
            call += ["--platform", platform]
        subprocess.run(call + [wheel], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = [name for name in os.listdir(into) if name.endswith(".whl")] if os.path.isdir(into) else []
    return os.path.join(into, found[0]) if found else None


def digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()


def compare(command, path):
    """What is wrong with the list of this file, in words."""
    done = subprocess.run([command, "inspect", "--json", path], capture_output=True, text=True)
    if done.returncode:
        return ["status %d: %s" % (done.returncode, done.stderr.strip())]
    kernels = json.loads(done.stdout)["kernels"]
    wrong = list(kernels.get("doubts", []))
    images = {}
    for entry in kernels["entries"]:
        images.setdefault(entry["container"], []).append(entry)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        marks = {"fatbins": [found.start() for found in FATBIN.finditer(data)],
                 "cubins": [at for at in (found.start() for found in ELF.finditer(data)) if data[at + 18:at + 20] == b"\xbe\0"],
                 "texts": [found.start() for found in PTX.finditer(data)]}
        spans = sorted((one["offset"], one["offset"] + one["size"]) for one in kernels["containers"])
        for kind, places in marks.items():
            at = 0
            for place in places:
                while at < len(spans) and spans[at][1] <= place:
                    at += 1
                if at == len(spans) or spans[at][0] > place:
                    wrong.append("%s: one at %#x is in no container" % (kind, place))
        print("%s: %d images in %d containers; %s" % (os.path.basename(path), len(kernels["entries"]), len(spans), ", ".join(
            "%d %s" % (len(places), kind) for kind, places in marks.items())), flush=True)
    return wrong


def main():
    arguments = argparse.ArgumentParser(description=__doc__, epilog=HELP,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("command", help="cargo-cudaguard, built")
    arguments.add_argument("dir", metavar="DIR", help="where wheels are kept")
    asked = arguments.parse_args()
    with open(os.path.join(HERE, "images.json")) as file:
        table = json.load(file)
    wrong = absent = 0
    for row in table:
        path = fetch(row["wheel"], asked.dir)
        if path is None:
            print("%s: cannot be had" % row["wheel"])
            absent += 1
            continue
        if digest_of(path) != row["sha256"]:
            print("%s: is not the wheel that was recorded" % row["wheel"])
            wrong += 1
            continue
        for name in row["files"]:
            with zipfile.ZipFile(path) as wheel:
                library = wheel.extract(name, os.path.dirname(path))
            for what in compare(asked.command, library):
                print("  WRONG: " + what)
                wrong += 1
            os.remove(library)
    return 1 if wrong else 3 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
