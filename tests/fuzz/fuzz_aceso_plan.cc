// Any bytes either give one Error or a plan that is written and read back the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "planner/aceso/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep::aceso;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Model model = find_model("scale-layer", "2layers");
  try {
    const Plan plan = parse_plan(text, "fuzz.json", model);
    const std::string written = plan_json(plan, model);
    if (plan_json(parse_plan(written, "again.json", model), model) != written) {
      std::abort();
    }
  } catch (const lockstep::Error&) {
  }
  return 0;
}
