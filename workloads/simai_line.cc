#include "workloads/simai_line.h"

#include <array>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "workloads/simai_names.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 12> kColumns{
    "name",
    "dependency",
    "forward compute time",
    "forward comm type",
    "forward comm size",
    "input-gradient compute time",
    "input-gradient comm type",
    "input-gradient comm size",
    "weight-gradient compute time",
    "weight-gradient comm type",
    "weight-gradient comm size",
    "update time",
};
constexpr std::string_view kPolicyColumn = "policy";
constexpr std::int64_t kMaxTimeNs = std::numeric_limits<std::int64_t>::max() / 1'000;

}  // namespace

SimaiLine::SimaiLine(std::string_view line, LinePlace place, bool customized, bool at_file_end)
    : line_(line), place_(place), words_(split_blanks(line)) {
  const std::size_t wanted = kColumns.size() + (customized ? 1 : 0);
  if (words_.size() == wanted) {
    return;
  }
  Error problem =
      Error(fmt::format("the line has {} column{}", words_.size(), words_.size() == 1 ? "" : "s"))
          .at(place_.file, place_.line)
          .expected(fmt::format("{} columns: {}{}", wanted, join(kColumns, ", "),
                                customized ? ", policy" : ""));
  if (at_file_end && words_.size() < wanted) {
    throw std::move(problem).hint("the file ends here; was it cut off?");
  }
  throw problem;
}

std::string_view SimaiLine::read(Layer& layer) const {
  layer.dependency = static_cast<std::int32_t>(integer(1, std::numeric_limits<std::int32_t>::min(),
                                                       std::numeric_limits<std::int32_t>::max()));
  layer.forward = phase(2, GroupKind::kTp);
  layer.input_grad = phase(5, GroupKind::kTp);
  layer.weight_grad = phase(8, GroupKind::kDp);
  layer.update = time(11);
  return words_[0];
}

std::string_view SimaiLine::policy() const {
  const std::string_view word = words_.back();
  if (!is_simai_policy(word)) {
    const std::string_view near = closest(word, simai_policies());
    throw error(words_.size() - 1, fmt::format("unknown parallelism policy '{}'", printable(word)))
        .expected(join(simai_policies(), ", "))
        .hint(near.empty() ? "" : fmt::format("did you mean {}?", near));
  }
  return word;
}

void SimaiLine::check_name() const {
  for (const char c : words_[0]) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') {
      throw error(0, fmt::format("'{}' has control characters in it", printable(words_[0])))
          .expected("a name without blanks and control characters")
          .hint("is this a text file?");
    }
  }
}

LayerPhase SimaiLine::phase(std::size_t first, GroupKind plain) const {
  LayerPhase out;
  out.compute = time(first);
  const std::string_view type = words_[first + 1];
  const std::optional<SimaiComm> comm = parse_simai_comm(type, plain);
  if (!comm) {
    const std::string_view near = closest_simai_comm(type);
    throw error(first + 1, fmt::format("unknown communication type '{}'", printable(type)))
        .expected(
            "NONE, or ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, BROADCAST with nothing, _EP "
            "or _DP_EP behind")
        .hint(near.empty() ? "" : fmt::format("did you mean {}?", near));
  }
  out.comm = comm->comm;
  out.group = comm->group;
  out.bytes = Bytes(integer(first + 2, 0, std::numeric_limits<std::int64_t>::max(), " of bytes"));
  return out;
}

Time SimaiLine::time(std::size_t column) const {
  return Time::ns(integer(column, 0, kMaxTimeNs, " of nanoseconds"));
}

std::int64_t SimaiLine::integer(std::size_t column, std::int64_t low, std::int64_t high,
                                std::string_view unit) const {
  const std::optional<std::int64_t> value = to_int(words_[column]);
  if (!value || *value < low || *value > high) {
    throw error(column, fmt::format("'{}' is not a valid value", printable(words_[column])))
        .expected(fmt::format("a whole number{} from {} to {}", unit, low, high));
  }
  return *value;
}

Error SimaiLine::error(std::size_t column, std::string message) const {
  const auto offset = static_cast<std::size_t>(words_[column].data() - line_.data());
  return Error(std::move(message))
      .at(place_.file, place_.line, offset + 1)
      .field(column < kColumns.size() ? kColumns[column] : kPolicyColumn);
}

}  // namespace lockstep
