#include "simulator/network/analytic/bus_bandwidth.h"

namespace lockstep {

// The order of the operations is SimAI's: in single precision it decides the last digit.
template <class Real>
BusBandwidth<Real> bus_bandwidth(CommType op, const GroupPlacement<Real>& shape, Real nvlink,
                                 Real nic) {
  const Real g = shape.ranks_per_node;
  if (shape.nodes <= 1) {
    return {nvlink, false};
  }
  if (op == CommType::kAllToAll) {
    return {nic * shape.nics_per_node / g * (shape.nodes * g - 1) / ((shape.nodes - 1) * g), false};
  }
  const Real through_nics = nic * shape.nics_per_node;
  if (g <= 1 || through_nics <= nvlink) {
    return {through_nics, false};
  }
  const Real through_nvlink = nvlink * g / (g - 1);
  if (through_nvlink < through_nics) {
    return {through_nvlink, true};
  }
  return {through_nics, false};
}

template BusBandwidth<float> bus_bandwidth(CommType, const GroupPlacement<float>&, float, float);
template BusBandwidth<double> bus_bandwidth(CommType, const GroupPlacement<double>&, double,
                                            double);

}  // namespace lockstep
