/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-parts.h"

#include "ns3/abort.h"

#include <algorithm>

namespace ns3
{

FabricQueuePairs::FabricQueuePairs(FabricParts& parts)
    : m_parts(parts),
      m_state(parts.state)
{
}

uint32_t
FabricQueuePairs::Add(const std::vector<uint32_t>& there,
                      const std::vector<uint32_t>& back,
                      bool oneShot,
                      uint32_t trafficClass)
{
    NS_ABORT_MSG_IF(there.empty() || back.empty(), "a queue pair needs a way there and back");
    uint32_t index = 0;
    if (m_free.empty())
    {
        index = static_cast<uint32_t>(m_state.pairs.size());
        m_state.pairs.emplace_back();
    }
    else
    {
        index = m_free.back();
        m_free.pop_back();
    }
    FabricQueuePair& pair = m_state.pairs[index];
    pair = FabricQueuePair{};
    pair.index = index;
    pair.port = there.front();
    pair.there = m_state.routes.Allocate(there);
    pair.thereHops = static_cast<uint32_t>(there.size());
    pair.back = m_state.routes.Allocate(back);
    pair.backHops = static_cast<uint32_t>(back.size());
    pair.lineRate = static_cast<double>(m_state.ports[pair.port].rate);
    pair.bottleneck = pair.lineRate;
    for (const uint32_t port : there)
    {
        pair.bottleneck = std::min(pair.bottleneck, static_cast<double>(m_state.ports[port].rate));
    }
    pair.baseRtt = GetBaseRtt(there);
    pair.ways = 1;
    pair.oldest = pair.sending = pair.receiving = pair.newest = FabricState::NONE;
    pair.slot = FabricState::NONE;
    pair.oneShot = oneShot;
    pair.trafficClass = std::min(trafficClass, m_state.parameters.classes - 1);
    pair.nackTime = -1;
    if (!m_state.parameters.sendJitter.IsZero())
    {
        m_state.tables.jitter[index] = {index, 0, 0};
    }
    pair.lastSent = INT64_MAX; // the first packet changes no way
    m_state.EndpointOf(pair);
    SetFullWindow(pair);
    return index;
}

void
FabricQueuePairs::SetFullWindow(FabricQueuePair& pair)
{
    pair.fullWindow =
        m_state.parameters.window > 0 ? m_state.parameters.window : m_state.tables.globalWindow;
    if (pair.fullWindow == 0)
    {
        const double rate = std::min(pair.lineRate, pair.bottleneck * pair.ways);
        const double product = static_cast<double>(pair.baseRtt) * rate / 8e12;
        pair.fullWindow =
            std::max<int64_t>(1, WholeBytes(m_state.parameters.windowFactor * product));
        // An ACK of several packets comes late by those: what is under way meanwhile has room.
        const int64_t acks = m_state.parameters.ackInterval;
        if (acks > 1)
        {
            pair.fullWindow = std::max(pair.fullWindow, 2 * acks * m_state.parameters.payload);
        }
    }
    m_state.tables.control->Start(pair, std::max<int64_t>(0, m_state.tables.done));
}

void
FabricQueuePairs::AddWay(uint32_t index, const std::vector<uint32_t>& there)
{
    FabricQueuePair& pair = m_state.pairs[index];
    NS_ABORT_MSG_IF(there.empty() || there.front() != pair.port || pair.oneShot,
                    "ways of a queue pair begin at one port");
    FabricSpray& spray = m_state.sprays[index];
    if (spray.ways.empty())
    {
        spray.ways.push_back(pair.there);
    }
    spray.ways.push_back(m_state.routes.Allocate(there));
    pair.ways = static_cast<uint32_t>(spray.ways.size());
    pair.turn = index * 7 % pair.ways; // not all queue pairs begin with the same way
    SetFullWindow(pair);
}

void
FabricQueuePairs::Reroute(uint32_t index,
                          const std::vector<uint32_t>& there,
                          const std::vector<uint32_t>& back)
{
    FabricQueuePair& pair = m_state.pairs[index];
    NS_ABORT_MSG_IF(there.empty() || back.empty() ||
                        m_state.ports[there.front()].from != m_state.ports[pair.port].from,
                    "a queue pair goes another way from the same node");
    const uint32_t receiving = pair.receiving != FabricState::NONE ? 1 : 0;
    m_state.LastPortOf(pair).receiving -= receiving;
    // The old ways stay in the table: what is under way still reads them.
    pair.there = m_state.routes.Allocate(there);
    pair.thereHops = static_cast<uint32_t>(there.size());
    m_state.LastPortOf(pair).receiving += receiving;
    pair.back = m_state.routes.Allocate(back);
    pair.backHops = static_cast<uint32_t>(back.size());
    if (there.front() == pair.port)
    {
        return;
    }
    const bool waiting = pair.slot != FabricState::NONE;
    if (waiting)
    {
        FabricEndpoint& old = m_state.EndpointOf(pair);
        old.SetEligible(pair.slot, false);
        old.pairs[pair.slot] = FabricState::NONE;
        ++old.finished;
    }
    pair.port = there.front();
    FabricEndpoint& endpoint = m_state.EndpointOf(pair);
    if (waiting)
    {
        endpoint.Join(pair);
        m_parts.senders.UpdateEligible(pair);
        m_parts.senders.Kick(pair.port);
    }
}

void
FabricQueuePairs::SetWays(uint32_t index, const std::vector<std::vector<uint32_t>>& there)
{
    FabricQueuePair& pair = m_state.pairs[index];
    if (pair.ways == 1 && there.size() == 1)
    {
        return;
    }
    std::vector<uint32_t>& ways = m_state.sprays[index].ways;
    ways = {pair.there};
    for (std::size_t i = 1; i < there.size(); ++i)
    {
        NS_ABORT_MSG_IF(there[i].empty() || there[i].front() != pair.port || pair.oneShot,
                        "ways of a queue pair begin at one port");
        ways.push_back(m_state.routes.Allocate(there[i]));
    }
    if (ways.size() == 1)
    {
        ways.push_back(pair.there); // its receiver goes on to put packets in order
    }
    pair.ways = static_cast<uint32_t>(ways.size());
    pair.turn %= pair.ways;
}

int64_t
FabricQueuePairs::GetBaseRtt(const std::vector<uint32_t>& ports) const
{
    int64_t sum = 0;
    for (const uint32_t number : ports)
    {
        FabricPort& port = m_state.ports[number];
        sum += 2 * port.delay + m_parts.wires.TransmissionTime(port, m_state.parameters.payload);
    }
    return sum;
}

void
FabricQueuePairs::Retire(FabricQueuePair& pair)
{
    FabricEndpoint& endpoint = m_state.EndpointOf(pair);
    endpoint.SetEligible(pair.slot, false);
    endpoint.pairs[pair.slot] = FabricState::NONE;
    ++endpoint.finished;
    pair.slot = FabricState::NONE;
    m_parts.samples.NoteRetired(pair, m_state.now);
    pair.retired = true;
    if (!m_state.parameters.scanOrder && endpoint.finished > 16 &&
        endpoint.finished * 2 > endpoint.pairs.size())
    {
        uint32_t kept = endpoint.last;
        const auto turn = [&] { // the last one served, or the nearest before it that is still there
            while (kept > 0 && endpoint.pairs[kept] == FabricState::NONE)
            {
                --kept;
            }
            return kept;
        };
        uint32_t chosen = kept < endpoint.pairs.size() ? turn() : FabricState::NONE;
        if (chosen != FabricState::NONE && endpoint.pairs[chosen] == FabricState::NONE)
        {
            chosen = FabricState::NONE;
        }
        m_parts.turns.DropFinished(endpoint, 0, chosen);
        endpoint.last = chosen == FabricState::NONE ? 0 : chosen;
    }
}

void
FabricQueuePairs::FreeIfIdle(FabricQueuePair& pair)
{
    if (pair.retired && pair.underWay == 0)
    {
        pair.retired = false;
        m_state.routes.Free(pair.there, pair.thereHops);
        m_state.routes.Free(pair.back, pair.backHops);
        m_free.push_back(pair.index);
    }
}

void
FabricQueuePairs::TakeOver(FabricQueuePairs& other)
{
    m_free.insert(m_free.end(), other.m_free.begin(), other.m_free.end());
    other.m_free.clear();
}

} // namespace ns3
