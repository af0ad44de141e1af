/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * NVLinks: credits. And ports whose bandwidth changes.
 */

#include "fabric-star.h"

#include "ns3/boolean.h"
#include "ns3/fabric.h"
#include "ns3/simulator.h"
#include "ns3/test.h"
#include "ns3/uinteger.h"

#include <algorithm>

using namespace ns3;

/** GPUs around an NVSwitch, 400 Gbps and 500 ns a link. */
class NvSwitchStar
{
  public:
    /**
     * \param gpus number of them
     * \param credits bytes
     */
    NvSwitchStar(uint32_t gpus, uint64_t credits)
        : fabric(CreateObject<Fabric>())
    {
        fabric->SetAttribute("NvLinkCredits", UintegerValue(credits));
        fabric->SetAttribute("Window", UintegerValue(64 << 20));
        for (uint32_t i = 0; i < gpus; ++i)
        {
            fabric->AddNode(Fabric::HOST);
        }
        fabric->AddNode(Fabric::NVSWITCH);
        for (uint32_t i = 0; i < gpus; ++i)
        {
            fabric->AddLink(i, gpus, DataRate("400Gbps"), NanoSeconds(500), 0);
        }
        fabric->Finish();
    }

    ~NvSwitchStar()
    {
        fabric->Dispose();
        Simulator::Destroy();
    }

    /**
     * Sends packets at time 0.
     * \param from GPU
     * \param to GPU
     * \param packets of 4096 B
     */
    void
    Send(uint32_t from, uint32_t to, int64_t packets)
    {
        const uint32_t pair =
            fabric->AddQueuePair({2 * from, 2 * to + 1}, {2 * to, 2 * from + 1}, false);
        fabric->Send(pair, 4096 * packets, PicoSeconds(0), from);
    }

    /**
     * \param delivered else: sent
     * \return when each message was that, ps, by sender
     */
    std::map<uint64_t, int64_t>
    Run(bool delivered = true)
    {
        Simulator::Run();
        std::map<uint64_t, int64_t> ends;
        for (const Fabric::Completion& done : fabric->GetCompletions())
        {
            if (done.delivered == delivered)
            {
                ends[done.tag] = done.time;
            }
        }
        return ends;
    }

    Ptr<Fabric> fabric; //!< the model
};

/** Room for one packet at a time. */
class OnePacketTestCase : public TestCase
{
  public:
    OnePacketTestCase()
        : TestCase("Credits for one packet: a round trip each, to the picosecond")
    {
    }

  private:
    void
    DoRun() override
    {
        // A packet is on the wire of the first link for 83160 ps and 500 ns, starts on the second
        // at once, and then its room is free: 500 ns later the sender knows and sends the next.
        // On the second link it is there 583160 ps after it started, so that link has its credits
        // back in time. n packets: n - 1 such turns and two hops.
        const int64_t packets = 10;
        const int64_t turn = 83160 + 500000 + 500000;
        for (const uint64_t credits : {4158U, 4159U, 8315U})
        {
            NvSwitchStar star(2, credits);
            star.Send(0, 1, packets);
            NS_TEST_EXPECT_MSG_EQ(star.Run().at(0),
                                  (packets - 1) * turn + 2 * (83160 + 500000),
                                  "with credits of " << credits);
            NS_TEST_EXPECT_MSG_EQ(star.fabric->GetPortStatistics(0).stalls, 10, "each stops it");
        }
        // Room for a bandwidth-delay product, 13.02 packets, does not hold it up.
        NvSwitchStar wide(2, 15 * 4158);
        wide.Send(0, 1, 1000);
        NS_TEST_EXPECT_MSG_EQ(wide.Run().at(0), 1001 * 83160 + 1000000, "as if there were none");
    }
};

/** Room for one packet at a time, and three senders. */
class ThreeSendersTestCase : public TestCase
{
  public:
    ThreeSendersTestCase()
        : TestCase("Credits for one packet, three senders to one GPU, to the picosecond")
    {
    }

  private:
    void
    DoRun() override
    {
        // The first packets are at the NVSwitch at 583160. That link begins with one of them a
        // turn of 1083160: at 583160, 1666320, 2749480. Then the room of each is free, 500000
        // later its sender knows, and its second packet has left 83160 after that, whoever else
        // still waits there.
        NvSwitchStar star(4, 4158);
        for (uint32_t from = 1; from < 4; ++from)
        {
            star.Send(from, 0, 2);
        }
        const std::map<uint64_t, int64_t> sent = star.Run(false);
        for (uint32_t from = 1; from < 4; ++from)
        {
            NS_TEST_EXPECT_MSG_EQ(sent.at(from),
                                  583160 + (from - 1) * 1083160 + 500000 + 83160,
                                  "GPU " << from);
        }
    }
};

