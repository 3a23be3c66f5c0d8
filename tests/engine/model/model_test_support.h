// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What tests of models share: contexts, fixtures, recorded events.

#include <cstring>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/trace.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/model/model.h"
#include "kernels/context/context.h"
#include "kernels/context/context_options.h"
#include "kernels/memory/growing.h"
#include "kernels/memory/resource.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine::test {

using vitrine::test::fixture;

/// Every model fixture.
inline std::vector<std::string> modelFixtures() {
    return {"gpt-oss-bf16", "gpt-oss-mxfp4", "llama",         "llama-linear-rope", "llama-dynamic-rope", "mistral",
            "qwen2",        "qwen2-sliding", "qwen3",         "qwen3-tied",        "qwen3-moe",          "gemma2",
            "deepseek-v3",  "kimi-k2",       "llama-longrope"};
}

/// A tensor of a safetensors file as numbers.
template <class T> std::vector<T> readTensor(const std::string& path, const std::string& name) {
    const auto file = SafetensorsFile::open(path);
    const TensorEntry* entry = file->find(name);
    std::vector<T> values(entry->bytes / sizeof(T));
    file->read(*entry, 0, values.data(), entry->bytes);
    return values;
}

/// The logits of every token of one sequence.
inline std::vector<float> stepLogits(Model& model, const std::vector<std::int32_t>& tokens) {
    StepBatch batch;
    batch.sequences = {{0, tokens}};
    batch.logits = StepLogits::All;
    std::vector<float> logits(static_cast<std::size_t>(model.config().vocab) * tokens.size());
    batch.logitsOut = logits.data();
    model.step(batch);
    return logits;
}

/// Token ids, I32 or I64.
inline std::vector<std::int32_t> readIds(const std::string& path, const std::string& name) {
    if (SafetensorsFile::open(path)->find(name)->dtype == kernels::DType::I32) {
        return readTensor<std::int32_t>(path, name);
    }
    const auto wide = readTensor<std::int64_t>(path, name);
    return {wide.begin(), wide.end()};
}

/// Allocations and frees as lines without times and addresses, numbered in the order of their appearance.
class RecordingSink final : public base::TraceSink {
public:
    base::StringId intern(std::string_view text) override {
        const std::lock_guard lock(mutex_);
        names_.emplace_back(text);
        return {static_cast<std::uint32_t>(names_.size())};
    }
    void record(const base::TraceEvent& event) override {
        const std::lock_guard lock(mutex_);
        if (const auto* allocation = std::get_if<base::AllocationEvent>(&event)) {
            std::string shape;
            for (int i = 0; i < allocation->dimensions; ++i) {
                shape += fmt::format("{},", allocation->shape[static_cast<std::size_t>(i)]);
            }
            const std::size_t number = numbers_.emplace(allocation->id, numbers_.size()).first->second;
            lines_.push_back(fmt::format("+ {} {} {} {} {} ({})", number, name(allocation->name), allocation->bytes,
                                         base::categoryName(allocation->category), allocation->dtype, shape));
        } else if (const auto* freed = std::get_if<base::FreeEvent>(&event)) {
            lines_.push_back(fmt::format("- {}", numbers_.at(freed->id)));
        } else if (const auto* counter = std::get_if<base::CounterEvent>(&event)) {
            counters_.emplace_back(name(counter->name), counter->value);
        } else if (const auto* span = std::get_if<base::SpanEvent>(&event)) {
            lanes_.push_back(name(span->lane));
        }
    }
    const std::vector<std::string>& lines() const { return lines_; }
    const std::vector<std::string>& lanes() const { return lanes_; }
    const std::vector<std::pair<std::string, double>>& counters() const { return counters_; }

private:
    const std::string& name(base::StringId id) const {
        static const std::string kEmpty;
        return id.value == 0 ? kEmpty : names_[id.value - 1];
    }
    std::mutex mutex_;
    std::vector<std::string> names_;
    std::map<std::uint64_t, std::size_t> numbers_;
    std::vector<std::string> lines_;
    std::vector<std::string> lanes_;
    std::vector<std::pair<std::string, double>> counters_;
};

inline kernels::DeviceTraits testTraits() {
    return kernels::loadDeviceProfile("h100-80gb");
}

/// A context of this backend; with `traits` both backends must allocate alike. Every event is recorded.
inline std::unique_ptr<kernels::Context> makeContext(kernels::Backend backend, base::TraceSink* sink = nullptr,
                                                     const kernels::DeviceTraits* traits = nullptr) {
    kernels::ContextOptions options;
    options.backend = backend;
    options.threads = 2;
    options.sink = sink;
    options.profile = kernels::ProfileLevel::Full;
    if (traits != nullptr) {
        options.traits = *traits;
    } else if (backend == kernels::Backend::Meta) {
        options.traits = testTraits();
    }
    return std::make_unique<kernels::Context>(options);
}

} // namespace vitrine::engine::test
