// Any bytes are refused with one Error, or give prices (or what is below them) above 0; so of the
// other searches' journals.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "app/plan/price_journal.h"
#include "app/plan/search_journals.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& [plan, price] : read_price_journal(text, "fuzz.jsonl", "a problem")) {
      if (!(price.step ? price.step->step_s > 0 : price.beyond_s > 0)) {
        std::abort();
      }
    }
  } catch (const Error&) {
  }
  for (const auto read : {read_aceso_journal, read_metis_journal}) {
    try {
      read(text, "fuzz.jsonl", "a problem");
    } catch (const Error&) {
    }
  }
  return 0;
}
