/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Step responses of the congestion controls: a second flow joins, 8 and 64 send to 1.
 */

#include "fabric-star.h"

#include "ns3/double.h"
#include "ns3/fabric.h"
#include "ns3/object-factory.h"
#include "ns3/pointer.h"
#include "ns3/simulator.h"
#include "ns3/test.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

/** What is published of a scheme, as bounds. */
struct Bounds
{
    const char* type;   //!< TypeId name
    double fairness;    //!< least Jain index of the two flows' bytes, 2 ms after the second came
    double loss;        //!< most that an incast may take beyond the wire's time, as a share
    double queue8;      //!< mean queue of the 8:1 incast in bytes, 0.2 to 0.6 ms after it began
    double queue64;     //!< the same of 64:1
    double convergence; //!< ms after the second flow came until both share from then on
};

// Two flows share with windows of 32 bandwidth-delay products, which do not bind, so that it is the
// control that makes them fair: within a look or two for DCQCN (50 us) and some round trips for
// HPCC and Swift; DCTCP and TIMELY add 1 Gbps and 0.1 Gbps a round trip, and take milliseconds.
// Without control the queue is all that the windows allow (217 kB a sender). DCQCN and DCTCP keep
// it below or about where marking begins (0.8 MB at 400 Gbps), with 64 senders between that and
// where all is marked (3.2 MB). HPCC keeps it near empty and the link at 95 %. Swift keeps it near
// its target delay (4 us are 200 kB), and halves 64 windows once a round trip until then. TIMELY
// does nothing below its Low delay (50 us are 2.5 MB). Receiver credit keeps one window in all.
const std::vector<Bounds> BOUNDS = {
    {"ns3::FabricCongestionControl", 0.99, 0.01, 1.75e6, 14.0e6, 0.5},
    {"ns3::DcqcnCongestionControl", 0.95, 0.08, 0.85e6, 4.2e6, 0.5},
    {"ns3::DctcpCongestionControl", 0.94, 0.03, 0.85e6, 4.2e6, 2.5},
    {"ns3::HpccCongestionControl", 0.95, 0.32, 0.05e6, 1.0e6, 0.5},
    {"ns3::SwiftCongestionControl", 0.99, 0.02, 0.3e6, 3.6e6, 0.5},
    {"ns3::TimelyCongestionControl", 0.95, 0.02, 1.75e6, 9.0e6, 1.5},
    {"ns3::ReceiverCongestionControl", 0.99, 0.01, 0.05e6, 0.75e6, 0.5},
};

} // namespace

/** One scheme. */
class CongestionTestCase : public TestCase
{
  public:
    /**
     * \param bounds what is expected
     */
    explicit CongestionTestCase(const Bounds& bounds)
        : TestCase(std::string(bounds.type) + ": two flows share, 8 and 64 send to 1"),
          m_bounds(bounds)
    {
    }

  private:
    static constexpr double PACKET_PS = 83160; //!< 4158 B at 400 Gbps

    void
    DoRun() override
    {
        const double fairness = Sharing();
        const auto [loss8, queue8] = Incast(8, 4 << 20);
        const auto [loss64, queue64] = Incast(64, 1 << 20);
        std::printf(
            "%-32s fairness %.3f  8:1 +%.1f %% queue %.0f kB  64:1 +%.1f %% queue %.0f kB\n",
            m_bounds.type,
            fairness,
            100 * loss8,
            queue8 / 1e3,
            100 * loss64,
            queue64 / 1e3);
        std::printf("%-32s converges in %.1f ms\n", m_bounds.type, m_convergence);
        NS_TEST_EXPECT_MSG_GT(fairness, m_bounds.fairness, "Jain index of two flows");
        NS_TEST_EXPECT_MSG_LT(m_convergence, m_bounds.convergence, "ms until two flows share");
        NS_TEST_EXPECT_MSG_LT(loss8, m_bounds.loss, "8:1: time beyond the wire's");
        NS_TEST_EXPECT_MSG_LT(loss64, m_bounds.loss, "64:1: time beyond the wire's");
        NS_TEST_EXPECT_MSG_LT(queue8, m_bounds.queue8, "8:1: queue");
        NS_TEST_EXPECT_MSG_LT(queue64, m_bounds.queue64, "64:1: queue");
    }

