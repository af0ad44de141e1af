/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_UNIT_H
#define FABRIC_UNIT_H

#include <cstdint>
#include <memory>

namespace ns3
{

/**
 * What travels: a data packet, a train of equal data packets that follow each other, or an ACK.
 * Plain data that lies in the rings of ports; no Packet, no metadata, no tags.
 */
struct FabricUnit
{
    /** What it is and what happened to it. */
    enum Flag : uint8_t
    {
        ACK = 1,    //!< an ACK; otherwise data
        CE = 2,     //!< congestion experienced, or echoed by an ACK
        NACK = 4,   //!< an ACK that asks to go back to `sequence`
        REQUEST = 8 //!< data that asks for its ACK
    };

    int64_t sequence;     //!< data: offset of the first byte; ACK: the next byte expected
    int64_t sent;         //!< ps, when its data left the sender
    int64_t tail;         //!< ps, when its last bit came to the present node
    int64_t start;        //!< ps, first bit into the present port (see FabricPort::timed)
    int64_t end;          //!< ps, last bit
    uint64_t key;         //!< order of its arrival among events of the same time
    uint32_t pair;        //!< the queue pair
    uint32_t route;       //!< where the next port stands in the table of routes
    uint32_t wire;        //!< bytes on the wire, headers included
    uint32_t ingress;     //!< port by which it came to the present node, or NO_PORT
    uint32_t payload;     //!< data bytes
    uint32_t telemetry;   //!< its record of in-band telemetry, or none
    uint16_t packets;     //!< 1, or the length of the train
    uint8_t flags;        //!< of Flag
    uint8_t trafficClass; //!< 0 goes first

    static constexpr int64_t NOT_STARTED = INT64_MAX;    //!< waits in a paused port
    static constexpr uint32_t NO_PORT = UINT32_MAX;      //!< it began at this node
    static constexpr uint32_t NO_TELEMETRY = UINT32_MAX; //!< it carries none
};

/**
 * A queue of units that grows and never shrinks; index 0 is the oldest. It holds no memory until
 * the first unit comes.
 */
class FabricRing
{
  public:
    /** \return the number of units */
    uint32_t
    GetSize() const
    {
        return m_size;
    }

    /**
     * \param index 0 for the oldest
     * \return the unit
     */
    FabricUnit&
    operator[](uint32_t index)
    {
        return m_units[(m_head + index) & m_mask];
    }

    /**
     * \param index 0 for the oldest
     * \return the unit
     */
    const FabricUnit&
    operator[](uint32_t index) const
    {
        return m_units[(m_head + index) & m_mask];
    }

    /**
     * \return room for a unit at the end, to be filled
     */
    FabricUnit&
    Append()
    {
        if (m_size == m_capacity)
        {
            Grow();
        }
        return m_units[(m_head + m_size++) & m_mask];
    }

    /**
     * Makes room before a unit; those from there on move one place on. Costs the units before that
     * place or those after it, whichever are fewer.
     * \param index 0 for the oldest, GetSize() for the end
     * \return room for a unit, to be filled
     */
    FabricUnit&
    Insert(uint32_t index)
    {
        Append();
        if (index < m_size / 2)
        {
            m_head = (m_head - 1) & m_mask;
            for (uint32_t i = 0; i < index; ++i)
            {
                (*this)[i] = (*this)[i + 1];
            }
        }
        else
        {
            for (uint32_t i = m_size - 1; i > index; --i)
            {
                (*this)[i] = (*this)[i - 1];
            }
        }
        return (*this)[index];
    }

    /** Drops the oldest unit. */
    void
    RemoveFirst()
    {
        m_head = (m_head + 1) & m_mask;
        --m_size;
    }

  private:
    /** Doubles the room. */
    void
    Grow()
    {
        const uint32_t capacity = m_capacity == 0 ? 4 : m_capacity * 2;
        std::unique_ptr<FabricUnit[]> units(new FabricUnit[capacity]);
        for (uint32_t i = 0; i < m_size; ++i)
        {
            units[i] = m_units[(m_head + i) & m_mask];
        }
        m_units = std::move(units);
        m_head = 0;
        m_capacity = capacity;
        m_mask = capacity - 1;
    }

    std::unique_ptr<FabricUnit[]> m_units; //!< a power of two of them
    uint32_t m_head{0};                    //!< place of the oldest
    uint32_t m_size{0};                    //!< how many
    uint32_t m_capacity{0};                //!< room
    uint32_t m_mask{0};                    //!< m_capacity - 1
};

} // namespace ns3

#endif /* FABRIC_UNIT_H */
