/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-partitions.h"

#include <algorithm>
#include <numeric>

namespace ns3
{

FabricPartitions::FabricPartitions()
    : m_samples(m_tables)
{
    m_partitions.push_back(std::make_unique<FabricParts>(m_tables, m_samples, 0));
    m_turns.Add();
}

std::vector<uint32_t>
FabricPartitions::FindComponents() const
{
    // Nodes of a forest: ports, then switches.
    const std::size_t ports = m_tables.ports.size();
    std::vector<uint32_t> up(ports + m_tables.nodes.size());
    std::iota(up.begin(), up.end(), 0U);
    const auto root = [&up](uint32_t i)
    {
        while (up[i] != i)
        {
            i = up[i] = up[up[i]];
        }
        return i;
    };
    const auto join = [&](uint32_t a, uint32_t b)
    {
        const uint32_t first = root(a);
        const uint32_t second = root(b);
        up[std::max(first, second)] = std::min(first, second);
    };
    // Order of ties by lot, and rates by the number of senders, hang on everything.
    const bool all = m_tables.parameters.tieOrder == FABRIC_RANDOM ||
                     (m_tables.needs & FabricCongestionControl::SHARERS) != 0;
    for (uint32_t port = 0; port < ports; ++port)
    {
        join(port, all ? 0 : port ^ 1);
        const uint32_t to = m_tables.ports[port].to;
        if (m_tables.nodes[to].kind != FABRIC_HOST)
        {
            join(port, static_cast<uint32_t>(ports) + to);
        }
    }
    std::vector<uint32_t> component(ports);
    for (uint32_t port = 0; port < ports; ++port)
    {
        component[port] = root(port);
    }
    return component;
}

void
FabricPartitions::Divide(bool looking, bool lossy)
{
    const std::vector<uint32_t> component = FindComponents();
    m_tables.partitionOf.resize(component.size());
    std::size_t count = 0;
    for (uint32_t port = 0; port < component.size(); ++port)
    {
        if (component[port] == port)
        {
            m_tables.partitionOf[port] = static_cast<uint32_t>(count++);
            if (count > m_partitions.size())
            {
                m_partitions.push_back(
                    std::make_unique<FabricParts>(m_tables, m_samples, m_partitions.size()));
                m_turns.Add();
            }
        }
        const uint32_t partition = m_tables.partitionOf[component[port]];
        m_tables.partitionOf[port] = partition;
        FabricState& state = m_partitions[partition]->state;
        state.ownPorts.push_back(port);
        state.lossy = state.lossy || m_tables.ports[port].lossRate > 0;
    }
    for (const auto& parts : m_partitions)
    {
        parts->state.lossy = parts->state.lossy || lossy;
        parts->state.looking = looking && !parts->state.lossy;
    }
}

FabricParts&
FabricPartitions::Join(const std::vector<uint32_t>& ports, const std::vector<uint32_t>& other)
{
    uint32_t first = UINT32_MAX;
    for (const std::vector<uint32_t>* way : {&ports, &other})
    {
        for (const uint32_t port : *way)
        {
            first = std::min(first, m_tables.partitionOf.at(port));
        }
    }
    FabricParts& into = *m_partitions.at(first);
    for (const std::vector<uint32_t>* way : {&ports, &other})
    {
        for (const uint32_t port : *way)
        {
            if (m_tables.partitionOf[port] != first)
            {
                Merge(into, Of(port));
            }
        }
    }
    return into;
}

void
FabricPartitions::Merge(FabricParts& into, FabricParts& from)
{
    Touch(into, m_tables.done);
    Touch(from, m_tables.done);
    FabricState& a = into.state;
    FabricState& b = from.state;
    into.jumps.Forget();
    into.episodes.Clear();
    from.episodes.Clear();
    from.jumps.Renumber(a.nextKey); // its events come after those of the other at one time
    for (const FabricEvent& event : b.events.Events())
    {
        a.events.Push(event);
    }
    b.events.Events().clear();
    for (const uint32_t port : b.ownPorts)
    {
        m_tables.partitionOf[port] = into.number;
    }
    a.ownPorts.insert(a.ownPorts.end(), b.ownPorts.begin(), b.ownPorts.end());
    a.ownEndpoints.insert(a.ownEndpoints.end(), b.ownEndpoints.begin(), b.ownEndpoints.end());
    b.ownPorts.clear();
    b.ownEndpoints.clear();
    a.now = std::max(a.now, b.now);
    a.nextKey += b.nextKey;
    a.currentKey = a.nextKey;
    a.eventCount += b.eventCount;
    a.draws += b.draws;
    a.packetCount += b.packetCount;
    a.liveMessages += b.liveMessages;
    a.pendingBegins += b.pendingBegins;
    a.skippedTime += b.skippedTime;
    a.jumps += b.jumps;
    b.eventCount = b.packetCount = b.liveMessages = b.jumps = 0;
    b.pendingBegins = 0;
    b.skippedTime = 0;
    a.looking = a.looking && b.looking;
    if (a.lossy != b.lossy)
    {
        a.lossy = true;
        into.receivers.WatchAll();
    }
    into.messages.TakeOver(from.messages);
    into.queuePairs.TakeOver(from.queuePairs);
    Update(from);
    Update(into);
}

void
FabricPartitions::Touch(FabricParts& parts, int64_t now)
{
    parts.episodes.Interrupt(now);
    parts.jumps.Interrupt(now);
    Update(parts);
}

void
FabricPartitions::CatchUp()
{
    for (const auto& parts : m_partitions)
    {
        Touch(*parts, m_tables.done);
    }
}

void
FabricPartitions::Update(const FabricParts& parts)
{
    m_turns.Set(parts.number, parts.GetNextTime());
}

int64_t
FabricPartitions::GetNextTime() const
{
    return m_turns.First().time;
}

int64_t
FabricPartitions::GetStop() const
{
    return m_tables.stopAtCompletion && !m_tables.completions.empty()
               ? m_tables.completions.front().time + std::max<int64_t>(m_tables.slack, 1)
               : INT64_MAX;
}

bool
FabricPartitions::IsStopping(int64_t& limit) const
{
    // A stop holds from the first completion on: then the rest of that stamp, or `slack` more.
    const int64_t stop = GetStop();
    const bool due = stop <= limit && stop != INT64_MAX;
    limit = std::min(limit, stop);
    return due;
}

bool
FabricPartitions::RunUntil(int64_t limit)
{
    bool stop = IsStopping(limit);
    m_seen = m_tables.completions.size();
    while (m_turns.First().time < limit)
    {
        FabricParts& parts = *m_partitions[m_turns.First().who];
        Run(parts, limit, stop);
        Update(parts);
    }
    m_now = std::max(m_now, limit == INT64_MAX ? m_now : limit - 1);
    m_tables.done = std::max(m_tables.done, m_now);
    return stop;
}

void
FabricPartitions::Run(FabricParts& parts, int64_t& limit, bool& stop)
{
    FabricState& state = parts.state;
    FabricNextTurns::Turn other = m_turns.FirstBut(parts.number);
    uint64_t changes = m_turns.GetChanges();
    for (;;)
    {
        if (m_turns.GetChanges() != changes)
        {
            other = m_turns.FirstBut(parts.number);
            changes = m_turns.GetChanges();
        }
        const int64_t next = parts.GetNextTime();
        if (next >= limit || FabricNextTurns::Turn{next, parts.number} > other)
        {
            return;
        }
        if (next >= m_tables.nextSample)
        {
            TimeQueues();
            m_samples.TakeUntil(next, IsIdle());
        }
        m_now = m_tables.done = next;
        parts.Step(next);
        if (m_tables.completions.size() != m_seen)
        {
            m_seen = m_tables.completions.size();
            stop = IsStopping(limit);
            parts.jumps.Forget();
        }
        else if (parts.jumps.IsDue() && !parts.episodes.IsFollowing() && !state.events.IsEmpty() &&
                 state.events.Top().time > state.now)
        {
            parts.jumps.Look();
        }
    }
}

void
FabricPartitions::TimeQueues()
{
    for (uint32_t index = 0; index < m_tables.ports.size(); ++index)
    {
        Of(index).wires.TimeQueue(m_tables.ports[index]);
    }
}

bool
FabricPartitions::IsIdle() const
{
    return std::all_of(m_partitions.begin(),
                       m_partitions.end(),
                       [](const auto& parts) { return parts->state.IsIdle(); });
}

uint64_t
FabricPartitions::Sum(uint64_t FabricState::*member) const
{
    uint64_t sum = 0;
    for (const auto& parts : m_partitions)
    {
        sum += parts->state.*member;
    }
    return sum;
}

int64_t
FabricPartitions::GetSkippedTime() const
{
    int64_t sum = 0;
    for (const auto& parts : m_partitions)
    {
        sum += parts->state.skippedTime;
    }
    return sum;
}

} // namespace ns3
