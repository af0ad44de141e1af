/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_SNAPSHOT_H
#define FABRIC_SNAPSHOT_H

#include "fabric-state.h"

#include <cstdint>
#include <vector>

namespace ns3
{

struct FabricParts;

/**
 * The whole state of a partition relative to the present time and to each queue pair's offset, as
 * numbers: two snapshots are the same if what follows is the same. And beside them what grows from
 * one to the next.
 */
class FabricSnapshot
{
  public:
    /**
     * \param parts those it works with
     */
    explicit FabricSnapshot(FabricParts& parts);

    /** Offsets of a queue pair. */
    struct PairState
    {
        uint32_t index;   //!< queue pair
        int64_t next;     //!< bytes
        int64_t acked;    //!< bytes
        int64_t expected; //!< bytes
    };

    /** What grows from one snapshot to the next. */
    struct Mark
    {
        int64_t time{0};                         //!< ps
        uint64_t key{0};                         //!< FabricState::nextKey
        uint64_t draws{0};                       //!< random numbers drawn
        uint64_t packets{0};                     //!< FabricState::packetCount
        int64_t nextBegin{0};                    //!< ps, earliest start of a message
        std::vector<PairState> pairs;            //!< with messages under way
        std::vector<FabricPortStatistics> ports; //!< its own; of an earlier one only
    };

    /**
     * Takes one.
     * \return false if there is something that does not repeat
     */
    bool
    Save();

    std::vector<int64_t> numbers;     //!< the state
    Mark mark;                        //!< what grows
    std::vector<FabricEvent> pending; //!< events, but for starts of messages

  private:
    bool
    SavePort(uint32_t index);
    void
    SaveLanes(const FabricPort& port);
    bool
    SaveEndpoint(FabricEndpoint& endpoint);
    bool
    SaveUnit(const FabricUnit& unit);
    bool
    SavePair(const FabricQueuePair& pair);
    void
    SaveEvents();
    bool
    IsArrivalPending(const FabricEvent& event) const;

    FabricParts& m_parts; //!< those it works with
    FabricState& m_state; //!< of the Fabric
};

} // namespace ns3

#endif /* FABRIC_SNAPSHOT_H */
