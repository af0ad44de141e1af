"""Lockstep from Python: predictions of training steps as dictionaries and Arrow tables.

    import lockstep
    step = lockstep.simulate(model="llama3-8b", gpus=64, tp=8, pp=2, global_batch=64,
                             topology="Spectrum-X:g=64")
    step["total_s"]            # the document of `lockstep simulate --json`
    step.tables["layers"]          # a pyarrow.Table; .to_pandas() where pandas is installed

Keyword arguments are the flags of the command line: `global_batch=64` is `--global-batch 64`, True
is a flag without a value, False and None leave a flag out, a list gives it several times. Every call
runs in a process of its own, without Python's lock; `seconds=` limits how long it may take (there is no
limit without it), Ctrl-C ends it. What no program can be given (texts with NUL, a limit below 0) is a ValueError.
"""

import collections.abc
import json
import numbers
import os
import tempfile

from . import _core

__all__ = ["Failure", "Result", "compare", "generate", "plan", "run", "simulate", "sweep", "topology",
           "topology_check", "topology_describe", "topology_links", "whatif", "workload"]

__version__ = _core.version


class Failure(RuntimeError):
    """A command that did not end well. exit_code: 1 a check failed, 2 bad input, 3 a part is
    missing, 70 a bug, 137 it was killed, as after `seconds`; `output`: what it had printed."""

    def __init__(self, exit_code, messages, output=""):
        super().__init__(messages.strip() or f"ended with {exit_code}")
        self.exit_code = exit_code
        self.output = output

    def __reduce__(self):  # a pool of processes hands it over as its arguments
        return type(self), (self.exit_code, str(self), self.output)


def _flags(flags):
    words = []
    for name, value in flags.items():
        name = name.rstrip("_").replace("_", "-")
        flag = ("-" if len(name) == 1 else "--") + name
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            for item in value if isinstance(value, (list, tuple)) else [value]:
                words += [flag, item]
    return words


def _word(value):
    """A path, text or number as the program gets it; names of files in their own bytes."""
    return os.fsencode(value if isinstance(value, (bytes, os.PathLike)) else str(value))


def _flat(value, key=""):
    """(dotted key, scalar) of everything below, lists left out."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _flat(member, f"{key}.{name}" if key else name)
    elif not isinstance(value, list):
        yield key, value


def _tables(value, key=""):
    """(dotted key, rows) of every list, those within objects of lists too; not those within lists."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _tables(member, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        yield key, value
        for number, item in enumerate(value):
            if isinstance(item, dict):
                yield from _tables(item, f"{key}.{number}")


def _column(cells):
    import pyarrow

    def each(convert):
        return [None if cell is None else convert(cell) for cell in cells]

    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int, float}:
        return pyarrow.array(each(float))
    if len(kinds) > 1:
        return pyarrow.array(each(str))
    try:
        return pyarrow.array(cells)
    except pyarrow.ArrowException:  # lists of things of several kinds
        return pyarrow.array(each(json.dumps))


def _arrow(rows):
    import pyarrow

    names = list(dict.fromkeys(name for row in rows for name in row))
    return pyarrow.table({name: _column([row.get(name) for row in rows]) for name in names})


class _Tables(collections.abc.Mapping):
    """Lists by dotted key; one becomes a table when it is asked for."""

    def __init__(self, document):
        self._rows = dict(_tables(document))

    def __getitem__(self, key):
        rows = self._rows[key]
        return _arrow([dict(_flat(row)) if isinstance(row, dict) else {"value": row} for row in rows])

    def __iter__(self):
        return iter(self._rows)

    def __len__(self):
        return len(self._rows)


class Result(dict):
    """The JSON document of a command; its lists are Arrow tables too. `messages`: notes and warnings;
    `failed`: a check that was asked for, such as compare's fail_over, failed (exit code 1)."""

    def __init__(self, document, messages="", failed=False):
        super().__init__(document)
        self.messages = messages
        self.failed = failed

    @property
    def tables(self):
        """The document's lists by dotted key, each a pyarrow.Table; nested objects are columns
        with dotted names, lists in them tables of their own ("tables.0.rows"). What is no object is
        in the column "value"; an empty list has neither rows nor columns."""
        return _Tables(dict(self))

    @property
    def scalars(self):
        """All else as a pyarrow.Table of one row."""
        return _arrow([dict(_flat(dict(self)))])


def _run(arguments, folder=".", seconds=None, input=b""):
    """(exit code, output, messages). Raises Failure where it could not be run to its end."""
    if not (seconds is None or isinstance(seconds, numbers.Real)):
        raise TypeError(f"seconds: expected a number, or None for no limit, not {seconds!r}")
    try:
        code, output, messages = _core.run([_word(word) for word in arguments], folder=_word(folder),
                                           seconds=seconds, input=input)
    except TimeoutError as problem:
        raise Failure(137, str(problem)) from None
    except RuntimeError as problem:
        raise Failure(*problem.args) from None
    return code, output.decode(errors="replace"), messages.decode(errors="replace")


