// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/jit/cublaslt.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <cublasLt.h>
#include <fmt/format.h>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/shared_library.h"

namespace vitrine::kernels {

namespace {

#define VITRINE_CUBLASLT_FUNCTIONS(F)                                                                                  \
    F(cublasLtCreate)                                                                                                  \
    F(cublasLtDestroy)                                                                                                 \
    F(cublasLtGetStatusString)                                                                                         \
    F(cublasLtMatmul)                                                                                                  \
    F(cublasLtMatmulAlgoConfigGetAttribute)                                                                            \
    F(cublasLtMatmulAlgoGetHeuristic)                                                                                  \
    F(cublasLtMatmulDescCreate)                                                                                        \
    F(cublasLtMatmulDescDestroy)                                                                                       \
    F(cublasLtMatmulDescSetAttribute)                                                                                  \
    F(cublasLtMatrixLayoutCreate)                                                                                      \
    F(cublasLtMatrixLayoutDestroy)                                                                                     \
    F(cublasLtMatmulPreferenceCreate)                                                                                  \
    F(cublasLtMatmulPreferenceDestroy)                                                                                 \
    F(cublasLtMatmulPreferenceSetAttribute)

struct CublasLtFunctions {
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define VITRINE_MEMBER(name) decltype(&::name) name = nullptr;
    VITRINE_CUBLASLT_FUNCTIONS(VITRINE_MEMBER)
#undef VITRINE_MEMBER
    std::string missing;
};

CublasLtFunctions loadCublasLt() {
    CublasLtFunctions out;
    const std::vector<std::string> names{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    const base::SharedLibrary library = base::SharedLibrary::find(names);
    if (!library.isOpen()) {
        out.missing = "cuBLASLt was not found; install the CUDA toolkit, or: pip install nvidia-cublas";
        return out;
    }
#define VITRINE_LOAD(name)                                                                                             \
    out.name = reinterpret_cast<decltype(&::name)>(library.symbol(#name));                                             \
    if (out.name == nullptr) {                                                                                         \
        out.missing =                                                                                                  \
            fmt::format("{}: lacks {}; install a CUDA toolkit of version 12 or later", library.path(), #name);         \
        return out;                                                                                                    \
    }
    VITRINE_CUBLASLT_FUNCTIONS(VITRINE_LOAD)
#undef VITRINE_LOAD
    return out;
}

const CublasLtFunctions& cublasLt() {
    static const CublasLtFunctions kFunctions = loadCublasLt();
    if (!kFunctions.missing.empty()) {
        throw base::Unsupported("dense products on the GPU: " + kFunctions.missing);
    }
    return kFunctions;
}

void check(cublasStatus_t status, std::string_view what) {
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
        throw base::Unsupported(fmt::format("cuBLASLt: {}: is not supported on this device", what));
    }
    if (status == CUBLAS_STATUS_ALLOC_FAILED) {
        base::OutOfMemoryDetails resources;
        resources.what = fmt::format("cuBLASLt: {}", what);
        throw base::OutOfMemory(std::move(resources));
    }
    if (status != CUBLAS_STATUS_SUCCESS) {
        throw base::Internal(fmt::format("cuBLASLt: {}: {}", what, cublasLt().cublasLtGetStatusString(status)));
    }
}

cudaDataType_t dataType(DType dtype) {
    switch (dtype) {
    case DType::F32:
        return CUDA_R_32F;
    case DType::BF16:
        return CUDA_R_16BF;
    case DType::F16:
        return CUDA_R_16F;
    case DType::F64:
        return CUDA_R_64F;
    default:
        throw base::Unsupported(fmt::format("cuBLASLt: products of {} are not supported", dtypeName(dtype)));
    }
}

/// Owns one of the library's descriptors.
template <class Handle, cublasStatus_t (*CublasLtFunctions::*Destroy)(Handle)> class Owned {
public:
    Owned() = default;
    ~Owned() {
        if (handle_ != nullptr) {
            (cublasLt().*Destroy)(handle_);
        }
    }
    Owned(const Owned&) = delete; // one owner destroys
    Owned& operator=(const Owned&) = delete;
    Handle* fill() { return &handle_; }
    Handle get() const { return handle_; }

private:
    Handle handle_ = nullptr;
};

using Descriptor = Owned<cublasLtMatmulDesc_t, &CublasLtFunctions::cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, &CublasLtFunctions::cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, &CublasLtFunctions::cublasLtMatmulPreferenceDestroy>;

/// The largest power of two that divides an address, at most 256: algorithms differ in what they need.
std::uint32_t alignmentOf(const void* address) {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    return value == 0 ? 256U : static_cast<std::uint32_t>(std::min<std::uintptr_t>(value & (~value + 1), 256));
}

/// Everything that the choice of an algorithm depends on.
using Key = std::array<std::int64_t, 18>;

Key keyOf(const CudaContext::DenseProduct& product, std::uint64_t workspaceBytes) {
    return {product.m,
            product.n,
            product.k,
            product.xStride,
            product.weightStride,
            product.outStride,
            static_cast<std::int64_t>(product.xType),
            static_cast<std::int64_t>(product.weightType),
            static_cast<std::int64_t>(product.outType),
            product.transposedX ? 1 : 0,
            product.transposedWeight ? 1 : 0,
            product.bias != nullptr ? 1 : 0,
            product.beta != 0 ? 1 : 0,
            alignmentOf(product.x),
            alignmentOf(product.weight),
            alignmentOf(product.out),
            static_cast<std::int64_t>(workspaceBytes),
            product.exactRows ? 1 : 0};
}

/// Numbers of rows that algorithms of exact products are chosen for: some that are sampled together, many of a prefill
/// or of training. Without split sums all of them add up one product after the other along k, and so to the same bits;
/// larger tiles read less. Algorithms for fewer than 256 rows were seen to add up in another order
/// (tests/gpu/exact_rows_test.cpp).
constexpr std::array<std::int64_t, 3> kExactRows = {256, 1024, 8192};
/// Tensors of an exact product begin at multiples of it, as far as their rows do.
constexpr std::uint32_t kExactAlignment = 16;

std::uint32_t exactAlignment(DType dtype, std::int64_t stride) {
    const std::uint64_t row = bytesOf(dtype, stride);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(row & (~row + 1), kExactAlignment));
}

/// What stands for exact products of about so many rows: nothing of it depends on where its tensors are.
CudaContext::DenseProduct exactReference(const CudaContext::DenseProduct& product) {
    CudaContext::DenseProduct out = product;
    const auto enough = std::ranges::find_if(kExactRows, [&](std::int64_t rows) { return rows >= product.m; });
    out.m = enough == kExactRows.end() ? kExactRows.back() : *enough;
    out.x = out.weight = out.out = nullptr;
    out.xStride = product.transposedX ? out.m : product.k;
    out.weightStride = product.transposedWeight ? product.n : product.k;
    out.outStride = product.n;
    return out;
}

/// A product's descriptors. The library is column-major, so it computes out^T (n, m) = weight (n, k) x^T (k, m).
struct Plan {
    Descriptor descriptor;
    Layout weight, x, out;
    cublasLtMatmulAlgo_t algorithm{};

    explicit Plan(const CudaContext::DenseProduct& product) {
        const CublasLtFunctions& lib = cublasLt();
        const bool wide = product.outType == DType::F64;
        check(lib.cublasLtMatmulDescCreate(descriptor.fill(), wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                           wide ? CUDA_R_64F : CUDA_R_32F),
              "descriptor");
        set(CUBLASLT_MATMUL_DESC_TRANSA, product.transposedWeight ? CUBLAS_OP_N : CUBLAS_OP_T);
        set(CUBLASLT_MATMUL_DESC_TRANSB, product.transposedX ? CUBLAS_OP_T : CUBLAS_OP_N);
        if (product.bias != nullptr) {
            set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
            set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, dataType(product.outType));
            set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
        }
        const auto n = static_cast<std::uint64_t>(product.n);
        const auto m = static_cast<std::uint64_t>(product.m);
        const auto k = static_cast<std::uint64_t>(product.k);
        const cudaDataType_t weightType = dataType(product.weightType);
        check(product.transposedWeight
                  ? lib.cublasLtMatrixLayoutCreate(weight.fill(), weightType, n, k, product.weightStride)
                  : lib.cublasLtMatrixLayoutCreate(weight.fill(), weightType, k, n, product.weightStride),
              "weight");
        const cudaDataType_t xType = dataType(product.xType);
        check(product.transposedX ? lib.cublasLtMatrixLayoutCreate(x.fill(), xType, m, k, product.xStride)
                                  : lib.cublasLtMatrixLayoutCreate(x.fill(), xType, k, m, product.xStride),
              "x");
        check(lib.cublasLtMatrixLayoutCreate(out.fill(), dataType(product.outType), n, m, product.outStride), "out");
    }

    template <class T> void set(cublasLtMatmulDescAttributes_t attribute, T value) const {
        check(cublasLt().cublasLtMatmulDescSetAttribute(descriptor.get(), attribute, static_cast<const void*>(&value),
                                                        sizeof(value)),
              "descriptor");
    }

    void choose(cublasLtHandle_t handle, const CudaContext::DenseProduct& product, std::uint64_t workspaceBytes) {
        const CublasLtFunctions& lib = cublasLt();
        Preference preference;
        check(lib.cublasLtMatmulPreferenceCreate(preference.fill()), "preference");
        const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
            check(lib.cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)),
                  "preference");
        };
        const auto alignment = [&](const void* tensor, DType dtype, std::int64_t stride) {
            return product.exactRows ? exactAlignment(dtype, stride) : alignmentOf(tensor);
        };
        const std::uint32_t ofOut = alignment(product.out, product.outType, product.outStride);
        prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
               alignment(product.weight, product.weightType, product.weightStride));
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(product.x, product.xType, product.xStride));
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, ofOut);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, ofOut);
        if (product.exactRows) {
            prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE});
        }
        constexpr int kAsked = 16; // of an exact product, which refuses some
        std::array<cublasLtMatmulHeuristicResult_t, kAsked> results{};
        int found = 0;
        const cublasStatus_t status = lib.cublasLtMatmulAlgoGetHeuristic(
            handle, descriptor.get(), weight.get(), x.get(), out.get(), out.get(), preference.get(),
            product.exactRows ? kAsked : 1, results.data(), &found);
        const auto end = results.begin() + (status == CUBLAS_STATUS_SUCCESS ? found : 0);
        const auto fits = [&](const cublasLtMatmulHeuristicResult_t& result) {
            return !product.exactRows || !cutsSums(result.algo);
        };
        const auto chosen = std::find_if(results.begin(), end, fits);
        if (chosen == end) {
            throw base::Unsupported(fmt::format(
                "cuBLASLt: no algorithm for a product of {} and {} to {}, m {}, n {}, k {}", dtypeName(product.xType),
                dtypeName(product.weightType), dtypeName(product.outType), product.m, product.n, product.k));
        }
        algorithm = chosen->algo;
    }

