// Random expressions, printed and read back: their values are those of an evaluator that never saw
// the text and counts in 128-bit whole numbers, where the one under test uses doubles.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "generator/model/expression.h"

namespace lockstep::expression_property_test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
__extension__ using Whole = __int128;

constexpr Whole kExact = Whole{1} << 53;
const Variables kVariables{{"heads", 32}, {"hidden", 4096}, {"zero", 0}, {"minus", -7}, {"n2", 3}};
const ExpressionPlace kPlace{"m.yaml", 7, "out"};

enum class Failure { kNone, kZero, kLarge };

struct Outcome {
  Whole value = 0;
  Failure failure = Failure::kNone;
};

/// An operator or function of whole numbers and how it is written.
struct Node {
  std::string op;  ///< "" for a leaf, "neg", "+", "==", "min", "if", …
  std::string leaf;
  Whole value = 0;  ///< of a leaf
  std::vector<std::unique_ptr<Node>> children;
};

int precedence(const Node& node) {
  if (node.op == "==" || node.op == "!=" || node.op == "<" || node.op == "<=" || node.op == ">" ||
      node.op == ">=") {
    return 0;
  }
  if (node.op == "+" || node.op == "-") {
    return 1;
  }
  return node.op == "*" || node.op == "//" || node.op == "%" ? 2 : 3;
}

