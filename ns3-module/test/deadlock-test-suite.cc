/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Pauses that do not end: PFC deadlocks and storms.
 */

#include "ns3/double.h"
#include "ns3/fabric.h"
#include "ns3/simulator.h"
#include "ns3/test.h"
#include "ns3/uinteger.h"

#include <algorithm>

using namespace ns3;

/** Three switches in a ring, each with two hosts that send to the second switch on. */
class RingDeadlockTestCase : public TestCase
{
  public:
    RingDeadlockTestCase()
        : TestCase("Flows around a ring of switches stand still, and the circle is named")
    {
    }

  private:
    void
    DoRun() override
    {
        // Hosts 2 s and 2 s + 1 hang on switch 6 + s by links 2 s and 2 s + 1; link 6 + s goes from
        // switch 6 + s to the next. All that switch s sends crosses the links 6 + s and 7 + s,
        // which carry what the switch before sends too: twice what they can, so the buffers fill,
        // and each waits for the next (Dally and Seitz: Deadlock-free message routing, 1987).
        NS_TEST_EXPECT_MSG_EQ(Run(3, true), 3, "all three senders: a circle of three ports");
        NS_TEST_EXPECT_MSG_EQ(Run(2, true), 0, "two senders: no circle");
        NS_TEST_EXPECT_MSG_EQ(Run(3, false), 0, "room enough for all");
    }

    /**
     * \param senders switches whose hosts send
     * \param small whether buffers are small
     * \return ports of the deadlock
     */
    std::size_t
    Run(uint32_t senders, bool small)
    {
        const Ptr<Fabric> fabric = CreateObject<Fabric>();
        fabric->SetAttribute("Buffer", UintegerValue(small ? 1 << 20 : 1 << 30));
        fabric->SetAttribute("Window", UintegerValue(16 << 20));
        fabric->SetAttribute("StormTime", TimeValue(MicroSeconds(20)));
        for (uint32_t i = 0; i < 9; ++i)
        {
            fabric->AddNode(i < 6 ? Fabric::HOST : Fabric::SWITCH);
        }
        for (uint32_t i = 0; i < 6; ++i)
        {
            fabric->AddLink(i, 6 + i / 2, DataRate("400Gbps"), NanoSeconds(500), 0);
        }
        for (uint32_t s = 0; s < 3; ++s)
        {
            fabric->AddLink(6 + s, 6 + (s + 1) % 3, DataRate("400Gbps"), NanoSeconds(500), 0);
        }
        fabric->Finish();
        for (uint32_t s = 0; s < senders; ++s)
        {
            for (uint32_t h = 0; h < 2; ++h)
            {
                const uint32_t from = 2 * s + h;
                const uint32_t to = 2 * ((s + 2) % 3) + h;
                const uint32_t first = 2 * (6 + s);
                const uint32_t second = 2 * (6 + (s + 1) % 3);
                const uint32_t pair =
                    fabric->AddQueuePair({2 * from, first, second, 2 * to + 1},
                                         {2 * to, second + 1, first + 1, 2 * from + 1},
                                         false);
                fabric->Send(pair, 8 << 20, PicoSeconds(0), from);
            }
        }
        Simulator::Run();
        const std::vector<uint32_t> circle = fabric->FindDeadlock();
        NS_TEST_EXPECT_MSG_EQ((fabric->GetLiveMessages() > 0),
                              !circle.empty(),
                              "stands still or is done");
        for (const uint32_t port : circle)
        {
            NS_TEST_EXPECT_MSG_EQ((port >= 12 && port % 2 == 0), true, "a port of the ring");
        }
        uint64_t storms = 0;
        for (uint32_t port = 0; port < fabric->GetNPorts(); ++port)
        {
            storms += fabric->GetPortStatistics(port).storms;
        }
        if (!small)
        {
            NS_TEST_EXPECT_MSG_EQ(storms, 0, "nobody is paused");
        }
        fabric->Dispose();
        Simulator::Destroy();
        return circle.size();
    }
};

/** A receiver that is too slow holds its senders up for long, by two switches. */
class StormTestCase : public TestCase
{
  public:
    StormTestCase()
        : TestCase("Long pauses are storms, are traced, and spread to those behind")
    {
    }

