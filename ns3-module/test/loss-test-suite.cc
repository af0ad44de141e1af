/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Packets that are lost, links that fail, and what is done about it.
 */

#include "fabric-star.h"

#include "ns3/enum.h"
#include "ns3/simulator.h"
#include "ns3/test.h"
#include "ns3/uinteger.h"

using namespace ns3;

/** One packet of ten is lost. */
class RecoveryTestCase : public TestCase
{
  public:
    RecoveryTestCase()
        : TestCase("One lost packet: go-back-N and selective repeat, to the picosecond")
    {
    }

  private:
    void
    DoRun() override
    {
        // A link of 400 Gbps and 500 ns; packets of 83160 ps, ACKs of 1200 ps. Packet 2 of 0..9
        // comes at 3 * 83160 + 500000 = 749480 and is lost. Packet 3 comes 83160 later, at 832640,
        // and shows the gap; the NACK is back at 832640 + 1200 + 500000 = 1333840, when all ten
        // have left. Selective repeat sends packet 2: there at 1333840 + 83160 + 500000. Go-back-N
        // sends packets 2 to 9: the last is there at 1333840 + 8 * 83160 + 500000.
        Check(FABRIC_SELECTIVE_REPEAT, 0, 1917000, 11);
        Check(FABRIC_GO_BACK_N, 0, 2499120, 18);
        // Go-back-to-zero gives up packets 0 and 1 as well, where they are of the same chunk (of
        // four packets, or the whole message), and sends all ten: the last is there at 1333840 + 10
        // * 83160 + 500000. With chunks of two packets it is as go-back-N.
        Check(FABRIC_GO_BACK_TO_ZERO, 4 * 4096, 2665440, 20);
        Check(FABRIC_GO_BACK_TO_ZERO, 0, 2665440, 20);
        Check(FABRIC_GO_BACK_TO_ZERO, 2 * 4096, 2499120, 18);
    }

    /**
     * \param recovery what is sent again
     * \param chunk bytes that are given up together
     * \param delivered ps
     * \param packets that the sender sends in all
     */
    void
    Check(FabricRecovery recovery, uint64_t chunk, int64_t delivered, uint64_t packets)
    {
        Star star(2, 0);
        star.fabric->SetAttribute("AckInterval", UintegerValue(1));
        star.fabric->SetAttribute("Recovery", EnumValue(recovery));
        star.fabric->SetAttribute("RecoveryChunk", UintegerValue(chunk));
        star.Build();
        star.fabric->Send(star.Connect(0, 1), 10 * 4096, PicoSeconds(0), 1);
        Simulator::Schedule(PicoSeconds(749000), &Fabric::SetLinkLoss, star.fabric, 0, 1.0);
        Simulator::Schedule(PicoSeconds(750000), &Fabric::SetLinkLoss, star.fabric, 0, 0.0);
        NS_TEST_EXPECT_MSG_EQ(star.Run().at(1).delivered, delivered, "delivery");
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetPacketCount(), packets, "packets sent");
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetPortStatistics(0).drops, 1, "lost");
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetLiveMessages(), 0, "nothing is left");
    }
};

/** Two packets of ten are lost. */
class TwoGapsTestCase : public TestCase
{
  public:
    TwoGapsTestCase()
        : TestCase("Two lost packets of one window: no timeout, to the picosecond")
    {
    }

  private:
    void
    DoRun() override
    {
        // As above, and packet 5 is lost at 6 * 83160 + 500000 = 998960. Go-back-N sends it with
        // what comes after packet 2. Selective repeat has packet 2 there at 1917000, after which
        // nothing is under way: that is when the receiver asks for packet 5. The sender hears of it
        // 501200 later, and packet 5 is there another 83160 + 500000 later.
        Check(FABRIC_SELECTIVE_REPEAT, 1917000 + 501200 + 583160, 12);
        Check(FABRIC_GO_BACK_N, 2499120, 18);
    }

