#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace lockstep::metis {

/// One profile file: a model on one type of GPU at one tensor-parallel degree and batch.
struct Profile {
  std::string model_name;        ///< empty where the file does not tell
  std::vector<double> layer_ms;  ///< forward and backward, embedding first, head last
  std::vector<double> layer_mb;
  std::vector<double> layer_bytes;  ///< parameters
  double forward_backward_ms = 0, optimizer_ms = 0, batch_generator_ms = 0;
  /// What the step takes beyond its layers.
  double sync_ms() const;
};

/// ERRORS: Error with file and path; lists of unequal length.
Profile parse_profile(std::string_view text, const std::string& file);

/// A folder of `DeviceType.{TYPE}_tp{T}_bs{B}.json`.
struct ProfileSet {
  std::string folder;
  using Key = std::tuple<std::string, int, std::int64_t>;  ///< type, tp, batch
  std::map<Key, Profile> profiles;
  /// Where optimizer, batch generator and parameters come from: the file asked for, else tp 1 and
  /// batch 1 of the first type by name. (Metis takes whichever its folder lists first.)
  Profile model;
  std::vector<std::string> warnings;  ///< files of models of other names
  const Profile* find(const std::string& type, int tp, std::int64_t batch) const;
};

/// ERRORS: Error if there is none for a type, or they disagree on the number of layers.
ProfileSet read_profiles(const std::string& folder, const std::vector<std::string>& types,
                         std::int64_t layers, const std::string& model_file = "");

}  // namespace lockstep::metis
