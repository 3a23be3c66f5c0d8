// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_numbers.h"

#include <QObject>
#include <algorithm>

#include "engine/attention/block_mask_cache.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

MaskBlockSize sizeOf(const kernels::BlockMask& blocks, bool closed) {
    return {blocks.shape.queryBlock, 1 - blocks.blockSparsity(), blocks.fullShare(),
            closed ? 0 : blocks.metadataBytes(), denseMaskBytes(blocks.shape)};
}

} // namespace

std::uint64_t denseMaskBytes(const kernels::BlockMaskShape& shape) {
    const auto rows = static_cast<std::uint64_t>(shape.queryBlocks());
    const auto columns = static_cast<std::uint64_t>(shape.keyBlocks());
    const auto planes = static_cast<std::uint64_t>(shape.batch * shape.heads);
    return planes * 2 * (rows * columns + rows) * sizeof(std::int32_t);
}

MaskBlockSize blockSizeOf(const MaskMap& map) {
    return sizeOf(*map.blocks, map.rows.has_value());
}

std::vector<MaskBlockSize> maskBlockSizes(const MaskMap& map, base::ThreadPool& pool, const base::StopToken& stop) {
    std::vector<MaskBlockSize> sizes{blockSizeOf(map)};
    for (const std::int64_t block : kBlockSizes) {
        if (block != map.shape().queryBlock) {
            kernels::BlockMaskShape shape = map.shape();
            shape.queryBlock = shape.keyBlock = block;
            const auto found =
                engine::BlockMaskCache::shared().get(map.mask->program, map.mask->binding, shape, pool, nullptr, stop);
            sizes.push_back(sizeOf(*found.mask, map.rows.has_value()));
        }
    }
    std::sort(sizes.begin(), sizes.end(),
              [](const MaskBlockSize& a, const MaskBlockSize& b) { return a.block < b.block; });
    return sizes;
}

QString maskForm(const MaskMap& map) {
    if (map.rows.has_value()) {
        return QObject::tr("closed form, no data");
    }
    const std::int64_t rows = map.shape().queryBlocks() * map.shape().batch * map.shape().heads;
    return QObject::tr("runs, %1 in %2 rows")
        .arg(countText(static_cast<std::int64_t>(map.blocks->rowRuns.size())), countText(rows));
}

std::vector<MaskDocument> maskDocuments(const std::vector<std::int64_t>& lengths, std::int64_t block) {
    std::vector<MaskDocument> documents;
    std::int64_t first = 0;
    for (const std::int64_t length : lengths) {
        const std::int64_t last = first + std::max<std::int64_t>(length, 1) - 1;
        documents.push_back({length, first, last / block - first / block + 1});
        first += length;
    }
    return documents;
}

int documentAt(const std::vector<std::int64_t>& lengths, std::int64_t position) {
    std::int64_t end = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        end += lengths[i];
        if (position < end) {
            return static_cast<int>(i);
        }
    }
    return static_cast<int>(lengths.size()) - 1;
}

} // namespace vitrine::ui
