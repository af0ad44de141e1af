/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * What the packet engine takes for granted of ns-3: a clock of whole picoseconds, exact
 * transmission times, and a simulation that pauses and goes on.
 */

#include "ns3/data-rate.h"
#include "ns3/nstime.h"
#include "ns3/simulator.h"
#include "ns3/test.h"

using namespace ns3;

/** Transmission times at the speeds of the field, in picoseconds. */
class TransmissionTimeTestCase : public TestCase
{
  public:
    TransmissionTimeTestCase()
        : TestCase("Transmission times are exact to the picosecond")
    {
    }

  private:
    void
    DoRun() override
    {
        // 4096 B are 32768 bits; 400 Gbps are 0.4 bits a picosecond: 32768 / 0.4 = 81920 ps.
        Expect("400Gbps", 4096, 81920);
        // 64 B at NVLink's 3.6 Tbps: 512 / 3.6 = 142.2 ps. (0 in ns-3's default nanoseconds.)
        Expect("3600Gbps", 64, 142);
        // 9052 B at 200 Gbps: 72416 / 0.2 = 362080 ps.
        Expect("200Gbps", 9052, 362080);
    }

    void
    Expect(const char* rate, uint32_t bytes, int64_t picoseconds)
    {
        const Time time = DataRate(rate).CalculateBytesTxTime(bytes);
        NS_TEST_EXPECT_MSG_EQ(time.GetPicoSeconds(), picoseconds, bytes << " B at " << rate);
    }
};

/** Two packets back to back over a link of 400 Gbps and 25 ns, with a pause between. */
class PauseTestCase : public TestCase
{
  public:
    PauseTestCase()
        : TestCase("A simulation pauses inside an event and goes on")
    {
    }

  private:
    void
    DoRun() override
    {
        const Time packet = DataRate("400Gbps").CalculateBytesTxTime(4096);
        const Time latency = NanoSeconds(25);
        Simulator::Schedule(packet + latency, &PauseTestCase::Arrive, this);
        Simulator::Schedule(packet * 2 + latency, &PauseTestCase::Arrive, this);
        Simulator::Run();
        // 81920 + 25000 ps.
        NS_TEST_EXPECT_MSG_EQ(Simulator::Now().GetPicoSeconds(), 106920, "first arrival");
        Simulator::Run();
        // 2 * 81920 + 25000 ps.
        NS_TEST_EXPECT_MSG_EQ(Simulator::Now().GetPicoSeconds(), 188840, "second arrival");
        NS_TEST_EXPECT_MSG_EQ(m_arrived, 2, "packets");
        Simulator::Destroy();
    }

    void
    Arrive()
    {
        ++m_arrived;
        Simulator::Stop();
    }

    int m_arrived{0};
};

/** The suite "lockstep-picosecond". */
class PicosecondTestSuite : public TestSuite
{
  public:
    PicosecondTestSuite()
        : TestSuite("lockstep-picosecond", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new TransmissionTimeTestCase, TestCase::QUICK);
        AddTestCase(new PauseTestCase, TestCase::QUICK);
    }
};

static PicosecondTestSuite g_picosecondTestSuite;
