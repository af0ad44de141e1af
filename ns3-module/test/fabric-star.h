/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_STAR_H
#define FABRIC_STAR_H

#include "ns3/fabric.h"
#include "ns3/simulator.h"

#include <cstdint>
#include <map>
#include <vector>

namespace ns3
{

/** When a message left and when it was delivered, in ps. */
struct Outcome
{
    int64_t sent{-1};      //!< last bit has left
    int64_t delivered{-1}; //!< all is there

    /** \return whether two outcomes are the same */
    bool
    operator==(const Outcome& other) const
    {
        return sent == other.sent && delivered == other.delivered;
    }
};

/** A star: hosts around one switch, 400 Gbps and 500 ns a link; and what is sent over it. */
class Star
{
  public:
    /**
     * \param hosts number of hosts
     * \param switches switches in a row between host 0 and the others
     */
    explicit Star(uint32_t hosts, uint32_t switches = 1)
        : m_hosts(hosts),
          m_switches(switches)
    {
        fabric = CreateObject<Fabric>();
    }

    ~Star()
    {
        fabric->Dispose();
        Simulator::Destroy();
    }

    /** Builds the links; call after attributes are set. */
    void
    Build()
    {
        for (uint32_t i = 0; i < m_hosts; ++i)
        {
            fabric->AddNode(Fabric::HOST);
        }
        for (uint32_t i = 0; i < m_switches; ++i)
        {
            fabric->AddNode(Fabric::SWITCH);
        }
        if (m_switches == 0)
        {
            fabric->AddLink(0, 1, rate, delay, 0);
        }
        for (uint32_t i = 0; m_switches > 0 && i < m_hosts; ++i)
        {
            fabric->AddLink(i, i == 0 ? m_hosts : m_hosts + m_switches - 1, rate, delay, 0);
        }
        for (uint32_t i = 1; i < m_switches; ++i)
        {
            fabric->AddLink(m_hosts + i - 1, m_hosts + i, rate, delay, 0);
        }
        fabric->Finish();
    }

    /**
     * \param from host
     * \param to host
     * \return ports from one to the other
     */
    std::vector<uint32_t>
    Way(uint32_t from, uint32_t to) const
    {
        if (m_switches == 0)
        {
            return {from};
        }
        std::vector<uint32_t> ports = {2 * from};
        for (uint32_t i = 1; (from == 0 || to == 0) && i < m_switches; ++i)
        {
            // From host 0 the row is crossed upwards.
            const uint32_t link = m_hosts + (from == 0 ? i : m_switches - i) - 1;
            ports.push_back(2 * link + (from == 0 ? 0 : 1));
        }
        ports.push_back(2 * to + 1);
        return ports;
    }

    /**
     * \param from host
     * \param to host
     * \return a queue pair
     */
    uint32_t
    Connect(uint32_t from, uint32_t to)
    {
        return fabric->AddQueuePair(Way(from, to), Way(to, from), false);
    }

    /** \return what became of the messages, by tag */
    std::map<uint64_t, Outcome>
    Run()
    {
        Simulator::Run();
        std::map<uint64_t, Outcome> outcomes;
        for (const Fabric::Completion& done : fabric->GetCompletions())
        {
            Outcome& outcome = outcomes[done.tag];
            (done.delivered ? outcome.delivered : outcome.sent) = done.time;
        }
        return outcomes;
    }

    Ptr<Fabric> fabric;           //!< the model
    DataRate rate{"400Gbps"};     //!< of every link
    Time delay{NanoSeconds(500)}; //!< of every link

  private:
    uint32_t m_hosts;    //!< number of hosts
    uint32_t m_switches; //!< number of switches
};

} // namespace ns3

#endif /* FABRIC_STAR_H */
