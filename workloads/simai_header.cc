#include "workloads/simai_header.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "workloads/simai_names.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxDegree = std::numeric_limits<std::int32_t>::max();
/// Above 2^53 a double no longer holds every whole number.
constexpr std::int64_t kMaxPpComm = std::int64_t{1} << 53;

/// By SimaiKey, kOther excluded.
constexpr std::array<std::string_view, 11> kKeyTexts{
    "model_parallel_NPU_group:",
    "ep:",
    "pp:",
    "vpp:",
    "ga:",
    "all_gpus:",
    "mode:",
    "checkpoints:",
    "checkpoint_initiates:",
    "pp_comm:",
    "pp_comm",
};

constexpr std::array kTrainingOrder{
    SimaiKey::kTp,     SimaiKey::kEp,      SimaiKey::kPp,          SimaiKey::kVpp,
    SimaiKey::kGa,     SimaiKey::kAllGpus, SimaiKey::kCheckpoints, SimaiKey::kCheckpointInitiates,
    SimaiKey::kPpComm,
};

std::string_view text_of(SimaiKey key) { return kKeyTexts[static_cast<std::size_t>(key)]; }

SimaiKey key_named(std::string_view word) {
  const auto found = std::find(kKeyTexts.begin(), kKeyTexts.end(), word);
  return static_cast<SimaiKey>(std::distance(kKeyTexts.begin(), found));  // the end is kOther
}

/// The colon is a spelling, not another key.
SimaiKey meaning_of(SimaiKey key) {
  return key == SimaiKey::kPpCommNoColon ? SimaiKey::kPpComm : key;
}

class HeaderReader {
 public:
  HeaderReader(std::string_view line, LinePlace place, WorkloadJob& job, LayerTable& table,
               Warnings* warnings)
      : line_(line),
        place_(place),
        words_(split_blanks(line)),
        job_(job),
        table_(table),
        warnings_(warnings) {}

  void read() {
    read_policy();
    job_.parallel.gpus = 0;
    while (next_ < words_.size()) {
      const std::string_view word = words_[next_];
      const SimaiKey key = key_named(word);
      if (key == SimaiKey::kOther) {
        keep_other(word);
        ++next_;
        continue;
      }
      refuse_second(key);
      ++next_;
      read_value(key);
      table_.header.fields.push_back({key, ""});
    }
    warn_of_inconsistency();
  }

 private:
  void read_policy() {
    const std::string_view policy = words_.at(next_);
    if (!is_simai_policy(policy)) {
      const std::string_view near = closest(policy, simai_policies());
      throw error(fmt::format("unknown parallelism policy '{}'", printable(policy)), "policy")
          .expected(join(simai_policies(), ", "))
          .hint(near.empty() ? "is this a workload text of SimAI or AICB?"
                             : fmt::format("did you mean {}?", near));
    }
    table_.policy = policy;
    ++next_;
  }

