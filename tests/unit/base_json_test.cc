#include <cstdint>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/cut_json.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"

namespace lockstep::base_json_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string problem_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string parse_problem(const std::string& text) {
  return problem_of([&] { parse_json(text, "f.json"); });
}

TEST(Json, SyntaxErrorsHaveLineAndColumn) {
  // The second comma is the tenth character of line 2.
  EXPECT_THAT(parse_problem("{\n  \"a\": 1,,\n}"),
              StartsWith("f.json:2:10: this is not valid JSON"));
  EXPECT_THAT(parse_problem(""), StartsWith("f.json:1:1: "));
  EXPECT_THAT(parse_problem("[1, 2"), StartsWith("f.json:1:6: "));
  EXPECT_THAT(parse_problem("{\"a\": nan}"), StartsWith("f.json:1:"));
}

TEST(Json, RefusesADuplicateKeyAtItsDepthOnly) {
  EXPECT_THAT(parse_problem(R"({"a": 1, "b": {"a": 2}, "a": 3})"), HasSubstr("\"a\" stands twice"));
  EXPECT_EQ(parse_problem(R"({"a": 1, "b": [{"a": 2}, {"a": 3}]})"), "no error");
}

// Strings that are values, and quotes and colons within strings, are no keys.
TEST(ParseJson, SaysWhereTheSecondOfTwoKeysStands) {
  EXPECT_THAT(parse_problem("{\"a\": \"b\\\":\\\\\",\n \"c\" : [\"a\", {\"a\": 1}],\n  \"a\": 3}"),
              HasSubstr(":3:3: the key \"a\" stands twice"));
}

TEST(Json, ADepthBombIsRefusedEarly) {
  EXPECT_THAT(parse_problem(std::string(1'000'000, '[')),
              HasSubstr("nested deeper than 64 levels"));
  EXPECT_EQ(parse_problem(std::string(64, '[') + std::string(64, ']')), "no error");
  EXPECT_NE(parse_problem(std::string(65, '[') + std::string(65, ']')), "no error");
}

TEST(CutJson, WhatIsWholeIsClosed) {
  EXPECT_EQ(whole_of_cut_json(R"({"a": [1, {"b": 2, "c)"), R"({"a": [1, {"b": 2}]})");
  EXPECT_EQ(whole_of_cut_json(R"({"a": [1, 23)"), R"({"a": [1]})");
  EXPECT_EQ(whole_of_cut_json(R"({"a": ",]}\"", "b": [)"), R"({"a": ",]}\"", "b": []})");
  EXPECT_EQ(whole_of_cut_json("{\"a"), "{}");
  for (const char* text : {"", "{}", "[1, 2]", "nonsense", "{]", "\"[", "[1]]"}) {
    EXPECT_FALSE(whole_of_cut_json(text)) << text;
  }
}

// Every cut of a document can be read.
TEST(CutJson, EveryPartOfADocumentIsOne) {
  const std::string text =
      R"({"a": {"b": [true, -1.5e3, "\\\"", []], "c": null}, "d": [[1], {"e": "}"}]})";
  for (std::size_t end = 1; end < text.size(); ++end) {
    const auto whole = whole_of_cut_json(text.substr(0, end));
    ASSERT_TRUE(whole) << end;
    EXPECT_EQ(parse_problem(*whole), "no error") << *whole;
  }
}

TEST(Json, NumbersOutOfRangeAreErrors) {
  EXPECT_NE(parse_problem("1e400"), "no error");
  const Json json = parse_json(R"([18446744073709551615, 1.5, "3", -1, 11, 10])", "f.json");
  const JsonView view(json, "f.json");
  for (std::size_t i = 0;
       const char* found : {"18446744073709551615", "1.5", "\"3\"", "-1", "11"}) {
    EXPECT_EQ(
        problem_of([&] { (void)view[i].integer(0, 10); }),
        "f.json: [" + std::to_string(i) + "]: expected a whole number from 0 to 10, not " + found);
    ++i;
  }
  EXPECT_EQ(view[5U].integer(0, 10), 10);
}

