#include "trace/host_calls.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "base/json.h"
#include "base/text.h"
#include "trace/physical_log.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 50;
constexpr std::size_t kDeepest = 8;  // calls within calls

/// Elements of a tensor of these dimensions; of a list of tensors, of all together. Of no
/// dimension, which is how a number stands there, none.
std::int64_t elements(const Json& dims) {
  std::int64_t product = dims.empty() ? 0 : 1, sum = 0;
  for (const Json& each : dims) {
    if (each.is_array()) {
      product = 0;
      sum = std::min(sum + elements(each), kMostElements);
    } else {
      const std::int64_t size = each.is_number_unsigned()
                                    ? static_cast<std::int64_t>(std::min<std::uint64_t>(
                                          each.get<std::uint64_t>(), kMostElements))
                                    : 0;
      product = size > 0 && product > kMostElements / size ? kMostElements : product * size;
    }
  }
  return sum + product;
}

/// Of each tensor of "[[512, 32], [], [[4], [2]]]", whose third is a list of two.
std::vector<std::int64_t> elements_of(const Json& list) {
  std::vector<std::int64_t> tensors;
  for (const Json& dims : list) {
    tensors.push_back(dims.is_array() ? elements(dims) : 0);
  }
  return tensors;
}

/// Bytes of the tensors, all of whose types are known; -1: there are none, or some are not.
std::int64_t bytes_of(const std::vector<std::int64_t>& tensors, const Json& types) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool known = i < types.size() && types[i].is_string();
    const std::int64_t each = known ? element_bytes(types[i].get_ref<const std::string&>()) : 0;
    if (tensors[i] > 0 && each == 0) {
      return -1;
    }
    bytes = std::min(bytes + tensors[i] * each, kMostElements);
  }
  return bytes > 0 ? bytes : -1;
}

/// A list of a call's arguments; empty where it has none, or what is no JSON.
Json list_of(std::string_view text) {
  Json list = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return list.is_array() ? list : Json::array();
}

/// How many ranks a call of one tensor out and one in has: as many as the one is larger.
std::int32_t ranks_of(CommType op, const std::vector<std::int64_t>& tensors) {
  if (tensors.size() < 2 || tensors[0] <= 0 || tensors[1] <= 0) {
    return 0;
  }
  const bool gathers = op == CommType::kAllGather;
  const std::int64_t larger = gathers ? tensors[0] : tensors[1];
  const std::int64_t smaller = gathers ? tensors[1] : tensors[0];
  const std::int64_t ranks = larger / smaller;
  return larger % smaller == 0 && ranks >= 2 && ranks < (1 << 24) ? static_cast<std::int32_t>(ranks)
                                                                  : 0;
}

}  // namespace

std::int64_t element_bytes(std::string_view dtype) {
  const std::string type = to_lower(dtype);
  const auto has = [&](const char* word) { return type.find(word) != std::string::npos; };
  const std::int64_t parts = has("complex") ? 2 : 1;  // a real and an imaginary one
  if (has("half") || has("float16") || has("short") || has("int16") || has("bits16")) {
    return 2 * parts;  // "bfloat16" and "uint16", too
  }
  if (type == "complex64" || type == "complex128") {
    return type == "complex64" ? 8 : 16;
  }
  if (has("double") || has("long") || has("int64") || has("float64")) {
    return 8 * parts;
  }
  if (has("byte") || has("char") || has("int8") || has("bool") || has("float8") || has("float4")) {
    return 1;  // of "float4_e2m1fn_x2" two
  }
  return has("float") || has("int") ? 4 * parts : 0;
}

std::int32_t HostCalls::thread_of(const TraceEvent& event) {
  std::string name(event.pid);
  name += ' ';
  name += event.tid;
  if (name != last_thread_) {
    last_number_ =
        threads_.try_emplace(name, static_cast<std::int32_t>(threads_.size())).first->second;
    last_thread_ = std::move(name);
  }
  return last_number_;
}

void HostCalls::take(const TraceEvent& event) {
  const auto names = [&](std::string_view word) {
    return event.name.find(word) != std::string_view::npos;
  };
  if (event.correlation >= 0 && (names("Launch") || names("Memcpy") || names("Memset"))) {
    launches_.push_back({event.correlation, thread_of(event), event.ts_us});
    return;
  }
  const bool outer = event.name.starts_with("c10d::");
  if (!outer && !event.name.starts_with("nccl:")) {
    return;
  }
  Call call{thread_of(event), event.ts_us, event.ts_us + event.dur_us, {}};
  call.asked.op = comm_type_in(event.name);
  call.asked.pattern = pattern_in(event.name);
  const std::vector<std::int64_t> tensors = elements_of(list_of(event.input_dims));
  if (!outer) {
    call.asked.bytes = bytes_of(tensors, list_of(event.input_types));
  } else if (event.name == "c10d::_allgather_base_" ||
             event.name == "c10d::_reduce_scatter_base_") {
    call.asked.ranks = ranks_of(call.asked.op, tensors);
  }
  calls_.push_back(call);
}

void HostCalls::sort() {
  std::ranges::sort(launches_, {}, &Launch::correlation);
  // Of calls that begin at one moment the longer one is around the other.
  std::ranges::stable_sort(calls_, {}, [](const Call& call) {
    return std::tuple(call.thread, call.begin_us, -call.end_us);
  });
  sorted_ = true;
}

const HostCalls::Launch* HostCalls::launch_of(std::int64_t correlation) {
  if (!sorted_) {
    sort();
  }
  const auto launch = std::ranges::lower_bound(launches_, correlation, {}, &Launch::correlation);
  return launch == launches_.end() || launch->correlation != correlation ? nullptr : &*launch;
}

std::optional<double> HostCalls::launched_at(std::int64_t correlation) {
  const Launch* launch = launch_of(correlation);
  return launch == nullptr ? std::nullopt : std::optional(launch->at_us);
}

std::optional<HostCalls::Asked> HostCalls::behind(std::int64_t correlation) {
  const Launch* launch = launch_of(correlation);
  if (launch == nullptr) {
    return std::nullopt;
  }
  auto call = std::ranges::upper_bound(
      calls_, std::tuple(launch->thread, launch->at_us), {},
      [](const Call& each) { return std::tuple(each.thread, each.begin_us); });
  std::optional<Asked> asked;
  for (std::size_t looks = 0; looks < kDeepest && call != calls_.begin(); ++looks) {
    --call;
    if (call->thread != launch->thread) {
      break;
    }
    if (launch->at_us > call->end_us) {
      continue;
    }
    if (!asked) {
      asked = call->asked;
    }
    asked->bytes = asked->bytes > 0 ? asked->bytes : call->asked.bytes;
    asked->ranks = asked->ranks > 0 ? asked->ranks : call->asked.ranks;
  }
  return asked;
}

}  // namespace lockstep