    /**
     * Hosts around a switch, 400 Gbps and 500 ns a link.
     * \param hosts how many
     */
    void
    Build(uint32_t hosts, double windowFactor = 2)
    {
        m_fabric = CreateObject<Fabric>();
        ObjectFactory factory(m_bounds.type);
        m_fabric->SetAttribute("CongestionControl",
                               PointerValue(factory.Create<FabricCongestionControl>()));
        m_fabric->SetAttribute("WindowFactor", DoubleValue(windowFactor));
        m_fabric->AssignStreams(1);
        for (uint32_t i = 0; i < hosts; ++i)
        {
            m_fabric->AddNode(Fabric::HOST);
        }
        m_fabric->AddNode(Fabric::SWITCH);
        for (uint32_t i = 0; i < hosts; ++i)
        {
            m_fabric->AddLink(i, hosts, DataRate("400Gbps"), NanoSeconds(500), 0);
        }
        m_fabric->Finish();
    }

    /** Ends a simulation. */
    void
    Clear()
    {
        m_fabric->Dispose();
        m_fabric = nullptr;
        Simulator::Destroy();
    }

    /**
     * A long flow has the link; a second one comes 1 ms later.
     * \return Jain index of what both got from 2 to 4 ms after that
     */
    double
    Sharing()
    {
        Build(3, 32);
        const int64_t piece = 64 * 4096;
        for (uint32_t from = 1; from <= 2; ++from)
        {
            const uint32_t pair = m_fabric->AddQueuePair({2 * from, 1}, {0, 2 * from + 1}, false);
            for (uint64_t i = 0; i < 1200; ++i)
            {
                m_fabric->Send(pair, piece, MilliSeconds(from - 1), from);
            }
        }
        Simulator::Stop(MilliSeconds(5));
        Simulator::Run();
        std::map<uint64_t, double> got;
        for (const Fabric::Completion& done : m_fabric->GetCompletions())
        {
            if (done.delivered && done.time > 3'000'000'000)
            {
                got[done.tag] += static_cast<double>(piece);
            }
        }
        m_convergence = Convergence();
        Clear();
        const double sum = got[1] + got[2];
        const double squares = got[1] * got[1] + got[2] * got[2];
        NS_TEST_EXPECT_MSG_GT(sum, 0.5 * 2e-3 * 50e9, "at least half of the link is used");
        return sum * sum / (2 * squares);
    }

    /**
     * \return ms after the second flow came, in tenths, from which on the Jain index of what both
     * got in each half of a millisecond is at least 0.9
     */
    double
    Convergence() const
    {
        constexpr int64_t TENTH = 100'000'000; // ps
        constexpr std::size_t TENTHS = 50;
        std::vector<std::array<double, 2>> got(TENTHS);
        for (const Fabric::Completion& done : m_fabric->GetCompletions())
        {
            const auto tenth = static_cast<std::size_t>(done.time / TENTH);
            if (done.delivered && tenth < TENTHS)
            {
                got[tenth][done.tag - 1] += 1;
            }
        }
        std::size_t from = TENTHS - 5;
        for (; from >= 10; --from)
        {
            double first = 0;
            double second = 0;
            for (std::size_t i = from; i < from + 5; ++i)
            {
                first += got[i][0];
                second += got[i][1];
            }
            const double sum = first + second;
            if (sum * sum < 0.9 * 2 * (first * first + second * second))
            {
                break;
            }
        }
        return static_cast<double>(from + 1 - 10) / 10;
    }

    /**
     * \param senders how many start at once
     * \param bytes of each
     * \return time beyond the wire's as a share, and the mean queue from 0.2 to 0.6 ms
     */
    std::pair<double, double>
    Incast(uint32_t senders, int64_t bytes)
    {
        Build(senders + 1);
        for (uint32_t from = 1; from <= senders; ++from)
        {
            m_fabric->Send(m_fabric->AddQueuePair({2 * from, 1}, {0, 2 * from + 1}, false),
                           bytes,
                           PicoSeconds(0),
                           from);
        }
        m_queue = 0;
        m_samples = 0;
        Sample();
        Simulator::Run();
        int64_t last = 0;
        uint32_t delivered = 0;
        for (const Fabric::Completion& done : m_fabric->GetCompletions())
        {
            last = std::max(last, done.time);
            delivered += done.delivered ? 1 : 0;
        }
        NS_TEST_EXPECT_MSG_EQ(delivered, senders, "all arrive");
        uint64_t drops = 0;
        for (uint32_t port = 0; port < m_fabric->GetNPorts(); ++port)
        {
            drops += m_fabric->GetPortStatistics(port).drops;
        }
        NS_TEST_EXPECT_MSG_EQ(drops, 0, "lossless");
        const double wire = senders * std::ceil(static_cast<double>(bytes) / 4096) * PACKET_PS;
        Clear();
        return {static_cast<double>(last) / wire - 1, m_queue / std::max(m_samples, 1)};
    }

    /** Looks at the queue every 5 us; by 0.6 ms all senders are still at it. */
    void
    Sample()
    {
        const int64_t now = Simulator::Now().GetMicroSeconds();
        if (now >= 200)
        {
            m_queue += static_cast<double>(m_fabric->GetQueue(1));
            ++m_samples;
        }
        if (now < 600)
        {
            Simulator::Schedule(MicroSeconds(5), &CongestionTestCase::Sample, this);
        }
    }

    double m_convergence{0}; //!< ms
    double m_queue{0};       //!< bytes, sum of samples
    int m_samples{0};        //!< how many
    Bounds m_bounds;         //!< what is expected
    Ptr<Fabric> m_fabric;    //!< the model
};

/** What a receiver with one sender grants. */
class LoadTestCase : public TestCase
{
  public:
    LoadTestCase()
        : TestCase("A lone sender has Load of the rate from its first ACK on")
    {
    }

