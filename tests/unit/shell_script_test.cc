// Shell scripts as they are read, never run: words, variables and what is not known of them.
#include "generator/megatron_args/shell_script.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/megatron_args/shell_arithmetic.h"
#include "generator/megatron_args/shell_pattern.h"
#include "tests/support/sanitized.h"
#include "tests/unit/shell_script_words.h"

namespace lockstep::shell_script_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ShellScript, CutsWordsAsAShellDoes) {
  EXPECT_THAT(words_of("run a 'b  c' \"d e\"f\\ g # not this\n"),
              ElementsAre("run", "a", "b  c", "d ef g"));
  EXPECT_THAT(words_of("run a \\\n  --b \\\r\n c"), ElementsAre("run", "a", "--b", "c"));
  EXPECT_THAT(words_of("run a#b --c=#d"), ElementsAre("run", "a#b", "--c=#d"));
  EXPECT_THAT(words_of("run \"\" ''"), ElementsAre("run", "", ""));
  EXPECT_THAT(words_of("run '$A' \"\\$A\" \\$A"), ElementsAre("run", "$A", "$A", "$A"));
}

TEST(ShellScript, PutsVariablesIn) {
  EXPECT_THAT(words_of("A=3 B='x y'\nrun $A ${A} \"$B\" $B"),
              ElementsAre("run", "3", "3", "x y", "x", "y"));
  EXPECT_THAT(words_of("run ${A:-8} ${A-9} \"${A:-a b}\" ${A:-a b}"),
              ElementsAre("run", "8", "9", "a b", "a", "b"));
  EXPECT_THAT(words_of("A=; run ${A:-8} x${A-9}x ${A:+y} z${A}"),
              ElementsAre("run", "8", "xx", "z"));
  EXPECT_THAT(words_of("B=${A:=5}; run $A $B"), ElementsAre("run", "5", "5"));
  EXPECT_THAT(words_of("A=1\nrun\nexport B=2 C=3\ndeclare -i D=4; run $A$B$C$D"),
              ElementsAre("run", "run", "1234"));
  EXPECT_THAT(words_of("A=a; A+=b; run $A ${#A}"), ElementsAre("run", "ab", "2"));
  EXPECT_THAT(words_of("A=1; unset A; run ${A:-gone}"), ElementsAre("run", "gone"));
}

TEST(ShellScript, AnAssignmentBeforeACommandHoldsForItAlone) {
  EXPECT_THAT(words_of("A=2\nA=4 run $A\nrun $A"), ElementsAre("run", "2", "run", "2"));
  EXPECT_THAT(words_of("A=4 run ${A:-no}\nrun ${A:-no}"), ElementsAre("run", "no", "run", "no"));
  EXPECT_THAT(words_of("A=4 B=$A bash -c 'run $A $B'; run ${B:-no}"),
              ElementsAre("run", "4", "4", "run", "no"));
  EXPECT_THAT(words_of("A=1; A=4 eval 'run $A'; run $A"), ElementsAre("run", "4", "run", "1"));
  EXPECT_THAT(words_of("E=; A=4 $E; run $A"), ElementsAre("run", "4"));  // no command is left
  EXPECT_THAT(words_of("A=4 export B=2; run $B"), ElementsAre("run", "2"));
}

TEST(ShellScript, AStarInQuotesIsOneWord) {
  EXPECT_THAT(words_of("A=(a 'b c')\nrun \"${A[*]}\" \"x${A[*]}\" ${#A[*]} \"${#A[*]}\""),
              ElementsAre("run", "a b c", "xa b c", "2", "2"));
  EXPECT_THAT(words_of("A=()\nrun \"${A[*]}\""), ElementsAre("run", ""));
}

TEST(ShellScript, ArraysKeepTheirElements) {
  EXPECT_THAT(words_of("A=(--x 1\n # no\n  \"--y 2\" )\nrun \"${A[@]}\""),
              ElementsAre("run", "--x", "1", "--y 2"));
  EXPECT_THAT(words_of("A=(--x 1 \"--y 2\")\nrun ${A[@]} ${A[1]} ${#A[@]} $A"),
              ElementsAre("run", "--x", "1", "--y", "2", "1", "3", "--x"));
  EXPECT_THAT(words_of("A=(); A+=(a); B=(b \"${A[@]}\"); A+=(\"${B[@]}\"); run \"${A[@]}\""),
              ElementsAre("run", "a", "b", "a"));
  EXPECT_THAT(words_of("A=(); run \"${A[@]}\" x"), ElementsAre("run", "x"));
}

