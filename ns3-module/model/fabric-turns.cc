/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-parts.h"

#include <algorithm>

namespace ns3
{

FabricTurns::FabricTurns(FabricParts& parts)
    : m_state(parts.state)
{
}

uint32_t
FabricTurns::Choose(uint32_t index, FabricEndpoint& endpoint)
{
    const auto count = static_cast<uint32_t>(endpoint.pairs.size());
    if (count == 0)
    {
        return FabricState::NONE;
    }
    uint32_t chosen = FabricState::NONE;
    uint32_t owing = FabricState::NONE;
    uint32_t firstFinished = FabricState::NONE;
    int64_t earliest = INT64_MAX;
    uint32_t slot = (endpoint.last + 1) % count;
    const bool walk = m_state.parameters.scanOrder && endpoint.finished > 0;
    for (uint32_t looked = 0; looked < count;)
    {
        const uint64_t word = endpoint.eligible[slot / 64] >> (slot % 64);
        if (!walk && word == 0)
        {
            const uint32_t step = std::min(64 - slot % 64, count - slot);
            looked += step;
            slot = slot + step == count ? 0 : slot + step;
            continue;
        }
        if (!walk)
        {
            const auto step = static_cast<uint32_t>(__builtin_ctzll(word));
            looked += step;
            slot += step;
            if (looked >= count)
            {
                break;
            }
        }
        if (endpoint.IsEligible(slot))
        {
            const FabricQueuePair& pair = m_state.pairs[endpoint.pairs[slot]];
            if (pair.index == endpoint.ahead && endpoint.owed > 0)
            {
                --endpoint.owed;
                owing = slot;
            }
            else if (pair.available <= m_state.now)
            {
                chosen = slot;
                break;
            }
            earliest = std::min(earliest, pair.available);
        }
        else if (endpoint.pairs[slot] == FabricState::NONE)
        {
            firstFinished = std::min(firstFinished, slot);
        }
        ++looked;
        slot = slot + 1 == count ? 0 : slot + 1;
    }
    if (chosen == FabricState::NONE && owing != FabricState::NONE)
    {
        endpoint.owed = 0; // nobody else wants them
        chosen = owing;
    }
    if (walk && firstFinished != FabricState::NONE)
    {
        DropFinished(endpoint, firstFinished, chosen);
    }
    if (chosen != FabricState::NONE)
    {
        endpoint.last = chosen;
    }
    else if (FabricEndpoint& first = m_state.endpoints[m_state.ports[index].endpoint];
             earliest < first.wake)
    {
        first.wake = earliest;
        m_state.ports[index].wakeKey = m_state.NextKey();
        m_state.Schedule(FABRIC_WAKE, index, earliest, m_state.ports[index].wakeKey);
    }
    return chosen;
}

void
FabricTurns::OweTurns(const FabricQueuePair& pair)
{
    FabricEndpoint& endpoint = m_state.EndpointOf(pair);
    const FabricPort& port = m_state.ports[pair.port];
    if (endpoint.ahead == FabricState::NONE || endpoint.ahead == pair.index)
    {
        return;
    }
    const double packet = (m_state.parameters.payload + m_state.parameters.header) * port.psPerByte;
    const auto left = static_cast<double>(port.sourceFree - m_state.now);
    endpoint.owed = std::max(endpoint.owed, static_cast<uint32_t>(std::max(0.0, left / packet)));
}

void
FabricTurns::DropFinished(FabricEndpoint& endpoint, uint32_t from, uint32_t& chosen)
{
    uint32_t place = from;
    const auto count = static_cast<uint32_t>(endpoint.pairs.size());
    uint32_t moved = FabricState::NONE;
    for (uint32_t slot = from; slot < count; ++slot)
    {
        const uint32_t pair = endpoint.pairs[slot];
        const bool eligible = endpoint.IsEligible(slot);
        endpoint.SetEligible(slot, false);
        if (pair == FabricState::NONE)
        {
            continue;
        }
        if (slot == chosen)
        {
            moved = place;
        }
        endpoint.pairs[place] = pair;
        m_state.pairs[pair].slot = place;
        endpoint.SetEligible(place, eligible);
        ++place;
    }
    if (chosen != FabricState::NONE && chosen >= from)
    {
        chosen = moved;
    }
    endpoint.finished -= count - place;
    endpoint.pairs.resize(place);
}

} // namespace ns3
