# SPDX-License-Identifier: GPL-2.0-only
# (example, do_run, do_valgrind_run), for ns-3's test.py.
cpp_examples = [
    ("incast", "True", "True"),
]
python_examples = []
