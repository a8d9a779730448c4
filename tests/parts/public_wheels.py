#!/usr/bin/env python3
"""Holds what `inspect` and `verify` say of public wheels against what is publicly known of them. See --help."""
import argparse, json, os, resource, shutil, subprocess, sys, tempfile, time

import wheels

HERE = os.path.dirname(os.path.abspath(__file__))
HELP = """The wheels of public_wheels.json come by way of pip, as it is configured on this machine, one after the other, and are
removed again: some have a gigabyte. Nothing is installed. A row names a wheel, the digest of its file and what is known:

  archs      what its builders say that it has code for (`library`: in this member); it may have more, from what is linked in
  holds      NVIDIA's libraries that are in it, with their releases
  elsewhere  those that it must find elsewhere
  pins       the releases that its METADATA requires
  warns      what in it cannot be read, as a piece of the warning
  one_of     the CUDA majors for each of which it has a library of its own
  runs       [driver, GPU]: known to run there; refused: known not to
  findings   what does not fit in it, as a piece of the finding's text; what else is told as a warning is wrong
  known      where that is known from

status: 0 all is as it is known, 1 something is not, or a wheel is not what was recorded, 3 a wheel could not be had"""
LARGE = 500 << 20  # of a smaller one the time tells little
UNPACKING = 1.5  # so many times the processor time of Python's zipfile, which unpacks all and looks at nothing


