#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "workloads/comm.h"

namespace lockstep {

/// A communication of SimAI's text: "ALLGATHER_DP_EP" is {kAllGather, kDpEp}.
struct SimaiComm {
  CommType comm = CommType::kNone;
  GroupKind group = GroupKind::kTp;
  friend bool operator==(const SimaiComm&, const SimaiComm&) = default;
};

/// Reads a spelling; one without suffix is over `plain` (kTp in the forward and input-gradient
/// columns, kDp in the weight-gradient column). "None" is AICB's micro test for no communication.
/// Nothing if it is unknown.
std::optional<SimaiComm> parse_simai_comm(std::string_view word, GroupKind plain);

/// The spelling in a column whose plain group is `plain`; empty if SimAI's text has none.
std::string_view simai_comm_text(SimaiComm comm, GroupKind plain);

/// The nearest known spelling (closest()), for hints.
std::string_view closest_simai_comm(std::string_view word);

/// The parallelism policies that SimAI knows: first word of its text.
std::span<const std::string_view> simai_policies();
bool is_simai_policy(std::string_view name);

inline constexpr std::string_view kMicroPolicy = "MICRO";
inline constexpr std::string_view kCustomizedPolicy = "HYBRID_CUSTOMIZED";

}  // namespace lockstep
