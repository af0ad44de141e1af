#include <dlfcn.h>
#include <string>
#include <sys/mman.h>
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

/// Arrow's two libraries take 61 MiB of the address space; where no more is left, what they do
/// while they are loaded finds no memory and ends the process.
constexpr std::size_t kRoomToLoad = std::size_t{72} << 20U;

bool is_room_left() {
  void* room =
      ::mmap(nullptr, kRoomToLoad, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return room != MAP_FAILED && ::munmap(room, kRoomToLoad) == 0;
}

Loaded load() {
  Loaded loaded;
  for (const std::string& place : places()) {
    if (!is_room_left()) {
      loaded.why = place + ": less than 72 MiB of memory are left to load it (ulimit -v)";
      return loaded;
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

void require_parquet() { parquet_module(); }

bool has_parquet() { return loaded_once().module != nullptr; }

void read_trace_parquet(std::string_view bytes, const std::string& file, const TraceChunk& chunk,
                        Warnings* warnings) {
  parquet_module().read(bytes, file, chunk, warnings);
}

}  // namespace lockstep
