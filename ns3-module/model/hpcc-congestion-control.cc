/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "hpcc-congestion-control.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(HpccCongestionControl);

TypeId
HpccCongestionControl::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::HpccCongestionControl")
            .SetParent<FabricCongestionControl>()
            .SetGroupName("Lockstep")
            .AddConstructor<HpccCongestionControl>()
            .AddAttribute("Target",
                          "Load aimed at.",
                          DoubleValue(0.95),
                          MakeDoubleAccessor(&HpccCongestionControl::m_target),
                          MakeDoubleChecker<double>(0.01, 1.0))
            .AddAttribute("Stages",
                          "Additive increases in a row before the window follows the load again.",
                          UintegerValue(5),
                          MakeUintegerAccessor(&HpccCongestionControl::m_stages),
                          MakeUintegerChecker<uint32_t>())
            .AddAttribute("AdditiveIncrease",
                          "Rate added for fairness.",
                          DataRateValue(DataRate("80Mbps")),
                          MakeDataRateAccessor(&HpccCongestionControl::m_additive),
                          MakeDataRateChecker())
            .AddAttribute("MinRate",
                          "Lowest rate.",
                          DataRateValue(DataRate("100Mbps")),
                          MakeDataRateAccessor(&HpccCongestionControl::m_minRate),
                          MakeDataRateChecker());
    return tid;
}

uint32_t
HpccCongestionControl::GetNeeds() const
{
    return TELEMETRY;
}

void
HpccCongestionControl::Start(FabricQueuePair& pair, int64_t now)
{
    FabricCongestionControl::Start(pair, now);
    if (m_states.size() <= pair.index)
    {
        m_states.resize(pair.index + 1);
    }
    m_states[pair.index] = State{};
    m_states[pair.index].reference = static_cast<double>(pair.fullWindow);
    m_states[pair.index].load = 1;
}

void
HpccCongestionControl::Acknowledge(FabricQueuePair& pair, const FabricFeedback& feedback)
{
    if (feedback.telemetry == nullptr)
    {
        return;
    }
    State& state = m_states[pair.index];
    const FabricTelemetry& now = *feedback.telemetry;
    if (!state.seen || state.last.hops != now.hops)
    {
        state.last = now;
        state.seen = true;
        state.update = pair.next;
        return;
    }
    const auto base = static_cast<double>(pair.baseRtt);
    double load = 0;
    double since = 0;
    for (uint32_t i = 0; i < now.hops; ++i)
    {
        const FabricHopTelemetry& hop = now.hop[i];
        const FabricHopTelemetry& before = state.last.hop[i];
        const auto time = static_cast<double>(hop.time - before.time);
        if (time <= 0)
        {
            continue;
        }
        const double perPs = hop.rate / 8e12;
        const double queue = static_cast<double>(std::min(hop.queued, before.queued));
        const double u =
            queue / (perPs * base) + static_cast<double>(hop.sent - before.sent) / (perPs * time);
        if (u > load)
        {
            load = u;
            since = time;
        }
    }
    state.last = now;
    if (since == 0)
    {
        return;
    }
    const double weight = std::min(since, base) / base;
    state.load = (1 - weight) * state.load + weight * load;
    const double additive = static_cast<double>(m_additive.GetBitRate()) / 8e12 * base;
    const bool round = pair.acked > state.update;
    double window = 0;
    if (state.load >= m_target || state.stage >= m_stages)
    {
        window = state.reference / (state.load / m_target) + additive;
        if (round)
        {
            state.stage = 0;
        }
    }
    else
    {
        window = state.reference + additive;
        if (round)
        {
            ++state.stage;
        }
    }
    const auto full = static_cast<double>(pair.fullWindow);
    const double least = static_cast<double>(m_minRate.GetBitRate()) / pair.lineRate * full;
    window = std::max(least, std::min(full, window));
    if (round)
    {
        state.reference = window;
        state.update = pair.next;
    }
    SetRateAndWindow(pair, pair.lineRate * window / full);
}

} // namespace ns3
