"""What the `magika` package says that files are.

    python magika_labels.py FOLDER [FILE…]

Makes files of many kinds in FOLDER, and adds the FILEs and some of Python's own. Prints a JSON list of [path, label, guess]: what it answers, and
what it would answer if it never had to be sure.
"""

import bz2
import gzip
import io
import json
import lzma
import marshal
import pickle
import plistlib
import random
import sqlite3
import struct
import sys
import sysconfig
import tarfile
import wave
import zipfile
import zlib
from email.message import EmailMessage
from pathlib import Path

import numpy
from magika import Magika, PredictionMode

ENGLISH = "The keeper of the lighthouse counted the ships each evening, and wrote their names into a book.\n"
RUSSIAN = "Смотритель маяка каждый вечер считал корабли и записывал их имена в книгу.\n"
JAPANESE = "灯台守は毎晩船を数え、その名前を本に書き留めた。\n"
ROWS = [("ship", "flag", "tons"), *((f"ship {n}", ["NO", "PT", "JP"][n % 3], n * 37 % 911) for n in range(40))]
RECORDS = [dict(zip(ROWS[0], row)) for row in ROWS[1:]]

# Programs and documents of a few lines, by the ending of their names.
TEXTS = {
    "c": '#include <stdio.h>\n#include <stdlib.h>\n\nint main(int argc, char **argv) {\n    for (int i = 1; i < argc; i++) printf("%s\\n", argv[i]);\n    return EXIT_SUCCESS;\n}\n',
    "cpp": '#include <iostream>\n#include <vector>\n\ntemplate <typename T> class Stack {\npublic:\n    void push(T item) { items.push_back(std::move(item)); }\nprivate:\n    std::vector<T> items;\n};\n\nint main() { Stack<int> s; s.push(3); std::cout << "done" << std::endl; }\n',
    "java": 'package org.example;\n\nimport java.util.List;\n\npublic class Main {\n    public static void main(String[] args) {\n        List.of(args).forEach(System.out::println);\n    }\n}\n',
    "js": 'const fs = require("fs");\n\nfunction lines(path) {\n  return fs.readFileSync(path, "utf8").split("\\n");\n}\n\nmodule.exports = { lines };\nconsole.log(lines(process.argv[2]).length);\n',
    "ts": 'interface Ship {\n  name: string;\n  tons: number;\n}\n\nexport function heaviest(ships: Ship[]): Ship | undefined {\n  return ships.reduce((a: Ship, b: Ship) => (a.tons > b.tons ? a : b));\n}\n',
    "go": 'package main\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc main() {\n\tfor i, arg := range os.Args {\n\t\tfmt.Println(i, arg)\n\t}\n}\n',
    "rs": 'use std::collections::HashMap;\n\npub fn count(words: &[&str]) -> HashMap<String, usize> {\n    let mut counts = HashMap::new();\n    for word in words {\n        *counts.entry((*word).to_owned()).or_insert(0) += 1;\n    }\n    counts\n}\n',
    "rb": 'require "set"\n\nclass Ship\n  attr_reader :name\n\n  def initialize(name)\n    @name = name\n  end\nend\n\nships = %w[a b].map { |name| Ship.new(name) }\nputs ships.map(&:name).join(", ")\n',
    "pl": '#!/usr/bin/perl\nuse strict;\nuse warnings;\n\nmy %counts;\nwhile (my $line = <STDIN>) {\n    chomp $line;\n    $counts{$line}++;\n}\nprint "$_ $counts{$_}\\n" for sort keys %counts;\n',
    "php": "<?php\n\nnamespace App;\n\nclass Ship\n{\n    public function __construct(private string $name) {}\n\n    public function name(): string { return $this->name; }\n}\n\necho (new Ship('a'))->name();\n",
    "sh": '#!/bin/bash\nset -euo pipefail\nfor file in "$@"; do\n  if [ -f "$file" ]; then\n    wc -l "$file" | awk \'{ print $1 }\'\n  fi\ndone\n',
    "bat": "@echo off\r\nsetlocal\r\nset NAME=%1\r\nif \"%NAME%\"==\"\" goto usage\r\necho Hello %NAME%\r\ngoto :eof\r\n:usage\r\necho usage: %0 NAME\r\n",
    "ps1": 'param([string]$Path = ".")\n\nGet-ChildItem -Path $Path -Recurse | Where-Object { $_.Length -gt 1MB } |\n    Sort-Object Length -Descending | Select-Object Name, Length | Format-Table -AutoSize\n',
    "sql": "CREATE TABLE ships (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tons INTEGER);\nINSERT INTO ships (name, tons) VALUES ('Aurora', 120), ('Borealis', 300);\nSELECT name, SUM(tons) FROM ships WHERE tons > 100 GROUP BY name ORDER BY 2 DESC;\n",
    "lua": 'local M = {}\n\nfunction M.sum(list)\n  local total = 0\n  for _, value in ipairs(list) do\n    total = total + value\n  end\n  return total\nend\n\nprint(M.sum({ 1, 2, 3 }))\nreturn M\n',
    "hs": 'module Main where\n\nimport qualified Data.Map as Map\n\ncount :: [String] -> Map.Map String Int\ncount = foldr (\\word -> Map.insertWith (+) word 1) Map.empty\n\nmain :: IO ()\nmain = getContents >>= print . count . words\n',
    "tex": "\\documentclass{article}\n\\usepackage{amsmath}\n\\begin{document}\n\\section{Ships}\nThe mass is $m = \\rho V$, hence\n\\begin{equation}\n  F = \\rho g V.\n\\end{equation}\n\\end{document}\n",
    "md": "# Ships\n\nA list of [ships](ships.html):\n\n- **Aurora**, 120 tons\n- *Borealis*, 300 tons\n\n```console\n$ ships --list\n```\n\n## Harbours\n\n| name | depth |\n| --- | --- |\n| north | 7 |\n",
    "rst": "Ships\n=====\n\n.. contents::\n\nThe following are known:\n\n* ``Aurora``\n* ``Borealis``\n\n.. code-block:: python\n\n   print('ships')\n\nHarbours\n--------\n\nSee :ref:`north`.\n",
    "yaml": "version: 2\nships:\n  - name: Aurora\n    tons: 120\n    flags: [NO, SE]\n  - name: Borealis\n    tons: 300\nharbour:\n  depth: 7.5\n  open: true\n",
    "toml": '[package]\nname = "ships"\nversion = "0.1.0"\nedition = "2024"\n\n[dependencies]\nserde = { version = "1", features = ["derive"] }\n\n[[bin]]\nname = "ships"\n',
    "ini": "[server]\nhost = localhost\nport = 8080\n\n; who may come in\n[users]\nadmin = yes\nguest = no\n",
    "html": "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Ships</title></head>\n<body><h1>Ships</h1><ul><li>Aurora</li><li>Borealis</li></ul></body>\n</html>\n",
    "xml": '<?xml version="1.0" encoding="UTF-8"?>\n<ships>\n  <ship tons="120"><name>Aurora</name></ship>\n  <ship tons="300"><name>Borealis</name></ship>\n</ships>\n',
    "svg": '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100" viewBox="0 0 100 100">\n  <circle cx="50" cy="50" r="40" fill="#336699"/>\n  <path d="M10 10 L90 90" stroke="black"/>\n</svg>\n',
    "css": "body {\n  margin: 0;\n  font-family: sans-serif;\n}\n\n.ship:hover > a {\n  color: #336699;\n  transition: color 0.2s ease-in;\n}\n\n@media (max-width: 600px) { .ship { display: none; } }\n",
    "diff": "diff --git a/ships.txt b/ships.txt\nindex 83db48f..bf269f4 100644\n--- a/ships.txt\n+++ b/ships.txt\n@@ -1,3 +1,3 @@\n Aurora\n-Borealis\n+Corona\n Dawn\n",
    "ics": "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Ships//EN\r\nBEGIN:VEVENT\r\nUID:1@example.org\r\nDTSTART:20240101T120000Z\r\nSUMMARY:Departure\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
    "vtt": "WEBVTT\n\n00:00:01.000 --> 00:00:04.000\nThe ships are leaving.\n\n00:00:05.000 --> 00:00:07.500\nThe harbour is empty.\n",
    "srt": "1\n00:00:01,000 --> 00:00:04,000\nThe ships are leaving.\n\n2\n00:00:05,000 --> 00:00:07,500\nThe harbour is empty.\n",
    "ps": "%!PS-Adobe-3.0\n%%BoundingBox: 0 0 200 200\n/Helvetica findfont 12 scalefont setfont\n72 120 moveto\n(Ships) show\nshowpage\n%%EOF\n",
    "rtf": "{\\rtf1\\ansi\\deff0{\\fonttbl{\\f0 Times New Roman;}}\n\\f0\\fs24 The keeper counted the \\b ships\\b0 .\\par\n}\n",
    "dockerfile": "FROM debian:12-slim\nRUN apt-get update && apt-get install -y --no-install-recommends curl\nWORKDIR /app\nCOPY . .\nEXPOSE 8080\nCMD [\"./ships\", \"--serve\"]\n",
    "makefile": "CC = cc\nCFLAGS = -O2 -Wall\n\nships: main.o list.o\n\t$(CC) $(CFLAGS) -o $@ $^\n\n%.o: %.c\n\t$(CC) $(CFLAGS) -c $<\n\n.PHONY: clean\nclean:\n\trm -f ships *.o\n",
    "proto": 'syntax = "proto3";\n\npackage ships.v1;\n\nmessage Ship {\n  string name = 1;\n  uint32 tons = 2;\n  repeated string flags = 3;\n}\n\nservice Harbour {\n  rpc List(Ship) returns (stream Ship);\n}\n',
    "swift": 'import Foundation\n\nstruct Ship: Codable {\n    let name: String\n    var tons: Int\n}\n\nlet ships = [Ship(name: "Aurora", tons: 120)]\nguard let first = ships.first else { fatalError() }\nprint("\\(first.name): \\(first.tons)")\n',
    "kt": 'package org.example\n\ndata class Ship(val name: String, val tons: Int)\n\nfun main() {\n    val ships = listOf(Ship("Aurora", 120))\n    ships.filter { it.tons > 100 }.forEach { println(it.name) }\n}\n',
    "pem": "-----BEGIN CERTIFICATE-----\n" + "MIIBszCCAVmgAwIBAgIUQx3Zk0J1m0lC9d8o2w7r5c1vXxYwCgYIKoZIzj0EAwIw\n" * 6 + "-----END CERTIFICATE-----\n",
}


