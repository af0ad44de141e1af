/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "receiver-congestion-control.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(ReceiverCongestionControl);

TypeId
ReceiverCongestionControl::GetTypeId()
{
    static TypeId tid = TypeId("ns3::ReceiverCongestionControl")
                            .SetParent<FabricCongestionControl>()
                            .SetGroupName("Lockstep")
                            .AddConstructor<ReceiverCongestionControl>()
                            .AddAttribute("Load",
                                          "Share of the rate that is granted in all.",
                                          DoubleValue(1.0),
                                          MakeDoubleAccessor(&ReceiverCongestionControl::m_load),
                                          MakeDoubleChecker<double>(0.01, 2.0));
    return tid;
}

uint32_t
ReceiverCongestionControl::GetNeeds() const
{
    return SHARERS;
}

void
ReceiverCongestionControl::Acknowledge(FabricQueuePair& pair, const FabricFeedback& feedback)
{
    const uint32_t sharers = std::max<uint32_t>(1, feedback.sharers);
    pair.rate = std::min(pair.lineRate, m_load * pair.bottleneck / sharers);
    pair.window = std::max<int64_t>(1, pair.fullWindow / sharers);
}

bool
ReceiverCongestionControl::IsSteady(const FabricQueuePair& /* pair */) const
{
    return true; // sharers change with messages, not with time, and nothing else is kept
}

} // namespace ns3
