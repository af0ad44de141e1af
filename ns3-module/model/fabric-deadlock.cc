/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Circles of pauses.
 */
#include "fabric-parts.h"

#include <algorithm>

namespace ns3
{

bool
FabricBuffers::WaitsFor(uint32_t ingress, uint32_t egress, uint32_t trafficClass) const
{
    const FabricPort& port = m_state.ports[egress];
    const bool paused = port.IsPaused(trafficClass);
    for (uint32_t i = port.started; paused && i < port.ring.GetSize(); ++i)
    {
        if (port.ring[i].ingress == ingress && port.ring[i].trafficClass == trafficClass)
        {
            return true;
        }
    }
    return false;
}

std::vector<uint32_t>
FabricBuffers::FindDeadlock() const
{
    // A packet keeps its class, so what waits for it is of the same class.
    for (uint32_t trafficClass = 0; trafficClass < m_state.parameters.classes; ++trafficClass)
    {
        std::vector<uint32_t> circle = FindDeadlock(trafficClass);
        if (!circle.empty())
        {
            return circle;
        }
    }
    return {};
}

std::vector<uint32_t>
FabricBuffers::FindDeadlock(uint32_t trafficClass) const
{
    // A paused port waits for the paused ports of the node behind it in which something waits that
    // came by it. A port that waits for nobody goes on; so do those that wait for such ones alone.
    // Who is left waits for a circle: follow one of them until a port comes again.
    std::vector<std::vector<uint32_t>> waits(m_state.ports.size());
    std::vector<bool> stuck(m_state.ports.size(), false);
    for (uint32_t index = 0; index < m_state.ports.size(); ++index)
    {
        if (m_state.ports[index].IsPaused(trafficClass))
        {
            for (const uint32_t next : m_state.nodes[m_state.ports[index].to].ports)
            {
                if (WaitsFor(index, next, trafficClass))
                {
                    waits[index].push_back(next);
                }
            }
            stuck[index] = !waits[index].empty();
        }
    }
    const auto firstStuck = [&stuck](const std::vector<uint32_t>& ports)
    {
        const auto found =
            std::find_if(ports.begin(), ports.end(), [&](uint32_t port) { return stuck[port]; });
        return found == ports.end() ? FabricState::NONE : *found;
    };
    for (bool changed = true; changed;)
    {
        changed = false;
        for (uint32_t index = 0; index < stuck.size(); ++index)
        {
            if (stuck[index] && firstStuck(waits[index]) == FabricState::NONE)
            {
                stuck[index] = false;
                changed = true;
            }
        }
    }
    const auto first = std::find(stuck.begin(), stuck.end(), true);
    std::vector<uint32_t> path;
    if (first == stuck.end())
    {
        return path;
    }
    auto next = static_cast<uint32_t>(first - stuck.begin());
    while (std::find(path.begin(), path.end(), next) == path.end())
    {
        path.push_back(next);
        next = firstStuck(waits[next]);
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), next));
    return path;
}

} // namespace ns3
