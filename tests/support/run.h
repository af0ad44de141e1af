#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/scratch_folder.h"

namespace lockstep::testing {

using RunResult = ProcessResult;
using RunOptions = ProcessOptions;

/// Runs the `lockstep` of this build, in the root of the sources unless the options name another
/// folder: run({"topology", "check", file}).
RunResult run(std::vector<std::string> arguments, RunOptions options = {});

using lockstep::ScratchFolder;

/// Compares with the golden file tests/golden/<name>; the answer is empty if they are equal, else
/// the first line that differs and how to accept the new text. With LOCKSTEP_UPDATE_GOLDEN=1 in
/// the environment the file is written instead (read the diff before you commit it).
std::string differs_from_golden(const std::string& name, std::string_view text);

}  // namespace lockstep::testing

/// Fails the test where `text` differs from the golden file.
#define EXPECT_GOLDEN(name, text) \
  EXPECT_EQ("", ::lockstep::testing::differs_from_golden(name, text))
