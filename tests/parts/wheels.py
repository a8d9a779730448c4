"""Extracts single files from large wheels and source archives without downloading all of them.

Uses pip's own code (its configuration, session and finder), so this file contains no host name. HTTP Range requests read bytes
into a sparse file; a journal next to it lists the ranges that it contains, so an interrupted download continues where it
stopped. If pip's internals have changed, or the server does not support ranges, `pip download` fetches the whole file.
"""
import hashlib, io, logging, os, re, subprocess, sys, tarfile, time, zipfile

TRIES, CHUNK, GAP = 3, 16 << 20, 256 << 10
GLIBCS = (39, 35, 34, 31, 28, 27, 24, 17, 12, 5)


def platforms(processor, glibcs=GLIBCS):
    """Returns the platform tags of wheels for a processor and these releases 2.x of glibc."""
    if processor == "windows":
        return ["win_amd64"]
    older = ["manylinux2014_", "manylinux2010_", "manylinux1_", "linux_"]
    return ["manylinux_2_%d_%s" % (minor, processor) for minor in glibcs] + [name + processor for name in older] + ["any"]


class Unreachable(Exception):
    """A download failed, because there is no network or the index does not have the file. No received data is wrong."""


class NoRanges(Exception):
    """The server does not support Range requests."""


def persist(work, what):
    """Calls `work` up to three times with increasing pauses."""
    for attempt in range(TRIES):
        try:
            return work()
        except (NoRanges, ImportError, AttributeError, TypeError):
            raise
        except Exception as error:  # whatever pip's network stack raises
            if attempt == TRIES - 1:
                raise Unreachable("%s: %s" % (what, error)) from error
            time.sleep(4 ** attempt)


class Pieces(io.RawIOBase):
    """A remote file with the interface of a local one. Stores the bytes that have been read in `path`."""

    def __init__(self, get, path, what, progress):
        self.get, self.path, self.what, self.progress, self.at = get, path, what, progress, 0
        self.have = []
        if os.path.exists(path + ".have"):
            with open(path + ".have") as journal:
                self.have = [tuple(map(int, line.split())) for line in journal if line.endswith("\n")]
        self.size = persist(self._size, what)
        self.file = open(path, "r+b" if os.path.exists(path) else "w+b")
        self.journal = open(path + ".have", "a")

    def _size(self):
        with self._request(0, 1) as reply:
            return int(reply.headers["Content-Range"].rpartition("/")[2])

    def _request(self, start, end):
        reply = self.get(start, end)
        if reply.status_code == 200:
            reply.close()
            raise NoRanges(self.what)
        if reply.status_code != 206:
            reply.close()
            raise OSError("the server answers %d" % reply.status_code)
        return reply

    def missing(self, start, end):
        """Yields the parts of a range that are not downloaded yet."""
        for have_start, have_end in sorted(self.have):
            if have_end <= start or have_start >= end:
                continue
            if have_start > start:
                yield start, have_start
            start = max(start, have_end)
        if start < end:
            yield start, end

    def ensure(self, start, end):
        for gap_start, gap_end in list(self.missing(start, min(end, self.size))):
            while gap_start < gap_end:
                stop = min(gap_start + CHUNK, gap_end)
                persist(lambda: self._piece(gap_start, stop), self.what)
                gap_start = stop

    def _piece(self, start, end):
        with self._request(start, end) as reply:
            data = b"".join(reply.iter_content(1 << 16))
        if len(data) != end - start:
            raise OSError("cut off after %d of %d bytes" % (len(data), end - start))
        self.file.seek(start)
        self.file.write(data)
        self.file.flush()
        self.have.append((start, end))
        self.journal.write("%d %d\n" % (start, end))
        self.journal.flush()
        self.progress(len(data))

    def seekable(self):
        return True

    def readable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=0):
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def read(self, count=-1):
        count = self.size - self.at if count is None or count < 0 else min(count, self.size - self.at)
        self.ensure(self.at, self.at + count)
        self.file.seek(self.at)
        data = self.file.read(count)
        self.at += len(data)
        return data

    def close(self):
        if not self.closed:
            self.file.close()
            self.journal.close()
        super().close()