TEST(ShellScript, WorksOutArithmetic) {
  EXPECT_THAT(words_of("A=6 B=4; run $((A*B)) $(($A / 4 + 2 ** 3 ** 1)) $((A > B ? 1 : 0))"),
              ElementsAre("run", "24", "9", "1"));
  const auto value = [](std::string_view text) {
    return shell_arithmetic(text, "f", 1, [](std::string_view) { return std::nullopt; });
  };
  EXPECT_EQ(value("-7 / 2"), -3);        // bash rounds to zero
  EXPECT_EQ(value("2 ** 3 ** 2"), 512);  // from the right
  EXPECT_EQ(value("1 + 2 << 3"), 24);
  EXPECT_EQ(value("!0 && ~0 == -1"), 1);
  EXPECT_EQ(value("7 % 4 * 2"), 6);
  EXPECT_EQ(value("N + 1"), std::nullopt);
  EXPECT_THROW(value("1 / (3 - 3)"), Error);
  EXPECT_THROW(value("9223372036854775807 + 1"), Error);
  EXPECT_THROW(value("(1"), Error);
  EXPECT_THROW(value("1 2"), Error);
}

TEST(ShellScript, TakesTheBranchesThatWouldRun) {
  EXPECT_THAT(words_of("A=7B\nif [ $A = 7B ]; then run 7; elif true; then run 2; else run 1; fi"),
              ElementsAre("run", "7"));
  EXPECT_THAT(words_of("if [[ \"$A\" == \"x\" || -n $B ]]\nthen run 1\nelse run 2\nfi"),
              ElementsAre("run", "2"));
  EXPECT_THAT(words_of("N=16\nif [[ $N -gt 8 && ! ( $N -ge 32 ) ]]; then run mid; fi"),
              ElementsAre("run", "mid"));
  EXPECT_THAT(words_of("case 13B in 7B|8B) run 7;; 13*) run 13 ;; *) run 0;; esac"),
              ElementsAre("run", "13"));
  EXPECT_THAT(words_of("[ -z \"$A\" ] && A=4\n[ -z \"$A\" ] && A=5\nrun $A"),
              ElementsAre("run", "4"));
  EXPECT_THAT(words_of("false || run a\ntrue || run b\nfalse && run c"), ElementsAre("run", "a"));
  EXPECT_THAT(words_of("((2 > 1)) && run a; { run b; } ; ( run c )"),
              ElementsAre("run", "a", "run", "b", "run", "c"));
}

TEST(ShellScript, LeavesOutWhatItCannotDecide) {
  const ShellScript script = read_shell_script(
      "if [ -f x ]; then A=1; else A=2; fi\nfor i in $(ls); do B=1; done\nf() { C=1; }\nrun "
      "${A:-no} ${B:-no} ${C:-no}\n",
      "train.sh");
  ASSERT_EQ(script.commands.size(), 1U);
  EXPECT_EQ(script.commands[0].words[1].text, "2");
  EXPECT_NE(script.variables.unknown_in(script.commands[0].words[2].text), nullptr);
  EXPECT_EQ(script.commands[0].words[3].text, "no");
  EXPECT_THAT(warnings_of(script), ElementsAre(HasSubstr("train.sh:1: this condition"),
                                               HasSubstr("train.sh:2: a loop")));
}

TEST(ShellScript, ReadsLoopsOverWordsThatAreKnown) {
  EXPECT_THAT(words_of("L='a b'\nfor x in $L c; do\n  run $x\ndone; run $x"),
              ElementsAre("run", "a", "run", "b", "run", "c", "run", "c"));
  EXPECT_THAT(words_of("A=1; for x in \"$@\"; do A=2; done; run $A"), ElementsAre("run", "1"));
  EXPECT_THAT(words_of("set -- p q; for x; do for y in 1 2; do run $x$y; done; done"),
              ElementsAre("run", "p1", "run", "p2", "run", "q1", "run", "q2"));
  EXPECT_THAT(words_of("A=1; while [ $# -gt 0 ]; do A=$1; shift; done; run $A"),
              ElementsAre("run", "1"));
  EXPECT_THAT(words_of("A=1; while getopts t: o; do A=$OPTARG; done; run $A"),
              ElementsAre("run", "1"));
  for (const std::string loop :
       {"while read -r l; do A=2; done < f", "until false; do A=2; done",
        "for x in 1 2; do A=$x; break; done", "for ((i=0; i<2; i++)); do A=2; done",
        "for x in *.sh; do A=$x; done", "for A in {1..4}; do run2; done"}) {
    const ShellScript script = read_shell_script("A=1\n" + loop + "\nrun $A", "train.sh");
    EXPECT_NE(script.variables.unknown_in(script.commands.back().words.at(1).text), nullptr)
        << loop;
    EXPECT_THAT(warnings_of(script), ElementsAre(HasSubstr("train.sh:2: a loop"))) << loop;
  }
}

