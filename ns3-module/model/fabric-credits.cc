/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-parts.h"

namespace ns3
{

FabricCredits::FabricCredits(FabricParts& parts)
    : m_parts(parts),
      m_state(parts.state)
{
}

void
FabricCredits::Divide()
{
    const FabricParameters& p = m_state.parameters;
    if (!p.nvswitchFlow)
    {
        return;
    }
    for (FabricPort& port : m_state.ports)
    {
        if (m_state.nodes[port.from].kind == FABRIC_NVSWITCH ||
            m_state.nodes[port.to].kind == FABRIC_NVSWITCH)
        {
            port.credits = static_cast<int64_t>(p.nvlinkCredits);
        }
    }
}

bool
FabricCredits::HasRoom(const FabricPort& port) const
{
    const int64_t packet = int64_t{m_state.parameters.payload} + m_state.parameters.header;
    return port.owed == 0 || port.owed + packet <= port.credits;
}

bool
FabricCredits::Take(uint32_t index, int64_t bytes)
{
    FabricPort& port = m_state.ports[index];
    const auto fits = [&] { return port.owed == 0 || port.owed + bytes <= port.credits; };
    if (!fits())
    {
        m_parts.buffers.SettleNode(port.to); // what has left there is no longer owed
        if (!fits())
        {
            return false;
        }
    }
    port.owed += bytes;
    return true;
}

void
FabricCredits::Spend(uint32_t index, int64_t bytes)
{
    FabricPort& port = m_state.ports[index];
    port.owed += bytes;
    if (!HasRoom(port))
    {
        m_parts.buffers.SettleNode(port.to);
        if (!HasRoom(port))
        {
            Stall(index);
        }
    }
}

void
FabricCredits::Stall(uint32_t index)
{
    FabricPort& port = m_state.ports[index];
    if (!port.stalled)
    {
        port.stalled = true;
        ++port.statistics.stalls;
        // From now on somebody wants to know when something leaves there.
        ++m_state.nodes[port.to].pausing;
        m_parts.wires.Watch(port.to);
    }
}

void
FabricCredits::Return(uint32_t index, int64_t bytes)
{
    FabricPort& port = m_state.ports[index];
    port.owed -= bytes;
    if (port.stalled && !port.creditPending && HasRoom(port))
    {
        port.creditPending = true;
        m_state.Schedule(FABRIC_CREDIT, index, m_state.now + port.delay, m_state.NextKey());
    }
}

void
FabricCredits::Come(uint32_t index)
{
    FabricPort& port = m_state.ports[index];
    port.creditPending = false;
    if (!m_parts.wires.StartWaiting(index))
    {
        return; // not enough for all that waits
    }
    if (!HasRoom(port))
    {
        return;
    }
    port.stalled = false;
    --m_state.nodes[port.to].pausing;
    if (port.endpoint != FabricState::NONE)
    {
        m_parts.senders.Kick(index);
    }
}

} // namespace ns3
