/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_PARTITIONS_H
#define FABRIC_PARTITIONS_H

#include "fabric-next-turns.h"
#include "fabric-parts.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace ns3
{

/**
 * Partitions: ports that have nothing to do with each other but through what comes from outside.
 *
 * What ports of one switch do hangs together by its buffer, and a link's two directions by pauses.
 * A host's ports have only messages in common. So ports belong together that are connected without
 * passing through a host: those of each server's NVSwitches, those of the fabric, those of each
 * plane. A queue pair whose way passes through a host (PXN) joins partitions.
 *
 * Each partition has its own events, clock and order of simultaneous events, and skips what repeats
 * by itself (FabricJumps, FabricEpisodes). They are carried out in order of (time, number of the
 * partition), so that the result is the same with and without skipping. Choosing the next one costs
 * O(log partitions) where time passes from one to another.
 */
class FabricPartitions
{
  public:
    FabricPartitions();

    /** \return what all share */
    FabricTables&
    GetTables()
    {
        return m_tables;
    }

    /** \return the samples of all */
    FabricSamples&
    GetSamples()
    {
        return m_samples;
    }

    /** All that waits gets its times, for samples. */
    void
    TimeQueues();

    /** \return the first one, which has everything until Divide() */
    FabricParts&
    First()
    {
        return *m_partitions.front();
    }

    /**
     * All links are there: divides ports.
     * \param looking whether fast-forward may succeed
     * \param lossy whether units may be lost other than by links
     */
    void
    Divide(bool looking, bool lossy);

    /**
     * \param port a port
     * \return the partition that it is in
     */
    FabricParts&
    Of(uint32_t port)
    {
        return *m_partitions[m_tables.partitionOf[port]];
    }

    /**
     * Makes one partition of all those that a way passes through.
     * \param ports of the way
     * \param other another way
     * \return the partition
     */
    FabricParts&
    Join(const std::vector<uint32_t>& ports, const std::vector<uint32_t>& other);

    /**
     * Something comes from outside at this time: a partition that skips is brought to the present.
     * \param parts a partition
     * \param now ps
     */
    void
    Touch(FabricParts& parts, int64_t now);

    /**
     * The events of a partition have changed from outside.
     * \param parts the partition
     */
    void
    Update(const FabricParts& parts);

    /** Brings all to the present, so that counts are those of a run that skips nothing. */
    void
    CatchUp();

    /** \return ps of the earliest event, INT64_MAX if there is none */
    int64_t
    GetNextTime() const;

    /** \return ps of the present event, after a run the last moment of which all has happened */
    int64_t
    GetNow() const
    {
        return m_now;
    }

    /**
     * \return when the simulation is to stop after a completion, ps; INT64_MAX: not yet
     */
    int64_t
    GetStop() const;

    /**
     * Carries out events.
     * \param limit ps that are not reached
     * \return whether it stopped after a completion
     */
    bool
    RunUntil(int64_t limit);

    /**
     * \param member a count of FabricState
     * \return its sum over partitions
     */
    uint64_t
    Sum(uint64_t FabricState::*member) const;

    /** \return ps of simulated time that each partition skipped, of all of them */
    int64_t
    GetSkippedTime() const;

  private:
    std::vector<uint32_t>
    FindComponents() const;
    void
    Merge(FabricParts& into, FabricParts& from);
    /** Runs a partition until it is another's turn. */
    void
    Run(FabricParts& parts, int64_t& limit, bool& stop);
    /** \return whether the run is to end after a completion; limit: no later than then */
    bool
    IsStopping(int64_t& limit) const;
    bool
    IsIdle() const;

    FabricTables m_tables;                                  //!< shared
    FabricSamples m_samples;                                //!< of all
    std::vector<std::unique_ptr<FabricParts>> m_partitions; //!< by number
    FabricNextTurns m_turns;                                //!< when each has its next event
    int64_t m_now{0};                                       //!< ps
    std::size_t m_seen{0};                                  //!< completions looked at
};

} // namespace ns3

#endif /* FABRIC_PARTITIONS_H */
