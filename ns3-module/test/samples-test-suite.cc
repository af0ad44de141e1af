/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Samples of ports and queue pairs over time.
 */

#include "fabric-star.h"

#include "ns3/fabric-congestion-control.h"
#include "ns3/object-factory.h"
#include "ns3/pointer.h"
#include "ns3/simulator.h"
#include "ns3/test.h"
#include "ns3/uinteger.h"

#include <map>
#include <utility>

using namespace ns3;

/** Samples by hand, and that they are all there is. */
class SamplesTestCase : public TestCase
{
  public:
    SamplesTestCase()
        : TestCase("Samples of two senders to one, by hand, and their sums")
    {
    }

  private:
    void
    DoRun() override
    {
        // Packets of 4158 B in 83160 ps, hosts 1 and 2 from 0 on. By 1 us packets 0 to 12 of each
        // have begun to leave, by 2 us 0 to 24. They come to the switch at 583160 + k 83160: by 1
        // us six of each (k = 0 to 5), of which it has begun to send six; by 2 us 18 of each, and
        // it has begun to send 18.
        Star star(3);
        star.fabric->SetAttribute("SampleInterval", TimeValue(MicroSeconds(1)));
        star.Build();
        star.fabric->TraceConnectWithoutContext("PortSample",
                                                MakeCallback(&SamplesTestCase::NotePort, this));
        star.fabric->TraceConnectWithoutContext("QueuePairSample",
                                                MakeCallback(&SamplesTestCase::NotePair, this));
        const int64_t bytes = 40 * 4096;
        star.fabric->Send(star.Connect(1, 0), bytes, PicoSeconds(0), 1);
        star.fabric->Send(star.Connect(2, 0), bytes, PicoSeconds(0), 2);
        // A second time, after a while in which nothing happens.
        star.fabric->Send(star.fabric->AddQueuePair(star.Way(1, 0), star.Way(0, 1), true),
                          bytes,
                          MicroSeconds(1000),
                          3);
        star.Run();
        star.fabric->TakeSample();
        const int64_t packet = 4158;
        NS_TEST_EXPECT_MSG_EQ(m_ports.at({2, 1000000}).first, 13 * packet, "host 1, first");
        NS_TEST_EXPECT_MSG_EQ(m_ports.at({2, 2000000}).first, 12 * packet, "host 1, second");
        NS_TEST_EXPECT_MSG_EQ(m_ports.at({2, 1000000}).second, 0, "host 1 has no queue");
        NS_TEST_EXPECT_MSG_EQ(m_ports.at({1, 1000000}).first, 6 * packet, "switch, first");
        NS_TEST_EXPECT_MSG_EQ(m_ports.at({1, 1000000}).second, 6 * packet, "its queue");
        NS_TEST_EXPECT_MSG_EQ(m_ports.at({1, 2000000}).first, 12 * packet, "switch, second");
        NS_TEST_EXPECT_MSG_EQ(m_ports.at({1, 2000000}).second, 18 * packet, "its queue");
        NS_TEST_EXPECT_MSG_EQ(m_ports.count({2, 100000000}), 0, "nothing of a port at rest");
        NS_TEST_EXPECT_MSG_EQ(m_confirmed, 3 * bytes, "all that was confirmed");
        for (uint32_t port = 0; port < star.fabric->GetNPorts(); ++port)
        {
            NS_TEST_EXPECT_MSG_EQ(m_sums[port],
                                  static_cast<int64_t>(star.fabric->GetPortStatistics(port).bytes),
                                  "all that port " << port << " sent");
        }
    }

    /**
     * \param sample of a port
     */
    void
    NotePort(const FabricPortSample& sample)
    {
        m_ports[{sample.port, sample.time}] = {static_cast<int64_t>(sample.bytes),
                                               static_cast<int64_t>(sample.queue)};
        m_sums[sample.port] += static_cast<int64_t>(sample.bytes);
    }

    /**
     * \param sample of a queue pair
     */
    void
    NotePair(const FabricPairSample& sample)
    {
        m_confirmed += sample.bytes;
        NS_TEST_EXPECT_MSG_EQ(sample.rate, 400e9, "nobody slows it down");
    }

    std::map<std::pair<uint32_t, int64_t>, std::pair<int64_t, int64_t>> m_ports; //!< bytes, queue
    std::map<uint32_t, int64_t> m_sums;                                          //!< by port
    int64_t m_confirmed{0};                                                      //!< bytes
};

/** Looking changes nothing. */
class LookingTestCase : public TestCase
{
  public:
    LookingTestCase()
        : TestCase("A run with samples goes as one without, random marks included")
    {
    }

  private:
    void
    DoRun() override
    {
        const std::map<uint64_t, Outcome> without = Run(Time());
        NS_TEST_EXPECT_MSG_EQ((Run(NanoSeconds(333)) == without), true, "every 333 ns");
        NS_TEST_EXPECT_MSG_EQ((Run(MicroSeconds(7)) == without), true, "every 7 us");
    }

    /**
     * \param interval between samples
     * \return what became of the messages
     */
    std::map<uint64_t, Outcome>
    Run(Time interval)
    {
        Star star(9);
        star.fabric->SetAttribute("SampleInterval", TimeValue(interval));
        ObjectFactory factory("ns3::DcqcnCongestionControl");
        star.fabric->SetAttribute("CongestionControl",
                                  PointerValue(factory.Create<FabricCongestionControl>()));
        star.fabric->SetAttribute("Window", UintegerValue(8 << 20));
        star.fabric->AssignStreams(1);
        star.Build();
        for (uint32_t from = 1; from < 9; ++from)
        {
            star.fabric->Send(star.Connect(from, 0), 4096 * 400, NanoSeconds(11 * from), from);
            star.fabric->Send(star.Connect(from, from % 8 + 1),
                              4096 * 90,
                              MicroSeconds(40),
                              from + 9);
        }
        const std::map<uint64_t, Outcome> outcomes = star.Run();
        uint64_t marks = 0;
        for (uint32_t port = 0; port < star.fabric->GetNPorts(); ++port)
        {
            marks += star.fabric->GetPortStatistics(port).marks;
        }
        NS_TEST_EXPECT_MSG_GT(marks, 0, "marks");
        return outcomes;
    }
};

/** The suite "lockstep-samples". */
class SamplesTestSuite : public TestSuite
{
  public:
    SamplesTestSuite()
        : TestSuite("lockstep-samples", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new SamplesTestCase, TestCase::QUICK);
        AddTestCase(new LookingTestCase, TestCase::QUICK);
    }
};

static SamplesTestSuite g_samplesTestSuite;
