"""Lockstep from Python: predictions of training steps as dictionaries and Arrow tables.

    import lockstep
    step = lockstep.simulate(model="llama3-8b", gpus=64, tp=8, pp=2, global_batch=64,
                             topology="Spectrum-X:g=64")
    step["total_s"]            # the document of `lockstep simulate --json`
    step.tables["layers"]          # a pyarrow.Table; .to_pandas() where pandas is installed

Keyword arguments are the flags of the command line: `global_batch=64` is `--global-batch 64`, True
is a flag without a value, False and None leave a flag out, a list gives it several times. Every call
runs in a process of its own, without Python's lock.
"""

import json
import os
import tempfile

from . import _core

__all__ = ["Failure", "Result", "compare", "generate", "plan", "run", "simulate", "sweep",
           "topology", "whatif"]


class Failure(RuntimeError):
    """A command that did not end well. exit_code: 1 a check failed, 2 bad input, 3 a part is
    missing, 70 a bug."""

    def __init__(self, exit_code, messages):
        super().__init__(messages.strip() or f"ended with {exit_code}")
        self.exit_code = exit_code


def _flags(flags):
    words = []
    for name, value in flags.items():
        name = name.rstrip("_").replace("_", "-")
        flag = ("-" if len(name) == 1 else "--") + name
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            for item in value if isinstance(value, (list, tuple)) else [value]:
                words += [flag, os.fspath(item) if isinstance(item, os.PathLike) else str(item)]
    return words


def _flat(value, key=""):
    """(dotted key, scalar) of everything below, lists left out."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _flat(member, f"{key}.{name}" if key else name)
    elif not isinstance(value, list):
        yield key, value


def _tables(value, key=""):
    """(dotted key, rows) of every list of objects or of scalars."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _tables(member, f"{key}.{name}" if key else name)
    elif isinstance(value, list) and value:
        if all(isinstance(item, dict) for item in value):
            yield key, [dict(_flat(item)) for item in value]
        elif not any(isinstance(item, (dict, list)) for item in value):
            yield key, [{"value": item} for item in value]


def _arrow(rows):
    import pyarrow

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        cells = [row.get(name) for row in rows]
        kinds = {type(cell) for cell in cells if cell is not None}
        if kinds == {int, float}:
            cells = [None if cell is None else float(cell) for cell in cells]
        elif len(kinds) > 1:
            cells = [None if cell is None else str(cell) for cell in cells]
        columns[name] = cells
    return pyarrow.table(columns)


class Result(dict):
    """The JSON document of a command; its lists are Arrow tables too."""

    def __init__(self, document, messages=""):
        super().__init__(document)
        self.messages = messages

    @property
    def tables(self):
        """The document's lists by dotted key, each a pyarrow.Table; nested objects are columns
        with dotted names."""
        return {key: _arrow(rows) for key, rows in _tables(dict(self))}

    @property
    def scalars(self):
        """All else as a pyarrow.Table of one row."""
        return _arrow([dict(_flat(dict(self)))])


def run(*arguments, folder=".", seconds=3600):
    """Runs `lockstep ARGUMENTS`; returns (output, messages) as texts. Raises Failure."""
    code, output, messages = _core.run([str(word) for word in arguments], folder=str(folder),
                                       seconds=seconds)
    messages = messages.decode(errors="replace")
    if code != 0:
        raise Failure(code, messages)
    return output.decode(errors="replace"), messages


def _document(*words):
    output, messages = run(*words, "--json")
    return Result(json.loads(output), messages)


def generate(**flags):
    """A workload's text: `lockstep generate`."""
    return run("generate", *_flags(flags), "-o", "-")[0]


def topology(template, **flags):
    """A topology's text: `lockstep topology build`."""
    return run("topology", "build", "--template", template, *_flags(flags), "-o", "-")[0]


def simulate(**flags):
    """One predicted step: `lockstep simulate`."""
    return _document("simulate", *_flags(flags))


def whatif(trace, meta, output=None, **flags):
    """What stragglers cost in a trace: `lockstep whatif`. The documents go into `output`, if it is
    given."""
    traces = trace if isinstance(trace, (list, tuple)) else [trace]
    with tempfile.TemporaryDirectory() as scratch:
        if output is None:
            flags.setdefault("timelines", "none")
        words = [word for path in traces for word in ("--trace", path)]
        return _document("whatif", *words, "--meta", meta, "--output", output or scratch,
                         *_flags(flags))


def compare(*logs, **flags):
    """Logs of real runs beside predictions: `lockstep compare`."""
    return _document("compare", *logs, *_flags(flags))


def plan(**flags):
    """The best plans for a model on a cluster: `lockstep plan`."""
    return _document("plan", *_flags(flags))


def sweep(grid, output=None, **flags):
    """A grid of command lines (a file's name, or its content as a dictionary) as one pyarrow.Table:
    `lockstep sweep`. With `output`, a folder, a sweep that was stopped goes on there."""
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as scratch:
        if isinstance(grid, dict):
            path = os.path.join(scratch, "grid.yaml")
            with open(path, "w") as file:
                json.dump(grid, file)  # JSON is YAML
            grid = path
        folder = output or os.path.join(scratch, "sweep")
        run("sweep", grid, "--output", folder, *_flags(flags))
        return pyarrow.parquet.read_table(os.path.join(folder, "table.parquet"))
