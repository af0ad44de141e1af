#pragma once

#include <memory>
#include <string>
#include <utility>

#include "analysis/whatif/whatif.h"
#include "trace/read_trace.h"

namespace lockstep::whatif::made_up {

/// All that an analysis holds together.
struct Analysis {
  explicit Analysis(Trace rows) : trace(std::move(rows)) {
    sort_rows(trace);
    table = make_op_table(trace, "t", {}, &warnings);
    graph = make_dependency_graph(table, {}, "t", nullptr);
    simulator = std::make_unique<Simulator>(table, graph, "t");
    traced = measure(table, graph);
    model = make_model(table, graph, *simulator, traced,
                       {traced.step_start_s.begin(), traced.step_start_s.end()});
  }
  Scene scene() const { return {table, graph, *simulator, traced, model}; }
  std::string document() const {
    return result_json(
        make_result(scene(), {.trial_name = "t"}, take_apart(scene()), {.decompose_threshold = 0}));
  }

  Trace trace;
  Warnings warnings;
  OpTable table;
  DependencyGraph graph;
  std::unique_ptr<Simulator> simulator;
  Traced traced;
  Model model;
};

}  // namespace lockstep::whatif::made_up
