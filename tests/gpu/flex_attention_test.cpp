// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/flex_attention.h"

#include <optional>

#include "base/thread_pool.h"
#include "kernels/cuda/jit/kernel_library.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/program/program_testing.h"

namespace vitrine::kernels {
namespace {

using testing::Expr;
using testing::Maker;
using testing::TestTensor;

struct FlexCase {
    std::string name; ///< of the programs
    std::int64_t batch, heads, kvHeads, queries, keys, dim;
    DType type = DType::BF16;
    bool sinks = false;
    std::int64_t block = 128; ///< of the BlockMask; 0: the closed form
};

/// Programs by name, made as engine/attention would.
struct Programs {
    explicit Programs(const std::string& name) {
        Maker s;
        Maker m;
        const Expr causal = m.q >= m.k;
        if (name == "alibi_causal") {
            score = s.finish(s.score + s.load("slopes", ProgramType::Float, {s.h}, true) * (s.k - s.q));
        } else if (name == "softcap_causal") {
            score = s.finish((s.score / 2).of(ProgramOp::Tanh) * 2);
        } else if (name == "relative_bias") {
            score = s.finish(s.score + s.load("slopes", ProgramType::Float, {(s.q - s.k) % 5}, true));
        }
        if (name == "document_causal") {
            const auto documents = [&](const Expr& at) { return m.load("documents", ProgramType::Int32, {at}); };
            mask = m.finish(causal & (documents(m.q) == documents(m.k)));
        } else if (name == "sliding") {
            mask = m.finish(causal & ((m.q - m.k) <= 70));
        } else if (name == "empty_rows") {
            mask = m.finish((m.q >= m.number(150)) & causal);
        } else if (name == "by_head") {
            mask = m.finish(((m.q - m.k) % (m.h + 1) == 0) & causal);
        } else if (name.ends_with("causal")) {
            mask = m.finish(causal);
        }
    }
    std::optional<Program> score, mask;
};

class Scene {
public:
    explicit Scene(const FlexCase& item) : item_(item), programs_(item.name) {
        std::mt19937 random(23);
        const auto normal = [&](std::int64_t heads, std::int64_t rows) {
            TestTensor tensor(item.type, Shape{item.batch, heads, rows, item.dim});
            tensor.fillNormal(random);
            return tensor;
        };
        q = normal(item.heads, item.queries);
        k = normal(item.kvHeads, item.keys);
        v = normal(item.kvHeads, item.keys);
        gradOut = normal(item.heads, item.queries);
        out = TestTensor(item.type, q.view().shape);
        dq = TestTensor(item.type, q.view().shape);
        dk = TestTensor(item.type, k.view().shape);
        dv = TestTensor(item.type, k.view().shape);
        lse = TestTensor(DType::F32, Shape{item.batch, item.heads, item.queries});
        slopes = TestTensor(DType::F32, Shape{std::max<std::int64_t>(5, item.heads)});
        slopes.fillNormal(random);
        dSlopes = TestTensor(DType::F32, slopes.view().shape);
        std::vector<std::int32_t> ids;
        for (std::int64_t i = 0; i < std::max(item.queries, item.keys); ++i) {
            ids.push_back(static_cast<std::int32_t>(i / 90 + i / 200));
        }
        documents = TestTensor(DType::I32, Shape{static_cast<std::int64_t>(ids.size())});
        documents.fillInts(ids);
        if (item.sinks) {
            sinks = TestTensor(DType::F32, Shape{item.heads});
            sinks.fillNormal(random);
            dSinks = TestTensor(DType::F32, Shape{item.heads});
        }
        if (programs_.mask && item.block > 0) {
            base::ThreadPool pool(2);
            const CaptureBinding binding = bound(programs_.mask, onHost).captures;
            blocks_ = buildBlockMask(*programs_.mask, binding,
                                     {item.batch, item.heads, item.queries, item.keys, item.block, item.block}, pool);
        }
    }