/** Incast within a server. */
class CreditIncastTestCase : public TestCase
{
  public:
    CreditIncastTestCase()
        : TestCase("Incast over an NVSwitch: nothing is lost, nobody exceeds its credits, and a "
                   "victim waits behind it")
    {
    }

  private:
    void
    DoRun() override
    {
        // Seven GPUs send 400 packets each to GPU 0. Its link carries 2800 packets whatever the
        // credits are, but the queue before it holds no more than what seven links may have there.
        const uint64_t credits = 20 * 4158;
        NvSwitchStar star(8, credits);
        for (uint32_t from = 1; from < 8; ++from)
        {
            star.Send(from, 0, 400);
        }
        int64_t last = 0;
        for (const auto& [from, end] : star.Run())
        {
            last = std::max(last, end);
        }
        NS_TEST_EXPECT_MSG_EQ(last, 2801 * 83160 + 1000000, "the link is never idle");
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetLiveMessages(), 0, "nothing is left");
        uint64_t stalls = 0;
        for (uint32_t port = 0; port < star.fabric->GetNPorts(); ++port)
        {
            stalls += star.fabric->GetPortStatistics(port).stalls;
            NS_TEST_EXPECT_MSG_EQ(star.fabric->GetPortStatistics(port).drops, 0, "no loss");
            NS_TEST_EXPECT_MSG_EQ(star.fabric->GetPortStatistics(port).pauses, 0, "no PFC");
        }
        NS_TEST_EXPECT_MSG_GT(stalls, 0, "credits held somebody up");
        // GPU 1 also sends to GPU 2, whose link is idle. Both its messages take turns at its
        // NVLink, which its share of the incast holds up: it gets as much to GPU 2 as to GPU 0, one
        // seventh of a link. Without credits it is done after its own 800 packets.
        NS_TEST_EXPECT_MSG_GT(Victim(credits), 2 * Victim(64 << 20), "head of line");
    }

    /**
     * \param credits bytes
     * \return ps, when the message to GPU 2 is delivered
     */
    static int64_t
    Victim(uint64_t credits)
    {
        NvSwitchStar star(8, credits);
        for (uint32_t from = 2; from < 8; ++from)
        {
            star.Send(from, 0, 400);
        }
        star.Send(1, 0, 400);
        const uint32_t pair = star.fabric->AddQueuePair({2, 5}, {4, 3}, false);
        star.fabric->Send(pair, 4096 * 400, PicoSeconds(0), 100);
        return star.Run().at(100);
    }
};

/** A port becomes slower, then fast again. */
class PortRateTestCase : public TestCase
{
  public:
    PortRateTestCase()
        : TestCase("A port at half its bandwidth for a while, to the packet")
    {
    }

  private:
    void
    DoRun() override
    {
        for (const uint32_t port : {0U, 3U})
        {
            // 1000 packets. From 20 us to 40 us the port is at half its bandwidth, so 20 us of it
            // carry what 10 us do: 10 us later. The packet that is being sent at either moment ends
            // as it began: up to one packet's time.
            Star star(2);
            star.fabric->SetAttribute("Window", UintegerValue(64 << 20));
            star.Build();
            star.fabric->Send(star.Connect(0, 1), 4096 * 1000, PicoSeconds(0), 1);
            Simulator::Schedule(MicroSeconds(20),
                                &Fabric::SetPortRate,
                                star.fabric,
                                port,
                                DataRate("200Gbps"));
            Simulator::Schedule(MicroSeconds(40),
                                &Fabric::SetPortRate,
                                star.fabric,
                                port,
                                DataRate("400Gbps"));
            const int64_t alone = 1001 * 83160 + 1000000;
            NS_TEST_EXPECT_MSG_EQ_TOL(star.Run().at(1).delivered,
                                      alone + 10000000,
                                      2 * 83160,
                                      "port " << port);
        }
    }
};

/** The suite "lockstep-credit". */
class CreditTestSuite : public TestSuite
{
  public:
    CreditTestSuite()
        : TestSuite("lockstep-credit", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new OnePacketTestCase, TestCase::QUICK);
        AddTestCase(new ThreeSendersTestCase, TestCase::QUICK);
        AddTestCase(new CreditIncastTestCase, TestCase::QUICK);
        AddTestCase(new PortRateTestCase, TestCase::QUICK);
    }
};

static CreditTestSuite g_creditTestSuite;