def png():
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(range(y, y + 96)) for y in range(32))
    header = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def bmp():
    pixels = bytes(range(192)) * 16
    return b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, 32, 32, 1, 24, 0, len(pixels), 2835, 2835, 0, 0) + pixels


def gif():
    return b"GIF89a" + struct.pack("<HHBBB", 8, 8, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff" + b",\0\0\0\0\x08\0\x08\0\0\x02\x0e\x8c\x8f\xa9\xcb\xed\x0f\xa3\x9c\xb4\xda\x8b\xb3>\x05\0;"


def wav():
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(struct.pack("<4000h", *((n * 531) % 20000 - 10000 for n in range(4000))))
    return file.getvalue()


def pdf():
    parts = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>"]
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % (number, part) for number, part in enumerate(parts, 1))
    return b"%PDF-1.4\n" + body + b"trailer << /Root 1 0 R /Size 4 >>\nstartxref\n%d\n%%%%EOF\n" % (9 + len(body))


def archive(entries):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries.items():
            made.writestr(name, content)
    return file.getvalue()


def tar():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as made:
        for name in ("ships.txt", "harbours.txt"):
            entry = tarfile.TarInfo(name)
            entry.size = len(ENGLISH)
            made.addfile(entry, io.BytesIO(ENGLISH.encode()))
    return file.getvalue()


