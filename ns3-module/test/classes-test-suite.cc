/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Traffic classes: strict priority at NICs and switches, ACKs before data, pauses of one class, and
 * thresholds of buffers.
 */

#include "fabric-star.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/fabric-unit.h"
#include "ns3/global-value.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/test.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

const int64_t PACKET = 83160; //!< ps, 4096 + 62 B at 400 Gbps
const int64_t FRAME = 1280;   //!< ps, 64 B of a PFC frame
const int64_t DELAY = 500000; //!< ps, of a link
const int64_t ACK = 1200;     //!< ps, 60 B

/**
 * \param star the network
 * \param from host
 * \param to host
 * \param trafficClass of the data
 * \return a queue pair
 */
uint32_t
ConnectIn(Star& star, uint32_t from, uint32_t to, uint32_t trafficClass)
{
    return star.fabric->AddQueuePair(star.Way(from, to), star.Way(to, from), false, trafficClass);
}

} // namespace

/** Who goes first at a port of a switch. */
class SwitchOrderTestCase : public TestCase
{
  public:
    SwitchOrderTestCase()
        : TestCase("A switch port serves classes in strict priority, to the picosecond")
    {
    }

  private:
    void
    DoRun() override
    {
        // Hosts 1 and 2 send three packets each (A, B) at 0, host 3 two (H) at 1.5 packet times. In
        // packet times after T = PACKET + DELAY, A1 B1 come to the switch at 0, A2 B2 at 1, A3 B3
        // at 2, H1 at 1.5 and H2 at 2.5. The port to host 0 sends
        //     with H in class 0:   A1 B1 H1 H2 A2 B2 A3 B3  (H1 waits for B1, which has started)
        //     in one class:        A1 B1 A2 B2 H1 A3 B3 H2
        //     with H in the last:  A1 B1 A2 B2 A3 B3 H1 H2
        Check(3, 1, 0, {7, 8, 4});
        Check(1, 0, 0, {6, 7, 8});
        Check(3, 1, 2, {5, 6, 8});
    }

    /**
     * \param classes traffic classes
     * \param data class of A and B
     * \param other class of H
     * \param ends packet times after T at which the last of A, B and H has left the switch
     */
    void
    Check(uint32_t classes, uint32_t data, uint32_t other, const std::vector<int64_t>& ends)
    {
        Star star(4);
        star.fabric->SetAttribute("Classes", UintegerValue(classes));
        star.Build();
        star.fabric->Send(ConnectIn(star, 1, 0, data), 3 * 4096, PicoSeconds(0), 0);
        star.fabric->Send(ConnectIn(star, 2, 0, data), 3 * 4096, PicoSeconds(0), 1);
        star.fabric->Send(ConnectIn(star, 3, 0, other), 2 * 4096, PicoSeconds(3 * PACKET / 2), 2);
        const std::map<uint64_t, Outcome> outcomes = star.Run();
        for (uint64_t tag = 0; tag < 3; ++tag)
        {
            NS_TEST_EXPECT_MSG_EQ(outcomes.at(tag).delivered,
                                  PACKET + DELAY + ends[tag] * PACKET + DELAY,
                                  classes << " classes, message " << tag << " in class "
                                          << (tag == 2 ? other : data));
        }
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetLiveMessages(), 0, "nothing is left");
    }
};

/** Who goes first at a NIC. */
class NicOrderTestCase : public TestCase
{
  public:
    NicOrderTestCase()
        : TestCase("A NIC serves classes in strict priority, and each in turns")
    {
    }

