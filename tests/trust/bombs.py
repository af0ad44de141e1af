"""Inputs that are meant to break a reader: bomb(folder) makes them all and returns name: path."""
import gzip
import os
import pathlib

MIB = 1 << 20


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def packed_blanks(path, mebibytes):
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(mebibytes):
            file.write(b" " * MIB)
    return path


def long_line(path, mebibytes):
    """One line; the file takes no room on disk."""
    with open(path, "wb") as file:
        file.truncate(mebibytes * MIB)
    return path


def billion_laughs():
    text = "a: &a [x,x,x,x,x,x,x,x,x]\n"
    for i in range(9):
        text += f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n"
    return text


def laughing_xml():
    entities = "".join(f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(9))
    return f'<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">{entities}]><algo name="&j;"/>'


def bombs(folder):
    folder = pathlib.Path(folder)
    strange = folder / "späte Läufe\n 測試 'x'"
    strange.mkdir()
    made = {
        "nothing": write(folder / "nothing", b""),
        "zeros": write(folder / "zeros", bytes(100_000)),
        "noise": write(folder / "noise", bytes((i * 2654435761 >> 13) & 255 for i in range(100_000))),
        "arrays in arrays": write(folder / "nest.json", "[" * 1_000_000),
        "objects in objects": write(folder / "objects.json", '{"a":' * 1_000_000),
        "maps in maps": write(folder / "maps.yaml", "{a: " * 1_000_000),
        "lists in lists": write(folder / "lists.yaml", "- " * 100_000),
        "aliases of aliases": write(folder / "laughs.yaml", billion_laughs()),
        "elements in elements": write(folder / "nest.xml", "<a>" * 1_000_000),
        "entities of entities": write(folder / "laughs.xml", laughing_xml()),
        "10^9 nodes": write(folder / "nodes.txt", "1000000000 8 1000000000 1000000000 1000000000 H100\n1 2\n"),
        "2^31 - 1 nodes": write(folder / "most.txt", "2147483647 8 1 1 2147483646 H100\n1 2\n"),
        "10^9 layers": write(folder / "layers.txt", "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 "
                             "ep: 1 pp: 1 vpp: 8 ga: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0\n1000000000\n"),
        "negative numbers": write(folder / "negative.txt", "-1 8 1 1 -4 H100\n-1 -2 -3\n"),
        "10^9 values": write(folder / "values.json", '{"schema": "x", "ranks": 1e999, "n": -9223372036854775809}'),
        "a gzip bomb": packed_blanks(folder / "bomb.gz", 64),
        "half a gzip file": write(folder / "half.gz", packed_blanks(folder / "whole.gz", 1).read_bytes()[:500]),
        "a line of 64 MiB": long_line(folder / "line.txt", 64),
        "a pickle": write(folder / "workload.pkl", b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94K\x01s."),
        "a pickle by another name": write(folder / "pickle.csv", b"\x80\x03}q\x00X\x01\x00\x00\x00aq\x01K\x01s."),
        "a folder": folder,
        "nothing there": folder / "none",
        "a device without end": pathlib.Path("/dev/zero"),
        "one zero byte": write(folder / "zero", b"\0"),
        "text in UTF-16": write(folder / "utf16", "1 2 3\n".encode("utf-16")),
        "words for a terminal": write(folder / "escapes", b"\x1b[2J\x1b]0;gone\x07\n" * 3),
        "one long word": write(folder / "word", b"x" * 1_000_000),
        "a path for a terminal": write(folder / "a\x1b[2J\nlockstep: all is well", "{"),
        "a path with blanks and signs": write(strange / "e ü.json", "{"),
    }
    os.symlink("loop", folder / "loop")
    made["a link to itself"] = folder / "loop"
    locked = write(folder / "locked", "x")
    if os.geteuid() != 0:
        locked.chmod(0)
        made["a file that may not be read"] = locked
    return made
