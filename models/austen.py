#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the texts that the model in the box is trained and measured on: the six novels of Jane Austen (public
domain) out of the Debian package r-cran-janeaustenr.

    models/austen.py FOLDER [PACKAGE.deb]

FOLDER/train/ gets five of them, FOLDER/persuasion.txt is the sixth, which no training run may see. Python and apt are
enough: neither R nor root nor another package is needed, since tests/bench/english_text.py reads R's files.
Without PACKAGE.deb the package is fetched with `apt-get download`.

What is changed about the text:
  - a paragraph is one line, and paragraphs are apart by one empty line: where the lines of a page ended is no part of
    the language. Lines are joined with a blank; behind a dash (--) without one, as dashes stand within lines.
  - several blanks become one: two of the novels put two after a sentence, the others one.
  - underscores are left out: three of the novels mark italics with them.
  - a note about the edition behind the end of Northanger Abbey is left out: it is not by Austen.
Nothing else: headings, quotes, dashes and spelling are as in the package."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "tests", "bench"))
sys.dont_write_bytecode = True
import english_text  # noqa: E402

TRAINED = ("emma", "mansfieldpark", "northangerabbey", "prideprejudice", "sensesensibility")
HELD_OUT = "persuasion"
NOTE = b"A NOTE ON THE TEXT"


def paragraphs(lines):
    """The lines of each paragraph, which empty lines end."""
    found = []
    for line in [*lines, b""]:
        line = re.sub(rb"\s+", b" ", line.replace(b"_", b"")).strip()
        if line == NOTE:
            return
        if line:
            found.append(line)
        elif found:
            yield found
            found = []


def join(lines):
    text = lines[0]
    for line in lines[1:]:
        text += line if text.endswith(b"--") else b" " + line
    return text


def write(path, lines):
    text = b"\n\n".join(join(paragraph) for paragraph in paragraphs(lines)) + b"\n"
    text.decode()  # the tokenizer wants UTF-8
    with open(path + ".part", "wb") as file:
        file.write(text)
    os.replace(path + ".part", path)
    print(f"{path}: {len(text)} bytes")


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit("usage: austen.py FOLDER [PACKAGE.deb]")
    out, package = sys.argv[1], os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
    os.makedirs(os.path.join(out, "train"), exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        english_text.unpack(folder, package)
        for name in TRAINED:
            write(os.path.join(out, "train", name + ".txt"), english_text.novel(folder, name))
        write(os.path.join(out, HELD_OUT + ".txt"), english_text.novel(folder, HELD_OUT))


if __name__ == "__main__":
    main()
