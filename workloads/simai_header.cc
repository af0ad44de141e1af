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
#include "workloads/simai_keys.h"
#include "workloads/simai_names.h"

namespace lockstep {
namespace {

/// Unknown words that are still taken for keys of another version.
constexpr int kMaxOthers = 100;
constexpr std::int64_t kMaxCount = std::numeric_limits<std::int32_t>::max();

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
      const SimaiKey key = simai_key_named(word);
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
          .hint(near.empty()
                    ? "is this a workload text of SimAI or AICB? A topology goes to --topology"
                    : fmt::format("did you mean {}?", near));
    }
    table_.policy = policy;
    ++next_;
  }

  void keep_other(std::string_view word) {
    if (++others_ > kMaxOthers) {
      throw error(fmt::format("more than {} unknown words", kMaxOthers), "first line")
          .expected("a policy, then keys with their values")
          .hint("is this a workload text of SimAI or AICB? A topology goes to --topology");
    }
    table_.header.fields.push_back({SimaiKey::kOther, std::string(word)});
    if (warnings_ == nullptr) {
      return;
    }
    const std::string_view near =
        closest(word, std::span(kSimaiKeyTexts).first(kSimaiKeyTexts.size() - 1));
    warnings_->add(fmt::format("{}:{}: '{}' in the first line is not used{}", place_.file,
                               place_.line, printable(word),
                               near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }

  void refuse_second(SimaiKey key) const {
    for (const SimaiHeader::Field& field : table_.header.fields) {
      if (meaning_of(field.key) == meaning_of(key)) {
        throw error("the key stands twice", name_of_key(key)).expected("each key at most once");
      }
    }
  }

  void read_value(SimaiKey key) {
    Parallelism& parallel = job_.parallel;
    switch (key) {
      case SimaiKey::kTp:
        parallel.tp = integer(key, 1, kMaxGpus);
        break;
      case SimaiKey::kEp:
        parallel.ep = integer(key, 1, kMaxGpus);
        break;
      case SimaiKey::kPp:
        parallel.pp = integer(key, 1, kMaxGpus);
        break;
      case SimaiKey::kVpp:
        parallel.vpp = integer(key, 0, kMaxCount);
        break;
      case SimaiKey::kGa:
        parallel.ga = integer(key, 0, kMaxCount);
        break;
      case SimaiKey::kAllGpus:
        parallel.gpus = integer(key, 1, kMaxGpus);
        break;
      case SimaiKey::kMode:
        table_.mode = integer(key, 0, kMaxCount);
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
    if (next_ == words_.size() || simai_key_named(words_[next_]) != SimaiKey::kOther) {
      --next_;  // point at the key
      throw error("the value is missing", name_of_key(key)).expected(expected);
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
    const std::int64_t count = integer(key, 0, kMaxCount);
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < count; ++i) {
      ids.push_back(static_cast<std::int32_t>(integer(key, 0, kMaxCount)));
    }
    return ids;
  }

  double bytes(SimaiKey key) {
    const std::string expected = fmt::format("bytes, from 0 to {}", kMaxSimaiPpComm);
    const std::string_view word = take(key, expected);
    const std::optional<double> value = to_double(word);
    if (!value || std::signbit(*value) || *value > static_cast<double>(kMaxSimaiPpComm)) {
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
    const std::int64_t cut = parallel.tp * parallel.pp;  // below 2^49
    if (parallel.gpus % cut != 0) {
      warnings_->add(fmt::format("{}:{}: all_gpus ({}) is not a multiple of tp x pp ({})",
                                 place_.file, place_.line, parallel.gpus, cut));
    }
  }

  /// About the last word taken.
  Error bad_value(std::string_view word, SimaiKey key) {
    --next_;
    return error(fmt::format("'{}' is not a valid value", printable(word)), name_of_key(key));
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
  int others_ = 0;
  WorkloadJob& job_;
  LayerTable& table_;
  Warnings* warnings_;
};

}  // namespace

void parse_simai_header(std::string_view line, LinePlace place, WorkloadJob& job, LayerTable& table,
                        Warnings* warnings) {
  HeaderReader(line, place, job, table, warnings).read();
}

}  // namespace lockstep
