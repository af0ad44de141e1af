/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
// Links that fail or lose packets for a while.
#include "base/error.h"
#include "base/json.h"
#include "packet-server.h"

#include "ns3/simulator.h"

#include <algorithm>
#include <numeric>

using namespace ns3;
using lockstep::Error;
using lockstep::JsonView;

void
PacketServer::ScheduleFaults(const JsonView& faults, int64_t rerouting)
{
    const auto at = [](int64_t time) { return PicoSeconds(static_cast<uint64_t>(time)); };
    for (std::size_t i = 0; i < faults.size(); ++i)
    {
        const int64_t a = faults[i][0].integer(0, INT32_MAX);
        const int64_t b = faults[i][1].integer(0, INT32_MAX);
        const int64_t from = faults[i][2].integer(0, INT64_MAX);
        const int64_t until = faults[i][3].integer(-1, INT64_MAX);
        const double loss = faults[i][4].number();
        std::vector<uint32_t> links;
        for (uint32_t link = 0; link < m_topology.links.size(); ++link)
        {
            const lockstep::Link& ends = m_topology.links[link];
            if ((ends.a.value == a && ends.b.value == b) ||
                (ends.a.value == b && ends.b.value == a))
            {
                links.push_back(link);
                Simulator::Schedule(at(from), &PacketServer::ChangeFault, this, link, loss, true);
                if (until >= 0)
                {
                    Simulator::Schedule(at(until),
                                        &PacketServer::ChangeFault,
                                        this,
                                        link,
                                        loss,
                                        false);
                    m_fabric->ExpectChangesUntil(at(until));
                }
            }
        }
        if (links.empty())
        {
            throw Error("a fault names the link between nodes " + std::to_string(a) + " and " +
                        std::to_string(b))
                .expected("two nodes of the topology that are linked");
        }
        const auto reroute = [this, links](bool down)
        { return [this, links, down] { m_connections->SetDown(links, down); }; };
        if (loss >= 1)
        {
            Simulator::Schedule(at(from + rerouting), reroute(true));
        }
        if (loss >= 1 && until >= 0)
        {
            Simulator::Schedule(at(until + rerouting), reroute(false));
        }
    }
}

void
PacketServer::ChangeFault(uint32_t link, double loss, bool begins)
{
    std::vector<double>& faults = m_losses[link].faults;
    if (begins)
    {
        faults.push_back(loss);
    }
    else
    {
        faults.erase(std::find(faults.begin(), faults.end(), loss));
    }
    ApplyLosses(link);
}

void
PacketServer::ApplyLosses(uint32_t link)
{
    const Losses& losses = m_losses.at(link);
    const double sum = std::accumulate(losses.faults.begin(), losses.faults.end(), losses.change);
    m_fabric->SetLinkLoss(link, std::min(1.0, sum));
}
