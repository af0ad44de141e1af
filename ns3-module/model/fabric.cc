/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Construction, attributes and clock of a Fabric.
 */
#include "fabric.h"

#include "fabric-simulator-impl.h"

#include "ns3/abort.h"
#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/enum.h"
#include "ns3/log.h"
#include "ns3/pointer.h"
#include "ns3/simulator.h"
#include "ns3/trace-source-accessor.h"
#include "ns3/uinteger.h"

#include <algorithm>

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("Fabric");
NS_OBJECT_ENSURE_REGISTERED(Fabric);

namespace
{

constexpr int64_t NEVER = INT64_MAX;

} // namespace

TypeId
Fabric::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::Fabric")
            .SetParent<Object>()
            .SetGroupName("Lockstep")
            .AddConstructor<Fabric>()
            .AddAttribute("Payload",
                          "Data bytes of a full packet.",
                          UintegerValue(4096),
                          MakeUintegerAccessor(&Fabric::m_payload),
                          MakeUintegerChecker<uint32_t>(1, 1 << 24))
            .AddAttribute("Header",
                          "Bytes on the wire that a data packet adds to its payload.",
                          UintegerValue(62),
                          MakeUintegerAccessor(&Fabric::m_header),
                          MakeUintegerChecker<uint32_t>(0, 65535))
            .AddAttribute("AckSize",
                          "Bytes on the wire of an ACK.",
                          UintegerValue(60),
                          MakeUintegerAccessor(&Fabric::m_ackSize),
                          MakeUintegerChecker<uint32_t>(0, 65535))
            .AddAttribute(
                "AckInterval",
                "Packets that one ACK confirms; the last packet of a message and a marked "
                "one are confirmed at once.",
                UintegerValue(4),
                MakeUintegerAccessor(&Fabric::m_ackInterval),
                MakeUintegerChecker<uint32_t>(1, 65535))
            .AddAttribute("WaitForAck",
                          "A message is delivered when its sender has the last ACK, not when its "
                          "receiver has the last byte.",
                          BooleanValue(false),
                          MakeBooleanAccessor(&Fabric::m_waitForAck),
                          MakeBooleanChecker())
            .AddAttribute(
                "Window",
                "Bytes that a queue pair may have under way (it stops once so many are, so "
                "it overshoots by up to a packet). 0: its bandwidth-delay product times "
                "WindowFactor.",
                UintegerValue(0),
                MakeUintegerAccessor(&Fabric::m_window),
                MakeUintegerChecker<uint64_t>(0, INT64_MAX))
            .AddAttribute("WindowFactor",
                          "Automatic windows are so many bandwidth-delay products.",
                          DoubleValue(2.0),
                          MakeDoubleAccessor(&Fabric::m_windowFactor),
                          MakeDoubleChecker<double>(0.0))
            .AddAttribute("Train",
                          "Longest train: so many packets of a message are carried as one unit "
                          "where no queue is near. 1: every packet by itself.",
                          UintegerValue(1),
                          MakeUintegerAccessor(&Fabric::m_train),
                          MakeUintegerChecker<uint32_t>(1, 1024))
            .AddAttribute("CutThrough",
                          "Switches send a packet on as soon as its first 64 bytes have come; "
                          "otherwise once all of it has.",
                          BooleanValue(false),
                          MakeBooleanAccessor(&Fabric::m_cutThrough),
                          MakeBooleanChecker())
            .AddAttribute("Processing",
                          "Time from a packet's arrival at a switch until it may leave.",
                          TimeValue(PicoSeconds(0)),
                          MakeTimeAccessor(&Fabric::m_processing),
                          MakeTimeChecker(PicoSeconds(0)))
            .AddAttribute("Rounding",
                          "How transmission times are made whole.",
                          EnumValue(UP_TO_PICOSECOND),
                          MakeEnumAccessor(&Fabric::m_rounding),
                          MakeEnumChecker(UP_TO_PICOSECOND,
                                          "UpToPicosecond",
                                          DOWN_TO_NANOSECOND,
                                          "DownToNanosecond"))
            .AddAttribute("TieOrder",
                          "In which order simultaneous events happen.",
                          EnumValue(SCHEDULED),
                          MakeEnumAccessor(&Fabric::m_tieOrder),
                          MakeEnumChecker(SCHEDULED, "Scheduled", RANDOM, "Random"))
            .AddAttribute("AckHighPriority",
                          "PFC at a host does not hold up its ACKs.",
                          BooleanValue(true),
                          MakeBooleanAccessor(&Fabric::m_ackPriority),
                          MakeBooleanChecker())
            .AddAttribute("FinishedLeaveWhenMet",
                          "Finished queue pairs stay in their port's round robin until it meets "
                          "one, and then leave without the turn being adjusted (SimAI); otherwise "
                          "they leave at once and the turn stays.",
                          BooleanValue(false),
                          MakeBooleanAccessor(&Fabric::m_scanOrder),
                          MakeBooleanChecker())
            .AddAttribute(
                "Buffer",
                "Bytes of a switch's shared buffer; 0: without limit, and neither PFC nor "
                "drops. What ports reserve takes at most half of it.",
                UintegerValue(32 << 20),
                MakeUintegerAccessor(&Fabric::m_buffer),
                MakeUintegerChecker<uint64_t>())
            .AddAttribute("PortReserve",
                          "Bytes of the buffer that belong to each port of a switch.",
                          UintegerValue(4096),
                          MakeUintegerAccessor(&Fabric::m_portReserve),
                          MakeUintegerChecker<uint64_t>())
            .AddAttribute(
                "HeadroomPackets",
                "Full packets (or trains) of headroom for each port of a switch beside three "
                "link delays at line rate.",
                UintegerValue(4),
                MakeUintegerAccessor(&Fabric::m_headroomPackets),
                MakeUintegerChecker<uint32_t>(0, 1000))
            .AddAttribute("Pfc",
                          "Switches pause those who send to them instead of dropping.",
                          BooleanValue(true),
                          MakeBooleanAccessor(&Fabric::m_pfc),
                          MakeBooleanChecker())
            .AddAttribute("NvSwitchFlowControl",
                          "NVSwitches hold up senders as switches with PFC do; otherwise their "
                          "buffers have no limit.",
                          BooleanValue(true),
                          MakeBooleanAccessor(&Fabric::m_nvswitchFlow),
                          MakeBooleanChecker())
            .AddAttribute("PfcAlpha",
                          "Share of the free shared buffer that one ingress port may use before it "
                          "is paused (lossless), or one egress queue before it drops (lossy).",
                          DoubleValue(0.125),
                          MakeDoubleAccessor(&Fabric::m_pfcAlpha),
                          MakeDoubleChecker<double>(0.0, 64.0))
            .AddAttribute("ResumeOffset",
                          "Bytes below the pause threshold at which a port may go on.",
                          UintegerValue(3072),
                          MakeUintegerAccessor(&Fabric::m_resumeOffset),
                          MakeUintegerChecker<uint64_t>())
            .AddAttribute("FastForward",
                          "Jump over what repeats exactly; the result is the same. Only under "
                          "FabricSimulatorImpl.",
                          BooleanValue(true),
                          MakeBooleanAccessor(&Fabric::m_fastForward),
                          MakeBooleanChecker())
            .AddAttribute("Ecn",
                          "Switches mark packets, if the congestion control heeds marks.",
                          BooleanValue(true),
                          MakeBooleanAccessor(&Fabric::m_ecn),
                          MakeBooleanChecker())
            .AddAttribute("DeterministicMarks",
                          "Marking probabilities are added up and each whole one marks, instead of "
                          "a draw a packet.",
                          BooleanValue(false),
                          MakeBooleanAccessor(&Fabric::m_deterministicMarks),
                          MakeBooleanChecker())
            .AddAttribute("KminPerGbps",
                          "Bytes of queue per Gbps of the port where marking begins, for rates "
                          "without a row of their own.",
                          DoubleValue(2000),
                          MakeDoubleAccessor(&Fabric::m_kminFactor),
                          MakeDoubleChecker<double>(0.0))
            .AddAttribute("KmaxPerGbps",
                          "The same where all packets are marked.",
                          DoubleValue(8000),
                          MakeDoubleAccessor(&Fabric::m_kmaxFactor),
                          MakeDoubleChecker<double>(0.0))
            .AddAttribute("Pmax",
                          "Marking probability just below the upper threshold.",
                          DoubleValue(0.2),
                          MakeDoubleAccessor(&Fabric::m_pmax),
                          MakeDoubleChecker<double>(0.0, 1.0))
            .AddAttribute("Pacing",
                          "Queue pairs keep to their rates; otherwise only windows hold them back.",
                          BooleanValue(true),
                          MakeBooleanAccessor(&Fabric::m_pacing),
                          MakeBooleanChecker())
            .AddAttribute("LossRate",
                          "Probability that a link damages a packet, added to each link's own.",
                          DoubleValue(0.0),
                          MakeDoubleAccessor(&Fabric::m_lossRate),
                          MakeDoubleChecker<double>(0.0, 1.0))
            .AddAttribute("RetransmitTimeout",
                          "A queue pair whose ACKs make no progress for so long sends again. Only "
                          "where packets may be lost.",
                          TimeValue(MicroSeconds(500)),
                          MakeTimeAccessor(&Fabric::m_retransmit),
                          MakeTimeChecker(PicoSeconds(1)))
            .AddAttribute("NackInterval",
                          "A receiver asks for the same byte again after so long at the earliest.",
                          TimeValue(MicroSeconds(500)),
                          MakeTimeAccessor(&Fabric::m_nackInterval),
                          MakeTimeChecker(PicoSeconds(0)))
            .AddAttribute("CongestionControl",
                          "What sets rates and windows; none if not given.",
                          PointerValue(),
                          MakePointerAccessor(&Fabric::m_control),
                          MakePointerChecker<FabricCongestionControl>())
            .AddTraceSource("Message",
                            "A message was delivered.",
                            MakeTraceSourceAccessor(&Fabric::m_messageTrace),
                            "ns3::Fabric::MessageTracedCallback")
            .AddTraceSource("Pfc",
                            "A port was told to stop or to go on: time in ps, node that holds the "
                            "packets, port that is told, whether to stop.",
                            MakeTraceSourceAccessor(&Fabric::m_pauseTrace),
                            "ns3::Fabric::PfcTracedCallback")
            .AddTraceSource("Drop",
                            "A unit was lost: time in ps, port, bytes.",
                            MakeTraceSourceAccessor(&Fabric::m_dropTrace),
                            "ns3::Fabric::DropTracedCallback");
    return tid;
}

