#include "app/command.h"
#include "app/compare/compare_options.h"

namespace lockstep {

extern const Command kCalibrateCommand;
const Command kCalibrateCommand{"calibrate",
                                "Fits the model of collectives to logs of a real cluster",
                                R"(Examples:
  lockstep calibrate all_reduce.log all_gather.log --preset dgx-h100 -o mine.json
  lockstep compare all_to_all.log --preset mine.json

The same as 'lockstep compare calibrate'.
)",
                                define_calibrate};

}  // namespace lockstep
