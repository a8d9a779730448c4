"""Reads the names that a shared library exports from the start of its file.

.gnu.hash, .dynsym and .dynstr are at the start of a file; the dynamic section with their addresses is at the end. This module
finds them by their consistency: a candidate is a hash table only if every hash in it is the hash of its symbol's name.
"""
import struct


class More(Exception):
    """The tables extend beyond the part that was read."""


class Patched(ValueError):
    """patchelf moved the tables to the end of the file, so the whole file must be read."""


def gnu_hash(name):
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def text(data, at):
    end = data.find(b"\0", at)
    if end < 0:
        raise More
    return data[at:end]


def numbers(data, form, at):
    if at + struct.calcsize(form) > len(data):
        raise More
    return struct.unpack_from(form, data, at)


def hash_table(data, at, limit):
    """Parses a .gnu.hash at this place. Returns (first symbol, number of symbols, end, start of the hashes), or None."""
    buckets, first, filters, shift = numbers(data, "<4I", at)
    if not (0 < buckets < 1 << 22 and 0 < first < 1 << 22 and 0 < filters < 1 << 20
            and filters & (filters - 1) == 0 and 0 < shift < 64):
        return None
    hashes = at + 16 + filters * 8 + buckets * 4
    if hashes > limit:
        return None
    starts = numbers(data, "<%dI" % buckets, hashes - buckets * 4)
    last = max(starts)
    if last == 0 or last > 1 << 22 or any(start and start < first for start in starts):
        return None
    while hashes + (last - first) * 4 + 4 <= limit:
        if numbers(data, "<I", hashes + (last - first) * 4)[0] & 1:
            return first, last + 1, hashes + (last + 1 - first) * 4, hashes
        last += 1
    return None


def symbols(data, at, count):
    """Parses a .dynsym at this place. Returns its symbols, or None."""
    numbers(data, "<%ds" % (24 * count), at)
    found = [struct.unpack_from("<IBBHQQ", data, at + 24 * index) for index in range(count)]
    plausible = all(info >> 4 in (0, 1, 2, 10) and info & 15 <= 10 and other <= 3 and name < 1 << 28
                    for name, info, other, _, _, _ in found[:64])
    return found if plausible and not any(data[at:at + 24]) else None


def defined(table, strings, data, first):
    """Returns the names of the exported symbols."""
    names = set()
    for name, info, other, section, _, _ in table[first:]:
        if section and info >> 4 in (1, 2, 10) and other & 3 in (0, 3):
            names.add(text(data, strings + name).decode("utf-8", "replace"))
    return names


def read_start(data):
    """Returns the exported names from the first bytes of a file."""
    if data[:6] != b"\x7fELF\2\1":
        raise ValueError("not a 64-bit little-endian ELF file")
    headers, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    start = headers + size * count
    segments = [numbers(data, "<IIQQQQQQ", headers + index * size) for index in range(count)]
    limit = next(segment[5] for segment in segments if segment[0] == 1 and segment[2] == 0)
    if b"X" * 64 in data[start:start + (1 << 18)]:
        raise Patched("patchelf moved its tables to the end")
    missing = False
    for at in range((start + 3) & ~3, min(limit, len(data), start + (1 << 20)), 4):
        try:
            table = hash_table(data, at, limit)
        except More:
            table, missing = None, True
        if not table:
            continue
        first, number, end, hashes = table
        # GNU ld writes the symbols after the hash table and the names after the symbols. lld writes the symbols before it.
        places = [((end + 7) & ~7, None)]
        places += [(place, end) for place in range((start + 7) & ~7, min(at, start + 4096), 8)]
        for place, strings in places:
            found = symbols(data, place, number)
            strings = strings or place + 24 * number
            if found and all(
                    gnu_hash(text(data, strings + found[index][0])) | 1
                    == numbers(data, "<I", hashes + (index - first) * 4)[0] | 1 for index in range(first, number)):
                return defined(found, strings, data, first)
    if missing or len(data) < limit:
        raise More
    raise ValueError("no hash table found")


def read_all(data):
    """Returns the exported names of a complete file, using its dynamic section."""
    headers, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQQQ", data, headers + index * size) for index in range(count)]
    offset, length = next((segment[2], segment[5]) for segment in segments if segment[0] == 2)

    def place(address):
        return next(address - virtual + at for kind, _, at, virtual, _, held, _, _ in segments
                    if kind == 1 and virtual <= address < virtual + held)

    tags = {}
    for entry in range(offset, offset + length, 16):
        tag, value = struct.unpack_from("<QQ", data, entry)
        tags.setdefault(tag, value)
    if 0x6FFFFEF5 in tags:
        first, number, _, _ = hash_table(data, place(tags[0x6FFFFEF5]), len(data))
    else:  # DT_HASH: its chain has an entry for each symbol
        first, number = 1, struct.unpack_from("<II", data, place(tags[4]))[1]
    return defined(symbols(data, place(tags[6]), number), place(tags[5]), data, first)
