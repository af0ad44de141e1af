/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Episodes of a Fabric: what it does from one idle moment to the next, done once.
 *
 * When nothing is under way, all that matters of the past is whose turn it is at each sender. So if
 * the messages that start now are those of an earlier episode (same queue pairs or ways, same
 * sizes, same times relative to the first, same turns), and nothing else starts before it is over,
 * then it goes as it went: its completions and counts are copied, moved in time. The collectives of
 * layers and microbatches are such repetitions. The comparison is of the whole episode, not of a
 * hash; the result is that of the run without it.
 */
#include "fabric.h"

#include <algorithm>

namespace ns3
{

bool
Fabric::IsIdle() const
{
    return m_events.GetSize() == m_pendingBegins && m_liveMessages == m_pendingBegins;
}

void
Fabric::DescribeBegin(const Message& message, int64_t time, Opening& opening) const
{
    const FabricQueuePair& pair = m_pairs[message.pair];
    opening.time = time;
    opening.bytes = message.end - message.begin;
    opening.pair = pair.oneShot ? NONE : pair.index;
    opening.slot = pair.slot;
    opening.window = pair.window;
    opening.rate = pair.rate;
    opening.ways.clear();
    if (pair.oneShot)
    {
        const auto there = m_routes.begin() + pair.there;
        const auto back = m_routes.begin() + pair.back;
        opening.ways.assign(there, there + pair.thereHops + 1);
        opening.ways.insert(opening.ways.end(), back, back + pair.backHops);
    }
}

uint64_t
Fabric::SaveTurns(std::vector<Turn>& turns) const
{
    uint64_t hash = 0x9e3779b97f4a7c15U;
    turns.clear();
    for (const Endpoint& endpoint : m_endpoints)
    {
        turns.push_back(
            {static_cast<uint32_t>(endpoint.pairs.size()), endpoint.last, endpoint.finished});
        const uint64_t word = uint64_t{turns.back().size} << 42 ^ uint64_t { endpoint.last } << 21 ^
                              endpoint.finished;
        hash = (hash ^ word) * 0xff51afd7ed558ccdU;
        hash ^= hash >> 32;
    }
    return hash;
}

void
Fabric::OpenEpisode(int64_t limit)
{
    m_recording = nullptr;
    const FabricEvent first = m_events.Top();
    if (first.time <= m_now)
    {
        return;
    }
    const Message& message = m_messages[first.what >> 3];
    DescribeBegin(message, 0, m_opening);
    uint64_t hash = SaveTurns(m_turns) ^ static_cast<uint64_t>(m_opening.bytes);
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
            if (episode->before == m_turns && Repeat(*episode, limit))
            {
                ++m_jumps;
                return;
            }
        }
    }
    if (m_episodeOpenings > MOST_OPENINGS ||
        (known != m_episodes.end() && known->second.size() >= 16))
    {
        return;
    }
    m_recording = std::make_unique<Episode>();
    m_recording->before = m_turns;
    m_recording->hash = hash;
    m_recording->start = first.time;
    m_recording->key = m_nextKey;
    m_recording->draws = m_draws;
    m_recording->packets = m_packetCount;
    m_recorded.clear();
    for (const Port& port : m_ports)
    {
        m_recorded.push_back(port.statistics);
    }
}

void
Fabric::RecordBegin(uint32_t place)
{
    Episode& episode = *m_recording;
    const Message& message = m_messages[place];
    const FabricQueuePair& pair = m_pairs[message.pair];
    if (episode.openings.size() >= MOST_OPENINGS / 16 || pair.ways > 1 ||
        !m_control->IsSteady(pair))
    {
        m_recording = nullptr;
        return;
    }
    m_messages[place].ordinal = static_cast<uint32_t>(episode.openings.size());
    episode.openings.emplace_back();
    DescribeBegin(message, m_now - episode.start, episode.openings.back());
}

void
Fabric::CloseEpisode()
{
    std::unique_ptr<Episode> episode = std::move(m_recording);
    if (m_draws != episode->draws)
    {
        return;
    }
    for (std::size_t i = 0; i < m_ports.size(); ++i)
    {
        const PortStatistics& now = m_ports[i].statistics;
        const PortStatistics& before = m_recorded[i];
        if (now.pauses != before.pauses || now.drops != before.drops || now.marks != before.marks)
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
        if (opening.pair != NONE && (m_pairs[opening.pair].rate != opening.rate ||
                                     m_pairs[opening.pair].window != opening.window))
        {
            return;
        }
    }
    SaveTurns(episode->after);
    episode->end = m_now - episode->start;
    episode->key = m_nextKey - episode->key;
    episode->packets = m_packetCount - episode->packets;
    m_episodeOpenings += episode->openings.size();
    m_episodes[episode->hash].push_back(std::move(episode));
}

bool
Fabric::Repeat(const Episode& episode, int64_t limit)
{
    const int64_t start = m_events.Top().time;
    int64_t until = limit;
    if (m_stopAtCompletion && m_completions.empty() && !episode.completions.empty())
    {
        until = std::min(until,
                         start + episode.completions.front().time + std::max<int64_t>(m_slack, 1));
    }
    if (start + episode.end >= until || m_pendingBegins < episode.openings.size())
    {
        return false;
    }
    // Take the starts as long as they are the same.
    m_pending.clear();
    bool same = true;
    while (same && m_pending.size() < episode.openings.size())
    {
        const FabricEvent event = m_events.Top();
        const Message& message = m_messages[event.what >> 3];
        const FabricQueuePair& pair = m_pairs[message.pair];
        DescribeBegin(message, event.time - start, m_opening);
        same = m_opening == episode.openings[m_pending.size()] && pair.available <= start &&
               m_control->IsSteady(pair);
        if (same)
        {
            m_pending.push_back(event);
            m_events.Pop();
        }
    }
    if (!same || (!m_events.IsEmpty() && m_events.Top().time <= start + episode.end))
    {
        for (const FabricEvent& event : m_pending)
        {
            m_events.Push(event);
        }
        return false;
    }
    m_pendingBegins -= m_pending.size();
    for (const EpisodeCompletion& done : episode.completions)
    {
        m_now = start + done.time;
        const uint32_t place = m_pending[done.ordinal].what >> 3;
        if (done.delivered)
        {
            Deliver(place);
        }
        else
        {
            Complete(m_messages[place].tag, false);
        }
    }
    for (const FabricEvent& event : m_pending)
    {
        Message& message = m_messages[event.what >> 3];
        FabricQueuePair& pair = m_pairs[message.pair];
        pair.written += message.end - message.begin;
        pair.next = pair.highest = pair.acked = pair.expected = pair.written;
        if (pair.oneShot)
        {
            pair.retired = true;
            FreeIfIdle(pair);
        }
        message.sent = message.acked = true;
        FreeIfThrough(event.what >> 3);
    }
    for (std::size_t i = 0; i < episode.after.size(); ++i)
    {
        Endpoint& endpoint = m_endpoints[i];
        const Turn& turn = episode.after[i];
        endpoint.last = turn.last;
        endpoint.finished = turn.finished;
        endpoint.pairs.resize(turn.size, NONE);
        endpoint.eligible.resize((turn.size + 63) / 64, 0);
    }
    for (const EpisodeCarried& carried : episode.carried)
    {
        m_ports[carried.port].statistics.bytes += carried.bytes;
        m_ports[carried.port].statistics.units += carried.units;
    }
    m_packetCount += episode.packets;
    m_nextKey += episode.key;
    m_now = start + episode.end;
    m_skippedTime += episode.end;
    ForgetState();
    return true;
}

} // namespace ns3