    template <class At> FlexAttention forward(At&& at) const {
        FlexAttention op;
        op.q = at(q);
        op.k = at(k);
        op.v = at(v);
        op.score = bound(programs_.score, at);
        op.mask = bound(programs_.mask, at);
        op.blocks = blocks_ ? &*blocks_ : nullptr;
        op.sinks = at(sinks);
        op.scale = 1 / std::sqrt(static_cast<float>(item_.dim));
        op.out = at(out);
        op.lse = at(lse);
        return op;
    }
    template <class At> FlexAttentionBackward backward(At&& at) const {
        FlexAttentionBackward op;
        op.forward = forward(at);
        op.gradOut = at(gradOut);
        op.dq = at(dq);
        op.dk = at(dk);
        op.dv = at(dv);
        op.dSinks = at(dSinks);
        if (programs_.score && !programs_.score->captures.empty()) {
            op.dCaptures.push_back(at(dSlopes));
        }
        return op;
    }

    static TensorView onHost(const TestTensor& tensor) { return tensor.view(); }

    TestTensor q, k, v, gradOut, sinks, slopes, documents, out, lse, dq, dk, dv, dSinks, dSlopes;

private:
    template <class At> BoundProgram bound(const std::optional<Program>& program, At&& at) const {
        BoundProgram result;
        if (program) {
            result.program = &*program;
            for (const ProgramCapture& capture : program->captures) {
                result.captures.tensors.push_back(at(capture.name == "slopes" ? slopes : documents));
            }
        }
        return result;
    }

