// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// `vitrine rl` on problems, as a new user would start it: a task, a file with a checker, a program that judges.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

#include "base/resource_path.h"
#include "tests/app/program.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using nlohmann::json;
using test::TempFolder;
using testing::HasSubstr;

std::vector<std::string> loopCommand(const std::vector<std::string>& more) {
    std::vector<std::string> out = {"rl",
                                    "--model",
                                    base::resourcePath("models/vitrine-demo"),
                                    "--backend",
                                    "cpu",
                                    "--weights",
                                    "dequantized",
                                    "--method",
                                    "lora",
                                    "--steps",
                                    "2",
                                    "--prompts",
                                    "2",
                                    "--samples",
                                    "4",
                                    "--max-new-tokens",
                                    "12",
                                    "--json"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
}

std::string problemsIn(const TempFolder& folder) {
    const std::string path = folder.file("problems.jsonl");
    std::ofstream out(path);
    for (int i = 1; i < 9; ++i) {
        out << json{{"prompt", "What is " + std::to_string(i) + " + 1?"}, {"answer", std::to_string(i + 1)}}.dump()
            << '\n';
    }
    return path;
}

json loopResult(const std::vector<std::string>& more) {
    const test::ProgramResult out = test::vitrine(loopCommand(more));
    EXPECT_EQ(out.exitCode, 0) << out.err;
    return out.exitCode == 0 ? json::parse(out.out) : json::object();
}

TEST(RlLoopCommand, LearnsATask) {
    const json out = loopResult({"--task", "sums", "--eval-every", "1", "--eval-problems", "6"});
    EXPECT_EQ(out["reward_source"], "task sums");
    EXPECT_EQ(out["rewards"].size(), 2U);
    EXPECT_EQ(out["eval_reward_steps"], json::array({0, 1, 2}));
    EXPECT_EQ(out["judge_errors"], json::array({0.0, 0.0}));
    ASSERT_FALSE(out["sampled_answers"].empty());
    EXPECT_THAT(out["sampled_answers"][0]["prompt"].get<std::string>(), HasSubstr("What is"));
}

TEST(RlLoopCommand, AsksAFileAndHoldsProblemsBack) {
    const TempFolder folder;
    const json out =
        loopResult({"--data", problemsIn(folder), "--checker", "number", "--eval-every", "2", "--eval-problems", "3"});
    EXPECT_EQ(out["reward_source"], "checker number");
    EXPECT_EQ(out["eval_rewards"].size(), 2U);
}

TEST(RlLoopCommand, AProgramJudgesAndGoesOnWithConversations) {
    const TempFolder folder;
    // The first answer gets a message back, the second one a reward by its length.
    const std::string judge = R"(while IFS= read -r line; do case "$line" in
        *'"turn":0'*) echo '{"message": "And plus one?"}';;
        *) echo $((${#line} % 2));; esac; done)";
    const json out =
        loopResult({"--data", problemsIn(folder), "--reward-command", judge, "--turns", "2", "--reward-processes", "2",
                    "--max-new-tokens", "60", "--session", folder.file("talks.vitrine")});
    EXPECT_EQ(out["judge_errors"], json::array({0.0, 0.0})) << out.dump();
    EXPECT_LT(out["logprob_max_diff"][0], 1e-3) << "what the policy said in both turns is scored as it was sampled";
    const test::ProgramResult exported = test::vitrine({"session", "export", folder.file("talks.vitrine"), "--format",
                                                        "rollouts", "--output", folder.file("talks.safetensors")});
    EXPECT_EQ(exported.exitCode, 2);
    EXPECT_THAT(exported.err, HasSubstr("its rollouts are conversations"));
    const json once = loopResult({"--data", problemsIn(folder), "--reward-command", judge});
    EXPECT_EQ(once["judge_errors"], json::array({8.0, 8.0})) << "a conversation of one turn has no reward";
}

TEST(RlLoopCommand, AJudgeThatFailsCostsAnswersAndNotTheRun) {
    const TempFolder folder;
    const std::string problems = problemsIn(folder);
    for (const std::string judge : {"exit 3", "echo nonsense", "read line; kill -9 $$", "cat > /dev/null",
                                    "while read line; do echo nan; done", "while read line; do echo 1e39; done"}) {
        const test::ProgramResult out = test::vitrine(
            loopCommand({"--data", problems, "--reward-command", judge, "--reward-timeout", "0.3", "--steps", "1"}));
        ASSERT_EQ(out.exitCode, 0) << judge << out.err;
        EXPECT_EQ(json::parse(out.out)["judge_errors"], json::array({8.0})) << judge;
        EXPECT_THAT(out.err, HasSubstr("an answer has no reward: ")) << judge;
    }
}

TEST(RlLoopCommand, AJudgeThatAlwaysFailsEndsTheRunAndItGoesOn) {
    const TempFolder folder;
    const std::string output = folder.file("out");
    const std::vector<std::string> options = {"--data", problemsIn(folder), "--steps", "5", "--output", output};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), options.begin(), options.end());
        return loopCommand(more);
    };
    const std::string script = folder.file("judge.sh");
    std::ofstream(script) << "exit 3\n";
    const test::ProgramResult failed = test::vitrine(with({"--reward-command", "sh " + script}));
    EXPECT_EQ(failed.exitCode, 2);
    EXPECT_THAT(failed.err, HasSubstr("--reward-command: no answer of the 24 that ended in the last 3 steps"));
    EXPECT_THAT(failed.err, HasSubstr("ended with code 3"));
    EXPECT_TRUE(std::filesystem::exists(output + "/checkpoint-3"));
    const std::string judge = "while read -r line; do echo $((${#line} % 2)); done";
    const test::ProgramResult branch =
        test::vitrine(with({"--reward-command", judge, "--resume", output, "--output", folder.file("branch")}));
    EXPECT_EQ(branch.exitCode, 0) << branch.err;
    EXPECT_THAT(branch.err, HasSubstr("was trained with --reward-command sh "));
    std::ofstream(script) << judge << '\n';
    const test::ProgramResult mended = test::vitrine(with({"--reward-command", "sh " + script, "--resume", output}));
    ASSERT_EQ(mended.exitCode, 0) << mended.err;
    EXPECT_EQ(json::parse(mended.out)["judge_errors"], json::array({8.0, 8.0, 8.0, 0.0, 0.0}));
}

