#include "trace/nccl_info.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep {
namespace {

/// The number at the start of a text, which is moved behind it.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && length < 18 && is_digit(text[length])) {
    ++length;
  }
  const auto number = to_int(text.substr(0, length));
  text.remove_prefix(number ? length : 0);
  return number;
}

/// The number behind a word: "nNodes 2" -> 2.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(at + word.size());
  return take_number(text);
}

/// The number before a word: "16 coll channels" -> 16.
std::int32_t number_before(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos || at == 0) {
    return 0;
  }
  std::size_t begin = at;
  while (begin > 0 && is_digit(text[begin - 1])) {
    --begin;
  }
  return static_cast<std::int32_t>(to_int(text.substr(begin, at - begin)).value_or(0));
}

std::string digits_and_dots(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && (is_digit(text[length]) || text[length] == '.')) {
    ++length;
  }
  text = text.substr(0, length);
  while (text.ends_with('.')) {
    text.remove_suffix(1);
  }
  return std::string(text);
}

/// "Using [0]mlx5_0:1/RoCE [1]mlx5_2:1/IB [RO]; OOB …" -> the NICs.
std::vector<std::string> nics_of(std::string_view text) {
  std::vector<std::string> nics;
  for (std::string_view word : split_blanks(text.substr(0, text.find(';')))) {
    const std::size_t close = word.find(']');
    if (word.starts_with('[') && close != std::string_view::npos && close + 1 < word.size() &&
        is_digit(word[1])) {
      nics.emplace_back(word.substr(close + 1));
    }
  }
  return nics;
}

/// "Channel 00/08 :    0   1   2   3" is a ring of the communicator.
void take_ring(std::string_view text, CommSetting& setting) {
  constexpr std::size_t kMost = 128;
  const std::size_t colon = text.find(" : ");
  const std::string_view before = text.substr(0, colon);
  if (colon == std::string_view::npos || text.find("->") != std::string_view::npos ||
      before.find('/') == std::string_view::npos || setting.rings.size() >= kMost) {
    return;
  }
  std::string ring;
  for (const std::string_view word : split_blanks(text.substr(colon + 3))) {
    if (!to_int(word) || ring.size() > 16384) {
      return;
    }
    ring += (ring.empty() ? "" : " ") + std::string(word);
  }
  if (!ring.empty()) {
    setting.rings.push_back(std::move(ring));
  }
}

}  // namespace

std::size_t find_nccl_info(std::string_view line) {
  for (const std::string_view mark :
       {" NCCL INFO ", " NCCL WARN ", " NCCL TRACE ", " RCCL INFO "}) {
    const std::size_t at = line.find(mark);
    if (at == std::string_view::npos) {
      continue;
    }
    // Back over "host:pid:tid [gpu]": two words.
    std::size_t begin = line.rfind('[', at);
    if (begin == std::string_view::npos) {
      return at;
    }
    begin = line.find_last_not_of(' ', begin == 0 ? 0 : begin - 1);
    if (begin == std::string_view::npos) {
      return at;
    }
    const std::size_t blank = line.find_last_of(" \t", begin);
    begin = blank == std::string_view::npos ? 0 : blank + 1;
    // Since 2.26 a time may stand before them: "[2025-05-12 10:11:12] ".
    const std::string_view before = line.substr(0, begin);
    const std::size_t time = std::min(before.rfind('['), before.size());
    return before.ends_with("] ") && before.size() - time > 20 && before[time + 5] == '-' &&
                   to_int(before.substr(time + 1, 4))
               ? time
               : begin;
  }
  return std::string_view::npos;
}

