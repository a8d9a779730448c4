#!/usr/bin/env python3
"""Compares what `diff` reports for pairs of public wheels with their release notes. See --help."""
import argparse, json, os, subprocess, sys, tempfile

import wheels

HERE = os.path.dirname(os.path.abspath(__file__))
HELP = """Downloads the wheels of public_pairs.json through pip, one pair after the other. Nothing is installed. A row contains:

  old, new   the releases, and sha256 of their files
  lost       GPUs that the new release no longer runs on; none if absent
  raised     GPUs that need a newer driver; none if absent
  native     GPUs for which machine code was added
  inside     NVIDIA's libraries inside, old and new version
  elsewhere  libraries that the new release also needs from elsewhere
  known      the source of these facts

status: 0 all pairs are as known, 1 one differs, 3 one could not be downloaded"""


def check(row, diff):
    """What differs from the release notes."""
    changes = {change["cc"]: change for change in diff["gpus"] if "newer" not in change}
    found = {
        "lost": sorted(cc for cc, change in changes.items() if change["change"] == "lost"),
        "raised": sorted(change["cc"] for change in diff["drivers"] if change["change"] == "raised"),
    }
    wrong = []
    for key in ("lost", "raised"):
        wanted = row.get(key, [])
        # The release notes name only some products of a generation.
        missing = [cc for cc in wanted if cc not in found[key]]
        if missing or (found[key] and not wanted):
            wrong.append("%s: %s, and known are %s" % (key, found[key], wanted))
    for cc in row.get("native", []):
        if changes.get(cc, {}).get("new", {}).get("by") != "native":
            wrong.append("%s is not native now" % cc)
    inside = {change["name"]: [change.get("old"), change.get("new")] for change in diff["inside"]}
    for name, versions in row.get("inside", {}).items():
        if inside.get(name) != versions:
            wrong.append("%s: %s, and known is %s" % (name, inside.get(name), versions))
    elsewhere = " ".join(change.get("new", "") for change in diff["from_elsewhere"])
    wrong += ["%s is not needed" % name for name in row.get("elsewhere", []) if name not in elsewhere]
    lost = any(not loss["allowed"] for loss in diff["lost"])
    if not lost and (row.get("lost") or row.get("raised")):
        wrong.append("no support is lost")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", help="cargo-cudaguard")
    parser.add_argument("--keep", metavar="DIR", help="keep the wheels in this directory")
    given = parser.parse_args()
    with open(os.path.join(HERE, "public_pairs.json")) as file:
        rows = json.load(file)
    status = 0
    with tempfile.TemporaryDirectory() as scratch:
        dir = given.keep or scratch
        for row in rows:
            title = "%s -> %s" % (row["old"], row["new"])
            try:
                paths = [wheels.download(row[side], os.path.join(dir, row[side]), python="3.11") for side in ("old", "new")]
            except wheels.Unreachable as error:
                print("%s: %s" % (title, error))
                status = status or 3
                continue
            wrong = ["not the recorded file" for path, known in zip(paths, row["sha256"]) if wheels.digest_of(path) != known]
            call = subprocess.run([given.command, "-q", "diff", "--json", *paths], stdout=subprocess.PIPE, cwd=scratch)
            wrong += check(row, json.loads(call.stdout)) if call.returncode in (0, 1, 2) and call.stdout else ["no answer"]
            print("%s: %s" % (title, "; ".join(wrong) or "as known"), flush=True)
            status = 1 if wrong else status
    sys.exit(status)


main()
