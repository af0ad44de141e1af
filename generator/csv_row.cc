#include "generator/csv_row.h"

#include <iterator>

#include <fmt/format.h>

namespace lockstep {
namespace {

void append_or_none(std::string& text, std::optional<Count> value) {
  if (value.has_value()) {
    fmt::format_to(std::back_inserter(text), "{}", value->value);
  } else {
    text += "None";
  }
}

}  // namespace

void append(std::string& text, const CsvRow& row) {
  text += "CommType.";
  text += row.type;
  text += row.group.empty() ? ",None" : ",CommGroup.";
  text += row.group;
  text += ',';
  append_or_none(text, row.group_size);
  text += ',';
  text += row.size;
  text += ',';
  text += row.stage;
  text += ',';
  append_or_none(text, row.dst);
  text += ',';
  append_or_none(text, row.src);
  text += ',';
  text += row.additional;
  text += ',';
  append_or_none(text, row.elapsed_ns);
  text += ",None,None,1\n";
}

void append_comm(std::string& text, std::string_view type, std::string_view group,
                 std::optional<Count> group_size, Count bytes, std::string_view stage) {
  append(text, {type, group, group_size, fmt::format("{}", bytes.value), stage});
}

std::string shapes(Count a, Count b, Count c, Count d, Count e) {
  return fmt::format("(({} {} {}) ({} {}))", a.value, b.value, c.value, d.value, e.value);
}

std::string shapes(Count a, Count b, Count c, Count d) {
  return fmt::format("(({} {}) ({} {}))", a.value, b.value, c.value, d.value);
}

std::string csv_file_name(std::string_view base) {
  const std::string_view name = base.substr(base.rfind('/') + 1);
  return fmt::format("{}_workload.csv", name.substr(0, name.find('.')));
}

}  // namespace lockstep
