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
    // With trains a turn is a train's packets, however they are cut (deficit round robin; Shreedhar
    // and Varghese, SIGCOMM 1995): a message's short end would else get less than its share.
    if (endpoint.quantum > 0 && endpoint.last < count && endpoint.IsEligible(endpoint.last) &&
        m_state.pairs[endpoint.pairs[endpoint.last]].available <= m_state.now)
    {
        return endpoint.last;
    }
    uint32_t chosen = FabricState::NONE;
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
            if (pair.available <= m_state.now)
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
    if (walk && firstFinished != FabricState::NONE)
    {
        DropFinished(endpoint, firstFinished, chosen);
    }
    if (chosen != FabricState::NONE)
    {
        endpoint.last = chosen;
        // One that is alone takes no turns.
        endpoint.quantum = endpoint.eligibleCount > 1 ? m_state.parameters.train : 0;
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
