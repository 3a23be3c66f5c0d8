// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What no one can read to its end, or at all, is refused in one sentence by every option that names a file.

#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "tests/app/program.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using test::ProgramResult;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class Inputs : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(test::vitrine({"synthesize", "--model", "synthetic:tiny-llama", "--output", model()}).exitCode, 0);
        test::writeAll(folder_.file("chat.json"), R"([{"role": "user", "content": "hi"}])");
    }

    std::string model() const { return folder_.file("model"); }

    /// The commands that read a file by this name.
    std::vector<Words> commandsReading(const std::string& file) const {
        const std::string chat = folder_.file("chat.json"), out = folder_.file("out");
        return {
            {"finetune", "--model", model(), "--data", file},
            {"finetune", "--model", model(), "--prompt-length", "8", "--eval-every", "1", "--eval-data", file},
            {"finetune", "--model", model(), "--prompt-length", "8", "--resume", file},
            {"data", file, "--model", model()},
            {"batch", "--model", model(), "--trace", file},
            {"convert", "--model", model(), "--to", "int4", "--group-size", "32", "--output", out, "--calibrate", file},
            {"generate", "--model", model(), "--chat", file},
            {"generate", "--model", model(), "--chat", chat, "--tools", file},
            {"generate", "--model", model(), "--chat", chat, "--chat-template", file},
            {"generate", "--model", model(), "--tokens", "1", "--session", file},
            {"generate", "--model", model(), "--tokens", "1", "--adapter", file},
            {"generate", "--spec", file},
            {"generate", "--model", file, "--tokens", "1"},
            {"logits", "--model", model(), "--tokens-file", file, "--output", out},
            {"run", file},
            {"sweep", file, "--vary", "seed=1,2"},
            {"plan", "generate", "--model", model(), "--tokens", "1", "--device-profile", file},
            {"session", "show", file, "1"},
            {"session", "export", file, "1", "--format", "csv", "--output", out},
            {"mask", "--mask", "causal", "--q-len", "8", "--kv-len", "8", "--mods", file},
            {"mask", "--mask", "causal", "--q-len", "8", "--kv-len", "8", "--tensors", file}};
    }

    void expectRefused(const std::string& file) const {
        for (const Words& words : commandsReading(file)) {
            const ProgramResult result = test::vitrine(words);
            EXPECT_EQ(result.exitCode, 2) << testing::PrintToString(words) << result.err;
            EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
            for (const char* raw : {"json.exception", "filesystem error", "basic_filebuf", "[json"}) {
                EXPECT_THAT(result.err, Not(HasSubstr(raw))) << testing::PrintToString(words);
            }
        }
    }

    const test::TempFolder folder_;
};

TEST_F(Inputs, APipeThatNobodyWritesToEndsNoCommandsTurn) {
    ASSERT_EQ(::mkfifo(folder_.file("pipe").c_str(), 0600), 0);
    expectRefused(folder_.file("pipe"));
}

TEST_F(Inputs, ADeviceWithoutEndIsNotRead) {
    expectRefused("/dev/zero");
}

TEST_F(Inputs, ANameThatIsTooLongIsASentence) {
    expectRefused(std::string(5000, 'a'));
}

} // namespace
} // namespace vitrine
