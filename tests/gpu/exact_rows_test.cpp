// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// DeviceFeatures::exactRows on a GPU: a row's result does not depend on how many rows there are, and a policy's
// log-probabilities are those of its rollouts to the bit.

#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "kernels/context/context_options.h"
#include "kernels/memory/memory.h"
#include "kernels/ops/linear/matmul.h"
#include "tests/gpu/context_testing.h"
#include "tests/gpu/packed_testing.h"

namespace vitrine::kernels {
namespace {

using Json = nlohmann::json;
using testing::TestTensor;

class ExactRowsGpu : public gpu::GpuTest {
protected:
    void SetUp() override {
        gpu::GpuTest::SetUp();
        if (!IsSkipped()) {
            ContextOptions options;
            options.backend = Backend::Cuda;
            options.exactRows = true;
            context_ = std::make_unique<Context>(options);
        }
    }

    /// Bytes of rows [begin, end) of the product, made alone.
    template <class Make>
    std::vector<std::byte> rowsAlone(const Make& make, const TestTensor& x, const TestTensor& out, std::int64_t begin,
                                     std::int64_t end) {
        const gpu::DeviceArray<std::byte> xBytes(*context_, bytesOfRows(x, begin, end));
        const gpu::DeviceArray<std::byte> outBytes(*context_, bytesOfRows(out, begin, end));
        const auto viewOf = [&](const TestTensor& tensor, void* data) {
            TensorView view = sliceRows(tensor.view(), begin, end);
            view.data = data;
            return view;
        };
        Matmul op = make();
        op.x = viewOf(x, xBytes.data());
        op.out = viewOf(out, outBytes.data());
        const gpu::DeviceArray<std::byte> space(*context_,
                                                std::vector<std::byte>(scratch(op, context_->traits()) + 256));
        op.scratch = TensorView{space.data(), DType::U8, Shape{static_cast<std::int64_t>(space.size())}, {}};
        context_->run(op);
        return outBytes.read();
    }
    static std::vector<std::byte> bytesOfRows(const TestTensor& tensor, std::int64_t begin, std::int64_t end) {
        const TensorView rows = sliceRows(tensor.view(), begin, end);
        const auto* data = static_cast<const std::byte*>(rows.data);
        return {data, data + rows.bytes()};
    }

    template <class Make>
    void expectExact(const Make& make, const TestTensor& x, const TestTensor& out, const std::string& what) {
        const std::int64_t rows = x.view().shape[0];
        const std::vector<std::byte> whole = rowsAlone(make, x, out, 0, rows);
        const std::size_t ofRow = whole.size() / static_cast<std::size_t>(rows);
        for (const std::int64_t count : {1, 3, 8, 17, 64, 130, 256, 700}) {
            const std::int64_t begin = (rows - count) / 2;
            const std::vector<std::byte> alone = rowsAlone(make, x, out, begin, begin + count);
            EXPECT_EQ(std::memcmp(alone.data(), whole.data() + static_cast<std::size_t>(begin) * ofRow, alone.size()),
                      0)
                << what << ": " << count << " rows";
        }
    }

    std::unique_ptr<Context> context_;
};

TEST_F(ExactRowsGpu, ProductsOfDenseWeights) {
    std::mt19937 random(5);
    struct Case {
        std::int64_t in, out;
        DType x, result;
    };
    for (const Case& item : {Case{2048, 8192, DType::BF16, DType::BF16}, Case{8192, 2048, DType::BF16, DType::BF16},
                             Case{2048, 512, DType::BF16, DType::BF16}, Case{2560, 151936, DType::BF16, DType::F32},
                             Case{1024, 1024, DType::BF16, DType::BF16}, Case{1024, 2816, DType::BF16, DType::BF16},
                             Case{2816, 1024, DType::BF16, DType::BF16}, Case{1024, 256, DType::BF16, DType::BF16},
                             Case{2560, 9728, DType::BF16, DType::BF16}, Case{9728, 2560, DType::BF16, DType::BF16},
                             Case{2880, 32, DType::BF16, DType::F32}, Case{2880, 5120, DType::BF16, DType::BF16},
                             Case{68, 36, DType::BF16, DType::BF16}, Case{65, 31, DType::BF16, DType::F32},
                             Case{512, 1024, DType::F32, DType::F32}}) {
        const std::int64_t rows = item.out > 100000 ? 800 : 2500;
        TestTensor x(item.x, Shape{rows, item.in});
        TestTensor weight(item.x, Shape{item.out, item.in});
        const TestTensor out(item.result, Shape{rows, item.out});
        x.fillNormal(random);
        weight.fillNormal(random, 0.02);
        const gpu::DeviceArray<std::byte> onGpu(*context_, bytesOfRows(weight, 0, item.out));
        const auto make = [&] {
            Matmul op;
            TensorView view = weight.view();
            view.data = onGpu.data();
            op.weight = denseWeight(view);
            return op;
        };
        expectExact(make, x, out, std::to_string(item.in) + " to " + std::to_string(item.out));
    }
}

/// The run of an experiment on synthetic weights.
Json exactRun(const char* model, const Json& more) {
    Json experiment = {{"vitrine", 1},       {"workload", "rl"},  {"backend", "cuda"},   {"model", model},
                       {"method", "full"},   {"lr", 0.001},       {"prompt_length", 50}, {"steps", 3},
                       {"prompts", 6},       {"samples", 8},      {"exact", true},       {"max_new_tokens", 200},
                       {"ignore_eos", true}, {"temperature", 0.9}};
    experiment.update(more);
    return engine::runExperiment(engine::Experiment::parse(experiment, "experiment"), {}, {});
}

void expectEqualSides(const Json& out) {
    ASSERT_EQ(out["logprob_max_diff"].size(), 3U);
    for (std::size_t step = 0; step < 3; ++step) {
        EXPECT_EQ(out["logprob_max_diff"][step], 0.0) << step;
        EXPECT_GT(out["grad_norms"][step], 0.0) << step;
    }
}

const Json kSmallLlama = {{"hidden_size", "1024"},       {"intermediate_size", "2816"}, {"num_hidden_layers", "4"},
                          {"num_attention_heads", "16"}, {"num_key_value_heads", "4"},  {"head_dim", "64"}};
const Json kSmallGptOss = {{"hidden_size", "768"},        {"intermediate_size", "768"}, {"num_hidden_layers", "4"},
                           {"num_attention_heads", "12"}, {"num_key_value_heads", "2"}, {"num_local_experts", "16"},
                           {"sliding_window", "64"}};

TEST_F(ExactRowsGpu, PolicyOfLlama) {
    for (const Json& more :
         {Json{{"dtype", "bfloat16"}}, Json{{"qat", "int4"}}, Json{{"method", "lora"}, {"rank", 8}, {"lr", 0.01}}}) {
        SCOPED_TRACE(more.dump());
        Json options = {{"set", kSmallLlama}};
        options.update(more);
        expectEqualSides(exactRun("synthetic:llama-3.1-8b", options));
    }
}

TEST_F(ExactRowsGpu, PolicyOfGptOss) {
    for (const Json& more :
         {Json{{"method", "full"}, {"weights", "dequantized"}}, Json{{"method", "lora"}, {"lr", 0.01}}}) {
        SCOPED_TRACE(more.dump());
        Json options = {{"set", kSmallGptOss}};
        options.update(more);
        expectEqualSides(exactRun("synthetic:gpt-oss-20b", options));
    }
}

} // namespace
} // namespace vitrine::kernels
