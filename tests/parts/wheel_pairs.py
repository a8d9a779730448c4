#!/usr/bin/env python3
"""Compares what `inspect` reports about the win_amd64 and the manylinux wheel of the same release. See --help."""
import argparse, hashlib, json, os, re, subprocess, sys, tempfile

import wheels

HERE = os.path.dirname(os.path.abspath(__file__))
HELP = """The pairs of wheel_pairs.json are fetched by way of pip, one after the other, and removed again. Both wheels of a pair must have
the same images for each architecture, serve the same GPUs, need the same CUDA version of the driver, contain the same releases of
libraries, and need the same libraries from elsewhere. `differs` names the answers that differ because the vendor built them
differently, with the reason; such an answer must differ.

status: 0 all pairs are as recorded, 1 one is not, 3 one could not be fetched"""
ANSWERS = ["archs", "covers", "drivers", "holds", "elsewhere"]


def fetch(project, platforms, dir):
    """Returns the path of the wheel."""
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version", "3.12",
             "--dest", dir, project]
    for platform in platforms:
        words += ["--platform", platform]
    done = subprocess.run(words, capture_output=True, text=True)
    files = os.listdir(dir) if os.path.isdir(dir) else []
    if done.returncode or len(files) != 1:
        raise wheels.Unreachable("%s: %s" % (project, done.stderr.strip()[-300:]))
    return os.path.join(dir, files[0])


def family(name):
    """The library and its major: `cublas64_12.dll` and `libcublas.so.12` are both `cublas 12`."""
    special = {"nvcuda.dll": "cuda 1", "cutensor.dll": "cutensor 2"}
    if name.lower() in special:
        return special[name.lower()]
    found = re.fullmatch(r"(?:lib)?(.+?)(?:64)?(?:_|\.so\.)(\d+)[\d._]*(?:\.dll)?", name)
    stem, number = found.groups() if found else (name, "")
    return "%s %s" % (stem, number[:2] if len(number) == 3 else number)


def answers(command, path):
    done = subprocess.run([command, "inspect", "--json", path], capture_output=True, text=True)
    if done.returncode:
        raise ValueError("%s: status %d\n%s" % (path, done.returncode, done.stderr))
    report = json.loads(done.stdout)
    archs, holds = {}, set()
    for member in report["members"]:
        for entry in member["kernels"]["entries"]:
            key = " ".join([entry["kind"], entry["arch"], entry.get("isa", "")]).strip()
            archs[key] = archs.get(key, 0) + 1
        # A version resource has three numbers where Linux has two.
        holds |= {(key, ".".join(version.split(".")[:2])) for key, version in member.get("holds", {}).items() if version}
    drivers = report.get("drivers") or [row for one in report.get("one_of", []) for row in one.get("drivers", [])]
    by_gpu = {}
    for row in drivers:
        # Linux and Windows have other release numbers for the same CUDA version.
        by_gpu.setdefault("%s-%s" % (row.get("from"), row.get("to")), []).append(row.get("cuda"))
    return {
        "archs": archs,
        "covers": {row["cc"]: row["by"] for row in report["covers"]},
        "drivers": by_gpu,
        "holds": sorted(holds),
        "elsewhere": sorted({family(row["soname"]) for row in report["from_elsewhere"]}),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", help="the program cargo-cudaguard")
    parser.add_argument("names", nargs="*", help="pairs; all if there are none")
    parser.add_argument("--record", action="store_true", help="write the digests to wheel_pairs.json")
    call = parser.parse_args()
    place = os.path.join(HERE, "wheel_pairs.json")
    with open(place) as file:
        rows = json.load(file)
    status = 0
    for row in rows:
        project = row["project"]
        if call.names and project.split("==")[0] not in call.names:
            continue
        with tempfile.TemporaryDirectory() as dir:
            try:
                paths = {"windows": fetch(project, ["win_amd64"], os.path.join(dir, "windows")),
                         "linux": fetch(project, wheels.platforms("x86_64") + ["manylinux_2_25_x86_64"], os.path.join(dir, "linux"))}
            except wheels.Unreachable as error:
                print("not fetched: %s" % error)
                status = status or 3
                continue
            wrong = []
            for system, path in paths.items():
                with open(path, "rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                if call.record:
                    row[system] = digest
                elif row.get(system) != digest:
                    wrong.append("%s: the digest is %s, recorded is %s" % (system, digest, row.get(system)))
            windows, linux = (answers(call.command, paths[system]) for system in ("windows", "linux"))
            for answer in ANSWERS:
                same, expected = windows[answer] == linux[answer], answer not in row.get("differs", {})
                if same != expected:
                    wrong.append("%s: %s\n  windows %s\n  linux   %s" % (
                        answer, "differ" if expected else "are equal, and are recorded to differ", windows[answer], linux[answer]))
            images = sum(windows["archs"].values())
            print("%s: %s (%d images, %d GPUs served)" % (project, "wrong" if wrong else "as recorded", images,
                                                          sum(by != "none" for by in windows["covers"].values())), flush=True)
            for why in wrong:
                print("  " + why)
                status = 1
    if call.record:
        with open(place, "w") as file:
            file.write("[\n" + ",\n".join("  " + json.dumps(row) for row in rows) + "\n]\n")
    sys.exit(status)


if __name__ == "__main__":
    main()