Fabric::Fabric()
    : m_random(CreateObject<UniformRandomVariable>())
{
}

Fabric::~Fabric() = default;

void
Fabric::DoDispose()
{
    if (m_direct)
    {
        FabricSimulatorImpl::Remove(this);
    }
    m_control = nullptr;
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
    Node node{};
    node.kind = kind;
    m_nodes.push_back(std::move(node));
    return static_cast<uint32_t>(m_nodes.size() - 1);
}

uint32_t
Fabric::AddLink(uint32_t a, uint32_t b, DataRate rate, Time delay, double lossRate)
{
    NS_ABORT_MSG_UNLESS(a < m_nodes.size() && b < m_nodes.size(), "a link needs two nodes");
    NS_ABORT_MSG_UNLESS(rate.GetBitRate() > 0, "a link needs a bandwidth");
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
    {
        Port port;
        port.from = from;
        port.to = to;
        port.rate = rate;
        port.delay = delay.GetPicoSeconds();
        port.psPerByte = 8e12 / static_cast<double>(rate.GetBitRate());
        port.lossRate = lossRate + m_lossRate;
        m_nodes[from].ports.push_back(static_cast<uint32_t>(m_ports.size()));
        m_ports.push_back(std::move(port));
    }
    return static_cast<uint32_t>(m_ports.size() / 2 - 1);
}

