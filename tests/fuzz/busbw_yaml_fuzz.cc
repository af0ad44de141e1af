// Any text is read or refused with an Error; what is read is above 0.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "simulator/network/analytic/busbw_yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const lockstep::BusBandwidths read = lockstep::parse_busbw_yaml(
        std::string_view(reinterpret_cast<const char*>(data), size), "busbw.yaml");
    for (const auto& section : read.collectives) {
      for (const auto& rate : section) {
        if (rate && rate->bits_per_second() < 0) {
          std::abort();
        }
      }
    }
  } catch (const lockstep::Error&) {
  }
  return 0;
}
