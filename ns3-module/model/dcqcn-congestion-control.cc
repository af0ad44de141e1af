/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "dcqcn-congestion-control.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(DcqcnCongestionControl);

TypeId
DcqcnCongestionControl::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::DcqcnCongestionControl")
            .SetParent<FabricCongestionControl>()
            .SetGroupName("Lockstep")
            .AddConstructor<DcqcnCongestionControl>()
            .AddAttribute("Gain",
                          "Weight of the newest interval in the estimate of congestion.",
                          DoubleValue(1.0 / 256),
                          MakeDoubleAccessor(&DcqcnCongestionControl::m_gain),
                          MakeDoubleChecker<double>(0.0, 1.0))
            .AddAttribute("AlphaInterval",
                          "Between updates of the estimate.",
                          TimeValue(MicroSeconds(55)),
                          MakeTimeAccessor(&DcqcnCongestionControl::m_alphaInterval),
                          MakeTimeChecker(NanoSeconds(1)))
            .AddAttribute("DecreaseInterval",
                          "Between decreases.",
                          TimeValue(MicroSeconds(50)),
                          MakeTimeAccessor(&DcqcnCongestionControl::m_decreaseInterval),
                          MakeTimeChecker(NanoSeconds(1)))
            .AddAttribute("IncreaseInterval",
                          "Between increases.",
                          TimeValue(MicroSeconds(55)),
                          MakeTimeAccessor(&DcqcnCongestionControl::m_increaseInterval),
                          MakeTimeChecker(NanoSeconds(1)))
            .AddAttribute("FastRecovery",
                          "Increases that only go half-way back to the target.",
                          UintegerValue(5),
                          MakeUintegerAccessor(&DcqcnCongestionControl::m_fastRecovery),
                          MakeUintegerChecker<uint32_t>())
            .AddAttribute("AdditiveIncrease",
                          "Step of the target in the first increase after fast recovery.",
                          DataRateValue(DataRate("400Mbps")),
                          MakeDataRateAccessor(&DcqcnCongestionControl::m_additive),
                          MakeDataRateChecker())
            .AddAttribute("HyperIncrease",
                          "Step of the target in later increases.",
                          DataRateValue(DataRate("4Gbps")),
                          MakeDataRateAccessor(&DcqcnCongestionControl::m_hyper),
                          MakeDataRateChecker())
            .AddAttribute("MinRate",
                          "Lowest rate.",
                          DataRateValue(DataRate("100Mbps")),
                          MakeDataRateAccessor(&DcqcnCongestionControl::m_minRate),
                          MakeDataRateChecker())
            .AddAttribute("ClampTargetRate",
                          "Every decrease moves the target to the rate; otherwise only one that "
                          "comes after an increase.",
                          BooleanValue(false),
                          MakeBooleanAccessor(&DcqcnCongestionControl::m_clamp),
                          MakeBooleanChecker())
            .AddAttribute("ScaleWindow",
                          "The window shrinks with the rate.",
                          BooleanValue(true),
                          MakeBooleanAccessor(&DcqcnCongestionControl::m_scaleWindow),
                          MakeBooleanChecker());
    return tid;
}

uint32_t
DcqcnCongestionControl::GetNeeds() const
{
    return MARKS;
}

void
DcqcnCongestionControl::Start(FabricQueuePair& pair, int64_t now)
{
    FabricCongestionControl::Start(pair, now);
    if (m_states.size() <= pair.index)
    {
        m_states.resize(pair.index + 1);
    }
    m_states[pair.index] = {1.0, pair.lineRate, now, NEVER, NEVER, 0, false, false, false};
}

void
DcqcnCongestionControl::Apply(FabricQueuePair& pair, double rate) const
{
    if (m_scaleWindow)
    {
        SetRateAndWindow(pair, rate);
    }
    else
    {
        pair.rate = rate;
    }
}

void
DcqcnCongestionControl::AdvanceAlpha(State& state, int64_t now) const
{
    const int64_t interval = m_alphaInterval.GetPicoSeconds();
    const int64_t ticks = (now - state.alphaTime) / interval;
    if (ticks > 0)
    {
        state.alpha = (1 - m_gain) * state.alpha + (state.alphaMarked ? m_gain : 0);
        state.alpha *= std::pow(1 - m_gain, static_cast<double>(ticks - 1));
        state.alphaMarked = false;
        state.alphaTime += ticks * interval;
    }
}

void
DcqcnCongestionControl::Acknowledge(FabricQueuePair& pair, const FabricFeedback& feedback)
{
    if (!feedback.marked)
    {
        return;
    }
    State& state = m_states[pair.index];
    if (!state.begun)
    {
        state.begun = true;
        state.alpha = 1;
        state.alphaTime = feedback.now;
        state.target = pair.rate;
        state.decrease = feedback.now;
    }
    else
    {
        AdvanceAlpha(state, feedback.now);
        state.alphaMarked = true;
    }
    if (!state.marked)
    {
        state.marked = true;
        // Looks come at whole intervals after the first mark.
        const int64_t interval = m_decreaseInterval.GetPicoSeconds();
        if (state.decrease <= feedback.now)
        {
            state.decrease += ((feedback.now - state.decrease) / interval + 1) * interval;
        }
        pair.timer = std::min(state.decrease, state.increase);
    }
}

void
DcqcnCongestionControl::Expire(FabricQueuePair& pair, int64_t now)
{
    State& state = m_states[pair.index];
    for (;;)
    {
        const int64_t decrease = state.marked ? state.decrease : NEVER;
        const int64_t next = std::min(decrease, state.increase);
        if (next > now)
        {
            pair.timer = next;
            return;
        }
        if (decrease == next)
        {
            AdvanceAlpha(state, next);
            if (m_clamp || state.stage > 0)
            {
                state.target = pair.rate;
            }
            const double least =
                std::min(pair.lineRate, static_cast<double>(m_minRate.GetBitRate()));
            Apply(pair, std::max(least, pair.rate * (1 - state.alpha / 2)));
            state.stage = 0;
            state.marked = false;
            state.increase = next + m_increaseInterval.GetPicoSeconds();
            continue;
        }
        if (state.stage >= m_fastRecovery)
        {
            const DataRate step = state.stage == m_fastRecovery ? m_additive : m_hyper;
            state.target =
                std::min(pair.lineRate, state.target + static_cast<double>(step.GetBitRate()));
        }
        Apply(pair, (pair.rate + state.target) / 2);
        ++state.stage;
        if (pair.lineRate - pair.rate < 1e-6 * pair.lineRate)
        {
            Apply(pair, pair.lineRate); // nothing is left to increase
            state.increase = NEVER;
        }
        else
        {
            state.increase = next + m_increaseInterval.GetPicoSeconds();
        }
    }
}

bool
DcqcnCongestionControl::IsSteady(const FabricQueuePair& pair) const
{
    return !m_states[pair.index].begun;
}

} // namespace ns3
