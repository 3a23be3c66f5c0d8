// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/moe.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/experts/expert_groups.h"
#include "kernels/ops/experts/row_softmax.h"
#include "kernels/ops/linear/weight_product.h"

namespace vitrine::kernels {

namespace {

/// The k largest values with their numbers, largest first; ties go to the lower number, NaN comes last.
void chooseLargest(const float* values, std::int64_t count, std::int64_t k, std::int32_t* ids, float* chosen) {
    bool taken[kMaxExperts] = {};
    for (std::int64_t j = 0; j < k; ++j) {
        std::int64_t best = -1;
        for (std::int64_t i = 0; i < count; ++i) {
            if (!taken[i] &&
                (best < 0 || values[i] > values[best] || (std::isnan(values[best]) && !std::isnan(values[i])))) {
                best = i;
            }
        }
        taken[best] = true;
        ids[j] = static_cast<std::int32_t>(best);
        chosen[j] = values[best];
    }
}

/// Minus infinity for the experts of groups that nothing is chosen from.
void dropGroups(const RouterGroups& by, std::int64_t experts, float* choice) {
    const std::int64_t size = experts / by.groups;
    float sums[kMaxExperts] = {};
    for (std::int64_t group = 0; group < by.groups; ++group) {
        std::int32_t ids[2];
        float best[2];
        chooseLargest(choice + group * size, size, 2, ids, best);
        sums[group] = best[0] + best[1];
    }
    std::int32_t kept[kMaxExperts];
    float keptSums[kMaxExperts];
    chooseLargest(sums, by.groups, by.kept, kept, keptSums);
    std::sort(kept, kept + by.kept);
    const std::int32_t* next = kept;
    for (std::int64_t group = 0; group < by.groups; ++group) {
        if (next != kept + by.kept && *next == group) {
            ++next;
            continue;
        }
        std::fill_n(choice + group * size, size, -std::numeric_limits<float>::infinity());
    }
}

/// The experts that are given for a row; null: it has its own choice.
const std::int32_t* givenIds(const RouterTopK& op, std::int64_t row) {
    if (op.given.empty()) {
        return nullptr;
    }
    const std::int32_t* ids = op.given.as<const std::int32_t>() + row * op.ids.shape[1];
    return ids[0] < 0 ? nullptr : ids;
}

/// The experts of a row: the k with the largest `choice`, or the given ones.
void chooseOrTake(const RouterTopK& op, std::int64_t row, const float* choice, std::int32_t* ids) {
    const std::int64_t k = op.ids.shape[1];
    const std::int32_t* given = givenIds(op, row);
    float* differing = op.differing.empty() ? nullptr : op.differing.as<float>() + row;
    if (given == nullptr || differing != nullptr) {
        float chosen[kMaxExperts];
        chooseLargest(choice, op.logits.shape[1], k, ids, chosen);
    }
    if (differing != nullptr) {
        *differing = given == nullptr ? 0.0F : static_cast<float>(std::count_if(given, given + k, [&](std::int32_t id) {
            return std::find(ids, ids + k, id) == ids + k;
        }));
    }
    if (given != nullptr) {
        std::copy_n(given, k, ids);
    }
}

/// `scores` are the logits of a row.
void routeBySigmoid(const RouterTopK& op, std::int64_t row, float* scores, std::int32_t* ids, float* weights) {
    constexpr float kNoZero = 1e-20F; // transformers adds it to the sum
    const std::int64_t experts = op.logits.shape[1];
    const std::int64_t k = op.ids.shape[1];
    float choice[kMaxExperts] = {};
    if (!op.groups.correction.empty()) {
        loadFloats(op.groups.correction.dtype, op.groups.correction.data, 0, experts, choice);
    }
    for (std::int64_t i = 0; i < experts; ++i) {
        scores[i] = 1 / (1 + std::exp(-scores[i]));
        choice[i] += scores[i];
    }
    if (op.groups.kept < op.groups.groups) {
        dropGroups(op.groups, experts, choice);
    }
    chooseOrTake(op, row, choice, ids);
    float sum = 0;
    for (std::int64_t j = 0; j < k; ++j) {
        weights[j] = scores[ids[j]];
        sum += weights[j];
    }
    const float scale = op.groups.scale / (op.normalize ? sum + kNoZero : 1.0F);
    for (std::int64_t j = 0; j < k; ++j) {
        weights[j] *= scale;
    }
}

void takeWeights(const float* values, const std::int32_t* ids, std::int64_t k, float* weights) {
    for (std::int64_t j = 0; j < k; ++j) {
        weights[j] = values[ids[j]];
    }
}

void routeRow(const RouterTopK& op, std::int64_t row) {
    const std::int64_t experts = op.logits.shape[1];
    const std::int64_t k = op.ids.shape[1];
    float values[kMaxExperts];
    loadFloats(op.logits.dtype, op.logits.data, row * op.logits.stride0(), experts, values);
    std::int32_t* ids = op.ids.as<std::int32_t>() + row * k;
    float* weights = op.weights.as<float>() + row * k;
    if (op.order == RouterOrder::SigmoidThenTopK) {
        routeBySigmoid(op, row, values, ids, weights);
        return;
    }
    if (op.order == RouterOrder::SoftmaxThenTopK) {
        softmaxInPlace(values, experts);
    }
    chooseOrTake(op, row, values, ids);
    takeWeights(values, ids, k, weights);
    if (op.order == RouterOrder::TopKThenSoftmax) {
        softmaxInPlace(weights, k);
    } else if (op.normalize) {
        float sum = 0;
        for (std::int64_t j = 0; j < k; ++j) {
            sum += weights[j];
        }
        if (sum < kLeastChosenShare) {
            loadFloats(op.logits.dtype, op.logits.data, row * op.logits.stride0(), experts, values);
            takeWeights(values, ids, k, weights);
            softmaxInPlace(weights, k);
            return;
        }
        for (std::int64_t j = 0; j < k; ++j) {
            weights[j] /= sum;
        }
    }
}

Product expertProduct(const ExpertMatmul& op, const ExpertScratch& scratch, std::int64_t expert) {
    const std::int32_t* starts = scratch.starts.as<const std::int32_t>();
    Product product;
    product.matrix = matrixOf(op.weight, expert);
    product.x = op.x;
    product.out = op.out;
    if (!op.bias.empty()) {
        product.bias = sliceRows(op.bias, expert, expert + 1);
    }
    product.pairs = scratch.pairs.as<const std::int32_t>() + starts[expert];
    product.pairsPerX = op.xPerToken ? op.ids.shape[1] : 1;
    product.rows = starts[expert + 1] - starts[expert];
    return product;
}

/// Experts that have pairs, in order.
std::int64_t activeExperts(const ExpertScratch& scratch, std::int64_t experts, std::int32_t* active) {
    const std::int32_t* starts = scratch.starts.as<const std::int32_t>();
    std::int64_t count = 0;
    for (std::int64_t expert = 0; expert < experts; ++expert) {
        if (starts[expert] != starts[expert + 1]) {
            active[count++] = static_cast<std::int32_t>(expert);
        }
    }
    return count;
}

void multiplyByDots(CpuContext& context, const ExpertMatmul& op, const ExpertScratch& scratch) {
    const SimdLevel simd = context.simd();
    const MatrixRef any = matrixOf(op.weight, 0);
    float* prepared = scratch.prepared.as<float>();
    forRows(context, op.x.shape[0], any.in * 4,
            [&](std::int64_t row) { prepareRow(simd, any, op.x, row, prepared + row * preparedSize(any.in)); });
    std::int32_t active[kMaxExperts];
    const std::int64_t activeCount = activeExperts(scratch, op.weight.experts(), active);
    const std::int64_t width = any.transposed ? kGemvOutputs : kGemvPiece;
    const std::int64_t pieces = (any.out + width - 1) / width;
    context.pool().parallelFor(activeCount * pieces, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t index = begin; index < end; ++index) {
            const Product product = expertProduct(op, scratch, active[index / pieces]);
            const std::int64_t out = index % pieces * width;
            const std::int64_t outCount = std::min(width, any.out - out);
            for (std::int64_t row = 0; row < product.rows; row += kGemvRows) {
                multiplyFewRows(simd, product, prepared, row, std::min(kGemvRows, product.rows - row), out, outCount);
            }
        }
    });
}

