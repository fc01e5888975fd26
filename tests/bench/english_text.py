#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes an English text to measure perplexity on: a novel of Jane Austen (public domain) out of the Debian
package r-cran-janeaustenr. Needs neither R nor root: the package is fetched with apt-get download and unpacked
with dpkg-deb into a temporary folder.

    english_text.py OUT.txt [NOVEL]        NOVEL: persuasion (default), emma, mansfieldpark, northangerabbey,
                                           prideprejudice, sensesensibility

R keeps the data of a package in two files: an index (.rdx, a serialized list name -> offset and length) and the
values (.rdb, each: 4 bytes size, then zlib). Serialization is the XDR form of "R Internals", section 1.8."""

import hashlib
import os
import struct
import subprocess
import sys
import tempfile
import zlib

PACKAGE = "r-cran-janeaustenr"
DATA = "usr/lib/R/site-library/janeaustenr/data/Rdata"

# types of R's objects, as "R Internals", section 1.1, numbers them
SYMBOL, PAIRS, STRING, LOGICAL, INTEGER, REAL, STRINGS, LIST = 1, 2, 9, 10, 13, 14, 16, 19
REFERENCE, NOTHING, GLOBAL = 255, 254, 253
HAS_ATTRIBUTES, HAS_TAG = 1 << 9, 1 << 10


class Reader:
    """Values of one serialized object: lists become dict (named) or list, character vectors lists of bytes."""

    def __init__(self, data):
        self.data, self.at, self.seen = data, 0, []
        if self.take(2) != b"X\n":
            raise ValueError("not R's XDR serialization")
        version, _, _ = self.word(), self.word(), self.word()
        if version == 3:
            self.take(self.word())  # the encoding of strings without a mark
        elif version != 2:
            raise ValueError(f"serialization version {version}, 2 and 3 are known")

    def take(self, n):
        if n < 0 or self.at + n > len(self.data):
            raise ValueError("serialization ends too early")
        self.at += n
        return self.data[self.at - n : self.at]

    def word(self):
        return struct.unpack(">i", self.take(4))[0]

    def attributes(self, flags):
        return self.value() if flags & HAS_ATTRIBUTES else {}

    def pairs(self, flags):
        found = {}
        while flags & 0xFF == PAIRS:
            self.attributes(flags)
            tag = self.value() if flags & HAS_TAG else None
            found[tag] = self.value()
            flags = self.word()
        if flags & 0xFF != NOTHING:
            raise ValueError("a list of pairs that does not end")
        return found

    def value(self):
        flags = self.word()
        kind = flags & 0xFF
        if kind in (NOTHING, GLOBAL):
            return None
        if kind == REFERENCE:
            return self.seen[(flags >> 8 or self.word()) - 1]
        if kind == SYMBOL:
            self.seen.append(self.value().decode())
            return self.seen[-1]
        if kind == PAIRS:
            return self.pairs(flags)
        if kind == STRING:
            n = self.word()
            return None if n == -1 else self.take(n)
        n = self.word()
        if kind in (LOGICAL, INTEGER):
            made = [self.word() for _ in range(n)]
        elif kind == REAL:
            made = list(struct.unpack(f">{n}d", self.take(8 * n)))
        elif kind in (STRINGS, LIST):
            made = [self.value() for _ in range(n)]
        else:
            raise ValueError(f"an object of type {kind} is not known here")
        names = (self.attributes(flags) or {}).get("names")
        return dict(zip((name.decode() for name in names), made)) if names else made


def novel(folder, name):
    with open(os.path.join(folder, DATA + ".rdx"), "rb") as file:
        index = Reader(zlib.decompress(file.read(), zlib.MAX_WBITS | 32)).value()["variables"]
    if name not in index:
        sys.exit(f"english_text.py: there is no {name} in {PACKAGE}; it has {', '.join(sorted(index))}")
    offset, size = index[name]
    with open(os.path.join(folder, DATA + ".rdb"), "rb") as file:
        file.seek(offset)
        return Reader(zlib.decompress(file.read(size)[4:])).value()


def unpack(folder, package=None):
    """Into the folder; without a file the package is fetched. Returns the file's name."""
    if package is None:
        subprocess.run(["apt-get", "-q", "download", PACKAGE], cwd=folder, check=True, stdout=sys.stderr)
        package = [file for file in os.listdir(folder) if file.endswith(".deb")][0]
    subprocess.run(["dpkg-deb", "-x", package, "."], cwd=folder, check=True)
    return os.path.basename(package)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: english_text.py OUT.txt [NOVEL]")
    out, name = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "persuasion"
    with tempfile.TemporaryDirectory() as folder:
        package = unpack(folder)
        text = b"\n".join(novel(folder, name)) + b"\n"
    with open(out + ".part", "wb") as file:
        file.write(text)
    os.replace(out + ".part", out)
    print(f"{out}: {name}, {len(text)} bytes, sha256 {hashlib.sha256(text).hexdigest()}, from {package}")


if __name__ == "__main__":
    main()
