/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "first-order.h"

#include <algorithm>
#include <map>

std::vector<uint32_t>
OrderOfFirst(const std::vector<FirstStart>& starts)
{
    std::map<int32_t, std::vector<uint32_t>> posted; // to a server
    for (uint32_t i = 0; i < starts.size(); ++i)
    {
        posted[starts[i].server].push_back(i);
    }
    std::vector<uint32_t> order;
    for (auto& [server, those] : posted)
    {
        std::sort(those.begin(),
                  those.end(),
                  [&starts](uint32_t a, uint32_t b) { return starts[a].when > starts[b].when; });
        order.insert(order.end(), those.rbegin(), those.rend());
    }
    return order;
}