std::unique_ptr<Node> random_tree(Rng& rng, int depth) {
  auto node = std::make_unique<Node>();
  if (depth == 0 || rng.below(6) == 0) {
    if (rng.below(3) == 0) {
      auto variable = kVariables.begin();
      std::advance(variable, static_cast<std::ptrdiff_t>(rng.below(kVariables.size())));
      node->leaf = variable->first;
      node->value = static_cast<Whole>(variable->second);
    } else {
      const auto value =
          static_cast<std::int64_t>(rng.below(rng.below(6) == 0 ? 4'000'000'000'000'000 : 9));
      node->leaf = fmt::format("{}", value);
      node->value = value;
    }
    return node;
  }
  static const std::vector<std::string> kOps{"+",  "-",   "*",   "//",       "%",       "+",  "*",
                                             "==", "!=",  "<",   "<=",       ">",       ">=", "neg",
                                             "if", "min", "max", "ceil_div", "round_up"};
  node->op = kOps[rng.below(kOps.size())];
  const std::size_t children = node->op == "neg"                        ? 1
                               : node->op == "if"                       ? 3
                               : node->op == "min" || node->op == "max" ? 1 + rng.below(3)
                                                                        : 2;
  for (std::size_t i = 0; i < children; ++i) {
    node->children.push_back(random_tree(rng, depth - 1));
  }
  return node;
}

std::string print(Rng& rng, const Node& node);

/// With parentheses where they are needed, and now and then where not.
std::string print_at(Rng& rng, const Node& node, int lowest) {
  const std::string text = print(rng, node);
  return precedence(node) < lowest || rng.below(8) == 0 ? "(" + text + ")" : text;
}

std::string print(Rng& rng, const Node& node) {
  const std::string blank = rng.below(2) == 0 ? " " : "";
  if (node.op.empty()) {
    return node.leaf;
  }
  if (node.op == "neg") {
    return "-" + blank + print_at(rng, *node.children[0], 3);
  }
  if (precedence(node) < 3) {
    // Left-associative; comparisons are not chained.
    const int level = precedence(node);
    return print_at(rng, *node.children[0], level == 0 ? 1 : level) + blank + node.op + blank +
           print_at(rng, *node.children[1], level + 1);
  }
  std::string text = node.op + blank + "(";
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    text += (i == 0 ? "" : "," + blank) + print(rng, *node.children[i]);
  }
  return text + blank + ")";
}

Whole floor_div(Whole a, Whole b) {
  const Whole quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Outcome checked(Whole value) {
  return value > kExact || value < -kExact ? Outcome{0, Failure::kLarge} : Outcome{value};
}

Outcome value_of(const Node& node) {
  if (node.op.empty()) {
    return {node.value};
  }
  if (node.op == "if") {
    const Outcome condition = value_of(*node.children[0]);
    return condition.failure != Failure::kNone
               ? condition
               : value_of(*node.children[condition.value != 0 ? 1 : 2]);
  }
  std::vector<Whole> values;
  for (const auto& child : node.children) {
    const Outcome outcome = value_of(*child);
    if (outcome.failure != Failure::kNone) {
      return outcome;
    }
    values.push_back(outcome.value);
  }
  const Whole a = values.empty() ? Whole{0} : values.front();
  if (node.op == "neg") {
    return {-a};
  }
  if (node.op == "min" || node.op == "max") {
    Whole best = a;
    for (const Whole value : values) {
      best = (node.op == "min") == (value < best) ? value : best;
    }
    return {best};
  }
  const Whole b = values.back();
  if (node.op == "+" || node.op == "-") {
    return checked(node.op == "+" ? a + b : a - b);
  }
  if (node.op == "*") {
    return checked(a * b);
  }
  if (precedence(node) == 0) {
    return {node.op == "=="   ? a == b
            : node.op == "!=" ? a != b
            : node.op == "<"  ? a < b
            : node.op == "<=" ? a <= b
            : node.op == ">"  ? a > b
                              : a >= b};
  }
  if (b == 0) {
    return {0, Failure::kZero};
  }
  if (node.op == "//") {
    return checked(floor_div(a, b));
  }
  if (node.op == "%") {
    return checked(a - floor_div(a, b) * b);
  }
  const Whole up = -floor_div(-a, b);  // ceil_div, round_up
  return checked(node.op == "ceil_div" ? up : up * b);
}

/// The message of the error, or nothing.
std::optional<std::string> failure(const std::string& text) {
  try {
    evaluate(text, kVariables, kPlace);
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

TEST(ExpressionProperty, ValuesAreThoseOfTheTree) {
  Rng rng(1, "expressions");
  int values = 0, zeros = 0, large = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto tree = random_tree(rng, 1 + static_cast<int>(rng.below(6)));
    const std::string text = print(rng, *tree);
    if (text.size() > 4096) {
      continue;
    }
    SCOPED_TRACE(text);
    const Outcome expected = value_of(*tree);
    if (expected.failure == Failure::kNone) {
      ASSERT_EQ(evaluate(text, kVariables, kPlace), static_cast<double>(expected.value));
      ++values;
      continue;
    }
    const std::optional<std::string> message = failure(text);
    ASSERT_TRUE(message.has_value());
    const bool zero = expected.failure == Failure::kZero;
    EXPECT_THAT(*message, HasSubstr(zero ? "division by zero" : "a value beyond 2^53"));
    ++(zero ? zeros : large);
  }
  EXPECT_GT(values, 10'000);
  EXPECT_GT(zeros, 500);
  EXPECT_GT(large, 100);
}

/// Whatever is put before, behind or into an expression that makes none of it is refused, with the
/// place.
TEST(ExpressionProperty, MalformedTextsAreRefused) {
  Rng rng(2, "malformed");
  for (int i = 0; i < 2000; ++i) {
    const auto tree = random_tree(rng, static_cast<int>(rng.below(3)));
    const std::string text = print(rng, *tree);
    for (const std::string& wrong : {text + ")",
                                     "(" + text,
                                     text + " +",
                                     "* " + text,
                                     text + " 7",
                                     text + " ,1",
                                     text + " $",
                                     "(" + text + ")(" + text + ")",
                                     "no_such(" + text + ")",
                                     "min(" + text + ",)",
                                     "if(" + text + ", 1)",
                                     "if(1, " + text + ")",
                                     "ceil_div(" + text + ")",
                                     "round_up(1, 2, " + text + ")",
                                     "no_such + " + text,
                                     text + " // ",
                                     text + " = 1",
                                     "1 < 2 < " + text,
                                     "()" + text,
                                     "1e + " + text,
                                     "1.2.3 + " + text}) {
      const std::optional<std::string> message = failure(wrong);
      ASSERT_TRUE(message.has_value()) << wrong;
      EXPECT_THAT(*message, HasSubstr("m.yaml:7: out: ")) << wrong;
    }
  }
}

/// Any bytes: a value within the bounds, or an Error.
TEST(ExpressionProperty, DamagedTextsAreReadOrRefused) {
  Rng rng(3, "damaged");
  const std::string letters = "0123456789.eE+-*/%()<>=!,_ahinz \t\n\\\"\xff";
  int read = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto tree = random_tree(rng, static_cast<int>(rng.below(4)));
    std::string text = print(rng, *tree);
    for (std::uint64_t k = 0; k <= rng.below(3); ++k) {
      const std::size_t at = rng.below(text.size() + 1);
      if (rng.below(2) == 0 && at < text.size()) {
        text.erase(at, 1);
      } else {
        text.insert(at, 1, letters[rng.below(letters.size())]);
      }
    }
    try {
      const double value = evaluate(text, kVariables, kPlace);
      ASSERT_LE(std::fabs(value), static_cast<double>(kExact)) << text;
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(ExpressionProperty, BoundsOfLengthAndNesting) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '(') + "1" +
           std::string(static_cast<std::size_t>(depth), ')');
  };
  EXPECT_EQ(evaluate(nested(60), kVariables, kPlace), 1);
  EXPECT_THAT(failure(nested(70)).value_or(""), HasSubstr("nesting deeper than 64"));
  EXPECT_THAT(failure(std::string(70, '-') + "1").value_or(""), HasSubstr("nesting deeper"));
  std::string sum = "1";
  while (sum.size() + 2 <= 4096) {
    sum += "+1";
  }
  EXPECT_EQ(evaluate(sum, kVariables, kPlace), 2048);  // 1 + 2047 times "+1"
  EXPECT_THAT(failure(sum + "+11").value_or(""), HasSubstr("at most 4096"));
  EXPECT_THAT(failure("1e400").value_or("1e400"), AnyOf(HasSubstr("no number"), HasSubstr("2^53")));
  EXPECT_THAT(failure("").value_or(""), HasSubstr("missing at the end"));
}

}  // namespace
}  // namespace lockstep::expression_property_test