private:
    /// Whether several blocks make parts of the same sum.
    static bool cutsSums(const cublasLtMatmulAlgo_t& algorithm) {
        std::int32_t parts = 1;
        std::size_t written = 0;
        check(cublasLt().cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts,
                                                              sizeof(parts), &written),
              "algorithm");
        return parts > 1;
    }
};

} // namespace

struct CublasLt::State {
    cublasLtHandle_t handle = nullptr;
    std::map<Key, std::unique_ptr<Plan>> plans;
    std::map<Key, cublasLtMatmulAlgo_t> exact; ///< by exactReference()

    std::unique_ptr<Plan> planOf(const CudaContext::DenseProduct& product, std::uint64_t workspaceBytes) {
        auto made = std::make_unique<Plan>(product);
        if (!product.exactRows) {
            made->choose(handle, product, workspaceBytes);
            return made;
        }
        const CudaContext::DenseProduct reference = exactReference(product);
        const auto [place, isNew] = exact.try_emplace(keyOf(reference, workspaceBytes));
        if (isNew) {
            Plan plan(reference);
            plan.choose(handle, reference, workspaceBytes);
            place->second = plan.algorithm;
        }
        made->algorithm = place->second;
        return made;
    }
};

CublasLt::CublasLt() : state_(std::make_unique<State>()) {
    check(cublasLt().cublasLtCreate(&state_->handle), "start");
}

