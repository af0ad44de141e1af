#include <cstddef>
#include <cstdint>
#include <string_view>

#include "app/sweep/grid.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const lockstep::Grid grid = lockstep::parse_grid(text, "grid.yaml");
    for (const std::int64_t number : {std::int64_t{0}, grid.size() - 1}) {
      (void)lockstep::command_line(grid, grid.point(number), "files", true);
    }
  } catch (const lockstep::Error&) {
  }
  return 0;
}
