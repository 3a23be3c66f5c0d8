// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What tests of ops share: tensors between guard bytes, random data, contexts of every SIMD level, and comparison with
// a float64 reference.

#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/context/context.h"
#include "kernels/context/cpu_context.h"
#include "kernels/core/floats.h"
#include "kernels/core/tensor.h"
#include "kernels/memory/resource.h"

namespace vitrine::kernels::testing {

/// A tensor in memory of its own, with guard bytes before, after and between rows.
class TestTensor {
public:
    TestTensor() = default;
    TestTensor(DType dtype, const Shape& shape, std::int64_t rowStride = 0) : shape_(shape) {
        view_ = TensorView{nullptr, dtype, shape, {rowStride}};
        const std::int64_t rows = shape.rank() == 0 ? 1 : shape[0];
        const std::int64_t span = shape.rank() == 0 ? 1 : rows * view_.stride0();
        bytes_.assign(kGuard + bytesOf(dtype, span) + kGuard + kMemoryAlignment, kPattern);
        auto address = reinterpret_cast<std::uintptr_t>(bytes_.data() + kGuard);
        address = (address + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
        view_.data = reinterpret_cast<void*>(address);
        poison();
    }
    ~TestTensor() = default;
    TestTensor(const TestTensor&) = delete;
    TestTensor& operator=(const TestTensor&) = delete;
    TestTensor(TestTensor&&) = default; // a vector keeps its memory when it moves
    TestTensor& operator=(TestTensor&&) = default;

    const TensorView& view() const { return view_; }
    operator const TensorView&() const { return view_; } // NOLINT(google-explicit-constructor): reads like a view

    /// NaN in every element (0xFF bytes are NaN in each float type, -1 in integers).
    void poison() {
        forEachRow([&](std::byte* row, std::size_t size) { std::memset(row, 0xFF, size); });
    }

    void fillNormal(std::mt19937& random, double deviation = 1) {
        std::normal_distribution<double> normal(0, deviation);
        forEachIndex([&](std::int64_t offset) { set(offset, normal(random)); });
    }
    void fillInts(const std::vector<std::int32_t>& values) {
        std::size_t next = 0;
        forEachIndex([&](std::int64_t offset) { view_.as<std::int32_t>()[offset] = values.at(next++); });
    }
    void fillBytes(std::mt19937& random, int low, int high) {
        std::uniform_int_distribution<int> uniform(low, high);
        forEachIndex([&](std::int64_t offset) {
            view_.as<std::uint8_t>()[offset] = static_cast<std::uint8_t>(uniform(random));
        });
    }
    void fill(const std::vector<double>& values) {
        std::size_t next = 0;
        forEachIndex([&](std::int64_t offset) { set(offset, values.at(next++)); });
    }

    std::vector<double> values() const {
        std::vector<double> out;
        forEachIndex([&](std::int64_t offset) {
            double value = 0;
            if (view_.dtype == DType::I32) {
                value = view_.as<const std::int32_t>()[offset];
            } else if (view_.dtype == DType::I64) {
                value = static_cast<double>(view_.as<const std::int64_t>()[offset]);
            } else if (view_.dtype == DType::U8) {
                value = view_.as<const std::uint8_t>()[offset];
            } else {
                loadFloats(view_.dtype, view_.data, offset, 1, &value);
            }
            out.push_back(value);
        });
        return out;
    }

    /// All bytes, guards included.
    std::vector<unsigned char>& storage() { return bytes_; }
    const std::vector<unsigned char>& storage() const { return bytes_; }

    /// False when a byte outside the elements has changed.
    bool guardsIntact() const {
        std::vector<unsigned char> copy = bytes_;
        const auto base = static_cast<std::size_t>(static_cast<const unsigned char*>(view_.data) - bytes_.data());
        const std::int64_t rows = shape_.rank() == 0 ? 1 : shape_[0];
        for (std::int64_t row = 0; row < rows; ++row) {
            const std::size_t at = base + bytesOf(view_.dtype, row * view_.stride0());
            std::memset(copy.data() + at, kPattern, bytesOf(view_.dtype, rowSize()));
        }
        for (const unsigned char byte : copy) {
            if (byte != kPattern) {
                return false;
            }
        }
        return true;
    }

private:
    static constexpr std::size_t kGuard = 320;
    static constexpr unsigned char kPattern = 0xA5;

    std::int64_t rowSize() const {
        return shape_.rank() == 0 || shape_[0] == 0 ? shape_.count() : shape_.count() / shape_[0];
    }
    template <class Body> void forEachRow(const Body& body) {
        const std::int64_t rows = shape_.rank() == 0 ? 1 : shape_[0];
        for (std::int64_t row = 0; row < rows; ++row) {
            body(static_cast<std::byte*>(view_.data) + bytesOf(view_.dtype, row * view_.stride0()),
                 bytesOf(view_.dtype, rowSize()));
        }
    }
    template <class Body> void forEachIndex(const Body& body) const {
        const std::int64_t rows = shape_.rank() == 0 ? 1 : shape_[0];
        for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t i = 0; i < rowSize(); ++i) {
                body(row * (shape_.rank() == 0 ? 0 : view_.stride0()) + i);
            }
        }
    }
    void set(std::int64_t offset, double value) { storeFloats(view_.dtype, &value, 1, view_.data, offset); }

