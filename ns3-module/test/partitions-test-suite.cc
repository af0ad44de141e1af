/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Partitions of a fabric that skip what repeats, each by itself, against runs that skip nothing.
 */

#include "ns3/boolean.h"
#include "ns3/fabric-next-turns.h"
#include "ns3/fabric.h"
#include "ns3/global-value.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/test.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace ns3;

namespace
{

/** What may happen to a run. */
struct Course
{
    uint32_t seed;  //!< of what is sent between servers
    bool fresh;     //!< a queue pair a message
    bool straggler; //!< one server's steps take another time now and then
    bool slower;    //!< a link of a server gets another bandwidth in mid-run
    bool failure;   //!< a link of another server loses packets for a while
    bool relay;     //!< in mid-run messages pass through a host: two partitions become one
};

/** What a run leaves behind. */
struct Trail
{
    std::vector<std::tuple<int64_t, uint64_t, bool>> told; //!< completions, in order
    std::vector<uint64_t> counts;                          //!< of all ports
    uint64_t packets{0};                                   //!< sent
    uint64_t events{0};                                    //!< carried out
    int64_t skipped{0};                                    //!< ps
};

/**
 * Four servers of four hosts, each with an NVSwitch, and a leaf switch. In three servers two rings
 * of messages go round and round: a step of a ring begins 2 us after the one before was delivered.
 * Servers begin apart, and now and then hosts send to other servers. In the fourth a long message
 * is met by others that nobody has known of before.
 */
class Cluster
{
  public:
    /**
     * \param course what happens
     * \param skip whether fast-forward is on
     */
    Cluster(const Course& course, bool skip)
        : m_course(course),
          m_random(course.seed)
    {
        m_fabric = CreateObject<Fabric>();
        m_fabric->AssignStreams(1);
        m_fabric->SetAttribute("FastForward", BooleanValue(skip));
        m_fabric->SetAttribute("FinishedLeaveWhenMet", BooleanValue(course.fresh));
        for (uint32_t i = 0; i < HOSTS; ++i)
        {
            m_fabric->AddNode(Fabric::HOST);
        }
        for (uint32_t i = 0; i < SERVERS; ++i)
        {
            m_fabric->AddNode(Fabric::NVSWITCH);
        }
        m_fabric->AddNode(Fabric::SWITCH);
        for (uint32_t i = 0; i < HOSTS; ++i)
        {
            m_fabric->AddLink(i, HOSTS + i / LOCAL, DataRate("2880Gbps"), NanoSeconds(25), 0);
        }
        for (uint32_t i = 0; i < HOSTS; ++i)
        {
            m_fabric->AddLink(i, HOSTS + SERVERS, DataRate("400Gbps"), NanoSeconds(500), 0);
        }
        m_fabric->Finish();
        m_fabric->SetStopAtCompletion(true, Microseconds(1));
    }

    ~Cluster()
    {
        m_fabric->Dispose();
        Simulator::Destroy();
    }