void take_nccl_info(std::string_view line, CommSetting& setting) {
  const std::size_t version = line.find("CCL version ");
  if (version != std::string_view::npos && setting.nccl_version.empty()) {
    std::string_view text = line.substr(version + 12);
    text.remove_prefix(std::min(text.find_first_not_of(": "), text.size()));
    setting.nccl_version = digits_and_dots(text);
  }
  const std::size_t warn = line.find("CCL WARN NET/");
  if (warn != std::string_view::npos && line.find(" Got async") != std::string_view::npos &&
      setting.nic_errors.size() < 16) {
    setting.nic_errors.emplace_back(trim(line.substr(warn + 9)).substr(0, 120));
  }
  const std::size_t info = line.find("CCL INFO ");
  if (info == std::string_view::npos) {
    return;
  }
  const std::string_view text = line.substr(info + 9);
  const auto begins = [&](std::string_view word) { return text.starts_with(word); };
  if (begins("NCCL_") || begins("RCCL_")) {  // "X set by environment to Y", "X set to Y"
    const std::string_view name = text.substr(0, text.find(' '));
    for (const std::string_view words : {" set by environment to ", " set to "}) {
      const std::size_t at = text.find(words);
      if (at != std::string_view::npos) {
        std::string_view value = trim(text.substr(at + words.size()));
        value = value.ends_with('.') ? value.substr(0, value.size() - 1) : value;
        setting.env.insert_or_assign(std::string(name), std::string(value));
        break;
      }
    }
  } else if (begins("Using network ")) {
    setting.transport = trim(text.substr(14));
  } else if (begins("NET/") && text.find(" Using [") != std::string_view::npos) {
    // TCP's interfaces, which NCCL may name besides, are no fewer NICs.
    std::vector<std::string> nics = nics_of(text);
    const bool fewer = nics.size() < setting.nics.size() && !begins("NET/Socket");
    if (!nics.empty() && (setting.nics.empty() || fewer)) {
      setting.nics = std::move(nics);
    }
  } else if (begins("comm ") && text.find(" nNodes ") != std::string_view::npos) {
    const auto ranks = number_after(text, " nRanks "), servers = number_after(text, " nNodes ");
    if (ranks && servers && *ranks > 0 && *servers > 0 && *ranks < (1 << 24)) {
      setting.ranks = static_cast<std::int32_t>(*ranks);
      setting.servers = static_cast<std::int32_t>(std::min(*servers, *ranks));
      setting.servers_by_nccl = true;
    }
  } else if (text.find(" coll channels, ") != std::string_view::npos) {
    setting.channels = number_before(text, " coll channels");
    setting.nvls_channels = number_before(text, " nvls channels");
    setting.p2p_channels = number_before(text, " p2p channels,");
    setting.p2p_channels_per_peer = number_before(text, " p2p channels per peer");
  } else if (begins("Channel ")) {
    take_ring(text.substr(8), setting);
    const std::size_t via = text.find(" via NET/");
    if (via != std::string_view::npos && !text.substr(via).starts_with(" via NET/Socket")) {
      const bool direct = text.find("/GDRDMA", via) != std::string_view::npos;
      ++setting.net_channels;
      setting.gdr_channels += direct ? 1 : 0;
      setting.gdr = setting.gdr_channels > 0;
    }
  } else if (begins("Trees ")) {
    setting.trees =
        std::max(setting.trees, static_cast<std::int32_t>(std::ranges::count(text, '[')));
  } else if (begins("NVLS multicast support is ")) {
    setting.nvls = text.find("not available") == std::string_view::npos;
  } else if (setting.net_channels == 0 && text.find("GPU Direct RDMA ") != std::string_view::npos) {
    // "GPU Direct RDMA Disabled for GPU 0 / HCA 1 …", "NET/IB : GPU Direct RDMA Enabled for HCA 0
    // …": what could be; the channels say what is.
    const bool on = text.find("GPU Direct RDMA Enabled for") != std::string_view::npos;
    if (on || text.find("GPU Direct RDMA Disabled for") != std::string_view::npos) {
      setting.gdr = setting.gdr.value_or(false) || on;
    }
  } else if (begins("=== System : maxBw ")) {
    const std::size_t at = text.find("totalBw ");
    if (at != std::string_view::npos) {
      setting.gpu_link_GBps = to_double(digits_and_dots(text.substr(at + 8))).value_or(0);
    }
  }
}

