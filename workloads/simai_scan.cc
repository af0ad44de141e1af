#include <limits>
#include <optional>

#include "workloads/simai_line.h"
#include "workloads/simai_names.h"

namespace lockstep {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
bool is_word(char c) { return static_cast<unsigned char>(c) > ' '; }

class Scanner {
 public:
  Scanner(const char* begin, const char* end) : at_(begin), end_(end) {}

  /// Whether the line was read. Then at() is behind it, and name() its first column.
  bool read(Layer& layer) {
    return word(name_) && integer(layer.dependency) && phase(layer.forward, GroupKind::kTp) &&
           phase(layer.input_grad, GroupKind::kTp) && phase(layer.weight_grad, GroupKind::kDp) &&
           time(layer.update) && line_end();
  }
  std::string_view name() const { return name_; }
  const char* at() const { return at_; }

 private:
  void skip_blanks() {
    while (at_ != end_ && is_blank(*at_)) {
      ++at_;
    }
  }

  bool word(std::string_view& out) {
    skip_blanks();
    const char* begin = at_;
    while (at_ != end_ && is_word(*at_)) {
      ++at_;
    }
    out = {begin, static_cast<std::size_t>(at_ - begin)};
    return !out.empty();
  }

  bool number(std::int64_t& out) {
    skip_blanks();
    constexpr std::ptrdiff_t kMaxDigits = 15;
    const char* begin = at_;
    std::int64_t value = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9' && at_ - begin <= kMaxDigits) {
      value = value * 10 + (*at_ - '0');
      ++at_;
    }
    out = value;
    return at_ != begin && at_ - begin <= kMaxDigits && (at_ == end_ || !is_word(*at_));
  }

  bool integer(std::int32_t& out) {
    skip_blanks();
    const bool negative = at_ != end_ && *at_ == '-';
    at_ += negative ? 1 : 0;
    std::int64_t value = 0;
    if (at_ == end_ || is_blank(*at_) || !number(value) ||
        value > std::numeric_limits<std::int32_t>::max()) {
      return false;
    }
    out = static_cast<std::int32_t>(negative ? -value : value);
    return true;
  }

  bool time(Time& out) {
    std::int64_t ns = 0;
    if (!number(ns)) {
      return false;
    }
    out = Time::ps(ns * 1'000);  // below 10^18
    return true;
  }

  bool phase(LayerPhase& phase, GroupKind plain) {
    std::string_view type;
    std::int64_t bytes = 0;
    if (!time(phase.compute) || !word(type) || !number(bytes)) {
      return false;
    }
    phase.bytes = Bytes(bytes);
    if (type == "NONE") {
      phase.comm = CommType::kNone;
      phase.group = plain;
      return true;
    }
    const std::optional<SimaiComm> comm = parse_simai_comm(type, plain);
    if (!comm) {
      return false;
    }
    phase.comm = comm->comm;
    phase.group = comm->group;
    return true;
  }

  bool line_end() {
    skip_blanks();
    if (at_ == end_) {
      return true;
    }
    return *at_++ == '\n';
  }

  const char* at_;
  const char* end_;
  std::string_view name_;
};

}  // namespace

const char* scan_simai_line(const char* begin, const char* end, Layer& layer,
                            std::string_view& name) {
  Scanner scanner(begin, end);
  if (!scanner.read(layer)) {
    return nullptr;
  }
  name = scanner.name();
  return scanner.at();
}

}  // namespace lockstep
