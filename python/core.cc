// lockstep._core: runs the program without holding Python's lock, so that threads of a notebook run
// side by side, and a command that crashes or grows beyond its memory does not take the notebook
// with it.
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/process.h"

namespace {

namespace fs = std::filesystem;
namespace py = pybind11;

/// LOCKSTEP_PROGRAM, the one installed beside this module, the one it was built with, or PATH's.
std::string program() {
  if (const char* named = std::getenv("LOCKSTEP_PROGRAM")) {
    return named;
  }
  Dl_info self{};
  std::error_code ignored;
  if (::dladdr(reinterpret_cast<const void*>(&program), &self) != 0) {
    // lib/lockstep/python/lockstep/_core.so beside bin/lockstep
    const fs::path installed = fs::path(self.dli_fname).parent_path() / "../../../../bin/lockstep";
    if (fs::exists(installed, ignored)) {
      return fs::canonical(installed, ignored).string();
    }
  }
  return fs::exists(LOCKSTEP_PROGRAM, ignored) ? LOCKSTEP_PROGRAM : "lockstep";
}

std::tuple<int, py::bytes, py::bytes> run(std::vector<std::string> arguments,
                                          const std::string& folder, int seconds) {
  arguments.insert(arguments.begin(), program());
  lockstep::ProcessResult result;
  {
    const py::gil_scoped_release others_run;
    lockstep::ProcessOptions options;
    options.folder = folder;
    options.seconds = seconds;
    result = lockstep::run_process(arguments, options);
  }
  return {result.exit_code, py::bytes(result.out), py::bytes(result.err)};
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "Runs Lockstep's program; see the package lockstep.";
  py::register_exception_translator([](std::exception_ptr problem) {
    try {
      std::rethrow_exception(std::move(problem));
    } catch (const lockstep::Error& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
  });
  module.def("program", &program, "The program that run() runs.");
  module.def("run", &run, py::arg("arguments"), py::arg("folder") = ".", py::arg("seconds") = 3600,
             "Runs `lockstep ARGUMENTS` and returns (exit code, output, messages).");
}