    Shape shape_;
    TensorView view_;
    std::vector<unsigned char> bytes_;
};

/// The relative rounding error of one store in this type.
inline double epsilonOf(DType dtype) {
    switch (dtype) {
    case DType::BF16:
        return 0x1.0p-8;
    case DType::F16:
        return 0x1.0p-11;
    case DType::F64:
        return 0x1.0p-50;
    default:
        return 0x1.0p-23;
    }
}

/// Every element within `absolute` plus `roundings` roundings of the type; NaN nowhere.
inline void expectNear(const TestTensor& actual, const std::vector<double>& expected, double absolute,
                       double roundings = 1) {
    const std::vector<double> values = actual.values();
    ASSERT_EQ(values.size(), expected.size());
    const double relative = epsilonOf(actual.view().dtype) * roundings;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isinf(expected[i]) && values[i] == expected[i]) {
            continue;
        }
        ASSERT_NEAR(values[i], expected[i], absolute + relative * std::fabs(expected[i])) << "element " << i;
    }
    EXPECT_TRUE(actual.guardsIntact());
}

/// Runs the body with a context of each SIMD level that this machine has.
inline void forEachSimd(const std::function<void(CpuContext&)>& body, int threads = 2) {
    for (const SimdLevel level : {SimdLevel::Scalar, SimdLevel::Avx2, SimdLevel::Avx512}) {
        CpuContext context(threads);
        if (level > context.simd()) {
            continue;
        }
        context.setSimd(level);
        SCOPED_TRACE(simdName(level));
        body(context);
    }
}

/// Checks, gives scratch and executes.
template <class Op> void runOp(CpuContext& context, Op op) {
    TestTensor memory;
    if constexpr (requires { op.scratch; }) {
        const std::uint64_t bytes = scratch(op, DeviceTraits{});
        if (bytes > 0) {
            memory = TestTensor(DType::U8, Shape{static_cast<std::int64_t>(bytes)});
            op.scratch = memory;
        }
    }
    check(op);
    execute(context, op);
    if constexpr (requires { op.scratch; }) {
        if (!op.scratch.empty()) {
            EXPECT_TRUE(memory.guardsIntact()) << "wrote outside its scratch";
        }
    }
}

/// The check of `op` must fail with a message that names the field.
template <class Op> void expectCheckNames(const Op& op, const std::string& field) {
    try {
        check(op);
        ADD_FAILURE() << "check accepted a wrong " << field;
    } catch (const base::Internal& error) {
        EXPECT_NE(error.message().find(field), std::string::npos) << error.message();
        EXPECT_EQ(error.message().rfind(std::string(Op::kName) + ": ", 0), 0U) << error.message();
    }
}

} // namespace vitrine::kernels::testing
