/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Fabric by hand-computed cases: timing to the picosecond, fairness, PFC, losses, and the same
 * result under every SimulatorImpl.
 */

#include "fabric-star.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/enum.h"
#include "ns3/fabric-event-queue.h"
#include "ns3/fabric.h"
#include "ns3/global-value.h"
#include "ns3/pointer.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/test.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

using namespace ns3;

/** One packet over 1, 2, 3 hops. */
class HopsTestCase : public TestCase
{
  public:
    HopsTestCase()
        : TestCase("One packet over 1, 2 and 3 hops, to the picosecond")
    {
    }

  private:
    void
    DoRun() override
    {
        // 4096 + 62 B are 33264 bits; 400 Gbps are 0.4 bits a ps: 83160 ps. A hop of store and
        // forward takes that and 500 ns.
        for (uint32_t hops = 1; hops <= 3; ++hops)
        {
            Check(hops, false, 4096, hops * (83160 + 500000));
        }
        // Cut-through: 64 B are 1280 ps. The head waits for that at each switch, the tail follows.
        for (uint32_t hops = 1; hops <= 3; ++hops)
        {
            Check(hops, true, 4096, hops * 500000 + 83160 + (hops - 1) * 1280);
        }
        // Two packets, 4096 and 904 B of data (966 B on the wire: 19320 ps). The second is shorter,
        // so it waits behind the first at no hop but the first.
        for (uint32_t hops = 1; hops <= 3; ++hops)
        {
            Check(hops, false, 5000, hops * (83160 + 500000) + 19320);
        }
    }

    /**
     * \param hops links on the way
     * \param cutThrough switching
     * \param bytes of the message
     * \param expected delivery, ps after it was sent
     */
    void
    Check(uint32_t hops, bool cutThrough, int64_t bytes, int64_t expected)
    {
        Star star(2, hops - 1);
        star.fabric->SetAttribute("CutThrough", BooleanValue(cutThrough));
        star.Build();
        star.fabric->Send(star.Connect(0, 1), bytes, PicoSeconds(1000), 7);
        const std::map<uint64_t, Outcome> outcomes = star.Run();
        NS_TEST_ASSERT_MSG_EQ(outcomes.size(), 1, "messages");
        NS_TEST_EXPECT_MSG_EQ(outcomes.at(7).delivered,
                              1000 + expected,
                              hops << " hops, " << bytes << " B");
        NS_TEST_EXPECT_MSG_EQ(outcomes.at(7).sent,
                              1000 + (bytes == 4096 ? 83160 : 83160 + 19320),
                              hops << " hops, last bit sent");
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetLiveMessages(), 0, "nothing is left");
    }
};

/** A window of w packets. */
class WindowTestCase : public TestCase
{
  public:
    WindowTestCase()
        : TestCase("A window limits a queue pair as the formula says")
    {
    }

  private:
    void
    DoRun() override
    {
        // One link of 400 Gbps and 500 ns; ACKs of 60 B (1200 ps), one a packet; packets of 4158 B.
        // Round trip: 83160 + 500000 + 1200 + 500000 = 1084360 ps. With w packets under way and
        // w * 83160 below that, n packets take floor((n-1)/w) RTT + ((n-1) mod w) 83160 + 83160 +
        // 500000.
        const int64_t w = 4;
        const int64_t n = 11;
        Star star(2, 0);
        star.fabric->SetAttribute("AckInterval", UintegerValue(1));
        star.fabric->SetAttribute("Window", UintegerValue(4096 * w));
        star.Build();
        star.fabric->Send(star.Connect(0, 1), 4096 * n, PicoSeconds(0), 1);
        const int64_t expected = (n - 1) / w * 1084360 + (n - 1) % w * 83160 + 83160 + 500000;
        NS_TEST_EXPECT_MSG_EQ(star.Run().at(1).delivered, expected, "delivery");
    }
};

/** Incast, lossless and lossy. */
class IncastTestCase : public TestCase
{
  public:
    IncastTestCase()
        : TestCase("64 to 1: nothing is dropped with PFC, all arrives without it")
    {
    }

