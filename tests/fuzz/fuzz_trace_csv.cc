// Any bytes either give one Error, or rows that the analysis takes or refuses with an Error.
#include <cstdint>
#include <string_view>

#include "analysis/whatif/whatif.h"
#include "base/error.h"
#include "trace/read_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  using namespace lockstep::whatif;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    Trace trace;
    read_trace_csv(text, "fuzz.csv", [&](Trace&& rows) { trace = std::move(rows); });
    sort_rows(trace);
    Warnings warnings;
    const OpTable table =
        make_op_table(trace, "fuzz.csv", {.drop_incomplete_steps = true}, &warnings);
    const DependencyGraph graph = make_dependency_graph(table, {}, "fuzz.csv", &warnings);
    const Simulator simulator(table, graph, "fuzz.csv");
    const Traced traced = measure(table, graph);
    const Model model = make_model(table, graph, simulator, traced,
                                   {traced.step_start_s.begin(), traced.step_start_s.end()});
    const Scene scene{table, graph, simulator, traced, model};
    result_json(make_result(scene, {.trial_name = "fuzz"}, take_apart(scene), {}));
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
