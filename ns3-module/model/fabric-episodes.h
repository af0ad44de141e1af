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
 * Episodes: what a partition does from one idle moment to the next, done once.
 *
 * When nothing is under way, all that matters of the past is whose turn it is at each sender. What
 * follows is then a function of the messages that start: which, when, of what size, and, where one
 * starts at the very moment of something else, what had happened when it was handed over (that
 * decides which of the two comes first). So as long as the messages that start are those of an
 * earlier episode, that episode is followed: what it reported is reported at the same times,
 * without any packet. Messages that start because of earlier ones of the episode count as all
 * others. At its end its counts are added.
 *
 * When a message comes that the episode does not have, or misses one, or something else comes from
 * outside (a failure, another bandwidth), another episode that began in the same way is looked for.
 * If there is none, the episode so far is carried out packet by packet, silently, and goes on from
 * there. So the result is always that of the run without it. The comparison is of the messages
 * themselves, not of a hash.
 */
class FabricEpisodes
{
  public:
    /**
     * \param parts those it works with
     */
    explicit FabricEpisodes(FabricParts& parts);

    /**
     * Nothing is under way: keeps what has been recorded, and follows an earlier episode or begins
     * to record this one.
     * \return whether it follows one
     */
    bool
    Turn();

    /** \return whether an episode is being followed */
    bool
    IsFollowing() const
    {
        return m_script != nullptr;
    }

    /** \return ps of what is reported next, or starts, while one is followed */
    int64_t
    GetNextTime() const;

    /**
     * Goes on following.
     * \param time ps, GetNextTime()
     */
    void
    Follow(int64_t time);

    /**
     * Follows no more: carries out what has happened.
     * \param now ps, the last moment that has been
     */
    void
    Interrupt(int64_t now);

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

    /** Something other than the start of a message is being carried out. */
    void
    NoteEvent()
    {
        m_lastEvent = m_state.now;
        if (m_recording != nullptr && m_lastOpening == m_state.now)
        {
            NoteTogether();
        }
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
        uint32_t endpoint; //!< number
        uint32_t size;     //!< of the round robin
        uint32_t last;     //!< place served last
        uint32_t finished; //!< places of queue pairs that have left

        /** \return whether both are the same */
        bool
        operator==(const Place& other) const
        {
            return endpoint == other.endpoint && size == other.size && last == other.last &&
                   finished == other.finished;
        }
    };

    /** A message that starts in an episode. */
    struct Opening
    {
        int64_t time;               //!< ps, after the first
        int64_t after;              //!< ps, so far it was when it was handed over; -1: not begun
        int64_t bytes;              //!< size
        int64_t window;             //!< of its queue pair
        double rate;                //!< of its queue pair
        uint32_t pair;              //!< its queue pair, NONE if that is its own
        uint32_t slot;              //!< of that in the round robin
        uint32_t trafficClass;      //!< of its data
        bool together;              //!< something else happens at the same time
        std::vector<uint32_t> ways; //!< there and back, if the queue pair is its own

        /** \return whether what follows is the same after both; `together` is looked at here */
        bool
        IsLike(const Opening& other) const
        {
            return time == other.time && (!together || after == other.after) &&
                   bytes == other.bytes && window == other.window && rate == other.rate &&
                   pair == other.pair && slot == other.slot && trafficClass == other.trafficClass &&
                   ways == other.ways;
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

    using Bucket = std::vector<std::unique_ptr<Episode>>; //!< episodes of one hash

    void
    DescribeBegin(uint32_t place, int64_t start, Opening& opening) const;
    uint64_t
    SavePlaces(std::vector<Place>& places, bool all) const;
    void
    NoteTogether();
    void
    Record(int64_t start, uint64_t hash);
    void
    Close();
    /** \return whether the next message that is to start is that of the episode */
    bool
    IsExpected(const Episode& episode, const FabricEvent& event);
    /** \return whether the messages so far are those of an episode */
    bool
    BeganAs(const Episode& episode);
    /** \return whether another episode goes as all has gone up to a time, and then follows it */
    bool
    FindAnother(int64_t time);
    void
    Report(int64_t time);
    void
    Finish();
    void
    CarryOut(int64_t last);

    FabricParts& m_parts;                                 //!< those it works with
    FabricState& m_state;                                 //!< of the partition
    static constexpr std::size_t MOST_OPENINGS = 1 << 20; //!< kept of all episodes

    std::unique_ptr<Episode> m_recording;            //!< the present one, if it is to be kept
    std::vector<FabricPortStatistics> m_recorded;    //!< at its start
    int64_t m_lastOpening{-1};                       //!< ps
    int64_t m_lastEvent{-1};                         //!< ps
    std::unordered_map<uint64_t, Bucket> m_episodes; //!< by hash
    std::size_t m_openings{0};                       //!< of all of them
    uint64_t m_rest{0};                              //!< idle moments to let pass
    uint64_t m_longestRest{256};                     //!< next time so many
    std::size_t m_looked{0};                         //!< openings recorded so far
    std::size_t m_followed{0}; //!< openings told and not carried out after all

    const Episode* m_script{nullptr}; //!< that is followed
    const Bucket* m_bucket{nullptr};  //!< where it is kept
    std::vector<FabricEvent> m_begun; //!< its messages so far, as they were to start
    std::size_t m_reported{0};        //!< outcomes so far
    int64_t m_start{0};               //!< ps
    std::vector<Place> m_places;      //!< reused
    Opening m_opening{};              //!< reused
};

} // namespace ns3

#endif /* FABRIC_EPISODES_H */
