// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Block masks that were built are kept: by the program, what it captured, the lengths and the block size. Other
// contents make another mask, never another kernel.

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/stop.h"
#include "base/thread_pool.h"
#include "kernels/program/block_mask.h"

namespace vitrine::engine {

/// Everything that decides a block mask, as text: equal keys mean equal masks. Contents enter by their SHA-256.
std::string blockMaskKey(const kernels::Program& mask, const kernels::CaptureBinding& binding,
                         const kernels::BlockMaskShape& shape);

/// Holds at most `limitBytes` of masks' metadata; the one that was asked for longest ago goes first. Thread-safe: two
/// threads that ask for the same new mask may both build it.
class BlockMaskCache {
public:
    explicit BlockMaskCache(std::uint64_t limitBytes = std::uint64_t{256} << 20) : limitBytes_(limitBytes) {}
    /// The cache that all attention runs of this process share.
    static BlockMaskCache& shared();

    struct Found {
        std::shared_ptr<const kernels::BlockMask> mask;
        bool hit = false;
    };
    /// See kernels::buildBlockMask. `binding` is in host memory.
    Found get(const kernels::Program& mask, const kernels::CaptureBinding& binding,
              const kernels::BlockMaskShape& shape, base::ThreadPool& pool, base::ProgressSink* progress = nullptr,
              const base::StopToken& stop = {}, kernels::BlockEvaluator* evaluator = nullptr);

    std::uint64_t bytes() const;
    std::size_t size() const;
    void clear();

private:
    struct Entry {
        std::shared_ptr<const kernels::BlockMask> mask;
        std::list<std::string>::iterator used;
    };
    std::shared_ptr<const kernels::BlockMask> find(const std::string& key);
    void keep(const std::string& key, const std::shared_ptr<const kernels::BlockMask>& mask);

    mutable std::mutex mutex_;
    std::uint64_t limitBytes_;
    std::uint64_t bytes_ = 0;
    std::map<std::string, Entry> entries_;
    std::list<std::string> order_; ///< the latest first
};

} // namespace vitrine::engine