  private:
    void
    DoRun() override
    {
        // One host, five packets (L) from 0, two (H) and two (I) of other queue pairs from 1.5
        // packet times on. H and I in class 0, whose turns begin behind its first place: L1 L2 I1
        // H1 I2 H2 L3 L4 L5. All in one class, where L has the first place: L1 L2 H1 I1 L3 H2 I2 L4
        // L5.
        for (const uint32_t classes : {2U, 1U})
        {
            Star star(2, 0);
            star.fabric->SetAttribute("Classes", UintegerValue(classes));
            star.Build();
            star.fabric->Send(ConnectIn(star, 0, 1, 1), 5 * 4096, PicoSeconds(0), 0);
            const Time later = PicoSeconds(3 * PACKET / 2);
            star.fabric->Send(ConnectIn(star, 0, 1, 0), 2 * 4096, later, 1);
            star.fabric->Send(ConnectIn(star, 0, 1, 0), 2 * 4096, later, 2);
            const std::map<uint64_t, Outcome> outcomes = star.Run();
            NS_TEST_EXPECT_MSG_EQ(outcomes.at(0).sent, 9 * PACKET, "the long one");
            NS_TEST_EXPECT_MSG_EQ(outcomes.at(1).sent, 6 * PACKET, classes << " classes, H");
            NS_TEST_EXPECT_MSG_EQ(outcomes.at(2).sent,
                                  (classes == 2 ? 5 : 7) * PACKET,
                                  classes << " classes, I");
        }
    }
};

/** ACKs go before data. */
class AckClassTestCase : public TestCase
{
  public:
    AckClassTestCase()
        : TestCase("ACKs that go first wait for one packet, not for the queue")
    {
    }

  private:
    void
    DoRun() override
    {
        // Host 0 sends a packet to host 3, and hosts 1 and 2 send 40 each to host 0. The ACK comes
        // to the switch at 2 PACKET + 3 DELAY + ACK: in the 14th packet time of the port to host 0,
        // which is busy from PACKET + DELAY on and has 13 more packets waiting than it has sent. It
        // goes at the end of that packet.
        const int64_t first = PACKET + DELAY + 14 * PACKET + ACK + DELAY;
        Check(1, true, first);
        Check(2, true, first);
        Check(2, false, first);
        // Otherwise in one class it goes behind those that came before it: 2 * 14 packets.
        Check(1, false, PACKET + DELAY + 28 * PACKET + ACK + DELAY);
    }

    /**
     * \param classes traffic classes
     * \param ackFirst within a class
     * \param delivered ps, when the sender has the ACK
     */
    void
    Check(uint32_t classes, bool ackFirst, int64_t delivered)
    {
        Star star(4);
        star.fabric->SetAttribute("Classes", UintegerValue(classes));
        star.fabric->SetAttribute("AckFirst", BooleanValue(ackFirst));
        star.fabric->SetAttribute("WaitForAck", BooleanValue(true));
        star.Build();
        star.fabric->Send(star.Connect(0, 3), 4096, PicoSeconds(0), 7);
        star.fabric->Send(star.Connect(1, 0), 40 * 4096, PicoSeconds(0), 1);
        star.fabric->Send(star.Connect(2, 0), 40 * 4096, PicoSeconds(0), 2);
        NS_TEST_EXPECT_MSG_EQ(star.Run().at(7).delivered, delivered, classes << " classes");
    }
};

/** ACKs that overtake a long queue again and again. */
class ManyAcksTestCase : public TestCase
{
  public:
    ManyAcksTestCase()
        : TestCase("What a queue of data waits for grows by the ACKs that overtake it")
    {
    }

  private:
    void
    DoRun() override
    {
        // Hosts 1 and 2 send 60 packets each to host 0, whose port at the switch is busy from
        // PACKET + DELAY on and never idle after. Host 0 sends 20 to host 3, each of which is
        // confirmed: the last ACK comes at 21 PACKET + 3 DELAY + ACK, when some 80 packets wait. So
        // the last of the 120 leaves after all ACKs, whatever looks at the queue in between.
        const int64_t last = PACKET + DELAY + 120 * PACKET + 20 * ACK + DELAY;
        Check(false, 0, last);
        Check(true, 0, last);
        // A packet or ACK that is to stay 2 us in the switch is not overtaken by what may leave
        // later; the port begins by that much later and is busy as long.
        Check(false, 2'000'000, last + 2'000'000);
        Check(true, 2'000'000, last + 2'000'000);
    }

