#include "profiler/cuda/nvml.h"

#include <array>
#include <dlfcn.h>

namespace lockstep::cuda {
namespace {

// The parts of NVML's interface that are used (nvml.h, API version 12); no header is needed.
using Device = void*;
constexpr int kSuccess = 0;
constexpr unsigned kSmClock = 1;     // NVML_CLOCK_SM
constexpr unsigned kChipSensor = 0;  // NVML_TEMPERATURE_GPU
constexpr unsigned kDriverTextLength = 80;

template <class F>
F* symbol(void* handle, const char* name) {
  return reinterpret_cast<F*>(::dlsym(handle, name));
}

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  Device device = nullptr;
  int (*clock)(Device, unsigned, unsigned*) = nullptr;
  int (*temperature)(Device, unsigned, unsigned*) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  int (*shutdown)() = nullptr;
};

Nvml::Nvml(const std::string& bus) {
  void* handle = ::dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    return;
  }
  auto library = std::make_unique<Library>();
  library->handle = handle;
  auto* initialise = symbol<int()>(handle, "nvmlInit_v2");
  auto* find = symbol<int(const char*, Device*)>(handle, "nvmlDeviceGetHandleByPciBusId_v2");
  library->clock = symbol<int(Device, unsigned, unsigned*)>(handle, "nvmlDeviceGetClockInfo");
  library->temperature =
      symbol<int(Device, unsigned, unsigned*)>(handle, "nvmlDeviceGetTemperature");
  library->driver = symbol<int(char*, unsigned)>(handle, "nvmlSystemGetDriverVersion");
  library->shutdown = symbol<int()>(handle, "nvmlShutdown");
  if (initialise == nullptr || find == nullptr || library->shutdown == nullptr ||
      initialise() != kSuccess) {
    ::dlclose(handle);
    return;
  }
  if (find(bus.c_str(), &library->device) != kSuccess) {
    library->device = nullptr;
  }
  library_ = std::move(library);
}

Nvml::~Nvml() {
  if (library_ != nullptr) {
    library_->shutdown();
    ::dlclose(library_->handle);
  }
}

double Nvml::clock_Hz() const {
  unsigned mega = 0;
  if (library_ == nullptr || library_->device == nullptr || library_->clock == nullptr ||
      library_->clock(library_->device, kSmClock, &mega) != kSuccess) {
    return 0;
  }
  return static_cast<double>(mega) * 1e6;
}

double Nvml::temperature_C() const {
  unsigned degrees = 0;
  if (library_ == nullptr || library_->device == nullptr || library_->temperature == nullptr ||
      library_->temperature(library_->device, kChipSensor, &degrees) != kSuccess) {
    return 0;
  }
  return degrees;
}

std::string Nvml::driver() const {
  std::array<char, kDriverTextLength> text{};
  if (library_ == nullptr || library_->driver == nullptr ||
      library_->driver(text.data(), kDriverTextLength) != kSuccess) {
    return {};
  }
  return text.data();
}

}  // namespace lockstep::cuda
