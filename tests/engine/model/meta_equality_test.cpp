// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The promise of planning: with the same traits, CPU and Meta make the same allocations in the same order.

#include <algorithm>
#include <gtest/gtest.h>

#include "engine/generation/generator.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

struct Case {
    std::string model;
    bool dequantize = false;
    kernels::DType dtype = kernels::DType::BF16;
    KvCacheKind cache = KvCacheKind::Dynamic;
    kernels::DType kvDtype = kernels::DType::None; ///< None: as dtype
};

std::vector<std::string> recorded(kernels::Backend backend, const Case& item) {
    const kernels::DeviceTraits traits = test::testTraits();
    test::RecordingSink sink;
    {
        const auto context = test::makeContext(backend, &sink, &traits);
        const ModelSource source = openModel(item.model);
        Model model(*context, source, {item.dequantize, item.dtype, 7}, nullptr);
        GenerateOptions options;
        options.cache.kind = item.cache;
        options.cache.dtype = item.kvDtype == kernels::DType::None ? item.dtype : item.kvDtype;
        options.cache.pageTokens = item.cache == KvCacheKind::Dynamic ? 4 : 0;
        options.prefillChunk = 11;
        options.topLogprobs = 2;
        std::vector<GenerateRequest> requests(3);
        for (std::size_t i = 0; i < requests.size(); ++i) {
            for (std::size_t t = 0; t < 5 + 6 * i; ++t) {
                requests[i].prompt.push_back(static_cast<std::int32_t>((7 * t + i) % 100));
            }
            requests[i].maxNewTokens = 9 + static_cast<std::int64_t>(3 * i);
        }
        GenerateReport report;
        Generator(model, nullptr, options).run(requests, report, {});
    }
    return sink.lines();
}

class MetaEquality : public ::testing::TestWithParam<Case> {};

TEST_P(MetaEquality, SameAllocationsInTheSameOrder) {
    const auto cpu = recorded(kernels::Backend::Cpu, GetParam());
    const auto meta = recorded(kernels::Backend::Meta, GetParam());
    ASSERT_GT(cpu.size(), 200U);
    for (std::size_t i = 0; i < std::min(cpu.size(), meta.size()); ++i) {
        ASSERT_EQ(cpu[i], meta[i]) << "event " << i;
    }
    EXPECT_EQ(cpu.size(), meta.size());
}

std::vector<Case> cases() {
    std::vector<Case> out;
    for (const char* family : {"gpt-oss", "llama", "mistral", "qwen2", "qwen3", "qwen3-moe", "gemma2"}) {
        out.push_back({std::string("synthetic:tiny-") + family});
        out.push_back({std::string("synthetic:tiny-") + family, true, kernels::DType::F32, KvCacheKind::Static});
        out.push_back({std::string("synthetic:tiny-") + family, false, kernels::DType::BF16, KvCacheKind::Paged});
        out.push_back({std::string("synthetic:tiny-") + family, false, kernels::DType::BF16, KvCacheKind::Dynamic,
                       kernels::DType::F8E4M3});
        out.push_back({std::string("synthetic:tiny-") + family, false, kernels::DType::F32, KvCacheKind::Paged,
                       kernels::DType::I8});
    }
    for (const std::string& name : test::modelFixtures()) {
        out.push_back({test::fixture(name)});
    }
    out.push_back({test::fixture("gpt-oss-mxfp4"), true});
    return out;
}

std::string metaCaseName(const ::testing::TestParamInfo<Case>& info) {
    std::string name = info.param.model.substr(info.param.model.find_last_of("/:") + 1);
    name += info.param.model.starts_with("synthetic") ? "_synthetic" : "";
    name += info.param.cache == KvCacheKind::Paged ? "_paged" : "";
    name += info.param.dequantize ? "_dequantized" : "";
    name += info.param.kvDtype == kernels::DType::None ? "" : "_" + std::string(kernels::dtypeName(info.param.kvDtype));
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Every, MetaEquality, ::testing::ValuesIn(cases()), metaCaseName);

} // namespace
} // namespace vitrine::engine