  private:
    void
    DoRun() override
    {
        const uint32_t senders = 64;
        const int64_t bytes = 256 * 4096;
        for (const bool pfc : {true, false})
        {
            Star star(senders + 1);
            // Port reserves and headrooms take some 80 kB each.
            star.fabric->SetAttribute("Buffer", UintegerValue(16 << 20));
            star.fabric->SetAttribute("Window", UintegerValue(8 << 20));
            star.fabric->SetAttribute("Pfc", BooleanValue(pfc));
            star.Build();
            for (uint32_t i = 1; i <= senders; ++i)
            {
                star.fabric->Send(star.Connect(i, 0), bytes, PicoSeconds(0), i);
            }
            const std::map<uint64_t, Outcome> outcomes = star.Run();
            uint64_t drops = 0;
            uint64_t pauses = 0;
            for (uint32_t port = 0; port < star.fabric->GetNPorts(); ++port)
            {
                drops += star.fabric->GetPortStatistics(port).drops;
                pauses += star.fabric->GetPortStatistics(port).pauses;
            }
            int64_t last = 0;
            for (const auto& [tag, outcome] : outcomes)
            {
                NS_TEST_EXPECT_MSG_NE(outcome.delivered, -1, "message " << tag);
                last = std::max(last, outcome.delivered);
            }
            NS_TEST_EXPECT_MSG_EQ(outcomes.size(), senders, "messages");
            NS_TEST_EXPECT_MSG_EQ(star.fabric->GetLiveMessages(), 0, "nothing is left");
            // The wire to host 0 is never idle: 64 * 256 packets of 83160 ps, one hop before and
            // the delay after.
            const int64_t wire = int64_t{senders} * 256 * 83160;
            const auto carried = static_cast<int64_t>(star.fabric->GetPortStatistics(1).bytes);
            if (pfc)
            {
                NS_TEST_EXPECT_MSG_EQ(drops, 0, "lossless");
                NS_TEST_EXPECT_MSG_GT(pauses, 0, "senders were paused");
                NS_TEST_EXPECT_MSG_EQ(last, wire + 83160 + 1000000, "the last byte");
                NS_TEST_EXPECT_MSG_EQ(carried, int64_t{senders} * 256 * 4158, "bytes carried");
            }
            else
            {
                NS_TEST_EXPECT_MSG_GT(drops, 0, "the buffer overflows");
                NS_TEST_EXPECT_MSG_EQ(pauses, 0, "nobody is paused");
                NS_TEST_EXPECT_MSG_GT(last, wire, "the last byte");
                NS_TEST_EXPECT_MSG_GT_OR_EQ(carried,
                                            int64_t{senders} * 256 * 4158,
                                            "each byte at least once");
            }
        }
    }
};

/** A pause spreads: a flow that shares only the first switch with an incast is held up too. */
class VictimTestCase : public TestCase
{
  public:
    VictimTestCase()
        : TestCase("PFC holds up a victim; trains hardly change when all is done")
    {
    }

  private:
    /** Delivery of the victim and of the last. */
    struct Times
    {
        int64_t victim; //!< ps
        int64_t last;   //!< ps
    };

    void
    DoRun() override
    {
        const Times alone = RunOnce(1, false);
        const Times packets = RunOnce(1, true);
        const Times trains = RunOnce(8, true);
        NS_TEST_EXPECT_MSG_GT(packets.victim, 2 * alone.victim, "held up");
        const double error = static_cast<double>(trains.last) / static_cast<double>(packets.last);
        // Host 0's two messages, packet by packet, are paused otherwise beside trains: 0.5 %.
        NS_TEST_EXPECT_MSG_EQ_TOL(error, 1.0, 0.007, "trains: end of the incast");
    }

    /**
     * Hosts 0 behind switch A and the others behind switch B; A and B are linked by one link of the
     * same speed. 1..8 send to 9; 0 sends to 9 and to 10: the second is the victim.
     * \param train longest train
     * \param incast whether 1..8 send
     */
    Times
    RunOnce(uint32_t train, bool incast)
    {
        Star star(11, 2);
        star.fabric->SetAttribute("Train", UintegerValue(train));
        star.fabric->SetAttribute("Buffer", UintegerValue(4 << 20));
        star.fabric->SetAttribute("Window", UintegerValue(16 << 20));
        star.Build();
        const int64_t bytes = 512 * 4096;
        for (uint32_t i = 1; incast && i <= 8; ++i)
        {
            star.fabric->Send(star.Connect(i, 9), bytes, PicoSeconds(0), i);
        }
        star.fabric->Send(star.Connect(0, 9), bytes, PicoSeconds(0), 100);
        star.fabric->Send(star.Connect(0, 10), bytes, PicoSeconds(0), 101);
        Times times{0, 0};
        const std::map<uint64_t, Outcome> outcomes = star.Run();
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetLiveMessages(), 0, "nothing is left");
        for (const auto& [tag, outcome] : outcomes)
        {
            times.last = std::max(times.last, outcome.delivered);
        }
        times.victim = outcomes.at(101).delivered;
        return times;
    }
};

