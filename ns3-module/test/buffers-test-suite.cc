/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Buffers of switches: no more than their bytes, a packet at least, and shares of fast ports.
 */

#include "fabric-star.h"

#include "ns3/boolean.h"
#include "ns3/simulator.h"
#include "ns3/test.h"
#include "ns3/uinteger.h"

#include <algorithm>

using namespace ns3;

/** Thresholds that let in more than there is. */
class BoundTestCase : public TestCase
{
  public:
    BoundTestCase()
        : TestCase("A buffer holds no more than its bytes, whatever thresholds say")
    {
    }

  private:
    void
    DoRun() override
    {
        // 15 times 64 packets of 4158 bytes come at once, and 240 of them fit.
        for (const bool pfc : {true, false})
        {
            const uint32_t senders = 15;
            const uint64_t buffer = 240 * 4158;
            Star star(senders + 1);
            star.fabric->SetAttribute("Buffer", UintegerValue(buffer));
            star.fabric->SetAttribute("Pfc", BooleanValue(pfc));
            star.fabric->SetAttribute("DynamicThreshold", BooleanValue(false));
            star.fabric->SetAttribute("PfcThreshold", UintegerValue(100'000'000));
            star.fabric->SetAttribute("Window", UintegerValue(100'000'000));
            star.Build();
            for (uint32_t i = 1; i <= senders; ++i)
            {
                star.fabric->Send(star.Connect(i, 0), 64 * 4096, PicoSeconds(0), i);
            }
            const std::size_t delivered = star.Run().size();
            const Fabric::PortStatistics statistics = star.fabric->GetPortStatistics(1);
            // Beside ACKs that wait elsewhere there is nothing else in it.
            NS_TEST_EXPECT_MSG_LT_OR_EQ(statistics.maxQueue, buffer, "longest queue");
            NS_TEST_EXPECT_MSG_GT(statistics.maxQueue, buffer - 4 * 4158, "it is used");
            NS_TEST_EXPECT_MSG_GT(statistics.drops, 0, "what does not fit");
            NS_TEST_EXPECT_MSG_EQ(delivered, senders, "all arrive in the end");
        }
    }
};

/** A threshold below a packet. */
class EmptyQueueTestCase : public TestCase
{
  public:
    EmptyQueueTestCase()
        : TestCase("Without PFC an empty queue takes a packet, whatever its threshold")
    {
    }

  private:
    void
    DoRun() override
    {
        // Headrooms take half of it, and an eighth of the rest is 2500 bytes.
        Star star(2);
        star.fabric->SetAttribute("Buffer", UintegerValue(40000));
        star.fabric->SetAttribute("Pfc", BooleanValue(false));
        star.Build();
        star.fabric->Send(star.Connect(1, 0), 2 * 4096, PicoSeconds(0), 1);
        const int64_t packet = 4158 * 20; // ps at 400 Gbps
        NS_TEST_EXPECT_MSG_EQ(star.Run().at(1).delivered, 3 * packet + 2 * 500'000, "delivery");
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetPortStatistics(1).drops, 0, "nothing is lost");
    }
};

/** SimAI's shift. */
class AlphaByRateTestCase : public TestCase
{
  public:
    AlphaByRateTestCase()
        : TestCase("PfcAlpha doubles with each halving of a fast port's rate to the first host's")
    {
    }

  private:
    void
    DoRun() override
    {
        // One port is paused with T = share * (shared - T), so T = share * shared / (1 + share).
        Check(100, false, 1.0 / 8);
        Check(100, true, 1.0 / 8);
        Check(150, true, 1.0 / 4);
        Check(200, true, 1.0 / 4);
        Check(400, true, 1.0 / 2);
        Check(401, true, 1.0);
        Check(3200, true, 1.0); // no more than all
    }

    /**
     * \param gbps of host 1, which sends to host 2 with 50 Gbps; host 0 has 100 Gbps
     * \param byRate the attribute
     * \param share of the free buffer that is expected
     */
    void
    Check(uint64_t gbps, bool byRate, double share)
    {
        const Ptr<Fabric> fabric = CreateObject<Fabric>();
        const double buffer = 8 << 20;
        fabric->SetAttribute("Buffer", UintegerValue(static_cast<uint64_t>(buffer)));
        fabric->SetAttribute("PfcAlphaByRate", BooleanValue(byRate));
        fabric->SetAttribute("Window", UintegerValue(64 << 20));
        fabric->AddNode(Fabric::HOST);
        fabric->AddNode(Fabric::HOST);
        fabric->AddNode(Fabric::HOST);
        fabric->AddNode(Fabric::SWITCH);
        const Time delay = NanoSeconds(10);
        fabric->AddLink(0, 3, DataRate("100Gbps"), delay, 0);
        fabric->AddLink(1, 3, DataRate(gbps * 1'000'000'000), delay, 0);
        fabric->AddLink(2, 3, DataRate("50Gbps"), delay, 0);
        fabric->Finish();
        fabric->Send(fabric->AddQueuePair({2, 5}, {4, 3}, false), 24 << 20, PicoSeconds(0), 1);
        Simulator::Run();
        double shared = buffer;
        const auto fast = static_cast<double>(gbps);
        for (const double rate : {100.0, fast, 50.0})
        {
            shared -= 3 * 10 * rate / 8 + 4 * 4158 + 4096;
        }
        const double threshold = share * shared / (1 + share);
        const auto longest = static_cast<double>(fabric->GetPortStatistics(5).maxQueue);
        // The reserve comes to it, and what is under way when the pause is sent.
        NS_TEST_EXPECT_MSG_GT(longest, threshold, gbps << " Gbps");
        NS_TEST_EXPECT_MSG_LT(longest, threshold + 4096 + 4 * 4158 + 30 * fast / 8, gbps);
        NS_TEST_EXPECT_MSG_GT(fabric->GetPortStatistics(2).pauses, 0, "it is paused");
        fabric->Dispose();
        Simulator::Destroy();
    }
};

/** The suite "lockstep-buffers". */
class BuffersTestSuite : public TestSuite
{
  public:
    BuffersTestSuite()
        : TestSuite("lockstep-buffers", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new BoundTestCase, TestCase::QUICK);
        AddTestCase(new EmptyQueueTestCase, TestCase::QUICK);
        AddTestCase(new AlphaByRateTestCase, TestCase::QUICK);
    }
};

static BuffersTestSuite g_buffersTestSuite;
