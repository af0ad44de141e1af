#include <algorithm>
#include <iterator>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "workloads/simai_header.h"
#include "workloads/simai_names.h"
#include "workloads/simai_txt.h"

namespace lockstep {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kLongestLine = 1 << 12;  // without the name; a guess that only saves growing

Error cannot_express(std::string message) {
  return Error("SimAI's text cannot hold this workload: " + std::move(message))
      .hint("write the native JSON form instead");
}

class LayerWriter {
 public:
  LayerWriter(const LayerTable& table, std::string& out)
      : table_(table), out_(out), micro_(table.policy == kMicroPolicy) {}

  void append(std::size_t index) {
    const Layer& layer = table_.layers[index];
    index_ = index;
    const std::string& name = table_.names.at(static_cast<std::size_t>(layer.name));
    fmt::format_to(std::back_inserter(out_), FMT_COMPILE("{}\t{}"), name, layer.dependency);
    append_phase(layer.forward, GroupKind::kTp);
    append_phase(layer.input_grad, GroupKind::kTp);
    append_phase(layer.weight_grad, GroupKind::kDp);
    fmt::format_to(std::back_inserter(out_), FMT_COMPILE("\t{}"), nanoseconds(layer.update));
    if (!table_.layer_policies.empty()) {
      out_ += '\t';
      out_ += table_.layer_policies.at(index);
    }
    out_ += '\n';
  }

 private:
  void append_phase(const LayerPhase& phase, GroupKind plain) {
    std::string_view type = simai_comm_text({phase.comm, phase.group}, plain);
    if (type.empty()) {
      throw cannot_express(
          fmt::format("layer {} has the communication {} over {} in the {} columns", index_,
                      name_of(phase.comm), name_of(phase.group),
                      plain == GroupKind::kDp ? "weight-gradient" : "forward or input-gradient"));
    }
    if (micro_ && plain == GroupKind::kDp && phase.comm == CommType::kNone) {
      type = "None";  // AICB's micro test prints Python's None for an operation it does not know
    }
    fmt::format_to(std::back_inserter(out_), FMT_COMPILE("\t{}\t{}\t{}"),
                   nanoseconds(phase.compute), type, phase.bytes.count());
  }

  std::int64_t nanoseconds(Time time) const {
    if (time.count_ps() % 1'000 != 0) {
      throw cannot_express(
          fmt::format("layer {} takes {} ps, which is no whole number of "
                      "nanoseconds",
                      index_, time.count_ps()));
    }
    return time.count_ns();
  }

  const LayerTable& table_;
  std::string& out_;
  bool micro_;
  std::size_t index_ = 0;
};

bool is_one_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != '\x7F';
  });
}

const LayerTable& only_table(const Workload& workload) {
  if (workload.jobs.size() != 1) {
    throw cannot_express(fmt::format("it has {} jobs", workload.jobs.size()));
  }
  const auto* table = std::get_if<LayerTable>(&workload.jobs[0].work);
  if (table == nullptr) {
    throw cannot_express("it is given rank by rank");
  }
  for (const std::string& name : table->names) {
    if (!is_one_word(name)) {
      throw cannot_express(fmt::format("the layer name '{}' is no single word", printable(name)));
    }
  }
  return *table;
}

}  // namespace

void write_simai_txt(const Workload& workload, const TextSink& sink) {
  const LayerTable& table = only_table(workload);
  std::string piece;
  piece.reserve(kPiece + kLongestLine);
  append_simai_header(workload.jobs[0], table, piece);
  fmt::format_to(std::back_inserter(piece), "\n{}\n", table.layers.size());
  LayerWriter writer(table, piece);
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    writer.append(i);
    if (piece.size() >= kPiece) {
      sink(piece);
      piece.clear();
    }
  }
  sink(piece);
}

std::string to_simai_txt(const Workload& workload) {
  std::string text;
  write_simai_txt(workload, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace lockstep