    /**
     * \param sampled whether the queue is looked at each 100 ns
     * \param processing ps in the switch
     * \param delivered ps, when the last packet comes to host 0
     */
    void
    Check(bool sampled, int64_t processing, int64_t delivered)
    {
        Star star(4);
        star.fabric->SetAttribute("AckInterval", UintegerValue(1));
        star.fabric->SetAttribute("Window", UintegerValue(1'000'000));
        star.fabric->SetAttribute("Processing",
                                  TimeValue(PicoSeconds(static_cast<uint64_t>(processing))));
        if (sampled)
        {
            star.fabric->SetAttribute("SampleInterval", TimeValue(NanoSeconds(100)));
        }
        star.Build();
        star.fabric->Send(star.Connect(0, 3), 20 * 4096, PicoSeconds(0), 3);
        star.fabric->Send(star.Connect(1, 0), 60 * 4096, PicoSeconds(0), 1);
        star.fabric->Send(star.Connect(2, 0), 60 * 4096, PicoSeconds(0), 2);
        const std::map<uint64_t, Outcome> outcomes = star.Run();
        NS_TEST_EXPECT_MSG_EQ(std::max(outcomes.at(1).delivered, outcomes.at(2).delivered),
                              delivered,
                              (sampled ? "sampled" : "not sampled") << ", " << processing << " ps");
    }
};

/** Units that are put before others. */
class RingTestCase : public TestCase
{
  public:
    RingTestCase()
        : TestCase("A ring makes room on the side on which fewer units are")
    {
    }

  private:
    void
    DoRun() override
    {
        FabricRing ring;
        std::deque<int64_t> expected;
        uint64_t word = 1;
        for (int64_t i = 0; i < 3000; ++i)
        {
            word = word * 6364136223846793005U + 1442695040888963407U; // Knuth's constants
            const auto size = static_cast<uint32_t>(expected.size());
            const auto place = static_cast<uint32_t>((word >> 33) % (size + 1));
            ring.Insert(place).sequence = i;
            auto at = expected.begin();
            std::advance(at, place);
            expected.insert(at, i);
            if (i % 3 == 0)
            {
                ring.RemoveFirst();
                expected.pop_front();
            }
        }
        NS_TEST_ASSERT_MSG_EQ(ring.GetSize(), expected.size(), "units");
        for (uint32_t i = 0; i < ring.GetSize(); ++i)
        {
            NS_TEST_ASSERT_MSG_EQ(ring[i].sequence, expected[i], "unit " << i);
        }
        // 2000 units lie in room for 2048, so none moves for want of it.
        const uint32_t last = ring.GetSize() - 1;
        const FabricUnit* const end = &ring[last];
        ring.Insert(2);
        NS_TEST_EXPECT_MSG_EQ((&ring[last + 1] == end),
                              true,
                              "the queue behind stays in its place");
        const FabricUnit* const begin = &ring[0];
        ring.Insert(last - 1);
        NS_TEST_EXPECT_MSG_EQ((&ring[0] == begin), true, "the queue before stays in its place");
    }
};

/** PFC holds up one class. */
class ClassPauseTestCase : public TestCase
{
  public:
    ClassPauseTestCase()
        : TestCase("A pause holds up its class and no other")
    {
    }

  private:
    void
    DoRun() override
    {
        // Hosts 1 and 2 fill host 0's port with data of class 1 until the switch pauses them. From
        // 60 us on host 1 sends 20 packets to host 3, whose port is idle. In a class of their own
        // they go at once, after at most the packet that is being sent. In the same class they wait
        // with the others.
        const int64_t alone = 60000000 + 21 * PACKET + 2 * DELAY;
        const int64_t apart = Run(2, 0);
        NS_TEST_EXPECT_MSG_EQ((apart >= alone && apart <= alone + PACKET), true, "apart " << apart);
        NS_TEST_EXPECT_MSG_EQ(m_paused[0], 0, "pauses of class 0");
        NS_TEST_EXPECT_MSG_GT(m_paused[1], 0, "pauses of class 1");
        const int64_t together = Run(2, 1);
        NS_TEST_EXPECT_MSG_GT(together, alone + 10 * PACKET, "together");
        NS_TEST_EXPECT_MSG_EQ(Run(1, 0), together, "one class is as good as all in one");
    }

