#!/usr/bin/env python3
"""Holds what `inspect` and `verify` say of public packages against what is publicly known of them. See --help."""
import argparse, functools, json, os, resource, shutil, subprocess, sys, tempfile, time, urllib.request

import wheels

HERE = os.path.dirname(os.path.abspath(__file__))
HELP = """The packages of public_packages.json come one after the other and are removed again: some have a gigabyte. Nothing is
installed. Wheels come by way of pip, as it is configured on this machine, packages of conda's from where rattler (of the part
`consumers`: fetch.py consumers) has their channel. A row names a package, the digest of its file and what is known:

  archs      what its builders say that it has code for (`library`: in this member); it may have more, from what is linked in
  holds      NVIDIA's libraries that are in it, with their releases
  elsewhere  those that it must find elsewhere
  pins       the releases that its METADATA requires
  warns      what in it cannot be read, as a piece of the warning
  one_of     the CUDA majors for each of which it has a library of its own
  runs       [driver, GPU]: known to run there; refused: known not to
  findings   what does not fit in it, as a piece of the finding's text; what else is told as a warning is wrong
  known      where that is known from
  depends    of a package of conda's: what it requires, as people's lock files have it
  of         the wheels whose libraries are the same as those in it, where they stand in both, and the release in their files' names

Where conda's servers cannot be reached, a package with `of` is made here, as its recipe makes it of NVIDIA's archives: by
rattler-build, of what conda's own requires and of the wheels' libraries. That is said, and is not the file that conda has.

status: 0 all is as it is known, 1 something is not, or a package is not what was recorded, 3 one could not be had"""
LARGE = 500 << 20  # of a smaller one the time tells little
# So many times the processor time of what unpacks all and looks at nothing: Python's zipfile, and rattler, whose Zstandard is in C.
UNPACKING = {"wheel": 1.5, "conda": 2.0}


@functools.cache
def consumers():
    """Where rattler and rattler-build lie."""
    parts = os.environ.get("CUDAGUARD_PARTS") or os.path.join(HERE, "..", "..", "target", "parts")
    lib = os.path.join(parts, "consumers", "lib")
    if not os.path.isdir(lib):
        raise wheels.Unreachable("the part `consumers` is not in %s (tests/parts/fetch.py --into ... consumers)" % parts)
    sys.dont_write_bytecode = True
    sys.path.insert(0, lib)
    return lib


def conda(name, folder):
    """The path of a package of conda's, downloaded."""
    consumers()
    from rattler import Channel
    channel, _, place = name.partition("/")
    path = os.path.join(folder, os.path.basename(place))
    os.makedirs(folder, exist_ok=True)
    try:
        with urllib.request.urlopen(Channel(channel).base_url + place, timeout=30) as reply, open(path, "wb") as out:
            shutil.copyfileobj(reply, out, 1 << 20)
    except OSError as error:
        raise wheels.Unreachable("%s: %s" % (name, error)) from error
    return path


def made_here(row, folder):
    """A package as its recipe makes it: its libraries with their whole release in their names and a link for the loader, and where
    they lie below `targets/`, a link in `lib/`, too."""
    consumers()
    from rattler_build import ArchiveType, assemble_package
    _, subdir, file = row["conda"].split("/")
    form = ArchiveType.TarBz2 if file.endswith(".tar.bz2") else ArchiveType.Conda
    name, version, build = file.removesuffix(".conda").removesuffix(".tar.bz2").rsplit("-", 2)
    staged = os.path.join(folder, "staged")

    def link(place, to):
        place = os.path.join(staged, place)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.symlink(os.path.relpath(os.path.join(staged, to), os.path.dirname(place)), place)

    for one in row["of"]:
        places = {}

        def wanted(member):
            soname = os.path.basename(member)
            if not member.startswith(one["from"]) or ".so." not in soname:
                return None
            places[soname] = one["to"] + "%s.so.%s" % (soname.partition(".so.")[0], one["release"])
            return places[soname]

        downloads = os.path.join(folder, "downloads")
        os.makedirs(downloads, exist_ok=True)
        wheels.take(one["wheel"], wanted, downloads, staged, lambda *_: None)
        for soname, place in places.items():
            if os.path.basename(place) != soname:
                link(one["to"] + soname, place)
            if one["to"] != "lib/":
                link("lib/" + soname, place)
    made = assemble_package(name, version, subdir, build, os.path.join(folder, "made"), files_dir=staged,
                            depends=row["depends"], noarch="generic" if subdir == "noarch" else None, archive_type=form,
                            compression_level=1, detect_prefix=False)
    return str(made.path)


