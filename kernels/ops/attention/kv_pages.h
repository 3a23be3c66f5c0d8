// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Reading a KvView on the CPU: from a logical position to a place of a page. Everything that the view's tables say is
// checked, because a wrong page number would write anywhere.

#include <cstdint>

#include "kernels/ops/attention/kv_view.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

/// Rules for the view of an op; `kvHeads` and `headDim` are those of the op's keys.
void checkKvView(const OpCheck& rule, const KvView& view, std::int64_t kvHeads, std::int64_t headDim);

class KvPages {
public:
    explicit KvPages(const KvView& view);

    std::int64_t sequences() const { return sequences_; }
    std::int64_t first(std::int64_t sequence) const { return first_[sequence]; }
    /// One past the last position kept.
    std::int64_t end(std::int64_t sequence) const { return first_[sequence] + lengths_[sequence]; }

    /// Element offset of (position, kvHead 0) in keys and in values. Throws Internal for a page that cannot be.
    struct Place {
        std::int64_t key = 0;
        std::int64_t value = 0;
        std::int64_t run = 0;      ///< positions from here on that follow in the same page without a wrap
        std::int64_t keyScale = 0; ///< of a quantized cache: element offset of kvHead 0's scale
        std::int64_t valueScale = 0;
    };
    Place place(std::int64_t sequence, std::int64_t position) const;

    std::int64_t tokenStride() const { return tokenStride_; }
    std::int64_t scaleStride() const { return pageTokens_; } ///< between the scales of a token's heads

private:
    std::int64_t pagesOf(std::int64_t sequence) const;

    const std::int32_t* table_;
    const std::int32_t* first_;
    const std::int32_t* lengths_;
    std::int64_t sequences_;
    std::int64_t maxPages_;
    std::int64_t pageTokens_;
    std::int64_t tokenStride_; ///< elements
    std::int64_t keyPageStride_;
    std::int64_t valuePageStride_;
    std::int64_t keyScaleStride_;
    std::int64_t valueScaleStride_;
    bool ring_;
};

} // namespace vitrine::kernels
