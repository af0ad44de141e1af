#include "app/command.h"
#include "app/compare/compare_options.h"

namespace lockstep {

extern const Command kScoreCommand;
const Command kScoreCommand{"score", "How far the model is from all measurements of a folder",
                            R"(Examples:
  lockstep score measurements
  lockstep score measurements --json

The same as 'lockstep compare score'.
)",
                            define_score};

}  // namespace lockstep
