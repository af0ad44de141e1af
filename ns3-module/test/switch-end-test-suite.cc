/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Switches as ends of messages: in-network reduction and multicast are made of such.
 */

#include "fabric-star.h"

#include "ns3/test.h"
#include "ns3/uinteger.h"

using namespace ns3;

/** A switch sends and receives. */
class SwitchEndTestCase : public TestCase
{
  public:
    SwitchEndTestCase()
        : TestCase("Messages to and from a switch, to the picosecond")
    {
    }

  private:
    void
    DoRun() override
    {
        // One link of 400 Gbps and 500 ns, packets of 4158 B: 83160 ps. Ten packets: 10 of those
        // and the delay, whichever end sends. The sender has sent when the last one has left.
        for (const bool up : {true, false})
        {
            Star star(2);
            star.Build();
            const std::vector<uint32_t> toSwitch = {0};
            const std::vector<uint32_t> toHost = {1};
            const uint32_t pair =
                star.fabric->AddQueuePair(up ? toSwitch : toHost, up ? toHost : toSwitch, false);
            star.fabric->Send(pair, 10 * 4096, PicoSeconds(0), 1);
            const Outcome outcome = star.Run().at(1);
            NS_TEST_EXPECT_MSG_EQ(outcome.sent, 10 * 83160, (up ? "up" : "down"));
            NS_TEST_EXPECT_MSG_EQ(outcome.delivered, 10 * 83160 + 500000, (up ? "up" : "down"));
            NS_TEST_EXPECT_MSG_EQ(star.fabric->GetLiveMessages(), 0, "nothing is left");
        }
    }
};

/** What a switch sends shares its port with what it forwards. */
class SharedPortTestCase : public TestCase
{
  public:
    SharedPortTestCase()
        : TestCase("A switch's own data and what it forwards share a port")
    {
    }

  private:
    void
    DoRun() override
    {
        // Host 1 sends 1000 packets through the switch to host 0, the switch itself sends 1000 too.
        // Both come to the port at its rate, so they take turns, and the port is never idle from
        // the moment on at which the switch begins.
        Star star(2);
        star.fabric->SetAttribute("Window", UintegerValue(64 << 20));
        star.fabric->SetAttribute("AckInterval", UintegerValue(1000));
        star.Build();
        const uint32_t through = star.Connect(1, 0);
        const uint32_t own = star.fabric->AddQueuePair({1}, {0}, false);
        star.fabric->Send(through, 1000 * 4096, PicoSeconds(0), 1);
        star.fabric->Send(own, 1000 * 4096, PicoSeconds(583160), 2); // as the first one comes
        const std::map<uint64_t, Outcome> outcomes = star.Run();
        const int64_t last = std::max(outcomes.at(1).delivered, outcomes.at(2).delivered);
        NS_TEST_EXPECT_MSG_EQ(last, 583160 + 2000 * 83160 + 500000, "the port is never idle");
        const int64_t apart = std::abs(outcomes.at(1).delivered - outcomes.at(2).delivered);
        NS_TEST_EXPECT_MSG_LT_OR_EQ(apart, 83160, "equal shares");
    }
};

/** The suite "lockstep-switch-end". */
class SwitchEndTestSuite : public TestSuite
{
  public:
    SwitchEndTestSuite()
        : TestSuite("lockstep-switch-end", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new SwitchEndTestCase, TestCase::QUICK);
        AddTestCase(new SharedPortTestCase, TestCase::QUICK);
    }
};

static SwitchEndTestSuite g_switchEndTestSuite;
