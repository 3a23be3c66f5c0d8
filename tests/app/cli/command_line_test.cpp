// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The parts of the command line that need no model: usage, errors, help, doctor, completion.

#include <algorithm>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/app/program.h"
#include "tests/fixture_paths.h"
#include "tests/repetitions.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using nlohmann::json;
using test::Program;
using test::ProgramResult;
using test::TempFolder;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// A failure is one line that starts as it should, and nothing on standard output.
void expectFailure(const ProgramResult& result, int exitCode, const std::string& part) {
    EXPECT_EQ(result.exitCode, exitCode) << result.err;
    EXPECT_THAT(result.err, AllOf(StartsWith("vitrine: error: "), HasSubstr(part), EndsWith("\n")));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
}

TEST(CommandLine, WrongUsageIsOneLineAndExitTwo) {
    expectFailure(test::vitrine({}), 2, "no command given");
    expectFailure(test::vitrine({"genrate"}), 2, "did you mean generate?");
    expectFailure(test::vitrine({"generate", "--max-new-tokns", "3"}), 2, "did you mean --max-new-tokens?");
    expectFailure(test::vitrine({"generate", "--zzzzzzzzzzzzzzz"}), 2, "--zzzzzzzzzzzzzzz: unknown option;");
    expectFailure(test::vitrine({"doctor", "extra"}), 2, "extra");
    expectFailure(test::vitrine({"plan"}), 2, "no command given");
    expectFailure(test::vitrine({"session"}), 2, "no command given");
    expectFailure(test::vitrine({"run"}), 2, "spec");
    expectFailure(test::vitrine({"run", "/no/such/file.json"}), 2, "/no/such/file.json: ");
}

TEST(CommandLine, WhatCannotBeHonouredIsSaid) {
    const auto with = [](std::vector<std::string> more) {
        std::vector<std::string> all{"generate", "--model", "synthetic:tiny-llama", "--backend", "cpu",
                                     "--tokens", "1",       "--max-new-tokens",     "1"};
        all.insert(all.end(), more.begin(), more.end());
        return test::vitrine(all);
    };
    expectFailure(with({"--vram-budget", "0"}), 2, "--vram-budget: must be more than 0 B; leave it out");
    expectFailure(with({"--device", "3"}), 2, "there is no GPU 3");
    const ProgramResult twice = with({"--seed", "1", "--seed", "2"});
    EXPECT_EQ(twice.exitCode, 0);
    EXPECT_THAT(twice.err, HasSubstr("--seed: given 2 times; the last one counts"));
    for (const char* option : {"--kernel", "--kernel-pack"}) {
        const ProgramResult result = with({option, "gemm=x"});
        EXPECT_EQ(result.exitCode, 0);
        EXPECT_THAT(result.err, HasSubstr(std::string(option) + ": kernels are chosen on a GPU only"));
    }
}

TEST(CommandLine, RunTakesAnExperimentFromStandardInput) {
    const TempFolder folder;
    const std::string file = folder.file("e.json");
    std::ofstream(file) << R"({"vitrine": 1, "workload": "tokenize", "text": "a", "model": "synthetic:tiny-llama"})";
    Program shell("/bin/sh", {"-c", test::vitrineProgram() + " run - --dump-spec < " + file});
    const ProgramResult result = shell.wait();
    EXPECT_EQ(result.exitCode, 0) << result.err;
    EXPECT_EQ(json::parse(result.out)["workload"], "tokenize");
    Program broken("/bin/sh", {"-c", "echo '{' | " + test::vitrineProgram() + " run -"});
    expectFailure(broken.wait(), 2, "standard input: line ");
}

TEST(CommandLine, ALimitOnAddressesIsNoSmallCard) {
    if (test::kSanitized) {
        GTEST_SKIP() << "a sanitizer reserves more addresses than the limit before the program begins";
    }
    const auto under = [](int kilobytes) {
        Program shell("/bin/sh",
                      {"-c", "ulimit -v " + std::to_string(kilobytes) + " && exec " + test::vitrineProgram() +
                                 " generate --model synthetic:tiny-llama --backend cpu --threads 1 --tokens 1"
                                 " --max-new-tokens 2"});
        return shell.wait();
    };
    const ProgramResult enough = under(3'000'000);
    EXPECT_EQ(enough.exitCode, 0) << enough.err;
}

