#!/usr/bin/env python3
"""Writes cargo-cudaguard/data/symbols.txt, the first release of each function of NVIDIA's libraries. See --help."""
import argparse, fnmatch, json, os, re, struct, subprocess, sys, zipfile, zlib

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "parts")]

import names, wheels  # noqa: E402 (after the path is set)

HELP = """pip downloads wheels with its configuration on this machine. The script reads only the first 192 KB of each library. If
patchelf has moved the tables of a library, it reads the complete file, up to the size of --whole. DIR stores the results, so
that the next run continues. docs/internals/symbols.md describes the format and the limits of the table.

  table.py collect DIR [--only REGEX]   read the libraries that are not in DIR yet
  table.py write DIR                    write the table; libraries that are not in DIR keep their lines
  table.py check DIR                    print the differences between DIR and the table; status 1 if there are any"""
TABLE = os.path.join(HERE, "..", "..", "cargo-cudaguard", "data", "symbols.txt")
CHUNK = 192 << 10
# Project name, with or without a suffix for the CUDA major version -> its libraries, and headers that declare their functions.
PROJECTS = {
    "nvidia-cudnn": ["*/libcudnn*.so.*", "*/cudnn*.h"],
    "nvidia-cuda-runtime": ["*/libcudart.so.*", "*/cuda*Typedefs.h"],
    "nvidia-cublas": ["*/libcublas.so.*", "*/libcublasLt.so.*"],
    "nvidia-cuda-nvrtc": ["*/libnvrtc.so.*"],
    "nvidia-nvjitlink": ["*/libnvJitLink.so.*"],
    "nvidia-nccl": ["*/libnccl.so.*"],
    "nvidia-cufft": ["*/libcufft.so.*"],
    "nvidia-cusparse": ["*/libcusparse.so.*"],
    "nvidia-cusolver": ["*/libcusolver.so.*"],
    "nvidia-curand": ["*/libcurand.so.*"],
}
LINKER_DEFINED = {"__bss_start", "_edata", "_end", "_init", "_fini"}
DRIVER, OLDEST_DRIVER = "libcuda.so.1", (11, 0)


def numbers(version):
    return tuple(int(number) for number in re.findall(r"\d+", version))


def versions(project):
    """Returns the versions of a project that pip lists."""
    call = [sys.executable, "-m", "pip", "index", "versions", project, "--disable-pip-version-check"]
    done = subprocess.run(call, capture_output=True, text=True)
    listed = re.search(r"Available versions: (.*)", done.stdout)
    return listed.group(1).split(", ") if listed else []


def start(remote, info, length):
    """Returns the first bytes of a member, decompressed."""
    remote.seek(info.header_offset)
    raw = remote.read(min(length, 30 + len(info.filename) + 4096 + info.compress_size))
    name, extra = struct.unpack_from("<HH", raw, 26)
    raw = raw[30 + name + extra:]
    return zlib.decompressobj(-15).decompress(raw) if info.compress_type else raw[:info.file_size]


def exported(remote, wheel, info, whole):
    """Returns the names that a library in a wheel exports, or None if it is larger than the limit `whole`."""
    length = CHUNK
    try:
        while length < 16 << 20:
            try:
                return names.read_start(start(remote, info, length))
            except names.More:
                length *= 2
    except names.Patched:
        pass
    return names.read_all(wheel.read(info)) if info.compress_size <= whole << 20 else None


def collect(options):
    for project, patterns in PROJECTS.items():
        for lane in ("-cu11", "-cu12", "-cu13", ""):
            for version in versions(project + lane):
                spec = "%s==%s" % (project + lane, version)
                cached = os.path.join(options.folder, project + lane, version + ".json")
                if os.path.exists(cached) or (options.only and not re.search(options.only, spec)):
                    continue
                downloads = os.path.join(options.folder, "downloads")
                os.makedirs(downloads, exist_ok=True)
                os.makedirs(os.path.dirname(cached), exist_ok=True)
                found = {"libraries": {}, "declared": [], "driver": []}
                with wheels.in_pieces(spec, downloads, lambda *_: None) as remote, zipfile.ZipFile(remote) as wheel:
                    for info in wheel.infolist():
                        file = os.path.basename(info.filename)
                        if not any(fnmatch.fnmatch(info.filename, pattern) for pattern in patterns):
                            continue
                        if file.endswith(".h"):
                            text = wheel.read(info).decode(errors="replace")
                            text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
                            found["declared"] += re.findall(r"CUDNNWINAPI\s+(cudnn\w+)\s*\(", text)
                            found["driver"] += re.findall(r"PFN_(cu\w+?)_v(\d+)((?:_ptds|_ptsz)?)\s*\)", text)
                            continue
                        known = exported(remote, wheel, info, options.whole)
                        if known is not None:
                            found["libraries"][file] = sorted(known)
                with open(cached, "w") as out:
                    json.dump(found, out)
                for leftover in os.listdir(downloads):
                    if not os.path.isdir(os.path.join(downloads, leftover)):
                        os.remove(os.path.join(downloads, leftover))
                print(spec, {file: len(known) for file, known in found["libraries"].items()}, flush=True)


