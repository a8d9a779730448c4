"""Fetches the published crates that tests build into cargo's home: those of `tests/crates/Cargo.lock`, and those of the
lock files of the programs among them. Uses the network only if a crate is missing."""
import json, os, re, shutil, subprocess, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
MANIFEST = os.path.join(HERE, "../crates/Cargo.toml")
# Built as published, with their own Cargo.lock.
PROGRAMS = ["hexyl"]
TARGET = "x86_64-unknown-linux-gnu"
PAUSES = [5, 20, 60]
# Parts of error messages of cargo and its HTTP client that indicate a network error.
NETWORK = ["failed to download", "failed to get", "failed to fetch", "failed to query", "download of", "network", "resolve host",
           "connect", "timed out", "timeout", "spurious", "HTTP", "SSL", "curl"]


class Unreachable(Exception):
    """A crate could not be fetched: no network."""


def cargo(*arguments):
    call = [os.environ.get("CARGO", "cargo"), *arguments]
    return subprocess.run(call, capture_output=True, text=True, errors="replace", cwd=tempfile.gettempdir())


def fetch(manifest, report):
    """Fetches the locked dependencies of a manifest. Uses the network only if something is missing; retries network errors."""
    arguments = ["fetch", "--locked", "--target", TARGET, "--manifest-path", manifest]
    if cargo(*arguments, "--offline").returncode == 0:
        return
    for pause in [*PAUSES, None]:
        done = cargo(*arguments)
        if done.returncode == 0:
            return
        if not any(text in done.stderr for text in NETWORK):
            raise ValueError(done.stderr.strip())
        if pause is None:
            raise Unreachable(done.stderr.strip())
        report("network error; retrying in %d s" % pause)
        time.sleep(pause)


def directories():
    """Returns the directories of the unpacked programs: siblings of the other crates of the registry. (`cargo metadata` does
    not list dependencies without a library.)"""
    arguments = ["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform", TARGET]
    done = cargo(*arguments, "--manifest-path", MANIFEST)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    packages = [package for package in json.loads(done.stdout)["packages"] if package["source"]]
    registry = os.path.dirname(os.path.dirname(packages[0]["manifest_path"]))
    with open(os.path.join(os.path.dirname(MANIFEST), "Cargo.lock")) as file:
        versions = dict(re.findall(r'^name = "(.*)"\nversion = "(.*)"$', file.read(), re.MULTILINE))
    return [os.path.join(registry, "%s-%s" % (name, versions[name])) for name in PROGRAMS]


def provide(report):
    fetch(MANIFEST, report)
    for dir in directories():
        with tempfile.TemporaryDirectory() as scratch:
            copy = os.path.join(scratch, "program")
            shutil.copytree(dir, copy, copy_function=shutil.copyfile)
            with open(os.path.join(copy, "Cargo.toml"), "a") as manifest:
                manifest.write("\n[workspace]\n")
            fetch(os.path.join(copy, "Cargo.toml"), report)