void take_nccl_environment(std::string_view line, CommSetting& setting) {
  // libfabric's one that matters much, also as folders of results are named.
  for (const std::string_view without :
       {"FI_HMEM_CUDA_USE_GDRCOPY=0", "FI_HMEM_CUDA_USE_GDRCOPY_0"}) {
    if (line.find(without) != std::string_view::npos) {
      setting.env.emplace("FI_HMEM_CUDA_USE_GDRCOPY", "0");
    }
  }
  for (const std::string_view prefix : {"NCCL_", "RCCL_"}) {
    for (std::size_t at = line.find(prefix); at != std::string_view::npos;
         at = line.find(prefix, at + 1)) {
      std::size_t end = at;
      while (end < line.size() && (std::isupper(static_cast<unsigned char>(line[end])) != 0 ||
                                   is_digit(line[end]) || line[end] == '_')) {
        ++end;
      }
      const bool whole = at == 0 || (std::isalnum(static_cast<unsigned char>(line[at - 1])) == 0 &&
                                     line[at - 1] != '_');
      if (!whole || end >= line.size() || line[end] != '=' || setting.env.size() > 200) {
        continue;
      }
      std::string_view value = line.substr(end + 1);
      const bool quoted = value.starts_with('"') || value.starts_with('\'');
      value = quoted ? value.substr(1, value.find(value[0], 1) - 1)
                     : value.substr(0, value.find_first_of(" \t;\"'"));
      setting.env.emplace(line.substr(at, end - at), value.substr(0, 200));
    }
  }
}

std::string nccl_version_of_number(std::int64_t number) {
  if (number <= 0) {
    return {};
  }
  // Up to 2.8 the number is XYZZ, since then XYYZZ.
  return number < 10000 ? fmt::format("{}.{}.{}", number / 1000, number / 100 % 10, number % 100)
                        : fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

CommType take_hints(std::string_view name, CommSetting& setting) {
  const std::string lower = to_lower(name);
  std::int64_t servers = 0, each = 0, ranks = 0;
  for (std::size_t at = 0; at < lower.size(); ++at) {
    const bool starts = at == 0 || std::isalnum(static_cast<unsigned char>(lower[at - 1])) == 0;
    if (!starts || lower[at] != 'n') {
      continue;
    }
    std::string_view rest = std::string_view(lower).substr(at + 1);
    rest.remove_prefix(rest.starts_with('-') ? 1 : 0);
    const auto number = take_number(rest);
    if (!number || *number < 1 || *number > (1 << 24)) {
      continue;
    }
    rest.remove_prefix(rest.starts_with('_') || rest.starts_with('.') ? 1 : 0);
    if (rest.starts_with("-n-") && at > 0) {  // job-n-<ranks>-N-<servers>
      rest.remove_prefix(3);
      if (const auto nodes = take_number(rest); nodes && *nodes > 0) {
        ranks = *number;
        servers = *nodes;
        break;
      }
    }
    servers = *number;
    if (rest.starts_with('g')) {
      rest.remove_prefix(1);
      each = take_number(rest).value_or(0);
      break;
    }
  }
  if (ranks == 0 && servers > 0 && each > 0 && each < 4096) {
    ranks = servers * each;
  }
  if (setting.ranks == 0 && ranks > 0 && ranks < (1 << 24)) {
    setting.ranks = static_cast<std::int32_t>(ranks);
  }
  if (setting.servers == 0 && servers > 0 && (setting.ranks == 0 || servers <= setting.ranks)) {
    setting.servers = static_cast<std::int32_t>(servers);
  }
  if (setting.gpu_type.empty()) {
    for (const std::string_view gpu : {"gb300", "gb200", "gh200", "b300", "b200", "h200", "h100",
                                       "h800", "a100", "a800", "v100", "mi300x", "mi250"}) {
      if (lower.find(gpu) != std::string::npos) {
        for (const char c : gpu) {
          setting.gpu_type += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        }
        break;
      }
    }
  }
  if (const CommType op = comm_type_in(lower); op != CommType::kNone) {
    return op;
  }
  for (const std::string_view word : split(lower, '-')) {  // "reduce" means one only as a word
    if (const CommType op = comm_type_in(word); op != CommType::kNone) {
      return op;
    }
  }
  return CommType::kNone;
}

}  // namespace lockstep