def load(folder):
    """Returns {library: {CUDA major: [(release, names, declared names)]}}, in ascending order, and the driver's functions."""
    libraries, driver = {}, set()
    for project in sorted(os.listdir(folder)):
        lane = re.search(r"-cu(\d+)$", project)
        for file in sorted(os.listdir(os.path.join(folder, project))) if project.startswith("nvidia-") else []:
            with open(os.path.join(folder, project, file)) as cached:
                found = json.load(cached)
            driver.update(map(tuple, found["driver"]))
            release = numbers(file[:-len(".json")])[:3]
            for library, known in found["libraries"].items():
                known = {name for name in known if not name.startswith("_Z") and name not in LINKER_DEFINED | {library}}
                row = (release, known, set(found["declared"]))
                libraries.setdefault(library, {}).setdefault(lane and lane.group(1), []).append(row)
    for lanes in libraries.values():
        for rows in lanes.values():
            rows.sort(key=lambda row: row[0])
    return libraries, driver


def library_bounds(library, lanes):
    """Returns {name: (first release, last release)}. A release is () if it is not known."""
    found = {}
    by_headers = re.match(r"libcudnn\.so", library) and any(row[2] for rows in lanes.values() for row in rows)
    for name in {name for rows in lanes.values() for row in rows for name in row[1]}:
        having = {lane: [row for row in rows if name in row[1]] for lane, rows in lanes.items()}
        having = {lane: rows for lane, rows in having.items() if rows}
        earliest = min(having, key=lambda lane: having[lane][0][0])
        first = having[earliest][0][0]
        if first == lanes[earliest][0][0]:
            first = ()
        if by_headers:
            declaring = [row[0] for rows in having.values() for row in rows if name in row[2]]
            if not declaring:
                continue
            first = max(first, min(declaring)) if first else first
        gone = [rows[-1][0] for lane, rows in having.items() if rows[-1][0] != lanes[lane][-1][0]]
        last = max(gone) if len(gone) == len(having) else ()
        if first or last:
            found[name] = (first, last)
    return found


def driver_bounds(functions):
    """Returns the bounds of driver functions. The k-th version of a function has the suffix _vk. A variant for per-thread or
    legacy streams has the version of the function without a suffix."""
    releases = {}
    for name, release, twin in functions:
        if not twin:
            releases.setdefault(name, set()).add(int(release))
    found = {}
    for name, release, twin in functions:
        count = max(1, sum(other <= int(release) for other in releases.get(name, ())))
        first = (int(release) // 1000, int(release) % 1000 // 10)
        if first > OLDEST_DRIVER:
            found[name + ("" if count == 1 else "_v%d" % count) + twin] = (first, ())
    return found


def blocks(text):
    """Returns {library: lines} of a table."""
    found, lines = {}, []
    for line in text.splitlines():
        if line.startswith("="):
            lines = found.setdefault(line[1:], [])
        elif not line.startswith("#"):
            lines.append(line)
    return found


def format_lines(found):
    dotted, by_first = lambda release: ".".join(map(str, release)), {}
    for name, (first, last) in found.items():
        by_first.setdefault(first, []).append(name + (" " + dotted(last) if last else ""))
    return [line for first in sorted(by_first) for line in ["@" + (dotted(first) or "0.0")] + sorted(by_first[first])]


def table(options):
    with open(TABLE) as file:
        old = file.read()
    libraries, driver = load(options.folder)
    found = blocks(old)
    found.update((library, format_lines(library_bounds(library, lanes))) for library, lanes in libraries.items())
    if driver:
        found[DRIVER] = format_lines(driver_bounds(driver))
    head = [line for line in old.splitlines() if line.startswith("#")]
    body = [line for library in sorted(found) if found[library] for line in ["=" + library] + found[library]]
    return old, "\n".join(head + body) + "\n", sorted([*libraries] + [DRIVER] * bool(driver))


def write(options):
    _, new, _ = table(options)
    with open(TABLE, "w") as file:
        file.write(new)


def check(options):
    old, new, compared = table(options)
    current, computed = blocks(old), blocks(new)
    different = [library for library in compared if current.get(library) != computed.get(library)]
    print("compared: %s" % ", ".join(compared))
    for library in different:
        both = set(current.get(library, ())) ^ set(computed.get(library, ()))
        print("%s differs: %s" % (library, ", ".join(sorted(both)) or "in the order of its lines"))
    sys.exit(1 if different else 0)


def main():
    parser = argparse.ArgumentParser(description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["collect", "write", "check"])
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--only", metavar="REGEX", help="collect only matching wheels, for example nvidia-nccl-cu12==2.32")
    parser.add_argument("--whole", type=int, default=90, metavar="MB", help="read patched libraries up to this size")
    options = parser.parse_args()
    {"collect": collect, "write": write, "check": check}[options.what](options)


if __name__ == "__main__":
    main()