def call(words):
    """The outcome, and the seconds of processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def judged(command, path, machines):
    """The verdict for each [driver, GPU], and its findings."""
    verdicts = []
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as hosts:
        for driver, gpu in machines:
            host = {"driver": {"user": driver, "kernel": driver}, "gpus": [{"cc": gpu}]}
            hosts.write(json.dumps(host) + "\n")
        hosts.flush()
        done, _ = call([command, "verify", path, "--fleet", hosts.name, "--json"])
    if done.returncode not in (0, 1):
        return ["status %d: %s" % (done.returncode, done.stderr.strip())], []
    for line in done.stdout.splitlines():
        told = json.loads(line)
        if "verdict" in told:
            verdicts.append((told["verdict"], [(one["code"], one["severity"], one["message"].splitlines()[0]) for one in
                                              told.get("findings", [])]))
    return [], verdicts


def check(command, row, path, answers):
    """What is not as it is known, in words."""
    done, seconds = call([command, "inspect", "--json", path])
    if done.returncode:
        return ["inspect: status %d: %s" % (done.returncode, done.stderr.strip())]
    known = row.get("warns", [])
    warnings = done.stderr.splitlines()
    wrong = ["inspect warns: " + line for line in warnings if not any(text in line for text in known)]
    wrong += ["inspect does not warn: " + text for text in known if not any(text in line for line in warnings)]
    told = json.loads(done.stdout)
    size = os.path.getsize(path)
    if size > LARGE:
        _, unpacking = call([sys.executable, "-m", "zipfile", "-t", path])
        if seconds > UNPACKING * unpacking:
            wrong.append("inspect took %.1f s of processor time, unpacking %.1f s" % (seconds, unpacking))

    def archs_of(member):
        return {entry["arch"] for entry in member["kernels"].get("entries", []) if "arch" in entry}
    members = [member for member in told["members"] if member["name"].split("/")[-1].startswith(row.get("library", ""))]
    archs = set().union(*map(archs_of, members))
    holds = {}
    for member in told["members"]:
        for key, version in member.get("holds", {}).items():
            holds.setdefault(key, set()).add(version)
    elsewhere = {one["soname"] for one in told["from_elsewhere"]}
    pins = [pin for package in told.get("packages", []) for pin in package["requires"]]
    for arch in row.get("archs", []):
        if arch not in archs:
            wrong.append("archs: %s is known, found are %s" % (arch, " ".join(sorted(archs))))
    for key, version in row.get("holds", {}).items():
        if version not in holds.get(key, ()):
            wrong.append("holds: %s %s is known, found is %s" % (key, version, sorted(holds.get(key, ()))))
    for soname in row.get("elsewhere", []):
        if soname not in elsewhere:
            wrong.append("elsewhere: %s is known, found are %s" % (soname, " ".join(sorted(elsewhere))))
    for pin in row.get("pins", []):
        if not any(pin == "".join(one.split(";")[0].split()).replace("(", "").replace(")", "") for one in pins):
            wrong.append("pins: %s is known, found are %s" % (pin, ", ".join(pins)))
    majors = [one["cuda"] for one in told.get("one_of", [])]
    if majors != row.get("one_of", []):
        wrong.append("one_of: %s is known, found is %s" % (row.get("one_of", []), majors))
    warned = [one["message"].splitlines()[0] for one in told.get("findings", []) if one["severity"] != "info"]
    for text in row.get("findings", []):
        if not any(text in one for one in warned):
            wrong.append("findings: %s is known, told is %s" % (text, warned))
    for one in warned:
        if not any(text in one for text in row.get("findings", [])):
            wrong.append("findings: nobody knows of this: " + one)
    machines = row.get("runs", []) + row.get("refused", [])
    trouble, verdicts = judged(command, path, machines) if machines else ([], [])
    wrong += trouble
    if len(verdicts) != len(machines):
        wrong.append("verify judged %d machines of %d" % (len(verdicts), len(machines)))
    for at, (machine, (verdict, found)) in enumerate(zip(machines, verdicts)):
        known = "runs" if at < len(row.get("runs", [])) else "refused"
        # What cannot be told is told as that, and not refused.
        if (known == "refused") != (verdict == "refused"):
            wrong.append("%s on %s is known, verify says %s: %s" % (known, " with ".join(machine), verdict, found))
    unknown = sum(verdict == "unknown" for verdict, _ in verdicts)
    answers.append({"wheel": row["wheel"], "archs": sorted(archs), "holds": {key: sorted(all) for key, all in holds.items()},
                    "elsewhere": sorted(elsewhere), "pins": pins, "one_of": majors, "seconds": round(seconds, 2), "size": size,
                    "covers": {one["cc"]: one["by"] for one in told["covers"]}, "verdicts": verdicts,
                    "findings": told.get("findings", [])})
    print("%s: %d MB in %.1f s of processor time; %s; %d machines judged%s" % (
        row["wheel"], size >> 20, seconds, " ".join(sorted(archs, key=lambda arch: (len(arch), arch))) or "no kernels",
        len(verdicts), ", %d cannot be told" % unknown if unknown else ""), flush=True)
    return wrong


def main():
    arguments = argparse.ArgumentParser(description=__doc__, epilog=HELP,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("command", help="cargo-cudaguard, built")
    arguments.add_argument("dir", metavar="DIR", help="where a wheel lies while it is looked at")
    arguments.add_argument("--only", metavar="TEXT", help="those whose name has this in it")
    arguments.add_argument("--answers", metavar="FILE", help="write what was told of each as JSON")
    asked = arguments.parse_args()
    with open(os.path.join(HERE, "public_wheels.json")) as file:
        table = json.load(file)
    wrong = absent = right = 0
    answers = []
    started = time.monotonic()
    rows = [row for row in table if not asked.only or asked.only in row["wheel"]]
    for row in rows:
        folder = os.path.join(asked.dir, row["wheel"])
        try:
            path = wheels.download(row["wheel"], folder, python=row.get("python", "3.11"))
        except wheels.Unreachable as error:
            print("cannot be had: %s" % error, flush=True)
            absent += 1
            continue
        if wheels.digest_of(path) != row["sha256"]:
            print("%s: is not the file that was recorded" % row["wheel"], flush=True)
            wrong += 1
        else:
            found = check(asked.command, row, path, answers)
            for what in found:
                print("  WRONG: " + what, flush=True)
            wrong += len(found)
            right += not found
        shutil.rmtree(folder)
        if asked.answers:
            with open(asked.answers, "w") as file:
                json.dump(answers, file, indent=1)
    print("%d of %d wheels are as they are known, %d could not be had, %d things are wrong; %d s" % (
        right, len(rows), absent, wrong, time.monotonic() - started))
    return 1 if wrong else 3 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