    /** \return what happened */
    Trail
    Run()
    {
        for (uint32_t host = 0; host < HOSTS - LOCAL; ++host)
        {
            for (uint32_t ring = 0; ring < RINGS; ++ring)
            {
                SendStep(host, ring, 0, Microseconds(10 + 3 * (host / LOCAL)));
            }
        }
        for (uint32_t i = 0; i < 20; ++i)
        {
            SendAcross(i);
        }
        const auto schedule = [](uint64_t when, auto what)
        { Simulator::Schedule(MicroSeconds(when), what); };
        constexpr uint32_t last = HOSTS - LOCAL;
        const auto sendLong = [this](uint32_t from, int64_t bytes, uint64_t when)
        {
            m_fabric->Send(Pair(last + from, last, RINGS + from),
                           bytes,
                           MicroSeconds(when),
                           (1U << 21) + when);
        };
        sendLong(1, 60'000'000, 15);
        schedule(70, [=] { sendLong(2, 3'000'000, 70); });
        schedule(120, [=] { sendLong(3, 1'000'000, 123); });
        if (m_course.slower)
        {
            schedule(90, [this] { m_fabric->SetPortRate(2 * last + 1, DataRate("2000Gbps")); });
            schedule(201, [this] { m_fabric->SetPortRate(2, DataRate("1440Gbps")); });
            schedule(402, [this] { m_fabric->SetPortRate(2, DataRate("2880Gbps")); });
        }
        if (m_course.failure)
        {
            schedule(303, [this] { m_fabric->SetLinkLoss(5, 0.5); });
            schedule(350, [this] { m_fabric->SetLinkLoss(5, 0); });
        }
        if (m_course.relay)
        {
            schedule(250,
                     [this]
                     {
                         // Over NVLink to host 1, and on by its NIC.
                         const uint32_t pair =
                             m_fabric->AddQueuePair({0, 3, 2 * (HOSTS + 1), 2 * (HOSTS + 5) + 1},
                                                    {2 * (HOSTS + 5), 2 * (HOSTS + 1) + 1, 2, 1},
                                                    false);
                         m_fabric->Send(pair, 100'000, MicroSeconds(260), 1U << 30);
                     });
        }
        Trail trail;
        for (bool busy = true; busy;)
        {
            Simulator::Run();
            const std::vector<Fabric::Completion> completions = m_fabric->GetCompletions();
            m_fabric->GetCompletions().clear();
            busy = !completions.empty();
            for (const Fabric::Completion& done : completions)
            {
                trail.told.emplace_back(done.time, done.tag, done.delivered);
                if (done.delivered && done.tag < 1U << 20)
                {
                    GoOn(done.tag, done.time);
                }
            }
        }
        for (uint32_t port = 0; port < m_fabric->GetNPorts(); ++port)
        {
            const Fabric::PortStatistics s = m_fabric->GetPortStatistics(port);
            trail.counts.insert(trail.counts.end(), {s.bytes, s.units, s.maxQueue, s.drops});
        }
        trail.packets = m_fabric->GetPacketCount();
        trail.events = m_fabric->GetEventCount();
        trail.skipped = m_fabric->GetSkippedTime();
        return trail;
    }

  private:
    static constexpr uint32_t SERVERS = 4;             //!< servers
    static constexpr uint32_t LOCAL = 4;               //!< hosts of one
    static constexpr uint32_t HOSTS = SERVERS * LOCAL; //!< of all
    static constexpr uint32_t RINGS = 2;               //!< of a server
    static constexpr uint32_t STEPS = 200;             //!< of a ring

    /** \return ps */
    static constexpr int64_t
    Microseconds(int64_t count)
    {
        return count * 1'000'000;
    }

    /**
     * \param from host
     * \param to host
     * \return ports between hosts
     */
    static std::vector<uint32_t>
    Way(uint32_t from, uint32_t to)
    {
        const uint32_t nic = from / LOCAL == to / LOCAL ? 0 : HOSTS;
        return {2 * (nic + from), 2 * (nic + to) + 1};
    }

    /**
     * \param from host
     * \param to host
     * \param ring which, of those with queue pairs of their own
     * \return a queue pair
     */
    uint32_t
    Pair(uint32_t from, uint32_t to, uint32_t ring)
    {
        const auto add = [&]
        { return m_fabric->AddQueuePair(Way(from, to), Way(to, from), m_course.fresh); };
        if (m_course.fresh)
        {
            return add();
        }
        const auto key = std::make_tuple(from, to, ring);
        for (const auto& [known, pair] : m_pairs)
        {
            if (known == key)
            {
                return pair;
            }
        }
        m_pairs.emplace_back(key, add());
        return m_pairs.back().second;
    }

    void
    SendStep(uint32_t host, uint32_t ring, uint32_t step, int64_t when)
    {
        const uint32_t server = host / LOCAL;
        const uint32_t to = server * LOCAL + (host + (ring == 0 ? 1 : LOCAL - 1)) % LOCAL;
        const uint64_t tag = (uint64_t{step} * RINGS + ring) * HOSTS + host;
        m_fabric->Send(Pair(host, to, ring),
                       60'000 + 4096 * ring,
                       PicoSeconds(static_cast<uint64_t>(when)),
                       tag);
    }

    void
    GoOn(uint64_t tag, int64_t time)
    {
        const auto host = static_cast<uint32_t>(tag % HOSTS);
        const auto ring = static_cast<uint32_t>(tag / HOSTS % RINGS);
        const auto step = static_cast<uint32_t>(tag / HOSTS / RINGS) + 1;
        const uint32_t server = host / LOCAL;
        const uint32_t to = server * LOCAL + (host + (ring == 0 ? 1 : LOCAL - 1)) % LOCAL;
        const bool late = m_course.straggler && host % LOCAL == 1 && server == 1 && step % 17 == 5;
        if (step < STEPS)
        {
            SendStep(to, ring, step, time + Microseconds(2) + (late ? 777'777 : 0));
        }
    }

    void
    SendAcross(uint32_t number)
    {
        const auto draw = [this](uint32_t below)
        { return static_cast<uint32_t>(m_random() % below); };
        const uint32_t from = draw(HOSTS);
        const uint32_t to = (from + LOCAL + draw(HOSTS - 2 * LOCAL + 1)) % HOSTS;
        m_fabric->Send(Pair(from, to, RINGS + number),
                       1 + draw(400'000),
                       MicroSeconds(20 + draw(300)),
                       (1U << 20) + number);
    }

    const Course m_course; //!< what happens
    std::mt19937 m_random; //!< what is sent between servers
    Ptr<Fabric> m_fabric;  //!< the model
    std::vector<std::pair<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t>> m_pairs; //!< known
};

} // namespace

/** Partitions skip what repeats, and nothing changes. */
class PartitionsTestCase : public TestCase
{
  public:
    PartitionsTestCase()
        : TestCase("What repeats in one server is skipped whatever others do")
    {
    }

  private:
    void
    DoRun() override
    {
        Simulator::Destroy();
        GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::FabricSimulatorImpl"));
        for (uint32_t seed = 1; seed <= 32; ++seed)
        {
            Compare({seed,
                     (seed & 1) != 0,
                     (seed & 2) != 0,
                     (seed & 4) != 0,
                     (seed & 8) != 0,
                     (seed & 16) != 0});
        }
        GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::DefaultSimulatorImpl"));
    }

    /**
     * \param course what happens
     */
    void
    Compare(const Course& course)
    {
        const Trail full = Cluster(course, false).Run();
        const Trail skipping = Cluster(course, true).Run();
        const std::string what = "course " + std::to_string(course.seed);
        NS_TEST_EXPECT_MSG_EQ((full.told == skipping.told),
                              true,
                              what << ": times and their order");
        NS_TEST_EXPECT_MSG_EQ((full.counts == skipping.counts), true, what << ": counts");
        NS_TEST_EXPECT_MSG_EQ(full.packets, skipping.packets, what << ": packets");
        NS_TEST_EXPECT_MSG_EQ(full.skipped, 0, what << ": off by its flag");
        NS_TEST_EXPECT_MSG_GT(skipping.skipped, 0, what << ": something is skipped");
        NS_TEST_EXPECT_MSG_LT(skipping.events, full.events, what << ": events");
        std::printf("%-12s %8lu events, %8lu skipping\n",
                    what.c_str(),
                    full.events,
                    skipping.events);
    }
};

/** Whose turn it is, against a look at all times. */
class NextTurnsTestCase : public TestCase
{
  public:
    NextTurnsTestCase()
        : TestCase("Turns come in order of time, and of number where times are equal")
    {
    }

  private:
    void
    DoRun() override
    {
        std::mt19937 random(7);
        for (const uint32_t players : {1U, 2U, 3U, 7U, 8U, 17U})
        {
            FabricNextTurns turns;
            std::vector<int64_t> times;
            for (uint32_t player = 0; player < players; ++player)
            {
                turns.Add(); // those before keep their turns
                times.push_back(INT64_MAX);
                SetOne(turns, times, random() % (player + 1), random());
                Check(turns, times);
            }
            for (int i = 0; i < 200; ++i)
            {
                SetOne(turns, times, random() % players, random());
                Check(turns, times);
            }
        }
    }

    /** One player gets another turn: a few times, so that many are equal, or none. */
    static void
    SetOne(FabricNextTurns& turns, std::vector<int64_t>& times, std::size_t who, uint64_t drawn)
    {
        times[who] = drawn % 5 == 0 ? INT64_MAX : static_cast<int64_t>(drawn % 5);
        turns.Set(static_cast<uint32_t>(who), times[who]);
    }

    /**
     * \param turns a tournament
     * \param times of the turns in it
     */
    void
    Check(const FabricNextTurns& turns, std::vector<int64_t> times)
    {
        const auto first = std::min_element(times.begin(), times.end());
        NS_TEST_EXPECT_MSG_EQ(turns.First().time, *first, "the earliest");
        if (*first != INT64_MAX)
        {
            NS_TEST_EXPECT_MSG_EQ(turns.First().who, first - times.begin(), "the first of those");
        }
        for (int64_t& own : times)
        {
            const int64_t time = std::exchange(own, INT64_MAX);
            const auto other = std::min_element(times.begin(), times.end());
            const FabricNextTurns::Turn turn =
                turns.FirstBut(static_cast<uint32_t>(&own - times.data()));
            NS_TEST_EXPECT_MSG_EQ(turn.time, *other, "the earliest of the others");
            if (*other != INT64_MAX)
            {
                NS_TEST_EXPECT_MSG_EQ(turn.who, other - times.begin(), "the first of those");
            }
            own = time;
        }
    }
};

/** The suite "lockstep-partitions". */
class PartitionsTestSuite : public TestSuite
{
  public:
    PartitionsTestSuite()
        : TestSuite("lockstep-partitions", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new PartitionsTestCase, TestCase::QUICK);
        AddTestCase(new NextTurnsTestCase, TestCase::QUICK);
    }
};

static PartitionsTestSuite g_partitionsTestSuite;
