// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/matrix_packer.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <limits>
#include <random>

#include "base/error.h"
#include "engine/quant/conversion_target.h"
#include "engine/quant/storage_scheme.h"
#include "engine/workload/precision/precision_format.h"
#include "kernels/context/cpu_context.h"
#include "kernels/core/floats.h"
#include "kernels/ops/linear/pack_weight.h"
#include "tests/engine/quant/reference_file.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::WeightField;
using kernels::WeightFormat;

/// A case of the fixture that compressed-tensors 0.20 wrote.
struct ReferenceCase {
    const char* name;
    const char* target;
    std::int64_t group;
    bool symmetric;
};

constexpr ReferenceCase kReferenceCases[] = {
    {"int4-sym-bf16", "int4", 32, true},  {"int4-asym-bf16", "int4", 16, false}, {"int4-asym-f16", "int4", 32, false},
    {"int8-sym-f16", "int8", -1, true},   {"int8-asym-bf16", "int8", -1, false}, {"int4-sym-f32", "int4", 64, true},
    {"int8-asym-f32", "int8", 32, false},
};

/// The tensor `field` of packed values as a file has it.
std::vector<std::uint8_t> storedField(const WeightPacking& packing, const StoredTensor& tensor,
                                      const PackedValues& packed) {
    const std::vector<std::uint8_t>& memory = packed.field(tensor.field);
    if (!tensor.converts) {
        return memory;
    }
    std::vector<std::uint8_t> stored(kernels::bytesOf(tensor.dtype == DType::BF16 ? packed.scaleType : tensor.dtype,
                                                      kernels::Shape(tensor.shape).count()));
    toStored(packing, tensor, memory, stored);
    return stored;
}

class CompressedTensors : public testing::TestWithParam<ReferenceCase> {
protected:
    std::string name(const char* part) const { return std::string(GetParam().name) + "." + part; }

    test::ReferenceFile file_{"compressed-tensors.safetensors"};
    base::ThreadPool pool_{3};
    WeightPacking packing_ = conversionTarget(GetParam().target, GetParam().group, GetParam().symmetric)->packing;
};

TEST_P(CompressedTensors, CodesScalesAndZerosAreTheirs) {
    const TensorEntry& weight = file_.entry(name("weight"));
    const MatrixSize size{weight.shape[0], weight.shape[1]};
    const PackedValues packed =
        packMatrix(packing_, size, GetParam().symmetric, weight.dtype, file_.floats(name("weight")), pool_);
    std::size_t compared = 0;
    for (const StoredTensor& tensor : storedTensors(packing_, name("weight"), weight.shape)) {
        EXPECT_EQ(storedField(packing_, tensor, packed), file_.bytes(tensor.name)) << tensor.name;
        EXPECT_EQ(tensor.shape, file_.entry(tensor.name).shape) << tensor.name;
        ++compared;
    }
    EXPECT_EQ(compared, GetParam().symmetric ? 2U : 3U);
    for (const SideTensor& side : makeSideTensors(packing_, name("weight"), weight.shape)) {
        EXPECT_EQ(side.bytes, file_.bytes(side.name)) << side.name;
    }
}

TEST_P(CompressedTensors, TheirFilesUnpackToTheirValues) {
    const TensorEntry& weight = file_.entry(name("weight"));
    const MatrixSize size{weight.shape[0], weight.shape[1]};
    PackedValues packed;
    for (const StoredTensor& tensor : storedTensors(packing_, name("weight"), weight.shape)) {
        std::vector<std::uint8_t> bytes = file_.bytes(tensor.name);
        if (tensor.converts) {
            std::vector<std::uint8_t> memory(static_cast<std::size_t>(tensor.memoryShape.count()));
            toMemory(packing_, tensor, bytes, memory);
            bytes = memory;
        }
        (tensor.field == WeightField::Data     ? packed.data
         : tensor.field == WeightField::Scales ? packed.scales
                                               : packed.zeros) = bytes;
    }
    packed.scaleType = weight.dtype;
    std::vector<float> values(static_cast<std::size_t>(size.count()));
    expandMatrix(viewOf(packing_, size, packed), values, pool_);
    // They multiply in the type of the scales.
    std::vector<std::uint8_t> rounded(file_.bytes(name("back")).size());
    kernels::storeFloats(weight.dtype, values.data(), size.count(), rounded.data(), 0);
    std::vector<float> back(values.size());
    kernels::loadFloats(weight.dtype, rounded.data(), 0, size.count(), back.data());
    EXPECT_EQ(back, file_.floats(name("back")));
}

INSTANTIATE_TEST_SUITE_P(All, CompressedTensors, testing::ValuesIn(kReferenceCases), [](const auto& instance) {
    std::string name = instance.param.name;
    std::ranges::replace(name, '-', '_');
    return name;
});