TEST(CommandLine, WrongValuesNameTheFlag) {
    const std::vector<std::string> start{"generate", "--model", "synthetic:tiny-llama", "--tokens", "1"};
    const auto with = [&](const std::string& flag, const std::string& value) {
        std::vector<std::string> all = start;
        all.insert(all.end(), {flag, value});
        return test::vitrine(all);
    };
    expectFailure(with("--max-new-tokens", "many"), 2, "--max-new-tokens: ");
    expectFailure(with("--max-new-tokens", "0"), 2, "--max-new-tokens: ");
    expectFailure(with("--vram-budget", "12 parsecs"), 2, "12 parsecs");
    expectFailure(with("--backend", "tpu"), 2, "--backend: ");
    expectFailure(with("--set", "nonsense"), 2, "--set: ");
    expectFailure(with("--set", "max_new_tokens=x"), 2, "--max-new-tokens: ");
    expectFailure(test::vitrine({"generate", "--prompt", "x"}), 2, "model");
}

TEST(CommandLine, JsonFailuresAreOneObject) {
    for (const auto& words : std::vector<std::vector<std::string>>{{"--json", "generate", "--nope"},
                                                                   {"generate", "--json", "--prompt", "x"},
                                                                   {"session", "ls", "/no/file", "--json"}}) {
        const ProgramResult result = test::vitrine(words);
        EXPECT_EQ(result.exitCode, 2);
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
        const json value = json::parse(result.out);
        EXPECT_EQ(value.at("error").at("kind"), "bad_input");
        EXPECT_THAT(result.err, HasSubstr(value.at("error").at("message").get<std::string>()));
    }
}

TEST(CommandLine, EveryCommandHasHelpWithAnExample) {
    for (const auto& words : std::vector<std::vector<std::string>>{{},
                                                                   {"doctor"},
                                                                   {"run"},
                                                                   {"tokenize"},
                                                                   {"logits"},
                                                                   {"generate"},
                                                                   {"load"},
                                                                   {"synthesize"},
                                                                   {"convert"},
                                                                   {"precision"},
                                                                   {"plan"},
                                                                   {"plan", "generate"},
                                                                   {"plan", "load"},
                                                                   {"bench"},
                                                                   {"kernels"},
                                                                   {"session"},
                                                                   {"session", "ls"},
                                                                   {"session", "show"},
                                                                   {"session", "export"},
                                                                   {"session", "compare"},
                                                                   {"session", "note"},
                                                                   {"session", "tag"},
                                                                   {"completion"}}) {
        std::vector<std::string> all = words;
        all.emplace_back("--help");
        const ProgramResult result = test::vitrine(all);
        EXPECT_EQ(result.exitCode, 0);
        EXPECT_EQ(result.err, "");
        EXPECT_THAT(result.out, HasSubstr("Example:\n  vitrine ")) << (words.empty() ? "" : words.back());
    }
}

TEST(CommandLine, VersionIsOneLine) {
    const ProgramResult result = test::vitrine({"--version"});
    EXPECT_EQ(result.exitCode, 0);
    EXPECT_THAT(result.out, StartsWith("vitrine "));
}

TEST(CommandLine, DoctorSaysWhatIsThereAndWhatIsOff) {
    const ProgramResult result = test::vitrine({"doctor", "--json"});
    EXPECT_EQ(result.exitCode, 0);
    EXPECT_EQ(result.err, "");
    const json report = json::parse(result.out);
    for (const char* field : {"backends", "libraries", "device", "warnings"}) {
        EXPECT_TRUE(report.contains(field)) << field;
    }
    EXPECT_EQ(report["backends"][0]["name"], "cpu");
    EXPECT_EQ(report["backends"][0]["available"], true);
    EXPECT_EQ(report["libraries"].size(), 6u);
    for (const json& library : report["libraries"]) {
        EXPECT_NE(library["found"].get<bool>(), library["path"].get<std::string>().empty());
        EXPECT_NE(library["found"].get<bool>(), !library["install"].get<std::string>().empty());
    }
    EXPECT_GT(report["machine"]["memory_bytes"].get<std::uint64_t>(), 0u);
    EXPECT_THAT(test::vitrine({"doctor"}).out, HasSubstr("Backends"));
}

TEST(CommandLine, DumpSpecPrintsWhatWouldRun) {
    const TempFolder folder;
    const std::string file = folder.file("spec.json");
    const ProgramResult first = test::vitrine({"generate",
                                               "--model",
                                               "synthetic:tiny-llama",
                                               "--tokens",
                                               "1,2,3",
                                               "--seed",
                                               "7",
                                               "--set",
                                               "temperature=0.5",
                                               "--set",
                                               "num_hidden_layers=3",
                                               "--logprobs",
                                               "--raw",
                                               "--stop",
                                               "a,b",
                                               "--stop",
                                               "c",
                                               "--vram-budget",
                                               "2GiB",
                                               "--dump-spec"});
    ASSERT_EQ(first.exitCode, 0) << first.err;
    const json spec = json::parse(first.out);
    EXPECT_EQ(spec["vitrine"], 1);
    EXPECT_EQ(spec["workload"], "generate");
    EXPECT_EQ(spec["tokens"], json({1, 2, 3}));
    EXPECT_EQ(spec["seed"], 7);
    EXPECT_EQ(spec["temperature"], 0.5);
    EXPECT_EQ(spec["set"]["num_hidden_layers"], "3");
    EXPECT_EQ(spec["logprobs"], 5);
    EXPECT_EQ(spec["raw"], true);
    EXPECT_EQ(spec["stop"], json({"a,b", "c"}));
    EXPECT_EQ(spec["vram_budget"], 2147483648u);
    EXPECT_EQ(spec["max_new_tokens"], 128) << "defaults are filled in";

    test::writeAll(file, first.out);
    const ProgramResult again = test::vitrine({"run", file, "--dump-spec"});
    EXPECT_EQ(json::parse(again.out), spec);
    const ProgramResult changed = test::vitrine({"generate", "--spec", file, "--seed", "8", "--dump-spec"});
    EXPECT_EQ(json::parse(changed.out)["seed"], 8);
    EXPECT_EQ(json::parse(changed.out)["tokens"], spec["tokens"]);
    expectFailure(test::vitrine({"load", "--spec", file}), 2, "workload");
}

