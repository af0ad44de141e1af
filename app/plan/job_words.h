#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/job/job_space.h"

namespace lockstep {

/// A command line of `plan --model` taken apart: what is chosen from, and the words that describe
/// the rest of the job.
struct JobWords {
  PlanAxes axes;
  std::vector<std::string> rest;
};

/// Takes the flags of PlanAxes out of a command line, in any of their spellings (job_flags()): one
/// value or several with commas pin an axis, the names in `forbidden` hold one at 1,
/// none or off. `--gpus` stays in the rest, too, with its largest value.
/// ERRORS: Error naming the flag: no value, a value that is none, pinned and forbidden at once,
/// --gpus missing.
JobWords take_axes(std::span<const std::string> words, std::span<const std::string> forbidden);

/// Whether a flag, in one of its spellings and without "--", is an axis of plans.
bool is_axis(std::string_view flag);

/// ERRORS: Error naming the flag if it is an axis and this is none of its values.
void check_axis(std::string_view flag, std::string_view value);

/// What may be forbidden: "tp", "cp", …
std::span<const std::string_view> forbidden_axes();

}  // namespace lockstep
