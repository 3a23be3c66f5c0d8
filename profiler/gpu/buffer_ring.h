// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Blocks of memory that a tracing library fills on any thread and one reader empties. Locks are held for a push or a
// pop.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace vitrine::profiler {

class BufferRing {
public:
    struct Full {
        std::uint8_t* data = nullptr;
        std::size_t bytes = 0; ///< that were filled
    };

    /// `atOnce` blocks exist from the start, at most `most` come to be.
    BufferRing(std::size_t blockBytes, std::size_t atOnce, std::size_t most) : blockBytes_(blockBytes), most_(most) {
        for (std::size_t i = 0; i < atOnce; ++i) {
            free_.push_back(add());
        }
    }

    /// An empty block, aligned to 16 bytes; null when the reader does not keep up.
    std::uint8_t* take() {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) {
            return all_.size() < most_ ? add() : nullptr;
        }
        std::uint8_t* buffer = free_.back();
        free_.pop_back();
        return buffer;
    }
    void fill(std::uint8_t* data, std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        full_.push_back({data, bytes});
    }
    /// The oldest that was filled; false when there is none.
    bool next(Full& out) {
        const std::lock_guard lock(mutex_);
        if (full_.empty()) {
            return false;
        }
        out = full_.front();
        full_.pop_front();
        return true;
    }
    void giveBack(std::uint8_t* data) {
        const std::lock_guard lock(mutex_);
        free_.push_back(data);
    }

private:
    std::uint8_t* add() {
        all_.push_back(std::make_unique_for_overwrite<std::uint8_t[]>(blockBytes_));
        return all_.back().get();
    }

    std::size_t blockBytes_, most_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<std::uint8_t[]>> all_;
    std::vector<std::uint8_t*> free_;
    std::deque<Full> full_;
};

} // namespace vitrine::profiler
