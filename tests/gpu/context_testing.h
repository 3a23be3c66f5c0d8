// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tests that need a GPU: without one they say why and are skipped.

#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "kernels/context/context.h"
#include "kernels/context/context_options.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/memory/memory.h"

namespace vitrine::gpu {

class GpuTest : public testing::Test {
protected:
    void SetUp() override {
        if (const std::string why = kernels::whyNoCuda(); !why.empty()) {
            GTEST_SKIP() << why;
        }
        // The first context opens the device; while one lives the others of the program start at once.
        static const auto kOpen =
            std::make_unique<kernels::Context>(kernels::ContextOptions{.backend = kernels::Backend::Cuda});
    }
};

/// `graphs`: decode steps become graphs, as runs have it; else every op runs and is recorded each time.
inline std::unique_ptr<kernels::Context> cudaContext(base::TraceSink* sink = nullptr, bool graphs = false) {
    kernels::ContextOptions options;
    options.backend = kernels::Backend::Cuda;
    options.sink = sink;
    options.profile = kernels::ProfileLevel::Full;
    options.foldSteps = graphs;
    return std::make_unique<kernels::Context>(options);
}

/// Device memory with the values of a vector.
template <class T> class DeviceArray {
public:
    DeviceArray(kernels::Context& context, const std::vector<T>& values)
        : context_(context), buffer_(context.memory().general(), values.size() * sizeof(T),
                                     {base::MemoryCategory::Other, "test", kernels::DType::U8, {}}),
          count_(values.size()) {
        context.upload(values.data(), buffer_.data(), values.size() * sizeof(T));
    }
    T* data() const { return static_cast<T*>(buffer_.data()); }
    std::size_t size() const { return count_; }
    std::vector<T> read() const {
        std::vector<T> values(count_);
        context_.download(buffer_.data(), values.data(), count_ * sizeof(T));
        return values;
    }

private:
    kernels::Context& context_;
    kernels::Buffer buffer_;
    std::size_t count_;
};

} // namespace vitrine::gpu
