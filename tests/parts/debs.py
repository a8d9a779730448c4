"""Extracts files from Debian packages without installing them.

apt downloads the packages with its configured mirrors and keys; a private sources list adds components. This module unpacks
them as a stream. It needs neither root nor dpkg, and writes only the selected files.
"""
import glob, hashlib, os, re, shutil, subprocess, tarfile

from wheels import Unreachable, persist


# Debian's own mirror, for machines with another distribution. The package debian-archive-keyring has its keys.
DEBIAN = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def is_debian(path="/etc/os-release"):
    """Returns true unless this machine has another distribution, whose mirrors do not have the releases of Debian."""
    return not os.path.exists(path) or re.search(r"^ID=\"?debian\b", open(path).read(), re.M) is not None


def mirrors():
    """Returns (address, suite) of each mirror in the configuration of apt."""
    found = []
    for path in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*.list"))]:
        if os.path.exists(path):
            for line in open(path, errors="replace"):
                words = re.sub(r"\[[^]]*\]", "", line).split()
                if len(words) > 3 and words[0] == "deb":
                    found.append((words[1], words[2]))
    for path in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")):
        for stanza in re.split(r"\n\s*\n", open(path, errors="replace").read()):
            fields = dict(re.findall(r"^(\w[\w-]*):[ \t]*(.*)$", stanza, re.M))
            for address in fields.get("URIs", "").split():
                for suite in fields.get("Suites", "").split():
                    found.append((address, suite))
    return found


def fetch(packages, suite, or_newer, downloads):
    """Downloads `packages`, each "name=version" or "name:architecture=version". Returns their files, and whether all have
    exactly these versions.

    Debian keeps only the newest version of a package in a release. With `or_newer` a newer version replaces one that is no
    longer available; only apt's signatures then verify it. The name of a library package may contain another version.
    """
    if not shutil.which("apt-get"):
        raise Unreachable("%s: apt-get is not installed" % packages[0])
    known, signed = mirrors(), ""
    if not is_debian():
        if not os.path.exists(KEYRING):
            raise Unreachable("%s: this machine has no keys of Debian (apt install debian-archive-keyring)" % packages[0])
        known, signed = [(DEBIAN + ("-security" if suite.endswith("-security") else ""), suite)], "[signed-by=%s] " % KEYRING
    # A mirror of one release also has the others, but the archive of security updates does not.
    known.sort(key=lambda mirror: mirror[1] != suite)
    address = next((address for address, name in known if name == suite or "-" not in name + suite), None)
    if address is None:
        raise Unreachable("%s: apt on this machine has no mirror of Debian %s" % (packages[0], suite))
    for dir in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(downloads, dir), exist_ok=True)
    with open(os.path.join(downloads, "sources.list"), "w") as sources:
        sources.write("deb %s%s %s main contrib non-free\n" % (signed, address, suite))
    apt = ["-q", "-oDir::Etc::sourcelist=" + os.path.join(downloads, "sources.list"),
           "-oDir::Etc::sourceparts=-", "-oDir::State::lists=" + os.path.join(downloads, "lists"),
           "-oDir::Cache=" + os.path.join(downloads, "cache"), "-oAPT::Sandbox::User=root",
           "-oDebug::NoLocking=true", "-oAcquire::Retries=2"]
    foreign = sorted({package.partition("=")[0].partition(":")[2] for package in packages} - {""})
    if foreign:
        own = subprocess.run(["dpkg", "--print-architecture"], stdout=subprocess.PIPE, text=True, check=True)
        apt += ["-oAPT::Architectures::=" + name for name in [own.stdout.strip(), *foreign]]

    def run(program, *call, into=downloads):
        done = subprocess.run([program, *apt, *call], cwd=into, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise OSError(done.stderr.strip() or "%s %s failed" % (program, call[0]))
        return done.stdout

    def newest(name):
        """Returns the package with the highest version in its name that the release has."""
        pattern = "[0-9.]+".join(re.escape(text) for text in re.split(r"[\d.]+", name))
        output = run("apt-cache", "--names-only", "search", "^%s$" % pattern)
        names = [line.split()[0] for line in output.splitlines()]
        return max(names, key=lambda one: [int(number) for number in re.findall(r"\d+", one)], default=name)

    persist(lambda: run("apt-get", "update", "-oAPT::Update::Error-Mode=any"), "apt-get update")
    files, pinned = [], True
    for package in packages:
        name = package.partition("=")[0]
        dir = os.path.join(downloads, "debs", name)
        os.makedirs(dir, exist_ok=True)
        if not glob.glob(dir + "/*.deb"):
            try:
                persist(lambda: run("apt-get", "download", package, into=dir), package)
            except Unreachable as error:
                if not or_newer or not re.search("was not found|Unable to locate", str(error)):
                    raise
                pinned = False
                persist(lambda: run("apt-get", "download", newest(name), into=dir), name)
        files += glob.glob(dir + "/*.deb")
    return files, pinned


def content(deb):
    """Opens `data.tar` of a package as a tar stream. A package is an `ar` archive of three members."""
    file = open(deb, "rb")
    if file.read(8) != b"!<arch>\n":
        raise ValueError("%s is not a Debian package" % deb)
    while header := file.read(60):
        name, size = header[:16].strip().rstrip(b"/"), int(header[48:58])
        if name.startswith(b"data.tar"):
            kind = {b".xz": "xz", b".gz": "gz", b"": ""}[name[len(b"data.tar"):]]
            return tarfile.open(fileobj=file, mode="r|" + kind)
        file.seek(size + size % 2, 1)
    raise ValueError("%s has no data.tar" % deb)


def take(packages, suite, or_newer, wanted, downloads, into):
    """Unpacks the files that `wanted` maps to a place below `into`. Returns {place: sha256, or "-> target" of a link}, and
    whether the packages have the pinned versions."""
    digests = {}
    files, pinned = fetch(packages, suite, or_newer, downloads)
    for deb in files:
        with content(deb) as tar:
            for entry in tar:
                place = None if entry.isdir() else wanted(entry.name.removeprefix("./"))
                if not place:
                    continue
                target = os.path.join(into, place)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                if os.path.lexists(target):
                    os.unlink(target)
                if entry.issym():
                    os.symlink(entry.linkname, target)
                    digests[place] = "-> " + entry.linkname
                elif entry.isreg():
                    digest = hashlib.sha256()
                    with tar.extractfile(entry) as source, open(target, "wb") as out:
                        while data := source.read(1 << 20):
                            digest.update(data)
                            out.write(data)
                    os.chmod(target, 0o755 if entry.mode & 0o111 else 0o644)
                    digests[place] = digest.hexdigest()
                else:
                    raise ValueError("%s: %s is neither a file nor a symbolic link" % (deb, entry.name))
    return digests, pinned
