/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-parts.h"

#include <algorithm>

namespace ns3
{

FabricEpisodes::FabricEpisodes(FabricParts& parts)
    : m_parts(parts),
      m_state(parts.state)
{
}

void
FabricEpisodes::DescribeBegin(const FabricMessage& message, int64_t time, Opening& opening) const
{
    const FabricQueuePair& pair = m_state.pairs[message.pair];
    opening.time = time;
    opening.bytes = message.end - message.begin;
    opening.pair = pair.oneShot ? FabricState::NONE : pair.index;
    opening.slot = pair.slot;
    opening.trafficClass = pair.trafficClass;
    opening.window = pair.window;
    opening.rate = pair.rate;
    opening.ways.clear();
    if (pair.oneShot)
    {
        const uint32_t* there = &m_state.routes[pair.there];
        const uint32_t* back = &m_state.routes[pair.back];
        opening.ways.assign(there, there + pair.thereHops + 1);
        opening.ways.insert(opening.ways.end(), back, back + pair.backHops);
    }
}

uint64_t
FabricEpisodes::SavePlaces(std::vector<Place>& places) const
{
    uint64_t hash = 0x9e3779b97f4a7c15U;
    places.clear();
    for (const FabricEndpoint& endpoint : m_state.endpoints)
    {
        places.push_back(
            {static_cast<uint32_t>(endpoint.pairs.size()), endpoint.last, endpoint.finished});
        const uint64_t word = uint64_t{places.back().size} << 42 ^
                              uint64_t { endpoint.last } << 21 ^ endpoint.finished;
        hash = (hash ^ word) * 0xff51afd7ed558ccdU;
        hash ^= hash >> 32;
    }
    return hash;
}

bool
FabricEpisodes::Turn(int64_t limit)
{
    if (m_recording)
    {
        Close();
    }
    return Open(limit);
}

bool
FabricEpisodes::Open(int64_t limit)
{
    const FabricEvent first = m_state.events.Top();
    if (first.time <= m_state.now)
    {
        return false;
    }
    const FabricMessage& message = m_state.messages[first.GetIndex()];
    DescribeBegin(message, 0, m_opening);
    uint64_t hash = SavePlaces(m_places) ^ static_cast<uint64_t>(m_opening.bytes);
    for (const uint32_t way : m_opening.ways)
    {
        hash = (hash ^ way) * 0xff51afd7ed558ccdU;
    }
    hash = (hash ^ m_opening.pair) * 0xc4ceb9fe1a85ec53U;
    const auto known = m_episodes.find(hash);
    if (known != m_episodes.end())
    {
        for (const std::unique_ptr<Episode>& episode : known->second)
        {
            if (episode->before == m_places && Repeat(*episode, limit))
            {
                ++m_state.jumps;
                return true;
            }
        }
    }
    if (m_openings > MOST_OPENINGS || (known != m_episodes.end() && known->second.size() >= 16))
    {
        return false;
    }
    m_recording = std::make_unique<Episode>();
    m_recording->before = m_places;
    m_recording->hash = hash;
    m_recording->start = first.time;
    m_recording->key = m_state.nextKey;
    m_recording->draws = m_state.draws;
    m_recording->packets = m_state.packetCount;
    m_recorded.clear();
    for (const FabricPort& port : m_state.ports)
    {
        m_recorded.push_back(port.statistics);
    }
    return false;
}

void
FabricEpisodes::RecordBegin(uint32_t place)
{
    Episode& episode = *m_recording;
    const FabricMessage& message = m_state.messages[place];
    const FabricQueuePair& pair = m_state.pairs[message.pair];
    if (episode.openings.size() >= MOST_OPENINGS / 16 || pair.ways > 1 ||
        !m_state.control->IsSteady(pair))
    {
        m_recording = nullptr;
        return;
    }
    m_state.messages[place].ordinal = static_cast<uint32_t>(episode.openings.size());
    episode.openings.emplace_back();
    DescribeBegin(message, m_state.now - episode.start, episode.openings.back());
}

void
FabricEpisodes::RecordCompletion(uint32_t place, bool delivered)
{
    m_recording->outcomes.push_back(
        {m_state.now - m_recording->start, m_state.messages[place].ordinal, delivered});
}

void
FabricEpisodes::Close()
{
    std::unique_ptr<Episode> episode = std::move(m_recording);
    if (m_state.draws != episode->draws)
    {
        return;
    }
    for (std::size_t i = 0; i < m_state.ports.size(); ++i)
    {
        const FabricPortStatistics& now = m_state.ports[i].statistics;
        const FabricPortStatistics& before = m_recorded[i];
        if (now.pauses != before.pauses || now.drops != before.drops || now.marks != before.marks ||
            now.stalls != before.stalls)
        {
            return;
        }
        if (now.units != before.units)
        {
            episode->carried.push_back(
                {static_cast<uint32_t>(i), now.bytes - before.bytes, now.units - before.units});
        }
    }
    for (const Opening& opening : episode->openings)
    {
        // A congestion control that has changed its mind does not do the same again.
        if (opening.pair != FabricState::NONE &&
            (m_state.pairs[opening.pair].rate != opening.rate ||
             m_state.pairs[opening.pair].window != opening.window))
        {
            return;
        }
    }
    SavePlaces(episode->after);
    episode->end = m_state.now - episode->start;
    episode->key = m_state.nextKey - episode->key;
    episode->packets = m_state.packetCount - episode->packets;
    m_openings += episode->openings.size();
    m_episodes[episode->hash].push_back(std::move(episode));
}

bool
FabricEpisodes::Repeat(const Episode& episode, int64_t limit)
{
    const int64_t start = m_state.events.Top().time;
    int64_t until = limit;
    if (m_state.stopAtCompletion && m_state.completions.empty() && !episode.outcomes.empty())
    {
        until =
            std::min(until,
                     start + episode.outcomes.front().time + std::max<int64_t>(m_state.slack, 1));
    }
    if (start + episode.end >= until || m_state.pendingBegins < episode.openings.size())
    {
        return false;
    }
    if (!TakeOpenings(episode))
    {
        return false;
    }
    m_state.pendingBegins -= m_pending.size();
    CopyOutcomes(episode, start);
    for (std::size_t i = 0; i < episode.after.size(); ++i)
    {
        FabricEndpoint& endpoint = m_state.endpoints[i];
        const Place& turn = episode.after[i];
        endpoint.last = turn.last;
        endpoint.finished = turn.finished;
        endpoint.pairs.resize(turn.size, FabricState::NONE);
        endpoint.eligible.resize((turn.size + 63) / 64, 0);
    }
    for (const Carried& carried : episode.carried)
    {
        m_state.ports[carried.port].statistics.bytes += carried.bytes;
        m_state.ports[carried.port].statistics.units += carried.units;
    }
    m_state.packetCount += episode.packets;
    m_state.nextKey += episode.key;
    m_state.now = start + episode.end;
    m_state.skippedTime += episode.end;
    m_parts.jumps.Forget();
    return true;
}

bool
FabricEpisodes::TakeOpenings(const Episode& episode)
{
    const int64_t start = m_state.events.Top().time;
    m_pending.clear();
    bool same = true;
    while (same && m_pending.size() < episode.openings.size())
    {
        const FabricEvent event = m_state.events.Top();
        const FabricMessage& message = m_state.messages[event.GetIndex()];
        const FabricQueuePair& pair = m_state.pairs[message.pair];
        DescribeBegin(message, event.time - start, m_opening);
        same = m_opening == episode.openings[m_pending.size()] && pair.available <= start &&
               m_state.control->IsSteady(pair);
        if (same)
        {
            m_pending.push_back(event);
            m_state.events.Pop();
        }
    }
    if (same && (m_state.events.IsEmpty() || m_state.events.Top().time > start + episode.end))
    {
        return true;
    }
    for (const FabricEvent& event : m_pending)
    {
        m_state.events.Push(event);
    }
    return false;
}

void
FabricEpisodes::CopyOutcomes(const Episode& episode, int64_t start)
{
    for (const Outcome& done : episode.outcomes)
    {
        m_state.now = start + done.time;
        const uint32_t place = m_pending[done.ordinal].GetIndex();
        if (done.delivered)
        {
            m_parts.messages.Deliver(place);
        }
        else
        {
            m_parts.messages.Complete(place, false);
        }
    }
    for (const FabricEvent& event : m_pending)
    {
        FabricMessage& message = m_state.messages[event.GetIndex()];
        FabricQueuePair& pair = m_state.pairs[message.pair];
        pair.written += message.end - message.begin;
        pair.next = pair.highest = pair.acked = pair.expected = pair.written;
        if (pair.oneShot)
        {
            pair.retired = true;
            m_parts.queuePairs.FreeIfIdle(pair);
        }
        message.sent = message.acked = true;
        m_parts.messages.FreeIfThrough(event.GetIndex());
    }
}

} // namespace ns3
