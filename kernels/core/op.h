// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the header of an op needs: what an op costs, and the names of the contexts that run it. The header of an op
// declares check, cost, scratch and an overload of execute for CpuContext and for CudaContext; execute on MetaContext
// stands here for all ops but Sample, which has an overload of its own. Context::run (kernels/context/context.h) calls
// them.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace.h"
#include "kernels/core/device_traits.h"
#include "kernels/core/dtype.h"
#include "kernels/core/weight_view.h"

namespace vitrine::kernels {

class Context;
class CpuContext;
class CudaContext;
class MetaContext;

/// Calls of one op whose rates differ although they move and compute the same, because other kernels run. Attention
/// differs by head dim and by what the KV cache holds: floats, FP8 or INT8. Products differ by the format of their
/// weights. Expert products also differ by whether all requests are copies of one, which choose the same experts.
struct RateClass {
    enum Kind : std::uint8_t {
        Any, ///< also products with weights of floats
        NarrowHeads,
        WideHeads,
        NarrowHeadsFp8,
        WideHeadsFp8,
        NarrowHeadsInt8,
        WideHeadsInt8,
        Weights,
        Experts,
        Copies, ///< experts of copies
    };
    Kind kind = Any;
    WeightFormat format = WeightFormat::Dense; ///< of products
    // NOLINTNEXTLINE(google-explicit-constructor): most kinds are a class by themselves
    constexpr RateClass(Kind of = Any, WeightFormat weights = WeightFormat::Dense) : kind(of), format(weights) {}
    auto operator<=>(const RateClass&) const = default;
};
/// `cache`: the type of the KV cache; any float where there is none.
RateClass attentionRateClass(std::int64_t headDim, DType cache);
/// Of products that are no experts'.
RateClass weightRateClass(WeightFormat format);
RateClass expertRateClass(WeightFormat format, bool copies);
/// The class of calls of this class where all requests are copies of one.
RateClass rateClassOfCopies(RateClass rateClass);
/// The name of the family in OpRates that holds the calls of a class: "Attention.wide".
std::string rateFamily(std::string_view op, RateClass rateClass);
/// The families that can price a call of a class, the best first: rateFamily() and what stands in for it while nothing
/// was measured of it. A call that another family prices still has its own bytes and FLOPs.
std::vector<std::string> rateFamilies(std::string_view op, RateClass rateClass);

/// The classes of a run's ops.
struct RunRateClasses {
    RateClass attention, experts;
    RateClass projections; ///< products of attention's weights
    RateClass mlp;         ///< products of the MLP's weights, where it has no experts

    RateClass of(std::string_view op) const;
};

/// What an op moves and computes.
struct Cost {
    std::uint64_t bytesRead = 0;
    std::uint64_t bytesWritten = 0;
    std::uint64_t flops = 0;
    std::uint32_t launches = 1;
    DType computeType = DType::F32;
    RateClass rateClass;
    double share = 1; ///< share of the device's rate of dense products that the FLOPs can reach
    // Of a collective:
    std::uint64_t linkBytes = 0; ///< that this rank sends to others
    std::uint32_t exchanges = 0; ///< rounds in which ranks wait for each other
    int ranks = 1;               ///< that take part

    std::uint64_t bytes() const { return bytesRead + bytesWritten; }
};

/// What an op mostly writes, for sums of time by category. An op that writes something else than activations says so
/// with a member kCategory.
template <class Op> constexpr base::MemoryCategory categoryOfOp() {
    if constexpr (requires { Op::kCategory; }) {
        return Op::kCategory;
    } else {
        return base::MemoryCategory::Activations;
    }
}

/// Roofline time of a cost on a device, seconds: the larger of memory and compute time, plus launches.
double rooflineSeconds(const Cost& cost, const DeviceTraits& traits);

/// How long a call of the op `name` takes on a device, without the wait before it: from measured calls like it where
/// the device has any (kernels/core/op_rates.h), else the roofline time.
struct OpSeconds {
    double seconds = 0;
    bool measured = false;
    bool far = false; ///< of a measured one: no call like it was measured on this device, see RatedSeconds
    double wake = 0;  ///< what the first launch of such a call takes the host more
};
OpSeconds opSeconds(std::string_view name, const Cost& cost, const DeviceTraits& traits);

/// How well the time of all ops of a plan is known.
struct PricedTime {
    base::TimeNs ops = 0;                           ///< of all ops together
    base::TimeNs far = 0;                           ///< extrapolated: no call like it was measured on this device
    base::TimeNs sheet = 0;                         ///< by the data sheet: no call of that op was ever measured
    std::vector<std::string_view> farOps, sheetOps; ///< whose time that is, the longest first
};

/// Meta computes nothing: check and cost have done everything. Sample has an overload of its own.
template <class Op> void execute(MetaContext&, const Op&) {}

/// Unsupported: `op` has no CUDA form in this build.
[[noreturn]] void throwNoCuda(std::string_view op);

} // namespace vitrine::kernels
