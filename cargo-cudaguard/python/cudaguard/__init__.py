"""What CUDA binaries were built with, and where they will run.

    >>> import cudaguard
    >>> answer = cudaguard.verify("dist/my_model.whl", driver="535.261.03", gpus=["A100"])
    >>> answer.verdict, [finding.code for finding in answer.findings]
    ('refused', ['CG301'])

Each function runs the command of the same name, which this package brings; what it returns is described in
https://github.com/cudaguard/cudaguard/tree/main/docs. Files are programs, libraries, objects, GPU code, wheels, archives,
folders and container images. Nothing is loaded, no GPU is needed, and nothing is sent anywhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

__all__ = ["Finding", "Host", "Refused", "Unusable", "Verdict", "cmake_folder", "command", "inspect", "requirements", "verify"]

Path = Union[str, "os.PathLike[str]"]


class Unusable(Exception):
    """The command could not look: a file that cannot be read, a machine that cannot be understood. The message says which."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or that cannot be told."""

    #: `CG301`; `cudaguard explain CG301` tells more.
    code: str
    #: `error`, `warning` or `info`.
    severity: str
    #: The package that embedded the manifest; empty where none did.
    component: str
    #: What it is about: `driver`, `gpu`, `cudnn`, ...
    subject: str
    message: str
    hint: str

    def __str__(self) -> str:
        hint = "\n  hint: %s" % self.hint if self.hint else ""
        return "%s[%s]: %s%s" % (self.severity, self.code, self.message.replace("\n", "\n  "), hint)


class Refused(Exception):
    """A file will not run on the machine that was asked about: `verify(..., check=True)`."""

    def __init__(self, verdict: "Verdict") -> None:
        self.verdict = verdict
        errors = [str(finding) for finding in verdict.findings if finding.severity == "error"]
        super().__init__("%s will not run:\n%s" % (verdict.file, "\n".join(errors)))

    @property
    def findings(self) -> List[Finding]:
        """All that was found, the errors first."""
        return sorted(self.verdict.findings, key=lambda finding: finding.severity != "error")


@dataclass(frozen=True)
class Verdict:
    """Whether a file will run on a machine, and why not."""

    file: str
    #: `runs`, `refused`, or `unknown` where something that counts cannot be told.
    verdict: str
    findings: List[Finding] = field(default_factory=list)
    #: What becomes of each GPU: `by` is `native`, `jit`, `partial`, `none` or `unknown`. As `verify --json` has it.
    gpus: List[Dict[str, Any]] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether nothing refuses: also where not all can be told."""
        return self.verdict != "refused"


@dataclass(frozen=True)
class Host:
    """A machine, as a host file describes it (docs/host.md)."""

    facts: Mapping[str, Any]

    @classmethod
    def here(cls) -> "Host":
        """This machine: its driver, GPUs, and the libraries that the loader would take."""
        return cls(_json(["probe", "--json"]))

    @classmethod
    def read(cls, path: Path) -> "Host":
        """A host file, as `cudaguard probe --json` writes it."""
        try:
            with open(path, encoding="utf-8") as file:
                facts = json.load(file)
        except (OSError, ValueError) as error:
            raise Unusable("%s: %s" % (os.fspath(path), error)) from None
        if not isinstance(facts, dict):
            raise Unusable("%s: a host file is a JSON object" % os.fspath(path))
        return cls(facts)


def command() -> str:
    """The path of the command that this package brings."""
    # Where this environment keeps programs; of `pip install --user` and `--target` it is another folder.
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", "%s_user" % os.name)]
    folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    folders += os.environ.get("PATH", "").split(os.pathsep)
    for folder in filter(None, folders):
        program = os.path.join(folder, "cargo-cudaguard")
        if os.access(program, os.X_OK) and os.path.isfile(program):
            return program
    raise Unusable("cargo-cudaguard, the command of this package, is neither beside %s nor in PATH" % sys.executable)


def cmake_folder() -> str:
    """The folder of the CMake package: `cmake -DCudaGuard_DIR=$(python -m cudaguard --cmakedir)`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "cmake")


def inspect(path: Path) -> Dict[str, Any]:
    """What is in a file: manifests, kernels, the libraries that it needs. As `inspect --json` has it.

    Raises Unusable where the file cannot be read, or holds nothing of CUDA.
    """
    return _json(["inspect", "--json", "--", os.fspath(path)])


def verify(
    path: Path,
    *,
    host: Union[Host, Path, None] = None,
    driver: Optional[str] = None,
    kernel: Optional[str] = None,
    gpus: Sequence[str] = (),
    cudnn: Optional[str] = None,
    check: bool = False,
) -> Verdict:
    """Whether a file will run: on this machine, on that of a host (or host file), or on one of the facts given.

    `driver` and `kernel` are releases ("535.261.03"), `gpus` names or compute capabilities ("A100", "8.6"), `cudnn` a version or
    "none". Raises Refused where `check` is set and the file will not run, Unusable where nothing can be said.
    """
    given = [("--driver", driver), ("--kernel", kernel), ("--cudnn", cudnn), *(("--gpu", gpu) for gpu in gpus)]
    options = [word for option, value in given if value is not None for word in (option, value)]
    if host is not None and options:
        raise ValueError("host describes a whole machine: give it, or driver, kernel, gpus and cudnn")
    if isinstance(host, Host):
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump(host.facts, file)
            file.flush()
            value = _json(["verify", "--json", "--host", file.name, "--", os.fspath(path)])
    else:
        options += [] if host is None else ["--host", os.fspath(host)]
        value = _json(["verify", "--json", *options, "--", os.fspath(path)])
    findings = [Finding(*(one.get(name, "") for name in Finding.__annotations__)) for one in value["findings"]]
    verdict = Verdict(value["file"], value["verdict"], findings, value.get("gpus", []))
    if check and not verdict:
        raise Refused(verdict)
    return verdict


def requirements(*paths: Path, format: Optional[str] = None) -> Any:
    """What a machine must have to run all of these files. With `format` a text in the words of a scheduler or package manager
    (`cudaguard requirements --help` lists them), else what `requirements --json` has.
    """
    files = ["--", *map(os.fspath, paths)]
    if format is None:
        return _json(["requirements", "--json", *files])
    return _run(["requirements", "--format", format, *files])


def _run(arguments: Sequence[str]) -> str:
    done = subprocess.run([command(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    # 1: there are findings that refuse; they stand in the answer.
    if done.returncode not in (0, 1) or not done.stdout:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise Unusable(said[len("error: "):] if said.startswith("error: ") else said or "the command ended with %d" % done.returncode)
    return done.stdout.decode("utf-8")


def _json(arguments: Sequence[str]) -> Any:
    return json.loads(_run(arguments))