def had(row, folder):
    """The path of a row's package, and whether it is the public one."""
    if "wheel" in row:
        return wheels.download(row["wheel"], folder, python=row.get("python", "3.11")), True
    try:
        return conda(row["conda"], folder), True
    except wheels.Unreachable:
        if "of" not in row:
            raise
        return made_here(row, folder), False


def title(row):
    return row.get("wheel") or row["conda"]

UNPACK = """
import sys
sys.path.insert(0, sys.argv[1])
from rattler.package_streaming import extract
extract(*sys.argv[2:])
"""


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
        _, unpacking = call([sys.executable, "-m", "zipfile", "-t", path] if "wheel" in row else
                            [sys.executable, "-c", UNPACK, consumers(), path, os.path.join(os.path.dirname(path), "unpacked")])
        if seconds > UNPACKING["wheel" if "wheel" in row else "conda"] * unpacking:
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
    answers.append({"package": title(row), "archs": sorted(archs), "holds": {key: sorted(all) for key, all in holds.items()},
                    "elsewhere": sorted(elsewhere), "pins": pins, "one_of": majors, "seconds": round(seconds, 2), "size": size,
                    "covers": {one["cc"]: one["by"] for one in told["covers"]}, "verdicts": verdicts,
                    "findings": told.get("findings", [])})
    print("%s: %d MB in %.1f s of processor time; %s; %d machines judged%s" % (
        title(row), size >> 20, seconds, " ".join(sorted(archs, key=lambda arch: (len(arch), arch))) or "no kernels",
        len(verdicts), ", %d cannot be told" % unknown if unknown else ""), flush=True)
    return wrong


def main():
    arguments = argparse.ArgumentParser(description=__doc__, epilog=HELP,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("command", help="cargo-cudaguard, built")
    arguments.add_argument("dir", metavar="DIR", help="where a package lies while it is looked at")
    arguments.add_argument("--only", metavar="TEXT", help="those whose name has this in it")
    arguments.add_argument("--answers", metavar="FILE", help="write what was told of each as JSON")
    asked = arguments.parse_args()
    with open(os.path.join(HERE, "public_packages.json")) as file:
        table = json.load(file)
    wrong = absent = right = made = 0
    answers = []
    started = time.monotonic()
    rows = [row for row in table if not asked.only or asked.only in title(row)]
    for row in rows:
        folder = os.path.join(asked.dir, title(row).replace("/", "-"))
        try:
            path, is_public = had(row, folder)
        except wheels.Unreachable as error:
            print("cannot be had: %s" % error, flush=True)
            absent += 1
            shutil.rmtree(folder, ignore_errors=True)
            continue
        if is_public and wheels.digest_of(path) != row["sha256"]:
            print("%s: is not the file that was recorded" % title(row), flush=True)
            wrong += 1
        else:
            found = check(asked.command, row, path, answers)
            if not is_public:
                made += 1
                print("  made here of %s: conda's own cannot be had" % ", ".join(one["wheel"] for one in row["of"]), flush=True)
            for what in found:
                print("  WRONG: " + what, flush=True)
            wrong += len(found)
            right += not found
        shutil.rmtree(folder)
        if asked.answers:
            with open(asked.answers, "w") as file:
                json.dump(answers, file, indent=1)
    print("%d of %d packages are as they are known (%d of them made here), %d could not be had, %d things are wrong; %d s" % (
        right, len(rows), made, absent, wrong, time.monotonic() - started))
    return 1 if wrong else 3 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