def run(*arguments, folder=".", seconds=None):
    """Runs `lockstep ARGUMENTS`; returns (output, messages) as texts. Raises Failure."""
    code, output, messages = _run(arguments, folder, seconds)
    if code != 0:
        raise Failure(code, messages, output)
    return output, messages


def _document(*words, seconds=None, input=b""):
    code, output, messages = _run([*words, "--json"], seconds=seconds, input=input)
    if code in (0, 1):
        try:
            return Result(json.loads(output), messages, failed=code == 1)
        except ValueError:
            if code == 0:
                messages = "it printed a text, not a document; lockstep.run() returns texts"
    raise Failure(code, messages, output)


def generate(*, seconds=None, **flags):
    """A workload's text: `lockstep generate`. With memory=True or list_models=True a Result."""
    if flags.get("memory") or flags.get("list_models"):
        return _document("generate", *_flags(flags), seconds=seconds)
    return run("generate", *_flags(flags), "-o", "-", seconds=seconds)[0]


def workload(*, seconds=None, **flags):
    """A workload as a Result: `lockstep generate --format json`. Its layers or operations are tables:
    "jobs.0.layer_table.layers", "jobs.0.op_table.programs.0.ops"."""
    output, messages = run("generate", *_flags(flags), "--format", "json", "-o", "-", seconds=seconds)
    return Result(json.loads(output), messages)


def topology(template, *, seconds=None, **flags):
    """A topology's text: `lockstep topology build`."""
    return run("topology", "build", "--template", template, *_flags(flags), "-o", "-",
               seconds=seconds)[0]


def _of_topology(what, topology, seconds, flags):
    """`topology`: a file, TEMPLATE:flag=value,… or a topology's text, which is "-" in the document."""
    name, text = os.fsencode(topology), b""
    if b"\n" in name:
        name, text = "-", name
    return _document("topology", what, name, *_flags(flags), seconds=seconds, input=text)


def topology_check(topology, *, seconds=None, **flags):
    """Whether a topology (a file, TEMPLATE:flag=value,… or its text) is sound: `lockstep topology
    check`. Raises Failure where it is not."""
    return _of_topology("check", topology, seconds, flags)


def topology_describe(topology, *, seconds=None, **flags):
    """What a topology has: `lockstep topology describe`."""
    return _of_topology("describe", topology, seconds, flags)


def topology_links(topology, *, seconds=None, **flags):
    """Its links, in tables["links"]: `lockstep topology links`."""
    return _of_topology("links", topology, seconds, flags)


def simulate(*, seconds=None, **flags):
    """One predicted step: `lockstep simulate`."""
    return _document("simulate", *_flags(flags), seconds=seconds)


def whatif(trace, meta, output=None, *, seconds=None, **flags):
    """What stragglers cost in a trace: `lockstep whatif`. The documents go into `output`, if it is
    given. The answer to set=... is in "edited"."""
    traces = trace if isinstance(trace, (list, tuple)) else [trace]
    with tempfile.TemporaryDirectory() as scratch:
        if output is None:
            flags.setdefault("timelines", "none")
        words = [word for path in traces for word in ("--trace", path)]
        return _document("whatif", *words, "--meta", meta, "--output", output or scratch,
                         *_flags(flags), seconds=seconds)


def compare(*logs, seconds=None, **flags):
    """Logs of real runs beside predictions: `lockstep compare`. With fail_over the Result's `failed`
    says whether the error is larger."""
    return _document("compare", *logs, *_flags(flags), seconds=seconds)


def plan(*, seconds=None, **flags):
    """The best plans for a model on a cluster: `lockstep plan`."""
    return _document("plan", *_flags(flags), seconds=seconds)


def sweep(grid, output=None, *, seconds=None, **flags):
    """A grid of command lines (a file's name, or its content as a dictionary) as one pyarrow.Table:
    `lockstep sweep`. With `output`, a folder, a sweep that was stopped goes on there. Points that
    failed are rows with their reason, also where all did."""
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as scratch:
        if isinstance(grid, dict):
            path = os.path.join(scratch, "grid.yaml")
            with open(path, "w") as file:
                json.dump(grid, file)  # JSON is YAML
            grid = path
        folder = output or os.path.join(scratch, "sweep")
        code, text, messages = _run(["sweep", grid, "--output", folder, *_flags(flags)], seconds=seconds)
        if code not in (0, 1):
            raise Failure(code, messages, text)
        return pyarrow.parquet.read_table(os.path.join(folder, "table.parquet"))
