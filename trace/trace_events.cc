#include "trace/trace_events.h"

#include <algorithm>
#include <cstring>
#include <simdjson.h>

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep {
namespace {

namespace json = simdjson::ondemand;

constexpr std::size_t kPiece = 1 << 20;
constexpr std::size_t kDeepest = 64;

/// The end of the string that begins behind a quote; npos: it does not end.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (;;) {
    const void* found = std::memchr(text.data() + at, '"', text.size() - at);
    if (found == nullptr) {
      return std::string_view::npos;
    }
    const auto quote = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    std::size_t slashes = 0;
    while (slashes < quote - at && text[quote - 1 - slashes] == '\\') {
      ++slashes;
    }
    if (slashes % 2 == 0) {
      return quote;
    }
    at = quote + 1;
    if (at >= text.size()) {
      return std::string_view::npos;
    }
  }
}

/// The end (one past) of the value that begins with a bracket at `at`; npos: it does not end.
std::size_t end_of_value(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
        i = i + 1 < text.size() ? end_of_string(text, i + 1) : std::string_view::npos;
        if (i == std::string_view::npos) {
          return i;
        }
        break;
      case '{':
      case '[':
        if (++depth > kDeepest) {
          return std::string_view::npos;
        }
        break;
      case '}':
      case ']':
        if (--depth == 0) {
          return i + 1;
        }
        break;
      default:
        break;
    }
  }
  return std::string_view::npos;
}

/// Where the array of events begins (its bracket); npos: nowhere.
std::size_t begin_of_events(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '[') {
    return first;
  }
  const std::size_t key = text.find("\"traceEvents\"");
  return key == std::string_view::npos ? key : text.find('[', key);
}

std::string_view raw_scalar(json::value value) {
  std::string_view text;
  if (value.type() == json::json_type::string) {
    return value.get_string().get(text) == simdjson::SUCCESS ? text : std::string_view();
  }
  if (value.type() == json::json_type::number) {
    return trim(value.raw_json_token());
  }
  return {};
}

std::string_view raw_array(json::value value) {
  json::array array;
  std::string_view text;
  const bool read = value.type() == json::json_type::array &&
                    value.get_array().get(array) == simdjson::SUCCESS &&
                    array.raw_json().get(text) == simdjson::SUCCESS;
  return read ? text : std::string_view();
}

std::int64_t whole(json::value value, std::int64_t otherwise) {
  if (value.type() != json::json_type::number) {
    return otherwise;
  }
  double number = 0;
  return value.get_double().get(number) == simdjson::SUCCESS && number > -1e15 && number < 1e15
             ? static_cast<std::int64_t>(number)
             : otherwise;
}

double real(json::value value, double otherwise) {
  double number = otherwise;
  if (value.type() == json::json_type::number) {
    return value.get_double().get(number) == simdjson::SUCCESS ? number : otherwise;
  }
  return to_double(raw_scalar(value)).value_or(otherwise);  // some tools quote numbers
}

void take_argument(std::string_view key, json::value value, TraceEvent& event) {
  if (key == "stream") {
    event.stream = whole(value, -1);
  } else if (key == "device") {
    event.device = whole(value, -1);
  } else if (key == "Group size") {
    event.group_size = whole(value, 0);
  } else if (key == "In msg nelems") {
    event.in_elements = whole(value, -1);
  } else if (key == "Out msg nelems") {
    event.out_elements = whole(value, -1);
  } else if (key == "bytes" || key == "msg_size_bytes") {
    event.bytes = whole(value, -1);
  } else if (key == "Collective name") {
    event.collective = raw_scalar(value);
  } else if (key == "dtype") {
    event.dtype = raw_scalar(value);
  } else if (key == "Process Group Name") {
    event.group = raw_scalar(value);
  } else if (key == "Process Group Ranks") {
    if (value.type() != json::json_type::array) {
      event.group_ranks = raw_scalar(value);
      return;
    }
    for (auto rank : value.get_array()) {
      event.group_ranks += event.group_ranks.empty() ? "[" : ", ";
      event.group_ranks += raw_scalar(rank.value());
    }
    event.group_ranks += event.group_ranks.empty() ? "" : "]";
  } else if (key == "correlation") {
    event.correlation = whole(value, -1);
  } else if (key == "Input Dims") {
    event.input_dims = raw_array(value);
  } else if (key == "Input type") {
    event.input_types = raw_array(value);
  } else if (key == "name") {
    event.arg_name = raw_scalar(value);
  }
}