def database(path):
    connection = sqlite3.connect(path)
    connection.execute("create table ships (name text, flag text, tons integer)")
    connection.executemany("insert into ships values (?, ?, ?)", ROWS[1:])
    connection.commit()
    connection.close()
    return path.read_bytes()


def arrays(save, *given, **named):
    file = io.BytesIO()
    save(file, *given, **named)
    return file.getvalue()


def mail():
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "keeper@example.org", "harbour@example.org", "Ships"
    message["Date"], message["Message-ID"] = "Mon, 01 Jan 2024 12:00:00 +0000", "<1@example.org>"
    message.set_content(ENGLISH * 3)
    return message.as_bytes()


def files(folder):
    """Names and contents."""
    number = random.Random(7)
    noise = number.randbytes(20_000)
    word = {"[Content_Types].xml": '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'}
    word |= {"_rels/.rels": "<Relationships/>", "word/document.xml": f"<w:document><w:p>{ENGLISH * 20}</w:p></w:document>"}
    book = {"mimetype": "application/epub+zip", "META-INF/container.xml": "<container/>", "OEBPS/1.xhtml": f"<html>{ENGLISH}</html>"}
    jar = {"META-INF/MANIFEST.MF": "Manifest-Version: 1.0\r\nMain-Class: Main\r\n", "Main.class": b"\xca\xfe\xba\xbe\0\0\0\x34" + noise[:300]}
    yield from ((f"text.{ending}", text.encode()) for ending, text in TEXTS.items())
    # Long ones, of which the middle is not looked at.
    yield from ((f"long.{ending}", TEXTS[ending].encode() * 60) for ending in ("c", "sql", "css", "md"))
    yield from {
        "empty": b"",
        "one byte": b"a",
        "seven bytes": b"seven b",
        "seven bytes that are no text": b"\xff\xfe\0\1\2\3\x80",
        "eight bytes": b"eight by",
        "spaces": b" " * 6000,
        "few bytes between spaces": b" " * 5000 + b"abc" + b"\n" * 5000,
        "zeros": bytes(9000),
        "english": ENGLISH.encode() * 30,
        "russian": RUSSIAN.encode() * 30,
        "japanese": JAPANESE.encode() * 30,
        "latin1": "Le marché ouvre à six heures, où les pêcheurs dînent.\n".encode("latin-1") * 30,
        "utf16": (ENGLISH * 10).encode("utf-16"),
        "noise": noise,
        "letters": "".join(number.choices("abcdefghijklmnopqrstuvwxyz \n", k=5000)).encode(),
        "rows.csv": "".join(f"{a},{b},{c}\n" for a, b, c in ROWS).encode(),
        "rows.tsv": "".join(f"{a}\t{b}\t{c}\n" for a, b, c in ROWS).encode(),
        "rows.json": json.dumps(RECORDS, indent=2).encode(),
        "rows.jsonl": "".join(json.dumps(record) + "\n" for record in RECORDS).encode(),
        "rows.pickle": pickle.dumps(RECORDS),
        "rows.xml.plist": plistlib.dumps(RECORDS),
        "rows.plist": plistlib.dumps(RECORDS, fmt=plistlib.FMT_BINARY),
        "rows.sqlite": database(folder / "rows.sqlite"),
        "rows.npy": arrays(numpy.save, numpy.arange(500, dtype=numpy.float32)),
        "rows.npz": arrays(numpy.savez_compressed, one=numpy.arange(500), two=numpy.ones((30, 30))),
        "module.pyc": b"\xa7\r\r\n" + bytes(12) + marshal.dumps(compile("def f(x):\n    return [x + n for n in range(9)]\n", "m.py", "exec")),
        "picture.png": png(),
        "picture.bmp": bmp(),
        "picture.gif": gif(),
        "sound.wav": wav(),
        "page.pdf": pdf(),
        "archive.zip": archive({"a.txt": ENGLISH, "b/c.txt": RUSSIAN}),
        "letter.docx": archive(word),
        "book.epub": archive(book),
        "program.jar": archive(jar),
        "archive.tar": tar(),
        "archive.tar.gz": gzip.compress(tar(), mtime=0),
        "text.bz2": bz2.compress(ENGLISH.encode() * 30),
        "text.xz": lzma.compress(ENGLISH.encode() * 30),
        "text.zlib": zlib.compress(ENGLISH.encode() * 30),
        "letter.eml": mail(),
        "module.wasm": b"\0asm\1\0\0\0\1\x07\1\x60\2\x7f\x7f\1\x7f\3\2\1\0\7\7\1\3add\0\0\n\x09\1\7\0\x20\0\x20\1\x6a\x0b",
    }.items()


def main(folder, more):
    paths = []
    for name, content in files(folder):
        paths.append(folder / name)
        paths[-1].write_bytes(content)
    # Modules, and libraries where there are any.
    own = Path(sysconfig.get_path("stdlib"))
    paths += sorted(own.glob("*.py"))[:8] + sorted((own / "lib-dynload").glob("*.so"))[:4]
    paths += map(Path, more)
    label = lambda result: str(result.prediction.output.label)
    sure, guess = (Magika(prediction_mode=mode) for mode in (PredictionMode.HIGH_CONFIDENCE, PredictionMode.BEST_GUESS))
    answers = zip(paths, sure.identify_paths(paths), guess.identify_paths(paths))
    print(json.dumps([[str(path), label(one), label(other)] for path, one, other in answers]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
