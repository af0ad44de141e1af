/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Eight hosts send 1 MiB each to a ninth through one switch. Any attribute can be set, for example
 *
 *     incast --ns3::DcqcnCongestionControl::Gain=0.0625 --ns3::Fabric::Buffer=4194304
 */

#include "ns3/command-line.h"
#include "ns3/dcqcn-congestion-control.h"
#include "ns3/fabric.h"
#include "ns3/pointer.h"
#include "ns3/simulator.h"

#include <iostream>

using namespace ns3;

int
main(int argc, char** argv)
{
    Time::SetResolution(Time::PS);
    uint32_t senders = 8;
    CommandLine cmd(__FILE__);
    cmd.AddValue("senders", "how many send to host 0", senders);
    cmd.Parse(argc, argv);

    const Ptr<Fabric> fabric = CreateObject<Fabric>();
    fabric->SetAttribute("CongestionControl", PointerValue(CreateObject<DcqcnCongestionControl>()));
    for (uint32_t i = 0; i <= senders; ++i)
    {
        fabric->AddNode(Fabric::HOST);
    }
    const uint32_t leaf = fabric->AddNode(Fabric::SWITCH);
    for (uint32_t i = 0; i <= senders; ++i)
    {
        fabric->AddLink(i, leaf, DataRate("400Gbps"), NanoSeconds(500), 0);
    }
    fabric->Finish();
    for (uint32_t i = 1; i <= senders; ++i)
    {
        // Link i has ports 2 i, towards the switch, and 2 i + 1, back.
        const uint32_t pair = fabric->AddQueuePair({2 * i, 1}, {0, 2 * i + 1}, false);
        fabric->Send(pair, 1 << 20, MicroSeconds(1), i);
    }
    Simulator::Run();
    for (const Fabric::Completion& done : fabric->GetCompletions())
    {
        std::cout << static_cast<double>(done.time) / 1e6 << " us: message " << done.tag
                  << (done.delivered ? " delivered\n" : " sent\n");
    }
    const Fabric::PortStatistics last = fabric->GetPortStatistics(1);
    std::cout << last.units << " packets to host 0, largest queue " << last.maxQueue << " B, "
              << last.marks << " marks\n";
    fabric->Dispose();
    Simulator::Destroy();
    return 0;
}
