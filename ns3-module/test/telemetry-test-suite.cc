/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * What HPCC makes of the telemetry of ports: of several ways, of buffers without limit.
 */

#include "fabric-star.h"

#include "ns3/fabric-congestion-control.h"
#include "ns3/object-factory.h"
#include "ns3/pointer.h"
#include "ns3/simulator.h"
#include "ns3/test.h"
#include "ns3/uinteger.h"

using namespace ns3;

namespace
{

/**
 * \return a new HPCC
 */
PointerValue
Hpcc()
{
    ObjectFactory factory("ns3::HpccCongestionControl");
    return PointerValue(factory.Create<FabricCongestionControl>());
}

constexpr int64_t PACKET = 83160; //!< ps, 4158 B at 400 Gbps

} // namespace

/** Packets of one queue pair take two ways, over one of which more has gone than over the other. */
class SprayedTelemetryTestCase : public TestCase
{
  public:
    SprayedTelemetryTestCase()
        : TestCase("Telemetry is compared with that of the same port")
    {
    }

  private:
    void
    DoRun() override
    {
        // Hosts 0 and 1 - switch 3 - switches 4 and 5 - switch 6 - host 2 (800 Gbps). Host 1 has
        // sent 1000 packets over switch 4 before host 0 begins, which has both ways for itself.
        Ptr<Fabric> fabric = CreateObject<Fabric>();
        fabric->SetAttribute("CongestionControl", Hpcc());
        fabric->SetAttribute("AckInterval", UintegerValue(1)); // so both ways' telemetry comes back
        for (uint32_t i = 0; i < 7; ++i)
        {
            fabric->AddNode(i < 3 ? Fabric::HOST : Fabric::SWITCH);
        }
        const DataRate rate("400Gbps");
        const Time delay = NanoSeconds(500);
        fabric->AddLink(0, 3, rate, delay, 0);                // ports 0, 1
        fabric->AddLink(1, 3, rate, delay, 0);                // ports 2, 3
        fabric->AddLink(3, 4, rate, delay, 0);                // ports 4, 5
        fabric->AddLink(3, 5, rate, delay, 0);                // ports 6, 7
        fabric->AddLink(4, 6, rate, delay, 0);                // ports 8, 9
        fabric->AddLink(5, 6, rate, delay, 0);                // ports 10, 11
        fabric->AddLink(6, 2, DataRate("800Gbps"), delay, 0); // ports 12, 13
        fabric->Finish();
        const uint32_t pair = fabric->AddQueuePair({0, 4, 8, 12}, {13, 9, 5, 1}, false);
        fabric->AddWay(pair, {0, 6, 10, 12});
        const uint32_t other = fabric->AddQueuePair({2, 4, 8, 12}, {13, 9, 5, 3}, false);
        fabric->Send(other, 4096 * 1000, PicoSeconds(0), 9);
        fabric->Send(pair, 4096 * 2000, MicroSeconds(200), 1);
        Simulator::Run();
        int64_t end = 0;
        for (const Fabric::Completion& done : fabric->GetCompletions())
        {
            end = done.tag == 1 && done.delivered ? done.time : end;
        }
        fabric->Dispose();
        Simulator::Destroy();
        // Each way carries half of host 0's 400 Gbps, so nothing is above 95 % of its rate.
        const int64_t alone = 200000000 + 2002 * PACKET + PACKET / 2 + 2000000;
        NS_TEST_EXPECT_MSG_LT(end, alone + alone / 1000, "at full rate");
    }
};

/** One sender goes down to 95 % of its link, whether or not buffers have a limit. */
class UnlimitedBufferTestCase : public TestCase
{
  public:
    UnlimitedBufferTestCase()
        : TestCase("Buffers without limit have telemetry, too")
    {
    }

  private:
    void
    DoRun() override
    {
        int64_t ends[2] = {0, 0};
        for (const uint64_t buffer : {uint64_t{0}, uint64_t{1} << 30})
        {
            Star star(2);
            star.fabric->SetAttribute("CongestionControl", Hpcc());
            star.fabric->SetAttribute("Buffer", UintegerValue(buffer));
            star.Build();
            star.fabric->Send(star.Connect(0, 1), 4096 * 4000, PicoSeconds(0), 1);
            ends[buffer == 0 ? 0 : 1] = star.Run().at(1).delivered;
        }
        NS_TEST_EXPECT_MSG_EQ(ends[0], ends[1], "the same rates");
        NS_TEST_EXPECT_MSG_GT(ends[0], 4000 * PACKET * 100 / 97, "at 95 % of the rate or so");
    }
};

/** The suite "lockstep-telemetry". */
class TelemetryTestSuite : public TestSuite
{
  public:
    TelemetryTestSuite()
        : TestSuite("lockstep-telemetry", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new SprayedTelemetryTestCase, TestCase::QUICK);
        AddTestCase(new UnlimitedBufferTestCase, TestCase::QUICK);
    }
};

static TelemetryTestSuite g_telemetryTestSuite;