def in_pieces(spec, downloads, progress, form="--only-binary=:all:", processor="x86_64"):
    """Returns a wheel, or with another `form` a source archive, as a file object that downloads the bytes that are read."""
    from pip._internal.commands import create_command
    from pip._internal.models.target_python import TargetPython
    from pip._vendor.packaging.specifiers import SpecifierSet
    logging.getLogger("pip").setLevel(logging.ERROR)
    project, _, version = spec.partition("==")
    command = create_command("download")
    options, _ = command.parse_args(
        ["--no-deps", form, "--quiet", "--retries", "1", "--timeout", "30", "x"])
    session = command._build_session(options)
    target = TargetPython(platforms=platforms(processor), py_version_info=(3, 11), abis=["cp311", "abi3", "none"],
                          implementation="cp")

    def link():
        finder = command._build_package_finder(options=options, session=session, target_python=target,
                                               ignore_requires_python=True)
        if not finder.find_all_candidates(project):
            raise OSError("pip finds no such project: there is no network, or the index does not have it")
        # If a version has several builds, pip selects one. The order of the index does not matter.
        best = finder.find_best_candidate(project, specifier=SpecifierSet("==" + version)).best_candidate
        if best is None:
            raise Unreachable("%s: pip finds the project, but not this version" % spec)
        return best.link

    link = persist(link, spec)
    if link.is_file:
        return open(link.file_path, "rb")

    def get(start, end):
        return session.get(link.url_without_fragment, stream=True, headers={
            "Range": "bytes=%d-%d" % (start, end - 1), "Accept-Encoding": "identity", "Cache-Control": "no-cache"})

    return Pieces(get, os.path.join(downloads, link.filename), spec, progress)


def download(spec, dir, processor="x86_64", python="3.11"):
    """Returns the path of a wheel in `dir`. pip downloads it unless it exists. This machine does not run it, so any glibc is
    accepted."""
    stem = re.sub("[-_.]+", "_", spec.partition("==")[0]).lower() + "-"

    def find():
        found = os.listdir(dir) if os.path.isdir(dir) else []
        return next((os.path.join(dir, name) for name in found if name.lower().startswith(stem)), None)

    def run():
        call = [sys.executable, "-m", "pip", "download", "--quiet", "--no-cache-dir", "--no-deps", "--only-binary=:all:",
                "--dest", dir, "--python-version", python]
        for platform in platforms(processor, range(39, 4, -1)):
            call += ["--platform", platform]
        done = subprocess.run(call + [spec], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise OSError(done.stderr.strip() or "pip download failed")

    if find() is None:
        persist(run, spec)
    return find()


def digest_of(path):
    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while data := file.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()


def take(spec, wanted, downloads, into, progress, processor="x86_64"):
    """Unpacks the members that `wanted` maps to a place below `into`. Returns {place: sha256}."""
    try:
        remote = in_pieces(spec, downloads, progress, processor=processor)
    except (NoRanges, ImportError, AttributeError, TypeError):
        remote = open(download(spec, os.path.join(downloads, "whole", processor), processor), "rb")
    with remote, zipfile.ZipFile(remote) as wheel:
        members = [(info, wanted(info.filename)) for info in wheel.infolist() if not info.is_dir()]
        members = sorted(((i, place) for i, place in members if place), key=lambda pair: pair[0].header_offset)
        if isinstance(remote, Pieces):
            spans = []
            for info, _ in members:  # one request for adjacent members
                start, end = info.header_offset, info.header_offset + info.compress_size + len(info.filename) + 512
                if spans and start <= spans[-1][1] + GAP:
                    spans[-1][1] = max(spans[-1][1], end)
                else:
                    spans.append([start, end])
            progress(0, sum(b - a for s, e in spans for a, b in remote.missing(s, min(e, remote.size))))
            for start, end in spans:
                remote.ensure(start, end)
        digests = {}
        for info, place in members:
            target = os.path.join(into, place)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            digest = hashlib.sha256()
            with wheel.open(info) as source, open(target, "wb") as out:  # zipfile checks the CRC
                while data := source.read(1 << 20):
                    digest.update(data)
                    out.write(data)
            os.chmod(target, 0o755 if info.external_attr >> 16 & 0o111 or "/bin/" in info.filename else 0o644)
            digests[place] = digest.hexdigest()
        return digests


def take_sources(spec, wanted, downloads, into, progress):
    """Unpacks members of a source archive as `take` does, without its top directory. Does not call `pip download`, which would
    run code of the archive."""
    try:
        remote = in_pieces(spec, downloads, progress, "--no-binary=:all:")
    except (NoRanges, ImportError, AttributeError, TypeError) as error:
        raise Unreachable("%s: cannot use pip's internals: %s" % (spec, error)) from error
    digests = {}
    with remote, tarfile.open(fileobj=io.BytesIO(remote.read())) as archive:
        for member in archive.getmembers():
            place = member.isfile() and wanted(member.name.partition("/")[2])
            if not place:
                continue
            data, target = archive.extractfile(member).read(), os.path.join(into, place)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as out:
                out.write(data)
            digests[place] = hashlib.sha256(data).hexdigest()
    return digests
