// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/emitter.h"

#include <array>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/cuda/jit/kernel_pack.h"
#include "kernels/cuda/jit/nvrtc.h"
#include "tests/kernels/program/program_testing.h"

namespace vitrine::kernels {
namespace {

using testing::Expr;
using testing::floorDiv;
using testing::Maker;
using testing::where;

std::vector<DType> dtypesOf(const Program& program) {
    std::vector<DType> out;
    for (const ProgramCapture& capture : program.captures) {
        out.push_back(capture.type == ProgramType::Float   ? DType::F32
                      : capture.type == ProgramType::Int64 ? DType::I64
                      : capture.type == ProgramType::Bool  ? DType::Bool
                                                           : DType::I32);
    }
    return out;
}

struct Item {
    std::string name;
    Program program;
};

/// Programs as the catalogue has them.
std::vector<Item> catalogue() {
    std::vector<Item> items;
    const auto add = [&](const char* name, const auto& make) {
        Maker m;
        const Expr value = make(m);
        items.push_back({name, m.finish(value)});
    };
    const auto ids = [](Maker& m, const Expr& at) { return m.load("document_id", ProgramType::Int32, {at}); };
    add("noop", [](Maker& m) { return m.k >= m.number(0); });
    add("causal", [](Maker& m) { return m.q >= m.k; });
    add("sliding", [](Maker& m) { return (m.q >= m.k) & ((m.q - m.k) < m.load("window", ProgramType::Int32, {})); });
    add("prefix", [](Maker& m) { return (m.k < m.load("prefix", ProgramType::Int64, {m.b})) | (m.q >= m.k); });
    add("document", [&](Maker& m) { return (m.q >= m.k) & (ids(m, m.q) == ids(m, m.k)); });
    add("jagged", [&](Maker& m) {
        const Expr offset = m.load("offsets", ProgramType::Int64, {ids(m, m.q)});
        return (ids(m, m.q) == ids(m, m.k)) & ((m.q - offset) >= (m.k - offset));
    });
    add("dilated", [](Maker& m) { return ((m.q - m.k) % (m.h + 1) == 0) & (m.q >= m.k); });
    add("global_sliding", [](Maker& m) { return (m.k < m.number(4)) | ((m.q - m.k).of(ProgramOp::Abs) <= 64); });
    add("strided", [](Maker& m) { return (m.q >= m.k) & ((m.k % 48) == m.number(47)); });
    add("block_diffusion", [](Maker& m) { return floorDiv(m.q, 32) >= floorDiv(m.k, 32); });
    add("natten", [](Maker& m) {
        const Expr x = floorDiv(m.q, 40) - floorDiv(m.k, 40);
        const Expr y = m.q % 40 - m.k % 40;
        return (x.of(ProgramOp::Abs) <= 2) & (y.of(ProgramOp::Abs) <= 2);
    });
    add("table", [](Maker& m) { return m.load("allowed", ProgramType::Bool, {m.b, m.q, m.k}); });
    add("relative", [](Maker& m) { return m.score + (m.q - m.k) * 0.01; });
    add("alibi", [](Maker& m) { return m.score + m.load("slopes", ProgramType::Float, {m.h}, true) * (m.k - m.q); });
    add("softcap", [](Maker& m) { return (m.score / 50).of(ProgramOp::Tanh) * 50; });
    add("bias", [](Maker& m) { return m.score + m.load("bias", ProgramType::Float, {m.h, m.q, m.k}, true); });
    add("relbias", [](Maker& m) { return m.score + m.load("rel", ProgramType::Float, {m.h, m.q - m.k + 383}, true); });
    add("temperature", [](Maker& m) { return m.score * m.load("temperature", ProgramType::Float, {}, true); });
    add("blocked", [](Maker& m) { return where(m.q >= m.k, m.score, m.number(-INFINITY)); });
    std::mt19937 random(3);
    for (int i = 0; i < 6; ++i) {
        testing::RandomProgram source(random, 64, 4);
        items.push_back({"random_mask" + std::to_string(i), source.mask()});
        items.push_back({"random_score" + std::to_string(i), source.score()});
    }
    return items;
}

/// A kernel that calls everything that is emitted for one program.
std::string sourceOf(const Item& item) {
    const std::vector<DType> dtypes = dtypesOf(item.program);
    std::string text = "#include \"device/program/span.cuh\"\n" + emitProgram(item.program, dtypes, "mod");
    std::string body = item.program.isMask()
                           ? "    out[i] = mod(blockIdx.z, blockIdx.y, blockIdx.x, threadIdx.x, c) ? 1.0f : 0.0f;\n"
                           : "    out[i] = mod(in[i], blockIdx.z, blockIdx.y, blockIdx.x, threadIdx.x, c);\n";
    if (item.program.isMask()) {
        text += emitMaskSpan(item.program, dtypes, "span");
        body += "    const auto found = span({0, 3}, {2, 2}, {threadIdx.y, threadIdx.y + 15}, {64, 127}, c);\n"
                "    out[i] += found.low + found.high;\n";
        if (const std::optional<IntervalRows> rows = intervalRows(item.program)) {
            text += emitIntervalRows(*rows, dtypes, "rows");
            body += "    int low, high;\n    rows(blockIdx.z, blockIdx.y, blockIdx.x, c, low, high);\n"
                    "    out[i] += low + high;\n";
        }
    } else {
        text += emitGradient(derivativeOf(item.program), dtypes, "gradient", "captureGradients");
        body += "    out[i + 1] = gradient(in[i], in[i + 1], blockIdx.z, blockIdx.y, blockIdx.x, threadIdx.x, c);\n"
                "    captureGradients(in[i], in[i + 1], blockIdx.z, blockIdx.y, blockIdx.x, threadIdx.x, c,\n"
                "        [&](int g, long long at, float value) { out[at * 4 + g] += value; });\n";
    }
    return text +
           "extern \"C\" __global__ void kernel(const __grid_constant__ vt::program::Captures c, const float* in, "
           "float* out) {\n    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2;\n" +
           body + "}\n";
}

TEST(Emitter, EveryProgramCompilesWithoutSpills) {
    const Nvrtc* compiler = Nvrtc::find();
    if (compiler == nullptr) {
        GTEST_SKIP() << Nvrtc::whyMissing();
    }
    const std::vector<Item> items = catalogue();
    std::vector<std::string> problems(items.size() * 2);
    const auto& files = KernelPack::builtin().files();
    base::ThreadPool pool;
    pool.parallelFor(static_cast<std::int64_t>(problems.size()), 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
            const Item& item = items[static_cast<std::size_t>(i / 2)];
            CompileJob request;
            request.name = item.name;
            request.source = sourceOf(item);
            request.headers = {files.begin(), files.end()};
            request.arch = i % 2 == 0 ? "sm_80" : "sm_90a";
            std::string& problem = problems[static_cast<std::size_t>(i)];
            try {
                for (const KernelResources& resources : compiler->compile(request).resources) {
                    problem = resources.spillBytes > 0 ? std::to_string(resources.spillBytes) + " bytes spilled" : "";
                }
            } catch (const KernelCompileError& error) {
                problem = error.log() + request.source;
            }
        }
    });
    for (std::size_t i = 0; i < problems.size(); ++i) {
        EXPECT_EQ(problems[i], "") << items[i / 2].name;
    }
}

