#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "trace/parquet/module.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

Error missing(const std::string& why) {
  return Error("Parquet needs Apache Arrow, which is missing: " + why, ExitCode::kMissingPart)
      .hint("./setup installs it; then configure and build again. Or use a .csv trace");
}

std::vector<fs::path> places() {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const char* name = "liblockstep-parquet.so";
  std::vector<fs::path> out = {folder / name, folder / "../lib/lockstep" / name};
#ifdef LOCKSTEP_PARQUET_MODULE
  out.emplace_back(LOCKSTEP_PARQUET_MODULE);
#endif
  return out;
}

struct Loaded {
  const ParquetModule* module = nullptr;
  std::string why = "this build was configured without it";
};

Loaded load() {
  Loaded loaded;
  for (const fs::path& place : places()) {
    std::error_code ignored;
    if (!fs::exists(place, ignored)) {
      continue;
    }
    if (void* handle = ::dlopen(place.c_str(), RTLD_LAZY | RTLD_LOCAL); handle != nullptr) {
      loaded.module = static_cast<const ParquetModule*>(::dlsym(handle, kParquetModuleSymbol));
    }
    if (loaded.module != nullptr) {
      return loaded;
    }
    const char* problem = ::dlerror();
    loaded.why = problem != nullptr ? problem : "the module is empty";
  }
  return loaded;
}

const Loaded& loaded_once() {
  static const Loaded loaded = load();
  return loaded;
}

}  // namespace

const ParquetModule& parquet_module() {
  const Loaded& loaded = loaded_once();
  if (loaded.module == nullptr) {
    throw missing(loaded.why);
  }
  return *loaded.module;
}

bool has_parquet() { return loaded_once().module != nullptr; }

void read_trace_parquet(std::string_view bytes, const std::string& file, const TraceChunk& chunk,
                        Warnings* warnings) {
  parquet_module().read(bytes, file, chunk, warnings);
}

}  // namespace lockstep
