#include "analysis/compare/host_clusters.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace lockstep::compare {
namespace {

/// What hosts of one cluster often have in common; may be nothing.
std::string family(const std::string& host) {
  const std::size_t last = host.find_last_not_of("-0123456789");
  return last + 1 < host.size() ? host.substr(0, last + 1)
                                : host.substr(0, host.find_first_of("-0123456789"));
}

/// Without what is a file's and no host's: "#2" of several tables, ".log.gz".
std::string_view without_endings(std::string_view id) {
  if (const std::size_t hash = id.rfind('#'); hash != std::string_view::npos) {
    id = to_int(id.substr(hash + 1)) ? id.substr(0, hash) : id;
  }
  for (const std::string_view ending : {".gz", ".log", ".txt", ".out", ".err"}) {
    id = id.ends_with(ending) ? id.substr(0, id.size() - ending.size()) : id;
  }
  return id;
}

}  // namespace

std::vector<std::string> hosts_in(std::string_view id, std::int32_t servers) {
  id = without_endings(id);
  std::size_t at = std::string::npos;
  for (std::size_t i = 0; i + 2 < id.size(); ++i) {
    const bool mark = (id[i] == 'g' || id[i] == 'G') && id[i + 1] >= '0' && id[i + 1] <= '9' &&
                      (i == 0 || id[i - 1] == '-' || id[i - 1] == '_');
    std::size_t end = i + 1;
    while (mark && end < id.size() && id[end] >= '0' && id[end] <= '9') {
      ++end;
    }
    if (mark && end + 1 < id.size() && (id[end] == '-' || id[end] == '_')) {
      at = end + 1;
    }
  }
  std::vector<std::string> hosts;
  if (at != std::string::npos) {
    for (const std::string_view host : split(id.substr(at), '_')) {
      if (!host.empty()) {
        hosts.emplace_back(host);
      }
    }
  }
  return std::ssize(hosts) == servers ? hosts : std::vector<std::string>{};
}

void HostClusters::take(const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) {
    join(host, hosts.front());
    join(host, family_.try_emplace(family(host), host).first->second);
  }
}

std::string HostClusters::of(const std::vector<std::string>& hosts) {
  return hosts.empty() ? "" : root(hosts.front());
}

std::string HostClusters::root(const std::string& host) {
  std::string at = host;
  while (parents_.try_emplace(at, at).first->second != at) {
    at = parents_[at];
  }
  parents_[host] = at;  // the next way is short
  return at;
}

void HostClusters::join(const std::string& a, const std::string& b) {
  const std::string one = root(a), other = root(b);
  parents_[std::max(one, other)] = std::min(one, other);
}

}  // namespace lockstep::compare
