#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "workloads/simai_txt.h"

namespace lockstep::simai_txt_errors_test {
namespace {

std::string error_of(const std::string& text) {
  try {
    read_simai_txt(text, "w.txt");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const std::string kGoodHeader = "HYBRID_TRANSFORMER_FWD_IN_BCKWD ep: 1\n";
const std::string kGoodLayer = "layer\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tNONE\t0\t1\n";

std::string header_error(const std::string& line) { return error_of(line + "\n1\n" + kGoodLayer); }
std::string layer_error(const std::string& line) {
  return error_of(kGoodHeader + "2\n" + kGoodLayer + line + "\n");
}

const std::string kTwelve =
    "\n  expected: 12 columns: name, dependency, forward compute time, forward comm type, forward "
    "comm size, input-gradient compute time, input-gradient comm type, input-gradient comm size, "
    "weight-gradient compute time, weight-gradient comm type, weight-gradient comm size, update "
    "time";
const std::string kTimes = "\n  expected: a whole number of nanoseconds from 0 to 9223372036854775";
const std::string kSizes = "\n  expected: a whole number of bytes from 0 to 9223372036854775807";
const std::string kTypes =
    "\n  expected: NONE, or ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, BROADCAST with nothing, "
    "_EP or _DP_EP behind";
const std::string kPolicies =
    "\n  expected: HYBRID_TRANSFORMER_FWD_IN_BCKWD, HYBRID_TRANSFORMER, MICRO, DATA, MODEL, "
    "HYBRID_DATA_MODEL, HYBRID_MODEL_DATA, HYBRID_DLRM, HYBRID_DLRM_ENHANCED, HYBRID_CUSTOMIZED, "
    "DISTRIBUTED_INFERENCE";
const std::string kDegrees = "\n  expected: a whole number from 1 to 16777216";

TEST(SimaiTxtErrors, EmptyAndCutOffBeforeTheLayers) {
  const std::string empty =
      "w.txt: the file is empty\n"
      "  expected: a workload: a policy with its keys, the number of layers, one line a layer";
  EXPECT_EQ(error_of(""), empty);
  EXPECT_EQ(error_of(" \r\n\t\n"), empty);
  EXPECT_EQ(error_of(kGoodHeader),
            "w.txt:1: the file ends after its first line\n"
            "  expected: a second line with the number of layers");
}

TEST(SimaiTxtErrors, Policy) {
  EXPECT_EQ(header_error("HYBRID_TRANSFORMER_FWD_IN_BACKWD ep: 1"),
            "w.txt:1:1: policy: unknown parallelism policy 'HYBRID_TRANSFORMER_FWD_IN_BACKWD'" +
                kPolicies + "\n  hint: did you mean HYBRID_TRANSFORMER_FWD_IN_BCKWD?");
  EXPECT_EQ(
      error_of(std::string("\x7F"
                           "ELF\x02\0\0\x01",
                           8)),
      "w.txt:1:1: policy: unknown parallelism policy '\\x7fELF\\x02\\x00\\x00\\x01'" + kPolicies +
          "\n  hint: is this a workload text of SimAI or AICB? A topology goes to --topology");
}

TEST(SimaiTxtErrors, HeaderKeys) {
  EXPECT_EQ(header_error("MICRO ep: 2 ga: 1 ep: 2"),
            "w.txt:1:19: ep: the key stands twice\n  expected: each key at most once");
  EXPECT_EQ(header_error("MICRO pp_comm: 2 pp_comm 3"),
            "w.txt:1:18: pp_comm: the key stands twice\n  expected: each key at most once");
  EXPECT_EQ(header_error("MICRO ep: ga: 1"), "w.txt:1:7: ep: the value is missing" + kDegrees);
  EXPECT_EQ(header_error("MICRO ga: 1 ep:"), "w.txt:1:13: ep: the value is missing" + kDegrees);
  EXPECT_EQ(header_error("MICRO model_parallel_NPU_group: eight"),
            "w.txt:1:33: model_parallel_NPU_group: 'eight' is not a valid value" + kDegrees);
  EXPECT_EQ(header_error("MICRO pp: 0"), "w.txt:1:11: pp: '0' is not a valid value" + kDegrees);
  EXPECT_EQ(header_error("MICRO all_gpus: -8"),
            "w.txt:1:17: all_gpus: '-8' is not a valid value" + kDegrees);
  EXPECT_EQ(header_error("MICRO all_gpus: 1000000000000000000000"),
            "w.txt:1:17: all_gpus: '1000000000000000000000' is not a valid value" + kDegrees);
  EXPECT_EQ(header_error("MICRO ga: 1.5"),
            "w.txt:1:11: ga: '1.5' is not a valid value\n"
            "  expected: a whole number from 0 to 2147483647");
  for (const std::string value : {"-1", "-0.0", "nan", "inf", "1e300", "1MB"}) {
    EXPECT_EQ(header_error("MICRO pp_comm: " + value),
              "w.txt:1:16: pp_comm: '" + value +
                  "' is not a valid value\n  expected: bytes, from 0 to 9007199254740992");
  }
}

TEST(SimaiTxtErrors, ALineOfProseIsNoHeader) {
  std::string line = "MICRO";
  for (int i = 0; i < 100; ++i) {
    line += " x";
  }
  EXPECT_EQ(header_error(line), "no error");
  EXPECT_EQ(header_error(line + " y"),
            "w.txt:1:207: first line: more than 100 unknown words\n"
            "  expected: a policy, then keys with their values\n"
            "  hint: is this a workload text of SimAI or AICB? A topology goes to --topology");
}

TEST(SimaiTxtErrors, CheckpointLists) {
  const std::string layers = "\n  expected: a whole number from 0 to 2147483647";
  EXPECT_EQ(header_error("MICRO checkpoints: 2 0"),
            "w.txt:1:22: checkpoints: the value is missing" + layers);
  EXPECT_EQ(header_error("MICRO checkpoints: 1000000000 0 ep: 1"),
            "w.txt:1:31: checkpoints: the value is missing" + layers);
  EXPECT_EQ(header_error("MICRO checkpoint_initiates: 1 1"),
            "w.txt:1: checkpoint_initiates: there is no layer 1\n  expected: layers from 0 to 0");
}

TEST(SimaiTxtErrors, NumberOfLayers) {
  const auto expected = [](const std::string& word) {
    return "w.txt:2:1: number of layers: '" + word +
           "' is not a valid number of layers\n"
           "  expected: a whole number from 1 to 2147483647, alone on its line";
  };
  for (const std::string word : {"0", "-1", "three", "1 2", "1000000000000000000", "1.0"}) {
    EXPECT_EQ(error_of(kGoodHeader + word + "\n" + kGoodLayer), expected(word));
  }
  // A text that forgot its second line.
  EXPECT_EQ(error_of(kGoodHeader + "a -1\n"), expected("a -1"));
}

TEST(SimaiTxtErrors, LayerCountDisagrees) {
  EXPECT_EQ(error_of(kGoodHeader + "3\n" + kGoodLayer + "\n" + kGoodLayer),
            "w.txt:5: the file ends after 2 of the 3 layers of line 2\n"
            "  expected: as many layer lines as line 2 says");
  EXPECT_EQ(error_of(kGoodHeader + "2147483647\n" + kGoodLayer),
            "w.txt:3: the file ends after 1 of the 2147483647 layers of line 2\n"
            "  expected: as many layer lines as line 2 says");
  EXPECT_EQ(error_of(kGoodHeader + "1\n" + kGoodLayer + kGoodLayer),
            "w.txt:4: more layers than the 1 of line 2\n"
            "  expected: as many layer lines as line 2 says");
}

TEST(SimaiTxtErrors, ColumnCount) {
  EXPECT_EQ(layer_error("layer -1 1 NONE 0 1 NONE 0 1 NONE 0\nlayer"),
            "w.txt:4: the line has 11 columns" + kTwelve);
  EXPECT_EQ(layer_error("layer -1 1 NONE 0 1 NONE 0 1 NONE 0 1 1"),
            "w.txt:4: the line has 13 columns" + kTwelve);
  EXPECT_EQ(error_of(kGoodHeader + "1\nlayer\t-1\t1\tNO"),
            "w.txt:3: the line has 4 columns" + kTwelve +
                "\n  hint: the file ends here; was it cut off?");
}

TEST(SimaiTxtErrors, EachColumnIsNamed) {
  EXPECT_EQ(layer_error("layer x 1 NONE 0 1 NONE 0 1 NONE 0 1"),
            "w.txt:4:7: dependency: 'x' is not a valid value\n"
            "  expected: a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(layer_error("layer -1 1.5 NONE 0 1 NONE 0 1 NONE 0 1"),
            "w.txt:4:10: forward compute time: '1.5' is not a valid value" + kTimes);
  EXPECT_EQ(layer_error("layer -1 1 NONE -1 1 NONE 0 1 NONE 0 1"),
            "w.txt:4:17: forward comm size: '-1' is not a valid value" + kSizes);
  EXPECT_EQ(layer_error("layer -1 1 NONE 0 -1 NONE 0 1 NONE 0 1"),
            "w.txt:4:19: input-gradient compute time: '-1' is not a valid value" + kTimes);
  EXPECT_EQ(
      layer_error("layer -1 1 NONE 0 1 NONE 9223372036854775808 1 NONE 0 1"),
      "w.txt:4:26: input-gradient comm size: '9223372036854775808' is not a valid value" + kSizes);
  EXPECT_EQ(
      layer_error("layer -1 1 NONE 0 1 NONE 0 9223372036854776 NONE 0 1"),
      "w.txt:4:28: weight-gradient compute time: '9223372036854776' is not a valid value" + kTimes);
  EXPECT_EQ(layer_error("layer -1 1 NONE 0 1 NONE 0 1 NONE 64MB 1"),
            "w.txt:4:35: weight-gradient comm size: '64MB' is not a valid value" + kSizes);
  EXPECT_EQ(layer_error("layer -1 1 NONE 0 1 NONE 0 1 NONE 0 nan"),
            "w.txt:4:37: update time: 'nan' is not a valid value" + kTimes);
  EXPECT_EQ(layer_error("la\x01yer -1 1 NONE 0 1 NONE 0 1 NONE 0 1"),
            "w.txt:4:1: name: 'la\\x01yer' has control characters in it\n"
            "  expected: a name without blanks and control characters\n"
            "  hint: is this a text file?");
}

TEST(SimaiTxtErrors, CommunicationTypes) {
  EXPECT_EQ(layer_error("layer -1 1 ALLREDUC 8 1 NONE 0 1 NONE 0 1"),
            "w.txt:4:12: forward comm type: unknown communication type 'ALLREDUC'" + kTypes +
                "\n  hint: did you mean ALLREDUCE?");
  EXPECT_EQ(layer_error("  layer -1 1 NONE 0 1 alltoall_ep 0 1 NONE 0 1"),
            "w.txt:4:23: input-gradient comm type: unknown communication type 'alltoall_ep'" +
                kTypes + "\n  hint: did you mean ALLTOALL_EP?");
  EXPECT_EQ(layer_error("layer -1 1 NONE 0 1 NONE 0 1 GOSSIP 0 1"),
            "w.txt:4:30: weight-gradient comm type: unknown communication type 'GOSSIP'" + kTypes);
  // SimAI takes these for no communication, or for one over no group.
  for (const std::string type : {"ALLREDUCEALLTOALL", "ALLREDUCE_TP", "ALLGATHER_DP", "NONE_EP"}) {
    EXPECT_NE(layer_error("layer -1 1 " + type + " 8 1 NONE 0 1 NONE 0 1").find("unknown comm"),
              std::string::npos);
  }
}

TEST(SimaiTxtErrors, PolicyOfACustomizedLayer) {
  EXPECT_EQ(error_of("HYBRID_CUSTOMIZED\n1\nlayer -1 1 NONE 0 1 NONE 0 1 NONE 0 1 DATE\n"),
            "w.txt:3:39: policy: unknown parallelism policy 'DATE'" + kPolicies +
                "\n  hint: did you mean DATA?");
  EXPECT_EQ(error_of("HYBRID_CUSTOMIZED\n1\n" + kGoodLayer), "w.txt:3: the line has 12 columns" +
                                                                 kTwelve.substr(0, 13) + "13" +
                                                                 kTwelve.substr(15) + ", policy");
}

// Whatever is cut off a good text, the reader says so and does not accept it.
TEST(SimaiTxtErrors, EveryTruncationIsFound) {
  const std::string text =
      kGoodHeader + "2\n" + kGoodLayer +
      "b\t-1\t12\tALLREDUCE\t34\t5\tALLTOALL_EP\t67\t8\tALLGATHER_DP_EP\t90\t11";
  EXPECT_EQ(error_of(text), "no error");
  // The last cut leaves "1" of the last number: nothing is wrong with that file.
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {
    const std::string cut = text.substr(0, size);
    EXPECT_NE(error_of(cut), "no error") << cut;
  }
}

}  // namespace
}  // namespace lockstep::simai_txt_errors_test
