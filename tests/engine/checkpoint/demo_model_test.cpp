// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/philox.h"
#include "base/resource_path.h"
#include "engine/checkpoint/synthesize.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;

const std::string& demoFolder() {
    static const std::string kFolder = base::resourcePath("models/vitrine-demo");
    return kFolder;
}

/// Nearly normal numbers from sums of uniform ones: integers and one product only, so that every machine makes the
/// same.
float nearlyNormal(const std::array<std::uint32_t, 4>& bits) {
    std::int64_t sum = 0;
    for (const std::uint32_t word : bits) {
        sum += static_cast<std::int64_t>(word >> 8) - (std::int64_t{1} << 23);
    }
    constexpr float kRootOfThree = 1.7320508F; // four uniform numbers in [-1, 1) have the deviation 2 / sqrt(3)
    return static_cast<float>(sum) * (kRootOfThree / 2 / (1 << 23));
}

std::uint16_t toBf16(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

void fillDemo(const TensorSpec& spec, const RandomRule& rule, std::uint32_t stream, void* data) {
    const base::PhiloxKey key = base::philoxKey(2026, stream);
    const std::uint64_t bytes = bytesOf(spec);
    auto* out = static_cast<std::uint8_t*>(data);
    if (spec.dtype == kernels::DType::U8 && rule.deviation == 0) {
        std::memset(out, static_cast<int>(rule.center), bytes);
        return;
    }
    const std::uint64_t step = spec.dtype == kernels::DType::U8 ? 1 : 2;
    for (std::uint64_t i = 0; i < bytes; i += step) {
        const auto bits = base::philox4x32(key, i / step, 0);
        const std::uint16_t value = step == 1 ? static_cast<std::uint16_t>(bits[0] >> 24)
                                              : toBf16(rule.center + rule.deviation * nearlyNormal(bits));
        std::memcpy(out + i, &value, step);
    }
}

TEST(DemoModel, OpensAndIsSmall) {
    const ModelSource source = openModel(demoFolder());
    EXPECT_EQ(source.config.family, Family::GptOss);
    EXPECT_EQ(source.config.expertFormat, kernels::WeightFormat::Mxfp4);
    EXPECT_EQ(source.config.layers.size(), 6U);
    EXPECT_EQ(source.config.layers[0].window, 64);
    EXPECT_EQ(source.config.layers[1].window, 0);
    EXPECT_FALSE(source.tokenizerFile.empty());
    EXPECT_NE(source.chatTemplate.find("<|start|>assistant"), std::string::npos);
    EXPECT_EQ(source.generation.eosTokens.size(), 3U);
    std::uintmax_t bytes = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(demoFolder())) {
        bytes += entry.file_size();
    }
    EXPECT_LT(bytes, 8'000'000U);
}

// VITRINE_WRITE_DEMO_MODEL=1 puts the weights into the source tree instead of comparing.
TEST(DemoModel, WeightsCanBeMadeAnew) {
    const test::TempFolder folder;
    ModelSource source;
    source.configText = test::readBytes(demoFolder() + "/config.json");
    const nlohmann::json config = nlohmann::json::parse(source.configText);
    source.config = parseModelConfig(config, "config.json");
    synthesizeCheckpoint(source, folder.file("model"), fillDemo, nullptr, {});
    const std::string shipped = demoFolder() + "/model.safetensors";
    if (std::getenv("VITRINE_WRITE_DEMO_MODEL") != nullptr) {
        fs::copy_file(folder.file("model/model.safetensors"), shipped, fs::copy_options::overwrite_existing);
    }
    EXPECT_TRUE(test::readBytes(folder.file("model/model.safetensors")) == test::readBytes(shipped));
}

} // namespace
} // namespace vitrine::engine
