#pragma once

#include <memory>
#include <string>
#include <vector>

#include "profiler/device.h"
#include "profiler/run/transport.h"

namespace lockstep {

/// What the loadable module liblockstep-gpu.so offers. CUDA's libraries are large and are not
/// everywhere; so nothing else is linked with them, and a program without the module can do all but
/// time kernels and run collectives.
struct GpuModule {
  /// Opens the GPU of that number. ERRORS: Error with ExitCode::kMissingPart: no driver, no GPU.
  std::unique_ptr<Device> (*open_device)(int number);
  /// A transport over NCCL on the GPU of that number. ERRORS: likewise; NCCL was not built in.
  std::unique_ptr<Transport> (*open_transport)(int number);
  /// What the module was built without: "cuDNN", "NCCL" …
  std::vector<std::string> (*missing_parts)();
};

/// The name of the one object the module exports, with C linkage.
inline constexpr const char* kGpuModuleSymbol = "lockstep_gpu_module";

/// Loads the module: from the folder of the program, ../lib/lockstep beside that, or where it was
/// built. Loaded once.
/// ERRORS: Error with ExitCode::kMissingPart that says why it cannot be loaded.
const GpuModule& gpu_module();

}  // namespace lockstep
