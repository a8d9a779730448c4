#!/usr/bin/env python3
"""Compares the output of `inspect` and `verify` for public packages with published facts. See --help."""
import argparse, functools, json, os, resource, shutil, subprocess, sys, tempfile, time, urllib.request

import wheels

HERE = os.path.dirname(os.path.abspath(__file__))
HELP = """Downloads the packages of public_packages.json one by one and removes each after the check, because some have a gigabyte.
Installs nothing. pip downloads wheels with its configuration on this machine. rattler (in the component `consumers` of fetch.py)
provides the addresses of conda packages. A row names a package, the checksum of its file and the published facts:

  archs      GPU architectures that its builders state (`library`: in this member); linked libraries may add more
  holds      NVIDIA libraries in the package, with their releases
  elsewhere  NVIDIA libraries that it loads from elsewhere
  pins       releases that its METADATA requires
  warns      part of the warning about a member that `inspect` cannot read, or of the reason why it was not examined
  one_of     CUDA major versions for each of which it has a separate library
  runs       [driver, GPU] on which it is known to run; refused: on which it is known to fail
  findings   part of the message of each expected finding; every other warning is an error
  known      sources of these facts
  depends    requirements of a conda package, from published lock files
  of         wheels with the same libraries, the directories in both, and the release in the names of the files

If the conda servers cannot be reached, rattler-build creates a package with `of` from the libraries of the wheels and the
requirements in `depends`, as its recipe does. The output says so. It is not the published file.

status: 0 no differences, 1 differences or a wrong checksum, 3 a package could not be downloaded"""
LARGE = 500 << 20  # the time of a smaller package is too short to measure
# Limit for `inspect`: a multiple of the processor time of a program that only unpacks (Python's zipfile; rattler, which uses the
# C library of Zstandard).
MAX_TIMES_UNPACKING = {"wheel": 1.5, "conda": 2.0}


@functools.cache
def consumers():
    """Returns the directory of rattler and rattler-build."""
    parts = os.environ.get("CUDAGUARD_PARTS") or os.path.join(HERE, "..", "..", "target", "parts")
    lib = os.path.join(parts, "consumers", "lib")
    if not os.path.isdir(lib):
        raise wheels.Unreachable("the component `consumers` is not in %s (tests/parts/fetch.py --into ... consumers)" % parts)
    sys.dont_write_bytecode = True
    sys.path.insert(0, lib)
    return lib


def conda(name, dir):
    """Downloads a conda package and returns its path."""
    consumers()
    from rattler import Channel
    channel, _, place = name.partition("/")
    path = os.path.join(dir, os.path.basename(place))
    os.makedirs(dir, exist_ok=True)
    try:
        with urllib.request.urlopen(Channel(channel).base_url + place, timeout=30) as reply, open(path, "wb") as out:
            shutil.copyfileobj(reply, out, 1 << 20)
    except OSError as error:
        raise wheels.Unreachable("%s: %s" % (name, error)) from error
    return path


def assemble_conda(row, dir):
    """Creates a conda package as its recipe does: libraries with the full release in their names, a link with the soname, and
    for libraries below `targets/` also a link in `lib/`."""
    consumers()
    from rattler_build import ArchiveType, assemble_package
    _, subdir, file = row["conda"].split("/")
    form = ArchiveType.TarBz2 if file.endswith(".tar.bz2") else ArchiveType.Conda
    name, version, build = file.removesuffix(".conda").removesuffix(".tar.bz2").rsplit("-", 2)
    staged = os.path.join(dir, "staged")

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

        downloads = os.path.join(dir, "downloads")
        os.makedirs(downloads, exist_ok=True)
        wheels.take(one["wheel"], wanted, downloads, staged, lambda *_: None)
        for soname, place in places.items():
            if os.path.basename(place) != soname:
                link(one["to"] + soname, place)
            if one["to"] != "lib/":
                link("lib/" + soname, place)
    made = assemble_package(name, version, subdir, build, os.path.join(dir, "made"), files_dir=staged,
                            depends=row["depends"], noarch="generic" if subdir == "noarch" else None, archive_type=form,
                            compression_level=1, detect_prefix=False)
    return str(made.path)


