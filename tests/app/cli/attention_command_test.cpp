// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// `vitrine mask` and `vitrine attention`: programs from Python text, against PyTorch's reference tensors.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sessions/session_file.h"
#include "tests/app/program.h"
#include "tests/fixture_paths.h"
#include "tests/kernels/ops/attention/flex_fixture.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using kernels::testing::FlexFixture;
using nlohmann::json;
using test::ProgramResult;
using test::TempFolder;
using testing::HasSubstr;

constexpr std::string_view kMods = R"(
import torch
from torch.nn.attention.flex_attention import and_masks, or_masks

def relative(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx) * 0.01

def alibi(score, b, h, q_idx, kv_idx):
    return score + slopes[h] * (kv_idx - q_idx)

def softcap(score, b, h, q_idx, kv_idx):
    return torch.tanh(score / 2) * 2

def add_bias(score, b, h, q_idx, kv_idx):
    return score + bias[q_idx, kv_idx]

def add_relbias(score, b, h, q_idx, kv_idx):
    return score + relbias[h, q_idx - kv_idx + 383]

def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx

def make_sliding(window):
    def inside(b, h, q_idx, kv_idx):
        return q_idx - kv_idx < window
    return and_masks(causal, inside)

def prefix(b, h, q_idx, kv_idx):
    return kv_idx < prefix_length[b]

prefix_lm = or_masks(prefix, causal)

def document_causal(b, h, q_idx, kv_idx):
    same = document_id[q_idx] == document_id[kv_idx]
    return same & causal(b, h, q_idx, kv_idx)

def dilated_head(b, h, q_idx, kv_idx):
    return ((q_idx - kv_idx) % (h + 1) == 0) & (q_idx >= kv_idx)

def empty_rows(b, h, q_idx, kv_idx):
    return (q_idx >= 50) & (kv_idx <= q_idx)
)";

/// A folder with the text above in mods.py.
class AttentionCommand : public testing::Test {
protected:
    void SetUp() override { write("mods.py", kMods); }

    void write(const std::string& name, std::string_view text) { std::ofstream(file(name)) << text; }
    std::string file(const std::string& name) const { return (folder_.path() / name).string(); }

    json run(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin() + 1, {"--mods", file("mods.py")});
        arguments.emplace_back("--json");
        const ProgramResult result = test::vitrine(arguments);
        EXPECT_EQ(result.exitCode, 0) << result.err;
        return result.exitCode == 0 ? json::parse(result.out) : json();
    }
    std::string failure(const std::vector<std::string>& arguments) {
        const ProgramResult result = test::vitrine(arguments);
        EXPECT_EQ(result.exitCode, 2) << result.out;
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
        return result.err;
    }

    TempFolder folder_;
};

struct Case {
    std::string fixture, name, score, mask;
    bool sinks = false;
};

const std::vector<Case>& cases() {
    static const std::vector<Case> kCases = {
        {"flex", "noop", "", ""},
        {"flex", "relative", "relative", ""},
        {"flex", "alibi_causal", "alibi", "causal"},
        {"flex", "softcap_causal", "softcap", "causal"},
        {"flex", "sliding", "", "make_sliding(18)"},
        {"flex", "prefix_lm", "", "prefix_lm"},
        {"flex", "document_causal", "", "document_causal"},
        {"flex", "bias", "add_bias", ""},
        {"flex", "dilated_head", "", "dilated_head"},
        {"flex", "empty_rows", "", "empty_rows"},
        {"flex384", "relbias", "add_relbias", ""},
        {"flex384", "sliding100_sinks", "", "make_sliding(100)", true},
    };
    return kCases;
}

void expectRows(const FlexFixture& actual, const FlexFixture& expected, const std::string& field,
                const std::string& name) {
    const kernels::TensorView ours = actual.view(field);
    const kernels::TensorView theirs = expected.view(name);
    const std::int64_t dim = theirs.shape[3];
    double worst = 0;
    for (std::int64_t i = 0; i < theirs.shape.count(); ++i) {
        const std::int64_t row = i / dim;
        const std::int64_t plane = row / theirs.shape[2];
        const std::int64_t from =
            kernels::testing::kFirstKeptRow + row % theirs.shape[2] * kernels::testing::kKeptRowStep;
        const double value = ours.as<const float>()[(plane * ours.shape[2] + from) * dim + i % dim];
        worst = std::max(worst, std::fabs(value - static_cast<double>(theirs.as<const float>()[i])));
    }
    EXPECT_LE(worst, 1e-5) << name;
}

