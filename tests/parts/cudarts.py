#!/usr/bin/env python3
"""Holds what `inspect` says of each cudart against the release that its wheel is named after. See --help."""
import argparse, json, os, subprocess, sys, tempfile, zipfile

import wheels

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "cudarts.json")
HELP = """The wheels of cudarts.json come by way of pip, as it is configured on this machine, and are kept in DIR. Nothing is
installed.

status: 0 every cudart is told rightly, 1 one is not, or is not what was recorded, 3 a wheel could not be had"""


def told(command, path):
    """The releases that the command reads out of a file."""
    done = subprocess.run([command, "inspect", "--json", path], capture_output=True, text=True)
    if done.returncode:
        return ["status %d: %s" % (done.returncode, done.stderr.strip())]
    evidence = json.loads(done.stdout).get("evidence", {})
    return [one["version"] for one in evidence.get("cudart", [])]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, epilog=HELP,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("command", help="cargo-cudaguard, built")
    arguments.add_argument("dir", metavar="DIR", help="where wheels are kept")
    arguments.add_argument("--record", action="store_true", help="write the digests of what came into the table")
    asked = arguments.parse_args()
    with open(TABLE) as file:
        table = json.load(file)
    wrong = absent = files = 0
    for row in table:
        folder = os.path.join(asked.dir, row["wheel"].replace("==", "-") + "-" + row["processor"])
        try:
            path = wheels.download(row["wheel"], folder, row["processor"])
        except wheels.Unreachable as error:
            print("cannot be had: %s" % error)
            absent += 1
            continue
        digest = wheels.digest_of(path)
        if asked.record:
            row["sha256"] = digest
        elif digest != row["sha256"]:
            print("%s, %s: its digest is %s, recorded is %s" % (row["wheel"], row["processor"], digest, row["sha256"]))
            wrong += 1
            continue
        release = ".".join(row["wheel"].partition("==")[2].split(".")[:2])
        with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as folder:
            for name in wheel.namelist():
                base = os.path.basename(name)
                if base.startswith("libcudart") and (".so" in base or base.endswith("_static.a")):
                    found = told(asked.command, wheel.extract(name, folder))
                    files += 1
                    right = found == [release]
                    wrong += not right
                    print("%s, %s, %s: %s%s" % (row["wheel"], row["processor"], base, ", ".join(found) or "not told",
                                                "" if right else "  WRONG"), flush=True)
    if asked.record:
        with open(TABLE, "w") as file:
            file.write("[\n" + ",\n".join("  " + json.dumps(row) for row in table) + "\n]\n")
    print("%d cudarts, %d wrong, %d wheels could not be had" % (files, wrong, absent))
    return 1 if wrong else 3 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
