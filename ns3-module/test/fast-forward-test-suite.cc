/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Runs that jump over what repeats, against runs that do not.
 */

#include "fabric-star.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/enum.h"
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

/** Jumps over what repeats change nothing. */
class FastForwardTestCase : public TestCase
{
  public:
    FastForwardTestCase()
        : TestCase("Fast-forward gives the same times and counts to the last bit")
    {
    }

  private:
    /** What a run leaves behind. */
    struct Trail
    {
        std::map<uint64_t, Outcome> outcomes; //!< by message
        std::vector<uint64_t> counts;         //!< of all ports, and of packets
        uint64_t events{0};                   //!< carried out
        uint64_t jumps{0};                    //!< made
    };

    void
    DoRun() override
    {
        Simulator::Destroy();
        GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::FabricSimulatorImpl"));
        // senders, window in packets, train, ACK interval, PFC pauses
        Compare(1, 8, 1, 1, false);
        Compare(3, 64, 1, 4, false);
        Compare(8, 200, 1, 1, false);
        Compare(2, 64, 4, 4, false);
        Compare(8, 64, 4, 4, false);
        Compare(5, 4096, 1, 2, true);
        // Starts with jitter, which is drawn when a message is handed over.
        Compare(3, 64, 1, 4, false, NanoSeconds(200));
        CompareBursts(false, NanoSeconds(200));
        CompareBursts(true, NanoSeconds(200));
        // The same burst ten times; whose turn it is at a sender changes from one to the next.
        CompareBursts(false);
        CompareBursts(true);
        GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::DefaultSimulatorImpl"));
    }

    /**
     * \param star the network
     * \return what its messages and ports did
     */
    static Trail
    TrailOf(Star& star)
    {
        Trail trail;
        trail.outcomes = star.Run();
        for (uint32_t port = 0; port < star.fabric->GetNPorts(); ++port)
        {
            const Fabric::PortStatistics s = star.fabric->GetPortStatistics(port);
            trail.counts.insert(trail.counts.end(),
                                {s.bytes,
                                 s.units,
                                 s.maxQueue,
                                 s.drops,
                                 s.pauses,
                                 static_cast<uint64_t>(s.pausedTime)});
        }
        trail.counts.push_back(star.fabric->GetPacketCount());
        trail.events = star.fabric->GetEventCount();
        trail.jumps = star.fabric->GetJumps();
        return trail;
    }

    /**
     * \param full a run of all events
     * \param jumped the same with fast-forward
     * \param what they are
     */
    void
    CheckEqual(const Trail& full, const Trail& jumped, const std::string& what)
    {
        NS_TEST_EXPECT_MSG_EQ((full.outcomes == jumped.outcomes), true, what << ": times");
        NS_TEST_EXPECT_MSG_EQ((full.counts == jumped.counts), true, what << ": counts");
    }

    /**
     * \param full a run of all events
     * \param jumped the same with fast-forward
     * \param what they are
     */
    void
    Check(const Trail& full, const Trail& jumped, const std::string& what)
    {
        CheckEqual(full, jumped, what);
        NS_TEST_EXPECT_MSG_EQ(full.jumps, 0, what << ": off by its flag");
        NS_TEST_EXPECT_MSG_GT(jumped.jumps, 0, what << ": jumps");
        NS_TEST_EXPECT_MSG_LT(jumped.events, full.events, what << ": events");
        std::printf("%-40s %8lu events, %8lu with %lu jumps\n",
                    what.c_str(),
                    full.events,
                    jumped.events,
                    jumped.jumps);
    }

    /**
     * \param fresh whether each message has a queue pair of its own, and finished ones stay in the
     * round robin until met
     * \param jitter of starts, with which nothing need repeat
     */
    void
    CompareBursts(bool fresh, Time jitter = Time())
    {
        const auto run = [fresh, jitter](bool jump)
        {
            Star star(5);
            star.fabric->SetAttribute("SendJitter", TimeValue(jitter));
            star.fabric->AssignStreams(1);
            star.fabric->SetAttribute("FastForward", BooleanValue(jump));
            star.fabric->SetAttribute("FinishedLeaveWhenMet", BooleanValue(fresh));
            star.Build();
            std::map<std::pair<uint32_t, uint32_t>, uint32_t> pairs;
            for (uint64_t burst = 0; burst < 10; ++burst)
            {
                for (uint32_t from = 0; from < 5; ++from)
                {
                    for (uint32_t i = 1; i < 4; ++i)
                    {
                        const uint32_t to = (from + i) % 5;
                        const bool known = pairs.count({from, to}) > 0;
                        const uint32_t pair = fresh ? star.fabric->AddQueuePair(star.Way(from, to),
                                                                                star.Way(to, from),
                                                                                true)
                                              : known ? pairs[{from, to}]
                                                      : star.Connect(from, to);
                        pairs[{from, to}] = pair;
                        star.fabric->Send(pair,
                                          4096 * 6 + 100 * i,
                                          MicroSeconds(50 * burst) + NanoSeconds(3 * from + i),
                                          burst * 100 + from * 10 + i);
                    }
                }
            }
            return TrailOf(star);
        };
        const Trail full = run(false);
        const Trail jumped = run(true);
        if (!jitter.IsZero())
        {
            CheckEqual(full, jumped, "bursts with jitter");
            return;
        }
        Check(full, jumped, fresh ? "bursts, a queue pair a message" : "bursts");
    }

    /**
     * \param senders to host 0
     * \param window packets
     * \param train longest train
     * \param ackInterval packets an ACK
     * \param small whether the buffer is small enough for pauses
     * \param jitter of starts
     */
    void
    Compare(uint32_t senders,
            uint32_t window,
            uint32_t train,
            uint32_t ackInterval,
            bool small,
            Time jitter = Time())
    {
        const auto run = [&](bool jump)
        {
            Star star(senders + 1);
            star.fabric->SetAttribute("FastForward", BooleanValue(jump));
            star.fabric->SetAttribute("SendJitter", TimeValue(jitter));
            star.fabric->AssignStreams(1);
            star.fabric->SetAttribute("Window", UintegerValue(4096 * window));
            star.fabric->SetAttribute("Train", UintegerValue(train));
            star.fabric->SetAttribute("AckInterval", UintegerValue(ackInterval));
            star.fabric->SetAttribute("Buffer", UintegerValue(small ? 2 << 20 : 256 << 20));
            star.Build();
            for (uint32_t i = 1; i <= senders; ++i)
            {
                // Starts and sizes differ, and the second message comes in mid-run.
                const uint32_t pair = star.Connect(i, 0);
                star.fabric->Send(pair, 4096 * 2000 + 777 * i, NanoSeconds(37 * i), i);
                star.fabric->Send(pair, 4096 * 700, MicroSeconds(50 * i), 100 + i);
            }
            return TrailOf(star);
        };
        const Trail full = run(false);
        const Trail jumped = run(true);
        const std::string what = std::to_string(senders) + " senders, window " +
                                 std::to_string(window) + ", train " + std::to_string(train);
        if (!jitter.IsZero())
        {
            CheckEqual(full, jumped, what + ", jitter");
            return;
        }
        Check(full, jumped, what);
    }
};

/** The suite "lockstep-fast-forward". */
class FastForwardTestSuite : public TestSuite
{
  public:
    FastForwardTestSuite()
        : TestSuite("lockstep-fast-forward", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new FastForwardTestCase, TestCase::QUICK);
    }
};

static FastForwardTestSuite g_fastForwardTestSuite;
