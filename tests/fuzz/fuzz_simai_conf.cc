// Any text is read or refused with an Error; what is read leaves probabilities and sizes in range.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "simulator/network/packet_engine_simai_conf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    lockstep::PacketOptions options;
    lockstep::Warnings warnings;
    lockstep::apply_simai_conf(std::string_view(reinterpret_cast<const char*>(data), size),
                               "SimAI.conf", options, warnings);
    for (const lockstep::PacketOptions::EcnRow& row : options.ecn) {
      if (row.pmax < 0 || row.pmax > 1 || row.kmin.count() < 0 || row.kmax.count() < 0) {
        std::abort();
      }
    }
  } catch (const lockstep::Error&) {
  }
  return 0;
}