void multiplyByTiles(CpuContext& context, const ExpertMatmul& op, const ExpertScratch& scratch) {
    const bool wide = op.x.dtype == DType::F64;
    const SimdLevel simd = context.simd();
    std::int32_t active[kMaxExperts];
    const std::int64_t activeCount = activeExperts(scratch, op.weight.experts(), active);
    const std::int64_t width = op.weight.outFeatures();
    const std::int64_t pieces = (width + kTileOutputs - 1) / kTileOutputs;
    context.pool().parallelFor(activeCount * pieces, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t index = begin; index < end; ++index) {
            const Product product = expertProduct(op, scratch, active[index / pieces]);
            const std::int64_t out = index % pieces * kTileOutputs;
            const std::int64_t outCount = std::min(kTileOutputs, width - out);
            for (std::int64_t row = 0; row < product.rows; row += kTileRows) {
                const std::int64_t rowCount = std::min(kTileRows, product.rows - row);
                if (wide) {
                    multiplyDouble(product, row, rowCount, out, outCount);
                } else {
                    multiplyTile(simd, product, row, rowCount, out, outCount);
                }
            }
        }
    });
}

template <class C> void combineRow(const MoeCombine& op, std::int64_t token) {
    const std::int64_t k = op.x.shape[0] / op.out.shape[0];
    const float* weights = op.weights.empty() ? nullptr : op.weights.as<const float>() + token * k;
    const std::int32_t* places = op.places.empty() ? nullptr : op.places.as<const std::int32_t>() + token * k;
    const std::int32_t* ids = op.ids.empty() ? nullptr : op.ids.as<const std::int32_t>() + token * k;
    C sums[kRowPiece];
    C values[kRowPiece];
    forPieces(op.out.shape[1], [&](std::int64_t begin, std::int64_t count) {
        std::fill(sums, sums + count, C(0));
        for (std::int64_t j = 0; j < k; ++j) {
            if (ids != nullptr && ids[j] == kOtherRanksExpert) {
                continue;
            }
            const std::int64_t row = places == nullptr ? token * k + j : places[j];
            loadFloats(op.x.dtype, op.x.data, row * op.x.stride0() + begin, count, values);
            const C weight = weights == nullptr ? C(1) : static_cast<C>(weights[j]);
            for (std::int64_t i = 0; i < count; ++i) {
                sums[i] += weight * values[i];
            }
        }
        if (!op.residual.empty()) {
            loadFloats(op.residual.dtype, op.residual.data, token * op.residual.stride0() + begin, count, values);
            for (std::int64_t i = 0; i < count; ++i) {
                sums[i] += values[i];
            }
        }
        storeFloats(op.out.dtype, sums, count, op.out.data, token * op.out.stride0() + begin);
    });
}

