#include <memory>

#include <CLI/CLI.hpp>

#include "app/command.h"
#include "app/profile/run_profile.h"

namespace lockstep {
namespace {

CommandBody define(CLI::App& app) {
  auto options = std::make_shared<ProfileOptions>();
  add_profile_options(app, *options);
  return [options] { return run_profile(*options); };
}

}  // namespace

extern const Command kProfileCommand;
const Command kProfileCommand{"profile", "Times a model's operators on the GPU at hand",
                              R"(Examples:
  lockstep profile --model llama3-8b --gpus 1 --seq 4096 -o profiles/h200
  lockstep profile --model llama3-70b --gpus 8 --tp 8 --sp --list
  lockstep profile --jobs bench/profiled_jobs.txt --limit 300 -o profiles/h200
  lockstep profile --sweep -o profiles/h200
  lockstep profile --interference -o profiles/h200
  lockstep profile --aceso-size 1_3B --aceso-mbs 1,2,4,8 --aceso-tp 1,2,4,8 -o profiles/aceso

-o writes the measurements, the profile that 'generate --profile' takes, AICB's AIOB text and, for
one pipeline stage, Metis's DeviceType JSON. --from makes them again from measurements.
)",
                              define};

}  // namespace lockstep