  void keep_other(std::string_view word) {
    table_.header.fields.push_back({SimaiKey::kOther, std::string(word)});
    if (warnings_ == nullptr) {
      return;
    }
    const std::string_view near = closest(word, std::span(kKeyTexts).first(kKeyTexts.size() - 1));
    warnings_->add(fmt::format("{}:{}: '{}' in the first line is not used{}", place_.file,
                               place_.line, printable(word),
                               near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }

  void refuse_second(SimaiKey key) const {
    for (const SimaiHeader::Field& field : table_.header.fields) {
      if (meaning_of(field.key) == meaning_of(key)) {
        throw error("the key stands twice", text_of(key)).expected("each key at most once");
      }
    }
  }

  void read_value(SimaiKey key) {
    Parallelism& parallel = job_.parallel;
    switch (key) {
      case SimaiKey::kTp:
        parallel.tp = integer(key, 1, kMaxDegree);
        break;
      case SimaiKey::kEp:
        parallel.ep = integer(key, 1, kMaxDegree);
        break;
      case SimaiKey::kPp:
        parallel.pp = integer(key, 1, kMaxDegree);
        break;
      case SimaiKey::kVpp:
        parallel.vpp = integer(key, 0, kMaxDegree);
        break;
      case SimaiKey::kGa:
        parallel.ga = integer(key, 0, kMaxDegree);
        break;
      case SimaiKey::kAllGpus:
        parallel.gpus = integer(key, 1, kMaxDegree);
        break;
      case SimaiKey::kMode:
        table_.mode = integer(key, 0, kMaxDegree);
        break;
      case SimaiKey::kCheckpoints:
        table_.checkpoints = list(key);
        break;
      case SimaiKey::kCheckpointInitiates:
        table_.checkpoint_initiates = list(key);
        break;
      case SimaiKey::kPpComm:
      case SimaiKey::kPpCommNoColon:
        table_.pp_comm_bytes = bytes(key);
        break;
      case SimaiKey::kOther:
        break;
    }
  }

  std::string_view take(SimaiKey key, std::string_view expected) {
    if (next_ == words_.size() || key_named(words_[next_]) != SimaiKey::kOther) {
      --next_;  // point at the key
      throw error("the value is missing", text_of(key)).expected(expected);
    }
    return words_[next_++];
  }

  std::int64_t integer(SimaiKey key, std::int64_t low, std::int64_t high) {
    const std::string expected = fmt::format("a whole number from {} to {}", low, high);
    const std::string_view word = take(key, expected);
    const std::optional<std::int64_t> value = to_int(word);
    if (!value || *value < low || *value > high) {
      throw bad_value(word, key).expected(expected);
    }
    return *value;
  }

  /// A count, then that many layer numbers.
  std::vector<std::int32_t> list(SimaiKey key) {
    const std::int64_t count = integer(key, 0, kMaxDegree);
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < count; ++i) {
      ids.push_back(static_cast<std::int32_t>(integer(key, 0, kMaxDegree)));
    }
    return ids;
  }

  double bytes(SimaiKey key) {
    const std::string expected = fmt::format("bytes, from 0 to {}", kMaxPpComm);
    const std::string_view word = take(key, expected);
    const std::optional<double> value = to_double(word);
    if (!value || std::signbit(*value) || *value > static_cast<double>(kMaxPpComm)) {
      throw bad_value(word, key).expected(expected);
    }
    table_.header.pp_comm_float = !to_int(word) && *value == std::floor(*value);
    return *value;
  }

  void warn_of_inconsistency() {
    if (warnings_ == nullptr) {
      return;
    }
    const Parallelism& parallel = job_.parallel;
    if ((parallel.pp == 1) != (table_.pp_comm_bytes == 0)) {
      warnings_->add(fmt::format("{}:{}: pp is {}, but pp_comm is {}", place_.file, place_.line,
                                 parallel.pp, table_.pp_comm_bytes));
    }
    const std::int64_t cut = parallel.tp * parallel.pp;  // below 2^62
    if (parallel.gpus % cut != 0) {
      warnings_->add(fmt::format("{}:{}: all_gpus ({}) is not a multiple of tp x pp ({})",
                                 place_.file, place_.line, parallel.gpus, cut));
    }
  }

  /// About the last word taken.
  Error bad_value(std::string_view word, SimaiKey key) {
    --next_;
    return error(fmt::format("'{}' is not a valid value", printable(word)), text_of(key));
  }

  /// About the word at next_.
  Error error(std::string message, std::string_view field) const {
    const std::size_t column = static_cast<std::size_t>(words_[next_].data() - line_.data()) + 1;
    return Error(std::move(message)).at(place_.file, place_.line, column).field(field);
  }

  std::string_view line_;
  LinePlace place_;
  std::vector<std::string_view> words_;
  std::size_t next_ = 0;
  WorkloadJob& job_;
  LayerTable& table_;
  Warnings* warnings_;
};

void append_list(std::span<const std::int32_t> ids, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}", ids.size());
  for (const std::int32_t id : ids) {
    fmt::format_to(std::back_inserter(out), " {}", id);
  }
}

