#!/usr/bin/env python3
"""Replaces one library in environments that pip creates, and compares the answers of all front ends. See --help."""
import argparse, csv, glob, hashlib, json, os, re, shutil, subprocess, sys, tarfile, time, zipfile

HELP = """Creates the environments with pip (11 GB of downloads; 35 GB in DIR), and changes each in two ways for each replacement:

  package  the package of the library is replaced, with its metadata
  file     the files of the library are replaced, and the metadata stays

For each change and machine it prints the answers, which must be equal:

  directory, image  the environment
  wheels            the wheels of the environment, not installed (only for `package`, and another release of the same package: pip
                    installs a package that the wheels require and that is not among them)
  files             its libraries one by one: the worst answer
  doctor            the same, on a simulated machine
  main, program,    the library that is always loaded; a program that is linked to it; whether the program starts on a simulated
  exec              machine

An optional library that needs an absent one cannot be loaded, and is refused alone. The environment works without it, so it does not
count among the files.

status: 0 all answers are equal, 1 some differ, 3 a package could not be downloaded"""

# The requirement, the library that Python code always loads, and the optional ones.
ENVIRONMENTS = {
    "torch": ("torch==2.6.0", "torch/lib/libtorch_cuda.so", ["torch/lib/libcaffe2_nvrtc.so", "torch/lib/libtorch_cuda_linalg.so"]),
    "jax": ("jax[cuda12]==0.4.38", "jax_plugins/xla_cuda12/xla_cuda_plugin.so", ["jax_cuda12_plugin/_solver.so"]),
    "tensorflow": ("tensorflow[and-cuda]==2.18.0", "tensorflow/libtensorflow_cc.so.2", []),
    "cupy": ("cupy-cuda12x[ctk]==14.2.0", None, ["cupy/**/*.so", "cupy_backends/**/*.so"]),
}
# The name of the change, the package that is replaced, and the one that replaces it.
REPLACEMENTS = [
    ("none", None, None),
    ("nvJitLink 12.1", "nvidia-nvjitlink-cu12", "nvidia-nvjitlink-cu12==12.1.105"),
    ("cuDNN 9.0", "nvidia-cudnn-cu12", "nvidia-cudnn-cu12==9.0.0.312"),
    ("NCCL 2.19", "nvidia-nccl-cu12", "nvidia-nccl-cu12==2.19.3"),
    ("NVRTC 12.1", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc-cu12==12.1.105"),
    ("NVRTC 13", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc==13.0.88"),
    ("cuBLAS 12.1", "nvidia-cublas-cu12", "nvidia-cublas-cu12==12.1.3.1"),
    ("cuSPARSE 12.1", "nvidia-cusparse-cu12", "nvidia-cusparse-cu12==12.1.0.106"),
    ("cuFFT 11.0", "nvidia-cufft-cu12", "nvidia-cufft-cu12==11.0.2.54"),
    ("cudart 13", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime==13.0.96"),
]
H100 = [{"cc": "9.0"}]
LISTED = {"cudart": [], "cudnn": [], "nccl": [], "libraries": []}
# A driver release, and the lists of libraries, if the machine is described completely.
MACHINES = {
    "580, bare": {"driver": {"user": "580.95.05", "kernel": "580.95.05"}, "gpus": H100, **LISTED},
    "550": {"driver": {"user": "550.90.07", "kernel": "550.90.07"}, "gpus": H100},
    "535": {"driver": {"user": "535.261.03", "kernel": "535.261.03"}, "gpus": H100},
    "470": {"driver": {"user": "470.256.02", "kernel": "470.256.02"}, "gpus": H100},
}
SIMULATED = ["--driver", "580.95.05", "--gpu", "H100", "--"]
WORST_FIRST = ["refused", "unknown", "runs"]
ABSENT = "CG210"
REFUSED = 78


class Unreachable(Exception):
    """pip could not download a package."""


def pip(*arguments):
    done = subprocess.run([sys.executable, "-m", "pip", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise Unreachable("pip %s: %s" % (" ".join(arguments), done.stderr.strip()))


def download(requirement, dir, *options):
    """Returns the wheels of a requirement, downloaded once."""
    if not os.path.isdir(dir):
        pip("download", "--quiet", "--only-binary=:all:", "--dest", dir + ".new", *options, requirement)
        os.rename(dir + ".new", dir)
    return sorted(glob.glob(dir + "/*.whl"))


def distribution(path):
    """Returns the normalized name of the package of a wheel or of a .dist-info directory."""
    return re.sub("[-_.]+", "-", os.path.basename(path.rstrip("/")).split("-")[0]).lower()


def installed(site, package):
    """Returns the metadata directory of a package, or None."""
    return next((dir for dir in glob.glob(site + "/*.dist-info") if distribution(dir) == package), None)


def files_of(dist_info):
    with open(dist_info + "/RECORD", newline="") as file:
        return [row[0] for row in csv.reader(file) if row]


def libraries(names):
    return [name for name in names if re.search(r"\.so(\.|$)", name)]


def replace_package(site, package, wheel):
    for name in files_of(installed(site, package)):
        path = os.path.join(site, name)
        if os.path.exists(path):
            os.unlink(path)
    shutil.rmtree(installed(site, package), ignore_errors=True)
    zipfile.ZipFile(wheel).extractall(site)


def replace_files(site, package, wheel):
    """Writes the libraries of the wheel over those with the same name, of any version."""
    def stem(name):
        return os.path.basename(name).partition(".so")[0]
    archive = zipfile.ZipFile(wheel)
    new = {stem(name): name for name in libraries(archive.namelist())}
    for name in libraries(files_of(installed(site, package))):
        path = os.path.join(site, name)
        os.unlink(path)
        if stem(name) in new:
            # NVRTC opens its builtins under their own name.
            if "builtins" in name:
                path = os.path.join(os.path.dirname(path), os.path.basename(new[stem(name)]))
            with archive.open(new[stem(name)]) as source, open(path, "wb") as to:
                shutil.copyfileobj(source, to, 1 << 20)


class Image:
    """An OCI image of an environment, to which layers are added."""
    SITE = "usr/lib/python3/dist-packages"

    def __init__(self, dir, site):
        self.dir, self.base = dir, None
        shutil.rmtree(dir, ignore_errors=True)
        os.makedirs(dir + "/blobs/sha256")
        self.base = self.layer(site, sorted(os.listdir(site)), [])

    def blob(self, path):
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.rename(path, "%s/blobs/sha256/%s" % (self.dir, digest))
        return {"digest": "sha256:" + digest, "size": os.path.getsize("%s/blobs/sha256/%s" % (self.dir, digest))}

    def json(self, value):
        with open(self.dir + "/new", "w") as file:
            json.dump(value, file)
        return self.blob(self.dir + "/new")

    def layer(self, site, names, removed):
        with tarfile.open(self.dir + "/new", "w") as tar:
            for name in removed:
                dir, file = os.path.split(name)
                tar.addfile(tarfile.TarInfo(os.path.join(self.SITE, dir, ".wh." + file)))
            for name in names:
                tar.add(os.path.join(site, name), os.path.join(self.SITE, name))
        return {"mediaType": "application/vnd.oci.image.layer.v1.tar", **self.blob(self.dir + "/new")}

    def write(self, site, original):
        """Writes the image of `site`, as a layer over the image of `original`."""
        def listed(top):
            return {os.path.relpath(os.path.join(dir, name), top): os.stat(os.path.join(dir, name)).st_ino
                    for dir, _, names in os.walk(top) for name in names}
        old, new = listed(original), listed(site)
        change = self.layer(site, sorted(name for name in new if old.get(name) != new[name]), sorted(set(old) - set(new)))
        config = self.json({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": []}})
        manifest = self.json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                              "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **config}, "layers": [self.base, change]})
        with open(self.dir + "/index.json", "w") as file:
            json.dump({"schemaVersion": 2, "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", **manifest}]}, file)
        with open(self.dir + "/oci-layout", "w") as file:
            file.write('{"imageLayoutVersion": "1.0.0"}')
        return self.dir


class Asker:
    def __init__(self, command, simulate, dir):
        self.command, self.simulate, self.fleet = command, simulate, dir + "/fleet.jsonl"
        with open(self.fleet, "w") as file:
            file.writelines(json.dumps(host) + "\n" for host in MACHINES.values())

    def verify(self, *paths):
        """Returns the answer and the codes of the errors for each machine. Files that use no CUDA have none."""
        done = subprocess.run([self.command, "verify", "--json", "--fleet", self.fleet, *paths], capture_output=True, text=True)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        rows = [row for row in rows if "verdict" in row]
        if not rows and "nothing to check" in done.stderr:
            return None
        if len(rows) != len(MACHINES):
            raise SystemExit("verify %s: status %d: %s" % (" ".join(paths), done.returncode, done.stderr.strip()))
        return [(row["verdict"], {one["code"] for one in row.get("findings", []) if one["severity"] == "error"}) for row in rows]

    def doctor(self, path):
        done = subprocess.run([self.simulate, *SIMULATED, self.command, "doctor", "--json", path], capture_output=True, text=True)
        report = json.loads(done.stdout)
        # The libcuda of the simulated machine has few functions.
        errors = [one for one in report["findings"] if one["severity"] == "error" and "libcuda.so.1 lacks" not in one["message"]]
        verdict = "refused" if errors else "unknown" if report.get("not_judged") else "runs"
        return verdict, {one["code"] for one in errors}

    def exec(self, program):
        done = subprocess.run([self.simulate, *SIMULATED, self.command, "exec", "--", program], capture_output=True, text=True)
        # The libcuda of the simulated machine has few functions.
        errors = [line for line in done.stderr.splitlines() if line.startswith("error[") and "libcuda.so.1 lacks" not in line]
        return "refused" if done.returncode == REFUSED and errors else "starts"


def worst(answers, main):
    """Returns the worst answer. Optional libraries that need an absent library do not count, if there are others."""
    counted = [verdict for path, (verdict, codes) in answers.items() if path == main or codes != {ABSENT}]
    return min(counted or [verdict for verdict, _ in answers.values()], key=WORST_FIRST.index)


def link(path, dir):
    """Links a program to a library, and returns the path of the program."""
    source, program = dir + "/main.c", dir + "/program"
    with open(source, "w") as file:
        file.write("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-o", program, source, "-Wl,--no-as-needed,--unresolved-symbols=ignore-all,-rpath," + os.path.dirname(path), path],
                   check=True, capture_output=True)
    return program


def ask(asker, site, main, optional, dir, image, wheels):
    """Returns for each machine the answers of the front ends."""
    main = main and os.path.join(site, main)
    paths = [path for pattern in optional for path in sorted(glob.glob(os.path.join(site, pattern), recursive=True))]
    files = {path: asker.verify(path) for path in [main] * bool(main) + paths}
    files = {path: answers for path, answers in files.items() if answers}
    machines = []
    directory, in_image = asker.verify(site), asker.verify(image)
    of_wheels = asker.verify(wheels) if wheels else None
    program = main and link(main, dir)
    of_program = program and asker.verify(program)
    for at in range(len(MACHINES)):
        of_files = worst({path: answers[at] for path, answers in files.items()}, main)
        machines.append({"directory": directory[at][0], "image": in_image[at][0], "files": of_files})
        if of_wheels:
            machines[at]["wheels"] = of_wheels[at][0]
        if main:
            machines[at]["main"], machines[at]["program"] = files[main][at][0], of_program[at][0]
    machines[0]["doctor"] = worst({path: asker.doctor(path) for path in files}, main)
    if main:
        machines[0]["exec"] = asker.exec(program)
    return machines


def are_equal(answers):
    """Compares the answers for one machine. A program whose answer is `unknown` starts."""
    environment = {answers[name] for name in ("directory", "image", "wheels", "files", "doctor") if name in answers}
    started = "refused" if answers.get("program") == "refused" else "starts"
    return len(environment) == 1 and answers.get("main") == answers.get("program") and answers.get("exec", started) == started


def check(asker, name, dir, only):
    requirement, main, optional = ENVIRONMENTS[name]
    wheels = download(requirement, dir + "/wheels")
    original = dir + "/site"
    if not os.path.isdir(original):
        pip("install", "--quiet", "--no-index", "--no-compile", "--find-links", dir + "/wheels", "--target", original + ".new", requirement)
        os.rename(original + ".new", original)
    image, asked, differing = Image(dir + "/image", original), 0, 0
    for change, package, new in REPLACEMENTS:
        if only not in change or package and not installed(original, package):
            continue
        wheel = new and download(new, dir + "/../replacements/" + new, "--no-deps")[0]
        for way in ["package", "file"] if new else [None]:
            site = dir + "/changed"
            shutil.rmtree(site, ignore_errors=True)
            shutil.copytree(original, site, copy_function=os.link, symlinks=True)
            if way:
                (replace_package if way == "package" else replace_files)(site, package, wheel)
            given = None
            if way != "file" and (not new or distribution(wheel) == package):
                given = dir + "/given"
                shutil.rmtree(given, ignore_errors=True)
                os.mkdir(given)
                for one in [one for one in wheels if distribution(one) != package] + [wheel] * bool(wheel):
                    os.link(one, os.path.join(given, os.path.basename(one)))
            machines = ask(asker, site, main, optional, dir, image.write(site, original), given)
            for machine, answers in zip(MACHINES, machines):
                row = "%-10s %-15s %-8s %-10s %s" % (name, change, way or "", machine, "  ".join("%s %s" % one for one in answers.items()))
                equal = are_equal(answers)
                print(row + ("" if equal else "  DIFFERENT"), flush=True)
                asked += 1
                differing += not equal
    for left in ("changed", "image", "given"):
        shutil.rmtree(os.path.join(dir, left), ignore_errors=True)
    return asked, differing


def main():
    arguments = argparse.ArgumentParser(description=__doc__, epilog=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("command", help="path of cargo-cudaguard")
    arguments.add_argument("simulate", help="path of simulate (tests/bin/simulate.rs)")
    arguments.add_argument("dir", metavar="DIR", help="directory for the environments")
    arguments.add_argument("--environment", choices=ENVIRONMENTS, help="only this environment")
    arguments.add_argument("--only", metavar="TEXT", default="", help="only replacements whose name contains TEXT")
    options = arguments.parse_args()
    os.makedirs(options.dir, exist_ok=True)
    asker = Asker(os.path.abspath(options.command), os.path.abspath(options.simulate), os.path.abspath(options.dir))
    asked = differing = absent = 0
    started = time.monotonic()
    for name in ENVIRONMENTS:
        if options.environment not in (None, name):
            continue
        try:
            counts = check(asker, name, os.path.join(os.path.abspath(options.dir), name), options.only)
            asked, differing = asked + counts[0], differing + counts[1]
        except Unreachable as error:
            print("not downloaded: %s" % error, flush=True)
            absent += 1
    print("%d machines, %d with different answers; %d s" % (asked, differing, time.monotonic() - started))
    return 1 if differing else 3 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
