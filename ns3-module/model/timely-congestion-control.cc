/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "timely-congestion-control.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(TimelyCongestionControl);

TypeId
TimelyCongestionControl::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::TimelyCongestionControl")
            .SetParent<FabricCongestionControl>()
            .SetGroupName("Lockstep")
            .AddConstructor<TimelyCongestionControl>()
            .AddAttribute("Alpha",
                          "Weight of the newest difference.",
                          DoubleValue(0.875),
                          MakeDoubleAccessor(&TimelyCongestionControl::m_alpha),
                          MakeDoubleChecker<double>(0.0, 1.0))
            .AddAttribute("Beta",
                          "Strength of decreases.",
                          DoubleValue(0.8),
                          MakeDoubleAccessor(&TimelyCongestionControl::m_beta),
                          MakeDoubleChecker<double>(0.0, 1.0))
            .AddAttribute("Low",
                          "Round trips below always increase.",
                          TimeValue(MicroSeconds(50)),
                          MakeTimeAccessor(&TimelyCongestionControl::m_low),
                          MakeTimeChecker(PicoSeconds(0)))
            .AddAttribute("High",
                          "Round trips above always decrease.",
                          TimeValue(MicroSeconds(500)),
                          MakeTimeAccessor(&TimelyCongestionControl::m_high),
                          MakeTimeChecker(PicoSeconds(0)))
            .AddAttribute("MinRtt",
                          "What the gradient is measured in.",
                          TimeValue(MicroSeconds(20)),
                          MakeTimeAccessor(&TimelyCongestionControl::m_minRtt),
                          MakeTimeChecker(NanoSeconds(1)))
            .AddAttribute("AdditiveIncrease",
                          "Step of the rate.",
                          DataRateValue(DataRate("100Mbps")),
                          MakeDataRateAccessor(&TimelyCongestionControl::m_additive),
                          MakeDataRateChecker())
            .AddAttribute("HyperIncrease",
                          "Step of the rate from the fifth increase in a row on.",
                          DataRateValue(DataRate("500Mbps")),
                          MakeDataRateAccessor(&TimelyCongestionControl::m_hyper),
                          MakeDataRateChecker())
            .AddAttribute("MinRate",
                          "Lowest rate.",
                          DataRateValue(DataRate("100Mbps")),
                          MakeDataRateAccessor(&TimelyCongestionControl::m_minRate),
                          MakeDataRateChecker())
            .AddAttribute("ScaleWindow",
                          "The window shrinks with the rate.",
                          BooleanValue(true),
                          MakeBooleanAccessor(&TimelyCongestionControl::m_scaleWindow),
                          MakeBooleanChecker());
    return tid;
}

void
TimelyCongestionControl::Start(FabricQueuePair& pair, int64_t now)
{
    FabricCongestionControl::Start(pair, now);
    if (m_states.size() <= pair.index)
    {
        m_states.resize(pair.index + 1);
    }
    m_states[pair.index] = State{0, 0, 0, 0};
}

void
TimelyCongestionControl::Acknowledge(FabricQueuePair& pair, const FabricFeedback& feedback)
{
    State& state = m_states[pair.index];
    if (pair.acked < state.update)
    {
        return;
    }
    state.update = pair.next;
    const int64_t before = state.roundTrip;
    state.roundTrip = feedback.roundTrip;
    if (before == 0)
    {
        return;
    }
    const auto now = static_cast<double>(feedback.roundTrip);
    state.difference =
        (1 - m_alpha) * state.difference + m_alpha * (now - static_cast<double>(before));
    const double gradient = state.difference / static_cast<double>(m_minRtt.GetPicoSeconds());
    double rate = pair.rate;
    const bool low = feedback.roundTrip < m_low.GetPicoSeconds();
    if (!low && feedback.roundTrip > m_high.GetPicoSeconds())
    {
        rate *= 1 - m_beta * (1 - static_cast<double>(m_high.GetPicoSeconds()) / now);
        state.falling = 0;
    }
    else if (low || gradient <= 0)
    {
        ++state.falling;
        rate += static_cast<double>((state.falling >= 5 ? m_hyper : m_additive).GetBitRate());
    }
    else
    {
        rate *= 1 - m_beta * std::min(gradient, 1.0);
        state.falling = 0;
    }
    rate = std::min(pair.lineRate, std::max(static_cast<double>(m_minRate.GetBitRate()), rate));
    pair.rate = rate;
    if (m_scaleWindow)
    {
        SetRateAndWindow(pair, rate);
    }
}

} // namespace ns3
