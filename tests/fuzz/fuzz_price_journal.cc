// Any bytes are refused with one Error, or give prices above 0.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "app/plan/price_journal.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const auto& [plan, step] : read_price_journal(text, "fuzz.jsonl", "a problem")) {
      if (!(step.step_s > 0)) {
        std::abort();
      }
    }
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
