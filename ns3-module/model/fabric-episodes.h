/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_EPISODES_H
#define FABRIC_EPISODES_H

#include "fabric-state.h"

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ns3
{

struct FabricParts;

/**
 * Episodes: what a Fabric does from one idle moment to the next, done once.
 *
 * When nothing is under way, all that matters of the past is whose turn it is at each sender. So if
 * the messages that start now are those of an earlier episode (same queue pairs or ways, same
 * sizes, same times relative to the first, same turns), and nothing else starts before it is over,
 * then it goes as it went: its completions and counts are copied, moved in time. The collectives of
 * layers and microbatches are such repetitions. The comparison is of the whole episode, not of a
 * hash; the result is that of the run without it.
 */
class FabricEpisodes
{
  public:
    /**
     * \param parts those it works with
     */
    explicit FabricEpisodes(FabricParts& parts);

    /** \return whether nothing is under way */
    bool
    IsIdle() const
    {
        return m_state.events.GetSize() == m_state.pendingBegins &&
               m_state.liveMessages == m_state.pendingBegins;
    }

    /**
     * Nothing is under way: keeps what has been recorded, and repeats an earlier episode or begins
     * to record this one. \param limit ps that are not to be reached \return whether one was
     * repeated
     */
    bool
    Turn(int64_t limit);

    /** \return whether an episode is being recorded */
    bool
    IsRecording() const
    {
        return m_recording != nullptr;
    }

    /** Records no more. */
    void
    Stop()
    {
        m_recording = nullptr;
    }

    /** What was recorded holds no more. */
    void
    Clear()
    {
        m_recording = nullptr;
        m_episodes.clear();
        m_openings = 0;
    }

    /**
     * A message begins.
     * \param place of the message
     */
    void
    RecordBegin(uint32_t place);

    /**
     * Something was reported of a message.
     * \param place of the message
     * \param delivered otherwise: sent
     */
    void
    RecordCompletion(uint32_t place, bool delivered);

  private:
    /** Whose turn it is at an endpoint when nothing is under way. */
    struct Place
    {
        uint32_t size;     //!< of the round robin
        uint32_t last;     //!< place served last
        uint32_t finished; //!< places of queue pairs that have left

        /** \return whether both are the same */
        bool
        operator==(const Place& other) const
        {
            return size == other.size && last == other.last && finished == other.finished;
        }
    };

    /** A message that starts in an episode. */
    struct Opening
    {
        int64_t time;               //!< ps, after the first
        int64_t bytes;              //!< size
        int64_t window;             //!< of its queue pair
        double rate;                //!< of its queue pair
        uint32_t pair;              //!< its queue pair, NONE if that is its own
        uint32_t slot;              //!< of that in the round robin
        uint32_t trafficClass;      //!< of its data
        std::vector<uint32_t> ways; //!< there and back, if the queue pair is its own

        /** \return whether both are the same */
        bool
        operator==(const Opening& other) const
        {
            return time == other.time && bytes == other.bytes && window == other.window &&
                   rate == other.rate && pair == other.pair && slot == other.slot &&
                   trafficClass == other.trafficClass && ways == other.ways;
        }
    };

    /** What happened to a message of an episode. */
    struct Outcome
    {
        int64_t time;     //!< ps, after the start
        uint32_t ordinal; //!< which message
        bool delivered;   //!< otherwise: sent
    };

    /** What a port carried in an episode. */
    struct Carried
    {
        uint32_t port;  //!< number
        uint64_t bytes; //!< sent
        uint64_t units; //!< sent
    };

    /** From one idle moment to the next. */
    struct Episode
    {
        std::vector<Place> before;     //!< at its start
        std::vector<Place> after;      //!< at its end
        std::vector<Opening> openings; //!< in order
        std::vector<Outcome> outcomes; //!< in order
        std::vector<Carried> carried;  //!< ports that carried something
        uint64_t hash{0};              //!< of `before` and the first opening
        uint64_t key{0};               //!< keys drawn
        uint64_t draws{0};             //!< FabricState::draws at its start
        uint64_t packets{0};           //!< sent
        int64_t start{0};              //!< ps
        int64_t end{0};                //!< ps, last event after the start
    };

    void
    DescribeBegin(const FabricMessage& message, int64_t time, Opening& opening) const;
    uint64_t
    SavePlaces(std::vector<Place>& places) const;
    bool
    Open(int64_t limit);
    void
    Close();
    bool
    Repeat(const Episode& episode, int64_t limit);
    /** Takes the starts from the queue if all are the same and no other comes too soon. */
    bool
    TakeOpenings(const Episode& episode);
    void
    CopyOutcomes(const Episode& episode, int64_t start);

    FabricParts& m_parts;                                 //!< those it works with
    FabricState& m_state;                                 //!< of the Fabric
    static constexpr std::size_t MOST_OPENINGS = 1 << 20; //!< kept of all episodes

    std::unique_ptr<Episode> m_recording;         //!< the present one, if it is to be kept
    std::vector<FabricPortStatistics> m_recorded; //!< at its start
    std::unordered_map<uint64_t, std::vector<std::unique_ptr<Episode>>> m_episodes; //!< by hash
    std::size_t m_openings{0};          //!< of all of them
    std::vector<Place> m_places;        //!< reused
    Opening m_opening;                  //!< reused
    std::vector<FabricEvent> m_pending; //!< reused
};

} // namespace ns3

#endif /* FABRIC_EPISODES_H */