  private:
    void
    DoRun() override
    {
        // Host 0 and host 1 on switch 3, host 2 on switch 4 by a link of 10 Gbps. The buffers are
        // 1 MiB; a port that was paused goes on 256 KiB below the threshold, which at 10 Gbps takes
        // 210 us of the slow link's time at the least.
        Run(MicroSeconds(200), true);
        Run(MilliSeconds(100), false);
    }

    /**
     * \param storm StormTime
     * \param expected whether there are storms
     */
    void
    Run(Time storm, bool expected)
    {
        const Ptr<Fabric> fabric = CreateObject<Fabric>();
        fabric->SetAttribute("Buffer", UintegerValue(1 << 20));
        fabric->SetAttribute("PfcAlpha", DoubleValue(1));
        fabric->SetAttribute("ResumeOffset", UintegerValue(256 << 10));
        fabric->SetAttribute("Window", UintegerValue(16 << 20));
        fabric->SetAttribute("StormTime", TimeValue(storm));
        fabric->TraceConnectWithoutContext("Storm", MakeCallback(&StormTestCase::Note, this));
        m_traced = 0;
        for (uint32_t i = 0; i < 5; ++i)
        {
            fabric->AddNode(i < 3 ? Fabric::HOST : Fabric::SWITCH);
        }
        fabric->AddLink(0, 3, DataRate("400Gbps"), NanoSeconds(500), 0);
        fabric->AddLink(1, 3, DataRate("400Gbps"), NanoSeconds(500), 0);
        fabric->AddLink(2, 4, DataRate("10Gbps"), NanoSeconds(500), 0);
        fabric->AddLink(3, 4, DataRate("400Gbps"), NanoSeconds(500), 0);
        fabric->Finish();
        for (const uint32_t from : {0U, 1U})
        {
            const uint32_t pair =
                fabric->AddQueuePair({2 * from, 6, 5}, {4, 7, 2 * from + 1}, false);
            fabric->Send(pair, 4 << 20, PicoSeconds(0), from);
        }
        Simulator::Run();
        NS_TEST_EXPECT_MSG_EQ(fabric->GetLiveMessages(), 0, "it ends");
        uint64_t storms = 0;
        for (uint32_t port = 0; port < fabric->GetNPorts(); ++port)
        {
            storms += fabric->GetPortStatistics(port).storms;
            NS_TEST_EXPECT_MSG_EQ(fabric->GetPortStatistics(port).drops, 0, "nothing is lost");
        }
        NS_TEST_EXPECT_MSG_EQ(storms, m_traced, "each is traced");
        NS_TEST_EXPECT_MSG_EQ((storms > 0), expected, "storms");
        NS_TEST_EXPECT_MSG_GT(fabric->GetPortStatistics(6).pauses, 0, "switch 4 stops switch 3");
        for (const uint32_t port : {0U, 2U})
        {
            NS_TEST_EXPECT_MSG_GT(fabric->GetPortStatistics(port).pauses, 0, "which stops hosts");
            NS_TEST_EXPECT_MSG_EQ((fabric->GetPortStatistics(port).storms > 0),
                                  expected,
                                  "and they feel the storm");
        }
        fabric->Dispose();
        Simulator::Destroy();
    }

    /**
     * \param now ps
     * \param port that goes on
     * \param duration ps
     */
    void
    Note(int64_t now, uint32_t port, int64_t duration)
    {
        ++m_traced;
        NS_TEST_EXPECT_MSG_GT_OR_EQ(duration, MicroSeconds(200).GetPicoSeconds(), "StormTime");
        NS_TEST_EXPECT_MSG_GT_OR_EQ(now, duration, "it began after the start");
        NS_TEST_EXPECT_MSG_LT(port, 8, "a port");
    }

    uint64_t m_traced{0}; //!< storms
};

/** The suite "lockstep-deadlock". */
class DeadlockTestSuite : public TestSuite
{
  public:
    DeadlockTestSuite()
        : TestSuite("lockstep-deadlock", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new RingDeadlockTestCase, TestCase::QUICK);
        AddTestCase(new StormTestCase, TestCase::QUICK);
    }
};

static DeadlockTestSuite g_deadlockTestSuite;
