#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "generator/csv_program.h"
#include "generator/generator.h"
#include "generator/rules.h"
#include "generator/scripts.h"

namespace lockstep {

/// The workload of a ZeRO stage: `Zero` is made from TrainingArgs, has row_estimate() and appends
/// rows with init, forward, backward and step, in that order. `file_name` says what its file begins
/// with. ERRORS: those of the flags; too many rows.
template <class Zero>
GeneratedWorkload deepspeed_workload(const GenerateRequest& request,
                                     std::string_view (*file_name)(const TrainingArgs&),
                                     void (*warn)(const TrainingArgs&, Warnings&)) {
  GeneratedWorkload workload;
  const auto args = std::make_shared<const TrainingArgs>(
      training_args(training_flags(request, PresetFamily::kDeepSpeed, &workload.warnings)));
  require_row_limit(Zero(*args).row_estimate());
  workload.file_name = training_csv_name(file_name(*args), *args);
  warn(*args, workload.warnings);
  workload.write = [args](BlockWriter& out) {
    Zero zero(*args);
    write_csv(*args,
              {[&](BlockWriter& to) { zero.init(to); },
               [&](BlockWriter& to) { zero.forward(to); },
               [&](BlockWriter& to) { zero.backward(to); },
               [&](BlockWriter& to) { zero.step(to); },
               {}},
              out);
  };
  return workload;
}

}  // namespace lockstep
