/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-parts.h"

#include <algorithm>

namespace ns3
{

FabricSamples::FabricSamples(FabricParts& parts)
    : m_state(parts.state)
{
}

void
FabricSamples::SetInterval(int64_t interval)
{
    m_interval = interval;
    m_state.nextSample = interval > 0 ? (m_state.now / interval + 1) * interval : INT64_MAX;
}

void
FabricSamples::TakeUntil(int64_t next)
{
    while (m_state.nextSample <= next)
    {
        m_state.now = m_state.nextSample;
        Take();
        m_state.nextSample += m_interval;
        const bool idle = m_state.liveMessages == m_state.pendingBegins &&
                          m_state.events.GetSize() == m_state.pendingBegins;
        if (idle && next != INT64_MAX)
        {
            m_state.nextSample = std::max(m_state.nextSample, (next / m_interval + 1) * m_interval);
        }
    }
}

void
FabricSamples::Take()
{
    m_sent.resize(m_state.ports.size());
    m_arrived.resize(m_state.pairs.size());
    for (uint32_t index = 0; index < m_state.ports.size(); ++index)
    {
        SamplePort(index);
    }
    for (const FabricQueuePair& pair : m_state.pairs)
    {
        // One for one message is sampled as it retires; its number may lie unused since.
        if (!pair.oneShot || pair.oldest != FabricState::NONE)
        {
            SamplePair(pair);
        }
    }
}

void
FabricSamples::SamplePort(uint32_t index)
{
    const FabricPort& port = m_state.ports[index];
    // What has begun to leave since somebody looked last counts as sent, the rest waits.
    uint64_t sent = port.statistics.bytes;
    uint64_t waiting = 0;
    for (uint32_t i = port.started; i < port.ring.GetSize(); ++i)
    {
        const FabricUnit& unit = port.ring[i];
        uint64_t& side = unit.start <= m_state.now ? sent : waiting;
        side += unit.wire;
    }
    const uint64_t bytes = sent - m_sent[index];
    m_sent[index] = sent;
    if (bytes > 0 || waiting > 0)
    {
        m_state.traces->portSample({m_state.now, index, bytes, waiting});
    }
}

void
FabricSamples::SamplePair(const FabricQueuePair& pair)
{
    const int64_t bytes = pair.acked - m_arrived[pair.index];
    m_arrived[pair.index] = pair.acked;
    if (bytes != 0 || pair.oldest != FabricState::NONE)
    {
        m_state.traces->pairSample({m_state.now, pair.index, bytes, pair.window, pair.rate});
    }
}

void
FabricSamples::NoteRetired(const FabricQueuePair& pair)
{
    if (m_interval > 0)
    {
        m_arrived.resize(m_state.pairs.size());
        SamplePair(pair);
        m_arrived[pair.index] = 0;
    }
}

} // namespace ns3
