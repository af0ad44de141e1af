"""The Python package: each command, its tables, its errors. Run from the root of the sources."""

import concurrent.futures
import copy
import inspect
import os
import pickle
import signal
import tempfile
import threading
import unittest
import unittest.mock

import pyarrow

import lockstep

os.environ.pop("LD_PRELOAD", None)  # a sanitizer's library is for Python alone: the program has its own

TINY = "tests/data/simulate/tiny.txt"


def fails(_):
    """For a pool of processes."""
    return lockstep.simulate(workload="absent.txt", topology="Spectrum-X:g=8")


class Commands(unittest.TestCase):
    def test_simulate(self):
        step = lockstep.simulate(workload=TINY, topology="Spectrum-X:g=8")
        output, _ = lockstep.run("simulate", "--workload", TINY, "--topology", "Spectrum-X:g=8", "--json")
        self.assertIn(f'"schema": "{step["schema"]}"', output)
        self.assertGreater(step["total_s"], 0)
        layers = step.tables["layers"]
        self.assertIsInstance(layers, pyarrow.Table)
        self.assertEqual(layers.num_rows, len(step["layers"]))
        self.assertEqual(layers.num_rows, 3)  # the workload's
        self.assertEqual(step.scalars.num_rows, 1)
        self.assertEqual(step.scalars["total_s"][0].as_py(), step["total_s"])

    def test_generate_and_topology(self):
        workload = lockstep.generate(generator="simai-training", world_size=2, tp=2, hidden_size=8, num_layers=1,
                                     num_attention_heads=2, seq_length=4, vocab_size=16, global_batch=1, sp=True)
        self.assertTrue(workload.startswith("HYBRID_TRANSFORMER_FWD_IN_BCKWD"))
        text = lockstep.topology("Spectrum-X", g=8)
        self.assertIn("\n", text)
        self.assertEqual(lockstep.topology_check(text)["topology"], "-")
        for topology in (text, text.encode(), "Spectrum-X:g=8", b"Spectrum-X:g=8"):
            self.assertEqual(lockstep.topology_check(topology)["gpus"], 8)
            described = lockstep.topology_describe(topology)
            self.assertEqual(lockstep.topology_links(topology).tables["links"].num_rows, described["links"])
        self.assertEqual(lockstep.topology_links(text, of=3).tables["links"]["from"].to_pylist()[0], 3)
        layers = lockstep.workload(generator="simai-training", world_size=2, tp=2, hidden_size=8, num_layers=1,
                                   num_attention_heads=2, seq_length=4, vocab_size=16, global_batch=1, sp=True)
        self.assertIn("forward.comm", layers.tables["jobs.0.layer_table.layers"].column_names)
        self.assertGreater(lockstep.generate(list_models=True).tables["models"].num_rows, 1)

    def test_whatif(self):
        causes = lockstep.whatif("tests/data/whatif/two-stages.csv", "tests/data/whatif/two-stages.yaml")
        self.assertGreaterEqual(causes["slowdown"], 1)
        self.assertTrue(causes.tables)
        edited = lockstep.whatif("tests/data/whatif/two-stages.csv", "tests/data/whatif/two-stages.yaml",
                                 set=["backward-compute[stage=1] *= 0.5"])["edited"]
        self.assertAlmostEqual(edited["step_time_s"], 11.375)

    def test_compare(self):
        report = lockstep.compare("tests/data/logs/two-tables.txt", preset="dgx-h100")
        self.assertTrue(any(table.num_rows > 0 for table in report.tables.values()))
        self.assertIn("error", report.tables["tables.0.rows"].column_names)
        self.assertFalse(report.failed)
        checked = lockstep.compare("tests/data/logs/two-tables.txt", preset="dgx-h100", fail_over="1%")
        self.assertTrue(checked.failed)
        self.assertEqual(checked["tables"], report["tables"])
        self.assertIn("over 1.0 %", checked.messages)

    def test_plan(self):
        plans = lockstep.plan(aceso_model="scale-layer", aceso_size="4layers", profiles="tests/data/plan/scale-layer",
                              gpus_per_node=2, nodes=2, memory_limit=1200, global_batch=16, micro_batch=[1, 2])
        self.assertGreater(plans.tables["plans"].num_rows, 0)

    def test_sweep(self):
        table = lockstep.sweep({"command": "simulate", "flags": {"workload": TINY, "topology": "Spectrum-X:g=8"},
                                "axes": [{"channels": [1, 2]}, {"algorithm": ["ring", "none-such"]}]})
        self.assertEqual(table["channels"].to_pylist(), [1, 1, 2, 2])
        self.assertEqual(table["ending"].to_pylist(), ["done", "bad-input"] * 2)
        self.assertGreater(table["total_s"][0].as_py(), 0)
        self.assertIsNone(table["total_s"][1].as_py())
        failed = lockstep.sweep({"command": "simulate", "flags": {"workload": "absent.txt", "topology": "Spectrum-X:g=8"}})
        self.assertEqual(failed["ending"].to_pylist(), ["bad-input"])

    def test_errors(self):
        with self.assertRaises(lockstep.Failure) as caught:
            lockstep.simulate(workload="absent.txt", topology="Spectrum-X:g=8")
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertIn("absent.txt: cannot read the file", str(caught.exception))

    def test_errors_travel(self):
        """From a process of a pool as well, which pickles them."""
        failure = lockstep.Failure(2, "what was wrong\n", "printed")
        for other in (copy.copy(failure), copy.deepcopy(failure), pickle.loads(pickle.dumps(failure))):
            self.assertEqual((type(other), other.exit_code, other.output, str(other)),
                             (lockstep.Failure, 2, "printed", "what was wrong"))
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            with self.assertRaisesRegex(lockstep.Failure, "absent.txt: cannot read the file") as caught:
                pool.submit(fails, 0).result(timeout=100)
        self.assertEqual(caught.exception.exit_code, 2)

    def test_missing_folder(self):
        with self.assertRaises(lockstep.Failure) as caught:
            lockstep.run("doctor", folder="/absent/folder")
        self.assertEqual((caught.exception.exit_code, str(caught.exception)), (2, "/absent/folder: there is no such folder"))

    def test_names_of_other_bytes(self):
        """A file's name may be no UTF-8; Python holds it as a text with surrogates, as a path or as bytes."""
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(os.fsencode(folder), b"w-\xff")
            with open(TINY, "rb") as source, open(name, "wb") as copied:
                copied.write(source.read())
            total = lockstep.simulate(workload=TINY, topology="Spectrum-X:g=8")["total_s"]
            for workload in (name, os.fsdecode(name)):
                self.assertEqual(lockstep.simulate(workload=workload, topology="Spectrum-X:g=8")["total_s"], total)
            os.mkdir(os.path.join(os.fsencode(folder), b"d-\xff"))
            self.assertIn("lockstep", lockstep.run("--version", folder=os.path.join(folder, "d-\udcff"))[0])

    def test_every_list_is_a_table(self):
        result = lockstep.Result({"none": [], "pairs": [[1, 2], [3]], "odd": [[1, "a"], []], "mixed": [1, {"a": 2}, [3]],
                                  "rows": [{"x": 1, "in": []}, {"x": 2.5, "in": [4]}], "flat": [1, 2], "one": 1})
        tables = {name: table.to_pylist() for name, table in result.tables.items()}
        self.assertEqual(tables["none"], [])
        self.assertEqual(tables["pairs"], [{"value": [1, 2]}, {"value": [3]}])
        self.assertEqual(tables["odd"], [{"value": '[1, "a"]'}, {"value": "[]"}])
        self.assertEqual(tables["mixed"], [{"value": "1", "a": None}, {"value": None, "a": 2}, {"value": "[3]", "a": None}])
        self.assertEqual(tables["rows"], [{"x": 1.0}, {"x": 2.5}])
        self.assertEqual((tables["rows.0.in"], tables["rows.1.in"]), ([], [{"value": 4}]))
        self.assertEqual(tables["flat"], [{"value": 1}, {"value": 2}])
        self.assertEqual(result.scalars.to_pylist(), [{"one": 1}])

    def test_version(self):
        self.assertIn(lockstep.__version__, lockstep.run("--version")[0])

    def test_a_text_is_no_document(self):
        with self.assertRaisesRegex(lockstep.Failure, "it printed a text, not a document"):
            lockstep.simulate(help=True)

    def test_time_limit(self):
        """None unless one is given; it is a Failure, as all other ends."""
        with self.assertRaises(lockstep.Failure) as caught:
            lockstep.run("collective", "--op", "alltoall", "--algorithm", "direct", "--size", "1GiB", "--topology",
                         "Spectrum-X:g=2048", "--threads", "1", seconds=0.2)
        self.assertEqual(caught.exception.exit_code, 137)
        self.assertIn("did not end within 0.2 s", str(caught.exception))
        for call in (lockstep.generate, lockstep.topology, lockstep.simulate, lockstep.whatif, lockstep.compare,
                     lockstep.plan, lockstep.sweep, lockstep.run):
            self.assertIsNone(inspect.signature(call).parameters["seconds"].default)

    def test_impossible_calls(self):
        """What no program can be given is refused, not cut."""
        for call in (lambda: lockstep.simulate(workload=TINY, topology="Spectrum-X:g=8\0,g=16"),
                     lambda: lockstep.run("doctor\0", "x"), lambda: lockstep.run("doctor", folder="/tmp\0/x")):
            with self.assertRaisesRegex(ValueError, "NUL character, which ends it"):
                call()
        for seconds in (-1, 0, float("nan")):
            with self.assertRaisesRegex(ValueError, "seconds: expected more than 0"):
                lockstep.run("doctor", seconds=seconds)
        with self.assertRaisesRegex(TypeError, "seconds: expected a number, or None for no limit, not '1'"):
            lockstep.run("doctor", seconds="1")

    def test_no_program(self):
        with unittest.mock.patch.dict(os.environ, LOCKSTEP_PROGRAM="/absent/lockstep"):
            with self.assertRaises(lockstep.Failure) as caught:
                lockstep.run("doctor")
        self.assertEqual(caught.exception.exit_code, 3)

    def test_interrupt(self):
        """Ctrl-C ends a call in Python's main thread."""
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            lockstep.run("collective", "--op", "alltoall", "--algorithm", "direct", "--size", "1GiB", "--topology",
                         "Spectrum-X:g=2048", "--threads", "1")

    def test_threads(self):
        """Calls do not hold Python's lock: several run at once, with one result each."""
        steps = {}

        def predict(gpus):
            steps[gpus] = lockstep.simulate(workload=TINY, gpus=gpus, topology=f"Spectrum-X:g={gpus}")["gpus"]

        threads = [threading.Thread(target=predict, args=(8 << i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(steps, {8 << i: 8 << i for i in range(4)})


if __name__ == "__main__":
    unittest.main()
