/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-samples.h"

#include <algorithm>

namespace ns3
{

FabricSamples::FabricSamples(FabricTables& tables)
    : m_tables(tables)
{
}

void
FabricSamples::SetInterval(int64_t interval, int64_t now)
{
    m_now = now;
    m_interval = interval;
    m_tables.nextSample = interval > 0 ? (m_now / interval + 1) * interval : INT64_MAX;
}

void
FabricSamples::TakeUntil(int64_t next, bool idle)
{
    while (m_tables.nextSample <= next)
    {
        Take(m_tables.nextSample);
        m_tables.nextSample += m_interval;
        if (idle && next != INT64_MAX)
        {
            m_tables.nextSample =
                std::max(m_tables.nextSample, (next / m_interval + 1) * m_interval);
        }
    }
}

void
FabricSamples::Take(int64_t now)
{
    m_now = now;
    m_sent.resize(m_tables.ports.size());
    m_arrived.resize(m_tables.pairs.size());
    for (uint32_t index = 0; index < m_tables.ports.size(); ++index)
    {
        SamplePort(index);
    }
    for (const FabricQueuePair& pair : m_tables.pairs)
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
    const FabricPort& port = m_tables.ports[index];
    // What has begun to leave since somebody looked last counts as sent, the rest waits.
    uint64_t sent = port.statistics.bytes;
    uint64_t waiting = 0;
    for (uint32_t i = port.started; i < port.ring.GetSize(); ++i)
    {
        const FabricUnit& unit = port.ring[i];
        uint64_t& side = unit.start <= m_now ? sent : waiting;
        side += unit.wire;
    }
    const uint64_t bytes = sent - m_sent[index];
    m_sent[index] = sent;
    if (bytes > 0 || waiting > 0)
    {
        m_tables.traces->portSample({m_now, index, bytes, waiting});
    }
}

void
FabricSamples::SamplePair(const FabricQueuePair& pair)
{
    const int64_t bytes = pair.acked - m_arrived[pair.index];
    m_arrived[pair.index] = pair.acked;
    if (bytes != 0 || pair.oldest != FabricState::NONE)
    {
        m_tables.traces->pairSample({m_now, pair.index, bytes, pair.window, pair.rate});
    }
}

void
FabricSamples::NoteRetired(const FabricQueuePair& pair, int64_t now)
{
    m_now = now;
    if (m_interval > 0)
    {
        m_arrived.resize(m_tables.pairs.size());
        SamplePair(pair);
        m_arrived[pair.index] = 0;
    }
}

} // namespace ns3
