#!/usr/bin/env python3
"""Holds what `inspect` lists of large libraries against a plain search for the marks of images. See --help."""
import argparse, json, mmap, os, re, subprocess, sys, zipfile

import wheels

HERE = os.path.dirname(os.path.abspath(__file__))
HELP = """The wheels of images.json, 1.1 GB in all, come by way of pip, as it is configured on this machine, and are kept in DIR.
Nothing is installed.

status: 0 every image is listed, 1 one is not, or a wheel is not what was recorded, 3 a wheel could not be had"""
FATBIN = re.compile(b"\x50\xed\x55\xba\x01\0\x10\0")
ELF = re.compile(b"\x7fELF")
PTX = re.compile(rb"\.version\s+\d+\.\d+\s*(?://[^\n]*\n\s*)*\.target\s+(?:sm|compute)_\d+")


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
        try:
            path = wheels.download(row["wheel"], os.path.join(asked.dir, row["wheel"]))
        except wheels.Unreachable as error:
            print("cannot be had: %s" % error)
            absent += 1
            continue
        if wheels.digest_of(path) != row["sha256"]:
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