TEST(Emitter, TextOfTheUsualPrograms) {
    EXPECT_EQ(
        emitProgram(causalMask(), {}, "mask"),
        "__device__ __forceinline__ bool mask(int b, int h, int q_idx, int kv_idx, const vt::program::Captures& c) {\n"
        "    const bool t2 = kv_idx <= q_idx;\n    return t2;\n}\n");
    const std::string cap = emitProgram(softCapScore(50), {}, "score");
    EXPECT_NE(cap.find("vt::program::fastTanh"), std::string::npos);
    EXPECT_EQ(emitProgram(softCapScore(50), {}, "score", {false}).find("fastTanh"), std::string::npos);
    EXPECT_NE(cap.find(" / 50"), std::string::npos);
    const std::string multiplied = emitProgram(softCapScore(50), {}, "score", {.reciprocals = true});
    EXPECT_EQ(multiplied.find(" / "), std::string::npos);
    EXPECT_NE(multiplied.find(" * 0.0199999996f"), std::string::npos);
    Maker m;
    const std::string powers = emitProgram(m.finish((m.q - m.k) % 8 == floorDiv(m.k, 6)), {}, "mask");
    EXPECT_NE(powers.find("& 7"), std::string::npos) << powers;
    EXPECT_NE(powers.find("static_cast<unsigned int>(kv_idx) / static_cast<unsigned int>(6)"), std::string::npos);
}

TEST(Emitter, NewContentsNeverChangeTheText) {
    Maker m;
    const Program program =
        m.finish(m.load("ids", ProgramType::Int32, {m.q}) == m.load("ids", ProgramType::Int32, {m.k}));
    EXPECT_EQ(emitProgram(program, std::array{DType::I32}, "mask"),
              emitProgram(program, std::array{DType::I32}, "mask"));
    EXPECT_NE(emitProgram(program, std::array{DType::I32}, "mask"),
              emitProgram(program, std::array{DType::U8}, "mask"));
    EXPECT_THROW(emitProgram(program, {}, "mask"), base::Internal);
}

} // namespace
} // namespace vitrine::kernels