TEST(Json, WrongValuesAreNamedByTheirPath) {
  const Json json = parse_json(R"({"links": [{"rate": "400Gbps"}, {"rate": "fast"}]})", "t.json");
  const JsonView links = JsonView(json, "t.json")["links"];
  EXPECT_EQ(links.size(), 2U);
  EXPECT_EQ(links[0]["rate"].parse(parse_bandwidth), Bandwidth::gbps(400));
  EXPECT_THAT(problem_of([&] { (void)links[1]["rate"].parse(parse_bandwidth); }),
              AllOf(StartsWith("t.json: links[1].rate: "), HasSubstr("expected: a bandwidth")));
  EXPECT_THAT(problem_of([&] { (void)links[0]["latency"]; }),
              HasSubstr("links[0]: the field \"latency\" is missing"));
  EXPECT_THAT(problem_of([&] { (void)links[2]; }), HasSubstr("more than 2 elements"));
  EXPECT_THAT(problem_of([&] { (void)links[0].string(); }), HasSubstr("links[0]: expected a text"));
  EXPECT_THAT(problem_of([&] { (void)links[0]["rate"].boolean(); }), HasSubstr("true or false"));
  EXPECT_THAT(problem_of([&] { (void)links[0]["rate"].number(); }), HasSubstr("expected a number"));
}

TEST(Json, PackedArraysReadAsOthers) {
  const std::string text =
      "{\"x\": [1], \"ops\": [{\"a\": 1, \"b\": [5]}, [2, -3], \"t\", null, 1e300], \"y\": "
      "{\"ops\": []}}";
  for (const char* packed : {"", "ops"}) {
    const Json json = parse_json(text, "f.json", packed);
    const JsonView root(json, "f.json");
    std::vector<std::string> found;
    root["ops"].each([&](const JsonView& element) { found.push_back(element.json().dump()); });
    EXPECT_EQ(found, (std::vector<std::string>{"{\"a\":1,\"b\":[5]}", "[2,-3]", "\"t\"", "null",
                                               "1e+300"}));
    int none = 0;
    root["y"]["ops"].each([&](const JsonView&) { ++none; });
    EXPECT_EQ(none, 0);
    EXPECT_EQ(root["x"].size(), 1U);
    EXPECT_EQ(json["ops"].is_binary(), *packed != 0);
    EXPECT_THAT(problem_of([&] {
                  root["ops"].each([](const JsonView& element) { element["a"].integer(0, 9); });
                }),
                StartsWith("f.json: ops[1]: expected an object"));
  }
  EXPECT_THAT(
      problem_of([] { parse_json("{\"ops\": [1, {\"a\": 2, \"a\": 3}]}", "f.json", "ops"); }),
      HasSubstr("\"a\" stands twice"));
}

TEST(Json, ManyKeysAreComparedToo) {
  std::string text = "{";
  for (int i = 0; i < 40; ++i) {
    text += "\"k" + std::to_string(i) + "\": 0, ";
  }
  EXPECT_THAT(parse_problem(text + "\"k3\": 1}"), HasSubstr("\"k3\" stands twice"));
  EXPECT_THAT(parse_problem(text + "\"k39\": 1}"), HasSubstr("\"k39\" stands twice"));
  EXPECT_EQ(parse_json(text + "\"k40\": 1}", "f").size(), 41U);
}

TEST(Json, AnUnknownKeyGetsTheNearestOne) {
  const Json json = parse_json(R"({"gpsu": 8})", "t.json");
  constexpr std::array<std::string_view, 2> kKeys{"gpus", "links"};
  EXPECT_EQ(
      problem_of([&] { JsonView(json, "t.json").allow_keys(kKeys); }),
      "t.json: unknown field \"gpsu\"\n  expected: gpus, links\n  hint: did you mean \"gpus\"?");
}

TEST(Json, TextKeepsTheOrderOfKeysAndMendsBrokenUtf8) {
  EXPECT_EQ(to_text(Json{{"z", 1}, {"a", "x"}}), "{\n  \"z\": 1,\n  \"a\": \"x\"\n}\n");
  EXPECT_EQ(to_text(Json("\xff")), "\"\xEF\xBF\xBD\"\n");
}

}  // namespace
}  // namespace lockstep::base_json_test