TraceEvent event_of(json::object object) {
  TraceEvent event;
  for (auto field : object) {
    const std::string_view key = std::string_view(field.unescaped_key());
    json::value value = field.value();
    if (key == "ph") {
      event.ph = raw_scalar(value);
    } else if (key == "name") {
      event.name = raw_scalar(value);
    } else if (key == "cat") {
      event.cat = raw_scalar(value);
    } else if (key == "ts") {
      event.ts_us = real(value, 0);
    } else if (key == "dur") {
      event.dur_us = real(value, -1);
    } else if (key == "pid") {
      event.pid = raw_scalar(value);
    } else if (key == "tid") {
      event.tid = raw_scalar(value);
    } else if (key == "id") {
      event.id = raw_scalar(value);
    } else if (key == "args" && value.type() == json::json_type::object) {
      for (auto argument : value.get_object()) {
        take_argument(std::string_view(argument.unescaped_key()), argument.value(), event);
      }
    }
  }
  return event;
}

}  // namespace

std::size_t each_trace_event(std::string_view text, Warnings& warnings,
                             const std::function<void(const TraceEvent&)>& f) {
  std::size_t at = begin_of_events(text), count = 0;
  if (at == std::string_view::npos) {
    return 0;
  }
  ++at;
  json::parser parser;
  simdjson::padded_string piece;
  std::string buffer;
  bool ended = false;
  while (!ended) {
    // Whole events from here on, up to a piece's size.
    const std::size_t begin = at;
    std::size_t end = at;
    while (end - begin < kPiece) {
      const std::size_t next = text.find_first_not_of(" \t\r\n,", at);
      if (next == std::string_view::npos || text[next] != '{') {
        ended = true;
        if (next == std::string_view::npos) {
          warnings.add("the list of events is not closed");
        }
        break;
      }
      const std::size_t close = end_of_value(text, next);
      if (close == std::string_view::npos) {
        warnings.add("the file is cut off within an event");
        ended = true;
        break;
      }
      at = end = close;
    }
    if (end == begin) {
      break;
    }
    std::string_view events = text.substr(begin, end - begin);
    events.remove_prefix(std::min(events.find_first_not_of(" \t\r\n,"), events.size()));
    buffer.assign("[");
    buffer.append(events);
    buffer.append("]");
    buffer.reserve(buffer.size() + simdjson::SIMDJSON_PADDING);
    try {
      json::document document = parser.iterate(
          simdjson::padded_string_view(buffer.data(), buffer.size(), buffer.capacity()));
      for (auto element : document.get_array()) {
        f(event_of(element.get_object()));
        ++count;
      }
    } catch (const simdjson::simdjson_error&) {
      warnings.add("events that are no JSON were passed over, up to a megabyte each");
    }
  }
  return count;
}

std::string microseconds(Time time) {
  return fmt::format("{}.{:06}", time.count_ps() / 1'000'000, time.count_ps() % 1'000'000);
}

std::string around_trace_events(std::string_view text) {
  const std::size_t begin = begin_of_events(text);
  constexpr std::size_t kMost = 1 << 24;
  std::string around(text.substr(0, std::min(begin, kMost)));
  const std::size_t last = text.rfind("\"ph\"");  // of the last event
  const std::size_t from = last == std::string_view::npos ? 0 : last;
  around += text.substr(std::max(from, text.size() - std::min(text.size(), kMost)));
  return around;
}

std::string_view text_of_key(std::string_view json_text, std::string_view key) {
  const std::string quoted = '"' + std::string(key) + '"';
  const std::size_t at = json_text.find(quoted);
  if (at == std::string_view::npos) {
    return {};
  }
  std::string_view rest = json_text.substr(at + quoted.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n:"), rest.size()));
  if (rest.starts_with('"')) {
    rest.remove_prefix(1);
    return rest.substr(0, rest.find('"'));
  }
  return rest.substr(0, rest.find_first_of(" \t\r\n,}]"));
}

std::int64_t number_of_key(std::string_view json_text, std::string_view key) {
  return to_int(text_of_key(json_text, key)).value_or(-1);
}

}  // namespace lockstep
