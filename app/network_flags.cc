#include "app/network_flags.h"

#include "app/flag_value.h"

namespace lockstep {

void define_network_flags(CLI::App& app, NetworkFlags& flags, const char* group) {
  app.add_option("--send-latency", flags.send_latency,
                 "software and NIC time of every transfer, in place of NCCL's latencies by\n"
                 "protocol and hop (simai: 6us)")
      ->group(group);
  app.add_option("--mtu", flags.mtu, "payload of a full packet (default 4096B; simai 9000B)")
      ->group(group);
  app.add_option("--header", flags.header, "wire bytes a packet adds (default 62B; simai 52B)")
      ->group(group);
  app.add_flag("--pxn", flags.pxn, "cross-rail traffic takes NVLink to the destination's rail")
      ->group(group);
  app.add_flag("--spray", flags.spray, "spread every transfer over all shortest paths")
      ->group(group);
  app.add_flag("--rail-affinity", flags.rail_affinity,
               "GPUs with several NICs choose by channel, not by hash")
      ->group(group);
}

FlowOptions flow_options(const NetworkFlags& flags, bool simai_flavour) {
  FlowOptions flow = simai_flavour ? simai_flow_options() : FlowOptions{};
  if (!flags.mtu.empty()) {
    flow.payload = flag_value("--mtu", flags.mtu, parse_bytes);
  }
  if (!flags.header.empty()) {
    flow.header = flag_value("--header", flags.header, parse_bytes);
  }
  flow.routes.pxn = flags.pxn;
  flow.routes.spray = flags.spray;
  flow.routes.rail_affinity = flags.rail_affinity;
  return flow;
}

}  // namespace lockstep
