/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "packet-attributes.h"

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

#include "ns3/object-factory.h"
#include "ns3/string.h"

#include <algorithm>
#include <vector>

using namespace ns3;
using lockstep::Error;
using lockstep::JsonView;

namespace
{

/**
 * ns-3 aborts the process where a text is no value of a type, so that is found out before.
 * \param type of the attribute's value
 * \param text the value
 * \param choices of an enumeration, "A|B|C"
 * \return whether it can be one
 */
bool
CanBe(const std::string& type, const std::string& text, const std::string& choices)
{
    try
    {
        if (type == "ns3::UintegerValue")
        {
            return lockstep::to_int(text).value_or(-1) >= 0;
        }
        if (type == "ns3::DoubleValue")
        {
            return lockstep::to_double(text).has_value();
        }
        if (type == "ns3::BooleanValue")
        {
            return text == "true" || text == "false" || text == "1" || text == "0";
        }
        if (type == "ns3::TimeValue")
        {
            lockstep::parse_time(text);
        }
        if (type == "ns3::DataRateValue")
        {
            lockstep::parse_bandwidth(text);
        }
        if (type == "ns3::EnumValue")
        {
            const auto names = lockstep::split(choices, '|');
            return std::find(names.begin(), names.end(), text) != names.end();
        }
    }
    catch (const Error&)
    {
        return false;
    }
    return type != "ns3::PointerValue";
}

/**
 * "dcqcn" is ns3::DcqcnCongestionControl; "none" is the base class.
 * \param type a TypeId
 * \return its name on the command line, or nothing if it is no congestion control
 */
std::string
CongestionControlName(TypeId type)
{
    const TypeId base = FabricCongestionControl::GetTypeId();
    if (type == base)
    {
        return "none";
    }
    const std::string prefix = "ns3::";
    const std::string suffix = "CongestionControl";
    const std::string name = type.GetName();
    return type.IsChildOf(base)
               ? lockstep::to_lower(
                     name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()))
               : "";
}

} // namespace

void
SetAttributes(Ptr<Object> object, const JsonView& attributes)
{
    const TypeId type = object->GetInstanceTypeId();
    for (const auto& [name, value] : attributes.json().items())
    {
        const std::string& text = attributes[name].string();
        struct TypeId::AttributeInformation information;
        if (!type.LookupAttributeByName(name, &information))
        {
            throw Error(type.GetName() + " has no attribute '" + lockstep::printable(name) + "'")
                .hint("'lockstep-packet --attributes' lists them");
        }
        const Ptr<const AttributeChecker> checker = information.checker;
        const std::string kind = checker->HasUnderlyingTypeInformation()
                                     ? checker->GetUnderlyingTypeInformation()
                                     : checker->GetValueTypeName();
        if (!CanBe(checker->GetValueTypeName(), text, kind) ||
            !object->SetAttributeFailSafe(name, StringValue(text)))
        {
            throw Error("attribute " + name + " of " + type.GetName() + " cannot be '" +
                        lockstep::printable(text) + "'")
                .expected(kind);
        }
    }
}

Ptr<FabricCongestionControl>
MakeCongestionControl(const std::string& name)
{
    std::vector<std::string> names;
    for (uint16_t i = 0; i < TypeId::GetRegisteredN(); ++i)
    {
        const TypeId type = TypeId::GetRegistered(i);
        const std::string known = CongestionControlName(type);
        if (known == name && !name.empty())
        {
            ObjectFactory factory(type.GetName());
            return factory.Create<FabricCongestionControl>();
        }
        if (!known.empty())
        {
            names.push_back(known);
        }
    }
    std::sort(names.begin(), names.end());
    std::string list;
    for (const std::string& known : names)
    {
        list += (list.empty() ? "" : ", ") + known;
    }
    throw Error("there is no congestion control '" + lockstep::printable(name) + "'")
        .expected(list);
}
