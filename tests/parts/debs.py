"""Files out of Debian packages, without installing them.

apt fetches them (its own mirrors and keys; only the component list is widened, in a private sources list), and they are
unpacked here as they are read: neither root nor dpkg is needed, and nothing but the wanted files is written.
"""
import glob, hashlib, os, re, shutil, subprocess, tarfile

from wheels import Unreachable, persist


def mirrors():
    """(address, suite) of the Debian mirrors that this machine's apt uses, security archives left out."""
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
    return [(address, suite) for address, suite in found if "security" not in address + suite]


def fetch(packages, suite, or_newer, downloads):
    """Downloads `packages`, each "name=version"; returns their files, and whether all are of these very versions.

    Debian keeps only the newest version of a package in a release: with `or_newer` that one is taken where the pinned one
    is gone, vouched for by apt's signatures alone.
    """
    if not shutil.which("apt-get"):
        raise Unreachable("%s: this machine has no apt-get" % packages[0])
    address = next((address for address, name in mirrors() if name == suite), None)
    if address is None:
        raise Unreachable("%s: apt on this machine knows no mirror of Debian %s" % (packages[0], suite))
    for folder in ("lists/partial", "cache/archives/partial", "debs"):
        os.makedirs(os.path.join(downloads, folder), exist_ok=True)
    with open(os.path.join(downloads, "sources.list"), "w") as sources:
        sources.write("deb %s %s main contrib non-free\n" % (address, suite))
    apt = ["apt-get", "-q", "-oDir::Etc::sourcelist=" + os.path.join(downloads, "sources.list"),
           "-oDir::Etc::sourceparts=-", "-oDir::State::lists=" + os.path.join(downloads, "lists"),
           "-oDir::Cache=" + os.path.join(downloads, "cache"), "-oAPT::Sandbox::User=root",
           "-oDebug::NoLocking=true", "-oAcquire::Retries=2"]

    def run(*call):
        done = subprocess.run([*apt, *call], cwd=os.path.join(downloads, "debs"), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise OSError(done.stderr.strip() or "apt-get %s failed" % call[0])

    persist(lambda: run("update", "-oAPT::Update::Error-Mode=any"), "apt-get update")
    files, pinned = [], True
    for package in packages:
        name = package.partition("=")[0]
        pattern = os.path.join(downloads, "debs", name + "_*.deb")
        if not glob.glob(pattern):
            try:
                persist(lambda: run("download", package), package)
            except Unreachable as error:
                if not or_newer or "was not found" not in str(error):
                    raise
                pinned = False
                persist(lambda: run("download", name), name)
        files.append(glob.glob(pattern)[0])
    return files, pinned


def content(deb):
    """The package's `data.tar`, as a tar stream: an `ar` archive of three members."""
    file = open(deb, "rb")
    if file.read(8) != b"!<arch>\n":
        raise ValueError("%s is no Debian package" % deb)
    while header := file.read(60):
        name, size = header[:16].strip().rstrip(b"/"), int(header[48:58])
        if name.startswith(b"data.tar"):
            kind = {b".xz": "xz", b".gz": "gz", b"": ""}[name[len(b"data.tar"):]]
            return tarfile.open(fileobj=file, mode="r|" + kind)
        file.seek(size + size % 2, 1)
    raise ValueError("%s holds no data.tar" % deb)


def take(packages, suite, or_newer, wanted, downloads, into):
    """Unpacks what `wanted` maps to a place below `into`; returns {place: sha256, or "-> target" of a link}, and whether
    the packages were the pinned ones."""
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