CublasLt::~CublasLt() {
    state_->plans.clear();
    cublasLt().cublasLtDestroy(state_->handle);
}

void CublasLt::multiply(const CudaContext::DenseProduct& product, CUstream stream, void* workspace,
                        std::uint64_t workspaceBytes) {
    constexpr std::size_t kMaxPlans = 4096;
    if (state_->plans.size() >= kMaxPlans) {
        state_->plans.clear();
    }
    std::unique_ptr<Plan>& plan = state_->plans[keyOf(product, workspaceBytes)];
    if (plan == nullptr) {
        plan = state_->planOf(product, workspaceBytes);
    }
    if (product.bias != nullptr) {
        plan->set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
    }
    const double wideAlpha = product.alpha;
    const double wideBeta = product.beta;
    const bool wide = product.outType == DType::F64;
    const void* alpha = wide ? static_cast<const void*>(&wideAlpha) : &product.alpha;
    const void* beta = wide ? static_cast<const void*>(&wideBeta) : &product.beta;
    check(cublasLt().cublasLtMatmul(state_->handle, plan->descriptor.get(), alpha, product.weight, plan->weight.get(),
                                    product.x, plan->x.get(), beta, product.out, plan->out.get(), product.out,
                                    plan->out.get(), &plan->algorithm, workspace, workspaceBytes, stream),
          "product");
}

void CublasLt::wakeUp(CUstream stream, void* memory, std::uint64_t bytes) {
    constexpr std::int64_t kSize = 256;
    constexpr std::uint64_t kTensor = kSize * kSize * 2;
    if (bytes < 4 * kTensor) {
        return;
    }
    auto* const first = static_cast<std::byte*>(memory);
    CudaContext::DenseProduct product;
    product.x = first;
    product.weight = first + kTensor;
    product.out = first + 2 * kTensor;
    product.m = product.n = product.k = product.xStride = product.weightStride = product.outStride = kSize;
    multiply(product, stream, first + 3 * kTensor, bytes - 3 * kTensor);
}

} // namespace vitrine::kernels
