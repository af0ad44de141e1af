#include "base/student_t.h"

#include <boost/math/distributions/students_t.hpp>

namespace lockstep {

double student_t_95(std::size_t n) {
  return n < 2 ? 0 : quantile(boost::math::students_t(static_cast<double>(n - 1)), 0.975);
}

}  // namespace lockstep
