#include "base/file_fence.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file.h"
#include "tests/support/run.h"

namespace lockstep::file_fence_test {
namespace {

using testing::ScratchFolder;

bool reads(const std::string& path) {
  try {
    return !FileText(path).view().empty();
  } catch (const Error& error) {
    LOCKSTEP_CHECK(std::string(error.what()).find("this file is not served") != std::string::npos,
                   "another error");
    return false;
  }
}

bool writes(const std::string& path) {
  try {
    write_file(path, "x");
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool makes(const std::string& folder) {
  try {
    make_folder(folder);
  } catch (const Error&) {
    LOCKSTEP_CHECK(!std::filesystem::exists(folder), "it was made nonetheless");
    return false;
  }
  return std::filesystem::exists(folder);
}

/// In a process of its own, since a fence is for ever. Exit code 0, or the line of what is wrong.
int inside(const ScratchFolder& scratch) {
  std::filesystem::current_path(scratch / "own");
  fence_files({scratch / "served", scratch / "single", ""}, {scratch / "own"});
  const std::pair<int, bool> claims[] = {
      {__LINE__, reads(scratch / "own/in")},
      {__LINE__, reads("in")},
      {__LINE__, reads(scratch / "served/in")},
      {__LINE__, reads(scratch / "own/../served/in")},
      {__LINE__, reads(scratch / "single")},
      {__LINE__, !reads(scratch / "secret")},
      {__LINE__, !reads("../secret")},
      {__LINE__, !reads("link")},
      {__LINE__, !reads(scratch / "served-not/in")},
      {__LINE__, !reads("/etc/passwd")},
      {__LINE__, writes("out")},
      {__LINE__, writes(scratch / "own/out")},
      {__LINE__, !writes(scratch / "served/out")},
      {__LINE__, !writes("../out")},
      {__LINE__, !writes("link")},
      {__LINE__, makes("made")},
      {__LINE__, makes(scratch / "own/made/below")},
      {__LINE__, !makes(scratch / "served/made")},
      {__LINE__, !makes("../made")},
      {__LINE__, !makes("out-there/made")},
  };
  for (const auto& [line, holds] : claims) {
    if (!holds) {
      return line;
    }
  }
  return 0;
}

TEST(FileFence, KeepsFilesToTheirFolders) {
  const ScratchFolder scratch;
  for (const char* folder : {"own", "served", "served-not"}) {
    make_folder(scratch / folder);
    write_file(scratch / folder + "/in", "text");
  }
  write_file(scratch / "secret", "text");
  write_file(scratch / "single", "text");
  std::filesystem::create_symlink("../secret", scratch / "own/link");
  std::filesystem::create_symlink("../served-not", scratch / "own/out-there");
  EXPECT_EXIT(std::_Exit(inside(scratch)), ::testing::ExitedWithCode(0), "");
  EXPECT_TRUE(reads(scratch / "secret"));  // without a fence
}

}  // namespace
}  // namespace lockstep::file_fence_test
