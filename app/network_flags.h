#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli_fwd.h"
#include "app/transport_flags.h"
#include "simulator/collectives/nccl_tuner.h"
#include "simulator/network/flow/flow_options.h"

namespace lockstep {

/// The flags about transfers that `simulate` and `collective` share, as typed.
struct NetworkFlags : TransportFlags {
  std::string send_latency;  // empty: NCCL's by protocol and hop; simai 6 us
  std::string mtu, header;   // empty: by flavour
  bool pxn = false, no_pxn = false, rail_affinity = false;
  std::optional<bool> spray;                      // where it is not said, the command decides
  std::string algorithm, protocol, nccl_version;  // empty: chosen
  std::int32_t channels = 0;                      // 0: chosen
  bool nvls = false;
  std::string preset;  ///< real_rates.h; empty: links and hops are as they are called
};

/// Declares them in a group of the help; `flags` must outlive the parsing.
void define_network_flags(CLI::App& app, NetworkFlags& flags, const char* group);
/// The same for those about how collectives are carried out.
void define_choice_flags(CLI::App& app, NetworkFlags& flags, const char* group);

/// Whether routes that change rails do so over NVLink: NCCL's default since 2.12. Not in flavour
/// simai, where --pxn gives rings relays (CollectiveRequest) and all else crosses the spines.
bool takes_pxn(const NetworkFlags& flags, bool simai_flavour);

/// What they say to the flow engine, on top of a flavour's defaults. ERRORS: Error naming the flag.
FlowOptions flow_options(const NetworkFlags& flags, bool simai_flavour);

/// Those that were typed and that the analytic engine's formulas have no place for. (They are of a
/// ring, and all-to-all of everyone to everyone: --algorithm ring goes with them.)
std::vector<std::string> flags_beside_formulas(const NetworkFlags& flags);

/// Of those flags what a command line of SimAI's has for all its engines (docs/models.md): told in
/// a warning, as one line is to do for every engine. ERRORS: Error naming the first other one.
std::vector<std::string> unheeded_by_formulas(const std::vector<std::string>& flags);

/// What they leave to NCCL, and what not. ERRORS: Error naming the flag.
NcclWishes nccl_wishes(const NetworkFlags& flags);

/// The name that --algorithm (NAME or OP=NAME, several by commas) gives for an operation: the one
/// for this operation, else the one for all; empty if there is none.
/// ERRORS: Error naming the flag where a name or operation does not exist or they do not go
/// together.
std::string algorithm_name(const NetworkFlags& flags, CommType op);

/// The value of --error-budget: a part below 1; 0 where it is empty. ERRORS: Error naming the flag.
double error_budget(const std::string& text);

/// Whether --nvls makes this collective an NVLS one: an all-reduce of at least 8 GPUs of each of
/// its servers, all of them Hopper or newer and behind NVSwitches. (SimAI's AS_NVLS_ENABLE does so
/// for TP groups alone, of one server.)
bool nvls_by_flag(const NetworkFlags& flags, CommType op, const GroupShape& shape);

/// Whether SimAI heeds AS_NVLS_ENABLE on a topology of these GPUs: H100s and H800s.
bool simai_knows_nvls(std::string_view gpu_type);

/// The same where one flag stands for many operations: nothing, too, where the name for all is of
/// an algorithm that does not do this one.
const CollectiveAlgorithm* algorithm_if_able(const NetworkFlags& flags, CommType op);

}  // namespace lockstep
