#!/usr/bin/env python3
"""The sources that a build compiles, each with its command, those that are compiled together too
(LOCKSTEP_UNITY: a made file names them).

Usage: tests/source/compiled.py <compile_commands.json>     one path a line
"""
import json
import re
import sys


def compiled(path):
    """(source, command), in the order of the file."""
    for entry in json.load(open(path, encoding="utf-8")):
        if re.search(r"/Unity/unity_\d+_\w+\.\w+$", entry["file"]):
            for source in re.findall(r'^#include "(.+)"$', open(entry["file"], encoding="utf-8").read(), re.M):
                yield source, entry["command"]
        else:
            yield entry["file"], entry["command"]


if __name__ == "__main__":
    for source, command in compiled(sys.argv[1]):
        print(source)