/** Trains take no turns of others: who comes while one is being sent ends as with packets. */
class TrainTurnsTestCase : public TestCase
{
  public:
    TrainTurnsTestCase()
        : TestCase("A message that comes during a train of another ends as with packets")
    {
    }

  private:
    /** Deliveries. */
    struct Times
    {
        int64_t late;   //!< ps
        int64_t early;  //!< ps
        uint64_t units; //!< on host 0's port
    };

    void
    DoRun() override
    {
        // The late one's 64 packets share the port of 400 Gbps (83160 ps a packet) with the early
        // one's. If it waited for the rest of a train, 7 packets, and then took turns with the
        // next, it would end 7 packets late.
        constexpr int64_t packet = 83160;
        const Times packets = RunOnce(1);
        const Times trains = RunOnce(8);
        NS_TEST_EXPECT_MSG_EQ(packets.units, 512 + 64, "every packet");
        NS_TEST_EXPECT_MSG_LT(trains.units, 300, "trains where one is alone");
        NS_TEST_EXPECT_MSG_EQ_TOL(trains.late, packets.late, packet + packet / 2, "late");
        NS_TEST_EXPECT_MSG_EQ_TOL(trains.early, packets.early, packet + packet / 2, "early");
    }

    /**
     * \param train longest train
     */
    Times
    RunOnce(uint32_t train)
    {
        Star star(3, 1);
        star.fabric->SetAttribute("Train", UintegerValue(train));
        star.fabric->SetAttribute("Window", UintegerValue(16 << 20));
        star.Build();
        star.fabric->Send(star.Connect(0, 1), 512 * 4096, PicoSeconds(0), 1);
        star.fabric->Send(star.Connect(0, 2), 64 * 4096, PicoSeconds(96 * 83160 + 1000), 2);
        const std::map<uint64_t, Outcome> outcomes = star.Run();
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetLiveMessages(), 0, "nothing is left");
        return {outcomes.at(2).delivered,
                outcomes.at(1).delivered,
                star.fabric->GetPortStatistics(0).units};
    }
};

/** The same result whoever keeps the clock, and for the same seed. */
class ClockTestCase : public TestCase
{
  public:
    ClockTestCase()
        : TestCase("Default and own SimulatorImpl agree; a seed gives one result")
    {
    }

  private:
    void
    DoRun() override
    {
        const auto own = RunOnce("ns3::FabricSimulatorImpl", 1);
        NS_TEST_EXPECT_MSG_EQ((own == RunOnce("ns3::DefaultSimulatorImpl", 1)), true, "two clocks");
        NS_TEST_EXPECT_MSG_EQ((own == RunOnce("ns3::FabricSimulatorImpl", 1)), true, "again");
        NS_TEST_EXPECT_MSG_EQ((own == RunOnce("ns3::FabricSimulatorImpl", 2)), false, "other seed");
        GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::DefaultSimulatorImpl"));
    }

    /**
     * \param implementation type name of the SimulatorImpl
     * \param seed of the losses
     * \return what became of 16 messages over links that lose packets
     */
    std::map<uint64_t, Outcome>
    RunOnce(const std::string& implementation, uint32_t seed)
    {
        Simulator::Destroy();
        GlobalValue::Bind("SimulatorImplementationType", StringValue(implementation));
        RngSeedManager::SetSeed(seed);
        Star star(5);
        star.fabric->SetAttribute("LossRate", DoubleValue(0.01));
        star.fabric->SetAttribute("RetransmitTimeout", TimeValue(MicroSeconds(20)));
        star.fabric->SetAttribute("NackInterval", TimeValue(MicroSeconds(5)));
        star.fabric->AssignStreams(1);
        star.Build();
        for (uint32_t from = 1; from < 5; ++from)
        {
            const uint32_t pair = star.Connect(from, 0);
            for (uint64_t i = 0; i < 4; ++i)
            {
                star.fabric->Send(pair, 100000, NanoSeconds(100 * i), 10 * from + i);
            }
        }
        const std::map<uint64_t, Outcome> outcomes = star.Run();
        NS_TEST_EXPECT_MSG_EQ(outcomes.size(), 16, "messages");
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetLiveMessages(), 0, "all get through");
        return outcomes;
    }
};

