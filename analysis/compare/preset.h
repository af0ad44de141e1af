#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/collectives/nccl_time.h"
#include "trace/physical_log.h"

namespace lockstep::compare {

/// The least and the most that a fitted number may well be (95 %), in the file's units.
struct Interval {
  double low = 0, high = 0;
};

/// A kind of cluster: its hardware, and what is known of its rates. The files of presets/ and those
/// that `lockstep compare calibrate` writes (docs/formats/fabric.md).
struct Preset {
  std::string name, title, gpu, network;
  NcclSystem system;
  bool nvls = true;          ///< false: its NCCL is set up not to use multicast in the switches
  std::string nccl_version;  ///< where a log names none
  /// Words that a log's description of GPU, network and hosts must have, "a|b" for either; and
  /// those that it must not have.
  std::vector<std::string> words, without;
  std::map<std::string, Interval> intervals;  ///< by the names of nccl_rate_fields()
  std::vector<std::string> provenance;
};

/// Those that come along, by name.
const std::vector<Preset>& presets();

/// The preset of that name, or the file's that lies under it. ERRORS: neither exists (with the
/// nearest name); the file's own.
Preset preset_named(const std::string& name_or_file);

/// The preset whose words the setting's description has, the one with the most words first; null
/// if there is none.
const Preset* match_preset(const CommSetting& setting);

/// What match_preset looks at, in lower case: GPU, transport, NICs, id, and "xname" where hosts are
/// called as in a Cray (which has Slingshot), "mesh" where NCCL found no multicast on Hopper.
std::string description_of(const CommSetting& setting);

Preset read_preset(std::string_view text, const std::string& file);
std::string to_json_text(const Preset& preset);

}  // namespace lockstep::compare
