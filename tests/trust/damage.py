"""Ways in which logs come to be damaged, and ways in which they look different and say the same.

Both are functions of a random generator and the bytes of a log, by name.
"""
import gzip
import re

HUGE = (b"9" * 19, b"18446744073709551616", b"1e308", b"-1", b"0", b"nan", b"inf", b"1099511627776", b"4294967296", b"0.0001")
INFO = b"node-x:71:92 [0] NCCL INFO Channel 00/0 : 3[1] -> 0[0] [receive] via NET/IB/0/GDRDMA\n"


def lines_of(data):
    return data.splitlines(keepends=True)


def cut(rng, data):
    return data[:rng.randrange(len(data))]


def flipped(rng, data, share=200):
    data = bytearray(data)
    for _ in range(max(1, min(len(data) // share, 20000))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def one_bit(rng, data):
    data = bytearray(data)
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def other_numbers(rng, data, share):
    return re.sub(rb"\d+(\.\d+)?", lambda found: rng.choice(HUGE) if rng.random() < share else found[0], data)


def shifted_digits(rng, data):
    """One digit in fifty is another: the numbers stay plausible."""
    return re.sub(rb"\d", lambda found: b"%d" % rng.randrange(10) if rng.random() < 0.02 else found[0], data)


def doubled(rng, data):
    return b"".join(line * rng.choice((1, 1, 2, 50)) for line in lines_of(data))


def shuffled(rng, data):
    lines = lines_of(data)
    rng.shuffle(lines)
    return b"".join(lines)


def with_less(rng, data):
    return b"".join(line for line in lines_of(data) if rng.random() < 0.7)


def interleaved(rng, data):
    """Another process's line begins in the middle of every tenth line."""
    result = []
    for line in lines_of(data):
        at = rng.randrange(len(line)) if rng.random() < 0.1 else 0
        result += [line[:at], INFO, line[at:]] if at else [line]
    return b"".join(result)


def of_two_kinds(rng, data):
    half = len(data) // 2
    return data[:half] + b'\n{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "name": "ncclKernel_AllReduce"}]}\n' + data[half:]


# What a text may suffer.
DAMAGE = {
    "empty": lambda rng, data: b"",
    "one byte": lambda rng, data: data[:1],
    "its first line": lambda rng, data: (lines_of(data[:1 << 16]) or [b""])[0],
    "its first tenth": lambda rng, data: data[:len(data) // 10],
    "without its first tenth": lambda rng, data: data[len(data) // 10:],
    "cut": cut,
    "cut again": cut,
    "cut near the end": lambda rng, data: data[:-1 - rng.randrange(min(len(data), 64))],
    "one bit": one_bit,
    "another bit": one_bit,
    "a few bytes": lambda rng, data: flipped(rng, data, 20000),
    "flipped": flipped,
    "doubled": doubled,
    "shuffled": shuffled,
    "with lines lost": with_less,
    "with digits shifted": shifted_digits,
    "with some numbers huge": lambda rng, data: other_numbers(rng, data, 0.02),
    "with many numbers huge": lambda rng, data: other_numbers(rng, data, 0.3),
    "on one line": lambda rng, data: data.replace(b"\n", b" "),
    "interleaved": interleaved,
    "of two kinds": of_two_kinds,
    "with zero bytes": lambda rng, data: data.replace(b" ", b"\0"),
    "in UTF-16": lambda rng, data: data.decode(errors="replace").encode("utf-16"),
    "brackets at the end": lambda rng, data: data + b"[" * 100000,
    "a hundred times": lambda rng, data: data * min(100, max(2, (4 << 20) // max(1, len(data)))),
}


def repacked(way):
    return lambda rng, data: gzip.compress(way(rng, data), 1)


def cut_pack(rng, data):
    return cut(rng, gzip.compress(data, 1))


# What a packed file may suffer; `data` is the text in it.
PACKED_DAMAGE = {
    "packed, cut": cut_pack,
    "packed, cut again": cut_pack,
    "packed, cut in its header": lambda rng, data: gzip.compress(data, 1)[:rng.randrange(1, 10)],
    "packed, without its end": lambda rng, data: gzip.compress(data, 1)[:-4],
    "packed, one bit": lambda rng, data: one_bit(rng, gzip.compress(data, 1)),
    "packed, another bit": lambda rng, data: one_bit(rng, gzip.compress(data, 1)),
    "packed, flipped": lambda rng, data: flipped(rng, gzip.compress(data, 1)),
    "packed, rubbish after it": lambda rng, data: gzip.compress(data, 1) + b"rubbish",
    "packed twice": lambda rng, data: gzip.compress(gzip.compress(data, 1), 1),
    "cut, then packed": repacked(cut),
    "flipped, then packed": repacked(flipped),
    "nothing, packed": lambda rng, data: gzip.compress(b""),
}


def prefixed(tag):
    return lambda data: b"".join(tag + line for line in lines_of(data))


# Logs of text lines that say the same.
SAME = {
    "with CR LF": lambda data: data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    "after a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "without its last line's end": lambda data: data.rstrip(b"\r\n"),
    "with empty lines at its end": lambda data: data + b"\n\n\n",
    "with tags of srun": prefixed(b"0: "),
    "with tags of srun, aligned": prefixed(b" 12: "),
    "with tags of mpirun": prefixed(b"[1,0]<stdout>:"),
    "with tags of kubectl": prefixed(b"[pod/nccl-test-0/main] "),
    "in colours": lambda data: b"".join(b"\x1b[32m" + line.rstrip(b"\r\n") + b"\x1b[0m\n" for line in lines_of(data)),
}

# Those of any kind.
SAME_OF_ANY = ("after a byte order mark", "without its last line's end", "with empty lines at its end")