TEST(MatrixPacker, Fp8OfATensorIsThatOfCompressedTensors) {
    const test::ReferenceFile file("compressed-tensors.safetensors");
    const TensorEntry& weight = file.entry("fp8-tensor.weight");
    base::ThreadPool pool(2);
    const WeightPacking packing = conversionTarget("fp8", kWholeRow, std::nullopt)->packing;
    const PackedValues packed = packMatrix(packing, {weight.shape[0], weight.shape[1]}, true, DType::F32,
                                           file.floats("fp8-tensor.weight"), pool);
    EXPECT_EQ(packed.data, file.bytes("fp8-tensor.elements"));
    EXPECT_EQ(packed.scales, file.bytes("fp8-tensor.weight_scale"));
}

std::vector<float> randomMatrix(const MatrixSize& size) {
    const unsigned seed = std::random_device{}();
    testing::Test::RecordProperty("seed", std::to_string(seed));
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 0.03F);
    std::vector<float> values(static_cast<std::size_t>(size.count()));
    for (float& value : values) {
        value = normal(random);
    }
    return values;
}

TEST(MatrixPacker, Fp8BlocksHaveScalesOfTheirOwnAtTheEdgesToo) {
    const MatrixSize size{130, 200};
    std::vector<float> values = randomMatrix(size);
    values[0] = 30;
    for (std::size_t i = 0; i < 200; ++i) {
        values[129 * 200 + i] = 0; // a row of zeros in a block of its own with row 128
    }
    base::ThreadPool pool(3);
    const WeightPacking packing = conversionTarget("fp8", std::nullopt, std::nullopt)->packing;
    const PackedValues packed = packMatrix(packing, size, true, DType::F32, values, pool);
    std::vector<float> scales(4);
    ASSERT_EQ(packed.scales.size(), scales.size() * sizeof(float));
    std::memcpy(scales.data(), packed.scales.data(), packed.scales.size());
    for (std::size_t block = 0; block < 4; ++block) {
        float largest = 0;
        for (std::size_t row = block / 2 * 128; row < std::min<std::size_t>(130, (block / 2 + 1) * 128); ++row) {
            for (std::size_t i = block % 2 * 128; i < std::min<std::size_t>(200, (block % 2 + 1) * 128); ++i) {
                largest = std::max(largest, std::abs(values[row * 200 + i]));
                const float back = kernels::e4m3ToFloat(packed.data[row * 200 + i]) * scales[block];
                ASSERT_LE(std::abs(back - values[row * 200 + i]),
                          std::max(std::abs(values[row * 200 + i]) / 16, scales[block] * 0x1p-10F) * 1.0001F);
            }
        }
        EXPECT_EQ(scales[block], largest / 448) << block;
    }
}

TEST(MatrixPacker, TheErrorIsThatOfTheValuesThatComeBack) {
    const MatrixSize size{48, 128};
    const std::vector<float> values = randomMatrix(size);
    base::ThreadPool pool(3), single(1);
    double last = std::numeric_limits<double>::infinity();
    for (const char* name : {"int8", "fp8", "int4", "gptq", "awq", "nf4", "mxfp4"}) {
        SCOPED_TRACE(name);
        const Quantization target = *conversionTarget(name, std::nullopt, std::nullopt);
        const PackedValues packed = packMatrix(target.packing, size, target.symmetric, DType::F32, values, pool);
        const kernels::WeightView view = viewOf(target.packing, size, packed);
        std::vector<float> back(values.size());
        expandMatrix(view, back, pool);
        double error = 0, signal = 0, largest = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double difference = double{values[i]} - back[i];
            error += difference * difference;
            signal += double{values[i]} * values[i];
            largest = std::max(largest, std::abs(difference));
        }
        const RoundingError found = packingError(view, values, pool);
        EXPECT_NEAR(found.meanSquare(), error / 6144, error / 6144 * 1e-9);
        EXPECT_NEAR(*found.signalToNoise(), 10 * std::log10(signal / error), 1e-6);
        EXPECT_EQ(found.largest, largest);
        EXPECT_GT(*found.cosine(), 0.98);
        EXPECT_EQ(packingError(view, values, single).squaredError, found.squaredError) << "on one thread";
        if (std::string_view(name) == "int8") {
            EXPECT_GT(*found.signalToNoise(), 35);
            last = *found.signalToNoise();
        } else {
            EXPECT_LT(*found.signalToNoise(), last) << "8 bits of integers are the most exact";
        }
    }
}

