#include "generator/generator.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

const Generator& generator_named(std::string_view name) {
  std::string wanted(name);
  for (char& c : wanted) {
    c = c == '_' ? '-' : c;
  }
  std::vector<std::string_view> names;
  for (const Generator* generator : generators()) {
    if (generator->name == wanted) {
      return *generator;
    }
    names.push_back(generator->name);
  }
  const std::string_view near = closest(wanted, names);
  throw Error(fmt::format("unknown generator '{}'", printable(name)))
      .field("--generator")
      .expected(join(names, ", "))
      .hint(near.empty() ? std::string("'lockstep generate --help' says what each is for")
                         : fmt::format("did you mean '{}'?", near));
}

std::string path_in(const std::string& folder, const std::string& name) {
  return name == "-" ? name : (std::filesystem::path(folder) / name).string();
}

std::string to_text(const GeneratedWorkload& workload) {
  std::string text;
  BlockWriter writer([&](std::string_view piece) { text += piece; });
  workload.write(writer);
  writer.flush();
  return text;
}

}  // namespace lockstep
