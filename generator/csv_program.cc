#include "generator/csv_program.h"

#include <fmt/format.h>

#include "generator/csv_row.h"

namespace lockstep {

bool runs_pipeline(const TrainingArgs& args) {
  return args.pp > 1 && args.frame != "collective_test";
}

void write_csv(const TrainingArgs& args, const CsvProgram& program, BlockWriter& out) {
  const std::string epoch_end =
      rows([](std::string& text) { append_comm(text, "epoch_end", "", std::nullopt, 0, ""); });
  out.text(kCsvHeader);
  program.init(out);
  out.text(epoch_end);
  for (Count epoch = 0; epoch < args.epochs; epoch += 1) {
    if (runs_pipeline(args)) {
      if (program.pipeline) {
        program.pipeline(out);
      }
      program.step(out);
    } else {
      for (Count i = 0; i < args.microbatches; i += 1) {
        program.forward(out);
        program.backward(out);
      }
    }
    program.step(out);
    out.text(epoch_end);
  }
}

std::string training_csv_name(std::string_view generator, const TrainingArgs& args) {
  return csv_file_name(fmt::format("{}_{}_sp_{}_iteration_{}_computationEnable_{}_{}n", generator,
                                   args.model_name, args.sequence_parallel ? "True" : "False",
                                   args.epochs.value, args.computation ? "True" : "False",
                                   args.world_size.value));
}

}  // namespace lockstep
