// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What GPU tests share: the same op value on the CPU and on the device, device copies of test tensors with their guard
// bytes, comparison of every output.

#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/context/cpu_context.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/cuda_options.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels::testing {

/// One context for all tests of the program; null, with the reason printed, where there is no device.
inline CudaContext* gpu() {
    static const std::unique_ptr<CudaContext> kContext = [] {
        std::unique_ptr<CudaContext> context;
        try {
            context = std::make_unique<CudaContext>(CudaOptions{});
        } catch (const base::Error& error) {
            std::printf("no GPU: %s\n", error.what());
        }
        return context;
    }();
    return kContext.get();
}

#define VITRINE_NEEDS_GPU()                                                                                            \
    if (vitrine::kernels::testing::gpu() == nullptr) {                                                                 \
        GTEST_SKIP() << "there is no usable GPU on this machine";                                                      \
    }

/// Device copies of test tensors, guard bytes included.
class OnDevice {
public:
    explicit OnDevice(CudaContext& context)
        : context_(context), memory_(context.makeResource(base::MemorySpace::Device)) {}

    /// The tensor's copy; made at the first call. An absent tensor stays absent.
    TensorView operator()(const TestTensor& tensor) {
        if (tensor.view().data == nullptr) {
            return {};
        }
        auto found = copies_.find(&tensor);
        if (found == copies_.end()) {
            const auto& bytes = tensor.storage();
            Buffer buffer(*memory_, bytes.size() + kMemoryAlignment, Tag{});
            context_.copyToDevice(bytes.data(), place(buffer, tensor), bytes.size());
            found = copies_.emplace(&tensor, std::move(buffer)).first;
        }
        TensorView view = tensor.view();
        view.data = static_cast<std::byte*>(place(found->second, tensor)) + offset(tensor);
        return view;
    }

    /// Runs the op with poisoned scratch and waits for it.
    template <class Op> void run(Op& op) {
        giveScratch(op);
        check(op);
        execute(context_, op);
        context_.synchronize();
    }

    /// Back into the host's tensor, guard bytes too.
    void download(TestTensor& tensor) {
        context_.copyToHost(place(copies_.at(&tensor), tensor), tensor.storage().data(), tensor.storage().size());
    }

private:
    /// Poisoned scratch of the op on the device.
    template <class Op> void giveScratch(Op& op) {
        if constexpr (requires { op.scratch; }) {
            const std::uint64_t bytes = scratch(op, context_.traits());
            if (bytes > 0) {
                scratch_ = Buffer(*memory_, bytes, Tag{});
                context_.fill(scratch_.data(), 0xFF, bytes);
                op.scratch = TensorView{scratch_.data(), DType::U8, Shape{static_cast<std::int64_t>(bytes)}, 0};
            }
        }
    }

    static std::size_t offset(const TestTensor& tensor) {
        return static_cast<std::size_t>(tensor.view().as<const unsigned char>() - tensor.storage().data());
    }
    /// Where the copy's bytes begin, so that the elements are aligned as on the host.
    static void* place(const Buffer& buffer, const TestTensor& tensor) {
        return static_cast<std::byte*>(buffer.data()) +
               (kMemoryAlignment - offset(tensor) % kMemoryAlignment) % kMemoryAlignment;
    }

    CudaContext& context_;
    std::unique_ptr<MemoryResource> memory_;
    std::map<const TestTensor*, Buffer> copies_;
    Buffer scratch_;
};

/// The largest difference of two results over the spread of the expected one; infinite when one is not finite, but for
/// infinities that both have.
inline double relativeDifference(const std::vector<double>& actual, const std::vector<double>& expected) {
    double low = 0, high = 0, worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (std::isinf(expected[i]) && actual.at(i) == expected[i]) {
            continue;
        }
        if (!std::isfinite(actual.at(i)) || !std::isfinite(expected[i])) {
            return std::numeric_limits<double>::infinity();
        }
        low = std::min(low, expected[i]);
        high = std::max(high, expected[i]);
        worst = std::max(worst, std::fabs(actual[i] - expected[i]));
    }
    return high > low ? worst / (high - low) : worst;
}

/// An output, and how large its difference may be: a share of its spread, 0 when it must be equal.
struct ComparedOutput {
    TestTensor* tensor;
    double tolerance;
};

/// Runs make(at) on the CPU and on the device, where `at` gives the views of test tensors, and compares the outputs.
/// Outputs that are inputs too keep their values.
template <class Make>
void expectSameOnGpu(CudaContext& context, const Make& make, const std::vector<ComparedOutput>& outputs) {
    OnDevice device(context);
    auto op = make(device);
    device.run(op);
    CpuContext cpu(2);
    runOp(cpu, make([](const TestTensor& tensor) { return tensor.view(); }));
    for (const ComparedOutput& output : outputs) {
        const std::vector<double> expected = output.tensor->values();
        device.download(*output.tensor);
        EXPECT_TRUE(output.tensor->guardsIntact()) << "the device wrote outside an output";
        EXPECT_LE(relativeDifference(output.tensor->values(), expected), output.tolerance);
    }
}

/// The same with one tolerance for all outputs.
template <class Make>
void expectSameOnGpu(CudaContext& context, const Make& make, const std::vector<TestTensor*>& outputs,
                     double tolerance) {
    std::vector<ComparedOutput> compared;
    compared.reserve(outputs.size());
    for (TestTensor* output : outputs) {
        compared.push_back({output, tolerance});
    }
    expectSameOnGpu(context, make, compared);
}

} // namespace vitrine::kernels::testing
