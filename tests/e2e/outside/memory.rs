//! Memory of the command on hostile inputs: a few bytes may declare gigabytes. The limit is 256 MiB above the mapped
//! file (`cli/memory.rs`).

use std::time::Duration;

use cudaguard_tests::{Call, Scratch, command, e2e, tools};

/// Writes the inputs, runs the command on each, and prints those that exceed the limit or end by a signal.
const MEASURED: &str = r#"
import bz2, gzip, io, json, lzma, os, struct, sys, tarfile, zipfile, zlib
command, inputs = sys.argv[1], []

def write(name, data, *words):
    with open(name, "wb") as file:
        file.write(data)
    inputs.append((name, words or ("inspect", name)))

def tar(*members):
    out = io.BytesIO()
    for kind, name, size in members:
        member = tarfile.TarInfo(name)
        member.type, member.size = kind, size
        out.write(member.tobuf(tarfile.GNU_FORMAT) + b"a" * size + b"\0" * (-size % 512))
    return out.getvalue()

def image(manifest):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        member = tarfile.TarInfo("manifest.json")
        member.size = len(manifest)
        archive.addfile(member, io.BytesIO(manifest))
    return out.getvalue()

def zipped(name, data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(name, data)
        archive.writestr("second/" + name, data)
    return out.getvalue()

packed = bytearray(lzma.compress(b"x" * 2000))
size = (packed[12] + 1) * 4
header = packed[12:12 + size]
header[header.index(0x21) + 2] = 40
header[-4:] = struct.pack("<I", zlib.crc32(bytes(header[:-4])))
packed[12:12 + size] = header
write("dictionary.tar.xz", bytes(packed))
write("dictionary.whl", zipped("a.xz", bytes(packed)))
zstd = struct.pack("<I", 0xFD2FB528)
write("window.tar.zst", zstd + b"\0\xff\1\0\0" + b"\0" * 50)
write("segment.tar.zst", zstd + b"\xe0" + struct.pack("<Q", 1 << 40) + b"\1\0\0" + b"\0" * 50)
write("zeros.tar.bz2", bz2.compress(b"\0" * (64 << 20)))
write("zeros.xz", lzma.compress(b"\0" * (300 << 20), preset=0))
for kind in b"L", b"x":
    write("names-%s.tar.gz" % kind.decode(), gzip.compress(tar(*[(kind, "././@LongLink", 8 << 20), (b"0", "a.so", 0)] * 40), 1))
write("short-names.tar.gz", gzip.compress(tar(*[(b"L", "././@LongLink", (2 << 20) - 1), (b"0", "a.so", 0)] * 150), 1))
for name in "METADATA", "RECORD":
    write(name + ".whl", zipped("a-1.dist-info/" + name, b"Name: a\n" * (40 << 20)))
entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0)
listed = b"".join(entry + b"d/%07d" % number for number in range(600000))
large = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 600000, 600000, len(listed), 4)
locator = struct.pack("<4sLQL", b"PK\6\7", 0, 4 + len(listed), 1)
last = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xffff, 0xffff, 0xffffffff, 0xffffffff, 0)
write("directory.zip", b"PK\3\4" + listed + large + locator + last)
nested = zipped("a.so", b"\x7fELF" + b"\0" * (300 << 20))
for _ in range(6):
    nested = zipped("a.whl", nested)
write("nested.whl", nested)
deep = b"x"
for _ in range(100):
    deep = gzip.compress(deep)
write("deep.gz", deep)
for number, text in enumerate([b"[" * 3000000, b'[{"Config":"' + b"a" * (8 << 20) + b'"}]', b'{"a":' * 200000]):
    write("image-%d.tar.gz" % number, image(text))
host, fleet = ("verify", "--host"), ("verify", "--fleet")
for number, text in enumerate([b"[" * 3000000, b'{"driver":"' + b"a" * (8 << 20) + b'"}', b"{" + b",".join(b'"k%d":{}' % n for n in range(300000)) + b"}"]):
    for options in host, fleet:
        write("host-%d.json" % number, text, *options, "host-%d.json" % number, sys.executable)
xml = b'<?xml version="1.0"?><!DOCTYPE nvidia_smi_log><nvidia_smi_log'
for number, text in enumerate([b' a="' + b"x" * (8 << 20) + b'">', b">" + b"<a>" * 3000000]):
    write("smi-%d.xml" % number, xml + text, *fleet, "smi-%d.xml" % number, sys.executable)
def elf(sections, body):
    head = b"\x7fELF\2\1\1" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64, 0, 64, 56, 0, 64, len(sections), 0)
    return head + b"".join(sections) + body
note = struct.pack("<III", 10, 8, 1) + b"cudaguard\0\0\0" + b"x" * 8
for number, kind in enumerate([2, 7, 11]):
    section = struct.pack("<IIQQQQIIQQ", 0, kind, 2, 0, 64, 4 << 20, 0, 0, 8, 24)
    write("sections-%d.so" % number, elf([section] * 20000, note * (1 << 17)))
# The first section has the number of sections.
for name, count, size in ("counted", 1 << 40, 200), ("sections", 1 << 16, 64 << 16):
    image = elf([struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, count, 0, 0, 0, 0)], bytes(size))
    write(name + ".so", image[:60] + bytes(4) + image[64:])
member = b"%-16s%-12d%-6d%-6d%-8s%-10d`\n"
table = member % (b"//", 0, 0, 0, b"644", 20 << 20) + b"a" * (20 << 20)
write("names.a", b"!<arch>\n" + table + member % (b"/0", 0, 0, 0, b"644", 0) * 5000)
entry = struct.pack("<HHII", 2, 0x101, 64, 16) + b"\0" * 68
write("entries.fatbin", struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) * 200000) + entry * 200000)
write("text.ptx", b".version 8.0\n.target sm_80\n" * 1000000)
packages = "env/lib/python3.11/site-packages/a-1.dist-info"
os.makedirs(packages)
for name in "METADATA", "RECORD":
    with open(os.path.join(packages, name), "wb") as file:
        file.write(b"Name: a\n")
        file.truncate(4 << 30)
inputs.append(("env", ("inspect", "env")))

# A child of this process would inherit its peak, so a new one measures.
with open("inputs.json", "w") as file:
    json.dump(inputs, file)
os.execv(sys.executable, [sys.executable, "-c", """
import json, os, subprocess, sys
command, inputs = sys.argv[1], json.load(open("inputs.json"))
for name, words in inputs:
    mapped = os.path.getsize(name) if os.path.isfile(name) else 0
    child = subprocess.Popen([command, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if usage.ru_maxrss > (mapped >> 10) + (256 << 10) or os.WIFSIGNALED(status):
        print("%s: %d KiB for %d bytes, status %d" % (" ".join(words), usage.ru_maxrss, mapped, status))
print("measured %d inputs" % len(inputs))
""", command])
"#;

#[e2e(slow)]
fn hostile_inputs_stay_below_the_limit() {
    let scratch = Scratch::new("memory");
    let script = scratch.file("measured.py", MEASURED);
    let call = Call::new(tools::need("python3")).arg(script).arg(command::path()).dir(&*scratch);
    // A debug build decodes slowly.
    let outcome = call.limit(Duration::from_secs(900)).run().success();
    let lines: Vec<_> = outcome.stdout.lines().collect();
    assert!(lines.len() == 1 && lines[0].starts_with("measured "), "{outcome}");
}
