// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// No output of a command replaces what it is not, and what could not be written is said.

#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "sessions/session_file.h"
#include "tests/app/program.h"
#include "tests/fixture_paths.h"
#include "tests/repetitions.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using sessions::OpenMode;
using sessions::RunStatus;
using sessions::SessionFile;
using test::ProgramResult;
using test::TempFolder;
using testing::HasSubstr;
using Words = std::vector<std::string>;

Words operator+(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/// A model, two sessions, tokens and other files that a user has.
class Outputs : public ::testing::Test {
protected:
    void SetUp() override {
        expectDone({"synthesize", "--model", "synthetic:tiny-llama", "--output", path("model")});
        for (const char* name : {"a.vitrine", "b.vitrine"}) {
            expectDone(generate() + Words{"--session", path(name)});
        }
        const auto writer =
            engine::SafetensorsWriter::create(path("tokens"), {{"input_ids", kernels::DType::I32, {1, 4}}});
        const std::int32_t ids[] = {1, 2, 3, 4};
        writer->write(ids, sizeof ids);
        writer->finish();
        test::writeAll(path("note"), "mine\n");
        fs::create_symlink(path("model/model.safetensors"), path("soft"));
        fs::create_hard_link(path("model/model.safetensors"), path("hard"));
    }

    std::string path(const std::string& name) const { return folder_.file(name); }
    Words generate() const {
        return {"generate", "--model", path("model"), "--tokens", "1,2", "--max-new-tokens", "2"};
    }

    static void expectDone(const Words& words) {
        const ProgramResult result = test::vitrine(words);
        EXPECT_EQ(result.exitCode, 0) << testing::PrintToString(words) << result.err;
    }
    static void expectRefused(const Words& words, const std::string& part) {
        const ProgramResult result = test::vitrine(words);
        EXPECT_EQ(result.exitCode, 2) << testing::PrintToString(words) << result.err;
        EXPECT_THAT(result.err, HasSubstr(part)) << testing::PrintToString(words);
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }

    /// `words` with an output replaces none of what is there, and its own output twice.
    void expectOwnKindAlone(const Words& words, const std::string& flag) const {
        std::vector<std::string> names{"hard", "a.vitrine"};
        if (!test::kSanitized) { // where each program takes its time to start
            names.insert(names.end(), {"model/model.safetensors", "soft", "model/config.json", "tokens", "note"});
        }
        for (const std::string& name : names) {
            const std::string before = test::readAll(path(name));
            expectRefused(words + Words{flag, path(name)}, name);
            EXPECT_EQ(test::readAll(path(name)), before) << name;
        }
        const std::string own = path("own" + flag);
        expectDone(words + Words{flag, own});
        expectDone(words + Words{flag, own});
        fs::remove(own);
    }

    const TempFolder folder_;
};

/// `vitrine WORDS` in a shell, after and before other words of it.
ProgramResult inShell(const std::string& before, const Words& words, const std::string& after = "") {
    std::string line = before + " '" + test::vitrineProgram() + "'";
    for (const std::string& word : words) {
        line += " '" + word + "'";
    }
    return test::Program("/bin/bash", {"-c", line + " " + after}).wait();
}

TEST_F(Outputs, OfEveryCommandReplaceTheirOwnKindAlone) {
    const std::string model = path("model");
    const Words mask{"mask", "--mask", "causal", "--q-len", "256", "--kv-len", "256"};
    const Words batch{"batch", "--model",      model, "--trace",         "fixed", "--requests",
                      "2",     "--new-tokens", "2",   "--prompt-tokens", "4"};
    const Words exported{"session", "export", path("b.vitrine")};
    expectOwnKindAlone({"logits", "--model", model, "--tokens-file", path("tokens")}, "--output");
    expectOwnKindAlone({"attention", "--random", "1,1,1,16,8", "--mask", "causal", "--repeat", "1"}, "--output");
    expectOwnKindAlone(mask, "--output");
    expectOwnKindAlone(mask, "--png");
    expectOwnKindAlone(batch, "--outputs");
    expectOwnKindAlone(batch, "--save-trace");
    expectOwnKindAlone({"finetune", "--model", model, "--prompt-length", "16", "--steps", "1", "--rank", "2"},
                       "--save-gradients");
    expectOwnKindAlone(exported, "--output");
    expectOwnKindAlone(exported + Words{"--format", "chrome"}, "--output");
}

TEST_F(Outputs, AreNoInputsAndNoOtherOutputs) {
    const Words logits{"logits", "--model", path("model"), "--tokens-file", path("tokens")};
    fs::create_symlink("tokens", path("link"));
    expectRefused(logits + Words{"--output", path("link")}, "is the file of tokens_file too");
    expectRefused(logits + Words{"--output", path("new"), "--session", path("new")}, "is the file of session too");
    expectRefused({"mask", "--mask", "causal", "--q-len", "256", "--kv-len", "256", "--png", path("new"), "--output",
                   path("new")},
                  "is the file of png too");
    EXPECT_FALSE(fs::exists(path("new")));
    expectRefused({"session", "export", path("a.vitrine"), "--format", "session", "--output", path("a.vitrine")},
                  "is the session that is exported");
}

TEST_F(Outputs, ExportsKeepLinksAndPipes) {
    for (const char* format : {"sqlite", "chrome"}) {
        const Words exported{"session", "export", path("b.vitrine"), "--format", format, "--output"};
        test::writeAll(path("target"), "");
        fs::create_symlink("target", path("ln"));
        expectDone(exported + Words{path("ln")});
        EXPECT_TRUE(fs::is_symlink(path("ln")));
        EXPECT_GT(fs::file_size(path("target")), 0U);
        expectRefused(exported + Words{path("model")}, "is a folder");
        fs::remove(path("ln"));
        fs::remove(path("target"));
    }
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    expectRefused({"session", "export", path("b.vitrine"), "--output", path("pipe")}, "cannot be written to a device");
    const Words chrome{"session", "export", path("b.vitrine"), "--format", "chrome", "--output"};
    const ProgramResult piped =
        inShell("cat '" + path("pipe") + "' > '" + path("read") + "' &", chrome + Words{path("pipe")}, "&& wait");
    EXPECT_EQ(piped.exitCode, 0) << piped.err;
    EXPECT_TRUE(fs::is_fifo(path("pipe")));
    EXPECT_THAT(test::readAll(path("read")), HasSubstr("traceEvents"));
}

TEST_F(Outputs, TablesAreWrittenWhereTheyAllMayBe) {
    const Words tables{"session", "export", path("a.vitrine"), "--format", "csv", "--output", path("csv")};
    expectDone(tables);
    expectDone(tables);
    test::writeAll(path("csv/memory.csv"), "A list of mine\n");
    fs::remove(path("csv/allocations.csv"));
    expectRefused(tables, "memory.csv: exists and is not a table (CSV)");
    EXPECT_FALSE(fs::exists(path("csv/allocations.csv")));
}

TEST_F(Outputs, ATrainingReplacesAnotherOnlyWhenToldTo) {
    const Words train{"finetune", "--model", path("model"), "--prompt-length", "16", "--rank", "2"};
    const Words once = train + Words{"--steps", "1", "--output", path("out")};
    expectRefused(train + Words{"--steps", "1", "--output", path("model")}, "is the folder of model too");
    expectDone(once + Words{"--save-every", "1"});
    expectRefused(once, "give --overwrite");
    expectRefused(once + Words{"--adapter", path("out"), "--overwrite"}, "is the folder of adapter too");
    expectDone({"plan", "finetune", "--model", path("model"), "--prompt-length", "16", "--output", path("out")});
    const Words further = train + Words{"--steps", "2", "--output", path("out"), "--resume"};
    expectDone(further + Words{path("out")});
    expectDone(further + Words{path("out/checkpoint-1")});
    expectDone(once + Words{"--overwrite"});
}

TEST_F(Outputs, AFileOfAnInputIsNotReplacedThroughALink) {
    fs::create_directory(path("out"));
    fs::create_symlink(path("model/model.safetensors"), path("out/model.safetensors"));
    const std::string before = test::readAll(path("model/model.safetensors"));
    expectRefused({"finetune", "--model", path("model"), "--prompt-length", "16", "--steps", "1", "--method", "full",
                   "--output", path("out"), "--overwrite"},
                  "is a file of model too");
    EXPECT_EQ(test::readAll(path("model/model.safetensors")), before);
}

TEST_F(Outputs, AReaderThatGoesAwayEndsTheRunSaved) {
    const Words words{"generate", "--model", "synthetic:tiny-llama", "--tokens", "1", "--max-new-tokens", "4"};
    const ProgramResult listed = inShell("", {"session", "ls", path("a.vitrine")}, ">/dev/full");
    EXPECT_EQ(listed.exitCode, 1);
    EXPECT_THAT(listed.err, testing::MatchesRegex("vitrine: error: standard output: cannot be written[^\n]*\n"));
    const ProgramResult run = inShell("", words + Words{"--json", "--session", path("p.vitrine")}, ">/dev/full");
    EXPECT_EQ(run.exitCode, 1);
    EXPECT_THAT(run.err, testing::MatchesRegex("vitrine: error: standard output: cannot be written[^\n]*\n"));
    EXPECT_EQ(SessionFile::open(path("p.vitrine"), OpenMode::ReadOnly)->runs().at(0).status, RunStatus::Done);
}

TEST_F(Outputs, AnErrorThatNobodyCanReadKeepsItsExitCode) {
    for (const char* where : {"2>&-", "2>/dev/full", "2>&- >&- <&-"}) {
        EXPECT_EQ(inShell("", {"session", "ls", path("nothing")}, where).exitCode, 2) << where;
        EXPECT_EQ(inShell("", {"doctor", "--no-such-option"}, where).exitCode, 2) << where;
    }
    // The error of a run must not go into the file that got the number of the closed standard error.
    const Words failing{"-vv", "generate", "--model", path("model"), "--tokens", "1", "--session", path("a.vitrine")};
    EXPECT_EQ(inShell("", failing + Words{"--vram-budget", "1KiB", "--max-new-tokens", "2"}, "2>&-").exitCode, 3);
    EXPECT_EQ(SessionFile::open(path("a.vitrine"), OpenMode::ReadOnly)->runs().size(), 2U);
}

TEST_F(Outputs, AResultThatNobodyCanReadIsAnError) {
    const Words generate{"generate", "--model", path("model"), "--tokens", "1", "--max-new-tokens", "4"};
    for (const Words& words : {Words{"--help"}, Words{"--version"}, Words{"doctor"}, Words{"doctor", "--json"},
                               generate, Words{"session", "ls", path("a.vitrine")}}) {
        for (const char* where : {">&-", ">/dev/full"}) {
            const ProgramResult result = inShell("", words, where);
            EXPECT_EQ(result.exitCode, 1) << where << testing::PrintToString(words);
            EXPECT_THAT(result.err,
                        testing::MatchesRegex("vitrine: error: standard output: cannot be written[^\n]*\n"));
        }
        // A reader that went away asked for the end.
        const ProgramResult piped = inShell("exec 3> >(true); wait $!;", words, ">&3");
        EXPECT_EQ(piped.exitCode, 1) << testing::PrintToString(words);
        EXPECT_EQ(piped.err, "") << testing::PrintToString(words);
    }
}

TEST_F(Outputs, AFileThatMayNotGrowIsAnErrorAndNoEnd) {
    // 60 KiB: room for an empty session, not for a run of this length.
    const ProgramResult run =
        inShell("ulimit -f 60;", {"generate", "--model", "synthetic:tiny-llama", "--tokens", "1", "--max-new-tokens",
                                  "300", "--profile", "full", "--session", path("s.vitrine")});
    EXPECT_EQ(run.exitCode, 1) << run.err;
    EXPECT_THAT(run.err, HasSubstr("vitrine: error: " + path("s.vitrine")));
    EXPECT_THAT(run.err, HasSubstr("run 1 is saved only in part"));
    const auto runs = SessionFile::open(path("s.vitrine"), OpenMode::ReadWrite)->runs();
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_NE(runs[0].status, RunStatus::Done);

    const std::string old = path("logits");
    const Words logits{"logits", "--model", path("model"), "--tokens-file", path("tokens"), "--output", old};
    expectDone(logits);
    const std::string before = test::readAll(old);
    const ProgramResult cut = inShell("ulimit -f 1;", logits);
    EXPECT_EQ(cut.exitCode, 1);
    EXPECT_THAT(cut.err, HasSubstr("raise the limit of file sizes"));
    EXPECT_EQ(test::readAll(old), before);
}

TEST_F(Outputs, TextThatIsNoUtf8IsNamedBeforeAnythingIsMade) {
    const std::string bad = "a\xff";
    const std::string file = path("u.vitrine");
    for (const Words& words : std::vector<Words>{{"--prompt", bad},
                                                 {"--tokens", "1", "--stop", bad},
                                                 {"--tokens", "1", "--system", bad},
                                                 {"--tokens", "1", "--date", bad},
                                                 {"--tokens", "1", "--set", "key=" + bad},
                                                 {"--tokens", "1", "--kernel", bad}}) {
        expectRefused(Words{"generate", "--model", path("model"), "--session", file} + words, "is no UTF-8 text");
    }
    expectRefused({"serve", "--model", path("model"), "--served-name", bad, "--session", file}, "is no UTF-8 text");
    EXPECT_FALSE(fs::exists(file));
    expectRefused({"session", "note", path("a.vitrine"), "1", bad}, "is no UTF-8 text");
    expectRefused({"session", "tag", path("a.vitrine"), "1", bad}, "is no UTF-8 text");
}

TEST_F(Outputs, PathsAreBytes) {
    const std::string model = path("m\xff");
    fs::copy(path("model"), model);
    expectDone(
        {"generate", "--model", model, "--tokens", "1", "--max-new-tokens", "2", "--session", path("u\xff.vitrine")});
    const ProgramResult list = test::vitrine({"session", "ls", path("u\xff.vitrine"), "--json"});
    EXPECT_THAT(json::parse(list.out)["runs"][0]["name"].get<std::string>(), HasSubstr("m\xEF\xBF\xBD"));
    expectRefused({"generate", "--model", model + "x", "--tokens", "1"}, "m\xEF\xBF\xBDx: no such folder");
}

} // namespace
} // namespace vitrine
