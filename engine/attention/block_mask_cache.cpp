// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/attention/block_mask_cache.h"

#include <fmt/format.h>

#include "base/sha256.h"

namespace vitrine::engine {

namespace {

/// Row-major contents of a contiguous view, but for the stride of dimension 0.
void addContents(base::Sha256& hash, const kernels::TensorView& tensor) {
    const auto* const bytes = static_cast<const char*>(tensor.data);
    const kernels::Shape& shape = tensor.shape;
    const std::int64_t rows = shape.rank() == 0 ? 1 : shape[0];
    const std::int64_t width = rows == 0 ? 0 : shape.count() / rows;
    const std::uint64_t rowBytes = kernels::bytesOf(tensor.dtype, width);
    const std::int64_t stride = shape.rank() == 0 ? width : tensor.stride0();
    if (stride == width) {
        hash.add({bytes, rowBytes * static_cast<std::uint64_t>(rows)});
        return;
    }
    for (std::int64_t row = 0; row < rows; ++row) {
        hash.add({bytes + kernels::bytesOf(tensor.dtype, row * stride), rowBytes});
    }
}

} // namespace

std::string blockMaskKey(const kernels::Program& mask, const kernels::CaptureBinding& binding,
                         const kernels::BlockMaskShape& shape) {
    kernels::checkCaptures(mask, binding);
    const kernels::BlockMaskShape own = kernels::collapsedShape(mask, shape);
    base::Sha256 hash;
    hash.add(kernels::programKey(mask));
    for (const kernels::TensorView& tensor : binding.tensors) {
        hash.add(fmt::format("|{} {} ", static_cast<int>(tensor.dtype), tensor.shape.text()));
        addContents(hash, tensor);
    }
    return fmt::format("{} {} {} {} {} {} {}", hash.hex(), own.batch, own.heads, own.queries, own.keys, own.queryBlock,
                       own.keyBlock);
}

BlockMaskCache& BlockMaskCache::shared() {
    static BlockMaskCache cache;
    return cache;
}

BlockMaskCache::Found BlockMaskCache::get(const kernels::Program& mask, const kernels::CaptureBinding& binding,
                                          const kernels::BlockMaskShape& shape, base::ThreadPool& pool,
                                          base::ProgressSink* progress, const base::StopToken& stop,
                                          kernels::BlockEvaluator* evaluator) {
    const std::string key = blockMaskKey(mask, binding, shape);
    if (std::shared_ptr<const kernels::BlockMask> known = find(key)) {
        return {std::move(known), true};
    }
    auto made = std::make_shared<const kernels::BlockMask>(
        kernels::buildBlockMask(mask, binding, shape, pool, progress, stop, evaluator));
    keep(key, made);
    return {std::move(made), false};
}

std::shared_ptr<const kernels::BlockMask> BlockMaskCache::find(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    const auto known = entries_.find(key);
    if (known == entries_.end()) {
        return nullptr;
    }
    order_.splice(order_.begin(), order_, known->second.used);
    return known->second.mask;
}

void BlockMaskCache::keep(const std::string& key, const std::shared_ptr<const kernels::BlockMask>& mask) {
    const std::uint64_t bytes = mask->metadataBytes();
    const std::scoped_lock lock(mutex_);
    if (bytes > limitBytes_ || entries_.count(key) != 0) {
        return;
    }
    while (bytes_ + bytes > limitBytes_) {
        const auto oldest = entries_.find(order_.back());
        bytes_ -= oldest->second.mask->metadataBytes();
        entries_.erase(oldest);
        order_.pop_back();
    }
    order_.push_front(key);
    entries_.emplace(key, Entry{mask, order_.begin()});
    bytes_ += bytes;
}

std::uint64_t BlockMaskCache::bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
}

std::size_t BlockMaskCache::size() const {
    const std::scoped_lock lock(mutex_);
    return entries_.size();
}

void BlockMaskCache::clear() {
    const std::scoped_lock lock(mutex_);
    entries_.clear();
    order_.clear();
    bytes_ = 0;
}

} // namespace vitrine::engine
