"""The published crates that tests build, into cargo's own home, by cargo: those that `tests/crates/Cargo.lock` names, and
what the programs among them lock for themselves. What is there already is asked for without a network."""
import json, os, re, shutil, subprocess, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
MANIFEST = os.path.join(HERE, "../crates/Cargo.toml")
# Built as they were published, with the Cargo.lock that lies in them.
PROGRAMS = ["hexyl", "ripgrep"]
TARGET = "x86_64-unknown-linux-gnu"
PAUSES = [5, 20, 60]
# How cargo, and what it fetches with, say that the network failed them.
NETWORK = ["failed to download", "failed to get", "failed to fetch", "failed to query", "download of", "network", "resolve host",
           "connect", "timed out", "timeout", "spurious", "HTTP", "SSL", "curl"]


class Unreachable(Exception):
    """A crate could not be had: no network."""


def cargo(*words):
    call = [os.environ.get("CARGO", "cargo"), *words]
    return subprocess.run(call, capture_output=True, text=True, errors="replace", cwd=tempfile.gettempdir())


def fetch(manifest, say):
    """What this manifest locks. Only what is lacking is asked of the network, and that again where the network fails."""
    words = ["fetch", "--locked", "--target", TARGET, "--manifest-path", manifest]
    if cargo(*words, "--offline").returncode == 0:
        return
    for pause in [*PAUSES, None]:
        done = cargo(*words)
        if done.returncode == 0:
            return
        if not any(word in done.stderr for word in NETWORK):
            raise ValueError(done.stderr.strip())
        if pause is None:
            raise Unreachable(done.stderr.strip())
        say("the network failed; again in %d s" % pause)
        time.sleep(pause)


def folders():
    """Where cargo has unpacked the programs: beside everything else of the same registry. (What it tells of a manifest leaves
    out packages without a library.)"""
    words = ["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform", TARGET]
    done = cargo(*words, "--manifest-path", MANIFEST)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    packages = [package for package in json.loads(done.stdout)["packages"] if package["source"]]
    registry = os.path.dirname(os.path.dirname(packages[0]["manifest_path"]))
    with open(os.path.join(os.path.dirname(MANIFEST), "Cargo.lock")) as file:
        versions = dict(re.findall(r'^name = "(.*)"\nversion = "(.*)"$', file.read(), re.MULTILINE))
    return [os.path.join(registry, "%s-%s" % (name, versions[name])) for name in PROGRAMS]


def provide(say):
    fetch(MANIFEST, say)
    for folder in folders():
        with tempfile.TemporaryDirectory() as scratch:
            copy = os.path.join(scratch, "program")
            shutil.copytree(folder, copy, copy_function=shutil.copyfile)
            with open(os.path.join(copy, "Cargo.toml"), "a") as manifest:
                manifest.write("\n[workspace]\n")
            fetch(os.path.join(copy, "Cargo.toml"), say)
