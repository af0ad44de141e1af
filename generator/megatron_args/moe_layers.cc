#include "generator/megatron_args/moe_layers.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr int kMaxDepth = 32;

/// [0, 1], list + list, list * number, brackets.
class ListReader {
 public:
  ListReader(std::string_view text, std::size_t limit) : text_(text), limit_(limit) {}

  std::vector<bool> whole() {
    std::vector<bool> list = sum();
    if (skip(), at_ != text_.size()) {
      throw wrong();
    }
    return list;
  }

 private:
  Error wrong() const {
    return Error(fmt::format("'{}' is no pattern of layers", printable(text_)))
        .field("--moe-layer-freq")
        .expected("a number, or a list such as ([0]*3+[1]*58)");
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
    }
  }
  bool take(char c) {
    skip();
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }
  std::int64_t number() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      ++at_;
    }
    const auto value = to_int(text_.substr(begin, at_ - begin));
    if (!value) {
      throw wrong();
    }
    return *value;
  }

  std::vector<bool> sum() {
    if (++depth_ > kMaxDepth) {
      throw wrong();
    }
    std::vector<bool> list = product();
    while (take('+')) {
      const std::vector<bool> more = product();
      list.insert(list.end(), more.begin(), more.end());
      check(list.size());
    }
    --depth_;
    return list;
  }
  std::vector<bool> product() {
    std::vector<bool> list = factor();
    while (take('*')) {
      const auto times = static_cast<std::size_t>(number());
      check(list.empty() ? 0 : times);
      std::vector<bool> repeated;
      for (std::size_t i = 0; i < times && !list.empty(); ++i) {
        repeated.insert(repeated.end(), list.begin(), list.end());
        check(repeated.size());
      }
      list = std::move(repeated);
    }
    return list;
  }
  std::vector<bool> factor() {
    std::vector<bool> list;
    if (take('(')) {
      list = sum();
      if (!take(')')) {
        throw wrong();
      }
      return list;
    }
    if (!take('[')) {
      throw wrong();
    }
    while (!take(']')) {
      const std::int64_t one = number();
      if (one > 1) {
        throw wrong();
      }
      list.push_back(one == 1);
      check(list.size());
      skip();
      if (!take(',') && (at_ >= text_.size() || text_[at_] != ']')) {
        throw wrong();
      }
    }
    return list;
  }
  void check(std::size_t size) const {
    if (size > limit_) {
      throw Error(fmt::format("the pattern is longer than the {} layers", limit_))
          .field("--moe-layer-freq");
    }
  }

  std::string_view text_;
  std::size_t limit_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<bool> moe_layers(std::string_view frequency, std::size_t layers) {
  const std::string_view text = trim(frequency);
  if (const auto every = to_int(text); every && *every >= 1) {
    std::vector<bool> pattern(layers);
    for (std::size_t i = 0; i < layers; ++i) {
      pattern[i] = i % static_cast<std::size_t>(*every) == 0;
    }
    return pattern;
  }
  std::vector<bool> pattern = ListReader(text, layers).whole();
  if (pattern.size() != layers) {
    throw Error(
        fmt::format("the pattern is of {} layers, the model has {}", pattern.size(), layers))
        .field("--moe-layer-freq")
        .expected("as many as --num-layers");
  }
  return pattern;
}

}  // namespace lockstep
