// Stragglers: whatever the bytes, as a SPEC, a scenario or a histogram, an Error or values that can
// be used.
#include <cstdint>
#include <string>
#include <string_view>

#include "app/simulate/scenario.h"
#include "base/error.h"
#include "simulator/replay/distribution.h"
#include "simulator/replay/straggler_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  StragglerContext context;
  context.server_of_rank = {0, 0, 1, 1};
  const auto use = [&](const Straggler& spec) {
    if (spec.value(spec.model().fields.size() > 1 ? 1 : 0).ends_with(".csv")) {
      return;  // opens a file
    }
    const std::vector<Straggler> one{spec};
    StragglerPlan(one, context).slowest();
  };
  const auto tried = [](const auto& body) {
    try {
      body();
    } catch (const Error&) {
    }
  };
  tried([&] { use(Straggler::parse(text)); });
  tried([&] {
    for (const Straggler& spec : parse_scenario(text, "scenario.yaml").stragglers) {
      use(spec);
    }
  });
  tried([&] {
    Rng rng(1, "fuzz");
    const double x = Distribution::histogram(text, "histogram.csv").draw(rng);
    LOCKSTEP_CHECK(x >= 0, "values are not negative");
  });
  return 0;
}
