/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Episodes: what is recorded.
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
FabricEpisodes::DescribeBegin(uint32_t place, int64_t start, Opening& opening) const
{
    const FabricMessage& message = m_state.messages[place];
    const FabricQueuePair& pair = m_state.pairs[message.pair];
    opening.time = message.when - start;
    opening.after = std::max<int64_t>(-1, message.after - start);
    opening.bytes = message.end - message.begin;
    opening.pair = pair.oneShot ? FabricState::NONE : pair.index;
    opening.slot = pair.slot;
    opening.trafficClass = pair.trafficClass;
    opening.together = false;
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
FabricEpisodes::SavePlaces(std::vector<Place>& places, bool all) const
{
    uint64_t hash = 0x9e3779b97f4a7c15U;
    places.clear();
    for (const uint32_t index : m_state.ownEndpoints)
    {
        const FabricEndpoint& endpoint = m_state.endpoints[index];
        const auto size = static_cast<uint32_t>(endpoint.pairs.size());
        if (all || size > 0 || endpoint.last > 0 || endpoint.finished > 0)
        {
            places.push_back({index, size, endpoint.last, endpoint.finished});
            const uint64_t word =
                uint64_t{size} << 42 ^ uint64_t { endpoint.last } << 21 ^ endpoint.finished;
            hash = (hash ^ word ^ uint64_t{index} << 32) * 0xff51afd7ed558ccdU;
            hash ^= hash >> 32;
        }
    }
    return hash;
}

bool
FabricEpisodes::Turn()
{
    if (m_recording && m_recording->openings.empty())
    {
        return false; // it begins with these messages, which no other does
    }
    if (m_recording)
    {
        Close();
    }
    // Where little repeats it pays to look more and more seldom.
    constexpr std::size_t MANY = 1 << 12;
    if (m_looked > MANY && m_followed < m_looked / 8)
    {
        m_rest = m_longestRest;
        m_longestRest *= 2;
        m_looked = m_followed = 0;
    }
    const FabricEvent first = m_state.events.Top();
    if (m_rest > 0 || first.time <= m_state.now)
    {
        m_rest -= m_rest > 0 ? 1 : 0;
        return false;
    }
    const uint32_t place = first.GetIndex();
    DescribeBegin(place, first.time, m_opening);
    uint64_t hash = SavePlaces(m_places, false) ^ static_cast<uint64_t>(m_opening.bytes);
    for (const uint32_t way : m_opening.ways)
    {
        hash = (hash ^ way) * 0xff51afd7ed558ccdU;
    }
    hash = (hash ^ m_opening.pair) * 0xc4ceb9fe1a85ec53U;
    const auto known = m_episodes.find(hash);
    if (known != m_episodes.end())
    {
        // The one that was kept last is the most likely.
        for (auto episode = known->second.rbegin(); episode != known->second.rend(); ++episode)
        {
            if ((*episode)->before == m_places && IsExpected(**episode, first))
            {
                m_script = episode->get();
                m_bucket = &known->second;
                m_start = first.time;
                m_reported = 0;
                m_begun.clear();
                return true;
            }
        }
    }
    if (m_openings <= MOST_OPENINGS && (known == m_episodes.end() || known->second.size() < 16))
    {
        Record(first.time, hash);
    }
    return false;
}

void
FabricEpisodes::Record(int64_t start, uint64_t hash)
{
    m_recording = std::make_unique<Episode>();
    m_recording->before = m_places;
    m_recording->hash = hash;
    m_recording->start = start;
    m_recording->key = m_state.nextKey;
    m_recording->draws = m_state.draws;
    m_recording->packets = m_state.packetCount;
    m_recorded.clear();
    for (const uint32_t port : m_state.ownPorts)
    {
        m_recorded.push_back(m_state.ports[port].statistics);
    }
    m_lastOpening = -1;
}

void
FabricEpisodes::RecordBegin(uint32_t place)
{
    Episode& episode = *m_recording;
    const FabricMessage& message = m_state.messages[place];
    const FabricQueuePair& pair = m_state.pairs[message.pair];
    if (episode.openings.size() >= MOST_OPENINGS / 16 || pair.ways > 1 ||
        (pair.oneShot && pair.written > 0) || !m_state.tables.control->IsSteady(pair))
    {
        m_recording = nullptr;
        return;
    }
    ++m_looked;
    m_state.messages[place].ordinal = static_cast<uint32_t>(episode.openings.size());
    episode.openings.emplace_back();
    Opening& opening = episode.openings.back();
    DescribeBegin(place, episode.start, opening);
    // A port that ends its transmission just now may have been asked before or after that.
    opening.together =
        m_lastEvent == m_state.now || m_state.ports[pair.port].sourceFree == m_state.now;
    m_lastOpening = m_state.now;
}

void
FabricEpisodes::NoteTogether()
{
    std::vector<Opening>& openings = m_recording->openings;
    const int64_t time = m_state.now - m_recording->start;
    for (auto opening = openings.rbegin(); opening != openings.rend() && opening->time == time;
         ++opening)
    {
        opening->together = true;
    }
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
    for (std::size_t i = 0; i < m_state.ownPorts.size(); ++i)
    {
        const FabricPortStatistics& now = m_state.ports[m_state.ownPorts[i]].statistics;
        const FabricPortStatistics& before = m_recorded[i];
        if (now.pauses != before.pauses || now.drops != before.drops || now.marks != before.marks ||
            now.stalls != before.stalls)
        {
            return;
        }
        if (now.units != before.units)
        {
            episode->carried.push_back(
                {m_state.ownPorts[i], now.bytes - before.bytes, now.units - before.units});
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
    SavePlaces(episode->after, true);
    episode->end = m_state.now - episode->start;
    episode->key = m_state.nextKey - episode->key;
    episode->packets = m_state.packetCount - episode->packets;
    m_openings += episode->openings.size();
    m_episodes[episode->hash].push_back(std::move(episode));
}

} // namespace ns3