TEST(ShellScript, ReadsFunctionsWhereTheyAreCalled) {
  EXPECT_THAT(words_of("f() {\n  A=$1; run $# \"$@\" \"$*\"\n}\nA=0; f x 'y z'; run $A ${1:-no}"),
              ElementsAre("run", "2", "x", "y z", "x y z", "run", "x", "no"));
  EXPECT_THAT(words_of("A=1; B=1; function f { local A=2; B=2; run $A; }; f; run $A $B"),
              ElementsAre("run", "2", "run", "1", "2"));
  EXPECT_THAT(words_of("f() { if [ \"$1\" = 8 ]; then A=8; return; fi; A=1; }; f 8; run $A"),
              ElementsAre("run", "8"));
  EXPECT_THAT(words_of("f() { [ \"$1\" = 8 ]; }; f 8 && run yes; f 4 || run no"),
              ElementsAre("run", "yes", "run", "no"));
  const ShellScript script = read_shell_script(
      "A=1; f() { A=2; [ $(x) ] && f; }; if [ $(y) = 1 ]; then f; fi; run $A", "train.sh");
  EXPECT_NE(script.variables.unknown_in(script.commands.at(0).words.at(1).text), nullptr);
  EXPECT_THAT(error_of("f() { f; }; f"), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of("f() { g; g; g; g; }\ng() { h; h; h; h; }\nh() { i; i; i; i; }\n"
                       "i() { j; j; j; j; }\nj() { k; k; k; k; }\nk() { l; l; l; l; }\n"
                       "l() { m; m; m; m; }\nm() { n; n; n; n; }\nn() { o; o; o; o; }\n"
                       "o() { A=1; }\nf"),
              HasSubstr("grow without end"));
}

TEST(ShellScript, TellsOfChainsThatItCannotDecide) {
  const auto warnings = [](std::string_view text) {
    return warnings_of(read_shell_script(text, "train.sh"));
  };
  EXPECT_THAT(warnings("\n[ $(f) = 1 ] && A=1"),
              ElementsAre(HasSubstr("train.sh:2: whether it runs cannot be decided")));
  EXPECT_THAT(warnings("[ -f x ] || A=1"),
              ElementsAre(HasSubstr("train.sh:1: this depends on files: it counts as false")));
  EXPECT_THAT(warnings("[ -f x ] && A=1 || A=2"), SizeIs(1));
  EXPECT_THAT(warnings("A=1; [ $A = 1 ] && [ $A = 2 ] || A=3; cd $(f) || exit 1"), IsEmpty());
  EXPECT_THAT(words_of("A=2; [ -f x ] || A=8; run $A"), ElementsAre("run", "8"));
  EXPECT_THAT(words_of("A=2; [ -f x ] && A=8; run $A"), ElementsAre("run", "2"));
  EXPECT_THAT(words_of("true &&\n  false ||\n  run a"), ElementsAre("run", "a"));
}

TEST(ShellScript, AnswersThatDoNotDependOnWhatIsNotKnown) {
  const auto taken = [](const std::string& condition) {
    return words_of("T=4\nif " + condition + "; then run yes; else run no; fi");
  };
  EXPECT_THAT(taken("[ $(f) = a ] || [ $T = 4 ]"), ElementsAre("run", "yes"));
  EXPECT_THAT(taken("[ $(f) = a ] && [ $T = 2 ]"), ElementsAre("run", "no"));
  EXPECT_THAT(taken("[[ $(f) == a || $T == 4 ]]"), ElementsAre("run", "yes"));
  EXPECT_THAT(taken("[ -f x ] || [ $T = 4 ]"), ElementsAre("run", "yes"));
  EXPECT_THAT(taken("[ $(f) = a ] || [ $T = 2 ]"), IsEmpty());
  EXPECT_THAT(taken("[ \"$T\" = a -o \"$(f)\" = b ]"), IsEmpty());
  EXPECT_THAT(taken("[ \"$T\" = 4 -a \"$(f)\" = b ]"), IsEmpty());
  EXPECT_THAT(taken("[[ $T =~ ^[0-9]+$ ]]"), IsEmpty());
  EXPECT_THAT(taken("[[ -v T ]]"), ElementsAre("run", "yes"));
  EXPECT_THAT(taken("[[ -v X ]]"), ElementsAre("run", "no"));
  EXPECT_THAT(taken("[ -n \"x$(f)\" ]"), ElementsAre("run", "yes"));
}

