/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Queue pairs whose packets take several ways: everything arrives, whatever the order.
 */

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
    }
};

static SprayTestSuite g_sprayTestSuite;
