// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/cuda_context.h"

#include <cmath>
#include <cstring>
#include <random>

#include "base/error.h"
#include "kernels/core/floats.h"
#include "kernels/cuda/cuda_upload.h"
#include "kernels/cuda/jit/kernel_library.h"
#include "tests/gpu/context_testing.h"
#include "tests/kernels/cuda/jit/pack_testing.h"

namespace vitrine::gpu {
namespace {

using namespace kernels;

struct DoubleParams {
    const float* x;
    float* out;
    int n;
};

/// out[i] = x[i] * VT_FACTOR, and with an offset after the end of everything.
const char* const kFaultSource = R"(
struct DoubleParams { const float* x; float* out; int n; };
extern "C" __global__ void twice(const __grid_constant__ DoubleParams p) {
    p.out[(1LL << 44) + threadIdx.x] = VT_FACTOR;
}
)";

class Cuda : public GpuTest {
protected:
    std::unique_ptr<Context> withPack(const std::string& source) {
        folder_.write("double.cuh", source);
        folder_.write("manifest.json", manifestOf("mine", doubleVariant("plain", "", source)));
        ContextOptions options;
        options.backend = Backend::Cuda;
        options.cuda.kernelPacks = {folder_.path()};
        options.cuda.cacheFolder = folder_.path() + "/cache";
        return std::make_unique<Context>(options);
    }
    static void twice(CudaContext& gpu, std::int64_t factor, const float* x, float* out, int n) {
        const DoubleParams parameters{x, out, n};
        const std::array<KernelVariable, 2> variables{{{"factor", factor}, {"n", n}}};
        KernelCall call;
        call.family = "double";
        call.parameters = &parameters;
        call.parameterBytes = sizeof(parameters);
        call.variables = variables;
        call.dependent = false;
        gpu.launch(call);
    }
    static std::vector<float> ramp(int n) {
        std::vector<float> values(static_cast<std::size_t>(n));
        for (int i = 0; i < n; ++i) {
            values[static_cast<std::size_t>(i)] = static_cast<float>(i);
        }
        return values;
    }