TEST(ShellScript, ListsWithWhatIsNotKnownHaveNoLength) {
  const auto length = [](const std::string& text) {
    const ShellScript script = read_shell_script(text + "; run ${#A[@]}", "train.sh");
    const std::string& word = script.commands.back().words.at(1).text;
    return script.variables.unknown_in(word) != nullptr ? "?" : word;
  };
  EXPECT_EQ(length("A=($(f))"), "?");
  EXPECT_EQ(length("N=$(f); A=(a b $N)"), "?");
  EXPECT_EQ(length("mapfile -t A < f"), "?");
  EXPECT_EQ(length("A=(\"$(f)\" b)"), "2");
  EXPECT_EQ(length("A=(a $U b)"), "2");
  EXPECT_EQ(length("B=($(f)); A=(\"${B[@]}\")"), "?");
  const std::string job = "#SBATCH --nodes=4\n";
  EXPECT_EQ(length(job + "A=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )"), "4");
  EXPECT_EQ(length(job + "N=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\"); A=($N)"), "4");
  EXPECT_EQ(length(job + "A=($(scontrol show hostnames $OTHER))"), "?");
  EXPECT_EQ(length("A=($(scontrol show hostnames $SLURM_JOB_NODELIST))"), "?");
}

TEST(ShellScript, CommandsOfTheShellSetVariables) {
  EXPECT_THAT(words_of("A=2; read -r A B <<< \"4 2 1\"; run $A $B"),
              ElementsAre("run", "4", "2", "1"));
  EXPECT_THAT(words_of("set -e; set -- 4 'x y'; run $1 \"$2\" $#; shift; run \"$1\" ${#} ${2:-no}"),
              ElementsAre("run", "4", "x y", "2", "run", "x y", "1", "no"));
  EXPECT_THAT(words_of("set -o pipefail -u; run $#"), ElementsAre("run", "0"));
  EXPECT_THAT(words_of("A=(1 2 4); A[1]=8; A[3]=9; A[0]+=5; run ${A[@]}"),
              ElementsAre("run", "15", "8", "4", "9"));
  for (const std::string command :
       {"read -r A", "echo 4 | read A; read A < f", "read A <<< $(f)", "IFS=, read A <<< 1,2",
        "mapfile -t A < f", "readarray A < f", "printf -v A '%d' 4", "A[$(f)]=4", "A=([1]=2)",
        "declare -A A=([a]=1)", "set -- 1; getopts x A", "[ $(f) ] && read A <<< 4",
        "[ $(f) ] && unset A"}) {
    const ShellScript script = read_shell_script("A=1\n" + command + "\nrun $A", "train.sh");
    EXPECT_NE(script.variables.unknown_in(script.commands.back().words.at(1).text), nullptr)
        << command;
  }
}

TEST(ShellScript, WhatMayBeAddedToAListLeavesTheRest) {
  for (const std::string add : {"A+=(--x)", "A=(\"${A[@]}\" --x)"}) {
    const ShellScript script = read_shell_script(
        "A=(--a 1)\nif [ $(f) ]; then " + add + "; fi\nrun ${A[@]} b", "train.sh");
    const std::vector<ShellWord>& words = script.commands.at(0).words;
    ASSERT_EQ(words.size(), 5U) << add;
    EXPECT_EQ(words[2].text, "1");
    const ShellUnknown* const unknown = script.variables.unknown_in(words[3].text);
    ASSERT_NE(unknown, nullptr);
    EXPECT_TRUE(unknown->addition && unknown->what == "$A" && unknown->line == 2);
  }
  for (const std::string add : {"A=\"$A --x\"", "A+=\" --x\"", "A=\"${A} --x\""}) {
    const ShellScript script =
        read_shell_script("A='--a 1'; [ $(f) ] && " + add + "; A+=\" --b\"; run $A", "train.sh");
    const std::vector<ShellWord>& words = script.commands.at(0).words;
    ASSERT_EQ(words.size(), 5U) << add;
    EXPECT_EQ(words[2].text, "1");
    EXPECT_EQ(words[4].text, "--b");
  }
}