void append_pp_comm(const LayerTable& table, std::string& out) {
  const double value = table.pp_comm_bytes;
  if (value == std::floor(value) && std::fabs(value) <= static_cast<double>(kMaxPpComm)) {
    fmt::format_to(std::back_inserter(out), "{}{}", static_cast<std::int64_t>(value),
                   table.header.pp_comm_float ? ".0" : "");
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);  // shortest that reads back the same
  }
}

void append_value(SimaiKey key, const WorkloadJob& job, const LayerTable& table, std::string& out) {
  const auto integer = [&](std::int64_t value) {
    fmt::format_to(std::back_inserter(out), "{}", value);
  };
  switch (key) {
    case SimaiKey::kTp:
      return integer(job.parallel.tp);
    case SimaiKey::kEp:
      return integer(job.parallel.ep);
    case SimaiKey::kPp:
      return integer(job.parallel.pp);
    case SimaiKey::kVpp:
      return integer(job.parallel.vpp);
    case SimaiKey::kGa:
      return integer(job.parallel.ga);
    case SimaiKey::kAllGpus:
      return integer(job.parallel.gpus);
    case SimaiKey::kMode:
      return integer(table.mode);
    case SimaiKey::kCheckpoints:
      return append_list(table.checkpoints, out);
    case SimaiKey::kCheckpointInitiates:
      return append_list(table.checkpoint_initiates, out);
    case SimaiKey::kPpComm:
    case SimaiKey::kPpCommNoColon:
      return append_pp_comm(table, out);
    case SimaiKey::kOther:
      return;
  }
}

/// Whether a reader would assume this value where the key is absent.
bool is_assumed(SimaiKey key, const WorkloadJob& job, const LayerTable& table) {
  switch (key) {
    case SimaiKey::kTp:
      return job.parallel.tp == 1;
    case SimaiKey::kEp:
      return job.parallel.ep == 1;
    case SimaiKey::kPp:
      return job.parallel.pp == 1;
    case SimaiKey::kVpp:
      return job.parallel.vpp == 1;
    case SimaiKey::kGa:
      return job.parallel.ga == 1;
    case SimaiKey::kAllGpus:
      return job.parallel.gpus == 0;
    case SimaiKey::kMode:
      return table.mode == 0;
    case SimaiKey::kCheckpoints:
      return table.checkpoints.empty();
    case SimaiKey::kCheckpointInitiates:
      return table.checkpoint_initiates.empty();
    case SimaiKey::kPpComm:
    case SimaiKey::kPpCommNoColon:
      return table.pp_comm_bytes == 0;
    case SimaiKey::kOther:
      return true;
  }
  return true;
}

std::vector<SimaiHeader::Field> fields_to_write(const WorkloadJob& job, const LayerTable& table) {
  std::vector<SimaiHeader::Field> fields = table.header.fields;
  const bool usual = fields.empty() && table.policy != kMicroPolicy;
  if (job.parallel.gpus == 0) {  // unknown, which only an absent key says
    std::erase_if(fields, [](const auto& field) { return field.key == SimaiKey::kAllGpus; });
  }
  const auto add_missing = [&](SimaiKey key) {
    const bool there = std::any_of(fields.begin(), fields.end(),
                                   [&](const auto& field) { return meaning_of(field.key) == key; });
    const bool wanted = usual && key != SimaiKey::kMode && key != SimaiKey::kAllGpus;
    if (!there && (wanted || !is_assumed(key, job, table))) {
      fields.push_back({key, ""});
    }
  };
  std::for_each(kTrainingOrder.begin(), kTrainingOrder.end(), add_missing);
  add_missing(SimaiKey::kMode);
  return fields;
}

}  // namespace

void parse_simai_header(std::string_view line, LinePlace place, WorkloadJob& job, LayerTable& table,
                        Warnings* warnings) {
  HeaderReader(line, place, job, table, warnings).read();
}

void append_simai_header(const WorkloadJob& job, const LayerTable& table, std::string& out) {
  out += table.policy;
  for (const SimaiHeader::Field& field : fields_to_write(job, table)) {
    out += ' ';
    if (field.key == SimaiKey::kOther) {
      out += field.text;
      continue;
    }
    out += text_of(field.key);
    out += ' ';
    append_value(field.key, job, table, out);
  }
}

}  // namespace lockstep
