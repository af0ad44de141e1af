// lockstep._core: runs the program without holding Python's lock, so that threads of a notebook run
// side by side, and a command that crashes or grows beyond its memory does not take the notebook
// with it.
#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <limits>
#include <optional>
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

/// ERRORS: what no program can be given, or no time limit is.
void check_call(const std::vector<std::string>& arguments, const std::string& folder,
                std::optional<double> seconds) {
  const auto is_cut = [](const std::string& text) { return text.find('\0') != text.npos; };
  if (const auto word = std::ranges::find_if(arguments, is_cut); word != arguments.end()) {
    throw py::value_error("an argument has a NUL character, which ends it: '" +
                          word->substr(0, word->find('\0')) + "\\0…'");
  }
  if (is_cut(folder)) {
    throw py::value_error("the folder's name has a NUL character, which ends it");
  }
  if (seconds && !(*seconds > 0)) {
    throw py::value_error("seconds: expected more than 0, or None for no limit");
  }
}

std::tuple<int, py::bytes, py::bytes> run(std::vector<std::string> arguments,
                                          const std::string& folder, std::optional<double> seconds,
                                          const std::string& input) {
  check_call(arguments, folder, seconds);
  arguments.insert(arguments.begin(), program());
  lockstep::ProcessResult result;
  {
    const py::gil_scoped_release others_run;
    lockstep::ProcessOptions options;
    options.folder = folder;
    options.input = input;
    options.seconds = seconds.value_or(std::numeric_limits<double>::infinity());
    options.give_up = [] {
      const py::gil_scoped_acquire for_now;
      if (PyErr_CheckSignals() != 0) {  // Ctrl-C, where this is Python's main thread
        throw py::error_already_set();
      }
      return false;
    };
    result = lockstep::run_process(arguments, options);
  }
  return {result.exit_code, py::bytes(result.out), py::bytes(result.err)};
}

/// Of messages that may quote names that are no UTF-8.
py::str text_of(const lockstep::Error& error) {
  const std::string text = error.what();
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "replace"));
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "Runs Lockstep's program; see the package lockstep.";
  py::register_exception_translator([](std::exception_ptr problem) {
    try {
      std::rethrow_exception(std::move(problem));
    } catch (const lockstep::OutOfTime& error) {
      PyErr_SetObject(PyExc_TimeoutError, text_of(error).ptr());
    } catch (const lockstep::Error& error) {
      const int code = static_cast<int>(error.code());
      PyErr_SetObject(PyExc_RuntimeError, py::make_tuple(code, text_of(error)).ptr());
    }
  });
  module.def("program", &program, "The program that run() runs.");
  module.def("run", &run, py::arg("arguments"), py::arg("folder") = ".",
             py::arg("seconds") = py::none(), py::arg("input") = "",
             "Runs `lockstep ARGUMENTS` with `input` on its standard input and returns (exit code, "
             "output, messages). Raises RuntimeError(exit code, text) where it cannot be started.");
  module.attr("version") = LOCKSTEP_VERSION;
}
