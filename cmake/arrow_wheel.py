"""Prints pyarrow's version, include folder and library folder, separated by semicolons.

The wheel's libraries carry only their full names (libarrow.so.2600); a linker needs libarrow.so,
which create_library_symlinks() makes beside them, once.
"""

import pyarrow

try:
    pyarrow.create_library_symlinks()
except OSError:
    pass  # made by another process meanwhile, or a read-only installation that has them
print(pyarrow.__version__, pyarrow.get_include(), pyarrow.get_library_dirs()[0], sep=";")
