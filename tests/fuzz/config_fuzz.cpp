// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/strict_json.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/model_config.h"
#include "kernels/core/dtype.h"

namespace base = vitrine::base;
namespace engine = vitrine::engine;

namespace {

/// What follows from a config that was accepted must not fail either.
void useConfig(const engine::ModelConfig& config) {
    for (const std::int64_t length : {std::int64_t{1}, std::int64_t{1} << 20}) {
        if (config.headDim > 4096) {
            break; // a large table takes time and tests nothing new
        }
        const engine::RopeTable table = engine::makeRopeTable(config, length);
        for (const float frequency : table.inverseFrequency) {
            if (!std::isfinite(frequency)) {
                std::abort();
            }
        }
    }
    config.kvBytes(std::int64_t{1} << 30, vitrine::kernels::DType::BF16);
    const bool small = config.layers.size() * static_cast<std::size_t>(config.experts + 1) < 2000;
    if (small) {
        for (const engine::TensorSpec& spec : engine::expectedTensors(config)) {
            engine::bytesOf(spec);
        }
    }
}

template <class Action> void expectOneLine(Action&& action) {
    try {
        action();
    } catch (const base::Error& error) {
        const bool inputsFault =
            error.kind() == base::ErrorKind::BadInput || error.kind() == base::ErrorKind::Unsupported;
        if (!inputsFault || error.message().find('\n') != std::string::npos) {
            std::abort();
        }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    nlohmann::json root;
    try {
        root = base::parseStrictJson(text, "fuzz");
    } catch (const base::BadInput&) {
        return 0;
    }
    expectOneLine([&] { useConfig(engine::parseModelConfig(root, "fuzz")); });
    expectOneLine([&] { engine::parseGenerationConfig(root, "fuzz"); });
    return 0;
}