void
Fabric::AddEcnRow(double rate, double kmin, double kmax, double pmax)
{
    m_ecnTable.push_back({rate, kmin, kmax, pmax});
}

void
Fabric::Finish()
{
    if (!m_control)
    {
        m_control = CreateObject<FabricCongestionControl>();
    }
    m_needs = m_control->GetNeeds();
    m_controlled = m_control->GetInstanceTypeId() != FabricCongestionControl::GetTypeId();
    m_lossy = m_buffer > 0 && !m_pfc;
    for (Port& port : m_ports)
    {
        m_lossy = m_lossy || port.lossRate > 0;
        const double gbps = static_cast<double>(port.rate.GetBitRate()) / 1e9;
        port.kmin = static_cast<int64_t>(m_kminFactor * gbps);
        port.kmax = static_cast<int64_t>(m_kmaxFactor * gbps);
        port.pmax = m_pmax;
        for (const auto& row : m_ecnTable)
        {
            if (row[0] == static_cast<double>(port.rate.GetBitRate()))
            {
                port.kmin = static_cast<int64_t>(row[1]);
                port.kmax = static_cast<int64_t>(row[2]);
                port.pmax = row[3];
            }
        }
    }
    for (uint32_t number = 0; number < m_nodes.size(); ++number)
    {
        Node& node = m_nodes[number];
        const uint32_t full = m_payload + m_header;
        node.granule = m_cutThrough ? std::min<uint32_t>(64, full) : full;
        const bool nvlink = node.kind == NVSWITCH && m_nvswitchFlow;
        node.finite = m_buffer > 0 && (node.kind == SWITCH || nvlink);
        node.pauses = node.finite && (nvlink || m_pfc);
        node.marks =
            node.kind == SWITCH && m_ecn && (m_needs & FabricCongestionControl::MARKS) != 0;
        // What comes by a port is held up by that port's buffer share in this node. Headroom: the
        // bytes of a round trip on the wire, and a unit at each end (twice for a pause frame that
        // just missed one).
        int64_t shared = static_cast<int64_t>(m_buffer);
        for (const uint32_t leaving : node.ports)
        {
            Port& ingress = m_ports[leaving ^ 1];
            const double perPs = static_cast<double>(ingress.rate.GetBitRate()) / 8e12;
            ingress.headroom =
                static_cast<int64_t>(3 * static_cast<double>(ingress.delay) * perPs) +
                static_cast<int64_t>(full) * m_headroomPackets * m_train;
            ingress.reserve = static_cast<int64_t>(m_portReserve);
            ingress.thresholdShare = m_pfcAlpha;
            shared -= ingress.headroom + ingress.reserve;
        }
        const auto half = static_cast<int64_t>(m_buffer / 2);
        if (shared < half)
        {
            // Many ports for this buffer: what is set apart for them gets half of it.
            const double scale = static_cast<double>(half) /
                                 static_cast<double>(static_cast<int64_t>(m_buffer) - shared);
            for (const uint32_t leaving : node.ports)
            {
                Port& ingress = m_ports[leaving ^ 1];
                ingress.headroom =
                    static_cast<int64_t>(scale * static_cast<double>(ingress.headroom));
                ingress.reserve =
                    static_cast<int64_t>(scale * static_cast<double>(ingress.reserve));
            }
            shared = static_cast<int64_t>(m_buffer) - half;
        }
        node.shared = shared;
    }
    m_direct = FabricSimulatorImpl::Add(this);
    m_looking = m_direct && m_fastForward && !m_lossy && m_tieOrder != RANDOM;
}