    const FlexCase& item_;
    Programs programs_;
    std::optional<BlockMask> blocks_;
};

/// The CPU computes in float and rounds once; tensor cores round weights as well.
constexpr double kTolerance = 1e-2;

void expectForward(const FlexCase& item) {
    SCOPED_TRACE(item.name + " dim " + std::to_string(item.dim));
    Scene scene(item);
    const auto make = [&](auto&& at) { return scene.forward(at); };
    const bool wide = item.type == DType::F32;
    testing::expectSameOnGpu(*testing::gpu(), make,
                             {{&scene.out, wide ? 1e-5 : kTolerance}, {&scene.lse, wide ? 1e-5 : 1e-4}});
}

void expectBackward(const FlexCase& item) {
    SCOPED_TRACE(item.name + " dim " + std::to_string(item.dim));
    Scene scene(item);
    CpuContext cpu(2);
    testing::runOp(cpu, scene.forward(Scene::onHost)); // out and lse
    const auto make = [&](auto&& at) { return scene.backward(at); };
    const bool wide = item.type == DType::F32;
    const double tolerance = wide ? 1e-4 : kTolerance;
    std::vector<testing::ComparedOutput> outputs = {
        {&scene.dq, tolerance}, {&scene.dk, tolerance}, {&scene.dv, tolerance}};
    if (item.sinks) {
        outputs.push_back({&scene.dSinks, tolerance});
    }
    if (item.name == "alibi_causal" || item.name == "relative_bias") {
        outputs.push_back({&scene.dSlopes, wide ? 2e-3 : kTolerance}); // large terms that cancel
    }
    testing::expectSameOnGpu(*testing::gpu(), make, outputs);
}

const std::vector<FlexCase>& cases() {
    static const std::vector<FlexCase> kCases = {
        {"noop", 1, 2, 2, 300, 77, 64},
        {"noop", 1, 2, 1, 77, 333, 128},
        {"causal", 2, 4, 2, 300, 300, 64},
        {"causal", 1, 4, 4, 513, 513, 128},
        {"causal", 1, 2, 2, 260, 260, 96},
        {"causal", 1, 2, 1, 200, 200, 32},
        {"causal", 1, 2, 1, 200, 200, 16},
        {"causal", 1, 4, 2, 300, 300, 64, DType::F16},
        {"causal", 1, 4, 2, 384, 384, 64, DType::BF16, true},
        {"alibi_causal", 2, 4, 2, 300, 300, 64},
        {"alibi_causal", 1, 4, 1, 260, 260, 128},
        {"alibi_causal", 1, 2, 2, 150, 150, 80},
        {"relative_bias", 1, 4, 2, 200, 200, 64},
        {"softcap_causal", 1, 2, 2, 300, 300, 128},
        {"sliding", 1, 4, 2, 600, 600, 64},
        {"sliding", 1, 2, 2, 300, 300, 256},
        {"document_causal", 1, 4, 2, 700, 700, 128},
        {"document_causal", 1, 2, 2, 700, 700, 64, DType::BF16, false, 256},
        {"by_head", 1, 4, 2, 300, 300, 64},
    };
    return kCases;
}

TEST(FlexAttentionGpu, ForwardAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    for (const FlexCase& item : cases()) {
        expectForward(item);
    }
}

TEST(FlexAttentionGpu, ForwardInFloat32AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    for (FlexCase item : cases()) {
        item.type = DType::F32;
        expectForward(item);
    }
}

TEST(FlexAttentionGpu, ClosedFormsNeedNoBlocks) {
    VITRINE_NEEDS_GPU();
    for (FlexCase item : cases()) {
        if (item.name == "causal" || item.name == "sliding") {
            item.block = 0;
            expectForward(item);
        }
    }
}

TEST(FlexAttentionGpu, BackwardAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    for (const FlexCase& item : cases()) {
        expectBackward(item);
    }
}

TEST(FlexAttentionGpu, BackwardInFloat32AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    for (FlexCase item : cases()) {
        item.type = DType::F32;
        expectBackward(item);
    }
}

TEST(FlexAttentionGpu, RowsThatSeeNothing) {
    VITRINE_NEEDS_GPU();
    for (const std::int64_t dim : {64, 96}) {
        const FlexCase item{"empty_rows", 1, 2, 2, 300, 300, dim};
        Scene scene(item);
        testing::expectSameOnGpu(
            *testing::gpu(), [&](auto&& at) { return scene.forward(at); }, {&scene.out}, kTolerance);
        testing::OnDevice device(*testing::gpu());
        FlexAttention op = scene.forward(device);
        device.run(op);
        device.download(scene.lse);
        const std::vector<double> lse = scene.lse.values();
        EXPECT_EQ(lse[0], -std::numeric_limits<double>::infinity());
        EXPECT_EQ(lse[149], -std::numeric_limits<double>::infinity());
        EXPECT_TRUE(std::isfinite(lse[150]));
    }
}

TEST(FlexAttentionGpu, TheSameBitsTwice) {
    VITRINE_NEEDS_GPU();
    const FlexCase item{"alibi_causal", 2, 4, 2, 300, 300, 64};
    std::vector<std::vector<double>> results;
    for (int run = 0; run < 2; ++run) {
        Scene scene(item);
        CpuContext cpu(2);
        testing::runOp(cpu, scene.forward(Scene::onHost));
        testing::OnDevice device(*testing::gpu());
        FlexAttentionBackward op = scene.backward(device);
        device.run(op);
        device.download(scene.dSlopes);
        device.download(scene.dk);
        results.push_back(scene.dSlopes.values());
        results.push_back(scene.dk.values());
    }
    EXPECT_EQ(results[0], results[2]);
    EXPECT_EQ(results[1], results[3]);
}

TEST(FlexAttentionGpu, NewContentsNeedNoNewKernels) {
    VITRINE_NEEDS_GPU();
    const FlexCase item{"document_causal", 1, 4, 2, 700, 700, 64};
    expectForward(item);
    const std::size_t known = testing::gpu()->library().uses().size();
    FlexCase longer = item;
    longer.queries = longer.keys = 900;
    expectForward(longer);
    EXPECT_EQ(testing::gpu()->library().uses().size(), known);
}

TEST(FlexAttentionGpu, WhatTheDeviceCannotDoIsSaid) {
    VITRINE_NEEDS_GPU();
    for (const FlexCase& item :
         {FlexCase{"by_head", 1, 2, 2, 100, 100, 64, DType::BF16, false, 0},
          FlexCase{"causal", 1, 2, 2, 100, 100, 64, DType::F32, false, 0}, FlexCase{"causal", 1, 2, 2, 100, 100, 72},
          FlexCase{"causal", 1, 2, 2, 100, 100, 64, DType::BF16, false, 96}}) {
        Scene scene(item);
        testing::OnDevice device(*testing::gpu());
        FlexAttention op = scene.forward(device);
        EXPECT_THROW(device.run(op), base::Unsupported) << item.name;
    }
}

} // namespace
} // namespace vitrine::kernels
