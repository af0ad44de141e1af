#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "base/warnings.h"

namespace lockstep {

/// One event of a file in the Trace Event format (chrome://tracing, Perfetto's JSON), with those of
/// its arguments that PyTorch, BytePS and we write. Views live until the next event.
struct TraceEvent {
  std::string_view name, cat, ph;
  std::string_view pid, tid;      ///< as written, without quotes
  double ts_us = 0, dur_us = -1;  ///< dur: -1 where it has none
  std::int64_t stream = -1, device = -1, group_size = 0, in_elements = -1, out_elements = -1,
               bytes = -1, correlation = -1;
  std::string_view collective, dtype, group, arg_name;  ///< "Collective name", "dtype", …, "name"
  std::string group_ranks;  ///< "[0, 1, 2]", maybe cut short by the profiler: "[0, 1, ..., 9]"
  std::string_view id;      ///< of an arrow
  std::string_view input_dims,
      input_types;  ///< of a call, as written: "[[512, 32], []]", "[\"float\", \"\"]"
};

/// Calls f with each event of the text: an object with "traceEvents", or a bare array, closed or
/// not. The text is read in pieces of a megabyte, each parsed by simdjson; a file that is cut off
/// gives the events before the cut and a warning. Events that are no JSON are counted in warnings.
/// Returns how many there were. O(size), constant memory.
std::size_t each_trace_event(std::string_view text, Warnings& warnings,
                             const std::function<void(const TraceEvent&)>& f);

/// A time as the format has it: "12.000345" microseconds.
std::string microseconds(Time time);

/// What stands before and behind the array of events: "deviceProperties", "distributedInfo", ….
std::string around_trace_events(std::string_view text);

/// The number behind `"key":` in a JSON text, wherever it stands; -1: there is none.
std::int64_t number_of_key(std::string_view json, std::string_view key);
/// The text behind it likewise; empty: none.
std::string_view text_of_key(std::string_view json, std::string_view key);

}  // namespace lockstep