uint32_t
Fabric::GetNPorts() const
{
    return static_cast<uint32_t>(m_ports.size());
}

Fabric::PortStatistics
Fabric::GetPortStatistics(uint32_t port) const
{
    return m_ports.at(port).statistics;
}

void
Fabric::SetGlobalWindow(int64_t bytes)
{
    m_globalWindow = bytes;
}

int64_t
Fabric::GetBaseRtt(const std::vector<uint32_t>& ports) const
{
    int64_t sum = 0;
    for (const uint32_t number : ports)
    {
        Port probe;
        probe.psPerByte = m_ports[number].psPerByte;
        probe.rate = m_ports[number].rate;
        sum += 2 * m_ports[number].delay + TransmissionTime(probe, m_payload);
    }
    return sum;
}

uint32_t
Fabric::AllocateRoute(const std::vector<uint32_t>& ports)
{
    const std::size_t hops = ports.size();
    if (m_freeRoutes.size() <= hops)
    {
        m_freeRoutes.resize(hops + 1);
    }
    uint32_t place = 0;
    if (m_freeRoutes[hops].empty())
    {
        place = static_cast<uint32_t>(m_routes.size());
        m_routes.resize(m_routes.size() + hops + 1);
    }
    else
    {
        place = m_freeRoutes[hops].back();
        m_freeRoutes[hops].pop_back();
    }
    std::copy(ports.begin(), ports.end(), m_routes.begin() + place);
    m_routes[place + hops] = END_OF_ROUTE;
    return place;
}

