/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "swift-congestion-control.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(SwiftCongestionControl);

TypeId
SwiftCongestionControl::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::SwiftCongestionControl")
            .SetParent<FabricCongestionControl>()
            .SetGroupName("Lockstep")
            .AddConstructor<SwiftCongestionControl>()
            .AddAttribute("TargetDelay",
                          "Queueing aimed at.",
                          TimeValue(MicroSeconds(4)),
                          MakeTimeAccessor(&SwiftCongestionControl::m_targetDelay),
                          MakeTimeChecker(PicoSeconds(0)))
            .AddAttribute("ScaleRange",
                          "What small windows may add to the target.",
                          TimeValue(MicroSeconds(10)),
                          MakeTimeAccessor(&SwiftCongestionControl::m_scaleRange),
                          MakeTimeChecker(PicoSeconds(0)))
            .AddAttribute("AdditiveIncrease",
                          "Packets added a round trip.",
                          DoubleValue(1.0),
                          MakeDoubleAccessor(&SwiftCongestionControl::m_additive),
                          MakeDoubleChecker<double>(0.0))
            .AddAttribute("Beta",
                          "Strength of decreases.",
                          DoubleValue(0.8),
                          MakeDoubleAccessor(&SwiftCongestionControl::m_beta),
                          MakeDoubleChecker<double>(0.0, 1.0))
            .AddAttribute("MaxDecrease",
                          "Largest share lost at once.",
                          DoubleValue(0.5),
                          MakeDoubleAccessor(&SwiftCongestionControl::m_maxDecrease),
                          MakeDoubleChecker<double>(0.0, 1.0))
            .AddAttribute("MinWindow",
                          "Smallest window, packets.",
                          DoubleValue(0.01),
                          MakeDoubleAccessor(&SwiftCongestionControl::m_minWindow),
                          MakeDoubleChecker<double>(0.0));
    return tid;
}

void
SwiftCongestionControl::Start(FabricQueuePair& pair, int64_t now)
{
    FabricCongestionControl::Start(pair, now);
    if (m_states.size() <= pair.index)
    {
        m_states.resize(pair.index + 1);
    }
    m_states[pair.index] = State{static_cast<double>(pair.fullWindow), now};
}

void
SwiftCongestionControl::Acknowledge(FabricQueuePair& pair, const FabricFeedback& feedback)
{
    constexpr double PACKET = 4096;
    const double mostRoot = 1 / std::sqrt(100.0);
    const double leastRoot = 1 / std::sqrt(0.1);
    State& state = m_states[pair.index];
    const double packets = state.window / PACKET;
    const double scale = (1 / std::sqrt(packets) - mostRoot) / (leastRoot - mostRoot);
    const double target =
        static_cast<double>(pair.baseRtt + m_targetDelay.GetPicoSeconds()) +
        std::max(0.0, std::min(1.0, scale)) * static_cast<double>(m_scaleRange.GetPicoSeconds());
    const auto delay = static_cast<double>(feedback.roundTrip);
    if (delay < target)
    {
        const double acked = static_cast<double>(feedback.newlyAcked);
        state.window += m_additive * PACKET * acked / std::max(state.window, PACKET);
    }
    else if (feedback.now - state.decrease >= feedback.roundTrip)
    {
        state.window *= std::max(1 - m_beta * (delay - target) / delay, 1 - m_maxDecrease);
        state.decrease = feedback.now;
    }
    state.window = std::max(m_minWindow * PACKET,
                            std::min(static_cast<double>(pair.fullWindow), state.window));
    pair.window = std::max<int64_t>(1, static_cast<int64_t>(state.window));
    pair.rate = state.window >= PACKET ? pair.lineRate
                                       : std::min(pair.lineRate, state.window * 8e12 / delay);
}

} // namespace ns3
