#!/usr/bin/env python3
"""One name, one class: two classes of the same name in the same namespace are one to the linker, which
then takes the destructor of one of them for both.

Classes of anonymous namespaces do not count. The layout that clang-format keeps is relied upon:
namespaces open and close, and their classes begin, in the first column.
"""
import collections
import re
import subprocess
import sys

NAMESPACE = re.compile(r"namespace ?([\w:]*) ?\{(?!.*\})")
CLASS = re.compile(r"(?:class|struct|union|enum(?: class| struct)?) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: *:[^:].*)? *\{")


def classes(path):
    """Names with their namespace, and the lines of their definitions."""
    spaces = []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        if opened := NAMESPACE.match(line):
            spaces.append(opened[1])
        elif line.startswith("}  // namespace"):
            spaces.pop()
        elif (defined := CLASS.match(line)) and "" not in spaces:
            yield "::".join([*spaces, defined[1]]), f"{path}:{number}"


paths = subprocess.run(["find", ".", "-path", "./build*", "-prune", "-o", "-path", "./.venv", "-prune", "-o", "-regex", r".*\.\(h\|cc\|cu\|cuh\)", "-print"],
                       capture_output=True, text=True, check=True).stdout.split()
places = collections.defaultdict(list)
for path in paths:
    for name, place in classes(path):
        places[name].append(place)
twice = {name: found for name, found in places.items() if len(found) > 1}
for name, found in sorted(twice.items()):
    print(f"{name} is defined at {' and at '.join(found)}")
if len(places) < 500:
    print(f"only {len(places)} classes found")
sys.exit(1 if twice or len(places) < 500 else 0)