TEST(ShellScript, TellsOfTheFirstProgramThatIsLeftOut) {
  const auto left_out = [](std::string_view text) {
    const ShellLeftOut found = read_shell_script(text, "train.sh").left_out;
    return fmt::format("{} {}", found.line, found.why);
  };
  EXPECT_EQ(left_out("if [ $(f) = 1 ]; then\npython a.py\nfi"),
            "2 whether it runs cannot be decided");
  EXPECT_EQ(left_out("while true; do\npython a.py\ndone"), "2 it stands in a loop");
  EXPECT_EQ(left_out("f() {\npython a.py\n}"), "2 nothing here calls the function around it");
  EXPECT_EQ(left_out("f() {\npython a.py\n}; f"), "0 ");
  EXPECT_EQ(left_out("if false; then python a.py; fi"), "1 the branch around it is not taken");
}

TEST(ShellScript, ASubshellKeepsItsVariables) {
  EXPECT_THAT(words_of("A=1; ( A=2; B=3; run $A )\nrun $A ${B:-no}; { A=4; }; run $A"),
              ElementsAre("run", "2", "run", "1", "no", "run", "4"));
}

TEST(ShellScript, WhatAnUndecidedBranchSetsIsNotKnown) {
  const auto is_known = [](std::string_view text) {
    const ShellScript script = read_shell_script(text, "train.sh");
    EXPECT_EQ(script.commands.size(), 1U) << text;
    const std::string& word = script.commands.back().words.at(1).text;
    return script.variables.unknown_in(word) == nullptr;
  };
  EXPECT_FALSE(is_known("A=0; if [ $(f) = 1 ]; then A=1; else A=2; fi; run $A"));
  EXPECT_FALSE(is_known("A=0; if [ $(f) = 1 ]; then B=1; elif true; then A=2; fi; run $A"));
  EXPECT_FALSE(is_known("N=$(f)\nif (( N > 1 )); then run a; else export A=2; fi; run $A"));
  EXPECT_FALSE(is_known("case $(f) in a) A=(1);; *) A=2;; esac; run $A"));
  EXPECT_FALSE(is_known("A=0; if [ $(f) = 1 ]; then ((A++)); fi; run $A"));
  EXPECT_FALSE(is_known("A=0; [ $(f) = 1 ] && A=1; run $A"));
  EXPECT_TRUE(is_known("A=0; [ $(f) = 1 ] && B=1; [ -f x ] && A=1; run $A"));
  EXPECT_TRUE(is_known("A=0; if [ $(f) = 1 ]; then ( A=1 ); fi; run $A"));
  EXPECT_TRUE(is_known("A=0; if [[ $(f) == 1 ]]; then B=1; else A=2 run; fi; A+=1; run $A"));
  EXPECT_TRUE(is_known("if true; then A=1; elif [ $(f) = 1 ]; then A=2; fi; run $A"));
  EXPECT_TRUE(is_known("if [ -d $(f) ]; then A=1; else A=2; fi; run $A"));  // a file: as if absent
}

TEST(ShellScript, AColonExpandsItsWords) {
  EXPECT_THAT(words_of(": ${A:=2}\n: \"${B:=3}\" \"${A:=4}\"\nrun $A $B"),
              ElementsAre("run", "2", "3"));
}

TEST(ShellScript, ArithmeticCommandsChangeVariables) {
  EXPECT_THAT(words_of("A=2; ((A++)); (( A += 1 + 1 )); let A=A*2 B=2*2\n((C++)); ((--C)); run $A "
                       "$B $C"),
              ElementsAre("run", "10", "4", "0"));
  EXPECT_THAT(words_of("A=2; ((A *= 3)); ((B = A == 6)); ((A <= 6 && A >= 6)) && run $A $B"),
              ElementsAre("run", "6", "1"));
  EXPECT_THAT(words_of("A=1; ((A=3, B=A<<1)); run $A $B"), ElementsAre("run", "3", "6"));
  const ShellScript script = read_shell_script("A=1; ((A=1 + $(f))); run $A", "train.sh");
  EXPECT_NE(script.variables.unknown_in(script.commands.at(0).words.at(1).text), nullptr);
  ASSERT_EQ(script.warnings.entries().size(), 1U);
  EXPECT_THAT(script.warnings.entries()[0].text, HasSubstr("train.sh:1: 'A=1 + $(f)' is not"));
}

TEST(ShellScript, LooksIntoEvalAndBashC) {
  EXPECT_THAT(words_of("A='x y'\ncmd=\"run $A\"\neval $cmd"), ElementsAre("run", "x", "y"));
  EXPECT_THAT(words_of("srun -N 2 bash -c \"cd /x; run a\""),
              ElementsAre("srun", "-N", "2", "cd", "/x", "srun", "-N", "2", "run", "a"));
  EXPECT_THAT(words_of("A=(--x 1)\nbash -c \"run ${A[*]}\""), ElementsAre("run", "--x", "1"));
}

