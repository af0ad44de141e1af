#pragma once

#include <memory>
#include <string>

namespace lockstep::cuda {

/// What the driver's management library tells of one GPU. It comes with the driver, so it is loaded
/// when it is wanted; where it is missing all is 0 or empty.
class Nvml {
 public:
  /// `bus`: the GPU's PCI address, as cudaDeviceGetPCIBusId() has it.
  explicit Nvml(const std::string& bus);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  double clock_Hz() const;       ///< of the SMs, now
  double temperature_C() const;  ///< of the chip, now
  std::string driver() const;    ///< "580.65.06"

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace lockstep::cuda
