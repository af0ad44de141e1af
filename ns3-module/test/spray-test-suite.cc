/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Queue pairs whose packets take several ways: everything arrives, whatever the order.
 */

#include "ns3/enum.h"
#include "ns3/fabric.h"
#include "ns3/simulator.h"
#include "ns3/test.h"
#include "ns3/uinteger.h"

using namespace ns3;

/** A window that is full of packets which came out of order. */
class FullWindowTestCase : public TestCase
{
  public:
    FullWindowTestCase()
        : TestCase("A window full of early packets is confirmed when the gap closes")
    {
    }

  private:
    void
    DoRun() override
    {
        // Host 0 - switch 2 - (switch 3 or, 10 us away, switch 4) - switch 5 - host 1. The first
        // packet goes the far way and arrives last. Receivers confirm every 16 packets, so what
        // closes the gap is the only packet of the window that can be confirmed.
        for (const uint32_t window : {2U, 5U, 16U, 31U})
        {
            Ptr<Fabric> fabric = CreateObject<Fabric>();
            fabric->SetAttribute("AckInterval", UintegerValue(16));
            fabric->SetAttribute("Window", UintegerValue(4096 * window));
            fabric->AddNode(Fabric::HOST);
            fabric->AddNode(Fabric::HOST);
            for (uint32_t i = 0; i < 4; ++i)
            {
                fabric->AddNode(Fabric::SWITCH);
            }
            const DataRate rate("400Gbps");
            fabric->AddLink(0, 2, rate, NanoSeconds(500), 0); // ports 0, 1
            fabric->AddLink(2, 3, rate, NanoSeconds(500), 0); // ports 2, 3
            fabric->AddLink(2, 4, rate, MicroSeconds(10), 0); // ports 4, 5
            fabric->AddLink(3, 5, rate, NanoSeconds(500), 0); // ports 6, 7
            fabric->AddLink(4, 5, rate, NanoSeconds(500), 0); // ports 8, 9
            fabric->AddLink(5, 1, rate, NanoSeconds(500), 0); // ports 10, 11
            fabric->Finish();
            const uint32_t pair = fabric->AddQueuePair({0, 4, 8, 10}, {11, 7, 3, 1}, false);
            fabric->AddWay(pair, {0, 2, 6, 10});
            fabric->Send(pair, 4096 * 1000, PicoSeconds(0), 1);
            Simulator::Run();
            NS_TEST_EXPECT_MSG_EQ(fabric->GetLiveMessages(), 0, "window " << window);
            NS_TEST_EXPECT_MSG_EQ(fabric->GetCompletions().size(), 2, "window " << window);
            fabric->Dispose();
            Simulator::Destroy();
        }
    }
};

/** Two ways, one of them shared with another flow. */
class WayChoiceTestCase : public TestCase
{
  public:
    WayChoiceTestCase()
        : TestCase("Adaptive routing keeps off a busy way; flowlets change ways in gaps only")
    {
    }

  private:
    /** What a run leaves behind. */
    struct Result
    {
        int64_t end;     //!< ps, delivery of the last message
        uint64_t shared; //!< bytes on the way that is shared
        uint64_t other;  //!< bytes on the other way
    };

    /**
     * Hosts 0 and 1 - switch 3 - switches 4 and 5 - switch 6 - host 2 (800 Gbps). Host 1 sends over
     * switch 4 without end; host 0 sends over both.
     * \param choice of ways
     * \param busy whether host 1 sends
     * \param gap between two messages
     */
    static Result
    Run(FabricWayChoice choice, bool busy, Time gap)
    {
        Ptr<Fabric> fabric = CreateObject<Fabric>();
        fabric->SetAttribute("WayChoice", EnumValue(choice));
        for (uint32_t i = 0; i < 7; ++i)
        {
            fabric->AddNode(i < 3 ? Fabric::HOST : Fabric::SWITCH);
        }
        const DataRate rate("400Gbps");
        fabric->AddLink(0, 3, rate, NanoSeconds(500), 0);                // ports 0, 1
        fabric->AddLink(1, 3, rate, NanoSeconds(500), 0);                // ports 2, 3
        fabric->AddLink(3, 4, rate, NanoSeconds(500), 0);                // ports 4, 5
        fabric->AddLink(3, 5, rate, NanoSeconds(500), 0);                // ports 6, 7
        fabric->AddLink(4, 6, rate, NanoSeconds(500), 0);                // ports 8, 9
        fabric->AddLink(5, 6, rate, NanoSeconds(500), 0);                // ports 10, 11
        fabric->AddLink(6, 2, DataRate("800Gbps"), NanoSeconds(500), 0); // ports 12, 13
        fabric->Finish();
        const uint32_t pair = fabric->AddQueuePair({0, 4, 8, 12}, {13, 9, 5, 1}, false);
        fabric->AddWay(pair, {0, 6, 10, 12});
        const uint32_t rival = fabric->AddQueuePair({2, 4, 8, 12}, {13, 9, 5, 3}, false);
        if (busy)
        {
            fabric->Send(rival, 4096 * 4000, PicoSeconds(0), 9);
        }
        fabric->Send(pair, 4096 * 500, MicroSeconds(20), 1);
        fabric->Send(pair, 4096 * 500, MicroSeconds(20) + gap, 2);
        Simulator::Run();
        Result result{0, fabric->GetPortStatistics(4).bytes, fabric->GetPortStatistics(6).bytes};
        for (const Fabric::Completion& done : fabric->GetCompletions())
        {
            result.end = done.tag == 2 && done.delivered ? done.time : result.end;
        }
        fabric->Dispose();
        Simulator::Destroy();
        return result;
    }

    void
    DoRun() override
    {
        // 1000 packets at host 0's full rate, three more hops (the last at 800 Gbps), four delays.
        const int64_t alone = 20000000 + 1002 * int64_t{83160} + 41580 + 2000000;
        const Result spray = Run(FABRIC_SPRAY, true, PicoSeconds(0));
        const Result adaptive = Run(FABRIC_ADAPTIVE, true, PicoSeconds(0));
        NS_TEST_EXPECT_MSG_EQ(Run(FABRIC_SPRAY, false, PicoSeconds(0)).end, alone, "alone");
        NS_TEST_EXPECT_MSG_GT(spray.end - 20000000,
                              5 * (alone - 20000000) / 4,
                              "every other waits");
        NS_TEST_EXPECT_MSG_LT(adaptive.end - 20000000, 21 * (alone - 20000000) / 20, "hardly any");
        NS_TEST_EXPECT_MSG_LT(spray.other, adaptive.other, "adaptive keeps to the free way");
        // Two messages without a gap are one flowlet, with 50 us between them two.
        const Result one = Run(FABRIC_FLOWLET, false, PicoSeconds(0));
        NS_TEST_EXPECT_MSG_EQ(one.other, 0, "no gap, no change");
        NS_TEST_EXPECT_MSG_EQ(one.shared, 1000 * 4158, "all on one way");
        const Result two = Run(FABRIC_FLOWLET, false, MicroSeconds(100));
        NS_TEST_EXPECT_MSG_EQ(two.other, 500 * 4158, "the second message on the other");
        NS_TEST_EXPECT_MSG_EQ(two.shared, 500 * 4158, "the first on the first");
    }
};

/** The suite "lockstep-spray". */
class SprayTestSuite : public TestSuite
{
  public:
    SprayTestSuite()
        : TestSuite("lockstep-spray", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new FullWindowTestCase, TestCase::QUICK);
        AddTestCase(new WayChoiceTestCase, TestCase::QUICK);
    }
};

static SprayTestSuite g_sprayTestSuite;