/// Gradients of the probabilities of one token that its weights are made of, of all experts. `overChosen`: the weights
/// are made of the chosen logits alone.
template <class C>
void probabilityGradients(const RouterTopKBackward& op, std::int64_t row, bool overChosen, const C* probabilities,
                          C* gradients) {
    const RouterTopK& forward = op.forward;
    const std::int64_t k = forward.ids.shape[1];
    const std::int64_t experts = forward.logits.shape[1];
    const std::int32_t* ids = forward.ids.as<const std::int32_t>() + row * k;
    C chosen[kMaxExperts];
    loadFloats(op.gradWeights.dtype, op.gradWeights.data, row * k, k, chosen);
    if (op.gradProbabilities.empty()) {
        std::fill(gradients, gradients + experts, C(0));
    } else {
        loadFloats(DType::F32, op.gradProbabilities.data, 0, experts, gradients);
    }
    if (!overChosen) {
        C sum = 0;
        C mean = 0;
        for (std::int64_t j = 0; j < k; ++j) {
            sum += probabilities[ids[j]];
            mean += probabilities[ids[j]] * chosen[j];
        }
        for (std::int64_t j = 0; j < k; ++j) {
            gradients[ids[j]] += forward.normalize ? (chosen[j] - mean / sum) / sum : chosen[j];
        }
    }
}

