/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "dctcp-congestion-control.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(DctcpCongestionControl);

TypeId
DctcpCongestionControl::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::DctcpCongestionControl")
            .SetParent<FabricCongestionControl>()
            .SetGroupName("Lockstep")
            .AddConstructor<DctcpCongestionControl>()
            .AddAttribute("Gain",
                          "Weight of the newest round trip.",
                          DoubleValue(1.0 / 16),
                          MakeDoubleAccessor(&DctcpCongestionControl::m_gain),
                          MakeDoubleChecker<double>(0.0, 1.0))
            .AddAttribute("AdditiveIncrease",
                          "Step of the rate.",
                          DataRateValue(DataRate("1Gbps")),
                          MakeDataRateAccessor(&DctcpCongestionControl::m_additive),
                          MakeDataRateChecker())
            .AddAttribute("MinRate",
                          "Lowest rate.",
                          DataRateValue(DataRate("100Mbps")),
                          MakeDataRateAccessor(&DctcpCongestionControl::m_minRate),
                          MakeDataRateChecker())
            .AddAttribute("ScaleWindow",
                          "The window shrinks with the rate.",
                          BooleanValue(true),
                          MakeBooleanAccessor(&DctcpCongestionControl::m_scaleWindow),
                          MakeBooleanChecker());
    return tid;
}

uint32_t
DctcpCongestionControl::GetNeeds() const
{
    return MARKS | MARKED_BYTES;
}

void
DctcpCongestionControl::Start(FabricQueuePair& pair, int64_t now)
{
    FabricCongestionControl::Start(pair, now);
    if (m_states.size() <= pair.index)
    {
        m_states.resize(pair.index + 1);
    }
    m_states[pair.index] = State{1.0, 0, 0, 0};
}

void
DctcpCongestionControl::Acknowledge(FabricQueuePair& pair, const FabricFeedback& feedback)
{
    State& state = m_states[pair.index];
    state.all += feedback.newlyAcked;
    state.marked += feedback.newlyMarked;
    if (pair.acked < state.update || state.all == 0)
    {
        return;
    }
    const double share = static_cast<double>(state.marked) / static_cast<double>(state.all);
    state.alpha = (1 - m_gain) * state.alpha + m_gain * share;
    double rate = pair.rate;
    if (state.marked > 0)
    {
        rate *= 1 - state.alpha / 2;
    }
    else
    {
        rate += static_cast<double>(m_additive.GetBitRate());
    }
    state.marked = 0;
    state.all = 0;
    state.update = pair.next;
    rate = std::min(pair.lineRate, std::max(static_cast<double>(m_minRate.GetBitRate()), rate));
    pair.rate = rate;
    if (m_scaleWindow)
    {
        SetRateAndWindow(pair, rate);
    }
}

} // namespace ns3