TEST(CommandLine, BenchHasAModelOfItsOwn) {
    const json spec = json::parse(test::vitrine({"bench", "cpu-decode", "--dump-spec"}).out);
    EXPECT_EQ(spec["model"], "synthetic:gpt-oss-20b");
    EXPECT_EQ(spec["set"]["num_hidden_layers"], "4");
    const json named = json::parse(test::vitrine({"bench", "--model", "synthetic:tiny-llama", "--dump-spec"}).out);
    EXPECT_EQ(named["bench"], "cpu-decode");
    EXPECT_EQ(named["model"], "synthetic:tiny-llama");
    EXPECT_FALSE(named.contains("set"));
    const json whole = json::parse(test::vitrine({"bench", "gpt-oss", "--dump-spec"}).out);
    EXPECT_EQ(whole["model"], "synthetic:gpt-oss-20b");
    EXPECT_FALSE(whole.contains("set"));
    const json load = json::parse(test::vitrine({"bench", "load", "--model", "x", "--dump-spec"}).out);
    EXPECT_EQ(load["workload"], "bench") << "load is a command, too";
    EXPECT_EQ(load["bench"], "load");
}

TEST(CommandLine, BadSpecFilesNameFileAndKey) {
    const TempFolder folder;
    const std::string file = folder.file("spec.json");
    const auto run = [&](const std::string& text) {
        test::writeAll(file, text);
        return test::vitrine({"run", file});
    };
    expectFailure(run(""), 2, file + ": ");
    expectFailure(run("[]"), 2, file + ": ");
    expectFailure(run("{"), 2, file + ": ");
    expectFailure(run(R"({"vitrine": 2, "workload": "generate"})"), 2, file + ": vitrine: ");
    expectFailure(run(R"({"vitrine": 1, "workload": "dance"})"), 2, file + ": workload: ");
    expectFailure(run(R"({"vitrine": 1, "workload": "generate", "model": "x", "promt": "x"})"), 2, file + ": promt: ");
    expectFailure(run(R"({"vitrine": 1, "workload": "generate", "model": "x", "seed": "\u001b[31m"})"), 2,
                  file + ": seed: ");
    expectFailure(run(std::string(100'000, '[')), 2, file + ": ");
}

TEST(CommandLine, CompletionWorksInBash) {
    const auto complete = [](const std::string& words, int index) {
        const std::string script = "source <(" + test::vitrineProgram() + " completion bash); COMP_WORDS=(" + words +
                                   "); COMP_CWORD=" + std::to_string(index) +
                                   "; cd /; _vitrine; echo \"${COMPREPLY[*]}\"";
        return test::Program("/bin/bash", {"--norc", "-c", script}).wait();
    };
    EXPECT_EQ(complete("vitrine gener", 1).out, "generate\n");
    EXPECT_EQ(complete("vitrine session com", 2).out, "compare\n");
    EXPECT_EQ(complete("vitrine plan generate --max-con", 3).out, "--max-context\n");
    EXPECT_EQ(complete("vitrine generate --backend c", 3).out, "cpu cuda\n");
    EXPECT_EQ(complete("vitrine completion z", 2).out, "zsh\n");
    EXPECT_EQ(complete("vitrine session ls ro", 3).out, "root\n");
    EXPECT_EQ(complete("vitrine generate --js", 2).err, "");
}

TEST(CommandLine, CompletionsNameEveryShell) {
    EXPECT_THAT(test::vitrine({"completion", "zsh"}).out, StartsWith("#compdef vitrine\n"));
    EXPECT_THAT(test::vitrine({"completion", "fish"}).out, HasSubstr("complete -c vitrine"));
    EXPECT_EQ(test::vitrine({"completion", "tcsh"}).exitCode, 2);
}

} // namespace
} // namespace vitrine