    TestFolder folder_;
};

TEST_F(Cuda, SaysWhatTheDeviceIs) {
    const auto context = cudaContext();
    const CudaDeviceInfo& info = context->cuda()->device();
    EXPECT_FALSE(info.name.empty());
    EXPECT_GE(info.major, 8);
    EXPECT_GT(info.multiprocessors, 0);
    EXPECT_EQ(context->traits().memoryBytes, info.memoryBytes);
    EXPECT_EQ(context->traits().name, info.name);
    EXPECT_GT(context->traits().memoryBandwidth, 1e11);
    EXPECT_GT(context->traits().flopsBf16, 1e12);
    EXPECT_EQ(context->clock().timeBase(), base::TimeBase::Monotonic);
    EXPECT_EQ(context->memory().statistics().current, context->traits().untrackedBytes);
    EXPECT_THROW(
        {
            ContextOptions options;
            options.backend = Backend::Cuda;
            options.cuda.device = 512;
            const Context none(options);
        },
        base::BadInput);
}

TEST_F(Cuda, CopiesAndFills) {
    const auto context = cudaContext();
    const DeviceArray<float> a(*context, ramp(1000));
    const DeviceArray<float> b(*context, std::vector<float>(1000, -1));
    context->cuda()->copyOnDevice(a.data(), b.data(), 1000 * sizeof(float));
    EXPECT_EQ(b.read(), ramp(1000));
    context->cuda()->fill(b.data(), 0, 500 * sizeof(float));
    EXPECT_EQ(b.read()[499], 0.0F);
    EXPECT_EQ(b.read()[500], 500.0F);
}

TEST_F(Cuda, RunsKernelsOfAPack) {
    const auto context = withPack(kDoubleSource);
    const DeviceArray<float> x(*context, ramp(5000));
    const DeviceArray<float> out(*context, std::vector<float>(5000, -1));
    CudaContext& gpu = *context->cuda();
    const CudaEvent before = gpu.record();
    twice(gpu, 3, x.data(), out.data(), 4999);
    const CudaEvent after = gpu.record();
    EXPECT_GT(after.secondsSince(before), 0);
    EXPECT_TRUE(after.done());
    EXPECT_EQ(out.read()[4998], 3 * 4998.0F);
    EXPECT_EQ(out.read()[4999], -1.0F);
    const std::vector<KernelUse> uses = gpu.library().uses();
    ASSERT_EQ(uses.size(), 1U);
    EXPECT_EQ(uses[0].pack, "mine");
    EXPECT_EQ(uses[0].calls, 1U);
}

TEST_F(Cuda, AGraphReadsWhatMemoryHoldsWhenItIsReplayed) {
    const auto context = withPack(kDoubleSource);
    CudaContext& gpu = *context->cuda();
    const DeviceArray<float> x(*context, ramp(256));
    const DeviceArray<float> y(*context, std::vector<float>(256, 0));
    const DeviceArray<float> z(*context, std::vector<float>(256, 0));
    gpu.beginCapture();
    EXPECT_TRUE(gpu.capturing());
    twice(gpu, 2, x.data(), y.data(), 256);
    twice(gpu, 5, y.data(), z.data(), 256);
    EXPECT_THROW(gpu.synchronize(), base::Internal);
    const CudaGraph graph = gpu.endCapture();
    EXPECT_FALSE(gpu.capturing());
    EXPECT_EQ(z.read()[255], 0.0F) << "a captured kernel must not run";
    gpu.replay(graph);
    EXPECT_EQ(z.read()[255], 2550.0F);
    const std::vector<float> ones(256, 1);
    context->upload(ones.data(), x.data(), ones.size() * sizeof(float));
    gpu.replay(graph);
    EXPECT_EQ(z.read(), std::vector<float>(256, 10));
    gpu.beginCapture();
    twice(gpu, 2, x.data(), y.data(), 256);
    gpu.abortCapture();
    EXPECT_FALSE(gpu.capturing());
    twice(gpu, 7, x.data(), z.data(), 256);
    EXPECT_EQ(z.read(), std::vector<float>(256, 7));
}

TEST_F(Cuda, OutOfMemoryIsAnErrorOfThisRunAlone) {
    const auto context = cudaContext();
    const std::uint64_t total = context->traits().memoryBytes;
    try {
        const Buffer huge(context->memory().general(), total, {base::MemoryCategory::Weights, "huge", DType::U8, {}});
        FAIL();
    } catch (const base::OutOfMemory& error) {
        EXPECT_EQ(error.details().what, "huge");
        EXPECT_EQ(error.details().requested, total);
        EXPECT_EQ(error.details().budget, total);
        EXPECT_GT(error.details().held, 0U);
        EXPECT_GT(error.details().largestFree, 0U);
        EXPECT_EQ(error.details().category, "weights");
    }
    const DeviceArray<float> x(*context, ramp(10));
    EXPECT_EQ(x.read(), ramp(10));
}

TEST_F(Cuda, GuardBytesShowAWriteAfterTheEnd) {
    ContextOptions options;
    options.backend = Backend::Cuda;
    options.memory.guardBytes = true;
    Context context(options);
    {
        const DeviceArray<std::uint8_t> good(context, std::vector<std::uint8_t>(100, 1));
    }
    EXPECT_EQ(context.memory().guardViolations(), 0U);
    {
        const DeviceArray<std::uint8_t> bad(context, std::vector<std::uint8_t>(100, 1));
        context.cuda()->fill(bad.data() + 96, 7, 8);
    }
    EXPECT_EQ(context.memory().guardViolations(), 1U);
}

TEST_F(Cuda, UploadsFromManyThreads) {
    const auto context = cudaContext();
    constexpr int kPieces = 37;
    constexpr std::size_t kPiece = 1 << 20;
    const DeviceArray<std::uint8_t> target(*context, std::vector<std::uint8_t>(kPieces * kPiece, 0));
    context->cuda()->synchronize();
    base::ThreadPool pool(4);
    {
        CudaUpload upload(*context->cuda(), context->memory().host(), pool.threads(), kPiece);
        pool.parallelFor(kPieces, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
            for (std::int64_t i = begin; i < end; ++i) {
                void* buffer = upload.buffer(worker);
                std::memset(buffer, static_cast<int>(i + 1), kPiece);
                upload.send(worker, buffer, target.data() + static_cast<std::size_t>(i) * kPiece, kPiece,
                            static_cast<std::uint64_t>(i));
            }
        });
        upload.finish();
        std::vector<CudaUpload::Copied> copied = upload.takeCopied();
        ASSERT_EQ(copied.size(), std::size_t{kPieces});
        for (const CudaUpload::Copied& copy : copied) {
            EXPECT_LE(copy.begin, copy.end);
        }
    }
    const std::vector<std::uint8_t> back = target.read();
    for (std::size_t i = 0; i < kPieces; ++i) {
        EXPECT_EQ(back[i * kPiece], i + 1);
        EXPECT_EQ(back[(i + 1) * kPiece - 1], i + 1);
    }
}

// A kernel reads what was sent before it, and a copy over what a kernel reads waits for the kernel.
TEST_F(Cuda, UploadsKeepTheirPlaceAmongKernels) {
    const auto context = cudaContext();
    constexpr std::size_t kPiece = 16 << 20;
    const DeviceArray<std::uint8_t> staging(*context, std::vector<std::uint8_t>(kPiece, 0));
    const DeviceArray<std::uint8_t> result(*context, std::vector<std::uint8_t>(4 * kPiece, 0));
    context->cuda()->synchronize();
    CudaUpload upload(*context->cuda(), context->memory().host(), 1, kPiece);
    for (std::size_t i = 0; i < 4; ++i) {
        void* buffer = upload.buffer(0);
        std::memset(buffer, static_cast<int>(i + 1), kPiece);
        upload.afterCompute();
        upload.send(0, buffer, staging.data(), kPiece, i);
        upload.beforeCompute();
        context->cuda()->copyOnDevice(staging.data(), result.data() + i * kPiece, kPiece);
    }
    upload.finish();
    const std::vector<std::uint8_t> back = result.read();
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(back[i * kPiece], i + 1);
        EXPECT_EQ(back[(i + 1) * kPiece - 1], i + 1);
    }
}

