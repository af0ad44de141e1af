/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * What a Fabric is told and asked.
 */
#include "fabric.h"

#include "fabric-partitions.h"
#include "fabric-simulator-impl.h"

#include "ns3/abort.h"
#include "ns3/simulator.h"

#include <algorithm>

namespace ns3
{

Fabric::Fabric()
    : m_partitions(std::make_unique<FabricPartitions>())
{
    m_partitions->GetTables().traces = this;
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
    m_partitions->GetTables().parameters.control = nullptr;
    m_partitions->GetTables().random = nullptr;
    Object::DoDispose();
}

int64_t
Fabric::AssignStreams(int64_t stream)
{
    m_partitions->GetTables().stream = stream;
    return 2;
}

uint32_t
Fabric::AddNode(NodeKind kind)
{
    FabricTables& tables = m_partitions->GetTables();
    FabricNode node{};
    node.kind = kind;
    tables.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(tables.nodes.size() - 1);
}

uint32_t
Fabric::AddLink(uint32_t a, uint32_t b, DataRate rate, Time delay, double damage)
{
    FabricTables& tables = m_partitions->GetTables();
    NS_ABORT_MSG_UNLESS(a < tables.nodes.size() && b < tables.nodes.size(),
                        "a link needs two nodes");
    NS_ABORT_MSG_UNLESS(rate.GetBitRate() > 0, "a link needs a bandwidth");
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
    {
        FabricPort port;
        port.from = from;
        port.to = to;
        port.rate = rate.GetBitRate();
        port.delay = delay.GetPicoSeconds();
        port.psPerByte = 8e12 / static_cast<double>(rate.GetBitRate());
        port.ownLoss = damage + lossRate;
        port.lossRate = port.ownLoss;
        tables.nodes[from].ports.push_back(static_cast<uint32_t>(tables.ports.size()));
        tables.ports.push_back(std::move(port));
    }
    return static_cast<uint32_t>(tables.ports.size() / 2 - 1);
}

void
Fabric::AddEcnRow(double rate, double kmin, double kmax, double most)
{
    m_partitions->First().buffers.AddEcnRow(rate, kmin, kmax, most);
}

void
Fabric::Finish()
{
    if (!control)
    {
        control = CreateObject<FabricCongestionControl>();
    }
    FabricTables& tables = m_partitions->GetTables();
    tables.parameters = *this;
    if (tieOrder == FABRIC_RANDOM || tables.stream < 0)
    {
        tables.random = tables.MakeRandom(0);
    }
    if (tables.stream < 0)
    {
        tables.GetSeed(); // ns-3 numbers streams in the order in which they are made
    }
    tables.control = PeekPointer(control);
    tables.needs = control->GetNeeds();
    tables.controlled = control->GetInstanceTypeId() != FabricCongestionControl::GetTypeId();
    m_partitions->First().buffers.Divide();
    m_direct = FabricSimulatorImpl::Add(this);
    const bool looking =
        m_direct && fastForward && tieOrder != FABRIC_RANDOM && sampleInterval.IsZero();
    m_partitions->Divide(looking, buffer > 0 && !pfc);
    m_partitions->GetSamples().SetInterval(sampleInterval.GetPicoSeconds(), 0);
}

FabricParts&
Fabric::Touch(uint32_t port)
{
    FabricTables& tables = m_partitions->GetTables();
    NS_ABORT_MSG_UNLESS(port < tables.partitionOf.size(), "there is no such port");
    NoteTime();
    FabricParts& parts = m_partitions->Of(port);
    m_partitions->Touch(parts, tables.done);
    parts.state.now = std::max(parts.state.now, Simulator::Now().GetPicoSeconds());
    return parts;
}

void
Fabric::NoteTime() const
{
    int64_t& done = m_partitions->GetTables().done;
    done = std::max(done, Simulator::Now().GetPicoSeconds() - 1);
}

uint32_t
Fabric::AddQueuePair(const std::vector<uint32_t>& there,
                     const std::vector<uint32_t>& back,
                     bool oneShot,
                     uint32_t trafficClass)
{
    NoteTime();
    return m_partitions->Join(there, back).queuePairs.Add(there, back, oneShot, trafficClass);
}

void
Fabric::AddWay(uint32_t pair, const std::vector<uint32_t>& there)
{
    NoteTime();
    FabricTables& tables = m_partitions->GetTables();
    m_partitions->Join(there, {tables.pairs.at(pair).port}).queuePairs.AddWay(pair, there);
}

void
Fabric::SetJitterSeries(uint32_t pair, uint64_t series, uint64_t first)
{
    if (!sendJitter.IsZero())
    {
        m_partitions->GetTables().jitter.at(pair) = {series, first, 0};
    }
}

void
Fabric::Send(uint32_t pair, int64_t bytes, Time when, uint64_t tag)
{
    NoteTime();
    FabricTables& tables = m_partitions->GetTables();
    FabricParts& parts = m_partitions->Of(tables.pairs.at(pair).port);
    parts.jumps.Interrupt(tables.done);
    parts.messages.Send(pair, bytes, when.GetPicoSeconds(), tag);
    m_partitions->Update(parts);
    UpdatePump();
}

std::vector<Fabric::Completion>&
Fabric::GetCompletions()
{
    return m_partitions->GetTables().completions;
}

void
Fabric::SetGlobalWindow(int64_t bytes)
{
    m_partitions->GetTables().globalWindow = bytes;
}

int64_t
Fabric::GetBaseRtt(const std::vector<uint32_t>& ports) const
{
    return m_partitions->First().queuePairs.GetBaseRtt(ports);
}

int64_t
Fabric::GetQueue(uint32_t port)
{
    FabricParts& parts = Touch(port);
    parts.wires.Settle(port);
    m_partitions->Update(parts);
    UpdatePump();
    return parts.state.ports[port].queued;
}

void
Fabric::SetSampleInterval(Time interval)
{
    NS_ABORT_MSG_UNLESS(interval.IsStrictlyPositive() && sampleInterval.IsStrictlyPositive(),
                        "SampleInterval is given before Finish()");
    m_partitions->GetSamples().SetInterval(interval.GetPicoSeconds(), m_partitions->GetNow());
}

void
Fabric::TakeSample()
{
    m_partitions->CatchUp();
    m_partitions->TimeQueues();
    m_partitions->GetSamples().Take(
        std::max(m_partitions->GetNow(), Simulator::Now().GetPicoSeconds()));
}

Fabric::PortStatistics
Fabric::GetPortStatistics(uint32_t port) const
{
    m_partitions->CatchUp();
    return m_partitions->GetTables().ports.at(port).statistics;
}

uint64_t
Fabric::GetEventCount() const
{
    return m_partitions->Sum(&FabricState::eventCount);
}

uint64_t
Fabric::GetPacketCount() const
{
    m_partitions->CatchUp();
    return m_partitions->Sum(&FabricState::packetCount);
}

uint64_t
Fabric::GetLiveMessages() const
{
    return m_partitions->Sum(&FabricState::liveMessages);
}

uint64_t
Fabric::GetJumps() const
{
    return m_partitions->Sum(&FabricState::jumps);
}

int64_t
Fabric::GetSkippedTime() const
{
    return m_partitions->GetSkippedTime();
}

void
Fabric::SetStopAtCompletion(bool stop, int64_t slack)
{
    m_partitions->GetTables().stopAtCompletion = stop;
    m_partitions->GetTables().slack = slack;
}

void
Fabric::SetLinkLoss(uint32_t link, double probability)
{
    NS_ABORT_MSG_UNLESS(probability >= 0 && probability <= 1, "a probability is 0 to 1");
    FabricParts& parts = Touch(2 * link);
    FabricState& state = parts.state;
    for (const uint32_t port : {2 * link, 2 * link + 1})
    {
        state.ports[port].lossRate = std::min(1.0, state.ports[port].ownLoss + probability);
    }
    // From now on nothing repeats in this partition, and what is lost must be found out.
    state.lossy = true;
    state.looking = false;
    parts.episodes.Clear();
    parts.receivers.WatchAll();
    m_partitions->Update(parts);
    UpdatePump();
}

void
Fabric::ExpectChangesUntil(Time when)
{
    int64_t& until = m_partitions->GetTables().changesUntil;
    until = std::max(until, when.GetPicoSeconds());
}

void
Fabric::SetPortRate(uint32_t port, DataRate rate)
{
    NS_ABORT_MSG_UNLESS(rate.GetBitRate() > 0, "a port needs a bandwidth");
    FabricParts& parts = Touch(port);
    parts.wires.SetRate(port, rate);
    parts.jumps.Forget();
    parts.episodes.Clear();
    m_partitions->Update(parts);
    UpdatePump();
}

void
Fabric::Reroute(uint32_t pair,
                const std::vector<uint32_t>& there,
                const std::vector<uint32_t>& back)
{
    const uint32_t port = m_partitions->GetTables().pairs.at(pair).port;
    NS_ABORT_MSG_IF(there.empty() || back.empty(), "a queue pair needs a way there and back");
    NoteTime();
    std::vector<uint32_t> ways = back;
    ways.push_back(port);
    m_partitions->Join(there, ways);
    FabricParts& parts = Touch(port);
    parts.queuePairs.Reroute(pair, there, back);
    m_partitions->Update(parts);
    UpdatePump();
}

void
Fabric::RerouteWays(uint32_t pair,
                    const std::vector<std::vector<uint32_t>>& there,
                    const std::vector<uint32_t>& back)
{
    NS_ABORT_MSG_IF(there.empty(), "a queue pair needs a way there");
    Reroute(pair, there.front(), back);
    const uint32_t port = there.front().front();
    for (const std::vector<uint32_t>& way : there)
    {
        m_partitions->Join(way, {port});
    }
    FabricParts& parts = Touch(port);
    parts.queuePairs.SetWays(pair, there);
    m_partitions->Update(parts);
    UpdatePump();
}

std::vector<uint32_t>
Fabric::GetGivenUp() const
{
    std::vector<uint32_t> pairs;
    for (const FabricQueuePair& pair : m_partitions->GetTables().pairs)
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
    m_partitions->CatchUp();
    return m_partitions->First().buffers.FindDeadlock();
}

uint32_t
Fabric::GetNPorts() const
{
    return static_cast<uint32_t>(m_partitions->GetTables().ports.size());
}

} // namespace ns3