TEST(ShellScript, LeavesOutRedirectionsAndHereDocuments) {
  EXPECT_THAT(words_of("run a >log 2>&1 b < in | tee -a x\nrun 2 > f"),
              ElementsAre("run", "a", "b", "tee", "-a", "x", "run", "2"));
  EXPECT_THAT(words_of("cat > f <<'END'\nrun x\nEND\nrun y"), ElementsAre("cat", "run", "y"));
}

TEST(ShellScript, NeverRunsACommand) {
  const ShellScript script = read_shell_script("run $(touch /tmp/x) `id` $A ${A%x} $?", "train.sh");
  for (std::size_t i = 1; i < script.commands[0].words.size(); ++i) {
    const ShellUnknown* unknown = script.variables.unknown_in(script.commands[0].words[i].text);
    ASSERT_NE(unknown, nullptr) << i;
    EXPECT_EQ(unknown->unset, unknown->what == "$A");
  }
}

TEST(ShellScript, SlurmLinesSetItsVariables) {
  EXPECT_THAT(words_of("#SBATCH --nodes=4\n#SBATCH --ntasks-per-node 8\n#SBATCH --gres=gpu:a100:8\n"
                       "run $SLURM_NNODES $SLURM_NTASKS ${SLURM_GPUS_ON_NODE}"),
              ElementsAre("run", "4", "32", "8"));
  EXPECT_THAT(words_of("#SBATCH --nodes=4 --ntasks-per-node=8 # --nodes=2\nrun $SLURM_NNODES "
                       "$SLURM_NTASKS"),
              ElementsAre("run", "4", "32"));
  EXPECT_THAT(words_of("#SBATCH -N4 -n 16\nrun $SLURM_NNODES $SLURM_NTASKS"),
              ElementsAre("run", "4", "16"));
  EXPECT_THAT(words_of("#SBATCH --nodes=2\n# more\n\n#SBATCH --nodes=4\nrun $SLURM_NNODES\n"
                       "#SBATCH --nodes=8"),
              ElementsAre("run", "4"));
  for (const std::string gres : {"gpu:8,nvme:1", "nvme:1,gpu:a100:8", "gres/gpu:8(S:0-1)"}) {
    EXPECT_THAT(words_of("#SBATCH --gres=" + gres + "\nrun $SLURM_GPUS_ON_NODE"),
                ElementsAre("run", "8"))
        << gres;
  }
  EXPECT_THAT(words_of("#SBATCH --gres=nvme:1\nrun ${SLURM_GPUS_ON_NODE:-none}"),
              ElementsAre("run", "none"));
}

TEST(ShellScript, ABatchScriptRunsInAJob) {
  const std::string job = "#SBATCH --job-name=x\n";
  EXPECT_THAT(words_of(job + "if [ -n \"${SLURM_JOB_ID:-}\" ]; then run job; else run shell; fi"),
              ElementsAre("run", "job"));
  EXPECT_THAT(words_of(job + "[[ -z $SLURM_JOBID ]] || run job"), ElementsAre("run", "job"));
  EXPECT_THAT(words_of(job + "[ x$SLURM_JOB_ID = x ] || run ${SLURM_JOB_ID:+job}"),
              ElementsAre("run", "job"));
  EXPECT_THAT(words_of("[ -z \"$SLURM_JOB_ID\" ] && run shell"), ElementsAre("run", "shell"));
  const ShellScript script = read_shell_script(job + "run ${SLURM_NNODES:-1}", "train.sh");
  EXPECT_NE(script.variables.unknown_in(script.commands.at(0).words.at(1).text), nullptr);
}

// Parts and keys of lists are any number of words, in quotes too: none of them is counted as one.
TEST(ShellScript, PartsOfListsAreNotOneWord) {
  const auto loose = [](std::string_view text) {
    const ShellScript script = read_shell_script(text, "train.sh");
    return script.commands.back().words.back().loose;
  };
  EXPECT_TRUE(loose("A=(a b c)\nrun \"${A[@]:1}\""));
  EXPECT_TRUE(loose("A=(a b c)\nrun \"${!A[@]}\""));
  EXPECT_TRUE(loose("f() { run \"${@:2}\"; }\nf 1 2 3"));
  EXPECT_THAT(words_of("A=(1 2 8)\nrun ${A[-1]} ${A[-3]} ${A[-4]:-none}"),
              ElementsAre("run", "8", "1", "none"));
}

TEST(ShellScript, AReturnLeavesItsLoopAndUnsetArgumentsAreNone) {
  EXPECT_THAT(words_of("f() { for T in 4 8 16; do if [ $T = 8 ]; then return; fi; done; }\n"
                       "f\nrun $T"),
              ElementsAre("run", "8"));
  EXPECT_THAT(words_of("f() { run \"$1\" \"$2\"; }\nf $NONE 8 4"), ElementsAre("run", "8", "4"));
}

