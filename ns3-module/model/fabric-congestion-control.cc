/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-congestion-control.h"

#include <algorithm>

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(FabricCongestionControl);

TypeId
FabricCongestionControl::GetTypeId()
{
    static TypeId tid = TypeId("ns3::FabricCongestionControl")
                            .SetParent<Object>()
                            .SetGroupName("Lockstep")
                            .AddConstructor<FabricCongestionControl>();
    return tid;
}

uint32_t
FabricCongestionControl::GetNeeds() const
{
    return 0;
}

void
FabricCongestionControl::Start(FabricQueuePair& pair, int64_t /* now */)
{
    pair.rate = pair.lineRate;
    pair.window = pair.fullWindow;
    pair.timer = NEVER;
}

void
FabricCongestionControl::Acknowledge(FabricQueuePair& /* pair */,
                                     const FabricFeedback& /* feedback */)
{
}

void
FabricCongestionControl::Expire(FabricQueuePair& pair, int64_t /* now */)
{
    pair.timer = NEVER;
}

bool
FabricCongestionControl::IsSteady(const FabricQueuePair& /* pair */) const
{
    return GetInstanceTypeId() == FabricCongestionControl::GetTypeId();
}

void
FabricCongestionControl::SetRateAndWindow(FabricQueuePair& pair, double rate)
{
    pair.rate = rate;
    const double window = static_cast<double>(pair.fullWindow) * rate / pair.lineRate;
    pair.window = std::max<int64_t>(1, static_cast<int64_t>(window));
}

} // namespace ns3
