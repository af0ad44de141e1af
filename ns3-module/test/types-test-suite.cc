/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * What every type of the module owes to those who use it through ns-3's TypeId.
 */

#include "ns3/fabric-congestion-control.h"
#include "ns3/fabric.h"
#include "ns3/nstime.h"
#include "ns3/test.h"
#include "ns3/type-id.h"

#include <set>
#include <string>

using namespace ns3;

/** Types, attributes and trace sources. */
class TypesTestCase : public TestCase
{
  public:
    TypesTestCase()
        : TestCase("Every type can be made, every attribute and trace source is explained")
    {
    }

  private:
    void
    DoRun() override
    {
        std::set<std::string> names;
        uint32_t controls = 0;
        for (uint16_t i = 0; i < TypeId::GetRegisteredN(); ++i)
        {
            const TypeId type = TypeId::GetRegistered(i);
            if (type.GetGroupName() == "Lockstep")
            {
                names.insert(type.GetName());
                controls += type.IsChildOf(FabricCongestionControl::GetTypeId()) ? 1U : 0U;
                Check(type);
            }
        }
        NS_TEST_EXPECT_MSG_EQ(names.count("ns3::Fabric"), 1, "the fabric");
        NS_TEST_EXPECT_MSG_EQ(names.count("ns3::FabricSimulatorImpl"), 1, "its simulator");
        NS_TEST_EXPECT_MSG_EQ(controls, 6, "congestion controls beside the base class");
        NS_TEST_EXPECT_MSG_EQ(Fabric::GetTypeId().GetTraceSourceN(), 6, "trace sources");
    }

    /**
     * \param type of the module
     */
    void
    Check(TypeId type)
    {
        NS_TEST_EXPECT_MSG_EQ(type.HasConstructor(), true, type.GetName() << " can be made");
        NS_TEST_EXPECT_MSG_EQ(type.HasParent(), true, type.GetName() << " has a parent");
        for (std::size_t i = 0; i < type.GetAttributeN(); ++i)
        {
            const TypeId::AttributeInformation attribute = type.GetAttribute(i);
            const std::string name = type.GetName() + "::" + attribute.name;
            NS_TEST_EXPECT_MSG_GT(attribute.help.size(), 10, name << " has no help");
            NS_TEST_EXPECT_MSG_EQ(attribute.help.back(), '.', name << ": help is a sentence");
            NS_TEST_ASSERT_MSG_NE(attribute.checker, nullptr, name << " has no checker");
            NS_TEST_EXPECT_MSG_EQ(attribute.checker->Check(*attribute.initialValue),
                                  true,
                                  name << ": its default is none of its values");
            NS_TEST_EXPECT_MSG_EQ(attribute.accessor->HasGetter(), true, name << " can be read");
        }
        for (std::size_t i = 0; i < type.GetTraceSourceN(); ++i)
        {
            const TypeId::TraceSourceInformation trace = type.GetTraceSource(i);
            NS_TEST_EXPECT_MSG_GT(trace.help.size(), 10, trace.name << " has no help");
            NS_TEST_EXPECT_MSG_GT(trace.callback.size(), 5, trace.name << " has no signature");
        }
    }
};

/** The suite "lockstep-types". */
class TypesTestSuite : public TestSuite
{
  public:
    TypesTestSuite()
        : TestSuite("lockstep-types", UNIT)
    {
        AddTestCase(new TypesTestCase, TestCase::QUICK);
    }
};

static TypesTestSuite g_typesTestSuite;
