#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A job's command line with the plan of a file (`plan --model … --price FILE`) in place of its
/// axes. The file is what `plan --model` prints and writes as plan.json, whose best plan counts,
/// one entry of its `plans`, or an object of flags by their names:
///
///   {"tp": 4, "pp": 2, "mbs": 1, "zero": 1, "sequence_parallel": true}
///
/// --gpus and --gbs may be in both, if they agree.
/// ERRORS: Error naming the file and the field, or the flag: no plan; a name that is no axis; an
/// axis on the command line, too; GPUs or batch that differ; pipelines that differ
/// (lockstep-mixed-plan), whose cut no flags can say.
std::vector<std::string> words_with_plan(std::span<const std::string> words,
                                         const std::string& file);
/// The same of a file's text.
std::vector<std::string> words_with_plan(std::span<const std::string> words, std::string_view text,
                                         const std::string& file);

}  // namespace lockstep