void
Fabric::FreeRoute(uint32_t route, uint32_t hops)
{
    m_freeRoutes[hops].push_back(route);
}

uint64_t
Fabric::NextKey()
{
    ++m_nextKey;
    if (m_tieOrder == RANDOM)
    {
        return static_cast<uint64_t>(Draw() * 0x1p62) << 1 | (m_nextKey & 1);
    }
    return m_nextKey;
}

double
Fabric::Draw()
{
    ++m_draws;
    return m_random->GetValue();
}

void
Fabric::Schedule(What what, uint32_t index, int64_t time, uint64_t key)
{
    m_events.Push({time, key, index << 3 | what});
}

int64_t
Fabric::GetNextTime() const
{
    return m_events.IsEmpty() ? NEVER : m_events.Top().time;
}

int64_t
Fabric::GetCurrentTime() const
{
    return m_now;
}

void
Fabric::SetStopAtCompletion(bool stop, int64_t slack)
{
    m_stopAtCompletion = stop;
    m_slack = slack;
}

void
Fabric::Complete(uint64_t tag, bool delivered)
{
    m_completions.push_back({m_now, tag, delivered});
}

void
Fabric::RunUntil(int64_t limit)
{
    m_running = true;
    // A stop holds from the first completion on: then the rest of that stamp, or `slack` more.
    const auto stopping = [this, &limit]
    {
        if (m_stopAtCompletion && !m_completions.empty())
        {
            const int64_t stop = m_completions.front().time + std::max<int64_t>(m_slack, 1);
            if (stop <= limit)
            {
                limit = stop;
                return true;
            }
        }
        return false;
    };
    bool stop = stopping();
    std::size_t seen = m_completions.size();
    while (!m_events.IsEmpty())
    {
        if (m_looking && IsIdle() && m_events.Top().time < limit)
        {
            if (m_recording)
            {
                CloseEpisode();
            }
            const std::size_t pending = m_pendingBegins;
            OpenEpisode(limit);
            if (m_pendingBegins != pending)
            {
                stop = stopping();
                seen = m_completions.size();
                continue;
            }
        }
        const FabricEvent event = m_events.Top();
        if (event.time >= limit)
        {
            break;
        }
        m_now = event.time;
        m_currentKey = event.key;
        ++m_eventCount;
        Dispatch(event);
        if (m_completions.size() != seen)
        {
            seen = m_completions.size();
            stop = stopping();
            ForgetState();
        }
        else if (m_looks.due && !m_events.IsEmpty() && m_events.Top().time > m_now)
        {
            Look(limit);
        }
    }
    m_running = false;
    if (stop)
    {
        Simulator::Stop();
    }
}

void
Fabric::Dispatch(const FabricEvent& event)
{
    const uint32_t index = event.what >> 3;
    switch (static_cast<What>(event.what & 7))
    {
    case ARRIVE:
        Arrive(index, event.key); // replaces or pops the top itself
        break;
    case PULL:
        m_events.Pop();
        m_ports[index].pullPending = false;
        Pull(index);
        break;
    case WAKE:
        m_events.Pop();
        if (m_ports[index].wakeKey == event.key)
        {
            Wake(index);
        }
        break;
    case BEGIN:
        m_events.Pop();
        Begin(index);
        break;
    case PAUSE:
        m_events.Pop();
        Pause(index);
        break;
    case RESUME:
        m_events.Pop();
        Resume(index);
        break;
    case DEPART:
        m_events.Pop();
        Depart(index);
        break;
    case EXPIRE:
        m_events.Pop();
        Expire(index);
        break;
    }
}

void
Fabric::UpdatePump()
{
    if (m_direct || m_running)
    {
        return;
    }
    const int64_t next = GetNextTime();
    if (m_pump.IsRunning() && m_pump.GetTs() == static_cast<uint64_t>(next))
    {
        return;
    }
    m_pump.Cancel();
    if (next != NEVER)
    {
        const Time when = PicoSeconds(static_cast<uint64_t>(next));
        m_pump = Simulator::Schedule(when - Simulator::Now(), &Fabric::Pump, this);
    }
}

void
Fabric::Pump()
{
    const int64_t now = Simulator::Now().GetPicoSeconds();
    RunUntil(now + 1);
    UpdatePump();
}

} // namespace ns3