def provide(row, dir):
    """Returns the path of a row's package, and whether it is the published file."""
    if "wheel" in row:
        return wheels.download(row["wheel"], dir, python=row.get("python", "3.11")), True
    try:
        return conda(row["conda"], dir), True
    except wheels.Unreachable:
        if "of" not in row:
            raise
        return assemble_conda(row, dir), False


def title(row):
    return row.get("wheel") or row["conda"]


UNPACK = """
import sys
sys.path.insert(0, sys.argv[1])
from rattler.package_streaming import extract
extract(*sys.argv[2:])
"""


def call(command):
    """Runs a command. Returns the completed process and its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def verify(command, path, machines):
    """Returns errors, and the verdict and findings for each [driver, GPU]."""
    verdicts = []
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as hosts:
        for driver, gpu in machines:
            host = {"driver": {"user": driver, "kernel": driver}, "gpus": [{"cc": gpu}]}
            hosts.write(json.dumps(host) + "\n")
        hosts.flush()
        done, _ = call([command, "verify", path, "--fleet", hosts.name, "--json"])
    # 2: something was not examined.
    if done.returncode not in (0, 1, 2) or not done.stdout:
        return ["status %d: %s" % (done.returncode, done.stderr.strip())], []
    for line in done.stdout.splitlines():
        result = json.loads(line)
        if "verdict" in result:
            verdicts.append((result["verdict"], [(one["code"], one["severity"], one["message"].splitlines()[0]) for one in
                                                result.get("findings", [])]))
    return [], verdicts


def check(command, row, path, results):
    """Returns the differences between a row and the output for its package, as text. Appends a record to `results`."""
    done, seconds = call([command, "inspect", "--json", path])
    if done.returncode:
        return ["inspect: status %d: %s" % (done.returncode, done.stderr.strip())]
    known = row.get("warns", [])
    warnings = done.stderr.splitlines()
    # A slow machine gets lines of progress.
    warnings = [line for line in warnings if not line.startswith("cudaguard: reading ")]
    differences = ["inspect warns: " + line for line in warnings if not any(text in line for text in known)]
    report = json.loads(done.stdout)
    reported = warnings + report.get("not_judged", [])
    differences += ["inspect does not warn: " + text for text in known if not any(text in line for line in reported)]
    size = os.path.getsize(path)
    if size > LARGE:
        _, unpacking = call([sys.executable, "-m", "zipfile", "-t", path] if "wheel" in row else
                            [sys.executable, "-c", UNPACK, consumers(), path, os.path.join(os.path.dirname(path), "unpacked")])
        if seconds > MAX_TIMES_UNPACKING["wheel" if "wheel" in row else "conda"] * unpacking:
            differences.append("inspect took %.1f s of processor time, unpacking %.1f s" % (seconds, unpacking))

    def archs_of(member):
        return {entry["arch"] for entry in member["kernels"].get("entries", []) if "arch" in entry}
    members = [member for member in report["members"] if member["name"].split("/")[-1].startswith(row.get("library", ""))]
    archs = set().union(*map(archs_of, members))
    holds = {}
    for member in report["members"]:
        for key, version in member.get("holds", {}).items():
            holds.setdefault(key, set()).add(version)
    elsewhere = {one["soname"] for one in report["from_elsewhere"]}
    pins = [pin for package in report.get("packages", []) for pin in package["requires"]]
    for arch in row.get("archs", []):
        if arch not in archs:
            differences.append("archs: %s is known, found are %s" % (arch, " ".join(sorted(archs))))
    for key, version in row.get("holds", {}).items():
        if version not in holds.get(key, ()):
            differences.append("holds: %s %s is known, found is %s" % (key, version, sorted(holds.get(key, ()))))
    for soname in row.get("elsewhere", []):
        if soname not in elsewhere:
            differences.append("elsewhere: %s is known, found are %s" % (soname, " ".join(sorted(elsewhere))))
    for pin in row.get("pins", []):
        if not any(pin == "".join(one.split(";")[0].split()).replace("(", "").replace(")", "") for one in pins):
            differences.append("pins: %s is known, found are %s" % (pin, ", ".join(pins)))
    majors = [one["cuda"] for one in report.get("one_of", [])]
    if majors != row.get("one_of", []):
        differences.append("one_of: %s is known, found is %s" % (row.get("one_of", []), majors))
    warned = [one["message"].splitlines()[0] for one in report.get("findings", []) if one["severity"] != "info"]
    for text in row.get("findings", []):
        if not any(text in one for one in warned):
            differences.append("findings: %s is known, reported are %s" % (text, warned))
    for one in warned:
        if not any(text in one for text in row.get("findings", [])):
            differences.append("findings: not in the table: " + one)
    machines = row.get("runs", []) + row.get("refused", [])
    errors, verdicts = verify(command, path, machines) if machines else ([], [])
    differences += errors
    if len(verdicts) != len(machines):
        differences.append("verify reported %d of %d machines" % (len(verdicts), len(machines)))
    for at, (machine, (verdict, found)) in enumerate(zip(machines, verdicts)):
        known = "runs" if at < len(row.get("runs", [])) else "refused"
        # An undetermined result must be `unknown`, never `refused`.
        if (known == "refused") != (verdict == "refused"):
            differences.append("%s on %s is known, verify says %s: %s" % (known, " with ".join(machine), verdict, found))
    unknown = sum(verdict == "unknown" for verdict, _ in verdicts)
    results.append({"package": title(row), "archs": sorted(archs), "holds": {key: sorted(all) for key, all in holds.items()},
                    "elsewhere": sorted(elsewhere), "pins": pins, "one_of": majors, "seconds": round(seconds, 2), "size": size,
                    "covers": {one["cc"]: one["by"] for one in report["covers"]}, "verdicts": verdicts,
                    "findings": report.get("findings", [])})
    print("%s: %d MB in %.1f s of processor time; %s; %d machines verified%s" % (
        title(row), size >> 20, seconds, " ".join(sorted(archs, key=lambda arch: (len(arch), arch))) or "no kernels",
        len(verdicts), ", %d unknown" % unknown if unknown else ""), flush=True)
    return differences


def main():
    arguments = argparse.ArgumentParser(description=__doc__, epilog=HELP,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("command", help="path of cargo-cudaguard")
    arguments.add_argument("dir", metavar="DIR", help="directory for the downloads")
    arguments.add_argument("--only", metavar="TEXT", help="check only packages whose name contains TEXT")
    arguments.add_argument("--results", metavar="FILE", help="write the results of all packages to FILE as JSON")
    options = arguments.parse_args()
    with open(os.path.join(HERE, "public_packages.json")) as file:
        table = json.load(file)
    differences = absent = matching = assembled = 0
    results = []
    started = time.monotonic()
    rows = [row for row in table if not options.only or options.only in title(row)]
    for row in rows:
        dir = os.path.join(options.dir, title(row).replace("/", "-"))
        try:
            path, is_public = provide(row, dir)
        except wheels.Unreachable as error:
            print("not downloaded: %s" % error, flush=True)
            absent += 1
            shutil.rmtree(dir, ignore_errors=True)
            continue
        if is_public and wheels.digest_of(path) != row["sha256"]:
            print("%s: the checksum differs from the recorded one" % title(row), flush=True)
            differences += 1
        else:
            found = check(options.command, row, path, results)
            if not is_public:
                assembled += 1
                print("  assembled from %s: the conda servers cannot be reached" % ", ".join(one["wheel"] for one in row["of"]), flush=True)
            for difference in found:
                print("  difference: " + difference, flush=True)
            differences += len(found)
            matching += not found
        shutil.rmtree(dir)
        if options.results:
            with open(options.results, "w") as file:
                json.dump(results, file, indent=1)
    print("%d of %d packages match (%d of them assembled here), %d not downloaded, %d differences; %d s" % (
        matching, len(rows), assembled, absent, differences, time.monotonic() - started))
    return 1 if differences else 3 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
