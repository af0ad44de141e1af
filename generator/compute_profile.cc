#include "generator/compute_profile.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "generator/python_text.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kLatentLinears = {
    "attention_linear_q_lora", "attention_q_column", "attention_linear_kv_lora",
    "attention_kv_column", "attention_o_row"};

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Takes a line off the front, as Python's text mode cuts it: at CR, LF or both.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end);
  text.remove_prefix(std::min<std::size_t>(text.size(), text.starts_with("\r\n") ? 2 : 1));
  return line;
}

/// The name of the section that a line opens; empty where it opens none.
std::string_view section_of(std::string_view line) {
  std::size_t word = 0;
  while (word < line.size() && is_word(line[word])) {
    ++word;
  }
  return word < line.size() && line[word] == ':' ? line.substr(0, word) : std::string_view();
}

/// The number after the first "<key>" in `line` that blanks and digits follow.
std::optional<double> value_after(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    std::size_t i = at + key.size();
    const std::size_t blanks = i;
    while (i < line.size() && is_blank(line[i])) {
      ++i;
    }
    const std::size_t begin = i;
    while (i < line.size() && is_digit(line[i])) {
      ++i;
    }
    if (begin == blanks || i == begin) {
      continue;
    }
    if (i + 1 < line.size() && line[i] == '.' && is_digit(line[i + 1])) {
      for (++i; i < line.size() && is_digit(line[i]);) {
        ++i;
      }
    }
    if (const auto value = to_double(line.substr(begin, i - begin)); value.has_value()) {
      return value;
    }
  }
  return std::nullopt;
}

/// Sums in file order, each name in the order it first came.
class Table {
 public:
  double& operator[](std::string_view name) {
    const auto found = index_.find(name);
    if (found != index_.end()) {
      return entries_[found->second].second;
    }
    index_.emplace(name, entries_.size());
    return entries_.emplace_back(name, 0.0).second;
  }
  const std::vector<std::pair<std::string, double>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, double>> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace

std::vector<AiobSection> read_aiob_sections(std::string_view text) {
  std::vector<AiobSection> sections;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (const std::string_view name = section_of(line); !name.empty()) {
      sections.push_back({std::string(name), {}});
    }
    if (sections.empty()) {
      continue;
    }
    if (const auto us = value_after(line, "time_gpu_avg:"); us.has_value()) {
      sections.back().values.push_back({true, *us});
    }
    if (const auto us = value_after(line, "time_gpu_min:"); us.has_value()) {
      sections.back().values.push_back({false, *us});
    }
  }
  return sections;
}

void warn_of_aiob_times(std::string_view text, Warnings& warnings) {
  if (text.starts_with(kByteOrderMark)) {
    std::string_view rest = text.substr(kByteOrderMark.size());
    if (const std::string_view name = section_of(take_line(rest)); !name.empty()) {
      warnings.add(
          fmt::format("line 1: AICB takes '{}' as no section: a byte order mark stands before it",
                      printable(name, 60)));
    }
  }
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = trim(take_line(text));
    const std::size_t key = line.find("time_gpu_");
    if (key == std::string_view::npos) {
      continue;
    }
    const std::size_t colon = line.find(':', key);
    const std::string_view rest = colon == std::string_view::npos ? "" : line.substr(colon + 1);
    const std::vector<std::string_view> words = split_blanks(rest);
    const std::optional<double> meant = words.empty() ? std::nullopt : to_double(words[0]);
    const std::optional<double> taken =
        value_after(line.substr(key), line.substr(key, colon + 1 - key));
    if (!meant || taken != meant) {
      warnings.add(fmt::format("line {}: AICB takes '{}' as {}", number, printable(line, 60),
                               taken ? fmt::format("{} us", *taken) : "no time"));
    }
  }
}

