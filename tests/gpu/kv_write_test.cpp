// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/kv_write.h"

#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TestTensor ints(const Shape& shape, const std::vector<std::int32_t>& values) {
    TestTensor tensor(DType::I32, shape);
    tensor.fillInts(values);
    return tensor;
}

/// Tokens of three sequences land in shuffled pages; what the window has passed is left out.
void expectSame(DType type, DType cacheType, std::int64_t headDim, bool ring, bool rounds = false, bool writes = true) {
    SCOPED_TRACE(::testing::Message() << headDim << (ring ? " ring" : ""));
    std::mt19937 random(14);
    const std::int64_t width = 2 * headDim;
    TestTensor keys(cacheType, Shape{9, 5, 2, headDim}, 5 * width + 8);
    TestTensor values(cacheType, Shape{9, 5, 2, headDim}, 5 * width + 16);
    TestTensor keyScales, valueScales;
    if (isQuantizedKv(cacheType)) {
        keys.fillBytes(random, 0, 0x7E);
        values.fillBytes(random, 0, 0x7E);
        keyScales = TestTensor(DType::F32, Shape{9, 2, 5}, 13);
        valueScales = TestTensor(DType::F32, Shape{9, 2, 5});
        keyScales.fillNormal(random);
        valueScales.fillNormal(random);
    } else {
        keys.fillNormal(random);
        values.fillNormal(random);
    }
    TestTensor k(type, Shape{12, 2, headDim}, width + 8), v(type, Shape{12, 2, headDim});
    k.fillNormal(random);
    v.fillNormal(random);
    const TestTensor table = ints(Shape{3, 3}, {4, 1, ring ? -1 : 7, 2, 0, ring ? -1 : 3, 8, 5, 6});
    const TestTensor first = ints(Shape{3}, {0, 20, ring ? 3 : 0});
    const TestTensor lengths = ints(Shape{3}, {8, 4, 10});
    const TestTensor sequence = ints(Shape{12}, {0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 2});
    const TestTensor positions = ints(Shape{12}, {5, 6, 7, 22, 23, 2, 3, 4, 5, 6, 7, 8});
    std::vector<TestTensor*> outputs{&k, &v};
    if (isQuantizedKv(cacheType)) {
        if (!rounds) { // bits of a NaN that was computed are the device's
            k.view().as<float>()[5] = std::numeric_limits<float>::infinity();
        }
        for (std::int64_t i = 0; i < headDim; ++i) {
            v.view().as<float>()[headDim + i] = 0;
        }
        outputs.insert(outputs.end(), {&keyScales, &valueScales});
    }
    const auto make = [&](auto&& at) {
        return KvWrite{
            at(k),
            at(v),
            at(sequence),
            at(positions),
            KvView{at(keys), at(values), at(table), at(first), at(lengths), 0, ring, at(keyScales), at(valueScales)},
            rounds,
            writes};
    };
    testing::OnDevice device(*testing::gpu());
    const KvWrite op = make(device);
    device.run(op);
    CpuContext cpu(2);
    testing::runOp(cpu, make([](const TestTensor& tensor) { return tensor.view(); }));
    outputs.insert(outputs.end(), {&keys, &values});
    for (TestTensor* output : outputs) { // all bits, guards too
        const std::vector<unsigned char> expected = output->storage();
        device.download(*output);
        EXPECT_EQ(output->storage(), expected);
    }
}

TEST(KvWriteGpu, PagesAndRings) {
    VITRINE_NEEDS_GPU();
    for (const bool ring : {false, true}) {
        expectSame(DType::BF16, DType::BF16, 64, ring);
        expectSame(DType::F32, DType::BF16, 24, ring);
        expectSame(DType::F32, DType::F32, 5, ring);
        for (const bool rounds : {false, true}) {
            expectSame(DType::F32, DType::BF16, 64, ring, rounds);
            for (const DType bytes : {DType::I8, DType::F8E4M3}) {
                expectSame(DType::F32, bytes, 64, ring, rounds);
                expectSame(DType::F32, bytes, 5, ring, rounds, !rounds);
            }
        }
    }
}

} // namespace
} // namespace vitrine::kernels
