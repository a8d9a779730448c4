#!/usr/bin/env python3
"""Compares the images that `inspect` lists in large libraries with a search for the magic numbers of images. See --help."""
import argparse, json, mmap, os, re, subprocess, sys, zipfile

import wheels

HERE = os.path.dirname(os.path.abspath(__file__))
HELP = """pip downloads the wheels of images.json (1.1 GB), with its configuration on this machine, into DIR and keeps them there. It
installs nothing.

status: 0 every image is listed, 1 an image is not listed or a checksum is wrong, 3 a wheel could not be downloaded"""
FATBIN = re.compile(b"\x50\xed\x55\xba\x01\0\x10\0")
ELF = re.compile(b"\x7fELF")
PTX = re.compile(rb"\.version\s+\d+\.\d+\s*(?://[^\n]*\n\s*)*\.target\s+(?:sm|compute)_\d+")


def compare(command, path):
    """Returns the differences for a file, as text."""
    done = subprocess.run([command, "inspect", "--json", path], capture_output=True, text=True)
    if done.returncode:
        return ["status %d: %s" % (done.returncode, done.stderr.strip())]
    kernels = json.loads(done.stdout)["kernels"]
    errors = list(kernels.get("doubts", []))
    images = {}
    for entry in kernels["entries"]:
        images.setdefault(entry["container"], []).append(entry)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        magics = {"fatbins": [found.start() for found in FATBIN.finditer(data)],
                 "cubins": [at for at in (found.start() for found in ELF.finditer(data)) if data[at + 18:at + 20] == b"\xbe\0"],
                 "texts": [found.start() for found in PTX.finditer(data)]}
        spans = sorted((one["offset"], one["offset"] + one["size"]) for one in kernels["containers"])
        for kind, places in magics.items():
            at = 0
            for place in places:
                while at < len(spans) and spans[at][1] <= place:
                    at += 1
                if at == len(spans) or spans[at][0] > place:
                    errors.append("%s: the one at %#x is not in a listed container" % (kind, place))
        print("%s: %d images in %d containers; %s" % (os.path.basename(path), len(kernels["entries"]), len(spans), ", ".join(
            "%d %s" % (len(places), kind) for kind, places in magics.items())), flush=True)
    return errors


def main():
    arguments = argparse.ArgumentParser(description=__doc__, epilog=HELP,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("command", help="path of cargo-cudaguard")
    arguments.add_argument("dir", metavar="DIR", help="directory for the wheels")
    options = arguments.parse_args()
    with open(os.path.join(HERE, "images.json")) as file:
        table = json.load(file)
    wrong = absent = 0
    for row in table:
        try:
            path = wheels.download(row["wheel"], os.path.join(options.dir, row["wheel"]))
        except wheels.Unreachable as error:
            print("not downloaded: %s" % error)
            absent += 1
            continue
        if wheels.digest_of(path) != row["sha256"]:
            print("%s: the checksum differs from the recorded one" % row["wheel"])
            wrong += 1
            continue
        for name in row["files"]:
            with zipfile.ZipFile(path) as wheel:
                library = wheel.extract(name, os.path.dirname(path))
            for error in compare(options.command, library):
                print("  error: " + error)
                wrong += 1
            os.remove(library)
    return 1 if wrong else 3 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
