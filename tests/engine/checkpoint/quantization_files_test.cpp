// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/shards.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/checkpoint/log_capture.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using test::copyFixture;
using test::failure;
using test::readBytes;
using test::TempFolder;
using test::warningsOf;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A GPTQ model whose config.json says nothing of it.
class QuantizationFiles : public testing::Test {
protected:
    QuantizationFiles() {
        copyFixture("gptq-v2", folder_);
        config_ = json::parse(readBytes(folder_.file("config.json")));
        quantization_ = config_["quantization_config"];
        packings_ = openModel(folder_.path()).config.packings;
        json plain = config_;
        plain.erase("quantization_config");
        folder_.write("config.json", plain.dump());
    }

    TempFolder folder_;
    json config_, quantization_;
    std::map<std::string, WeightPacking, std::less<>> packings_;
};

TEST_F(QuantizationFiles, AutoGptqsFileStandsForQuantizationConfig) {
    json beside = quantization_;
    beside.erase("quant_method");
    beside["damp_percent"] = 0.01;
    beside["model_name_or_path"] = nullptr;
    folder_.write("quantize_config.json", beside.dump());
    EXPECT_THAT(warningsOf([&] {
                    const ModelSource source = openModel(folder_.path());
                    EXPECT_EQ(source.config.packings, packings_);
                    // What is written from this model has one file that says it.
                    EXPECT_EQ(json::parse(source.configText)["quantization_config"]["format"], "gptq_v2");
                }),
                IsEmpty());
    const TempFolder other;
    EXPECT_THAT(copySmallFiles(folder_.path(), other.path()), Not(testing::Contains("quantize_config.json")));
}

TEST_F(QuantizationFiles, AutoAwqsFileHasItsOwnNames) {
    folder_.write("quant_config.json", R"({"zero_point": true, "q_group_size": 32, "w_bit": 4, "version": "GEMM"})");
    // The tensors are those of GPTQ: the message says what AWQ would have.
    EXPECT_THAT(failure([&] { openModel(folder_.path()); }),
                HasSubstr("qweight: has shape (8, 64), but config.json needs (64, 8)"));
    folder_.write("quant_config.json", R"({"q_group_size": 32, "w_bit": 3})");
    EXPECT_THAT(failure([&] { openModel(folder_.path()); }), HasSubstr("quant_config.json: w_bit: 3"));
    folder_.write("quant_config.json", "[]");
    EXPECT_THAT(failure([&] { openModel(folder_.path()); }), HasSubstr("quant_config.json: must be an object"));
}

TEST_F(QuantizationFiles, ConfigJsonCountsAndADifferenceIsNamed) {
    folder_.write("config.json", config_.dump());
    folder_.write("quantize_config.json", quantization_.dump());
    EXPECT_THAT(warningsOf([&] { openModel(folder_.path()); }), IsEmpty());
    for (const auto& [field, value] : {std::pair{"group_size", json(64)}, std::pair{"bits", json(3)}}) {
        json other = quantization_;
        other[field] = value;
        folder_.write("quantize_config.json", other.dump());
        EXPECT_THAT(warningsOf([&] { EXPECT_EQ(openModel(folder_.path()).config.packings, packings_); }),
                    ElementsAre(AllOf(HasSubstr("quantize_config.json: differs from quantization_config"))));
    }
}

TEST_F(QuantizationFiles, FilesOfOtherProgramsAreRefusedByName) {
    folder_.write("hf_quant_config.json", R"({"quantization": {"quant_algo": "FP8"}})");
    EXPECT_THAT(failure([&] { openModel(folder_.path()); }),
                AllOf(HasSubstr("unsupported: "), HasSubstr("hf_quant_config.json: weights packed by ModelOpt")));
    folder_.write("config.json", config_.dump());
    EXPECT_THAT(warningsOf([&] { openModel(folder_.path()); }), ElementsAre(HasSubstr("hf_quant_config.json")));
}

TEST_F(QuantizationFiles, WithoutAnyTheMessageNamesThePackedTensor) {
    EXPECT_THAT(failure([&] { openModel(folder_.path()); }),
                HasSubstr("self_attn.q_proj.qweight is there, but no quantization_config describes it"));
}

TEST_F(QuantizationFiles, ZerosThatContradictSymAreUsedAndNamed) {
    config_["quantization_config"]["sym"] = true;
    folder_.write("config.json", config_.dump());
    EXPECT_THAT(warningsOf([&] { openModel(folder_.path()); }),
                ElementsAre(HasSubstr("quantization_config.sym: is true, but the files hold zeros")));
}

} // namespace
} // namespace vitrine::engine