TEST(RlLoopCommand, JudgesEndWithVitrineAndItsFolderIsFreeAgain) {
    const TempFolder folder;
    const std::string output = folder.file("out"), pids = folder.file("pids"), problems = problemsIn(folder);
    const auto ended = [](pid_t pid) {
        std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
        const std::string text(std::istreambuf_iterator<char>(stat), {});
        return text.empty() || text.find(") Z ") != std::string::npos;
    };
    const auto soon = [](const auto& is) {
        for (int i = 0; i < 600 && !is(); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        return is();
    };
    const std::string judge = "echo $$ >> " + pids + "; sleep 1000 & echo $! >> " + pids + "; sleep 1000";
    const std::vector<std::string> command =
        loopCommand({"--data", problems, "--reward-command", judge, "--reward-processes", "1", "--output", output});
    for (const int signal : {SIGKILL, SIGINT}) {
        std::filesystem::remove(pids);
        test::Program program(command);
        const auto judges = [&] {
            std::ifstream file(pids);
            return std::vector<pid_t>(std::istream_iterator<pid_t>(file), {});
        };
        ASSERT_TRUE(soon([&] { return judges().size() == 2; })) << program.wait().err;
        program.signal(signal);
        program.signal(signal);
        program.wait();
        for (const pid_t pid : judges()) {
            EXPECT_TRUE(soon([&] { return ended(pid); })) << pid << " after signal " << signal;
        }
    }
    std::vector<std::string> onward = {"--data", problems, "--checker", "number", "--output", output};
    EXPECT_EQ(loopResult(onward)["rewards"].size(), 2U) << "no checkpoint is in its way";
    const test::ProgramResult over = test::vitrine(loopCommand(onward));
    EXPECT_EQ(over.exitCode, 2);
    EXPECT_THAT(over.err, HasSubstr("name another folder, resume from it"));
}

TEST(RlLoopCommand, NothingToGoOnFromIsSaid) {
    const TempFolder folder;
    const std::string output = folder.file("out");
    std::filesystem::create_directories(output);
    std::ofstream(output + "/training_files.json") << R"({"made_by": "vitrine finetune", "files": ["metrics.csv"]})";
    std::ofstream(output + "/metrics.csv") << "step,loss\n";
    const test::ProgramResult out =
        test::vitrine(loopCommand({"--task", "sums", "--output", output, "--resume", output}));
    EXPECT_EQ(out.exitCode, 2);
    EXPECT_THAT(out.err, HasSubstr("ended before its first checkpoint, so there is nothing to go on from; run it "
                                   "without --resume"));
}

TEST(RlLoopCommand, GoesOnAfterAKillToTheBit) {
    const TempFolder folder;
    const std::vector<std::string> options = {"--task", "sums", "--steps", "6", "--partial-tokens", "8"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), options.begin(), options.end());
        return more;
    };
    const json whole = loopResult(with({}));
    const std::string output = folder.file("out");
    {
        test::Program killed(loopCommand(with({"--output", output, "--save-every", "1"})));
        for (int i = 0; i < 600 && !std::filesystem::exists(output + "/checkpoint-2"); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        killed.signal(SIGKILL);
        killed.wait();
    }
    const json resumed = loopResult(with({"--output", output, "--save-every", "1", "--resume", output}));
    for (const char* key :
         {"rewards", "losses", "grad_norms", "logprob_abs_diff", "answer_tokens", "mixed_version_share"}) {
        EXPECT_EQ(resumed.value(key, json()), whole.value(key, json())) << key;
    }
}

TEST(RlLoopCommand, IsPlanned) {
    const test::ProgramResult out = test::vitrine({"plan", "rl", "--model", "synthetic:llama-3.1-8b", "--method",
                                                   "lora", "--prompt-length", "64", "--prompts", "8", "--samples", "8",
                                                   "--max-new-tokens", "256", "--device-profile", "h200", "--json"});
    ASSERT_EQ(out.exitCode, 0) << out.err;
    const json plan = json::parse(out.out);
    EXPECT_EQ(plan["fits"], true);
    EXPECT_GT(plan["phase_seconds"]["rollout"][0], 0.0);
    EXPECT_GT(plan["peak_by_role"]["training"][0], 16e9);
}

} // namespace
} // namespace vitrine
