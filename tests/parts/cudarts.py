#!/usr/bin/env python3
"""Compares the release that `inspect` detects in each cudart with the version of its wheel. See --help."""
import argparse, json, os, subprocess, sys, tempfile, zipfile

import wheels

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "cudarts.json")
HELP = """pip downloads the wheels of cudarts.json, with its configuration on this machine, into DIR and keeps them there. It installs
nothing.

status: 0 all releases are correct, 1 a release or a checksum is wrong, 3 a wheel could not be downloaded"""


def detected_releases(command, path):
    """Returns the cudart releases that `inspect` detects in a file."""
    done = subprocess.run([command, "inspect", "--json", path], capture_output=True, text=True)
    if done.returncode:
        return ["status %d: %s" % (done.returncode, done.stderr.strip())]
    evidence = json.loads(done.stdout).get("evidence", {})
    return [one["version"] for one in evidence.get("cudart", [])]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, epilog=HELP,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("command", help="path of cargo-cudaguard")
    arguments.add_argument("dir", metavar="DIR", help="directory for the wheels")
    arguments.add_argument("--record", action="store_true", help="write the checksums of the downloaded wheels to the table")
    options = arguments.parse_args()
    with open(TABLE) as file:
        table = json.load(file)
    wrong = absent = files = 0
    for row in table:
        dir = os.path.join(options.dir, row["wheel"].replace("==", "-") + "-" + row["processor"])
        try:
            path = wheels.download(row["wheel"], dir, row["processor"])
        except wheels.Unreachable as error:
            print("not downloaded: %s" % error)
            absent += 1
            continue
        digest = wheels.digest_of(path)
        if options.record:
            row["sha256"] = digest
        elif digest != row["sha256"]:
            print("%s, %s: the checksum is %s, the recorded one %s" % (row["wheel"], row["processor"], digest, row["sha256"]))
            wrong += 1
            continue
        release = ".".join(row["wheel"].partition("==")[2].split(".")[:2])
        with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as scratch:
            for name in wheel.namelist():
                base = os.path.basename(name)
                if base.startswith("libcudart") and (".so" in base or base.endswith("_static.a")):
                    found = detected_releases(options.command, wheel.extract(name, scratch))
                    files += 1
                    right = found == [release]
                    wrong += not right
                    print("%s, %s, %s: %s%s" % (row["wheel"], row["processor"], base, ", ".join(found) or "not detected",
                                                "" if right else "  WRONG"), flush=True)
    if options.record:
        with open(TABLE, "w") as file:
            file.write("[\n" + ",\n".join("  " + json.dumps(row) for row in table) + "\n]\n")
    print("%d cudarts, %d wrong, %d wheels not downloaded" % (files, wrong, absent))
    return 1 if wrong else 3 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
