/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Queue pairs of a Fabric and their messages: made, begun, through, used again.
 */
#include "fabric.h"

#include "ns3/abort.h"

#include <algorithm>

namespace ns3
{

uint32_t
Fabric::AddQueuePair(const std::vector<uint32_t>& there,
                     const std::vector<uint32_t>& back,
                     bool oneShot)
{
    NS_ABORT_MSG_IF(there.empty() || back.empty(), "a queue pair needs a way there and back");
    uint32_t index = 0;
    if (m_freePairs.empty())
    {
        index = static_cast<uint32_t>(m_pairs.size());
        m_pairs.emplace_back();
    }
    else
    {
        index = m_freePairs.back();
        m_freePairs.pop_back();
    }
    FabricQueuePair& pair = m_pairs[index];
    pair = FabricQueuePair{};
    pair.index = index;
    pair.port = there.front();
    pair.there = AllocateRoute(there);
    pair.thereHops = static_cast<uint32_t>(there.size());
    pair.back = AllocateRoute(back);
    pair.backHops = static_cast<uint32_t>(back.size());
    pair.lineRate = static_cast<double>(m_ports[pair.port].rate.GetBitRate());
    pair.bottleneck = pair.lineRate;
    for (const uint32_t port : there)
    {
        pair.bottleneck =
            std::min(pair.bottleneck, static_cast<double>(m_ports[port].rate.GetBitRate()));
    }
    pair.baseRtt = GetBaseRtt(there);
    pair.ways = 1;
    pair.oldest = pair.sending = pair.receiving = pair.newest = NONE;
    pair.slot = NONE;
    pair.oneShot = oneShot;
    pair.nackTime = -1;
    EndpointOf(pair.port);
    SetFullWindow(pair);
    return index;
}

void
Fabric::SetFullWindow(FabricQueuePair& pair)
{
    pair.fullWindow = m_window > 0 ? m_window : m_globalWindow;
    if (pair.fullWindow == 0)
    {
        const double rate = std::min(pair.lineRate, pair.bottleneck * pair.ways);
        const double product = static_cast<double>(pair.baseRtt) * rate / 8e12;
        pair.fullWindow = std::max<int64_t>(1, static_cast<int64_t>(m_windowFactor * product));
    }
    m_control->Start(pair, m_now);
}

void
Fabric::AddWay(uint32_t index, const std::vector<uint32_t>& there)
{
    FabricQueuePair& pair = m_pairs[index];
    NS_ABORT_MSG_IF(there.empty() || there.front() != pair.port || pair.oneShot,
                    "ways of a queue pair begin at one port");
    Spray& spray = m_sprays[index];
    if (spray.ways.empty())
    {
        spray.ways.push_back(pair.there);
    }
    spray.ways.push_back(AllocateRoute(there));
    pair.ways = static_cast<uint32_t>(spray.ways.size());
    pair.turn = index * 7 % pair.ways; // not all queue pairs begin with the same way
    SetFullWindow(pair);
}

Fabric::Endpoint&
Fabric::EndpointOf(uint32_t port)
{
    uint32_t& place = m_ports[port].endpoint;
    if (place == NONE)
    {
        place = static_cast<uint32_t>(m_endpoints.size());
        m_endpoints.emplace_back();
    }
    return m_endpoints[place];
}

void
Fabric::Send(uint32_t pair, int64_t bytes, Time when, uint64_t tag)
{
    uint32_t place = m_freeMessage;
    if (place == NONE)
    {
        place = static_cast<uint32_t>(m_messages.size());
        m_messages.emplace_back();
    }
    else
    {
        m_freeMessage = m_messages[place].next;
    }
    Message& message = m_messages[place];
    message = Message{};
    message.end = std::max<int64_t>(1, bytes);
    message.when = when.GetPicoSeconds();
    message.tag = tag;
    message.pair = pair;
    message.next = NONE;
    NS_ABORT_MSG_IF(message.when < m_now, "a message cannot begin in the past");
    ++m_liveMessages;
    ++m_pendingBegins;
    Schedule(BEGIN, place, message.when, NextKey());
    UpdatePump();
}

void
Fabric::Begin(uint32_t place)
{
    ForgetState();
    --m_pendingBegins;
    if (m_recording)
    {
        RecordBegin(place);
    }
    Message& message = m_messages[place];
    FabricQueuePair& pair = m_pairs[message.pair];
    message.begin = pair.written;
    message.end += pair.written;
    pair.written = message.end;
    if (pair.oldest == NONE)
    {
        pair.oldest = place;
        pair.progress = m_now;
    }
    else
    {
        m_messages[pair.newest].next = place;
    }
    pair.newest = place;
    if (pair.sending == NONE)
    {
        pair.sending = place;
    }
    if (pair.receiving == NONE)
    {
        pair.receiving = place;
        ++m_nodes[m_ports[m_routes[pair.there + pair.thereHops - 1]].to].receiving;
    }
    if (pair.slot == NONE)
    {
        Endpoint& endpoint = EndpointOf(pair.port);
        pair.slot = static_cast<uint32_t>(endpoint.pairs.size());
        endpoint.pairs.push_back(pair.index);
        endpoint.eligible.resize((endpoint.pairs.size() + 63) / 64, 0);
    }
    UpdateEligible(pair);
    Kick(pair.port);
}

void
Fabric::Note(uint32_t place, bool delivered)
{
    if (m_recording)
    {
        m_recording->completions.push_back(
            {m_now - m_recording->start, m_messages[place].ordinal, delivered});
    }
}

void
Fabric::Deliver(uint32_t place)
{
    Note(place, true);
    Message& message = m_messages[place];
    Complete(message.tag, true);
    message.delivered = true;
    m_messageTrace({message.tag, message.pair, message.end - message.begin, message.when, m_now});
}

void
Fabric::FreeIfThrough(uint32_t place)
{
    Message& message = m_messages[place];
    if (message.sent && message.acked)
    {
        message.next = m_freeMessage;
        m_freeMessage = place;
        --m_liveMessages;
    }
}

void
Fabric::Retire(FabricQueuePair& pair)
{
    Endpoint& endpoint = m_endpoints[m_ports[pair.port].endpoint];
    SetEligible(endpoint, pair.slot, false);
    endpoint.pairs[pair.slot] = NONE;
    ++endpoint.finished;
    pair.slot = NONE;
    pair.retired = true;
    if (!m_scanOrder && endpoint.finished > 16 && endpoint.finished * 2 > endpoint.pairs.size())
    {
        uint32_t kept = endpoint.last;
        const auto turn = [&] { // the last one served, or the nearest before it that is still there
            while (kept > 0 && endpoint.pairs[kept] == NONE)
            {
                --kept;
            }
            return kept;
        };
        uint32_t chosen = kept < endpoint.pairs.size() ? turn() : NONE;
        if (chosen != NONE && endpoint.pairs[chosen] == NONE)
        {
            chosen = NONE;
        }
        DropFinished(endpoint, 0, chosen);
        endpoint.last = chosen == NONE ? 0 : chosen;
    }
}

void
Fabric::FreeIfIdle(FabricQueuePair& pair)
{
    if (pair.retired && pair.underWay == 0)
    {
        pair.retired = false;
        FreeRoute(pair.there, pair.thereHops);
        FreeRoute(pair.back, pair.backHops);
        m_freePairs.push_back(pair.index);
    }
}

} // namespace ns3
