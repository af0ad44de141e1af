/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * lockstep-packet: the process that holds ns-3. ns-3 is GPL-2.0-only and allows one simulation a
 * process, so it lives in a program of its own, which the rest of Lockstep speaks to from outside.
 */

#include "ns3/data-rate.h"
#include "ns3/nstime.h"
#include "ns3/simulator.h"
#include "ns3/version.h"

#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>

using namespace ns3;

namespace
{

/** How the program ends; the same numbers as lockstep's. */
enum ExitCode
{
    DONE = 0,
    BAD_INPUT = 2
};

constexpr const char* USAGE = "Usage: lockstep-packet --version | --help\n";

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

} // namespace

int
main(int argc, char** argv)
{
    Time::SetResolution(Time::PS);
    const char* argument = argc == 2 ? argv[1] : "";
    if (std::strcmp(argument, "--version") == 0)
    {
        PrintVersion();
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
    return DONE;
}
