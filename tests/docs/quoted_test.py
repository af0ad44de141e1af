#!/usr/bin/env python3
"""Outputs that the documents show are what the program prints: quoted_test.py LOCKSTEP"""
import subprocess
import sys

# The document, the command, and what the document calls the file.
QUOTED = [
    ("docs/compare.md", "compare tests/fuzz/corpus/megatron/train.log --topology Spectrum-X:g=8",
     ("tests/fuzz/corpus/megatron/train.log", "train.log")),
]

failed = 0
for document, command, (file, called) in QUOTED:
    run = subprocess.run([sys.argv[1], *command.split()], capture_output=True, text=True, check=True)
    printed = run.stdout.replace(file, called)
    if printed not in open(document, encoding="utf-8").read():
        print(f"{document} shows another output of 'lockstep {command}' than:\n{printed}")
        failed += 1
sys.exit(failed > 0)
