// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/device/abi/pack_weight.h"

#include <array>

#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/linear/pack_weight.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kThreads = 256, kPiece = 8;
constexpr std::int64_t kFlatPieces = 2; ///< that a thread takes without an adapter
constexpr std::int64_t kStripRows = 4;  ///< that a thread takes a piece of with one
constexpr std::int64_t kWideGroups = 8; ///< that a thread block takes

std::int64_t partsOf(std::int64_t count, std::int64_t size) {
    return (count + size - 1) / size;
}

/// What a kernel is made for. Weights that are alike in it share a launch.
struct PackForm {
    std::int64_t xType, xFormat, xScale, adapterType, rankPieces, valuesType, type, format, seven, group, rowGroup,
        aligned;
    bool narrow; ///< inputs are no multiple of a piece

    explicit PackForm(const PackWeight& weight)
        : xType(weight.x.quantized() ? 0 : dtypeNumber(weight.x.data)),
          xFormat(static_cast<std::int64_t>(weight.x.format)),
          xScale(weight.x.quantized() ? dtypeNumber(weight.x.scales) : 0), adapterType(optionalDtype(weight.adapter.a)),
          rankPieces(!weight.adapter.empty() && weight.adapter.rank() % kPiece == 0 && startsAligned(weight.adapter.b)
                         ? 1
                         : 0),
          valuesType(optionalDtype(weight.values)), type(static_cast<std::int64_t>(weight.type)),
          format(static_cast<std::int64_t>(weight.out.format)), seven(weight.rule == IntegerRule::Seven ? 1 : 0),
          group(weight.out.group), rowGroup(weight.out.rowGroup),
          aligned(startsAligned(weight.x.data) && startsAligned(weight.out.data) && startsAligned(weight.values) &&
                          startsAligned(weight.adapter.a)
                      ? 1
                      : 0),
          narrow(weight.out.inFeatures() % kPiece != 0 || (weight.x.quantized() && weight.x.group % kPiece != 0)) {}
    bool operator==(const PackForm&) const = default;

    bool blocks() const { return format == static_cast<std::int64_t>(WeightFormat::Fp8); }
    /// Whether neighbouring lanes of a warp take a group.
    bool shared() const { return group <= 256 && (group & (group - 1)) == 0; }
};

struct Work {
    std::int64_t count, items;
};

/// How a weight is cut into items.
Work workOf(const PackWeight& weight, const PackForm& form) {
    const std::int64_t experts = weight.out.experts(), rows = weight.out.outFeatures(), in = weight.out.inFeatures();
    if (form.blocks()) {
        const std::int64_t blocks = experts * partsOf(rows, form.rowGroup) * partsOf(in, form.group);
        return {blocks, blocks};
    }
    if (!form.shared()) {
        const std::int64_t groups = experts * rows * in / form.group;
        return {groups, partsOf(groups, kWideGroups)};
    }
    if (form.adapterType == 0) {
        const std::int64_t pieces = experts * rows * in / kPiece;
        return {pieces, partsOf(pieces, kThreads * kFlatPieces)};
    }
    const std::int64_t threads = experts * partsOf(rows, kStripRows) * in / kPiece;
    toInt(threads, PackWeights::kName, "out"); // the kernel divides them as 32-bit numbers
    return {threads, partsOf(threads, kThreads)};
}

abi::PackWeightPart partOf(const PackWeight& weight) {
    abi::PackWeightPart part{};
    part.x = weight.x.data.data;
    part.xScales = weight.x.scales.data;
    part.a = weight.adapter.a.data;
    part.b = weight.adapter.b.data;
    part.data = weight.out.data.data;
    part.scales = weight.out.scales.data;
    part.values = weight.values.data;
    part.rows = toInt(weight.out.outFeatures(), PackWeights::kName, "out");
    part.in = toInt(weight.out.inFeatures(), PackWeights::kName, "out");
    part.group = toInt(weight.out.group, PackWeights::kName, "out");
    part.rowGroup = toInt(weight.out.rowGroup, PackWeights::kName, "out");
    part.xGroup = toInt(weight.x.group, PackWeights::kName, "x");
    part.xRowGroup = toInt(weight.x.rowGroup, PackWeights::kName, "x");
    part.rank = weight.adapter.empty() ? 0 : toInt(weight.adapter.rank(), PackWeights::kName, "adapter");
    part.scale = weight.adapter.scale;
    return part;
}

void launch(CudaContext& context, const abi::PackWeightParams& params, const PackForm& form) {
    launchFamily(context, "pack_weight", abi::kPackWeightAbi, params,
                 {{"x_dtype", form.xType},
                  {"x_format", form.xFormat},
                  {"x_scale", form.xScale},
                  {"a_dtype", form.adapterType},
                  {"rank_pieces", form.rankPieces},
                  {"values_dtype", form.valuesType},
                  {"type", form.type},
                  {"format", form.format},
                  {"seven", form.seven},
                  {"group", form.group},
                  {"row_group", form.rowGroup},
                  {"in", form.narrow ? 1 : kPiece},
                  {"aligned", form.aligned},
                  {"type_bytes", bitsOf(static_cast<DType>(form.type)) / 8},
                  {"items", params.items}});
}

} // namespace

void execute(CudaContext& context, const PackWeights& op) {
    for (std::size_t next = 0; next < op.weights.size();) {
        const PackForm form(op.weights[next]);
        abi::PackWeightParams params{};
        params.changed = op.changed.as<unsigned long long>();
        for (; next < op.weights.size() && params.count < abi::kPackWeightParts; ++next) {
            const PackWeight& weight = op.weights[next];
            if (weight.out.shape.count() == 0) {
                continue;
            }
            if (PackForm(weight) != form) {
                break;
            }
            const Work work = workOf(weight, form);
            abi::PackWeightPart& part = params.parts[params.count++];
            part = partOf(weight);
            part.first = params.items;
            part.count = work.count;
            params.items += work.items;
        }
        if (params.count > 0) {
            launch(context, params, form);
        }
    }
}

} // namespace vitrine::kernels
