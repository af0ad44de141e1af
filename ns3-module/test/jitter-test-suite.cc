/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Messages that begin with jitter: by how much, by which draws, and in which order.
 */

#include "fabric-star.h"

#include "ns3/fabric.h"
#include "ns3/nstime.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/simulator.h"
#include "ns3/test.h"

#include <algorithm>
#include <map>
#include <vector>

using namespace ns3;

namespace
{

/** One packet over one link of 400 Gbps and 500 ns: 4158 B and the delay. */
constexpr int64_t LONE = 83160 + 500000;
constexpr uint64_t MESSAGES = 64; //!< of a run

/**
 * \param jitter ns
 * \param seed of the draws
 * \return by how much each of 64 messages of a queue pair, one every 10 us, was delivered later
 * than without, ps
 */
std::vector<int64_t>
LateBy(uint64_t jitter, uint32_t seed)
{
    const uint32_t before = RngSeedManager::GetSeed();
    RngSeedManager::SetSeed(seed);
    Star star(2, 0);
    star.fabric->AssignStreams(1);
    star.fabric->SetAttribute("SendJitter", TimeValue(NanoSeconds(jitter)));
    star.Build();
    const uint32_t pair = star.Connect(0, 1);
    for (uint64_t i = 0; i < MESSAGES; ++i)
    {
        star.fabric->Send(pair, 4096, MicroSeconds(10 * i), i);
    }
    std::vector<int64_t> late;
    for (const auto& [tag, outcome] : star.Run())
    {
        late.push_back(outcome.delivered - static_cast<int64_t>(tag) * 10000000 - LONE);
    }
    RngSeedManager::SetSeed(before);
    return late;
}

} // namespace

/** Where the draws lie, and what decides them. */
class JitterDrawsTestCase : public TestCase
{
  public:
    JitterDrawsTestCase()
        : TestCase("Messages begin up to SendJitter later, by seed")
    {
    }

  private:
    void
    DoRun() override
    {
        const std::vector<int64_t> none = LateBy(0, 1);
        NS_TEST_EXPECT_MSG_EQ((none == std::vector<int64_t>(MESSAGES, 0)), true, "no jitter");
        // 64 draws from [0, 1 us): that none is in the first or last fifth has odds of 2 * 0.8^64.
        const std::vector<int64_t> late = LateBy(1000, 1);
        NS_TEST_ASSERT_MSG_EQ(late.size(), MESSAGES, "messages");
        const auto [least, most] = std::minmax_element(late.begin(), late.end());
        NS_TEST_EXPECT_MSG_GT_OR_EQ(*least, 0, "none is early");
        NS_TEST_EXPECT_MSG_LT(*least, 200000, "least");
        NS_TEST_EXPECT_MSG_GT(*most, 800000, "most");
        NS_TEST_EXPECT_MSG_LT(*most, 1000000, "below the bound");
        NS_TEST_EXPECT_MSG_EQ((late == LateBy(1000, 1)), true, "the same seed");
        NS_TEST_EXPECT_MSG_EQ((late == LateBy(1000, 2)), false, "another seed");
    }
};

/** Draws hang on names and not on the order in which things are done; a queue pair keeps its own.
 */
class JitterOrderTestCase : public TestCase
{
  public:
    JitterOrderTestCase()
        : TestCase("Draws do not depend on the order of other queue pairs; messages keep theirs")
    {
    }

  private:
    /**
     * \param swapped whether the second queue pair is added, and its message handed over, first
     * \return what became of two messages that share no port
     */
    static std::map<uint64_t, Outcome>
    Two(bool swapped)
    {
        Star star(5);
        star.fabric->AssignStreams(1);
        star.fabric->SetAttribute("SendJitter", TimeValue(MicroSeconds(1)));
        star.Build();
        for (const bool first : {!swapped, swapped})
        {
            const uint32_t pair = first ? star.Connect(1, 2) : star.Connect(3, 4);
            star.fabric->SetJitterSeries(pair, first ? 70 : 80, 3);
            star.fabric->Send(pair, 4096, PicoSeconds(0), first ? 1 : 2);
        }
        return star.Run();
    }

    void
    DoRun() override
    {
        const std::map<uint64_t, Outcome> two = Two(false);
        NS_TEST_EXPECT_MSG_EQ((two == Two(true)), true, "order of queue pairs");
        NS_TEST_EXPECT_MSG_EQ((two.at(1) == two.at(2)), false, "series differ");

        Star star(2, 0);
        star.fabric->AssignStreams(1);
        star.fabric->SetAttribute("SendJitter", TimeValue(MicroSeconds(1)));
        star.Build();
        const uint32_t pair = star.Connect(0, 1);
        for (uint64_t i = 0; i < MESSAGES; ++i)
        {
            star.fabric->Send(pair, 100, NanoSeconds(10 * i), i);
        }
        int64_t before = 0;
        for (const auto& [tag, outcome] : star.Run())
        {
            NS_TEST_EXPECT_MSG_GT(outcome.delivered, before, "message " << tag);
            before = outcome.delivered;
        }
    }
};

/** The suite "lockstep-jitter". */
class JitterTestSuite : public TestSuite
{
  public:
    JitterTestSuite()
        : TestSuite("lockstep-jitter", UNIT)
    {
        if (Time::GetResolution() != Time::PS)
        {
            Time::SetResolution(Time::PS);
        }
        AddTestCase(new JitterDrawsTestCase, TestCase::QUICK);
        AddTestCase(new JitterOrderTestCase, TestCase::QUICK);
    }
};

static JitterTestSuite g_jitterTestSuite;