    /**
     * \param recovery what is sent again
     * \param delivered ps
     * \param packets that the sender sends in all
     */
    void
    Check(FabricRecovery recovery, int64_t delivered, uint64_t packets)
    {
        Star star(2, 0);
        star.fabric->SetAttribute("AckInterval", UintegerValue(1));
        star.fabric->SetAttribute("Recovery", EnumValue(recovery));
        star.Build();
        star.fabric->Send(star.Connect(0, 1), 10 * 4096, PicoSeconds(0), 1);
        for (const uint64_t lost : {749480U, 998960U})
        {
            Simulator::Schedule(PicoSeconds(lost - 100), &Fabric::SetLinkLoss, star.fabric, 0, 1.0);
            Simulator::Schedule(PicoSeconds(lost + 100), &Fabric::SetLinkLoss, star.fabric, 0, 0.0);
        }
        NS_TEST_EXPECT_MSG_EQ(star.Run().at(1).delivered, delivered, "delivery");
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetPacketCount(), packets, "packets sent");
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetPortStatistics(0).drops, 2, "lost");
    }
};

/** The last packet is lost: nothing shows the gap. */
class TimeoutTestCase : public TestCase
{
  public:
    TimeoutTestCase()
        : TestCase("The last packet is lost: a timeout, to the picosecond")
    {
    }

  private:
    void
    DoRun() override
    {
        // Packet 3 of 0..3 comes at 4 * 83160 + 500000 = 832640 and is lost. The last progress is
        // the ACK of packet 2, at 3 * 83160 + 500000 + 501200 = 1250680; 20 us later packet 3
        // leaves again.
        for (const FabricRecovery recovery :
             {FABRIC_SELECTIVE_REPEAT, FABRIC_GO_BACK_N, FABRIC_GO_BACK_TO_ZERO})
        {
            Star star(2, 0);
            star.fabric->SetAttribute("AckInterval", UintegerValue(1));
            star.fabric->SetAttribute("RetransmitTimeout", TimeValue(MicroSeconds(20)));
            star.fabric->SetAttribute("Recovery", EnumValue(recovery));
            star.Build();
            Simulator::Schedule(PicoSeconds(0), &Fabric::SetLinkLoss, star.fabric, 0, 0.0);
            star.fabric->Send(star.Connect(0, 1), 4 * 4096, PicoSeconds(0), 1);
            Simulator::Schedule(PicoSeconds(832000), &Fabric::SetLinkLoss, star.fabric, 0, 1.0);
            Simulator::Schedule(PicoSeconds(833000), &Fabric::SetLinkLoss, star.fabric, 0, 0.0);
            NS_TEST_EXPECT_MSG_EQ(star.Run().at(1).delivered,
                                  1250680 + 20000000 + 83160 + 500000,
                                  "delivery");
            NS_TEST_EXPECT_MSG_EQ(star.fabric->GetPacketCount(), 5, "packets sent");
        }
    }
};

/** Headroom that is too small for what comes after a pause. */
class OverflowTestCase : public TestCase
{
  public:
    OverflowTestCase()
        : TestCase("What a switch with PFC has no room for is sent again")
    {
    }

  private:
    void
    DoRun() override
    {
        // 65 ports share 1 MiB: 8 kB each for what is under way, which is up to 75 kB.
        for (const FabricRecovery recovery :
             {FABRIC_SELECTIVE_REPEAT, FABRIC_GO_BACK_N, FABRIC_GO_BACK_TO_ZERO})
        {
            const uint32_t senders = 64;
            Star star(senders + 1);
            star.fabric->SetAttribute("Buffer", UintegerValue(1 << 20));
            star.fabric->SetAttribute("Recovery", EnumValue(recovery));
            star.Build();
            for (uint32_t i = 1; i <= senders; ++i)
            {
                star.fabric->Send(star.Connect(i, 0), 32 * 4096, PicoSeconds(0), i);
            }
            const std::map<uint64_t, Outcome> outcomes = star.Run();
            uint64_t drops = 0;
            for (uint32_t port = 0; port < star.fabric->GetNPorts(); ++port)
            {
                drops += star.fabric->GetPortStatistics(port).drops;
            }
            NS_TEST_EXPECT_MSG_GT(drops, 0, "no room");
            NS_TEST_EXPECT_MSG_EQ(star.fabric->GetLiveMessages(), 0, "all arrives");
            NS_TEST_EXPECT_MSG_EQ(outcomes.size(), senders, "messages");
        }
    }
};

