#include "app/command.h"
#include "app/compare/compare_options.h"

namespace lockstep {

extern const Command kHealthCommand;
const Command kHealthCommand{"health",
                             "Slow nodes, cables and misconfigurations, from logs of like tests",
                             R"(Examples:
  lockstep health pairwise/*.log
  lockstep health measurements/index_pairwise.csv --json

The same as 'lockstep compare health'.
)",
                             define_health};

}  // namespace lockstep
