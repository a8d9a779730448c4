"""Check CUDA binaries against drivers, GPUs and cuDNN, without running them and without a GPU.

    >>> import cudaguard
    >>> result = cudaguard.verify("dist/my_model.whl", driver="535.261.03", gpus="A100")
    >>> result.verdict, [finding.code for finding in result.findings]
    ('refused', ['CG301'])

Each function runs the command of the same name, which this package contains. It loads no library, needs no GPU and sends nothing over
the network. Files are programs, libraries, objects, GPU code, wheels, archives, directories and container images.
https://github.com/cudaguard/cudaguard/tree/main/docs describes the results.
"""

from __future__ import annotations

import enum
import errno
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union, overload

__all__ = [
    "CommandError", "Cause", "Component", "Driver", "Error", "Explanation", "FileMissingError", "Finding", "FindingText", "GpuRange",
    "GpuResult", "Host", "IncompatibleError", "Inspection", "KernelEntry", "Library", "Requirements", "Status", "Symptom",
    "VerifyResult", "cmake_dir", "command", "diff", "explain", "fleet", "gate", "include_dir", "inspect", "map", "requirements", "verify",
]

if TYPE_CHECKING:
    __version__: str

Path = Union[str, "os.PathLike[str]"]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib import metadata

        try:
            return metadata.version("cudaguard")
        except metadata.PackageNotFoundError:
            return _run(["--version"]).split()[1]
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


class Error(Exception):
    """Base class of the exceptions of this package."""


class CommandError(Error):
    """The command failed: it could not read a file, a host description or an option. The message contains the reason."""


class FileMissingError(Error, FileNotFoundError):
    """A file does not exist. Also a `FileNotFoundError`."""


