// Any text is read or refused with an Error; lookups in what is read are in range.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "simulator/network/analytic/efficiency_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  try {
    const EfficiencyTable table = parse_efficiency_csv(
        std::string_view(reinterpret_cast<const char*>(data), size), "ratio.csv");
    for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{1} << 24, INT64_MAX}) {
      for (const double nodes : {1.0, 3.0, 1000.0}) {
        if (!(relative_efficiency(table, Bytes(bytes), nodes) > 0)) {
          std::abort();
        }
      }
      if (!(relative_multi_efficiency(table, Bytes(bytes)) > 0)) {
        std::abort();
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
