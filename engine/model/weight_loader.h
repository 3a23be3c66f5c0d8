// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Brings the pieces of a weight store into place: as they are, expanded (packed to BF16), widened (to float32), or
// packed on the host, or filled from a seed. Expanded and widened pieces pass through a staging buffer of two halves:
// while one half is converted, the other one is filled.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/thread_pool.h"
#include "engine/model/weight_layout.h"
#include "engine/model/weight_mover.h"
#include "engine/model/weights.h"
#include "engine/quant/value_packer.h"
#include "kernels/context/context.h"
#include "kernels/ops/linear/weights.h"
#include "kernels/ops/rowwise/elementwise.h"

namespace vitrine::engine {

/// Keeps account of bytes, times and progress. Belongs to the context's thread; the arguments outlive it.
class WeightLoader {
public:
    /// `staging` (of layout.stagingBytes, may be 0) is what converted pieces pass through.
    WeightLoader(kernels::Context& context, const ModelSource& source, const LoadOptions& options,
                 const WeightLayout& layout, void* staging, base::ProgressSink* progress);

    /// Brings one piece into `out`, now or by finish().
    void load(const WeightPiece& piece, const kernels::TensorView& out);
    /// Everything is in place, on the device too.
    void finish();

    /// Of the weight that was packed last.
    float scaleOffset() const { return packed_.scaleOffset; }
    std::uint64_t bytesRead() const { return bytesRead_; }
    double seconds() const { return static_cast<double>(context_.clock().now() - begin_) * 1e-9; }

private:
    using Convert = std::variant<kernels::Dequantize, kernels::Cast>;
    /// Values that are on their way into one half of staging.
    struct Conversion {
        std::string name;
        Convert op;
        std::uint64_t moves = 0; ///< that must be in place
    };
    /// A conversion that was given to the context.
    struct Span {
        std::string name;
        kernels::Mark begin, end;
        std::uint64_t bytes = 0;
    };

    void loadWhole(const WeightPiece& piece, void* data);
    void convertStored(const WeightSource& source, void* out);
    void expand(const WeightPiece& piece, const kernels::TensorView& out);
    void widen(const WeightPiece& piece, const kernels::TensorView& out);
    void pack(const WeightPiece& piece, const kernels::TensorView& out);
    PackedValues packSource(const WeightPiece& piece);
    base::ThreadPool& pool();
    void* nextHalf();
    void convertLater(const std::string& name, const Convert& op);
    void convert(const Conversion& conversion);
    void move(const WeightSource& source, std::uint64_t offset, std::uint64_t bytes, void* out);
    kernels::WeightView stageAll(std::span<const WeightSource> weight, std::int64_t begin, std::int64_t end,
                                 void* half);
    kernels::TensorView stage(const WeightSource& source, std::int64_t begin, std::int64_t end, void* out);
    void reportSpans();
    void fill(const WeightSource& source, const kernels::TensorView& out);
    void fillExperts(const WeightSource& source, std::int64_t begin, std::int64_t end, const kernels::TensorView& out);
    void report(const std::string& name, std::uint64_t bytes);

    kernels::Context& context_;
    const ModelSource& source_;
    const LoadOptions& options_;
    std::uint64_t total_;
    void* staging_;
    std::uint64_t halfBytes_;
    base::ProgressSink* progress_;
    base::TimeNs begin_;
    std::uint64_t moves_ = 0;
    std::uint64_t chunks_ = 0; ///< that went through staging
    std::optional<Conversion> waiting_;
    std::vector<Span> spans_;                   ///< that were not reported
    PackedValues packed_;                       ///< of the last packed weight, until its scales are in place
    std::unique_ptr<base::ThreadPool> ownPool_; ///< packs where the context has none; null: not needed yet
    base::TimeNs firstSpan_ = 0;                ///< when the first of them began
    std::uint64_t bytesRead_ = 0;
    std::uint64_t done_ = 0;
    std::unique_ptr<WeightMover> mover_; ///< null: a synthetic model is filled in place
};

/// Compiles the kernels that fill synthetic tensors side by side; there is one for each kind of values.
void prefetchFills(kernels::Context& context, const ModelSource& source, const WeightLayout& layout,
                   const LoadOptions& options);

} // namespace vitrine::engine
