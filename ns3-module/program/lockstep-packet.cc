/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * lockstep-packet: the process that holds ns-3. ns-3 is GPL-2.0-only and allows one simulation a
 * process, so it lives in a program of its own, which the rest of Lockstep speaks to from outside.
 */

#include "base/heap.h"
#include "packet-server.h"

#include "ns3/data-rate.h"
#include "ns3/global-value.h"
#include "ns3/nstime.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/version.h"

#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <unistd.h>

using namespace ns3;

namespace
{

/** How the program ends; the same numbers as lockstep's. */
enum ExitCode
{
    DONE = 0,
    BAD_INPUT = 2
};

constexpr const char* USAGE =
    "Usage: lockstep-packet --version | --attributes | --serve | --help\n"
    "  --attributes  what the models can be told, with defaults\n"
    "  --serve       speaks to 'lockstep simulate --engine packet' (which starts it)\n";

/**
 * What lockstep's doctor asks for. The last line is computed by ns-3 itself: were its clock coarser
 * than a picosecond, the figure would not be 81920.
 */
void
PrintVersion()
{
    const Time longest = PicoSeconds(std::numeric_limits<int64_t>::max());
    const Time transmission = DataRate("400Gbps").CalculateBytesTxTime(4096);
    std::cout << "lockstep-packet " << LOCKSTEP_VERSION << " (GPL-2.0-only)\n"
              << "  ns-3             " << Version::Major() << "." << Version::Minor() << "\n"
              << "  time resolution  1 ps, up to " << static_cast<int>(longest.GetDays())
              << " days\n"
              << "  4096 B, 400Gbps  " << transmission.GetPicoSeconds() << " ps" << std::endl;
}

/** The attributes of the module's types. */
void
PrintAttributes()
{
    for (uint16_t i = 0; i < TypeId::GetRegisteredN(); ++i)
    {
        const TypeId type = TypeId::GetRegistered(i);
        if (type.GetGroupName() != "Lockstep")
        {
            continue;
        }
        std::cout << type.GetName() << "\n";
        for (std::size_t a = 0; a < type.GetAttributeN(); ++a)
        {
            const TypeId::AttributeInformation attribute = type.GetAttribute(a);
            std::cout << "  " << attribute.name << " = "
                      << attribute.initialValue->SerializeToString(attribute.checker) << "\n      "
                      << attribute.help << "\n";
        }
    }
}

} // namespace

int
main(int argc, char** argv)
{
    Time::SetResolution(Time::PS);
    GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::FabricSimulatorImpl"));
    const char* argument = argc == 2 ? argv[1] : "";
    int code = DONE;
    if (std::strcmp(argument, "--version") == 0)
    {
        PrintVersion();
    }
    else if (std::strcmp(argument, "--attributes") == 0)
    {
        PrintAttributes();
    }
    else if (std::strcmp(argument, "--serve") == 0)
    {
        lockstep::grow_heap(std::size_t{64} << 20); // those of a few hundred GPUs fit
        // Never deleted: to give back piece by piece what goes with the process takes time.
        static auto* const server = new PacketServer(STDIN_FILENO, STDOUT_FILENO);
        code = server->Serve();
    }
    else if (std::strcmp(argument, "--help") == 0)
    {
        std::cout << USAGE << std::flush;
    }
    else
    {
        std::cerr << "lockstep-packet: one flag is expected\n  hint: " << USAGE;
        return BAD_INPUT;
    }
    Simulator::Destroy();
    if (!std::cout)
    {
        std::cerr << "lockstep-packet: standard output: cannot write\n";
        return BAD_INPUT;
    }
    return code;
}