/** The queue of events against a sorted list: many equal times, all sizes of the last group of
 * children. */
class EventQueueTestCase : public TestCase
{
  public:
    EventQueueTestCase()
        : TestCase("Events come by time and then by key")
    {
    }

  private:
    void
    DoRun() override
    {
        uint32_t state = 1;
        const auto draw = [&state](uint32_t end)
        {
            state = state * 1664525U + 1013904223U; // Numerical Recipes, section 7.1
            return (state >> 16) % end;
        };
        FabricEventQueue queue;
        std::vector<FabricEvent> sorted;
        uint64_t key = 0;
        const auto make = [&](int64_t from) {
            return FabricEvent{from + draw(5), ++key, draw(1000)};
        };
        const auto insert = [&sorted](const FabricEvent& event)
        {
            const auto before = [](const FabricEvent& a, const FabricEvent& b)
            { return a.time != b.time ? a.time < b.time : a.key < b.key; };
            sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), event, before), event);
        };
        for (uint32_t step = 0; step < 4000; ++step)
        {
            const bool grow = draw(10) < (step < 2000 ? 6U : 4U);
            if (grow || sorted.empty())
            {
                // Late ones, too, beyond 32 bits.
                const FabricEvent event = make((sorted.empty() ? 0 : sorted.front().time) +
                                               (draw(9) == 0 ? 1LL << 40 : 0));
                queue.Push(event);
                insert(event);
            }
            else if (draw(2) == 0)
            {
                queue.Pop();
                sorted.erase(sorted.begin());
            }
            else
            {
                const FabricEvent event = make(sorted.front().time);
                queue.ReplaceTop(event);
                sorted.erase(sorted.begin());
                insert(event);
            }
            NS_TEST_ASSERT_MSG_EQ(queue.GetSize(), sorted.size(), "events");
            if (!sorted.empty())
            {
                NS_TEST_ASSERT_MSG_EQ(queue.Top().key, sorted.front().key, "step " << step);
            }
        }
    }
};

/** The largest units. */
class LargeTrainTestCase : public TestCase
{
  public:
    LargeTrainTestCase()
        : TestCase("Trains have less than 4 GiB, and fit into a switch")
    {
    }

  private:
    void
    DoRun() override
    {
        // 4096 packets of 16 MiB: trains of 300 would have 5 GB.
        for (const uint64_t buffer : {uint64_t{0}, uint64_t{1} << 30})
        {
            const int64_t payload = 1 << 24;
            Star star(2);
            star.fabric->SetAttribute("Payload", UintegerValue(payload));
            star.fabric->SetAttribute("Train", UintegerValue(300));
            star.fabric->SetAttribute("Window", UintegerValue(1'000'000'000'000));
            star.fabric->SetAttribute("Buffer", UintegerValue(buffer));
            star.fabric->SetAttribute("FastForward", BooleanValue(false));
            star.Build();
            star.fabric->Send(star.Connect(1, 0), 4096 * payload, PicoSeconds(0), 1);
            NS_TEST_EXPECT_MSG_EQ(star.Run().at(1).delivered,
                                  4097 * (payload + 62) * 20 + 1'000'000,
                                  "delivery");
            const Fabric::PortStatistics statistics = star.fabric->GetPortStatistics(1);
            NS_TEST_EXPECT_MSG_EQ(statistics.bytes, 4096U * (payload + 62), "bytes carried");
            NS_TEST_EXPECT_MSG_EQ(statistics.drops, 0, "nothing is lost");
        }
    }
};

/** The suite "lockstep-fabric". */
class FabricTestSuite : public TestSuite
{
  public:
    FabricTestSuite()
        : TestSuite("lockstep-fabric", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new EventQueueTestCase, TestCase::QUICK);
        AddTestCase(new HopsTestCase, TestCase::QUICK);
        AddTestCase(new WindowTestCase, TestCase::QUICK);
        AddTestCase(new IncastTestCase, TestCase::QUICK);
        AddTestCase(new VictimTestCase, TestCase::QUICK);
        AddTestCase(new TrainTurnsTestCase, TestCase::QUICK);
        AddTestCase(new ClockTestCase, TestCase::QUICK);
        AddTestCase(new LargeTrainTestCase, TestCase::QUICK);
    }
};

static FabricTestSuite g_fabricTestSuite;
