#include "simulator/network/flow/flow_options.h"

namespace lockstep {

FlowOptions simai_flow_options() {
  FlowOptions options;
  options.payload = Bytes(9000);
  options.header = Bytes(52);  // PPP 14, IPv4 20, UDP 8, sequence number and priority group 10
  options.wait_for_ack = true;
  options.ack_size = Bytes(60);
  options.fresh_ports = true;
  options.whole_ns = true;
  options.routes.hash_nvlinks = true;
  return options;
}

}  // namespace lockstep
