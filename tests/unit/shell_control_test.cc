// What of a shell script runs, and what it leaves: pipes, answers, exits, functions, declarations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/megatron_args/shell_script.h"
#include "tests/unit/shell_script_words.h"

namespace lockstep::shell_script_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ShellControl, MembersOfAPipeKeepTheirVariables) {
  EXPECT_THAT(words_of("A=1; echo x | while read l; do A=2; done; run $A"),
              ElementsAre("echo", "x", "run", "1"));
  EXPECT_THAT(words_of("for i in 1 2; do echo x | while read l; do :; done; run $i; done"),
              ElementsAre("echo", "x", "run", "1", "echo", "x", "run", "2"));
  EXPECT_THAT(words_of("f() { A=5; }; A=1; f | cat; run $A; { A=3; run $A; } | cat; run $A"),
              ElementsAre("cat", "run", "1", "run", "3", "cat", "run", "1"));
  EXPECT_THAT(words_of("A=1; A=2 | cat; { A=3; } & run $A"), ElementsAre("cat", "run", "1"));
  EXPECT_THAT(words_of("false | true && run a; true | false || run b"),
              ElementsAre("run", "b"));  // pipefail may be on
}

TEST(ShellControl, WhatCommandsAnswer) {
  for (const std::string yes :
       {"{ true; }", "( exit 0 )", "if false; then :; fi", "if true; then true; else false; fi",
        "case x in y) false;; esac", "for i in; do false; done", "while false; do false; done",
        "f() { return $?; }; true; f", "f() { true; return; }; f", "f() { return 256; }; f",
        "[ -n $NONE ]", "[[ $NONE -eq 0 ]]", "(( x = 2 ))", "! ! true", "time true",
        "false || ( true )", "[ ! = x ] || true", "A=1"}) {
    EXPECT_THAT(words_of(yes + " && run yes || run no"), ElementsAre("run", "yes")) << yes;
  }
  for (const std::string no :
       {"{ false; }", "( exit 3 )", "if true; then false; fi", "case x in x) false;; esac",
        "for i in 1 2; do false; done", "f() { return $?; }; false; f", "f() { false; return; }; f",
        "f() { return 3; }; f", "f() { eval 'return 1'; true; }; f", "x=0; (( x++ ))", "let 0",
        "export 1=2", "shift", "( [ a = b ] )", "E=; $E \"$E\""}) {
    EXPECT_THAT(words_of(no + " && run yes || run no"), ElementsAre("run", "no")) << no;
  }
}

TEST(ShellControl, AnExitEndsTheScript) {
  const ShellScript script = read_shell_script("run a\nexit 1\npython a.py", "train.sh");
  EXPECT_EQ(script.commands.size(), 1U);
  EXPECT_EQ(script.left_out.why, "the script ends before it");
  EXPECT_THAT(warnings_of(script), ElementsAre(HasSubstr("train.sh:2: the script ends here")));
  EXPECT_THAT(words_of("if [ -z \"$X\" ]; then run usage; exit 1; fi; run a"),
              ElementsAre("run", "usage"));
  EXPECT_THAT(words_of("die() { exit 1; }; true || die; ( die; run no ); bash -c 'exit 1'; run a"),
              ElementsAre("run", "a"));
  EXPECT_THAT(words_of("exec > log; exec run a; run b"), ElementsAre("exec", "run", "a"));
  // Where it depends on a file, a program or a value that is not known the script goes on.
  for (const std::string guard : {"[ -f x ] || exit 1", "pgrep x && exit 1",
                                  "if [ -f x ]; then :; else exit 1; fi", "[ $(f) ] || exit 1"}) {
    const ShellScript goes_on = read_shell_script(guard + "\nrun a", "train.sh");
    EXPECT_EQ(goes_on.commands.back().words.at(0).text, "run") << guard;
    EXPECT_THAT(warnings_of(goes_on).back(), HasSubstr("train.sh:1: whether the 'exit' here ends"))
        << guard;
  }
}

TEST(ShellControl, AFailureEndsTheScriptWhereItIsToldTo) {
  EXPECT_THAT(words_of("set -e; [ 1 = 2 ] && run a; run b; if false; then :; fi; ! true; f() { "
                       "false; run c; }; f || run d; f; run e"),
              ElementsAre("run", "b", "run", "c"));
  EXPECT_THAT(words_of("#!/bin/bash -e\n(false)\nrun a"), IsEmpty());
  EXPECT_THAT(words_of("set -e; set +e; false; run a"), ElementsAre("run", "a"));
}

TEST(ShellControl, AReturnThatMayBeMakesTheRestUndecided) {
  const ShellScript script = read_shell_script(
      "f() {\nif [ $(x) ]; then\nreturn\nfi\nA=2; B=1; }\nA=1; C=1; f; run $A $C", "train.sh");
  EXPECT_NE(script.variables.unknown_in(script.commands.at(0).words.at(1).text), nullptr);
  EXPECT_EQ(script.commands.at(0).words.at(2).text, "1");
  EXPECT_THAT(warnings_of(script), ElementsAre(HasSubstr("train.sh:2: this condition"),
                                               HasSubstr("train.sh:3: whether the function ends")));
}