    /**
     * \param classes traffic classes
     * \param other class of what goes to host 3
     * \return ps, when that is delivered
     */
    int64_t
    Run(uint32_t classes, uint32_t other)
    {
        m_paused = {0, 0};
        Star star(4);
        star.fabric->SetAttribute("Classes", UintegerValue(classes));
        star.fabric->SetAttribute("AckClass", UintegerValue(1));
        star.fabric->SetAttribute("DynamicThreshold", BooleanValue(false));
        star.fabric->SetAttribute("PfcThreshold", UintegerValue(100000));
        star.fabric->SetAttribute("Window", UintegerValue(64 << 20));
        star.Build();
        star.fabric->TraceConnectWithoutContext("Pfc",
                                                MakeCallback(&ClassPauseTestCase::Count, this));
        star.fabric->Send(ConnectIn(star, 1, 0, 1), 1000 * 4096, PicoSeconds(0), 1);
        star.fabric->Send(ConnectIn(star, 2, 0, 1), 1000 * 4096, PicoSeconds(0), 2);
        star.fabric->Send(ConnectIn(star, 1, 3, other), 20 * 4096, MicroSeconds(60), 3);
        const std::map<uint64_t, Outcome> outcomes = star.Run();
        uint64_t drops = 0;
        for (uint32_t port = 0; port < star.fabric->GetNPorts(); ++port)
        {
            drops += star.fabric->GetPortStatistics(port).drops;
        }
        NS_TEST_EXPECT_MSG_EQ(drops, 0, "nothing is lost");
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetLiveMessages(), 0, "nothing is left");
        return outcomes.at(3).delivered;
    }

    /**
     * \param now ps
     * \param node that holds the packets
     * \param port that is told
     * \param trafficClass which class
     * \param pause whether it stops
     */
    void
    Count(int64_t now, uint32_t node, uint32_t port, uint32_t trafficClass, bool pause)
    {
        NS_TEST_EXPECT_MSG_EQ((now > 0 && node == 4 && port % 2 == 0), true, "who is told");
        m_paused.at(trafficClass) += pause ? 1 : 0;
    }

    std::vector<uint64_t> m_paused; //!< by class
};

/** Where pauses begin without a dynamic threshold. */
class StaticThresholdTestCase : public TestCase
{
  public:
    StaticThresholdTestCase()
        : TestCase("A static threshold pauses at the picosecond when it is crossed")
    {
    }

  private:
    void
    DoRun() override
    {
        // Hosts 1 and 2 send to host 0; their packets come to the switch at T, T + PACKET, … and
        // leave it in turn, A before B. Packet j of B comes at T + (j - 1) PACKET, when j / 2 of
        // B's have begun to leave (rounded down): j - j / 2 are there, more than ten first with j =
        // 21. (Of A there are j - (j - 1) / 2 - 1: 22.) So B is paused first, at T + 20 PACKET, and
        // hears of it a frame of 64 bytes and a link later.
        Star star(3);
        star.fabric->SetAttribute("DynamicThreshold", BooleanValue(false));
        star.fabric->SetAttribute("PfcThreshold", UintegerValue(10 * 4158));
        star.fabric->SetAttribute("PortReserve", UintegerValue(0));
        star.fabric->SetAttribute("Window", UintegerValue(64 << 20));
        star.Build();
        star.fabric->TraceConnectWithoutContext("Pfc",
                                                MakeCallback(&StaticThresholdTestCase::Note, this));
        star.fabric->Send(star.Connect(1, 0), 60 * 4096, PicoSeconds(0), 1);
        star.fabric->Send(star.Connect(2, 0), 60 * 4096, PicoSeconds(0), 2);
        star.Run();
        NS_TEST_ASSERT_MSG_GT(m_first, 0, "there is a pause");
        NS_TEST_EXPECT_MSG_EQ(m_first, PACKET + DELAY + 20 * PACKET + FRAME + DELAY, "when");
        NS_TEST_EXPECT_MSG_EQ(m_port, 4, "host 2's port");
    }

    /**
     * \param now ps
     * \param node that holds the packets
     * \param port that is told
     * \param trafficClass which class
     * \param pause whether it stops
     */
    void
    Note(int64_t now, uint32_t node, uint32_t port, uint32_t trafficClass, bool pause)
    {
        NS_TEST_EXPECT_MSG_EQ((node == 3 && trafficClass == 0), true, "who tells");
        if (m_first == 0 && pause)
        {
            m_first = now;
            m_port = port;
        }
    }

    int64_t m_first{0}; //!< ps, first pause
    uint32_t m_port{0}; //!< who is told
};

