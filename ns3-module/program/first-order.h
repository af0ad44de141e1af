/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FIRST_ORDER_H
#define FIRST_ORDER_H

#include <cstdint>
#include <vector>

/** One of the first transfers of a run. */
struct FirstStart
{
    int64_t when;   //!< ps
    int32_t server; //!< of its source
};

/**
 * The order in which SimAI begins its first transfers. They are posted from outside of ns-3's
 * partitions, of which each server is one; a partition sorts what was posted to it by falling time
 * with std::sort and takes it from the back (ns-3's mtp module, LogicalProcess::ReceiveMessages).
 * Among equal times that is the order in which libstdc++'s introsort leaves equal elements: up to
 * 16 stay in order, so that the last goes first; of 64 from 8 GPUs with 8 channels each the first
 * and the fifth GPU begin with channel 0 and go on with 7 to 1, the others go from 7 to 0. From
 * then on transfers begin in the order in which they were posted.
 *
 * \param starts in the order in which they were posted
 * \return their numbers in the order in which they begin; servers come by number
 */
std::vector<uint32_t>
OrderOfFirst(const std::vector<FirstStart>& starts);

#endif /* FIRST_ORDER_H */
