#include "tests/support/run.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace lockstep::testing {
namespace {

std::string read_all(const std::string& path) { return std::string(FileText(path).view()); }

}  // namespace

RunResult run(std::vector<std::string> arguments, RunOptions options) {
  options.seconds *= LOCKSTEP_TEST_PATIENCE;
  arguments.insert(arguments.begin(), LOCKSTEP_BINARY);
  if (options.folder == RunOptions().folder) {
    options.folder = LOCKSTEP_SOURCE_DIR;
  }
  return run_process(arguments, options);
}

std::string differs_from_golden(const std::string& name, std::string_view text) {
  const std::string path = LOCKSTEP_SOURCE_DIR "/tests/golden/" + name;
  const char* update = std::getenv("LOCKSTEP_UPDATE_GOLDEN");
  if (update != nullptr && std::string_view(update) == "1") {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    write_file(path, text);
    return "";
  }
  constexpr std::string_view kAccept = "LOCKSTEP_UPDATE_GOLDEN=1 writes the golden file";
  if (!std::filesystem::exists(path)) {
    return fmt::format("{} is missing; {}", path, kAccept);
  }
  const std::string golden = read_all(path);
  if (golden == text) {
    return "";
  }
  const std::vector<std::string_view> want = split(golden, '\n');
  const std::vector<std::string_view> have = split(text, '\n');
  std::size_t line = 0;
  while (line < want.size() && line < have.size() && want[line] == have[line]) {
    ++line;
  }
  const auto shown = [line](const std::vector<std::string_view>& lines) {
    return line < lines.size() ? "'" + std::string(lines[line]) + "'" : std::string("(end)");
  };
  return fmt::format("{}:{}: the text differs\n  golden: {}\n  now:    {}\n  {}", path, line + 1,
                     shown(want), shown(have), kAccept);
}

}  // namespace lockstep::testing
