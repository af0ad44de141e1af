/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * What a Fabric is told and asked.
 */
#include "fabric.h"

#include "fabric-parts.h"
#include "fabric-simulator-impl.h"

#include "ns3/abort.h"
#include "ns3/simulator.h"

#include <algorithm>

namespace ns3
{

Fabric::Fabric()
    : m_parts(std::make_unique<FabricParts>()),
      m_random(CreateObject<UniformRandomVariable>())
{
    m_parts->state.traces = this;
}

Fabric::~Fabric() = default;

void
Fabric::DoDispose()
{
    if (m_direct)
    {
        FabricSimulatorImpl::Remove(this);
    }
    control = nullptr;
    m_parts->state.parameters.control = nullptr;
    m_parts->state.random = nullptr;
    m_random = nullptr;
    Object::DoDispose();
}

int64_t
Fabric::AssignStreams(int64_t stream)
{
    m_random->SetStream(stream);
    return 1;
}

uint32_t
Fabric::AddNode(NodeKind kind)
{
    FabricState& state = m_parts->state;
    FabricNode node{};
    node.kind = kind;
    state.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(state.nodes.size() - 1);
}

uint32_t
Fabric::AddLink(uint32_t a, uint32_t b, DataRate rate, Time delay, double damage)
{
    FabricState& state = m_parts->state;
    NS_ABORT_MSG_UNLESS(a < state.nodes.size() && b < state.nodes.size(), "a link needs two nodes");
    NS_ABORT_MSG_UNLESS(rate.GetBitRate() > 0, "a link needs a bandwidth");
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
    {
        FabricPort port;
        port.from = from;
        port.to = to;
        port.rate = rate;
        port.delay = delay.GetPicoSeconds();
        port.psPerByte = 8e12 / static_cast<double>(rate.GetBitRate());
        port.ownLoss = damage + lossRate;
        port.lossRate = port.ownLoss;
        state.nodes[from].ports.push_back(static_cast<uint32_t>(state.ports.size()));
        state.ports.push_back(std::move(port));
    }
    return static_cast<uint32_t>(state.ports.size() / 2 - 1);
}

void
Fabric::AddEcnRow(double rate, double kmin, double kmax, double most)
{
    m_parts->buffers.AddEcnRow(rate, kmin, kmax, most);
}

void
Fabric::Finish()
{
    if (!control)
    {
        control = CreateObject<FabricCongestionControl>();
    }
    FabricState& state = m_parts->state;
    state.parameters = *this;
    state.random = m_random;
    state.control = PeekPointer(control);
    state.needs = control->GetNeeds();
    state.controlled = control->GetInstanceTypeId() != FabricCongestionControl::GetTypeId();
    state.lossy = buffer > 0 && !pfc;
    for (const FabricPort& port : state.ports)
    {
        state.lossy = state.lossy || port.lossRate > 0;
    }
    m_parts->buffers.Divide();
    m_direct = FabricSimulatorImpl::Add(this);
    state.looking = m_direct && fastForward && !state.lossy && tieOrder != FABRIC_RANDOM &&
                    sampleInterval.IsZero();
    m_parts->samples.SetInterval(sampleInterval.GetPicoSeconds());
}

uint32_t
Fabric::AddQueuePair(const std::vector<uint32_t>& there,
                     const std::vector<uint32_t>& back,
                     bool oneShot,
                     uint32_t trafficClass)
{
    return m_parts->queuePairs.Add(there, back, oneShot, trafficClass);
}

void
Fabric::AddWay(uint32_t pair, const std::vector<uint32_t>& there)
{
    m_parts->queuePairs.AddWay(pair, there);
}

void
Fabric::Send(uint32_t pair, int64_t bytes, Time when, uint64_t tag)
{
    m_parts->messages.Send(pair, bytes, when.GetPicoSeconds(), tag);
    UpdatePump();
}

std::vector<Fabric::Completion>&
Fabric::GetCompletions()
{
    return m_parts->state.completions;
}

void
Fabric::SetGlobalWindow(int64_t bytes)
{
    m_parts->state.globalWindow = bytes;
}

int64_t
Fabric::GetBaseRtt(const std::vector<uint32_t>& ports) const
{
    return m_parts->queuePairs.GetBaseRtt(ports);
}

int64_t
Fabric::GetQueue(uint32_t port)
{
    FabricState& state = m_parts->state;
    state.now = std::max(state.now, Simulator::Now().GetPicoSeconds());
    m_parts->wires.Settle(port);
    UpdatePump();
    return state.ports[port].queued;
}

void
Fabric::SetSampleInterval(Time interval)
{
    NS_ABORT_MSG_UNLESS(interval.IsStrictlyPositive() && sampleInterval.IsStrictlyPositive(),
                        "SampleInterval is given before Finish()");
    m_parts->samples.SetInterval(interval.GetPicoSeconds());
}

void
Fabric::TakeSample()
{
    FabricState& state = m_parts->state;
    state.now = std::max(state.now, Simulator::Now().GetPicoSeconds());
    m_parts->samples.Take();
}

Fabric::PortStatistics
Fabric::GetPortStatistics(uint32_t port) const
{
    return m_parts->state.ports.at(port).statistics;
}

uint64_t
Fabric::GetEventCount() const
{
    return m_parts->state.eventCount;
}

uint64_t
Fabric::GetPacketCount() const
{
    return m_parts->state.packetCount;
}

uint64_t
Fabric::GetLiveMessages() const
{
    return m_parts->state.liveMessages;
}

uint64_t
Fabric::GetJumps() const
{
    return m_parts->state.jumps;
}

int64_t
Fabric::GetSkippedTime() const
{
    return m_parts->state.skippedTime;
}

void
Fabric::SetStopAtCompletion(bool stop, int64_t slack)
{
    m_parts->state.stopAtCompletion = stop;
    m_parts->state.slack = slack;
}

void
Fabric::SetLinkLoss(uint32_t link, double probability)
{
    FabricState& state = m_parts->state;
    NS_ABORT_MSG_UNLESS(2 * link + 1 < state.ports.size(), "there is no such link");
    NS_ABORT_MSG_UNLESS(probability >= 0 && probability <= 1, "a probability is 0 to 1");
    state.now = std::max(state.now, Simulator::Now().GetPicoSeconds());
    for (const uint32_t port : {2 * link, 2 * link + 1})
    {
        state.ports[port].lossRate = std::min(1.0, state.ports[port].ownLoss + probability);
    }
    // From now on nothing repeats, and what is lost must be found out.
    state.lossy = true;
    state.looking = false;
    m_parts->episodes.Stop();
    for (FabricQueuePair& pair : state.pairs)
    {
        if (pair.oldest != FabricState::NONE)
        {
            m_parts->receivers.ArmExpiry(pair);
        }
    }
    UpdatePump();
}

void
Fabric::SetPortRate(uint32_t port, DataRate rate)
{
    FabricState& state = m_parts->state;
    NS_ABORT_MSG_UNLESS(port < state.ports.size(), "there is no such port");
    NS_ABORT_MSG_UNLESS(rate.GetBitRate() > 0, "a port needs a bandwidth");
    state.now = std::max(state.now, Simulator::Now().GetPicoSeconds());
    m_parts->wires.SetRate(port, rate);
    m_parts->jumps.Forget();
    m_parts->episodes.Clear();
    UpdatePump();
}

void
Fabric::Reroute(uint32_t pair,
                const std::vector<uint32_t>& there,
                const std::vector<uint32_t>& back)
{
    FabricState& state = m_parts->state;
    state.now = std::max(state.now, Simulator::Now().GetPicoSeconds());
    m_parts->queuePairs.Reroute(pair, there, back);
    UpdatePump();
}

std::vector<uint32_t>
Fabric::GetGivenUp() const
{
    std::vector<uint32_t> pairs;
    for (const FabricQueuePair& pair : m_parts->state.pairs)
    {
        if (pair.gaveUp)
        {
            pairs.push_back(pair.index);
        }
    }
    return pairs;
}

std::vector<uint32_t>
Fabric::FindDeadlock() const
{
    return m_parts->buffers.FindDeadlock();
}

uint32_t
Fabric::GetNPorts() const
{
    FabricState& state = m_parts->state;
    return static_cast<uint32_t>(state.ports.size());
}

} // namespace ns3
