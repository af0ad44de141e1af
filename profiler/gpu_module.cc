#include "profiler/gpu_module.h"

#include <dlfcn.h>

#include "base/error.h"
#include "base/module_path.h"

namespace lockstep {
namespace {

struct Loaded {
  const GpuModule* module = nullptr;
  std::string why = "this build was configured without it";
};

Loaded load() {
  Loaded loaded;
  for (const std::string& place : module_places("liblockstep-gpu.so", LOCKSTEP_GPU_MODULE)) {
    if (void* handle = ::dlopen(place.c_str(), RTLD_LAZY | RTLD_LOCAL); handle != nullptr) {
      loaded.module = static_cast<const GpuModule*>(::dlsym(handle, kGpuModuleSymbol));
    }
    if (loaded.module != nullptr) {
      return loaded;
    }
    const char* problem = ::dlerror();
    loaded.why = problem != nullptr ? problem : "the module is empty";
  }
  return loaded;
}

}  // namespace

const GpuModule& gpu_module() {
  static const Loaded loaded = load();
  if (loaded.module == nullptr) {
    throw Error("a GPU needs CUDA, which is missing: " + loaded.why, ExitCode::kMissingPart)
        .hint(
            "install the CUDA Toolkit, then configure and build again; lockstep doctor tells "
            "what is there");
  }
  return *loaded.module;
}

}  // namespace lockstep