/** Many flows in several classes: with and without jumps, under both simulators, nothing lost. */
class ClassMixTestCase : public TestCase
{
  public:
    ClassMixTestCase()
        : TestCase("Classes mixed: all arrives, the same with jumps and under every simulator")
    {
    }

  private:
    void
    DoRun() override
    {
        Simulator::Destroy();
        const std::map<uint64_t, Outcome> plain = Run(false, 3, 0);
        GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::FabricSimulatorImpl"));
        NS_TEST_EXPECT_MSG_EQ((Run(false, 3, 0) == plain), true, "another simulator");
        NS_TEST_EXPECT_MSG_EQ((Run(true, 3, 0) == plain), true, "with jumps");
        NS_TEST_EXPECT_MSG_GT(m_jumps, 0, "jumps");
        NS_TEST_EXPECT_MSG_EQ((Run(true, 3, 200) == Run(false, 3, 200)), true, "with processing");
        NS_TEST_EXPECT_MSG_EQ((Run(false, 1, 0) == plain), false, "classes make a difference");
        GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::DefaultSimulatorImpl"));
    }

    /**
     * \param jump fast-forward
     * \param classes traffic classes
     * \param processing ns, of a switch
     * \return what became of the messages
     */
    std::map<uint64_t, Outcome>
    Run(bool jump, uint32_t classes, uint32_t processing)
    {
        Star star(7);
        star.fabric->SetAttribute("Classes", UintegerValue(classes));
        star.fabric->SetAttribute("FastForward", BooleanValue(jump));
        star.fabric->SetAttribute("Processing", TimeValue(NanoSeconds(processing)));
        star.fabric->SetAttribute("Window", UintegerValue(64 * 4096));
        star.fabric->SetAttribute("Buffer", UintegerValue(3 << 20));
        star.Build();
        uint64_t tag = 0;
        uint64_t bytes = 0;
        for (uint32_t from = 1; from < 7; ++from)
        {
            const uint32_t pair = ConnectIn(star, from, from % 2 == 0 ? 0 : from - 1, from % 3);
            star.fabric->Send(pair, 4096 * 2000 + 777 * from, NanoSeconds(37 * from), ++tag);
            star.fabric->Send(pair, 4096 * 500, MicroSeconds(90 * from), ++tag);
            bytes += 2500 * 4096 + 777 * from;
        }
        const std::map<uint64_t, Outcome> outcomes = star.Run();
        NS_TEST_EXPECT_MSG_EQ(outcomes.size(), tag, "all arrives");
        NS_TEST_EXPECT_MSG_EQ(star.fabric->GetLiveMessages(), 0, "nothing is left");
        uint64_t drops = 0;
        uint64_t left = 0;
        uint64_t came = 0;
        for (uint32_t host = 0; host < 7; ++host)
        {
            drops += star.fabric->GetPortStatistics(2 * host).drops;
            drops += star.fabric->GetPortStatistics(2 * host + 1).drops;
            left += star.fabric->GetPortStatistics(2 * host).bytes;
            came += star.fabric->GetPortStatistics(2 * host + 1).bytes;
        }
        NS_TEST_EXPECT_MSG_EQ(drops, 0, "nothing is lost");
        NS_TEST_EXPECT_MSG_EQ(left, came, "what goes into the switch comes out of it");
        NS_TEST_EXPECT_MSG_GT(left, bytes, "and it is all of it");
        m_jumps = star.fabric->GetJumps();
        return outcomes;
    }

    uint64_t m_jumps{0}; //!< of the last run
};

/** The suite "lockstep-classes". */
class ClassesTestSuite : public TestSuite
{
  public:
    ClassesTestSuite()
        : TestSuite("lockstep-classes", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new SwitchOrderTestCase, TestCase::QUICK);
        AddTestCase(new NicOrderTestCase, TestCase::QUICK);
        AddTestCase(new AckClassTestCase, TestCase::QUICK);
        AddTestCase(new ManyAcksTestCase, TestCase::QUICK);
        AddTestCase(new RingTestCase, TestCase::QUICK);
        AddTestCase(new ClassPauseTestCase, TestCase::QUICK);
        AddTestCase(new StaticThresholdTestCase, TestCase::QUICK);
        AddTestCase(new ClassMixTestCase, TestCase::QUICK);
    }
};

static ClassesTestSuite g_classesTestSuite;