  private:
    void
    DoRun() override
    {
        // 1000 packets; those of the first round trip, 2 us and some, go at line rate.
        const double wire = 1000 * 83160 + 83160 + 1'000'000;
        NS_TEST_EXPECT_MSG_EQ(Delivered(1), wire, "Load 1");
        NS_TEST_EXPECT_MSG_EQ(Delivered(2), wire, "Load 2: no faster than the line");
        NS_TEST_EXPECT_MSG_EQ_TOL(Delivered(0.5) / wire, 1.96, 0.02, "Load 0.5");
        NS_TEST_EXPECT_MSG_EQ_TOL(Delivered(0.25) / wire, 3.88, 0.05, "Load 0.25");
    }

    /**
     * \param load of the control
     * \return ps
     */
    double
    Delivered(double load)
    {
        Star star(2);
        ObjectFactory factory("ns3::ReceiverCongestionControl");
        factory.Set("Load", DoubleValue(load));
        star.fabric->SetAttribute("CongestionControl",
                                  PointerValue(factory.Create<FabricCongestionControl>()));
        star.Build();
        star.fabric->Send(star.Connect(1, 0), 1000 * 4096, PicoSeconds(0), 1);
        return static_cast<double>(star.Run().at(1).delivered);
    }
};

/** The suite "lockstep-congestion". */
class CongestionTestSuite : public TestSuite
{
  public:
    CongestionTestSuite()
        : TestSuite("lockstep-congestion", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        for (const Bounds& bounds : BOUNDS)
        {
            AddTestCase(new CongestionTestCase(bounds), TestCase::QUICK);
        }
        AddTestCase(new LoadTestCase, TestCase::QUICK);
    }
};

static CongestionTestSuite g_congestionTestSuite;