TEST(ShellControl, CommandsMayBeExpanded) {
  EXPECT_THAT(words_of("S=7b; setup_7b() { T=4; }; setup_$S; run $T"), ElementsAre("run", "4"));
  EXPECT_THAT(words_of("do_it() { \"$@\"; }; f() { T=$1; }; do_it f 8; run $T"),
              ElementsAre("run", "8"));
  EXPECT_THAT(words_of("X=export; $X T=2; run $T; $NONE run a"),
              ElementsAre("run", "2", "run", "a"));
  const ShellScript script =
      read_shell_script("set_a() { T=1; }; T=0; U=0; set_$(hostname); run $T $U", "train.sh");
  EXPECT_NE(script.variables.unknown_in(script.commands.back().words.at(1).text), nullptr);
  EXPECT_EQ(script.commands.back().words.at(2).text, "0");
  EXPECT_THAT(warnings_of(script), ElementsAre(HasSubstr("train.sh:1: which command")));
}

TEST(ShellControl, FunctionsOfAllKinds) {
  EXPECT_THAT(words_of("f() ( A=2; run $A ); A=1; f; run $A"), ElementsAre("run", "2", "run", "1"));
  EXPECT_THAT(words_of("f() if true; then run a; fi; f; unset -f f; g()\n{\nrun b\n} > log\ng"),
              ElementsAre("run", "a", "run", "b"));
  const ShellScript script = read_shell_script(
      "if [ $(x) ]; then f() { A=1; }; else f() { A=2; }; fi; f; run $A", "train.sh");
  EXPECT_NE(script.variables.unknown_in(script.commands.at(0).words.at(1).text), nullptr);
  EXPECT_THAT(warnings_of(script).back(), HasSubstr("what the function 'f' is here"));
}

TEST(ShellControl, CasesMayFallThrough) {
  EXPECT_THAT(words_of("case x in x) run 1;& y) run 2;; *) run 3;; esac"),
              ElementsAre("run", "1", "run", "2"));
  EXPECT_THAT(words_of("case x in x) run 1;;& y) run 2;; ?) run 3;; *) run 4;; esac"),
              ElementsAre("run", "1", "run", "3"));
}

TEST(ShellControl, DeclarationsAsBashHasThem) {
  EXPECT_THAT(words_of("A=1; f() { local A; run ${A:-none}; A=2; }; f; run $A"),
              ElementsAre("run", "none", "run", "1"));
  EXPECT_THAT(words_of("f() { local A=$1 B=$A; run $A $B; }; A=9; f 3"),
              ElementsAre("run", "3", "9"));
  EXPECT_THAT(words_of("f() { declare -g A=4; ( local B=2 ); B=3; }; f; run $A $B"),
              ElementsAre("run", "4", "3"));
  EXPECT_THAT(words_of("declare -i N=2+2; N+=3; run $N; export \"A=1\" B='2 3'; run $A \"$B\""),
              ElementsAre("run", "7", "run", "1", "2 3"));
  EXPECT_THAT(words_of("X='A=1 B=2'; export $X; run $A $B; readonly C=3; run $C"),
              ElementsAre("run", "1", "2", "run", "3"));
  for (const std::string command :
       {"declare -A A", "f() { local -n r=A; r=2; }; f", "readonly A; A=2", "declare -u A=x",
        "f() { local A; declare -g A=2; }; f; A=3; f", "B=(1 2); unset B[0]; A=${B[0]}",
        "[ $(f) ] && : ${A:=2}", "[ $(f) ] && eval A=2", "[ $(f) ] && B=$((A++))"}) {
    const ShellScript script = read_shell_script("A=1\n" + command + "\nrun $A", "train.sh");
    EXPECT_NE(script.variables.unknown_in(script.commands.back().words.at(1).text), nullptr)
        << command;
  }
  EXPECT_THAT(warnings_of(read_shell_script("\nexport $(cat env)", "train.sh")),
              ElementsAre(HasSubstr("train.sh:2: what 'export' sets here is not known")));
}

TEST(ShellControl, ProgramsSeeWhatIsExported) {
  EXPECT_THAT(words_of("A=1; export B=2; C=3 bash -c 'run ${A:-no} $B $C; B=4'; run $B"),
              ElementsAre("run", "no", "2", "3", "run", "2"));
  EXPECT_THAT(words_of("set -- p; bash -c 'run $# $1' name a; set -a; A=1; sh -c 'run $A'"),
              ElementsAre("run", "1", "a", "run", "1"));
}

}  // namespace
}  // namespace lockstep::shell_script_test
