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

HpccCongestionControl::Load
HpccCongestionControl::Note(State& state, const FabricHopTelemetry& hop, double base)
{
    const auto place = std::lower_bound(state.last.begin(),
                                        state.last.end(),
                                        hop.port,
                                        [](const FabricHopTelemetry& known, uint32_t port)
                                        { return known.port < port; });
    if (place == state.last.end() || place->port != hop.port)
    {
        state.last.insert(place, hop);
        return {};
    }
    FabricHopTelemetry& before = *place;
    const auto time = static_cast<double>(hop.time - before.time);
    if (time <= 0)
    {
        return {}; // it was overtaken on another way
    }
    const double perPs = hop.rate / 8e12;
    const auto queue = static_cast<double>(std::min(hop.queued, before.queued));
    const auto sent = static_cast<double>(hop.sent - before.sent);
    before = hop;
    return {queue / (perPs * base) + sent / (perPs * time), time};
}

void
HpccCongestionControl::Acknowledge(FabricQueuePair& pair, const FabricFeedback& feedback)
{
    if (feedback.telemetry == nullptr)
    {
        return;
    }
    State& state = m_states[pair.index];
    const FabricTelemetry& telemetry = *feedback.telemetry;
    if (state.last.empty())
    {
        state.update = pair.next;
    }
    const auto base = static_cast<double>(pair.baseRtt);
    Load most;
    for (uint32_t i = 0; i < telemetry.hops; ++i)
    {
        const Load load = Note(state, telemetry.hop[i], base);
        most = load.load > most.load ? load : most;
    }
    if (most.time == 0)
    {
        return;
    }
    const double weight = std::min(most.time, base) / base;
    state.load = (1 - weight) * state.load + weight * most.load;
    const auto full = static_cast<double>(pair.fullWindow);
    const double additive = static_cast<double>(m_additive.GetBitRate()) / pair.lineRate * full;
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
    const double least = static_cast<double>(m_minRate.GetBitRate()) / pair.lineRate * full;
    window = std::min(full, std::max(least, window));
    if (round)
    {
        state.reference = window;
        state.update = pair.next;
    }
    SetRateAndWindow(pair, pair.lineRate * window / full);
}

} // namespace ns3