TEST_F(AttentionCommand, ReferenceProgramsFromText) {
    for (const Case& c : cases()) {
        const std::string tensors = test::fixture(std::string(c.fixture) + "/flex.safetensors");
        std::vector<std::string> arguments{"attention", "--tensors", tensors, "--backward", "--backend",
                                           "cpu",       "--repeat",  "1",     "--output",   file("out.safetensors")};
        for (const auto& [flag, text] : {std::pair{"--score", c.score}, std::pair{"--mask", c.mask}}) {
            if (!text.empty()) {
                arguments.insert(arguments.end(), {flag, text});
            }
        }
        if (!c.sinks) {
            arguments.emplace_back("--no-sinks");
        }
        const json report = run(arguments);
        ASSERT_TRUE(report.is_object()) << c.name;
        EXPECT_GT(report["forward_ms"], 0);
        EXPECT_GT(report["backward_tflops"], 0);
        const FlexFixture expected(c.fixture);
        const FlexFixture actual = FlexFixture::read(file("out.safetensors"));
        for (const char* field : {"out", "dq", "dk", "dv"}) {
            expectRows(actual, expected, field, c.name + "." + field);
        }
        for (const auto& [ours, theirs] :
             {std::pair{"d.relbias", c.name + ".d.relbias"}, std::pair{"d.sinks", c.name + ".d.sinks"}}) {
            ASSERT_EQ(actual.has(ours), expected.has(theirs)) << theirs;
            if (actual.has(ours)) {
                EXPECT_THAT(actual.floats(ours),
                            testing::Pointwise(testing::FloatNear(1e-5F), expected.floats(theirs)));
            }
        }
    }
}

TEST_F(AttentionCommand, ASavedRunKeepsItsPrograms) {
    const json report = run({"attention", "--mask", "make_sliding(18)", "--random", "1,2,2,64,16", "--session",
                             file("runs.vitrine"), "--repeat", "1", "--backend", "cpu"});
    EXPECT_GT(report["forward_ms"], 0);
    const auto session = sessions::SessionFile::open(file("runs.vitrine"), sessions::OpenMode::ReadOnly);
    const std::vector<sessions::RunInfo> runs = session->runs();
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_EQ(runs[0].workload, "attention");
    EXPECT_EQ(runs[0].name, "attention make_sliding(18)");
    EXPECT_EQ(json::parse(runs[0].specJson)["mask"], "make_sliding(18)");
    EXPECT_EQ(json::parse(runs[0].metricsJson)["forward_ms"], report["forward_ms"]);
    const std::vector<sessions::RunText> texts = session->texts(runs[0].id);
    ASSERT_EQ(texts.size(), 1U);
    EXPECT_EQ(texts[0].kind, "mods." + file("mods.py"));
    EXPECT_THAT(texts[0].body, HasSubstr("def make_sliding"));
}

TEST_F(AttentionCommand, MetaEstimatesWithoutComputing) {
    const json report = run({"attention", "--mask", "causal", "--random", "4,16,16,8192,128", "--backward", "--backend",
                             "meta", "--device-profile", "h200"});
    EXPECT_EQ(report["backend"], "meta");
    EXPECT_EQ(report["dtype"], "bfloat16");
    // 64 block rows: 2,080 blocks of each head.
    EXPECT_DOUBLE_EQ(report["forward_flops"], 4.0 * 64 * 2080 * 128 * 128 * 128);
    EXPECT_GT(report["forward_ms"], 0);
    EXPECT_GT(report["backward_ms"], report["forward_ms"]);
}

TEST_F(AttentionCommand, MaskCountsBlocksAndDrawsThem) {
    const json report = run({"mask", "--mask", "make_sliding(100)", "--q-len", "1000", "--kv-len", "1000", "--png",
                             file("mask.png"), "--output", file("mask.safetensors")});
    EXPECT_EQ(
        report["blocks_full"].get<int>() + report["blocks_partial"].get<int>() + report["blocks_empty"].get<int>(), 64);
    EXPECT_EQ(report["blocks_partial"], 15);
    EXPECT_EQ(report["blocks_full"], 0);
    EXPECT_DOUBLE_EQ(report["block_sparsity"], 1 - 15.0 / 64);
    EXPECT_DOUBLE_EQ(report["element_density"], (100 * 101 / 2 + 900 * 100) / 1e6);
    EXPECT_EQ(report["closed_form"], true);
    EXPECT_EQ(report["block_mask_cached"], false);
    EXPECT_EQ(report["backend"], "cpu");
    for (const char* key : {"full_share", "metadata_bytes", "build_seconds", "density_seconds"}) {
        EXPECT_TRUE(report.contains(key)) << key;
    }
    EXPECT_GT(std::filesystem::file_size(file("mask.png")), 1000U);
    EXPECT_EQ(FlexFixture::read(file("mask.safetensors")).integers("kv_num_blocks"),
              (std::vector<std::int32_t>{1, 2, 2, 2, 2, 2, 2, 2}));
}

TEST_F(AttentionCommand, FailuresAreOneLineThatNamesThePlace) {
    write("broken.py", "def causal(b, h, q_idx, kv_idx):\n    return q_idx >= kv_id\n");
    EXPECT_THAT(failure({"mask", "--mods", file("broken.py"), "--mask", "causal", "--q-len", "8", "--kv-len", "8"}),
                HasSubstr("broken.py:2:"));
    EXPECT_THAT(
        failure({"mask", "--mods", file("mods.py"), "--mask", "causal", "--q-len", "8", "--kv-len", "4000000000"}),
        HasSubstr("kv_len"));
    EXPECT_THAT(failure({"attention", "--mods", file("mods.py"), "--mask", "causal", "--random", "1,2,3"}),
                HasSubstr("--random"));
    EXPECT_THAT(failure({"attention", "--mods", file("mods.py"), "--mask", "causal"}), HasSubstr("--tensors"));
    EXPECT_THAT(
        failure({"mask", "--mods", file("mods.py"), "--mask", "document_causal", "--q-len", "8", "--kv-len", "8"}),
        HasSubstr("document_id"));
}

} // namespace
} // namespace vitrine