// --- Dense products

struct Shape3 {
    std::int64_t m, n, k;
    bool transposed;
};

void checkProduct(Context& context, const Shape3& shape, DType type, bool withBias, float beta) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal(0, 1);
    const auto values = [&](std::int64_t count) {
        std::vector<float> out(static_cast<std::size_t>(count));
        for (float& value : out) {
            value = normal(random);
            value = type == DType::BF16 ? bf16ToFloat(floatToBf16(value)) : value;
        }
        return out;
    };
    const auto stored = [&](const std::vector<float>& from) {
        std::vector<std::uint8_t> bytes(from.size() * (type == DType::BF16 ? 2 : 4));
        storeFloats(type, from.data(), static_cast<std::int64_t>(from.size()), bytes.data(), 0);
        return bytes;
    };
    const std::int64_t outStride = shape.n + 8;
    const std::vector<float> x = values(shape.m * shape.k);
    const std::vector<float> w = values(shape.n * shape.k);
    const std::vector<float> bias = values(shape.n);
    const std::vector<float> before = values(shape.m * outStride);
    const DeviceArray<std::uint8_t> dx(context, stored(x));
    const DeviceArray<std::uint8_t> dw(context, stored(w));
    const DeviceArray<std::uint8_t> dbias(context, stored(bias));
    const DeviceArray<std::uint8_t> dout(context, stored(before));
    CudaContext::DenseProduct product;
    product.x = dx.data();
    product.weight = dw.data();
    product.out = dout.data();
    product.xType = product.weightType = product.outType = type;
    product.m = shape.m;
    product.n = shape.n;
    product.k = shape.k;
    product.xStride = shape.k;
    product.weightStride = shape.transposed ? shape.n : shape.k;
    product.outStride = outStride;
    product.transposedWeight = shape.transposed;
    product.bias = withBias ? dbias.data() : nullptr;
    product.beta = beta;
    context.cuda()->multiply(product);
    const std::vector<std::uint8_t> bytes = dout.read();
    std::vector<float> out(before.size());
    loadFloats(type, bytes.data(), 0, static_cast<std::int64_t>(out.size()), out.data());
    const double tolerance = type == DType::BF16 ? 0.02 : 1e-5;
    for (std::int64_t i = 0; i < shape.m; ++i) {
        for (std::int64_t j = 0; j < outStride; ++j) {
            const auto at = static_cast<std::size_t>(i * outStride + j);
            if (j >= shape.n) {
                ASSERT_EQ(out[at], before[at]) << "between the rows";
                continue;
            }
            double sum = (withBias ? bias[static_cast<std::size_t>(j)] : 0) + beta * before[at];
            for (std::int64_t c = 0; c < shape.k; ++c) {
                const std::int64_t weightAt = shape.transposed ? c * shape.n + j : j * shape.k + c;
                sum += static_cast<double>(x[static_cast<std::size_t>(i * shape.k + c)]) *
                       w[static_cast<std::size_t>(weightAt)];
            }
            ASSERT_NEAR(out[at], sum, tolerance * (std::sqrt(static_cast<double>(shape.k)) + std::abs(sum) / 2))
                << i << ", " << j << " of " << shape.m << " x " << shape.n << " x " << shape.k;
        }
    }
}

TEST_F(Cuda, DenseProducts) {
    const auto context = cudaContext();
    for (const Shape3& shape :
         {Shape3{1, 64, 32, false}, Shape3{7, 40, 24, false}, Shape3{33, 72, 136, true}, Shape3{128, 256, 64, false}}) {
        for (const DType type : {DType::F32, DType::BF16}) {
            checkProduct(*context, shape, type, false, 0);
            checkProduct(*context, shape, type, true, 0);
            checkProduct(*context, shape, type, false, 1);
        }
    }
}

// --- Faults

using CudaDeathTest = Cuda;

TEST_F(CudaDeathTest, AWriteOutOfBoundsEndsTheRunAndNamesTheKernel) {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe"; // a device knows no fork
    EXPECT_EXIT(
        {
            try {
                const auto context = withPack(kFaultSource);
                const DeviceArray<float> x(*context, ramp(256));
                twice(*context->cuda(), 2, x.data(), x.data(), 256);
                context->cuda()->synchronize();
                std::_Exit(1);
            } catch (const base::DeviceFault& error) {
                std::fprintf(stderr, "%s\n", error.message().c_str());
                std::_Exit(error.message().find("double/plain") != std::string::npos ? 7 : 2);
            }
        },
        ::testing::ExitedWithCode(7), "illegal memory access.*double/plain");
    // The next process works.
    const auto context = cudaContext();
    const DeviceArray<float> x(*context, ramp(10));
    EXPECT_EQ(x.read(), ramp(10));
}

} // namespace
} // namespace vitrine::gpu