TEST(MatrixPacker, ValuesThatAreNoNumbersAreRefused) {
    const MatrixSize size{8, 128};
    base::ThreadPool pool(1);
    for (const char* name : {"int8", "fp8", "int4", "gptq", "awq", "nf4", "mxfp4"}) {
        for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
            std::vector<float> values(static_cast<std::size_t>(size.count()), 0.5F);
            values[700] = bad;
            const Quantization target = *conversionTarget(name, std::nullopt, std::nullopt);
            EXPECT_THROW(packMatrix(target.packing, size, target.symmetric, DType::BF16, values, pool), base::BadInput)
                << name;
        }
    }
}

TEST(MatrixPacker, InputsThatMakeNoWholeGroupsAreRefusedByName) {
    const WeightPacking packing = conversionTarget("int4", 32, true)->packing;
    try {
        checkPackable(packing, "a.weight", {8, 40});
        FAIL();
    } catch (const base::BadInput& error) {
        EXPECT_THAT(error.message(), testing::HasSubstr("a.weight: has 40 inputs"));
    }
    EXPECT_NO_THROW(checkPackable(packing, "a.weight", {8, 64}));
}

/// Words of GPTQ and AWQ that auto_gptq 0.7.1 and autoawq 0.2.9 packed.
void expectReferenceWords(const std::string& prefix, const WeightPacking& packing) {
    SCOPED_TRACE(prefix);
    const test::ReferenceFile file("packed-words.safetensors");
    const std::vector<std::uint8_t> codes = file.bytes(prefix + ".codes");
    const std::vector<std::int64_t> shape = file.entry(prefix + ".codes").shape;
    PackedValues packed;
    packed.zeros = file.bytes(prefix + ".zeros");
    packed.scales = file.bytes(prefix + ".scale");
    packed.scaleType = DType::F16;
    if (packing.format == WeightFormat::Int8) {
        packed.data = codes;
    } else {
        for (std::size_t i = 0; i < codes.size(); i += 2) {
            packed.data.push_back(static_cast<std::uint8_t>(codes[i] | codes[i + 1] << 4));
        }
    }
    for (const StoredTensor& tensor : storedTensors(packing, prefix + ".weight", shape)) {
        const std::vector<std::uint8_t> theirs = file.bytes(tensor.name);
        EXPECT_EQ(tensor.shape, file.entry(tensor.name).shape) << tensor.name;
        EXPECT_EQ(storedField(packing, tensor, packed), theirs) << tensor.name;
        std::vector<std::uint8_t> memory(packed.field(tensor.field).size());
        toMemory(packing, tensor, theirs, memory);
        EXPECT_EQ(memory, packed.field(tensor.field)) << tensor.name;
    }
}

TEST(MatrixPacker, WordsOfGptqAndAwqAreThoseOfTheirWriters) {
    WeightPacking packing = conversionTarget("gptq", 16, true)->packing;
    expectReferenceWords("gptq4", packing);
    packing.format = WeightFormat::Int8;
    packing.group = 8;
    expectReferenceWords("gptq8", packing);
    expectReferenceWords("awq", conversionTarget("awq", 16, false)->packing);
}

/// What training packs on the device and what convert packs on the host are the same bits.
TEST(MatrixPacker, TheOpOfTrainingPacksTheSameBits) {
    base::ThreadPool pool(2);
    kernels::CpuContext context(2);
    std::mt19937 random(77);
    const MatrixSize size{150, 384};
    for (const char* name : {"int4:32", "int4:128", "int4:48", "int4:32:seven", "int4:-1:seven", "fp8", "mxfp4"}) {
        for (const DType type : {DType::F32, DType::BF16, DType::F16}) {
            SCOPED_TRACE(testing::Message() << name << " of " << kernels::dtypeName(type));
            const WeightPacking packing = precisionFormat(name).quantization->packing;
            std::vector<float> masters(static_cast<std::size_t>(size.count())), values;
            std::normal_distribution<float> normal(0, 0.02F);
            std::ranges::generate(masters, [&] { return normal(random); });
            kernels::withRounding(
                type, [&](const auto& round) { std::ranges::transform(masters, std::back_inserter(values), round); });
            const PackedValues host = packMatrix(packing, size, true, type, values, pool);
            PackedValues device = host;
            std::ranges::fill(device.data, std::uint8_t{0xA5});
            std::ranges::fill(device.scales, std::uint8_t{0xA5});
            kernels::PackWeight op;
            op.x = kernels::denseWeight({masters.data(), DType::F32, kernels::Shape{size.out, size.in}, {}});
            op.out = viewOf(packing, size, device);
            op.type = type;
            op.rule = packing.rule;
            kernels::check(kernels::PackWeights{{&op, 1}, {}});
            kernels::execute(context, kernels::PackWeights{{&op, 1}, {}});
            EXPECT_EQ(device.data, host.data);
            EXPECT_EQ(device.scales, host.scales);
        }
    }
}

} // namespace
} // namespace vitrine::engine
