#include <dlfcn.h>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/module_path.h"
#include "trace/parquet/module.h"

namespace lockstep {
namespace {

Error missing(const std::string& why) {
  return Error("Parquet needs Apache Arrow, which is missing: " + why, ExitCode::kMissingPart)
      .hint("./setup installs it; then configure and build again. Or use a .csv trace");
}

std::vector<std::string> places() {
#ifdef LOCKSTEP_PARQUET_MODULE
  return module_places("liblockstep-parquet.so", LOCKSTEP_PARQUET_MODULE);
#else
  return module_places("liblockstep-parquet.so", "");
#endif
}

struct Loaded {
  const ParquetModule* module = nullptr;
  std::string why = "this build was configured without it";
};

Loaded load() {
  Loaded loaded;
  for (const std::string& place : places()) {
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

void require_parquet() { parquet_module(); }

bool has_parquet() { return loaded_once().module != nullptr; }

void read_trace_parquet(std::string_view bytes, const std::string& file, const TraceChunk& chunk,
                        Warnings* warnings) {
  parquet_module().read(bytes, file, chunk, warnings);
}

}  // namespace lockstep