/** A link fails in mid-run. */
class FailureTestCase : public TestCase
{
  public:
    FailureTestCase()
        : TestCase("A link fails, and 50 us later the queue pair takes another way")
    {
    }

  private:
    void
    DoRun() override
    {
        // Host 0 - switch 2 - switch 3 or 4 - switch 5 - host 1. The link 2-3 fails at 100 us.
        const Ptr<Fabric> fabric = CreateObject<Fabric>();
        fabric->SetAttribute("RetransmitTimeout", TimeValue(MicroSeconds(10)));
        fabric->AddNode(Fabric::HOST);
        fabric->AddNode(Fabric::HOST);
        for (uint32_t i = 0; i < 4; ++i)
        {
            fabric->AddNode(Fabric::SWITCH);
        }
        const DataRate rate("400Gbps");
        for (const auto& [a, b] : {std::pair(0, 2),
                                   std::pair(2, 3),
                                   std::pair(2, 4),
                                   std::pair(3, 5),
                                   std::pair(4, 5),
                                   std::pair(5, 1)})
        {
            fabric->AddLink(static_cast<uint32_t>(a),
                            static_cast<uint32_t>(b),
                            rate,
                            NanoSeconds(500),
                            0);
        }
        fabric->Finish();
        const uint32_t pair = fabric->AddQueuePair({0, 2, 6, 10}, {11, 7, 3, 1}, false);
        fabric->Send(pair, 3000 * 4096, PicoSeconds(0), 1);
        Simulator::Schedule(MicroSeconds(100), &Fabric::SetLinkLoss, fabric, 1, 1.0);
        Simulator::Schedule(MicroSeconds(150),
                            &Fabric::Reroute,
                            fabric,
                            pair,
                            std::vector<uint32_t>{0, 4, 8, 10},
                            std::vector<uint32_t>{11, 9, 5, 1});
        Simulator::Run();
        NS_TEST_ASSERT_MSG_EQ(fabric->GetLiveMessages(), 0, "all arrives");
        const int64_t end = fabric->GetCompletions().back().time;
        // Without the failure: 3000 packets, three more hops, four delays. The wire is of no use
        // from what was lost at 100 us on to the first timeout after 150 us; after at most two
        // timeouts.
        const int64_t alone = 3003 * int64_t{83160} + 4 * 500000;
        NS_TEST_EXPECT_MSG_GT(end, alone + 50000000, "the outage");
        NS_TEST_EXPECT_MSG_LT(end, alone + 50000000 + 2 * 10000000 + 6000000, "and no more");
        NS_TEST_EXPECT_MSG_GT(fabric->GetPortStatistics(2).drops, 0, "lost on the failed link");
        NS_TEST_EXPECT_MSG_GT(fabric->GetPortStatistics(8).bytes, 1000000, "on the other way");
        fabric->Dispose();
        Simulator::Destroy();
    }
};

/** The suite "lockstep-loss". */
class LossTestSuite : public TestSuite
{
  public:
    LossTestSuite()
        : TestSuite("lockstep-loss", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new RecoveryTestCase, TestCase::QUICK);
        AddTestCase(new TwoGapsTestCase, TestCase::QUICK);
        AddTestCase(new TimeoutTestCase, TestCase::QUICK);
        AddTestCase(new OverflowTestCase, TestCase::QUICK);
        AddTestCase(new FailureTestCase, TestCase::QUICK);
    }
};

static LossTestSuite g_lossTestSuite;
