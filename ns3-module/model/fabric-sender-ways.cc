/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * What a sender decides for each unit: how many packets, and which way.
 */
#include "fabric-parts.h"

#include <algorithm>

namespace ns3
{

uint32_t
FabricSenders::TrainLength(const FabricQueuePair& pair, int64_t left) const
{
    const auto payload = static_cast<int64_t>(m_state.parameters.payload);
    const int64_t room = (pair.window - (pair.next - pair.acked) + payload - 1) / payload;
    // A train is confirmed when all of it has come. So two of them must fit into what the window
    // leaves beyond a round trip, or the sender stands still for the time of a train.
    const auto trip =
        static_cast<int64_t>(static_cast<double>(pair.baseRtt) * pair.bottleneck / 8e12);
    const int64_t spare = 1 + std::max<int64_t>(0, pair.window - trip) / (2 * payload);
    // And its bytes on the wire are a FabricUnit's, of 32 bits, and must fit into a switch.
    const uint64_t buffer = m_state.parameters.buffer == 0 ? UINT32_MAX : m_state.parameters.buffer;
    const auto bytes = static_cast<int64_t>(std::min<uint64_t>(buffer, UINT32_MAX));
    const int64_t most = bytes / (payload + m_state.parameters.header);
    const int64_t packets = std::min({static_cast<int64_t>(m_state.parameters.train),
                                      left / (TRAIN_PART * payload),
                                      room,
                                      spare,
                                      most});
    // Those that compete take turns packet by packet: longer turns let steps that wait for each
    // other clot. And nothing overtakes a train, so there are none where something may want to.
    if (packets <= 1 || m_state.EndpointOf(pair).eligibleCount > 1 || m_state.lossy ||
        m_state.parameters.classes > 1)
    {
        return 1;
    }
    // One by one where a queue is near. (A train that is just passing is none.)
    for (const uint32_t* port = &m_state.routes[pair.there + 1]; *port != FabricRoutes::END; ++port)
    {
        FabricPort& next = m_state.ports[*port];
        m_parts.wires.TimeQueue(next);
        const double packet =
            (m_state.parameters.payload + m_state.parameters.header) * next.psPerByte;
        const uint32_t units = next.ring.GetSize();
        const int64_t lastStart = units == 0 ? 0 : next.ring[units - 1].start;
        if (next.paused != 0 || static_cast<double>(lastStart - m_state.now) > 4 * packet)
        {
            return 1;
        }
    }
    return static_cast<uint32_t>(packets);
}

uint32_t
FabricSenders::ChooseWay(FabricQueuePair& pair)
{
    if (pair.ways == 1)
    {
        return pair.there;
    }
    const std::vector<uint32_t>& ways = m_state.sprays[pair.index].ways;
    uint32_t way = pair.turn;
    switch (m_state.parameters.wayChoice)
    {
    case FABRIC_SPRAY:
        pair.turn = (pair.turn + 1) % pair.ways;
        break;
    case FABRIC_FLOWLET:
        if (m_state.now - pair.lastSent > m_state.parameters.flowletGap.GetPicoSeconds())
        {
            way = pair.turn = (pair.turn + 1) % pair.ways;
        }
        break;
    case FABRIC_ADAPTIVE:
    {
        // From the one after the last on, so that equal ones take turns.
        int64_t least = INT64_MAX;
        for (uint32_t i = 0; i < pair.ways; ++i)
        {
            const uint32_t candidate = (pair.turn + 1 + i) % pair.ways;
            const int64_t longest = LongestQueue(ways[candidate], pair.trafficClass);
            if (longest < least)
            {
                least = longest;
                way = candidate;
            }
        }
        pair.turn = way;
        break;
    }
    }
    pair.lastSent = m_state.now;
    return ways[way];
}

int64_t
FabricSenders::LongestQueue(uint32_t way, uint32_t trafficClass) const
{
    int64_t longest = 0;
    for (const uint32_t* port = &m_state.routes[way + 1]; *port != FabricRoutes::END; ++port)
    {
        FabricPort& next = m_state.ports[*port];
        m_parts.wires.TimeQueue(next);
        const bool paused = next.IsPaused(trafficClass);
        longest = std::max(longest, paused ? INT64_MAX - 1 : next.freeAt - m_state.now);
    }
    return longest;
}

} // namespace ns3