/// `gradients` become those of the logits whose softmax the probabilities are.
template <class C> void softmaxGradient(const C* probabilities, std::int64_t count, C* gradients) {
    C mean = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        mean += probabilities[i] * gradients[i];
    }
    for (std::int64_t i = 0; i < count; ++i) {
        gradients[i] = probabilities[i] * (gradients[i] - mean);
    }
}

template <class C> void routeRowBackward(const RouterTopKBackward& op, std::int64_t row) {
    const RouterTopK& forward = op.forward;
    const std::int64_t k = forward.ids.shape[1];
    const std::int64_t experts = forward.logits.shape[1];
    C probabilities[kMaxExperts];
    C gradients[kMaxExperts];
    loadFloats(forward.logits.dtype, forward.logits.data, row * forward.logits.stride0(), experts, probabilities);
    C chosen[kMaxExperts]; // the weights anew: those of the forward pass are float32
    const std::int32_t* ids = forward.ids.as<const std::int32_t>() + row * k;
    for (std::int64_t j = 0; j < k; ++j) {
        chosen[j] = probabilities[ids[j]];
    }
    softmaxInPlace(probabilities, experts);
    C share = 0;
    for (std::int64_t j = 0; j < k; ++j) {
        share += probabilities[ids[j]];
    }
    // Given experts may be so improbable that a normalised weight, a quotient of probabilities, is 0 / 0.
    const bool overChosen = forward.order == RouterOrder::TopKThenSoftmax ||
                            (forward.normalize && share < static_cast<C>(kLeastChosenShare));
    probabilityGradients(op, row, overChosen, probabilities, gradients);
    softmaxGradient(probabilities, experts, gradients);
    if (overChosen) {
        C byWeight[kMaxExperts];
        loadFloats(op.gradWeights.dtype, op.gradWeights.data, row * k, k, byWeight);
        softmaxInPlace(chosen, k);
        softmaxGradient(chosen, k, byWeight);
        for (std::int64_t j = 0; j < k; ++j) {
            gradients[ids[j]] += byWeight[j];
        }
    }
    storeFloats(op.gradLogits.dtype, gradients, experts, op.gradLogits.data, row * op.gradLogits.stride0());
}

} // namespace

void execute(CpuContext& context, const RouterTopK& op) {
    forRows(context, op.logits.shape[0], op.logits.shape[1] * (op.ids.shape[1] + 8),
            [&](std::int64_t row) { routeRow(op, row); });
}

void execute(CpuContext& context, const RouterTopKBackward& op) {
    const std::int64_t experts = op.forward.logits.shape[1];
    forRows(context, op.forward.logits.shape[0], experts * 8, [&](std::int64_t row) {
        if (op.gradLogits.dtype == DType::F64) {
            routeRowBackward<double>(op, row);
        } else {
            routeRowBackward<float>(op, row);
        }
    });
}

void execute(CpuContext& context, const ExpertMatmul& op) {
    if (op.ids.shape.count() == 0) {
        return;
    }
    const ExpertScratch scratch(op, ScratchLayout(op.scratch.data));
    groupPairs(op.ids, scratch.starts, scratch.pairs);
    if (!scratch.prepared.empty() && op.x.dtype != DType::F64) {
        multiplyByDots(context, op, scratch);
    } else {
        multiplyByTiles(context, op, scratch);
    }
}

void execute(CpuContext& context, const MoeCombine& op) {
    if (op.out.shape[0] == 0) {
        return;
    }
    forRows(context, op.out.shape[0], op.x.shape.count() / op.out.shape[0] + op.x.shape[1], [&](std::int64_t token) {
        if (op.x.dtype == DType::F64) {
            combineRow<double>(op, token);
        } else {
            combineRow<float>(op, token);
        }
    });
}

} // namespace vitrine::kernels
