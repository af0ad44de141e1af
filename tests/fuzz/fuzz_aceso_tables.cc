// Any bytes either give one Error or a table that holds something.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "planner/aceso/tables.h"

namespace {

template <class F>
void attempt(F&& f) {
  try {
    f();
  } catch (const lockstep::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep::aceso;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  attempt([&] {
    const OpTable table = parse_op_table(text, "fuzz.csv");
    if (table.names.empty() || table.names.size() != table.costs.size()) {
      std::abort();
    }
  });
  attempt([&] { parse_collective_table(text, "fuzz.csv"); });
  attempt([&] {
    for (const double bandwidth : parse_peer_table(text, "fuzz.csv")) {
      if (!(bandwidth > 0)) {
        std::abort();
      }
    }
  });
  return 0;
}
