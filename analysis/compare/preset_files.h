#pragma once

#include <span>
#include <string_view>

namespace lockstep {

struct PresetFile {
  std::string_view name, text;
};
std::span<const PresetFile> preset_files();

}  // namespace lockstep