class Status(enum.Enum):
    """Whether a file can run on a machine, with the names of the C and Rust interfaces."""

    COMPATIBLE = "compatible"
    INCOMPATIBLE = "incompatible"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding:
    """A problem, or something that could not be determined. Its facts are attributes too: `finding.needed_by`."""

    #: `CG301`; `explain("CG301")` returns its explanation.
    code: str
    #: `error`, `warning` or `info`.
    severity: str
    #: Name and version of the component; empty if the finding does not concern a component.
    component: str
    #: `driver`, `gpu`, `cudnn`, ...
    subject: str
    #: The problem in the first line, one fact in each other line.
    message: str
    #: What to do; empty if there is nothing to do.
    hint: str
    #: The facts by name, such as `needed_by` and `found`.
    facts: Mapping[str, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> str:
        # Python calls this for names that are not fields.
        facts: Mapping[str, str] = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError("the finding has no fact %r" % name)

    def __str__(self) -> str:
        hint = "\n  hint: %s" % self.hint if self.hint else ""
        return "%s[%s]: %s%s" % (self.severity, self.code, self.message.replace("\n", "\n  "), hint)


@dataclass(frozen=True)
class Driver:
    """A driver requirement."""

    #: The CUDA version that the driver must support: "12.0".
    cuda: Optional[str]
    #: The oldest release that supports it: "525.60.13".
    release: Optional[str]


@dataclass(frozen=True)
class GpuResult:
    """The code that one GPU would run."""

    component: str
    #: The name in the argument: "A100"; `None` if the argument was a compute capability.
    name: Optional[str]
    #: Compute capability: "8.0".
    cc: str
    #: `native`, `jit`, `partial`, `none` or `unknown`.
    by: str
    #: The architecture of this code: "sm_80".
    code: Optional[str]
    driver: Optional[Driver]


@dataclass(frozen=True)
class Library:
    """A CUDA library that the dynamic linker would load."""

    #: "cudnn", "nccl", "cudart".
    library: str
    version: Optional[str]
    path: str


@dataclass(frozen=True)
class VerifyResult:
    """Whether a file can run on a machine, and why not."""

    file: str
    #: As in the JSON output: `runs`, `refused` or `unknown`.
    verdict: str
    #: Errors first.
    findings: List[Finding] = field(default_factory=list)
    gpus: List[GpuResult] = field(default_factory=list)
    #: Empty if the dynamic linker of the machine could not be simulated.
    libraries: List[Library] = field(default_factory=list)
    #: What could not be examined. `verdict` covers everything only if this is empty.
    not_judged: List[str] = field(default_factory=list)
    #: Name of the machine, in results of `fleet`.
    host: Optional[str] = None

    @property
    def status(self) -> Status:
        if self.verdict == "refused":
            return Status.INCOMPATIBLE
        return Status.UNKNOWN if self.verdict == "unknown" or self.not_judged else Status.COMPATIBLE

    def __bool__(self) -> bool:
        """False only if the file cannot run; true also if this is unknown."""
        return self.verdict != "refused"


class IncompatibleError(Error):
    """A file cannot run on the machine: raised by `verify(..., check=True)`."""

    def __init__(self, result: VerifyResult) -> None:
        self.result = result
        errors = [str(finding) for finding in result.findings if finding.severity == "error"]
        super().__init__("%s cannot run:\n%s" % (result.file, "\n".join(errors)))

    @property
    def findings(self) -> List[Finding]:
        """All findings, errors first."""
        return self.result.findings


@dataclass(frozen=True)
class Host:
    """A machine, described by a host file (docs/reference/host-file.md)."""

    facts: Mapping[str, Any]

    @classmethod
    def here(cls) -> "Host":
        """Returns this machine: its driver, GPUs, and the libraries that the dynamic linker would load."""
        return cls(_json(["probe", "--json"]))

    @classmethod
    def read(cls, path: Path) -> "Host":
        """Reads a host file that `cudaguard probe --json` has written.

        Raises FileMissingError, or CommandError if it is not a host file.
        """
        _require(path)
        try:
            with open(path, encoding="utf-8") as file:
                facts = json.load(file)
        except (OSError, ValueError) as error:
            raise CommandError("%s: %s" % (os.fspath(path), error)) from None
        if not isinstance(facts, dict):
            raise CommandError("%s: a host file is a JSON object" % os.fspath(path))
        return cls(facts)


@dataclass(frozen=True)
class Component:
    """A manifest in a file."""

    name: str
    version: str
    #: All keys, as MANIFEST.md lists them.
    manifest: Mapping[str, Any]


@dataclass(frozen=True)
class KernelEntry:
    """A piece of GPU code."""

    #: `cubin`, `ptx`, ...
    kind: str
    #: "sm_80", "compute_90".
    arch: Optional[str]
    #: Bytes.
    size: int


@dataclass(frozen=True)
class Inspection:
    """The contents of a file. For archives, `members` contains one result for each member with CUDA content."""

    file: str
    kind: str
    #: Processor: "x86_64".
    machine: Optional[str]
    components: List[Component]
    kernels: List[KernelEntry]
    #: Libraries that the file is linked to.
    needed: List[str]
    members: List["Inspection"]
    #: What could not be examined.
    not_judged: List[str]
    #: The complete output of `inspect --json`.
    raw: Mapping[str, Any]


@dataclass(frozen=True)
class GpuRange:
    """Consecutive compute capabilities with the same requirement."""

    #: First compute capability: "7.3".
    first: str
    #: Last compute capability: "8.6", or "9" for all with this major version; `None` if there is no end.
    last: Optional[str]
    #: `native`, `jit` or `partial`; `None` if no code runs on them.
    by: Optional[str]
    driver: Optional[Driver]
    #: Why no code runs on them.
    why: Optional[str]


@dataclass(frozen=True)
class Requirements:
    """What a machine must have to run all of the files."""

    files: List[str]
    processor: Optional[str]
    driver_needed: bool
    gpus: List[GpuRange]
    not_served: List[GpuRange]
    #: The complete output of `requirements --json`.
    raw: Mapping[str, Any]


@dataclass(frozen=True)
class FindingText:
    """The explanation of a finding."""

    code: str
    severity: str
    title: str
    explanation: str


@dataclass(frozen=True)
class Cause:
    """A cause of a symptom."""

    why: str
    #: The command that confirms it.
    see: str
    do: str
    codes: List[str]


@dataclass(frozen=True)
class Symptom:
    """The meaning of an error."""

    name: str
    title: str
    means: str
    causes: List[Cause]


@dataclass(frozen=True)
class Explanation:
    """The explanation of a text. It is false if nothing is known about the text."""

    findings: List[FindingText]
    symptoms: List[Symptom]

    def __bool__(self) -> bool:
        return bool(self.findings or self.symptoms)


def command() -> str:
    """Returns the path of the command that this package contains.

    Raises CommandError if it is not installed.
    """
    # The script directory of this environment; `pip install --user` and `--target` use another one.
    dirs = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", "%s_user" % os.name)]
    dirs.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    dirs += os.environ.get("PATH", "").split(os.pathsep)
    for directory in filter(None, dirs):
        program = os.path.join(directory, "cargo-cudaguard")
        if os.access(program, os.X_OK) and os.path.isfile(program):
            return program
    raise CommandError("cargo-cudaguard, the command of this package, is neither in the directory of %s nor in PATH" % sys.executable)


def cmake_dir() -> str:
    """Returns the directory of the CMake package, for `cmake -DCudaGuard_DIR=$(python -m cudaguard --cmakedir)`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "cmake")


def include_dir() -> str:
    """Returns the directory of cudaguard.h: `cc -I$(python -m cudaguard --includedir)`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


def inspect(path: Path) -> Inspection:
    """Returns the contents of a file: manifests, GPU code and the libraries that it needs.

    Raises FileMissingError, or CommandError if the file cannot be read.
    """
    _require(path)
    return _inspection(_json(["inspect", "--json", "--", os.fspath(path)]))


def verify(
    path: Path,
    *,
    host: Union[Host, Path, None] = None,
    driver: Optional[str] = None,
    kernel: Optional[str] = None,
    gpus: Union[str, Sequence[str]] = (),
    cudnn: Optional[str] = None,
    check: bool = False,
) -> VerifyResult:
    """Checks whether a file can run: on this machine, on a host (or a host file), or on the machine that the other arguments describe.

    `driver` and `kernel` are releases ("535.261.03"), `gpus` one or more names or compute capabilities ("A100", "8.6"), `cudnn` is a
    version or "none".

    Raises FileMissingError; CommandError if nothing could be checked; IncompatibleError if `check` is set and the file cannot run.
    """
    _require(path)
    gpus = [gpus] if isinstance(gpus, str) else gpus
    given = [("--driver", driver), ("--kernel", kernel), ("--cudnn", cudnn), *(("--gpu", gpu) for gpu in gpus)]
    options = [argument for option, value in given if value is not None for argument in (option, value)]
    if host is not None and options:
        raise ValueError("host describes a complete machine: pass it, or driver, kernel, gpus and cudnn")
    # The requirements of a release, which a project may have, are another question.
    ask = ["verify", "--json", "--policy", "none"]
    if isinstance(host, Host):
        with _hosts_file([host]) as name:
            value = _json([*ask, "--host", name, "--", os.fspath(path)])
    else:
        if host is not None:
            _require(host)
            options = ["--host", os.fspath(host)]
        value = _json([*ask, *options, "--", os.fspath(path)])
    result = _verify_result(value)
    if check and not result:
        raise IncompatibleError(result)
    return result


def fleet(paths: Union[Path, Sequence[Path]], hosts: Union[Path, Iterable[Host]]) -> List[VerifyResult]:
    """Checks files for each machine of a list: Hosts, or a file or directory that `verify --fleet` accepts.

    Raises FileMissingError, or CommandError if a file or the list cannot be read.
    """
    files = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    for path in files:
        _require(path)
    arguments = ["--", *(os.fspath(path) for path in files)]
    if isinstance(hosts, (str, os.PathLike)):
        _require(hosts)
        text = _run(["verify", "--json", "--fleet", os.fspath(hosts), *arguments])
    else:
        with _hosts_file(hosts) as name:
            text = _run(["verify", "--json", "--fleet", name, *arguments])
    # The last object is the summary of all machines.
    values = [json.loads(line) for line in text.splitlines() if line.strip()]
    return [_verify_result(value) for value in values if "verdict" in value]


def gate(
    *paths: Path,
    archs: Union[str, Sequence[str]] = (),
    driver_floor: Optional[str] = None,
    cudnn_floor: Optional[str] = None,
    guarded: bool = False,
) -> Dict[str, Any]:
    """Checks files before a release: every file has code for `archs`, runs on `driver_floor` and `cudnn_floor`, and is guarded.

    Returns the output of `verify --json` with these options; `["verdict"]` is `runs`, `refused` or `unknown`. Raises
    FileMissingError, or CommandError if a file or an option cannot be read.
    """
    for path in paths:
        _require(path)
    archs = archs if isinstance(archs, str) else ",".join(archs)
    given = [("--archs", archs or None), ("--driver-floor", driver_floor), ("--cudnn-floor", cudnn_floor)]
    options = [argument for option, value in given if value is not None for argument in (option, value)]
    options += ["--guarded"] if guarded else []
    return _json(["verify", "--json", *options, "--", *(os.fspath(path) for path in paths)])


def diff(old: Path, new: Path) -> Dict[str, Any]:
    """Compares two releases of a file. Returns the output of `diff --json`; `["lost"]` lists the support that is lost.

    Raises FileMissingError, or CommandError if a file cannot be read.
    """
    _require(old)
    _require(new)
    return _json(["diff", "--json", "--", os.fspath(old), os.fspath(new)])


def map(*paths: Path) -> Dict[str, Any]:
    """Returns the GPUs and drivers that files run on, as the output of `map --json`.

    Raises FileMissingError, or CommandError if a file cannot be read.
    """
    for path in paths:
        _require(path)
    return _json(["map", "--json", "--", *(os.fspath(path) for path in paths)])


@overload
def requirements(*paths: Path) -> Requirements: ...


@overload
def requirements(*paths: Path, format: str) -> str: ...


def requirements(*paths: Path, format: Optional[str] = None) -> Union[Requirements, str]:
    """Returns what a machine must have to run all of these files.

    With `format`, returns the text for a scheduler or a package manager; `cudaguard requirements --help` lists the formats.
    Raises FileMissingError; CommandError if a file cannot be read or the format cannot express the requirements.
    """
    for path in paths:
        _require(path)
    files = ["--", *(os.fspath(path) for path in paths)]
    if format is not None:
        return _run(["requirements", "--format", format, *files])
    value = _json(["requirements", "--json", *files])
    return Requirements(
        value["files"],
        value.get("processor"),
        value["driver_needed"],
        [_gpu_range(one) for one in value["gpus"]],
        [_gpu_range(one) for one in value["not_served"]],
        value,
    )


def explain(text: str) -> Explanation:
    """Explains a finding ("CG301"), a number (803), the name of a status, or the text of an error or a log.

    The result is false if nothing is known about the text. Raises CommandError.
    """
    value = json.loads(_run(["explain", "--json", "-"], input=text) or "{}")
    findings = [FindingText(one["code"], one["severity"], one["title"], one["explanation"]) for one in value.get("findings", [])]
    symptoms = [
        Symptom(
            one["name"],
            one["title"],
            one["means"],
            [Cause(cause["why"], cause["see"], cause["do"], cause.get("codes", [])) for cause in one["causes"]],
        )
        for one in value.get("symptoms", [])
    ]
    return Explanation(findings, symptoms)


class _hosts_file:
    """A temporary fleet file with one host per line."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self.file = tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8")
        for host in hosts:
            self.file.write(json.dumps(host.facts) + "\n")
        self.file.flush()

    def __enter__(self) -> str:
        return self.file.name

    def __exit__(self, *_: object) -> None:
        self.file.close()


def _require(path: Path) -> None:
    if not os.path.lexists(path):
        raise FileMissingError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))


def _finding(value: Mapping[str, Any]) -> Finding:
    names = ("code", "severity", "component", "subject", "message", "hint")
    facts = {key: str(one) for key, one in value.items() if key not in names}
    for line in value.get("message", "").split("\n")[1:]:
        label, colon, fact = line.partition(":")
        if colon:
            facts.setdefault(label.strip().lower().replace(" ", "_"), fact.strip())
    code, severity, component, subject, message, hint = (str(value.get(name, "")) for name in names)
    return Finding(code, severity, component, subject, message, hint, facts)


def _driver(value: Optional[Mapping[str, Any]]) -> Optional[Driver]:
    return None if value is None else Driver(value.get("cuda"), value.get("release"))


def _verify_result(value: Mapping[str, Any]) -> VerifyResult:
    found = [_finding(one) for one in value.get("findings", [])]
    findings = sorted(found, key=lambda finding: finding.severity != "error")
    gpus = [
        GpuResult(one.get("component", ""), one.get("name"), one["cc"], one["by"], one.get("code"), _driver(one.get("driver")))
        for one in value.get("gpus", [])
    ]
    libraries = [Library(one["library"], one.get("version"), one["path"]) for one in value.get("libraries", [])]
    return VerifyResult(
        value["file"], value["verdict"], findings, gpus, libraries, _texts(value.get("not_judged", [])), value.get("host")
    )


def _inspection(value: Mapping[str, Any]) -> Inspection:
    return Inspection(
        str(value.get("file") or value.get("name") or value.get("path", "")),
        value.get("kind", ""),
        value.get("machine"),
        [Component(*_name_and_version(one), manifest=one) for one in value.get("components", [])],
        [
            KernelEntry(one["kind"], one.get("arch"), one.get("size", 0))
            for one in (value.get("kernels") or {}).get("entries", [])
        ],
        value.get("needed", []),
        [_inspection(one) for one in value.get("members", [])],
        _texts(value.get("not_judged", [])),
        value,
    )


def _name_and_version(manifest: Mapping[str, Any]) -> Tuple[str, str]:
    component = manifest.get("component", {})
    return component.get("name", ""), component.get("version", "")


def _gpu_range(value: Mapping[str, Any]) -> GpuRange:
    return GpuRange(value["from"], value.get("to"), value.get("by"), _driver(value.get("driver")), value.get("why"))


def _texts(values: Iterable[Any]) -> List[str]:
    return [value if isinstance(value, str) else json.dumps(value) for value in values]


def _run(arguments: Sequence[str], input: str = "") -> str:
    done = subprocess.run([command(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, input=input.encode("utf-8"))
    # Statuses with output on stdout: 0, 1 incompatible, 2 not everything was examined. 3 without output: nothing is known.
    if not done.stdout and done.returncode not in (0, 3):
        text = done.stderr.decode("utf-8", "replace").strip()
        text = text[len("error: "):] if text.startswith("error: ") else text
        raise CommandError(text or "the command ended with status %d" % done.returncode)
    return done.stdout.decode("utf-8")


def _json(arguments: Sequence[str]) -> Dict[str, Any]:
    value = json.loads(_run(arguments))
    assert isinstance(value, dict), "each command prints one object"
    return value
