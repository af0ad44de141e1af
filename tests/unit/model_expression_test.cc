#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/model/expression.h"

namespace lockstep::model_expression_test {
namespace {

using ::testing::HasSubstr;

const Variables kVariables{{"heads", 32}, {"hidden", 4096}, {"kv_heads", 8}, {"zero", 0}};
const ExpressionPlace kPlace{"m.yaml", 7, "blocks[0][1].out"};

double value(std::string_view text) { return evaluate(text, kVariables, kPlace); }

std::string failure(std::string_view text) {
  try {
    evaluate_whole(text, kVariables, kPlace, 1, 1'000'000);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ModelExpression, PrecedenceAndGroups) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("10 - 4 - 3"), 3);
  EXPECT_EQ(value("16 / 4 / 2"), 2);
  EXPECT_EQ(value("-2 * -3"), 6);
  EXPECT_EQ(value("1.5e3 + .5"), 1500.5);
  EXPECT_EQ(value("(heads + 2 * kv_heads) * (hidden / heads)"), 6144);  // 48 * 128
}

TEST(ModelExpression, DivisionRoundsDownAsInPython) {
  EXPECT_EQ(value("7 // 2"), 3);
  EXPECT_EQ(value("-7 // 2"), -4);
  EXPECT_EQ(value("7 % 3"), 1);
  EXPECT_EQ(value("-7 % 3"), 2);
  EXPECT_EQ(value("7 % -3"), -2);
}

TEST(ModelExpression, Functions) {
  EXPECT_EQ(value("min(3, 1, 2) + max(3, 1)"), 4);
  EXPECT_EQ(value("ceil_div(50257, 128)"), 393);    // 392.6
  EXPECT_EQ(value("round_up(50257, 128)"), 50304);  // 393 * 128
  EXPECT_EQ(value("if(heads >= 32, 1, 2)"), 1);
  EXPECT_EQ(value("if(heads != 32, 1, 2)"), 2);
  EXPECT_EQ(value("if(zero, 1 / zero, 5)"), 5);  // what is not chosen is not worked out
  EXPECT_EQ(value("(1 < 2) + (2 <= 2) + (3 > 4) + (4 == 4)"), 3);
}

TEST(ModelExpression, TypicalSlipsGetAHint) {
  EXPECT_THAT(failure("2 heads"), HasSubstr("an operator is missing, such as *"));
  EXPECT_THAT(failure("4096k"), HasSubstr("an operator is missing"));
  EXPECT_THAT(failure("4,096"), HasSubstr("without separators"));
  EXPECT_THAT(failure("2**13"), HasSubstr("there are no powers"));
}

TEST(ModelExpression, ErrorsNamePlaceAndCause) {
  const std::string unknown = failure("haeds * 2");
  EXPECT_THAT(unknown, HasSubstr("m.yaml:7"));
  EXPECT_THAT(unknown, HasSubstr("blocks[0][1].out"));
  EXPECT_THAT(unknown, HasSubstr("unknown variable 'haeds'"));
  EXPECT_THAT(unknown, HasSubstr("did you mean heads?"));
  EXPECT_THAT(failure("cel_div(1, 2)"), HasSubstr("did you mean ceil_div?"));
  EXPECT_THAT(failure("if(zero, typo, 1)"), HasSubstr("unknown variable 'typo'"));
  EXPECT_THAT(failure("1 / zero"), HasSubstr("division by zero"));
  EXPECT_THAT(failure("5 % zero"), HasSubstr("division by zero"));
  EXPECT_THAT(failure("1e15 * 10"), HasSubstr("beyond 2^53"));
  EXPECT_THAT(failure("1e400"), HasSubstr("'1e400' is no number"));
  EXPECT_THAT(failure("7 / 2"), HasSubstr("no whole number"));
  EXPECT_THAT(failure("zero"), HasSubstr("from 1 to 1000000"));
  EXPECT_THAT(failure("2000000"), HasSubstr("out of range"));
  EXPECT_THAT(failure("(1 + 2"), HasSubstr("')' is missing"));
  EXPECT_THAT(failure("1 2"), HasSubstr("column 3"));
  EXPECT_THAT(failure(""), HasSubstr("is missing at the end"));
  EXPECT_THAT(failure("ceil_div(1)"), HasSubstr("takes 2 values, not 1"));
}

TEST(ModelExpression, NestingAndLengthAreBounded) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '(') + "1" + std::string(depth, ')');
  };
  EXPECT_EQ(value(nested(63)), 1);
  EXPECT_THAT(failure(nested(64)), HasSubstr("nesting deeper than 64"));
  EXPECT_THAT(failure(std::string(2000, '-') + "1"), HasSubstr("nesting deeper than 64"));
  EXPECT_THAT(failure(std::string(5000, '1')), HasSubstr("5000 characters"));
}

TEST(ModelExpression, VariableNames) {
  EXPECT_TRUE(is_variable_name("kv_heads2"));
  EXPECT_FALSE(is_variable_name("2heads"));
  EXPECT_FALSE(is_variable_name("min"));
  EXPECT_FALSE(is_variable_name("a-b"));
  EXPECT_FALSE(is_variable_name(""));
}

}  // namespace
}  // namespace lockstep::model_expression_test
