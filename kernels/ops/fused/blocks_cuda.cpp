// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/blocks.h"

#include <array>
#include <type_traits>

#include "kernels/device/abi/rope_write.h"
#include "kernels/ops/attention/kv_call.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/fused/block_primitives.h"
#include "kernels/ops/fused/decode_cuda.h"
#include "kernels/ops/fused/expert_mlp_tiles.h"
#include "kernels/ops/linear/few_rows_cuda.h"
#include "kernels/ops/linear/packed_rows_cuda.h"

namespace vitrine::kernels {

namespace {

/// RoPE and, with `writes`, the cache write of a QkvProject in one launch. False: nothing was launched.
bool rotateAndWrite(CudaContext& context, const QkvProject& op, bool writes) {
    const std::int64_t headDim = op.outQ.shape[2];
    const bool same = op.outQ.dtype == op.outK.dtype && op.outQ.dtype == op.outV.dtype;
    if (!same || op.outQ.shape[0] == 0) {
        return false;
    }
    abi::RopeWriteParams params{};
    params.q = op.outQ.data;
    params.k = op.outK.data;
    params.v = op.outV.data;
    params.positions = op.positions.as<const int>();
    params.sequence = op.sequence.as<const int>();
    params.inverseFrequency = op.inverseFrequency.as<const float>();
    params.qStride = op.outQ.stride0();
    params.kStride = op.outK.stride0();
    params.vStride = op.outV.stride0();
    params.heads = toInt(op.outQ.shape[1], QkvProject::kName, "outQ");
    params.kvHeads = toInt(op.outK.shape[1], QkvProject::kName, "outK");
    params.writeCache = writes ? 1 : 0;
    params.attentionScale = op.ropeScale;
    TensorView keys = op.outK;
    TensorView values = op.outV;
    if (writes) {
        params.cache = kvParameters(op.cache, QkvProject::kName);
        keys = op.cache.keys;
        values = op.cache.values;
    }
    const std::array variables{
        KernelVariable{"x_dtype", dtypeNumber(op.outQ)}, KernelVariable{"cache_dtype", dtypeNumber(keys)},
        KernelVariable{"vector", pieceOf(headDim / 2, {&op.outQ, &op.outK, &op.outV, &keys, &values})},
        KernelVariable{"tokens", op.outQ.shape[0]}, KernelVariable{"head_dim", headDim}};
    const KernelCall call = callOf("rope_write", abi::kRopeWriteAbi, params, variables);
    if (!context.fits(call)) {
        return false;
    }
    context.launch(call);
    return true;
}

} // namespace

void execute(CudaContext& context, const QkvProject& op) {
    const QkvProjectPrimitives primitives(op, op.scratch.empty() ? ScratchLayout() : ScratchLayout(op.scratch.data),
                                          context.traits());
    const bool exact = context.traits().features.exactRows;
    if (!exact && op.fusible() && projectFewTokens(context, op, primitives)) {
        return;
    }
    const bool rounds = primitives.write && primitives.write->rounds; // a row's scale is known when all of it is
    bool fused = false, together = false;
    primitives.forEach([&](const auto& part) {
        const void* at = static_cast<const void*>(&part);
        if (at == &primitives.q) {
            together = !exact && multiplyPackedTogether(context, {&primitives.q, &primitives.k, &primitives.v});
        } else if (at == &primitives.ropeQ) {
            fused = rotateAndWrite(context, op, op.writeCache && !rounds);
        }
        if (together && (at == &primitives.q || at == &primitives.k || at == &primitives.v)) {
            return;
        }
        const bool last = std::is_same_v<std::decay_t<decltype(part)>, Rope> ||
                          (std::is_same_v<std::decay_t<decltype(part)>, KvWrite> && !rounds);
        if (!fused || !last) {
            execute(context, part);
        }
    });
}

void execute(CudaContext& context, const OutProject& op) {
    executePrimitives<OutProjectPrimitives>(context, op, context.traits());
}

void execute(CudaContext& context, const DenseMlp& op) {
    const DenseMlpPrimitives primitives(op, op.scratch.empty() ? ScratchLayout() : ScratchLayout(op.scratch.data),
                                        context.traits());
    const bool fuses = op.fusible() && !context.traits().features.exactRows;
    const bool activated = fuses && activateFewTokens(context, op, primitives.activation.out);
    bool gated = activated; // gate, up and activation are made
    primitives.forEach([&](const auto& part) {
        const void* at = static_cast<const void*>(&part);
        if (at == &primitives.gate && !gated) {
            gated = fuses && multiplyPackedGated(context, primitives.gate, primitives.up, op.activation,
                                                 primitives.activation.out);
        }
        const bool normed = primitives.norm.has_value() && at == &*primitives.norm;
        const bool made = at == &primitives.gate || at == &primitives.up || at == &primitives.activation;
        if (!(normed && activated) && !(made && gated)) {
            execute(context, part);
        }
    });
}

void execute(CudaContext& context, const Route& op) {
    if (!op.fusible() || context.traits().features.exactRows || !routeTokens(context, op)) {
        executePrimitives<RoutePrimitives>(context, op, context.traits());
    }
}

void execute(CudaContext& context, const ExpertMlp& op) {
    if (op.grouped()) {
        executePrimitives<GroupedExpertPrimitives>(context, op, context.traits());
    } else if (!runExpertsOfFewTokens(context, op) && !runExpertsInFp8(context, op) && !runPackedExperts(context, op) &&
               !multiplyInTiles(context, op)) {
        executePrimitives<ExpertMlpPrimitives>(context, op, context.traits());
    }
}

void execute(CudaContext& context, const LmHead& op) {
    const FewRowsProduct product{op.x, op.rows, op.norm, op.head, {}, op.logits, op.softCap};
    if (!op.head.adapter.empty() || context.traits().features.exactRows || !multiplyFewRows(context, product)) {
        executePrimitives<LmHeadPrimitives>(context, op, context.traits());
    }
}

} // namespace vitrine::kernels