ComputeProfile ComputeProfile::from_aiob(std::string_view text, bool recompute) {
  double attention = 0;
  double mlp = 0;
  double grad_min = 0;
  double grad_avg = 0;
  Table others;
  std::array<double, kLatentLinears.size()> latent{};
  for (const AiobSection& section : read_aiob_sections(text)) {
    const std::string_view name = section.name;
    const bool is_attention = name.find("atten") != std::string_view::npos || name == "layernorm";
    const bool is_mlp = name.find("mlp") != std::string_view::npos || name == "layernorm2";
    const double weight =
        recompute && name.find("flash") != std::string_view::npos ? 2000.0 : 1000.0;
    for (const AiobSection::Value& value : section.values) {
      if (name == "param_time") {
        (value.average ? grad_avg : grad_min) = value.us * 1000;
      } else if (!value.average) {
        continue;
      } else if (is_attention) {
        attention += value.us * weight;
      } else if (is_mlp) {
        mlp += value.us * 1000;
      } else {
        others[name] = value.us * 1000;
      }
      const auto* const linear = std::find(kLatentLinears.begin(), kLatentLinears.end(), name);
      if (linear != kLatentLinears.end()) {
        latent[static_cast<std::size_t>(linear - kLatentLinears.begin())] = value.us * 1000;
      }
    }
  }
  ComputeProfile profile;
  const auto add = [&](std::string_view name, double ns) {
    profile.entries_.push_back({std::string(name), python_round(ns)});
  };
  add("attention_forward", attention);
  add("attention_backward", attention);
  add("mlp_forward", mlp);
  add("mlp_backward", mlp);
  add("grad_forward", grad_min);
  add("grad_backward", grad_avg);
  for (const auto& [name, ns] : others.entries()) {
    add(name, ns);
  }
  for (std::size_t i = 0; i < latent.size(); ++i) {
    add(kLatentLinears[i], latent[i]);
  }
  return profile;
}

ComputeProfile ComputeProfile::read_aiob(const std::string& path, bool recompute,
                                         Warnings& warnings) {
  const FileText file(path, Bytes(kMaxAiobBytes));
  const std::string_view text = file.marked_view();
  const std::vector<AiobSection> sections = read_aiob_sections(text);
  if (std::ranges::all_of(sections, [](const AiobSection& s) { return s.values.empty(); })) {
    if (text.find("time_gpu_") == std::string_view::npos) {
      throw Error("the file has no times")
          .at(path)
          .expected("AIOB's sections, with lines such as 'time_gpu_avg: 12.5'");
    }
    warnings.add(
        fmt::format("{}: no section has a time_gpu_avg or time_gpu_min that AICB takes: "
                    "layers and gradients take 0 ns, the embedding 1",
                    path));
  }
  warn_of_aiob_times(text, warnings);
  try {
    return from_aiob(text, recompute);
  } catch (Error& error) {
    throw std::move(error).at(path);
  }
}

std::optional<std::int64_t> ComputeProfile::find(std::string_view name) const {
  // A later entry of one name replaces an earlier one, as in a dictionary.
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (entry->name == name) {
      return entry->ns;
    }
  }
  return std::nullopt;
}

std::int64_t ComputeProfile::stage_time(std::string_view stage, Pass pass) const {
  if (const auto own = find(stage); own.has_value()) {
    return *own;
  }
  if (stage == "embedding") {
    return find("Emb").value_or(1);
  }
  return find(fmt::format("{}_{}", stage == "final" ? "attention" : stage,
                          pass == Pass::kForward ? "forward" : "backward"))
      .value_or(1);
}

std::int64_t ComputeProfile::layer_time(std::string_view layer, Pass pass) const {
  std::optional<std::int64_t> own = find(layer);
  if (!own.has_value()) {
    own = find(fmt::format("{}_", layer));
  }
  if (own.has_value() && *own != 1) {
    return *own;
  }
  return stage_time(layer.substr(0, layer.find('_')), pass);
}

}  // namespace lockstep
