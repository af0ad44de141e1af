// Each case is a misuse of units or ids that must not compile; without a case the file must.
#include "base/ids.h"
#include "base/units.h"

namespace lockstep {

constexpr Time kTime = Time::us(3);
constexpr Bytes kBytes(64);
constexpr Bandwidth kRate = Bandwidth::gbps(400);

#if defined(CASE_bytes_plus_time)
auto wrong = kBytes + kTime;
#elif defined(CASE_bandwidth_plus_bytes)
auto wrong = kRate + kBytes;
#elif defined(CASE_bandwidth_plus_bandwidth)
auto wrong = kRate + kRate;  // links in parallel are a decision, not a sum
#elif defined(CASE_time_times_time)
auto wrong = kTime * kTime;
#elif defined(CASE_bytes_over_bandwidth)
auto wrong = kBytes / kRate;  // transfer_time() says how it rounds
#elif defined(CASE_time_plus_number)
auto wrong = kTime + 3;
#elif defined(CASE_time_less_than_bytes)
bool wrong = kTime < kBytes;
#elif defined(CASE_rank_equals_node)
bool wrong = RankId(1) == NodeId(1);
#elif defined(CASE_time_from_number)
Time wrong = 3;
#elif defined(CASE_number_from_time)
long wrong = kTime;
#elif defined(CASE_bytes_from_number)
Bytes wrong = 3;
#elif defined(CASE_link_from_port)
LinkId wrong = PortId(3);
#else
static_assert(kTime + Time::ns(1) == Time::ps(3'001'000));
static_assert(kBytes * 3 == Bytes(192));
static_assert(kTime / Time::us(2) == 1.5);
static_assert(kRate == Bandwidth::bits_per_second(400'000'000'000));
static_assert(RankId(1) < RankId(2) && !LinkId().valid());
#endif

}  // namespace lockstep