TEST(ShellScript, CommandsInsideDollarBrackets) {
  EXPECT_THAT(words_of("A=$(cat <<EOF\ndon't )\nEOF\n)\nrun"), ElementsAre("run"));
  EXPECT_THAT(words_of("A=\"$(cat <<-'END' # it's\n\t(\n\tEND\n)\"\nrun $((1 << 3))"),
              ElementsAre("run", "8"));
  EXPECT_THAT(words_of("A=$(tr a b <<< 'x'); run"), ElementsAre("run"));
}

TEST(ShellScript, ArithmeticChangesVariablesInsideOfWords) {
  EXPECT_THAT(words_of("A=2; run $((A++)) $A $((++A)) $((A += 3)) $((B--)) $B"),
              ElementsAre("run", "2", "3", "4", "7", "0", "-1"));
}

TEST(ShellScript, ErrorsNameTheLine) {
  EXPECT_THAT(error_of("a\nrun 'b\nc\n"), HasSubstr("train.sh:2: the quote that begins here"));
  EXPECT_THAT(error_of("a\n\nA=(b\n"), HasSubstr("train.sh:3: the array that begins here"));
  EXPECT_THAT(error_of("run ${A\n"), HasSubstr("train.sh:1: the bracket that begins here"));
  EXPECT_THAT(error_of("if true; then\nrun\n"), HasSubstr("train.sh:1: the 'if' that begins here"));
  EXPECT_THAT(error_of("case x in\n a) run;;\n"), HasSubstr("has no 'esac'"));
  EXPECT_THAT(error_of("a\nA=$((1/0))\n"), HasSubstr("train.sh:2: division by zero"));
  EXPECT_THAT(error_of("A=xxxxxxxx\n" +
                       [] {
                         std::string doubled;
                         for (int i = 0; i < 40; ++i) {
                           doubled += "A=$A$A\n";
                         }
                         return doubled;
                       }()),
              HasSubstr("grow without end"));
}

TEST(ShellTest, MatchesPatterns) {
  EXPECT_EQ(shell_matches("llama3-8b", "llama*8?"), true);
  EXPECT_EQ(shell_matches("", "*"), true);
  EXPECT_EQ(shell_matches("abc", "ab"), false);
  EXPECT_EQ(shell_matches("ab", "a?c"), false);
  EXPECT_EQ(shell_matches("7b", "[0-9]b"), true);
  EXPECT_EQ(shell_matches("xb", "[0-9]b"), false);
  EXPECT_EQ(shell_matches("yes", "[Yy]*"), true);
  EXPECT_EQ(shell_matches("x-]", "[!0-9][-a][]]"), true);
  EXPECT_EQ(shell_matches("8x", "[[:digit:]][[:alpha:]_]"), true);
  EXPECT_EQ(shell_matches("[b", "[b"), true);
  EXPECT_EQ(shell_matches("a", "@(a|b)"), std::nullopt);
  EXPECT_EQ(shell_matches("a", "[[:graph:]]"), std::nullopt);
}

// Each member of a pipe is a shell of its own, and so is what runs in the background.
TEST(ShellScript, SeparatorsCutWords) {
  EXPECT_THAT(words_of("IFS=,; A=1,2; run $A; B=(a b); run \"${B[*]}\""),
              ElementsAre("run", "1", "2", "run", "a,b"));
  EXPECT_THAT(words_of("O=$IFS; IFS=$'\\n'; A=$'a b\\nc'; run $A; IFS=$O; run $A"),
              ElementsAre("run", "a b", "c", "run", "a", "b", "c"));
}

TEST(ShellScript, QuotesInsideOfBraces) {
  EXPECT_THAT(words_of("A=(1 '2 3'); run \"${A[@]+\"${A[@]}\"}\" ${A[@]+\"${A[@]}\"} x"),
              ElementsAre("run", "1", "2 3", "1", "2 3", "x"));
  EXPECT_THAT(words_of("A=(); run \"${A[@]+\"${A[@]}\"}\" x \"${B+y}\""),
              ElementsAre("run", "x", ""));
  EXPECT_THAT(words_of("run \"${B:-\"a b\"}\" ${B:-'c d'} ${B:-e f} \"${B:-'g'}\""),
              ElementsAre("run", "a b", "c d", "e", "f", "'g'"));
  EXPECT_THAT(words_of("X=$(case x in x) echo;; esac); run $'it\\'s'"), ElementsAre("run", "it's"));
  EXPECT_THAT(words_of("A=5; A=(7 8); A=6; run \"${A[@]}\"; B=$NONE; run ${B+x} ${B:-y}"),
              ElementsAre("run", "6", "8", "run", "x", "y"));
}

