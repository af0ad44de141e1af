/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_POOLS_H
#define FABRIC_POOLS_H

#include "fabric-queue-pair.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ns3
{

/** The ways of all queue pairs: rows of ports, each closed by END. */
class FabricRoutes
{
  public:
    static constexpr uint32_t END = UINT32_MAX; //!< the unit is where it goes

    /**
     * \param place in the table
     * \return the port there, or END
     */
    const uint32_t&
    operator[](std::size_t place) const
    {
        return m_ports[place];
    }

    /**
     * \param ports of a way, in order
     * \return its place
     */
    uint32_t
    Allocate(const std::vector<uint32_t>& ports)
    {
        const std::size_t hops = ports.size();
        if (m_free.size() <= hops)
        {
            m_free.resize(hops + 1);
        }
        uint32_t place = 0;
        if (m_free[hops].empty())
        {
            place = static_cast<uint32_t>(m_ports.size());
            m_ports.resize(m_ports.size() + hops + 1);
        }
        else
        {
            place = m_free[hops].back();
            m_free[hops].pop_back();
        }
        std::copy(ports.begin(), ports.end(), m_ports.begin() + place);
        m_ports[place + hops] = END;
        return place;
    }

    /**
     * \param place of a way
     * \param hops its length
     */
    void
    Free(uint32_t place, uint32_t hops)
    {
        m_free[hops].push_back(place);
    }

  private:
    std::vector<uint32_t> m_ports;             //!< the table
    std::vector<std::vector<uint32_t>> m_free; //!< places by number of hops
};

/** The telemetry of packets under way. */
class FabricTelemetryPool
{
  public:
    /** \return place of an empty record */
    uint32_t
    Allocate()
    {
        uint32_t place = 0;
        if (m_free.empty())
        {
            place = static_cast<uint32_t>(m_records.size());
            m_records.emplace_back();
        }
        else
        {
            place = m_free.back();
            m_free.pop_back();
        }
        m_records[place].hops = 0;
        return place;
    }

    /**
     * \param place of a record
     */
    void
    Free(uint32_t place)
    {
        m_free.push_back(place);
    }

    /**
     * \param place of a record
     * \return the record
     */
    FabricTelemetry&
    operator[](uint32_t place)
    {
        return m_records[place];
    }

  private:
    std::vector<FabricTelemetry> m_records; //!< by place
    std::vector<uint32_t> m_free;           //!< places to use again
};

} // namespace ns3

#endif /* FABRIC_POOLS_H */
