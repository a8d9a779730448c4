#!/usr/bin/env python3
"""Compares the versions that `inspect` reads in NVIDIA's libraries with those of their wheels, and checks pairs. See --help."""
import argparse, json, os, shutil, subprocess, sys

import wheels

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "family.json")
HELP = """family.json has two tables:

  files  a wheel and a processor, the library in it, and the function or other place that contains the version. The version must
         be that of the wheel, or `version` if the file differs
  pairs  files of one directory, and the codes of the findings (CG231 to CG234) about them; none for files of one release

The libraries are fetched with HTTP ranges by way of pip into DIR and kept there. Nothing is installed.

status: 0 all rows are as recorded, 1 one is not, 3 one could not be fetched"""
FINDINGS = ("CG231", "CG232", "CG233", "CG234")


def fetch(spec, processor, library, dir):
    """Returns the path of one library of a wheel."""
    into = os.path.join(dir, spec.replace("==", "-") + "-" + processor)
    path = os.path.join(into, library)
    if not os.path.exists(path):
        place = lambda name: library if os.path.basename(name) == library else None
        downloads = os.path.join(dir, "downloads")
        os.makedirs(downloads, exist_ok=True)
        wheels.take(spec, place, downloads, into, lambda *_: None, processor)
        shutil.rmtree(downloads, ignore_errors=True)
    return path


def inspect(command, path):
    done = subprocess.run([command, "inspect", "--json", path], capture_output=True, text=True)
    if done.returncode:
        raise ValueError("status %d: %s" % (done.returncode, done.stderr.strip()))
    return json.loads(done.stdout)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, epilog=HELP,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("command", help="path of cargo-cudaguard")
    arguments.add_argument("dir", metavar="DIR", help="directory for the libraries")
    options = arguments.parse_args()
    with open(TABLE) as file:
        table = json.load(file)
    wrong = absent = 0
    for row in table["files"]:
        title = "%s, %s, %s" % (row["wheel"], row["processor"], row["library"])
        try:
            path = fetch(row["wheel"], row["processor"], row["library"], options.dir)
            found = inspect(options.command, path).get("library", {})
        except wheels.Unreachable as error:
            print("not fetched: %s" % error)
            absent += 1
            continue
        expected = row.get("version", ".".join(row["wheel"].partition("==")[2].split(".")[:3]))
        right = (found.get("version"), found.get("read_from")) == (expected or None, row.get("from"))
        wrong += not right
        print("%s: %s from %s%s" % (title, found.get("version"), found.get("read_from"), "" if right else "  WRONG"), flush=True)
    for row in table["pairs"]:
        dir = os.path.join(options.dir, "pair")
        shutil.rmtree(dir, ignore_errors=True)
        os.makedirs(dir)
        try:
            for wheel, library in row["files"]:
                os.link(fetch(wheel, row["processor"], library, options.dir), os.path.join(dir, library))
        except wheels.Unreachable as error:
            print("not fetched: %s" % error)
            absent += 1
            continue
        findings = [one["code"] for one in inspect(options.command, dir).get("findings", [])]
        found = sorted(set(findings) & set(FINDINGS))
        wrong += found != row["findings"]
        files = " with ".join("%s of %s" % (library, wheel) for wheel, library in row["files"])
        print("%s: %s%s" % (files, ", ".join(found) or "fits", "" if found == row["findings"] else "  WRONG"), flush=True)
    print("%d files, %d pairs, %d wrong, %d not fetched" % (len(table["files"]), len(table["pairs"]), wrong, absent))
    return 1 if wrong else 3 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