TEST(ShellScript, ArithmeticAsBashHasIt) {
  EXPECT_THAT(words_of("A=(4 5); i=0; run $((A[0] + A[i+1])) ${A[i+1]} $((010)) $((2#101 + 0x10))"),
              ElementsAre("run", "9", "5", "8", "21"));
  EXPECT_THAT(words_of("run $((1 ? 2 : 1 / 0)) $((0 && 1 / 0)) $((a = 3, a << 2)) $((a ? b = 5 : "
                       "(c = 6))) ${c:-none}"),
              ElementsAre("run", "2", "0", "12", "5", "none"));
}

TEST(ShellScript, WordsBeforeAnAssignmentForOneCommand) {
  EXPECT_THAT(words_of("A=2; f() { run $A $1; }; A=4 f $A; run $A"),
              ElementsAre("run", "4", "2", "run", "2"));
}

TEST(ShellScript, ArgumentsThatMayBeSeveral) {
  const auto words = [](std::string_view text) {
    const ShellScript script = read_shell_script(text, "train.sh");
    std::vector<std::string> found;
    for (const ShellWord& word : script.commands.back().words) {
      found.push_back(script.variables.unknown_in(word.text) != nullptr ? "?" : word.text);
    }
    return found;
  };
  EXPECT_THAT(words("set -- a $(f) b; run $1 $2 $3 $#"), ElementsAre("run", "a", "?", "?", "?"));
  EXPECT_THAT(words("set -- a b; [ $(f) ] && shift; run $1 $#"), ElementsAre("run", "?", "?"));
  EXPECT_THAT(words("for ((i=0; i<3; i++)); do :; done; run $i"), ElementsAre("run", "?"));
  EXPECT_THAT(words("select x in a b; do :; done; run $x $REPLY"), ElementsAre("run", "?", "?"));
  EXPECT_THAT(words("run {a,b} x{1..3}y {c} a,b"), ElementsAre("run", "?", "?", "{c}", "a,b"));
}

TEST(ShellScript, WorkIsBounded) {
  EXPECT_THAT(error_of("(( " + std::string(100000, '(') + " ))"), HasSubstr("bracket"));
  if (testing::is_sanitized()) {
    return;  // as much work as there may be takes a minute
  }
  EXPECT_THAT(error_of("A=" + std::string(300000, 'a') + "\nB=" +
                       [] {
                         std::string pattern;
                         for (int i = 0; i < 150000; ++i) {
                           pattern += "*a";
                         }
                         return pattern;
                       }() +
                       "b\n[[ $A == $B ]]"),
              HasSubstr("grow without end"));
  std::string shifts = "set --";
  for (int i = 0; i < 40000; ++i) {
    shifts += " a";
  }
  for (int i = 0; i < 40000; ++i) {
    shifts += "\nshift";
  }
  EXPECT_THAT(error_of(shifts), HasSubstr("grow without end"));
}

TEST(ShellTest, QuotedPatternsAreTexts) {
  EXPECT_THAT(words_of("X=abc; [[ $X == \"a*\" ]] || run no; [[ $X == a\"b\"* ]] && run yes"),
              ElementsAre("run", "no", "run", "yes"));
  EXPECT_THAT(words_of("case abc in \"a*\") run 1;; a\\*) run 2;; 'a'*) run 3;; esac"),
              ElementsAre("run", "3"));
  EXPECT_THAT(words_of("P='a*'; [[ abc == $P ]] && run a; [[ abc == \"$P\" ]] || run b"),
              ElementsAre("run", "a", "run", "b"));
}

TEST(ShellTest, PatternsAreOfLongTestsAndCases) {
  EXPECT_THAT(words_of("[ 7b = [0-9]b ] || run no; [[ 7b = [0-9]b ]] && run yes"),
              ElementsAre("run", "no", "run", "yes"));
  EXPECT_THAT(words_of("case 7b in [0-9]b) run a;; *) run b;; esac"), ElementsAre("run", "a"));
  const ShellScript script =
      read_shell_script("A=1; case 7b in @(7b|8b)) A=2;; *) A=3;; esac; run $A", "train.sh");
  EXPECT_NE(script.variables.unknown_in(script.commands.at(0).words.at(1).text), nullptr);
}

}  // namespace
}  // namespace lockstep::shell_script_test
